/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading a nest. The text is hashed, stored and edited by hand, so the parser is
 * strict: print gives back every text that parse accepts, but for comments and blanks. */
#include "nest/nest_text.h"

#include "ir/instruction/instruction.h"

#include <stdio.h>
#include <string.h>

#define STEP_MAX 1024 /* past the end of a shorter axis */

/* ---- print */

static const char *name_of(const struct wpk_nest *nest, const struct wpk_nest_entry *entry)
{
    return nest->program->tensors[wpk_nest_stage(nest, entry)->output].name;
}

static void print_loops(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                        const struct wpk_nest_loops *loops, const char *indent, struct wpk_buf *out)
{
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        char name[WPK_NEST_NAME_MAX];
        wpk_nest_name_loop(nest, entry, loops, i, name);
        wpk_buf_printf(out, "%s%s %s", indent, wpk_bind_name(loop->binding), name);
        if (loop->binding == WPK_BIND_DOT) {
            wpk_buf_printf(out, " %s", wpk_instruction_at(loop->instruction)->name);
        }
        if (loop->step > 1 || loop->tail != WPK_TAIL_EXACT) {
            wpk_buf_printf(out, " step %lld %s", (long long)loop->step, wpk_tail_name(loop->tail));
        }
        wpk_buf_printf(out, "%s%s\n", loop->whole ? " whole" : "", loop->inside ? " inside" : "");
    }
}

static void print_storage(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                          struct wpk_buf *out)
{
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    bool aligned = false;
    if (entry->scope != WPK_SCOPE_ANY) {
        wpk_buf_printf(out, "  scope %s\n", wpk_scope_name(entry->scope));
    }
    if (entry->slides) {
        const struct wpk_nest_entry *reader = &nest->entry[entry->place.entry];
        char loop[WPK_NEST_NAME_MAX];
        wpk_nest_name_loop(nest, reader, entry->place.update ? &reader->update : &reader->pure,
                           entry->slide, loop);
        wpk_buf_printf(out, "  slide %s\n", loop);
    }
    wpk_buf_append_text(out, entry->bounded ? "  extent" : "");
    for (int a = 0; a < stage->rank && entry->bounded; a++) {
        wpk_buf_printf(out, " %s %lld", stage->axes[a].name, (long long)entry->extent[a]);
    }
    wpk_buf_append_text(out, entry->bounded ? "\n" : "");
    for (int a = 0; a < stage->rank; a++) {
        if (entry->align[a] > 1) {
            wpk_buf_printf(out, "%s %s %lld", aligned ? "" : "  align", stage->axes[a].name,
                           (long long)entry->align[a]);
            aligned = true;
        }
    }
    wpk_buf_append_text(out, aligned ? "\n" : "");
    wpk_buf_append_text(out, entry->reordered ? "  stored" : "");
    for (int a = 0; a < stage->rank && entry->reordered; a++) {
        wpk_buf_printf(out, " %s", stage->axes[entry->storage[a]].name);
    }
    wpk_buf_append_text(out, entry->reordered ? "\n" : "");
    if (entry->row_padding > 0) {
        wpk_buf_printf(out, "  padded %lld\n", (long long)entry->row_padding);
    }
    if (entry->spacing > 0) {
        wpk_buf_printf(out, "  spaced %s %lld\n", stage->axes[entry->spaced].name,
                       (long long)entry->spacing);
    }
    if (entry->depth > 0) {
        wpk_buf_printf(out, "  depth %d\n", entry->depth);
    }
    if (entry->by != WPK_COPY_ANY) {
        wpk_buf_printf(out, "  by %s\n", wpk_copy_by_name(entry->by));
    }
}

