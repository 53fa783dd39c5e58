/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of jobs: the weight and quota of each, and what each was charged. */
#ifndef WPK_COORDINATOR_STATE_OWNER_H
#define WPK_COORDINATOR_STATE_OWNER_H

#include "coordinator/state/mark.h"
#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_owner_event;

#define WPK_OWNERS_MAX 4096 /* owners that are remembered */
#define WPK_OWNER_WEIGHT_MAX 1000
#define WPK_OWNER_JOBS_DEFAULT 1024

struct wpk_owner {
    char name[WPK_JOB_TEXT_MAX];
    uint64_t number; /* from 1 */
    uint32_t weight;
    uint32_t jobs_max;
    bool named;           /* weight and quota are its own, not the defaults */
    uint32_t job_count;   /* live jobs */
    uint64_t device_ns;   /* device time charged, without estimates */
    uint64_t virtual_ns;  /* device time by weight; for the store only: flows have their own */
    struct wpk_mark mark; /* it is to be stored */
};

/* The owner, made if need be; NULL when there are too many. */
struct wpk_owner *wpk_owner_get(struct wpk_coordinator *c, const char *name);
/* Set the weight and quota of an owner; of name "": of all owners that are not named. */
void wpk_owner_set(struct wpk_coordinator *c, const struct wpk_owner_event *event);
/* Set what the owner was charged before this start. */
void wpk_owner_restore(struct wpk_coordinator *c, const struct wpk_owner_event *event);
/* Add device time to what the owner was charged, and mark the owner to be stored. */
void wpk_owner_charge(struct wpk_coordinator *c, struct wpk_owner *owner, uint64_t device_ns);
/* Store the owners that are marked. */
void wpk_owner_store(struct wpk_coordinator *c);

#endif
