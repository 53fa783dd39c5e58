/* SPDX-License-Identifier: Apache-2.0 */
/* Each level of a match, which of several entries gives it, and what is expected. */
#include "coordinator/index/lookup.h"

#include "common/metrics.h"
#include "ir/derive/derive.h"
#include "ir/notation/notation.h"
#include "ir/program.h"
#include "schema/device.h"
#include "search/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define A "aaaa456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "bbbb456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define C "cccc456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FAMILY "ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HERE "cpu/model/avx2"
#define THERE "cpu/other/avx2"
/* Peaks of a core here: 100 operations or 10 bytes a ns. */
#define PEAK 1e11
#define RATE 1e10
#define NOW "codegen=1;halide=21.0.0"
#define BEFORE "codegen=1;halide=20.0.0"

static const float extents[3][2] = {{3, 3}, {3, 4}, {6, 6}}; /* 8x8, 8x16, 64x64 */

#define ENTRY(number, hash, where, version, shape)                                                 \
    .kernel_id = (number), .fingerprint = (hash), .family = FAMILY, .layouts = "fixed",            \
    .device = (where), .environment = (version), .provider = "own", .candidate = "none such",      \
    .artifact = A, .threads = 1, .flops = 1e4, .bytes = 100, .peak_flops_per_s = PEAK,             \
    .peak_bytes_per_s = RATE, .median_ns = 1000, .mad_ns = 10, .log2_extents = extents[shape],     \
    .extent_count = 2

#define ENTRIES_MAX 16

/* A version of entries by hand. */
struct made {
    struct wpk_index_version version;
    struct wpk_index_slot slots[WPK_INDEX_ORDER_COUNT][ENTRIES_MAX];
};

/* Put the slot where it belongs among the `count` that are there. */
static void insert(struct wpk_index_slot *slots, uint32_t count, struct wpk_index_slot slot)
{
    uint32_t at = count;
    while (at > 0 && (slots[at - 1].key > slot.key || (slots[at - 1].key == slot.key &&
                                                       slots[at - 1].kernel_id > slot.kernel_id))) {
        slots[at] = slots[at - 1];
        at--;
    }
    slots[at] = slot;
}

static void make(struct made *made, struct wpk_served *entries, uint32_t count)
{
    assert_true(count <= ENTRIES_MAX);
    memset(made, 0, sizeof *made);
    for (uint32_t i = 0; i < count; i++) {
        struct wpk_served *served = &entries[i];
        served->fingerprint_key = wpk_served_key(served->fingerprint);
        served->family_key = wpk_served_key(served->family);
        const uint64_t keys[WPK_INDEX_ORDER_COUNT] = {served->fingerprint_key, served->family_key};
        for (int order = 0; order < WPK_INDEX_ORDER_COUNT; order++) {
            insert(made->slots[order], i,
                   (struct wpk_index_slot){keys[order], served->kernel_id, served});
        }
    }
    for (int order = 0; order < WPK_INDEX_ORDER_COUNT; order++) {
        made->version.slots[order] = made->slots[order];
    }
    made->version.count = count;
    made->version.devices[0] = (struct wpk_index_device){9, HERE, NOW, PEAK, RATE};
    made->version.device_count = 1;
}

static struct wpk_lookup ask(const char *fingerprint)
{
    struct wpk_lookup lookup = {.layouts = "fixed",
                                .threads = 1,
                                .accuracy = WPK_ACCURACY_STANDARD,
                                .device = HERE,
                                .environment = "",
                                .flops = 2e4,
                                .bytes = 100};
    snprintf(lookup.fingerprint, sizeof lookup.fingerprint, "%s", fingerprint);
    return lookup;
}

static struct wpk_match find(const struct made *made, const struct wpk_lookup *lookup)
{
    struct wpk_match match;
    wpk_lookup_find(&made->version, lookup, &match);
    return match;
}

