/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects, to and from workers. Their files are written and read on the writer's thread, and
 * answered afterwards: what a worker is told it may name, is there. */
#include "coordinator/effects/performer_parts.h"

#include "common/log.h"
#include "common/metrics.h"
#include "coordinator/store/artifact.h"
#include "schema/message_trace.h"

#include <string.h>

#define PUT_RETRY_MS 5000 /* for a worker whose artifact could not be written */

struct artifact_order {
    struct wpk_effect_order effect;
    struct wpk_net_address address;
    uint64_t session;
    char sha256[WPK_ID_MAX];
    struct wpk_buf bytes;
    wpk_err err; /* this artifact's own, which is no failure of the store */
    struct wpk_diag diag;
};

static struct artifact_order *
add_order(struct wpk_performer *p, const struct wpk_effect *effect,
          void (*perform)(struct wpk_order *order, struct wpk_store *store),
          void (*done)(struct wpk_order *order, wpk_err err, const struct wpk_diag *diag))
{
    struct artifact_order *order = wpk_performer_write(p, sizeof *order, perform, done);
    order->effect.order.alone = true;
    order->address = effect->address;
    order->session = effect->message->session;
    memcpy(order->sha256, effect->message->sha256, sizeof order->sha256);
    return order;
}

static void perform_put(struct wpk_order *order, struct wpk_store *store)
{
    struct artifact_order *mine = (struct artifact_order *)order;
    mine->err = wpk_artifact_put(mine->effect.performer->options.data_dir, mine->sha256,
                                 mine->bytes.data, mine->bytes.size, &mine->diag);
    if (mine->err == WPK_OK) {
        wpk_history_put_artifact(store, mine->sha256, mine->bytes.size);
    } else if (mine->err == WPK_ENOSPC) {
        /* The disk is full: what would be leased now could not be kept. */
        wpk_store_fail(store, mine->err, &mine->diag);
    } else if (mine->err != WPK_ECORRUPT) {
        wpk_log_failure(WPK_LOG_ERROR, "artifact_not_written", mine->err, &mine->diag);
    }
}

/* Nothing of it was promised: its worker still has it, and the store works on. Other codes mean
 * something else to a worker: that it is not let in, or not known. */
static void refuse_put(const struct artifact_order *mine)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_ERROR,
                                  .session = mine->session,
                                  .err = mine->err == WPK_ECORRUPT ? mine->err : WPK_EIO,
                                  .text = mine->diag.text[0] != '\0' ? mine->diag.text
                                                                     : wpk_err_text(mine->err),
                                  .retry_ms = mine->err == WPK_ECORRUPT ? 0 : PUT_RETRY_MS};
    wpk_performer_reply(mine->effect.performer, &mine->address, &message);
}

/* The batch that it was in was not written. */
static void refuse_lost(const struct artifact_order *mine, wpk_err err, const struct wpk_diag *diag)
{
    if (err != WPK_ECLOSED) {
        wpk_performer_refuse(mine->effect.performer, &mine->address, err, diag);
    }
}

static void on_put(struct wpk_order *order, wpk_err err, const struct wpk_diag *diag)
{
    struct artifact_order *mine = (struct artifact_order *)order;
    struct wpk_message ack = {.kind = WPK_MESSAGE_ACK, .session = mine->session};
    wpk_buf_fini(&mine->bytes);
    if (err != WPK_OK) {
        refuse_lost(mine, err, diag);
    } else if (mine->err != WPK_OK) {
        refuse_put(mine);
    } else {
        wpk_performer_reply(mine->effect.performer, &mine->address, &ack);
    }
}

void wpk_performer_put_artifact(struct wpk_performer *p, const struct wpk_effect *effect)
{
    struct artifact_order *order = add_order(p, effect, perform_put, on_put);
    wpk_buf_append(&order->bytes, effect->message->bytes, effect->message->bytes_size);
    WPK_ASSERT(wpk_buf_status(&order->bytes) == WPK_OK);
    p->batch->bytes += order->bytes.size;
}

/* One that only cannot be read now, for want of a descriptor perhaps, is there. */
static bool is_lost(wpk_err err)
{
    return err == WPK_ENOENT || err == WPK_ECORRUPT;
}