static void print_entry(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                        struct wpk_buf *out)
{
    const struct wpk_nest_place *place = &entry->place;
    wpk_buf_printf(out, "stage %s ", name_of(nest, entry));
    if (entry->inlined || place->entry < 0) {
        wpk_buf_append_text(out, entry->inlined ? "inline\n" : "root\n");
    } else {
        const struct wpk_nest_entry *reader = &nest->entry[place->entry];
        char loop[WPK_NEST_NAME_MAX];
        wpk_nest_name_loop(nest, reader, place->update ? &reader->update : &reader->pure,
                           place->loop, loop);
        wpk_buf_printf(out, "in %s %s\n", name_of(nest, reader), loop);
    }
    if (entry->inlined) {
        return;
    }
    print_storage(nest, entry, out);
    if (wpk_nest_has_update(nest, entry)) {
        wpk_buf_append_text(out, "  init\n");
        print_loops(nest, entry, &entry->pure, "    ", out);
        wpk_buf_append_text(out, entry->update.atomic ? "  update atomic\n" : "  update\n");
        print_loops(nest, entry, &entry->update, "    ", out);
    } else {
        wpk_buf_append_text(out, entry->expanded ? "  expanded\n" : "");
        print_loops(nest, entry, &entry->pure, "  ", out);
    }
}

void wpk_nest_print(const struct wpk_nest *nest, struct wpk_buf *out)
{
    for (int e = 0; e < nest->entry_count; e++) {
        print_entry(nest, &nest->entry[e], out);
    }
}

/* ---- parse */

/* The lines of a stage, in their order. */
#define LINES(X)                                                                                   \
    X(STAGE, "stage")                                                                              \
    X(SCOPE, "scope")                                                                              \
    X(SLIDE, "slide")                                                                              \
    X(EXTENT, "extent")                                                                            \
    X(ALIGN, "align")                                                                              \
    X(STORED, "stored")                                                                            \
    X(PADDED, "padded")                                                                            \
    X(SPACED, "spaced")                                                                            \
    X(DEPTH, "depth")                                                                              \
    X(BY, "by")                                                                                    \
    X(EXPANDED, "expanded")                                                                        \
    X(INIT, "init")                                                                                \
    X(UPDATE, "update")

#define LINE_ENUM(name, text) LINE_##name,
enum line { LINES(LINE_ENUM) LINE_COUNT };

struct parser {
    struct wpk_text_reader *reader;
    struct wpk_nest *nest;
    struct wpk_nest_entry *entry; /* the one being read, or NULL */
    const struct wpk_stage *stage;
    enum line last; /* of the entry */
};

static int find_word(const char *const *words, int count, const char *word)
{
    int i = 0;
    while (i < count && strcmp(words[i], word) != 0) {
        i++;
    }
    return i;
}

static int find_axis(const struct wpk_stage *stage, const char *name, size_t size)
{
    for (int a = 0; a < stage->axis_count; a++) {
        if (strlen(stage->axes[a].name) == size && memcmp(stage->axes[a].name, name, size) == 0) {
            return a;
        }
    }
    return -1;
}

/* The loop that is called `name`, or -1. */
static int find_loop(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                     const struct wpk_nest_loops *loops, const char *name)
{
    for (int i = 0; i < loops->count; i++) {
        char known[WPK_NEST_NAME_MAX];
        wpk_nest_name_loop(nest, entry, loops, i, known);
        if (strcmp(known, name) == 0) {
            return i;
        }
    }
    return -1;
}

static wpk_err fail_place(struct parser *p, int word, const struct wpk_nest_entry *reader,
                          const struct wpk_nest_loops *loops)
{
    char names[WPK_DIAG_TEXT_MAX / 2] = "";
    size_t used = 0;
    for (int i = 0; i < loops->count && used + WPK_NEST_NAME_MAX + 2 < sizeof(names); i++) {
        char name[WPK_NEST_NAME_MAX];
        wpk_nest_name_loop(p->nest, reader, loops, i, name);
        used += (size_t)snprintf(names + used, sizeof(names) - used, " %s", name);
    }
    return wpk_text_fail(p->reader, word, "%s has no such loop; write one of its loops:%s",
                         name_of(p->nest, reader), names);
}

