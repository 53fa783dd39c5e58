/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of back ends, and the gene that chooses one. */
#include "search/back_end.h"

#include "ir/notation/notation.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/mask.h"
#include "search/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIST "halide-cpu+c/gcc-12.2.0;onednn"
#define CONSTRUCT_MAX 8

static void lists(void **state)
{
    (void)state;
    char out[WPK_BACK_END_MAX];
    assert_int_equal(wpk_back_ends_read(LIST), 3);
    assert_int_equal(wpk_back_ends_read("halide-cpu;c"), 1); /* a vendor of that name */
    assert_int_equal(wpk_back_ends_read("c"), 2);
    assert_int_equal(wpk_back_ends_read("cc+halide"), 0);
    assert_int_equal(wpk_back_ends_read(""), 0);
    assert_true(wpk_back_ends_known("c+halide-cpu"));
    assert_false(wpk_back_ends_known("halide-cpu+d"));
    assert_false(wpk_back_ends_known("halide-cpu;c"));
    assert_false(wpk_back_ends_known("c++halide-cpu"));
    assert_false(wpk_back_ends_known(""));
    assert_false(wpk_back_ends_known("c/gcc-12.2.0")); /* workers offer versions; no job chooses */
    assert_true(wpk_back_ends_find(LIST, "c", out));
    assert_string_equal(out, "c/gcc-12.2.0");
    assert_false(wpk_back_ends_find(LIST, "onednn", out));
    assert_false(wpk_back_ends_find(LIST, "gcc-12.2.0", out));
    assert_int_equal(wpk_back_end_number("c/gcc-12.2.0"), WPK_BACK_END_c);
    assert_int_equal(wpk_back_end_number("halide-cuda"), WPK_BACK_END_halide_cuda);
    assert_int_equal(wpk_back_end_number("cc"), -1);
    assert_int_equal(wpk_back_end_number(""), -1);
    wpk_back_end_entry("c", "gcc-12.2.0", out);
    assert_string_equal(out, "c/gcc-12.2.0");
    wpk_back_end_entry("halide-cuda", "", out);
    assert_string_equal(out, "halide-cuda");
}

static void expect_provider(const char *list, const char *candidate, const char *provider)
{
    char out[WPK_BACK_END_MAX];
    wpk_back_end_provider(list, candidate, out);
    assert_string_equal(out, provider);
}

/* Of one schedule by two back ends, and of one back end with two compilers, no trial is
 * another's. */
static void providers(void **state)
{
    (void)state;
    expect_provider(LIST, "cpu-3 algorithm=direct Y.at=root", "halide-cpu");
    expect_provider(LIST, "cpu-3 algorithm=direct Y.at=root by=c", "c/gcc-12.2.0");
    expect_provider("halide-cpu+c/gcc-13.1.0", "cpu-3 Y.at=root by=c", "c/gcc-13.1.0");
    expect_provider("halide-cpu;onednn", "cpu-3 Y.at=root by=c", "c");
    expect_provider("own;vendor", "c17", "own");
    expect_provider(LIST, "", "halide-cpu");
    expect_provider("cuda+halide-cuda;cudnn", "cuda-13 Y.depth=1 by=halide-cuda", "halide-cuda");
}

#define PRODUCT                                                                                    \
    "input A f32[16,24]\nconstant B f32[24,32]\noutput Y f32[16,32]\n"                             \
    "Y[i,j] = sum(k:24) A[i,k] * B[k,j]\n"
#define LONG_PRODUCT                                                                               \
    "input A f32[64,512]\ninput B f32[512,64]\noutput Y f32[64,64]\n"                              \
    "Y[i,j] = sum.f32(k:512) A[i,k] * B[k,j]\n"
#define MEAN "input X f32[8,512]\noutput Y f32[8]\nY[i] = sum.f32(k:512) X[i,k] / 512\n"

static void derive_of(const char *text, const struct wpk_device *device, const char *back_ends,
                      struct wpk_space *out)
{
    struct wpk_program program = {0};
    struct wpk_space_options options = {.layouts = "fixed",
                                        .threads = 1,
                                        .device = *device,
                                        .back_ends = wpk_back_ends_read(back_ends)};
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, out, NULL), WPK_OK);
    wpk_program_fini(&program);
}

static void derive(const char *back_ends, struct wpk_space *out)
{
    const struct wpk_device device = {
        .kind = "cpu",
        .cpu = {.flags = WPK_CPU_SET_AVX2, .vector_bytes = 32, .vector_registers = 16},
        .core_count = 2};
    derive_of(PRODUCT, &device, back_ends, out);
}

