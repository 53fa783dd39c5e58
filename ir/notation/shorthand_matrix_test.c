/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shorthand_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Y[b,i,j] = alpha * sum(k) A * B + beta * C, with an optional relu; operands may be transposed,
 * and a batch of one is broadcast. */
struct product {
    const char *json;
    int batch_a, batch_b, rows, inner, columns;
    bool transpose_a, transpose_b, relu;
    double alpha, beta;
    int addend_rows, addend_columns; /* of C; 0: there is none */
};

static double product_at(const struct product *p, const struct wpk_expanded *e, int b, int i, int j)
{
    const double *left = wpk_expanded_values(e, "A"), *right = wpk_expanded_values(e, "B");
    double sum = 0;
    left += (p->batch_a > 1 ? b : 0) * p->rows * p->inner;
    right += (p->batch_b > 1 ? b : 0) * p->inner * p->columns;
    for (int k = 0; k < p->inner; k++) {
        sum += left[p->transpose_a ? k * p->rows + i : i * p->inner + k] *
               right[p->transpose_b ? j * p->inner + k : k * p->columns + j];
    }
    sum *= p->alpha;
    if (p->addend_columns > 0) {
        int row = p->addend_rows > 1 ? i : 0, column = p->addend_columns > 1 ? j : 0;
        sum += p->beta * wpk_expanded_values(e, "C")[row * p->addend_columns + column];
    }
    return p->relu ? fmax(sum, 0) : sum;
}

static void test_products(void **state)
{
    static const struct product cases[] = {
        {"{'type':'matmul','a':[3,4],'b':[4,5]}", 1, 1, 3, 4, 5, 0, 0, 0, 1, 0, 0, 0},
        {"{'type':'matmul','a':[4,3],'b':[4,5],'transpose_a':true,'bias':true,"
         "'activation':'relu'}",
         1, 1, 3, 4, 5, 1, 0, 1, 1, 1, 1, 5},
        {"{'type':'matmul','a':[3,4],'b':[5,4],'transpose_b':true}", 1, 1, 3, 4, 5, 0, 1, 0, 1, 0,
         0, 0},
        {"{'type':'batch_matmul','a':[2,3,4],'b':[2,4,5]}", 2, 2, 3, 4, 5, 0, 0, 0, 1, 0, 0, 0},
        {"{'type':'batch_matmul','a':[2,4,3],'b':[1,5,4],'transpose_a':true,'transpose_b':true}", 2,
         1, 3, 4, 5, 1, 1, 0, 1, 0, 0, 0},
        {"{'type':'batch_matmul','a':[1,3,4],'b':[3,4,2],'bias':true}", 1, 3, 3, 4, 2, 0, 0, 0, 1,
         1, 1, 2},
        {"{'type':'gemm','a':[3,4],'b':[4,5]}", 1, 1, 3, 4, 5, 0, 0, 0, 1, 0, 0, 0},
        {"{'type':'gemm','a':[3,4],'b':[4,5],'c':[3,5],'alpha':0.5,'beta':-2}", 1, 1, 3, 4, 5, 0, 0,
         0, 0.5, -2, 3, 5},
        {"{'type':'gemm','a':[3,4],'b':[4,5],'c':[5],'activation':'relu'}", 1, 1, 3, 4, 5, 0, 0, 1,
         1, 1, 1, 5},
        {"{'type':'gemm','a':[4,3],'b':[5,4],'c':[3,1],'transpose_a':true,'transpose_b':true,"
         "'alpha':-1,'beta':0.25}",
         1, 1, 3, 4, 5, 1, 1, 0, -1, 0.25, 3, 1},
        {"{'type':'gemm','a':[3,4],'b':[4,5],'c':[]}", 1, 1, 3, 4, 5, 0, 0, 0, 1, 1, 1, 1},
    };
    (void)state;
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        const struct product *p = &cases[t];
        struct wpk_expanded e;
        int64_t at = 0;
        int batches = p->batch_a > p->batch_b ? p->batch_a : p->batch_b;
        wpk_expanded_init(&e, p->json);
        assert_int_equal(wpk_tensor_elements(wpk_expanded_tensor(&e, "Y")),
                         batches * p->rows * p->columns);
        for (int b = 0; b < batches; b++) {
            for (int i = 0; i < p->rows; i++) {
                for (int j = 0; j < p->columns; j++) {
                    wpk_expanded_expect(&e, at++, product_at(p, &e, b, i, j));
                }
            }
        }
        wpk_expanded_fini(&e);
    }
}

