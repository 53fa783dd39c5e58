/* SPDX-License-Identifier: Apache-2.0 */
#include "search/candidate_nest.h"
#include "search/genes.h"

#include "ir/notation/notation.h"
#include "tests/fake_target.h"
#include "tests/random_program.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PROGRAMS 200

static void derive_shape(const char *text, struct wpk_space *space)
{
    struct wpk_program program = {0};
    const struct wpk_space_options options = {
        .layouts = "any",
        .threads = 1,
        .device = {
            .kind = "cpu",
            .cpu = {.flags = WPK_CPU_SET_AVX512, .vector_bytes = 64, .vector_registers = 32}}};
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, space, NULL), WPK_OK);
    wpk_program_fini(&program);
}

static void derive(struct wpk_space *space)
{
    derive_shape("input X f32[1,12,14,14]\nconstant W f32[20,12,3,3]\n"
                 "output Y f32[1,20,14,14]\nY[n,k,y,x] = "
                 "sum(c:12,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
                 space);
}

static void test_pins(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_rng rng;
    struct wpk_diag diag = {0};
    derive(&space);
    double whole = space.size_log2;
    assert_int_equal(wpk_space_pin(&space, "algorithm", "direct", &diag), WPK_OK);
    assert_int_equal(wpk_space_pin(&space, "Y.tile.x", "4", &diag), WPK_OK);
    assert_true(space.size_log2 < whole);
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < 24; i++) {
        struct wpk_candidate one;
        char text[WPK_CANDIDATE_TEXT_MAX];
        assert_int_equal(wpk_space_draw(&space, &rng, &one), WPK_OK);
        assert_true(wpk_space_is_legal(&space, &one));
        assert_int_equal(wpk_candidate_encode(&space, &one, text, sizeof(text)), WPK_OK);
        assert_non_null(strstr(text, "algorithm=direct "));
        assert_true(strstr(text, "Y.tile.x=") == NULL || strstr(text, "Y.tile.x=4 ") != NULL);
    }
    assert_int_equal(wpk_space_pin(&space, "algorithm", "magic", &diag), WPK_ENOENT);
    assert_non_null(strstr(diag.text, "magic"));
    wpk_space_fini(&space);
    derive(&space);
    diag = (struct wpk_diag){0};
    assert_int_equal(wpk_space_pin(&space, "Y.vec", "z", &diag), WPK_ENOENT);
    assert_string_equal(diag.text, "Y.vec cannot be z here, but: k, x");
    diag = (struct wpk_diag){0};
    assert_int_equal(wpk_space_pin(&space, "Y.what", "z", &diag), WPK_ENOENT);
    assert_string_equal(diag.text, "no variant of this operator has a gene Y.what");
    wpk_space_fini(&space);
    derive(&space);
    assert_int_equal(wpk_space_pin(&space, "Y.tile.nothing", "4", NULL), WPK_ENOENT);
    assert_int_equal(wpk_space_pin(&space, "Y.tile.x", "4711", NULL), WPK_ENOENT);
    wpk_space_fini(&space);
}

/* Few draws are legal with both pins, and the neutral candidate is not. */
static void test_rare_candidates_are_found(void **state)
{
    static const char *const pins[][2] = {{"D.unroll", "8"}, {"E.at", "Y.block"}};
    const struct wpk_space_options options = {
        .layouts = "any",
        .threads = 2,
        .device = {
            .kind = "cpu",
            .cpu = {.flags = WPK_CPU_SET_AVX512, .vector_bytes = 64, .vector_registers = 32}}};
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct wpk_program program = {0};
        struct wpk_space space;
        assert_int_equal(
            wpk_program_parse(
                "input X f32[64,512]\nintermediate M f32[64]\nintermediate E f32[64,512]\n"
                "intermediate D f32[64]\noutput Y f32[64,512]\n"
                "M[i] = max(j:512) X[i,j]\nE[i,j] = exp(X[i,j] - M[i])\n"
                "D[i] = sum(j:512) E[i,j]\nY[i,j] = E[i,j] / D[i]\n",
                &program, NULL),
            WPK_OK);
        assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
        for (int i = 0; i < 2; i++) {
            const char *const *pin = pins[(first + i) % 2];
            assert_int_equal(wpk_space_pin(&space, pin[0], pin[1], NULL), WPK_OK);
        }
        wpk_space_fini(&space);
        wpk_program_fini(&program);
    }
}

