/* SPDX-License-Identifier: Apache-2.0 */
/* Makes caches cold, and parts of memory warm again. */
#ifndef WPK_BENCH_COLD_H
#define WPK_BENCH_COLD_H

#include "common/err.h"

#include <stddef.h>

/* What lies in the caches when a call is timed. All but WARM are timed one call a sample. */
#define BENCH_CONDITIONS_LIST(X)                                                                   \
    X(WARM, "warm")                     /* what the call before left there */                      \
    X(COLD_CONSTANTS, "cold-constants") /* input and output, nothing else */                       \
    X(COLD, "cold")                     /* nothing */

enum bench_conditions {
#define BENCH_CONDITIONS_ENUM(id, name) BENCH_CONDITIONS_##id,
    BENCH_CONDITIONS_LIST(BENCH_CONDITIONS_ENUM)
#undef BENCH_CONDITIONS_ENUM
};

const char *bench_conditions_name(enum bench_conditions conditions);
/*   errors  WPK_ENOENT */
WPK_MUST_CHECK wpk_err bench_conditions_parse(const char *text, enum bench_conditions *out);

/* Read twice the last-level cache's size on each CPU that this thread may use, which evicts what
 * the caches held. The memory is kept for the next time.
 *
 *   errors  WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err bench_cold_stream(void);
/* Read each cache line of `data`, so that it lies in the caches. */
void bench_cold_read(const void *data, size_t size);

#endif
