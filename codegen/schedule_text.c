/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading a schedule's text. The text is hashed, stored, sent and edited by hand, so
 * the parser is strict: print gives back every text that parse accepts.
 *
 * The words of a directive depend on its kind alone; one table describes them for both
 * directions. */
#include "codegen/schedule.h"

#include "op/notation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEDULE_HEAD "wpk-schedule 1"
#define LINE_MAX_SIZE 4096
#define WORDS_MAX (WPK_LOOPS_MAX + 4)
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."

/* names: how many loop names, -1: one or more; then a factor; then a tail */
struct layout_of_words {
    int name_count;
    bool factor;
    bool tail;
};

static const struct layout_of_words words_of[WPK_DIRECTIVE_COUNT] = {
    [WPK_DIRECTIVE_SPLIT] = {3, true, true},
    [WPK_DIRECTIVE_FUSE] = {3, false, false},
    [WPK_DIRECTIVE_REORDER] = {-1, false, false},
    [WPK_DIRECTIVE_VECTORIZE] = {1, false, false},
    [WPK_DIRECTIVE_UNROLL] = {1, false, false},
    [WPK_DIRECTIVE_PARALLEL] = {1, false, false},
    [WPK_DIRECTIVE_ATOMIC] = {0, false, false},
    [WPK_DIRECTIVE_EXPAND] = {0, false, false},
    [WPK_DIRECTIVE_COMPUTE_ROOT] = {0, false, false},
    [WPK_DIRECTIVE_COMPUTE_AT] = {2, false, false},
    [WPK_DIRECTIVE_COMPUTE_INLINE] = {0, false, false},
    [WPK_DIRECTIVE_STORE_IN] = {1, false, false},
    [WPK_DIRECTIVE_REORDER_STORAGE] = {-1, false, false},
    [WPK_DIRECTIVE_ALIGN_STORAGE] = {1, true, false},
    [WPK_DIRECTIVE_BOUND_EXTENT] = {1, true, false},
    [WPK_DIRECTIVE_ALIGN_BOUNDS] = {1, true, false},
    [WPK_DIRECTIVE_NO_PARTITION] = {1, false, false},
};

static void print_directive(const struct wpk_schedule *schedule,
                            const struct wpk_directive *directive, struct wpk_buf *out)
{
    const struct wpk_stage *stage = &schedule->main.stages[directive->stage];
    const struct layout_of_words *words = &words_of[directive->kind];
    wpk_buf_printf(out, "%s%s %s", schedule->main.tensors[stage->output].name,
                   directive->update ? ".0" : "", wpk_directive_name(directive->kind));
    for (int i = 0; i < directive->loop_count; i++) {
        wpk_buf_printf(out, " %s", directive->loop[i]);
    }
    if (words->factor) {
        wpk_buf_printf(out, " %lld", (long long)directive->factor);
    }
    if (words->tail) {
        wpk_buf_printf(out, " %s", wpk_tail_name(directive->tail));
    }
    wpk_buf_append_byte(out, '\n');
}

static wpk_err print_boundary(const struct wpk_boundary *boundary, struct wpk_buf *out)
{
    char layout[512];
    wpk_err err = wpk_layout_encode(&boundary->type.layout, layout, sizeof(layout));
    if (err != WPK_OK) {
        return err;
    }
    wpk_buf_printf(out, "layout %s %s[", boundary->name, wpk_dtype_name(boundary->type.dtype));
    for (int i = 0; i < boundary->type.rank; i++) {
        wpk_buf_printf(out, "%s%lld", i == 0 ? "" : ",", (long long)boundary->type.extent[i]);
    }
    wpk_buf_printf(out, "]%s%s\n", layout[0] == '\0' ? "" : " ", layout);
    return WPK_OK;
}

wpk_err wpk_schedule_print(const struct wpk_schedule *schedule, struct wpk_buf *out)
{
    wpk_buf_printf(out, "%s\ntarget %s threads %d\n", SCHEDULE_HEAD, schedule->target,
                   schedule->threads);
    for (int i = 0; i < schedule->boundary_count; i++) {
        wpk_err err = print_boundary(&schedule->boundary[i], out);
        if (err != WPK_OK) {
            return err;
        }
    }
    wpk_buf_append_text(out, "program\n");
    wpk_err err = wpk_program_print(&schedule->program, out);
    if (err != WPK_OK) {
        return err;
    }
    wpk_buf_append_text(out, "end\n");
    for (int i = 0; i < schedule->directive_count; i++) {
        print_directive(schedule, &schedule->directives[i], out);
    }
    return wpk_buf_status(out);
}

/* Where the parser is: a line at a time, cut into words in place. */
struct reader {
    const char *next;
    int line;
    char text[LINE_MAX_SIZE];
    char *word[WORDS_MAX];
    int word_count;
    struct wpk_diag *diag;
};

