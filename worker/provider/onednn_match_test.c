/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/notation_check.h"
#include "worker/provider/onednn_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static wpk_err match(const struct wpk_given *given, struct wpk_recipe *op)
{
    static struct wpk_program program;

    wpk_given_parse_constants(given, &program);
    wpk_err err = wpk_onednn_match(&program, op);
    wpk_program_fini(&program);
    return err;
}

static void convolution_with_bias_and_relu(void **state)
{
    const struct wpk_given given = {
        "Y[n,k,y,x] = relu(sum(c,r,s) X[n,c,2*y+r-1,2*x+s-1] * W[k,c,r,s] + B[k])",
        {"X f32[1,64,56,56]", "W f32[128,64,3,3]", "B f32[128]", "Y f32[1,128,28,28]"}};
    struct wpk_recipe op;

    (void)state;
    assert_int_equal(match(&given, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_CONVOLUTION);
    assert_int_equal(op.spatial, 2);
    assert_int_equal(op.stride[0], 2);
    assert_int_equal(op.dilation[1], 1);
    assert_int_equal(op.pad_before[0], 1);
    assert_int_equal(op.pad_after[0], 0);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].rank, 4);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].extent[1], 64);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].stride[1], 9);
    assert_int_equal(op.operand[WPK_RECIPE_BIAS].extent[0], 128);
    assert_int_equal(op.post_count, 1);
    assert_int_equal(op.post[0].function, WPK_RECIPE_RELU);
}

static void convolution_in_another_order(void **state)
{
    /* channels last, weights [r,s,c,k], factors exchanged, dilated */
    const struct wpk_given given = {"Y[n,y,x,k] = sum(c,r,s) W[r,s,c,k] * X[n,y+2*r-2,x+2*s-2,c]",
                                    {"X f32[2,10,11,8]", "W f32[3,3,8,16]", "Y f32[2,10,11,16]"}};
    struct wpk_recipe op;

    (void)state;
    assert_int_equal(match(&given, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_CONVOLUTION);
    assert_int_equal(op.operand[WPK_RECIPE_SRC].extent[1], 8);
    assert_int_equal(op.operand[WPK_RECIPE_SRC].stride[1], 1);
    assert_int_equal(op.operand[WPK_RECIPE_SRC].stride[3], 8);
    assert_int_equal(op.dilation[0], 2);
    assert_int_equal(op.pad_before[1], 2);
    assert_int_equal(op.pad_after[1], 2);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].stride[0], 1);
    assert_int_equal(op.operand[WPK_RECIPE_DST].extent[1], 16);
    assert_int_equal(op.operand[WPK_RECIPE_BIAS].tensor, -1);
}

