/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/lower.h"

#include "ir/notation/notation.h"
#include "model/operator/op_attention.h"
#include "model/operator/op_einsum.h"
#include "model/operator/op_group.h"
#include "model/operator/op_index.h"
#include "model/operator/op_loss.h"
#include "model/operator/op_place.h"
#include "model/operator/op_resize.h"
#include "model/operator/op_rotary.h"
#include "model/operator/print_move.h"
#include "model/operator/print_text.h"
#include "model/operator/print_window.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void wpk_lowered_fini(struct wpk_lowered *lowered)
{
    if (lowered == NULL) {
        return;
    }
    wpk_program_fini(&lowered->program);
    wpk_buf_fini(&lowered->text);
    lowered->operand_count = 0;
}

/* A limit of a Clip: an attribute before opset 11, an input since. Without either it is the type's
 * largest finite number, with this sign. */
static wpk_err print_limit(struct wpk_printer *printer, const char *name, int input, double sign)
{
    double most = printer->out->dtype == WPK_F64 ? DBL_MAX : (double)FLT_MAX;
    const struct wpk_graph_attribute *attribute =
        wpk_graph_attribute(printer->node, name, WPK_ATTRIBUTE_FLOAT);
    const struct wpk_graph_value *value = printer->input[input];

    wpk_buf_append_text(printer->text, ", ");
    if (value == NULL) {
        wpk_printer_number(printer, attribute != NULL ? (double)attribute->real : sign * most);
        return WPK_OK;
    }
    if (wpk_graph_elements(value) != 1 || value->dtype != printer->out->dtype) {
        wpk_diag_set(printer->diag, "its %s must be one number of its input's type", name);
        return WPK_EUNSUPPORTED;
    }
    if (value->data != NULL && !isnan(wpk_graph_element(value, 0))) {
        wpk_printer_constant(printer, value);
        return WPK_OK;
    }
    wpk_printer_operand(printer,
                        input); /* computed, or a NaN, which is no number of the notation */
    wpk_buf_append_text(printer->text, "[");
    for (int d = 0; d < value->rank; d++) {
        wpk_buf_append_text(printer->text, d > 0 ? ",0" : "0");
    }
    wpk_buf_append_text(printer->text, "]");
    return WPK_OK;
}

/* True if the Clip has this limit, and it limits something. */
static bool has_limit(const struct wpk_printer *printer, const char *name, int input)
{
    const struct wpk_graph_attribute *attribute =
        wpk_graph_attribute(printer->node, name, WPK_ATTRIBUTE_FLOAT);
    const struct wpk_graph_value *value = printer->input[input];

    return value != NULL ? value->data == NULL || wpk_graph_elements(value) != 1 ||
                               !isinf(wpk_graph_element(value, 0))
           : attribute != NULL ? !isinf(attribute->real)
                               : wpk_dtype_is_float(printer->out->dtype);
}

static wpk_err print_clip(struct wpk_printer *printer)
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
static void print_variadic(struct wpk_printer *printer)
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
}

/* The attribute is the equation; it reads an input by its name and '['. */
static wpk_err print_equation(struct wpk_printer *printer)
{
    const char *text = wpk_graph_text(printer->node, "text", "");
    char name[8];

    for (int i = 0; i < printer->node->input_count; i++) {
        snprintf(name, sizeof(name), i > 0 ? "X%d[" : "X[", i);
        printer->used[i] = strstr(text, name) != NULL;
    }
    wpk_buf_append_text(printer->text, text);
    return WPK_OK;
}

