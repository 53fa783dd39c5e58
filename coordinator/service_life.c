/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the service:
 *
 *     opening ──▶ serving ──SIGTERM, SIGINT──▶ draining ──▶ closing
 *                  │   ▲                          │
 *                  └───┘ SIGHUP: reload           └─ nothing is leased, polls that wait are
 *                                                    answered, what came in is committed
 *
 * The service manager is notified of each state. The watchdog is fed only while the writer finishes
 * transactions: a wpkd that answers but records nothing is to be restarted. */
#include "coordinator/service_state.h"

#include "common/buf.h"
#include "common/metrics.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 200
#define STATUS_S 5
#define MEASURE_S 1

/* ---- the service manager */

static void say_status(struct wpk_service *service, uint64_t now_ns)
{
    char status[sizeof service->status];
    struct wpk_diag diag = {0};
    int64_t stalled_s = wpk_metric_gauged(WPK_GAUGE_STORE_STALLED, 0);
    const struct wpk_coordinator *coordinator = wpk_executor_coordinator(service->executor);
    if (now_ns - service->status_ns < STATUS_S * WPK_NS_PER_S) {
        return;
    }
    service->status_ns = now_ns;
    if (service->draining) {
        snprintf(status, sizeof status, "%s", "draining");
    } else if (wpk_executor_degraded(service->executor, &diag) != WPK_OK) {
        snprintf(status, sizeof status, "the store cannot be written, nothing is leased: %.200s",
                 diag.text);
    } else if (stalled_s >= WPK_API_STALLED_S) {
        snprintf(status, sizeof status, "the store has not answered for %lld s",
                 (long long)stalled_s);
    } else {
        snprintf(status, sizeof status, "%u jobs, %u workers", coordinator->live_count,
                 coordinator->worker_count);
    }
    if (strcmp(status, service->status) != 0) {
        memcpy(service->status, status, sizeof status);
        wpk_notify_send(&service->notify, "STATUS=%s", status);
    }
}

/* ---- reload */

static void free_reloaded(struct wpk_service *service)
{
    if (service->reloaded != NULL) {
        wpk_config_fini(service->reloaded);
        free(service->reloaded);
        service->reloaded = NULL;
    }
}

static void take_config(struct wpk_service *service, struct wpk_config *next)
{
    const struct wpk_config *before = service->config;
    service->config = next;
    wpk_log_set_level(next->log_level);
    wpk_log_set_format(next->log_format);
    wpk_service_forget_owners(service, before);
    wpk_service_set_owners(service);
    wpk_executor_limit_artifacts(service->executor, next->artifact_bytes_max,
                                 next->artifacts_per_problem);
    free_reloaded(service);
    service->reloaded = next;
}

static wpk_err reload(struct wpk_service *service, struct wpk_diag *diag)
{
    struct wpk_config *next = WPK_DEMAND(calloc(1, sizeof *next));
    const char *fixed = NULL;
    wpk_err err = service->options->reload(service->options->user, next, diag);
    if (err == WPK_OK) {
        fixed = wpk_config_fixed_change(service->config, next);
        wpk_config_keep_fixed(service->config, next);
    }
    if (err == WPK_OK) { /* first what may fail: then nothing else has changed */
        err = wpk_service_reload_sockets(service, next, diag);
    }
    if (err != WPK_OK) {
        wpk_config_fini(next);
        free(next);
        return err;
    }
    if (fixed != NULL) {
        wpk_log(WPK_LOG_WARN, "restart_needed", "field=%s", fixed);
    }
    take_config(service, next);
    return WPK_OK;
}

static void on_reload(void *user)
{
    struct wpk_service *service = user;
    struct wpk_diag diag = {0};
    if (service->draining || service->err != WPK_OK) {
        return;
    }
    wpk_notify_send(&service->notify, "RELOADING=1\nMONOTONIC_USEC=%llu",
                    (unsigned long long)(wpk_clock_now_ns(wpk_clock_system()) / WPK_NS_PER_US));
    wpk_err err = reload(service, &diag);
    wpk_metric_add(WPK_COUNTER_RELOADS,
                   wpk_metric_value(WPK_LABEL_RESULT, err == WPK_OK ? "ok" : "failed"), 1);
    if (err == WPK_OK) {
        wpk_log(WPK_LOG_INFO, "reloaded", "file=\"%s\"",
                service->config->file != NULL ? service->config->file : "");
    } else {
        wpk_log_failure(WPK_LOG_ERROR, "reload_failed", err, &diag);
    }
    wpk_notify_send(&service->notify, "READY=1");
    wpk_loop_wake(service->loop);
}

/* ---- ending */

static void on_signal(void *user)
{
    struct wpk_service *service = user;
    struct wpk_event drain = {.kind = WPK_EVENT_DRAIN};
    /* A second one kills, whatever we are waiting for. */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    wpk_log(WPK_LOG_INFO, "ending", "%s", "reason=signal");
    wpk_notify_send(&service->notify, "STOPPING=1\nSTATUS=draining");
    wpk_metric_set(WPK_GAUGE_DRAINING, 0, 1);
    if (service->draining || service->err != WPK_OK) {
        return;
    }
    service->draining = true;
    service->drain_end_ns =
        wpk_clock_now_ns(wpk_clock_system()) + (uint64_t)service->config->drain_s * WPK_NS_PER_S;
    wpk_executor_step(service->executor, &drain);
    wpk_loop_wake(service->loop);
}

