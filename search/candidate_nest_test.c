/* SPDX-License-Identifier: Apache-2.0 */
/* The nests of candidates: of long sums in panels, where a space has them and when they are legal,
 * and of a stage in another one's tiles. */
#include "search/candidate_nest.h"

#include "ir/notation/notation.h"
#include "search/feature.h"
#include "search/gene_list.h"
#include "search/space.h"
#include "tests/fake_target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CONSTRUCT_MAX 64

struct subject {
    struct wpk_program program;
    struct wpk_space space;
};

static void set_up(struct subject *s, const char *text, const char *class, int threads,
                   bool by_class)
{
    struct wpk_diag diag = {0};
    struct wpk_space_options options = {.layouts = "fixed", .threads = threads};
    options.target = by_class ? options.target : wpk_target_fake_panels();
    assert_int_equal(wpk_device_of_class(class, &options.device), WPK_OK);
    if (wpk_program_parse(text, &s->program, &diag) != WPK_OK ||
        wpk_space_derive(&s->program, &options, &s->space, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

static void tear_down(struct subject *s)
{
    wpk_space_fini(&s->space);
    wpk_program_fini(&s->program);
}

#define ZEN4 "cpu/AMD EPYC/zen4"

/* Rows, terms, columns. */
#define PRODUCT(m, k, n)                                                                           \
    "input A f32[" m "," k "]\nconstant B f32[" k "," n "]\noutput Y f32[" m "," n "]\n"           \
    "Y[i,j] = sum(k:" k ") A[i,k] * B[k,j]\n"

/* The sizes of the gene Y.panel of direct evaluation, "" where there is none. */
static void list_panels(const char *text, const char *class, char *out, size_t size)
{
    struct subject s;
    set_up(&s, text, class, 1, true);
    const struct wpk_variant *variant = &s.space.variants[0];
    out[0] = '\0';
    for (int g = 0; g < variant->gene_count; g++) {
        const struct wpk_gene *gene = &variant->genes[g];
        for (int i = 0; i < gene->choice_count && strcmp(gene->name, "Y.panel") == 0; i++) {
            size_t used = strlen(out);
            snprintf(out + used, size - used, " %s", gene->choice[i].text);
        }
    }
    tear_down(&s);
}

/* Sums whose strip of an operand takes a quarter of the second cache; whatever computes them. */
static void test_long_sums_have_panels(void **state)
{
    (void)state;
    static const struct {
        const char *text, *class, *panels;
    } cases[] = {
        {PRODUCT("64", "65536", "64"), ZEN4, " 128 256 512 all"},
        {PRODUCT("64", "65535", "64"), ZEN4, ""},
        {PRODUCT("128", "75000", "1280"), ZEN4, " 125 250 500 all"},
        {PRODUCT("64", "65537", "64"), ZEN4, ""}, /* a prime */
        {PRODUCT("64", "65536", "64"), "cpu/any/avx2", " 256 512 1024 all"},
        {"input X f32[1,65536,7,7]\nconstant W f32[64,65536,1,1]\noutput Y f32[1,64,7,7]\n"
         "Y[n,k,y,x] = max(c:65536,r:1,s:1) X[n,c,y+r,x+s] * W[k,c,r,s]\n",
         ZEN4, " 128 256 512 all"},
        {"input X f32[4,4096]\noutput Y f32[4]\nY[i] = sum(j:4096) X[i,j]\n", ZEN4, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char panels[128];
        list_panels(cases[i].text, cases[i].class, panels, sizeof(panels));
        assert_string_equal(panels, cases[i].panels);
    }
}

/* ---- candidates of one product */

#define HEAD WPK_SPACE_VERSION " algorithm=direct layout=staged Y.vec=j Y.lanes=16 "
#define TILES(rows) "Y.tile.i=" rows " Y.block.i=32 Y.tile.j=32 Y.block.j=8 "
#define REST "Y.outer=j,i Y.inner=j,i Y.split=all Y.sum=all Y.unroll=2 Y.pack.A=no Y.pack.B=yes"
#define PANEL " Y.panel=256"

static bool read(const struct wpk_space *space, const char *text, struct wpk_candidate *out)
{
    struct wpk_diag diag = {0};
    if (wpk_candidate_decode(space, text, out, &diag) != WPK_OK) {
        fail_msg("%s: %s", diag.text, text);
    }
    return wpk_space_is_legal(space, out);
}

/* Texts from before the gene "panel" keep their meaning. */
static void test_text_without_panels(void **state)
{
    (void)state;
    struct subject s;
    struct wpk_candidate without, with;
    char text[WPK_CANDIDATE_TEXT_MAX];
    set_up(&s, PRODUCT("4096", "4096", "4096"), ZEN4, 1, false);
    assert_true(read(&s.space, HEAD TILES("8") REST, &without));
    assert_int_equal(wpk_candidate_encode(&s.space, &without, text, sizeof(text)), WPK_OK);
    assert_null(strstr(text, "panel"));
    assert_true(read(&s.space, HEAD TILES("8") REST PANEL, &with));
    assert_false(wpk_candidate_equal(&with, &without));
    assert_int_equal(wpk_candidate_encode(&s.space, &with, text, sizeof(text)), WPK_OK);
    assert_non_null(strstr(text, PANEL));
    assert_true(wpk_space_key(&s.space, &with) != wpk_space_key(&s.space, &without));
    /* a pinned panel is always written */
    assert_int_equal(wpk_space_pin(&s.space, "Y.panel", "256", NULL), WPK_OK);
    assert_int_equal(wpk_candidate_decode(&s.space, HEAD TILES("8") REST, &without, NULL),
                     WPK_EPARSE);
    tear_down(&s);
}

static void test_rules(void **state)
{
    (void)state;
    struct subject s;
    struct wpk_candidate one;
    set_up(&s, PRODUCT("4096", "4096", "4096"), ZEN4, 1, false);
    assert_true(read(&s.space, HEAD TILES("6") REST, &one));
    assert_false(read(&s.space, HEAD TILES("6") REST PANEL, &one)); /* 4096 / 6 */
    assert_false(read(&s.space,
                      HEAD TILES("8") "Y.outer=j,i Y.inner=j,i Y.split=all Y.sum=all Y.unroll=2 "
                                      "Y.pack.A=panel Y.pack.B=yes",
                      &one)); /* of what panel? */
    tear_down(&s);
}

static const struct wpk_nest_entry *entry_of(const struct wpk_nest *nest, enum wpk_nest_kind kind,
                                             int number)
{
    int e = 0;
    for (int seen = 0; e < nest->entry_count; e++) {
        seen += nest->entry[e].kind == kind;
        if (seen == number) {
            return &nest->entry[e];
        }
    }
    fail_msg("no such entry");
    return NULL;
}

/* Y in blocks of 256 x 256; in each the total, whose panels go over all tiles; of each tile the sum
 * of a panel's terms; and A's part of the panel. */
static void test_nest(void **state)
{
    (void)state;
    struct subject s;
    struct wpk_candidate one;
    static struct wpk_nest nest;
    set_up(&s, PRODUCT("4096", "4096", "4096"), ZEN4, 1, false);
    assert_true(read(&s.space,
                     HEAD TILES("8") "Y.outer=j,i Y.inner=j,i Y.split=all Y.sum=all Y.unroll=2 "
                                     "Y.pack.A=panel Y.pack.B=yes" PANEL,
                     &one));
    assert_int_equal(wpk_candidate_nest(&s.space, &one, &nest), WPK_OK);
    const struct wpk_nest_entry *total = entry_of(&nest, WPK_NEST_STAGE, 2);
    const struct wpk_nest_entry *part = entry_of(&nest, WPK_NEST_PART, 1);
    const struct wpk_nest_entry *copy = entry_of(&nest, WPK_NEST_COPY, 1);
    assert_int_equal(total->place.entry, 0);
    assert_int_equal(total->place.loop, 1); /* inside both block loops */
    assert_int_equal(total->extent[0], 256);
    assert_int_equal(total->extent[1], 256);
    assert_int_equal(total->block, 256);
    assert_int_equal(total->grain[0], 256);
    const struct wpk_nest_loop *panels = wpk_nest_at(&nest, &total->update, 0);
    assert_int_equal(panels->axis, 2);
    assert_int_equal(panels->step, 256);
    assert_ptr_equal(&nest.entry[part->place.entry], total);
    assert_true(part->place.update);
    assert_int_equal(part->place.loop, 2);
    assert_int_equal(part->extent[0], 8);
    assert_int_equal(part->extent[1], 32);
    assert_int_equal(part->extent[2], 256);
    assert_ptr_equal(&nest.entry[copy->place.entry], total);
    assert_int_equal(copy->place.loop, 0);
    assert_int_equal(copy->packing.dim_count, 3); /* tiles of rows, terms, rows of a tile */
    assert_int_equal(copy->extent[0], 32);
    assert_int_equal(copy->extent[1], 256);
    assert_int_equal(copy->extent[2], 8);
    tear_down(&s);
}

/* A constant that exceeds the caches may be packed in halves of a tile's lanes, if these are whole
 * vectors. */
static void test_halves(void **state)
{
    (void)state;
    static const struct {
        const char *tile, *pack;
        int64_t block;
    } cases[] = {
        {"64", "yes", 64}, {"64", "halves", 32}, {"48", "halves", 48}, {"32", "halves", 16}};
    static struct wpk_nest nest;
    struct subject s;
    set_up(&s, PRODUCT("4", "2560", "7680"), ZEN4, 1, false);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_candidate one;
        struct wpk_buf text = {0};
        wpk_buf_printf(&text,
                       HEAD "Y.tile.i=4 Y.block.i=all Y.tile.j=%s Y.block.j=all Y.outer=j,i "
                            "Y.inner=j,i Y.split=all Y.sum=all Y.unroll=1 Y.pack.A=no Y.pack.B=%s",
                       cases[i].tile, cases[i].pack);
        assert_true(read(&s.space, wpk_buf_text(&text), &one));
        assert_int_equal(wpk_candidate_nest(&s.space, &one, &nest), WPK_OK);
        const struct wpk_packing *copy = &entry_of(&nest, WPK_NEST_COPY, 1)->packing;
        assert_int_equal(copy->dim_count, 3);
        assert_int_equal(copy->block[0], -cases[i].block);
        assert_int_equal(copy->block[2], cases[i].block);
        wpk_buf_fini(&text);
    }
    tear_down(&s);
    set_up(&s, PRODUCT("4", "1024", "3072"), ZEN4, 1, false);
    const struct wpk_variant *variant = wpk_space_variant(&s.space, 0);
    for (int g = 0; g < variant->gene_count; g++) {
        assert_int_equal(wpk_gene_choice(&variant->genes[g], "halves"), -1);
    }
    struct wpk_candidate whole; /* what was best of a larger shape */
    assert_true(read(&s.space,
                     HEAD
                     "Y.tile.i=4 Y.block.i=all Y.tile.j=64 Y.block.j=all Y.outer=j,i "
                     "Y.inner=j,i Y.split=all Y.sum=all Y.unroll=1 Y.pack.A=no Y.pack.B=halves",
                     &whole));
    assert_int_equal(wpk_candidate_nest(&s.space, &whole, &nest), WPK_OK);
    assert_int_equal(entry_of(&nest, WPK_NEST_COPY, 1)->packing.block[0], -64);
    tear_down(&s);
}

/* ---- tiles that do not divide their extent */

/* The entry that reads the copy's tensor; -1: none. */
static int reader_of(const struct wpk_nest *nest, int tensor)
{
    for (int e = 0; e < nest->entry_count; e++) {
        int loads[WPK_LOADS_MAX];
        if (nest->entry[e].kind == WPK_NEST_COPY) {
            continue;
        }
        int count = wpk_stage_loads(nest->program, wpk_nest_stage(nest, &nest->entry[e]), loads,
                                    WPK_LOADS_MAX);
        for (int i = 0; i < count; i++) {
            if (nest->program->nodes[loads[i]].tensor == tensor) {
                return e;
            }
        }
    }
    return -1;
}

/* The loops of an entry do not move inwards by `block` over an axis of that extent. */
static void expect_still(const struct wpk_nest *nest, int e, int64_t extent, int64_t block,
                         const char *text)
{
    const struct wpk_nest_entry *entry = &nest->entry[e];
    for (int k = 0; k < entry->pure.count; k++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, &entry->pure, k);
        if (wpk_nest_stage(nest, entry)->axes[loop->axis].extent == extent && loop->step == block &&
            loop->tail == WPK_TAIL_SHIFT) {
            fail_msg("axis %d moves inwards: %s", loop->axis, text);
        }
    }
}

/* Tiles do not move inwards where a copy is cut into blocks of them with a remainder. An axis is
 * known by its extent, which no other has. Returns the number of such cuts. */
static int expect_no_shift(const struct wpk_nest *nest, const char *text)
{
    int cut = 0;
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_packing *copy = &nest->entry[e].packing;
        for (int i = 0; nest->entry[e].kind == WPK_NEST_COPY && i < copy->dim_count; i++) {
            int64_t extent = nest->program->tensors[copy->tensor].extent[copy->dim[i]];
            int64_t block = -copy->block[i];
            if (block <= 0 || extent % block == 0) {
                continue;
            }
            int reader = reader_of(nest, copy->tensor);
            assert_true(reader >= 0);
            expect_still(nest, reader, extent, block, text);
            if (nest->entry[reader].place.entry >= 0) {
                expect_still(nest, nest->entry[reader].place.entry, extent, block, text);
            }
            cut++;
        }
    }
    return cut;
}

static void expect_no_shifts(const char *program, int draws)
{
    static struct wpk_nest nest;
    struct wpk_rng rng;
    struct subject s;
    int cut = 0;
    set_up(&s, program, ZEN4, 1, true);
    wpk_rng_seed(&rng, 29);
    for (int i = 0; i < draws; i++) {
        struct wpk_candidate one;
        char text[WPK_CANDIDATE_TEXT_MAX];
        assert_int_equal(wpk_space_draw(&s.space, &rng, &one), WPK_OK);
        assert_int_equal(wpk_candidate_encode(&s.space, &one, text, sizeof(text)), WPK_OK);
        assert_int_equal(wpk_candidate_nest(&s.space, &one, &nest), WPK_OK);
        cut += expect_no_shift(&nest, text);
    }
    print_message("%d cuts in %d candidates\n", cut, draws);
    assert_true(cut > draws / 8);
    tear_down(&s);
}

#define ODD_PRODUCT(role)                                                                          \
    "input A f32[77,333]\n" role " B f32[333,210]\noutput Y f32[77,210]\n"                         \
    "Y[i,j] = sum(k:333) A[i,k] * B[k,j]\n"

static void test_no_tile_moves_over_a_cut_copy(void **state)
{
    (void)state;
    expect_no_shifts(ODD_PRODUCT("constant"), 400);
    expect_no_shifts(ODD_PRODUCT("input"), 400);
    expect_no_shifts("input A f32[5,77,91]\ninput B f32[5,91,210]\noutput Y f32[5,77,210]\n"
                     "Y[b,i,j] = sum(k:91) A[b,i,k] * B[b,k,j]\n",
                     200);
    /* 3x3 with odd channels, bias and ReLU; Winograd is among its candidates */
    expect_no_shifts("input X f32[1,50,13,17]\nconstant W f32[54,50,3,3]\nconstant B f32[54]\n"
                     "intermediate T f32[1,54,13,17]\noutput Y f32[1,54,13,17]\n"
                     "T[n,k,y,x] = sum(c:50,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n"
                     "Y[n,k,y,x] = max(T[n,k,y,x] + B[k], 0)\n",
                     200);
    /* dilated */
    expect_no_shifts(
        "input X f32[1,22,31,33]\nconstant W f32[37,22,3,3]\noutput Y f32[1,37,31,33]\n"
        "Y[n,k,y,x] = sum(c:22,r:3,s:3) X[n,c,y+6*r-6,x+6*s-6 | 0] * W[k,c,r,s]\n",
        200);
}

/* A body of its own for the last tile, where it has whole vectors past the end. */
static void test_tails(void **state)
{
    (void)state;
    static const struct {
        const char *tile, *tail;
        bool legal, whole;
    } cases[] = {{"48", "own", true, false},
                 {"48", "whole", true, true},
                 {"32", "own", true, false}, /* 208 ends with half a tile */
                 {"16", "own", false, true}};
    static struct wpk_nest nest;
    struct subject s;
    set_up(&s, PRODUCT("128", "320", "208"), ZEN4, 1, true);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_candidate one;
        struct wpk_buf text = {0};
        wpk_buf_printf(&text,
                       WPK_SPACE_VERSION
                       " algorithm=direct layout=staged Y.vec=j Y.lanes=16 Y.tile.i=4 "
                       "Y.block.i=all Y.tile.j=%s Y.tail=%s Y.block.j=all Y.outer=j,i "
                       "Y.inner=j,i Y.split=all Y.sum=all Y.unroll=1 Y.pack.A=no Y.pack.B=yes",
                       cases[i].tile, cases[i].tail);
        assert_int_equal(read(&s.space, wpk_buf_text(&text), &one), cases[i].legal);
        if (cases[i].legal) {
            assert_int_equal(wpk_candidate_nest(&s.space, &one, &nest), WPK_OK);
            for (int k = 0; k < nest.entry[0].pure.count; k++) {
                const struct wpk_nest_loop *loop = wpk_nest_at(&nest, &nest.entry[0].pure, k);
                if (loop->axis == 1 && loop->tail != WPK_TAIL_EXACT) {
                    assert_int_equal(loop->tail, WPK_TAIL_GUARD);
                    assert_int_equal(loop->whole, cases[i].whole);
                }
            }
        }
        wpk_buf_fini(&text);
    }
    tear_down(&s);
}

