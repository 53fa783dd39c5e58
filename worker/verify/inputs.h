/* SPDX-License-Identifier: Apache-2.0 */
/* Input sets, on which candidates are verified and timed: the same for the same op, kind and seed.
 *
 * Values are finite except in the masked and the special kind. Where the op is undefined on such
 * data (a logarithm, a division by zero), integers and reals are drawn again from other domains
 * (schema/draw.h), and the other kinds are left out. Reals and the kinds up to special have equal
 * constants, which are prepared once for all of them. The kinds from WPK_INPUT_JOINING on have
 * constants of their own, which costs each candidate more time: they join where the other kinds
 * leave a fault unseen (worker/runner/runner_ops.h). */
#ifndef WPK_WORKER_VERIFY_INPUTS_H
#define WPK_WORKER_VERIFY_INPUTS_H

#include "ir/program.h"
#include "schema/draw.h"

#include <stdint.h>

/* suffix, text */
#define WPK_INPUT_LIST(X)                                                                          \
    X(INTEGERS,                                                                                    \
      "integer")        /* small: sums are exact in any order, so exact algorithms must match */   \
    X(REALS, "real")    /* in [-1, 1); integer types use their range; what is timed */             \
    X(RELU, "relu")     /* of normal inputs: half are 0 */                                         \
    X(OFFSET, "offset") /* uniform in [7, 9): the large mean cancels in x - mean */                \
    X(MASKED,                                                                                      \
      "masked") /* -inf in inputs that an exp turns into 0; whole rows where all agree on NaN */   \
    X(WIDE, "wide")       /* in such inputs two elements of a row are larger by thousands */       \
    X(SPECIAL, "special") /* infinities, NaN and others in inputs of questions (ir/infinite.h) */  \
    X(SCALED, "scaled")   /* reals; constants are divided by the root of their sum's length */     \
    X(LARGE, "large")     /* integers of all sizes, as large as keeps sums exact */

#define WPK_INPUT_JOINING WPK_INPUT_SCALED

#define WPK_INPUT_ENUM(name, text) WPK_INPUT_##name,
enum wpk_input_kind { WPK_INPUT_LIST(WPK_INPUT_ENUM) WPK_INPUT_KINDS };

struct wpk_input_options {
    enum wpk_input_kind kind;
    enum wpk_draw_domain domain;
    bool inputs_only; /* make no constants */
    uint64_t seed;
    uint64_t constants_seed;
    double large; /* magnitude of the large kind's integers */
    bool rows;    /* the masked kind masks whole rows too */
};

/* = {0} is empty. */
struct wpk_inputs {
    void *dense[WPK_TENSORS_MAX];  /* owned; by tensor id, [extent...] row-major in its type; NULL
                                      for what is not an input or constant */
    double *wide[WPK_TENSORS_MAX]; /* owned; the same as doubles, after wpk_inputs_widen */
};

const char *wpk_input_kind_name(enum wpk_input_kind kind);

/* True if this kind draws some input or constant of the program unlike reals, or is that kind. */
bool wpk_inputs_differ(const struct wpk_program *program, enum wpk_input_kind kind);

/* True if two sets have the same constants. */
bool wpk_inputs_share_constants(const struct wpk_input_options *a,
                                const struct wpk_input_options *b);

/* Sums of integers below this are exact in any order, in every type that the program sums in.
 *   unit    2^24 (f32) to 2^53 (f64, i64) */
double wpk_inputs_exact_below(const struct wpk_program *program);

/* Draw the values of inputs and constants.
 *   owns    caller calls wpk_inputs_fini
 *   errors  WPK_ENOMEM */
wpk_err wpk_inputs_make(const struct wpk_program *program, const struct wpk_input_options *options,
                        struct wpk_inputs *out);
/* Fill `wide`, which only the interpreter needs.   errors  WPK_ENOMEM */
wpk_err wpk_inputs_widen(const struct wpk_program *program, struct wpk_inputs *inputs);
void wpk_inputs_fini(struct wpk_inputs *inputs);

#endif