static wpk_err fail(struct reader *reader, int word, const char *what)
{
    int column = word < reader->word_count ? (int)(reader->word[word] - reader->text) + 1 : 1;
    wpk_diag_set_at(reader->diag, reader->line, column, "%s", what);
    return WPK_EPARSE;
}

/* The next line that is not empty or a comment, without its newline; false at the end. */
static bool next_line(struct reader *reader, wpk_err *err)
{
    *err = WPK_OK;
    while (*reader->next != '\0') {
        size_t size = strcspn(reader->next, "\n");
        reader->line++;
        if (size >= sizeof(reader->text)) {
            reader->word_count = 0;
            *err = fail(reader, 0, "line too long");
            return false;
        }
        memcpy(reader->text, reader->next, size);
        reader->text[size] = '\0';
        reader->next += size + (reader->next[size] == '\n');
        char *hash = strchr(reader->text, '#');
        if (hash != NULL) {
            *hash = '\0';
        }
        reader->word_count = 0;
        for (char *p = reader->text; *p != '\0';) {
            p += strspn(p, " \t\r");
            if (*p == '\0') {
                break;
            }
            if (reader->word_count == WORDS_MAX) {
                *err = fail(reader, 0, "too many words");
                return false;
            }
            reader->word[reader->word_count++] = p;
            p += strcspn(p, " \t\r");
            if (*p != '\0') {
                *p++ = '\0';
            }
        }
        if (reader->word_count > 0) {
            return true;
        }
    }
    return false;
}

static wpk_err parse_int(struct reader *reader, int word, int64_t low, int64_t high, int64_t *out)
{
    char *end = NULL;
    long long value = strtoll(reader->word[word], &end, 10);
    if (end == reader->word[word] || *end != '\0') {
        return fail(reader, word, "expected a number");
    }
    if (value < low || value > high) {
        (void)fail(reader, word, "number out of range");
        return WPK_ERANGE;
    }
    *out = value;
    return WPK_OK;
}

static wpk_err parse_target(struct reader *reader, struct wpk_schedule *out)
{
    if (reader->word_count != 4 || strcmp(reader->word[0], "target") != 0 ||
        strcmp(reader->word[2], "threads") != 0) {
        return fail(reader, 0, "expected: target TARGET threads N");
    }
    if (strlen(reader->word[1]) >= sizeof(out->target)) {
        return fail(reader, 1, "target too long");
    }
    snprintf(out->target, sizeof(out->target), "%s", reader->word[1]);
    int64_t threads = 0;
    wpk_err err = parse_int(reader, 3, 1, 1024, &threads);
    out->threads = (int)threads;
    return err;
}

static wpk_err parse_boundary(struct reader *reader, struct wpk_schedule *out)
{
    char layout[LINE_MAX_SIZE] = "";
    size_t used = 0;
    /* a scalar has no order of axes */
    if (reader->word_count < 3 || out->boundary_count == WPK_TENSORS_MAX) {
        return fail(reader, 0, "expected: layout NAME TYPE ORDER [pad ...]");
    }
    struct wpk_boundary *boundary = &out->boundary[out->boundary_count];
    struct wpk_declaration declaration = {0};
    wpk_err err = wpk_notation_parse_type(reader->word[2], &declaration, reader->diag);
    if (err != WPK_OK) {
        return err;
    }
    for (int i = 3; i < reader->word_count; i++) {
        used += (size_t)snprintf(layout + used, sizeof(layout) - used, "%s%s", i == 3 ? "" : " ",
                                 reader->word[i]);
    }
    if (strlen(reader->word[1]) >= sizeof(boundary->name) ||
        wpk_layout_decode(layout, declaration.rank, &boundary->type.layout) != WPK_OK) {
        return fail(reader, 3, "malformed layout");
    }
    snprintf(boundary->name, sizeof(boundary->name), "%s", reader->word[1]);
    boundary->type.dtype = declaration.dtype;
    boundary->type.rank = declaration.rank;
    memcpy(boundary->type.extent, declaration.extent, sizeof(boundary->type.extent));
    out->boundary_count++;
    return WPK_OK;
}

static wpk_err parse_program(struct reader *reader, struct wpk_schedule *out)
{
    const char *end =
        strncmp(reader->next, "end\n", 4) == 0 ? reader->next : strstr(reader->next, "\nend\n");
    if (end == NULL) {
        return fail(reader, 0, "program without end");
    }
    end += *end == '\n';
    size_t size = (size_t)(end - reader->next);
    char *text = malloc(size + 1);
    if (text == NULL) {
        return WPK_ENOMEM;
    }
    memcpy(text, reader->next, size);
    text[size] = '\0';
    struct wpk_diag inner = {0};
    wpk_err err = wpk_program_parse(text, &out->program, &inner);
    if (err != WPK_OK) {
        wpk_diag_set_at(reader->diag, reader->line + inner.line, inner.column, "%s", inner.text);
    }
    for (size_t i = 0; i < size; i++) {
        reader->line += text[i] == '\n';
    }
    free(text);
    reader->next = end + 4;
    reader->line++;
    return err == WPK_OK ? wpk_schedule_split(out) : err;
}