/* -1: the candidate's variant has no such gene. */
static int64_t value_of(const struct wpk_space *space, const struct wpk_candidate *one,
                        const char *name)
{
    const struct wpk_variant *variant = wpk_space_variant(space, one->variant);
    for (int g = 0; g < variant->gene_count; g++) {
        if (strcmp(variant->genes[g].name, name) == 0) {
            return variant->genes[g].choice[one->gene[g]].value;
        }
    }
    return -1;
}

/* Two operands of 64 MiB each: the rows of a block, copied, are to stay in the last cache while all
 * columns pass. No registers hold what is computed from an element, so nothing streams. */
static void test_operands_beyond_the_last_cache(void **state)
{
    (void)state;
    struct wpk_candidate out[12];
    struct subject s;
    int count = 0, blocked = 0;
    set_up(&s, PRODUCT("4096", "4096", "4096"), ZEN4, 1, true);
    const struct wpk_variant *variant = wpk_space_variant(&s.space, 0);
    for (int g = 0; g < variant->gene_count; g++) {
        assert_int_equal(wpk_gene_choice(&variant->genes[g], "halves"), -1);
    }
    assert_int_equal(wpk_space_construct(&s.space, out, 12, &count), WPK_OK);
    assert_int_equal(count, 12);
    for (int i = 0; i < count; i++) {
        int64_t rows = value_of(&s.space, &out[i], "Y.block.i");
        if (rows > 0 && rows != WPK_GENE_ALL &&
            value_of(&s.space, &out[i], "Y.block.j") == WPK_GENE_ALL &&
            value_of(&s.space, &out[i], "Y.pack.A") == 1) {
            rows *= value_of(&s.space, &out[i], "Y.tile.i");
            assert_in_range(rows, 64, 256); /* 1 to 4 MiB of 16 */
            blocked++;
        }
    }
    assert_in_range(blocked, 2, 8);
    tear_down(&s);
}

