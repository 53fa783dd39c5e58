/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of future events, by time. Events of the same time stay in the order of their puts. */
#ifndef WPK_TESTS_SIM_SIM_QUEUE_H
#define WPK_TESTS_SIM_SIM_QUEUE_H

#include "common/buf.h"
#include "common/net.h"

enum wpk_sim_event_kind {
    WPK_SIM_TO_WPKD,   /* a frame: address, worker, data; without data: the connection ended */
    WPK_SIM_TO_WORKER, /* a frame: address, worker, data */
    WPK_SIM_TURN,      /* wpkd handles its inbox */
    WPK_SIM_TICK,
    WPK_SIM_START, /* wpkd starts */
    WPK_SIM_BIRTH, /* a worker starts */
    WPK_SIM_WAKE,  /* a worker wakes; `number`: which of its wakes */
    WPK_SIM_ACT,   /* a user acts; `number`: the action */
};

struct wpk_sim_event {
    uint64_t at_ns;
    uint64_t order;
    enum wpk_sim_event_kind kind;
    int worker;
    uint64_t number;
    struct wpk_net_address address;
    struct wpk_buf data; /* owned */
};

struct wpk_sim_queue {
    struct wpk_sim_event *items; /* owned; [count], a binary heap */
    uint32_t count;
    uint32_t capacity;
    uint64_t order_last;
};

/* Put an event; takes its data. */
void wpk_sim_queue_put(struct wpk_sim_queue *queue, struct wpk_sim_event event);
/* The time of the first event; UINT64_MAX if there is none. */
uint64_t wpk_sim_queue_next_ns(const struct wpk_sim_queue *queue);
/* Remove the first event, which must be there.   owns  caller frees its data */
struct wpk_sim_event wpk_sim_queue_take(struct wpk_sim_queue *queue);
void wpk_sim_queue_fini(struct wpk_sim_queue *queue);

#endif
