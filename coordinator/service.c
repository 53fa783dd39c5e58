/* SPDX-License-Identifier: Apache-2.0 */
/* A turn of the loop releases the output of durable batches, steps what came in from workers and
 * clients, and hands it to the writer as one batch. */
#include "coordinator/service_state.h"

#include "common/crypto.h"
#include "common/metrics.h"

#include <stdlib.h>

#define TURN_MAX 256                 /* messages and requests of one batch */
#define TURN_NS (20 * WPK_NS_PER_MS) /* and of each no more are begun after so long */

static uint64_t random_number(void)
{
    uint64_t number;
    wpk_crypto_random(&number, sizeof number);
    return number;
}

/* ---- out */

void wpk_service_reply(void *user, const struct wpk_net_address *address, const void *frame,
                       size_t size)
{
    struct wpk_service *service = user;
    wpk_net_server_reply(service->net, address, frame, size);
}

void wpk_service_respond(void *user, uint64_t request, struct wpk_api_answer *answer)
{
    struct wpk_service *service = user;
    if (service->http != NULL) { /* else it has answered everything itself, closing */
        wpk_http_server_respond(service->http, request, answer);
    }
}

/* ---- in */

/* Some take longer than others: nobody waits for all of them. */
static bool goes_on(const struct wpk_service *service, int count, uint64_t began_ns)
{
    return count < TURN_MAX && !wpk_executor_is_full(service->executor) &&
           wpk_clock_now_ns(wpk_clock_system()) < began_ns + TURN_NS;
}

static bool take_frames(struct wpk_service *service)
{
    struct wpk_net_event event;
    uint64_t began_ns = wpk_clock_now_ns(wpk_clock_system());
    int count = 0;
    bool more;
    while ((more = goes_on(service, count, began_ns)) &&
           wpk_net_server_next(service->net, &event)) {
        count++;
        if (event.gone) {
            struct wpk_event gone = {.kind = WPK_EVENT_GONE, .address = event.address};
            wpk_executor_step(service->executor, &gone);
        } else {
            wpk_executor_frame(service->executor, &event.address, event.data, event.size,
                               random_number());
            free(event.data);
        }
    }
    return !more;
}

static bool take_requests(struct wpk_service *service)
{
    struct wpk_http_request request;
    uint64_t began_ns = wpk_clock_now_ns(wpk_clock_system());
    int count = 0;
    bool more;
    while ((more = goes_on(service, count, began_ns)) &&
           wpk_http_server_next(service->http, &request)) {
        count++;
        wpk_api_request(service->executor, &request, random_number());
    }
    return !more;
}

/* With a store that is out of order wpkd stays, for those who read, unless it was told to end; or
 * if another wpkd has the log now, or its own store and the log differ. */
static void commit(struct wpk_service *service)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_executor_commit(service->executor, &diag);
    service->commits = wpk_executor_commits(service->executor);
    bool is_over = err == WPK_ECLOSED || err == WPK_EMISMATCH || service->config->exit_on_failure;
    if (err != WPK_OK && service->err == WPK_OK && is_over) {
        service->err = err;
        service->diag = diag;
        wpk_loop_stop(service->loop);
    }
}

void wpk_service_turn(void *user)
{
    struct wpk_service *service = user;
    bool more = false;
    uint64_t began_ns = wpk_clock_now_ns(wpk_clock_system());
    if (service->err != WPK_OK) {
        return;
    }
    wpk_executor_poll(service->executor);
    if (!wpk_executor_is_full(service->executor)) { /* else what became durable wakes us */
        more = take_frames(service);
        more = take_requests(service) || more;
    }
    commit(service);
    wpk_metric_observe_ns(WPK_HISTOGRAM_TURN, wpk_clock_now_ns(wpk_clock_system()) - began_ns);
    if (more) {
        wpk_loop_wake(service->loop);
    }
}

/* A refused peer may be unable to receive the reason: the log and the metrics have it. */
static void count_refused(struct wpk_service *service)
{
    uint64_t refused[WPK_NET_REFUSAL_COUNT];
    wpk_net_server_refused(service->net, refused);
    for (int i = 0; i < WPK_NET_REFUSAL_COUNT; i++) {
        const char *name = wpk_net_refusal_name((enum wpk_net_refusal)i);
        uint64_t more = refused[i] - service->refused[i];
        if (more > 0) {
            wpk_metric_add(WPK_COUNTER_WORKERS_REFUSED, wpk_metric_value(WPK_LABEL_REFUSAL, name),
                           more);
            wpk_log(WPK_LOG_WARN, "connections_refused", "port=workers reason=%s count=%llu", name,
                    (unsigned long long)more);
        }
        service->refused[i] = refused[i];
    }
    wpk_metric_set(WPK_GAUGE_WORKER_CONNECTIONS, 0, wpk_net_server_peer_count(service->net));
}

void wpk_service_tick(struct wpk_service *service)
{
    struct wpk_event tick = {.kind = WPK_EVENT_TICK};
    wpk_executor_poll(service->executor);
    wpk_executor_step(service->executor, &tick);
    wpk_api_front_tell(service->front, service->executor);
    commit(service);
    wpk_executor_probe(service->executor);
    wpk_net_server_expire(service->net);
    count_refused(service);
}
