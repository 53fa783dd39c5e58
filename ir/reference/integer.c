/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of the interpreter over rows of i64, which wraps. A row's doubles are cells: they hold
 * the bits of integers (schema/convert.h). Magnitudes are doubles, as in ir/reference/lanes.c. */
#include "ir/reference/tape.h"

#include <math.h>

static int64_t divide(int64_t a, int64_t b, bool remainder)
{
    if (b == 0) {
        return 0;
    }
    if (b == -1) { /* the least number has no negative */
        return remainder ? 0 : (int64_t)(0 - (uint64_t)a);
    }
    int64_t quotient = a / b, rest = a % b;
    bool floors = rest != 0 && (rest < 0) != (b < 0);
    return remainder ? rest + (floors ? b : 0) : quotient - floors;
}

static int64_t operate(enum wpk_binary op, int64_t a, int64_t b)
{
    switch (op) {
    case WPK_BINARY_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case WPK_BINARY_SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case WPK_BINARY_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case WPK_BINARY_DIV:
    case WPK_BINARY_MOD:
        return divide(a, b, op == WPK_BINARY_MOD);
    case WPK_BINARY_MIN:
        return a < b ? a : b;
    case WPK_BINARY_MAX:
        return a > b ? a : b;
    default:
        WPK_ASSERT(op == WPK_BINARY_POW);
        return wpk_convert_int64(pow((double)a, (double)b));
    }
}

static bool holds(enum wpk_binary op, int64_t a, int64_t b)
{
    switch (op) {
    case WPK_BINARY_LT:
        return a < b;
    case WPK_BINARY_LE:
        return a <= b;
    case WPK_BINARY_EQ:
        return a == b;
    case WPK_BINARY_NE:
        return a != b;
    default:
        return op == WPK_BINARY_AND ? a != 0 && b != 0 : a != 0 || b != 0;
    }
}

static double magnitude_of(enum wpk_binary op, int64_t value, double a, double b)
{
    switch (op) {
    case WPK_BINARY_ADD:
    case WPK_BINARY_SUB:
        return a + b;
    case WPK_BINARY_MUL:
        return a * b;
    case WPK_BINARY_MIN:
    case WPK_BINARY_MAX:
        return fmax(a, b);
    default:
        return fabs((double)value);
    }
}

void wpk_lanes_unary_i64(enum wpk_unary op, int count, struct wpk_lanes a, double *value,
                         double *magnitude)
{
    for (int i = 0; i < count; i++) {
        int64_t x = wpk_cell_integer(a.value[i]);
        bool negates = op == WPK_UNARY_NEG || (op == WPK_UNARY_ABS && x < 0);
        value[i] = wpk_cell_of(negates ? (int64_t)(0 - (uint64_t)x) : x);
    }
    for (int i = 0; magnitude != NULL && i < count; i++) {
        magnitude[i] = a.magnitude[i];
    }
}

void wpk_lanes_binary_i64(enum wpk_binary op, int count, struct wpk_lanes a, struct wpk_lanes b,
                          double *value, double *magnitude)
{
    bool compares = op >= WPK_BINARY_LT;
    for (int i = 0; i < count; i++) {
        int64_t x = wpk_cell_integer(a.value[i]), y = wpk_cell_integer(b.value[i]);
        int64_t z = compares ? holds(op, x, y) : operate(op, x, y);
        value[i] = compares ? (double)z : wpk_cell_of(z);
        if (magnitude != NULL) {
            double both = magnitude_of(op, z, a.magnitude[i], b.magnitude[i]);
            magnitude[i] = wpk_reference_limit(both, a.magnitude[i], b.magnitude[i]);
        }
    }
}

void wpk_lanes_reduce_i64(enum wpk_reduction reduction, int count, const double *a, double *sum)
{
    static const enum wpk_binary operations[] = {
        [WPK_REDUCE_SUM] = WPK_BINARY_ADD,
        [WPK_REDUCE_MAX] = WPK_BINARY_MAX,
        [WPK_REDUCE_MIN] = WPK_BINARY_MIN,
        [WPK_REDUCE_PROD] = WPK_BINARY_MUL,
    };
    for (int i = 0; i < count; i++) {
        sum[i] = wpk_cell_of(
            operate(operations[reduction], wpk_cell_integer(sum[i]), wpk_cell_integer(a[i])));
    }
}
