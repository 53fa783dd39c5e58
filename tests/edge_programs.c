/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the programs that go wrong at their edges: conditions around reductions, infinities
 * and the largest numbers, several outputs, division of integers, extents of 1 and primes. Each
 * program is built by both back ends and compared with the interpreter, on the values of inputs
 * that its row names. WPK_TEST_SEED draws other candidates and values. */
#include "tests/edge_check.h"
#include "tests/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANDOM_PROGRAMS 16
#define REFUSED_MAX 4

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

#define ATTENTION(n, scores)                                                                       \
    "Y[b,q,d] = sum(k) P[b,q,k] * V[b,k,d] where L[b,q:" n ",k:" n "] = " scores                   \
    "; M[b,q] = max(k) L[b,q,k]; E[b,q,k:" n "] = exp(L[b,q,k] - M[b,q]); "                        \
    "D[b,q] = sum(k) E[b,q,k]; P[b,q,k:" n "] = E[b,q,k] / D[b,q]"
#define SCORES "(sum(e) Q[b,q,e] * K[b,k,e]) * 0.25"
#define HEADS(b, n, d)                                                                             \
    "Q=f32[" b "," n "," d "] K=f32[" b "," n "," d "] V=f32[" b "," n "," d "] Y=f32[" b "," n    \
    "," d "]"

/* A condition on axes does not narrow what is computed of the stages inside. */
static void test_conditions_around_reductions(void **state)
{
    (void)state;
    static const struct wpk_edge edges[] = {
        {"Y[i,j] = select(j <= i, sum(k) A[i,k] * B[k,j], 0)",
         "A=f32[19,33] B=f32[33,19] Y=f32[19,19]", "nn"},
        {"Y[i,j] = select(j <= i, sum(k) A[i,k] * B[k,j], -inf)",
         "A=f32[17,5] B=f32[5,23] Y=f32[17,23]", "nn"},
        {"Y[i,j] = select(i == j || j == 3, 1, sum(k) A[i,k] * B[k,j])",
         "A=f32[13,7] B=f32[7,13] Y=f32[13,13]", "nn"},
        {"Y[i,j] = select(!(j < 5), sum(k) A[i,k] * B[k,j], A[i,j])",
         "A=f32[16,16] B=f32[16,16] Y=f32[16,16]", "nn"},
        {"Y[i,j] = select(j % 3 == i % 2, max(k) A[i,k] * B[k,j], 2)",
         "A=f32[11,29] B=f32[29,31] Y=f32[11,31]", "nn"},
        {"Y[i] = sum(j:19) select(j <= i, T[i,j], 0) where T[i:19,j:19] = sum(k) A[i,k] * B[k,j]",
         "A=f32[19,8] B=f32[8,19] Y=f32[19]", "nn"},
        {"Y[i] = max(j:31) select(j > i, T[i,j], -inf) where T[i:7,j:31] = sum(k) A[i,k] * B[k,j]",
         "A=f32[7,3] B=f32[3,31] Y=f32[7]", "nn"},
        {"Y[i,j] = select(i < 4, S[i] * A[i,j], select(j < 2, R[j], 0)) where S[i] = sum(k) "
         "A[i,k]; "
         "R[j] = sum(k) A[k,j]",
         "A=f32[9,14] Y=f32[9,14]", "nn"},
        {"Y[i,j] = select(C[i,j], T[i,j], 0) where C[i:18,j:18] = j <= i; "
         "T[i:18,j:18] = sum(k) A[i,k] * B[k,j]",
         "A=f32[18,10] B=f32[10,18] Y=f32[18,18]", "nn"},
        {"Y[i,j] = select(j <= i, sum(k:1) A[i,k] * B[k,j], 0)",
         "A=f32[1,1] B=f32[1,37] Y=f32[1,37]", "nn"},
        {ATTENTION("19", "select(k <= q, " SCORES ", -inf)"), HEADS("2", "19", "16"), "nn"},
        {ATTENTION("32", "select(k <= q, " SCORES ", -inf)"), HEADS("1", "32", "8"), "nn"},
        {ATTENTION("13", "select(k <= q && q < k + 4, " SCORES ", -inf)"), HEADS("1", "13", "5"),
         "nn"},
        {ATTENTION("17", "select(k <= q, " SCORES ", -3.4028234e38)"), HEADS("1", "17", "7"), "nn"},
    };
    wpk_check_edges(edges, COUNT(edges));
}