static void derive_cuda(const char *text, const char *back_ends, struct wpk_space *out)
{
    struct wpk_device device;
    assert_int_equal(wpk_device_emulate("sm_90", 132, &device, NULL), WPK_OK);
    derive_of(text, &device, back_ends, out);
}

static void encode(const struct wpk_space *space, const struct wpk_candidate *candidate,
                   char out[WPK_CANDIDATE_TEXT_MAX])
{
    assert_int_equal(wpk_candidate_encode(space, candidate, out, WPK_CANDIDATE_TEXT_MAX), WPK_OK);
}

/* A candidate of the first back end reads in every space, as in one that knows no other. */
static void the_first_is_as_before(void **state)
{
    (void)state;
    struct wpk_space one, both;
    struct wpk_candidate ours[CONSTRUCT_MAX], theirs[CONSTRUCT_MAX], back;
    char text[WPK_CANDIDATE_TEXT_MAX], same[WPK_CANDIDATE_TEXT_MAX];
    derive("", &one);
    derive("halide-cpu+c", &both);
    int first_count = 0, count = 0;
    assert_int_equal(wpk_space_construct(&one, ours, CONSTRUCT_MAX, &first_count), WPK_OK);
    assert_int_equal(wpk_space_construct(&both, theirs, CONSTRUCT_MAX, &count), WPK_OK);
    assert_int_equal(first_count, CONSTRUCT_MAX);
    assert_int_equal(count, CONSTRUCT_MAX);
    assert_true(both.size_log2 > one.size_log2 + 0.99 && both.size_log2 < one.size_log2 + 1.01);
    for (int i = 0; i < CONSTRUCT_MAX; i++) {
        bool first = strcmp(wpk_candidate_back_end(&both, &theirs[i]), "halide-cpu") == 0;
        assert_int_equal(first, i % 2 == 0); /* each by both */
        encode(&one, &ours[i / 2], text);
        encode(&both, &theirs[i], same);
        assert_int_equal(strcmp(text, same) == 0, first);
        assert_int_equal(wpk_candidate_decode(&both, text, &back, NULL), WPK_OK);
        assert_string_equal(wpk_candidate_back_end(&both, &back), "halide-cpu");
        assert_int_equal(wpk_space_key(&both, &back) == wpk_space_key(&both, &theirs[i]), first);
        assert_int_equal(wpk_candidate_decode(&both, same, &back, NULL), WPK_OK);
        assert_true(wpk_candidate_equal(&back, &theirs[i]));
        assert_int_equal(wpk_candidate_decode(&one, same, &back, NULL),
                         first ? WPK_OK : WPK_ENOENT);
    }
    wpk_space_fini(&one);
    wpk_space_fini(&both);
}

/* The genes of a variant that has `more` others. */
static wpk_err derive_genes(const struct wpk_space *space, int more, unsigned back_ends)
{
    const struct wpk_variant *variant = wpk_space_variant(space, 0);
    struct wpk_variant *copy = calloc(1, sizeof(*copy));
    struct wpk_structure *structure = calloc(1, sizeof(*structure));
    struct wpk_space_options options = space->options;
    assert_true(variant != NULL && copy != NULL && structure != NULL);
    copy->program = variant->program;
    memcpy(structure, variant->plan, sizeof(*structure));
    options.back_ends = back_ends;
    struct wpk_gene_list list = {.variant = copy, .err = WPK_OK};
    for (int i = 0; i < more; i++) {
        assert_int_equal(wpk_gene_list_add(&list, false, "x%d", i), i);
    }
    copy->plan = structure;
    wpk_err err = wpk_genes_derive(copy, structure, &options);
    err = err == WPK_OK ? wpk_genes_derive_back_end(copy, &options) : err;
    for (int i = 0; i < copy->gene_count; i++) {
        wpk_gene_fini(&copy->genes[i]);
    }
    free(copy->genes);
    free(copy);
    free(structure);
    return err;
}

/* A worker's space has all back ends, and the variants of a search's space that has one. */
static void it_leaves_no_variant_out(void **state)
{
    (void)state;
    struct wpk_space space;
    derive("", &space);
    int last = -1;
    for (int more = WPK_GENES_MAX; more > WPK_GENES_MAX - 64; more--) {
        wpk_err err = derive_genes(&space, more, 0);
        assert_int_equal(derive_genes(&space, more, WPK_BACK_ENDS_ALL), err);
        assert_true(err == WPK_OK || err == WPK_ENOSPC);
        last = last < 0 && err == WPK_OK ? more : last;
    }
    assert_true(last > 0 && last < WPK_GENES_MAX);
    wpk_space_fini(&space);
}

