/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of operators and searches and the states of jobs. After a restart an operator
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

/* Suffix, and that of the phase that operators show meanwhile. A search stays in OPENING until an
 * operator wants more than what is recorded; an ended one goes on likewise. The state diagram is
 * course.c's. */
#define WPK_SEARCH_PHASE_LIST(X)                                                                   \
    X(OPENING, WAITING)                                                                            \
    X(SEARCHING, SEARCHING)                                                                        \
    X(PLAIN, SEARCHING) /* the last result stands, only its plain kernel is awaited */             \
    X(FINALS, FINALS)                                                                              \
    X(VERIFYING, VERIFYING)                                                                        \
    X(STORING, VERIFYING) /* a PUT_KERNEL is under way */                                          \
    X(STORED, VERIFYING)  /* the PUT_KERNEL was answered in this step */                           \
    X(DONE, DONE)                                                                                  \
    X(FAILED, FAILED)

enum wpk_search_phase {
#define WPK_SEARCH_PHASE_ENUM(name, shown) WPK_SEARCH_PHASE_##name,
    WPK_SEARCH_PHASE_LIST(WPK_SEARCH_PHASE_ENUM)
#undef WPK_SEARCH_PHASE_ENUM
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
/* The phase that a search's operators show. */
enum wpk_phase wpk_search_phase_shown(enum wpk_search_phase phase);

#endif
