/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd on threads of its own.
 *
 * Its timeout is for silence only: a client that sends a byte every two seconds would stay forever.
 * So each connection is known with the time since which it is waited for, and is shut down when
 * that is too long ago; libmicrohttpd then cleans up by itself.
 *
 *      connection:   READING ──▶ WAITING (suspended; in the queue or with the owner) ──▶ ANSWERED
 *                       ▲                                                                  │
 *                       └──────────────────────── next request ────────────────────────────┘
 */
#include "coordinator/http.h"

#include "common/buf.h"
#include "common/clock.h"
#include "coordinator/http_listener.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define THREAD_COUNT 2
#define HEADER_BYTES_MAX (32 * 1024)
#define SILENCE_S 30
#define LAST_ANSWERS_MS 1000 /* for what is being sent when we close */

enum exchange_state {
    EXCHANGE_READING,
    EXCHANGE_QUEUED,   /* suspended, waits to be taken */
    EXCHANGE_TAKEN,    /* suspended, with the owner */
    EXCHANGE_ANSWERED, /* has its response */
};

/* One request on its way. Made and freed by libmicrohttpd's thread of the connection. */
struct exchange {
    uint64_t id;
    struct MHD_Connection *connection;
    enum exchange_state state; /* guarded by the server's lock once queued, as `response` */
    struct MHD_Response *response;
    int status;
    char *method;
    char *path;
    char *content_type;
    char *if_none_match;
    char *idempotency_key;
    struct wpk_http_parameter query[WPK_HTTP_QUERY_MAX]; /* strings owned */
    uint32_t query_count;
    struct wpk_buf body;
    struct exchange *next; /* of all exchanges */
};

/* One that is not in the table was refused: it may not ask. */
struct open_connection {
    int fd;       /* -1: free */
    bool waiting; /* suspended: it is we who take long */
    bool idle;    /* between two requests */
    uint64_t since_ns;
};

struct wpk_http_server {
    struct MHD_Daemon *daemon;
    struct wpk_http_options options;
    struct wpk_http_listener listener;
    pthread_mutex_t lock; /* guards all below; nothing else is locked while it is held */
    uint64_t id_next;
    struct exchange *exchanges; /* newest first */
    struct open_connection connections[WPK_HTTP_CONNECTIONS_MAX];
    bool closing;
};

/* ---- responses */

static struct MHD_Response *make_response(const struct wpk_http_response *response)
{
    /* The library does not write to the buffer that it is told to copy. */
    void *body = (void *)(uintptr_t)response->body;
    struct MHD_Response *made =
        response->release != NULL
            ? MHD_create_response_from_buffer_with_free_callback_cls(
                  response->body_size, body, response->release, response->owner)
            : MHD_create_response_from_buffer(response->body_size, body, MHD_RESPMEM_MUST_COPY);
    if (made == NULL) {
        if (response->release != NULL) {
            response->release(response->owner);
        }
        return NULL;
    }
    MHD_add_response_header(made, "Content-Type", response->content_type);
    MHD_add_response_header(made, "Cache-Control", "no-store");
    MHD_add_response_header(made, "X-Content-Type-Options", "nosniff");
    if (response->location != NULL) {
        MHD_add_response_header(made, "Location", response->location);
    }
    if (response->allow != NULL) {
        MHD_add_response_header(made, "Allow", response->allow);
    }
    if (response->etag != NULL) {
        MHD_add_response_header(made, "ETag", response->etag);
    }
    if (response->retry_after_s > 0) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%u", response->retry_after_s);
        MHD_add_response_header(made, "Retry-After", seconds);
    }
    return made;
}

/* Refuse before the body was read: the connection ends with this. */
static enum MHD_Result refuse(struct MHD_Connection *connection, int status, const char *detail)
{
    char body[512];
    int size = snprintf(body, sizeof body,
                        "{\"type\":\"about:blank\",\"title\":\"refused\",\"status\":%d,"
                        "\"detail\":\"%s\"}",
                        status, detail);
    struct wpk_http_response response = {.status = status,
                                         .content_type = "application/problem+json",
                                         .body = body,
                                         .body_size = (size_t)size};
    struct MHD_Response *made = make_response(&response);
    if (made == NULL) {
        return MHD_NO;
    }
    MHD_add_response_header(made, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)status, made);
    MHD_destroy_response(made);
    return result;
}

