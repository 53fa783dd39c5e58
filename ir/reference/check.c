/* SPDX-License-Identifier: Apache-2.0 */

#include "ir/cost.h"
#include "ir/node.h"
#include "ir/notation/notation.h"
#include "ir/reference/accuracy.h"
#include "ir/reference/direct.h"
#include "ir/reference/reference.h"
#include "schema/convert.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MIN 256
#define SCATTER 2654435761U /* 2^32 divided by the golden ratio */
#define ITERATIONS_MAX 4e9  /* of all points: some seconds */
#define DIRECT_SET 1        /* names the draw of direct's last places; any number does */

#define SCALE_MAX 0x1p40 /* of magnitudes that say how much a sum may lose, by its value */

/* One output as cells (schema/convert.h), at the points that are compared. */
struct comparison {
    struct wpk_program program;
    struct wpk_reference_args args; /* owned arrays */
    int64_t count;
    int64_t *points;   /* owned; [count][rank] */
    double *reference; /* owned; [count] */
    double *direct;    /* owned; [count] */
    double *magnitude; /* owned; [count]: the sum of absolute terms */
    double *value;     /* owned; [count]: the kernel's */
    bool steps;        /* rounding may change integers: they are marked by their magnitude */
};

static wpk_err widen_arguments(const struct wpk_check_tensor *inputs, int input_count,
                               struct comparison *c)
{
    c->args.cells = true;
    for (int i = 0; i < input_count; i++) {
        const struct wpk_check_tensor *tensor = &inputs[i];
        const struct wpk_tensor_type *type = tensor->type;
        int id = wpk_program_find_tensor(&c->program, tensor->name);
        double *wide = malloc((size_t)wpk_tensor_type_elements(type) * sizeof(*wide));
        if (wide == NULL) {
            return WPK_ENOMEM;
        }
        wpk_convert_to_cells(type->dtype, tensor->dense, wpk_tensor_type_elements(type), wide);
        c->args.tensor[id] = wide;
    }
    return WPK_OK;
}

/* Points all over the output: one in each of as many equal parts, not always at the same place. */
static wpk_err choose_points(const struct wpk_check_tensor *output, int64_t points_max,
                             struct comparison *c)
{
    const struct wpk_tensor_type *type = output->type;
    int64_t elements = wpk_tensor_type_elements(type);
    struct wpk_cost cost = {0};

    wpk_cost(&c->program, &cost);
    double most = ITERATIONS_MAX / (cost.flops / (double)elements + 1);
    most = most < POINTS_MIN ? POINTS_MIN : most > (double)points_max ? (double)points_max : most;
    c->count = (double)elements < most ? elements : (int64_t)most;
    size_t count = (size_t)c->count;
    c->points = calloc(count * (size_t)(type->rank > 0 ? type->rank : 1), sizeof(*c->points));
    c->reference = calloc(count, sizeof(double));
    c->direct = calloc(count, sizeof(double));
    c->magnitude = calloc(count, sizeof(double));
    c->value = calloc(count, sizeof(double));
    if (c->points == NULL || c->reference == NULL || c->direct == NULL || c->magnitude == NULL ||
        c->value == NULL) {
        return WPK_ENOMEM;
    }
    for (int64_t i = 0; i < c->count; i++) {
        int64_t begin = (int64_t)((double)i * ((double)elements / (double)c->count));
        int64_t end = (int64_t)((double)(i + 1) * ((double)elements / (double)c->count));
        int64_t size = end > begin && end <= elements ? end - begin : 1;
        int64_t element = begin + (int64_t)((uint64_t)i * SCATTER % (uint64_t)size);
        const char *at =
            (const char *)output->dense + (size_t)element * wpk_dtype_size(type->dtype);
        wpk_convert_to_cells(type->dtype, at, 1, &c->value[i]);
        for (int d = type->rank - 1; d >= 0; d--) {
            c->points[i * type->rank + d] = element % type->extent[d];
            element /= type->extent[d];
        }
    }
    return WPK_OK;
}

/* ---- comparison */

static void find_step(const struct wpk_program *program, int id, void *user)
{
    const struct wpk_node *node = &program->nodes[id];
    bool *steps = user;
    *steps = *steps ||
             (node->kind == WPK_NODE_UNARY &&
              (node->op == WPK_UNARY_TRUNC || node->op == WPK_UNARY_ROUND)) ||
             (node->kind == WPK_NODE_CAST && !wpk_dtype_is_float(node->dtype) &&
              node->dtype != WPK_BOOL && wpk_dtype_is_float(program->nodes[node->arg[0]].dtype));
}

