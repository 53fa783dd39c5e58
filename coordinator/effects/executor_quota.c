/* SPDX-License-Identifier: Apache-2.0 */
/* The artifacts' quota: artifacts with a row and uploads under way never exceed it together.
 *
 *     0 ──────────────── 90 % ── 95 % ── 100 %
 *     builds go on         │      │        └─ an upload is refused, and builds are held
 *                          │      └─ unused artifacts are removed; if none can, builds are held
 *                          └─ removal stops here */
#include "coordinator/effects/executor_parts.h"

#include "common/log.h"
#include "common/metrics.h"
#include "coordinator/state/claim.h"

#include <string.h>

#define PRUNE_MS 2000
#define PRUNE_MAX 64 /* artifacts that go at a time, so that no commit waits long */

/* A farm of builders may be faster than those who run what it makes, and a quota small: nothing
 * more is leased to be built until there is room. */
static void hold_builds(struct wpk_executor *p, bool hold)
{
    const struct wpk_event event = {.kind = WPK_EVENT_HOLD_BUILDS, .hold = hold};
    if (hold == p->builds_held) {
        return;
    }
    wpk_log(hold ? WPK_LOG_WARN : WPK_LOG_INFO, hold ? "builds_held" : "builds_go_on",
            "artifact_bytes=%llu quota=%llu", (unsigned long long)p->artifact_bytes,
            (unsigned long long)p->options.artifact_bytes_max);
    wpk_metric_set(WPK_GAUGE_BUILDS_HELD, 0, hold);
    p->builds_held = hold;
    p->wanted_bytes = hold ? p->wanted_bytes : 0;
    wpk_executor_follow_up(p, &event);
}

static bool is_there(struct wpk_executor *p, const char *sha256)
{
    bool found = wpk_history_has_artifact(p->reader, sha256);
    return wpk_store_take_status(p->reader, NULL) == WPK_OK && found;
}

/* For good: the worker gives the work item back, and nobody is leased anything to build until
 * there is room for this one. */
static void refuse_room(struct wpk_executor *p, const struct wpk_effect *effect)
{
    struct wpk_diag diag = {0};
    uint64_t size = effect->message->bytes_size;
    wpk_diag_set(&diag, "no room for %llu bytes: the artifacts have reached their quota of %llu",
                 (unsigned long long)size, (unsigned long long)p->options.artifact_bytes_max);
    hold_builds(p, true);
    p->wanted_bytes = size > p->wanted_bytes ? size : p->wanted_bytes;
    wpk_metric_add(WPK_COUNTER_ARTIFACTS_REFUSED, 0, 1);
    wpk_executor_reply_error(p, &effect->address, effect->message->session, WPK_ENOSPC, &diag);
}

bool wpk_executor_admit_upload(struct wpk_executor *p, const struct wpk_effect *effect)
{
    const char *sha256 = effect->message->sha256;
    uint64_t max = p->options.artifact_bytes_max;
    uint64_t wanted = p->artifact_bytes + p->upload_bytes + effect->message->bytes_size;
    bool admitted = max == 0 || wanted <= max || is_there(p, sha256) ||
                    wpk_executor_is_uploading(p, sha256); /* once more: it needs no room */
    if (!admitted) {
        refuse_room(p, effect);
    }
    return admitted;
}

struct prune_write {
    struct wpk_effect_write effect;
    bool over;                /* there are too many; else they are only counted */
    uint64_t low;             /* bytes of all rows that may be left then */
    uint64_t total;           /* after it */
    char (*used)[WPK_ID_MAX]; /* [used_count]: what live searches may end with, or have to run */
    uint32_t used_count;
    char pruned[PRUNE_MAX][WPK_ID_MAX];
    uint32_t count;
};

static void perform_prune(struct wpk_store_write *write, struct wpk_store *store)
{
    struct prune_write *mine = (struct prune_write *)write;
    uint64_t bytes = wpk_history_artifact_bytes(store);
    if (mine->over) {
        for (uint32_t i = 0; i < mine->used_count; i++) {
            wpk_history_use_artifact(store, mine->used[i]);
        }
        mine->count = wpk_history_prune_artifacts(store, bytes > mine->low ? bytes - mine->low : 0,
                                                  mine->pruned, PRUNE_MAX);
    }
    mine->total = wpk_history_artifact_bytes(store);
    wpk_metric_set(WPK_GAUGE_ARTIFACT_BYTES, 0, (int64_t)mine->total);
}

/* Rows may take so much before some go, and as little is left of them then: room for what comes
 * meanwhile, and for what was refused. */
