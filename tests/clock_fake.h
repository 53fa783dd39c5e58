/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that stands still until its owner moves it; pass &fake.clock. Threads may look at it
 * meanwhile. */
#ifndef WPK_TESTS_CLOCK_FAKE_H
#define WPK_TESTS_CLOCK_FAKE_H

#include "common/clock.h"

struct wpk_clock_fake {
    struct wpk_clock clock; /* first */
    uint64_t now_ns;
    uint64_t wall_ns;
};

static inline uint64_t wpk_clock_fake_now_ns(const struct wpk_clock *clock)
{
    return __atomic_load_n(&((const struct wpk_clock_fake *)clock)->now_ns, __ATOMIC_RELAXED);
}

static inline uint64_t wpk_clock_fake_wall_ns(const struct wpk_clock *clock)
{
    return __atomic_load_n(&((const struct wpk_clock_fake *)clock)->wall_ns, __ATOMIC_RELAXED);
}

static inline void wpk_clock_fake_init(struct wpk_clock_fake *fake, uint64_t now_ns,
                                       uint64_t wall_ns)
{
    fake->clock.now_ns = wpk_clock_fake_now_ns;
    fake->clock.wall_ns = wpk_clock_fake_wall_ns;
    fake->now_ns = now_ns;
    fake->wall_ns = wall_ns;
}

static inline void wpk_clock_fake_advance(struct wpk_clock_fake *fake, uint64_t ns)
{
    __atomic_fetch_add(&fake->now_ns, ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&fake->wall_ns, ns, __ATOMIC_RELAXED);
}

#endif