static wpk_err print(struct wpk_printer *printer)
{
    switch (printer->op->kind) {
    case WPK_KIND_POINTWISE:
    case WPK_KIND_SAME:
    case WPK_KIND_LIKE:
    case WPK_KIND_REDUCE:
    case WPK_KIND_CAST:
    case WPK_KIND_SELECT:
    case WPK_KIND_EXPAND:
    case WPK_KIND_RANGE:
        return wpk_print_text(printer);
    case WPK_KIND_CLIP:
        return print_clip(printer);
    case WPK_KIND_CONV:
        return wpk_print_conv(printer);
    case WPK_KIND_MAX_POOL:
    case WPK_KIND_AVERAGE_POOL:
    case WPK_KIND_LP_POOL:
        return wpk_print_pool(printer);
    case WPK_KIND_MATMUL:
        wpk_print_matmul(printer);
        return WPK_OK;
    case WPK_KIND_GEMM:
        wpk_print_gemm(printer);
        return WPK_OK;
    case WPK_KIND_RESHAPE:
    case WPK_KIND_FLATTEN:
    case WPK_KIND_SQUEEZE:
    case WPK_KIND_UNSQUEEZE:
        return wpk_print_reshape(printer);
    case WPK_KIND_TRANSPOSE:
        return wpk_print_transpose(printer);
    case WPK_KIND_CONCAT:
        return wpk_print_concat(printer);
    case WPK_KIND_SLICE:
        return wpk_print_slice(printer);
    case WPK_KIND_VARIADIC:
        print_variadic(printer);
        return WPK_OK;
    case WPK_KIND_PAD:
        return strcmp(wpk_graph_text(printer->node, "mode", "constant"), "constant") == 0
                   ? wpk_print_pad(printer)
                   : wpk_print_border(printer);
    case WPK_KIND_DEPTH_TO_SPACE:
    case WPK_KIND_SPACE_TO_DEPTH:
    case WPK_KIND_TILE:
    case WPK_KIND_CENTER:
        return wpk_print_place(printer);
    case WPK_KIND_RESIZE:
        wpk_print_resize(printer);
        return WPK_OK;
    case WPK_KIND_CONV_TRANSPOSE:
        return wpk_print_conv_transpose(printer);
    case WPK_KIND_GATHER:
    case WPK_KIND_GATHER_ELEMENTS:
    case WPK_KIND_GATHER_ND:
    case WPK_KIND_SCATTER_ELEMENTS:
    case WPK_KIND_SCATTER_ND:
    case WPK_KIND_ONE_HOT:
        return wpk_print_indexed(printer);
    case WPK_KIND_ATTENTION:
        return wpk_print_attention(printer);
    case WPK_KIND_EINSUM:
        return wpk_print_einsum(printer);
    case WPK_KIND_ROTARY:
        return wpk_print_rotary(printer);
    case WPK_KIND_GROUP:
        return wpk_print_group(printer);
    case WPK_KIND_LOSS:
        return wpk_print_loss(printer);
    case WPK_KIND_TOP_K:
        wpk_diag_set(printer->diag, "K must be a constant");
        return WPK_EUNSUPPORTED;
    case WPK_KIND_EQUATION:
        return print_equation(printer);
    case WPK_KIND_EXPANDED:
    case WPK_KIND_LOOP_ENTER: /* loop.h: memory that nodes share, no program */
    case WPK_KIND_LOOP_READ:
    case WPK_KIND_LOOP_STORE:
    case WPK_KIND_LOOP_RESULT:
        return WPK_EUNSUPPORTED;
    case WPK_KIND_NON_ZERO: /* host.h */
    case WPK_KIND_CONSTANT_OF_SHAPE:
    case WPK_KIND_SHAPE:
        wpk_diag_set(printer->diag, "its shape is no constant, or it has more than 2^26 elements");
        return WPK_EUNSUPPORTED;
    }
    return WPK_EUNSUPPORTED;
}

static void declare(const char *name, const struct wpk_graph_value *value,
                    struct wpk_declaration *out)
{
    *out = (struct wpk_declaration){
        .name = name, .dtype = value->dtype, .rank = value->rank, .constant = value->data != NULL};
    memcpy(out->extent, value->extent, sizeof(out->extent));
}

/* Parse the equation with the tensors that it loads. */
static wpk_err parse(const struct wpk_printer *printer, struct wpk_lowered *out)
{
    struct wpk_declaration declarations[WPK_OPERATOR_INPUTS_MAX + 1];
    char names[WPK_OPERATOR_INPUTS_MAX][8];
    int count = 0;

    for (int i = 0; i < printer->node->input_count; i++) {
        if (printer->used[i]) {
            snprintf(names[i], sizeof(names[i]), "X%.0d", i);
            declare(names[i], printer->input[i], &declarations[count]);
            out->operand[count++] = printer->node->inputs[i];
        }
    }
    out->operand_count = count;
    declare("Y", printer->out, &declarations[count++]);
    return wpk_notation_parse(wpk_buf_text(&out->text), declarations, count, &out->program,
                              printer->diag);
}

/* True if a float becomes an integer at last: ONNX truncates it, and the notation rounds. */
static bool rounds_output(const struct wpk_program *program)
{
    int writer = wpk_program_writer(program, wpk_program_output(program));
    const struct wpk_node *cast = &program->nodes[program->stages[writer].expr];

    return cast->kind == WPK_NODE_CAST && cast->dtype != WPK_BOOL &&
           !wpk_dtype_is_float(cast->dtype) &&
           wpk_dtype_is_float(program->nodes[cast->arg[0]].dtype);
}

/* Make "Y[..] = trunc(x) where .." of "Y[..] = x where ..". */
static wpk_err truncate_output(struct wpk_buf *text)
{
    const char *given = wpk_buf_text(text);
    const char *begin = strstr(given, " = ") + strlen(" = ");
    const char *where = strstr(begin, " where ");
    const char *end = where != NULL ? where : given + strlen(given);
    struct wpk_buf out = {0};

    wpk_buf_printf(&out, "%.*strunc(%.*s)%s", (int)(begin - given), given, (int)(end - begin),
                   begin, end);
    wpk_buf_fini(text);
    *text = out;
    return wpk_buf_status(text);
}

wpk_err wpk_graph_lower(const struct wpk_graph *graph, int node, struct wpk_lowered *out,
                        struct wpk_diag *diag)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    struct wpk_printer printer = {.graph = graph, .node = n, .text = &out->text, .diag = diag};

    *out = (struct wpk_lowered){.operand_count = 0};
    printer.op = wpk_operator_find(n->op, n->domain);
    WPK_ASSERT(printer.op != NULL);
    WPK_ASSERT(n->input_count <= WPK_OPERATOR_INPUTS_MAX);
    printer.out = &graph->values[n->outputs[0]];
    for (int i = 0; i < n->input_count; i++) {
        printer.input[i] = wpk_graph_input(graph, n, i);
    }
    wpk_err err = print(&printer);
    if (err == WPK_OK) {
        err = wpk_buf_status(&out->text);
    }
    if (err == WPK_OK) {
        err = parse(&printer, out);
    }
    if (err == WPK_OK && rounds_output(&out->program)) {
        wpk_program_fini(&out->program);
        err = truncate_output(&out->text);
        err = err == WPK_OK ? parse(&printer, out) : err;
    }
    return err;
}
