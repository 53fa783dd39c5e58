/* SPDX-License-Identifier: Apache-2.0 */
/* What an owner of jobs is charged in a class of devices. */
#ifndef WPK_COORDINATOR_STATE_FLOW_H
#define WPK_COORDINATOR_STATE_FLOW_H

#include <stdint.h>

struct wpk_timing_class;
struct wpk_owner;

/* An owner in a class. */
struct wpk_flow {
    struct wpk_owner *owner;
    struct wpk_timing_class *timing; /* of the devices whose time it is */
    uint64_t virtual_ns;             /* by weight, estimates included */
    uint32_t ready_count;   /* claims that there is work for, or will be at once */
    uint64_t mark;          /* of wpk_fair_settle() */
};

struct wpk_flow *wpk_flow_get(struct wpk_timing_class *timing, struct wpk_owner *owner);
/* Forget the class's flows. */
void wpk_flow_forget(struct wpk_timing_class *timing);

#endif
