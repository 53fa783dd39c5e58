/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes that are dealt out to threads: a plain walk over the loops meets each point once. */
#include "target/gpu/space/nest.h"

#include "common/cuda_machine.h"
#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POINTS_MAX 32768

/* A walk over all iterations of the loops of a box. */
struct walk {
    const struct wpk_nest *nest;
    const struct wpk_nest_loops *loops;
    int rank;
    int64_t extent[WPK_AXES_MAX];
    int64_t at[WPK_AXES_MAX], left[WPK_AXES_MAX]; /* where an iteration is, and what it covers */
    int64_t thread, threads;                      /* its thread's number; threads that there are */
    int lane, step; /* its number in the thread, and that of the iteration of serial loops */
    int hits[POINTS_MAX], by[POINTS_MAX], when[POINTS_MAX], lanes[POINTS_MAX];
};

static struct wpk_nest *new_nest(void)
{
    struct wpk_nest *nest = calloc(1, sizeof(*nest));
    assert_non_null(nest);
    wpk_nest_add(nest, WPK_NEST_STAGE, 0);
    return nest;
}

static struct wpk_nest_loops *loops_of(struct wpk_nest *nest)
{
    return &nest->entry[0].pure;
}

static void visit(struct walk *w)
{
    int64_t point = 0;
    for (int a = 0; a < w->rank; a++) {
        if (w->at[a] >= w->extent[a]) {
            return; /* behind a guard */
        }
        point = point * w->extent[a] + w->at[a];
    }
    assert_in_range(point, 0, POINTS_MAX - 1);
    w->hits[point]++;
    w->by[point] = (int)w->thread;
    w->when[point] = w->step;
    w->lanes[point] = w->lane;
}

static void walk(struct walk *w, int number)
{
    if (number == w->loops->count) {
        visit(w);
        return;
    }
    const struct wpk_nest_loop *loop = wpk_nest_at(w->nest, w->loops, number);
    int a = loop->axis, step = w->step;
    int64_t at = w->at[a], left = w->left[a], thread = w->thread, threads = w->threads;
    int64_t count = (left + loop->step - 1) / loop->step;
    if (loop->tail == WPK_TAIL_EXACT) {
        assert_int_equal(left % loop->step, 0);
    }
    for (int64_t i = 0; i < count; i++) {
        w->at[a] = at + i * loop->step;
        w->left[a] = loop->step;
        w->step = loop->binding == WPK_BIND_SERIAL ? step * (int)count + (int)i : step;
        w->lane = loop->binding == WPK_BIND_LANES ? (int)i : w->lane;
        if (wpk_bind_is_thread(loop->binding)) {
            w->thread = thread * count + i;
            w->threads = threads * count;
        }
        walk(w, number + 1);
    }
    w->at[a] = at;
    w->left[a] = left;
    w->step = step;
    w->thread = thread;
    w->threads = threads;
}

/* Walk over the box; each point is met once. Returns the number of its threads. */
static int64_t expect_each_once(struct walk *w, const struct wpk_nest *nest, int rank,
                                const int64_t *extent, int64_t threads)
{
    int64_t points = 1, used = 1;
    *w = (struct walk){
        .nest = nest, .loops = &nest->entry[0].pure, .rank = rank, .threads = 1, .lane = 0};
    for (int a = 0; a < rank; a++) {
        w->extent[a] = w->left[a] = extent[a];
        points *= extent[a];
    }
    walk(w, 0);
    for (int64_t p = 0; p < points; p++) {
        if (w->hits[p] != 1) {
            fail_msg("point %d of %d is met %d times", (int)p, (int)points, w->hits[p]);
        }
        used = w->by[p] + 1 > used ? w->by[p] + 1 : used;
    }
    assert_true(used <= threads);
    return used;
}

static void an_axis_is_dealt_out_in_rounds(void **state)
{
    (void)state;
    static const struct {
        int64_t extent, threads, vector;
        int loops;
        enum wpk_tail tail; /* of the first loop */
    } cases[] = {
        {64, 32, 1, 2, WPK_TAIL_EXACT},  {70, 32, 1, 2, WPK_TAIL_GUARD},
        {32, 32, 1, 1, WPK_TAIL_EXACT},  {7, 32, 1, 1, WPK_TAIL_EXACT},
        {256, 32, 4, 3, WPK_TAIL_EXACT}, {128, 32, 4, 2, WPK_TAIL_EXACT},
        {1, 1, 1, 1, WPK_TAIL_EXACT},
    };
    struct walk *w = malloc(sizeof(*w));
    assert_non_null(w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_nest *nest = new_nest();
        wpk_cuda_deal_along(nest, loops_of(nest), 0, cases[i].extent, cases[i].threads,
                            cases[i].vector);
        wpk_cuda_deal_lanes(nest, loops_of(nest), 0, cases[i].vector);
        assert_int_equal(loops_of(nest)->count, cases[i].loops);
        assert_int_equal(nest->loop[0].tail, cases[i].tail);
        expect_each_once(w, nest, 1, &cases[i].extent, cases[i].threads);
        for (int64_t p = 1; p < cases[i].extent; p++) { /* neighbours have neighbours */
            bool same = p % cases[i].vector != 0;
            bool next = (p / cases[i].vector) % cases[i].threads != 0;
            assert_true(!same || w->by[p] == w->by[p - 1]);
            assert_true(same || !next || w->by[p] == w->by[p - 1] + 1);
        }
        free(nest);
    }
    free(w);
}

