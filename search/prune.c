/* SPDX-License-Identifier: Apache-2.0 */
#include "search/prune.h"

#include "search/variant.h"

#include <math.h>

void wpk_space_prune(struct wpk_space *space, struct wpk_accuracy accuracy)
{
    bool keep[WPK_VARIANTS_MAX];
    space->error_least = INFINITY;
    for (int v = 0; v < space->variant_count; v++) {
        const struct wpk_variant *variant = &space->variants[v];
        if (variant->state == WPK_VARIANT_DERIVED) {
            space->error_least = fmin(space->error_least, wpk_variant_error_least(variant));
        }
    }
    for (int v = 0; v < space->variant_count; v++) {
        struct wpk_variant *variant = &space->variants[v];
        keep[v] = variant->state != WPK_VARIANT_DERIVED ||
                  wpk_variant_prune(variant, accuracy, space->error_least);
    }
    wpk_variants_keep(space, keep);
    space->pruned = true;
    space->accuracy = accuracy;
    wpk_space_measure(space);
}