/* True if a float becomes an integer somewhere: without that no magnitude is a mark. */
static bool has_steps(const struct wpk_program *program)
{
    bool steps = false;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        enum wpk_dtype stored = program->tensors[stage->output].dtype;
        wpk_node_walk(program, stage->expr, false, find_step, &steps);
        steps = steps || (stage->reduction != WPK_REDUCE_NONE &&
                          wpk_dtype_is_float(stage->accumulator) && !wpk_dtype_is_float(stored));
    }
    return steps;
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* The expected value of an element: the reference's, or an infinity where the reference exceeds the
 * range of the output's type, or direct evaluation that of the operator's types. */
static double wanted_at(const struct comparison *c, enum wpk_dtype dtype, int64_t i)
{
    double narrow = wpk_dtype_round(dtype, c->reference[i]);
    if (!isfinite(narrow) && is_same(narrow, c->value[i])) {
        return narrow;
    }
    return !isfinite(c->direct[i]) && is_same(c->direct[i], c->value[i]) ? c->direct[i]
                                                                         : c->reference[i];
}

/* NaN meets NaN, and an infinity the same one: those are no errors, anything else there is. */
static double error_of(double value, double wanted)
{
    if (is_same(value, wanted)) {
        return 0;
    }
    return isfinite(value) && isfinite(wanted) ? fabs(value - wanted) : INFINITY;
}

/* Divide by a power of two about as large as the largest number: squares neither overflow nor
 * vanish. The expected values replace the reference's. Returns the power. */
static double scale(struct comparison *c, enum wpk_dtype dtype)
{
    double largest = 0;
    int exponent = 0;
    for (int64_t i = 0; i < c->count; i++) {
        c->reference[i] = wpk_dtype_is_float(dtype) ? wanted_at(c, dtype, i) : c->reference[i];
        largest = fmax(largest, isfinite(c->reference[i]) ? fabs(c->reference[i]) : 0);
    }
    frexp(largest, &exponent);
    for (int64_t i = 0; i < c->count; i++) {
        bool marked = c->steps && c->magnitude[i] >= WPK_REFERENCE_STEP;
        c->value[i] = ldexp(c->value[i], -exponent);
        c->reference[i] = ldexp(c->reference[i], -exponent);
        c->direct[i] = isfinite(c->direct[i]) ? ldexp(c->direct[i], -exponent) : c->reference[i];
        c->magnitude[i] =
            marked ? WPK_REFERENCE_STEP : fmin(ldexp(c->magnitude[i], -exponent), SCALE_MAX);
    }
    return ldexp(1, exponent);
}

/* Make doubles of an i64 output's cells. Doubles lose small differences: what is wrong stays so. */
static void take_numbers(struct comparison *c)
{
    for (int64_t i = 0; i < c->count; i++) {
        int64_t value = wpk_cell_integer(c->value[i]), wanted = wpk_cell_integer(c->reference[i]);
        c->reference[i] = (double)wanted;
        c->direct[i] = wpk_cell_number(WPK_I64, c->direct[i]);
        c->value[i] = value != wanted && (double)value == (double)wanted
                          ? nextafter((double)value, INFINITY)
                          : (double)value;
    }
}

static void compare(struct comparison *c, enum wpk_dtype dtype, struct wpk_accuracy accuracy,
                    struct wpk_check *out)
{
    struct wpk_accuracy_sums ours = {0};
    struct wpk_accuracy_sums direct = {0};
    struct wpk_accuracy_errors errors = {0};
    double largest = 0;

    if (dtype == WPK_I64) {
        take_numbers(c);
    }
    double power = scale(c, dtype);

    wpk_accuracy_add(&ours, c->value, c->reference, c->magnitude, c->count);
    wpk_accuracy_add(&direct, c->direct, c->reference, c->magnitude, c->count);
    for (int64_t i = 0; i < c->count; i++) {
        bool marked = c->magnitude[i] >= WPK_REFERENCE_STEP;
        largest = fmax(largest, marked ? 0 : error_of(c->value[i], c->reference[i]));
    }
    double rms = ours.count > 0 ? sqrt(ours.value / (double)ours.count) : 0;
    double yardstick = wpk_accuracy_error(&direct);
    /* The typical error of direct evaluation on inputs of such size: rounding moves a sum by
     * about half a unit of the sum of its absolute terms. It is used for inputs on which direct
     * evaluation is exact, for instance multiples of 1/8, or may be nearly so by luck, at a few
     * points. */
    double squares = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < c->count; i++) {
        if (isfinite(c->magnitude[i]) && c->magnitude[i] < SCALE_MAX) {
            squares += c->magnitude[i] * c->magnitude[i];
            count++;
        }
    }
    double typical = count > 0 ? wpk_accuracy_unit(dtype) / 2 * sqrt(squares / (double)count) : 0;
    yardstick =
        yardstick > 0 ? fmax(yardstick, typical * fmin(1, 3 / sqrt((double)c->count))) : typical;
    wpk_accuracy_fold(&errors, dtype, &ours, yardstick);
    *out = (struct wpk_check){
        .points = c->count,
        .rms = rms * power,
        .of_rms = wpk_accuracy_of_rms(&ours),
        .max_of_rms = largest > 0 ? fmin(largest / rms, DBL_MAX) : 0,
        .times_direct = errors.times_direct,
        .allowed = accuracy.times_direct * (1 + 3 / sqrt((double)c->count)),
    };
    /* Of integers, and of zeros alone, every bit has to be right. */
    out->passed = wpk_dtype_is_float(dtype) && yardstick > 0
                      ? out->times_direct <= out->allowed && isfinite(largest)
                      : largest == 0;
}

