/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "ir/notation/notation.h"
#include "search/mask.h"
#include "search/prune.h"
#include "search/strategy/strategy.h"
#include "search/variant.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCK                                                                                      \
    "input X f32[1,16,14,14]\nconstant V f32[16,16,3,3]\nconstant W f32[16,16,3,3]\n"              \
    "intermediate C f32[1,16,14,14]\nintermediate R f32[1,16,14,14]\n"                             \
    "intermediate D f32[1,16,14,14]\noutput Y f32[1,16,14,14]\n"                                   \
    "C[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * V[k,c,r,s]\n"                             \
    "R[n,k,y,x] = max(C[n,k,y,x], 0)\n"                                                            \
    "D[n,k,y,x] = sum(c:16,r:3,s:3) R[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"                             \
    "Y[n,k,y,x] = max(D[n,k,y,x] + X[n,k,y,x], 0)\n"

/* So many allocations until one fails; 0: none does. The link puts these before the library's. */
static int allocations_left;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool fails(void)
{
    return allocations_left > 0 && --allocations_left == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

/* A stage for each of `convolutions`, one after the other. */
static void write_chain(struct wpk_buf *text, int convolutions)
{
    wpk_buf_append_text(text, "input X0 f32[1,16,14,14]\n");
    for (int i = 1; i <= convolutions; i++) {
        wpk_buf_printf(text,
                       "constant W%d f32[16,16,3,3]\nintermediate C%d f32[1,16,14,14]\n"
                       "%s X%d f32[1,16,14,14]\n",
                       i, i, i == convolutions ? "output" : "intermediate", i);
    }
    for (int i = 1; i <= convolutions; i++) {
        wpk_buf_printf(text,
                       "C%d[n,k,y,x] = sum(c:16,r:3,s:3) X%d[n,c,y+r-1,x+s-1] * W%d[k,c,r,s]\n"
                       "X%d[n,k,y,x] = max(C%d[n,k,y,x], 0)\n",
                       i, i - 1, i, i, i);
    }
}

static bool has_algorithm(const struct wpk_space *space, const char *algorithm)
{
    for (int v = 0; v < space->variant_count; v++) {
        if (strcmp(space->variants[v].algorithm, algorithm) == 0) {
            return true;
        }
    }
    return false;
}

static void derive(const char *text, int threads, struct wpk_space *space)
{
    struct wpk_program program = {0};
    const struct wpk_space_options options = {
        .layouts = "any",
        .threads = threads,
        .device = {
            .cpu = {.flags = WPK_CPU_SET_AVX512, .vector_bytes = 64, .vector_registers = 32}}};
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, space, NULL), WPK_OK);
    wpk_program_fini(&program);
}