/* Bytes are widened by the library itself; what is narrowed before it is multiplied is not its. */
static void products_of_integers(void **state)
{
    const struct wpk_given bytes = {"C[i,j] = sum(k) i32(A[i,k]) * i32(B[k,j])",
                                    {"A u8[8,16]", "B i8[16,12]", "C i32[8,12]"}};
    const struct wpk_given narrowed = {"C[i,j] = sum(k) i32(u8(A[i,k])) * i32(B[k,j])",
                                       {"A i32[8,16]", "B i8[16,12]", "C i32[8,12]"}};
    struct wpk_recipe op;

    (void)state;
    assert_int_equal(match(&bytes, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_MATMUL);
    assert_int_equal(op.operand[WPK_RECIPE_SRC].extent[1], 16);
    assert_int_not_equal(match(&narrowed, &op), WPK_OK);
}

/* As QLinearConv is computed, with its zero point and without; sums of floats are never rounded. */
static void quantized_products(void **state)
{
    const struct wpk_given conv = {
        "Y[n,k,y,x] = u8(f32(Z[]) + round(max(f32(sum.i32(c,r,s) i32(X[n,c,y+r-1,x+s-1]) * "
        "i32(W[k,c,r,s])) * S[k,0,0] + B[k,0,0], 0)))",
        {"X u8[1,64,9,9]", "W i8[32,64,3,3]", "S f32[32,1,1]", "B f32[32,1,1]", "Z u8[]",
         "Y u8[1,32,9,9]"}};
    const struct wpk_given matmul = {
        "Y[i,j] = i8(round(f32(sum.i32(k) i32(A[i,k]) * i32(W[k,j])) * S[j]))",
        {"A u8[8,16]", "W i8[16,12]", "S f32[12]", "Y i8[8,12]"}};
    const struct wpk_given scaled_last = {
        "Y[i,j] = i8(round((f32(sum.i32(k) i32(A[i,k]) * i32(W[k,j])) + B[j]) * S[j]))",
        {"A u8[8,16]", "W i8[16,12]", "S f32[12]", "B f32[12]", "Y i8[8,12]"}};
    const struct wpk_given of_floats = {"Y[i,j] = i8(round((sum(k) A[i,k] * W[k,j]) * S[j]))",
                                        {"A f32[8,16]", "W f32[16,12]", "S f32[12]", "Y i8[8,12]"}};
    const struct wpk_given out_of_order = {
        "Y[i,j] = i8(round(max(f32(sum.i32(k) i32(A[i,k]) * i32(W[k,j])) * S[j], 0) + B[j]))",
        {"A u8[8,16]", "W i8[16,12]", "S f32[12]", "B f32[12]", "Y i8[8,12]"}};
    const struct wpk_given of_integers = {
        "Y[i,j] = i8(round(f32(sum.i32(k) i32(A[i,k]) * i32(W[k,j])) * f32(S[j])))",
        {"A u8[8,16]", "W i8[16,12]", "S i32[12]", "Y i8[8,12]"}};
    struct wpk_recipe op;

    (void)state;
    assert_int_equal(match(&conv, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_CONVOLUTION);
    assert_int_equal(op.operand[WPK_RECIPE_SCALE].extent[0], 32);
    assert_int_equal(op.operand[WPK_RECIPE_BIAS].extent[0], 32);
    assert_int_equal(op.operand[WPK_RECIPE_ZERO].extent[0], 1);
    assert_int_equal(op.post_count, 1);
    assert_int_equal(match(&matmul, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_MATMUL);
    assert_int_equal(op.operand[WPK_RECIPE_SCALE].extent[0], 12);
    assert_int_equal(op.operand[WPK_RECIPE_ZERO].tensor, -1);
    assert_int_not_equal(match(&scaled_last, &op), WPK_OK);
    assert_int_not_equal(match(&of_floats, &op), WPK_OK);
    assert_int_not_equal(match(&out_of_order, &op), WPK_OK);
    assert_int_not_equal(match(&of_integers, &op), WPK_OK);
}

static void convolution_1x1_and_in_groups(void **state)
{
    const struct wpk_given pointwise = {
        "Y[n,k,y,x] = sum(c) X[n,c,2*y,2*x] * W[k,c]",
        {"X f32[1,64,56,56]", "W f32[128,64]", "Y f32[1,128,28,28]"}};
    const struct wpk_given plain = {"Y[n,k,y,x] = sum(c) X[n,c,y,x] * W[k,c]",
                                    {"X f32[1,64,56,56]", "W f32[128,64]", "Y f32[1,128,56,56]"}};
    const struct wpk_given groups = {
        "Y[n,k,y,x] = sum(c,r,s) X[n,k/4*8+c,y+r-1,x+s-1] * W[k,c,r,s]",
        {"X f32[1,32,9,9]", "W f32[16,8,3,3]", "Y f32[1,16,9,9]"}};
    const struct wpk_given depthwise = {"Y[n,c,y,x] = sum(r,s) X[n,c,y+r-1,x+s-1] * W[c,r,s]",
                                        {"X f32[1,32,9,9]", "W f32[32,3,3]", "Y f32[1,32,9,9]"}};
    const struct wpk_given wrong_groups = {
        "Y[n,k,y,x] = sum(c,r,s) X[n,k/2*8+c,y+r-1,x+s-1] * W[k,c,r,s]",
        {"X f32[1,64,9,9]", "W f32[8,8,3,3]", "Y f32[1,8,9,9]"}};
    struct wpk_recipe op;

    (void)state;
    assert_int_equal(match(&pointwise, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_CONVOLUTION);
    assert_int_equal(op.kernel[0], 1);
    assert_int_equal(op.stride[1], 2);
    assert_int_equal(op.pad_after[0], 0);
    assert_int_equal(match(&plain, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_CONVOLUTION);
    assert_int_equal(op.operand[WPK_RECIPE_SRC].extent[2], 56);
    assert_int_equal(match(&groups, &op), WPK_OK);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].rank, 5);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].extent[0], 4);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].extent[1], 4);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].extent[2], 8);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].stride[0], 4 * 8 * 9);
    assert_int_equal(match(&depthwise, &op), WPK_OK);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].extent[0], 32);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].extent[2], 1);
    assert_int_equal(match(&wrong_groups, &op), WPK_EUNSUPPORTED);
}

static void matrix_products(void **state)
{
    const struct wpk_given gemm = {"Y[i,j] = max(sum(k) X[i,k] * W[j,k] + B[j], 0)",
                                   {"X f32[8,16]", "W f32[24,16]", "B f32[24]", "Y f32[8,24]"}};
    const struct wpk_given batch = {"Y[b,i,j] = sum(k) X[b,i,k] * Z[b,k,j]",
                                    {"X f32[12,128,64]", "Z f32[12,64,128]", "Y f32[12,128,128]"}};
    struct wpk_recipe op;

    (void)state;
    assert_int_equal(match(&gemm, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_MATMUL);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].extent[0], 16);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].stride[0], 1);
    assert_int_equal(op.operand[WPK_RECIPE_WEIGHTS].stride[1], 16);
    assert_int_equal(op.operand[WPK_RECIPE_BIAS].extent[0], 1);
    assert_int_equal(op.operand[WPK_RECIPE_BIAS].extent[1], 24);
    assert_int_equal(op.post_count, 1);
    assert_int_equal(match(&batch, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_MATMUL);
    assert_int_equal(op.operand[WPK_RECIPE_SRC].rank, 3);
    assert_int_equal(op.operand[WPK_RECIPE_SRC].extent[0], 12);
}

