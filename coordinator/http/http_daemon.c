/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd on threads of its own. It reads, parses and sends. This file and its neighbours add
 * the rest:
 *
 *      acceptor ──▶ admission ──▶ daemon of the library ──▶ head, policy ──▶ exchange
 *
 * - The library has a timeout for silence only, and stops accepting when it is full. So admission
 *   sets deadlines for all phases and ends connections; the library never reaches its limit.
 * - The library calls twice: first with the head, when a request can be refused before its body is
 *   read (the connection then ends); last when the request is whole.
 * - The library reads heads leniently. http_head.h detects that by the places of the parts. No
 *   documentation promises these, so wpk_http_daemon_check() tests them before a server is opened.
 * - A daemon keeps its certificate. A new certificate gets a new daemon, which gets all connections
 *   from then on; the old daemon is stopped when its last connection has ended. */
#include "coordinator/http/http.h"

#include "common/log.h"
#include "common/metrics.h"
#include "coordinator/http/http_head.h"
#include "coordinator/http/http_parts.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS_MIN 4 /* a request that takes long holds up those of its thread alone */
#define THREADS_MAX 8
#define HEAD_BYTES_MAX ((size_t)16 * 1024) /* and of an answer's headers */
#define PROBE_TURNS 16                     /* of the library, to read a head of one write */
#define SEND_BYTES_PER_S 65536             /* slower than this, a large answer is given up */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* ---- responses */

static enum MHD_Result send_response(struct wpk_http_exchange *exchange,
                                     struct MHD_Response *response)
{
    uint64_t size = exchange->held;
    if (response == NULL ||
        !wpk_http_exchange_mark(exchange, WPK_CONNECTION_SENDING,
                                WPK_HTTP_REQUEST_MS + size * 1000 / SEND_BYTES_PER_S)) {
        return MHD_NO;
    }
    return MHD_queue_response(exchange->connection, (unsigned)exchange->status, response);
}

/* Refuse before the body was read: the connection ends with this. */
static enum MHD_Result refuse(struct wpk_http_exchange *exchange, int status, const char *detail)
{
    struct wpk_api_answer answer;
    wpk_http_refuse(&answer, status, "refused", detail);
    snprintf(answer.location, sizeof answer.location, "%s",
             status == MHD_HTTP_SEE_OTHER ? "sign-in" : "");
    struct MHD_Response *made = wpk_http_exchange_respond(exchange, &answer, true);
    wpk_api_answer_fini(&answer);
    if (made != NULL && status == MHD_HTTP_UNAUTHORIZED) {
        MHD_add_response_header(made, "WWW-Authenticate", "Bearer realm=\"wpkd\"");
    }
    enum MHD_Result result = send_response(exchange, made);
    if (made != NULL) {
        MHD_destroy_response(made);
    }
    return result;
}

/* ---- the head of a request */

static enum MHD_Result add_header(void *user, enum MHD_ValueKind kind WPK_UNUSED, const char *name,
                                  size_t name_size, const char *value, size_t value_size)
{
    wpk_http_head_add(user, name, name_size, value != NULL ? value : "", value_size);
    return MHD_YES;
}

static enum MHD_Result add_parameter(void *user, enum MHD_ValueKind kind WPK_UNUSED,
                                     const char *name, const char *value)
{
    struct wpk_http_request *request = user;
    if (request->query_count == WPK_HTTP_QUERY_MAX) {
        return MHD_NO;
    }
    request->query[request->query_count++] =
        (struct wpk_http_parameter){.name = name, .value = value != NULL ? value : ""};
    return MHD_YES;
}

static void read_head(struct MHD_Connection *connection, const char *method, const char *target,
                      size_t target_size, const char *version, struct wpk_http_head *out)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    wpk_http_head_begin(out, method, target, target_size, version);
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, add_header, out);
    wpk_http_head_end(out, method, info != NULL ? info->header_size : 0);
}