/* Without blocks there is one total, of which threads compute tiles. */
static void test_threads(void **state)
{
    (void)state;
    struct subject s;
    struct wpk_candidate one;
    static struct wpk_nest nest;
    set_up(&s, PRODUCT("4096", "4096", "4096"), ZEN4, 2, false);
    assert_true(read(
        &s.space, HEAD "Y.tile.i=8 Y.block.i=all Y.tile.j=32 Y.block.j=all " REST " Y.par=1" PANEL,
        &one));
    assert_int_equal(wpk_candidate_nest(&s.space, &one, &nest), WPK_OK);
    const struct wpk_nest_entry *total = entry_of(&nest, WPK_NEST_STAGE, 2);
    assert_int_equal(wpk_nest_at(&nest, &total->update, 0)->binding, WPK_BIND_SERIAL);
    assert_int_equal(wpk_nest_at(&nest, &total->update, 1)->binding, WPK_BIND_PARALLEL);
    assert_int_equal(wpk_nest_at(&nest, &total->update, 2)->binding, WPK_BIND_SERIAL);
    assert_int_equal(wpk_nest_at(&nest, &total->pure, 0)->binding, WPK_BIND_PARALLEL);
    tear_down(&s);
}

/* The constructed candidates of a large product have k-blocks, some with A staged in them. */
static void test_constructed(void **state)
{
    (void)state;
    static struct wpk_candidate out[CONSTRUCT_MAX];
    static const char *const texts[] = {PRODUCT("4096", "4096", "4096"),
                                        PRODUCT("512", "8192", "1024")};
    for (int i = 0; i < 2; i++) {
        struct subject s;
        int panels = 0, staged = 0, early = 0;
        set_up(&s, texts[i], ZEN4, 1, false);
        int count = 0;
        assert_int_equal(wpk_space_construct(&s.space, out, CONSTRUCT_MAX, &count), WPK_OK);
        for (int c = 0; c < count; c++) {
            struct wpk_decisions d;
            wpk_genes_read(&s.space.variants[out[c].variant], &out[c], 0, &d);
            panels += d.panel;
            early += d.panel && c < 8;
            staged += d.staged[0] || d.staged[1];
        }
        assert_true(early > 0 && staged > 0);
        assert_true(panels > 3 && panels < count / 2);
        tear_down(&s);
    }
}

