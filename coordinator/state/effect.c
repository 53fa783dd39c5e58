/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/effect.h"

#include "coordinator/state/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EFFECTS_FIRST 256 /* room for them at first */

void wpk_effects_init(struct wpk_effects *effects)
{
    memset(effects, 0, sizeof *effects);
    wpk_arena_init(&effects->arena, 0);
    effects->items = WPK_DEMAND(calloc(EFFECTS_FIRST, sizeof *effects->items));
    effects->capacity = EFFECTS_FIRST;
}

void wpk_effects_fini(struct wpk_effects *effects)
{
    free(effects->items);
    wpk_arena_fini(&effects->arena);
    memset(effects, 0, sizeof *effects);
}

struct wpk_effect *wpk_effect_add(struct wpk_coordinator *c, enum wpk_effect_kind kind)
{
    struct wpk_effects *effects = c->effects;
    effects->items =
        wpk_grow(effects->items, effects->count, &effects->capacity, sizeof *effects->items);
    struct wpk_effect *effect = &effects->items[effects->count++];
    memset(effect, 0, sizeof *effect);
    effect->kind = kind;
    return effect;
}

void *wpk_effect_memory(struct wpk_coordinator *c, size_t count, size_t size)
{
    void *memory = wpk_arena_alloc(&c->effects->arena, count, size);
    WPK_ASSERT(memory != NULL); /* the daemon dies of want of memory, and restarts */
    return memory;
}

char *wpk_effect_text(struct wpk_coordinator *c, const char *text)
{
    return WPK_DEMAND(wpk_arena_copy_text(&c->effects->arena, text));
}

static void add_log(struct wpk_coordinator *c, enum wpk_effect_kind kind, const char *event,
                    const char *format, va_list args)
{
    const size_t size = 512;
    char *detail = wpk_effect_memory(c, 1, size);
    vsnprintf(detail, size, format, args);
    struct wpk_effect *effect = wpk_effect_add(c, kind);
    effect->text = event;
    effect->detail = detail;
}

void wpk_effect_log(struct wpk_coordinator *c, const char *event, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_log(c, WPK_EFFECT_LOG, event, format, args);
    va_end(args);
}

void wpk_effect_warn(struct wpk_coordinator *c, const char *event, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_log(c, WPK_EFFECT_WARN, event, format, args);
    va_end(args);
}

void wpk_effect_problem(struct wpk_coordinator *c, int status, wpk_err err, uint32_t retry_after_s,
                        const char *text)
{
    if (c->event->request == 0) {
        return;
    }
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_RESPOND_PROBLEM);
    effect->request = c->event->request;
    effect->status = status;
    effect->err = err;
    effect->retry_after_s = retry_after_s;
    effect->problem = text;
}

/* ---- replies */

void wpk_reply_send(struct wpk_coordinator *c, const struct wpk_net_address *address,
                    const struct wpk_message *message)
{
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_REPLY);
    effect->address = *address;
    effect->message = message;
}

struct wpk_message *wpk_reply_new(struct wpk_coordinator *c, enum wpk_message_kind kind,
                                  uint64_t session)
{
    struct wpk_message *message = wpk_effect_memory(c, 1, sizeof *message);
    message->kind = kind;
    message->session = session;
    return message;
}

void wpk_reply_error(struct wpk_coordinator *c, wpk_err err, const char *text)
{
    struct wpk_message *message = wpk_reply_new(c, WPK_MESSAGE_ERROR, c->event->message->session);
    message->err = err;
    message->text = text;
    wpk_reply_send(c, &c->event->address, message);
}

void wpk_reply_acks(struct wpk_coordinator *c, enum wpk_ack *acks, uint32_t count)
{
    struct wpk_message *message = wpk_reply_new(c, WPK_MESSAGE_ACK, c->event->message->session);
    message->acks = acks;
    message->ack_count = count;
    wpk_reply_send(c, &c->event->address, message);
}
