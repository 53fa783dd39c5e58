/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over masks: none ends before its candidate is whole, all end at legal candidates, and of
 * spaces that are small enough to be enumerated every legal candidate is reached. */
#include "search/mask.h"

#include "ir/notation/notation.h"
#include "tests/fake_target.h"
#include "tests/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wpk_space_options options_for(int width, int threads)
{
    static const wpk_cpu_flags isas[] = {WPK_CPU_SET_SSE41, WPK_CPU_SET_AVX2, WPK_CPU_SET_AVX512};
    if (width == 3) {
        return wpk_target_fake_options("any", threads);
    }
    struct wpk_space_options options = {.layouts = "any", .threads = threads};
    options.device.cpu.flags = isas[width];
    options.device.cpu.vector_bytes = 16 << width;
    options.device.cpu.vector_registers = width == 2 ? 32 : 16;
    return options;
}

/* ---- walks */

/* True if the variant has a legal candidate; a variant that the masks give up has none. */
static bool walk(const struct wpk_space *space, int variant, struct wpk_rng *rng)
{
    const struct wpk_variant *v = wpk_space_variant(space, variant);
    struct wpk_candidate candidate;
    bool decided[WPK_GENES_MAX] = {false};
    if (v == NULL) {
        return false;
    }
    if (wpk_mask_begin(space, variant, &candidate) != WPK_OK) {
        struct wpk_candidate any = {.variant = variant, .gene_count = v->gene_count};
        assert_int_equal(wpk_space_repair(space, rng, &any), WPK_EEXHAUSTED);
        return false;
    }
    for (int step = 0; step < v->gene_count; step++) {
        bool allowed[WPK_CHOICES_MAX];
        int gene = wpk_mask_gene(space, v, step);
        int count = wpk_mask_values(space, &candidate, step, allowed), choice = -1;
        assert_false(decided[gene]);
        decided[gene] = true;
        assert_true(count > 0);
        for (int pick = (int)wpk_rng_below(rng, (uint64_t)count); pick >= 0; pick--) {
            do {
                choice++;
            } while (!allowed[choice]);
        }
        wpk_mask_decide(space, &candidate, step, choice);
    }
    assert_true(wpk_space_is_legal(space, &candidate));
    return true;
}

/* WPK_TEST_WALKS: as many walks, for instance a million. */
static void test_no_dead_ends(void **state)
{
    (void)state;
    const char *given = getenv("WPK_TEST_WALKS");
    int walks = given == NULL ? 2000 : (int)strtol(given, NULL, 10);
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 5);
    for (int i = 0, done = 0; done < walks; i++) {
        struct wpk_program program;
        struct wpk_space space;
        const struct wpk_random_options kind = {.products = i % 2 == 0};
        const struct wpk_space_options options = options_for(i % 4, 1 + i / 4 % 2);
        wpk_random_program(&rng, &kind, &program);
        if (wpk_space_derive(&program, &options, &space, NULL) == WPK_OK) {
            for (int k = 0; k < 20; k++) {
                done += walk(&space, k % space.variant_count, &rng);
            }
            wpk_space_fini(&space);
        }
        wpk_program_fini(&program);
    }
}

