/* SPDX-License-Identifier: Apache-2.0 */
/* The genes of groups, and their choices. */
#include "target/gpu/space/space.h"

#include "search/genes.h"
#include "tests/cuda_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The choices of a gene, "16 32"; NULL: there is no such gene. */
static const char *choices_of(const struct wpk_variant *variant, const char *name,
                              struct wpk_buf *out)
{
    wpk_buf_reset(out);
    for (int g = 0; g < variant->gene_count; g++) {
        const struct wpk_gene *gene = &variant->genes[g];
        if (strcmp(gene->name, name) == 0) {
            for (int c = 0; c < gene->choice_count; c++) {
                wpk_buf_printf(out, "%s%s", c > 0 ? " " : "", gene->choice[c].text);
            }
            return wpk_buf_text(out);
        }
    }
    return NULL;
}

struct gene {
    const char *name, *choices; /* NULL: there is no such gene */
};

static void check(const char *program, bool strict, const char *algorithm, const struct gene *genes,
                  size_t count)
{
    struct wpk_space space;
    struct wpk_buf text = {0};
    wpk_cuda_space_derive(program, strict, &space);
    const struct wpk_variant *variant = &space.variants[wpk_cuda_space_variant(&space, algorithm)];
    for (size_t i = 0; i < count; i++) {
        const char *found = choices_of(variant, genes[i].name, &text);
        if ((found == NULL) != (genes[i].choices == NULL) ||
            (found != NULL && strcmp(found, genes[i].choices) != 0)) {
            fail_msg("%s: %s, not %s", genes[i].name, found != NULL ? found : "none",
                     genes[i].choices != NULL ? genes[i].choices : "none");
        }
    }
    wpk_buf_fini(&text);
    wpk_space_fini(&space);
}

#define CHECK(program, strict, algorithm, genes)                                                   \
    check(program, strict, algorithm, genes, sizeof(genes) / sizeof(genes[0]))

#define PRODUCT_OF(m, k, n)                                                                        \
    "input A f32[" m "," k "]\ninput B f32[" k "," n "]\noutput Y f32[" m "," n                    \
    "]\nY[i,j] = sum(k:" k ") A[i,k] * B[k,j]\n"

static void a_product_decides_on_tiles_steps_and_copies(void **state)
{
    (void)state;
    static const struct gene genes[] = {
        {"Y.block.i", "16 32 64 128"},
        {"Y.block.j", "16 32 64 100"},
        {"Y.thread.i", "1 2 4 8"},
        {"Y.step.k", "8 16 32"},
        {"Y.parts.k", "1 2 4 8 16"},
        {"Y.share.k", NULL},
        {"Y.order", NULL},
        {"Y.depth", "1 2 3"},
        {"Y.stage.A_t", "no shared shared4"},
        {"Y.padding.A_t", "0 1 4"},
        {"Y.padding.B_t", NULL},
        {"Y.unroll.k", "1 2 4 8 16 32"},
        {"Y.copies", "load async"},
        {"Y.virtual.j", "1 2 4 8"},
        {"Y.rows", NULL},
    };
    CHECK(PRODUCT_OF("256", "128", "100"), false, "direct", genes);
}

/* 49 = 7 * 7 and 25 = 5 * 5: sizes that divide; steps and parts of few terms. */
static void odd_extents_have_the_sizes_that_divide_them(void **state)
{
    (void)state;
    static const struct gene genes[] = {
        {"Y.block.i", "16 32 49"},    {"Y.thread.i", "1 2 4 7 8"}, {"Y.thread.j", "1 2 4 5 8"},
        {"Y.step.k", "8 12"},         {"Y.parts.k", "1"},          {"Y.unroll.k", "1 2 3 4 6 8 12"},
        {"Y.stage.B_t", "no shared"}, /* rows of 25 are no fours */
    };
    CHECK(PRODUCT_OF("49", "12", "25"), false, "direct", genes);
}