static void the_same_key_is_exact(void **state)
{
    struct wpk_served entries[] = {{ENTRY(1, A, HERE, NOW, 0)},
                                   {ENTRY(2, B, HERE, NOW, 0), .vendor = true}};
    struct made made;
    (void)state;
    make(&made, entries, 2);
    struct wpk_lookup lookup = ask(A);
    struct wpk_match match = find(&made, &lookup);
    assert_int_equal(match.level, WPK_MATCH_EXACT);
    assert_ptr_equal(match.served, &entries[0]);
    assert_true(match.distance == 0);
    lookup = ask(B);
    assert_int_equal(find(&made, &lookup).level, WPK_MATCH_VENDOR);
    lookup = ask(C);
    assert_int_equal(find(&made, &lookup).level, WPK_MATCH_NONE);
    lookup = ask(A);
    lookup.layouts = "any";
    assert_int_equal(find(&made, &lookup).level, WPK_MATCH_SAME_FAMILY);
    lookup = ask(A);
    lookup.threads = 2;
    assert_int_equal(find(&made, &lookup).level, WPK_MATCH_SAME_FAMILY);
    lookup = ask(A);
    lookup.device = THERE;
    assert_int_equal(find(&made, &lookup).level, WPK_MATCH_SAME_FAMILY);
}

/* An older environment's kernel is not exact, and says what differs; the wanted one goes before it
 * whatever their ages. */
static void another_environment_is_not_exact(void **state)
{
    struct wpk_served entries[] = {{ENTRY(1, A, HERE, BEFORE, 0)}, {ENTRY(2, A, HERE, NOW, 0)}};
    struct made made;
    (void)state;
    make(&made, entries, 1);
    struct wpk_lookup lookup = ask(A);
    struct wpk_match match = find(&made, &lookup);
    assert_int_equal(match.level, WPK_MATCH_OTHER_VERSION);
    assert_int_equal(match.differs_count, 1);
    assert_memory_equal(match.differs[0].field.text, "halide", 6);
    assert_memory_equal(match.differs[0].has.text, "20.0.0", 6);
    assert_memory_equal(match.differs[0].wants.text, "21.0.0", 6);
    make(&made, entries, 2);
    match = find(&made, &lookup);
    assert_int_equal(match.level, WPK_MATCH_EXACT);
    assert_ptr_equal(match.served, &entries[1]);
    lookup.environment = "halide=20.0.0";
    match = find(&made, &lookup);
    assert_int_equal(match.level, WPK_MATCH_EXACT);
    assert_ptr_equal(match.served, &entries[0]);
    lookup.environment = "halide=19";
    match = find(&made, &lookup);
    assert_int_equal(match.level, WPK_MATCH_OTHER_VERSION);
    assert_ptr_equal(match.served, &entries[1]);
}

static void fields_are_compared(void **state)
{
    struct wpk_differs differs[WPK_LOOKUP_DIFFERS_MAX];
    char many[128] = "";
    (void)state;
    assert_int_equal(wpk_lookup_differs("a=1;b=2", "b=2", differs), 0);
    assert_int_equal(wpk_lookup_differs("a=1;b=2", "", differs), 0);
    assert_int_equal(wpk_lookup_differs("a=1", "a=1;b=2", differs), 1);
    assert_int_equal(differs[0].has.size, 0);
    assert_int_equal(wpk_lookup_differs("ab=1", "a=1", differs), 1);
    assert_int_equal(wpk_lookup_differs("driver=535.104", "driver=535.9", differs), 0);
    assert_int_equal(wpk_lookup_differs("driver=535.104", "driver=550.104", differs), 1);
    assert_int_equal(wpk_lookup_differs("halide=21.0", "halide=21.1", differs), 1);
    for (int i = 0; i < 2 * WPK_LOOKUP_DIFFERS_MAX; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "f%d=1;", i);
    }
    assert_int_equal(wpk_lookup_differs("", many, differs), WPK_LOOKUP_DIFFERS_MAX);
}

/* A real operator: what is legal on a shape is for its space to say. */
static uint64_t found_for(const struct made *made, struct wpk_lookup lookup, double times_direct)
{
    lookup.accuracy.times_direct = times_direct;
    struct wpk_match match = find(made, &lookup);
    return match.served != NULL ? match.served->kernel_id : 0;
}

