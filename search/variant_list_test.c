/* SPDX-License-Identifier: Apache-2.0 */
#include "op/notation.h"
#include "search/prune.h"
#include "search/variant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define BLOCK                                                                                      \
    "input X f32[1,16,14,14]\nconstant V f32[16,16,3,3]\nconstant W f32[16,16,3,3]\n"              \
    "intermediate C f32[1,16,14,14]\nintermediate R f32[1,16,14,14]\n"                             \
    "intermediate D f32[1,16,14,14]\noutput Y f32[1,16,14,14]\n"                                   \
    "C[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * V[k,c,r,s]\n"                             \
    "R[n,k,y,x] = max(C[n,k,y,x], 0)\n"                                                            \
    "D[n,k,y,x] = sum(c:16,r:3,s:3) R[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"                             \
    "Y[n,k,y,x] = max(D[n,k,y,x] + X[n,k,y,x], 0)\n"

static bool has_algorithm(const struct wpk_space *space, const char *algorithm)
{
    for (int v = 0; v < space->variant_count; v++) {
        if (strcmp(space->variants[v].algorithm, algorithm) == 0) {
            return true;
        }
    }
    return false;
}

static void derive_block(struct wpk_space *space)
{
    struct wpk_program program = {0};
    const struct wpk_space_options options = {
        .layouts = "any",
        .threads = 1,
        .device = {.isa = WPK_ISA_AVX512, .vector_bytes = 64, .vector_registers = 32}};
    assert_int_equal(wpk_program_parse(BLOCK, &program, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, space, NULL), WPK_OK);
    wpk_program_fini(&program);
}

static int count_derived(const struct wpk_space *space)
{
    int count = 0;
    for (int v = 0; v < space->variant_count; v++) {
        count += space->variants[v].state == WPK_VARIANT_DERIVED;
    }
    return count;
}

/* Two convolutions: each has an algorithm of its own, and a variant is derived when it is asked
 * for; what it is does not depend on the others. */
static void test_each_site_has_its_algorithm(void **state)
{
    (void)state;
    struct wpk_space space, other;
    struct wpk_rng rng;
    struct wpk_candidate candidate[16], read;
    struct wpk_variant_algorithm one;
    char text[WPK_CANDIDATE_TEXT_MAX];
    derive_block(&space);
    assert_true(space.variant_count > 8 && space.variant_count <= WPK_VARIANTS_MAX);
    assert_int_equal(count_derived(&space), 1);
    assert_string_equal(space.variants[0].algorithm, "C=direct D=direct");
    assert_true(has_algorithm(&space, "C=winograd(2,3) D=winograd(5)"));
    assert_true(wpk_variant_algorithm(&space.variants[0], 1, &one));
    assert_string_equal(one.gene, "algorithm.D");
    assert_string_equal(one.value, "direct");
    int constructed = wpk_space_construct(&space, candidate, 16), different = 0;
    assert_int_equal(constructed, 16);
    assert_true(count_derived(&space) <= 17);
    derive_block(&other);
    wpk_rng_seed(&rng, 7);
    for (int i = 0; i < 64; i++) {
        struct wpk_candidate drawn = candidate[i % 16];
        if (i >= 16) {
            assert_int_equal(wpk_space_draw(&space, &rng, &drawn), WPK_OK);
        }
        assert_int_equal(wpk_candidate_encode(&space, &drawn, text, sizeof(text)), WPK_OK);
        assert_non_null(strstr(text, " algorithm.C="));
        assert_int_equal(wpk_candidate_decode(&other, text, &read, NULL), WPK_OK);
        assert_true(wpk_candidate_equal(&drawn, &read));
        const uint8_t *choice = space.variants[drawn.variant].choice;
        different += choice[0] != choice[1];
    }
    assert_true(different > 8);
    wpk_space_fini(&space);
    wpk_space_fini(&other);
}

static void test_pins_name_sites(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_diag diag = {0};
    derive_block(&space);
    assert_int_equal(wpk_space_pin(&space, "algorithm.D", "winograd(5)", &diag), WPK_OK);
    for (int v = 0; v < space.variant_count; v++) {
        assert_non_null(strstr(space.variants[v].algorithm, "D=winograd(5)"));
    }
    assert_true(space.variant_count > 1 && count_derived(&space) < space.variant_count);
    assert_int_equal(wpk_space_pin(&space, "algorithm.C", "what", &diag), WPK_ENOENT);
    assert_non_null(strstr(diag.text, "winograd(2,3)"));
    wpk_space_fini(&space);
    derive_block(&space); /* without a site: of all */
    assert_int_equal(wpk_space_pin(&space, "algorithm", "direct", &diag), WPK_OK);
    assert_int_equal(space.variant_count, 1);
    assert_int_equal(wpk_space_pin(&space, "algorithm.E", "direct", &diag), WPK_ENOENT);
    wpk_space_fini(&space);
}

/* A saved strategy knows its space by the variants that are listed, however many were derived. */
static void test_variants_that_are_dropped_stay_listed(void **state)
{
    (void)state;
    struct wpk_space space;
    int dropped = 0;
    derive_block(&space);
    wpk_space_prune(&space, WPK_ACCURACY_STRICT);
    for (int v = 0; v < space.variant_count; v++) {
        char algorithm[sizeof(space.variants[v].algorithm)];
        memcpy(algorithm, space.variants[v].algorithm, sizeof(algorithm));
        dropped += wpk_space_variant(&space, v) == NULL;
        assert_string_equal(space.variants[v].algorithm, algorithm);
    }
    assert_true(dropped > 0 && dropped < space.variant_count);
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_site_has_its_algorithm),
        cmocka_unit_test(test_pins_name_sites),
        cmocka_unit_test(test_variants_that_are_dropped_stay_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
