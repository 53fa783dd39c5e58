/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects, to and from workers. Their files are written and read on the writer's thread, and
 * answered afterwards: what a worker is told it may name, is there. All rows together, and what is
 * on its way to one, never exceed the quota. */
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
    size_t size;    /* put: of these */
    uint64_t total; /* bytes of all rows, after this one was changed */
    wpk_err err;    /* this artifact's own, which is no failure of the store */
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
        wpk_history_put_artifact(store, mine->sha256, mine->size);
        mine->total = wpk_history_artifact_bytes(store);
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
    mine->effect.performer->upload_bytes -= mine->size;
    if (err != WPK_OK) {
        refuse_lost(mine, err, diag);
    } else if (mine->err != WPK_OK) {
        refuse_put(mine);
    } else {
        mine->effect.performer->artifact_bytes = mine->total;
        wpk_performer_reply(mine->effect.performer, &mine->address, &ack);
    }
}

/* A farm of builders may be faster than those who run what it makes, and a quota small: nothing
 * more is leased to be built until there is room. */
static void hold_builds(struct wpk_performer *p, bool hold)
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
    wpk_performer_follow_up(p, &event);
}

static bool has_room(const struct wpk_performer *p, uint64_t size)
{
    uint64_t max = p->options.artifact_bytes_max;
    return max == 0 || p->artifact_bytes + p->upload_bytes + size <= max;
}

static bool is_there(struct wpk_performer *p, const char *sha256)
{
    bool found = wpk_history_has_artifact(p->reader, sha256);
    return wpk_store_take_status(p->reader, NULL) == WPK_OK && found;
}

/* For good: the worker gives the piece of work back, and nobody is leased anything to build until
 * there is room for this one. */
static void refuse_room(struct wpk_performer *p, const struct wpk_effect *effect)
{
    struct wpk_diag diag = {0};
    uint64_t size = effect->message->bytes_size;
    wpk_diag_set(&diag, "no room for %llu bytes: the artifacts have reached their quota of %llu",
                 (unsigned long long)size, (unsigned long long)p->options.artifact_bytes_max);
    hold_builds(p, true);
    p->wanted_bytes = size > p->wanted_bytes ? size : p->wanted_bytes;
    wpk_metric_add(WPK_COUNTER_ARTIFACTS_REFUSED, 0, 1);
    wpk_performer_reply_error(p, &effect->address, effect->message->session, WPK_ENOSPC, &diag);
}

void wpk_performer_put_artifact(struct wpk_performer *p, const struct wpk_effect *effect)
{
    /* One that is there needs none. */
    if (!has_room(p, effect->message->bytes_size) && !is_there(p, effect->message->sha256)) {
        refuse_room(p, effect);
        return;
    }
    struct artifact_order *order = add_order(p, effect, perform_put, on_put);
    wpk_buf_append(&order->bytes, effect->message->bytes, effect->message->bytes_size);
    WPK_ASSERT(wpk_buf_status(&order->bytes) == WPK_OK);
    order->size = order->bytes.size;
    p->upload_bytes += order->size;
    p->batch->bytes += order->size;
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
    mine->total = wpk_history_artifact_bytes(store);
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
        mine->effect.performer->artifact_bytes = mine->total;
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
    bool over;                /* there are too many; else they are only counted */
    uint64_t low;             /* bytes of all rows that may be left then */
    uint64_t total;           /* after it */
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

static void perform_prune(struct wpk_order *order, struct wpk_store *store)
{
    struct prune_order *mine = (struct prune_order *)order;
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
static uint64_t high_bytes(const struct wpk_performer *p)
{
    uint64_t max = p->options.artifact_bytes_max;
    return max - max / 20;
}

static uint64_t low_bytes(const struct wpk_performer *p)
{
    uint64_t max = p->options.artifact_bytes_max;
    uint64_t room = max / 10 > p->wanted_bytes ? max / 10 : p->wanted_bytes;
    return room < max ? max - room : 0;
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
        order->over = p->builds_held || p->artifact_bytes > high_bytes(p);
        order->low = low_bytes(p);
        if (order->over) {
            list_used(p, order);
        }
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
        hold_builds(p, false); /* nobody looks any more */
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