/* ---- connections and their clocks */

static struct open_connection *find_connection(struct wpk_http_server *server, int fd)
{
    for (int i = 0; i < WPK_HTTP_CONNECTIONS_MAX; i++) {
        if (server->connections[i].fd == fd) {
            return &server->connections[i];
        }
    }
    return NULL;
}

static int fd_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}

static void set_clock(struct wpk_http_server *server, struct MHD_Connection *connection,
                      bool waiting, bool idle)
{
    pthread_mutex_lock(&server->lock);
    struct open_connection *open = find_connection(server, fd_of(connection));
    if (open != NULL) {
        /* A request's clock starts when its first part is there, or with the connection. */
        if (open->waiting || idle || open->idle) {
            open->since_ns = wpk_clock_now_ns(wpk_clock_system());
        }
        open->waiting = waiting;
        open->idle = idle;
    }
    pthread_mutex_unlock(&server->lock);
}

/* Shutting a peer out does not promise that the library reads nothing of what it had sent. */
static bool was_refused(struct wpk_http_server *server, struct MHD_Connection *connection)
{
    pthread_mutex_lock(&server->lock);
    bool refused = find_connection(server, fd_of(connection)) == NULL;
    pthread_mutex_unlock(&server->lock);
    return refused;
}

/* Only this user, and root, may use the Unix socket: its mode says so, and so do we. */
static bool peer_may(const struct wpk_http_server *server, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return !server->listener.local || (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                                       (peer.uid == geteuid() || peer.uid == 0));
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct wpk_http_server *server = user;
    int fd = fd_of(connection);
    (void)context;
    pthread_mutex_lock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct open_connection *open = find_connection(server, -1);
        if (open == NULL || !peer_may(server, fd)) {
            shutdown(fd, SHUT_RDWR);
        } else {
            open->fd = fd;
            open->waiting = false;
            open->idle = false;
            open->since_ns = wpk_clock_now_ns(wpk_clock_system());
        }
    } else {
        struct open_connection *open = find_connection(server, fd);
        if (open != NULL) {
            open->fd = -1;
        }
    }
    pthread_mutex_unlock(&server->lock);
}

void wpk_http_server_expire(struct wpk_http_server *server, uint64_t now_ns)
{
    pthread_mutex_lock(&server->lock);
    for (int i = 0; i < WPK_HTTP_CONNECTIONS_MAX; i++) {
        struct open_connection *open = &server->connections[i];
        uint64_t limit_ms = open->idle ? WPK_HTTP_IDLE_MS : WPK_HTTP_REQUEST_MS;
        if (open->fd >= 0 && !open->waiting && now_ns > open->since_ns + limit_ms * WPK_NS_PER_MS) {
            shutdown(open->fd, SHUT_RDWR); /* the library closes it, and tells us so */
        }
    }
    pthread_mutex_unlock(&server->lock);
}

/* ---- requests */

static void exchange_free(struct exchange *exchange)
{
    for (uint32_t i = 0; i < exchange->query_count; i++) {
        free((void *)(uintptr_t)exchange->query[i].name);
        free((void *)(uintptr_t)exchange->query[i].value);
    }
    if (exchange->response != NULL) {
        MHD_destroy_response(exchange->response);
    }
    free(exchange->method);
    free(exchange->path);
    free(exchange->content_type);
    free(exchange->if_none_match);
    free(exchange->idempotency_key);
    wpk_buf_fini(&exchange->body);
    free(exchange);
}

static enum MHD_Result add_parameter(void *user, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct exchange *exchange = user;
    (void)kind;
    if (exchange->query_count == WPK_HTTP_QUERY_MAX) {
        return MHD_NO;
    }
    struct wpk_http_parameter *parameter = &exchange->query[exchange->query_count++];
    parameter->name = strdup(name);
    parameter->value = strdup(value != NULL ? value : "");
    return parameter->name != NULL && parameter->value != NULL ? MHD_YES : MHD_NO;
}