static int find_kind(const char *word)
{
    for (int i = 0; i < WPK_DIRECTIVE_COUNT; i++) {
        if (strcmp(word, wpk_directive_name((enum wpk_directive_kind)i)) == 0) {
            return i;
        }
    }
    return -1;
}

static int find_tail(const char *word)
{
    for (int i = 0; i < WPK_TAIL_COUNT; i++) {
        if (strcmp(word, wpk_tail_name((enum wpk_tail)i)) == 0) {
            return i;
        }
    }
    return -1;
}

static wpk_err parse_operands(struct reader *reader, struct wpk_directive *directive)
{
    const struct layout_of_words *words = &words_of[directive->kind];
    int after = (words->factor ? 1 : 0) + (words->tail ? 1 : 0);
    int names = reader->word_count - 2 - after;
    if (names < 0 || names > WPK_LOOPS_MAX ||
        (words->name_count >= 0 && names != words->name_count) ||
        (words->name_count < 0 && names == 0)) {
        return fail(reader, 1, "wrong number of operands");
    }
    directive->loop_count = names;
    for (int i = 0; i < names; i++) {
        const char *name = reader->word[2 + i];
        if (strlen(name) >= WPK_LOOP_NAME_MAX) {
            return fail(reader, 2 + i, "name too long");
        }
        if (strspn(name, NAME_LETTERS) != strlen(name)) {
            return fail(reader, 2 + i, "names are made of letters, digits, _ and .");
        }
        snprintf(directive->loop[i], WPK_LOOP_NAME_MAX, "%s", name);
    }
    int word = 2 + names;
    if (words->factor) {
        wpk_err err = parse_int(reader, word++, 1, INT32_MAX, &directive->factor);
        if (err != WPK_OK) {
            return err;
        }
    }
    if (words->tail) {
        int tail = find_tail(reader->word[word]);
        if (tail < 0) {
            return fail(reader, word, "unknown tail strategy");
        }
        directive->tail = (enum wpk_tail)tail;
    }
    return WPK_OK;
}

static wpk_err parse_directive(struct reader *reader, struct wpk_schedule *out)
{
    if (reader->word_count < 2) {
        return fail(reader, 0, "expected: STAGE DIRECTIVE operands");
    }
    size_t length = strlen(reader->word[0]);
    bool update = length > 2 && strcmp(reader->word[0] + length - 2, ".0") == 0;
    if (update) {
        reader->word[0][length - 2] = '\0';
    }
    int stage = wpk_schedule_find_stage(&out->main, reader->word[0]);
    if (stage < 0) {
        return fail(reader, 0, "no such stage in the main program");
    }
    if (update && out->main.stages[stage].reduction == WPK_REDUCE_NONE) {
        return fail(reader, 0, "this stage has no update: it does not reduce");
    }
    int kind = find_kind(reader->word[1]);
    if (kind < 0) {
        return fail(reader, 1, "unknown directive");
    }
    struct wpk_directive *directive =
        wpk_schedule_add(out, (enum wpk_directive_kind)kind, stage, update);
    return directive == NULL ? WPK_ENOSPC : parse_operands(reader, directive);
}

static wpk_err parse_all(struct reader *reader, struct wpk_schedule *out)
{
    wpk_err err = WPK_OK;
    if (!next_line(reader, &err) || strcmp(reader->word[0], "wpk-schedule") != 0 ||
        reader->word_count != 2 || strcmp(reader->word[1], "1") != 0) {
        return err != WPK_OK ? err : fail(reader, 0, "expected: " SCHEDULE_HEAD);
    }
    if (!next_line(reader, &err)) {
        return err != WPK_OK ? err : fail(reader, 0, "no target");
    }
    err = parse_target(reader, out);
    bool have_program = false;
    while (err == WPK_OK && next_line(reader, &err)) {
        if (!have_program && strcmp(reader->word[0], "layout") == 0) {
            err = parse_boundary(reader, out);
        } else if (!have_program && strcmp(reader->word[0], "program") == 0) {
            err = parse_program(reader, out);
            have_program = true;
        } else if (!have_program) {
            err = fail(reader, 0, "expected layout or program");
        } else {
            err = parse_directive(reader, out);
        }
    }
    if (err == WPK_OK && !have_program) {
        err = fail(reader, 0, "no program");
    }
    return err;
}

wpk_err wpk_schedule_parse(const char *text, struct wpk_schedule *out, struct wpk_diag *diag)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return WPK_ENOMEM;
    }
    reader->next = text;
    reader->diag = diag;
    memset(out, 0, sizeof(*out));
    wpk_err err = parse_all(reader, out);
    if (err != WPK_OK) {
        wpk_schedule_fini(out);
    }
    free(reader);
    return err;
}
