/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/verify/verify.h"

#include "ir/node.h"
#include "ir/reference/reference.h"
#include "schema/convert.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#define TERMS_FACTOR 6.0 /* of u k sum|terms|; both are explained in the header */
#define ORDER_FACTOR 2.0 /* of u sqrt(n) |ref| */

#define CHUNK 4096

static const struct wpk_tensor *output_of(const struct wpk_program *op)
{
    return &op->tensors[wpk_program_output(op)];
}

/* ---- exactness */

static bool node_is_exact(const struct wpk_node *node)
{
    bool floating = wpk_dtype_is_float(node->dtype);
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        return !floating || isinf(node->value) || node->value == nearbyint(node->value);
    case WPK_NODE_UNARY:
        return node->op == WPK_UNARY_NEG || node->op == WPK_UNARY_NOT ||
               node->op == WPK_UNARY_ABS || wpk_unary_makes_whole(node->op);
    case WPK_NODE_BINARY:
        return node->op != WPK_BINARY_POW &&
               !(floating && (node->op == WPK_BINARY_DIV || node->op == WPK_BINARY_MOD));
    default:
        return true;
    }
}

static void visit_exact(const struct wpk_program *program, int node, void *user)
{
    bool *exact = user;
    *exact = *exact && node_is_exact(&program->nodes[node]);
}

bool wpk_verify_is_exact(const struct wpk_program *op)
{
    bool exact = !wpk_verify_has_transforms(op);
    for (int i = 0; i < op->stage_count && exact; i++) {
        wpk_node_walk(op, op->stages[i].expr, false, visit_exact, &exact);
    }
    /* A short type in between rounds, which the interpreter does not follow. */
    for (int i = 0; i < op->tensor_count; i++) {
        const struct wpk_tensor *tensor = &op->tensors[i];
        if (tensor->role == WPK_ROLE_INTERMEDIATE &&
            (tensor->dtype == WPK_F16 || tensor->dtype == WPK_BF16)) {
            exact = false;
        }
    }
    return exact;
}

bool wpk_verify_has_transforms(const struct wpk_program *program)
{
    for (int i = 0; i < program->tensor_count; i++) {
        const struct wpk_tensor *tensor = &program->tensors[i];
        if (tensor->role == WPK_ROLE_LITERAL && wpk_dtype_is_float(tensor->dtype)) {
            return true;
        }
    }
    return false;
}

/* ---- comparison */

#define UNDERFLOW_FACTOR                                                                           \
    1024 /* by which a value that flushed to 0 may be multiplied: x sigmoid(x) */

struct tolerance {
    double of_magnitude;
    double of_value;
    double least; /* below the least normal numbers, rounding is absolute or flushes to 0 */
};

/* True if a value inside may be tiny though none of its operands is: exp(-100), sigmoid(-100). */
static bool may_underflow(const struct wpk_program *op)
{
    for (int i = 0; i < op->node_count; i++) {
        if (op->nodes[i].kind == WPK_NODE_UNARY &&
            (op->nodes[i].op == WPK_UNARY_EXP || op->nodes[i].op == WPK_UNARY_SIGMOID)) {
            return true;
        }
    }
    return false;
}

static bool ends_stage(const struct wpk_program *op, int node)
{
    bool ends = false;
    for (int s = 0; s < op->stage_count; s++) {
        ends = ends || op->stages[s].expr == node;
    }
    return ends;
}

/* The units of what is computed before it is stored: `computed` in arithmetic, f64's at least, and
 * `rounded`, to which casts round values that the reference keeps; 0: none. */
static void find_units(const struct wpk_program *op, double *computed, double *rounded)
{
    *computed = wpk_accuracy_unit(WPK_F64);
    *rounded = 0;
    for (int i = 0; i < op->node_count; i++) {
        const struct wpk_node *node = &op->nodes[i];
        bool half = node->dtype == WPK_F16 || node->dtype == WPK_BF16;
        if (node->kind == WPK_NODE_UNARY || node->kind == WPK_NODE_BINARY) {
            *computed = fmax(*computed, wpk_accuracy_unit(node->dtype));
        } else if (node->kind == WPK_NODE_CAST && half && !ends_stage(op, i)) {
            *rounded = fmax(*rounded, wpk_accuracy_unit(node->dtype));
        }
    }
    for (int s = 0; s < op->stage_count; s++) {
        if (op->stages[s].reduction != WPK_REDUCE_NONE) {
            *computed = fmax(*computed, wpk_accuracy_unit(op->stages[s].accumulator));
        }
    }
}

