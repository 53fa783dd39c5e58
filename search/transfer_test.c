/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of one convolution on others of its family. */
#include "search/transfer.h"

#include "ir/notation/notation.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CANDIDATES 64
#define DRAWS wpk_test_share(400)
#define ADAPTED wpk_test_share(40) /* each constructs a space's first candidates */

static const struct wpk_space_options options = {
    .layouts = "any",
    .threads = 1,
    .device = {.kind = "cpu",
               .cpu = {.flags = WPK_CPU_SET_AVX512, .vector_bytes = 64, .vector_registers = 32}}};

static void make_conv(int channels, int size, int kernels, struct wpk_program *out)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "input X f32[1,%d,%d,%d]\nconstant W f32[%d,%d,3,3]\nconstant B f32[%d]\n"
                   "intermediate T f32[1,%d,%d,%d]\noutput Y f32[1,%d,%d,%d]\n"
                   "T[n,k,y,x] = sum(c:%d,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"
                   "Y[n,k,y,x] = max(T[n,k,y,x] + B[k], 0)\n",
                   channels, size, size, kernels, channels, kernels, kernels, size, size, kernels,
                   size, size, channels);
    assert_int_equal(wpk_program_parse(text, out, NULL), WPK_OK);
}

static void make_space(int channels, int size, int kernels, const struct wpk_space_options *with,
                       struct wpk_space *out)
{
    struct wpk_program program = {0};
    make_conv(channels, size, kernels, &program);
    assert_int_equal(wpk_space_derive(&program, with, out, NULL), WPK_OK);
    wpk_program_fini(&program);
}

static void draw(const struct wpk_space *space, struct wpk_rng *rng, int i,
                 const struct wpk_candidate *constructed, int constructed_count,
                 char text[WPK_CANDIDATE_TEXT_MAX])
{
    struct wpk_candidate candidate;
    if (i < constructed_count) {
        candidate = constructed[i];
    } else {
        assert_int_equal(wpk_space_draw(space, rng, &candidate), WPK_OK);
    }
    assert_int_equal(wpk_candidate_encode(space, &candidate, text, WPK_CANDIDATE_TEXT_MAX), WPK_OK);
}

/* Count the candidates of `from` that fit `to`. A candidate that fits is legal in `to` and has the
 * same text there. */
static int count_fits(const struct wpk_space *from, const struct wpk_space *to)
{
    struct wpk_candidate constructed[CANDIDATES];
    int constructed_count = 0;
    assert_int_equal(wpk_space_construct(from, constructed, CANDIDATES, &constructed_count),
                     WPK_OK);
    struct wpk_rng rng;
    int fits = 0;
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < DRAWS; i++) {
        char text[WPK_CANDIDATE_TEXT_MAX], again[WPK_CANDIDATE_TEXT_MAX];
        struct wpk_candidate there;
        struct wpk_diag diag = {0};
        draw(from, &rng, i, constructed, constructed_count, text);
        wpk_err err = wpk_space_fits(to, text, &there, &diag);
        if (err == WPK_OK) {
            assert_true(wpk_space_is_legal(to, &there));
            assert_int_equal(wpk_candidate_encode(to, &there, again, sizeof again), WPK_OK);
            assert_string_equal(again, text);
            fits++;
        } else {
            assert_int_equal(err, WPK_EMISMATCH);
            assert_int_not_equal(diag.text[0], '\0');
        }
    }
    return fits;
}

static void neighbours_share_candidates(void **state)
{
    (void)state;
    static const int shapes[][3] = {{64, 56, 64}, {128, 28, 128}, {64, 28, 128}, {48, 50, 80}};
    for (size_t f = 0; f < sizeof shapes / sizeof shapes[0]; f++) {
        struct wpk_space from;
        make_space(shapes[f][0], shapes[f][1], shapes[f][2], &options, &from);
        for (size_t t = 0; t < sizeof shapes / sizeof shapes[0]; t++) {
            struct wpk_space to;
            make_space(shapes[t][0], shapes[t][1], shapes[t][2], &options, &to);
            int fits = count_fits(&from, &to);
            print_message("%d·%d→%d on %d·%d→%d: %d of %d\n", shapes[f][1], shapes[f][0],
                          shapes[f][2], shapes[t][1], shapes[t][0], shapes[t][2], fits, DRAWS);
            assert_true(f == t ? fits == DRAWS : fits > 0 && fits < DRAWS);
            wpk_space_fini(&to);
        }
        wpk_space_fini(&from);
    }
}