/* Quotients floor, remainders have the sign of the divisor, and those by 0 are 0. */
static void test_division_of_integers(void **state)
{
    (void)state;
    static const struct wpk_edge edges[] = {
        {"Y[i] = X[i] / Z[i]", "X=i32[100] Z=i32[100] Y=i32[100]", "znf"},
        {"Y[i] = X[i] % Z[i]", "X=i32[101] Z=i32[101] Y=i32[101]", "znf"},
        {"Y[i] = X[i] / (Z[i] * W[i])", "X=i32[37] Z=i32[37] W=i32[37] Y=i32[37]", "zn"},
        {"Y[i] = X[i] / 16 - X[i] % 8", "X=i32[101] Y=i32[101]", "znf"},
        {"Y[i] = X[i] % 1024 + X[i] / 1", "X=i64[29] Y=i64[29]", "znf"},
        {"Y[i] = X[i] / Z[i]", "X=i64[29] Z=i64[29] Y=i64[29]", "zn"},
        {"Y[i] = X[i] % Z[i]", "X=i64[29] Z=i64[29] Y=i64[29]", "zn"},
        {"Y[i] = X[i] / Z[i]", "X=i8[67] Z=i8[67] Y=i8[67]", "zn"},
        {"Y[i] = X[i] % Z[i]", "X=u8[67] Z=u8[67] Y=u8[67]", "zn"},
        {"Y[i] = X[i] / 7 - X[i] % 5", "X=i32[53] Y=i32[53]", "zn"},
        {"Y[i] = X[i] / (0 - 3) + X[i] % (0 - 4)", "X=i32[53] Y=i32[53]", "zn"},
        {"Y[i] = sum(k) X[i,k] / Z[k]", "X=i32[13,17] Z=i32[17] Y=i32[13]", "zn"},
        {"Y[i] = max(k) X[i,k] % Z[k]", "X=i32[13,17] Z=i32[17] Y=i32[13]", "z"},
        {"Y[i] = X[i] / (i - 3)", "X=i32[11] Y=i32[11]", "zn"},
    };
    wpk_check_edges(edges, COUNT(edges));
}

