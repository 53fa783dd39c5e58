/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of operators and the states of jobs, with their names. After a restart an operator
 * starts at `waiting` again, and goes on from what was recorded:
 *
 *     waiting ──▶ searching ──▶ finals ──▶ verifying ──▶ done
 *        │            │           │            │
 *        │            └───────────┴────────────┴───────▶ failed
 *        └──▶ done (answered from history)      any ───▶ cancelled
 */
#ifndef WPK_COORDINATOR_STATE_PHASE_H
#define WPK_COORDINATOR_STATE_PHASE_H

#include <stdbool.h>

/* suffix, text */
#define WPK_PHASE_LIST(X)                                                                          \
    X(WAITING, "waiting")                                                                          \
    X(SEARCHING, "searching")                                                                      \
    X(FINALS, "finals")                                                                            \
    X(VERIFYING, "verifying")                                                                      \
    X(DONE, "done")                                                                                \
    X(FAILED, "failed")                                                                            \
    X(CANCELLED, "cancelled")

enum wpk_phase {
#define WPK_PHASE_ENUM(name, text) WPK_PHASE_##name,
    WPK_PHASE_LIST(WPK_PHASE_ENUM)
#undef WPK_PHASE_ENUM
        WPK_PHASE_COUNT
};

/* suffix, text */
#define WPK_JOB_STATE_LIST(X)                                                                      \
    X(QUEUED, "queued")                                                                            \
    X(RUNNING, "running")                                                                          \
    X(PAUSED, "paused")                                                                            \
    X(DONE, "done")                                                                                \
    X(FAILED, "failed")                                                                            \
    X(CANCELLED, "cancelled")

enum wpk_job_state {
#define WPK_JOB_STATE_ENUM(name, text) WPK_JOB_##name,
    WPK_JOB_STATE_LIST(WPK_JOB_STATE_ENUM)
#undef WPK_JOB_STATE_ENUM
        WPK_JOB_STATE_COUNT
};

const char *wpk_phase_name(enum wpk_phase phase);
const char *wpk_job_state_name(enum wpk_job_state state);
/* True if the phase is done, failed or cancelled. */
bool wpk_phase_ended(enum wpk_phase phase);

#endif