/* Candidates that fit are taken as they are. All others become legal, of the same algorithm. */
static void candidates_are_adapted(void **state)
{
    (void)state;
    static const int shapes[][3] = {{64, 56, 64}, {128, 28, 128}, {48, 50, 80}, {3, 5, 5}};
    struct wpk_space spaces[4];
    int all = 0;
    for (int i = 0; i < 4; i++) {
        make_space(shapes[i][0], shapes[i][1], shapes[i][2], &options, &spaces[i]);
    }
    for (int f = 0; f < 4; f++) {
        struct wpk_candidate constructed[CANDIDATES];
        int count = 0, adapted = 0;
        struct wpk_rng rng;
        wpk_rng_seed(&rng, 1);
        assert_int_equal(wpk_space_construct(&spaces[f], constructed, CANDIDATES, &count), WPK_OK);
        for (int i = 0; i < ADAPTED; i++) {
            const struct wpk_space *to = &spaces[(f + i % 4) % 4];
            char text[WPK_CANDIDATE_TEXT_MAX];
            struct wpk_candidate fits, near;
            draw(&spaces[f], &rng, i, constructed, count, text);
            wpk_err err = wpk_space_adapt(to, text, &near, NULL);
            if (err == WPK_OK) {
                const char *algorithm = to->variants[near.variant].algorithm;
                assert_true(wpk_space_is_legal(to, &near));
                assert_non_null(strstr(text, algorithm));
                adapted++;
            } else {
                assert_true(err == WPK_EMISMATCH || err == WPK_EEXHAUSTED);
            }
            if (wpk_space_fits(to, text, &fits, NULL) == WPK_OK) {
                assert_int_equal(err, WPK_OK);
                assert_true(wpk_candidate_equal(&fits, &near));
            }
        }
        print_message("%d·%d→%d: %d of %d\n", shapes[f][1], shapes[f][0], shapes[f][2], adapted,
                      ADAPTED);
        assert_true(adapted > ADAPTED / 2);
        all += adapted;
    }
    assert_true(all > 4 * ADAPTED * 3 / 4);
    for (int i = 0; i < 4; i++) {
        wpk_space_fini(&spaces[i]);
    }
}

/* Of a size that is no choice here the nearest one is taken. */
static void the_nearest_size_is_taken(void **state)
{
    (void)state;
    struct wpk_space from, to;
    struct wpk_candidate candidate;
    char text[WPK_CANDIDATE_TEXT_MAX], *size;
    int count = 0;
    make_space(64, 56, 64, &options, &from);
    make_space(64, 56, 64, &options, &to);
    assert_int_equal(wpk_space_construct(&from, &candidate, 1, &count), WPK_OK);
    assert_int_equal(wpk_candidate_encode(&from, &candidate, text, sizeof text), WPK_OK);
    size = strstr(text, ".lanes=");
    assert_non_null(size);
    size += strlen(".lanes=");
    assert_memory_equal(size, "16", 2);
    memcpy(size, "15", 2);
    assert_int_equal(wpk_space_fits(&to, text, NULL, NULL), WPK_EMISMATCH);
    struct wpk_candidate near;
    assert_int_equal(wpk_space_adapt(&to, text, &near, NULL), WPK_OK);
    assert_true(wpk_candidate_equal(&near, &candidate));
    assert_int_equal(wpk_space_adapt(&to, "cpu-0 algorithm=direct layout=asis", &near, NULL),
                     WPK_EMISMATCH);
    assert_int_equal(wpk_space_adapt(&to, "", &near, NULL), WPK_EMISMATCH);
    wpk_space_fini(&from);
    wpk_space_fini(&to);
}

/* Wide vectors on a narrow device, other threads, a shape that has no such tile. */
static void other_devices_and_shapes_do_not_fit(void **state)
{
    (void)state;
    struct wpk_space from, narrow, tiny;
    struct wpk_space_options other = options;
    other.device.cpu.flags = WPK_CPU_SET_SSE41;
    other.device.cpu.vector_bytes = 16;
    other.device.cpu.vector_registers = 16;
    make_space(64, 56, 64, &options, &from);
    make_space(64, 56, 64, &other, &narrow);
    make_space(3, 2, 5, &options, &tiny);
    struct wpk_candidate wide[4];
    char text[WPK_CANDIDATE_TEXT_MAX];
    int count = 0;
    assert_int_equal(wpk_space_construct(&from, wide, 4, &count), WPK_OK);
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(wpk_candidate_encode(&from, &wide[i], text, sizeof text), WPK_OK);
        assert_int_equal(wpk_space_fits(&narrow, text, NULL, NULL), WPK_EMISMATCH);
        assert_int_equal(wpk_space_fits(&tiny, text, NULL, NULL), WPK_EMISMATCH);
    }
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_space_fits(&from, "cpu-0 algorithm=direct layout=asis", NULL, &diag),
                     WPK_EMISMATCH);
    assert_non_null(strstr(diag.text, "version"));
    assert_int_equal(wpk_space_fits(&from, "", NULL, NULL), WPK_EMISMATCH);
    text[strlen(text) - 1] = '\0';
    *strrchr(text, ' ') = '\0'; /* a gene is missing: nothing is made up in its place */
    assert_int_equal(wpk_space_fits(&from, text, NULL, NULL), WPK_EMISMATCH);
    wpk_space_fini(&from);
    wpk_space_fini(&narrow);
    wpk_space_fini(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_share_candidates),
        cmocka_unit_test(candidates_are_adapted),
        cmocka_unit_test(the_nearest_size_is_taken),
        cmocka_unit_test(other_devices_and_shapes_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
