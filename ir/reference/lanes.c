/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of the interpreter over rows of doubles, value and magnitude side by side.
 *
 * A magnitude m(x) bounds |x|, and u * m(x) bounds the rounding error of x up to a small constant,
 * for a computation in arithmetic of unit roundoff u whose operations are each as good as their
 * last place. To first order:
 *
 *     a + b, a - b     m(a) + m(b)
 *     a * b            m(a) * m(b)            |a| m(b) + m(a) |b| is at most twice that
 *     a / b            m(a) / |b| + |a| m(b) / b^2
 *     max, min, select the larger one; NaN of a NaN
 *     f(x)             |f(x)| + |f'(x)| m(x)
 *     exp(x)           as f(x), and what lies below the least normal number may be 0
 *     tanh erf sin cos 1 + |f'(x)| m(x)       kernels expand them: their error is absolute
 *     sqrt(x)          the slope is capped, see sqrt_slope
 *     floor, ceil      m(x); a value beside a step is not covered
 *     trunc, round, casts to integers: m(x), or WPK_REFERENCE_STEP where x is beside a step
 *     comparisons      |value|
 */
#include "ir/reference/reference.h"
#include "ir/reference/tape.h"

#include <math.h>

/* The least normal f32 over u. */
#define EXP_UNDERFLOW 0x1p-102

/* ---- one number */

/* 1 / (2 sqrt(x)) is unbounded, but the error of sqrt(x) is not: an error d of x shifts it by at
 * most sqrt(d). With d = u m and u >= 2^-24 that is u * 2^12 * sqrt(m). */
static double sqrt_error(double x, double magnitude)
{
    double flat = 0x1p12 * sqrt(magnitude);
    double root = sqrt(x);
    return root > 0.0 ? fmin(magnitude / (2.0 * root), flat) : flat;
}

static double unary_value(enum wpk_unary op, double x)
{
    switch (op) {
    case WPK_UNARY_NEG:
        return -x;
    case WPK_UNARY_NOT:
        return x == 0.0 ? 1.0 : 0.0;
    case WPK_UNARY_EXP:
        return exp(x);
    case WPK_UNARY_LOG:
        return log(x);
    case WPK_UNARY_SQRT:
        return sqrt(x);
    case WPK_UNARY_RSQRT:
        return 1.0 / sqrt(x);
    case WPK_UNARY_TANH:
        return tanh(x);
    case WPK_UNARY_ERF:
        return erf(x);
    case WPK_UNARY_SIGMOID:
        return x >= 0.0 ? 1.0 / (1.0 + exp(-x)) : exp(x) / (1.0 + exp(x));
    case WPK_UNARY_ABS:
        return fabs(x);
    case WPK_UNARY_FLOOR:
        return floor(x);
    case WPK_UNARY_CEIL:
        return ceil(x);
    case WPK_UNARY_ROUND:
        return nearbyint(x);
    case WPK_UNARY_TRUNC:
        return trunc(x);
    case WPK_UNARY_SIN:
        return sin(x);
    case WPK_UNARY_COS:
        return cos(x);
    case WPK_UNARY_ISNAN:
        return isnan(x) ? 1.0 : 0.0;
    case WPK_UNARY_ISINF:
        return isinf(x) ? 1.0 : 0.0;
    case WPK_UNARY_COUNT:
        break;
    }
    WPK_ASSERT(op < WPK_UNARY_COUNT);
    return 0.0;
}

/* The magnitude of trunc and round. A value that equals its magnitude, such as an input's, is exact
 * where it is an integer, of round half of one. */
static double step_magnitude(enum wpk_unary op, double x, double m)
{
    double error = m * WPK_REFERENCE_UNSURE, scale = op == WPK_UNARY_ROUND ? 2.0 : 1.0;
    double steps = unary_value(op, x + error) - unary_value(op, x - error);
    bool exact = scale * x == trunc(scale * x) && m == fabs(x);
    return m < WPK_REFERENCE_STEP && steps > 0.0 && !exact ? steps * WPK_REFERENCE_STEP : m;
}

/* y = f(x) is at hand; m is x's magnitude. */
static double unary_magnitude(enum wpk_unary op, double x, double y, double m)
{
    switch (op) {
    case WPK_UNARY_NOT:
    case WPK_UNARY_ISNAN:
    case WPK_UNARY_ISINF:
        return y;
    case WPK_UNARY_EXP:
        return y + y * m + EXP_UNDERFLOW;
    case WPK_UNARY_LOG:
        return fabs(y) + m / fabs(x);
    case WPK_UNARY_SQRT:
        return y + sqrt_error(x, m);
    case WPK_UNARY_RSQRT:
        return y + 0.5 * y * m / x;
    case WPK_UNARY_TANH:
        return 1.0 + (1.0 - y * y) * m;
    case WPK_UNARY_ERF:
        return 1.0 + 1.1283791670955126 * exp(-x * x) * m; /* 2 / sqrt(pi) */
    case WPK_UNARY_SIGMOID:
        return y + y * (1.0 - y) * m;
    case WPK_UNARY_TRUNC:
    case WPK_UNARY_ROUND:
        return step_magnitude(op, x, m);
    case WPK_UNARY_SIN:
        return 1.0 + fabs(cos(x)) * m;
    case WPK_UNARY_COS:
        return 1.0 + fabs(sin(x)) * m;
    default:
        return m;
    }
}

