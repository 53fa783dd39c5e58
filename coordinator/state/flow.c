/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/flow.h"

#include "coordinator/state/owner.h"
#include "coordinator/state/table.h"
#include "coordinator/state/timing_class.h"

#include <stdlib.h>

struct wpk_flow *wpk_flow_get(struct wpk_timing_class *timing, struct wpk_owner *owner)
{
    struct wpk_flow *flow = wpk_table_get(&timing->flows, owner->number);
    if (flow == NULL) {
        flow = calloc(1, sizeof *flow);
        WPK_ASSERT(flow != NULL);
        flow->owner = owner;
        flow->timing = timing;
        wpk_table_put(&timing->flows, owner->number, flow);
    }
    return flow;
}

void wpk_flow_forget(struct wpk_timing_class *timing)
{
    for (uint32_t i = 0; i < timing->flows.capacity; i++) {
        free(timing->flows.slots[i].value);
    }
    wpk_table_fini(&timing->flows);
}