static wpk_err parse_place(struct parser *p)
{
    struct wpk_text_reader *r = p->reader;
    const struct wpk_nest *nest = p->nest;
    struct wpk_nest_place *place = &p->entry->place;
    if (r->word_count == 3 && (wpk_text_is(r, 2, "root") || wpk_text_is(r, 2, "inline"))) {
        p->entry->inlined = wpk_text_is(r, 2, "inline");
        return WPK_OK;
    }
    if (r->word_count != 5 || !wpk_text_is(r, 2, "in")) {
        return wpk_text_fail(r, 2, "expected root, inline, or in STAGE LOOP");
    }
    int at = 0, last = nest->entry_count - 1;
    while (at < last && strcmp(name_of(nest, &nest->entry[at]), r->word[3]) != 0) {
        at++;
    }
    if (at == last || nest->entry[at].inlined) {
        return wpk_text_fail(r, 3, "expected a stage that reads %s and has loops",
                             name_of(nest, p->entry));
    }
    const struct wpk_nest_entry *reader = &nest->entry[at];
    place->update = wpk_nest_has_update(nest, reader);
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    place->loop = find_loop(nest, reader, loops, r->word[4]);
    place->entry = at;
    return place->loop < 0 ? fail_place(p, 4, reader, loops) : WPK_OK;
}

static wpk_err finish_stage(struct parser *p)
{
    if (p->entry != NULL && !p->entry->inlined && p->last < LINE_UPDATE &&
        wpk_nest_has_update(p->nest, p->entry)) {
        wpk_diag_set_at(p->reader->diag, p->entry->at.line, p->entry->at.column,
                        "%s reduces: write 'init' and 'update' below it, each with its loops",
                        name_of(p->nest, p->entry));
        return WPK_EPARSE;
    }
    return WPK_OK;
}

static wpk_err parse_stage(struct parser *p)
{
    struct wpk_text_reader *r = p->reader;
    const struct wpk_program *program = p->nest->program;
    wpk_err err = finish_stage(p);
    if (err != WPK_OK) {
        return err;
    }
    int s = program->stage_count - 1 - p->nest->entry_count;
    if (s < 0) {
        return wpk_text_fail(r, 0, "the program has no more stages");
    }
    const char *name = program->tensors[program->stages[s].output].name;
    if (!wpk_text_is(r, 1, name)) {
        return wpk_text_fail(r, 1,
                             "expected stage %s: stages come in the program's order, the "
                             "last one first",
                             name);
    }
    p->entry = wpk_nest_add(p->nest, WPK_NEST_STAGE, s);
    p->stage = &program->stages[s];
    p->entry->at = (struct wpk_position){r->line, wpk_text_column(r, 0)};
    p->last = LINE_STAGE;
    err = parse_place(p);
    if (err == WPK_OK) {
        wpk_nest_find_region(p->nest);
    }
    return err;
}

static wpk_err parse_scope(struct parser *p)
{
    static const char *const names[] = {WPK_SCOPE_LIST(WPK_LIST_TEXT)};
    struct wpk_text_reader *r = p->reader;
    int scope = r->word_count == 2 ? find_word(names, WPK_SCOPE_COUNT, r->word[1]) : 0;
    if (scope == WPK_SCOPE_ANY || scope == WPK_SCOPE_COUNT) {
        return wpk_text_fail(r, 1,
                             "expected scope register, stack, heap, output, shared or global");
    }
    p->entry->scope = (enum wpk_scope)scope;
    return WPK_OK;
}

/* A loop of the place's stage. */
static wpk_err parse_slide(struct parser *p)
{
    struct wpk_text_reader *r = p->reader;
    const struct wpk_nest_place *place = &p->entry->place;
    if (place->entry < 0 || r->word_count != 2) {
        return wpk_text_fail(r, 0, "expected slide LOOP, below a stage in a loop");
    }
    const struct wpk_nest_entry *reader = &p->nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    p->entry->slide = find_loop(p->nest, reader, loops, r->word[1]);
    p->entry->slides = true;
    return p->entry->slide >= 0 ? WPK_OK : fail_place(p, 1, reader, loops);
}

