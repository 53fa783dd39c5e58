/* SPDX-License-Identifier: Apache-2.0 */
#include "search/prune.h"

#include "common/buf.h"
#include "ir/notation/notation.h"
#include "search/gene_list.h"
#include "search/genes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void derive(const char *text, struct wpk_space *space)
{
    struct wpk_space_options options = {.layouts = "any", .threads = 1};
    struct wpk_program program = {0};
    options.device.cpu.flags = WPK_CPU_SET_AVX512;
    options.device.cpu.vector_bytes = 64;
    options.device.cpu.vector_registers = 32;
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, space, NULL), WPK_OK);
    wpk_program_fini(&program);
}

static void derive_window(int channels, int size, struct wpk_space *space)
{
    struct wpk_buf text = {0};
    wpk_buf_printf(&text, "input X f32[1,%d,%d,%d]\nconstant W f32[%d,%d,3,3]\n", channels, size,
                   size, channels, channels);
    wpk_buf_printf(&text, "output Y f32[1,%d,%d,%d]\n", channels, size, size);
    wpk_buf_printf(&text, "Y[n,k,y,x] = sum(c:%d,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
                   channels);
    derive(wpk_buf_text(&text), space);
    wpk_buf_fini(&text);
}

static const struct wpk_variant *find(const struct wpk_space *space, const char *algorithm)
{
    for (int v = 0; v < space->variant_count; v++) {
        if (strcmp(space->variants[v].algorithm, algorithm) == 0) {
            return &space->variants[v];
        }
    }
    return NULL;
}

/* The block sizes of a group's sums: the first such gene whose name begins with `group`; *number is
 * the group's. */
static const struct wpk_gene *sums_of(const struct wpk_variant *variant, const char *group,
                                      int *number)
{
    const struct wpk_structure *structure = variant->plan;
    for (int g = 0; g < structure->plan.group_count; g++) {
        int gene = structure->slots[g].sum;
        if (gene >= 0 && strncmp(variant->genes[gene].name, group, strlen(group)) == 0) {
            *number = g;
            return &variant->genes[gene];
        }
    }
    *number = -1;
    return NULL;
}

/* Of 128 channels, 28x28: what is kept of F(4,4) and F(6,6), as the errors that were measured say:
 * 2.1 and 8.7 times direct's, in blocks of 16 terms 1.1 and 4.6. */