/* Check the headers that describe the body: 0, or the status to refuse it with. */
static int check_body(struct wpk_http_exchange *exchange, const struct wpk_http_head *head,
                      char *detail, size_t detail_size)
{
    const struct wpk_http_request *request = &exchange->request;
    uint64_t size = 0;
    if (head->field[WPK_HTTP_TRANSFER_ENCODING] != NULL) {
        snprintf(detail, detail_size, "the length of the body has to be given");
        return MHD_HTTP_LENGTH_REQUIRED;
    }
    if (head->field[WPK_HTTP_CONTENT_LENGTH] != NULL &&
        !wpk_http_parse_length(head->field[WPK_HTTP_CONTENT_LENGTH], &size)) {
        snprintf(detail, detail_size, "the Content-Length header is no number of bytes");
        return MHD_HTTP_BAD_REQUEST;
    }
    size_t max = exchange->server->options.body_max(request->method, request->path);
    if (size > max) {
        snprintf(detail, detail_size, "a body of at most %zu bytes is taken here", max);
        return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    exchange->body_room = (size_t)size;
    if (size > 0 && !wpk_http_exchange_hold(exchange, (size_t)size)) {
        snprintf(detail, detail_size, "too much is being sent at once");
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    return 0;
}

/* Find out who asks: 0, or the status to refuse the request with. */
static int identify(struct wpk_http_exchange *exchange, const struct wpk_http_head *head,
                    struct wpk_diag *diag)
{
    struct wpk_http_server *server = exchange->server;
    struct wpk_http_request *request = &exchange->request;
    const struct wpk_identity *local = &exchange->local;
    uint64_t wall_ns = wpk_clock_wall_ns(server->clock);
    const char *authorization = head->field[WPK_HTTP_AUTHORIZATION];
    enum wpk_http_entry entry = server->options.entry != NULL
                                    ? server->options.entry(request->method, request->path)
                                    : WPK_HTTP_ENTRY_TOKEN;
    bool shows_none = authorization == NULL && local->roles == 0;
    if (entry == WPK_HTTP_ENTRY_OPEN || (entry == WPK_HTTP_ENTRY_COOKIE && shows_none)) {
        bool known =
            wpk_http_policy_has_cookie(&server->policy, head, local, wall_ns, &request->identity);
        if (!known) {
            request->identity = *local;
            wpk_diag_set(diag, "sign in with a token");
        }
        return known || entry == WPK_HTTP_ENTRY_OPEN ? 0 : MHD_HTTP_SEE_OTHER;
    }
    wpk_err err = wpk_http_policy_identify(&server->policy, authorization, local, wall_ns,
                                           &request->identity, diag);
    return err == WPK_OK ? 0 : MHD_HTTP_UNAUTHORIZED;
}

/* Check a request before its body is read: 0, or the status to refuse it with. */
static int check_head(struct wpk_http_exchange *exchange, const char *version, char *detail,
                      size_t size)
{
    struct wpk_http_server *server = exchange->server;
    struct wpk_http_request *request = &exchange->request;
    struct wpk_http_head head;
    struct wpk_diag diag = {0};
    read_head(exchange->connection, request->method, exchange->target, exchange->target_size,
              version, &head);
    const char *host = head.field[WPK_HTTP_HOST];
    const char *fault = exchange->target_fault != NULL ? exchange->target_fault : head.fault;
    if (fault == NULL && host == NULL && version[7] == '1') {
        fault = "there is no Host header";
    }
    if (fault != NULL) {
        snprintf(detail, size, "%s", fault);
        wpk_metric_add(WPK_COUNTER_HTTP_REFUSED, wpk_metric_value(WPK_LABEL_REFUSAL, "malformed"),
                       1);
        return MHD_HTTP_BAD_REQUEST;
    }
    if (!wpk_http_policy_host_allowed(&server->policy, &server->listeners[exchange->listener],
                                      server->tls[exchange->listener], host)) {
        snprintf(detail, size, "the Host header names another host");
        return MHD_HTTP_FORBIDDEN;
    }
    int refusal = identify(exchange, &head, &diag);
    if (refusal != 0) {
        snprintf(detail, size, "%s", diag.text);
        return refusal;
    }
    MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, add_parameter, request);
    if (MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, NULL, NULL) >
        WPK_HTTP_QUERY_MAX) {
        snprintf(detail, size, "too many parameters");
        return MHD_HTTP_BAD_REQUEST;
    }
    request->content_type = WPK_OR_EMPTY(head.field[WPK_HTTP_CONTENT_TYPE]);
    request->if_none_match = WPK_OR_EMPTY(head.field[WPK_HTTP_IF_NONE_MATCH]);
    request->idempotency_key = WPK_OR_EMPTY(head.field[WPK_HTTP_IDEMPOTENCY_KEY]);
    return check_body(exchange, &head, detail, size);
}