/* Rows of -inf and of the largest numbers, in extents of 1 and primes. */
static void test_maxima_and_minima(void **state)
{
    (void)state;
    static const struct wpk_edge edges[] = {
        {"Y[i] = max(k) X[i,k]", "X=f32[7,13] Y=f32[7]", "nmifd"},
        {"Y[i] = max(k) X[i,k]", "X=f32[1,1] Y=f32[1]", "nmif"},
        {"Y[i] = max(k) X[i,k]", "X=f32[16,64] Y=f32[16]", "nmif"},
        {"Y[i] = max(k) X[k,i]", "X=f32[31,17] Y=f32[17]", "nmif"},
        {"Y[i] = max(k) X[i,k]", "X=f64[5,11] Y=f64[5]", "nmid"},
        {"Y[i] = max(k) X[i,k]", "X=f16[5,32] Y=f16[5]", "nmif"},
        {"Y[i] = max(k) X[i,k]", "X=bf16[5,32] Y=bf16[5]", "nmif"},
        {"Y[i] = max(k) X[i,k]", "X=i32[5,23] Y=i32[5]", "nf"},
        {"Y[i] = max(k) X[i,k]", "X=i8[5,23] Y=i8[5]", "n"},
        {"Y[i] = max(k) X[i,k]", "X=u8[5,23] Y=u8[5]", "n"},
        {"Y[i] = min(k) X[i,k]", "X=f32[7,13] Y=f32[7]", "nmifd"},
        {"Y[i] = min(k) X[i,k]", "X=f64[3,29] Y=f64[3]", "nmi"},
        {"Y[i] = min(k) X[i,k]", "X=f16[3,29] Y=f16[3]", "nmif"},
        {"Y[i] = min(k) X[i,k]", "X=i32[3,29] Y=i32[3]", "nf"},
        {"Y[i] = max(k) (X[i,k] + B[k])", "X=f32[11,19] B=f32[19] Y=f32[11]", "nm"},
        {"Y[i] = max(k) (0 - X[i,k])", "X=f32[11,19] Y=f32[11]", "nif"},
        {"Y[i] = max(k:21) X[i,k-1 | -inf]", "X=f32[11,19] Y=f32[11]", "nmif"},
        {"Y[i] = max(k:21) X[i,k-1]", "X=f32[11,19] Y=f32[11]", "nmif"},
        {"Y[c,y,x] = max(r:3,s:3) X[c,2*y+r-1,2*x+s-1 | -inf]", "X=f32[5,14,14] Y=f32[5,7,7]",
         "nmif"},
        {"Y[c,y,x] = max(r:2,s:2) X[c,2*y+r,2*x+s]", "X=f32[3,10,22] Y=f32[3,5,11]", "nmif"},
        {"Y[c,y,x] = max(r:3,s:3) X[y+r,x+s,c]", "X=f32[9,9,16] Y=f32[16,7,7]", "nmif"},
        {"Y[c] = max(y,x) X[c,y,x]", "X=f32[13,7,7] Y=f32[13]", "nmif"},
        {"Y[i] = max(k) min(l) X[i,k,l]", "X=f32[5,7,11] Y=f32[5]", "nmif"},
        {"Y[i,j] = max(X[i,j], Z[i,j])", "X=f32[9,17] Z=f32[9,17] Y=f32[9,17]", "nmifd"},
        {"Y[i,j] = min(X[i,j], 0)", "X=f32[9,17] Y=f32[9,17]", "nmifd"},
        {"Y[i,j] = relu(X[i,j])", "X=f32[1,37] Y=f32[1,37]", "nmifd"},
        {"Y[i] = relu6(X[i])", "X=f32[41] Y=f32[41]", "nmif"},
        {"Y[i] = max(k) abs(X[i,k])", "X=f32[7,13] Y=f32[7]", "nmif"},
    };
    wpk_check_edges(edges, COUNT(edges));
}

static void test_softmax_with_masks(void **state)
{
    (void)state;
#define SOFTMAX(x)                                                                                 \
    "Y[i,j] = E[i,j] / D[i] where M[i] = max(k) " x "[i,k]; E[i,j] = exp(" x                       \
    "[i,j] - M[i]); D[i] = sum(k) E[i,k]"
    static const struct wpk_edge edges[] = {
        {SOFTMAX("X"), "X=f32[7,13] Y=f32[7,13]", "nmif"},
        {SOFTMAX("X"), "X=f32[1,1] Y=f32[1,1]", "nm"},
        {SOFTMAX("X"), "X=f32[1,97] Y=f32[1,97]", "nmi"},
        {SOFTMAX("X"), "X=f32[97,1] Y=f32[97,1]", "nmi"},
        {SOFTMAX("X"), "X=f32[16,64] Y=f32[16,64]", "nmi"},
        {SOFTMAX("X"), "X=f64[5,11] Y=f64[5,11]", "nmi"},
        {SOFTMAX("X"), "X=f16[5,32] Y=f16[5,32]", "nm"},
        {"Y[i,j] = X[i,j] - M[i] - log(D[i]) where M[i] = max(k) X[i,k]; "
         "D[i] = sum(k) exp(X[i,k] - M[i])",
         "X=f32[7,13] Y=f32[7,13]", "n"},
        {"Y[i,j] = E[i,j] / D[i] where L[i,j] = X[i,j] * 0.125 + A[j]; M[i] = max(k) L[i,k]; "
         "E[i,j] = exp(L[i,j] - M[i]); D[i] = sum(k) E[i,k]",
         "X=f32[7,13] A=f32[13] Y=f32[7,13]", "n"},
        {"Y[i,j] = E[i,j] / D[i] where L[i:11,j:11] = select(j <= i, X[i,j], -inf); "
         "M[i] = max(k) L[i,k]; E[i:11,j:11] = exp(L[i,j] - M[i]); D[i] = sum(k) E[i,k]",
         "X=f32[11,11] Y=f32[11,11]", "nm"},
        {"Y[i,j] = E[i,j] / D[i] where L[i:11,j:11] = select(j < i, X[i,j], -inf); "
         "M[i] = max(k) L[i,k]; E[i:11,j:11] = exp(L[i,j] - M[i]); D[i] = sum(k) E[i,k]",
         "X=f32[11,11] Y=f32[11,11]", "nm"},
        {"Y[i] = sum(k) exp(X[i,k])", "X=f32[7,13] Y=f32[7]", "nm"},
        {"Y[i] = log(sum(k) exp(X[i,k]))", "X=f32[7,13] Y=f32[7]", "n"},
    };
    wpk_check_edges(edges, COUNT(edges));
}