static void test_each_class_keeps_what_fits(void **state)
{
    (void)state;
    static const struct {
        double times;
        bool four, six;         /* is the algorithm kept? */
        bool four_all, six_all; /* and sums of one block? */
    } cases[] = {{0.5, false, false, false, false},
                 {1.25, true, false, false, false},
                 {4, true, false, true, false},
                 {6, true, true, true, false},
                 {16, true, true, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wpk_space space;
        derive_window(128, 28, &space);
        wpk_space_prune(&space, (struct wpk_accuracy){cases[i].times});
        const struct wpk_variant *four = find(&space, "winograd(4)");
        const struct wpk_variant *six = find(&space, "winograd(6)");
        assert_int_equal(four != NULL, cases[i].four);
        assert_int_equal(six != NULL, cases[i].six);
        assert_non_null(find(&space, "direct"));
        int group;
        if (four != NULL) {
            const struct wpk_gene *sums = sums_of(four, "", &group);
            assert_true(wpk_gene_find(sums, 16) >= 0);
            assert_int_equal(wpk_gene_find(sums, WPK_GENE_ALL) >= 0, cases[i].four_all);
        }
        if (six != NULL) {
            const struct wpk_gene *sums = sums_of(six, "", &group);
            assert_int_equal(wpk_gene_find(sums, WPK_GENE_ALL) >= 0, cases[i].six_all);
        }
        wpk_space_fini(&space);
    }
}

/* Kernels built and run: their error on the recorded sets, times direct's. */
static void test_expectations_meet_measurements(void **state)
{
    (void)state;
    static const struct {
        int channels, size;
        const char *algorithm;
        int64_t block;
        double measured;
    } kernels[] = {
        {128, 28, "winograd(4)", WPK_GENE_ALL, 2.13},
        {128, 28, "winograd(4)", 16, 1.145},
        {128, 28, "winograd(4)", 32, 1.28},
        {128, 28, "winograd(4)", 64, 1.56},
        {128, 28, "winograd(6)", WPK_GENE_ALL, 8.68},
        {128, 28, "winograd(6)", 16, 4.64},
        {128, 28, "winograd(6)", 64, 7.0},
        {256, 14, "winograd(5)", WPK_GENE_ALL, 4.02},
        {256, 14, "winograd(5)", 16, 1.72},
        {256, 14, "winograd(5)", 64, 2.2},
        {512, 7, "winograd(4)", WPK_GENE_ALL, 2.08},
        {512, 7, "winograd(4)", 16, 0.73},
        {512, 7, "winograd(4)", 32, 0.735},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        struct wpk_space space;
        derive_window(kernels[i].channels, kernels[i].size, &space);
        const struct wpk_variant *variant = find(&space, kernels[i].algorithm);
        int group;
        assert_non_null(variant);
        assert_non_null(sums_of(variant, "", &group));
        double ratio = wpk_variant_error(variant, group, kernels[i].block) / kernels[i].measured;
        print_message("%d channels, %s, %d: %.2f of %.2f\n", kernels[i].channels,
                      kernels[i].algorithm, (int)kernels[i].block, ratio, kernels[i].measured);
        assert_true(ratio > 0.85 && ratio < 1.15);
        wpk_space_fini(&space);
    }
}

/* A class that nothing fits keeps the most accurate; an algorithm that was pinned stays. */
static void test_something_stays(void **state)
{
    (void)state;
    struct wpk_space space;
    int group;
    derive_window(128, 28, &space);
    assert_int_equal(wpk_space_pin(&space, "algorithm", "winograd(6)", NULL), WPK_OK);
    wpk_space_prune(&space, (struct wpk_accuracy){0.001});
    assert_int_equal(space.variant_count, 1);
    const struct wpk_gene *sums = sums_of(&space.variants[0], "", &group);
    assert_true(wpk_gene_find(sums, 16) >= 0 && wpk_gene_find(sums, WPK_GENE_ALL) < 0);
    wpk_space_fini(&space);
    derive("input X i32[64]\nconstant B i32[64]\noutput Y i32[64]\nY[i] = X[i] + B[i]\n", &space);
    wpk_space_prune(&space, (struct wpk_accuracy){0.001});
    assert_true(space.variant_count > 0);
    wpk_space_fini(&space);
}

/* Candidates constructed and drawn from a class's space are expected to be in the class. */
static void test_candidates_fit(void **state)
{
    (void)state;
    static const double classes[] = {1.25, 4, 16};
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 1);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        struct wpk_space space;
        struct wpk_candidate candidate[32];
        derive_window(64, 14, &space);
        wpk_space_prune(&space, (struct wpk_accuracy){classes[i]});
        int count = 0;
        assert_int_equal(wpk_space_construct(&space, candidate, 16, &count), WPK_OK);
        assert_int_equal(count, 16);
        for (; count < 32; count++) {
            assert_int_equal(wpk_space_draw(&space, &rng, &candidate[count]), WPK_OK);
        }
        for (int k = 0; k < count; k++) {
            const struct wpk_variant *variant = &space.variants[candidate[k].variant];
            int group;
            const struct wpk_gene *sums = sums_of(variant, "", &group);
            ptrdiff_t at = sums == NULL ? 0 : sums - variant->genes;
            int64_t block = sums == NULL ? WPK_GENE_ALL : sums->choice[candidate[k].gene[at]].value;
            assert_true(sums == NULL ||
                        wpk_variant_error(variant, group, block) <= 0.9 * classes[i]);
        }
        wpk_space_fini(&space);
    }
}

/* Each of two convolutions has its own errors: that the other one is larger, or direct, does not
 * make sums of one block accurate enough for a large tile. */
static void test_each_site_keeps_what_fits(void **state)
{
    (void)state;
    struct wpk_space space;
    int seen[2] = {0, 0};
    derive("input X f32[1,128,28,28]\nconstant V f32[128,128,3,3]\n"
           "constant W f32[128,128,3,3]\nintermediate C f32[1,128,28,28]\n"
           "intermediate R f32[1,128,28,28]\noutput Y f32[1,128,28,28]\n"
           "C[n,k,y,x] = sum(c:128,r:3,s:3) X[n,c,y+r-1,x+s-1] * V[k,c,r,s]\n"
           "R[n,k,y,x] = max(C[n,k,y,x], 0)\n"
           "Y[n,k,y,x] = sum(c:128,r:3,s:3) R[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
           &space);
    wpk_space_prune(&space, (struct wpk_accuracy){6});
    for (int v = 0; v < space.variant_count; v++) {
        const struct wpk_variant *variant = wpk_space_variant(&space, v);
        for (int i = 0; i < 2 && variant != NULL; i++) {
            static const char *const six[] = {"C=winograd(6) ", "Y=winograd(6)"};
            static const char *const groups[] = {"C", "Y"};
            int group;
            if (strstr(variant->algorithm, six[i]) != NULL) {
                const struct wpk_gene *sums = sums_of(variant, groups[i], &group);
                assert_true(wpk_gene_find(sums, 16) >= 0);
                assert_true(wpk_gene_find(sums, WPK_GENE_ALL) < 0);
                seen[i]++;
            } else if (strstr(variant->algorithm, i == 0 ? "C=direct" : "Y=direct") != NULL) {
                const struct wpk_gene *sums = sums_of(variant, i == 0 ? "R" : "Y", &group);
                assert_true(sums == NULL || wpk_gene_find(sums, WPK_GENE_ALL) >= 0);
            }
        }
    }
    assert_true(seen[0] > 0 && seen[1] > 0);
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_class_keeps_what_fits),
        cmocka_unit_test(test_expectations_meet_measurements),
        cmocka_unit_test(test_something_stays),
        cmocka_unit_test(test_candidates_fit),
        cmocka_unit_test(test_each_site_keeps_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
