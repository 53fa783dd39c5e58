/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a server: its listeners, its daemons and their certificates, its queue. */
#include "common/fs.h"
#include "common/metrics.h"
#include "coordinator/http/http_parts.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PEM_SIZE_MAX ((size_t)1 << 20)
#define LAST_ANSWERS_MS 1000 /* for what is being sent when we close */

/* ---- daemons */

static wpk_err start_daemon(struct wpk_http_server *server, const struct wpk_listen *listen,
                            struct MHD_Daemon **out, struct wpk_diag *diag)
{
    if (listen->certificate == NULL) {
        return wpk_http_daemon_start(server, NULL, NULL, out, diag);
    }
    struct wpk_buf certificate = {0};
    struct wpk_buf key = {0};
    struct wpk_diag reason = {0};
    wpk_err err = wpk_fs_read(listen->certificate, PEM_SIZE_MAX, &certificate, diag);
    err = err == WPK_OK ? wpk_fs_read(listen->key, PEM_SIZE_MAX, &key, diag) : err;
    if (err == WPK_OK) {
        err = wpk_http_daemon_start(server, wpk_buf_text(&certificate), wpk_buf_text(&key), out,
                                    &reason);
    }
    if (err != WPK_OK) {
        wpk_diag_set(diag, "%s, %s: %s", listen->certificate, listen->key, reason.text);
    }
    wpk_buf_fini(&certificate);
    if (key.data != NULL) {
        explicit_bzero(key.data, key.capacity);
    }
    wpk_buf_fini(&key);
    return err;
}

wpk_err wpk_http_check_certificate(const char *certificate, const char *key, struct wpk_diag *diag)
{
    const struct wpk_listen listen = {.certificate = certificate, .key = key};
    struct MHD_Daemon *handle = NULL;
    wpk_err err = start_daemon(NULL, &listen, &handle, diag); /* it serves nobody */
    if (err == WPK_OK) {
        wpk_http_daemon_stop(handle);
    }
    return err;
}

/* Retired ones whose last connection has left are stopped; outside the lock, their threads may want
 * it. */
static void stop_retired(struct wpk_http_server *server)
{
    struct MHD_Daemon *ended[WPK_HTTP_DAEMONS_MAX];
    uint32_t count = 0;
    pthread_mutex_lock(&server->lock);
    for (uint32_t i = 0; i < WPK_HTTP_DAEMONS_MAX; i++) {
        struct wpk_http_daemon *daemon = &server->daemons[i];
        if (daemon->handle != NULL && daemon->retired && daemon->connection_count == 0) {
            ended[count++] = daemon->handle;
            daemon->handle = NULL;
        }
    }
    pthread_mutex_unlock(&server->lock);
    for (uint32_t i = 0; i < count; i++) {
        wpk_http_daemon_stop(ended[i]);
    }
}

/* With the lock held: a free daemon, or NULL. */
static struct wpk_http_daemon *take_daemon(struct wpk_http_server *server,
                                           struct MHD_Daemon *handle)
{
    for (uint32_t i = 0; i < WPK_HTTP_DAEMONS_MAX; i++) {
        struct wpk_http_daemon *daemon = &server->daemons[i];
        if (daemon->handle == NULL) {
            daemon->handle = handle;
            daemon->retired = false;
            return daemon;
        }
    }
    return NULL;
}

/* One without TLS carries all listeners that have none; each other listener has its own. */
static struct wpk_http_daemon *find_plain(struct wpk_http_server *server)
{
    for (uint32_t i = 0; i < server->listener_count; i++) {
        if (!server->tls[i] && server->daemon_of[i] != NULL) {
            return server->daemon_of[i];
        }
    }
    return NULL;
}

/* At the start, before there are other threads. */
static wpk_err set_daemon(struct wpk_http_server *server, const struct wpk_listen *listen,
                          uint32_t index, struct wpk_diag *diag)
{
    struct MHD_Daemon *handle = NULL;
    struct wpk_http_daemon *plain = find_plain(server);
    if (!server->tls[index] && plain != NULL) {
        server->daemon_of[index] = plain;
        return WPK_OK;
    }
    wpk_err err = start_daemon(server, listen, &handle, diag);
    if (err == WPK_OK) {
        server->daemon_of[index] = take_daemon(server, handle);
        WPK_ASSERT(server->daemon_of[index] != NULL);
    }
    return err;
}