static void perform_get(struct wpk_order *order, struct wpk_store *store)
{
    struct artifact_order *mine = (struct artifact_order *)order;
    mine->err = wpk_artifact_get(mine->effect.performer->options.data_dir, mine->sha256,
                                 &mine->bytes, &mine->diag);
    if (mine->err == WPK_OK) {
        wpk_history_use_artifact(store, mine->sha256);
    } else if (is_lost(mine->err)) {
        wpk_history_lose_artifact(store, mine->sha256); /* it can be made once more */
    }
}

/* Before its worker can say that it could not do something without. */
static void tell_lost(struct artifact_order *mine)
{
    struct wpk_event lost = {.kind = WPK_EVENT_ARTIFACT_LOST};
    memcpy(lost.sha256, mine->sha256, sizeof lost.sha256);
    if (wpk_performer_is_current(&mine->effect.order, WPK_OK)) {
        wpk_performer_follow_up(mine->effect.performer, &lost);
    }
}

static void on_get(struct wpk_order *order, wpk_err err, const struct wpk_diag *diag)
{
    struct artifact_order *mine = (struct artifact_order *)order;
    if (err != WPK_OK) {
        refuse_lost(mine, err, diag);
    } else if (mine->err != WPK_OK) {
        if (is_lost(mine->err)) {
            tell_lost(mine);
        }
        wpk_performer_reply_error(mine->effect.performer, &mine->address, mine->session,
                                  mine->err == WPK_ENOENT ? WPK_ECORRUPT : mine->err, &mine->diag);
    } else {
        struct wpk_message message = {.kind = WPK_MESSAGE_ARTIFACT,
                                      .session = mine->session,
                                      .bytes = mine->bytes.data,
                                      .bytes_size = mine->bytes.size};
        memcpy(message.sha256, mine->sha256, sizeof message.sha256);
        wpk_performer_reply(mine->effect.performer, &mine->address, &message);
    }
    wpk_buf_fini(&mine->bytes);
}

void wpk_performer_get_artifact(struct wpk_performer *p, const struct wpk_effect *effect)
{
    add_order(p, effect, perform_get, on_get);
    p->batch->bytes += WPK_ARTIFACT_SIZE_MAX / 4; /* what it will be is not known yet */
}

/* ---- the quota */

#define PRUNE_MS 2000
#define PRUNE_MAX 64 /* artifacts that go at a time, so that no commit waits long */

struct prune_order {
    struct wpk_effect_order effect;
    uint64_t bytes_max; /* as it was when this was ordered: the performer's may change meanwhile */
    uint64_t bytes;     /* all that there are; after it, those that are left */
    bool held;          /* builders wait for room */
    char (*used)[WPK_ID_MAX]; /* [used_count]: what live searches may end with */
    uint32_t used_count;
    char pruned[PRUNE_MAX][WPK_ID_MAX];
    uint32_t count;
};

/* Their rows are gone; a file whose row has come back since is somebody's again. */
static void perform_remove(struct wpk_order *order, struct wpk_store *store)
{
    const struct prune_order *mine = (const struct prune_order *)order;
    for (uint32_t i = 0; i < mine->count; i++) {
        if (!wpk_history_has_artifact(store, mine->pruned[i])) {
            wpk_artifact_remove(mine->effect.performer->options.data_dir, mine->pruned[i]);
        }
    }
}

static void on_remove(struct wpk_order *order, wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_performer *p = ((struct prune_order *)order)->effect.performer;
    (void)err;
    (void)diag;
    p->pruning = false;
    p->prune_ns = wpk_performer_now_ns(p); /* there may be more */
}

/* Down to nine tenths, so that it is not at it all the time. */
static void perform_prune(struct wpk_order *order, struct wpk_store *store)
{
    struct prune_order *mine = (struct prune_order *)order;
    uint64_t max = mine->bytes_max;
    uint64_t low = max - max / 10;
    uint64_t bytes = wpk_history_artifact_bytes(store);
    if (max != 0 && (bytes > max || mine->held)) {
        for (uint32_t i = 0; i < mine->used_count; i++) {
            wpk_history_use_artifact(store, mine->used[i]);
        }
        mine->count = wpk_history_prune_artifacts(store, bytes > low ? bytes - low : 0,
                                                  mine->pruned, PRUNE_MAX);
    }
    mine->bytes = wpk_history_artifact_bytes(store);
    wpk_metric_set(WPK_GAUGE_ARTIFACT_BYTES, 0, (int64_t)mine->bytes);
}

