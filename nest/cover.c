/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/reach.h"

#include "nest/nest.h"

/* The loops over one axis, as an interval [begin, end) goes through them. */
struct cover {
    const struct wpk_nest_loop *loop[WPK_NEST_DEPTH_MAX];
    int number[WPK_NEST_DEPTH_MAX]; /* in the definition */
    int count, tile;
    int64_t begin, end;
};

/* From steps of the loop to what they step over, of which there are `of`. */
static void step_over(struct cover *c, int i, int64_t step, int64_t of)
{
    enum wpk_tail tail = c->loop[i]->tail;
    c->begin *= step;
    c->end *= step;
    if (tail == WPK_TAIL_SHIFT) {
        c->begin = c->begin > of - step ? of - step : c->begin;
    }
    if (tail == WPK_TAIL_SHIFT || tail == WPK_TAIL_GUARD || tail == WPK_TAIL_PREDICATE) {
        c->end = c->end > of ? of : c->end;
        c->begin = c->begin >= c->end ? c->end - 1 : c->begin;
    }
}

/* The first or the last iteration of the loop, if it stands at or around the inner one. */
static bool pick(struct cover *c, int i, const struct wpk_nest_iterations *at)
{
    bool fixed = c->number[i] <= at->inner;
    c->begin = fixed && at->last ? c->end - 1 : c->begin;
    c->end = fixed ? c->begin + 1 : c->end;
    return fixed;
}

static int64_t steps(int64_t of, int64_t step)
{
    return (of + step - 1) / step;
}

/* Blocks of tiles, then the tile: elements of the axis. */
static void cover_tiles(struct cover *c, int64_t length, const struct wpk_nest_iterations *at)
{
    int64_t count[WPK_NEST_DEPTH_MAX];
    for (int i = c->tile; i >= 0; i--) {
        count[i] = i == c->tile ? steps(length, c->loop[i]->step)
                                : steps(count[i + 1], c->loop[i]->step / c->loop[i + 1]->step);
    }
    c->begin = 0;
    c->end = count[0];
    for (int i = 0; i <= c->tile; i++) {
        (void)pick(c, i, at);
        if (i < c->tile) {
            step_over(c, i, c->loop[i]->step / c->loop[i + 1]->step, count[i + 1]);
        } else {
            step_over(c, i, c->loop[i]->step, length);
        }
    }
}

/* The loops of the register tile, from the outside. */
static void cover_inside(struct cover *c, int64_t length, const struct wpk_nest_iterations *at)
{
    int64_t base = c->begin, span = c->end - c->begin, past = 0;
    int64_t room = c->tile >= 0 ? c->loop[c->tile]->step : length;
    for (int i = c->tile + 1; i < c->count; i++) {
        int64_t step = c->loop[i]->step;
        c->begin = 0;
        c->end = steps(room, step);
        bool fixed = pick(c, i, at);
        step_over(c, i, step, room);
        if (fixed) {
            base += c->begin;
            span = c->end - c->begin;
        } else {
            past += c->end - room;
            base += c->begin;
        }
        room = step;
    }
    c->begin = base;
    c->end = base + span + past;
    enum wpk_tail tail = c->tile >= 0 ? c->loop[c->tile]->tail : WPK_TAIL_EXACT;
    if ((tail == WPK_TAIL_GUARD || tail == WPK_TAIL_PREDICATE) && c->end > length) {
        c->end = length;
    }
}

void wpk_nest_cover(const struct wpk_nest *nest, const struct wpk_nest_loops *loops, int axis,
                    const struct wpk_nest_iterations *at, bool any, int64_t *begin, int64_t *end)
{
    struct cover c = {.tile = -1, .end = *end};
    int64_t length = *end;
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        if (loop->axis == axis) {
            c.tile = wpk_nest_is_rolled(loop) ? c.count : c.tile;
            c.number[c.count] = i;
            c.loop[c.count++] = loop;
        }
    }
    if (c.count == 0) {
        return;
    }
    if (c.tile >= 0) {
        cover_tiles(&c, length, at);
    }
    cover_inside(&c, length, at);
    if (any) {
        /* Any length is covered: each loop reaches past it, or before it, by less than a step. */
        enum wpk_tail outer = c.tile >= 0 ? c.loop[c.tile]->tail : WPK_TAIL_EXACT;
        bool ends = outer == WPK_TAIL_GUARD || outer == WPK_TAIL_PREDICATE;
        int64_t after = 0, before = 0;
        for (int i = 0; i + 1 < c.count; i++) {
            enum wpk_tail tail = c.loop[i]->tail;
            bool rounds = tail == WPK_TAIL_EXACT || tail == WPK_TAIL_ROUND;
            after += rounds && !ends ? c.loop[i]->step - 1 : 0;
            before += tail == WPK_TAIL_SHIFT ? c.loop[i]->step - 1 : 0;
        }
        c.end = after > 0 && length + after > c.end ? length + after : c.end;
        c.begin -= before;
    }
    *begin = c.begin;
    *end = c.end;
}
