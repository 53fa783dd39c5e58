/* SPDX-License-Identifier: Apache-2.0 */
/* The two entries of the parser: equations beside declarations, and the whole form. */
#include "ir/notation/notation.h"

#include "ir/notation/ast.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_names[] = {
    [WPK_ROLE_INPUT] = "input",
    [WPK_ROLE_CONSTANT] = "constant",
    [WPK_ROLE_INTERMEDIATE] = "intermediate",
    [WPK_ROLE_OUTPUT] = "output",
    [WPK_ROLE_LITERAL] = "literal",
};

/* A cursor over a declaration; columns are counted from the start of its text. */
struct cursor {
    const char *text;
    int at;
    int line;
    struct wpk_diag *diag;
};

WPK_PRINTF(3, 4)
static wpk_err fail(const struct cursor *c, wpk_err err, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    wpk_diag_set_at(c->diag, c->line, c->at + 1, "%s", text);
    return err;
}

static void skip_blanks(struct cursor *c)
{
    while (c->text[c->at] == ' ' || c->text[c->at] == '\t' || c->text[c->at] == '\r') {
        c->at++;
    }
}

static bool accept(struct cursor *c, char token)
{
    skip_blanks(c);
    if (c->text[c->at] != token) {
        return false;
    }
    c->at++;
    return true;
}

static wpk_err read_word(struct cursor *c, char *out)
{
    int size = 0;
    skip_blanks(c);
    while (isalnum((unsigned char)c->text[c->at + size]) || c->text[c->at + size] == '_') {
        size++;
    }
    if (size == 0 || size >= WPK_NAME_MAX) {
        return fail(c, WPK_EPARSE, "%s", size == 0 ? "expected a name" : "a name that is too long");
    }
    memcpy(out, c->text + c->at, (size_t)size);
    out[size] = '\0';
    c->at += size;
    return WPK_OK;
}

static wpk_err read_int(struct cursor *c, int64_t low, int64_t high, int64_t *out)
{
    char *end = NULL;
    skip_blanks(c);
    errno = 0;
    long long value = strtoll(c->text + c->at, &end, 10);
    if (end == c->text + c->at || isspace((unsigned char)c->text[c->at])) {
        return fail(c, WPK_EPARSE, "expected a whole number");
    }
    if (errno != 0 || value < low || value > high) {
        return fail(c, WPK_ERANGE, "a whole number from %lld to %lld is needed", (long long)low,
                    (long long)high);
    }
    c->at = (int)(end - c->text);
    *out = value;
    return WPK_OK;
}

static wpk_err read_extents(struct cursor *c, int *rank, int64_t *extent)
{
    int64_t elements = 1;
    *rank = 0;
    if (!accept(c, '[')) {
        return WPK_OK; /* a scalar */
    }
    while (!accept(c, ']')) {
        if (*rank > 0 && !accept(c, ',')) {
            return fail(c, WPK_EPARSE, "expected ',' or ']'");
        }
        if (*rank == WPK_RANK_MAX) {
            return fail(c, WPK_ERANGE, "more than %d dimensions", WPK_RANK_MAX);
        }
        wpk_err err = read_int(c, 1, WPK_ELEMENTS_MAX, &extent[*rank]);
        if (err != WPK_OK) {
            return err;
        }
        if (elements > WPK_ELEMENTS_MAX / extent[*rank]) {
            return fail(c, WPK_ERANGE, "the tensor has more than %lld elements",
                        (long long)WPK_ELEMENTS_MAX);
        }
        elements *= extent[(*rank)++];
    }
    return WPK_OK;
}

static wpk_err read_type(struct cursor *c, enum wpk_dtype *dtype, int *rank, int64_t *extent)
{
    char word[WPK_NAME_MAX];
    wpk_err err = read_word(c, word);
    if (err != WPK_OK) {
        return err;
    }
    if (wpk_dtype_parse(word, dtype) != WPK_OK) {
        return fail(c, WPK_EPARSE, "unknown element type %s", word);
    }
    return read_extents(c, rank, extent);
}

/* Read " pad 0:0,1:1", if it is there. */
static wpk_err read_padding(struct cursor *c, int rank, int64_t *before, int64_t *after)
{
    char word[WPK_NAME_MAX];
    skip_blanks(c);
    if (c->text[c->at] == '\0' || c->text[c->at] == '=') {
        return WPK_OK;
    }
    wpk_err err = read_word(c, word);
    if (err == WPK_OK && strcmp(word, "pad") != 0) {
        return fail(c, WPK_EPARSE, "expected pad instead of %s", word);
    }
    for (int d = 0; d < rank && err == WPK_OK; d++) {
        if (d > 0 && !accept(c, ',')) {
            return fail(c, WPK_EPARSE, "expected ','");
        }
        err = read_int(c, 0, WPK_ELEMENTS_MAX, &before[d]);
        if (err == WPK_OK && !accept(c, ':')) {
            return fail(c, WPK_EPARSE, "expected ':'");
        }
        err = err == WPK_OK ? read_int(c, 0, WPK_ELEMENTS_MAX, &after[d]) : err;
    }
    return err;
}

