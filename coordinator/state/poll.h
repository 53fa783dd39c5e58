/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's poll: its answer, and when the worker is to be looked at. */
#ifndef WPK_COORDINATOR_STATE_POLL_H
#define WPK_COORDINATOR_STATE_POLL_H

#include <stdint.h>

struct wpk_coordinator;
struct wpk_message;
struct wpk_worker;

/* When the worker is lost if nothing more is heard of it. */
uint64_t wpk_poll_lost_ns(const struct wpk_worker *worker);
/* When it is to be looked at. */
void wpk_poll_set_timer(struct wpk_coordinator *c, struct wpk_worker *worker);
/* The answer to its poll, which is empty when nothing was put into `message`. */
void wpk_poll_answer(struct wpk_coordinator *c, struct wpk_worker *worker,
                     const struct wpk_message *message);
void wpk_poll_answer_empty(struct wpk_coordinator *c, struct wpk_worker *worker);

#endif