static void a_tail_is_exact_where_the_step_divides(void **state)
{
    (void)state;
    assert_int_equal(wpk_cuda_tail(12, 4, WPK_TAIL_SHIFT), WPK_TAIL_EXACT);
    assert_int_equal(wpk_cuda_tail(12, 5, WPK_TAIL_SHIFT), WPK_TAIL_SHIFT);
    assert_int_equal(wpk_cuda_tail(12, 13, WPK_TAIL_GUARD), WPK_TAIL_GUARD);
    assert_int_equal(wpk_cuda_tail(1, 1, WPK_TAIL_GUARD), WPK_TAIL_EXACT);
}

/* Neighbours along the last axis go to neighbouring threads, at the same time. */
static void expect_neighbours(const struct walk *w, int64_t last, int64_t width)
{
    for (int64_t p = 1; p < last && p < width; p++) {
        assert_int_equal(w->by[p], w->by[p - 1] + 1);
        assert_int_equal(w->when[p], w->when[p - 1]);
    }
}

static void a_box_is_dealt_out_to_all_threads(void **state)
{
    (void)state;
    static const struct {
        int rank;
        int64_t extent[4], threads, used;
    } cases[] = {
        {1, {1}, 32, 1},           {1, {100}, 64, 64},           {2, {8, 32}, 128, 128},
        {2, {3, 40}, 128, 120},    {3, {4, 3, 16}, 256, 192},    {3, {2, 7, 5}, 1024, 70},
        {3, {6, 5, 33}, 256, 198}, {4, {2, 3, 4, 10}, 128, 120}, {2, {1, 1}, 32, 1},
        {2, {9, 1}, 4, 4},
    };
    struct walk *w = malloc(sizeof(*w));
    assert_non_null(w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_nest *nest = new_nest();
        int rank = cases[i].rank;
        wpk_cuda_deal(nest, loops_of(nest), rank, cases[i].extent,
                      (struct wpk_cuda_cut){.axis = -1}, cases[i].threads, 1);
        int64_t used = expect_each_once(w, nest, rank, cases[i].extent, cases[i].threads);
        if (used != cases[i].used) {
            fail_msg("case %zu uses %d threads", i, (int)used);
        }
        expect_neighbours(w, cases[i].extent[rank - 1], cases[i].threads);
        free(nest);
    }
    free(w);
}

static void drawn_boxes_are_dealt_out(void **state)
{
    (void)state;
    struct wpk_rng rng;
    struct walk *w = malloc(sizeof(*w));
    assert_non_null(w);
    wpk_rng_seed(&rng, 7);
    for (int i = 0; i < 300; i++) {
        struct wpk_nest *nest = new_nest();
        int rank = (int)wpk_rng_between(&rng, 1, 4);
        int64_t extent[4], threads = (int64_t)1 << wpk_rng_between(&rng, 0, 9);
        int64_t lanes = wpk_rng_below(&rng, 3) == 0 ? 4 : 1;
        for (int a = 0; a < rank; a++) {
            extent[a] = wpk_rng_between(&rng, 1, 9);
        }
        extent[rank - 1] *= lanes;
        int way = (int)wpk_rng_below(&rng, 3);
        if (way == 0) {
            wpk_cuda_deal_apart(nest, loops_of(nest), rank, extent, threads);
        } else if (way == 1 ||
                   !wpk_cuda_deal_rows(nest, loops_of(nest), rank, extent, threads, lanes)) {
            wpk_cuda_deal(nest, loops_of(nest), rank, extent, (struct wpk_cuda_cut){.axis = -1},
                          threads, lanes);
        }
        expect_each_once(w, nest, rank, extent, threads);
        free(nest);
    }
    free(w);
}

static void rows_shorter_than_a_move_have_no_lanes(void **state)
{
    (void)state;
    struct wpk_nest *nest = new_nest();
    const int64_t extent[] = {5, 2};
    wpk_cuda_deal(nest, loops_of(nest), 2, extent, (struct wpk_cuda_cut){.axis = -1}, 32, 4);
    for (int i = 0; i < loops_of(nest)->count; i++) {
        assert_int_not_equal(nest->loop[i].binding, WPK_BIND_LANES);
    }
    free(nest);
}

