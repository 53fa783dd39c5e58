/* SPDX-License-Identifier: Apache-2.0 */
/* The service that a model is tuned with, such as a wpkd that is asked over REST: the functions
 * that the tuning calls, from one thread. */
#ifndef WPK_MODEL_PLAN_TUNE_SOURCE_H
#define WPK_MODEL_PLAN_TUNE_SOURCE_H

#include "common/buf.h"
#include "ir/cost.h"
#include "schema/answer.h"
#include "schema/job.h"

/* suffix, text: where an expected time is from (model/plan/tune.h) */
#define WPK_TUNE_FROM_LIST(X)                                                                      \
    X(MEASURED, "measured")                                                                        \
    X(ELSEWHERE, "elsewhere")                                                                      \
    X(NEAREST_SHAPE, "nearest_shape") X(FAMILY, "family") X(ROOFLINE, "roofline")

#define WPK_TUNE_FROM_ENUM(name, text) WPK_TUNE_FROM_##name,
enum wpk_tune_from { WPK_TUNE_FROM_LIST(WPK_TUNE_FROM_ENUM) WPK_TUNE_FROM_COUNT };

/* An operator's time before it is measured. */
struct wpk_tune_expected {
    double ns; /* of one call; 0: not known */
    enum wpk_tune_from from;
};

/* The machine that times the kernels. */
struct wpk_tune_machine {
    struct wpk_roofline roofline; /* with the threads of the job */
    int64_t cache_bytes;          /* of the last cache; 0: not known */
};

enum wpk_tune_notice { WPK_TUNE_PROGRESS, WPK_TUNE_RESULT };

struct wpk_tune_source {
    /* Run a job until it ends, is interrupted, or the time is over.
     *
     *   shape   until_ns: of the system's clock; 0: any time
     *   owns    `out` lives in the arena, which the caller frees
     *   errors  any; a job that has failed or was cancelled is none */
    wpk_err (*run)(void *user, const struct wpk_job *job, uint64_t until_ns,
                   struct wpk_arena *arena, struct wpk_api_job *out, struct wpk_diag *diag);
    /* Append the best shared object of a kernel that libwpk can load: a generated one, else the
     * plain one.
     *   errors  WPK_ENOENT there is none, without a text in `diag`; any other */
    wpk_err (*fetch)(void *user, const struct wpk_api_kernel *kernel, struct wpk_buf *object,
                     struct wpk_diag *diag);
    /* Say what history knows of the times of the job's operators; NULL: there is no history.
     *   shape   out [job->op_count], zeroed; `from` of an unknown one is not read
     *   errors  any: the times are from rooflines then */
    wpk_err (*expect)(void *user, const struct wpk_job *job, struct wpk_tune_expected *out,
                      struct wpk_diag *diag);
    bool (*is_interrupted)(void *user); /* the user wants it to end; NULL: never */
    void (*go_on)(void *user);          /* forget that; NULL only as the one before */
    /* Tell the user a line, without its end; NULL: silent. */
    void (*notice)(void *user, enum wpk_tune_notice kind, const char *text);
    void *user;
};

/* Tell the user a line, if the source does so. */
void wpk_tune_tell(const struct wpk_tune_source *source, enum wpk_tune_notice kind,
                   const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
