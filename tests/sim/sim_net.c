/* SPDX-License-Identifier: Apache-2.0 */
/* The network: each frame has a delay, and may be lost, come twice, or come after later frames. */
#include "tests/sim/sim.h"

#include <stdlib.h>

#define LATENCY_US 1500
#define LATE_MS 4000 /* longer than a worker waits */
#define EXCUSED_S 40 /* what a lost frame says may matter until a lease would have ended */

static void put(struct wpk_sim *sim, struct wpk_sim_event *event, const void *data, size_t size,
                uint64_t delay_ns)
{
    struct wpk_sim_event sent = *event;
    sent.data = (struct wpk_buf){0};
    wpk_buf_append(&sent.data, data, size);
    sent.at_ns = sim->clock.now_ns + delay_ns;
    wpk_sim_queue_put(&sim->queue, sent);
}

static uint64_t latency_ns(struct wpk_sim *sim)
{
    return (100 + wpk_rng_below(&sim->rng, LATENCY_US)) * WPK_NS_PER_US;
}

static void send_frame(struct wpk_sim *sim, struct wpk_sim_event *event, const void *data,
                       size_t size)
{
    uint64_t delay_ns = latency_ns(sim);
    int copies = 1;
    if (wpk_rng_chance(&sim->rng, sim->trouble / 10)) {
        wpk_sim_excuse(&sim->workers[event->worker], sim->clock.now_ns + EXCUSED_S * WPK_NS_PER_S);
        switch (wpk_rng_below(&sim->rng, 3)) {
        case 0:
            copies = 0;
            break;
        case 1:
            copies = 2;
            break;
        default:
            delay_ns += wpk_rng_below(&sim->rng, LATE_MS * WPK_NS_PER_MS);
        }
        wpk_sim_say(sim, "net: %s w%d: %s", event->kind == WPK_SIM_TO_WPKD ? "from" : "to",
                    event->worker,
                    copies == 0   ? "lost"
                    : copies == 2 ? "twice"
                                  : "late");
    }
    for (int i = 0; i < copies; i++) {
        put(sim, event, data, size, delay_ns + (i > 0 ? latency_ns(sim) * 100 : 0));
    }
}

void wpk_sim_net_to_wpkd(struct wpk_sim *sim, struct wpk_sim_worker *worker, const void *data,
                         size_t size)
{
    struct wpk_sim_event event = {.kind = WPK_SIM_TO_WPKD, .worker = worker->index};
    event.address.peer = worker->peer;
    event.address.header_size = 5;
    event.address.header[0] = (uint8_t)worker->index;
    for (int i = 0; i < 4; i++) {
        event.address.header[1 + i] = (uint8_t)(worker->asked_number >> (8 * i));
    }
    send_frame(sim, &event, data, size);
}

void wpk_sim_net_to_worker(struct wpk_sim *sim, const struct wpk_net_address *address,
                           const void *data, size_t size)
{
    struct wpk_sim_event event = {
        .kind = WPK_SIM_TO_WORKER, .worker = address->header[0], .address = *address};
    send_frame(sim, &event, data, size);
}

void wpk_sim_net_cut(struct wpk_sim *sim, uint32_t peer)
{
    struct wpk_sim_event event = {.kind = WPK_SIM_TO_WPKD, .address = {.peer = peer}};
    event.at_ns = sim->clock.now_ns + latency_ns(sim);
    wpk_sim_queue_put(&sim->queue, event);
}

/* wpkd takes what has come in when it has its next turn: the later, the more shares a commit. */
void wpk_sim_net_arrive(struct wpk_sim *sim, struct wpk_sim_event *event)
{
    if (sim->store == NULL) {
        wpk_buf_fini(&event->data);
        return;
    }
    if (sim->inbox_count == sim->inbox_capacity) {
        sim->inbox_capacity = sim->inbox_capacity == 0 ? 64 : sim->inbox_capacity * 2;
        struct wpk_sim_event *grown = realloc(sim->inbox, sim->inbox_capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        sim->inbox = grown;
    }
    sim->inbox[sim->inbox_count++] = *event;
    if (!sim->turn_set) {
        struct wpk_sim_event turn = {.kind = WPK_SIM_TURN, .number = sim->life};
        turn.at_ns = sim->clock.now_ns + wpk_rng_below(&sim->rng, 5 * WPK_NS_PER_MS);
        wpk_sim_queue_put(&sim->queue, turn);
        sim->turn_set = true;
    }
}
