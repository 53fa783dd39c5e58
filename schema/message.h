/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between a worker and wpkd. The worker sends requests, wpkd replies:
 *
 *     hello         ──▶ welcome     the worker's name and abilities; leases that it still has
 *     poll          ──▶ work        wpkd replies when there is work; counts as a heartbeat
 *     results       ──▶ ack         records and finals; one status each
 *     put_artifact  ──▶ ack         a shared object by its hash, for a work item that this
 *                                   worker has leased; sent before the record that names it
 *     get_artifact  ──▶ artifact    a shared object that the worker has to time and lacks
 *     give_back     ──▶ ack         leases that the worker will not work on; it leaves
 *                   ──▶ error       instead of any answer
 *
 * Every request names its session and protocol version. A repeated request changes nothing. A frame
 * is the size of the JSON (4 bytes, little-endian), the JSON, and the bytes of an artifact, if any.
 * Decoding is strict. A worker of another version gets an error that names both versions. */
#ifndef WPK_SCHEMA_MESSAGE_H
#define WPK_SCHEMA_MESSAGE_H

#include "common/arena.h"
#include "common/buf.h"
#include "schema/accuracy.h"
#include "schema/device.h"
#include "schema/job.h"
#include "schema/record.h"

#define WPK_PROTOCOL_VERSION 8
#define WPK_MESSAGE_SIZE_MAX ((size_t)4 << 20) /* bytes of a frame */
#define WPK_ARTIFACT_SIZE_MAX (WPK_MESSAGE_SIZE_MAX - 65536)
#define WPK_WORK_MAX 64      /* in one message; also results and statuses */
#define WPK_CONTENDERS_MAX 8 /* in a final */
#define WPK_PROVIDERS_MAX 8  /* of a worker */
#define WPK_BACK_ENDS_MAX 4  /* of a worker, besides the first */
#define WPK_HOLDING_MAX 256  /* leases presented again */
#define WPK_PROVIDER_NAME_MAX 32
#define WPK_PLAIN_PROVIDER "plain" /* the plain kernel's provider in the history */
#define WPK_PLAIN_MAX 4            /* candidates for the plain kernel */
#define WPK_PLAIN_CANDIDATE_SIZE 40
#define WPK_BACK_END_REASON_MAX 96
#define WPK_WORKER_NAME_MAX 128
#define WPK_ENVIRONMENT_MAX 256
#define WPK_WORKER_LABELS_MAX 16 /* of a worker */
#define WPK_TOKEN_MAX 128
#define WPK_PROGRAM_MAX 64 /* name and version of a program */
#define WPK_SLOTS_MAX 1024
#define WPK_RETRY_MS_MAX 60000

/* suffix, text */
#define WPK_MESSAGE_LIST(X)                                                                        \
    X(HELLO, "hello")                                                                              \
    X(POLL, "poll")                                                                                \
    X(RESULTS, "results")                                                                          \
    X(PUT_ARTIFACT, "put_artifact")                                                                \
    X(GET_ARTIFACT, "get_artifact")                                                                \
    X(GIVE_BACK, "give_back")                                                                      \
    X(WELCOME, "welcome")                                                                          \
    X(WORK, "work")                                                                                \
    X(ACK, "ack")                                                                                  \
    X(ARTIFACT, "artifact")                                                                        \
    X(ERROR, "error")

#define WPK_MESSAGE_ENUM(name, text) WPK_MESSAGE_##name,
enum wpk_message_kind { WPK_MESSAGE_LIST(WPK_MESSAGE_ENUM) WPK_MESSAGE_COUNT };

/* suffix, text: what a lease is for */
#define WPK_WORK_LIST(X)                                                                           \
    X(TRIAL, "trial")   /* a candidate of the search */                                            \
    X(VENDOR, "vendor") /* a vendor's implementation: the baseline */                              \
    X(FINAL, "final")   /* the contenders and the baseline, timed in turns */                      \
    X(VERIFY, "verify") /* the winner, on fresh inputs */                                          \
    X(PLAIN, "plain")   /* the plain kernel; the index is its candidate's */

#define WPK_WORK_ENUM(name, text) WPK_WORK_##name,
enum wpk_work_kind { WPK_WORK_LIST(WPK_WORK_ENUM) WPK_WORK_COUNT };

/* suffix, text: how much of the work a lease is for */
#define WPK_STAGE_LIST(X)                                                                          \
    X(WHOLE, "whole") /* build and run */                                                          \
    X(BUILD, "build") /* for the work item's target; the artifact goes to wpkd */                  \
    X(RUN, "run")     /* verify and time the work item's artifact */