static struct tolerance find_tolerance(const struct wpk_program *op, double times)
{
    double u = wpk_accuracy_unit(WPK_F32), computed, rounded;
    double terms = 1;
    for (int i = 0; i < op->stage_count; i++) {
        const struct wpk_stage *stage = &op->stages[i];
        double own = 1;
        for (int a = stage->rank; a < stage->axis_count; a++) {
            own *= (double)stage->axes[a].extent;
        }
        terms = fmax(terms, own);
        enum wpk_dtype stored = op->tensors[stage->output].dtype;
        if (op->tensors[stage->output].role == WPK_ROLE_INTERMEDIATE) {
            u = fmax(u, wpk_accuracy_unit(stored));
        }
    }
    enum wpk_dtype output = output_of(op)->dtype;
    find_units(op, &computed, &rounded);
    if (output == WPK_F64) {
        u = computed;
    }
    return (struct tolerance){
        .of_magnitude = u * TERMS_FACTOR * times + rounded,
        .of_value = u * ORDER_FACTOR * sqrt(terms) + wpk_accuracy_unit(output),
        .least = (output == WPK_F64   ? DBL_MIN
                  : output == WPK_F16 ? 0x1p-24
                                      : (double)FLT_MIN) *
                 (may_underflow(op) ? UNDERFLOW_FACTOR : 1),
    };
}

struct comparison {
    enum wpk_dtype dtype;
    bool exact;
    bool spread; /* transforms carry the error of a tile's largest terms to all of its points */
    struct tolerance tolerance;
    const struct wpk_answers *answers;
    struct wpk_verify_errors *errors;
};

static void compare_point(const struct comparison *c, int64_t i, double y)
{
    double reference = c->answers->value[i];
    double tolerance = 0;
    if (c->answers->magnitude[i] < 0) {
        return;
    }
    if (c->exact && c->answers->magnitude[i] < WPK_REFERENCE_STEP) {
        char narrow[8];
        wpk_convert_narrow(c->dtype, &c->answers->value[i], 1, narrow);
        wpk_convert_widen(c->dtype, narrow, 1, &reference);
    } else if (wpk_dtype_is_float(c->dtype)) {
        double magnitude = c->spread ? c->answers->magnitude_max : c->answers->magnitude[i];
        tolerance = c->tolerance.of_magnitude * magnitude +
                    c->tolerance.of_value * fabs(reference) + c->tolerance.least;
    } else {
        tolerance = floor(c->answers->magnitude[i] / WPK_REFERENCE_STEP);
    }
    double largest = wpk_accuracy_largest(c->dtype);
    if (isinf(y) && isfinite(reference) && fabs(reference) + tolerance > largest) {
        y = (y > 0) == (reference > 0) ? reference : y; /* it overflows */
    }
    /* Written so that a NaN fails every comparison on the right side, and without calls. */
    double error = fabs(y - reference);
    double ratio = error > 0 ? error / tolerance : 0;
    if (!(error <= DBL_MAX)) {
        /* not a number, or infinite: right where it must be, else as wrong as can be */
        bool same = y == reference || (y != y && reference != reference);
        error = ratio = same ? 0 : DBL_MAX;
        tolerance = 0;
    }
    ratio = ratio <= DBL_MAX ? ratio : DBL_MAX;
    struct wpk_verify_errors *e = c->errors;
    if (error > e->max) {
        e->max = error;
        e->max_tolerance = tolerance;
    }
    if (ratio > e->ratio) {
        e->ratio = ratio;
        e->tolerance = tolerance;
        e->point = i;
        e->value = y;
        e->reference = reference;
    }
}