/* With the lock held: it gets no more connections, and those that it has end with an answer. */
static void retire(struct wpk_http_server *server, struct wpk_http_daemon *daemon)
{
    daemon->retired = true;
    for (uint32_t i = 0; i < server->exchange_count; i++) {
        if (server->exchanges[i].daemon == daemon) {
            wpk_admission_dismiss(server->admission, i);
        }
    }
}

/* Connections go to the daemons that were started from now on; NULL: to the one before. */
static wpk_err replace_daemons(struct wpk_http_server *server,
                               struct MHD_Daemon *started[WPK_HTTP_LISTENERS_MAX],
                               struct wpk_diag *diag)
{
    uint32_t wanted = 0;
    uint32_t free_count = 0;
    pthread_mutex_lock(&server->lock);
    for (uint32_t i = 0; i < WPK_HTTP_DAEMONS_MAX; i++) {
        free_count += server->daemons[i].handle == NULL;
    }
    for (uint32_t i = 0; i < server->listener_count; i++) {
        wanted += started[i] != NULL;
    }
    for (uint32_t i = 0; i < server->listener_count && wanted <= free_count; i++) {
        if (started[i] != NULL) {
            retire(server, server->daemon_of[i]);
            server->daemon_of[i] = take_daemon(server, started[i]);
        }
    }
    pthread_mutex_unlock(&server->lock);
    if (wanted > free_count) {
        return wpk_fail(diag, WPK_EBUSY,
                        "connections still use the certificates before: try in a minute");
    }
    return WPK_OK;
}

/* ---- the acceptor's side */

/* True if the connection has bytes that no thread has read. Then the server is the slow one,
 * whatever the phase: otherwise a flood that is accepted faster than it is read would end
 * connections whose requests arrived in its midst. */
static bool is_unread(void *user, uint32_t connection)
{
    const struct wpk_http_server *server = user;
    int unread = 0;
    return ioctl(server->exchanges[connection].fd, FIONREAD, &unread) == 0 && unread > 0;
}

/* The descriptor is open until the connection leaves: its thread notices, and lets it leave. */
static void end_connection(void *user, uint32_t connection, bool is_overdue WPK_UNUSED)
{
    const struct wpk_http_server *server = user;
    shutdown(server->exchanges[connection].fd, SHUT_RDWR);
}

static void take_connection(void *user, const struct wpk_http_arrival *arrival)
{
    struct wpk_http_server *server = user;
    struct wpk_http_exchange *exchange = &server->exchanges[arrival->connection];
    pthread_mutex_lock(&server->lock);
    struct wpk_http_daemon *daemon = server->daemon_of[arrival->listener];
    *exchange = (struct wpk_http_exchange){.server = server,
                                           .number = arrival->connection,
                                           .fd = arrival->fd,
                                           .listener = arrival->listener,
                                           .daemon = daemon,
                                           .local = arrival->identity};
    daemon->connection_count++;
    server->connection_of[arrival->fd] = arrival->connection;
    pthread_mutex_unlock(&server->lock);
    wpk_metric_change(WPK_GAUGE_HTTP_CONNECTIONS, 0, 1);
    if (!wpk_http_daemon_add(daemon->handle, arrival)) {
        wpk_http_exchange_leave(exchange);
    }
}

static void on_denied(void *user, const char *name)
{
    struct wpk_http_server *server = user;
    wpk_http_policy_refuse_user(&server->policy, name, wpk_clock_wall_ns(server->clock));
}

static void on_tick(void *user)
{
    struct wpk_http_server *server = user;
    uint32_t ended = wpk_admission_expire(server->admission, wpk_clock_now_ns(server->clock));
    if (ended > 0) {
        wpk_metric_add(WPK_COUNTER_HTTP_REFUSED, wpk_metric_value(WPK_LABEL_REFUSAL, "timeout"),
                       ended);
    }
    stop_retired(server);
}

/* ---- the owner's side */

bool wpk_http_server_next(struct wpk_http_server *server, struct wpk_http_request *out)
{
    pthread_mutex_lock(&server->lock);
    struct wpk_http_exchange *oldest = server->queue_first;
    if (oldest != NULL) {
        server->queue_first = oldest->next;
        server->queue_last = oldest->next != NULL ? server->queue_last : NULL;
        *out = oldest->request;
    }
    pthread_mutex_unlock(&server->lock);
    return oldest != NULL;
}