/* Of every axis, in their order. */
static wpk_err parse_extent(struct parser *p)
{
    struct wpk_text_reader *r = p->reader;
    bool named = r->word_count == 1 + 2 * p->stage->rank;
    for (int a = 0; a < p->stage->rank && named; a++) {
        named = wpk_text_is(r, 1 + 2 * a, p->stage->axes[a].name);
    }
    if (!named) {
        return wpk_text_fail(r, 1, "expected extent AXIS N for each axis of %s, in their order",
                             name_of(p->nest, p->entry));
    }
    for (int a = 0; a < p->stage->rank; a++) {
        wpk_err err = wpk_text_int(r, 2 + 2 * a, 1, p->stage->axes[a].extent, &p->entry->extent[a]);
        if (err != WPK_OK) {
            return err;
        }
        p->entry->least[a] = p->stage->axes[a].extent;
    }
    p->entry->bounded = true;
    return WPK_OK;
}

static wpk_err parse_align(struct parser *p)
{
    struct wpk_text_reader *r = p->reader;
    if (r->word_count < 3 || r->word_count % 2 == 0) {
        return wpk_text_fail(r, 0, "expected align AXIS N, and so on");
    }
    for (int i = 1, last = -1; i < r->word_count; i += 2) {
        int axis = find_axis(p->stage, r->word[i], strlen(r->word[i]));
        if (axis <= last || axis >= p->stage->rank) {
            return wpk_text_fail(r, i, "expected an axis of %s, in their order",
                                 name_of(p->nest, p->entry));
        }
        int64_t extent = p->stage->axes[axis].extent;
        wpk_err err = wpk_text_int(r, i + 1, 2, extent < STEP_MAX ? STEP_MAX : extent,
                                   &p->entry->align[axis]);
        if (err != WPK_OK) {
            return err;
        }
        last = axis;
    }
    return WPK_OK;
}

static wpk_err parse_stored(struct parser *p)
{
    struct wpk_text_reader *r = p->reader;
    unsigned seen = 0;
    for (int a = 0; a < p->stage->rank; a++) {
        const char *name = a + 1 < r->word_count ? r->word[a + 1] : "";
        int axis = find_axis(p->stage, name, strlen(name));
        if (axis < 0 || axis >= p->stage->rank || (seen >> axis & 1) != 0) {
            return wpk_text_fail(r, a + 1, "expected stored with each axis of %s, outermost first",
                                 name_of(p->nest, p->entry));
        }
        seen |= 1U << axis;
        p->entry->storage[a] = axis;
    }
    p->entry->reordered = true;
    return r->word_count == p->stage->rank + 1
               ? WPK_OK
               : wpk_text_fail(r, p->stage->rank + 1, "more axes than %s has",
                               name_of(p->nest, p->entry));
}

/* WORD N, N from `least`. */
static wpk_err parse_number(struct parser *p, int64_t least, int64_t most, int64_t *out)
{
    struct wpk_text_reader *r = p->reader;
    return r->word_count == 2 ? wpk_text_int(r, 1, least, most, out)
                              : wpk_text_fail(r, 0, "expected %s N", r->word[0]);
}

static wpk_err parse_spaced(struct parser *p)
{
    struct wpk_text_reader *r = p->reader;
    const char *name = r->word_count == 3 ? r->word[1] : "";
    p->entry->spaced = find_axis(p->stage, name, strlen(name));
    return p->entry->spaced >= 0 && p->entry->spaced < p->stage->rank
               ? wpk_text_int(r, 2, 1, STEP_MAX, &p->entry->spacing)
               : wpk_text_fail(r, 0, "expected spaced AXIS N");
}

static wpk_err parse_by(struct parser *p)
{
    static const char *const copies[] = {WPK_COPY_LIST(WPK_LIST_TEXT)};
    struct wpk_text_reader *r = p->reader;
    int by = r->word_count == 2 ? find_word(copies, WPK_COPY_COUNT, r->word[1]) : WPK_COPY_COUNT;
    p->entry->by = (enum wpk_copy_by)by;
    return by < WPK_COPY_COUNT ? WPK_OK : wpk_text_fail(r, 0, "expected by load or by async");
}

