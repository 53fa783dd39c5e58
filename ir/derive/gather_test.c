/* SPDX-License-Identifier: Apache-2.0 */
/* An operand as a tensor of its own: as a gather has it, and as the box that its windows read. */
#include "ir/derive/derive.h"
#include "ir/derive/extract.h"
#include "ir/notation/notation.h"
#include "tests/derive_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The node of the stage's load of the tensor. */
static int find_load(const struct wpk_program *program, int stage, const char *tensor)
{
    int loads[WPK_LOADS_MAX], found = -1;
    int count = wpk_stage_loads(program, &program->stages[stage], loads, WPK_LOADS_MAX);
    for (int l = 0; l < count; l++) {
        const struct wpk_node *node = &program->nodes[loads[l]];
        found = strcmp(program->tensors[node->tensor].name, tensor) == 0 ? loads[l] : found;
    }
    return found;
}

static void expect_line(const struct wpk_program *program, const char *line)
{
    struct wpk_buf out = {0};
    assert_int_equal(wpk_program_print(program, &out), WPK_OK);
    if (strstr(wpk_buf_text(&out), line) == NULL) {
        fail_msg("no %s in\n%s", line, wpk_buf_text(&out));
    }
    wpk_buf_fini(&out);
}

static const struct {
    const char *text, *box; /* NULL: there is none */
    int64_t multiple;
} windows[] = {
    {"input X f32[2,3,9,8]\nconstant W f32[4,3,3,3]\noutput Y f32[2,4,9,8]\n"
     "Y[n,k,y,x] = sum.f32(c:3,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
     "X_b[i0,i1,i2,i3] = X[i0,i1,i2-1,i3-1]\n", 1},
    {"input X f32[1,3,9,9]\nconstant W f32[4,3,3,3]\noutput Y f32[1,4,4,4]\n"
     "Y[n,k,y,x] = sum.f32(c:3,r:3,s:3) X[n,c,2*y+r,2*x+s] * W[k,c,r,s]\n",
     "X_b[i0,i1,i2,i3] = X[i0,i1,i2,i3]\n", 4},
    {"input X f32[2,5,12]\nconstant W f32[5,3]\noutput Y f32[2,5,12]\n" /* other values outside */
     "Y[n,c,x] = sum.f32(s:3) X[n,c,x+2*s-2 | 0.5] * W[c,s]\n",
     "X_b[i0,i1,i2] = X[i0,i1,i2-2 | 0.5]\n", 8},
    {"input X f32[4,12]\nconstant W f32[12,6]\noutput Y f32[4,6]\n"
     "Y[i,j] = sum.f32(k:12) X[i,k] * W[k,j]\n",
     NULL, 1},
    {"input X f32[1,3,9,9]\nconstant W f32[4,3]\noutput Y f32[1,4,5,5]\n" /* none overlap */
     "Y[n,k,y,x] = sum.f32(c:3) X[n,c,2*y,2*x] * W[k,c]\n",
     NULL, 1},
    {"input X f32[3,30]\nconstant W f32[3,4]\noutput Y f32[3,7]\n" /* nor is the index affine */
     "Y[c,x] = sum.f32(s:4) X[c,4*x+s/2] * W[c,s]\n",
     NULL, 1},
    {"input X f32[2,3,9,16]\nconstant W f32[4,3,3,3]\noutput Y f32[2,4,9,16]\n"
     "Y[n,k,y,x] = sum.f32(c:3,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
     "intermediate X_b f32[2,3,11,32]\n", 8},
};

static void test_box(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 3);
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        struct wpk_program program = {0}, original = {0};
        assert_int_equal(wpk_program_parse(windows[i].text, &program, NULL), WPK_OK);
        assert_int_equal(wpk_program_copy(&program, &original), WPK_OK);
        int stage = wpk_contraction_find(&program);
        wpk_err err =
            wpk_derive_box(&program, stage, find_load(&program, stage, "X"), windows[i].multiple);
        assert_int_equal(err, windows[i].box == NULL ? WPK_EUNSUPPORTED : WPK_OK);
        if (err == WPK_OK) {
            expect_line(&program, windows[i].box);
            wpk_check_derived(&original, &program, NULL, &rng);
            stage = wpk_contraction_find(&program);
            int load = find_load(&program, stage, "X_b"); /* a box has no box, but it is gathered */
            assert_int_equal(wpk_derive_box(&program, stage, load, windows[i].multiple),
                             WPK_EUNSUPPORTED);
            assert_int_equal(wpk_derive_gather(&program, stage, load, -1), WPK_OK);
            wpk_check_derived(&original, &program, NULL, &rng);
        }
        wpk_program_fini(&program);
        wpk_program_fini(&original);
    }
}

/* A constant is prepared with the axis last that is asked for; what is read at axes of other
 * tensors stays as it is. */
static void test_gather(void **state)
{
    (void)state;
    struct wpk_rng rng;
    struct wpk_program program = {0}, original = {0};
    wpk_rng_seed(&rng, 4);
    assert_int_equal(wpk_program_parse("input X f32[6,12]\nconstant W f32[4,12,3]\n"
                                       "output Y f32[6,4]\nY[i,k] = sum.f32(c:12,s:3) X[i,c] * "
                                       "W[k,c,s]\n",
                                       &program, NULL),
                     WPK_OK);
    assert_int_equal(wpk_program_copy(&program, &original), WPK_OK);
    assert_int_equal(wpk_derive_gather(&program, 0, find_load(&program, 0, "W"), 1), WPK_OK);
    int stage = wpk_contraction_find(&program);
    assert_int_equal(wpk_derive_gather(&program, stage, find_load(&program, stage, "X"), 0),
                     WPK_OK);
    expect_line(&program, "W_t[c,s,k] = W[k,c,s]\n");
    expect_line(&program, "X_t[i,c] = X[i,c]\n");
    wpk_check_derived(&original, &program, NULL, &rng);
    wpk_program_fini(&program);
    wpk_program_fini(&original);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_box), cmocka_unit_test(test_gather)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
