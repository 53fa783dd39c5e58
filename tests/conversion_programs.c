/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of casts, selections, literals, limits and comparisons among all pairs of types, and of
 * integers of every size, bit for bit. */
#include "tests/edge_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* Of every size: sums, products, axes and numbers beyond 32 bits, and what wraps. */
static void test_wide_integers(void **state)
{
    (void)state;
    static const struct wpk_edge edges[] = {
        {"Y[i] = X[i] + Z[i]; D[i] = X[i] - Z[i]; P[i] = X[i] * Z[i]; Q[i] = X[i] / Z[i]; "
         "R[i] = X[i] % Z[i]; N[i] = -X[i]; A[i] = abs(X[i])",
         "X=i64[48] Z=i64[48] Y=i64[48] D=i64[48] P=i64[48] Q=i64[48] R=i64[48] N=i64[48] "
         "A=i64[48]",
         "b"},
        {"Y[i] = X[i] + Z[i]; D[i] = X[i] - Z[i]; P[i] = X[i] * Z[i]; Q[i] = X[i] / Z[i]; "
         "R[i] = X[i] % Z[i]; N[i] = -X[i]; A[i] = abs(X[i])",
         "X=i32[48] Z=i32[48] Y=i32[48] D=i32[48] P=i32[48] Q=i32[48] R=i32[48] N=i32[48] "
         "A=i32[48]",
         "b"},
        {"S[i] = sum(k) X[i,k]; P[i] = prod(k) X[i,k]; M[i] = max(k) X[i,k]; L[i] = min(k) X[i,k]; "
         "T[i] = sum(k) X[i,k] * Z[k]",
         "X=i64[11,24] Z=i64[24] S=i64[11] P=i64[11] M=i64[11] L=i64[11] T=i64[11]", "b"},
        {"S[i] = sum(k) X[i,k]; P[i] = prod(k) X[i,k]; M[i] = max(k) X[i,k]; L[i] = min(k) X[i,k]; "
         "T[i] = sum.i64(k) X[i,k]",
         "X=i32[11,24] S=i32[11] P=i32[11] M=i32[11] L=i32[11] T=i64[11]", "b"},
        {"Y[i] = X[i] + i * 3000000000; Z[i] = select(X[i] > 0, i * 3000000000, 2); "
         "S[i] = select(X[i] < 0, 5000000000, X[i]); F[i] = f32(i * 3000000000) + f32(X[i]); "
         "U[i] = select(X[i] < i * 3000000000, i, 1); V[i] = select(X[i] > 0, i, 1 - i)",
         "X=i64[48] Y=i64[48] Z=i64[48] S=i64[48] F=f32[48] U=i64[48] V=i64[48]", "b"},
        {"Y[i] = i32(trunc(X[i])); Z[i] = i64(trunc(X[i] * 0.75)); W[i] = trunc(X[i]); "
         "U[i] = u8(trunc(X[i])); V[i] = i32(floor(X[i]))",
         "X=f32[48] Y=i32[48] Z=i64[48] W=f32[48] U=u8[48] V=i32[48]", "b"},
        {"Y[i] = i32(trunc(X[i])); Z[i] = i64(trunc(X[i])); W[i] = trunc(X[i])",
         "X=f64[48] Y=i32[48] Z=i64[48] W=f64[48]", "b"},
        {"Y[i] = i32(trunc(X[i])); W[i] = trunc(X[i])", "X=f16[48] Y=i32[48] W=f16[48]", "b"},
    };
    wpk_check_edges(edges, COUNT(edges));
}

/* Casts, selections and literals, or comparisons and limits, of operands of each type and of one:
 * a program of many outputs. */
static void put_conversions(const char *type, bool compares, char *op, size_t op_size,
                            char *tensors, size_t tensors_size)
{
    static const char *const from[] = {"f32", "f64", "f16", "bf16", "i8",
                                       "u8",  "i32", "i64", "bool"};
    size_t used = 0, declared = 0;
#define ADD(...) used += (size_t)snprintf(op + used, op_size - used, __VA_ARGS__)
#define DECLARE(...)                                                                               \
    declared += (size_t)snprintf(tensors + declared, tensors_size - declared, __VA_ARGS__)
    for (int p = 0; p < COUNT(from); p++) {
        DECLARE("A%d=%s[48] ", p, from[p]);
        if (compares) {
            ADD("%sL%d[i] = A%d[i] < B[i]; M%d[i] = max(A%d[i], B[i])", p > 0 ? "; " : "", p, p, p,
                p);
            DECLARE("L%d=bool[48] M%d=%s[48] ", p, p, type);
        } else {
            ADD("%sC%d[i] = %s(A%d[i]); S%d[i] = select(A%d[i] != 0, B[i], %s(A%d[i]))",
                p > 0 ? "; " : "", p, type, p, p, p, type, p);
            DECLARE("C%d=%s[48] S%d=%s[48] ", p, type, p, type);
        }
    }
    if (!compares) {
        ADD("; N[i] = select(A0[i] > 0, 1, select(A0[i] == 0, 0, A7[i])); "
            "O[i] = select(B[i] > 0, 1, 0); T[i] = select(A3[i] < 0, B[i], 1)");
        DECLARE("N=%s[48] O=%s[48] T=%s[48] ", type, type, type);
    }
    DECLARE("B=%s[48]", type);
    assert_true(used < op_size && declared < tensors_size);
#undef ADD
#undef DECLARE
}

static void test_conversions(void **state)
{
    (void)state;
    static const char *const types[] = {"f32", "f64",  "f16",   "bf16",  "i8",   "u8",    "i32",
                                        "i64", "bool", "f32 <", "f16 <", "u8 <", "i64 <", "bool <"};
    static char op[COUNT(types)][2000], tensors[COUNT(types)][1000];
    struct wpk_edge edges[COUNT(types)];
    for (int i = 0; i < COUNT(types); i++) {
        char type[8];
        snprintf(type, sizeof(type), "%.*s", (int)strcspn(types[i], " "), types[i]);
        put_conversions(type, strchr(types[i], '<') != NULL, op[i], sizeof(op[i]), tensors[i],
                        sizeof(tensors[i]));
        edges[i] = (struct wpk_edge){.op = op[i], .tensors = tensors[i], .values = "b"};
    }
    wpk_check_edges(edges, COUNT(types));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_integers),
        cmocka_unit_test(test_conversions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
