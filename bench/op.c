/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/op.h"

#include <math.h>
#include <string.h>

static const double tolerance_relative = 3e-6; /* of the magnitude; see bench_op_check */
static const double tolerance_absolute = 1e-6;

const struct bench_op *bench_ops_find(const struct bench_ops *ops, const char *name)
{
    for (int i = 0; i < ops->count; i++) {
        if (strcmp(ops->op[i].name, name) == 0) {
            return &ops->op[i];
        }
    }
    return NULL;
}

int bench_op_operand_count(const struct bench_op *op)
{
    switch (op->kind) {
    case BENCH_CONV:
        return op->bias ? 3 : 2;
    case BENCH_MATMUL:
        return 2;
    case BENCH_LAYERNORM:
        return 3;
    case BENCH_ATTENTION:
        return 4;
    case BENCH_SOFTMAX:
    case BENCH_RELU:
        return 1;
    }
    return 0;
}

int bench_op_input_count(const struct bench_op *op)
{
    return op->kind == BENCH_ATTENTION ? 4 : 1;
}

struct bench_shape bench_op_operand(const struct bench_op *op, int operand)
{
    WPK_ASSERT(operand >= 0);
    WPK_ASSERT(operand < bench_op_operand_count(op));
    switch (op->kind) {
    case BENCH_CONV:
        if (operand == 0) {
            return (struct bench_shape){4, {1, op->c, op->h, op->w}};
        }
        if (operand == 1) {
            return (struct bench_shape){4, {op->k, op->c / op->groups, op->r, op->s}};
        }
        return (struct bench_shape){1, {op->k}};
    case BENCH_MATMUL:
        if (operand == 0) {
            return (struct bench_shape){2, {op->m, op->depth}};
        }
        return (struct bench_shape){2, {op->depth, op->n}};
    case BENCH_LAYERNORM:
        if (operand > 0) {
            return (struct bench_shape){1, {op->columns}};
        }
        return (struct bench_shape){2, {op->rows, op->columns}};
    case BENCH_SOFTMAX:
        return (struct bench_shape){2, {op->rows, op->columns}};
    case BENCH_ATTENTION:
        if (operand == 2) {
            return (struct bench_shape){2, {op->rows, op->rows}};
        }
        return (struct bench_shape){3, {op->heads, op->rows, op->columns}};
    case BENCH_RELU:
        return (struct bench_shape){1, {op->columns}};
    }
    return (struct bench_shape){0};
}

static int64_t conv_extent(const struct bench_op *op, int dimension)
{
    const int64_t in = dimension == 0 ? op->h : op->w;
    const int64_t kernel = dimension == 0 ? op->r : op->s;
    return (in + op->padding[dimension] + op->padding[dimension + 2] - kernel) /
               op->stride[dimension] +
           1;
}

struct bench_shape bench_op_output(const struct bench_op *op)
{
    if (op->kind == BENCH_CONV) {
        return (struct bench_shape){4, {1, op->k, conv_extent(op, 0), conv_extent(op, 1)}};
    }
    if (op->kind == BENCH_MATMUL) {
        return (struct bench_shape){2, {op->m, op->n}};
    }
    return bench_op_operand(op, 0);
}

int64_t bench_shape_elements(const struct bench_shape *shape)
{
    int64_t elements = 1;
    for (int d = 0; d < shape->rank; d++) {
        elements *= shape->extent[d];
    }
    return elements;
}

double bench_op_flops(const struct bench_op *op)
{
    const struct bench_shape output = bench_op_output(op);
    const double elements = (double)bench_shape_elements(&output);
    switch (op->kind) {
    case BENCH_CONV:
        return elements * ((double)(2 * op->c / op->groups * op->r * op->s) + (op->bias ? 1 : 0) +
                           (op->relu ? 1 : 0));
    case BENCH_MATMUL:
        return 2 * elements * (double)op->depth;
    case BENCH_SOFTMAX:
        return 5 * elements; /* max, subtract, exp, add, divide */
    case BENCH_LAYERNORM:
        return 8 * elements; /* mean 1; subtract, square, add; subtract, scale, gamma, beta */
    case BENCH_ATTENTION:    /* two products; scale, mask, max, subtract, exp, add; divide */
        return elements * (4 * (double)op->rows + 1) +
               6 * (double)(op->heads * op->rows * op->rows);
    case BENCH_RELU:
        return elements;
    }
    return 0;
}

void bench_op_fill(const struct bench_op *op, int operand, float *out)
{
    const struct bench_shape shape = bench_op_operand(op, operand);
    const int64_t elements = bench_shape_elements(&shape);
    for (int64_t i = 0; i < elements; i++) {
        uint32_t bits = (uint32_t)i * 0x9E3779B1u + (uint32_t)(operand + 1) * 0x85EBCA77u;
        bits = (bits ^ (bits >> 15)) * 0x2C1B3C6Du;
        bits ^= bits >> 12;
        out[i] = (float)(int32_t)(bits >> 16) / 65536.0F - 0.5F;
    }
}

