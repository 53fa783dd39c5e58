/* SPDX-License-Identifier: Apache-2.0 */
/* One turn of the loop takes what came in from workers and clients, steps it, and commits once:
 * the more there is to do, the more shares a commit. */
#include "coordinator/service.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/loop.h"
#include "coordinator/artifact.h"
#include "coordinator/performer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define TICK_MS 200
#define TURN_MAX 256 /* messages and requests of one batch */

struct service {
    const struct wpk_config *config;
    int lock_fd;
    struct wpk_loop *loop;
    struct wpk_store *store;
    struct wpk_net_server *net;
    struct wpk_http_server *http;
    struct wpk_performer *performer;
    uint64_t active_ns; /* last time there was a job or a request */
    wpk_err err;        /* why the loop was stopped */
    struct wpk_diag diag;
};

static uint64_t random_number(void)
{
    uint64_t number;
    wpk_crypto_random(&number, sizeof number);
    return number;
}

/* ---- out */

static void send_reply(void *user, const struct wpk_net_address *address, const void *frame,
                       size_t size)
{
    struct service *service = user;
    wpk_net_server_reply(service->net, address, frame, size);
}

static void send_response(void *user, uint64_t request, const struct wpk_api_answer *answer)
{
    struct service *service = user;
    struct wpk_http_response response = {
        .status = answer->status,
        .content_type = answer->content_type,
        .location = answer->location[0] != '\0' ? answer->location : NULL,
        .allow = answer->allow,
        .body = wpk_buf_text(&answer->body),
        .body_size = answer->body.size,
    };
    if (service->http != NULL) { /* else it has answered everything itself, closing */
        wpk_http_server_respond(service->http, request, &response);
    }
}

/* ---- in */

static bool take_frames(struct service *service)
{
    struct wpk_net_event event;
    int count = 0;
    while (count < TURN_MAX && wpk_net_server_next(service->net, &event)) {
        count++;
        if (event.gone) {
            struct wpk_event gone = {.kind = WPK_EVENT_GONE, .address = event.address};
            wpk_performer_step(service->performer, &gone);
        } else {
            wpk_performer_frame(service->performer, &event.address, event.data, event.size,
                                random_number());
            free(event.data);
        }
    }
    return count == TURN_MAX;
}

static bool take_requests(struct service *service)
{
    struct wpk_http_request request;
    int count = 0;
    while (count < TURN_MAX && wpk_http_server_next(service->http, &request)) {
        count++;
        wpk_performer_request(service->performer, &request, random_number());
        service->active_ns = wpk_clock_now_ns(wpk_clock_system());
    }
    return count == TURN_MAX;
}

/* The store is what we promise by: without it, nothing more is promised. A start later reads it
 * again, and workers bring their results again. */
static void commit(struct service *service)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_performer_commit(service->performer, &diag);
    if (err != WPK_OK && service->err == WPK_OK) {
        service->err = err;
        service->diag = diag;
        wpk_loop_stop(service->loop);
    }
}

static void on_wake(void *user)
{
    struct service *service = user;
    if (service->err != WPK_OK) {
        return;
    }
    bool more_frames = take_frames(service);
    bool more_requests = take_requests(service);
    commit(service);
    if (more_frames || more_requests) {
        wpk_loop_wake(service->loop);
    }
}

static bool is_idle(struct service *service, uint64_t now_ns)
{
    if (wpk_coordinator_job_count(wpk_performer_coordinator(service->performer)) > 0) {
        service->active_ns = now_ns;
    }
    return service->config->idle_s > 0 &&
           now_ns > service->active_ns + service->config->idle_s * WPK_NS_PER_S;
}

static void on_tick(void *user)
{
    struct service *service = user;
    uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());
    struct wpk_event tick = {.kind = WPK_EVENT_TICK};
    wpk_performer_step(service->performer, &tick);
    commit(service);
    wpk_http_server_expire(service->http, now_ns);
    if (is_idle(service, now_ns)) {
        wpk_log(WPK_LOG_INFO, "idle", "seconds=%u", service->config->idle_s);
        wpk_loop_stop(service->loop);
    }
    wpk_loop_set_timer(service->loop, TICK_MS, on_tick, service);
}

static void on_signal(void *user)
{
    struct service *service = user;
    /* A second one kills, whatever we are waiting for. */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    wpk_log(WPK_LOG_INFO, "ending", "%s", "reason=signal");
    wpk_loop_stop(service->loop);
}

/* Called by threads of the network libraries. */
static void wake(void *user)
{
    wpk_loop_wake(user);
}

/* ---- opening */