/* Most are answered where they are read: the loop never sees them. */
static uint64_t count_answered(void)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < wpk_metric_value_count(WPK_LABEL_STATUS); i++) {
        count += wpk_metric_counted(WPK_COUNTER_HTTP_REQUESTS, i);
    }
    return count;
}

static bool is_idle(struct wpk_service *service, uint64_t now_ns)
{
    uint64_t answered = count_answered();
    if (wpk_executor_coordinator(service->executor)->live_count > 0 ||
        answered != service->answered) {
        service->active_ns = now_ns;
    }
    service->answered = answered;
    return service->config->idle_s > 0 &&
           now_ns > service->active_ns + service->config->idle_s * WPK_NS_PER_S;
}

/* True if the service may stop: the last batch before the signal, which the first tick after it
 * gave away at the latest, is durable and answered, or time is up. */
static bool is_drained(struct wpk_service *service, uint64_t now_ns)
{
    if (service->drain_mark == 0) {
        service->drain_mark = wpk_executor_given(service->executor) + 1;
        return false; /* replies get a tick to leave */
    }
    bool late = now_ns >= service->drain_end_ns;
    if (late) {
        wpk_log(WPK_LOG_WARN, "drain_cut_short", "seconds=%u", service->config->drain_s);
    }
    return late || wpk_executor_released(service->executor) + 1 >= service->drain_mark;
}

static void on_tick(void *user)
{
    struct wpk_service *service = user;
    uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());
    wpk_service_tick(service);
    if (is_idle(service, now_ns)) {
        wpk_log(WPK_LOG_INFO, "idle", "seconds=%u", service->config->idle_s);
        wpk_loop_stop(service->loop);
    }
    if (service->draining && is_drained(service, now_ns)) {
        wpk_loop_stop(service->loop);
    }
    if (now_ns - service->measured_ns >= MEASURE_S * WPK_NS_PER_S) {
        service->measured_ns = now_ns;
        wpk_service_measure(service);
    }
    say_status(service, now_ns);
    /* Four times as often as is asked for, but never without a commit since the last time. */
    if (service->notify.watchdog_ns > 0 && service->commits != service->fed_commits &&
        now_ns - service->fed_ns >= service->notify.watchdog_ns / 4) {
        service->fed_commits = service->commits;
        service->fed_ns = now_ns;
        wpk_notify_send(&service->notify, "WATCHDOG=1");
    }
    wpk_loop_set_timer(service->loop, TICK_MS, on_tick, service);
}

/* ---- the whole */

static void print_addresses(const struct wpk_listen *listeners, uint32_t count, struct wpk_buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        wpk_buf_printf(out, "%s%s", i > 0 ? "," : "", listeners[i].address);
    }
}

static void log_ready(const struct wpk_config *config)
{
    struct wpk_buf text = {0};
    wpk_buf_printf(&text, "version=%s data=\"%s\" http=", WPK_VERSION, config->data_dir);
    print_addresses(config->http, config->http_count, &text);
    wpk_buf_printf(&text, " listen=");
    print_addresses(config->workers, config->worker_count, &text);
    wpk_log(WPK_LOG_INFO, "ready", "%s", text.data);
    wpk_buf_fini(&text);
}

wpk_err wpk_service_run(const struct wpk_service_options *options, struct wpk_diag *diag)
{
    struct wpk_service service = {
        .options = options, .config = options->config, .lock_fd = -1, .notify = {.fd = -1}};
    signal(SIGPIPE, SIG_IGN);
    wpk_err err = wpk_notify_open(options->environment, &service.notify, diag);
    err = err == WPK_OK ? wpk_service_open(&service, diag) : err;
    err = err == WPK_OK ? wpk_loop_on_signal(service.loop, SIGTERM, on_signal, &service) : err;
    err = err == WPK_OK ? wpk_loop_on_signal(service.loop, SIGINT, on_signal, &service) : err;
    if (err == WPK_OK && options->reload != NULL) {
        err = wpk_loop_on_signal(service.loop, SIGHUP, on_reload, &service);
    }
    if (err == WPK_OK) {
        wpk_service_set_owners(&service);
        log_ready(service.config);
        wpk_notify_send(&service.notify, "READY=1");
        service.active_ns = wpk_clock_now_ns(wpk_clock_system());
        wpk_loop_set_timer(service.loop, TICK_MS, on_tick, &service);
        wpk_loop_run(service.loop);
        err = service.err;
        if (err != WPK_OK && diag != NULL) {
            *diag = service.diag;
        }
    }
    if (err == WPK_ECLOSED && service.draining) {
        err = WPK_OK; /* told to end while it stood by */
    }
    wpk_notify_send(&service.notify, "STOPPING=1");
    wpk_service_close(&service);
    wpk_notify_close(&service.notify);
    free_reloaded(&service);
    return err;
}