static void strict_sums_have_neither_parts_nor_shares(void **state)
{
    (void)state;
    static const struct gene strict[] = {{"Y.parts.k", "1"}, {"Y.share.k", NULL}};
    static const struct gene product[] = {{"Y.parts.k", "1"}, {"Y.depth", "1 2 3"}};
    static const char rows[] = "input A f32[64,48]\noutput Y f32[64]\nY[i] = sum(k:48) A[i,k]\n";
    static const struct gene loose[] = {{"Y.parts.k", "1 2"},
                                        {"Y.share.k", "1 4 8 16 32"},
                                        {"Y.step.k", "8"},
                                        {"Y.thread.i", "1 2 4"},
                                        {"Y.unroll.k", NULL}};
    CHECK(rows, true, "direct", strict);
    CHECK(PRODUCT_OF("64", "64", "64"), true, "direct", product);
    CHECK(rows, false, "direct", loose);
}

static void many_blocks_have_an_order(void **state)
{
    (void)state;
    static const struct gene genes[] = {{"Y.order", "1 4 8 16"}};
    CHECK(PRODUCT_OF("2048", "64", "2048"), false, "direct", genes);
}

static void pointwise_stages_have_tiles_alone(void **state)
{
    (void)state;
    static const struct gene genes[] = {
        {"Y.block.i", "1 2 4 8"}, {"Y.block.j", "32 64 100"}, {"Y.thread.i", "1 2"},
        {"Y.thread.j", "1 2 4"},  {"Y.virtual.j", "1 2 4"},   {"Y.virtual.i", NULL},
        {"Y.step.k", NULL},       {"Y.rows", NULL},           {"Y.depth", NULL},
    };
    CHECK("input A f32[64,100]\noutput Y f32[64,100]\nY[i,j] = exp(A[i,j])\n", false, "direct",
          genes);
}

static void rows_have_as_many_threads_as_they_are_long(void **state)
{
    (void)state;
    static const struct gene genes[] = {{"Y.rows", "apart 1 2 4 5"}, {"Y.threads", "16 32 64"}};
    CHECK("input A f32[5,100]\nintermediate M f32[5]\noutput Y f32[5,100]\n"
          "M[i] = max(k:100) A[i,k]\nY[i,j] = A[i,j] - M[i]\n",
          false, "direct", genes);
    static const struct gene few[] = {{"Y.threads", "4"}}; /* a row of six */
    CHECK("input A f32[5,6]\nintermediate M f32[5]\noutput Y f32[5,6]\n"
          "M[i] = max(k:6) A[i,k]\nY[i,j] = A[i,j] - M[i]\n",
          false, "direct", few);
}

#define CONVOLUTION                                                                                \
    "input X f32[1,16,28,28]\nconstant W f32[16,16,3,3]\noutput Y f32[1,16,28,28]\n"               \
    "Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n"

static void windows_have_a_box_and_rows_of_it(void **state)
{
    (void)state;
    static const struct gene genes[] = {
        {"Y.stage.X_b_t", "no box"},   {"Y.stage.W_t_t", "no shared shared4"},
        {"Y.together.y", "1 2 4 7 8"}, {"Y.thread.x", "1 2 4 7 8"},
        {"Y.block.x", "16 28"},        {"Y.at", NULL},
    };
    struct wpk_space space;
    struct wpk_buf text = {0};
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    const struct wpk_variant *variant = &space.variants[wpk_cuda_space_variant(&space, "direct")];
    const char *box = choices_of(variant, "Y.stage.X_b_t", &text);
    assert_non_null(box);
    assert_non_null(strstr(box, "box"));
    wpk_buf_fini(&text);
    wpk_space_fini(&space);
    check(CONVOLUTION, false, "direct", genes + 1, sizeof(genes) / sizeof(genes[0]) - 1);
    static const struct gene strict[] = {{"Y.together.y", NULL}, {"Y.parts.s", "1"}};
    CHECK(CONVOLUTION, true, "direct", strict); /* a box's step is in another order */
}

static void transforms_may_be_computed_with_their_products(void **state)
{
    (void)state;
    static const struct gene genes[] = {
        {"Y_r_m.at", "root Y"},
        {"Y_r_v.at", "root Y_r_m"},
        {"Y_r_m.together.ab", "1 2 4 6 36"},
        {"Y_r_m.block.tytx", "14 16 28 32 49"}, /* whole tiles beside powers of two */
        {"Y_r_v.stage.X_t", "no shared"},
        {"Y.block.x", "28"}, /* seven tiles are less than a warp */
        {"Y.block.k", "1 2 4 8 16"},
        {"Y.thread.x", NULL},
    };
    CHECK(CONVOLUTION, false, "winograd(4)", genes);
}

