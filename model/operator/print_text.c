/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the places of an operator's text (operator.h). */
#include "model/operator/operator_forms.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text that is being filled in. */
struct filling {
    struct wpk_printer *printer;
    bool reduced[WPK_RANK_MAX]; /* axes of input 0 */
    int name[WPK_RANK_MAX];     /* of each axis of input 0 that is kept: an output axis */
    bool is_operand;            /* the name before this place is an input's */
    wpk_err err;                /* the first failure */
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

static void print_kept(const struct filling *f, bool of_operand)
{
    const char *comma = "";
    size_t before = f->printer->text->size;

    for (int d = 0; d < f->printer->input[0]->rank; d++) {
        if (!f->reduced[d]) {
            wpk_buf_printf(f->printer->text, "%sd%d", comma, f->name[d]);
            comma = ",";
        }
    }
    if (of_operand && f->printer->text->size == before) {
        wpk_buf_append_text(f->printer->text, "0");
    }
}

static void fill_text(struct filling *f, const char *text, size_t size);

/* Whether the attribute is given as an integer or text that reads as `value`. */
static bool has_value(const struct filling *f, const char *name, const char *value)
{
    const struct wpk_graph_node *node = f->printer->node;
    const struct wpk_graph_attribute *number = wpk_graph_attribute(node, name, WPK_ATTRIBUTE_INT);

    if (strcmp(name, "part") == 0) {
        return node->part == strtol(value, NULL, 10);
    }
    return number != NULL ? number->integer == strtoll(value, NULL, 10)
                          : strcmp(wpk_graph_text(node, name, ""), value) == 0;
}

/* "2", "float", "integer", "i64", "name=1", "name!=1". */
static bool holds(const struct filling *f, const char *text, size_t size)
{
    char condition[48];
    bool is_float = wpk_dtype_is_float(f->printer->out->dtype);

    WPK_ASSERT(size < sizeof(condition));
    snprintf(condition, sizeof(condition), "%.*s", (int)size, text);
    if (isdigit((unsigned char)text[0])) {
        return wpk_graph_input(f->printer->graph, f->printer->node, text[0] - '0') != NULL;
    }
    char *equals = strchr(condition, '=');
    if (equals == NULL) {
        return strcmp(condition, is_float ? "float" : "integer") == 0 ||
               strcmp(condition, wpk_dtype_name(f->printer->out->dtype)) == 0;
    }
    bool is_negated = equals[-1] == '!';
    equals[is_negated ? -1 : 0] = '\0';
    return has_value(f, condition, equals + 1) != is_negated;
}

/* The number of an element among those that are reduced into one: by the reduction's axes, or by
 * the output's. */
static void print_number(const struct filling *f, bool of_output)
{
    const struct wpk_graph_value *x = f->printer->input[0];
    int64_t stride = 1;
    int count = 0;
    const char *plus = "";

    for (int d = 0; d < x->rank; d++) {
        count += f->reduced[d] ? 1 : 0;
    }
    wpk_buf_append_text(f->printer->text, count > 1 ? "(" : count == 0 ? "0" : "");
    for (int d = x->rank - 1; d >= 0; d--) {
        if (f->reduced[d]) {
            wpk_buf_printf(f->printer->text, stride > 1 ? "%s%c%d*%lld" : "%s%c%d", plus,
                           of_output ? 'd' : 'r', of_output ? f->name[d] : d, (long long)stride);
            stride *= x->extent[d];
            plus = "+";
        }
    }
    wpk_buf_append_text(f->printer->text, count > 1 ? ")" : "");
}

/* "{r}", "{d}", "{row}", "{column}", "{#}", "{to}". */
static bool fill_word(struct filling *f, const char *text, size_t size)
{
    const struct wpk_graph_value *x = f->printer->input[0];
    struct wpk_buf *out = f->printer->text;
    int64_t count = 1;

    if (size == 1 && text[0] == '#') {
        for (int d = 0; d < x->rank; d++) {
            count *= f->reduced[d] ? x->extent[d] : 1;
        }
        wpk_buf_printf(out, "%lld", (long long)count);
    } else if (size == 2 && memcmp(text, "to", 2) == 0) {
        wpk_buf_append_text(out, wpk_dtype_name(f->printer->out->dtype));
    } else if (size == 1 && text[0] == 'r') {
        print_number(f, false);
    } else if (size == 1 && text[0] == 'd') {
        print_number(f, true);
    } else if (size == 3 && memcmp(text, "row", 3) == 0) {
        wpk_buf_printf(out, "d%d", f->printer->out->rank - 2);
    } else if (size == 6 && memcmp(text, "column", 6) == 0) {
        wpk_buf_printf(out, "d%d", f->printer->out->rank - 1);
    } else {
        return false;
    }
    return true;
}

/* "{X1=0}": the number that an input is. */
static void fill_constant(struct filling *f, int input, const char *otherwise)
{
    const struct wpk_graph_value *value = f->printer->input[input];

    if (value != NULL && (value->data == NULL || wpk_graph_elements(value) != 1)) {
        wpk_diag_set(f->printer->diag, "its input number %d must be a constant number", input);
        f->err = WPK_EUNSUPPORTED;
        return;
    }
    if (value != NULL) {
        wpk_printer_constant(f->printer, value);
    } else {
        wpk_printer_number(f->printer, strtod(otherwise, NULL));
    }
}

/* Replace the text between two braces. */
static void fill_braces(struct filling *f, const char *text, size_t size)
{
    char name[32];

    if (fill_word(f, text, size)) {
        return;
    }
    if (text[0] == '?') {
        size_t colon = strcspn(text, ":");
        if (holds(f, text + 1, colon - 1)) {
            fill_text(f, text + colon + 1, size - colon - 1);
        }
        return;
    }
    size_t equals = strcspn(text, "=");
    WPK_ASSERT(equals < size && equals < sizeof(name));
    snprintf(name, sizeof(name), "%.*s", (int)equals, text);
    if (name[0] == 'X') {
        fill_constant(f, name[1] - '0', text + equals + 1);
        return;
    }
    const struct wpk_graph_attribute *real =
        wpk_graph_attribute(f->printer->node, name, WPK_ATTRIBUTE_FLOAT);
    const struct wpk_graph_attribute *integer =
        wpk_graph_attribute(f->printer->node, name, WPK_ATTRIBUTE_INT);
    wpk_printer_number(f->printer, real != NULL      ? (double)real->real
                                   : integer != NULL ? (double)integer->integer
                                                     : strtod(text + equals + 1, NULL));
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

/* Drop the name of a reduction over no axes: the element itself is left. */
static void drop_reduction(struct wpk_buf *out)
{
    while (out->size > 0 &&
           (isalnum((unsigned char)out->data[out->size - 1]) || out->data[out->size - 1] == '.')) {
        out->data[--out->size] = '\0';
    }
}

/* The size of what stands between the brace at text[0] and its closing one. */
static size_t braces_size(const char *text)
{
    int depth = 1;
    size_t at = 1;

    for (; depth > 0; at++) {
        WPK_ASSERT(text[at] != '\0');
        depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
    }
    return at - 2;
}

static bool reduces(const struct filling *f)
{
    bool any = false;

    for (int d = 0; d < f->printer->input[0]->rank; d++) {
        any = any || f->reduced[d];
    }
    return any;
}

/* Fill one place, or copy one character. Returns how much of the text that was. */
static size_t fill_place(struct filling *f, const char *text)
{
    struct wpk_buf *out = f->printer->text;
    size_t size = 0;
    int operand = read_operand(text, &size);

    if (operand >= 0 && wpk_begins(text + size, "[..]")) {
        wpk_printer_broadcast(f->printer, operand);
        return size + 4;
    }
    if (operand >= 0) {
        wpk_buf_printf(out, "X%.0d", operand);
        f->is_operand = true;
        return size;
    }
    if (wpk_begins(text, "[..]")) {
        wpk_buf_printf(out, "[%s]", wpk_axis_names(f->printer->out->rank));
        return 4;
    }
    if (wpk_begins(text, "(@)") && !reduces(f)) {
        drop_reduction(out);
        return 3;
    }
    if (wpk_begins(text, "[@]") || wpk_begins(text, "(@)") || wpk_begins(text, "[-]")) {
        wpk_buf_append_byte(out, text[0]);
        if (text[1] == '-') {
            print_kept(f, f->is_operand);
        } else {
            print_reduced(f, text[0] == '(');
        }
        wpk_buf_append_byte(out, text[2]);
        f->is_operand = false;
        return 3;
    }
    if (text[0] == '{') {
        size = braces_size(text);
        fill_braces(f, text + 1, size);
        return size + 2;
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
    return f.err;
}

/* Operators whose equation is their own: a Clip's limits, any number of inputs, an equation that
 * an attribute is; and those that have none. */

/* A limit of a Clip: an attribute before opset 11, an input since. Without either it is the type's
 * largest finite number, with this sign. */
static wpk_err print_limit(struct wpk_printer *printer, const char *name, int input, double sign)
{
    double most = printer->out->dtype == WPK_F64 ? DBL_MAX : (double)FLT_MAX;
    const struct wpk_graph_value *value = printer->input[input];

    wpk_buf_append_text(printer->text, ", ");
    if (value == NULL) {
        wpk_printer_number(printer, wpk_graph_real(printer->node, name, sign * most));
        return WPK_OK;
    }
    if (wpk_graph_elements(value) != 1 || value->dtype != printer->out->dtype) {
        return wpk_fail(printer->diag, WPK_EUNSUPPORTED,
                        "its %s must be one number of its input's type", name);
    }
    if (value->data != NULL && !isnan(wpk_graph_element(value, 0))) {
        wpk_printer_constant(printer, value);
        return WPK_OK;
    }
    /* It is computed, or a NaN, which is no number of the notation. */
    wpk_buf_printf(printer->text, "X%.0d[", input);
    for (int d = 0; d < value->rank; d++) {
        wpk_buf_append_text(printer->text, d > 0 ? ",0" : "0");
    }
    wpk_buf_append_text(printer->text, "]");
    return WPK_OK;
}

/* True if the Clip has this limit, and it limits something. */
static bool has_limit(const struct wpk_printer *printer, const char *name, int input)
{
    const struct wpk_graph_value *value = printer->input[input];
    double none = wpk_dtype_is_float(printer->out->dtype) ? 0 : INFINITY;

    return value != NULL ? value->data == NULL || wpk_graph_elements(value) != 1 ||
                               !isinf(wpk_graph_element(value, 0))
                         : !isinf(wpk_graph_real(printer->node, name, none));
}

wpk_err wpk_print_clip(struct wpk_printer *printer)
{
    bool has_low = has_limit(printer, "min", 1);
    bool has_high = has_limit(printer, "max", 2);
    wpk_err err = WPK_OK;

    wpk_printer_output(printer);
    wpk_buf_append_text(printer->text, has_high ? "min(" : "");
    wpk_buf_append_text(printer->text, has_low ? "max(" : "");
    wpk_printer_broadcast(printer, 0);
    if (has_low) {
        err = print_limit(printer, "min", 1, -1);
        wpk_buf_append_text(printer->text, ")");
    }
    if (err == WPK_OK && has_high) {
        err = print_limit(printer, "max", 2, 1);
        wpk_buf_append_text(printer->text, ")");
    }
    return err;
}

/* "X[..] + X1[..] + X2[..]", "(X[..] + X1[..]) / 2", or "min(X[..], min(X1[..], X2[..]))". */
wpk_err wpk_print_variadic(struct wpk_printer *printer)
{
    bool is_mean = strcmp(printer->op->text, "mean") == 0;
    const char *text = is_mean ? "+" : printer->op->text;
    bool is_call = isalpha((unsigned char)text[0]) != 0;
    int last = printer->node->input_count - 1;

    wpk_printer_output(printer);
    wpk_buf_append_text(printer->text, is_mean ? "(" : "");
    for (int i = 0; i <= last; i++) {
        if (is_call && i < last) {
            wpk_buf_printf(printer->text, "%s(", text);
        }
        wpk_printer_broadcast(printer, i);
        if (i < last) {
            wpk_buf_printf(printer->text, is_call ? ", " : " %s ", text);
        }
    }
    for (int i = 0; is_call && i < last; i++) {
        wpk_buf_append_text(printer->text, ")");
    }
    if (is_mean) {
        wpk_buf_printf(printer->text, ") / %d", last + 1);
    }
    return WPK_OK;
}

/* The attribute is the equation; it reads an input by its name and '['. */
wpk_err wpk_print_equation(struct wpk_printer *printer)
{
    wpk_buf_append_text(printer->text, wpk_graph_text(printer->node, "text", ""));
    return WPK_OK;
}

wpk_err wpk_print_top_k(struct wpk_printer *printer)
{
    return wpk_fail(printer->diag, WPK_EUNSUPPORTED, "K must be a constant");
}

wpk_err wpk_print_shapeless(struct wpk_printer *printer)
{
    return wpk_fail(printer->diag, WPK_EUNSUPPORTED,
                    "its shape is no constant, or it has more than 2^26 elements");
}

wpk_err wpk_print_boundary(struct wpk_printer *printer WPK_UNUSED)
{
    return WPK_EUNSUPPORTED;
}
