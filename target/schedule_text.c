/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading a schedule's text: here what comes before the nest (nest_text.c). */
#include "nest/schedule.h"

#include "ir/notation/notation.h"
#include "nest/nest_text.h"
#include "target/codegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEDULE_HEAD "wpk-schedule 2"

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
    wpk_buf_printf(out, "%s\ntarget %s threads %d\nby %s\n", SCHEDULE_HEAD, schedule->target,
                   schedule->threads, schedule->by);
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
    wpk_nest_print(schedule->nest, out);
    return wpk_buf_status(out);
}

static wpk_err parse_target(struct wpk_text_reader *reader, struct wpk_schedule *out)
{
    if (reader->word_count != 4 || strcmp(reader->word[0], "target") != 0 ||
        strcmp(reader->word[2], "threads") != 0) {
        return wpk_text_fail(reader, 0, "expected: target TARGET threads N");
    }
    if (strlen(reader->word[1]) >= sizeof(out->target)) {
        return wpk_text_fail(reader, 1, "target too long");
    }
    snprintf(out->target, sizeof(out->target), "%s", reader->word[1]);
    int64_t threads = 0;
    wpk_err err = wpk_text_int(reader, 3, 1, 1024, &threads);
    out->threads = (int)threads;
    return err;
}

static wpk_err parse_by(struct wpk_text_reader *reader, struct wpk_schedule *out)
{
    char names[WPK_DIAG_TEXT_MAX / 2] = "";
    if (wpk_text_is(reader, 0, "by") && reader->word_count == 2 &&
        wpk_codegen_find(reader->word[1]) != NULL) {
        snprintf(out->by, sizeof(out->by), "%s", reader->word[1]);
        return WPK_OK;
    }
    for (int i = 0; wpk_codegen_at(i) != NULL; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", i == 0 ? "" : " or ",
                 wpk_codegen_at(i)->name);
    }
    return wpk_text_fail(reader, wpk_text_is(reader, 0, "by"), "expected: by BACKEND, %s", names);
}

static wpk_err parse_boundary(struct wpk_text_reader *reader, struct wpk_schedule *out)
{
    char layout[WPK_TEXT_LINE_MAX] = "";
    size_t used = 0;
    /* a scalar has no order of axes */
    if (reader->word_count < 3 || out->boundary_count == WPK_TENSORS_MAX) {
        return wpk_text_fail(reader, 0, "expected: layout NAME TYPE ORDER [pad ...]");
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
        return wpk_text_fail(reader, 3, "malformed layout");
    }
    snprintf(boundary->name, sizeof(boundary->name), "%s", reader->word[1]);
    boundary->type.dtype = declaration.dtype;
    boundary->type.rank = declaration.rank;
    memcpy(boundary->type.extent, declaration.extent, sizeof(boundary->type.extent));
    out->boundary_count++;
    return WPK_OK;
}

static wpk_err parse_program(struct wpk_text_reader *reader, struct wpk_schedule *out)
{
    const char *end =
        wpk_begins(reader->next, "end\n") ? reader->next : strstr(reader->next, "\nend\n");
    if (end == NULL) {
        return wpk_text_fail(reader, 0, "program without end");
    }
    end += *end == '\n';
    size_t size = (size_t)(end - reader->next);
    char *text = WPK_DEMAND(malloc(size + 1));
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

static wpk_err parse_head(struct wpk_text_reader *reader)
{
    wpk_err err = WPK_OK;
    bool found = wpk_text_next(reader, &err);
    if (found && wpk_text_is(reader, 0, "wpk-schedule") && wpk_text_is(reader, 1, "1")) {
        return wpk_text_fail(reader, 1,
                             "wpk-schedule 1 is no longer read: tune the operator again");
    }
    if (err != WPK_OK || (found && reader->word_count == 2 &&
                          wpk_text_is(reader, 0, "wpk-schedule") && wpk_text_is(reader, 1, "2"))) {
        return err;
    }
    return wpk_text_fail(reader, 0, "expected: " SCHEDULE_HEAD);
}

static wpk_err parse_all(struct wpk_text_reader *reader, struct wpk_schedule *out)
{
    wpk_err err = parse_head(reader);
    if (err == WPK_OK && !wpk_text_next(reader, &err) && err == WPK_OK) {
        return wpk_text_fail(reader, 0, "no target");
    }
    err = err == WPK_OK ? parse_target(reader, out) : err;
    if (err == WPK_OK && !wpk_text_next(reader, &err) && err == WPK_OK) {
        return wpk_text_fail(reader, 0, "no back end");
    }
    err = err == WPK_OK ? parse_by(reader, out) : err;
    bool have_program = false;
    while (err == WPK_OK && !have_program && wpk_text_next(reader, &err)) {
        have_program = wpk_text_is(reader, 0, "program");
        if (have_program) {
            err = parse_program(reader, out);
        } else {
            err = wpk_text_is(reader, 0, "layout")
                      ? parse_boundary(reader, out)
                      : wpk_text_fail(reader, 0, "expected layout or program");
        }
    }
    if (err == WPK_OK && !have_program) {
        return wpk_text_fail(reader, 0, "no program");
    }
    err = err == WPK_OK ? wpk_schedule_add_nest(out) : err;
    return err == WPK_OK ? wpk_nest_parse(reader, out->nest) : err;
}

wpk_err wpk_schedule_parse(const char *text, struct wpk_schedule *out, struct wpk_diag *diag)
{
    struct wpk_text_reader *reader = WPK_DEMAND(calloc(1, sizeof(*reader)));
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