static wpk_err compare_points(struct comparison *c, const struct wpk_check_tensor *inputs,
                              int input_count, const struct wpk_check_tensor *output,
                              struct wpk_accuracy accuracy, int64_t points_max,
                              struct wpk_check *out, struct wpk_diag *diag)
{
    c->steps = has_steps(&c->program);
    wpk_err err = widen_arguments(inputs, input_count, c);
    err = err == WPK_OK ? choose_points(output, points_max, c) : err;
    if (err == WPK_OK) {
        err = wpk_reference_run_at(&c->program, &c->args, c->points, c->count, c->reference,
                                   c->magnitude, diag);
    }
    if (err == WPK_OK) {
        err = wpk_direct_run_at(&c->program, &c->args, DIRECT_SET, c->points, c->count, c->direct,
                                diag);
    }
    if (err == WPK_OK) {
        compare(c, output->type->dtype, accuracy, out);
    }
    return err;
}

/* ---- outputs */

/* Fail unless the program has the arguments; leave it one output. */
static wpk_err select_output(struct wpk_program *program, const struct wpk_check_tensor *inputs,
                             int input_count, const struct wpk_check_tensor *output,
                             struct wpk_diag *diag)
{
    for (int i = 0; i <= input_count; i++) {
        const char *name = i == input_count ? output->name : inputs[i].name;
        if (wpk_program_find_tensor(program, name) < 0) {
            return wpk_fail(diag, WPK_ECORRUPT,
                            "the kernel's operator has no tensor %s; get the kernel again", name);
        }
    }
    for (int t = 0; t < program->tensor_count; t++) {
        struct wpk_tensor *tensor = &program->tensors[t];
        bool other = strcmp(tensor->name, output->name) != 0;
        tensor->role =
            tensor->role == WPK_ROLE_OUTPUT && other ? WPK_ROLE_INTERMEDIATE : tensor->role;
    }
    return WPK_OK;
}

static wpk_err check_output(const char *op, const struct wpk_check_tensor *inputs, int input_count,
                            const struct wpk_check_tensor *output, struct wpk_accuracy accuracy,
                            int64_t points_max, struct wpk_check *out, struct wpk_diag *diag)
{
    struct comparison *c = calloc(1, sizeof(*c)); /* a program is too large for a stack */
    if (c == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_program_parse(op, &c->program, diag);
    err = err == WPK_OK ? select_output(&c->program, inputs, input_count, output, diag) : err;
    if (err == WPK_OK) {
        err = compare_points(c, inputs, input_count, output, accuracy, points_max, out, diag);
    }
    for (int i = 0; i < WPK_TENSORS_MAX; i++) {
        free((void *)(uintptr_t)c->args.tensor[i]);
    }
    free(c->points);
    free(c->reference);
    free(c->direct);
    free(c->magnitude);
    free(c->value);
    wpk_program_fini(&c->program);
    free(c);
    return err;
}

wpk_err wpk_check(const char *op, const struct wpk_check_tensor *tensors, int input_count,
                  int output_count, struct wpk_accuracy accuracy, int64_t points_max,
                  struct wpk_check *out, struct wpk_diag *diag)
{
    const struct wpk_check_tensor *outputs = &tensors[input_count];
    struct wpk_check all = {.passed = true};

    for (int i = 0; i < output_count; i++) {
        struct wpk_check one = {.passed = false};
        wpk_err err =
            check_output(op, tensors, input_count, &outputs[i], accuracy, points_max, &one, diag);
        if (err != WPK_OK) {
            return err;
        }
        all = (struct wpk_check){
            .points = all.points + one.points,
            .rms = fmax(all.rms, one.rms),
            .of_rms = fmax(all.of_rms, one.of_rms),
            .max_of_rms = fmax(all.max_of_rms, one.max_of_rms),
            .times_direct = fmax(all.times_direct, one.times_direct),
            .allowed = fmax(all.allowed, one.allowed),
            .passed = all.passed && one.passed,
        };
    }
    *out = all;
    return WPK_OK;
}
