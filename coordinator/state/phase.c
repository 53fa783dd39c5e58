/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/phase.h"

#include "common/err.h"

static const char *const phase_names[] = {
#define PHASE_ROW(name, text) [WPK_PHASE_##name] = (text),
    WPK_PHASE_LIST(PHASE_ROW)
#undef PHASE_ROW
};

static const char *const job_state_names[] = {
#define STATE_ROW(name, text) [WPK_JOB_##name] = (text),
    WPK_JOB_STATE_LIST(STATE_ROW)
#undef STATE_ROW
};

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
