/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/verify/inputs.h"

#include "common/rng.h"
#include "ir/data_index.h"
#include "ir/infinite.h"
#include "ir/node.h"
#include "ir/reference/accuracy.h"
#include "schema/convert.h"

#include <math.h>
#include <stdlib.h>

#define CHUNK 1024
#define TURN 6.283185307179586
#define OFFSET 8.0
#define SPIKE 1000.0 /* exp of it is infinite in every type */
#define KEPT_EVERY 4

/* Magnitudes of set 0: a product is at most 16, so sums of a million terms stay below 2^24. */
#define SMALL_INTEGER 4
#define INDEX_MOST 127 /* of what every integer type holds */

static double draw_integer(struct wpk_rng *rng, enum wpk_dtype dtype, enum wpk_draw_domain domain)
{
    if (dtype == WPK_BOOL) {
        return (double)wpk_rng_below(rng, 2);
    }
    if (domain == WPK_DRAW_BELOW_ONE &&
        wpk_dtype_is_float(dtype)) { /* sums are exact all the same */
        return (double)wpk_rng_between(rng, -SMALL_INTEGER, SMALL_INTEGER) / (2 * SMALL_INTEGER);
    }
    if (domain == WPK_DRAW_POSITIVE || domain == WPK_DRAW_ABOVE_ONE) {
        return (double)wpk_rng_between(rng, 1, SMALL_INTEGER);
    }
    bool is_unsigned = dtype == WPK_U8;
    return (double)wpk_rng_between(rng, is_unsigned ? 0 : -SMALL_INTEGER, SMALL_INTEGER);
}

static const char *const input_names[] = {WPK_INPUT_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_input_kind_name, enum wpk_input_kind, input_names)

/* As many of one digit as of five: what a small one decides a large one hides. */
static double draw_large(struct wpk_rng *rng, enum wpk_dtype dtype, double magnitude, bool positive)
{
    if (dtype == WPK_BOOL) {
        return (double)wpk_rng_below(rng, 2);
    }
    double value = floor(exp(wpk_rng_unit(rng) * log(magnitude + 1)));
    int64_t low = -INT64_MAX, high = INT64_MAX;
    if (!wpk_dtype_is_float(dtype)) {
        wpk_dtype_integer_range(dtype, &low, &high);
    }
    bool negative = !positive && low < 0 && wpk_rng_chance(rng, 0.5);
    return fmax((double)low, fmin(negative ? -value : value, (double)high));
}

static double draw_normal(struct wpk_rng *rng)
{
    double radius = sqrt(-2 * log(1 - wpk_rng_unit(rng)));
    return radius * cos(TURN * wpk_rng_unit(rng));
}

/* One tensor that is being filled, and where. */
struct filling {
    const struct wpk_tensor *tensor;
    enum wpk_input_kind kind;
    enum wpk_draw_domain domain;
    bool nan;                 /* of the special kind, too */
    bool rows;                /* the masked kind leaves no element of some rows */
    double large;             /* as in the options */
    double factor;            /* of reals */
    struct wpk_domain within; /* of integers: a label's axis, what a power takes */
    struct wpk_rng rng;
    int64_t index[WPK_RANK_MAX]; /* of the next element */
};

/* -inf in places, but along no axis everywhere: of a long axis each fourth element is left, of a
 * short one the first. With whole rows: all that is last along some long axis besides. */
static bool is_masked(struct filling *f)
{
    int64_t sum = 0;
    bool kept = false;
    bool last = false;
    for (int d = 0; d < f->tensor->rank; d++) {
        bool is_long = f->tensor->extent[d] >= KEPT_EVERY;
        sum += is_long ? f->index[d] : 0;
        kept = kept || (!is_long && f->tensor->extent[d] > 1 && f->index[d] == 0);
        last = last || (is_long && f->index[d] == f->tensor->extent[d] - 1);
    }
    bool drawn = wpk_rng_chance(&f->rng, 0.5);
    return (f->rows && last) || (drawn && !kept && sum % KEPT_EVERY != 0);
}

/* Around these, functions become 0, 1 or infinite, or are undefined. Some are numbers. */
static double draw_special(struct filling *f)
{
    static const double numbers[] = {0,     -0.0,     1,         -1,       0.5,       -0.5,    2,
                                     88.5,  89,       -87.5,     -90,      1000,      -1000,   1e5,
                                     -1e20, 0x1p-126, -0x1p-126, 0x1p-133, -0x1p-133, 0x1p-24, -3};
    enum { COUNT = sizeof(numbers) / sizeof(numbers[0]), INFINITE = 2, LARGEST = 2, NAN_TOO = 2 };
    uint64_t at = wpk_rng_below(&f->rng, 2 * COUNT);
    if (at < COUNT) {
        return numbers[at];
    }
    double sign = at % 2 == 0 ? 1 : -1;
    at -= COUNT;
    if (at < INFINITE) {
        return sign * (double)INFINITY;
    }
    if (at < INFINITE + LARGEST) {
        return sign * wpk_accuracy_largest(f->tensor->dtype);
    }
    bool nan = f->nan && at < INFINITE + LARGEST + NAN_TOO;
    return nan ? (double)NAN : 4 * wpk_draw_uniform(&f->rng, f->tensor->dtype, f->domain);
}