/* The fastest whose error fits, whichever class found it. */
static void a_class_takes_the_fastest_that_fits(void **state)
{
    struct wpk_served entries[] = {
        {ENTRY(1, A, HERE, NOW, 0), .accuracy = {1.25}, .times_direct = 1},
        {ENTRY(2, A, HERE, NOW, 0), .accuracy = {4}, .times_direct = 3.9},
        {ENTRY(3, A, HERE, NOW, 0), .accuracy = {16}, .times_direct = 9},
        {ENTRY(4, B, HERE, NOW, 0), .accuracy = {16}, .times_direct = 9}};
    struct made made;
    (void)state;
    entries[1].median_ns = 800;
    entries[2].median_ns = 600;
    make(&made, entries, 4);
    struct wpk_lookup lookup = ask(A);
    assert_int_equal(found_for(&made, lookup, 1.25), 1);
    assert_int_equal(found_for(&made, lookup, 4), 2); /* it was verified for this class */
    assert_int_equal(found_for(&made, lookup, 10), 3);
    assert_int_equal(found_for(&made, lookup, 16), 3);
    assert_int_equal(found_for(&made, lookup, 1), 0);
    entries[2].times_direct = 1.1;
    assert_int_equal(found_for(&made, lookup, 1.25), 3);
    assert_int_equal(found_for(&made, lookup, 4), 3);
    entries[1].pinned = true;
    assert_int_equal(found_for(&made, lookup, 4), 2);
    assert_int_equal(found_for(&made, lookup, 16), 3);
    assert_int_equal(found_for(&made, ask(B), 4), 0);
    assert_int_equal(found_for(&made, ask(B), 16), 4);
    lookup.conditions = WPK_CONDITIONS_COLD;
    assert_int_equal(found_for(&made, lookup, 16), 0);
}