void wpk_http_server_respond(struct wpk_http_server *server, uint64_t id,
                             struct wpk_api_answer *answer)
{
    uint32_t number = (uint32_t)(id & ((1u << WPK_HTTP_NUMBER_BITS) - 1));
    pthread_mutex_lock(&server->lock);
    bool awaited = number < server->exchange_count && server->awaited[number] == id;
    if (awaited) {
        server->awaited[number] = 0;
    }
    pthread_mutex_unlock(&server->lock);
    if (awaited) {
        wpk_http_exchange_finish(&server->exchanges[number], answer);
    }
}

/* ---- life */

static wpk_err open_listener(struct wpk_http_server *server, const struct wpk_listen *listen,
                             uint32_t index, struct wpk_diag *diag)
{
    struct wpk_http_listener *listener = &server->listeners[index];
    wpk_err err = listen->fd > 0 ? wpk_http_listener_adopt(listen->fd, listener, diag)
                                 : wpk_http_listener_open(listen->address,
                                                          listen->mode != 0 ? listen->mode : 0600,
                                                          listener, diag);
    if (err != WPK_OK) {
        return err;
    }
    server->listener_count++;
    server->tls[index] = listen->certificate != NULL;
    err = wpk_http_policy_check_listener(&server->policy, listen, listener, diag);
    return err == WPK_OK ? set_daemon(server, listen, index, diag) : err;
}

/* Half of all descriptors are for others: workers, and the store. */
static uint32_t limit_connections(uint32_t wanted)
{
    struct rlimit limit;
    uint32_t most =
        wanted > 0 && wanted < WPK_HTTP_CONNECTIONS_MAX ? wanted : WPK_HTTP_CONNECTIONS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < most) {
        most = (uint32_t)(limit.rlim_cur / 2);
    }
    return most > 0 ? most : 1;
}

static wpk_err open_admission(struct wpk_http_server *server,
                              const struct wpk_http_options *options)
{
    uint32_t most = limit_connections(options->connections_max);
    uint32_t of_one = options->of_one_max > 0 ? options->of_one_max : most / 2 + 1;
    server->exchange_count = most + WPK_ADMISSION_ENDING_MAX;
    server->exchanges = WPK_DEMAND(calloc(server->exchange_count, sizeof *server->exchanges));
    server->awaited = WPK_DEMAND(calloc(server->exchange_count, sizeof *server->awaited));
    const struct wpk_admission_options admission = {.all_max = most,
                                                    .of_source_max = of_one,
                                                    .is_spared = is_unread,
                                                    .end = end_connection,
                                                    .user = server};
    return wpk_admission_new(&admission, &server->admission);
}

static wpk_err open_all(struct wpk_http_server *server, const struct wpk_http_options *options,
                        struct wpk_diag *diag)
{
    wpk_err err = wpk_http_daemon_check(diag);
    if (err == WPK_OK) {
        err = wpk_http_policy_set_names(&server->policy, options->hosts, options->host_count, diag);
    }
    err = err == WPK_OK ? open_admission(server, options) : err;
    for (uint32_t i = 0; i < options->listener_count && err == WPK_OK; i++) {
        err = open_listener(server, &options->listeners[i], i, diag);
    }
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_http_acceptor_options acceptor = {.listeners = server->listeners,
                                                 .listener_count = server->listener_count,
                                                 .admission = server->admission,
                                                 .peers = options->peers,
                                                 .peer_count = options->peer_count,
                                                 .clock = server->clock,
                                                 .reading_ns = WPK_HTTP_REQUEST_MS * WPK_NS_PER_MS,
                                                 .take = take_connection,
                                                 .denied = on_denied,
                                                 .tick = on_tick,
                                                 .user = server};
    return wpk_http_acceptor_open(&acceptor, &server->acceptor, diag);
}

wpk_err wpk_http_server_open(const struct wpk_http_options *options, struct wpk_http_server **out,
                             struct wpk_diag *diag)
{
    WPK_ASSERT(options->listener_count > 0 && options->listener_count <= WPK_HTTP_LISTENERS_MAX);
    WPK_ASSERT(options->peer_count <= WPK_HTTP_PEERS_MAX);
    struct wpk_http_server *server = WPK_DEMAND(calloc(1, sizeof *server));
    server->options = *options;
    server->clock = options->clock != NULL ? options->clock : wpk_clock_system();
    wpk_http_policy_init(&server->policy, options);
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->readers.lock, NULL);
    pthread_cond_init(&server->readers.work, NULL);
    wpk_err err = options->serve != NULL ? wpk_http_readers_start(&server->readers, diag) : WPK_OK;
    err = err == WPK_OK ? open_all(server, options, diag) : err;
    if (err != WPK_OK) {
        for (uint32_t i = server->listener_count; i < options->listener_count; i++) {
            if (options->listeners[i].fd > 0) {
                close(options->listeners[i].fd);
            }
        }
        wpk_http_server_close(server);
        return err;
    }
    *out = server;
    return WPK_OK;
}