static void derive_block(struct wpk_space *space)
{
    derive(BLOCK, 1, space);
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
    int constructed = 0, different = 0;
    assert_int_equal(wpk_space_construct(&space, candidate, 16, &constructed), WPK_OK);
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
    assert_int_equal(space.variant_count, 2); /* with the channels last, and as it is written */
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

/* Every class of accuracy has its combinations: the 64 with the fewest operations of all would be
 * outside of the strictest one. */
static void test_each_class_has_combinations(void **state)
{
    (void)state;
    static const double classes[] = {1.25, 4, 16};
    for (int i = 0; i < 3; i++) {
        struct wpk_space space;
        struct wpk_rng rng;
        struct wpk_candidate one;
        struct wpk_buf text = {0};
        int left = 0;
        write_chain(&text, 3);
        derive(wpk_buf_text(&text), 1, &space);
        wpk_buf_fini(&text);
        wpk_rng_seed(&rng, 3);
        wpk_space_prune(&space, (struct wpk_accuracy){classes[i]});
        for (int v = 0; v < space.variant_count; v++) {
            left += wpk_space_variant(&space, v) != NULL;
        }
        print_message("%g: %d of %d\n", classes[i], left, space.variant_count);
        assert_true(left >= 8);
        for (int k = 0; k < 1000; k++) { /* those that are dropped cost no draw */
            assert_int_equal(wpk_space_draw(&space, &rng, &one), WPK_OK);
        }
        wpk_space_fini(&space);
    }
}

/* Two readers of one input have a border or none together: the four combinations are two programs,
 * and what is the same program has the same keys. */
static void test_the_same_program_twice(void **state)
{
    (void)state;
    struct wpk_space space;
    int pairs = 0;
    derive("input X i32[1,16,14,14]\nconstant V i32[16,16,3,3]\nconstant W i32[16,16,3,3]\n"
           "intermediate C i32[1,16,14,14]\nintermediate D i32[1,16,14,14]\n"
           "output Y i32[1,16,14,14]\n"
           "C[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * V[k,c,r,s]\n"
           "D[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"
           "Y[n,k,y,x] = C[n,k,y,x] * D[n,k,y,x]\n",
           1, &space);
    for (int v = 0; v < space.variant_count; v++) {
        for (int w = 0; w < v; w++) {
            struct wpk_candidate a, b;
            const struct wpk_variant *one = wpk_space_variant(&space, v);
            const struct wpk_variant *other = wpk_space_variant(&space, w);
            if (one == NULL || other == NULL || one->identity != other->identity) {
                continue;
            }
            assert_int_equal(wpk_mask_begin(&space, v, &a), WPK_OK);
            assert_int_equal(wpk_mask_begin(&space, w, &b), WPK_OK);
            assert_true(wpk_space_key(&space, &a) == wpk_space_key(&space, &b));
            pairs++;
        }
    }
    print_message("%d pairs of %d variants\n", pairs, space.variant_count);
    assert_true(pairs > 0);
    wpk_space_fini(&space);
}

static size_t resident(void)
{
    size_t total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &total, &pages), 2);
    assert_int_equal(fclose(file), 0);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The memory of all variants of a space stays within the limit in docs/operations.md. Sanitizers
 * take more. */
static void test_memory_is_bounded(void **state)
{
    (void)state;
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20); /* as in coordinator/main.c */
    (void)mallopt(M_PERTURB, 0);              /* which would write to all pages */
    for (int convolutions = 20; convolutions >= 2; convolutions -= 3) {
        struct wpk_space space;
        struct wpk_buf text = {0};
        write_chain(&text, convolutions);
        (void)malloc_trim(0);
        size_t before = resident();
        derive(wpk_buf_text(&text), 2, &space);
        int derived = 0;
        for (int v = 0; v < space.variant_count; v++) {
            derived += wpk_space_variant(&space, v) != NULL;
        }
        size_t taken = resident() - before;
        print_message("%d convolutions: %d of %d variants, %zu KiB\n", convolutions, derived,
                      space.variant_count, taken >> 10);
        assert_true(derived >= 8 && derived >= space.variant_count * 3 / 4);
#ifndef __SANITIZE_ADDRESS__
        assert_true(taken <= WPK_SPACE_BYTES_MAX);
#endif
        wpk_space_fini(&space);
        wpk_buf_fini(&text);
    }
}

