/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that device time is shared as coordinator/state/fair.h promises. The linker routes every
 * charge and every settlement of the real coordinator through this file, which enters it into a
 * book of its own.
 *
 *   at each lease       the owner that it is given for is not ahead, by the book, of another owner
 *                       for whom the worker could have worked
 *   at each lease       the owner has no work for this worker that comes before the lease's
 *                       (sim_rank.c)
 *   at each lease       the estimate lies within what the search's leases took so far
 *   at each settlement  the time is charged in equal parts to the owners of the search, and a
 *                       worker's time is charged once
 *   at an owner's first ready work
 *                       the owner's virtual time is not below that of the last owner that workers
 *                       of the work queue served (sim_level.c)
 *   in the end          over any 20 leases of two owners that had work all the time, their device
 *                       times by weight differ by no more than a lease of each and the errors of
 *                       the estimates of these leases and of those in flight before them; for
 *                       equal leases that is 10 % */
#ifndef WPK_TESTS_SIM_SIM_FAIR_H
#define WPK_TESTS_SIM_SIM_FAIR_H

#include <stdint.h>

struct wpk_timing_class;
struct wpk_coordinator;
struct wpk_worker_class;
struct wpk_lease;
struct wpk_sim;

/* Start a book for a run. wpk_sim_fair_end() makes the checks of the whole run and ends the book.
 * There is one book at a time. */
void wpk_sim_fair_begin(struct wpk_sim *sim);
void wpk_sim_fair_end(struct wpk_sim *sim);
/* The largest virtual time, by the book, of an owner in this timing class when it got a lease. */
double wpk_sim_fair_level(const struct wpk_timing_class *timing);
/* Number of windows of 20 leases that were checked so far, in all runs. */
uint64_t wpk_sim_fair_windows(void);

/* ---- sim_level.c */

/* Forget all levels: there is a new coordinator. */
void wpk_sim_level_begin(void);
/* Note that the worker class gives a lease to an owner with this virtual time. */
void wpk_sim_level_served(const struct wpk_worker_class *worker_class, double virtual_ns);
/* The largest such virtual time of a worker class, or of all worker classes of a work queue. */
double wpk_sim_level_of(const void *where);

/* ---- sim_rank.c */

/* Check that lease->flow's owner has no work that comes before the lease's and that the worker
 * could do. Call it before the lease is charged. */
void wpk_sim_check_rank(const struct wpk_sim *sim, const struct wpk_coordinator *c,
                        const struct wpk_lease *lease);

#endif
