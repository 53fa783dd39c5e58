/* SPDX-License-Identifier: Apache-2.0 */
/* How long to wait for a wpkd that cannot be reached: its restart takes seconds, not for ever. */
#ifndef WPK_CLIENT_PATIENCE_H
#define WPK_CLIENT_PATIENCE_H

#include "common/err.h"

#include <stdint.h>

#define WPK_PATIENCE_FIRST_MS 250
#define WPK_PATIENCE_LONGEST_MS 5000
#define WPK_PATIENCE_S 120 /* in all, since it was last heard */

/* `= {0}`: it was just heard. */
struct wpk_patience {
    uint64_t lost_ns; /* when it was first not reached; 0: it was */
    uint32_t pause_ms;
};

/* Is it worth trying again? So for WPK_ECLOSED, WPK_ETIMEDOUT and WPK_EBUSY. */
bool wpk_patience_lost(wpk_err err);

/* Wait, longer each time, less when a signal comes; false, at once, when patience is at an end. */
bool wpk_patience_wait(struct wpk_patience *patience);

#endif