/* A page in a browser may send requests to any address under a name of its own. */
static bool host_is_local(struct MHD_Connection *connection)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; host != NULL && i < sizeof names / sizeof names[0]; i++) {
        size_t size = strlen(names[i]);
        if (strncmp(host, names[i], size) == 0 && (host[size] == '\0' || host[size] == ':')) {
            return true;
        }
    }
    return false;
}

/* What the headers say of the body: 0, or the status to refuse it with. */
static int check_body(const struct wpk_http_server *server, struct MHD_Connection *connection,
                      const char *method, const char *path)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    const char *coding =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding");
    if (coding != NULL) {
        return MHD_HTTP_LENGTH_REQUIRED;
    }
    if (length == NULL) {
        return 0;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long size = strtoull(length, &end, 10);
    if (errno != 0 || end == length || *end != '\0') {
        return MHD_HTTP_BAD_REQUEST;
    }
    return size > server->options.body_max(method, path) ? MHD_HTTP_CONTENT_TOO_LARGE : 0;
}

static char *copy_header(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return strdup(value != NULL ? value : "");
}

static enum MHD_Result begin(struct wpk_http_server *server, struct MHD_Connection *connection,
                             const char *method, const char *path, void **context)
{
    if (was_refused(server, connection)) {
        return MHD_NO;
    }
    set_clock(server, connection, false, false);
    if (!server->listener.local && !host_is_local(connection)) {
        return refuse(connection, MHD_HTTP_FORBIDDEN, "the Host header names another host");
    }
    int status = check_body(server, connection, method, path);
    if (status != 0) {
        char too_large[96];
        snprintf(too_large, sizeof too_large, "a body of at most %zu bytes is taken here",
                 server->options.body_max(method, path));
        return refuse(connection, status,
                      status == MHD_HTTP_CONTENT_TOO_LARGE ? too_large
                      : status == MHD_HTTP_LENGTH_REQUIRED
                          ? "the length of the body has to be given"
                          : "the Content-Length header is no number of bytes");
    }
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL) {
        return MHD_NO;
    }
    exchange->connection = connection;
    exchange->method = strdup(method);
    exchange->path = strdup(path);
    exchange->content_type = copy_header(connection, "Content-Type");
    exchange->if_none_match = copy_header(connection, "If-None-Match");
    exchange->idempotency_key = copy_header(connection, "Idempotency-Key");
    wpk_buf_init(&exchange->body, server->options.body_max(method, path) + 1);
    bool copied = exchange->method != NULL && exchange->path != NULL &&
                  exchange->content_type != NULL && exchange->if_none_match != NULL &&
                  exchange->idempotency_key != NULL;
    int count = MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, NULL, NULL);
    if (!copied || count > WPK_HTTP_QUERY_MAX) {
        exchange_free(exchange);
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "too many parameters");
    }
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_parameter, exchange);
    pthread_mutex_lock(&server->lock);
    exchange->id = ++server->id_next;
    exchange->next = server->exchanges;
    server->exchanges = exchange;
    pthread_mutex_unlock(&server->lock);
    *context = exchange;
    return MHD_YES;
}

static void describe(const struct exchange *exchange, struct wpk_http_request *out)
{
    *out = (struct wpk_http_request){.id = exchange->id,
                                     .identity = {.peer = "unix", .roles = WPK_ROLE_ALL},
                                     .method = exchange->method,
                                     .path = exchange->path,
                                     .query_count = exchange->query_count,
                                     .body = wpk_buf_text(&exchange->body),
                                     .body_size = exchange->body.size,
                                     .content_type = exchange->content_type,
                                     .if_none_match = exchange->if_none_match,
                                     .idempotency_key = exchange->idempotency_key};
    memcpy(out->query, exchange->query, sizeof out->query);
}