static enum MHD_Result begin(struct wpk_http_exchange *exchange, const char *method,
                             const char *path, const char *version)
{
    char detail[WPK_DIAG_TEXT_MAX];
    exchange->request =
        (struct wpk_http_request){.method = method, .path = path, .body = "", .if_none_match = ""};
    /* A connection that is being closed may still deliver a request; drop it. */
    if (!wpk_http_exchange_mark(exchange, WPK_CONNECTION_READING, WPK_HTTP_REQUEST_MS)) {
        return MHD_NO;
    }
    int status = check_head(exchange, version, detail, sizeof detail);
    if (status != 0) {
        return refuse(exchange, status, detail);
    }
    if (exchange->body_room > 0) {
        exchange->body = malloc(exchange->body_room + 1);
        if (exchange->body == NULL) {
            return MHD_NO;
        }
        exchange->body[0] = '\0';
        exchange->request.body = exchange->body;
    }
    exchange->state = WPK_HTTP_EXCHANGE_READING;
    return MHD_YES;
}

/* ---- the whole request */

static enum MHD_Result answer_whole(struct wpk_http_server *server,
                                    struct wpk_http_exchange *exchange)
{
    struct wpk_api_answer answer = {.status = 0};
    exchange->whole_ns = wpk_clock_now_ns(server->clock);
    if (!wpk_http_exchange_mark(exchange, WPK_CONNECTION_SERVING, 0)) {
        return MHD_NO;
    }
    if (server->options.serve != NULL && exchange->request.body_size >= WPK_HTTP_LARGE) {
        return wpk_http_readers_take(&server->readers, exchange) ? MHD_YES : MHD_NO;
    }
    if (!wpk_http_exchange_serve(exchange, &answer)) {
        return wpk_http_exchange_queue(exchange) ? MHD_YES : MHD_NO;
    }
    exchange->response = wpk_http_exchange_respond(exchange, &answer, false);
    wpk_api_answer_fini(&answer);
    exchange->state = WPK_HTTP_EXCHANGE_ANSWERED;
    return send_response(exchange, exchange->response);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection WPK_UNUSED,
                                  const char *path, const char *method, const char *version,
                                  const char *data, size_t *data_size, void **context)
{
    struct wpk_http_server *server = user;
    struct wpk_http_exchange *exchange = *context;
    if (exchange->state == WPK_HTTP_EXCHANGE_NEW) {
        return begin(exchange, method, path, version);
    }
    if (*data_size > 0) {
        size_t at = exchange->request.body_size;
        WPK_ASSERT(*data_size <= exchange->body_room - at);
        memcpy(exchange->body + at, data, *data_size);
        exchange->request.body_size += *data_size;
        exchange->body[exchange->request.body_size] = '\0';
        *data_size = 0;
        return MHD_YES;
    }
    if (exchange->state == WPK_HTTP_EXCHANGE_READING) {
        return answer_whole(server, exchange);
    }
    return send_response(exchange, exchange->response);
}

static void log_request(const struct wpk_http_exchange *exchange)
{
    const struct wpk_http_request *request = &exchange->request;
    if (wpk_log_enabled(WPK_LOG_DEBUG) && exchange->state == WPK_HTTP_EXCHANGE_ANSWERED) {
        wpk_log(
            WPK_LOG_DEBUG, "http", "method=%s path=\"%s\" status=%d owner=%s peer=%s us=%llu",
            request->method, request->path, exchange->status, request->identity.owner,
            request->identity.peer,
            (unsigned long long)((wpk_clock_now_ns(exchange->server->clock) - exchange->whole_ns) /
                                 WPK_NS_PER_US));
    }
}

