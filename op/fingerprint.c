/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text and its hash. A matrix product:
 *
 *     wpk-program-1
 *     [64,32](128) sum:f32 (*:f32 t0[{+a0},{+a2}] t1[{+a2},{+a1}]) -> t2
 *     t0 input f32[64,128]
 *     t1 constant f32[128,32]
 *     t2 output f32[64,32]
 *
 * Stages first, each after those it needs: extents of the output axes and of the reduction axes,
 * then the expression. Tensors are numbered by first use. The family's text has `*` in place of
 * extents. Reduction axes are numbered by label, operands of commutative chains printed by label,
 * and an operation met again in a stage is `#` and its number. Changing anything here changes
 * every fingerprint: raise the version in the first line. */
#include "op/fingerprint.h"

#include "common/buf.h"
#include "common/crypto.h"
#include "op/fingerprint_label.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_LINE "wpk-program-1\n"

static const char *const role_names[] = {[WPK_ROLE_INPUT] = "input",
                                         [WPK_ROLE_CONSTANT] = "constant",
                                         [WPK_ROLE_INTERMEDIATE] = "intermediate",
                                         [WPK_ROLE_OUTPUT] = "output",
                                         [WPK_ROLE_LITERAL] = "literal"};
static const char *const reduction_names[] = {[WPK_REDUCE_NONE] = "none",
                                              [WPK_REDUCE_SUM] = "sum",
                                              [WPK_REDUCE_MAX] = "max",
                                              [WPK_REDUCE_MIN] = "min",
                                              [WPK_REDUCE_PROD] = "prod"};
static const char *const unary_names[] = {
#define UNARY_NAME(name, text) [WPK_UNARY_##name] = text,
    WPK_UNARY_LIST(UNARY_NAME)
#undef UNARY_NAME
};
static const char *const binary_names[] = {
#define BINARY_NAME(name, text, commutative, call) [WPK_BINARY_##name] = text,
    WPK_BINARY_LIST(BINARY_NAME)
#undef BINARY_NAME
};

struct printer {
    struct wpk_labels labels;
    const struct wpk_program *program;
    struct wpk_buf *out;
    struct wpk_buf *extents; /* of the axes, as they are met; NULL: nobody asks */
    int extent_count;
    int numbered[WPK_TENSORS_MAX]; /* tensors in the order of first use; equal ones only once */
    int numbered_count;
    bool printed[WPK_TENSORS_MAX]; /* the stage that writes it, by its number */
    int stage;
    int axis_number[WPK_AXES_MAX];
    uint64_t *met; /* [node_count] labels of the operations printed in this stage; owned */
    int met_count;
};

/* ---- numbers */

static int find_number(const struct printer *p, int tensor)
{
    for (int i = 0; i < p->numbered_count; i++) {
        if (p->labels.tensor[p->numbered[i]] == p->labels.tensor[tensor]) {
            return i;
        }
    }
    return -1;
}

static int take_number(struct printer *p, int tensor)
{
    int number = find_number(p, tensor);
    if (number < 0) {
        number = p->numbered_count++;
        p->numbered[number] = tensor;
    }
    return number;
}

/* Output axes by place, reduction axes by label. */
static void number_axes(struct printer *p)
{
    const struct wpk_stage *stage = &p->program->stages[p->stage];
    const uint64_t *label = p->labels.axis[p->stage];
    for (int a = 0; a < stage->axis_count; a++) {
        p->axis_number[a] = a < stage->rank ? a : stage->rank;
        for (int o = stage->rank; a >= stage->rank && o < stage->axis_count; o++) {
            p->axis_number[a] += label[o] < label[a] ? 1 : 0;
        }
    }
}

static int axis_with_number(const struct printer *p, int number)
{
    int axis = 0;
    while (p->axis_number[axis] != number) {
        axis++;
        WPK_ASSERT(axis < p->program->stages[p->stage].axis_count);
    }
    return axis;
}

/* ---- expressions */

struct operand {
    uint64_t label;
    int node;
};

static int compare_operands(const void *a, const void *b)
{
    uint64_t x = ((const struct operand *)a)->label;
    uint64_t y = ((const struct operand *)b)->label;
    return x < y ? -1 : x > y ? 1 : 0;
}

