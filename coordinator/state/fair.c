/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/fair.h"

#include "common/metrics.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/table.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wpk_timing_class_text(const char *device_class, const struct wpk_hello *hello,
                           char out[WPK_TIMING_CLASS_TEXT_MAX])
{
    char providers[WPK_KEY_TEXT_MAX] = "";
    size_t at = 0;
    /* Their names in the worker's order, as in "halide-cpu;onednn". */
    for (uint32_t i = 0; i < hello->provider_count && at < sizeof providers; i++) {
        at += (size_t)snprintf(providers + at, sizeof providers - at, "%s%s", i > 0 ? ";" : "",
                               hello->providers[i].name);
    }
    snprintf(out, WPK_TIMING_CLASS_TEXT_MAX, "%s\n%s\n%s", device_class, hello->environment,
             providers);
}

const char *wpk_timing_class_back_ends(const char *text)
{
    return strrchr(text, '\n') + 1;
}

void wpk_timing_class_add(const char *text, const char *back_ends,
                          char out[WPK_TIMING_CLASS_TEXT_MAX])
{
    const char *list = wpk_timing_class_back_ends(text);
    int size = (int)(list - text + (ptrdiff_t)strcspn(list, ";"));
    snprintf(out, WPK_TIMING_CLASS_TEXT_MAX, "%.*s%s%s", size, text, back_ends, text + size);
}

void wpk_timing_class_strip(const char *text, char out[WPK_TIMING_CLASS_TEXT_MAX])
{
    const char *list = wpk_timing_class_back_ends(text);
    int size = (int)(list - text + (ptrdiff_t)strcspn(list, "+;"));
    snprintf(out, WPK_TIMING_CLASS_TEXT_MAX, "%.*s%s", size, text, list + strcspn(list, ";"));
}

struct wpk_timing_class *wpk_timing_class_use(struct wpk_coordinator *c, const char *text)
{
    struct wpk_timing_class *timing = wpk_table_get_text(&c->timing_classes, text);
    if (timing == NULL) {
        timing = WPK_DEMAND(calloc(1, sizeof *timing));
        snprintf(timing->text, sizeof timing->text, "%s", text);
        wpk_table_put_text(&c->timing_classes, timing->text, timing);
    }
    timing->use_count++;
    return timing;
}

void wpk_timing_class_release(struct wpk_coordinator *c, struct wpk_timing_class *timing)
{
    if (--timing->use_count == 0) {
        wpk_table_take_text(&c->timing_classes, timing->text);
        wpk_timing_class_free(timing);
    }
}

void wpk_timing_class_free(struct wpk_timing_class *timing)
{
    wpk_flow_forget(timing);
    free(timing);
}

/* ---- where those are who are served */

static void raise(uint64_t *ns, uint64_t to_ns)
{
    *ns = *ns > to_ns ? *ns : to_ns;
}

void wpk_fair_begin_class(struct wpk_worker_class *worker_class)
{
    worker_class->virtual_ns = worker_class->timing->virtual_ns;
    for (struct wpk_link *link = worker_class->links; link != NULL;
         link = link->worker_class_next) {
        if (link->queue->timing == worker_class->timing &&
            link->queue->virtual_ns < worker_class->virtual_ns) {
            worker_class->virtual_ns = link->queue->virtual_ns;
        }
    }
}

void wpk_fair_begin_queue(struct wpk_work_queue *queue)
{
    for (struct wpk_link *link = queue->links; link != NULL; link = link->queue_next) {
        if (link->worker_class->timing == queue->timing) {
            raise(&queue->virtual_ns, link->worker_class->virtual_ns);
        }
    }
}

/* It never goes back, although a virtual time does when a lease took less than was estimated. */
static void advance(struct wpk_worker_class *worker_class, uint64_t virtual_ns)
{
    if (virtual_ns <= worker_class->virtual_ns) {
        return;
    }
    worker_class->virtual_ns = virtual_ns;
    raise(&worker_class->timing->virtual_ns, virtual_ns);
    for (struct wpk_link *link = worker_class->links; link != NULL;
         link = link->worker_class_next) {
        if (link->queue->timing == worker_class->timing) {
            raise(&link->queue->virtual_ns, virtual_ns);
        }
    }
}

/* Raise the flow's virtual time to those of all queues that the search waits in: its builders and
 * runners may be two worker classes, with different virtual times. */
