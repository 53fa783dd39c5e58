/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's poll: its answer, and the worker's timer. */
#ifndef WPK_COORDINATOR_STATE_POLL_H
#define WPK_COORDINATOR_STATE_POLL_H

#include <stdint.h>

struct wpk_coordinator;
struct wpk_message;
struct wpk_worker;

/* The time at which the worker is lost if it stays silent. */
uint64_t wpk_poll_lost_ns(const struct wpk_worker *worker);
/* Set the worker's timer, unless it is due earlier, to its poll's deadline or its loss. */
void wpk_poll_set_timer(struct wpk_coordinator *c, struct wpk_worker *worker);
/* Answer the worker's poll, which ends with it; wpk_poll_answer_empty(): without work. */
void wpk_poll_answer(struct wpk_coordinator *c, struct wpk_worker *worker,
                     const struct wpk_message *message);
void wpk_poll_answer_empty(struct wpk_coordinator *c, struct wpk_worker *worker);

#endif
