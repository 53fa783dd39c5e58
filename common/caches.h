/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor's caches hold: memory evicted from them, or brought in. For measurements. */
#ifndef WPK_COMMON_CACHES_H
#define WPK_COMMON_CACHES_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

/* The size of the data cache of `level`, 1 to 3, that `cpu` uses, in bytes; 0 if nobody knows.
 *   source  sysfs, whose sizes are those of one cache; else sysconf, which on some machines adds up
 *           all caches of a level */
int64_t wpk_caches_size(int cpu, int level);

/* Evict the lines of `data` from the caches of all cores; changed ones are written back. Returns
 * how many lines there were. */
size_t wpk_caches_flush(const void *data, size_t size);

/* Read twice the last-level cache's size on each CPU that this thread may use, which evicts what
 * the caches held. The memory is kept for the next time. Not for two threads.
 *
 *   errors  WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_caches_stream(void);

/* Read each cache line of `data`, so that it lies in the caches. */
void wpk_caches_read(const void *data, size_t size);

#endif