/* The operands of a node in canonical order; returns how many. */
static int sorted_operands(struct printer *p, int node,
                           struct operand operands[WPK_LABEL_OPERANDS_MAX])
{
    const struct wpk_node *n = &p->program->nodes[node];
    int nodes[WPK_LABEL_OPERANDS_MAX] = {n->arg[0], n->arg[1], n->arg[2]};
    int count = n->kind == WPK_NODE_SELECT ? 3 : n->kind == WPK_NODE_BINARY ? 2 : 1;
    bool sorts = n->kind == WPK_NODE_BINARY && wpk_labels_commutes((enum wpk_binary)n->op);
    if (sorts) {
        count = wpk_labels_operands(&p->labels, node, nodes);
    }
    for (int i = 0; i < count; i++) {
        operands[i] = (struct operand){wpk_labels_node(&p->labels, p->stage, nodes[i]), nodes[i]};
    }
    if (sorts) {
        qsort(operands, (size_t)count, sizeof *operands, compare_operands);
    }
    return count;
}

static void print_node(struct printer *p, int node);

static void print_affine(struct printer *p, const struct wpk_affine *affine)
{
    int axis_count = p->program->stages[p->stage].axis_count;
    wpk_buf_append_byte(p->out, '{');
    for (int i = 0; i < axis_count; i++) {
        int64_t coefficient = affine->coefficient[axis_with_number(p, i)];
        if (coefficient == 1) {
            wpk_buf_printf(p->out, "+a%d", i);
        } else if (coefficient != 0) {
            wpk_buf_printf(p->out, "%+" PRId64 "*a%d", coefficient, i);
        }
    }
    if (affine->constant != 0) {
        wpk_buf_printf(p->out, "%+" PRId64, affine->constant);
    }
    wpk_buf_append_byte(p->out, '}');
}

static void print_load(struct printer *p, const struct wpk_node *n)
{
    wpk_buf_printf(p->out, "t%d[", take_number(p, n->tensor));
    for (int d = 0; d < p->program->tensors[n->tensor].rank; d++) {
        wpk_buf_append_text(p->out, d == 0 ? "" : ",");
        print_node(p, n->index[d]);
    }
    wpk_buf_append_byte(p->out, ']');
    if (n->outside >= 0) {
        wpk_buf_append_byte(p->out, '|');
        print_node(p, n->outside);
    }
}

/* True when an equal operation was printed in this stage: its number stands for it. */
static bool print_again(struct printer *p, int node)
{
    uint64_t label = wpk_labels_node(&p->labels, p->stage, node);
    for (int i = 0; i < p->met_count; i++) {
        if (p->met[i] == label) {
            wpk_buf_printf(p->out, "#%d", i);
            return true;
        }
    }
    p->met[p->met_count++] = label;
    return false;
}

static void print_operation(struct printer *p, int node)
{
    const struct wpk_node *n = &p->program->nodes[node];
    const char *name = n->kind == WPK_NODE_UNARY    ? unary_names[n->op]
                       : n->kind == WPK_NODE_BINARY ? binary_names[n->op]
                       : n->kind == WPK_NODE_SELECT ? "select"
                                                    : "cast";
    if (print_again(p, node)) {
        return;
    }
    struct operand operands[WPK_LABEL_OPERANDS_MAX];
    int count = sorted_operands(p, node, operands);
    wpk_buf_printf(p->out, "(%s:%s", name, wpk_dtype_name(n->dtype));
    for (int i = 0; i < count; i++) {
        wpk_buf_append_byte(p->out, ' ');
        print_node(p, operands[i].node);
    }
    wpk_buf_append_byte(p->out, ')');
}

static void print_node(struct printer *p, int node)
{
    const struct wpk_node *n = &p->program->nodes[node];
    struct wpk_affine affine;
    if (wpk_labels_affine(p->program, node, &affine)) {
        print_affine(p, &affine);
    } else if (n->kind == WPK_NODE_LOAD) {
        print_load(p, n);
    } else if (n->kind != WPK_NODE_LITERAL) {
        print_operation(p, node);
    } else if (wpk_dtype_is_float(n->dtype)) {
        wpk_buf_printf(p->out, "%s:%a", wpk_dtype_name(n->dtype), n->value);
    } else {
        wpk_buf_printf(p->out, "%s:%" PRId64, wpk_dtype_name(n->dtype), n->integer);
    }
}

/* ---- stages */

