/* SPDX-License-Identifier: Apache-2.0 */
#include "client/follow.h"

#include "common/clock.h"

#include <time.h>

bool wpk_patience_lost(wpk_err err)
{
    return err == WPK_ECLOSED || err == WPK_ETIMEDOUT || err == WPK_EBUSY;
}

bool wpk_patience_wait(struct wpk_patience *patience)
{
    uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());

    if (patience->lost_ns == 0) {
        patience->lost_ns = now_ns;
        patience->pause_ms = WPK_PATIENCE_FIRST_MS;
    } else if (now_ns - patience->lost_ns > WPK_PATIENCE_S * WPK_NS_PER_S) {
        return false;
    }
    (void)nanosleep(&(struct timespec){.tv_sec = patience->pause_ms / 1000,
                                       .tv_nsec = patience->pause_ms % 1000 * 1000000L},
                    NULL);
    patience->pause_ms += patience->pause_ms / 2;
    if (patience->pause_ms > WPK_PATIENCE_LONGEST_MS) {
        patience->pause_ms = WPK_PATIENCE_LONGEST_MS;
    }
    return true;
}