/* How the candidate's copy of the constant lies; dim_count 0: there is none. */
static struct wpk_packing packing_of(const struct wpk_space *space,
                                     const struct wpk_candidate *candidate)
{
    static struct wpk_nest nest;
    struct wpk_packing found = {0};
    const struct wpk_program *program = &space->variants[candidate->variant].program;
    assert_int_equal(wpk_candidate_nest(space, candidate, &nest), WPK_OK);
    for (int i = 0; i < nest.entry_count; i++) {
        if (nest.entry[i].kind == WPK_NEST_COPY &&
            program->tensors[nest.entry[i].packing.tensor].role == WPK_ROLE_CONSTANT) {
            found = nest.entry[i].packing;
        }
    }
    return found;
}

/* Candidates of one shape pack the weights as that of the other does, all of them. */
static void test_packing_is_shared(void **state)
{
    static const char *const shapes[][2] = {
        {"input X f32[1,12,14,14]\nconstant W f32[20,12,3,3]\noutput Y f32[1,20,14,14]\n"
         "Y[n,k,y,x] = sum(c:12,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
         "input X f32[1,12,9,30]\nconstant W f32[20,12,3,3]\noutput Y f32[1,20,9,30]\n"
         "Y[n,k,y,x] = sum(c:12,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"},
        {"input A f32[128,96]\nconstant B f32[96,144]\noutput C f32[128,144]\n"
         "C[i,j] = sum(k:96) A[i,k] * B[k,j]\n",
         "input A f32[5,96]\nconstant B f32[96,144]\noutput C f32[5,144]\n"
         "C[i,j] = sum(k:96) A[i,k] * B[k,j]\n"}};
    int packed = 0, kept = 0;
    (void)state;
    for (int i = 0; i < 24; i++) {
        struct wpk_space first, second;
        struct wpk_rng rng;
        struct wpk_candidate like, one;
        char text[WPK_CANDIDATE_TEXT_MAX];
        derive_shape(shapes[i % 2][0], &first);
        derive_shape(shapes[i % 2][1], &second);
        wpk_rng_seed(&rng, (uint64_t)i);
        assert_int_equal(wpk_space_draw(&first, &rng, &like), WPK_OK);
        struct wpk_packing wanted = packing_of(&first, &like);
        assert_int_equal(wpk_candidate_encode(&first, &like, text, sizeof text), WPK_OK);
        wpk_err err = wpk_space_pin_packing(&second, text, NULL);
        assert_true(err == WPK_OK || err == WPK_EUNSUPPORTED || err == WPK_EMISMATCH ||
                    err == WPK_EEXHAUSTED);
        for (int d = 0; d < 8 && err == WPK_OK && wanted.dim_count > 0; d++) {
            assert_int_equal(wpk_space_draw(&second, &rng, &one), WPK_OK);
            struct wpk_packing found = packing_of(&second, &one);
            kept += memcmp(&found.dim_count, &wanted.dim_count,
                           sizeof found - offsetof(struct wpk_packing, dim_count)) == 0;
            packed++;
        }
        wpk_space_fini(&second);
        wpk_space_fini(&first);
    }
    assert_true(packed > 40);
    assert_int_equal(kept, packed);
}

