/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/event.h"

#include "coordinator/state/opened.h"

#include <stdlib.h>

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
