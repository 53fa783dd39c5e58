/* SPDX-License-Identifier: Apache-2.0 */
/* The global memory of an emulated GPU. Addresses are those of the host; each allocation has guard
 * zones, and no address is used twice, so that what was freed is known to be. */
#ifndef WPK_TESTS_GPU_MEMORY_H
#define WPK_TESTS_GPU_MEMORY_H

#include "common/err.h"

#include <stdint.h>

/* Four bytes of global memory. Blocks have numbers, from 1 on over all launches; 0: none. */
struct wpk_device_word {
    uint32_t writer; /* the block that wrote last */
    uint32_t reader; /* the block of its launch that read first */
    uint8_t written; /* bytes that were ever written, a bit each */
    uint8_t write_bytes, read_bytes; /* of writer and reader */
};

struct wpk_device_range {
    uint64_t from, to; /* the byte after the last */
    bool freed;
    bool whole;  /* the host wrote all of it */
    bool stored; /* kernels wrote some of it */
    uint32_t visited; /* the first block of the last launch that accessed it */
    struct wpk_device_word *word; /* owned */
};

/* Invariants: ranges ascend and are apart. */
struct wpk_device_memory {
    struct wpk_device_range *range; /* owned */
    size_t range_count, range_capacity;
    uint8_t *reserved; /* address space without memory */
    uint64_t next;     /* the first address that was never used */
    uint64_t used;     /* bytes allocated and not freed */
    uint64_t size_max; /* bytes */
    uint32_t blocks;   /* that ran so far */
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

/* The host wrote these bytes, which lie in one allocation. */
void wpk_device_memory_store(struct wpk_device_memory *memory, uint64_t address, uint64_t size);

/* The allocation that `address` lies in, or NULL. */
struct wpk_device_range *wpk_device_memory_find(const struct wpk_device_memory *memory,
                                                uint64_t address);

enum wpk_device_verdict {
    WPK_DEVICE_RIGHT,
    WPK_DEVICE_UNWRITTEN, /* bytes are read that nobody wrote */
    WPK_DEVICE_RACE,      /* another block of the launch wrote the bytes that are read, or read
                             those that are written, and no atomic operation lies between */
    WPK_DEVICE_AGAIN,     /* another one wrote the bytes that are written: right if it wrote the
                             same, as where a last block of a tile moves inwards */
};

/* A block of a launch, and the launch's first block. */
struct wpk_device_visitor {
    uint32_t block, first;
    bool told; /* an atomic operation told it of what blocks before it wrote */
};

/* Note the block's access to bytes of the range, and judge it. An atomic operation reads. Readers
 * are not noted while the range is as the host wrote it. Not seen: a second reader or writer of a
 * word, besides the one that is noted; what a block does after an atomic operation. */
enum wpk_device_verdict wpk_device_memory_read(const struct wpk_device_range *range,
                                               uint64_t address, uint32_t size,
                                               const struct wpk_device_visitor *visitor);
enum wpk_device_verdict wpk_device_memory_write(struct wpk_device_range *range, uint64_t address,
                                                uint32_t size,
                                                const struct wpk_device_visitor *visitor);

#endif
