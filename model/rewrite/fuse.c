/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rewrite/rewrite.h"

#include "ir/derive/derive.h"
#include "ir/derive/extract.h"
#include "ir/derive/rewrite.h"
#include "ir/notation/notation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A program that grows node by node. */
struct fusion {
    const struct wpk_graph *graph;
    struct wpk_program *to;
    int count;                       /* of tensors that are values of the graph */
    int value[WPK_TENSORS_MAX];      /* [count] */
    int tensor_of[WPK_TENSORS_MAX];  /* [count] */
    int tensor_map[WPK_TENSORS_MAX]; /* of the node's program */
};

static int find(const struct fusion *f, int value)
{
    for (int i = 0; i < f->count; i++) {
        if (f->value[i] == value) {
            return f->tensor_of[i];
        }
    }
    return -1;
}

static void add_value(struct fusion *f, int value, const char *stem, enum wpk_role role)
{
    const struct wpk_graph_value *v = &f->graph->values[value];
    char name[WPK_NAME_MAX];

    wpk_program_free_name(f->to, stem, name);
    int tensor = wpk_program_add_tensor(f->to, name, role, v->dtype, v->rank, v->extent);
    if (tensor >= 0) {
        f->value[f->count] = value;
        f->tensor_of[f->count++] = tensor;
    }
}

/* The operands come first, so that operand i is tensor i. */
static void add_operand(struct fusion *f, int value)
{
    char name[16];

    if (find(f, value) < 0 && f->count < WPK_TENSORS_MAX) {
        snprintf(name, sizeof(name), "X%.0d", f->count);
        add_value(f, value, name,
                  f->graph->values[value].data != NULL ? WPK_ROLE_CONSTANT : WPK_ROLE_INPUT);
    }
}

/* Append a node's stages. The last node's value is the output, other values are intermediates. */
static wpk_err add_node(struct fusion *f, int node, const struct wpk_lowered *part, bool is_last)
{
    const struct wpk_program *from = &part->program;
    wpk_err err = WPK_OK;

    add_value(f, f->graph->nodes[node].outputs[0], is_last ? "Y" : "V",
              is_last ? WPK_ROLE_OUTPUT : WPK_ROLE_INTERMEDIATE);
    for (int t = 0; t < from->tensor_count; t++) {
        const struct wpk_tensor *tensor = &from->tensors[t];
        char name[WPK_NAME_MAX];
        if (t < part->operand_count) {
            f->tensor_map[t] = find(f, part->operand[t]);
        } else if (tensor->role == WPK_ROLE_OUTPUT) {
            f->tensor_map[t] = find(f, f->graph->nodes[node].outputs[0]);
        } else {
            wpk_program_free_name(f->to, tensor->name, name);
            f->tensor_map[t] = wpk_program_add_tensor(f->to, name, WPK_ROLE_INTERMEDIATE,
                                                      tensor->dtype, tensor->rank, tensor->extent);
        }
        err = f->tensor_map[t] >= 0 ? err : WPK_ENOSPC;
    }
    for (int s = 0; err == WPK_OK && s < from->stage_count; s++) {
        err = wpk_program_copy_stage(from, &from->stages[s], f->tensor_map, f->to);
    }
    return err;
}

static bool is_inside(const struct wpk_graph *graph, const int *nodes, int count, int value)
{
    for (int i = 0; i < count; i++) {
        if (graph->nodes[nodes[i]].outputs[0] == value) {
            return true;
        }
    }
    return false;
}

static wpk_err compose(struct fusion *f, const int *nodes, int count,
                       const struct wpk_lowered *const *parts, struct wpk_lowered *out)
{
    wpk_err err = WPK_OK;

    for (int i = 0; i < count; i++) {
        for (int o = 0; o < parts[i]->operand_count; o++) {
            if (!is_inside(f->graph, nodes, count, parts[i]->operand[o])) {
                add_operand(f, parts[i]->operand[o]);
            }
        }
    }
    out->operand_count = f->count;
    if (f->count > WPK_FUSE_OPERANDS_MAX) {
        return WPK_ENOSPC;
    }
    memcpy(out->operand, f->value, (size_t)f->count * sizeof(*out->operand));
    for (int i = 0; err == WPK_OK && i < count; i++) {
        err = add_node(f, nodes[i], parts[i], i + 1 == count);
    }
    err = err == WPK_OK ? wpk_derive_inline(f->to) : err;
    err = err == WPK_OK ? wpk_derive_spelling(f->to) : err;
    return err == WPK_OK ? wpk_notation_print(f->to, &out->text) : err;
}

/* Read the text as whoever is given it does: an axis of an intermediate may have an extent that
 * equations do not tell. */
static wpk_err read_back(const struct fusion *f, int last, struct wpk_lowered *out,
                         struct wpk_diag *diag)
{
    struct wpk_declaration declarations[WPK_FUSE_OPERANDS_MAX + 1];
    char names[WPK_FUSE_OPERANDS_MAX][16];

    for (int i = 0; i <= out->operand_count; i++) {
        bool is_output = i == out->operand_count;
        const struct wpk_graph_value *value =
            &f->graph->values[is_output ? f->graph->nodes[last].outputs[0] : out->operand[i]];
        declarations[i] = (struct wpk_declaration){
            .name = "Y",
            .dtype = value->dtype,
            .rank = value->rank,
            .constant = value->data != NULL,
        };
        memcpy(declarations[i].extent, value->extent, sizeof(declarations[i].extent));
        memcpy(declarations[i].pad_before, value->pad_before, sizeof(declarations[i].pad_before));
        memcpy(declarations[i].pad_after, value->pad_after, sizeof(declarations[i].pad_after));
        if (!is_output) {
            snprintf(names[i], sizeof(names[i]), "X%.0d", i);
            declarations[i].name = names[i];
        }
    }
    wpk_program_fini(&out->program);
    return wpk_notation_parse(wpk_buf_text(&out->text), declarations, out->operand_count + 1,
                              &out->program, diag);
}

wpk_err wpk_graph_fuse(const struct wpk_graph *graph, const int *nodes, int count,
                       struct wpk_lowered *out, struct wpk_diag *diag)
{
    const struct wpk_lowered *parts[WPK_FUSE_NODES_MAX];
    struct fusion *f = WPK_DEMAND(calloc(1, sizeof(*f)));
    wpk_err err = WPK_OK;

    WPK_ASSERT(count >= 1 && count <= WPK_FUSE_NODES_MAX);
    *out = (struct wpk_lowered){.operand_count = 0};
    for (int i = 0; err == WPK_OK && i < count; i++) {
        err = wpk_graph_lower(graph, nodes[i], &parts[i], diag);
    }
    if (err == WPK_OK) {
        f->graph = graph;
        f->to = &out->program;
        err = compose(f, nodes, count, parts, out);
        err = err == WPK_OK ? read_back(f, nodes[count - 1], out, diag) : err;
    }
    free(f);
    return err;
}