static double draw(struct filling *f)
{
    enum wpk_dtype dtype = f->tensor->dtype;
    if (wpk_domain_is_limited(&f->within)) {
        double most = f->kind == WPK_INPUT_INTEGERS ? SMALL_INTEGER : INDEX_MOST;
        bool positive = f->domain == WPK_DRAW_POSITIVE || f->domain == WPK_DRAW_ABOVE_ONE;
        return wpk_draw_integer(&f->rng, f->within,
                                positive          ? 1
                                : dtype == WPK_U8 ? 0
                                                  : -most,
                                f->domain == WPK_DRAW_BELOW_ONE ? 0 : most);
    }
    switch (f->kind) {
    case WPK_INPUT_INTEGERS:
        return draw_integer(&f->rng, dtype, f->domain);
    case WPK_INPUT_RELU:
        return fmax(0, draw_normal(&f->rng)) + (f->domain != WPK_DRAW_ANY ? 0.125 : 0);
    case WPK_INPUT_OFFSET:
        return OFFSET + 2 * wpk_rng_unit(&f->rng) - 1;
    case WPK_INPUT_MASKED:
        return is_masked(f) ? -(double)INFINITY : wpk_draw_uniform(&f->rng, dtype, f->domain);
    case WPK_INPUT_WIDE: {
        /* Two neighbours in each row are large, other ones in the next row: two, because a
         * kernel's exp may limit what it gives of both to the same number. They differ by
         * thousands: without the first, the maximum is another one. 0: the element is not large. */
        int last = f->tensor->rank - 1;
        while (last > 0 && f->tensor->extent[last] == 1) {
            last--;
        }
        int64_t row = 0;
        for (int d = 0; d < last; d++) {
            row += f->index[d];
        }
        int64_t length = last >= 0 ? f->tensor->extent[last] : 1;
        int64_t at = (row + (last >= 0 ? f->index[last] : 0)) % length;
        double spike = at == 0   ? SPIKE * (double)wpk_rng_between(&f->rng, 2, 3)
                       : at == 1 ? SPIKE
                                 : 0;
        return spike > 0 ? spike : draw_integer(&f->rng, dtype, f->domain);
    }
    case WPK_INPUT_SPECIAL:
        return draw_special(f);
    case WPK_INPUT_LARGE:
        return draw_large(&f->rng, dtype, f->large, f->domain != WPK_DRAW_ANY);
    default:
        return f->factor * wpk_draw_uniform(&f->rng, dtype, f->domain);
    }
}

static void fill(struct filling *f, char *out)
{
    double chunk[CHUNK];
    int64_t count = wpk_tensor_elements(f->tensor);
    size_t size = wpk_dtype_size(f->tensor->dtype);
    for (int64_t done = 0; done < count; done += CHUNK) {
        int64_t now = count - done < CHUNK ? count - done : CHUNK;
        for (int64_t i = 0; i < now; i++) {
            chunk[i] = draw(f);
            for (int d = f->tensor->rank - 1; d >= 0 && ++f->index[d] == f->tensor->extent[d];
                 d--) {
                f->index[d] = 0;
            }
        }
        wpk_convert_narrow(f->tensor->dtype, chunk, now, out + (size_t)done * size);
    }
}

/* The most terms of a sum that the tensor's elements are in. */
static double count_terms(const struct wpk_program *program, int tensor)
{
    double most = 1;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        double terms = 1;
        for (int a = stage->rank; a < stage->axis_count; a++) {
            terms *= (double)stage->axes[a].extent;
        }
        for (struct wpk_loads load = wpk_loads_of(program, stage);
             wpk_loads_next(&load) && stage->reduction == WPK_REDUCE_SUM;) {
            most = load.node->tensor == tensor ? fmax(most, terms) : most;
        }
    }
    return most;
}

/* The factor of the reals of one tensor in a set of `kind`. */
static double find_factor(const struct wpk_program *program, int tensor, enum wpk_input_kind kind)
{
    const struct wpk_tensor *t = &program->tensors[tensor];
    bool scaled = kind == WPK_INPUT_SCALED && t->role == WPK_ROLE_CONSTANT;
    return scaled && wpk_dtype_is_float(t->dtype) ? 1 / sqrt(count_terms(program, tensor)) : 1;
}

/* The kind that tensor t is drawn from in a set of `kind`. */
static enum wpk_input_kind find_kind(const struct wpk_program *program,
                                     const struct wpk_infinite *infinite, int t,
                                     enum wpk_input_kind kind)
{
    const struct wpk_tensor *tensor = &program->tensors[t];
    if (kind == WPK_INPUT_INTEGERS || kind == WPK_INPUT_LARGE) {
        return kind;
    }
    bool wants = kind == WPK_INPUT_SPECIAL                            ? infinite->special[t] != 0
                 : kind == WPK_INPUT_MASKED || kind == WPK_INPUT_WIDE ? infinite->tensor[t]
                                                                      : kind != WPK_INPUT_SCALED;
    return wants && tensor->role == WPK_ROLE_INPUT && wpk_dtype_is_float(tensor->dtype)
               ? kind
               : WPK_INPUT_REALS;
}

