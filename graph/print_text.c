/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the places of an operator's text (operator.h). */
#include "graph/print_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text that is being filled in. */
struct filling {
    struct wpk_printer *printer;
    bool reduced[WPK_RANK_MAX]; /* axes of input 0 */
    int name[WPK_RANK_MAX];     /* of each axis of input 0 that is kept: an output axis */
};

static void print_reduced(const struct filling *f, bool with_extents)
{
    const struct wpk_graph_value *x = f->printer->input[0];
    const char *comma = "";

    for (int d = 0; d < x->rank; d++) {
        if (with_extents && f->reduced[d]) {
            wpk_buf_printf(f->printer->text, "%sr%d:%lld", comma, d, (long long)x->extent[d]);
            comma = ",";
        } else if (!with_extents) {
            wpk_buf_printf(f->printer->text, "%s%c%d", comma, f->reduced[d] ? 'r' : 'd',
                           f->reduced[d] ? d : f->name[d]);
            comma = ",";
        }
    }
}

static void print_kept(const struct filling *f)
{
    const char *comma = "";

    for (int d = 0; d < f->printer->input[0]->rank; d++) {
        if (!f->reduced[d]) {
            wpk_buf_printf(f->printer->text, "%sd%d", comma, f->name[d]);
            comma = ",";
        }
    }
}

static void fill_text(struct filling *f, const char *text, size_t size);

/* "{#}", "{name=1}", "{?2: text}"; `size` is that between the braces. */
static void fill_braces(struct filling *f, const char *text, size_t size)
{
    const struct wpk_graph_value *x = f->printer->input[0];
    char name[32];

    if (text[0] == '#') {
        int64_t count = 1;
        for (int d = 0; d < x->rank; d++) {
            count *= f->reduced[d] ? x->extent[d] : 1;
        }
        wpk_buf_printf(f->printer->text, "%lld", (long long)count);
        return;
    }
    if (strncmp(text, "to}", 3) == 0) {
        wpk_buf_append_text(f->printer->text, wpk_dtype_name(f->printer->out->dtype));
        return;
    }
    if (text[0] == '?') {
        if (wpk_graph_input(f->printer->graph, f->printer->node, text[1] - '0') != NULL) {
            fill_text(f, text + 3, size - 3);
        }
        return;
    }
    size_t equals = strcspn(text, "=");
    WPK_ASSERT(equals < size && equals < sizeof(name));
    snprintf(name, sizeof(name), "%.*s", (int)equals, text);
    const struct wpk_graph_attribute *found =
        wpk_graph_attribute(f->printer->node, name, WPK_ATTRIBUTE_FLOAT);
    wpk_printer_number(f->printer,
                       found != NULL ? (double)found->real : strtod(text + equals + 1, NULL));
}

/* "X1[..]": the number of an input, where one stands; -1 for another name. */
static int read_operand(const char *text, size_t *size)
{
    char *end = (char *)text + 1;
    int input = 0;

    if (text[0] != 'X') {
        return -1;
    }
    if (isdigit((unsigned char)text[1])) {
        input = (int)strtol(text + 1, &end, 10);
    }
    *size = (size_t)(end - text);
    return input;
}

/* Fill one place, or copy one character. Returns how much of the text that was. */
static size_t fill_place(struct filling *f, const char *text)
{
    struct wpk_buf *out = f->printer->text;
    size_t size = 0;
    int operand = read_operand(text, &size);

    if (operand >= 0 && strncmp(text + size, "[..]", 4) == 0) {
        wpk_printer_broadcast(f->printer, operand);
        return size + 4;
    }
    if (operand >= 0) {
        wpk_printer_operand(f->printer, operand);
        return size;
    }
    if (strncmp(text, "[..]", 4) == 0) {
        wpk_printer_axes(f->printer);
        return 4;
    }
    if (strncmp(text, "[@]", 3) == 0 || strncmp(text, "(@)", 3) == 0 ||
        strncmp(text, "[-]", 3) == 0) {
        wpk_buf_append_byte(out, text[0]);
        if (text[1] == '-') {
            print_kept(f);
        } else {
            print_reduced(f, text[0] == '(');
        }
        wpk_buf_append_byte(out, text[2]);
        return 3;
    }
    if (text[0] == '{') {
        size = strcspn(text, "}");
        fill_braces(f, text + 1, size - 1);
        return size + 1;
    }
    wpk_buf_append_byte(out, text[0]);
    return 1;
}

static void fill_text(struct filling *f, const char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        at += fill_place(f, text + at);
    }
}

wpk_err wpk_print_text(struct wpk_printer *printer)
{
    struct filling f = {.printer = printer};
    int rank = printer->input[0]->rank;
    int axis = 0;

    wpk_err err =
        wpk_operator_reduced(printer->graph, printer->node, printer->op, f.reduced, printer->diag);
    if (err != WPK_OK) {
        return err;
    }
    for (int d = 0; d < rank; d++) {
        /* A reduced axis that the output has is named by its place alone. */
        bool has_axis = !f.reduced[d] || printer->out->rank == rank;
        f.name[d] = axis;
        axis += has_axis ? 1 : 0;
    }
    fill_text(&f, printer->op->text, strlen(printer->op->text));
    return WPK_OK;
}
