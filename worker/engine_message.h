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
 * Both programs come with the engine: a message is a struct as it lies in memory, and its texts. */
#ifndef WPK_WORKER_ENGINE_MESSAGE_H
#define WPK_WORKER_ENGINE_MESSAGE_H

#include "schema/accuracy.h"
#include "schema/record.h"
#include "worker/process.h"
#include "worker/verify/verify.h"

#define WPK_DUEL_MAX 16                 /* contestants */
#define WPK_ENGINE_MESSAGE_WORK_SIZE 64 /* bytes of a work item's name in logs, with its NUL */

enum wpk_engine_message_kind {
    WPK_ENGINE_MESSAGE_READY,
    WPK_ENGINE_MESSAGE_BUILD,
    WPK_ENGINE_MESSAGE_BUILT,
    WPK_ENGINE_MESSAGE_BROKEN,
    WPK_ENGINE_MESSAGE_PAUSE,
    WPK_ENGINE_MESSAGE_PAUSED,
    WPK_ENGINE_MESSAGE_RESUME,
    WPK_ENGINE_MESSAGE_OP,
    WPK_ENGINE_MESSAGE_RUN,
    WPK_ENGINE_MESSAGE_VERIFIED,
    WPK_ENGINE_MESSAGE_GO,
    WPK_ENGINE_MESSAGE_TIMED,
    WPK_ENGINE_MESSAGE_RESULT,
    WPK_ENGINE_MESSAGE_DUEL,
    WPK_ENGINE_MESSAGE_COUNT,
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

/* Texts are borrowed; those of a message that was read lie in the bytes that it came in. */
struct wpk_engine_message {
    enum wpk_engine_message_kind kind;
    int core;         /* PAUSE, PAUSED, RESUME */
    uint64_t id;      /* VERIFIED, GO, TIMED, RESULT: of the request */
    const char *text; /* OP: in whole form; BROKEN: why; RESULT: the records, as JSON */
    union {
        struct wpk_build_request build; /* BUILD */
        struct wpk_build_reply built;   /* BUILT */
        struct wpk_run_request run;     /* RUN */
        struct wpk_duel_request duel;   /* DUEL */
    };
};

/* Send one message.   errors  those of wpk_channel_send; WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_engine_message_send(struct wpk_channel *channel,
                                const struct wpk_engine_message *message);
#define WPK_ENGINE_SEND(channel, ...)                                                              \
    wpk_engine_message_send(channel, &(struct wpk_engine_message){__VA_ARGS__})
/* Send the records [count] of one candidate, or of a duel's contestants. */
wpk_err wpk_engine_message_send_result(struct wpk_channel *channel, uint64_t id,
                                       const struct wpk_record *records, int count);

/* Read a message, which a child may have sent whose memory a candidate has damaged.
 *   errors  WPK_EPARSE */
wpk_err wpk_engine_message_read(const struct wpk_buf *bytes, struct wpk_engine_message *out);
/* Read every message that has arrived, without waiting, and let `obey` do as each says, until one
 * fails.   errors  those of wpk_channel_receive, wpk_engine_message_read and `obey` */
wpk_err wpk_engine_message_obey(struct wpk_channel *channel,
                                wpk_err (*obey)(void *user, const struct wpk_buf *text,
                                                const struct wpk_engine_message *message),
                                void *user);
/* Read the records of a RESULT.
 *   owns    caller calls wpk_record_fini on the *count first of out [max]
 *   errors  WPK_EPARSE and those of wpk_record_decode() */
wpk_err wpk_engine_message_read_result(const struct wpk_engine_message *message,
                                       struct wpk_record *out, int max, int *count);

#endif
