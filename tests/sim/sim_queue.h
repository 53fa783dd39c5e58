/* SPDX-License-Identifier: Apache-2.0 */
/* What is going to happen, by time; at the same time, in the order in which it was put. */
#ifndef WPK_TESTS_SIM_SIM_QUEUE_H
#define WPK_TESTS_SIM_SIM_QUEUE_H

#include "common/buf.h"
#include "common/net.h"

enum wpk_sim_event_kind {
    WPK_SIM_TO_WPKD,   /* address, worker, data; no data: the connection ended */
    WPK_SIM_TO_WORKER, /* address, worker, data */
    WPK_SIM_TURN,      /* wpkd takes what came in */
    WPK_SIM_TICK,
    WPK_SIM_START, /* wpkd */
    WPK_SIM_BIRTH, /* a worker */
    WPK_SIM_WAKE,  /* a worker; `number`: which of its wakes */
    WPK_SIM_ACT,   /* a user; `number`: what */
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

/* Takes the event, with its data. */
void wpk_sim_queue_put(struct wpk_sim_queue *queue, struct wpk_sim_event event);
/* The time of the first; UINT64_MAX when there is none. */
uint64_t wpk_sim_queue_next_ns(const struct wpk_sim_queue *queue);
/* The first; there must be one. Its data is the caller's. */
struct wpk_sim_event wpk_sim_queue_take(struct wpk_sim_queue *queue);
void wpk_sim_queue_fini(struct wpk_sim_queue *queue);

#endif
