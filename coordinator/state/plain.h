/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernel of a search's operator (plain.c). */
#ifndef WPK_COORDINATOR_STATE_PLAIN_H
#define WPK_COORDINATOR_STATE_PLAIN_H

#include "coordinator/state/final.h"

struct wpk_opened;

/* The plain kernel, as a work item: its candidates are tried one after the other. */
struct wpk_plain {
    struct wpk_work_item item;             /* its text is the name of the candidate */
    uint32_t number;                       /* of the candidate that is tried, from 1 */
    char verified_by[WPK_WORKER_NAME_MAX]; /* name of the worker; "": unknown */
    struct wpk_final_entry entry;          /* what wpk_plain_entry() returns */
};

/* Take what the store had of the plain kernel out of `opened`. */
void wpk_plain_open(struct wpk_search *search, struct wpk_opened *opened);
void wpk_plain_fini(struct wpk_search *search);
/* Stages of the plain kernel that a worker can be given, as bits 1 << enum wpk_queue_stage. */
unsigned wpk_plain_ready(const struct wpk_search *search);
/* True if the search must not end before its plain kernel: it is leased, or a worker can do it. */
bool wpk_plain_awaited(const struct wpk_search *search);
/* The candidate has ended with this record: it is the plain kernel, or the next one is tried. */
void wpk_plain_ended(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_record *record, const struct wpk_worker *worker);
/* True if there is a plain kernel, verified and timed. */
bool wpk_plain_works(const struct wpk_search *search);
/* The plain kernel as an entry, to be recorded as a winner or beside one; NULL: there is none. */
const struct wpk_final_entry *wpk_plain_entry(struct wpk_search *search);
/* This shared object was revoked. If it is the plain kernel, the next candidate is tried. */
void wpk_plain_revoked(struct wpk_search *search, const char *artifact);

#endif
