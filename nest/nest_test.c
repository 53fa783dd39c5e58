/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: how much of an entry is needed inside a loop of its reader, at a pure loop and at a
 * reduction's, in the middle and at the end. */
#include "nest/nest.h"

#include "ir/notation/notation.h"
#include "nest/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct subject {
    struct wpk_program program;
    struct wpk_nest nest;
};

static void set_up(struct subject *s, const char *text)
{
    struct wpk_diag diag = {0};
    if (wpk_program_parse(text, &s->program, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    s->nest = (struct wpk_nest){.program = &s->program, .tile.place.entry = -1};
}

/* Add the stage that writes the tensor, computed inside a loop of entry `at`. */
static struct wpk_nest_entry *add(struct subject *s, const char *tensor, struct wpk_nest_place at)
{
    int stage = wpk_program_writer(&s->program, wpk_program_find_tensor(&s->program, tensor));
    struct wpk_nest_entry *entry = wpk_nest_add(&s->nest, WPK_NEST_STAGE, stage);
    entry->place = at;
    wpk_nest_find_region(&s->nest);
    return entry;
}

static const struct wpk_nest_place at_root = {.entry = -1};

static void loop(struct subject *s, struct wpk_nest_loops *loops, int axis, int64_t step,
                 enum wpk_tail tail)
{
    const struct wpk_nest_loop made = {.axis = axis, .step = step, .tail = tail};
    wpk_nest_add_loop(&s->nest, loops, &made);
}

/* ---- a window: three rows more than the tile, but none beyond the ends of A */

#define WINDOW                                                                                     \
    "input X f32[64,8]\nintermediate A f32[64,8]\noutput Y f32[61,8]\n"                            \
    "A[i,j] = exp(X[i,j])\nY[i,j] = A[i,j] + A[i+3,j]\n"

static void test_a_window(void **state)
{
    (void)state;
    struct subject *s = calloc(1, sizeof(*s));
    set_up(s, WINDOW);
    struct wpk_nest_entry *y = add(s, "Y", at_root);
    loop(s, &y->pure, 0, 20, WPK_TAIL_SHIFT); /* blocks of 5 tiles */
    loop(s, &y->pure, 0, 4, WPK_TAIL_SHIFT);
    loop(s, &y->pure, 1, 1, WPK_TAIL_EXACT);
    assert_int_equal(wpk_nest_iterations(&s->nest, y, &y->pure, 0), 4);
    assert_int_equal(wpk_nest_iterations(&s->nest, y, &y->pure, 1), 5);
    const struct wpk_nest_entry *in_block = add(s, "A", (struct wpk_nest_place){0, false, 0});
    assert_int_equal(in_block->extent[0], 20 + 3);
    assert_int_equal(in_block->extent[1], 8);
    /* the last block ends with a tile that overlaps the one before it by 3 */
    assert_int_equal(in_block->least[0], 20 - 3 + 3);
    s->nest.entry_count = 1;
    const struct wpk_nest_entry *in_tile = add(s, "A", (struct wpk_nest_place){0, false, 2});
    assert_int_equal(in_tile->extent[0], 4 + 3);
    assert_int_equal(in_tile->least[0], 4 + 3);
    assert_int_equal(in_tile->extent[1], 1);
    wpk_program_fini(&s->program);
    free(s);
}

/* ---- a reduction's loop: an operand's panel for each part of the sum */

#define PRODUCT                                                                                    \
    "input A f32[96,64]\ninput B f32[64,48]\nintermediate P f32[96,64]\n"                          \
    "intermediate C f32[96,48]\noutput Y f32[96,48]\n"                                             \
    "P[i,k] = exp(A[i,k])\nC[i,j] = sum.f32(k:64) P[i,k] * B[k,j]\nY[i,j] = C[i,j] + 1\n"

static void test_inside_a_reduction(void **state)
{
    (void)state;
    struct subject *s = calloc(1, sizeof(*s));
    set_up(s, PRODUCT);
    struct wpk_nest_entry *y = add(s, "Y", at_root);
    loop(s, &y->pure, 0, 24, WPK_TAIL_EXACT);
    struct wpk_nest_entry *c = add(s, "C", (struct wpk_nest_place){0, false, 0});
    assert_int_equal(c->extent[0], 24);
    assert_int_equal(c->extent[1], 48);
    assert_int_equal(c->extent[2], 64);
    loop(s, &c->update, 2, 16, WPK_TAIL_EXACT);
    loop(s, &c->update, 0, 6, WPK_TAIL_EXACT);
    loop(s, &c->update, 2, 1, WPK_TAIL_EXACT);
    for (int at = 0; at < 3; at++) {
        static const int64_t rows[] = {24, 6, 6}, terms[] = {16, 16, 1};
        const struct wpk_nest_entry *p = add(s, "P", (struct wpk_nest_place){1, true, at});
        assert_int_equal(p->extent[0], rows[at]);
        assert_int_equal(p->extent[1], terms[at]);
        s->nest.entry_count = 2;
    }
    /* one place further out it is needed for the whole sum */
    const struct wpk_nest_entry *p = add(s, "P", (struct wpk_nest_place){0, false, 0});
    assert_int_equal(p->extent[0], 24);
    assert_int_equal(p->extent[1], 64);
    wpk_program_fini(&s->program);
    free(s);
}

/* ---- readers that read elsewhere: what both need together, wherever each of them lies */

#define SHIFTED                                                                                    \
    "input X f32[64]\nintermediate S f32[64]\nintermediate A f32[60]\nintermediate B f32[60]\n"    \
    "output Y f32[50]\n"                                                                           \
    "S[i] = exp(X[i])\nA[i] = S[i] * 2\nB[i] = S[i] + 1\nY[i] = A[i] + B[i+5]\n"

static void test_readers_that_read_elsewhere(void **state)
{
    (void)state;
    struct subject *s = calloc(1, sizeof(*s));
    set_up(s, SHIFTED);
    struct wpk_nest_entry *y = add(s, "Y", at_root);
    const struct wpk_nest_place inside = {0, false, 0};
    loop(s, &y->pure, 0, 10, WPK_TAIL_EXACT);
    assert_int_equal(add(s, "B", inside)->extent[0], 10);
    assert_int_equal(add(s, "A", inside)->extent[0], 10);
    assert_int_equal(add(s, "S", inside)->extent[0], 15);
    wpk_program_fini(&s->program);
    free(s);
}

/* ---- loads that move apart: no iteration shows how much others need */

#define MIRRORED                                                                                   \
    "input X f32[64]\nintermediate S f32[64]\noutput Y f32[64]\n"                                  \
    "S[i] = exp(X[i])\nY[i] = S[i] + S[-1*i+63]\n"

static void test_loads_that_move_apart(void **state)
{
    (void)state;
    struct subject *s = calloc(1, sizeof(*s));
    set_up(s, MIRRORED);
    struct wpk_nest_entry *y = add(s, "Y", at_root);
    loop(s, &y->pure, 0, 8, WPK_TAIL_EXACT);
    const struct wpk_nest_entry *inside = add(s, "S", (struct wpk_nest_place){0, false, 0});
    assert_int_equal(inside->extent[0], 64);
    assert_int_equal(inside->least[0], 1);
    wpk_program_fini(&s->program);
    free(s);
}

/* ---- divisions: their boxes are as large in every iteration if it begins at a multiple */

#define DIVIDED                                                                                    \
    "input X f32[13]\nintermediate S f32[13]\nintermediate R f32[100]\noutput Y f32[99]\n"         \
    "S[j] = exp(X[j])\nR[q] = S[q/9] * S[q/9+1]\nY[i] = R[i] + R[i+1]\n"

static void test_divisions(void **state)
{
    (void)state;
    static const int64_t steps[] = {24, 27}, extents[] = {13, 5}, least[] = {1, 5};
    for (int i = 0; i < 2; i++) {
        struct subject *s = calloc(1, sizeof(*s));
        const struct wpk_nest_place inside = {0, false, 0};
        set_up(s, DIVIDED);
        struct wpk_nest_entry *y = add(s, "Y", at_root);
        loop(s, &y->pure, 0, steps[i], WPK_TAIL_EXACT);
        assert_int_equal(add(s, "R", inside)->extent[0], steps[i] + 1);
        const struct wpk_nest_entry *divided = add(s, "S", inside);
        assert_int_equal(divided->extent[0], extents[i]);
        assert_int_equal(divided->least[0], least[i]);
        wpk_program_fini(&s->program);
        free(s);
    }
}

/* A place before all loops of its reader, parallel ones included. */
static void test_a_place_before_all_loops(void **state)
{
    (void)state;
    struct subject *s = calloc(1, sizeof(*s));
    struct wpk_diag diag = {0};
    set_up(s, WINDOW);
    struct wpk_nest_entry *y = add(s, "Y", at_root);
    loop(s, &y->pure, 0, 1, WPK_TAIL_EXACT);
    loop(s, &y->pure, 1, 1, WPK_TAIL_EXACT);
    s->nest.loop[0].binding = WPK_BIND_PARALLEL;
    s->nest.loop[1].binding = WPK_BIND_PARALLEL;
    struct wpk_nest_entry *a = add(s, "A", (struct wpk_nest_place){0, false, -1});
    assert_int_equal(a->extent[0], 64);
    loop(s, &a->pure, 0, 1, WPK_TAIL_EXACT);
    loop(s, &a->pure, 1, 1, WPK_TAIL_EXACT);
    if (wpk_nest_check(&s->nest, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    wpk_program_fini(&s->program);
    free(s);
}

/* Everything that is printed changes the hash. */
static void test_hashes(void **state)
{
    (void)state;
    struct subject *s = calloc(1, sizeof(*s));
    uint64_t hash[24];
    int count = 0;
    set_up(s, WINDOW);
    struct wpk_nest_entry *y = add(s, "Y", at_root);
    loop(s, &y->pure, 0, 20, WPK_TAIL_SHIFT);
    loop(s, &y->pure, 0, 1, WPK_TAIL_EXACT);
    loop(s, &y->pure, 1, 1, WPK_TAIL_EXACT);
    struct wpk_nest_entry *a = add(s, "A", (struct wpk_nest_place){0, false, 1});
    const struct wpk_nest_entry plain = *a;
    hash[count++] = wpk_nest_hash(&s->nest);
    a->scope = WPK_SCOPE_HEAP;
    hash[count++] = wpk_nest_hash(&s->nest);
    *a = plain;
    a->slides = true;
    hash[count++] = wpk_nest_hash(&s->nest);
    *a = plain;
    a->align[0] = 4;
    hash[count++] = wpk_nest_hash(&s->nest);
    *a = plain;
    a->align[1] = 4;
    hash[count++] = wpk_nest_hash(&s->nest);
    *a = plain;
    a->reordered = true;
    a->storage[1] = 1;
    hash[count++] = wpk_nest_hash(&s->nest);
    a->storage[0] = 1;
    a->storage[1] = 0;
    hash[count++] = wpk_nest_hash(&s->nest);
    *a = plain;
    a->expanded = true;
    hash[count++] = wpk_nest_hash(&s->nest);
    *a = plain;
    a->row_padding = 4;
    hash[count++] = wpk_nest_hash(&s->nest);
    *a = plain;
    a->spacing = 4;
    hash[count++] = wpk_nest_hash(&s->nest);
    a->spaced = 1;
    hash[count++] = wpk_nest_hash(&s->nest);
    *a = plain;
    a->depth = 2;
    hash[count++] = wpk_nest_hash(&s->nest);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            assert_true(hash[i] != hash[j]);
        }
    }
    wpk_program_fini(&s->program);
    free(s);
}

static void test_limits(void **state)
{
    (void)state;
    struct subject *s = calloc(1, sizeof(*s));
    set_up(s, WINDOW);
    struct wpk_nest_entry *y = add(s, "Y", at_root);
    for (int i = 0; i <= WPK_NEST_LOOPS_MAX; i++) {
        assert_false(s->nest.full);
        loop(s, &y->pure, 0, 1, WPK_TAIL_EXACT);
    }
    assert_true(s->nest.full);
    assert_int_equal(s->nest.loop_count, WPK_NEST_LOOPS_MAX);
    s->nest.full = false;
    while (s->nest.entry_count < WPK_NEST_ENTRIES_MAX) {
        (void)wpk_nest_add(&s->nest, WPK_NEST_STAGE, 0);
    }
    assert_false(s->nest.full);
    assert_non_null(wpk_nest_add(&s->nest, WPK_NEST_STAGE, 0));
    assert_true(s->nest.full);
    wpk_program_fini(&s->program);
    free(s);
}

static void test_what_may_lie_in_an_output(void **state)
{
    (void)state;
#define SOFTMAX(of, divided)                                                                       \
    "input X f32[4,8]\nintermediate E " of "\nintermediate S f32[4]\noutput Y f32[4,8]\n"          \
    "E[i,j] = f32(exp(X[i,j]))\nS[i] = sum.f32(k:8) f32(E[i,k])\nY[i,j] = " divided " / S[i]\n"
    static const struct {
        const char *text;
        bool may;
    } cases[] = {
        {SOFTMAX("f32[4,8]", "E[i,j]"), true},
        {SOFTMAX("f32[4,8]", "E[i,7-j]"), false},
        {SOFTMAX("f32[4,8]", "(E[i,j] + E[i,0])"), false},
        {SOFTMAX("f32[4,8]", "X[i,j]"), false},
        {SOFTMAX("f64[4,8]", "f32(E[i,j])"), false},
        {"input A f32[4,8]\ninput B f32[8,8]\nintermediate T f32[4,8]\noutput Y f32[4,8]\n"
         "T[i,j] = sum.f32(k:8) A[i,k] * B[k,j]\nY[i,j] = max(T[i,j], 0)\n",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wpk_program program = {0};
        assert_int_equal(wpk_program_parse(cases[i].text, &program, NULL), WPK_OK);
        assert_int_equal(wpk_program_may_use_output(&program), cases[i].may);
        wpk_program_fini(&program);
    }
}

/* Y over one loop; the tail of its innermost loop is `tail`. */
static int in_place_of(const char *text, enum wpk_tail tail)
{
    struct subject *s = calloc(1, sizeof(*s));
    set_up(s, text);
    struct wpk_nest_entry *y = add(s, "Y", at_root);
    loop(s, &y->pure, 0, 1, WPK_TAIL_EXACT);
    loop(s, &y->pure, 1, 3, tail);
    loop(s, &y->pure, 1, 1, WPK_TAIL_EXACT);
    if (wpk_program_find_tensor(&s->program, "T") >= 0) {
        const struct wpk_nest_place inside = {.entry = 0, .loop = 1};
        struct wpk_nest_entry *t = add(s, "T", inside);
        loop(s, &t->pure, 1, 1, WPK_TAIL_EXACT);
    }
    int tensor = wpk_nest_in_place(&s->nest);
    wpk_program_fini(&s->program);
    free(s);
    return tensor;
}

static void test_the_output_in_an_input(void **state)
{
    (void)state;
#define IN_PLACE(declared, read)                                                                   \
    "input A f32[4,8]\ninput X " declared "\noutput Y f32[4,8]\nY[i,j] = A[i,0] + " read "\n"
#define WITH_SUM(read)                                                                             \
    "input A f32[4,8]\ninput X f32[4,8]\nintermediate T f32[4,8]\noutput Y f32[4,8]\n"             \
    "T[i,j] = sum.f32(k:8) A[i,k] * " read "\nY[i,j] = max(T[i,j] + X[i,j], 0)\n"
    static const struct {
        const char *text;
        enum wpk_tail tail;
        int tensor;
    } cases[] = {
        {IN_PLACE("f32[4,8]", "X[i,j]"), WPK_TAIL_GUARD, 1},
        {IN_PLACE("f32[4,8]", "relu(X[i,j]) * X[i,j]"), WPK_TAIL_PREDICATE, 1},
        {IN_PLACE("f32[4,8]", "X[i,j]"), WPK_TAIL_SHIFT, -1}, /* an element twice */
        {IN_PLACE("f32[4,8]", "X[i,7-j]"), WPK_TAIL_GUARD, -1},
        {IN_PLACE("f32[4,8]", "X[i,j] + X[0,j]"), WPK_TAIL_GUARD, -1},
        {IN_PLACE("f32[4,9]", "X[i,j]"), WPK_TAIL_GUARD, -1},
        {IN_PLACE("i32[4,8]", "f32(X[i,j])"), WPK_TAIL_GUARD, -1},
        {IN_PLACE("f32[4,8] pad 0:0,1:1", "X[i,j]"), WPK_TAIL_GUARD, -1},
        {WITH_SUM("2"), WPK_TAIL_GUARD, 1},
        {WITH_SUM("X[k/2,j]"), WPK_TAIL_GUARD, -1}, /* the sum reads it, too */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int tensor = in_place_of(cases[i].text, cases[i].tail);
        if (tensor != cases[i].tensor) {
            fail_msg("case %zu: tensor %d", i, tensor);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_window),
        cmocka_unit_test(test_inside_a_reduction),
        cmocka_unit_test(test_readers_that_read_elsewhere),
        cmocka_unit_test(test_loads_that_move_apart),
        cmocka_unit_test(test_divisions),
        cmocka_unit_test(test_a_place_before_all_loops),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_what_may_lie_in_an_output),
        cmocka_unit_test(test_the_output_in_an_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
