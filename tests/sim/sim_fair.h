/* SPDX-License-Identifier: Apache-2.0 */
/* Is device time shared as coordinator/state/fair.h says? Every charge and every correction of the
 * real coordinator goes through here (the linker sees to that), and is entered into a book of our
 * own.
 *
 *   at each lease       whoever it is given for is not ahead, by that book, of any other owner for
 *                       whom the same worker could have worked
 *   at each lease       of his own work that the worker could do, nothing that comes before it lies
 *                       there (sim_rank.c)
 *   at each lease       the estimate is of the search's own leases so far
 *   at each settlement  the time goes, in equal parts, to those for whom the search is worked on;
 *                       and a worker's time is charged once
 *   when work comes     its owner has no credit: he is not behind whoever was served last by those
 *                       who can do it (sim_level.c)
 *   in the end          over any 20 leases of two owners who both had work all the time: their
 *                       device times by weight differ by no more than a lease of each, and what
 *                       those leases, and the ones in flight before them, took beyond their
 *                       estimates; for equal leases, that is 10 % */
#ifndef WPK_TESTS_SIM_SIM_FAIR_H
#define WPK_TESTS_SIM_SIM_FAIR_H

#include <stdint.h>

struct wpk_timing_class;
struct wpk_coordinator;
struct wpk_worker_class;
struct wpk_lease;
struct wpk_sim;

/* What is known of a run, until wpk_sim_fair_end(), which checks what can be said only then. One
 * run at a time is watched. */
void wpk_sim_fair_begin(struct wpk_sim *sim);
void wpk_sim_fair_end(struct wpk_sim *sim);
/* Of a class: the largest virtual time, by the book, with which anybody was given a lease. */
double wpk_sim_fair_level(const struct wpk_timing_class *timing);
/* Windows of 20 leases that were checked so far, in all runs. */
uint64_t wpk_sim_fair_windows(void);

/* ---- sim_level.c */

/* There is another coordinator, with no places yet. */
void wpk_sim_level_begin(void);
/* The worker class gives a lease to somebody with this virtual time. */
void wpk_sim_level_served(const struct wpk_worker_class *worker_class, double virtual_ns);
/* The largest such virtual time of a worker class; or of a work queue: of any worker class in
 * it. */
double wpk_sim_level_of(const void *where);

/* ---- sim_rank.c */

/* The lease was chosen for its worker, for `flow` of it; it is about to be charged. */
void wpk_sim_check_rank(const struct wpk_sim *sim, const struct wpk_coordinator *c,
                        const struct wpk_lease *lease);

#endif