static struct comparison begin(const struct wpk_program *op, const struct wpk_answers *answers,
                               const struct wpk_verify_rule *rule, struct wpk_verify_errors *errors)
{
    WPK_ASSERT(rule->times >= 1);
    return (struct comparison){
        .dtype = output_of(op)->dtype,
        .exact = rule->exact && answers->exact,
        .spread = rule->transforms,
        .tolerance = find_tolerance(op, rule->times),
        .answers = answers,
        .errors = errors,
    };
}

double wpk_verify_ratio(const struct wpk_program *op, const struct wpk_answers *answers,
                        const struct wpk_verify_rule *rule, int64_t index, double value)
{
    struct wpk_verify_errors errors = {0};
    const struct comparison c = begin(op, answers, rule, &errors);
    WPK_ASSERT(index < answers->count);
    compare_point(&c, index, value);
    return errors.ratio;
}

void wpk_verify_compare(const struct wpk_program *op, const struct wpk_answers *answers, int draw,
                        const struct wpk_verify_rule *rule, const void *output,
                        struct wpk_verify_errors *errors)
{
    const struct wpk_tensor *tensor = output_of(op);
    const struct comparison c = begin(op, answers, rule, errors);
    size_t size = wpk_dtype_size(tensor->dtype);
    double chunk[CHUNK];
    struct wpk_accuracy_sums *sums = &errors->sums;
    const int64_t first = draw * answers->count;
    *sums = draw == 0 ? (struct wpk_accuracy_sums){0} : *sums;
    for (int64_t done = 0; answers->whole && done < answers->count; done += CHUNK) {
        int64_t now = answers->count - done < CHUNK ? answers->count - done : CHUNK;
        wpk_convert_widen(tensor->dtype, (const char *)output + (size_t)done * size, now, chunk);
        for (int64_t i = 0; i < now; i++) {
            compare_point(&c, first + done + i, chunk[i]);
        }
        wpk_accuracy_add(sums, chunk, answers->value + first + done,
                         answers->magnitude + first + done, now);
    }
    for (int64_t i = 0; !answers->whole && i < answers->count; i++) {
        const int64_t *point = answers->points + i * answers->rank;
        int64_t at = 0;
        for (int d = 0; d < tensor->rank; d++) {
            at = at * tensor->extent[d] + point[d];
        }
        wpk_convert_widen(tensor->dtype, (const char *)output + (size_t)at * size, 1, chunk);
        compare_point(&c, i, chunk[0]);
        if (wpk_answers_count(answers, i)) {
            wpk_accuracy_add(sums, chunk, answers->value + i, answers->magnitude + i, 1);
        }
    }
    if (draw + 1 < answers->draws) {
        return;
    }
    /* Sums of integers are exact in direct evaluation: what an operator computes after them is no
     * yardstick for an algorithm's sums. */
    if (answers->inputs.kind != WPK_INPUT_INTEGERS && answers->inputs.kind != WPK_INPUT_LARGE &&
        answers->inputs.kind != WPK_INPUT_SPECIAL) {
        wpk_accuracy_fold(&errors->accuracy, tensor->dtype, sums, answers->direct_error);
    }
    if (answers->inputs.kind == WPK_INPUT_REALS) {
        errors->accuracy.of_rms = wpk_accuracy_of_rms(sums);
    }
}

void wpk_verify_describe(const struct wpk_program *op, const struct wpk_answers *answers,
                         const struct wpk_verify_errors *errors, char *out, size_t size)
{
    const struct wpk_tensor *tensor = output_of(op);
    int64_t point[WPK_RANK_MAX] = {0};
    int64_t at = errors->point;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        point[d] = answers->whole ? at % tensor->extent[d]
                                  : answers->points[errors->point * answers->rank + d];
        at /= tensor->extent[d];
    }
    int used = snprintf(out, size, "%s[", tensor->name);
    for (int d = 0; d < tensor->rank && used > 0 && (size_t)used < size; d++) {
        used += snprintf(out + used, size - (size_t)used, "%s%lld", d > 0 ? "," : "",
                         (long long)point[d]);
    }
    if (used > 0 && (size_t)used < size) {
        snprintf(out + used, size - (size_t)used, "] is %.9g, should be %.9g within %.3g (%s set)",
                 errors->value, errors->reference, errors->tolerance,
                 wpk_input_kind_name(answers->inputs.kind));
    }
}
