/* SPDX-License-Identifier: Apache-2.0 */
/* A record: a trial's outcome and measurement, which a worker sends to the coordinator.
 *
 * A trial is one candidate of one provider for one problem. Failures are data: an outcome other
 * than `ok` has a log and no times. */
#ifndef WPK_SCHEMA_RECORD_H
#define WPK_SCHEMA_RECORD_H

#include "schema/fields.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WPK_HINTS_SIZE_MAX ((size_t)64 << 20) /* bytes of a document of hints */
#define WPK_SAMPLES_MAX 64
#define WPK_LOG_MAX 1024
#define WPK_ID_MAX 65                /* a hash in hexadecimal, with its NUL */
#define WPK_CANDIDATE_TEXT_MAX 16384 /* of every candidate, with its NUL */

/* suffix, text */
#define WPK_OUTCOME_LIST(X)                                                                        \
    X(OK, "ok")                                                                                    \
    X(BUILD_ERROR, "build_error")                                                                  \
    X(BUILD_TIMEOUT, "build_timeout")                                                              \
    X(RUN_CRASH, "run_crash")                                                                      \
    X(RUN_TIMEOUT, "run_timeout")                                                                  \
    X(WRONG_RESULT, "wrong_result")                                                                \
    X(OUT_OF_MEMORY, "out_of_memory")                                                              \
    X(UNSUPPORTED, "unsupported")                                                                  \
    X(ABANDONED, "abandoned")

#define WPK_OUTCOME_ENUM(name, text) WPK_OUTCOME_##name,
enum wpk_outcome { WPK_OUTCOME_LIST(WPK_OUTCOME_ENUM) WPK_OUTCOME_COUNT };

/* suffix, text: the content of the caches when a call begins */
#define WPK_CONDITIONS_LIST(X)                                                                     \
    X(WARM, "warm")                     /* the data of the call before */                          \
    X(COLD_CONSTANTS, "cold-constants") /* prepared constants come from memory: inside a model */  \
    X(COLD, "cold")                     /* everything comes from memory */

#define WPK_CONDITIONS_ENUM(name, text) WPK_CONDITIONS_##name,
enum wpk_conditions { WPK_CONDITIONS_LIST(WPK_CONDITIONS_ENUM) WPK_CONDITIONS_COUNT };

/* How a kernel is timed; part of every result's key. */
struct wpk_policy {
    int threads;                    /* of the kernel */
    enum wpk_conditions conditions; /* other than WARM: one call for each sample */
    uint64_t time_ns_min;           /* least measured time of a candidate; default 20 ms */
    int sample_count;               /* wanted, <= WPK_SAMPLES_MAX; default 10 */
    double race_ratio; /* stop when the minimum so far exceeds incumbent * ratio; 0: never */
};

/* A distribution of run times, one call each. */
struct wpk_timing {
    uint64_t median_ns;
    uint64_t min_ns;
    uint64_t mad_ns;     /* median absolute deviation */
    int sample_count;    /* 0: not timed */
    int repeat_count;    /* calls averaged in a sample */
    bool censored;       /* raced out: stopped early because clearly slower */
    int throttled_count; /* samples that count although the GPU's clocks were lowered */
    int disturbed_count; /* samples, most of them taken again, in which a CPU was waited for */
    uint64_t sample_ns[WPK_SAMPLES_MAX];
};

/* Hardware counters of one call, where the machine has them. */
struct wpk_counters {
    bool present;
    double cycles;
    double instructions;
    double l1d_misses;
    double llc_misses;
};

/* The most that a launch of a GPU's kernel needs. All 0: no GPU's, or not known. */
struct wpk_launch_use {
    int registers;        /* of a thread */
    int64_t local_bytes;  /* of local memory of a thread: spilled registers */
    int64_t shared_bytes; /* of a block */
};

/* Strings own their memory unless NULL; wpk_record_fini frees. */
struct wpk_record {
    enum wpk_outcome outcome;
    char log[WPK_LOG_MAX];    /* bounded excerpt; ok: a remark, or "" */
    struct wpk_timing timing; /* only for ok */
    uint64_t anchor_ns;       /* median of the anchor, timed in turns with the trial; 0: none */
    double anchor_ratio;      /* median ratio of its samples to the anchor's, in pairs; 0: none */
    char anchor_sha256[WPK_ID_MAX]; /* the anchor's artifact; "": none */
    bool anchor_failed; /* the anchor crashed, hung or did not open; not the candidate */
    struct wpk_counters counters;
    uint64_t build_ns;
    uint64_t verify_ns;
    uint64_t measure_ns;      /* wall time spent timing */
    double error_max;         /* largest |y - ref|, over all input sets */
    double error_tolerance;   /* allowed error at the point of error_max */
    double error_ratio;       /* largest |y - ref| / tolerance; <= 1 for ok */
    double of_rms;            /* rms(y - y64) / rms(y64) on the uniform set of inputs */
    double times_direct;      /* largest rms error over that of direct evaluation; 0: exact */
    uint64_t constants_bytes; /* of the prepared constants */
    struct wpk_launch_use launch;
    char *unseen;   /* possible faults that no input set shows; NULL: none */
    char *schedule; /* its text; NULL for vendors */
    char schedule_sha256[WPK_ID_MAX];
    char *artifact_path; /* where the worker left the shared object; NULL: none kept */
    char artifact_sha256[WPK_ID_MAX];
    char *recipe; /* a vendor's: the entry for a choice, as JSON */
    char *detail; /* a vendor's: its implementation's name, as oneDNN reports it */
};

void wpk_record_fini(struct wpk_record *record);
const char *wpk_conditions_name(enum wpk_conditions conditions);
/*   errors  WPK_ENOENT */
wpk_err wpk_conditions_parse(const char *text, enum wpk_conditions *out);
const char *wpk_outcome_name(enum wpk_outcome outcome);
/*   errors  WPK_ENOENT */
wpk_err wpk_outcome_parse(const char *text, enum wpk_outcome *out);

/* Rows for the structs (schema/fields.h). Texts of a decoded record are freed by wpk_record_fini(),
 * which is called after a failure, too. */
extern const struct wpk_field wpk_record_fields[];
extern const struct wpk_field wpk_timing_fields[];
extern const struct wpk_field wpk_counters_fields[];
extern const struct wpk_field wpk_launch_fields[]; /* the history keeps them as JSON */
extern const struct wpk_field wpk_policy_fields[];

/* JSON both ways; decode(encode(r)) equals r.
 *   owns    encode: caller frees *text with free(); decode: caller calls wpk_record_fini
 *   errors  WPK_EPARSE; WPK_EINVAL, WPK_ERANGE with field and position; WPK_ENOMEM */
wpk_err wpk_record_encode(const struct wpk_record *record, char **text);
wpk_err wpk_record_decode(const char *text, struct wpk_record *out, struct wpk_diag *diag);

#endif