#define WPK_STAGE_ENUM(name, text) WPK_STAGE_##name,
enum wpk_work_stage { WPK_STAGE_LIST(WPK_STAGE_ENUM) WPK_STAGE_COUNT };

/* A worker's roles: bits of wpk_hello.roles. */
enum { WPK_WORKER_BUILDS = 1, WPK_WORKER_RUNS = 2, WPK_WORKER_ROLES_ALL = 3 };

/* suffix, text: what became of a result */
#define WPK_ACK_LIST(X)                                                                            \
    X(RECORDED, "recorded")                                                                        \
    X(ALREADY_RECORDED, "already_recorded")                                                        \
    X(UNKNOWN, "unknown") /* not used: its search ended, or it says nothing and its lease ended */

#define WPK_ACK_ENUM(name, text) WPK_ACK_##name,
enum wpk_ack { WPK_ACK_LIST(WPK_ACK_ENUM) WPK_ACK_COUNT };

/* The id of a work item: by value, the same for every attempt at it. */
typedef struct wpk_work_id {
    uint64_t search; /* number of the search in the store, from 1 */
    enum wpk_work_kind kind;
    uint32_t index; /* of the ask or the vendor; else derived from the contenders */
} wpk_work_id;

/* An operator that work items refer to, listed once in a message. */
struct wpk_message_op {
    const char *text;    /* whole form of the program */
    const char *layouts; /* "fixed" or "any" */
};

/* One implementation that takes part in a final. */
struct wpk_contender {
    const char *provider;
    const char *artifact_sha256; /* "" for a vendor */
};

struct wpk_work {
    wpk_work_id id;
    uint64_t lease; /* its number */
    enum wpk_work_stage stage;
    uint32_t attempt;            /* from 1 */
    uint32_t op;                 /* index into the message's ops */
    uint32_t target;             /* BUILD: index into the message's targets */
    const char *artifact_sha256; /* RUN; else "" */
    uint64_t build_ns;           /* RUN: how long building took, for the record */
    const char *provider;        /* not for a final */
    const char *candidate;       /* "" for a vendor */
    struct wpk_policy policy;
    uint64_t incumbent_ns; /* for racing; 0: none */
    bool keep_artifact;
    const char *anchor_sha256;    /* TRIAL: the anchor's artifact; "": none yet */
    double incumbent_ratio;       /* for racing with an anchor: multiples of its time; 0: none */
    struct wpk_accuracy accuracy; /* of the search: a less accurate one is not timed to the end */
    uint32_t round_count;         /* final */
    struct wpk_contender contenders[WPK_CONTENDERS_MAX]; /* final; [contender_count] */
    uint32_t contender_count;
};

struct wpk_result {
    wpk_work_id id;
    uint64_t lease;
    enum wpk_work_stage stage;
    uint32_t attempt;
    /* Not for a final. BUILD: ok with an artifact and without times, or why the build failed. */
    struct wpk_record record;
    struct wpk_timing timing[WPK_CONTENDERS_MAX]; /* final: of each contender; none if it failed */
    uint32_t timing_count;
    const char *failure; /* final: why it did not take place; "" when it did */
};

struct wpk_message_provider {
    char name[WPK_PROVIDER_NAME_MAX];
    bool vendor;
};

/* A back end that a worker offers or lacks, besides the first one. */
struct wpk_message_back_end {
    char name[WPK_PROVIDER_NAME_MAX];
    char version[WPK_PROVIDER_NAME_MAX];   /* of what compiles for it, "gcc-12.2.0"; "": it is
                                              missing, or the environment has its version */
    char missing[WPK_BACK_END_REASON_MAX]; /* why it is not offered; "" where it is */
};

struct wpk_hello {
    char name[WPK_WORKER_NAME_MAX]; /* unique among workers with a session: host/pid */
    struct wpk_device device;
    /* The environment: sorted "name=version", joined by ';'. Another one is not `exact`. */
    char environment[WPK_ENVIRONMENT_MAX];
    struct wpk_message_provider providers[WPK_PROVIDERS_MAX]; /* the first back end, then vendors */
    uint32_t provider_count;
    struct wpk_message_back_end back_ends[WPK_BACK_ENDS_MAX]; /* of who builds */
    uint32_t back_end_count;
    char token[WPK_TOKEN_MAX];     /* the secret; "" where none is needed */
    unsigned roles;                /* WPK_WORKER_*, at least one */
    uint32_t slots;                /* builds at a time; 0: not given */
    char program[WPK_PROGRAM_MAX]; /* "wpk-worker 0.2.0" */
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX];
    uint32_t label_count;
};

