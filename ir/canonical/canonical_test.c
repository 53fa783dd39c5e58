/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/canonical/canonical.h"

#include "common/buf.h"
#include "common/rng.h"
#include "ir/notation/notation.h"
#include "tests/derive_check.h"
#include "tests/random_program.h"
#include "tests/rewritten_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void parse(const char *text, struct wpk_program *out)
{
    struct wpk_diag diag = {0};
    memset(out, 0, sizeof *out);
    if (wpk_program_parse(text, out, &diag) != WPK_OK) {
        fail_msg("%s\n%s", text, diag.text);
    }
}

static void print(const struct wpk_program *program, struct wpk_buf *text)
{
    wpk_buf_reset(text);
    assert_int_equal(wpk_program_print(program, text), WPK_OK);
}

/* The text of the canonical form. */
static void canonical_text(const struct wpk_program *program, struct wpk_buf *text)
{
    struct wpk_program canonical;
    assert_int_equal(wpk_program_canonical(program, &canonical, NULL), WPK_OK);
    print(&canonical, text);
    wpk_program_fini(&canonical);
}

static void expect_canonical(const char *text, const char *expected)
{
    struct wpk_program program;
    struct wpk_buf got = {0};
    parse(text, &program);
    canonical_text(&program, &got);
    assert_string_equal(wpk_buf_text(&got), expected);
    wpk_program_fini(&program);
    parse(expected, &program);
    canonical_text(&program, &got);
    assert_string_equal(wpk_buf_text(&got), expected);
    wpk_program_fini(&program);
    wpk_buf_fini(&got);
}

static void test_texts(void **state)
{
    (void)state;
    expect_canonical("constant W f32[8,4,3,3]\ninput unused f32[3]\ninput X f32[1,4,9,9]\n"
                     "output Y f32[1,8,9,9]\n"
                     "Y[n,k,y,x] = sum(r:3,s:3,c:4) W[k,c,r,s] * X[n,c,r-1+y,x-1+s]\n",
                     "input t0 f32[1,4,9,9]\nconstant t1 f32[8,4,3,3]\noutput t2 f32[1,8,9,9]\n"
                     "t2[a0,a1,a2,a3] = sum.f32(a4:4,a5:3,a6:3) "
                     "t0[a0,a4,a2+a5-1,a3+a6-1] * t1[a1,a4,a5,a6]\n");
}

/* The same expression, whichever operand is called A: the binding says which is which. */
static void test_binding_of_operands_alike(void **state)
{
    (void)state;
    static const char *const texts[2] = {
        "input A f32[64,64]\ninput B f32[64,64]\noutput C f32[64,64]\n"
        "C[i,j] = sum(k:64) A[i,k] * B[k,j]\n",
        "input A f32[64,64]\ninput B f32[64,64]\noutput C f32[64,64]\n"
        "C[i,j] = sum(k:64) B[i,k] * A[k,j]\n"};
    struct wpk_program program[2];
    struct wpk_binding binding[2];
    struct wpk_fingerprint fingerprint[2];
    for (int i = 0; i < 2; i++) {
        struct wpk_program canonical;
        parse(texts[i], &program[i]);
        assert_int_equal(wpk_fingerprint(&program[i], &fingerprint[i]), WPK_OK);
        assert_int_equal(wpk_program_canonical(&program[i], &canonical, &binding[i]), WPK_OK);
        wpk_program_fini(&canonical);
        wpk_program_fini(&program[i]);
        assert_int_equal(binding[i].count, 3);
        assert_string_equal(binding[i].tensor[0].name, "A");
        assert_string_equal(binding[i].tensor[1].name, "B");
        assert_string_equal(binding[i].tensor[2].name, "C");
        assert_string_equal(binding[i].tensor[2].canonical, "t2");
        assert_int_equal(binding[i].tensor[2].role, WPK_ROLE_OUTPUT);
    }
    assert_string_equal(fingerprint[0].exact, fingerprint[1].exact);
    assert_string_equal(binding[0].tensor[0].canonical, "t0");
    assert_string_equal(binding[0].tensor[1].canonical, "t1");
    assert_string_equal(binding[1].tensor[0].canonical, "t1");
    assert_string_equal(binding[1].tensor[1].canonical, "t0");
}

/* Sums that 64-bit labels took for one: (x + 1) + 2 and x plus two numbers chosen for it. */
static void test_constructed_labels(void **state)
{
    (void)state;
    expect_canonical("input X f64[8]\noutput Y f64[8]\n"
                     "Y[i] = (X[i]+1.0+2.0) * (X[i]+617.614+31.26721924671236)\n",
                     "input t0 f64[8]\noutput t1 f64[8]\n"
                     "t1[a0] = (t0[a0] + 1 + 2) * (t0[a0] + 617.614 + 31.26721924671236)\n");
}

static void test_equal_outputs_stay_two(void **state)
{
    (void)state;
    expect_canonical("input X f32[8]\noutput Y f32[8]\noutput Z f32[8]\n"
                     "Y[i] = exp(X[i])\nZ[i] = exp(X[i])\n",
                     "input t0 f32[8]\noutput t1 f32[8]\noutput t2 f32[8]\n"
                     "t1[a0] = exp(t0[a0])\nt2[a0] = exp(t0[a0])\n");
}

