/* SPDX-License-Identifier: Apache-2.0 */
#include "search/mask.h"

#include "ir/notation/notation.h"
#include "search/gene_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A name is looked up as the asker's before it is taken for a canonical one: his t2 is an input. */
static const char text[] =
    "input X f32[1,16,14,14]\nconstant t2 f32[24,16,3,3]\nintermediate Y_acc f32[1,24,14,14]\n"
    "output Y f32[1,24,14,14]\n"
    "Y_acc[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * t2[k,c,r,s]\n"
    "Y[n,k,y,x] = max(Y_acc[n,k,y,x], 0)\n";

static const struct {
    const char *gene, *value, *canonical_gene, *canonical_value;
} cases[] = {
    {"algorithm", "direct", "algorithm", "direct"},
    {"layout", "asis", "layout", "asis"},
    {"Y.tile.k", "8", "t3.tile.a1", "8"},
    {"Y.vec", "k", "t3.vec", "a1"},
    {"Y.inner", "n,k,y,x", "t3.inner", "a0,a1,a2,a3"},
    {"Y.red", "c,r,s", "t3.red", "a4,a5,a6"},
    {"Y.split", "all", "t3.split", "all"},
    {"Y_acc_m.block.ty", "4", "t2_m.block.ta2", "4"},
    {"Y_acc_v.at", "Y_acc_m.block", "t2_v.at", "t2_m.block"},
    {"Y_acc_v.at", "root", "t2_v.at", "root"},
    {"Y.pack.t2", "yes", "t3.pack.t1", "yes"},
    {"t3.tile.a1", "8", "t3.tile.a1", "8"},
    {"nothing.tile.k", "8", "nothing.tile.k", "8"},
    {"Y.vec", ",", "t3.vec", ","},
};

static void test_names(void **state)
{
    (void)state;
    struct wpk_program program, canonical;
    struct wpk_canonical_map map;
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    assert_int_equal(wpk_program_canonical_map(&program, &canonical, &map), WPK_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wpk_buf name = {0}, value = {0};
        assert_int_equal(
            wpk_pin_canonical(&program, &map, cases[i].gene, cases[i].value, &name, &value),
            WPK_OK);
        assert_string_equal(wpk_buf_text(&name), cases[i].canonical_gene);
        assert_string_equal(wpk_buf_text(&value), cases[i].canonical_value);
        wpk_buf_fini(&name);
        wpk_buf_fini(&value);
    }
    wpk_program_fini(&canonical);
    wpk_program_fini(&program);
}

/* Pixels collapse to one axis. */
static const char pointwise[] =
    "input X f32[1,16,14,14]\nconstant W f32[24,16,1,1]\noutput Y f32[1,24,14,14]\n"
    "Y[n,k,y,x] = sum(c:16,r:1,s:1) X[n,c,y+r,x+s] * W[k,c,r,s]\n";

static bool has_gene(const struct wpk_variant *variant, const char *name, const char *value)
{
    for (int g = 0; g < variant->gene_count; g++) {
        if (strcmp(variant->genes[g].name, name) == 0) {
            return wpk_gene_choice(&variant->genes[g], value) >= 0;
        }
    }
    return false;
}

static void derive(const char *written, const char *layouts, struct wpk_program *program,
                   struct wpk_canonical_map *map, struct wpk_space *space,
                   struct wpk_space *canonical_space)
{
    struct wpk_space_options options = {.layouts = layouts, .threads = 2};
    struct wpk_program canonical;
    options.device.cpu.flags = WPK_CPU_SET_AVX512;
    options.device.cpu.vector_bytes = 64;
    options.device.cpu.vector_registers = 32;
    assert_int_equal(wpk_program_parse(written, program, NULL), WPK_OK);
    assert_int_equal(wpk_program_canonical_map(program, &canonical, map), WPK_OK);
    assert_int_equal(wpk_space_derive(program, &options, space, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&canonical, &options, canonical_space, NULL), WPK_OK);
    assert_int_equal(space->variant_count, canonical_space->variant_count);
    wpk_program_fini(&canonical);
}

/* Every gene and choice of the asker's space is one of the canonical space. */
static void test_every_gene(void **state)
{
    (void)state;
    static const char *const written[] = {text, pointwise};
    bool collapsed = false;
    for (int p = 0; p < 4; p++) {
        struct wpk_program program;
        struct wpk_canonical_map map;
        struct wpk_space space, canonical_space;
        derive(written[p / 2], p % 2 == 0 ? "any" : "fixed", &program, &map, &space,
               &canonical_space);
        for (int v = 0; v < space.variant_count; v++) {
            for (int g = 0; g < space.variants[v].gene_count; g++) {
                const struct wpk_gene *gene = &space.variants[v].genes[g];
                collapsed = collapsed || strcmp(gene->name, "Y.tile.yx") == 0;
                for (int c = 0; c < gene->choice_count; c++) {
                    struct wpk_buf name = {0}, value = {0};
                    assert_int_equal(wpk_pin_canonical(&program, &map, gene->name,
                                                       gene->choice[c].text, &name, &value),
                                     WPK_OK);
                    if (!has_gene(&canonical_space.variants[v], wpk_buf_text(&name),
                                  wpk_buf_text(&value))) {
                        fail_msg("%s: %s=%s, not %s=%s", space.variants[v].algorithm, gene->name,
                                 gene->choice[c].text, wpk_buf_text(&name), wpk_buf_text(&value));
                    }
                    wpk_buf_fini(&name);
                    wpk_buf_fini(&value);
                }
            }
        }
        wpk_space_fini(&canonical_space);
        wpk_space_fini(&space);
        wpk_program_fini(&program);
    }
    assert_true(collapsed);
}

/* Two shapes of one product, whose canonical forms number the operands the other way round. */
static void test_a_relative_is_renamed(void **state)
{
    static const char small[] = "input t0 u8[256,256]\nconstant t1 i8[256,256]\n"
                                "output t2 i32[256,256]\n"
                                "t2[a0,a1] = sum.i32(a2:256) i32(t0[a0,a2]) * i32(t1[a2,a1])\n";
    static const char large[] = "constant t0 i8[512,512]\ninput t1 u8[512,512]\n"
                                "output t2 i32[512,512]\n"
                                "t2[a0,a1] = sum.i32(a2:512) i32(t0[a2,a1]) * i32(t1[a0,a2])\n";
    static const char here[] = "cpu-6 algorithm=direct layout=asis t2.vec=a1 t2.tile.a1=48 "
                               "t2.inner=a0,a1 t2.dot=a2 t2.pack.t1=yes by=c";
    static const char there[] = "cpu-6 algorithm=direct layout=asis t2.vec=a1 t2.tile.a1=48 "
                                "t2.inner=a0,a1 t2.dot=a2 t2.pack.t0=yes by=c";
    struct wpk_buf out = {0}, back = {0};
    (void)state;
    assert_int_equal(wpk_candidate_rename(small, large, here, &out), WPK_OK);
    assert_string_equal(wpk_buf_text(&out), there);
    assert_int_equal(wpk_candidate_rename(large, small, there, &back), WPK_OK);
    assert_string_equal(wpk_buf_text(&back), here);
    wpk_buf_fini(&back);
    assert_int_equal(wpk_candidate_rename("", small, there, &back), WPK_EPARSE);
    wpk_buf_fini(&back);
    wpk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_every_gene),
        cmocka_unit_test(test_a_relative_is_renamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
