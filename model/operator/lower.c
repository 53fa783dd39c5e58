/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/lower.h"

#include "ir/notation/notation.h"
#include "model/operator/operator_forms.h"

#include <stdio.h>
#include <stdlib.h>
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
        char load[sizeof(names[i]) + 1];
        snprintf(names[i], sizeof(names[i]), "X%.0d", i);
        snprintf(load, sizeof(load), "%s[", names[i]);
        if (strstr(wpk_buf_text(&out->text), load) != NULL) {
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

static wpk_err lower(const struct wpk_graph *graph, int node, struct wpk_lowered *out,
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
    wpk_err (*print)(struct wpk_printer *) = wpk_operator_forms[printer.op->kind].print;
    wpk_err err = print != NULL ? print(&printer) : WPK_EUNSUPPORTED;
    err = err == WPK_OK ? wpk_buf_status(&out->text) : err;
    err = err == WPK_OK ? parse(&printer, out) : err;
    /* Equations of quantized outputs say themselves how they round. */
    bool says = printer.op->kind == WPK_KIND_EQUATION && wpk_dtype_size(printer.out->dtype) == 1;
    if (err == WPK_OK && !says && rounds_output(&out->program)) {
        wpk_program_fini(&out->program);
        err = truncate_output(&out->text);
        err = err == WPK_OK ? parse(&printer, out) : err;
    }
    return err;
}

/* ---- programs that the graph keeps */

/* The program of the node that writes a value, and all that it follows from. */
struct kept {
    struct wpk_buf origin;
    struct wpk_lowered *lowered; /* owned; NULL: none */
};

struct wpk_lowering {
    struct kept *list; /* owned; [count] by value */
    int count;
};

static void forget(struct kept *kept)
{
    wpk_lowered_fini(kept->lowered);
    free(kept->lowered);
    wpk_buf_fini(&kept->origin);
    *kept = (struct kept){.lowered = NULL};
}

static void free_lowering(struct wpk_lowering *lowering)
{
    for (int v = 0; v < lowering->count; v++) {
        forget(&lowering->list[v]);
    }
    free(lowering->list);
    free(lowering);
}

static void put_value(const struct wpk_graph_value *value, struct wpk_buf *out)
{
    wpk_buf_append(out, &value->dtype, sizeof(value->dtype));
    wpk_buf_append(out, &value->rank, sizeof(value->rank));
    wpk_buf_append(out, value->extent, (size_t)value->rank * sizeof(value->extent[0]));
    wpk_buf_append(out, &value->data, sizeof(value->data));
}

/* Append what the node's program follows from. Attributes and constants do not change where they
 * are. */
static void put_origin(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                       struct wpk_buf *out)
{
    const struct wpk_operator *op = wpk_operator_find(node->op, node->domain);

    wpk_buf_append(out, &op, sizeof(op));
    wpk_buf_append(out, &node->attributes, sizeof(node->attributes));
    wpk_buf_append(out, &node->attribute_count, sizeof(node->attribute_count));
    wpk_buf_append(out, &node->part, sizeof(node->part));
    wpk_buf_append(out, node->inputs, (size_t)node->input_count * sizeof(node->inputs[0]));
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] >= 0) {
            put_value(&graph->values[node->inputs[i]], out);
        }
    }
    put_value(&graph->values[node->outputs[0]], out);
}

/* The place of a value's program. */
static struct kept *find_kept(const struct wpk_graph *graph, int value)
{
    struct wpk_graph *keeper = (struct wpk_graph *)(uintptr_t)graph; /* what it keeps is a cache */

    if (keeper->lowering == NULL) {
        keeper->lowering = WPK_DEMAND(calloc(1, sizeof(*keeper->lowering)));
        keeper->lowering_free = free_lowering;
    }
    struct wpk_lowering *lowering = keeper->lowering;
    if (value >= lowering->count) {
        size_t count = (size_t)graph->value_count + (size_t)graph->value_count / 2 + 1;
        struct kept *grown = WPK_DEMAND(realloc(lowering->list, count * sizeof(*grown)));
        memset(grown + lowering->count, 0, (count - (size_t)lowering->count) * sizeof(*grown));
        lowering->list = grown;
        lowering->count = (int)count;
    }
    return &lowering->list[value];
}

/* Keep a new program of the node.   shape  kept: empty */
static wpk_err keep(const struct wpk_graph *graph, int node, struct kept *kept,
                    struct wpk_diag *diag)
{
    struct wpk_lowered *lowered = WPK_DEMAND(calloc(1, sizeof(*lowered)));

    wpk_err err = lower(graph, node, lowered, diag);
    if (err == WPK_OK) {
        wpk_program_trim(&lowered->program);
        kept->lowered = lowered;
    } else {
        wpk_lowered_fini(lowered);
        free(lowered);
    }
    return err;
}

wpk_err wpk_graph_lower(const struct wpk_graph *graph, int node, const struct wpk_lowered **out,
                        struct wpk_diag *diag)
{
    struct kept *kept = find_kept(graph, graph->nodes[node].outputs[0]);
    struct wpk_buf origin = {0};

    *out = NULL;
    put_origin(graph, &graph->nodes[node], &origin);
    wpk_err err = wpk_buf_status(&origin);
    bool is_kept = err == WPK_OK && kept->lowered != NULL && kept->origin.size == origin.size &&
                   memcmp(kept->origin.data, origin.data, origin.size) == 0;
    if (err == WPK_OK && !is_kept) {
        forget(kept);
        err = keep(graph, node, kept, diag);
    }
    if (err == WPK_OK && !is_kept) {
        kept->origin = origin;
    } else {
        wpk_buf_fini(&origin);
    }
    *out = err == WPK_OK ? kept->lowered : NULL;
    return err;
}

const struct wpk_lowered *wpk_graph_lowered(const struct wpk_graph *graph, int node)
{
    const struct wpk_lowered *lowered = NULL;

    return wpk_graph_lower(graph, node, &lowered, NULL) == WPK_OK ? lowered : NULL;
}
