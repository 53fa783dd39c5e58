/* SPDX-License-Identifier: Apache-2.0 */
/* Time. Code that decides by the time is given a struct wpk_clock, so that a test can give it a
 * clock that the test moves. */
#ifndef WPK_COMMON_CLOCK_H
#define WPK_COMMON_CLOCK_H

#include "common/err.h"

#include <stdint.h>

#define WPK_NS_PER_US UINT64_C(1000)
#define WPK_NS_PER_MS UINT64_C(1000000)
#define WPK_NS_PER_S UINT64_C(1000000000)

/* Both slots are required. */
struct wpk_clock {
    uint64_t (*now_ns)(const struct wpk_clock *clock);  /* ns, monotonic, arbitrary origin */
    uint64_t (*wall_ns)(const struct wpk_clock *clock); /* ns since 1970-01-01T00:00:00Z */
};

/* The machine's clock; static, shared by all threads. */
const struct wpk_clock *wpk_clock_system(void);
uint64_t wpk_clock_ns(void); /* its now_ns() */

uint64_t wpk_clock_now_ns(const struct wpk_clock *clock);
uint64_t wpk_clock_wall_ns(const struct wpk_clock *clock);

/* RFC 3339 in UTC with milliseconds: 2026-11-21T03:52:00.125Z. Years 1970 to 9999. */
#define WPK_CLOCK_TEXT_SIZE 32
void wpk_clock_format(uint64_t wall_ns, char out[WPK_CLOCK_TEXT_SIZE]);

/* Parse an RFC 3339 time with 0 to 9 fractional digits, in UTC or with an offset such as +02:00.
 *
 *   errors  WPK_EPARSE  not an RFC 3339 time from 1970 on
 */
wpk_err wpk_clock_parse(const char *text, uint64_t *wall_ns);

#endif
