/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between the engine and the two programs that it starts.
 *
 *     engine          wpk-builder               engine          wpk-runner
 *       │ ◀── ready ─────│                        │ ◀── ready ─────│
 *       │ ─── build ────▶│                        │ ─── op ───────▶│ computes the answers ahead
 *       │ ─── pause ────▶│ stops a core's child   │ ─── run ──────▶│
 *       │ ◀── paused ────│                        │ ◀── verified ──│ waits for quiet cores
 *       │ ─── resume ───▶│                        │ ─── go ───────▶│
 *       │ ◀── built ─────│                        │ ◀── timed ─────│
 *                                                 │ ◀── result ────│
 *                                                 │ ─── duel ─────▶│ then as for "run"
 *
 * A program that cannot work because of the machine, not of a candidate, sends "broken" instead.
 *
 * A message is a JSON object with a "type". Structs read from a message borrow its strings, which
 * live until the reader is closed. */
#ifndef WPK_WORKER_ENGINE_MESSAGE_H
#define WPK_WORKER_ENGINE_MESSAGE_H

#include "common/json.h"
#include "schema/accuracy.h"
#include "schema/record.h"
#include "worker/process.h"
#include "worker/verify/verify.h"

#define WPK_DUEL_MAX 16                 /* contestants */
#define WPK_ENGINE_MESSAGE_WORK_SIZE 64 /* bytes of a work item's name in logs, with its NUL */

/* suffix, text */
#define WPK_ENGINE_MESSAGE_LIST(X)                                                                 \
    X(READY, "ready")                                                                              \
    X(BUILD, "build")                                                                              \
    X(BUILT, "built")                                                                              \
    X(BROKEN, "broken")                                                                            \
    X(PAUSE, "pause")                                                                              \
    X(PAUSED, "paused")                                                                            \
    X(RESUME, "resume")                                                                            \
    X(OP, "op")                                                                                    \
    X(RUN, "run")                                                                                  \
    X(VERIFIED, "verified")                                                                        \
    X(GO, "go")                                                                                    \
    X(TIMED, "timed")                                                                              \
    X(RESULT, "result")                                                                            \
    X(DUEL, "duel")

#define WPK_ENGINE_MESSAGE_ENUM(name, text) WPK_ENGINE_MESSAGE_##name,
enum wpk_engine_message_kind {
    WPK_ENGINE_MESSAGE_LIST(WPK_ENGINE_MESSAGE_ENUM) WPK_ENGINE_MESSAGE_COUNT
};

/* Build the files `schedule` and `manifest` of a directory into `kernel.so` in it. */
struct wpk_build_request {
    uint64_t id;
    const char *work; /* the work item's name in all logs: "12/trial/7" */
    const char *directory;
    int core;            /* index among the usable cores; -1: any */
    uint64_t timeout_ms; /* without the time for which the build is paused */
    uint64_t memory_bytes_max;
};

struct wpk_build_reply {
    uint64_t id;
    enum wpk_outcome outcome;
    const char *log;
    uint64_t build_ns; /* without the time for which the build was paused */
};

/* Verify and time one candidate. */
struct wpk_run_request {
    uint64_t id;
    const char *work;
    const char *op; /* whole form of the original program */
    const char *provider;
    const char *layouts;
    const char *artifact; /* path; "" for vendors */
    const char *anchor;   /* path; "": the candidate is timed alone */
    struct wpk_policy policy;
    struct wpk_verify_rule rule;
    uint64_t incumbent_ns;
    double incumbent_ratio;       /* multiples of the anchor's time; 0: none */
    struct wpk_accuracy accuracy; /* bound of a winner's error */
    uint64_t fresh_seed;          /* of the fresh sets that a winner faces */
    bool final;                   /* a winner faces a fresh set of every kind, not of reals alone */
    uint64_t timeout_ms;          /* without the wait for "go" */
    uint64_t memory_bytes_max;
};

/* Time contestants in turns. */
struct wpk_duel_request {
    uint64_t id;
    const char *work;
    const char *op;
    const char *layouts;
    const char *contestant[WPK_DUEL_MAX]; /* [count] path of an artifact, or a vendor's name */
    int count;
    int round_count;
    struct wpk_policy policy;
    uint64_t timeout_ms;
    uint64_t memory_bytes_max;
};

/* Send one message.   errors  those of wpk_channel_send; WPK_ENOMEM */
wpk_err wpk_engine_message_send(struct wpk_channel *channel, enum wpk_engine_message_kind kind,
                                uint64_t id);
wpk_err wpk_engine_message_send_core(struct wpk_channel *channel, enum wpk_engine_message_kind kind,
                                     int core);
wpk_err wpk_engine_message_send_op(struct wpk_channel *channel, const char *op);
wpk_err wpk_engine_message_send_build(struct wpk_channel *channel,
                                      const struct wpk_build_request *request);
wpk_err wpk_engine_message_send_built(struct wpk_channel *channel,
                                      const struct wpk_build_reply *reply);
wpk_err wpk_engine_message_send_broken(struct wpk_channel *channel, const char *why);
wpk_err wpk_engine_message_send_run(struct wpk_channel *channel,
                                    const struct wpk_run_request *request);
wpk_err wpk_engine_message_send_duel(struct wpk_channel *channel,
                                     const struct wpk_duel_request *request);
/* Send the records [count] of one candidate, or of a duel's contestants. */
wpk_err wpk_engine_message_send_result(struct wpk_channel *channel, uint64_t id,
                                       const struct wpk_record *records, int count);

/* Begin reading a message.   owns  caller closes *reader   errors  WPK_EPARSE, WPK_ENOMEM */
wpk_err wpk_engine_message_open(const struct wpk_buf *text, enum wpk_engine_message_kind *kind,
                                struct wpk_json_reader **reader);
/* Read the members of a message of that kind. A failure is kept in the reader: the caller then asks
 * wpk_json_status. */
uint64_t wpk_engine_message_read_id(struct wpk_json_reader *reader);
int wpk_engine_message_read_core(struct wpk_json_reader *reader);
const char *wpk_engine_message_read_op(struct wpk_json_reader *reader);
void wpk_engine_message_read_build(struct wpk_json_reader *reader, struct wpk_build_request *out);
void wpk_engine_message_read_built(struct wpk_json_reader *reader, struct wpk_build_reply *out);
const char *wpk_engine_message_read_broken(struct wpk_json_reader *reader);
void wpk_engine_message_read_run(struct wpk_json_reader *reader, struct wpk_run_request *out);
void wpk_engine_message_read_duel(struct wpk_json_reader *reader, struct wpk_duel_request *out);
/*   owns  caller calls wpk_record_fini on the *count first of out [max] */
wpk_err wpk_engine_message_read_result(struct wpk_json_reader *reader, struct wpk_record *out,
                                       int max, int *count);

#endif
