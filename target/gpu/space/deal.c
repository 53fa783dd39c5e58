/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/nest.h"

#include "common/cuda_machine.h"
#include "target/gpu/space/moves.h"

#define BANKED_ROWS 8 /* that begin in banks of their own, if they are padded */

void wpk_cuda_add_loop(struct wpk_nest *nest, struct wpk_nest_loops *loops, int axis,
                       enum wpk_loop_binding binding, int64_t step, enum wpk_tail tail)
{
    wpk_nest_add_loop(
        nest, loops,
        &(struct wpk_nest_loop){.axis = axis, .binding = binding, .step = step, .tail = tail});
}

enum wpk_tail wpk_cuda_tail(int64_t extent, int64_t step, enum wpk_tail tail)
{
    return extent % step == 0 ? WPK_TAIL_EXACT : tail;
}

void wpk_cuda_deal_along(struct wpk_nest *nest, struct wpk_nest_loops *loops, int axis,
                         int64_t extent, int64_t threads, int64_t vector)
{
    if (extent > threads * vector) {
        wpk_cuda_add_loop(nest, loops, axis, WPK_BIND_SERIAL, threads * vector,
                          wpk_cuda_tail(extent, threads * vector, WPK_TAIL_GUARD));
    }
    wpk_cuda_add_loop(nest, loops, axis, WPK_BIND_THREAD_X, vector, WPK_TAIL_EXACT);
}

void wpk_cuda_deal_lanes(struct wpk_nest *nest, struct wpk_nest_loops *loops, int axis,
                         int64_t vector)
{
    if (vector > 1) {
        wpk_cuda_add_loop(nest, loops, axis, WPK_BIND_LANES, 1, WPK_TAIL_EXACT);
    }
}

/* The largest divisor of `count` that is at most `most`. */
static int64_t divisor(int64_t count, int64_t most)
{
    int64_t found = most < count ? most : count;
    while (count % found != 0) {
        found--;
    }
    return found;
}

void wpk_cuda_deal(struct wpk_nest *nest, struct wpk_nest_loops *loops, int rank,
                   const int64_t *extent, struct wpk_cuda_cut cut, int64_t threads, int64_t lanes)
{
    int x = rank - 1, y = 0, z = 0;
    lanes = extent[x] < lanes ? 1 : lanes; /* rows that are shorter than a move */
    for (int a = 1; a < x; a++) {
        y = extent[a] > extent[y] ? a : y;
    }
    if (cut.axis < 0 && x > 0 && extent[x] < WPK_CUDA_WARP * lanes && extent[x - 1] > 1) {
        y = x - 1; /* short rows lie one behind the other */
    }
    for (int a = 0; a < x; a++) {
        z = a != y && (z == y || extent[a] > extent[z]) ? a : z;
    }
    int64_t width = extent[x] / lanes < threads ? extent[x] / lanes : threads;
    int64_t rows = x > 0 ? threads / width : 1;
    rows = rows < extent[y] ? rows : extent[y];
    while (y == cut.axis && extent[y] % rows != 0) {
        rows--;
    }
    int64_t planes = z != y && cut.axis < 0 ? divisor(extent[z], threads / width / rows) : 1;
    for (int a = 0; a < x; a++) {
        int64_t step = a == y ? rows : a == z ? planes : 1;
        if (extent[a] > step) {
            enum wpk_tail tail = a == cut.axis ? wpk_cuda_tail(cut.extent, step, WPK_TAIL_SHIFT)
                                               : wpk_cuda_tail(extent[a], step, WPK_TAIL_GUARD);
            wpk_cuda_add_loop(nest, loops, a, WPK_BIND_SERIAL, step, tail);
        }
    }
    if (extent[x] > width * lanes) {
        wpk_cuda_add_loop(nest, loops, x, WPK_BIND_SERIAL, width * lanes,
                          wpk_cuda_tail(extent[x], width * lanes, WPK_TAIL_GUARD));
    }
    if (planes > 1) {
        wpk_cuda_add_loop(nest, loops, z, rows > 1 ? WPK_BIND_THREAD_Z : WPK_BIND_THREAD_Y, 1,
                          WPK_TAIL_EXACT);
    }
    if (rows > 1) {
        wpk_cuda_add_loop(nest, loops, y, WPK_BIND_THREAD_Y, 1, WPK_TAIL_EXACT);
    }
    wpk_cuda_add_loop(nest, loops, x, WPK_BIND_THREAD_X, lanes, WPK_TAIL_EXACT);
    wpk_cuda_deal_lanes(nest, loops, x, lanes);
}