/* Masks, draws and crossover treat it as any gene. */
static void it_is_drawn(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_candidate candidate;
    struct wpk_rng rng;
    int count[2] = {0};
    derive("halide-cpu+c", &space);
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(wpk_space_draw(&space, &rng, &candidate), WPK_OK);
        count[strcmp(wpk_candidate_back_end(&space, &candidate), "c") == 0]++;
    }
    assert_true(count[0] > 8 && count[1] > 8);
    bool allowed[WPK_CHOICES_MAX], found = false;
    assert_int_equal(wpk_mask_begin(&space, 0, &candidate), WPK_OK);
    for (int step = 0; step < candidate.gene_count; step++) {
        int gene = wpk_mask_gene(&space, &space.variants[0], step);
        int values = wpk_mask_values(&space, &candidate, step, allowed);
        if (strcmp(space.variants[0].genes[gene].name, WPK_BACK_END_GENE) == 0) {
            found = true;
            assert_int_equal(values, 2);
            wpk_mask_decide(&space, &candidate, step, 1);
        }
    }
    assert_true(found);
    assert_string_equal(wpk_candidate_back_end(&space, &candidate), "c");
    wpk_space_fini(&space);
}

static wpk_err pin(const char *back_ends, const char *value, struct wpk_space *out,
                   struct wpk_diag *diag)
{
    derive(back_ends, out);
    return wpk_space_pin(out, WPK_BACK_END_GENE, value, diag);
}

