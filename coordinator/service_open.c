/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing of what the service holds: its lock, store, state and sockets. */
#include "coordinator/service_state.h"

#include "coordinator/api/api_change.h"
#include "coordinator/effects/file_pool.h"
#include "coordinator/service.h"
#include "coordinator/store/history.h"
#include "coordinator/store/history_admin.h"
#include "coordinator/store/keeper.h"
#include "coordinator/store/store.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STRATEGY_THREADS 2
/* Replies that peers have not read, and artifacts that are read for others, have one limit. */
#define REPLY_BYTES_MAX (WPK_NET_REPLY_BYTES_MAX - WPK_FILE_READ_BYTES_MAX)
#define EXTEND_US 30000000 /* to read some more jobs, which takes a fraction of a second */

/* Called by threads: the network libraries', the writer's, the strategies'. */
static void wake(void *user)
{
    wpk_loop_wake(user);
}

/* Our own files, threads' pipes and sockets, beside those that are never used for connections. */
#define DESCRIPTORS_MIN (WPK_NET_DESCRIPTORS_LEFT + 128)

/* Thousands of connections need more descriptors than the usual soft limit of 1024, so it
 * is raised to the hard limit: no code of wpkd uses select(2). With too few descriptors no worker
 * would ever be let in. */
static wpk_err raise_descriptors(struct wpk_diag *diag)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return WPK_OK;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit); /* else fewer connections are served */
    }
    if (limit.rlim_cur < DESCRIPTORS_MIN) {
        return wpk_fail(diag, WPK_EINVAL,
                        "the limit of open files is %llu, and wpkd needs %d: raise it, as by "
                        "ulimit -n 1024",
                        (unsigned long long)limit.rlim_cur, DESCRIPTORS_MIN);
    }
    return WPK_OK;
}

/* Open the index of served kernels, for the threads of the HTTP server. */
static wpk_err open_index(struct wpk_service *service, struct wpk_diag *diag)
{
    service->index = wpk_index_new();
    wpk_err err = wpk_index_load(service->index, service->store, diag);
    struct wpk_api_front_options options = {.data_dir = service->config->data_dir,
                                            .index = service->index,
                                            .clock = wpk_clock_system(),
                                            .public_key = wpk_sign_public_key(service->sign),
                                            .sign = service->sign};
    service->front = wpk_api_front_new(&options);
    return err;
}

/* A worker was not let in: into the audit log, as clients that are not. */
static void note_worker(void *user, const struct wpk_net_address *address,
                        const struct wpk_identity *identity, const char *reason)
{
    const struct wpk_service *service = user;
    struct wpk_identity who = *identity;
    char whence[WPK_NET_WHENCE_SIZE];
    char detail[300];
    wpk_net_server_whence(service->net, address->peer, whence);
    snprintf(who.peer, sizeof who.peer, "%s", whence);
    snprintf(detail, sizeof detail, "worker: %.280s", reason);
    wpk_api_front_refuse(service->front, &who, detail, 0);
}

/* The service manager waits for as long as we go on reading. */
static void note_restoring(void *user)
{
    const struct wpk_service *service = user;
    wpk_notify_send(&service->notify, "EXTEND_TIMEOUT_USEC=%d\nSTATUS=reading the jobs", EXTEND_US);
}

/* Delete artifact files that a killed wpkd wrote but did not record: no quota would count them. */
static void sweep_artifacts(struct wpk_service *service)
{
    uint32_t count = wpk_history_sweep_artifacts(service->store, service->config->data_dir);
    if (count > 0) {
        wpk_log(WPK_LOG_INFO, "artifacts_swept", "files=%u", count);
    }
}

/* A key that is new over an old history has taken the place of a lost one. */
static wpk_err replace_lost_key(struct wpk_service *service, struct wpk_diag *diag)
{
    struct wpk_buf ids = {.size_max = 4096};
    if (!wpk_sign_is_new(service->sign)) {
        return WPK_OK;
    }
    wpk_store_begin(service->store);
    uint32_t count = wpk_history_lose_key(service->store, &ids);
    wpk_err err = wpk_store_commit(service->store, diag);
    if (err == WPK_OK && count > 0) {
        wpk_log(WPK_LOG_WARN, "signing_key_lost",
                "kernels=%u ids=\"%.900s\" reason=\"%s was lost: what it signed is not served any "
                "more; tune these operators again, or put the key and the history of a backup back "
                "(wpkctl db restore)\"",
                count, wpk_buf_text(&ids), WPK_SIGN_FILE);
    }
    wpk_buf_fini(&ids);
    return err;
}