/* Users of a Unix socket are what they were when they connected: to be something else they come
 * again. */
static void expel_local(struct wpk_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    for (uint32_t i = 0; i < server->exchange_count; i++) {
        const struct wpk_http_exchange *exchange = &server->exchanges[i];
        if (exchange->daemon != NULL && server->listeners[exchange->listener].local) {
            wpk_admission_expel(server->admission, i);
        }
    }
    pthread_mutex_unlock(&server->lock);
}

wpk_err wpk_http_server_reload(struct wpk_http_server *server,
                               const struct wpk_http_options *options, struct wpk_diag *diag)
{
    struct MHD_Daemon *started[WPK_HTTP_LISTENERS_MAX] = {NULL};
    wpk_err err = WPK_OK;
    if (options->listener_count != server->listener_count ||
        options->peer_count > WPK_HTTP_PEERS_MAX) {
        return wpk_fail(diag, WPK_EINVAL,
                        "listeners do not change without a restart, and peers are at most %d",
                        WPK_HTTP_PEERS_MAX);
    }
    stop_retired(server); /* for their places */
    for (uint32_t i = 0; i < server->listener_count && err == WPK_OK; i++) {
        if (server->tls[i]) {
            err = start_daemon(server, &options->listeners[i], &started[i], diag);
        }
    }
    if (err == WPK_OK) {
        err = wpk_http_policy_set_names(&server->policy, options->hosts, options->host_count, diag);
    }
    err = err == WPK_OK ? replace_daemons(server, started, diag) : err;
    for (uint32_t i = 0; i < server->listener_count; i++) {
        if (err != WPK_OK && started[i] != NULL) {
            wpk_http_daemon_stop(started[i]);
        }
    }
    if (err == WPK_OK &&
        wpk_http_acceptor_set_peers(server->acceptor, options->peers, options->peer_count)) {
        expel_local(server);
    }
    return err;
}

/* Answer everything that waits: no handler runs any more. */
static void answer_all(struct wpk_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->closing = true;
    server->queue_first = server->queue_last = NULL;
    pthread_mutex_unlock(&server->lock);
    for (uint32_t i = 0; i < server->exchange_count; i++) {
        if (server->awaited[i] != 0) { /* nothing is added any more */
            struct wpk_api_answer answer;
            WPK_HTTP_ENDING(&answer);
            wpk_http_server_respond(server, server->awaited[i], &answer);
            wpk_api_answer_fini(&answer);
        }
    }
}

/* Stopping cuts off what is being sent: the last answers, which say why we end, get a moment. */
static void wait_for_answers(struct wpk_http_server *server)
{
    for (int waited_ms = 0; waited_ms < LAST_ANSWERS_MS; waited_ms += 5) {
        if (wpk_admission_count_in(server->admission, WPK_CONNECTION_SENDING) == 0 &&
            wpk_admission_count_in(server->admission, WPK_CONNECTION_SERVING) == 0) {
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
    wpk_http_acceptor_close(server->acceptor);
    wpk_http_readers_stop(&server->readers);
    if (server->acceptor != NULL) {
        answer_all(server);
        wait_for_answers(server);
    }
    for (uint32_t i = 0; i < WPK_HTTP_DAEMONS_MAX; i++) {
        if (server->daemons[i].handle != NULL) {
            wpk_http_daemon_stop(server->daemons[i].handle);
        }
    }
    for (uint32_t i = 0; i < server->listener_count; i++) {
        wpk_http_listener_close(&server->listeners[i]);
    }
    wpk_admission_free(server->admission);
    wpk_http_policy_fini(&server->policy);
    pthread_mutex_destroy(&server->lock);
    pthread_mutex_destroy(&server->readers.lock);
    pthread_cond_destroy(&server->readers.work);
    free(server->exchanges);
    free(server->awaited);
    free(server);
}