static void test_sums_and_selects(void **state)
{
    (void)state;
    static const struct wpk_edge edges[] = {
        {"Y[i] = sum(k) X[i,k]", "X=f32[7,13] Y=f32[7]", "nmida"},
        {"Y[i] = sum(k) X[i,k]", "X=f32[16,64] Y=f32[16]", "nmida"},
        {"Y[i] = sum(k) X[k,i]", "X=f32[31,17] Y=f32[17]", "nmida"},
        {"Y[i] = sum(k) X[i,k]", "X=f64[5,11] Y=f64[5]", "nmia"},
        {"Y[i] = sum(k) X[i,k]", "X=f16[5,11] Y=f16[5]", "nmi"},
        {"Y[i] = sum(k) X[i,k]", "X=bf16[5,11] Y=bf16[5]", "nmi"},
        {"Y[i] = sum(k) X[i,k]", "X=i32[5,11] Y=i32[5]", "nf"},
        {"Y[i] = prod(k) X[i,k]", "X=f32[7,5] Y=f32[7]", "nia"},
        /* what a simplifier takes apart */
        {"Y[] = sum(i:5,k:7) select(X[i] == k, f32(1), f32(0))", "X=i64[5] Y=f32[]", "n"},
        {"Y[] = sum(i,k) (1 - X[i,k])", "X=f32[5,7] Y=f32[]", "n"},
        {"Y[i,j] = sum(k) A[i,k] * B[k,j]", "A=f32[7,11] B=f32[11,13] Y=f32[7,13]", "nmda"},
        {"Y[i,j] = sum(k) A[i,k] * B[k,j]", "A=f32[1,1] B=f32[1,1] Y=f32[1,1]", "nmda"},
        {"Y[i,j] = sum(k) A[i,k] * B[k,j]", "A=f32[1,97] B=f32[97,1] Y=f32[1,1]", "nda"},
        {"Y[i,j] = sum(k) A[i,k] * B[k,j]", "A=f32[37,1] B=f32[1,41] Y=f32[37,41]", "nda"},
        {"Y[i,j] = sum(k) A[i,k] * B[k,j]", "A=f16[7,11] B=f16[11,13] Y=f16[7,13]", "nd"},
        {"Y[i,j] = sum(k) A[i,k] * B[k,j]", "A=i8[7,11] B=i8[11,13] Y=i32[7,13]", "n"},
        {"Y[i,j] = sum(k) A[i,k] * B[k,j]", "A=i32[7,11] B=i32[11,13] Y=i32[7,13]", "nf"},
        {"Y[i,j] = relu(sum(k) A[i,k] * B[k,j] + C[j])",
         "A=f32[13,7] B=f32[7,29] C=f32[29] Y=f32[13,29]", "nmida"},
        {"Y[k,y,x] = sum(c,r,s) X[c,y+r-1,x+s-1] * W[k,c,r,s]",
         "X=f32[3,7,11] W=f32[5,3,3,3] Y=f32[5,7,11]", "nd"},
        {"Y[k,y,x] = sum(c,r,s) X[c,y+r,x+s] * W[k,c,r,s]",
         "X=f32[1,5,5] W=f32[1,1,5,5] Y=f32[1,1,1]", "nd"},
        {"Y[i] = X[i] + Z[i]", "X=f32[23] Z=f32[23] Y=f32[23]", "nmida"},
        {"Y[i] = X[i] - Z[i]", "X=f32[23] Z=f32[23] Y=f32[23]", "nmida"},
        {"Y[i] = X[i] * Z[i]", "X=f32[23] Z=f32[23] Y=f32[23]", "nmida"},
        {"Y[i] = 0 - X[i]", "X=f32[23] Y=f32[23]", "nmifda"},
        {"Y[i] = abs(X[i])", "X=f32[23] Y=f32[23]", "nmifda"},
        {"Y[i,j] = select(i < j, X[i,j], Z[i,j])", "X=f32[9,17] Z=f32[9,17] Y=f32[9,17]", "nmifda"},
        {"Y[i,j] = select(X[i,j] < 0, X[i,j] * 0.5, X[i,j])", "X=f32[9,17] Y=f32[9,17]", "nmifd"},
        {"Y[i,j] = select(X[i,j] < Z[j], 1, -inf)", "X=f32[9,17] Z=f32[17] Y=f32[9,17]", "nmifd"},
        {"Y[i,j] = select(X[i,j] == -inf, 0, X[i,j])", "X=f32[9,17] Y=f32[9,17]", "nmifd"},
        {"Y[i,j] = select(j <= i, X[i,j], -inf)", "X=f32[9,17] Y=f32[9,17]", "nmifd"},
        {"Y[i,j] = select(j <= i, X[i,j], inf)", "X=f64[9,17] Y=f64[9,17]", "nmid"},
        {"Y[i] = sum(k) select(k % 2 == 0, X[i,k], 0)", "X=f32[9,17] Y=f32[9]", "nmida"},
        {"Y[i] = X[i]", "X=f32[1] Y=f32[1]", "nmifda"},
        {"Y[i,j] = X[j,i]", "X=f32[23,29] Y=f32[29,23]", "nmifda"},
        {"Y[i] = f16(X[i])", "X=f32[37] Y=f16[37]", "nd"},
        {"Y[i] = f32(X[i])", "X=f16[37] Y=f32[37]", "nfd"},
        {"Y[i] = f32(X[i])", "X=bf16[37] Y=f32[37]", "nfd"},
        {"Y[i] = floor(X[i]) + ceil(X[i])", "X=f32[37] Y=f32[37]", "ni"},
        {"Y[i] = X[i] / Z[i]", "X=f32[37] Z=f32[37] Y=f32[37]", "n"},
    };
    wpk_check_edges(edges, COUNT(edges));
}