bool wpk_inputs_differ(const struct wpk_program *program, enum wpk_input_kind kind)
{
    struct wpk_infinite infinite;
    bool differ = kind == WPK_INPUT_REALS;
    wpk_infinite_find(program, &infinite);
    for (int i = 0; i < program->tensor_count; i++) {
        const struct wpk_tensor *tensor = &program->tensors[i];
        differ = differ || (wpk_tensor_is_given(tensor) &&
                            (find_kind(program, &infinite, i, kind) != WPK_INPUT_REALS ||
                             find_factor(program, i, kind) < 1));
    }
    return differ;
}

/* Of the kinds that draw the constants alike, one. */
static enum wpk_input_kind constants_of(enum wpk_input_kind kind)
{
    bool own = kind == WPK_INPUT_INTEGERS || kind >= WPK_INPUT_JOINING;
    return own ? kind : WPK_INPUT_REALS;
}

bool wpk_inputs_share_constants(const struct wpk_input_options *a,
                                const struct wpk_input_options *b)
{
    return a->domain == b->domain && a->constants_seed == b->constants_seed &&
           a->large == b->large && constants_of(a->kind) == constants_of(b->kind);
}

double wpk_inputs_exact_below(const struct wpk_program *program)
{
    double below = 0x1p53;
    for (int t = 0; t < program->tensor_count; t++) {
        enum wpk_dtype dtype = program->tensors[t].dtype;
        bool wide = dtype == WPK_F64 || dtype == WPK_I64;
        below = fmin(below, wide ? 0x1p53 : 0x1p31);
    }
    for (int i = 0; i < program->node_count; i++) {
        enum wpk_dtype dtype = program->nodes[i].dtype;
        bool is_short = wpk_dtype_is_float(dtype) && dtype != WPK_F64;
        below = is_short ? fmin(below, 0x1p24) : below;
    }
    return below;
}

wpk_err wpk_inputs_make(const struct wpk_program *program, const struct wpk_input_options *options,
                        struct wpk_inputs *out)
{
    struct wpk_inputs inputs = {0};
    struct wpk_infinite infinite;
    struct wpk_domain domains[WPK_TENSORS_MAX];
    struct wpk_rng of_inputs;
    struct wpk_rng of_constants;
    wpk_rng_seed(&of_inputs, options->seed);
    wpk_rng_seed(&of_constants, ~options->constants_seed);
    wpk_infinite_find(program, &infinite);
    for (int i = 0; i < program->tensor_count; i++) {
        domains[i] = wpk_domain_all();
    }
    wpk_domain_find(program, domains);
    for (int i = 0; i < program->tensor_count; i++) {
        const struct wpk_tensor *tensor = &program->tensors[i];
        bool is_integer = !wpk_dtype_is_float(tensor->dtype) && tensor->dtype != WPK_BOOL;
        struct filling filling = {
            .tensor = tensor,
            .kind = find_kind(program, &infinite, i, options->kind),
            .domain = options->domain,
            .nan = (infinite.special[i] & WPK_MAY_BE_NAN) != 0,
            .rows = options->rows,
            .large = options->large,
            .factor = find_factor(program, i, options->kind),
            .within = is_integer ? domains[i] : wpk_domain_all(),
        };
        bool is_constant = tensor->role == WPK_ROLE_CONSTANT;
        if (!wpk_tensor_is_given(tensor) || (is_constant && options->inputs_only)) {
            continue;
        }
        /* A stream of its own for each tensor: adding one does not change the others. */
        wpk_rng_fork(is_constant ? &of_constants : &of_inputs, &filling.rng);
        inputs.dense[i] =
            malloc((size_t)wpk_tensor_elements(tensor) * wpk_dtype_size(tensor->dtype));
        if (inputs.dense[i] == NULL) {
            wpk_inputs_fini(&inputs);
            return WPK_ENOMEM;
        }
        fill(&filling, inputs.dense[i]);
    }
    *out = inputs;
    return WPK_OK;
}

wpk_err wpk_inputs_widen(const struct wpk_program *program, struct wpk_inputs *inputs)
{
    for (int i = 0; i < program->tensor_count; i++) {
        if (inputs->dense[i] == NULL || inputs->wide[i] != NULL) {
            continue;
        }
        int64_t count = wpk_tensor_elements(&program->tensors[i]);
        inputs->wide[i] = malloc((size_t)count * sizeof(double));
        if (inputs->wide[i] == NULL) {
            return WPK_ENOMEM;
        }
        wpk_convert_widen(program->tensors[i].dtype, inputs->dense[i], count, inputs->wide[i]);
    }
    return WPK_OK;
}

void wpk_inputs_fini(struct wpk_inputs *inputs)
{
    if (inputs == NULL) {
        return;
    }
    for (int i = 0; i < WPK_TENSORS_MAX; i++) {
        free(inputs->dense[i]);
        free(inputs->wide[i]);
    }
    *inputs = (struct wpk_inputs){0};
}
