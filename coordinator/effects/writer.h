/* SPDX-License-Identifier: Apache-2.0 */
/* The only one that writes to the store: takes batches in their order, and performs those that wait
 * in one transaction, so that a slow disk makes commits larger instead of the queue longer.
 *
 *      put ──▶ waiting ──▶ begin, perform..., commit ──▶ done ──▶ take
 *                                     │
 *                                     └─ failed ──▶ [failed]: what waits and what comes fails too
 *                                                      │ ▲
 *                             a probe each second ─────┘ │ no
 *                                      │ yes             │
 *                                      └──▶ [healed] ────┘ resume: the owner has dropped what it
 *                                                          had in mind, and begins anew
 *
 * With a thread, or without one: then wpk_writer_run() does the work, on the caller's. */
#ifndef WPK_COORDINATOR_EFFECTS_WRITER_H
#define WPK_COORDINATOR_EFFECTS_WRITER_H

#include "coordinator/effects/batch.h"

#define WPK_WRITER_GROUP_MAX 64    /* batches of one transaction */
#define WPK_WRITER_WRITES_MAX 8192 /* writes of one transaction, after which no batch is added */
#define WPK_WRITER_PROBE_MS 1000

struct wpk_writer;

struct wpk_writer_options {
    struct wpk_store *store; /* borrowed; the thread's own until it is closed */
    const struct wpk_clock *clock;
    const char *directory; /* threaded: of the store; NULL: commits see to its log themselves */
    bool threaded;
    void (*wake)(void *user); /* threaded: there is something to take, or it has healed */
    void *user;
};

/*   owns    caller closes
 *   errors  WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_writer_open(const struct wpk_writer_options *options,
                                       struct wpk_writer **out, struct wpk_diag *diag);
/* Write what waits, and end. What is done can still be taken until wpk_writer_free(). */
void wpk_writer_close(struct wpk_writer *writer);
void wpk_writer_free(struct wpk_writer *writer);

/* The batch is the writer's until it is taken. */
void wpk_writer_put(struct wpk_writer *writer, struct wpk_batch *batch);
/* The next batch that is done, its `err` set; NULL when there is none. */
struct wpk_batch *wpk_writer_take(struct wpk_writer *writer);
/* Without a thread: do all that waits, or probe if it is time. */
void wpk_writer_run(struct wpk_writer *writer);

/* A probe succeeded since it failed. */
bool wpk_writer_has_healed(struct wpk_writer *writer);
/* Begin anew; everything put before has been taken. */
void wpk_writer_resume(struct wpk_writer *writer);
/* It can be written, and not read: not well after all, until the next probe says so. */
void wpk_writer_fail(struct wpk_writer *writer, wpk_err err, const struct wpk_diag *diag);
/* How often it has finished something, a probe or an empty batch too: a watchdog sees it alive. */
uint64_t wpk_writer_turns(const struct wpk_writer *writer);

#endif