/* Tensors an expression loads, in canonical order, into `tensors`; each node once. */
static int list_loads(struct printer *p, int node, int *tensors, int count)
{
    const struct wpk_node *n = &p->program->nodes[node];
    struct operand operands[WPK_LABEL_OPERANDS_MAX];
    struct wpk_affine affine;
    if (n->kind == WPK_NODE_LITERAL || wpk_labels_affine(p->program, node, &affine)) {
        return count;
    }
    uint64_t label = wpk_labels_node(&p->labels, p->stage, node);
    for (int i = 0; i < p->met_count; i++) {
        if (p->met[i] == label) {
            return count;
        }
    }
    p->met[p->met_count++] = label;
    if (n->kind == WPK_NODE_LOAD) {
        bool known = false;
        for (int i = 0; i < count && !known; i++) {
            known = tensors[i] == n->tensor;
        }
        if (!known) {
            tensors[count++] = n->tensor;
        }
        for (int d = 0; d < p->program->tensors[n->tensor].rank; d++) {
            count = list_loads(p, n->index[d], tensors, count);
        }
        return count;
    }
    int operand_count = sorted_operands(p, node, operands);
    for (int i = 0; i < operand_count; i++) {
        count = list_loads(p, operands[i].node, tensors, count);
    }
    return count;
}

static void enter_stage(struct printer *p, int s)
{
    p->stage = s;
    p->met_count = 0;
    wpk_labels_enter(&p->labels);
}

static void note_extent(struct printer *p, int64_t extent)
{
    if (p->extents != NULL && p->extent_count++ < WPK_EXTENTS_MAX) {
        wpk_buf_printf(p->extents, "%s%" PRId64, p->extents->size > 0 ? "," : "", extent);
    }
}

static void print_stage_line(struct printer *p, int s)
{
    const struct wpk_stage *stage = &p->program->stages[s];
    enter_stage(p, s);
    number_axes(p);
    /* Its own number comes after those of what it loads: the expression is printed first. */
    for (int a = 0; a < stage->axis_count; a++) {
        const char *before = a == 0 && stage->rank > 0 ? "[" : a == stage->rank ? "(" : ",";
        int64_t extent = stage->axes[axis_with_number(p, a)].extent;
        note_extent(p, extent);
        if (p->labels.family) {
            wpk_buf_printf(p->out, "%s*", before);
        } else {
            wpk_buf_printf(p->out, "%s%" PRId64, before, extent);
        }
        if (a == stage->rank - 1) {
            wpk_buf_append_byte(p->out, ']');
        }
    }
    wpk_buf_append_text(p->out, stage->axis_count > stage->rank ? ")" : "");
    if (stage->reduction != WPK_REDUCE_NONE) {
        wpk_buf_printf(p->out, " %s:%s", reduction_names[stage->reduction],
                       wpk_dtype_name(stage->accumulator));
    }
    wpk_buf_append_byte(p->out, ' ');
    print_node(p, stage->expr);
    wpk_buf_printf(p->out, " -> t%d\n", take_number(p, stage->output));
}

/* The stage that writes `tensor`, after those it needs. Depth: WPK_STAGES_MAX. */
static void print_writer(struct printer *p, int tensor)
{
    int s = wpk_program_writer(p->program, tensor);
    if (s < 0 || p->printed[tensor]) {
        return;
    }
    int tensors[WPK_TENSORS_MAX];
    enter_stage(p, s);
    int count = list_loads(p, p->program->stages[s].expr, tensors, 0);
    for (int i = 0; i < count; i++) {
        print_writer(p, tensors[i]);
    }
    print_stage_line(p, s);
    for (int t = 0; t < p->program->tensor_count; t++) {
        /* Equal stages are one: what they write has one number. */
        bool same = p->labels.used[t] && p->labels.tensor[t] == p->labels.tensor[tensor];
        p->printed[t] = p->printed[t] || same;
    }
}

static void print_outputs(struct printer *p)
{
    struct operand outputs[WPK_TENSORS_MAX];
    size_t count = 0;
    for (int t = 0; t < p->program->tensor_count; t++) {
        if (p->program->tensors[t].role == WPK_ROLE_OUTPUT) {
            outputs[count++] = (struct operand){p->labels.tensor[t], t};
        }
    }
    qsort(outputs, count, sizeof *outputs, compare_operands);
    for (size_t i = 0; i < count; i++) {
        print_writer(p, outputs[i].node);
    }
}

/* ---- tensors */