#define FUNCTION_UNITS 3 /* in the last place */
#define EACH_OF(type) "A=" type "[333] B=" type "[333] C=" type "[333] D=" type "[333] "
#define OF_ONE(type) EACH_OF(type) "X=" type "[333]"
#define OF_TWO(type) EACH_OF(type) "X=" type "[333] Z=" type "[333]"

/* Of the whole range, as C's. The plain kernel is by halide-cpu for SSE4.1. */
static void test_functions_of_all_numbers(void **state)
{
    (void)state;
    static const struct wpk_edge functions[] = {
        {"A[i] = exp(X[i]); B[i] = log(X[i]); C[i] = sigmoid(X[i]); D[i] = tanh(X[i])",
         OF_ONE("f32"), "sw"},
        {"A[i] = pow(X[i], Z[i]); B[i] = pow(X[i], 3); C[i] = pow(2, X[i]); D[i] = X[i] / Z[i]",
         OF_TWO("f32"), "sw"},
        {"A[i] = sin(X[i]); B[i] = cos(X[i]); C[i] = erf(X[i]); D[i] = pow(X[i], 0.5)",
         OF_ONE("f32"), "sw"},
        {"A[i] = sqrt(X[i]); B[i] = rsqrt(X[i]); C[i] = floor(X[i]); D[i] = round(X[i])",
         OF_ONE("f32"), "sw"},
        {"A[i] = exp(X[i]); B[i] = log(X[i]); C[i] = rsqrt(X[i]); D[i] = tanh(X[i])", OF_ONE("f64"),
         "sw"},
    };
    wpk_check_edges_within(functions, COUNT(functions), WPK_CPU_SET_AVX2, FUNCTION_UNITS);
    wpk_check_edges_within(functions, 2, WPK_CPU_SET_SSE41, FUNCTION_UNITS);
}