static wpk_err parse_line(struct parser *p, enum line line)
{
    struct wpk_text_reader *r = p->reader;
    bool reduces = p->stage->reduction != WPK_REDUCE_NONE;
    if (p->entry->inlined) {
        return wpk_text_fail(r, 0, "a stage that is inline has nothing below it");
    }
    if (line <= p->last || p->entry->pure.count + p->entry->update.count > 0) {
        if (line != LINE_UPDATE || p->last != LINE_INIT) {
            return wpk_text_fail(r, 0,
                                 "'%s' comes earlier, and once: the order is scope, slide, extent, "
                                 "align, stored, padded, spaced, depth, by, expanded, init, update",
                                 r->word[0]);
        }
    }
    if (line == LINE_UPDATE && p->last != LINE_INIT) {
        return wpk_text_fail(r, 0, "'update' comes after 'init' and its loops");
    }
    p->last = line;
    switch (line) {
    case LINE_SCOPE:
        return parse_scope(p);
    case LINE_SLIDE:
        return parse_slide(p);
    case LINE_EXTENT:
        return parse_extent(p);
    case LINE_ALIGN:
        return parse_align(p);
    case LINE_STORED:
        return parse_stored(p);
    case LINE_PADDED:
        return parse_number(p, 1, STEP_MAX, &p->entry->row_padding);
    case LINE_SPACED:
        return parse_spaced(p);
    case LINE_DEPTH: {
        int64_t depth = 0;
        wpk_err err = parse_number(p, 2, WPK_NEST_AHEAD_MAX, &depth);
        p->entry->depth = (int)depth;
        return err;
    }
    case LINE_BY:
        return parse_by(p);
    case LINE_EXPANDED:
        p->entry->expanded = reduces;
        return reduces && r->word_count == 1
                   ? WPK_OK
                   : wpk_text_fail(r, 0, "'expanded' stands alone, and below a reduction");
    default:
        break;
    }
    p->entry->update.atomic = line == LINE_UPDATE && wpk_text_is(r, 1, "atomic");
    bool written = r->word_count == 1 + p->entry->update.atomic;
    return written && wpk_nest_has_update(p->nest, p->entry)
               ? WPK_OK
               : wpk_text_fail(r, 0,
                               "expected 'init', 'update' or 'update atomic', below a "
                               "reduction that is not expanded");
}

static wpk_err parse_step(struct parser *p, struct wpk_nest_loop *loop)
{
    static const char *const tails[] = {WPK_TAIL_LIST(WPK_LIST_TEXT)};
    struct wpk_text_reader *r = p->reader;
    int word = 2;
    loop->step = 1;
    if (loop->binding == WPK_BIND_DOT) {
        loop->instruction = wpk_instruction_find(word < r->word_count ? r->word[word] : "");
        if (loop->instruction < 0) {
            return wpk_text_fail(r, word, "expected dot LOOP INSTRUCTION, such as vpdpbusd");
        }
        word++;
    }
    if (wpk_text_is(r, word, "step")) {
        int tail = word + 2 < r->word_count ? find_word(tails, WPK_TAIL_COUNT, r->word[word + 2])
                                            : WPK_TAIL_COUNT;
        if (tail == WPK_TAIL_COUNT) {
            return wpk_text_fail(r, word + 2,
                                 "expected step N TAIL, TAIL exact, guard, predicate, "
                                 "shift or round");
        }
        loop->tail = (enum wpk_tail)tail;
        int64_t extent = p->stage->axes[loop->axis].extent;
        wpk_err err = wpk_text_int(r, word + 1, tail == WPK_TAIL_EXACT ? 2 : 1,
                                   extent < STEP_MAX ? STEP_MAX : extent, &loop->step);
        if (err != WPK_OK) {
            return err;
        }
        word += 3;
    }
    loop->whole = wpk_text_is(r, word, "whole");
    word += loop->whole;
    loop->inside = wpk_text_is(r, word, "inside");
    word += loop->inside;
    return word == r->word_count ? WPK_OK
                                 : wpk_text_fail(r, word,
                                                 "expected step N TAIL, whole, inside, or the "
                                                 "end of the line");
}