wpk_err wpk_notation_parse_type(const char *text, struct wpk_declaration *out,
                                struct wpk_diag *diag)
{
    struct cursor c = {.text = text, .line = 1, .diag = diag};
    struct wpk_declaration parsed = {.name = out->name, .constant = out->constant};
    wpk_err err = read_type(&c, &parsed.dtype, &parsed.rank, parsed.extent);
    err = err == WPK_OK ? read_padding(&c, parsed.rank, parsed.pad_before, parsed.pad_after) : err;
    skip_blanks(&c);
    if (err == WPK_OK && text[c.at] != '\0') {
        err = fail(&c, WPK_EPARSE, "text behind the type");
    }
    if (err == WPK_OK) {
        *out = parsed;
    }
    return err;
}

static wpk_err check_text(const char *text, struct wpk_diag *diag)
{
    size_t size = strnlen(text, WPK_NOTATION_SIZE_MAX + 1);
    if (size > WPK_NOTATION_SIZE_MAX) {
        return wpk_fail(diag, WPK_ERANGE, "the notation is longer than %d bytes",
                        WPK_NOTATION_SIZE_MAX);
    }
    int line = 1, column = 1;
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] >= 0x80) {
            wpk_diag_set_at(diag, line, column, "byte 0x%02x: only ASCII is understood here",
                            (unsigned char)text[i]);
            return WPK_EPARSE;
        }
        column = text[i] == '\n' ? 1 : column + 1;
        line += text[i] == '\n';
    }
    return WPK_OK;
}

/* The tensor of the first equation, and whatever else is declared and assigned. */
static wpk_err declare_outputs(const struct wpk_ast *ast, struct wpk_program *out,
                               struct wpk_diag *diag)
{
    for (int i = 0; i < ast->equation_count; i++) {
        const char *name = ast->equation[i].name;
        int output = wpk_program_find_tensor(out, name);
        if (output >= 0 && out->tensors[output].role == WPK_ROLE_CONSTANT) {
            wpk_diag_set_at(diag, 1, 1, "%s is an output, which is no constant", name);
            return WPK_EPARSE;
        }
        if (output >= 0) {
            out->tensors[output].role = WPK_ROLE_OUTPUT;
        }
    }
    return WPK_OK;
}

static wpk_err parse_equations(const char *text, int line_offset, bool closed,
                               struct wpk_program *out, struct wpk_diag *diag)
{
    struct wpk_ast ast;
    wpk_err err = wpk_ast_parse(text, line_offset, &ast, diag);
    if (err == WPK_OK && !closed) {
        err = declare_outputs(&ast, out, diag);
    }
    if (err == WPK_OK) {
        wpk_ast_part_axes(&ast);
        err = wpk_ast_build(&ast, closed, out);
    }
    wpk_ast_fini(&ast);
    err = err == WPK_OK ? wpk_program_validate(out, diag) : err;
    return err == WPK_ENOSPC ? WPK_ERANGE : err; /* trying again would not help */
}

wpk_err wpk_notation_parse(const char *text, const struct wpk_declaration *declarations, int count,
                           struct wpk_program *out, struct wpk_diag *diag)
{
    wpk_err err = check_text(text, diag);
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < count && err == WPK_OK; i++) {
        const struct wpk_declaration *d = &declarations[i];
        if (wpk_program_find_tensor(out, d->name) >= 0) {
            err = wpk_fail(diag, WPK_EPARSE, "tensor %s is declared twice", d->name);
            continue;
        }
        int tensor =
            wpk_program_add_tensor(out, d->name, d->constant ? WPK_ROLE_CONSTANT : WPK_ROLE_INPUT,
                                   d->dtype, d->rank, d->extent);
        if (tensor < 0) {
            err = wpk_fail(diag, WPK_ERANGE, "more than %d tensors", WPK_TENSORS_MAX);
            continue;
        }
        memcpy(out->tensors[tensor].pad_before, d->pad_before, sizeof(d->pad_before));
        memcpy(out->tensors[tensor].pad_after, d->pad_after, sizeof(d->pad_after));
    }
    err = err == WPK_OK ? parse_equations(text, 0, false, out, diag) : err;
    if (err != WPK_OK) {
        wpk_program_fini(out);
    }
    return err;
}

/* ---- the whole form */