/* Reductions of few results are cut into parts where there are threads for them. */
static void test_few_results_are_split(void **state)
{
    (void)state;
    static const struct {
        const char *text, *algorithm;
        int threads;
        bool offered;
    } cases[] = {
        {"input X f32[65536]\noutput Y f32[]\nY[] = sum(i:65536) X[i]\n", "split(2)", 2, false},
        {"input X f32[65536]\noutput Y f32[]\nY[] = sum(i:65536) X[i]\n", "split(2)", 1, false},
        {"input X f32[640]\noutput Y f32[]\nY[] = sum(i:640) X[i]\n", "split(2)", 2, false},
        {"input X f32[256,1024]\noutput Y f32[256]\nY[i] = sum(j:1024) X[i,j]\n", "split(2)", 2,
         false},
        {"input A f32[65536]\ninput B f32[65536]\noutput Y f32[]\nY[] = sum(i:65536) A[i] * B[i]\n",
         "split(2)", 2, false},
        {"input A f32[4096]\ninput B f32[4096,64]\noutput Y f32[64]\n"
         "Y[j] = sum(k:4096) A[k] * B[k,j]\n",
         "split(2)", 2, false},
        {"input A f32[16,4096]\nconstant B f32[4096,32]\noutput Y f32[16,32]\n"
         "Y[i,j] = sum(k:4096) A[i,k] * B[k,j]\n",
         "split(8)", 2, true},
        {"input A f32[64,256]\nconstant B f32[256,64]\noutput Y f32[64,64]\n"
         "Y[i,j] = sum(k:256) A[i,k] * B[k,j]\n",
         "split(2)", 2, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wpk_space space;
        struct wpk_candidate candidate[8];
        derive(cases[i].text, cases[i].threads, &space);
        assert_int_equal(has_algorithm(&space, cases[i].algorithm), cases[i].offered);
        int count = 0;
        assert_int_equal(wpk_space_construct(&space, candidate, 8, &count), WPK_OK);
        assert_true(count > 0);
        wpk_space_fini(&space);
    }
}

/* The `ga` constructs candidates when it is made: all of them, or it is not made. Where memory is
 * given back, it can do without. */
static void test_a_search_is_made_whole(void **state)
{
    (void)state;
    const struct wpk_strategy_class *ga = wpk_strategy_find("ga");
    struct wpk_space space, other;
    struct wpk_strategy *one = NULL, *whole = NULL;
    struct wpk_candidate made[16], wanted[16];
    int failures = 0, made_count = 0, wanted_count = 0;
    derive_block(&other);
    assert_int_equal(wpk_strategy_make(ga, &other, &(struct wpk_strategy_setup){.seed = 1}, &whole),
                     WPK_OK);
    assert_int_equal(wpk_strategy_ask(whole, 16, wanted, &wanted_count), WPK_OK);
    for (int n = 1;; n += 1 + n / 16) { /* all of them take a minute */
        derive_block(&space);
        allocations_left = n;
        wpk_err err = wpk_strategy_make(ga, &space, &(struct wpk_strategy_setup){.seed = 1}, &one);
        bool failed = allocations_left == 0;
        allocations_left = 0;
        failures += err == WPK_ENOMEM;
        if (err == WPK_OK) {
            assert_int_equal(wpk_strategy_ask(one, 16, made, &made_count), WPK_OK);
            assert_int_equal(made_count, wanted_count);
            for (int i = 0; i < made_count; i++) {
                assert_true(wpk_candidate_equal(&made[i], &wanted[i]));
            }
            wpk_strategy_free(one);
        } else {
            assert_int_equal(err, WPK_ENOMEM);
        }
        wpk_space_fini(&space);
        if (!failed) {
            break;
        }
    }
    print_message("%d failures\n", failures);
    assert_true(failures > 50);
    wpk_strategy_free(whole);
    wpk_space_fini(&other);
}

/* ---- limits */

static struct wpk_space_options avx512(const char *layouts, int threads)
{
    struct wpk_space_options options = {.layouts = layouts, .threads = threads};
    snprintf(options.device.kind, sizeof(options.device.kind), "cpu");
    options.device.cpu.flags = WPK_CPU_SET_AVX512;
    options.device.cpu.vector_bytes = 64;
    options.device.cpu.vector_registers = 32;
    options.device.core_count = 2;
    options.device.cpu.l1_bytes = 32 << 10;
    options.device.cpu.l2_bytes = 1 << 20;
    options.device.cpu.l3_bytes = 32 << 20;
    return options;
}

/* A stage with more loads than the limit is refused, not partly analysed. */
static void test_too_many_loads(void **state)
{
    (void)state;
    const struct wpk_space_options options = avx512("fixed", 1);
    for (int more = 0; more < 2; more++) {
        struct wpk_program program = {0};
        struct wpk_space space = {0};
        struct wpk_diag diag = {0};
        struct wpk_buf text = {0};
        wpk_buf_append_text(&text, "input X f32[400]\noutput Y f32[100]\nY[i] = X[i]");
        for (int k = 1; k < WPK_LOADS_MAX + more; k++) {
            wpk_buf_printf(&text, " + X[i+%d]", k);
        }
        assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &program, &diag), WPK_OK);
        wpk_err err = wpk_space_derive(&program, &options, &space, &diag);
        assert_int_equal(err, more == 0 ? WPK_OK : WPK_EUNSUPPORTED);
        assert_true(more == 0 || strstr(diag.text, "more than 256 places") != NULL);
        wpk_space_fini(&space);
        wpk_program_fini(&program);
        wpk_buf_fini(&text);
    }
}

