/* SPDX-License-Identifier: Apache-2.0 */
/* Owners, and their flows: what each was charged in a timing class. */
#include "coordinator/state/fair.h"

#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/model.h"
#include "coordinator/state/table.h"

#include <stdio.h>
#include <stdlib.h>

struct wpk_owner *wpk_owner_get(struct wpk_coordinator *c, const char *name)
{
    struct wpk_owner *owner = wpk_table_get_text(&c->owners_by_name, name);
    if (owner != NULL || c->owner_count == WPK_OWNERS_MAX) {
        return owner;
    }
    owner = WPK_DEMAND(calloc(1, sizeof *owner));
    snprintf(owner->name, sizeof owner->name, "%s", name);
    owner->number = c->owner_count + 1;
    owner->weight = c->owner_weight;
    owner->jobs_max = c->owner_jobs_max;
    c->owners = wpk_grow(c->owners, c->owner_count, &c->owner_capacity, sizeof *c->owners);
    c->owners[c->owner_count++] = owner;
    wpk_table_put_text(&c->owners_by_name, owner->name, owner);
    return owner;
}

void wpk_owner_set(struct wpk_coordinator *c, const struct wpk_owner_event *event)
{
    uint32_t weight = event->weight > 0 ? event->weight : 1;
    weight = weight < WPK_OWNER_WEIGHT_MAX ? weight : WPK_OWNER_WEIGHT_MAX;
    if (event->name[0] != '\0') {
        struct wpk_owner *owner = wpk_owner_get(c, event->name);
        if (owner != NULL) {
            owner->weight = weight;
            owner->jobs_max = event->jobs_max;
            owner->named = true;
        }
        return;
    }
    c->owner_weight = weight;
    c->owner_jobs_max = event->jobs_max;
    for (uint32_t i = 0; i < c->owner_count; i++) {
        if (!c->owners[i]->named) {
            c->owners[i]->weight = weight;
            c->owners[i]->jobs_max = event->jobs_max;
        }
    }
}

void wpk_owner_restore(struct wpk_coordinator *c, const struct wpk_owner_event *event)
{
    struct wpk_owner *owner = wpk_owner_get(c, event->name);
    if (owner != NULL) {
        owner->device_ns = event->device_ns;
        owner->virtual_ns = event->virtual_ns;
    }
}

void wpk_owner_charge(struct wpk_coordinator *c, struct wpk_owner *owner, uint64_t device_ns)
{
    owner->device_ns += device_ns;
    owner->virtual_ns += device_ns / owner->weight;
    wpk_mark_put(&c->marked_owners, &owner->mark, owner);
}

void wpk_owner_store(struct wpk_coordinator *c)
{
    struct wpk_owner *owner;
    while ((owner = wpk_mark_take(&c->marked_owners)) != NULL) {
        struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_SET_OWNER);
        effect->owner = (struct wpk_owner_event){.name = owner->name,
                                                 .weight = owner->weight,
                                                 .jobs_max = owner->jobs_max,
                                                 .device_ns = owner->device_ns,
                                                 .virtual_ns = owner->virtual_ns};
    }
}

struct wpk_flow *wpk_flow_get(struct wpk_timing_class *timing, struct wpk_owner *owner)
{
    struct wpk_flow *flow = wpk_table_get(&timing->flows, owner->number);
    if (flow == NULL) {
        flow = WPK_DEMAND(calloc(1, sizeof *flow));
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
