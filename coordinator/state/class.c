/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/class.h"

#include "coordinator/state/account.h"
#include "coordinator/state/state.h"
#include "coordinator/state/table.h"
#include "coordinator/state/text.h"

#include <stdio.h>
#include <stdlib.h>

void wpk_class_providers(const struct wpk_hello *hello, char out[WPK_KEY_TEXT_MAX])
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < hello->provider_count && at < WPK_KEY_TEXT_MAX; i++) {
        at += (size_t)snprintf(out + at, WPK_KEY_TEXT_MAX - at, "%s%s", i > 0 ? ";" : "",
                               hello->providers[i].name);
    }
}

void wpk_class_text(const char *device_class, const struct wpk_hello *hello,
                    char out[WPK_CLASS_TEXT_MAX])
{
    char providers[WPK_KEY_TEXT_MAX];
    wpk_class_providers(hello, providers);
    snprintf(out, WPK_CLASS_TEXT_MAX, "%s\n%s\n%s", device_class, hello->environment, providers);
}

struct wpk_class *wpk_class_use(struct wpk_coordinator *c, const char *text)
{
    struct wpk_class *kind = wpk_table_get_text(&c->classes, text);
    if (kind == NULL) {
        kind = calloc(1, sizeof *kind);
        WPK_ASSERT(kind != NULL);
        snprintf(kind->text, sizeof kind->text, "%s", text);
        wpk_table_put_text(&c->classes, kind->text, kind);
    }
    kind->use_count++;
    return kind;
}

void wpk_class_release(struct wpk_coordinator *c, struct wpk_class *kind)
{
    if (--kind->use_count == 0) {
        wpk_table_take_text(&c->classes, kind->text);
        wpk_class_free(kind);
    }
}

void wpk_class_free(struct wpk_class *kind)
{
    wpk_account_forget(kind);
    free(kind);
}
