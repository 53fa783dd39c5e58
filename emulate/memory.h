/* SPDX-License-Identifier: Apache-2.0 */
/* The global memory of an emulated GPU. Addresses are those of the host; each allocation has guard
 * zones, and no address is used twice, so that what was freed is known to be. */
#ifndef WPK_EMULATE_MEMORY_H
#define WPK_EMULATE_MEMORY_H

#include "common/err.h"

#include <stdint.h>

struct wpk_device_range {
    uint64_t from, to; /* the byte after the last */
    bool freed;
};

/* Invariants: ranges ascend and are apart. */
struct wpk_device_memory {
    struct wpk_device_range *range; /* owned */
    size_t range_count, range_capacity;
    uint8_t *reserved; /* address space without memory */
    uint64_t next;     /* the first address that was never used */
    uint64_t used;     /* bytes allocated and not freed */
    uint64_t size_max; /* bytes */
};

/*   errors  WPK_ENOMEM, WPK_ESYSTEM */
WPK_MUST_CHECK wpk_err wpk_device_memory_init(struct wpk_device_memory *memory, uint64_t size_max);
void wpk_device_memory_fini(struct wpk_device_memory *memory);

/* Allocate `size` bytes, aligned to 256.
 *   errors  WPK_ENOMEM: more than size_max would be used; WPK_EINVAL: size is 0 */
WPK_MUST_CHECK wpk_err wpk_device_memory_new(struct wpk_device_memory *memory, uint64_t size,
                                             uint64_t *address);
/*   errors  WPK_EINVAL: no allocation begins there */
WPK_MUST_CHECK wpk_err wpk_device_memory_free(struct wpk_device_memory *memory, uint64_t address);

/* The allocation that `address` lies in, or NULL. */
const struct wpk_device_range *wpk_device_memory_find(const struct wpk_device_memory *memory,
                                                      uint64_t address);

#endif