static void reference_conv(const struct bench_op *op, const float *const *operands, int64_t index,
                           double *value, double *magnitude)
{
    const int64_t width = conv_extent(op, 1);
    const int64_t height = conv_extent(op, 0);
    const int64_t x = index % width;
    const int64_t y = index / width % height;
    const int64_t k = index / width / height;
    const int64_t group_channels = op->c / op->groups;
    const int64_t c0 = k / (op->k / op->groups) * group_channels;
    double sum = op->bias ? operands[2][k] : 0;
    double terms = fabs(sum);
    for (int64_t c = 0; c < group_channels; c++) {
        for (int64_t r = 0; r < op->r; r++) {
            for (int64_t s = 0; s < op->s; s++) {
                const int64_t in_y = y * op->stride[0] + r - op->padding[0];
                const int64_t in_x = x * op->stride[1] + s - op->padding[1];
                if (in_y < 0 || in_y >= op->h || in_x < 0 || in_x >= op->w) {
                    continue;
                }
                const double term =
                    (double)operands[0][((c0 + c) * op->h + in_y) * op->w + in_x] *
                    (double)operands[1][((k * group_channels + c) * op->r + r) * op->s + s];
                sum += term;
                terms += fabs(term);
            }
        }
    }
    *value = op->relu && sum < 0 ? 0 : sum;
    *magnitude = terms;
}

static void reference_matmul(const struct bench_op *op, const float *const *operands, int64_t index,
                             double *value, double *magnitude)
{
    const float *a = operands[0] + index / op->n * op->depth;
    const float *b = operands[1] + index % op->n;
    double sum = 0;
    double terms = 0;
    for (int64_t i = 0; i < op->depth; i++) {
        const double term = (double)a[i] * (double)b[i * op->n];
        sum += term;
        terms += fabs(term);
    }
    *value = sum;
    *magnitude = terms;
}

static void reference_softmax(const struct bench_op *op, const float *const *operands,
                              int64_t index, double *value, double *magnitude)
{
    const float *row = operands[0] + index / op->columns * op->columns;
    double sum = 0;
    for (int64_t i = 0; i < op->columns; i++) {
        sum += exp((double)row[i]); /* inputs are below 1: no maximum needed */
    }
    *value = exp((double)operands[0][index]) / sum;
    *magnitude = *value;
}

static void reference_layernorm(const struct bench_op *op, const float *const *operands,
                                int64_t index, double *value, double *magnitude)
{
    const float *row = operands[0] + index / op->columns * op->columns;
    const int64_t column = index % op->columns;
    const double count = (double)op->columns;
    double mean = 0;
    for (int64_t i = 0; i < op->columns; i++) {
        mean += (double)row[i] / count;
    }
    double variance = 0;
    for (int64_t i = 0; i < op->columns; i++) {
        variance += ((double)row[i] - mean) * ((double)row[i] - mean) / count;
    }
    const double scaled =
        ((double)row[column] - mean) / sqrt(variance + op->epsilon) * (double)operands[1][column];
    *value = scaled + (double)operands[2][column];
    *magnitude = fabs(scaled) + fabs((double)operands[2][column]);
}

static double score(const struct bench_op *op, const float *const *operands, int64_t row,
                    int64_t key)
{
    const float *query = operands[0] + row * op->columns;
    const float *keys = operands[1] + (row / op->rows * op->rows + key) * op->columns;
    double sum = 0;
    for (int64_t d = 0; d < op->columns; d++) {
        sum += (double)query[d] * (double)keys[d];
    }
    return sum / sqrt((double)op->columns) + (double)operands[2][row % op->rows * op->rows + key];
}

static void reference_attention(const struct bench_op *op, const float *const *operands,
                                int64_t index, double *value, double *magnitude)
{
    const int64_t row = index / op->columns; /* of all heads */
    const float *values = operands[3] + row / op->rows * op->rows * op->columns;
    double total = 0, sum = 0, terms = 0;
    for (int64_t key = 0; key < op->rows; key++) {
        const double weight = exp(score(op, operands, row, key)); /* scores are small */
        const double term = weight * (double)values[key * op->columns + index % op->columns];
        total += weight;
        sum += term;
        terms += fabs(term);
    }
    *value = sum / total;
    *magnitude = terms / total;
}

void bench_op_reference(const struct bench_op *op, const float *const *operands, int64_t index,
                        double *value, double *magnitude)
{
    switch (op->kind) {
    case BENCH_CONV:
        reference_conv(op, operands, index, value, magnitude);
        return;
    case BENCH_MATMUL:
        reference_matmul(op, operands, index, value, magnitude);
        return;
    case BENCH_SOFTMAX:
        reference_softmax(op, operands, index, value, magnitude);
        return;
    case BENCH_LAYERNORM:
        reference_layernorm(op, operands, index, value, magnitude);
        return;
    case BENCH_ATTENTION:
        reference_attention(op, operands, index, value, magnitude);
        return;
    case BENCH_RELU:
        *value = fmax((double)operands[0][index], 0);
        *magnitude = *value;
        return;
    }
}

int64_t bench_op_point(int64_t elements, int64_t p)
{
    return p == 0 ? elements - 1
                  : (int64_t)((double)elements * fmod((double)(p - 1) * 0.6180339887498949, 1.0));
}

double bench_op_check(const struct bench_op *op, const float *const *operands, const float *result,
                      int point_count)
{
    WPK_ASSERT(point_count > 1);
    const struct bench_shape shape = bench_op_output(op);
    const int64_t elements = bench_shape_elements(&shape);
    double worst = 0;
    for (int p = 0; p < point_count; p++) {
        const int64_t index = bench_op_point(elements, p);
        double value = 0;
        double magnitude = 0;
        bench_op_reference(op, operands, index, &value, &magnitude);
        const double error = fabs((double)result[index] - value);
        const double ratio = error / (tolerance_relative * magnitude + tolerance_absolute);
        if (!(ratio <= worst)) { /* NaN counts as worst */
            worst = isnan(ratio) ? INFINITY : ratio;
        }
    }
    return worst;
}