/* A farm of builders may be faster than those who run what it makes: over the quota, with nothing
 * that can go, it waits until runs have made some room. */
static void hold_builds(struct wpk_performer *p, uint64_t bytes, uint64_t max)
{
    struct wpk_event event = {.kind = WPK_EVENT_HOLD_BUILDS};
    event.hold = max != 0 && bytes > (p->builds_held ? max - max / 20 : max);
    p->artifacts_tight = max != 0 && bytes > max / 2;
    if (event.hold == p->builds_held) {
        return;
    }
    wpk_log(event.hold ? WPK_LOG_WARN : WPK_LOG_INFO, event.hold ? "builds_held" : "builds_go_on",
            "artifact_bytes=%llu quota=%llu", (unsigned long long)bytes, (unsigned long long)max);
    wpk_metric_set(WPK_GAUGE_BUILDS_HELD, 0, event.hold);
    p->builds_held = event.hold;
    wpk_performer_follow_up(p, &event);
}

static void on_prune(struct wpk_order *order, wpk_err err, const struct wpk_diag *diag)
{
    const struct prune_order *mine = (const struct prune_order *)order;
    struct wpk_performer *p = mine->effect.performer;
    (void)diag;
    p->pruning = false;
    if (!wpk_performer_is_current(order, err)) {
        return;
    }
    if (mine->count < PRUNE_MAX) { /* or there is more that can go */
        hold_builds(p, mine->bytes, mine->bytes_max);
    }
    if (mine->count == 0) {
        return;
    }
    struct prune_order *next = wpk_performer_write(p, sizeof *next, perform_remove, on_remove);
    next->effect.order.alone = true;
    memcpy(next->pruned, mine->pruned, sizeof next->pruned);
    next->count = mine->count;
    p->pruning = true;
    wpk_metric_add(WPK_COUNTER_ARTIFACTS_EVICTED, 0, mine->count);
}

/* A final may come long after its contenders were built. */
static void list_used(struct wpk_performer *p, struct prune_order *order)
{
    uint32_t count = wpk_coordinator_search_count(p->coordinator);
    if (count == 0) {
        return;
    }
    order->used =
        wpk_batch_memory(p->batch, (size_t)count * WPK_FINAL_OWN_MAX * sizeof *order->used);
    for (uint32_t i = 0; i < count; i++) {
        const struct wpk_search *search = wpk_coordinator_search(p->coordinator, i);
        for (uint32_t j = 0; j < search->best_count && j < WPK_FINAL_OWN_MAX; j++) {
            memcpy(order->used[order->used_count++], search->best[j].trial.artifact_sha256,
                   WPK_ID_MAX);
        }
    }
}

void wpk_performer_prune(struct wpk_performer *p)
{
    uint64_t now_ns = wpk_performer_now_ns(p);
    if (!p->pruning && now_ns >= p->prune_ns) {
        struct prune_order *order = wpk_performer_write(p, sizeof *order, perform_prune, on_prune);
        order->effect.order.alone = true;
        order->bytes_max = p->options.artifact_bytes_max;
        order->held = p->builds_held;
        list_used(p, order);
        p->pruning = true;
        p->prune_ns = now_ns + PRUNE_MS * WPK_NS_PER_MS;
    }
}

void wpk_performer_limit_artifacts(struct wpk_performer *p, uint64_t bytes_max,
                                   uint32_t per_problem)
{
    p->options.artifact_bytes_max = bytes_max;
    p->options.artifacts_per_problem = per_problem;
    p->prune_ns = 0; /* what is less than before holds with the next tick */
    if (bytes_max == 0) {
        hold_builds(p, 0, 0); /* nobody looks any more */
    }
}

wpk_err wpk_performer_forget_absent(struct wpk_performer *p, struct wpk_message *message,
                                    struct wpk_diag *diag)
{
    for (uint32_t i = 0; i < message->result_count; i++) {
        char *sha256 = message->results[i].record.artifact_sha256;
        if (sha256[0] != '\0' && !wpk_history_has_artifact(p->reader, sha256)) {
            char id[WPK_WORK_ID_TEXT_SIZE];
            wpk_work_id_print(message->results[i].id, id);
            wpk_log(WPK_LOG_WARN, "artifact_absent", "work=%s sha256=%s", id, sha256);
            sha256[0] = '\0';
        }
    }
    return wpk_store_take_status(p->reader, diag);
}