static void on_completed(void *user, struct MHD_Connection *connection WPK_UNUSED, void **context,
                         enum MHD_RequestTerminationCode code WPK_UNUSED)
{
    struct wpk_http_server *server = user;
    struct wpk_http_exchange *exchange = *context;
    if (exchange->status != 0) {
        wpk_metric_add(WPK_COUNTER_HTTP_REQUESTS, (unsigned)exchange->status / 100, 1);
    }
    if (exchange->state == WPK_HTTP_EXCHANGE_ANSWERED) {
        wpk_metric_observe_ns(WPK_HISTOGRAM_HTTP,
                              wpk_clock_now_ns(server->clock) - exchange->whole_ns);
        log_request(exchange);
    }
    if (exchange->response != NULL) {
        MHD_destroy_response(exchange->response);
        exchange->response = NULL;
    }
    if (exchange->release != NULL) {
        exchange->release(exchange->request.prepared);
        exchange->release = NULL;
    }
    free(exchange->body);
    exchange->body = NULL;
    exchange->body_room = 0;
    wpk_http_exchange_release(exchange);
    exchange->state = WPK_HTTP_EXCHANGE_NEW;
    exchange->status = 0;
    wpk_http_exchange_mark(exchange, WPK_CONNECTION_IDLE, WPK_HTTP_IDLE_MS);
}

/* The first line of a request is there, not decoded yet. */
static void *on_target(void *user WPK_UNUSED, const char *target, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct wpk_http_exchange *exchange = info->socket_context;
    exchange->target = WPK_OR_EMPTY(target);
    exchange->target_size = strlen(exchange->target);
    exchange->target_fault = wpk_http_check_target(exchange->target, exchange->target_size);
    wpk_http_exchange_mark(exchange, WPK_CONNECTION_READING, WPK_HTTP_REQUEST_MS);
    return exchange;
}

/* ---- connections */

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct wpk_http_server *server = user;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        uint32_t number = server->connection_of[info->connect_fd];
        server->exchanges[number].connection = connection;
        *context = &server->exchanges[number];
        return;
    }
    wpk_http_exchange_leave(*context);
}

/* ---- daemons */

/* The library's messages matter when a daemon does not start: they say what of a certificate is
 * wrong. */
static _Thread_local struct wpk_diag *start_diag;

static void on_message(void *user WPK_UNUSED, const char *format, va_list args)
{
    if (start_diag != NULL && start_diag->text[0] == '\0') {
        vsnprintf(start_diag->text, sizeof start_diag->text, format, args);
        start_diag->text[strcspn(start_diag->text, "\n")] = '\0';
    }
}

wpk_err wpk_http_daemon_start(struct wpk_http_server *server, const char *certificate,
                              const char *key, struct MHD_Daemon **out, struct wpk_diag *diag)
{
    struct wpk_diag said = {0};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long threads = cores < THREADS_MIN ? THREADS_MIN : cores > THREADS_MAX ? THREADS_MAX : cores;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL}};
    start_diag = &said;
    /* The library's limit of connections is never reached: there it would leave a lock held. */
    *out = MHD_start_daemon(
        flags | (certificate != NULL ? MHD_USE_TLS : 0), 0, NULL, NULL, on_request, server,
        MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)threads, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)WPK_HTTP_DESCRIPTORS_MAX * THREADS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        HEAD_BYTES_MAX, MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_STRICT_FOR_CLIENT, -1,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_ARRAY,
        certificate != NULL ? tls : tls + 3, MHD_OPTION_END);
    start_diag = NULL;
    if (*out != NULL) {
        return WPK_OK;
    }
    wpk_diag_set(diag, "%s%s", certificate == NULL ? "the HTTP server does not start: " : "",
                 said.text);
    return certificate != NULL ? WPK_EPARSE : WPK_ESYSTEM;
}

void wpk_http_daemon_stop(struct MHD_Daemon *daemon)
{
    MHD_stop_daemon(daemon);
}

bool wpk_http_daemon_add(struct MHD_Daemon *daemon, const struct wpk_http_arrival *arrival)
{
    return MHD_add_connection(daemon, arrival->fd, (const struct sockaddr *)&arrival->address,
                              arrival->address_size) == MHD_YES;
}