/* Stages of four axes that nothing can join: each has a loop nest of its own. */
static void test_long_chains(void **state)
{
    (void)state;
    for (int stages = 36; stages <= 60; stages += 4) {
        const struct wpk_space_options options = avx512("any", 2);
        struct wpk_program program = {0};
        struct wpk_space space;
        struct wpk_candidate one;
        struct wpk_rng rng;
        struct wpk_diag diag = {0};
        struct wpk_buf text = {0};
        char words[WPK_CANDIDATE_TEXT_MAX];
        wpk_rng_seed(&rng, 1);
        wpk_buf_append_text(&text, "input T0 f32[4,6,10,32]\n");
        for (int i = 1; i <= stages; i++) {
            wpk_buf_printf(&text, "%s T%d f32[4,6,10,32]\n",
                           i == stages ? "output" : "intermediate", i);
        }
        for (int i = 1; i <= stages; i++) {
            wpk_buf_printf(&text, "T%d[a,b,c,d] = T%d[a,b-1,c,d] + T%d[a,b,c+1,d]\n", i, i - 1,
                           i - 1);
        }
        assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &program, &diag), WPK_OK);
        wpk_err err = wpk_space_derive(&program, &options, &space, &diag);
        if (stages <= 40) {
            assert_int_equal(err, WPK_OK);
            assert_int_equal(wpk_space_draw(&space, &rng, &one), WPK_OK);
            assert_int_equal(wpk_candidate_encode(&space, &one, words, sizeof(words)), WPK_OK);
            wpk_space_fini(&space);
        } else if (err == WPK_OK) {
            wpk_space_fini(&space);
        } else {
            assert_non_null(strstr(diag.text, "48 loop nests"));
        }
        assert_true(stages < 60 || err == WPK_EUNSUPPORTED);
        wpk_program_fini(&program);
        wpk_buf_fini(&text);
    }
}

static void test_idle_inputs(void **state)
{
    (void)state;
    const struct wpk_space_options options = avx512("fixed", 1);
    struct wpk_program program = {0};
    struct wpk_space space = {0};
    struct wpk_diag diag = {0};
    const char *text = "input X f32[8]\ninput Z f32[8]\nintermediate T f32[8]\noutput Y f32[8]\n"
                       "T[i] = Z[i] + 1\nY[i] = X[i]\n";
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, &diag), WPK_EUNSUPPORTED);
    assert_string_equal(diag.text, "the output does not depend on Z");
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_site_has_its_algorithm),
        cmocka_unit_test(test_pins_name_sites),
        cmocka_unit_test(test_variants_that_are_dropped_stay_listed),
        cmocka_unit_test(test_each_class_has_combinations),
        cmocka_unit_test(test_the_same_program_twice),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_few_results_are_split),
        cmocka_unit_test(test_a_search_is_made_whole),
        cmocka_unit_test(test_too_many_loads),
        cmocka_unit_test(test_long_chains),
        cmocka_unit_test(test_idle_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