static void test_packing_is_shared_or_not_pinned(void **state)
{
    struct wpk_space space;
    struct wpk_diag diag = {0};
    (void)state;
    derive(&space);
    double whole = space.size_log2;
    assert_int_equal(wpk_space_pin(&space, "packing", "shared", &diag), WPK_OK);
    assert_true(space.size_log2 == whole);
    assert_int_equal(wpk_space_pin(&space, "packing", "own", &diag), WPK_ENOENT);
    assert_string_equal(diag.text, "packing cannot be own here, but: shared");
    assert_int_equal(wpk_space_pin_packing(&space, "none", &diag), WPK_EMISMATCH);
    wpk_space_fini(&space);
}

/* wpkd pins, workers do not: what is legal must not depend on it. */
static void pin_and_draw(const struct wpk_program *program, const struct wpk_space_options *options,
                         const struct wpk_space *whole, const char *name, const char *value)
{
    struct wpk_space space;
    struct wpk_rng rng;
    struct wpk_diag diag = {0};
    struct wpk_candidate one, read;
    char text[WPK_CANDIDATE_TEXT_MAX];
    wpk_rng_seed(&rng, 1);
    assert_int_equal(wpk_space_derive(program, options, &space, NULL), WPK_OK);
    wpk_err err = wpk_space_pin(&space, name, value, &diag);
    if (err != WPK_OK) {
        assert_int_equal(err, WPK_EUNSUPPORTED);
        assert_non_null(strstr(diag.text, name));
    }
    for (int i = 0; i < 2 && err == WPK_OK; i++) {
        assert_int_equal(wpk_space_draw(&space, &rng, &one), WPK_OK);
        assert_int_equal(wpk_candidate_encode(&space, &one, text, sizeof(text)), WPK_OK);
        assert_int_equal(wpk_candidate_decode(whole, text, &read, NULL), WPK_OK);
        if (!wpk_space_is_legal(whole, &read)) {
            fail_msg("%s=%s: a worker refuses %s", name, value, text);
        }
    }
    wpk_space_fini(&space);
}

/* Pin each tile of a group that keeps no limit. */
static int pin_tight(const struct wpk_program *program, const struct wpk_space_options *options,
                     const struct wpk_space *whole)
{
    int pinned = 0;
    for (int v = 0; v < whole->variant_count; v++) {
        const struct wpk_variant *variant = &whole->variants[v];
        const struct wpk_structure *s = variant->plan;
        int groups = s == NULL ? 0 : s->plan.group_count;
        for (int g = 0; g < groups; g++) {
            for (int a = 0; a < WPK_RANK_MAX && s->tight[g]; a++) {
                int slot = s->slots[g].tile[a];
                for (int i = 0; slot >= 0 && i < variant->genes[slot].choice_count; i++) {
                    pin_and_draw(program, options, whole, variant->genes[slot].name,
                                 variant->genes[slot].choice[i].text);
                    pinned++;
                }
            }
        }
    }
    return pinned;
}

static void test_pinned_candidates_are_legal_without_pins(void **state)
{
    (void)state;
    int pinned = 0;
    struct wpk_rng rng;
    const struct wpk_space_options options = wpk_target_fake_options("any", 1);
    wpk_rng_seed(&rng, 9);
    for (int i = 0; i < PROGRAMS && pinned < wpk_test_share(50); i++) {
        struct wpk_program program;
        struct wpk_space whole;
        const struct wpk_random_options kind = {.products = true};
        wpk_random_program(&rng, &kind, &program);
        if (wpk_space_derive(&program, &options, &whole, NULL) == WPK_OK) {
            pinned += pin_tight(&program, &options, &whole);
            wpk_space_fini(&whole);
        }
        wpk_program_fini(&program);
    }
    print_message("%d tiles of groups that keep no limit\n", pinned);
    assert_true(pinned > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pins),
        cmocka_unit_test(test_rare_candidates_are_found),
        cmocka_unit_test(test_packing_is_shared),
        cmocka_unit_test(test_packing_is_shared_or_not_pinned),
        cmocka_unit_test(test_pinned_candidates_are_legal_without_pins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