static wpk_err read_literal(struct cursor *c, const char *name, enum wpk_dtype dtype, int rank,
                            const int64_t *extent, struct wpk_program *out)
{
    double values[WPK_LITERAL_ELEMENTS_MAX];
    int64_t count = wpk_extents_product(extent, rank);
    if (count > WPK_LITERAL_ELEMENTS_MAX) {
        return fail(c, WPK_ERANGE, "literal %s has more than %d elements", name,
                    WPK_LITERAL_ELEMENTS_MAX);
    }
    if (!accept(c, '=')) {
        return fail(c, WPK_EPARSE, "expected '=' and the literal's values");
    }
    for (int64_t i = 0; i < count; i++) {
        char *end = NULL;
        if (i > 0 && !accept(c, ',')) {
            return fail(c, WPK_EPARSE, "literal %s needs %lld values", name, (long long)count);
        }
        skip_blanks(c);
        values[i] = strtod(c->text + c->at, &end);
        if (end == c->text + c->at || isnan(values[i])) {
            return fail(c, WPK_EPARSE, "expected a number");
        }
        c->at = (int)(end - c->text);
    }
    return wpk_program_add_literal(out, name, dtype, rank, extent, values) < 0
               ? fail(c, WPK_ERANGE, "more than %d tensors", WPK_TENSORS_MAX)
               : WPK_OK;
}

static wpk_err read_declaration(struct cursor *c, enum wpk_role role, struct wpk_program *out)
{
    char name[WPK_NAME_MAX];
    enum wpk_dtype dtype = WPK_F32;
    int rank = 0;
    int64_t extent[WPK_RANK_MAX];
    wpk_err err = read_word(c, name);
    err = err == WPK_OK ? read_type(c, &dtype, &rank, extent) : err;
    if (err != WPK_OK) {
        return err;
    }
    if (wpk_program_find_tensor(out, name) >= 0) {
        return fail(c, WPK_EPARSE, "tensor %s is declared twice", name);
    }
    if (role == WPK_ROLE_LITERAL) {
        err = read_literal(c, name, dtype, rank, extent, out);
    } else {
        int tensor = wpk_program_add_tensor(out, name, role, dtype, rank, extent);
        err = tensor < 0 ? fail(c, WPK_ERANGE, "more than %d tensors", WPK_TENSORS_MAX)
                         : read_padding(c, rank, out->tensors[tensor].pad_before,
                                        out->tensors[tensor].pad_after);
    }
    skip_blanks(c);
    if (err == WPK_OK && c->text[c->at] != '\0') {
        err = fail(c, WPK_EPARSE, "text behind the declaration");
    }
    return err;
}

/* The role that a declaration begins with; -1 for an equation, whose first word is followed by '['
 * or '='. */
static int role_of_line(const char *line)
{
    for (int r = 0; r < (int)(sizeof(role_names) / sizeof(role_names[0])); r++) {
        size_t size = strlen(role_names[r]);
        if (strncmp(line, role_names[r], size) == 0 && (line[size] == ' ' || line[size] == '\t')) {
            const char *next = line + size + strspn(line + size, " \t");
            if (isalpha((unsigned char)*next) || *next == '_') {
                return r;
            }
        }
    }
    return -1;
}

static wpk_err read_declarations(char *text, char **rest, int *lines, struct wpk_program *out,
                                 struct wpk_diag *diag)
{
    char *line = text;
    *lines = 0;
    while (*line != '\0') {
        char *end = line + strcspn(line, "\n");
        char *start = line + strspn(line, " \t\r");
        int role = role_of_line(start);
        if (role < 0 && *start != '#' && *start != '\n' && *start != '\0') {
            break;
        }
        char kept = *end;
        *end = '\0';
        if (role >= 0) {
            struct cursor c = {.text = line, .line = *lines + 1, .diag = diag};
            char *hash = strchr(line, '#');
            if (hash != NULL) {
                *hash = '\0';
            }
            c.at = (int)(start - line) + (int)strlen(role_names[role]);
            wpk_err err = read_declaration(&c, (enum wpk_role)role, out);
            if (err != WPK_OK) {
                return err;
            }
        }
        (*lines)++;
        line = end + (kept == '\n');
    }
    *rest = line;
    return WPK_OK;
}

wpk_err wpk_program_parse(const char *text, struct wpk_program *out, struct wpk_diag *diag)
{
    wpk_err err = check_text(text, diag);
    char *copy = err == WPK_OK ? strdup(text) : NULL, *rest = NULL;
    int lines = 0;
    memset(out, 0, sizeof(*out));
    if (copy == NULL) {
        return err == WPK_OK ? WPK_ENOMEM : err;
    }
    err = read_declarations(copy, &rest, &lines, out, diag);
    err = err == WPK_OK ? parse_equations(rest, lines, true, out, diag) : err;
    free(copy);
    if (err != WPK_OK) {
        wpk_program_fini(out);
    }
    return err;
}
