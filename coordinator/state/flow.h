/* SPDX-License-Identifier: Apache-2.0 */
/* Flows: what an owner of jobs was charged in a timing class. */
#ifndef WPK_COORDINATOR_STATE_FLOW_H
#define WPK_COORDINATOR_STATE_FLOW_H

#include <stdint.h>

struct wpk_timing_class;
struct wpk_owner;

/* An owner in a timing class. */
struct wpk_flow {
    struct wpk_owner *owner;
    struct wpk_timing_class *timing; /* of the devices whose time is charged */
    uint64_t virtual_ns;             /* device time by weight, estimates included */
    uint32_t ready_count;            /* backlogged claims (claim.h); 0: the flow is inactive */
    uint64_t mark;                   /* of the last wpk_fair_settle() that counted it */
};

/* The owner's flow in the timing class, made if need be. It lives as long as the timing class. */
struct wpk_flow *wpk_flow_get(struct wpk_timing_class *timing, struct wpk_owner *owner);
/* Free all flows of the timing class. */
void wpk_flow_forget(struct wpk_timing_class *timing);

#endif