/* Of 4096 terms a strip of B is no longer kept in the second cache; in panels it is. */
static void test_traffic(void **state)
{
    (void)state;
    struct subject s;
    double traffic[2];
    set_up(&s, PRODUCT("4096", "4096", "4096"), ZEN4, 1, false);
    for (int panels = 0; panels < 2; panels++) {
        static struct wpk_nest nest;
        static struct wpk_features features;
        struct wpk_candidate one;
        assert_true(
            read(&s.space, panels == 0 ? HEAD TILES("8") REST : HEAD TILES("8") REST PANEL, &one));
        assert_int_equal(wpk_candidate_nest(&s.space, &one, &nest), WPK_OK);
        const struct wpk_structure *structure = s.space.variants[one.variant].plan;
        wpk_features(&structure->accesses, &nest, &s.space.options.target.machine, 1, &features);
        assert_true(features.recomputed == 1);
        traffic[panels] = features.traffic_bytes[1];
    }
    assert_true(traffic[1] < traffic[0] / 2);
    tear_down(&s);
}

/* ---- two stages: what a tile of Y needs of A */

/* Draw a candidate. If it computes A in the tiles of Y, fill `nest`, and *tile with their size. */
static bool draw_in_tiles(const struct subject *s, struct wpk_rng *rng, struct wpk_nest *nest,
                          int64_t *tile)
{
    struct wpk_candidate one;
    struct wpk_decisions d[2];
    assert_int_equal(wpk_space_draw(&s->space, rng, &one), WPK_OK);
    const struct wpk_variant *variant = &s->space.variants[one.variant];
    assert_int_equal(((struct wpk_structure *)variant->plan)->plan.group_count, 2);
    wpk_genes_read(variant, &one, 0, &d[0]);
    wpk_genes_read(variant, &one, 1, &d[1]);
    if (d[0].level != WPK_LEVEL_TILE) {
        return false;
    }
    assert_int_equal(wpk_decisions_nest(variant, &s->space.options, d, nest), WPK_OK);
    *tile = d[1].tile[0];
    return true;
}

