/* SPDX-License-Identifier: Apache-2.0 */
/* What all shorthands share: reading fields, declaring tensors, writing equations. Private to
 * shorthand*.c.
 *
 * A failure sticks in the reader; what is read after it is 0, so the writers need no checks as long
 * as they neither divide by nor loop over what they read without asking. */
#ifndef WPK_OP_SHORTHAND_READ_H
#define WPK_OP_SHORTHAND_READ_H

#include "common/json.h"
#include "op/notation.h"

#define WPK_SHORTHAND_TENSORS_MAX 16
/* Of strides, kernels, dilations and borders: products of two of them stay far below 2^63. */
#define WPK_SHORTHAND_STEP_MAX 65536

struct wpk_shape {
    int rank;
    int64_t extent[WPK_RANK_MAX];
};

struct wpk_shorthand {
    struct wpk_json_reader *reader;
    enum wpk_dtype dtype;        /* of the inputs */
    enum wpk_dtype output_dtype; /* of the output and what is added to it */
    struct wpk_buf text;         /* the equations */
    struct wpk_declaration tensor[WPK_SHORTHAND_TENSORS_MAX];
    int tensor_count;
};

/* ---- fields; those with a default may be absent */

bool wpk_shorthand_failed(const struct wpk_shorthand *s);
struct wpk_shape wpk_shorthand_shape(struct wpk_shorthand *s, const char *key, int rank_min,
                                     int rank_max);
/* `count` integers in [min, WPK_SHORTHAND_STEP_MAX]; defaults [count], or NULL: required */
void wpk_shorthand_steps(struct wpk_shorthand *s, const char *key, int64_t min,
                         const int64_t *defaults, int count, int64_t *out);
bool wpk_shorthand_flag(struct wpk_shorthand *s, const char *key, bool absent);
double wpk_shorthand_real(struct wpk_shorthand *s, const char *key, double min, double max,
                          double absent);
/* An axis number; negative ones count from the end, as everybody writes them. */
int wpk_shorthand_axis(struct wpk_shorthand *s, const char *key, int rank, int absent);

/* Reads "dtype" (f32) and "output_dtype"; `widens`: i8 and u8 give i32 unless it says otherwise. */
void wpk_shorthand_dtypes(struct wpk_shorthand *s, bool widens);
/* Fails unless the operator's type is floating. */
void wpk_shorthand_need_float(struct wpk_shorthand *s);

/* ---- tensors */

void wpk_shorthand_declare(struct wpk_shorthand *s, const char *name, enum wpk_dtype dtype,
                           const struct wpk_shape *shape, bool constant);
void wpk_shorthand_declare_output(struct wpk_shorthand *s, const struct wpk_shape *shape);
/* "constants": names of tensors that are the same for every call. After all declarations. */
void wpk_shorthand_constants(struct wpk_shorthand *s);

/* ---- text */

/* Axis names of a tensor, a0 … a9. */
extern const char *const wpk_shorthand_axes[WPK_RANK_MAX];

/* "name[a0,a1,…]"; where keep is not NULL, without the axes it does not mark. */
void wpk_shorthand_print_tensor(struct wpk_shorthand *s, const char *name, int rank,
                                const bool *keep);

/* The function of the field "activation": write its beginning before the expression and its end
 * after it. */
struct wpk_activation {
    const char *begin, *end;
};
struct wpk_activation wpk_shorthand_activation(struct wpk_shorthand *s);

/* ---- the types */

struct wpk_shorthand_type {
    const char *name;
    const char *const *fields; /* ends in NULL */
    void (*expand)(struct wpk_shorthand *s, const char *name);
};

/* Each ends in a row without a name. */
extern const struct wpk_shorthand_type wpk_shorthand_conv_types[];
extern const struct wpk_shorthand_type wpk_shorthand_pool_types[];
extern const struct wpk_shorthand_type wpk_shorthand_matrix_types[];
extern const struct wpk_shorthand_type wpk_shorthand_norm_types[];
extern const struct wpk_shorthand_type wpk_shorthand_pointwise_types[];

/* A sliding window over the last two axes of [N, C, H, W]. */
struct wpk_window {
    struct wpk_shape input;
    int64_t kernel[2], stride[2], dilation[2];
    int64_t padding[4]; /* top, left, bottom, right */
    int64_t output[2];  /* extents of y and x */
};

/* Reads input, kernel, stride (absent: 1, or the kernel when `stride_is_kernel`), padding and
 * dilation, and works out the output. */
void wpk_shorthand_window(struct wpk_shorthand *s, bool stride_is_kernel, struct wpk_window *out);
/* "2*y+r-1,2*x+s-1" */
void wpk_shorthand_print_window(struct wpk_shorthand *s, const struct wpk_window *window);

#endif
