/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow. */
#ifndef WPK_COORDINATOR_STATE_GROW_H
#define WPK_COORDINATOR_STATE_GROW_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

/* Return the array with room for one item more than `count` items of `size` bytes; it may move. */
void *wpk_grow(void *items, uint32_t count, uint32_t *capacity, size_t size);

#endif
