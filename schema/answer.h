/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of wpkd as structs: the parts of schema/openapi.yaml that commands show.
 *
 * Decoders ignore members that they do not know, so that wpkctl can ask a newer wpkd. Strings live
 * in the arena. A missing optional string is "", a missing number 0. */
#ifndef WPK_SCHEMA_ANSWER_H
#define WPK_SCHEMA_ANSWER_H

#include "common/arena.h"
#include "common/buf.h"
#include "schema/accuracy.h"

#include <stdint.h>

/* The time of one call; median_ns 0: not timed. */
struct wpk_api_time {
    uint64_t median_ns;
    uint64_t min_ns;
    uint64_t mad_ns;
};

/* One implementation with its time; provider NULL: no implementation. */
struct wpk_api_contender {
    const char *provider;
    const char *algorithm;
    const char *detail;
    const char *candidate;
    struct wpk_api_time time;
    const char *artifact; /* SHA-256; "": none */
};

struct wpk_api_kernel {
    const char *id;
    const char *name;
    const char *fingerprint;
    struct wpk_api_contender served;
    struct wpk_api_contender baseline; /* the vendor's, timed beside `served` */
    struct wpk_api_contender own;      /* the best generated kernel, served or not */
    double speedup;                    /* 0: no baseline */
    int64_t measured;
    int64_t failed;
    double error_max;
    double error_tolerance;
    double of_rms;       /* as in schema/record.h */
    double times_direct; /* as in schema/record.h; -1: not measured */
    bool from_history;
    bool is_served;
    bool pinned;
    bool revoked;
    const char *accuracy; /* class */
    /* The class that wpk_find_best was asked for; "": it was not asked. */
    char found_for[WPK_ACCURACY_TEXT_MAX];
    /* The kernel's error exceeds the class `found_for`; another implementation may fit. */
    bool is_too_wide;
    const char *conditions;   /* when it was timed */
    const char *binding_json; /* names in the job and in the kernel; NULL: those of the kernel */
    const char *op;           /* whole form */
    const char *schedule;     /* of `served`; "" for a vendor's */
    const char *own_schedule; /* of `own`; "": none */
    double flops;
    double bytes; /* of its inputs, constants and outputs */
    const char *device;
    double peak_flops_per_s; /* of one core; 0: unknown */
    double peak_bytes_per_s; /* likewise */
    const char *environment; /* versions of compiler, runtime and libraries when it was measured */
    const char *layouts;
    int threads;
    const char *created;
    const char *verified_by; /* worker; "": nobody */
    const char *job;         /* the oldest left that asked for its search; "": none is */
    const char *owner;       /* of that job */
    const char *manifest;    /* the bytes that were signed; "": none */
    const char *signature;   /* of `manifest`, in hexadecimal */
};

struct wpk_api_op {
    const char *name;
    const char *fingerprint;
    const struct wpk_api_kernel *asked; /* fingerprint, device, class, conditions and binding of the
                                         * operator's kernels; id and layouts are empty */
    const char *phase;
    const char *reason;
    bool from_history;
    int64_t measured;
    int64_t failed;
    int64_t known;  /* trials of measured and failed that history answered */
    int64_t wanted; /* trials of the budget */
    struct wpk_api_contender best;
    struct wpk_api_contender baseline;
};

struct wpk_api_job {
    const char *id;
    const char *name;
    const char *owner;
    const char *state;
    const char *reason;
    const char *created;
    double seconds;
    int64_t seconds_left;
    struct wpk_api_op *ops; /* [op_count] */
    int op_count;
    struct wpk_api_kernel *kernels; /* [kernel_count] */
    int kernel_count;
};

struct wpk_api_worker {
    const char *name;
    const char *state;
    const char *device;
    const char *driver;      /* of a GPU; "": it is none */
    int64_t memory_bytes;    /* of a GPU; 0: not known */
    int64_t cache_bytes;     /* of a CPU's last cache; 0: not known */
    double peak_flops_per_s; /* of one core; 0: not measured */
    double peak_bytes_per_s; /* likewise */
    const char *providers;   /* separated by ", " */
    const char *missing;     /* likewise: back ends that it does not offer, and why */
    int64_t running;
    int64_t heard_seconds_ago;
    const char *reason;
};

/* A trial of a search. */
struct wpk_api_trial {
    int64_t index; /* number of the ask; -1: a vendor's, or the plain kernel */
    const char *provider;
    const char *candidate;
    const char *source;  /* of the candidate, as in openapi.yaml; "": a vendor's, or plain */
    const char *outcome; /* "ok", ... */
    const char *log;
    const char *recorded;             /* date and time; "": not yet */
    bool censored;                    /* raced out: its time is a lower bound */
    double median_ns, min_ns, mad_ns; /* 0: none */
    double ratio;                     /* time over that of the search's anchor; 0: none */
    int64_t spilled_bytes;            /* of registers of a GPU's thread */
};

/* Find the value of a gene in a candidate's text, with its size; "" where it has none.
 *   shape  gene [length] */
const char *wpk_api_trial_gene(const char *candidate, const char *gene, size_t length,
                               size_t *size);

#define WPK_API_LIST_MAX 10000 /* items in a list */

/* True if the job has ended: done, failed or cancelled. */
bool wpk_api_job_ended(const struct wpk_api_job *job);

/* Decode one job.
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE  not what openapi.yaml promises; WPK_ENOMEM */
wpk_err wpk_api_decode_job(const struct wpk_buf *body, struct wpk_arena *arena,
                           struct wpk_api_job *out, struct wpk_diag *diag);

/* A list; those of other items are NULL. */
struct wpk_api_list {
    struct wpk_api_kernel *kernels; /* [count], as are the others; in the arena */
    struct wpk_api_job *jobs;
    struct wpk_api_worker *workers;
    struct wpk_api_trial *trials;
    int count;
};

/* Decode {"kernels": [...]}, {"jobs": [...]}, {"workers": [...]} or {"trials": [...]}.
 *   errors  those of wpk_api_decode_job; then *out is empty or decoded in part */
wpk_err wpk_api_decode_list(const struct wpk_buf *body, struct wpk_arena *arena,
                            struct wpk_api_list *out, struct wpk_diag *diag);

/* Turn an answer that is not 2xx into a failure; `diag` gets the text of the problem document.
 *
 *   shape   status: of HTTP
 *   errors  WPK_OK for 2xx; WPK_EINVAL 400, 413, 415, 422; WPK_ENOENT 404; WPK_EACCES 401, 403;
 *           WPK_EBUSY 503; WPK_ENOSPC 429, 507; WPK_EIO anything else
 */
wpk_err wpk_api_check(int status, const struct wpk_buf *body, struct wpk_diag *diag);

/* The operator of this name; NULL: the job has none. */
const struct wpk_api_op *wpk_api_job_op(const struct wpk_api_job *job, const char *name);

#endif