/* Comparisons, maxima and minima of any numbers, and what a compiler concludes from arithmetic. */
static void test_questions(void **state)
{
    (void)state;
    static const struct wpk_edge questions[] = {
        {"A[i] = select(X[i] == inf, 1, 0); B[i] = select(X[i] * 0.5 == -inf, 1, X[i]); "
         "C[i] = select(X[i] == X[i], 1, 7); D[i] = select(X[i] != X[i], 1, X[i] + 1)",
         OF_ONE("f32"), "s"},
        {"A[i] = select(isnan(X[i]), 7, X[i]); B[i] = select(isnan(X[i] * 0.5 - 1), 7, X[i]); "
         "C[i] = select(isinf(X[i]), 7, X[i]); D[i] = select(isinf(X[i] * 0.5), 7, X[i])",
         OF_ONE("f32"), "s"},
        {"A[i] = select(isnan(exp(X[i])), 7, 1); B[i] = select(isinf(exp(X[i] * 0.01)), 7, 1); "
         "C[i] = select(isnan(log(X[i])), 7, select(isinf(log(X[i])), 8, 1)); "
         "D[i] = select(isnan(sqrt(X[i])), 7, select(isinf(rsqrt(X[i])), 8, 1))",
         OF_ONE("f32"), "s"},
        {"A[i] = select(isnan(tanh(X[i])) || isnan(erf(X[i])), 7, sigmoid(X[i])); "
         "B[i] = min(X[i], 3.4028234e38); C[i] = min(max(X[i], -3.4028235e38), 3.4028235e38); "
         "D[i] = max(min(X[i] * 0.5, 1), -1)",
         OF_ONE("f32"), "s"},
        {"A[i] = relu(X[i]); B[i] = relu(X[i] * 0.5 + 1); C[i] = relu6(X[i]) + relu6(-X[i]); "
         "D[i] = select(0 < X[i], 1, select(X[i] < 0, -1, X[i]))",
         OF_ONE("f32"), "s"},
        {"A[i] = max(X[i], Z[i]); B[i] = min(X[i], Z[i]); C[i] = select(X[i] < Z[i], X[i], Z[i]); "
         "D[i] = max(X[i] * 0.25 + Z[i] * 0.25, X[i] * 0.5)",
         OF_TWO("f32"), "s"},
        {"A[i] = select(X[i] <= Z[i], 1, 2); B[i] = select(!(X[i] < 1), 1, Z[i]); "
         "C[i] = select(!(1 <= X[i]) && X[i] * 0.5 <= 3, 1, 2); "
         "D[i] = select(isnan(T[i]), 7, T[i]) where T[i] = X[i] * 0.5",
         OF_TWO("f32"), "s"},
        {"A[i] = isnan(X[i]); B[i] = isinf(X[i]); C[i] = X[i] == inf; D[i] = isnan(Z[i])",
         "X=f32[99] Z=f16[99] A=bool[99] B=bool[99] C=bool[99] D=bool[99]", "s"},
        {"A[i] = isnan(X[i]); B[i] = isinf(X[i]); C[i] = isinf(Z[i]); D[i] = isnan(Z[i])",
         "X=f64[99] Z=bf16[99] A=bool[99] B=bool[99] C=bool[99] D=bool[99]", "s"},
    };
    wpk_check_edges_within(questions, COUNT(questions), WPK_CPU_SET_AVX2, FUNCTION_UNITS);
}

