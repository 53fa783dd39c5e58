/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/assemble.h"

#include <stdlib.h>

static int compare_size(const void *a, const void *b)
{
    const struct wpk_placement *x = *(const struct wpk_placement *const *)a;
    const struct wpk_placement *y = *(const struct wpk_placement *const *)b;

    if (x->size != y->size) {
        return x->size < y->size ? 1 : -1;
    }
    return x < y ? -1 : 1;
}

void wpk_placement_solve(struct wpk_placement *list, int count, int64_t *size)
{
    struct wpk_placement **order =
        WPK_DEMAND(calloc((size_t)count + 1, sizeof(struct wpk_placement *)));
    struct wpk_placement **placed =
        WPK_DEMAND(calloc((size_t)count + 1, sizeof(struct wpk_placement *)));

    *size = 0;
    for (int i = 0; i < count; i++) {
        order[i] = &list[i];
    }
    qsort(order, (size_t)count, sizeof(struct wpk_placement *), compare_size);
    for (int i = 0; i < count; i++) {
        int64_t offset = 0;
        for (int p = 0; p < i && placed[p]->offset < offset + order[i]->size; p++) {
            int64_t end = placed[p]->offset + placed[p]->size;
            bool together =
                order[i]->first <= placed[p]->last && placed[p]->first <= order[i]->last;
            if (together && end > offset) {
                offset = end;
            }
        }
        order[i]->offset = offset;
        /* Insert into the list sorted by offset. */
        int at = i;
        while (at > 0 && placed[at - 1]->offset > order[i]->offset) {
            placed[at] = placed[at - 1];
            at--;
        }
        placed[at] = order[i];
        *size = offset + order[i]->size > *size ? offset + order[i]->size : *size;
    }
    free(order);
    free(placed);
}