void wpk_fair_ready(struct wpk_flow *flow, const struct wpk_search *search)
{
    if (flow->ready_count++ > 0) {
        return;
    }
    for (const struct wpk_claim *claim = search->claims; claim != NULL;
         claim = claim->search_next) {
        if (claim->owner_queue->flow == flow) {
            raise(&flow->virtual_ns, claim->owner_queue->queue->virtual_ns);
        }
    }
}

static struct wpk_flow *payer_of(const struct wpk_worker_class *worker_class, struct wpk_flow *flow)
{
    return flow->timing == worker_class->timing ? flow
                                                : wpk_flow_get(worker_class->timing, flow->owner);
}

struct wpk_flow *wpk_fair_payer(const struct wpk_worker_class *worker_class, struct wpk_flow *flow)
{
    struct wpk_flow *payer = payer_of(worker_class, flow);
    /* In another timing class no claim says when the owner has work, and when it has none: its flow
     * starts at the current virtual time each time. */
    if (payer->ready_count == 0) {
        raise(&payer->virtual_ns, worker_class->virtual_ns);
    }
    return payer;
}

/* ---- charging */

static void add(struct wpk_flow *flow, uint64_t device_ns)
{
    flow->virtual_ns += device_ns / flow->owner->weight;
}

void wpk_fair_charge(struct wpk_coordinator *c WPK_UNUSED, struct wpk_lease *lease)
{
    const struct wpk_search *search = lease->search;
    struct wpk_worker_class *worker_class = lease->worker->worker_class;
    lease->estimate_ns = search->cost_ns != 0 ? search->cost_ns : WPK_ESTIMATE_NS;
    if (lease->flow != NULL) {
        lease->flow = wpk_fair_payer(worker_class, lease->flow);
        lease->flow->timing->use_count++; /* the flow stays with the lease */
        advance(worker_class, lease->flow->virtual_ns);
        lease->charged_ns = lease->estimate_ns / lease->flow->owner->weight;
        lease->flow->virtual_ns += lease->charged_ns;
    }
}

/* How many owners the lease's search is worked on for; each is visited once. */
static uint32_t split(struct wpk_coordinator *c, const struct wpk_lease *lease, uint64_t device_ns)
{
    uint32_t count = 0;
    c->mark++;
    for (struct wpk_claim *claim = lease->search->claims; claim != NULL;
         claim = claim->search_next) {
        struct wpk_flow *flow = payer_of(lease->worker->worker_class, claim->owner_queue->flow);
        if (flow->mark != c->mark) {
            flow->mark = c->mark;
            count++;
            if (device_ns > 0) {
                add(flow, device_ns);
                wpk_owner_charge(c, flow->owner, device_ns);
            }
        }
    }
    return count;
}

static void charge_all(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns)
{
    struct wpk_search *search = lease->search;
    wpk_metric_add(WPK_COUNTER_DEVICE_SECONDS,
                   wpk_metric_value(WPK_LABEL_DEVICE, search->key.device_class), device_ns);
    uint32_t count = split(c, lease, 0);
    if (count > 0) {
        split(c, lease, device_ns / count);
    } else if (lease->flow != NULL) {
        add(lease->flow, device_ns);
        wpk_owner_charge(c, lease->flow->owner, device_ns);
    }
    /* Smoothed over about eight work items. */
    search->cost_ns = search->cost_ns == 0 ? device_ns : (7 * search->cost_ns + device_ns) / 8;
    search->cost_ns += search->cost_ns == 0;
}

void wpk_fair_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns)
{
    if (lease->flow != NULL) {
        WPK_ASSERT(lease->charged_ns <= lease->flow->virtual_ns);
        lease->flow->virtual_ns -= lease->charged_ns;
    }
    if (device_ns > 0) {
        charge_all(c, lease, device_ns);
    }
    if (lease->flow != NULL) {
        wpk_timing_class_release(c, lease->flow->timing);
        lease->flow = NULL;
    }
}

/* ---- owners, and their flows: what each was charged in a timing class */

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

void wpk_owner_set(struct wpk_coordinator *c)
{
    const struct wpk_owner_event *event = &c->event->owner;
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

void wpk_owner_restore(struct wpk_coordinator *c)
{
    const struct wpk_owner_event *event = &c->event->owner;
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