/* ---- the library at hand */

#define HEAD(text) text, sizeof text - 1

/* Heads that the library may be lenient with. */
static const struct probe {
    const char *fault; /* NULL: it has to be taken; else it has to be refused */
    const char *text;
    size_t size;
} probes[] = {
    {NULL, HEAD("GET /a%20b?c=%64 HTTP/1.1\r\nA: \t b c\r\nEmpty:\r\nHost: x\r\n\r\n")},
    {"a lone LF in its first line", HEAD("GET / HTTP/1.1\nHost: x\r\n\r\n")},
    {"a lone LF behind a header", HEAD("GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n")},
    {"a lone LF at its end", HEAD("GET / HTTP/1.1\r\nHost: x\r\n\n")},
    {"a NUL", HEAD("GET / HTTP/1.1\r\nHost: x\0y\r\n\r\n")},
    {"a folded line", HEAD("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n")},
    {"a blank before a colon", HEAD("GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n")},
};

struct probed {
    const char *target;
    size_t target_size;
    bool taken;
};

static void *on_probe_target(void *user, const char *target,
                             struct MHD_Connection *connection WPK_UNUSED)
{
    struct probed *probed = user;
    probed->target = WPK_OR_EMPTY(target);
    probed->target_size = strlen(probed->target);
    return NULL;
}

static enum MHD_Result on_probe(void *user, struct MHD_Connection *connection,
                                const char *path WPK_UNUSED, const char *method,
                                const char *version, const char *data WPK_UNUSED,
                                size_t *data_size WPK_UNUSED, void **context WPK_UNUSED)
{
    struct probed *probed = user;
    struct wpk_http_head head;
    read_head(connection, method, probed->target, probed->target_size, version, &head);
    const char *host = WPK_OR_EMPTY(head.field[WPK_HTTP_HOST]);
    probed->taken = head.fault == NULL && strcmp(host, "x") == 0;
    return MHD_NO;
}

/* Let the library read the head on this thread; `taken` says whether wpk_http_head accepts it. */
static wpk_err send_probe(const struct probe *probe, bool *taken)
{
    const struct sockaddr address = {.sa_family = AF_UNIX};
    struct probed probed = {.target = ""};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        return WPK_ESYSTEM;
    }
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_probe, &probed,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEAD_BYTES_MAX, MHD_OPTION_STRICT_FOR_CLIENT, -1,
        MHD_OPTION_URI_LOG_CALLBACK, on_probe_target, &probed, MHD_OPTION_END);
    bool sent = daemon != NULL && write(ends[1], probe->text, probe->size) == (ssize_t)probe->size;
    if (!sent) {
        close(ends[0]);
    } else {
        sent = MHD_add_connection(daemon, ends[0], &address, sizeof address) == MHD_YES;
    }
    for (int turn = 0; sent && turn < PROBE_TURNS; turn++) {
        sent = MHD_run(daemon) == MHD_YES;
    }
    if (daemon != NULL) {
        MHD_stop_daemon(daemon);
    }
    close(ends[1]);
    *taken = probed.taken;
    return sent ? WPK_OK : WPK_ESYSTEM;
}

wpk_err wpk_http_daemon_check(struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (size_t i = 0; i < sizeof probes / sizeof probes[0] && err == WPK_OK; i++) {
        bool taken = false;
        err = send_probe(&probes[i], &taken);
        if (err != WPK_OK) {
            wpk_diag_set(diag, "libmicrohttpd %s cannot be tried", MHD_get_version());
        } else if (taken != (probes[i].fault == NULL)) {
            err =
                wpk_fail(diag, WPK_EUNSUPPORTED,
                         "libmicrohttpd %s is not safe behind a proxy: wpkd %s%s; install version"
                         " %x.%x.%x, which this wpkd was built with",
                         MHD_get_version(),
                         taken ? "would take a request with " : "cannot see how a request was sent",
                         taken ? probes[i].fault : "", MHD_VERSION >> 24, MHD_VERSION >> 16 & 0xff,
                         MHD_VERSION >> 8 & 0xff);
        }
    }
    return err;
}