static void softmax_and_layernorm(void **state)
{
    const struct wpk_given softmax = {
        "S[i,j] = exp(X[i,j] - M[i]) / D[i] where M[i] = max(j) X[i,j]; "
        "D[i] = sum(j) exp(X[i,j] - M[i])",
        {"X f32[32,100]", "S f32[32,100]"}};
    const struct wpk_given layernorm = {
        "Y[i,j] = (X[i,j] - M[i]) * rsqrt(V[i] + 0.00001) * G[j] + H[j] where "
        "M[i] = (sum(j) X[i,j]) / 100; V[i] = (sum(j) (X[i,j]-M[i])*(X[i,j]-M[i])) / 100",
        {"X f32[32,100]", "G f32[100]", "H f32[100]", "Y f32[32,100]"}};
    struct wpk_recipe op;

    (void)state;
    assert_int_equal(match(&softmax, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_SOFTMAX);
    assert_int_equal(op.axis, 1);
    assert_int_equal(match(&layernorm, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_LAYERNORM);
    assert_true(op.epsilon > 0.9e-5);
    assert_true(op.epsilon < 1.1e-5);
    assert_true(op.operand[WPK_RECIPE_WEIGHTS].tensor >= 0);
    assert_true(op.operand[WPK_RECIPE_BIAS].tensor >= 0);
}

static void pooling(void **state)
{
    const struct wpk_given max = {"P[n,c,y,x] = max(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1 | -inf]",
                                  {"X f32[1,64,56,56]", "P f32[1,64,28,28]"}};
    const struct wpk_given average = {"P[n,c,y,x] = (sum(r:2,s:2) X[n,c,2*y+r,2*x+s]) / 4",
                                      {"X f32[1,64,56,56]", "P f32[1,64,28,28]"}};
    const struct wpk_given max_with_zeros = {"P[n,c,y,x] = max(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1]",
                                             {"X f32[1,64,56,56]", "P f32[1,64,28,28]"}};
    struct wpk_recipe op;

    (void)state;
    assert_int_equal(match(&max, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_POOL_MAX);
    assert_int_equal(op.kernel[0], 3);
    assert_int_equal(op.pad_before[1], 1);
    assert_int_equal(match(&average, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_POOL_AVERAGE);
    assert_int_equal(op.post_count, 0);
    assert_int_equal(match(&max_with_zeros, &op), WPK_EUNSUPPORTED);
}

static void pointwise(void **state)
{
    const struct wpk_given relu = {"Y[i,j] = max(X[i,j], 0)", {"X f32[8,8]", "Y f32[8,8]"}};
    const struct wpk_given chain = {"Y[i,j] = tanh(2 * X[i,j])", {"X f32[8,8]", "Y f32[8,8]"}};
    const struct wpk_given sum = {"Y[i,j] = X[i,j] + Z[i,j]",
                                  {"X f32[8,8]", "Z f32[8,8]", "Y f32[8,8]"}};
    const struct wpk_given transposed = {"Y[i,j] = X[j,i]", {"X f32[8,8]", "Y f32[8,8]"}};
    const struct wpk_given strange = {"Y[i,j] = sum(k) X[i,k] * Z[k,j] * Z[k,j]",
                                      {"X f32[8,8]", "Z f32[8,8]", "Y f32[8,8]"}};
    struct wpk_recipe op;

    (void)state;
    assert_int_equal(match(&relu, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_ELTWISE);
    assert_int_equal(op.post[0].function, WPK_RECIPE_RELU);
    assert_int_equal(match(&chain, &op), WPK_OK);
    assert_int_equal(op.post_count, 2);
    assert_int_equal(op.post[0].function, WPK_RECIPE_LINEAR);
    assert_int_equal(op.post[1].function, WPK_RECIPE_TANH);
    assert_int_equal(match(&sum, &op), WPK_OK);
    assert_int_equal(op.kind, WPK_RECIPE_BINARY);
    assert_int_equal(match(&transposed, &op), WPK_EUNSUPPORTED);
    assert_int_equal(match(&strange, &op), WPK_EUNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution_with_bias_and_relu),
        cmocka_unit_test(convolution_in_another_order),
        cmocka_unit_test(products_of_integers),
        cmocka_unit_test(quantized_products),
        cmocka_unit_test(convolution_1x1_and_in_groups),
        cmocka_unit_test(matrix_products),
        cmocka_unit_test(softmax_and_layernorm),
        cmocka_unit_test(pooling),
        cmocka_unit_test(pointwise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
