/* SPDX-License-Identifier: Apache-2.0 */
/* What wpkd says, as structs: the parts of schema/openapi.yaml that commands show.
 *
 * Decoders ignore members they do not know, so that a newer wpkd can be asked. Strings live in the
 * arena; a missing optional string is "", a missing number 0. */
#ifndef WPK_CLIENT_API_H
#define WPK_CLIENT_API_H

#include "client/http.h"
#include "common/arena.h"

#include <stdint.h>

/* One call's time; median_ns 0: not timed. */
struct wpk_api_time {
    uint64_t median_ns;
    uint64_t min_ns;
    uint64_t mad_ns;
};

/* What the asker calls a tensor, and what the kernel does. */
struct wpk_api_binding {
    const char *asked;
    const char *kernel;
};

/* One implementation with its time; provider NULL: there is none. */
struct wpk_api_contender {
    const char *provider;
    const char *algorithm;
    const char *detail;
    const char *candidate;
    struct wpk_api_time time;
    const char *artifact; /* SHA-256, "" none */
};

struct wpk_api_kernel {
    const char *id;
    const char *name;
    const char *fingerprint;
    struct wpk_api_contender served;
    struct wpk_api_contender baseline; /* the vendor, timed beside it */
    struct wpk_api_contender own;      /* the best of our own, served or not */
    double speedup;                    /* 0: no baseline */
    int64_t measured;
    int64_t failed;
    double error_max;
    double error_tolerance;
    double of_rms;       /* as in schema/record.h */
    double times_direct; /* likewise; -1: not measured, or of an older wpkd */
    bool from_history;
    bool is_served;
    bool pinned;
    bool revoked;
    const char *accuracy;            /* class; "": of an older wpkd */
    const char *conditions;          /* likewise */
    struct wpk_api_binding *binding; /* [binding_count], NULL: names are the kernel's */
    const char *binding_json;        /* the same as wpkd wrote it; NULL: none */
    int binding_count;
    const char *op;           /* whole form */
    const char *schedule;     /* "" for a vendor's */
    const char *own_schedule; /* of `own`; "" none */
    double flops;
    const char *device;
    double peak_flops_per_s; /* of one core; 0: unknown */
    const char *environment; /* versions it was measured in */
    const char *layouts;
    int threads;
    const char *created;
    const char *manifest;  /* as it was signed; "": none */
    const char *signature; /* hexadecimal */
};

struct wpk_api_op {
    const char *name;
    const char *fingerprint;
    const struct wpk_api_kernel *asked; /* fingerprint, device, class, conditions and binding that a
                                         * kernel of it has; the rest is empty */
    const char *phase;
    const char *reason;
    bool from_history;
    int64_t measured;
    int64_t failed;
    int64_t known; /* of those two, answered from history */
    int64_t wanted;
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
    const char *providers; /* separated by ", " */
    int64_t running;
    int64_t heard_seconds_ago;
    const char *reason;
};

#define WPK_API_LIST_MAX 10000 /* items of a list */

/* Has the job come to an end, whatever it was? */
bool wpk_api_job_ended(const struct wpk_api_job *job);

/*   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE  not what openapi.yaml promises; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_api_decode_job(const struct wpk_buf *body, struct wpk_arena *arena,
                                          struct wpk_api_job *out, struct wpk_diag *diag);

/* Lists: {"kernels": [...]}, {"jobs": [...]}; items [*count] in the arena. */
WPK_MUST_CHECK wpk_err wpk_api_decode_kernels(const struct wpk_buf *body, struct wpk_arena *arena,
                                              struct wpk_api_kernel **out, int *count,
                                              struct wpk_diag *diag);
WPK_MUST_CHECK wpk_err wpk_api_decode_jobs(const struct wpk_buf *body, struct wpk_arena *arena,
                                           struct wpk_api_job **out, int *count,
                                           struct wpk_diag *diag);
WPK_MUST_CHECK wpk_err wpk_api_decode_workers(const struct wpk_buf *body, struct wpk_arena *arena,
                                              struct wpk_api_worker **out, int *count,
                                              struct wpk_diag *diag);

/* Turn an answer that is not 2xx into a failure: the problem document's words into `diag`.
 *
 *   errors  WPK_OK for 2xx; WPK_EINVAL 400, 413, 415, 422; WPK_ENOENT 404; WPK_EACCES 401, 403;
 *           WPK_EBUSY 503; WPK_ENOSPC 429, 507; WPK_EIO anything else
 */
WPK_MUST_CHECK wpk_err wpk_api_check(const struct wpk_http_reply *reply, struct wpk_diag *diag);

#endif
