/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses between attempts to reach a wpkd. A restart of wpkd takes seconds. */
#ifndef WPK_CLIENT_PATIENCE_H
#define WPK_CLIENT_PATIENCE_H

#include "common/err.h"

#include <stdint.h>

#define WPK_PATIENCE_FIRST_MS 250
#define WPK_PATIENCE_LONGEST_MS 5000
#define WPK_PATIENCE_S 120 /* in all, since the first failure */

/* `= {0}`: wpkd has just answered. */
struct wpk_patience {
    uint64_t lost_ns; /* time of the first failure; 0: none since the last answer */
    uint32_t pause_ms;
};

/* True for failures that a later attempt may not have: WPK_ECLOSED, WPK_ETIMEDOUT, WPK_EBUSY. */
bool wpk_patience_lost(wpk_err err);

/* Pause, longer each time; a signal ends the pause. Return false at once after WPK_PATIENCE_S. */
bool wpk_patience_wait(struct wpk_patience *patience);

#endif