/* Open the signing key and the database, once its log is ours if it has one. */
static wpk_err open_database(struct wpk_service *service, struct wpk_diag *diag)
{
    const struct wpk_config *config = service->config;
    wpk_err err = wpk_sign_open(config->data_dir, !config->standby, &service->sign, diag);
    if (err == WPK_ENOENT) {
        return wpk_fail(diag, WPK_EINVAL,
                        "%s has no " WPK_SIGN_FILE ": copy it from where the log was begun",
                        config->data_dir);
    }
    if (err == WPK_OK) {
        err = config->log != NULL
                  ? wpk_standby_run(service, diag)
                  : wpk_store_open(config->data_dir, wpk_clock_system(), &service->store, diag);
    }
    return err;
}

static wpk_err open_store(struct wpk_service *service, struct wpk_diag *diag)
{
    wpk_err err = open_database(service, diag);
    err = err == WPK_OK ? replace_lost_key(service, diag) : err;
    if (err == WPK_OK && service->config->store_pages_max > 0) {
        wpk_store_limit_pages(service->store, service->config->store_pages_max);
    }
    if (err != WPK_OK) {
        return err;
    }
    sweep_artifacts(service);
    err = open_index(service, diag);
    err = err == WPK_OK ? wpk_api_tokens_load(service->store, service->auth, diag) : err;
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_executor_options options = {
        .store = service->store,
        .data_dir = service->config->data_dir,
        .index = service->index,
        .sign = service->sign,
        .auth = service->auth,
        .clock = wpk_clock_system(),
        .out = {.reply = wpk_service_reply, .respond = wpk_service_respond, .user = service},
        .answer = wpk_api_answer_effect,
        .artifact_bytes_max = service->config->artifact_bytes_max,
        .artifacts_per_problem = service->config->artifacts_per_problem,
        .threads = STRATEGY_THREADS,
        .wake = wake,
        .wake_user = service->loop,
        .rebuilt = wpk_service_set_owners,
        .restoring = note_restoring,
        .refused = note_worker,
    };
    return wpk_executor_new(&options, &service->executor, diag);
}

/* Called by threads of the HTTP server. */
static void wake_service(void *user)
{
    const struct wpk_service *service = user;
    wpk_loop_wake(service->loop);
}

/* Likewise; the tick writes it into the audit log. */
static void note_refusal(void *user, const char *peer, const char *reason, uint64_t untold)
{
    const struct wpk_service *service = user;
    struct wpk_identity nobody = {.roles = 0};
    snprintf(nobody.peer, sizeof nobody.peer, "%s", peer);
    wpk_api_front_refuse(service->front, &nobody, reason, untold);
}

/* The options of the HTTP server from the configuration. */
static struct wpk_http_options http_options(const struct wpk_service *service,
                                            const struct wpk_config *config,
                                            const struct wpk_listen *listeners)
{
    return (struct wpk_http_options){.listeners = listeners,
                                     .listener_count = config->http_count,
                                     .auth = service->auth,
                                     .peers = config->peers,
                                     .peer_count = config->peer_count,
                                     .hosts = config->hosts,
                                     .host_count = config->host_count,
                                     .connections_max = config->http_connections_max,
                                     .entry = wpk_api_entry,
                                     .body_max = wpk_api_body_max,
                                     .serve = wpk_api_front_serve,
                                     .serve_user = service->front,
                                     .refused = note_refusal,
                                     .wake = wake_service,
                                     .user = (void *)(uintptr_t)service};
}

/* A listener whose socket was passed in takes that one. */
static wpk_err adopt_sockets(struct wpk_service *service, struct wpk_listen *listeners,
                             struct wpk_diag *diag)
{
    const struct wpk_config *config = service->config;
    uint32_t count = 0;
    wpk_err err =
        wpk_notify_take_fds(service->options->environment, WPK_CONFIG_LISTENERS_MAX, &count, diag);
    memcpy(listeners, config->http, sizeof config->http);
    for (uint32_t i = 0; err == WPK_OK && i < count; i++) {
        err =
            wpk_activation_place(WPK_NOTIFY_FD_FIRST + (int)i, listeners, config->http_count, diag);
    }
    return err;
}

