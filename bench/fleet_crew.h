/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated workers that measure nothing. They make up results at once and speak through the codecs
 * of wpk-worker. bench-fleet runs them in one process, bench-open-loop over sockets. Before its
 * results a worker uploads the code of anchors, and an artifact of its own if one is due. */
#ifndef WPK_BENCH_FLEET_CREW_H
#define WPK_BENCH_FLEET_CREW_H

#include "common/buf.h"
#include "schema/message.h"

#define BENCH_CREW_BATCH_MAX 16 /* work items that a worker holds */

/* One worker. */
struct bench_hand {
    uint64_t session;
    struct wpk_work held[BENCH_CREW_BATCH_MAX]; /* without texts, except anchor_sha256 */
    uint32_t held_count;
    uint32_t uploaded;     /* held items whose uploads are done */
    bool is_own;           /* the upload under way is an artifact of this worker's own */
    char made[WPK_ID_MAX]; /* hash of its own artifact, for held[made_for]; "": none */
    uint32_t made_for;
    enum wpk_message_kind asked; /* the message that waits for an answer */
    uint64_t asked_ns;
};

struct bench_crew {
    struct bench_hand *hands; /* owned; [count] */
    uint32_t count;
    uint32_t batch;       /* results in a message */
    uint64_t results;     /* acknowledged so far */
    uint64_t repeated;    /* of these, with an acknowledgement other than "recorded" */
    uint64_t errors;      /* error messages so far, without those of uploads */
    char *artifact;       /* owned; [artifact_size]: its first bytes differ in each upload */
    size_t artifact_size; /* of the workers' own artifacts; 0: they upload none */
    uint64_t uploads_due; /* own artifacts to upload next */
    uint64_t uploads;     /* of own artifacts, begun so far */
    uint64_t uploads_refused;
};

/* Make `count` workers with `batch` results a message, 1 to BENCH_CREW_BATCH_MAX.
 *   owns    caller calls bench_crew_fini */
void bench_crew_init(struct bench_crew *crew, uint32_t count, uint32_t batch);
/* Let workers upload artifacts of their own with this size. Call it once. */
void bench_crew_upload(struct bench_crew *crew, size_t size);
void bench_crew_fini(struct bench_crew *crew);

/* Append the worker's next message: a hello, an upload, its results, or a poll. */
void bench_crew_ask(struct bench_crew *crew, uint32_t index, struct wpk_buf *out);
/* Take the answer to the worker's message. */
void bench_crew_take(struct bench_crew *crew, uint32_t index, const char *frame, size_t size);

#endif
