/* SPDX-License-Identifier: Apache-2.0 */
/* Many workers that measure nothing: they answer what they are given at once, through the same
 * codecs as wpk-worker. For bench-fleet in one process, for bench-open-loop over sockets. Before
 * their results they upload the anchors' code, and an artifact of their own when one is due. */
#ifndef WPK_BENCH_FLEET_CREW_H
#define WPK_BENCH_FLEET_CREW_H

#include "common/buf.h"
#include "schema/message.h"

#define BENCH_CREW_BATCH_MAX 16 /* work items in a worker's hands */

struct bench_hand {
    uint64_t session;
    struct wpk_work held[BENCH_CREW_BATCH_MAX]; /* texts are gone */
    uint32_t held_count;
    uint32_t uploaded;     /* of those held: what they need to have uploaded is */
    bool is_own;           /* what is being uploaded is of this worker alone */
    char made[WPK_ID_MAX]; /* that, for held[made_for]; \"\": none for these results */
    uint32_t made_for;
    enum wpk_message_kind asked; /* what it waits for an answer to */
    uint64_t asked_ns;
};

struct bench_crew {
    struct bench_hand *hands; /* owned; [count] */
    uint32_t count;
    uint32_t batch;       /* results of a message */
    uint64_t results;     /* acknowledged so far */
    uint64_t repeated;    /* of them, that were recorded already or that nobody knows */
    uint64_t errors;      /* answers that were none */
    char *artifact;       /* owned; [artifact_size]: its first bytes differ each time */
    size_t artifact_size; /* of the workers' own; 0: they upload none */
    uint64_t uploads_due; /* so many own ones are to be uploaded next */
    uint64_t uploads;     /* begun so far */
    uint64_t uploads_refused;
};

void bench_crew_init(struct bench_crew *crew, uint32_t count, uint32_t batch);
/* Their own artifacts have this size, from now on. */
void bench_crew_upload(struct bench_crew *crew, size_t size);
void bench_crew_fini(struct bench_crew *crew);

/* Append what the worker says next: hello, its results, or a poll. */
void bench_crew_ask(struct bench_crew *crew, uint32_t index, struct wpk_buf *out);
/* Take the answer. */
void bench_crew_take(struct bench_crew *crew, uint32_t index, const char *frame, size_t size);

#endif