static void test_equal_stages_are_one(void **state)
{
    (void)state;
    expect_canonical("input X f32[8]\nintermediate S f32[]\nintermediate T f32[]\noutput Y f32[8]\n"
                     "S[] = sum(k:8) X[k]\nT[] = sum(q:8) X[q]\nY[i] = X[i] / (S[] + T[])\n",
                     "input t0 f32[8]\nintermediate t1 f32[]\noutput t2 f32[8]\n"
                     "t1[] = sum.f32(a0:8) t0[a0]\nt2[a0] = t0[a0] / (t1[] + t1[])\n");
}

/* Their axes have one order, wherever they are read. */
static void test_equal_stages_with_many_axes(void **state)
{
    (void)state;
    struct wpk_program program, canonical;
    parse("input X f32[8]\nintermediate S f32[]\nintermediate T f32[]\noutput Y f32[]\n"
          "S[] = sum(i:8,j:8,k:8,l:8) exp(X[i]) * tanh(X[j]) * sqrt(X[k]) * erf(X[l])\n"
          "T[] = sum(m:8,n:8,o:8,p:8) erf(X[m]) * exp(X[n]) * sqrt(X[p]) * tanh(X[o])\n"
          "Y[] = S[] / (1.0 + exp(T[]))\n",
          &program);
    assert_int_equal(wpk_program_canonical(&program, &canonical, NULL), WPK_OK);
    assert_int_equal(canonical.stage_count, 2);
    wpk_program_fini(&canonical);
    wpk_program_fini(&program);
}

static void test_index_arithmetic(void **state)
{
    (void)state;
    expect_canonical("input X i64[99]\noutput Y i64[4,5]\n"
                     "Y[i,j] = X[3*(2*j+i)+2*(i/2+1-(j-i)%3)-i] - 2*((X[i-j+7]-i)*(2*j)-i)\n",
                     "input t0 i64[99]\noutput t1 i64[4,5]\n"
                     "t1[a0,a1] = 2*a0+-4*(a1*(-1*a0+t0[a0+-1*a1+7]))"
                     "+t0[2*a0+6*a1+-2*((-1*a0+a1)%3)+2*(a0/2)+2]\n");
}

/* Canonical forms of canonical forms, of their texts, and of programs written otherwise. */
static void test_random_programs(void **state)
{
    struct wpk_rng rng;
    struct wpk_buf text = {0}, other = {0};
    (void)state;
    wpk_rng_seed(&rng, 11);
    for (int i = 0; i < 400; i++) {
        struct wpk_program program, canonical, again;
        int map[WPK_TENSORS_MAX];
        wpk_random_program(&rng, &(struct wpk_random_options){.data = i % 2 == 0}, &program);
        assert_int_equal(wpk_program_canonical(&program, &canonical, NULL), WPK_OK);
        print(&canonical, &text);
        canonical_text(&canonical, &other);
        assert_string_equal(wpk_buf_text(&other), wpk_buf_text(&text));
        parse(wpk_buf_text(&text), &again);
        print(&again, &other);
        assert_string_equal(wpk_buf_text(&other), wpk_buf_text(&text));
        canonical_text(&again, &other);
        assert_string_equal(wpk_buf_text(&other), wpk_buf_text(&text));
        wpk_program_fini(&again);
        memset(&again, 0, sizeof again);
        wpk_rewritten_program(&program, (uint64_t)i, &again, map);
        canonical_text(&again, &other);
        assert_string_equal(wpk_buf_text(&other), wpk_buf_text(&text));
        wpk_program_fini(&again);
        wpk_program_fini(&canonical);
        wpk_program_fini(&program);
    }
    wpk_buf_fini(&other);
    wpk_buf_fini(&text);
}

/* Under the asker's names, the canonical form computes what the program does. */
static void test_computes_the_same(void **state)
{
    struct wpk_rng rng;
    const struct wpk_random_options smooth = {.smooth = true, .data = true};
    (void)state;
    wpk_rng_seed(&rng, 17);
    for (int i = 0; i < 150; i++) {
        struct wpk_program program, canonical;
        struct wpk_binding binding;
        wpk_random_program(&rng, &smooth, &program);
        assert_int_equal(wpk_program_canonical(&program, &canonical, &binding), WPK_OK);
        for (int b = 0; b < binding.count; b++) {
            int t = wpk_program_find_tensor(&canonical, binding.tensor[b].canonical);
            if (binding.tensor[b].canonical[0] != '\0') {
                assert_true(t >= 0);
                assert_int_equal(canonical.tensors[t].role, binding.tensor[b].role);
                memcpy(canonical.tensors[t].name, binding.tensor[b].name, WPK_NAME_MAX);
            }
        }
        wpk_check_derived(&program, &canonical, NULL, &rng);
        wpk_program_fini(&canonical);
        wpk_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_binding_of_operands_alike),
        cmocka_unit_test(test_constructed_labels),
        cmocka_unit_test(test_equal_outputs_stay_two),
        cmocka_unit_test(test_equal_stages_are_one),
        cmocka_unit_test(test_equal_stages_with_many_axes),
        cmocka_unit_test(test_index_arithmetic),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_computes_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
