/* SPDX-License-Identifier: Apache-2.0 */
/* An event is stepped, and each effect of the step is handed to the file that performs it. */
#include "coordinator/effects/executor_parts.h"

#include "common/log.h"

/* ---- effects */

static void perform(struct wpk_executor *p, const struct wpk_effect *effect)
{
    switch (effect->kind) {
    case WPK_EFFECT_REPLY:
        wpk_executor_trace(p, "leased", effect->message);
        wpk_outbox_reply(&p->batch->outbox, &effect->address, effect->message);
        break;
    case WPK_EFFECT_RESPOND_JOB:
    case WPK_EFFECT_RESPOND_WORKER:
    case WPK_EFFECT_RESPOND_PROBLEM:
        p->options.answer(p, effect, wpk_executor_hold_answer(p, effect->request));
        break;
    case WPK_EFFECT_OPEN_SEARCH:
        wpk_executor_open_search(p, effect);
        break;
    case WPK_EFFECT_PUT_PLAIN:
        wpk_executor_put_plain(p, effect);
        break;
    case WPK_EFFECT_PUT_KERNEL:
        wpk_executor_put_kernel(p, effect);
        break;
    case WPK_EFFECT_PUT_ARTIFACT:
        if (wpk_executor_admit_upload(p, effect)) {
            wpk_executor_put_artifact(p, effect);
        }
        break;
    case WPK_EFFECT_GET_ARTIFACT:
        wpk_executor_get_artifact(p, effect);
        break;
    case WPK_EFFECT_ASK:
        wpk_search_pool_ask(p->pool, effect->search, effect->count);
        break;
    case WPK_EFFECT_TELL:
        wpk_executor_tell(p, effect);
        break;
    case WPK_EFFECT_CLOSE_SEARCH:
        wpk_search_pool_close(p->pool, effect->handle);
        break;
    case WPK_EFFECT_WARN:
        wpk_log(WPK_LOG_WARN, effect->text, "%s", effect->detail);
        break;
    case WPK_EFFECT_LOG:
        wpk_log(WPK_LOG_INFO, effect->text, "%s", effect->detail);
        break;
    default:
        WPK_ASSERT(wpk_executor_store(p, effect));
    }
}

void wpk_executor_step_one(struct wpk_executor *p, struct wpk_event *event)
{
    event->now_ns = wpk_executor_now_ns(p);
    event->wall_ns = wpk_clock_wall_ns(p->options.clock);
    p->opening = event->kind == WPK_EVENT_OPENED;
    /* Memory that the step allocates for its effects lives as long as the batch that they are
     * in. */
    p->effects.arena = p->batch->arena;
    wpk_coordinator_step(p->coordinator, event, &p->effects);
    p->batch->arena = p->effects.arena;
    for (uint32_t i = 0; i < p->effects.count && wpk_executor_may_write(p); i++) {
        perform(p, &p->effects.items[i]);
    }
}

/* ---- events put off */

void wpk_executor_step_events(struct wpk_executor *p)
{
    for (uint32_t i = 0; i < p->event_count; i++) {
        struct wpk_event event = p->events[i]; /* the array may move */
        wpk_executor_step_one(p, &event);
        wpk_event_fini(&event);
    }
    p->event_count = 0;
}

void wpk_executor_drop_events(struct wpk_executor *p)
{
    for (uint32_t i = 0; i < p->event_count; i++) {
        wpk_event_fini(&p->events[i]);
    }
    p->event_count = 0;
}