static wpk_err open_http(struct wpk_service *service, struct wpk_diag *diag)
{
    struct wpk_listen listeners[WPK_CONFIG_LISTENERS_MAX];
    struct wpk_http_options options = http_options(service, service->config, listeners);
    wpk_err err = adopt_sockets(service, listeners, diag);
    return err == WPK_OK ? wpk_http_server_open(&options, &service->http, diag) : err;
}

/* Told before anything is taken: who connects later is not here to be asked. */
static wpk_err check_certificates(const struct wpk_listen *listen, uint32_t count,
                                  struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (uint32_t i = 0; i < count && err == WPK_OK; i++) {
        if (listen[i].certificate != NULL) {
            err = wpk_http_check_certificate(listen[i].certificate, listen[i].key, diag);
        }
    }
    return err;
}

static wpk_err open_workers(struct wpk_service *service, struct wpk_diag *diag)
{
    const struct wpk_config *config = service->config;
    const struct wpk_net_server_options options = {.listen = config->workers,
                                                   .listen_count = config->worker_count,
                                                   .size_max = WPK_MESSAGE_SIZE_MAX,
                                                   .reply_bytes_max = REPLY_BYTES_MAX,
                                                   .peers_max = config->worker_connections_max,
                                                   .wake = wake,
                                                   .user = service->loop};
    wpk_err err = check_certificates(config->workers, config->worker_count, diag);
    return err == WPK_OK ? wpk_net_server_open(&options, &service->net, diag) : err;
}

static wpk_err open_sockets(struct wpk_service *service, struct wpk_diag *diag)
{
    wpk_err err = open_workers(service, diag);
    err = err == WPK_OK ? open_http(service, diag) : err;
    /* A certificate that is none, a path too long for a socket: no start can use them. */
    return err == WPK_EPARSE || err == WPK_ERANGE ? WPK_EINVAL : err;
}

wpk_err wpk_service_reload_sockets(struct wpk_service *service, const struct wpk_config *next,
                                   struct wpk_diag *diag)
{
    struct wpk_http_options options = http_options(service, next, next->http);
    uint32_t count = next->worker_count;
    wpk_err err = check_certificates(next->workers, count, diag);
    err = err == WPK_OK ? wpk_net_server_check(service->net, next->workers, count, diag) : err;
    err = err == WPK_OK ? wpk_http_server_reload(service->http, &options, diag) : err;
    return err == WPK_OK ? wpk_net_server_reload(service->net, next->workers, count, diag) : err;
}

wpk_err wpk_service_open(struct wpk_service *service, struct wpk_diag *diag)
{
    wpk_err err = raise_descriptors(diag);
    err = err == WPK_OK ? wpk_lock_take(service->config->data_dir, &service->lock_fd, diag) : err;
    err = err == WPK_OK ? wpk_loop_open(&service->loop, diag) : err;
    if (err == WPK_OK) {
        wpk_loop_on_wake(service->loop, wpk_service_turn, service);
        service->auth = wpk_auth_new();
    }
    err = err == WPK_OK ? open_store(service, diag) : err;
    return err == WPK_OK ? open_sockets(service, diag) : err;
}

/* Workers that wait are told to go when we do not come back. */
static void dismiss_workers(struct wpk_service *service)
{
    const struct wpk_coordinator *coordinator = wpk_executor_coordinator(service->executor);
    for (uint32_t i = 0; i < coordinator->worker_count; i++) {
        const struct wpk_worker *worker = coordinator->workers[i];
        struct wpk_message leave = {
            .kind = WPK_MESSAGE_WORK, .session = worker->session, .leave = true};
        struct wpk_buf frame = {0};
        if (worker->polling && wpk_message_encode(&leave, &frame) == WPK_OK) {
            wpk_net_server_reply(service->net, worker->poll_address, frame.data, frame.size);
        }
        wpk_buf_fini(&frame);
    }
}

void wpk_service_close(struct wpk_service *service)
{
    if (service->net != NULL && service->executor != NULL && service->config->idle_s > 0) {
        dismiss_workers(service);
    }
    /* First write and answer what was accepted; then close the parts that wake the loop. */
    wpk_executor_free(service->executor);
    wpk_http_server_close(service->http);
    wpk_net_server_close(service->net);
    wpk_api_front_free(service->front);
    wpk_index_free(service->index);
    wpk_keeper_close(service->keeper);
    wpk_store_close(service->store);
    wpk_sign_close(service->sign);
    wpk_auth_free(service->auth);
    wpk_loop_close(service->loop);
    if (service->lock_fd >= 0) {
        close(service->lock_fd);
    }
}