/* The request is whole: somebody answers at once? */
static bool serve(struct wpk_http_server *server, struct exchange *exchange)
{
    struct wpk_http_request request;
    struct wpk_http_response response = {.body = ""};
    if (server->options.serve == NULL) {
        return false;
    }
    describe(exchange, &request);
    if (!server->options.serve(server->options.serve_user, &request, &response)) {
        return false;
    }
    exchange->response = make_response(&response);
    exchange->status = response.status;
    exchange->state = EXCHANGE_ANSWERED;
    return true;
}

/* Hand it to the owner and wait. */
static enum MHD_Result enqueue(struct wpk_http_server *server, struct exchange *exchange)
{
    pthread_mutex_lock(&server->lock);
    bool closing = server->closing;
    if (!closing) {
        exchange->state = EXCHANGE_QUEUED;
        MHD_suspend_connection(exchange->connection);
    }
    pthread_mutex_unlock(&server->lock);
    if (closing) {
        return MHD_NO;
    }
    set_clock(server, exchange->connection, true, false);
    server->options.wake(server->options.user);
    return MHD_YES;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **context)
{
    struct wpk_http_server *server = user;
    struct exchange *exchange = *context;
    (void)version;
    if (exchange == NULL) {
        return begin(server, connection, method, path, context);
    }
    if (*data_size > 0) {
        wpk_buf_append(&exchange->body, data, *data_size);
        *data_size = 0;
        return wpk_buf_status(&exchange->body) == WPK_OK ? MHD_YES : MHD_NO;
    }
    pthread_mutex_lock(&server->lock);
    enum exchange_state state = exchange->state;
    pthread_mutex_unlock(&server->lock);
    if (state == EXCHANGE_READING && serve(server, exchange)) {
        state = EXCHANGE_ANSWERED;
    }
    if (state == EXCHANGE_READING) {
        return enqueue(server, exchange);
    }
    if (state != EXCHANGE_ANSWERED) {
        return MHD_YES;
    }
    set_clock(server, connection, false, false); /* now it is the client that may take long */
    return exchange->response != NULL
               ? MHD_queue_response(connection, (unsigned)exchange->status, exchange->response)
               : MHD_NO;
}

static void on_completed(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct wpk_http_server *server = user;
    struct exchange *exchange = *context;
    (void)code;
    set_clock(server, connection, false, true);
    if (exchange == NULL) {
        return;
    }
    *context = NULL;
    pthread_mutex_lock(&server->lock);
    struct exchange **link = &server->exchanges;
    while (*link != exchange) {
        link = &(*link)->next;
    }
    *link = exchange->next;
    pthread_mutex_unlock(&server->lock);
    exchange_free(exchange);
}

/* ---- the owner's side */

bool wpk_http_server_next(struct wpk_http_server *server, struct wpk_http_request *out)
{
    struct exchange *oldest = NULL;
    pthread_mutex_lock(&server->lock);
    for (struct exchange *e = server->exchanges; e != NULL; e = e->next) {
        if (e->state == EXCHANGE_QUEUED) {
            oldest = e;
        }
    }
    if (oldest != NULL) {
        oldest->state = EXCHANGE_TAKEN;
        describe(oldest, out);
    }
    pthread_mutex_unlock(&server->lock);
    return oldest != NULL;
}

const char *wpk_http_query(const struct wpk_http_request *request, const char *name)
{
    for (uint32_t i = 0; i < request->query_count; i++) {
        if (strcmp(request->query[i].name, name) == 0) {
            return request->query[i].value;
        }
    }
    return NULL;
}

/* With the lock held: give the exchange its response and let its thread go on. */
static void give_answer(struct exchange *exchange, const struct wpk_http_response *response)
{
    exchange->response = make_response(response);
    exchange->status = response->status;
    exchange->state = EXCHANGE_ANSWERED;
    MHD_resume_connection(exchange->connection);
}

void wpk_http_server_respond(struct wpk_http_server *server, uint64_t id,
                             const struct wpk_http_response *response)
{
    bool taken = false;
    pthread_mutex_lock(&server->lock);
    for (struct exchange *e = server->exchanges; e != NULL; e = e->next) {
        if (e->id == id && e->state == EXCHANGE_TAKEN) {
            give_answer(e, response);
            taken = true;
            break;
        }
    }
    pthread_mutex_unlock(&server->lock);
    if (!taken && response->release != NULL) {
        response->release(response->owner);
    }
}