/* A loop around left 6 of 15 elements: rows divide these, and move inwards at the end. */
static void an_axis_that_is_cut_keeps_its_whole_parts(void **state)
{
    (void)state;
    struct wpk_nest *nest = new_nest();
    const int64_t extent[] = {6, 8};
    wpk_cuda_deal(nest, loops_of(nest), 2, extent, (struct wpk_cuda_cut){0, 15}, 32, 1);
    const struct wpk_nest_loop *rows = &nest->loop[0];
    assert_int_equal(rows->axis, 0);
    assert_int_equal(rows->step, 3); /* 32 / 8 = 4 does not divide 6 */
    assert_int_equal(rows->tail, WPK_TAIL_EXACT);
    free(nest);
    nest = new_nest();
    wpk_cuda_deal(nest, loops_of(nest), 2, extent, (struct wpk_cuda_cut){0, 16}, 32, 1);
    assert_int_equal(nest->loop[0].step, 3);
    assert_int_equal(nest->loop[0].tail, WPK_TAIL_SHIFT);
    free(nest);
}

/* The bank of each point's word, where rows of `row` elements are followed by four more: what a
 * group of threads stores at a time lies in different banks. */
static void expect_no_conflicts(const struct walk *w, int64_t rows, int64_t row, int64_t threads)
{
    int used[WPK_CUDA_BANKS] = {0};
    for (int64_t p = 0; p < rows * row; p++) {
        int64_t word = p / row * (row + 4) + p % row;
        bool first = w->by[p] < threads && w->when[p] == 0;
        used[word % WPK_CUDA_BANKS] += first;
    }
    for (int b = 0; b < WPK_CUDA_BANKS; b++) {
        assert_true(used[b] <= 1);
    }
}

static void padded_rows_are_stored_without_conflicts(void **state)
{
    (void)state;
    static const int64_t widths[] = {8, 16, 32};
    struct walk *w = malloc(sizeof(*w));
    assert_non_null(w);
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        const int64_t extent[] = {32, widths[i]};
        for (int64_t lanes = 1; lanes <= 4; lanes += 3) {
            struct wpk_nest *nest = new_nest();
            assert_true(wpk_cuda_deal_rows(nest, loops_of(nest), 2, extent, 64, lanes));
            expect_each_once(w, nest, 2, extent, 64);
            /* a quarter of a warp moves 16 bytes each, a warp 4 bytes each: 32 words */
            expect_no_conflicts(w, 32, widths[i], WPK_CUDA_WARP / lanes);
            free(nest);
        }
    }
    free(w);
}

static void few_rows_or_terms_are_not_dealt_out_by_eight(void **state)
{
    (void)state;
    static const struct {
        int rank;
        int64_t extent[2], threads, lanes;
    } cases[] = {
        {1, {64}, 64, 1},     /* there are no rows */
        {2, {7, 16}, 64, 1},  /* fewer than eight */
        {2, {32, 6}, 64, 1},  /* no four terms */
        {2, {32, 6}, 64, 4},  /* no moves of 16 bytes */
        {2, {32, 16}, 16, 1}, /* not a warp */
        {2, {32, 16}, 4, 4},  /* not eight threads */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_nest *nest = new_nest();
        assert_false(wpk_cuda_deal_rows(nest, loops_of(nest), cases[i].rank, cases[i].extent,
                                        cases[i].threads, cases[i].lanes));
        assert_int_equal(loops_of(nest)->count, 0);
        free(nest);
    }
}

/* 16 rows of 6 in 32 threads: five threads' worth of rows would fit, four divide. Rows that are
 * stored together are four apart. */
static void short_rows_are_dealt_out_far_apart(void **state)
{
    (void)state;
    const int64_t extent[] = {16, 6};
    struct walk *w = malloc(sizeof(*w));
    struct wpk_nest *nest = new_nest();
    assert_non_null(w);
    wpk_cuda_deal_apart(nest, loops_of(nest), 2, extent, 32);
    assert_int_equal(expect_each_once(w, nest, 2, extent, 32), 24);
    for (int64_t row = 0; row < 16; row++) {
        assert_int_equal(w->by[row * 6] / 6, row / 4);
        assert_int_equal(w->when[row * 6], row % 4);
    }
    free(nest);
    nest = new_nest(); /* a row is longer than the threads: they run along it */
    wpk_cuda_deal_apart(nest, loops_of(nest), 2, (const int64_t[]){3, 40}, 32);
    expect_each_once(w, nest, 2, (const int64_t[]){3, 40}, 32);
    expect_neighbours(w, 40, 32);
    free(nest);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_axis_is_dealt_out_in_rounds),
        cmocka_unit_test(a_tail_is_exact_where_the_step_divides),
        cmocka_unit_test(a_box_is_dealt_out_to_all_threads),
        cmocka_unit_test(drawn_boxes_are_dealt_out),
        cmocka_unit_test(rows_shorter_than_a_move_have_no_lanes),
        cmocka_unit_test(an_axis_that_is_cut_keeps_its_whole_parts),
        cmocka_unit_test(padded_rows_are_stored_without_conflicts),
        cmocka_unit_test(few_rows_or_terms_are_not_dealt_out_by_eight),
        cmocka_unit_test(short_rows_are_dealt_out_far_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
