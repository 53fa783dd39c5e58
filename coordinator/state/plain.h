/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernel of a search's operator (plain.c). */
#ifndef WPK_COORDINATOR_STATE_PLAIN_H
#define WPK_COORDINATOR_STATE_PLAIN_H

#include "coordinator/state/final.h"

struct wpk_opened;

/* The plain kernel of a search's operator, which runs where nothing else does: plain.c. */
struct wpk_plain {
    struct wpk_work_item item;             /* its text is the candidate's name */
    uint32_t number;                       /* of the candidate that is tried, from 1 */
    char verified_by[WPK_WORKER_NAME_MAX]; /* the worker */
    struct wpk_final_entry entry;          /* what wpk_plain_entry gives out */
};

/* What the store knew of it; `opened` keeps nothing. */
void wpk_plain_open(struct wpk_search *search, struct wpk_opened *opened);
void wpk_plain_fini(struct wpk_search *search);
/* Stages that a worker can be given of it: bits 1 << enum wpk_queue_stage. */
unsigned wpk_plain_ready(const struct wpk_search *search);
/* Does the end of the search wait for it? It does not where no worker is there to build it. */
bool wpk_plain_awaited(const struct wpk_search *search);
/* Its candidate has ended with this record: it is the plain kernel, or the next one is tried. */
void wpk_plain_ended(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_record *record, const struct wpk_worker *worker);
/* Is there one, verified and timed? */
bool wpk_plain_works(const struct wpk_search *search);
/* As what is recorded beside a winner, or as the winner; NULL: there is none. */
const struct wpk_final_entry *wpk_plain_entry(struct wpk_search *search);
/* This shared object was revoked: if it is the plain kernel, the next candidate is tried. */
void wpk_plain_revoked(struct wpk_search *search, const char *artifact);

#endif
