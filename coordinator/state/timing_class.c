/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/timing_class.h"

#include "coordinator/state/flow.h"
#include "coordinator/state/state.h"
#include "coordinator/state/table.h"
#include "coordinator/state/text.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wpk_timing_class_providers(const struct wpk_hello *hello, char out[WPK_KEY_TEXT_MAX])
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < hello->provider_count && at < WPK_KEY_TEXT_MAX; i++) {
        at += (size_t)snprintf(out + at, WPK_KEY_TEXT_MAX - at, "%s%s", i > 0 ? ";" : "",
                               hello->providers[i].name);
    }
}

void wpk_timing_class_text(const char *device_class, const struct wpk_hello *hello,
                           char out[WPK_TIMING_CLASS_TEXT_MAX])
{
    char providers[WPK_KEY_TEXT_MAX];
    wpk_timing_class_providers(hello, providers);
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
        timing = calloc(1, sizeof *timing);
        WPK_ASSERT(timing != NULL);
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