/* ---- life */

bool wpk_http_etag_matches(const char *if_none_match, const char *etag)
{
    const char *tag = strncmp(etag, "W/", 2) == 0 ? etag + 2 : etag;
    return strcmp(if_none_match, "*") == 0 || strstr(if_none_match, tag) != NULL;
}

wpk_err wpk_http_server_reload(struct wpk_http_server *server,
                               const struct wpk_http_options *options, struct wpk_diag *diag)
{
    (void)server;
    (void)options;
    (void)diag;
    return WPK_OK;
}

uint16_t wpk_http_server_port(const struct wpk_http_server *server, uint32_t listener)
{
    (void)server;
    (void)listener;
    return 0;
}

wpk_err wpk_http_server_open(const struct wpk_http_options *options, struct wpk_http_server **out,
                             struct wpk_diag *diag)
{
    struct wpk_http_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return WPK_ENOMEM;
    }
    server->options = *options;
    server->listener.fd = -1;
    pthread_mutex_init(&server->lock, NULL);
    for (int i = 0; i < WPK_HTTP_CONNECTIONS_MAX; i++) {
        server->connections[i].fd = -1;
    }
    wpk_err err = wpk_http_listener_open(options->listeners[0].address, &server->listener, diag);
    if (err == WPK_OK) {
        server->daemon = MHD_start_daemon(
            MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
            server, MHD_OPTION_LISTEN_SOCKET, server->listener.fd, MHD_OPTION_THREAD_POOL_SIZE,
            (unsigned)THREAD_COUNT, MHD_OPTION_CONNECTION_LIMIT, (unsigned)WPK_HTTP_CONNECTIONS_MAX,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES_MAX,
            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S, MHD_OPTION_NOTIFY_COMPLETED,
            on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
            MHD_OPTION_END);
        if (server->daemon == NULL) {
            wpk_diag_set(diag, "%s: the HTTP server does not start", options->listeners[0].address);
            err = WPK_ESYSTEM;
        }
    }
    if (err != WPK_OK) {
        wpk_http_server_close(server);
        return err;
    }
    *out = server;
    return WPK_OK;
}

/* Nobody answers any more: everything that waits is told so. */
static void answer_all(struct wpk_http_server *server)
{
    static const char body[] = "{\"type\":\"about:blank\",\"title\":\"shutting down\","
                               "\"status\":503,\"detail\":\"wpkd is ending\"}";
    struct wpk_http_response response = {.status = MHD_HTTP_SERVICE_UNAVAILABLE,
                                         .content_type = "application/problem+json",
                                         .body = body,
                                         .body_size = sizeof body - 1};
    pthread_mutex_lock(&server->lock);
    server->closing = true;
    for (struct exchange *e = server->exchanges; e != NULL; e = e->next) {
        if (e->state == EXCHANGE_QUEUED || e->state == EXCHANGE_TAKEN) {
            give_answer(e, &response);
        }
    }
    pthread_mutex_unlock(&server->lock);
}

/* Stopping cuts off what is being sent: the last answers, which say why we end, get a moment. */
static void wait_for_answers(struct wpk_http_server *server)
{
    for (int waited_ms = 0; waited_ms < LAST_ANSWERS_MS; waited_ms += 5) {
        bool sending = false;
        pthread_mutex_lock(&server->lock);
        for (struct exchange *e = server->exchanges; e != NULL; e = e->next) {
            sending = sending || e->state == EXCHANGE_ANSWERED;
        }
        pthread_mutex_unlock(&server->lock);
        if (!sending) {
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

void wpk_http_server_close(struct wpk_http_server *server)
{
    if (server == NULL) {
        return;
    }
    if (server->daemon != NULL) {
        answer_all(server);
        wait_for_answers(server);
        MHD_stop_daemon(server->daemon); /* closes the listening socket */
        server->listener.fd = -1;
    }
    wpk_http_listener_close(&server->listener);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
