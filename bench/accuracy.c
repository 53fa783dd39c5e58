/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/accuracy.h"

#include <math.h>

static const double unit_roundoff = 0x1p-24; /* of f32 */

/* A product is an operation of its own: kept apart, no compiler contracts it with the sum. */
static float times(float a, float b)
{
    const float product = a * b;
    return product;
}

static float direct_conv(const struct bench_op *op, const float *const *operands, int64_t index)
{
    const struct bench_shape shape = bench_op_output(op);
    const int64_t x = index % shape.extent[3];
    const int64_t y = index / shape.extent[3] % shape.extent[2];
    const int64_t k = index / shape.extent[3] / shape.extent[2];
    const int64_t channels = op->c / op->groups;
    const float *image = operands[0] + k / (op->k / op->groups) * channels * op->h * op->w;
    const float *filter = operands[1] + k * channels * op->r * op->s;
    float sum = 0;
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t r = 0; r < op->r; r++) {
            for (int64_t s = 0; s < op->s; s++) {
                const int64_t in_y = y * op->stride[0] + r - op->padding[0];
                const int64_t in_x = x * op->stride[1] + s - op->padding[1];
                if (in_y >= 0 && in_y < op->h && in_x >= 0 && in_x < op->w) {
                    sum += times(image[(c * op->h + in_y) * op->w + in_x],
                                 filter[(c * op->r + r) * op->s + s]);
                }
            }
        }
    }
    sum = op->bias ? sum + operands[2][k] : sum;
    return op->relu && sum < 0 ? 0 : sum;
}

static float direct_matmul(const struct bench_op *op, const float *const *operands, int64_t index)
{
    const float *a = operands[0] + index / op->n * op->depth;
    const float *b = operands[1] + index % op->n;
    float sum = 0;
    for (int64_t i = 0; i < op->depth; i++) {
        sum += times(a[i], b[i * op->n]);
    }
    return sum;
}

/* exp as a machine's may be: the double's value rounded, then up to 2 units in the last place off,
 * drawn from the index. */
static float rough_exp(float x, int64_t index)
{
    float value = (float)exp((double)x);
    const int move = (int)(((uint32_t)index * 0x9E3779B1u) >> 16) % 5 - 2;
    for (int i = 0; i < (move < 0 ? -move : move); i++) {
        value = nextafterf(value, move < 0 ? 0.0F : INFINITY);
    }
    return value;
}

static float direct_softmax(const struct bench_op *op, const float *const *operands, int64_t index)
{
    const int64_t first = index / op->columns * op->columns;
    float largest = -INFINITY;
    for (int64_t i = first; i < first + op->columns; i++) {
        largest = fmaxf(largest, operands[0][i]);
    }
    float sum = 0;
    for (int64_t i = first; i < first + op->columns; i++) {
        sum += rough_exp(operands[0][i] - largest, i);
    }
    return rough_exp(operands[0][index] - largest, index) / sum;
}

static float direct_layernorm(const struct bench_op *op, const float *const *operands,
                              int64_t index)
{
    const float *row = operands[0] + index / op->columns * op->columns;
    const int64_t column = index % op->columns;
    const float count = (float)op->columns;
    float sum = 0;
    for (int64_t i = 0; i < op->columns; i++) {
        sum += row[i];
    }
    const float mean = sum / count;
    float squares = 0;
    for (int64_t i = 0; i < op->columns; i++) {
        squares += times(row[i] - mean, row[i] - mean);
    }
    const float deviation = sqrtf(squares / count + (float)op->epsilon);
    const float scaled = times((row[column] - mean) / deviation, operands[1][column]);
    return scaled + operands[2][column];
}

static float direct_score(const struct bench_op *op, const float *const *operands, int64_t row,
                          int64_t key)
{
    const float *query = operands[0] + row * op->columns;
    const float *keys = operands[1] + (row / op->rows * op->rows + key) * op->columns;
    float sum = 0;
    for (int64_t d = 0; d < op->columns; d++) {
        sum += times(query[d], keys[d]);
    }
    return times(sum, (float)(1 / sqrt((double)op->columns))) +
           operands[2][row % op->rows * op->rows + key];
}

static float direct_attention(const struct bench_op *op, const float *const *operands,
                              int64_t index)
{
    const int64_t row = index / op->columns; /* of all heads */
    const float *values = operands[3] + row / op->rows * op->rows * op->columns;
    float largest = -INFINITY;
    for (int64_t key = 0; key < op->rows; key++) {
        largest = fmaxf(largest, direct_score(op, operands, row, key));
    }
    float total = 0, sum = 0;
    for (int64_t key = 0; key < op->rows; key++) {
        const float weight =
            rough_exp(direct_score(op, operands, row, key) - largest, row * op->rows + key);
        total += weight;
        sum += times(weight, values[key * op->columns + index % op->columns]);
    }
    return sum / total;
}

float bench_direct(const struct bench_op *op, const float *const *operands, int64_t index)
{
    switch (op->kind) {
    case BENCH_CONV:
        return direct_conv(op, operands, index);
    case BENCH_MATMUL:
        return direct_matmul(op, operands, index);
    case BENCH_SOFTMAX:
        return direct_softmax(op, operands, index);
    case BENCH_LAYERNORM:
        return direct_layernorm(op, operands, index);
    case BENCH_ATTENTION:
        return direct_attention(op, operands, index);
    case BENCH_RELU:
        return fmaxf(operands[0][index], 0);
    }
    return NAN;
}

struct bench_accuracy bench_accuracy_measure(const struct bench_op *op,
                                             const float *const *operands, const float *result)
{
    const struct bench_shape shape = bench_op_output(op);
    const int64_t elements = bench_shape_elements(&shape);
    const int64_t count = elements < BENCH_ACCURACY_POINTS ? elements : BENCH_ACCURACY_POINTS;
    double squares = 0; /* of what, by name, summed over points */
    double error_squares = 0;
    double direct_squares = 0;
    for (int64_t p = 0; p < count; p++) {
        const int64_t index = count == elements ? p : bench_op_point(elements, p);
        double value = 0;
        double magnitude = 0;
        bench_op_reference(op, operands, index, &value, &magnitude);
        const double error = (double)result[index] - value;
        const double direct = (double)bench_direct(op, operands, index) - value;
        squares += value * value;
        error_squares += error * error;
        direct_squares += direct * direct;
    }
    const double least = unit_roundoff / 4 * unit_roundoff / 4 * squares;
    return (struct bench_accuracy){
        .of_rms = sqrt(error_squares / squares),
        .times_direct = sqrt(error_squares / fmax(direct_squares, least)),
    };
}

bool bench_accuracy_fits(struct bench_accuracy accuracy, struct wpk_accuracy wanted)
{
    return accuracy.times_direct <= wanted.times_direct;
}