static void test_several_outputs(void **state)
{
    (void)state;
    static const struct wpk_edge edges[] = {
        {"Y[i,j] = max(T[i,j] + C[j], 0); T[i,j] = sum(k) A[i,k] * B[k,j]; Z[i,j] = exp(T[i,j])",
         "A=f32[19,33] B=f32[33,17] C=f32[17] Y=f32[19,17] Z=f32[19,17]", "nn"},
        {"Y[i,j] = A[i,j] + 1; Z[j,i] = A[i,j] * 2", "A=f32[13,29] Y=f32[13,29] Z=f32[29,13]",
         "ni"},
        {"M[i] = max(k) X[i,k]; S[i] = sum(k) X[i,k]", "X=f32[7,31] M=f32[7] S=f32[7]", "nm"},
        {"Y[i,j] = E[i,j] / D[i]; M[i] = max(k) X[i,k]; E[i,j] = exp(X[i,j] - M[i]); "
         "D[i] = sum(k) E[i,k]",
         "X=f32[7,31] Y=f32[7,31] M=f32[7] D=f32[7]", "nm"},
        {"T[i,j] = sum(k) A[i,k] * B[k,j]; Y[i,j] = relu(T[i,j])",
         "A=f32[16,32] B=f32[32,16] T=f32[16,16] Y=f32[16,16]", "nn"},
        {"T[i,j] = sum(k) A[i,k] * B[k,j]; Y[i,j] = relu(T[i,j])",
         "A=f32[64,64] B=f32[64,64] T=f32[64,64] Y=f32[64,64]", "nn"},
        {"Q[i] = X[i] / Z[i]; R[i] = X[i] % Z[i]", "X=i32[53] Z=i32[53] Q=i32[53] R=i32[53]", "zf"},
    };
    wpk_check_edges(edges, COUNT(edges));
}

static void test_random_programs_with_several_outputs(void **state)
{
    (void)state;
    static struct wpk_kernels batch; /* large */
    static const struct wpk_edge edge = {.op = "a random program", .values = "n"};
    struct wpk_rng rng;
    int several = 0;
    if (!wpk_edges_begin(&batch, &rng)) {
        skip();
    }
    for (int i = 0; i < RANDOM_PROGRAMS; i++) {
        const struct wpk_random_options kind = {
            .smooth = true, .outputs = true, .products = i % 2 == 0};
        struct wpk_program program;
        int outputs = 0;
        wpk_random_program(&rng, &kind, &program);
        for (int t = 0; t < program.tensor_count; t++) {
            outputs += program.tensors[t].role == WPK_ROLE_OUTPUT;
        }
        several += wpk_edge_add(&batch, &edge, &program, &rng) && outputs > 1;
        wpk_program_fini(&program);
    }
    wpk_check_kernels(&batch, &rng);
    print_message("%d of %d have several outputs\n", several, RANDOM_PROGRAMS);
    assert_in_range(batch.refused, 0, REFUSED_MAX); /* as Halide does a few of random programs */
    assert_true(several > RANDOM_PROGRAMS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions_around_reductions),
        cmocka_unit_test(test_division_of_integers),
        cmocka_unit_test(test_maxima_and_minima),
        cmocka_unit_test(test_softmax_with_masks),
        cmocka_unit_test(test_sums_and_selects),
        cmocka_unit_test(test_functions_of_all_numbers),
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_several_outputs),
        cmocka_unit_test(test_random_programs_with_several_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
