/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's caches: evict memory from them, or read it into them. For measurements. */
#ifndef WPK_COMMON_CACHES_H
#define WPK_COMMON_CACHES_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

/* The size of the data cache of `level`, 1 to 3, that `cpu` uses, in bytes; 0: unknown.
 *   source  sysfs, whose sizes are those of one cache; else sysconf, which on some machines adds up
 *           all caches of a level */
int64_t wpk_caches_size(int cpu, int level);

/* Evict the lines of `data` from the caches of all cores; changed lines are written back. Returns
 * the number of lines. */
size_t wpk_caches_flush(const void *data, size_t size);

/* Read twice the last-level cache's size on each CPU that this thread may use, which evicts the
 * caches' content. The memory is kept for the next call. One thread at a time may call this.
 *
 *   errors  WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_caches_stream(void);

/* Read each cache line of `data` into the caches. */
void wpk_caches_read(const void *data, size_t size);

#endif
