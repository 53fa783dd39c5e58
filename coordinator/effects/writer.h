/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: the only part that writes to the store. It takes batches in their order, and performs
 * those that wait in one transaction: a slow disk makes transactions larger, not the queue longer.
 *
 *      put ──▶ waiting ──▶ begin, perform..., commit ──▶ done ──▶ take
 *                                     │
 *                                     └─ failed ──▶ [failed]: batches that wait or come fail too
 *                                                      │ ▲
 *                             a probe each second ─────┘ │ no
 *                                      │ yes             │
 *                                      └──▶ [healed] ────┘ resume: the owner has dropped its state,
 *                                                          and reads it from the store
 *
 * Without a thread of its own, wpk_writer_run() does the work on the caller's. */
#ifndef WPK_COORDINATOR_EFFECTS_WRITER_H
#define WPK_COORDINATOR_EFFECTS_WRITER_H

#include "coordinator/effects/batch.h"

#define WPK_WRITER_GROUP_MAX 64    /* batches in one transaction */
#define WPK_WRITER_WRITES_MAX 8192 /* writes in one transaction, after which no batch is added */
#define WPK_WRITER_PROBE_MS 1000

struct wpk_writer;

struct wpk_writer_options {
    struct wpk_store *store; /* borrowed; used by the thread only, until the writer is closed */
    const struct wpk_clock *clock;
    const char *directory; /* threaded: the store's, for checkpoints; NULL: commits make them */
    bool threaded;
    void (*wake)(void *user); /* threaded: a batch can be taken, or the writer has healed */
    void *user;
};

/*   owns    caller closes
 *   errors  WPK_ESYSTEM
 */
wpk_err wpk_writer_open(const struct wpk_writer_options *options, struct wpk_writer **out,
                        struct wpk_diag *diag);
/* Write the batches that wait, and end the thread. Batches can be taken until wpk_writer_free(). */
void wpk_writer_close(struct wpk_writer *writer);
void wpk_writer_free(struct wpk_writer *writer);

/* Queue a batch. It belongs to the writer until it is taken. */
void wpk_writer_put(struct wpk_writer *writer, struct wpk_batch *batch);
/* Take the next batch that is done, with `err` set; NULL: there is none. */
struct wpk_batch *wpk_writer_take(struct wpk_writer *writer);
/* Without a thread: perform the batches that wait, and probe if it is time. */
void wpk_writer_run(struct wpk_writer *writer);

/* True if a probe succeeded since the writer failed. */
bool wpk_writer_has_healed(struct wpk_writer *writer);
/* Leave the failed state, after healing. All batches must have been taken. */
void wpk_writer_resume(struct wpk_writer *writer);
/* Fail for this reason, until the next probe succeeds: the store can be written, but not read. */
void wpk_writer_fail(struct wpk_writer *writer, wpk_err err, const struct wpk_diag *diag);
/* A count that grows with each transaction, empty or failed, and each probe, for a watchdog. */
uint64_t wpk_writer_turns(const struct wpk_writer *writer);

#endif