static void define(struct wpk_lookup *lookup, struct wpk_program *program)
{
    struct wpk_diag diag = {0};
    if (wpk_program_parse("input X f32[8,16]\nconstant W f32[16,32]\noutput Y f32[8,32]\n"
                          "Y[i,j] = sum(k:16) X[i,k] * W[k,j]\n",
                          program, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    lookup->program = program;
    snprintf(lookup->family, sizeof lookup->family, FAMILY);
    snprintf(lookup->extents, sizeof lookup->extents, "8,8");
}

static void the_closest_legal_shape_is_nearest(void **state)
{
    struct wpk_served entries[] = {{ENTRY(1, A, HERE, NOW, 2), .vendor = true},
                                   {ENTRY(2, B, HERE, NOW, 1)},
                                   {ENTRY(3, B, THERE, NOW, 0)}};
    struct wpk_program program = {0};
    struct made made;
    (void)state;
    make(&made, entries, 3);
    struct wpk_lookup lookup = ask(C);
    define(&lookup, &program);
    struct wpk_match match = find(&made, &lookup);
    /* Entry 2 is nearer, but its candidate is none of this space; a vendor takes any shape. */
    assert_int_equal(match.level, WPK_MATCH_NEAREST_SHAPE);
    assert_ptr_equal(match.served, &entries[0]);
    assert_true(match.distance == 6);
    entries[0].vendor = false;
    match = find(&made, &lookup);
    assert_int_equal(match.level, WPK_MATCH_SAME_FAMILY);
    assert_ptr_equal(match.served, &entries[1]);
    assert_true(match.distance == 1);
    lookup.device = THERE;
    match = find(&made, &lookup);
    assert_ptr_equal(match.served, &entries[2]);
    snprintf(lookup.extents, sizeof lookup.extents, "8,8,8");
    assert_int_equal(find(&made, &lookup).level, WPK_MATCH_NONE);
    wpk_program_fini(&program);
}

/* A candidate of this very space is served whole for another shape. */
static void a_whole_schedule_is_taken_over(void **state)
{
    struct wpk_served entries[] = {{ENTRY(1, A, HERE, NOW, 1)}};
    struct wpk_program program = {0};
    struct wpk_space space;
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_candidate candidate;
    char text[4096];
    struct made made;
    int count = 0;
    (void)state;
    struct wpk_lookup lookup = ask(C);
    define(&lookup, &program);
    assert_int_equal(wpk_device_of_class(HERE, &options.device), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
    assert_int_equal(wpk_space_construct(&space, &candidate, 1, &count), WPK_OK);
    assert_int_equal(count, 1);
    assert_int_equal(wpk_candidate_encode(&space, &candidate, text, sizeof text), WPK_OK);
    entries[0].candidate = text;
    make(&made, entries, 1);
    struct wpk_match match = find(&made, &lookup);
    assert_int_equal(match.level, WPK_MATCH_NEAREST_SHAPE);
    assert_ptr_equal(match.served, &entries[0]);
    for (int i = 0; i < 16; i++) { /* a long program's space is not derived while a client waits */
        assert_int_equal(wpk_derive_copy_after(&program, program.stage_count - 1, NULL), WPK_OK);
    }
    assert_int_equal(find(&made, &lookup).level, WPK_MATCH_SAME_FAMILY);
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

/* The estimate of the lookup, as text: "nearest_shape 2000 20". */
static const char *estimate(const struct made *made, const struct wpk_lookup *lookup)
{
    static char text[80];
    struct wpk_estimate expected;
    struct wpk_match match = find(made, lookup);
    wpk_estimate_find(&made->version, lookup, &match, &expected);
    snprintf(text, sizeof text, "%s %.0f %.0f", wpk_estimate_name(expected.source),
             expected.median_ns, expected.mad_ns);
    return text;
}

/* A lookup of 8 x 8 with 20,000 operations: a roofline of 200 ns. The entries have 100 ns. */
static void the_best_source_gives_the_estimate(void **state)
{
    struct wpk_served entries[] = {{ENTRY(1, A, HERE, NOW, 2)},
                                   {ENTRY(2, B, HERE, NOW, 1)},
                                   {ENTRY(3, A, THERE, NOW, 0)},
                                   {ENTRY(4, C, HERE, BEFORE, 0)}};
    struct made made;
    (void)state;
    struct wpk_lookup lookup = ask(C);
    snprintf(lookup.family, sizeof lookup.family, FAMILY);
    snprintf(lookup.extents, sizeof lookup.extents, "8,8");
    entries[1].median_ns = 500;
    entries[2].median_ns = 600;
    entries[2].peak_flops_per_s = 2 * PEAK;
    entries[3].median_ns = 700;
    make(&made, entries, 4);
    assert_string_equal(estimate(&made, &lookup), "measured 700 10");
    make(&made, entries, 3); /* 50 ns there, 200 here */
    assert_string_equal(estimate(&made, &lookup), "elsewhere 2400 40");
    make(&made, entries, 2);
    assert_string_equal(estimate(&made, &lookup), "nearest_shape 1000 20");
    lookup.bytes = 8000; /* 800 ns */
    assert_string_equal(estimate(&made, &lookup), "nearest_shape 4000 80");
    lookup.bytes = 100;
    lookup.threads = 2; /* the family reaches 0.1 and 0.2 of its rooflines, of one thread */
    assert_string_equal(estimate(&made, &lookup), "family 500 0");
    lookup.device = THERE; /* nothing is known of its peaks */
    assert_string_equal(estimate(&made, &lookup), "none 0 0");
    lookup.device = HERE;
    lookup.threads = 1;
    entries[1].peak_flops_per_s = 0; /* operations alone are compared */
    assert_string_equal(estimate(&made, &lookup), "nearest_shape 1000 20");
    make(&made, entries, 0);
    assert_string_equal(estimate(&made, &lookup), "none 0 0");
}

/* Of the same shape elsewhere the kernel in the most similar circumstances counts. */
static void the_same_device_is_nearest_elsewhere(void **state)
{
    struct wpk_served entries[] = {
        {ENTRY(1, A, HERE, NOW, 0)}, {ENTRY(2, A, THERE, NOW, 0)}, {ENTRY(3, B, HERE, NOW, 0)}};
    struct made made;
    (void)state;
    struct wpk_lookup lookup = ask(C);
    snprintf(lookup.family, sizeof lookup.family, FAMILY);
    snprintf(lookup.extents, sizeof lookup.extents, "8,8");
    entries[0].threads = 2;
    entries[0].median_ns = 300;
    entries[1].median_ns = 400;
    entries[2].layouts = "any";
    entries[2].median_ns = 500;
    make(&made, entries, 3);
    assert_string_equal(estimate(&made, &lookup), "elsewhere 1000 20");
    make(&made, entries, 2); /* 50 ns with two threads, 200 ns with one */
    assert_string_equal(estimate(&made, &lookup), "elsewhere 1200 40");
}

static void names_are_those_of_the_metric(void **state)
{
    (void)state;
    for (int i = 0; i < WPK_MATCH_COUNT; i++) {
        assert_int_equal(wpk_metric_value(WPK_LABEL_MATCH, wpk_match_name((enum wpk_match_level)i)),
                         i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_key_is_exact),
        cmocka_unit_test(a_class_takes_the_fastest_that_fits),
        cmocka_unit_test(another_environment_is_not_exact),
        cmocka_unit_test(fields_are_compared),
        cmocka_unit_test(the_closest_legal_shape_is_nearest),
        cmocka_unit_test(a_whole_schedule_is_taken_over),
        cmocka_unit_test(the_best_source_gives_the_estimate),
        cmocka_unit_test(the_same_device_is_nearest_elsewhere),
        cmocka_unit_test(names_are_those_of_the_metric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