/* Division by zero is 0 for integers, as Halide defines it. */
static double integer_divide(double a, double b, bool remainder)
{
    if (b == 0.0) {
        return 0.0;
    }
    double quotient = floor(a / b);
    return remainder ? a - quotient * b : quotient;
}

/* Products of i32 leave 2^53: they wrap here. */
static double integer_multiply(double a, double b)
{
    return (double)(int32_t)(uint32_t)((uint64_t)(int64_t)a * (uint64_t)(int64_t)b);
}

static double pow_magnitude(double x, double y, double p, double mx, double my)
{
    double from_base = x != 0.0 ? fabs(p * y / x) * mx : mx;
    double from_exponent = x > 0.0 ? fabs(p * log(x)) * my : 0.0;
    return fabs(p) + from_base + from_exponent;
}

/* ---- lanes */

#define EACH(expression)                                                                           \
    for (int i = 0; i < count; i++) {                                                              \
        value[i] = (expression);                                                                   \
    }
#define EACH_MAGNITUDE(expression)                                                                 \
    for (int i = 0; magnitude != NULL && i < count; i++) {                                         \
        magnitude[i] = (expression);                                                               \
    }

void wpk_lanes_unary(enum wpk_unary op, int count, struct wpk_lanes a, double *value,
                     double *magnitude)
{
    for (int i = 0; i < count; i++) {
        value[i] = unary_value(op, a.value[i]);
    }
    for (int i = 0; magnitude != NULL && i < count; i++) {
        magnitude[i] = unary_magnitude(op, a.value[i], value[i], a.magnitude[i]);
    }
}

static void compare(enum wpk_binary op, int count, const double *restrict x,
                    const double *restrict y, double *restrict value)
{
    switch (op) {
    case WPK_BINARY_LT:
        EACH(x[i] < y[i] ? 1.0 : 0.0)
        break;
    case WPK_BINARY_LE:
        EACH(x[i] <= y[i] ? 1.0 : 0.0)
        break;
    case WPK_BINARY_EQ:
        EACH(x[i] == y[i] ? 1.0 : 0.0)
        break;
    case WPK_BINARY_NE:
        EACH(x[i] != y[i] ? 1.0 : 0.0)
        break;
    case WPK_BINARY_AND:
        EACH(x[i] != 0.0 && y[i] != 0.0 ? 1.0 : 0.0)
        break;
    default:
        WPK_ASSERT(op == WPK_BINARY_OR);
        EACH(x[i] != 0.0 || y[i] != 0.0 ? 1.0 : 0.0)
    }
}

void wpk_lanes_binary(enum wpk_binary op, enum wpk_dtype dtype, int count, struct wpk_lanes a,
                      struct wpk_lanes b, double *restrict value, double *restrict magnitude)
{
    const double *x = a.value, *y = b.value, *mx = a.magnitude, *my = b.magnitude;
    bool is_float = wpk_dtype_is_float(dtype);
    switch (op) {
    case WPK_BINARY_ADD:
        EACH(x[i] + y[i])
        EACH_MAGNITUDE(mx[i] + my[i])
        break;
    case WPK_BINARY_SUB:
        EACH(x[i] - y[i])
        EACH_MAGNITUDE(mx[i] + my[i])
        break;
    case WPK_BINARY_MUL:
        if (is_float) {
            EACH(x[i] * y[i])
        } else {
            EACH(integer_multiply(x[i], y[i]))
        }
        EACH_MAGNITUDE(is_float ? mx[i] * my[i] : wpk_reference_limit(mx[i] * my[i], mx[i], my[i]))
        break;
    case WPK_BINARY_DIV:
        EACH(is_float ? x[i] / y[i] : integer_divide(x[i], y[i], false))
        EACH_MAGNITUDE(is_float ? mx[i] / fabs(y[i]) + fabs(value[i] / y[i]) * my[i]
                                : fabs(value[i]))
        break;
    case WPK_BINARY_MOD:
        EACH(is_float ? x[i] - y[i] * floor(x[i] / y[i]) : integer_divide(x[i], y[i], true))
        EACH_MAGNITUDE(is_float ? mx[i] + fabs(floor(x[i] / y[i])) * my[i] : fabs(value[i]))
        break;
    case WPK_BINARY_POW:
        EACH(is_float ? pow(x[i], y[i]) : trunc(pow(x[i], y[i])))
        EACH_MAGNITUDE(pow_magnitude(x[i], y[i], value[i], mx[i], my[i]))
        break;
    case WPK_BINARY_MIN:
        EACH(x[i] < y[i] || x[i] != x[i] ? x[i] : y[i])
        EACH_MAGNITUDE(fmax(mx[i], my[i]))
        break;
    case WPK_BINARY_MAX:
        EACH(x[i] > y[i] || x[i] != x[i] ? x[i] : y[i])
        EACH_MAGNITUDE(fmax(mx[i], my[i]))
        break;
    default:
        compare(op, count, x, y, value);
        EACH_MAGNITUDE(value[i])
    }
}