/* Every load counts, the last of many too: a tile of Y needs 19 more of A. */
static void test_windows_of_many_loads(void **state)
{
    (void)state;
    static struct wpk_nest nest;
    struct subject s;
    struct wpk_buf text = {0};
    struct wpk_rng rng;
    int seen = 0;
    wpk_buf_append_text(&text, "input X f32[64]\nintermediate A f32[64]\noutput Y f32[45]\n"
                               "A[i] = exp(X[i])\nY[i] = A[i]");
    for (int k = 1; k < 20; k++) {
        wpk_buf_printf(&text, " + A[i+%d]", k);
    }
    set_up(&s, wpk_buf_text(&text), ZEN4, 1, true);
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < 200; i++) {
        int64_t tile = 0;
        if (draw_in_tiles(&s, &rng, &nest, &tile)) {
            assert_int_equal(nest.entry[1].extent[0], tile + 19);
            seen++;
        }
    }
    assert_true(seen > 0);
    tear_down(&s);
    wpk_buf_fini(&text);
}

/* At the ends of A nothing is read of what lies outside of it: a tile of Y needs less there. */
static void test_windows_end_with_their_tensor(void **state)
{
    (void)state;
    static struct wpk_nest nest;
    struct subject s;
    struct wpk_rng rng;
    int seen = 0;
    set_up(&s,
           "input X f32[64]\nintermediate A f32[64]\noutput Y f32[64]\n"
           "A[i] = exp(X[i])\nY[i] = A[i-1] + A[i] + A[i+2]\n",
           ZEN4, 1, true);
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < 400; i++) {
        int64_t tile = 0;
        if (draw_in_tiles(&s, &rng, &nest, &tile) && tile <= 32 && 64 % tile == 0) {
            assert_int_equal(nest.entry[1].extent[0], tile + 3);
            assert_int_equal(nest.entry[1].least[0], tile);
            seen++;
        }
    }
    assert_true(seen > 0);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_sums_have_panels),
        cmocka_unit_test(test_text_without_panels),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_nest),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_no_tile_moves_over_a_cut_copy),
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_operands_beyond_the_last_cache),
        cmocka_unit_test(test_constructed),
        cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_windows_of_many_loads),
        cmocka_unit_test(test_windows_end_with_their_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
