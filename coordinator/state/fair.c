/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/fair.h"

#include "common/metrics.h"
#include "coordinator/state/group.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wpk_owner *wpk_owner_get(struct wpk_coordinator *c, const char *name)
{
    struct wpk_owner *owner = wpk_table_get_text(&c->owners_by_name, name);
    if (owner != NULL || c->owner_count == WPK_OWNERS_MAX) {
        return owner;
    }
    owner = calloc(1, sizeof *owner);
    WPK_ASSERT(owner != NULL);
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
        owner->share_ns = event->share_ns;
    }
}

struct wpk_account *wpk_account_get(struct wpk_class *kind, struct wpk_owner *owner)
{
    struct wpk_account *account = wpk_table_get(&kind->accounts, owner->number);
    if (account == NULL) {
        account = calloc(1, sizeof *account);
        WPK_ASSERT(account != NULL);
        account->owner = owner;
        account->kind = kind;
        wpk_table_put(&kind->accounts, owner->number, account);
    }
    return account;
}

void wpk_fair_forget(struct wpk_class *kind)
{
    for (uint32_t i = 0; i < kind->accounts.capacity; i++) {
        free(kind->accounts.slots[i].value);
    }
    wpk_table_fini(&kind->accounts);
}

/* ---- where those are who are served */

static void raise(uint64_t *ns, uint64_t to_ns)
{
    *ns = *ns > to_ns ? *ns : to_ns;
}

void wpk_fair_begin_group(struct wpk_group *group)
{
    group->virtual_ns = group->kind->virtual_ns;
    for (struct wpk_link *link = group->links; link != NULL; link = link->group_next) {
        if (link->pool->kind == group->kind && link->pool->virtual_ns < group->virtual_ns) {
            group->virtual_ns = link->pool->virtual_ns;
        }
    }
}

void wpk_fair_begin_pool(struct wpk_pool *pool)
{
    for (struct wpk_link *link = pool->links; link != NULL; link = link->pool_next) {
        if (link->group->kind == pool->kind) {
            raise(&pool->virtual_ns, link->group->virtual_ns);
        }
    }
}

/* It never goes back, although a share does when a lease took less than was estimated. */
static void advance(struct wpk_group *group, uint64_t share_ns)
{
    if (share_ns <= group->virtual_ns) {
        return;
    }
    group->virtual_ns = share_ns;
    raise(&group->kind->virtual_ns, share_ns);
    for (struct wpk_link *link = group->links; link != NULL; link = link->group_next) {
        if (link->pool->kind == group->kind) {
            raise(&link->pool->virtual_ns, share_ns);
        }
    }
}

/* Who builds for it and who runs it may be two groups, which are not at the same place. */
void wpk_account_ready(struct wpk_account *account, const struct wpk_search *search)
{
    if (account->ready_count++ > 0) {
        return;
    }
    for (const struct wpk_stake *stake = search->stakes; stake != NULL;
         stake = stake->search_next) {
        if (stake->seat->account == account) {
            raise(&account->share_ns, stake->seat->pool->virtual_ns);
        }
    }
}

void wpk_account_unready(struct wpk_account *account)
{
    WPK_ASSERT(account->ready_count > 0);
    account->ready_count--;
}

static struct wpk_account *payer_of(const struct wpk_group *group, struct wpk_account *account)
{
    return account->kind == group->kind ? account : wpk_account_get(group->kind, account->owner);
}

struct wpk_account *wpk_fair_payer(const struct wpk_group *group, struct wpk_account *account)
{
    struct wpk_account *payer = payer_of(group, account);
    /* In another class nobody says when there is work for him, and when there is not: he starts
     * from where the others are each time. */
    if (payer->ready_count == 0) {
        raise(&payer->share_ns, group->virtual_ns);
    }
    return payer;
}

/* ---- charging */

static void add(struct wpk_account *account, uint64_t device_ns)
{
    account->share_ns += device_ns / account->owner->weight;
}

static void take_back(struct wpk_account *account, uint64_t device_ns)
{
    uint64_t ns = device_ns / account->owner->weight;
    account->share_ns -= ns < account->share_ns ? ns : account->share_ns;
}

void wpk_fair_charge(struct wpk_coordinator *c, struct wpk_lease *lease)
{
    (void)c;
    const struct wpk_search *search = lease->search;
    struct wpk_group *group = lease->worker->group;
    lease->estimate_ns = search->cost_ns != 0 ? search->cost_ns : WPK_ESTIMATE_NS;
    if (lease->account != NULL) {
        lease->account = wpk_fair_payer(group, lease->account);
        lease->account->kind->use_count++; /* the account stays with the lease */
        advance(group, lease->account->share_ns);
        add(lease->account, lease->estimate_ns);
    }
}

static void charge_owner(struct wpk_coordinator *c, struct wpk_owner *owner, uint64_t device_ns)
{
    owner->device_ns += device_ns;
    owner->share_ns += device_ns / owner->weight;
    if (!owner->dirty) {
        owner->dirty = true;
        c->owners_dirty = wpk_grow(c->owners_dirty, c->owners_dirty_count,
                                   &c->owners_dirty_capacity, sizeof(struct wpk_owner *));
        c->owners_dirty[c->owners_dirty_count++] = owner;
    }
}

/* How many owners the lease's search is worked on for; each is visited once. */
static uint32_t split(struct wpk_coordinator *c, const struct wpk_lease *lease, uint64_t device_ns)
{
    uint32_t count = 0;
    c->mark++;
    for (struct wpk_stake *stake = lease->search->stakes; stake != NULL;
         stake = stake->search_next) {
        struct wpk_account *account = payer_of(lease->worker->group, stake->seat->account);
        if (account->mark != c->mark) {
            account->mark = c->mark;
            count++;
            if (device_ns > 0) {
                add(account, device_ns);
                charge_owner(c, account->owner, device_ns);
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
    } else if (lease->account != NULL) {
        add(lease->account, device_ns);
        charge_owner(c, lease->account->owner, device_ns);
    }
    /* Smoothed over about eight pieces of work. */
    search->cost_ns = search->cost_ns == 0 ? device_ns : (7 * search->cost_ns + device_ns) / 8;
    search->cost_ns += search->cost_ns == 0;
}

void wpk_fair_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns)
{
    if (lease->account != NULL) {
        take_back(lease->account, lease->estimate_ns);
    }
    if (device_ns > 0) {
        charge_all(c, lease, device_ns);
    }
    if (lease->account != NULL) {
        wpk_class_release(c, lease->account->kind);
        lease->account = NULL;
    }
}

void wpk_fair_store(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->owners_dirty_count; i++) {
        struct wpk_owner *owner = c->owners_dirty[i];
        owner->dirty = false;
        struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_SET_OWNER);
        effect->owner = (struct wpk_owner_event){.name = owner->name,
                                                 .weight = owner->weight,
                                                 .jobs_max = owner->jobs_max,
                                                 .device_ns = owner->device_ns,
                                                 .share_ns = owner->share_ns};
    }
    c->owners_dirty_count = 0;
}
