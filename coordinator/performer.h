/* SPDX-License-Identifier: Apache-2.0 */
/* Performs the coordinator's effects against the store, the artifacts and the strategies, and holds
 * back what leaves the process until its batch is durable.
 *
 *      step(event) ──▶ effects ──▶ store, strategies ──▶ events that answer them ──▶ step ...
 *                         │
 *                         └──▶ held ── commit ──▶ out (the network, or a simulator)
 *
 * The service and the simulator use the same one. */
#ifndef WPK_COORDINATOR_PERFORMER_H
#define WPK_COORDINATOR_PERFORMER_H

#include "coordinator/api.h"
#include "coordinator/history.h"

struct wpk_performer;

/* Where held output goes once it is durable. Both slots are required. */
struct wpk_performer_out {
    void (*reply)(void *user, const struct wpk_net_address *address, const void *frame,
                  size_t size);
    void (*respond)(void *user, uint64_t request, const struct wpk_api_answer *answer);
    void *user;
};

struct wpk_performer_options {
    struct wpk_store *store; /* borrowed, as all of this */
    const char *data_dir;    /* for artifacts */
    const struct wpk_clock *clock;
    struct wpk_performer_out out;
};

/* Make a coordinator, and load the jobs that had not ended.
 *
 *   owns    caller frees
 *   errors  WPK_ENOMEM; what reading the store says
 */
WPK_MUST_CHECK wpk_err wpk_performer_new(const struct wpk_performer_options *options,
                                         struct wpk_performer **out, struct wpk_diag *diag);
void wpk_performer_free(struct wpk_performer *performer);

const struct wpk_coordinator *wpk_performer_coordinator(const struct wpk_performer *performer);

/* Step this event and all that follow from it. Fills in the event's times. */
void wpk_performer_step(struct wpk_performer *performer, struct wpk_event *event);
/* Decode a worker's frame and step it; what cannot be decoded is answered. */
void wpk_performer_frame(struct wpk_performer *performer, const struct wpk_net_address *address,
                         const char *frame, size_t size, uint64_t random);
/* Answer a request, or step what it asks for. */
void wpk_performer_request(struct wpk_performer *performer, const struct wpk_http_request *request,
                           uint64_t random);

/* Make the batch durable and let its output go.
 *
 *   errors  what the store says. Then nothing of the batch left: requests were answered with a
 *           problem, workers with nothing. The state is ahead of the store: free the performer
 */
WPK_MUST_CHECK wpk_err wpk_performer_commit(struct wpk_performer *performer, struct wpk_diag *diag);

#endif