void wpk_lanes_select(int count, struct wpk_lanes condition, struct wpk_lanes a, struct wpk_lanes b,
                      double *value, double *magnitude)
{
    EACH(condition.value[i] != 0.0 ? a.value[i] : b.value[i])
    EACH_MAGNITUDE(fmax(a.magnitude[i], b.magnitude[i]))
}

/* ---- accumulators */

static void add_scaled(int count, double a, const double *restrict b, double *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] += a * b[i])
}

static void add_scaled_both(int count, const double a[2], const double *restrict b,
                            double *restrict sum, double *restrict sum_magnitude)
{
    double value = a[0], magnitude = a[1];
    WPK_LANES_EACH(count, sum[i] += value * b[i]; sum_magnitude[i] += magnitude * fabs(b[i]))
}

static void add_products(int count, const double *restrict a, const double *restrict b,
                         double *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] += a[i] * b[i])
}

static void add_absolute_products(int count, const double *restrict a, const double *restrict b,
                                  double *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] += fabs(a[i] * b[i]))
}

void wpk_lanes_multiply_add(int count, bool uniform, struct wpk_lanes a, struct wpk_lanes b,
                            double *sum, double *sum_magnitude)
{
    if (!uniform) {
        add_products(count, a.value, b.value, sum);
        if (sum_magnitude != NULL) {
            add_absolute_products(count, a.magnitude != NULL ? a.magnitude : a.value,
                                  b.magnitude != NULL ? b.magnitude : b.value, sum_magnitude);
        }
        return;
    }
    if (sum_magnitude == NULL) {
        add_scaled(count, a.value[0], b.value, sum);
        return;
    }
    double scale[2] = {a.value[0], a.magnitude != NULL ? a.magnitude[0] : fabs(a.value[0])};
    if (b.magnitude == NULL) {
        add_scaled_both(count, scale, b.value, sum, sum_magnitude);
    } else {
        add_scaled(count, scale[0], b.value, sum);
        add_scaled(count, scale[1], b.magnitude, sum_magnitude);
    }
}

static void reduce_sum(int count, const double *restrict a, double *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] += a[i])
}

static void reduce_product(int count, const double *restrict a, double *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] *= a[i])
}

static void reduce_product_i32(int count, const double *restrict a, double *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] = integer_multiply(sum[i], a[i]))
}

static void reduce_max(int count, const double *restrict a, double *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] = a[i] > sum[i] ? a[i] : sum[i])
}

static void reduce_min(int count, const double *restrict a, double *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] = a[i] < sum[i] ? a[i] : sum[i])
}

static void join_limited(void (*join)(int, const double *restrict, double *restrict), int count,
                         const double *restrict a, double *restrict sum)
{
    for (int i = 0; i < count; i++) {
        double before = sum[i];
        join(1, a + i, sum + i);
        sum[i] = wpk_reference_limit(sum[i], a[i], before);
    }
}

void wpk_lanes_reduce(enum wpk_reduction reduction, enum wpk_dtype dtype, int count,
                      struct wpk_lanes a, double *sum, double *sum_magnitude)
{
    static void (*const combine[])(int, const double *restrict, double *restrict) = {
        [WPK_REDUCE_SUM] = reduce_sum,
        [WPK_REDUCE_MAX] = reduce_max,
        [WPK_REDUCE_MIN] = reduce_min,
        [WPK_REDUCE_PROD] = reduce_product,
    };
    WPK_ASSERT(reduction != WPK_REDUCE_NONE);
    if (dtype == WPK_I64) {
        wpk_lanes_reduce_i64(reduction, count, a.value, sum);
    } else if (dtype == WPK_I32 && reduction == WPK_REDUCE_PROD) {
        reduce_product_i32(count, a.value, sum);
    } else {
        combine[reduction](count, a.value, sum);
    }
    if (sum_magnitude != NULL) {
        /* Of max and min too it is the largest term that bounds the error. */
        void (*join)(int, const double *restrict, double *restrict) =
            combine[reduction == WPK_REDUCE_MIN ? WPK_REDUCE_MAX : reduction];
        if (wpk_dtype_is_float(dtype)) {
            join(count, a.magnitude, sum_magnitude);
        } else {
            join_limited(join, count, a.magnitude, sum_magnitude);
        }
    }
}