/* One message. `= {0}` is valid for fini. A decoded message's texts point into `arena`; in
 * others they are borrowed. */
struct wpk_message {
    enum wpk_message_kind kind;
    uint64_t session;        /* 0 in hello */
    struct wpk_hello *hello; /* hello */
    uint32_t want;           /* poll: the most work items to lease */
    uint32_t wait_ms;        /* poll: reply after that long, also without work */
    /* hello, poll: work items of all leases that the worker has; its other leases are lost. */
    wpk_work_id *holding; /* [holding_count] */
    uint32_t holding_count;
    uint64_t running;           /* poll: number of the lease that is being timed; 0: none */
    struct wpk_result *results; /* results [result_count] */
    uint32_t result_count;
    char sha256[WPK_ID_MAX]; /* put_artifact, get_artifact, artifact */
    wpk_work_id made_for;    /* put_artifact: the work item that the artifact was built for */
    const char *bytes;       /* put_artifact, artifact; into the frame that was decoded */
    size_t bytes_size;
    wpk_work_id *given_back; /* give_back [given_back_count] */
    uint32_t given_back_count;
    const char *reason; /* give_back: why it can do no more work; NULL, "": it was told to end */
    uint32_t lease_ms;  /* welcome: a lease ends that long after the last message */
    const char *server; /* welcome: name and version of wpkd */
    struct wpk_message_op *ops; /* work [op_count] */
    uint32_t op_count;
    struct wpk_device *targets; /* work [target_count]: devices to build for, each listed once */
    uint32_t target_count;
    struct wpk_work *work; /* work [work_count] */
    uint32_t work_count;
    bool leave;         /* work: wpkd ends for good; a private worker ends too */
    enum wpk_ack *acks; /* ack [ack_count]: one for each result */
    uint32_t ack_count;
    wpk_err err;       /* error; WPK_ENOENT: unknown session, the worker says hello again */
    const char *text;  /* error: one sentence */
    uint32_t retry_ms; /* error: try again after that; 0: the caller decides */
    struct wpk_arena arena;
};

const char *wpk_message_kind_name(enum wpk_message_kind kind);
const char *wpk_work_kind_name(enum wpk_work_kind kind);
const char *wpk_work_stage_name(enum wpk_work_stage stage);
bool wpk_work_id_equal(wpk_work_id a, wpk_work_id b);
/* Print the plain kernel's candidate `number`, from 1, as in the history: "algorithm=direct",
 * "algorithm=direct number=2". */
void wpk_plain_candidate_print(uint32_t number, char out[WPK_PLAIN_CANDIDATE_SIZE]);

/* Append the frame to `out`.
 *   errors  WPK_ENOMEM, WPK_ENOSPC larger than WPK_MESSAGE_SIZE_MAX */
wpk_err wpk_message_encode(const struct wpk_message *message, struct wpk_buf *out);

/* Decode a frame, which must outlive `out->bytes`.
 *
 *   owns    caller calls wpk_message_fini, which frees the records too
 *   errors  WPK_EMISMATCH  another protocol version
 *           WPK_EPARSE, WPK_EINVAL, WPK_ERANGE, WPK_ENOMEM
 */
wpk_err wpk_message_decode(const char *frame, size_t size, struct wpk_message *out,
                           struct wpk_diag *diag);
void wpk_message_fini(struct wpk_message *message);

/* A trace of work items. wpkd and workers log the work items and results that pass between them, at
 * debug level, by the same id; a worker's builder and runner get the id too, and log it.
 *
 *     leased work=12/trial/7 lease=31 attempt=1 stage=whole worker=w         wpkd
 *     taken work=12/trial/7 lease=31 ... trial=5     the worker, with its engine's number for it
 *     build_started, build_ended work=12/trial/7                             its builder
 *     run_started, run_ended work=12/trial/7                                 its runner
 *     brought work=12/trial/7 lease=31 attempt=1 stage=whole outcome=ok      the worker
 *     received work=12/trial/7 ... outcome=ok worker=w                       wpkd */

#define WPK_WORK_ID_TEXT_SIZE 48

/* "12/trial/7" */
void wpk_work_id_print(wpk_work_id id, char out[WPK_WORK_ID_TEXT_SIZE]);

/* Log every work item and result of `message` as `event`, with the worker's name unless it is NULL.
 * Does nothing unless the log's level is debug. */
void wpk_message_trace(const char *event, const struct wpk_message *message, const char *worker);

#endif