/* An unrolling of 4 needs the channels innermost, not the window of 3. */
static void test_a_pinned_gene(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_rng rng;
    const struct wpk_space_options options = options_for(2, 1);
    wpk_rng_seed(&rng, 2);
    assert_int_equal(
        wpk_program_parse("input X f32[1,16,14,14]\nconstant W f32[24,16,3,3]\n"
                          "output Y f32[1,24,12,12]\n"
                          "Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r,x+s] * W[k,c,r,s]\n",
                          &program, NULL),
        WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
    assert_int_equal(wpk_space_pin(&space, "algorithm", "direct", NULL), WPK_OK);
    assert_int_equal(wpk_space_pin(&space, "Y.unroll", "4", NULL), WPK_OK);
    for (int i = 0; i < 100; i++) {
        assert_true(walk(&space, i % space.variant_count, &rng));
    }
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

/* ---- enumeration */

static long count_legal(const struct wpk_space *space, int variant)
{
    const struct wpk_variant *v = &space->variants[variant];
    struct wpk_candidate candidate = {.variant = variant, .gene_count = v->gene_count};
    long count = 0;
    for (int g = 0; g < v->gene_count;) {
        count += g == 0 && wpk_space_is_legal(space, &candidate);
        if (candidate.gene[g] + 1 < v->genes[g].choice_count) {
            candidate.gene[g]++;
            g = 0;
        } else {
            candidate.gene[g++] = 0;
        }
    }
    return count;
}

static long count_reached(const struct wpk_space *space, const struct wpk_candidate *candidate,
                          int step)
{
    const struct wpk_variant *v = &space->variants[candidate->variant];
    bool allowed[WPK_CHOICES_MAX];
    long count = 0;
    if (step == v->gene_count) {
        assert_true(wpk_space_is_legal(space, candidate));
        return 1;
    }
    int gene = wpk_mask_gene(space, v, step);
    (void)wpk_mask_values(space, candidate, step, allowed);
    for (int i = 0; i < v->genes[gene].choice_count; i++) {
        struct wpk_candidate next = *candidate;
        if (allowed[i]) {
            wpk_mask_decide(space, &next, step, i);
            count += count_reached(space, &next, step + 1);
        }
    }
    return count;
}

static void test_every_legal_candidate_is_reached(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "input X f32[6,8]\noutput Y f32[6,8]\nY[i,j] = exp(X[i,j])\n",
        "input A f32[3,4]\nconstant B f32[4,8]\noutput Y f32[3,8]\n"
        "Y[i,j] = sum(k:4) A[i,k] * B[k,j]\n",
        "input X f32[4,6]\nintermediate M f32[4]\noutput Y f32[4,6]\n"
        "M[i] = max(j:6) X[i,j]\nY[i,j] = X[i,j] - M[i]\n",
        "input A f32[2,32]\nconstant B f32[32,4]\noutput Y f32[2,4]\n" /* with panels */
        "Y[i,j] = max(k:32) A[i,k] * B[k,j]\n",
    };
    for (int i = 0; i < 4; i++) {
        struct wpk_program program;
        struct wpk_space space;
        struct wpk_diag diag = {0};
        const struct wpk_space_options options = options_for(i < 3 ? 0 : 3, 1);
        if (wpk_program_parse(texts[i], &program, &diag) != WPK_OK ||
            wpk_space_derive(&program, &options, &space, &diag) != WPK_OK) {
            fail_msg("%s", diag.text);
        }
        for (int v = 0; v < space.variant_count; v++) {
            struct wpk_candidate neutral;
            assert_int_equal(wpk_mask_begin(&space, v, &neutral), WPK_OK);
            long legal = count_legal(&space, v), reached = count_reached(&space, &neutral, 0);
            print_message("%d %s: %ld legal\n", i, space.variants[v].layout, legal);
            assert_int_equal(reached, legal);
        }
        wpk_space_fini(&space);
        wpk_program_fini(&program);
    }
}

/* ---- draws */

static bool is_reached(const struct wpk_space *space, const struct wpk_candidate *wanted)
{
    const struct wpk_variant *v = &space->variants[wanted->variant];
    struct wpk_candidate candidate;
    if (wpk_mask_begin(space, wanted->variant, &candidate) != WPK_OK) {
        return false;
    }
    for (int step = 0; step < v->gene_count; step++) {
        bool allowed[WPK_CHOICES_MAX];
        int gene = wpk_mask_gene(space, v, step);
        (void)wpk_mask_values(space, &candidate, step, allowed);
        if (!allowed[wanted->gene[gene]]) {
            return false;
        }
        wpk_mask_decide(space, &candidate, step, wanted->gene[gene]);
    }
    return wpk_candidate_equal(&candidate, wanted);
}

static long count_legal_draws(const struct wpk_space *space, struct wpk_rng *rng)
{
    long legal = 0;
    for (int i = 0; i < 20000; i++) {
        struct wpk_candidate drawn = {.variant = i % space->variant_count};
        const struct wpk_variant *v = &space->variants[drawn.variant];
        drawn.gene_count = v->gene_count;
        for (int g = 0; g < v->gene_count; g++) {
            drawn.gene[g] = (uint8_t)wpk_rng_below(rng, (uint64_t)v->genes[g].choice_count);
        }
        if (wpk_space_is_legal(space, &drawn)) {
            legal++;
            assert_true(is_reached(space, &drawn));
        }
    }
    return legal;
}

/* Some candidates are legal only because a larger tile gives a stage lanes, or because an operand
 * is copied first. */
static void test_legal_draws_are_reached(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "input A f32[5,4,4]\ninput C f32[9,7]\noutput Y f32[6,3,1,7]\n"
        "Y[i,j,k,l] = sum(r:4,s:6) (s + A[2,i-2,l/2 | -1] + C[r,k])\n",
        "input A f16[9,9,6,4]\noutput Y f16[2,8]\n"
        "Y[i,j] = sum(r:8) f32(A[j,3*i+r,j,r]) * f32(A[r,j,r,r])\n",
        "input B f32[2,8,3]\ninput C f32[8,9]\noutput Y f32[9,6]\n"
        "Y[i,j] = sum(r:2,s:2) (C[j/2,j+r-2 | -1.5] * C[s,r] + B[s,(s+3)/2%3,i/2%4])\n",
        "input A f32[24,31]\nconstant B f32[31,40]\noutput Y f32[24,40]\n"
        "Y[i,j] = sum(k:31) A[i,k] * B[k,j]\n",
        "input A f32[24,65536]\nconstant B f32[65536,40]\noutput Y f32[24,40]\n" /* with panels */
        "Y[i,j] = sum(k:65536) A[i,k] * B[k,j]\n",
    };
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 3);
    for (int i = 0; i < 5; i++) {
        struct wpk_program program;
        struct wpk_space space;
        struct wpk_diag diag = {0};
        const struct wpk_space_options options = options_for(1, 1);
        if (wpk_program_parse(texts[i], &program, &diag) != WPK_OK ||
            wpk_space_derive(&program, &options, &space, &diag) != WPK_OK) {
            fail_msg("%s", diag.text);
        }
        assert_true(count_legal_draws(&space, &rng) > 50);
        wpk_space_fini(&space);
        wpk_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_dead_ends),
        cmocka_unit_test(test_a_pinned_gene),
        cmocka_unit_test(test_every_legal_candidate_is_reached),
        cmocka_unit_test(test_legal_draws_are_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
