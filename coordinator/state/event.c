/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/event.h"

#include "coordinator/state/model.h"

#include <stdlib.h>

void wpk_opened_free(struct wpk_opened *opened)
{
    if (opened == NULL) {
        return;
    }
    for (uint32_t i = 0; i < opened->best_count; i++) {
        free(opened->best[i].candidate);
    }
    for (uint32_t i = 0; i < opened->vendor_count; i++) {
        free(opened->vendors[i].text);
    }
    wpk_built_free(opened->plain.built);
    wpk_work_items_free(opened->window, opened->ask_count - opened->told_count);
    free(opened);
}

void wpk_asked_free(struct wpk_asked *asked)
{
    if (asked != NULL) {
        wpk_work_items_free(asked->items, asked->count);
        free(asked);
    }
}

void wpk_event_fini(struct wpk_event *event)
{
    if (event->kind == WPK_EVENT_OPENED) {
        wpk_opened_free(event->opened);
    } else if (event->kind == WPK_EVENT_ASKED) {
        wpk_asked_free(event->asked);
    } else if (event->kind == WPK_EVENT_KERNEL_CHANGED) {
        free(event->kernel);
    }
}