bool wpk_cuda_deal_rows(struct wpk_nest *nest, struct wpk_nest_loops *loops, int rank,
                        const int64_t *extent, int64_t threads, int64_t lanes)
{
    int x = rank - 1, y = x - 1, z = 0;
    int64_t along = lanes > 1 ? 1 : WPK_CUDA_VECTOR_ELEMENTS;
    if (x == 0) {
        return false;
    }
    for (int a = x - 2; a >= 0; a--) { /* rows that lie together, if there are enough */
        y = extent[y] < BANKED_ROWS && extent[a] > extent[y] ? a : y;
    }
    for (int a = 0; a < x; a++) {
        z = a != y && (z == y || extent[a] > extent[z]) ? a : z;
    }
    int64_t left = threads / (BANKED_ROWS * along), columns = along * lanes;
    if (extent[x] % columns != 0 || extent[y] < BANKED_ROWS || left == 0) {
        return false;
    }
    int64_t width = divisor(extent[x] / columns, left);
    int64_t rows = divisor((extent[y] + BANKED_ROWS - 1) / BANKED_ROWS, left / width);
    int64_t planes = z != y && extent[z] > 1 ? divisor(extent[z], left / width / rows) : 1;
    for (int a = 0; a < x; a++) {
        int64_t step = a == z ? planes : 1;
        if (a != y && extent[a] > step) {
            wpk_cuda_add_loop(nest, loops, a, WPK_BIND_SERIAL, step, WPK_TAIL_EXACT);
        }
    }
    if (extent[y] > rows * BANKED_ROWS) {
        wpk_cuda_add_loop(nest, loops, y, WPK_BIND_SERIAL, rows * BANKED_ROWS,
                          wpk_cuda_tail(extent[y], rows * BANKED_ROWS, WPK_TAIL_GUARD));
    }
    if (extent[x] > width * columns) {
        wpk_cuda_add_loop(nest, loops, x, WPK_BIND_SERIAL, width * columns, WPK_TAIL_EXACT);
    }
    if (planes > 1) {
        wpk_cuda_add_loop(nest, loops, z, WPK_BIND_THREAD_Z, 1, WPK_TAIL_EXACT);
    }
    if (rows > 1) {
        wpk_cuda_add_loop(nest, loops, y, WPK_BIND_THREAD_Z, BANKED_ROWS,
                          wpk_cuda_tail(extent[y], BANKED_ROWS, WPK_TAIL_GUARD));
    }
    wpk_cuda_add_loop(nest, loops, x, lanes > 1 ? WPK_BIND_THREAD_Y : WPK_BIND_THREAD_Z, columns,
                      WPK_TAIL_EXACT);
    wpk_cuda_add_loop(nest, loops, y, lanes > 1 ? WPK_BIND_THREAD_X : WPK_BIND_THREAD_Y, 1,
                      WPK_TAIL_EXACT);
    wpk_cuda_add_loop(nest, loops, x, lanes > 1 ? WPK_BIND_LANES : WPK_BIND_THREAD_X, 1,
                      WPK_TAIL_EXACT);
    return true;
}

void wpk_cuda_deal_apart(struct wpk_nest *nest, struct wpk_nest_loops *loops, int rank,
                         const int64_t *extent, int64_t threads)
{
    int64_t width = extent[rank - 1];
    int y = rank > 1 ? rank - 2 : 0;
    for (int a = 0; a < rank - 1; a++) {
        y = extent[a] > extent[y] ? a : y;
    }
    int64_t rows = width <= threads ? divisor(extent[y], threads / width) : 1;
    if (rank == 1 || rows == 1) {
        wpk_cuda_deal(nest, loops, rank, extent, (struct wpk_cuda_cut){.axis = -1}, threads, 1);
        return;
    }
    for (int a = 0; a < rank - 1; a++) {
        if (a != y && extent[a] > 1) {
            wpk_cuda_add_loop(nest, loops, a, WPK_BIND_SERIAL, 1, WPK_TAIL_EXACT);
        }
    }
    wpk_cuda_add_loop(nest, loops, y, WPK_BIND_THREAD_Y, extent[y] / rows, WPK_TAIL_EXACT);
    wpk_cuda_add_loop(nest, loops, rank - 1, WPK_BIND_THREAD_X, 1, WPK_TAIL_EXACT);
    if (extent[y] > rows) {
        wpk_cuda_add_loop(nest, loops, y, WPK_BIND_SERIAL, 1, WPK_TAIL_EXACT);
    }
}
