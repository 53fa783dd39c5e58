/* SPDX-License-Identifier: Apache-2.0 */
/* A candidate inside its child process: its provider, loaded with one input set, and its output. */
#ifndef WPK_WORKER_RUNNER_SUBJECT_H
#define WPK_WORKER_RUNNER_SUBJECT_H

#include "common/err.h"
#include "worker/measure.h"
#include "worker/provider/provider.h"
#include "worker/runner/runner.h"

/* Memory between guard pages: a kernel that leaves its buffer crashes instead of corrupting.
 *
 *     END      | guard | slack … buffer | guard |   the byte after the last one is the guard's
 *     START    | guard | buffer … slack | guard |   the byte before the first one is the guard's
 *     SHIFTED  | guard | element, buffer … slack | guard |   one element past a multiple of 64
 *     ALIGNED  | guard | slack … buffer, slack | guard |   at a multiple of 64, the last there is
 *
 * END and SHIFTED are aligned to the elements only, as the kernels' ABI allows; timing uses
 * ALIGNED. The slack holds a pattern, which wpk_guard_check compares. */

#define WPK_GUARD_BLOCKS_MAX 64

enum wpk_guard_placement {
    WPK_GUARD_ALIGNED,
    WPK_GUARD_END,
    WPK_GUARD_START,
    WPK_GUARD_SHIFTED,
};

struct wpk_guard_block {
    unsigned char *map; /* NULL: this block is free */
    size_t map_size;
    unsigned char *data;
    size_t size;
};

/* = {0} has no memory. `placement` may change: it is that of memory taken afterwards. */
struct wpk_guard {
    enum wpk_guard_placement placement;
    struct wpk_guard_block blocks[WPK_GUARD_BLOCKS_MAX];
    struct wpk_provider_memory memory; /* takes from this guard; set by init */
};

void wpk_guard_init(struct wpk_guard *guard, enum wpk_guard_placement placement);
void wpk_guard_fini(struct wpk_guard *guard);

/* Where a faulting address lies: "just past a buffer", "just before a buffer", or "nowhere near a
 * buffer". Static; safe in a signal handler. */
const char *wpk_guard_explain(const struct wpk_guard *guard, const void *address);

/* Check that every slack still has its pattern.   errors  WPK_ECORRUPT */
wpk_err wpk_guard_check(const struct wpk_guard *guard, struct wpk_diag *diag);

/* A provider with the inputs set and the constants prepared. = {0} is closed. */
struct wpk_subject {
    const struct wpk_program *program;
    const struct wpk_program *view; /* the same with one output, which is compared */
    struct wpk_guard guard;
    struct wpk_provider *provider;
    int output;   /* id of the output tensor that is compared */
    void *result; /* owned; the output of the last run, dense */
};

struct wpk_subject_options {
    const char *provider; /* name of the class */
    const char *artifact;
    const char *layouts;
    int threads;
    enum wpk_guard_placement placement;
    const struct wpk_program *view; /* borrowed; NULL: the first output is compared */
    const bool *excluded;           /* borrowed; of a vendor's algorithms: see provider.h */
};

/* Open the provider, set inputs and constants, and prepare.
 *   owns    caller calls wpk_subject_close; `program` is borrowed until then
 *   errors  those of the provider; WPK_EUNSUPPORTED no such provider */
wpk_err wpk_subject_open(struct wpk_subject *subject, const struct wpk_program *program,
                         const struct wpk_subject_options *options, const struct wpk_inputs *inputs,
                         struct wpk_diag *diag);
void wpk_subject_close(struct wpk_subject *subject);

/* True if the provider runs on memory of any alignment that its elements allow. */
bool wpk_subject_moves(const struct wpk_subject *subject);
/* Move inputs and outputs to `placement`, if the provider can, and set the inputs; constants stay
 * prepared.
 *   errors  WPK_ENOMEM */
wpk_err wpk_subject_move(struct wpk_subject *subject, enum wpk_guard_placement placement,
                         const struct wpk_inputs *inputs, struct wpk_diag *diag);

/* For each draw of the set's inputs: poison the output, run once, check for writes elsewhere, and
 * compare. The first draw's inputs are set before and afterwards. A wrong result is not an error:
 * see errors->ratio.
 *   errors  WPK_ECORRUPT the kernel wrote where it must not; the error that run returned */
wpk_err wpk_subject_verify(struct wpk_subject *subject, const struct wpk_answers *answers,
                           const struct wpk_verify_rule *rule, struct wpk_verify_errors *errors,
                           struct wpk_diag *diag);

/* Say why the last run failed. */
void wpk_subject_trouble(const struct wpk_subject *subject, struct wpk_diag *diag);

/* The argument with which wpk_measure() times the subject. */
struct wpk_measure_subject wpk_subject_measured(struct wpk_subject *subject);
/* Run once on the inputs that are set; `user` is the subject. */
wpk_err wpk_subject_run(void *user);
/* Measure `count` runs on the device's own clock. */
wpk_err wpk_subject_time(void *user, int count, uint64_t *ns);
wpk_err wpk_subject_cool(void *user, enum wpk_conditions conditions);

/* The outcome of a candidate whose provider returned `err`. */
enum wpk_outcome wpk_subject_outcome(wpk_err err);

#endif