static wpk_err parse_loop(struct parser *p, int binding)
{
    struct wpk_text_reader *r = p->reader;
    struct wpk_nest_loop loop = {.binding = (enum wpk_loop_binding)binding};
    bool reduces = wpk_nest_has_update(p->nest, p->entry);
    if (p->entry->inlined || (reduces && p->last < LINE_INIT)) {
        return wpk_text_fail(r, 0,
                             p->entry->inlined ? "a stage that is inline has no loops"
                                               : "a reduction's loops stand below 'init' "
                                                 "or 'update'");
    }
    bool update = p->last == LINE_UPDATE;
    struct wpk_nest_loops *loops = update ? &p->entry->update : &p->entry->pure;
    loop.at = (struct wpk_position){r->line, wpk_text_column(r, 0)};
    const char *axis = r->word_count > 1 ? r->word[1] : "";
    loop.axis = find_axis(p->stage, axis, strcspn(axis, ".")); /* AXIS.N: one inside of it */
    if (loop.axis < 0 || loop.axis >= (update ? p->stage->axis_count : p->stage->rank)) {
        return wpk_text_fail(
            r, 1,
            "expected BINDING LOOP [step N TAIL] [whole] [inside], LOOP an axis of "
            "%s%s",
            name_of(p->nest, p->entry), update ? "" : " that it does not reduce");
    }
    wpk_err err = parse_step(p, &loop);
    if (err != WPK_OK) {
        return err;
    }
    wpk_nest_add_loop(p->nest, loops, &loop);
    if (p->nest->full) {
        return wpk_text_fail(r, 0, "too many loops");
    }
    char name[WPK_NEST_NAME_MAX];
    wpk_nest_name_loop(p->nest, p->entry, loops, loops->count - 1, name);
    return strcmp(r->word[1], name) == 0
               ? WPK_OK
               : wpk_text_fail(r, 1, "write %s: loops over an axis are numbered from outside",
                               name);
}

wpk_err wpk_nest_parse(struct wpk_text_reader *reader, struct wpk_nest *nest)
{
    static const char *const lines[] = {LINES(WPK_LIST_TEXT)};
    static const char *const bindings[] = {WPK_BIND_LIST(WPK_LIST_TEXT)};
    const struct wpk_program *program = nest->program;
    struct parser p = {.reader = reader, .nest = nest};
    wpk_err err = WPK_OK;
    while (err == WPK_OK && wpk_text_next(reader, &err)) {
        int line = find_word(lines, LINE_COUNT, reader->word[0]);
        int binding = find_word(bindings, WPK_BIND_COUNT, reader->word[0]);
        if (line == LINE_STAGE) {
            err = parse_stage(&p);
        } else if (p.entry == NULL) {
            err = wpk_text_fail(reader, 0, "expected stage NAME PLACE");
        } else if (line < LINE_COUNT) {
            err = parse_line(&p, (enum line)line);
        } else if (binding < WPK_BIND_COUNT) {
            err = parse_loop(&p, binding);
        } else {
            err = wpk_text_fail(
                reader, 0,
                "expected a binding (serial, unroll, lanes, dot, parallel, block.x ... thread.z), "
                "a property, or the next stage");
        }
    }
    err = err == WPK_OK ? finish_stage(&p) : err;
    if (err == WPK_OK && nest->entry_count < program->stage_count) {
        const struct wpk_stage *left =
            &program->stages[program->stage_count - 1 - nest->entry_count];
        reader->word_count = 0;
        err = wpk_text_fail(reader, 0, "stage %s is missing", program->tensors[left->output].name);
    }
    return err;
}