static void test_roles_and_types(void **state)
{
    struct wpk_expanded e;
    (void)state;
    wpk_expanded_init(&e, "{'type':'matmul','a':[3,4],'b':[4,5],'bias':true,'constants':['B'],"
                          "'dtype':'u8'}");
    assert_int_equal(wpk_expanded_tensor(&e, "A")->role, WPK_ROLE_INPUT);
    assert_int_equal(wpk_expanded_tensor(&e, "B")->role, WPK_ROLE_CONSTANT);
    assert_int_equal(wpk_expanded_tensor(&e, "C")->role, WPK_ROLE_CONSTANT);
    assert_int_equal(wpk_expanded_tensor(&e, "A")->dtype, WPK_U8);
    assert_int_equal(wpk_expanded_tensor(&e, "C")->dtype, WPK_I32);
    assert_int_equal(wpk_expanded_tensor(&e, "Y")->dtype, WPK_I32);
    wpk_expanded_fini(&e);
    wpk_expanded_init(&e, "{'type':'gemm','a':[3,4],'b':[4,5],'c':[5],'constants':['A','C']}");
    assert_int_equal(wpk_expanded_tensor(&e, "A")->role, WPK_ROLE_CONSTANT);
    assert_int_equal(wpk_expanded_tensor(&e, "B")->role, WPK_ROLE_INPUT);
    assert_int_equal(wpk_expanded_tensor(&e, "C")->role, WPK_ROLE_CONSTANT);
    wpk_expanded_fini(&e);
}

static void test_mistakes(void **state)
{
    static const struct wpk_shorthand_mistake mistakes[] = {
        {"{'type':'matmul','a':[3,4]}", WPK_EINVAL, "b", "is missing"},
        {"{'type':'matmul','a':[3,4],'b':[5,4]}", WPK_EINVAL, "b", "5 rows, but a has 4 columns"},
        {"{'type':'matmul','a':[3,4],'b':[4,5],'transpose_b':true}", WPK_EINVAL, "b", "5 rows"},
        {"{'type':'matmul','a':[2,3,4],'b':[2,4,5]}", WPK_ERANGE, "a", ""},
        {"{'type':'matmul','a':[3,4],'b':[4,0]}", WPK_ERANGE, "b[1]", ""},
        {"{'type':'matmul','a':[3,4],'b':[4,5],'c':[5]}", WPK_EINVAL, "c", "unknown field"},
        {"{'type':'matmul','a':[3,4],'b':[4,5],'constants':['W']}", WPK_EINVAL, "constants[0]",
         "no input is called 'W'"},
        {"{'type':'matmul','a':[3,4],'b':[4,5],'constants':['Y']}", WPK_EINVAL, "constants[0]",
         "no input is called 'Y'"},
        {"{'type':'batch_matmul','a':[3,4],'b':[4,5]}", WPK_EINVAL, "a", "2 extents instead of 3"},
        {"{'type':'batch_matmul','a':[2,3,4],'b':[3,4,5]}", WPK_EINVAL, "b", "batches of 2 and 3"},
        {"{'type':'batch_matmul','a':[2,3,4],'b':[2,2,4,5]}", WPK_EINVAL, "b", "a has 3"},
        {"{'type':'gemm','a':[3,4],'b':[4,5],'c':[4]}", WPK_EINVAL, "c", "4 does not stretch to 5"},
        {"{'type':'gemm','a':[3,4],'b':[4,5],'c':[1,3,5]}", WPK_ERANGE, "c", ""},
        {"{'type':'gemm','a':[3,4],'b':[4,5],'alpha':'x'}", WPK_EINVAL, "alpha",
         "must be a number"},
        {"{'type':'gemm','a':[3,4],'b':[4,5],'beta':1e31}", WPK_ERANGE, "beta", ""},
        {"{'type':'gemm','a':[3,4],'b':[4,5],'bias':true}", WPK_EINVAL, "bias", "unknown field"},
        /* the operands fit, what they make does not */
        {"{'type':'matmul','a':[4294967296,1],'b':[1,4294967296]}", WPK_EINVAL, "",
         "tensor Y is empty, negative or too large in dimension 1"},
    };
    (void)state;
    wpk_expect_mistakes(mistakes, sizeof mistakes / sizeof *mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_roles_and_types),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
