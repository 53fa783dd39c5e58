/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: one struct for each session (worker.c). */
#ifndef WPK_COORDINATOR_STATE_WORKER_H
#define WPK_COORDINATOR_STATE_WORKER_H

#include "coordinator/state/model.h"

/* Handlers of events: a message; the end of a connection. */
void wpk_worker_message(struct wpk_coordinator *c);
void wpk_worker_gone(struct wpk_coordinator *c);
/* The worker's timer is due: answer its poll, or remove the worker if it was silent too long. */
void wpk_worker_look_at(struct wpk_coordinator *c, struct wpk_worker *worker);
/* Handlers of events: an admin state is set; one is restored; a session's token is good no more;
 * wpkd is about to end. */
void wpk_worker_set(struct wpk_coordinator *c);
void wpk_worker_restore_admin_state(struct wpk_coordinator *c);
void wpk_worker_end(struct wpk_coordinator *c);
void wpk_worker_drain(struct wpk_coordinator *c);
void wpk_worker_free(struct wpk_worker *worker);

/* Admin states of workers. An administrator sets one for a worker's name, or for its device's
 * instance. */

const char *wpk_admin_state_name(enum wpk_admin_state state);
/*   errors  WPK_ENOENT no such admin state */
wpk_err wpk_admin_state_parse(const char *text, enum wpk_admin_state *out);
/* WPK_OK if WPK_EVENT_WORKER_SET can be carried out. `name`: a worker's, or its device's instance.
 *   errors  WPK_ENOENT no such worker; WPK_ENOSPC admin states of too many names are kept */
wpk_err wpk_admin_state_check(const struct wpk_coordinator *coordinator, const char *name,
                              enum wpk_admin_state state);

/* Steadiness: how often a worker's samples waited for a CPU (steadiness.c). */

/* Note how many samples of the result's times waited. The worker is disturbed if too many did. */
void wpk_steadiness_note(struct wpk_coordinator *c, struct wpk_worker *worker,
                         const struct wpk_result *result);
/* Once a second: give workers another chance that are disturbed for long, and decide which workers
 * only build. */
void wpk_steadiness_update(struct wpk_coordinator *c);
/* True if the worker is disturbed, as `out` says. */
bool wpk_steadiness_reason(const struct wpk_worker *worker, char out[WPK_REASON_MAX]);

/* Outliers: workers whose times are not those of their timing class. Such a worker names a device
 * that it does not have, is throttled, or shares its cores. The worker's own results do not show
 * it, because they are consistent. But finals and verifications time again what another worker has
 * timed, so times of workers can be compared without extra work.
 *
 * A worker is an outlier if its times differ from those of more than two thirds of the devices that
 * it was compared with lately, WPK_OUTLIER_OTHERS at least, in the same direction, by
 * WPK_OUTLIER_FACTOR, for WPK_OUTLIER_PROBLEMS problems at least. Honest repetitions of a time were
 * 0.9 to 1.6 of it. An outlier is only reported: between two workers it cannot be decided which one
 * is wrong, and workers that conspire could accuse another one. */

/* Compare: the worker needed `ns` for what the worker with the name hash `before_by` needed
 * `before_ns` for. Does nothing if a time is 0, or that worker is not there or not comparable. */
void wpk_outlier_compare(struct wpk_coordinator *c, const struct wpk_search *search,
                         uint64_t before_by, uint64_t before_ns, const struct wpk_worker *worker,
                         uint64_t ns);
/* True if the worker is an outlier, and `out` says why; else `out` is "". */
bool wpk_outlier_reason(const struct wpk_worker *worker, char out[WPK_REASON_MAX]);

#endif