static wpk_err take_lock(struct service *service, struct wpk_diag *diag)
{
    const char *directory = wpk_buf_text(&service->config->data_dir);
    char path[4096];
    wpk_err err = wpk_fs_make_dirs(directory, diag);
    if (err != WPK_OK) {
        return err;
    }
    snprintf(path, sizeof path, "%s/wpkd.lock", directory);
    service->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (service->lock_fd < 0) {
        err = wpk_fs_err(errno);
        wpk_diag_set(diag, "%s: %s", path, strerror(errno));
        return err;
    }
    if (flock(service->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        char pid[32] = "";
        ssize_t size = read(service->lock_fd, pid, sizeof pid - 1);
        pid[size > 0 ? size : 0] = '\0';
        wpk_diag_set(diag, "another wpkd (pid %.*s) works on %s", (int)strcspn(pid, "\n"), pid,
                     directory);
        return WPK_EBUSY;
    }
    char pid[32];
    int size = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(service->lock_fd, 0) != 0 || write(service->lock_fd, pid, (size_t)size) != size) {
        err = wpk_fs_err(errno);
        wpk_diag_set(diag, "%s: %s", path, strerror(errno));
    }
    return err;
}

static wpk_err open_store(struct service *service, struct wpk_diag *diag)
{
    wpk_err err = wpk_store_open(wpk_buf_text(&service->config->data_dir), wpk_clock_system(),
                                 &service->store, diag);
    if (err == WPK_OK && service->config->store_pages_max > 0) {
        wpk_store_limit_pages(service->store, service->config->store_pages_max);
    }
    if (err != WPK_OK) {
        return err;
    }
    wpk_artifact_sweep(wpk_buf_text(&service->config->data_dir));
    struct wpk_performer_options options = {
        .store = service->store,
        .data_dir = wpk_buf_text(&service->config->data_dir),
        .clock = wpk_clock_system(),
        .out = {.reply = send_reply, .respond = send_response, .user = service},
    };
    return wpk_performer_new(&options, &service->performer, diag);
}

static wpk_err open_sockets(struct service *service, struct wpk_diag *diag)
{
    wpk_err err = wpk_net_server_open(wpk_buf_text(&service->config->listen), WPK_MESSAGE_SIZE_MAX,
                                      wake, service->loop, &service->net, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_http_listen listener = {.address = wpk_buf_text(&service->config->http), .fd = -1};
    struct wpk_http_options options = {.listeners = &listener,
                                       .listener_count = 1,
                                       .body_max = wpk_api_body_max,
                                       .wake = wake,
                                       .user = service->loop};
    return wpk_http_server_open(&options, &service->http, diag);
}

static wpk_err open_all(struct service *service, struct wpk_diag *diag)
{
    wpk_err err = take_lock(service, diag);
    if (err == WPK_OK) {
        err = wpk_loop_open(&service->loop, diag);
    }
    if (err == WPK_OK) {
        wpk_loop_on_wake(service->loop, on_wake, service);
        err = wpk_loop_on_signal(service->loop, SIGTERM, on_signal, service);
    }
    if (err == WPK_OK) {
        err = wpk_loop_on_signal(service->loop, SIGINT, on_signal, service);
    }
    if (err == WPK_OK) {
        err = open_store(service, diag);
    }
    return err == WPK_OK ? open_sockets(service, diag) : err;
}

/* Workers that wait are told to go when we do not come back. */
static void dismiss_workers(struct service *service)
{
    const struct wpk_coordinator *coordinator = wpk_performer_coordinator(service->performer);
    for (uint32_t i = 0; i < wpk_coordinator_worker_count(coordinator); i++) {
        const struct wpk_worker *worker = wpk_coordinator_worker(coordinator, i);
        struct wpk_message leave = {
            .kind = WPK_MESSAGE_WORK, .session = worker->session, .leave = true};
        leave.version = worker->poll_address->tag;
        struct wpk_buf frame = {0};
        if (worker->polling && wpk_message_encode(&leave, &frame) == WPK_OK) {
            wpk_net_server_reply(service->net, worker->poll_address, frame.data, frame.size);
        }
        wpk_buf_fini(&frame);
    }
}

static void close_all(struct service *service)
{
    if (service->net != NULL && service->performer != NULL && service->config->idle_s > 0) {
        dismiss_workers(service);
    }
    /* First those that wake the loop. */
    wpk_http_server_close(service->http);
    wpk_net_server_close(service->net);
    service->http = NULL;
    wpk_performer_free(service->performer);
    wpk_store_close(service->store);
    wpk_loop_close(service->loop);
    if (service->lock_fd >= 0) {
        close(service->lock_fd);
    }
}

wpk_err wpk_service_run(const struct wpk_config *config, struct wpk_diag *diag)
{
    struct service service = {.config = config, .lock_fd = -1};
    signal(SIGPIPE, SIG_IGN);
    wpk_err err = open_all(&service, diag);
    if (err == WPK_OK) {
        wpk_log(WPK_LOG_INFO, "ready", "version=%s data=\"%s\" http=%s listen=%s", WPK_VERSION,
                wpk_buf_text(&config->data_dir), wpk_buf_text(&config->http),
                wpk_buf_text(&config->listen));
        service.active_ns = wpk_clock_now_ns(wpk_clock_system());
        wpk_loop_set_timer(service.loop, TICK_MS, on_tick, &service);
        wpk_loop_run(service.loop);
        err = service.err;
        if (err != WPK_OK && diag != NULL) {
            *diag = service.diag;
        }
    }
    close_all(&service);
    return err;
}