/* The pin of a job names what may be used; the space has what the workers offer. */
static void pins(void **state)
{
    (void)state;
    static const struct {
        const char *offered, *pinned;
        unsigned kept; /* 0: refused */
    } rows[] = {
        {"halide-cpu+c", "c", 2}, {"halide-cpu+c", "halide-cpu", 1},
        {"halide-cpu", "c", 0},   {"halide-cpu+c", "halide-cpu+c", 3},
        {"", "halide-cpu+c", 1},  {"halide-cpu+c", "c+halide-cpu", 3},
        {"halide-cpu+c", "d", 0}, {"halide-cpu+c", "c+d", 0},
        {"halide-cpu+c", "", 0},  {"halide-cpu+c", "c/gcc-12.2.0", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wpk_space space;
        struct wpk_diag diag = {0};
        struct wpk_candidate made[CONSTRUCT_MAX];
        wpk_err err = pin(rows[i].offered, rows[i].pinned, &space, &diag);
        assert_int_equal(err, rows[i].kept == 0 ? WPK_ENOENT : WPK_OK);
        int count = 0;
        unsigned seen = 0;
        if (err == WPK_OK) {
            assert_int_equal(wpk_space_construct(&space, made, CONSTRUCT_MAX, &count), WPK_OK);
        }
        for (int k = 0; k < count; k++) {
            seen |= wpk_back_ends_read(wpk_candidate_back_end(&space, &made[k]));
        }
        assert_int_equal(seen, rows[i].kept);
        assert_int_equal(diag.text[0] != '\0', err != WPK_OK);
        wpk_space_fini(&space);
    }
    struct wpk_space space;
    struct wpk_diag diag = {0};
    assert_int_equal(pin("halide-cpu", "c", &space, &diag), WPK_ENOENT);
    assert_string_equal(diag.text, "by cannot be c here, but: halide-cpu");
    wpk_space_fini(&space);
}

/* On a GPU candidates are constructed for the first back end; the other one's best follows behind a
 * few. It has not what Halide refuses. */
static void a_gpu_has_one_of_the_other(void **state)
{
    (void)state;
    static const char *const programs[] = {LONG_PRODUCT, MEAN};
    for (size_t p = 0; p < sizeof programs / sizeof programs[0]; p++) {
        struct wpk_space one, both;
        struct wpk_candidate ours[CONSTRUCT_MAX], theirs[CONSTRUCT_MAX], back;
        char text[WPK_CANDIDATE_TEXT_MAX], same[WPK_CANDIDATE_TEXT_MAX];
        int first_count = 0, count = 0;
        derive_cuda(programs[p], "cuda", &one);
        derive_cuda(programs[p], "cuda+halide-cuda", &both);
        assert_true(both.size_log2 > one.size_log2 + 0.99 && both.size_log2 < one.size_log2 + 1.01);
        assert_int_equal(wpk_space_construct(&one, ours, CONSTRUCT_MAX, &first_count), WPK_OK);
        assert_int_equal(wpk_space_construct(&both, theirs, CONSTRUCT_MAX, &count), WPK_OK);
        assert_int_equal(first_count, CONSTRUCT_MAX);
        assert_int_equal(count, CONSTRUCT_MAX);
        for (int i = 0; i < CONSTRUCT_MAX / 2; i++) { /* the others may be there for their split */
            encode(&one, &ours[i], text);
            encode(&both, &theirs[i], same);
            assert_string_equal(same, text);
        }
        struct wpk_candidate *other = &theirs[CONSTRUCT_MAX - 1];
        encode(&both, other, text);
        assert_string_equal(strrchr(text, ' '), " by=halide-cuda");
        assert_true(wpk_space_is_legal(&both, other));
        assert_int_equal(wpk_candidate_decode(&both, text, &back, NULL), WPK_OK);
        assert_true(wpk_candidate_equal(&back, other));
        assert_null(strstr(text, "depth=2"));
        assert_true(strstr(text, ".share.") == NULL || strstr(text, ".share.k=1 ") != NULL);

        /* The same nest by each is not the same candidate; theirs need not be legal by the other */
        other->gene[other->gene_count - 1] = 0;
        assert_true(wpk_space_key(&both, other) != wpk_space_key(&both, &back));
        theirs[0].gene[theirs[0].gene_count - 1] = 1;
        assert_true(wpk_space_is_legal(&both, other));
        assert_false(wpk_space_is_legal(&both, &theirs[0]));
        wpk_space_fini(&one);
        wpk_space_fini(&both);
    }
}

static void a_gpu_is_pinned(void **state)
{
    (void)state;
    static const struct {
        const char *offered, *pinned;
        unsigned kept; /* 0: refused */
    } rows[] = {
        {"cuda+halide-cuda", "cuda", 4}, {"cuda+halide-cuda", "halide-cuda", 8},
        {"cuda", "halide-cuda", 0},      {"cuda+halide-cuda", "any", 12},
        {"", "cuda+halide-cuda", 4},     {"cuda+halide-cuda", "c", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wpk_space space;
        struct wpk_candidate made;
        struct wpk_rng rng;
        unsigned seen = 0;
        derive_cuda(LONG_PRODUCT, rows[i].offered, &space);
        wpk_err err = wpk_space_pin(&space, WPK_BACK_END_GENE, rows[i].pinned, NULL);
        assert_int_equal(err, rows[i].kept == 0 ? WPK_ENOENT : WPK_OK);
        wpk_rng_seed(&rng, 1);
        for (int k = 0; k < 32 && err == WPK_OK; k++) {
            assert_int_equal(wpk_space_draw(&space, &rng, &made), WPK_OK);
            assert_true(wpk_space_is_legal(&space, &made));
            seen |= wpk_back_ends_read(wpk_candidate_back_end(&space, &made));
        }
        assert_int_equal(seen, rows[i].kept);
        wpk_space_fini(&space);
    }
}

/* A pin that no candidate of the back end has is refused; beside the other one it decides. */
static void a_pin_excludes_a_back_end(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_diag diag = {0};
    struct wpk_candidate made;
    struct wpk_rng rng;
    derive_cuda(LONG_PRODUCT, "cuda+halide-cuda", &space);
    assert_int_equal(wpk_space_pin(&space, "Y.depth", "2", &diag), WPK_OK);
    wpk_rng_seed(&rng, 1);
    for (int k = 0; k < 16; k++) {
        assert_int_equal(wpk_space_draw(&space, &rng, &made), WPK_OK);
        assert_string_equal(wpk_candidate_back_end(&space, &made), "cuda");
    }
    assert_int_equal(wpk_space_pin(&space, WPK_BACK_END_GENE, "halide-cuda", &diag),
                     WPK_EUNSUPPORTED);
    assert_string_equal(diag.text, "no legal candidate has by=halide-cuda beside the other pins");
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(providers),
        cmocka_unit_test(the_first_is_as_before),
        cmocka_unit_test(it_leaves_no_variant_out),
        cmocka_unit_test(it_is_drawn),
        cmocka_unit_test(pins),
        cmocka_unit_test(a_gpu_has_one_of_the_other),
        cmocka_unit_test(a_gpu_is_pinned),
        cmocka_unit_test(a_pin_excludes_a_back_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
