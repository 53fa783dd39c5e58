/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects, to and from workers. Their files are written and read on the writer's thread, and
 * answered afterwards: what a worker is told it may name, is there. */
#include "coordinator/performer_parts.h"

#include "coordinator/artifact.h"

#include <string.h>

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
    } else if (mine->err != WPK_ECORRUPT) {
        wpk_store_fail(store, mine->err, &mine->diag); /* the disk is full, or worse */
    }
}

static void on_put(struct wpk_order *order, wpk_err err, const struct wpk_diag *diag)
{
    struct artifact_order *mine = (struct artifact_order *)order;
    struct wpk_message ack = {.kind = WPK_MESSAGE_ACK, .session = mine->session};
    (void)diag;
    wpk_buf_fini(&mine->bytes);
    if (err != WPK_OK) {
        return; /* the worker asks again */
    }
    if (mine->err != WPK_OK) {
        wpk_performer_reply_error(mine->effect.performer, &mine->address, mine->session, mine->err,
                                  &mine->diag);
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

static void perform_get(struct wpk_order *order, struct wpk_store *store)
{
    struct artifact_order *mine = (struct artifact_order *)order;
    mine->err = wpk_artifact_get(mine->effect.performer->options.data_dir, mine->sha256,
                                 &mine->bytes, &mine->diag);
    if (mine->err == WPK_OK) {
        wpk_history_use_artifact(store, mine->sha256);
    }
}

static void on_get(struct wpk_order *order, wpk_err err, const struct wpk_diag *diag)
{
    struct artifact_order *mine = (struct artifact_order *)order;
    (void)diag;
    if (err == WPK_OK && mine->err != WPK_OK) {
        wpk_performer_reply_error(mine->effect.performer, &mine->address, mine->session,
                                  mine->err == WPK_ENOENT ? WPK_ECORRUPT : mine->err, &mine->diag);
    } else if (err == WPK_OK) {
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
