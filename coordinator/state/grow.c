/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/grow.h"

#include <stdlib.h>

void *wpk_grow(void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return items;
    }
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    void *grown = realloc(items, *capacity * size);
    WPK_ASSERT(grown != NULL);
    return grown;
}
