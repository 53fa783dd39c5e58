/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/phase.h"

#include "common/err.h"

static const char *const phase_names[] = {WPK_PHASE_LIST(WPK_LIST_TEXT)};
static const char *const job_state_names[] = {WPK_JOB_STATE_LIST(WPK_LIST_TEXT)};

const char *wpk_phase_name(enum wpk_phase phase)
{
    WPK_ASSERT(phase < WPK_PHASE_COUNT);
    return phase_names[phase];
}

const char *wpk_job_state_name(enum wpk_job_state state)
{
    WPK_ASSERT(state < WPK_JOB_STATE_COUNT);
    return job_state_names[state];
}

bool wpk_phase_ended(enum wpk_phase phase)
{
    return phase == WPK_PHASE_DONE || phase == WPK_PHASE_FAILED || phase == WPK_PHASE_CANCELLED;
}

enum wpk_phase wpk_search_phase_shown(enum wpk_search_phase phase)
{
#define SHOWN(name, shown) WPK_PHASE_##shown,
    static const enum wpk_phase shown[] = {WPK_SEARCH_PHASE_LIST(SHOWN)};
#undef SHOWN
    WPK_ASSERT(phase <= WPK_SEARCH_PHASE_FAILED);
    return shown[phase];
}
