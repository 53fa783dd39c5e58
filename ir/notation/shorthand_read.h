/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that all shorthands share: reading fields, declaring tensors, writing equations.
 * Private to shorthand*.c.
 *
 * The reader keeps the first failure, and every later field reads as 0. A shorthand must ask
 * wpk_shorthand_failed only before it divides by a field or loops over it. */
#ifndef WPK_IR_NOTATION_SHORTHAND_READ_H
#define WPK_IR_NOTATION_SHORTHAND_READ_H

#include "common/json.h"
#include "ir/notation/notation.h"

#define WPK_SHORTHAND_TENSORS_MAX 16
/* The largest stride, kernel, dilation or border: products of two of them are far below 2^63. */
#define WPK_SHORTHAND_STEP_MAX 65536

struct wpk_shape {
    int rank;
    int64_t extent[WPK_RANK_MAX];
};

struct wpk_shorthand {
    struct wpk_json_reader *reader;
    const char *name;            /* of the type */
    enum wpk_dtype dtype;        /* of the inputs */
    enum wpk_dtype output_dtype; /* of the output, and of tensors that are added to it */
    struct wpk_buf text;         /* the equations */
    struct wpk_declaration tensor[WPK_SHORTHAND_TENSORS_MAX];
    int tensor_count;
};

/* ---- fields; those with a default may be absent */

bool wpk_shorthand_failed(const struct wpk_shorthand *s);
struct wpk_shape wpk_shorthand_shape(struct wpk_shorthand *s, const char *key, int rank_min,
                                     int rank_max);
/* Read `count` integers in [min, WPK_SHORTHAND_STEP_MAX].
 *   shape   defaults [count]; NULL: the field is required */
void wpk_shorthand_steps(struct wpk_shorthand *s, const char *key, int64_t min,
                         const int64_t *defaults, int count, int64_t *out);
bool wpk_shorthand_flag(struct wpk_shorthand *s, const char *key, bool absent);
double wpk_shorthand_real(struct wpk_shorthand *s, const char *key, double min, double max,
                          double absent);
/* Read an axis number; a negative one counts from the end. */
int wpk_shorthand_axis(struct wpk_shorthand *s, const char *key, int rank, int absent);

/* Fail unless `dtype` is floating. */
void wpk_shorthand_need_float(struct wpk_shorthand *s);

/* ---- tensors */

void wpk_shorthand_declare(struct wpk_shorthand *s, const char *name, enum wpk_dtype dtype,
                           const struct wpk_shape *shape, bool constant);
void wpk_shorthand_declare_output(struct wpk_shorthand *s, const struct wpk_shape *shape);
/* Read "constants": names of tensors that are the same in every call. Call it after all
 * declarations. */
void wpk_shorthand_constants(struct wpk_shorthand *s);

/* ---- text */

/* Axis names of a tensor, a0 … a9. */
extern const char *const wpk_shorthand_axes[WPK_RANK_MAX];

/* Write a text in which [*] are all of `rank` axes, [k] those that `keep` marks, [r] and (r) the
 * others: "Y[k] = sum(r) X[*]".   shape  keep [rank]; NULL: only [*] is there */
void wpk_shorthand_print(struct wpk_shorthand *s, int rank, const bool *keep, const char *text);

/* The function of the field "activation". The caller writes `begin` before the expression and `end`
 * after it. */
struct wpk_activation {
    const char *begin, *end;
};
struct wpk_activation wpk_shorthand_activation(struct wpk_shorthand *s);

/* ---- the types */

/* The types that operands may have. */
enum wpk_shorthand_operands {
    WPK_SHORTHAND_ANY,
    WPK_SHORTHAND_WIDENED, /* any; the output of i8 and u8 is i32 unless it is given */
    WPK_SHORTHAND_FLOAT,
};

struct wpk_shorthand_type {
    const char *name;
    const char *fields; /* their names, with spaces between them; besides "type" */
    void (*expand)(struct wpk_shorthand *s); /* dtype and output_dtype are read */
    enum wpk_shorthand_operands operands;
};

/* Tables of types; each ends with a row without a name. */
extern const struct wpk_shorthand_type wpk_shorthand_conv_types[];
extern const struct wpk_shorthand_type wpk_shorthand_pool_types[];
extern const struct wpk_shorthand_type wpk_shorthand_matrix_types[];
extern const struct wpk_shorthand_type wpk_shorthand_norm_types[];
extern const struct wpk_shorthand_type wpk_shorthand_attention_types[];
extern const struct wpk_shorthand_type wpk_shorthand_pointwise_types[];

/* A sliding window over the last two axes of [N, C, H, W]. */
struct wpk_window {
    struct wpk_shape input;
    int64_t kernel[2], stride[2], dilation[2];
    int64_t padding[4]; /* top, left, bottom, right */
    int64_t output[2];  /* extents of y and x */
};

/* Read input, kernel, stride (absent: 1, or the kernel if `stride_is_kernel`), padding and
 * dilation, and compute the output's extents. */
void wpk_shorthand_window(struct wpk_shorthand *s, bool stride_is_kernel, struct wpk_window *out);
/* Write the indices of the window: "2*y+r-1,2*x+s-1". */
void wpk_shorthand_print_window(struct wpk_shorthand *s, const struct wpk_window *window);

#endif