static void groups_hold_the_genes_of_a_launch(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    const struct wpk_variant *variant =
        &space.variants[wpk_cuda_space_variant(&space, "winograd(4)")];
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    assert_int_equal(kept->groups.count, 3);
    assert_int_equal(kept->first[0], 0);
    for (int g = 0; g < 3; g++) {
        assert_true(kept->first[g] < kept->first[g + 1]);
    }
    assert_true(kept->first[3] <= variant->gene_count);
    wpk_space_fini(&space);
}

/* The guessed genes of a product: rows of terms are padded, steps written out. */
static void guesses_set_the_last_genes(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(PRODUCT_OF("256", "64", "256"), false, &space);
    static const char tiles[] = "Y.block.i=64 Y.block.j=64 Y.thread.i=8 Y.thread.j=8 Y.step.k=16 "
                                "Y.stage.A_t=shared4 Y.stage.B_t=shared4 Y.depth=2";
    struct wpk_candidate c = wpk_cuda_space_candidate(&space, 0, tiles);
    struct wpk_candidate expected = c;
    wpk_cuda_space_set(&space,
                       "Y.padding.A_t=4 Y.unroll.k=16 Y.copies=async Y.virtual.i=8 Y.virtual.j=2",
                       &expected);
    int count = wpk_cuda_guess_genes(&space, 0, &c);
    assert_int_equal(count, 5);
    if (!wpk_candidate_equal(&c, &expected)) {
        char text[WPK_CANDIDATE_TEXT_MAX];
        assert_int_equal(wpk_candidate_encode(&space, &c, text, sizeof(text)), WPK_OK);
        fail_msg("%s", text);
    }
    wpk_space_fini(&space);
}

static void a_split_is_the_number_of_parts(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(PRODUCT_OF("256", "64", "256"), false, &space);
    struct wpk_candidate c = wpk_cuda_space_candidate(&space, 0, "Y.parts.k=4");
    struct wpk_cuda_tiles t;
    wpk_cuda_tiles_read(&space.variants[0], &c, 0, &t);
    assert_int_equal(t.parts, 4);
    wpk_cuda_space_set(&space, "Y.parts.k=1", &c);
    wpk_cuda_tiles_read(&space.variants[0], &c, 0, &t);
    assert_int_equal(t.parts, 1);
    wpk_space_fini(&space);
}

static void older_devices_copy_by_loads_only(void **state)
{
    (void)state;
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_buf text = {0};
    wpk_cuda_space_parse(PRODUCT_OF("64", "64", "64"), &program);
    for (int capability = 75; capability <= 80; capability += 5) {
        char architecture[16];
        snprintf(architecture, sizeof(architecture), "sm_%d", capability);
        assert_int_equal(wpk_device_emulate(architecture, 40, &options.device, NULL), WPK_OK);
        assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
        const char *found = choices_of(&space.variants[0], "Y.copies", &text);
        assert_int_equal(found != NULL, capability >= 80);
        wpk_space_fini(&space);
    }
    wpk_buf_fini(&text);
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_decides_on_tiles_steps_and_copies),
        cmocka_unit_test(odd_extents_have_the_sizes_that_divide_them),
        cmocka_unit_test(strict_sums_have_neither_parts_nor_shares),
        cmocka_unit_test(many_blocks_have_an_order),
        cmocka_unit_test(pointwise_stages_have_tiles_alone),
        cmocka_unit_test(rows_have_as_many_threads_as_they_are_long),
        cmocka_unit_test(windows_have_a_box_and_rows_of_it),
        cmocka_unit_test(transforms_may_be_computed_with_their_products),
        cmocka_unit_test(groups_hold_the_genes_of_a_launch),
        cmocka_unit_test(guesses_set_the_last_genes),
        cmocka_unit_test(a_split_is_the_number_of_parts),
        cmocka_unit_test(older_devices_copy_by_loads_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