static void print_tensor(struct printer *p, int number)
{
    const struct wpk_tensor *tensor = &p->program->tensors[p->numbered[number]];
    bool is_literal = tensor->role == WPK_ROLE_LITERAL;
    wpk_buf_printf(p->out, "t%d %s %s[", number, role_names[tensor->role],
                   wpk_dtype_name(tensor->dtype));
    bool padded = false;
    for (int d = 0; d < tensor->rank; d++) {
        wpk_buf_append_text(p->out, d == 0 ? "" : ",");
        if (p->labels.family && !is_literal) {
            wpk_buf_append_byte(p->out, '*');
        } else {
            wpk_buf_printf(p->out, "%" PRId64, tensor->extent[d]);
        }
        padded = padded || tensor->pad_before[d] != 0 || tensor->pad_after[d] != 0;
    }
    wpk_buf_append_byte(p->out, ']');
    for (int d = 0; padded && d < tensor->rank; d++) {
        wpk_buf_printf(p->out, "%s%" PRId64 ":%" PRId64, d == 0 ? " pad " : ",",
                       tensor->pad_before[d], tensor->pad_after[d]);
    }
    for (int64_t i = 0; is_literal && i < wpk_tensor_elements(tensor); i++) {
        wpk_buf_printf(p->out, "%s%a", i == 0 ? " = " : ",", tensor->values[i]);
    }
    wpk_buf_append_byte(p->out, '\n');
}

/* The family's text when `exact` is given, and then the extents that it leaves out. `binding` may
 * be NULL. The labels stay behind in `p`. */
static wpk_err print_program(struct printer *p, const struct wpk_labels *exact, int *binding)
{
    const struct wpk_program *program = p->program;
    wpk_err err = wpk_labels_init(&p->labels, program, exact);
    if (err != WPK_OK) {
        return err;
    }
    p->met = malloc(((size_t)program->node_count + 1) * sizeof *p->met);
    err = p->met == NULL ? WPK_ENOMEM : WPK_OK;
    if (err == WPK_OK) {
        wpk_buf_append_text(p->out, VERSION_LINE);
        print_outputs(p);
        for (int i = 0; i < p->numbered_count; i++) {
            print_tensor(p, i);
        }
        err = wpk_buf_status(p->out);
    }
    for (int t = 0; binding != NULL && t < program->tensor_count; t++) {
        binding[t] = p->labels.used[t] ? find_number(p, t) : -1;
    }
    free(p->met);
    return err;
}

/* Family and extents. */
static wpk_err print_family(const struct wpk_program *program, const struct wpk_labels *exact,
                            struct wpk_buf *text, struct wpk_fingerprint *out)
{
    struct wpk_buf extents;
    wpk_buf_init(&extents, sizeof out->extents - 1);
    struct printer p = {.program = program, .out = text, .extents = &extents};
    wpk_err err = print_program(&p, exact, NULL);
    wpk_labels_fini(&p.labels);
    if (err == WPK_OK) {
        err = wpk_buf_status(&extents);
    }
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(wpk_buf_text(text), text->size, out->family);
        memcpy(out->extents, wpk_buf_text(&extents), extents.size + 1);
    }
    wpk_buf_fini(&extents);
    return err;
}

wpk_err wpk_fingerprint(const struct wpk_program *program, struct wpk_fingerprint *out,
                        int *binding)
{
    struct wpk_buf text = {0};
    struct printer p = {.program = program, .out = &text};
    wpk_err err = print_program(&p, NULL, binding);
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(wpk_buf_text(&text), text.size, out->exact);
        wpk_buf_reset(&text);
        err = print_family(program, &p.labels, &text, out);
    }
    wpk_labels_fini(&p.labels);
    wpk_buf_fini(&text);
    return err;
}

/* One extent and what follows it; 0 when there is none. */
static int64_t take_extent(const char **at)
{
    char *end;
    if (**at < '1' || **at > '9') {
        return 0;
    }
    int64_t extent = strtoll(*at, &end, 10);
    bool last = *end == '\0';
    if (!last && (*end != ',' || end[1] == '\0')) {
        return 0;
    }
    *at = last ? end : end + 1;
    return extent;
}

double wpk_extents_distance(const char *a, const char *b)
{
    double distance = 0;
    while (*a != '\0' && *b != '\0') {
        int64_t x = take_extent(&a), y = take_extent(&b);
        if (x <= 0 || y <= 0) {
            return HUGE_VAL;
        }
        distance += fabs(log2((double)x / (double)y));
    }
    return *a == *b ? distance : HUGE_VAL;
}