static uint64_t high_bytes(const struct wpk_executor *p)
{
    uint64_t max = p->options.artifact_bytes_max;
    return max - max / 20;
}

static uint64_t low_bytes(const struct wpk_executor *p)
{
    uint64_t max = p->options.artifact_bytes_max;
    uint64_t room = max / 10 > p->wanted_bytes ? max / 10 : p->wanted_bytes;
    return room < max ? max - room : 0;
}

static void on_prune(struct wpk_store_write *write, wpk_err err,
                     const struct wpk_diag *diag WPK_UNUSED)
{
    const struct prune_write *mine = (const struct prune_write *)write;
    struct wpk_executor *p = mine->effect.executor;
    p->pruning = false;
    if (!wpk_executor_is_current(write, err)) {
        return;
    }
    uint64_t max = p->options.artifact_bytes_max;
    p->artifact_bytes = mine->total;
    p->artifacts_tight = max != 0 && mine->total > max / 2;
    if (max == 0 || mine->total <= low_bytes(p)) {
        hold_builds(p, false);
    } else if (mine->total > high_bytes(p) && mine->count < PRUNE_MAX) { /* and none can go */
        hold_builds(p, true);
    }
    if (mine->count == 0) {
        return;
    }
    for (uint32_t i = 0; i < mine->count; i++) {
        if (!wpk_executor_is_uploading(p, mine->pruned[i])) { /* else its row comes back */
            wpk_executor_remove_artifact(p, mine->pruned[i]);
        }
    }
    p->prune_ns = wpk_executor_now_ns(p); /* there may be more, once these are removed */
    wpk_metric_add(WPK_COUNTER_ARTIFACTS_EVICTED, 0, mine->count);
}

/* One more; it is only counted where there is no list yet. */
static void add_used(struct prune_write *write, const char *sha256)
{
    if (write->used != NULL) {
        memcpy(write->used[write->used_count], sha256, WPK_ID_MAX);
    }
    write->used_count++;
}

/* Built and not run yet: used by the run, if there will be one. */
static void add_built(struct prune_write *write, const struct wpk_work_item *item, bool will_run)
{
    bool leased = item->standing == WPK_STANDING_LEASED;
    if (item->built != NULL && (leased || (item->standing == WPK_STANDING_OPEN && will_run))) {
        add_used(write, item->built->artifact_sha256);
    }
}

static void add_all(const struct wpk_executor *p, uint64_t now_ns, struct prune_write *write)
{
    write->used_count = 0;
    for (uint32_t i = 0; i < p->coordinator->search_count; i++) {
        const struct wpk_search *search = p->coordinator->searches[i];
        for (uint32_t j = 0; j < search->best_count && j < WPK_FINAL_OWN_MAX; j++) {
            add_used(write, search->best[j].trial.artifact_sha256);
        }
        bool asks_will_run = wpk_ready_will_run_asks(search, now_ns);
        for (uint32_t n = search->told_count; n < search->ask_count; n++) {
            add_built(write, wpk_asks_get(search, n), asks_will_run);
        }
        add_built(write, &search->plain.item, wpk_ready_will_run(search));
    }
}

void wpk_executor_prune(struct wpk_executor *p)
{
    uint64_t now_ns = wpk_executor_now_ns(p);
    if (!p->pruning && p->removal_count == 0 && now_ns >= p->prune_ns) {
        struct prune_write *write =
            wpk_executor_new_write(p, sizeof *write, perform_prune, on_prune);
        write->effect.write.alone = true;
        write->over = p->builds_held || p->artifact_bytes > high_bytes(p);
        write->low = low_bytes(p);
        /* A final may come long after its contenders were built, and so may a worker that runs what
         * waits for one. */
        if (write->over) {
            add_all(p, now_ns, write); /* to count them */
        }
        if (write->used_count > 0) {
            write->used = wpk_batch_memory(p->batch, write->used_count * sizeof *write->used);
            add_all(p, now_ns, write);
        }
        p->pruning = true;
        p->prune_ns = now_ns + PRUNE_MS * WPK_NS_PER_MS;
    }
}

void wpk_executor_limit_artifacts(struct wpk_executor *p, uint64_t bytes_max, uint32_t per_problem)
{
    p->options.artifact_bytes_max = bytes_max;
    p->options.artifacts_per_problem = per_problem;
    p->prune_ns = 0; /* what is less than before holds with the next tick */
    if (bytes_max == 0) {
        hold_builds(p, false); /* nobody looks any more */
    }
}
