/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text. One printer of expressions serves both forms: the user's form folds reductions
 * back into the expression that reads them and writes relu(x) for max(x, 0). */
#include "ir/notation/notation.h"

#include "ir/node.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct printer {
    const struct wpk_program *program;
    struct wpk_buf *out;
    bool fold;     /* the user's form */
    bool in_index; /* of a load */
    const char *axis[WPK_AXES_MAX];
    int64_t extent[WPK_AXES_MAX]; /* of each axis */
    /* By stage: is printed inside the only one that reads it. */
    bool is_folded[WPK_STAGES_MAX];
    int reader[WPK_STAGES_MAX]; /* of a stage that is folded */
};

static const char *unary_text(int op)
{
    static const char *const texts[] = {WPK_UNARY_LIST(WPK_LIST_TEXT)};
    return texts[op];
}

static const struct {
    const char *text;
    bool call;
} binary_texts[] = {
#define TEXT(suffix, text, commutative, call) {text, call},
    WPK_BINARY_LIST(TEXT)
#undef TEXT
};

/* Strength of an operator; calls and everything else bind strongest. */
static int strength(const struct wpk_program *program, int node)
{
    const struct wpk_node *n = &program->nodes[node];
    if (n->kind == WPK_NODE_UNARY) {
        return n->op == WPK_UNARY_NEG || n->op == WPK_UNARY_NOT ? 6 : 9;
    }
    if (n->kind == WPK_NODE_LITERAL) {
        bool negative = wpk_dtype_is_float(n->dtype) ? signbit(n->value) != 0 : n->integer < 0;
        return negative ? 6 : 9;
    }
    if (n->kind != WPK_NODE_BINARY || binary_texts[n->op].call) {
        return 9;
    }
    switch (n->op) {
    case WPK_BINARY_OR:
        return 0;
    case WPK_BINARY_AND:
        return 1;
    case WPK_BINARY_ADD:
    case WPK_BINARY_SUB:
        return 3;
    case WPK_BINARY_MUL:
    case WPK_BINARY_DIV:
    case WPK_BINARY_MOD:
        return 4;
    default:
        return 2;
    }
}

static void print_real(struct wpk_buf *out, double value)
{
    char text[40];
    if (isinf(value)) {
        wpk_buf_append_text(out, value < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    wpk_buf_append_text(out, text);
}

static void print_literal(struct wpk_buf *out, const struct wpk_node *n)
{
    if (wpk_dtype_is_float(n->dtype)) {
        print_real(out, n->value);
    } else {
        wpk_buf_printf(out, "%lld", (long long)n->integer);
    }
}

static void print_node(struct printer *p, int node, int least);

/* A number that meets nothing whose type it could take carries its own. */
static void print_typed(struct printer *p, int node, int least)
{
    const struct wpk_node *n = &p->program->nodes[node];
    if (n->kind != WPK_NODE_LITERAL) {
        print_node(p, node, least);
        return;
    }
    wpk_buf_printf(p->out, "%s(", wpk_dtype_name(n->dtype));
    print_literal(p->out, n);
    wpk_buf_append_byte(p->out, ')');
}

static void print_operand(struct printer *p, int node, int other, int least)
{
    const struct wpk_program *program = p->program;
    bool same = program->nodes[other].kind != WPK_NODE_LITERAL &&
                program->nodes[other].dtype == program->nodes[node].dtype;
    if (program->nodes[node].kind == WPK_NODE_LITERAL && !same) {
        print_typed(p, node, least);
    } else {
        print_node(p, node, least);
    }
}

static void print_stage_value(struct printer *p, const struct wpk_stage *stage);

/* The stage that is printed in place of this load, or NULL. */
static const struct wpk_stage *folded_at(const struct printer *p, const struct wpk_node *load)
{
    int writer = wpk_program_writer(p->program, load->tensor);

    return writer >= 0 && p->is_folded[writer] ? &p->program->stages[writer] : NULL;
}

static void print_load(struct printer *p, const struct wpk_node *load)
{
    const struct wpk_tensor *tensor = &p->program->tensors[load->tensor];
    const struct wpk_stage *folded = folded_at(p, load);
    if (folded != NULL) {
        struct printer inner = *p;
        for (int d = 0; d < folded->rank; d++) {
            inner.axis[d] = p->axis[wpk_index_axis(p->program, load->index[d])];
            inner.extent[d] = folded->axes[d].extent;
        }
        for (int a = folded->rank; a < folded->axis_count; a++) {
            inner.axis[a] = folded->axes[a].name;
            inner.extent[a] = folded->axes[a].extent;
        }
        print_stage_value(&inner, folded);
        return;
    }
    wpk_buf_printf(p->out, "%s[", tensor->name);
    for (int d = 0; d < tensor->rank; d++) {
        wpk_buf_append_text(p->out, d == 0 ? "" : ",");
        /* Casts to i64 are not written: integers of tensors are indices as they are. */
        bool outer = p->in_index;
        p->in_index = true;
        print_node(p, load->index[d], 0);
        p->in_index = outer;
        /* An axis alone would take its extent from this tensor. */
        int axis = wpk_index_axis(p->program, load->index[d]);
        if (p->fold && axis >= 0 && p->extent[axis] != tensor->extent[d]) {
            wpk_buf_append_text(p->out, "+0");
        }
    }
    if (load->outside >= 0) {
        const struct wpk_node *outside = &p->program->nodes[load->outside];
        bool zero = wpk_dtype_is_float(outside->dtype)
                        ? outside->value == 0 && signbit(outside->value) == 0
                        : outside->integer == 0;
        if (!zero) {
            wpk_buf_append_text(p->out, " | ");
            print_literal(p->out, outside);
        }
    }
    wpk_buf_append_byte(p->out, ']');
}

/* Print an operand. A reduction would take all factors that follow it for its own. */
static void print_factor(struct printer *p, const struct wpk_node *n, int side, int least)
{
    const struct wpk_node *operand = &p->program->nodes[n->arg[side]];
    bool is_product = n->op == WPK_BINARY_MUL || n->op == WPK_BINARY_DIV || n->op == WPK_BINARY_MOD;
    bool wrap = is_product && operand->kind == WPK_NODE_LOAD && folded_at(p, operand) != NULL;

    wpk_buf_append_text(p->out, wrap ? "(" : "");
    print_operand(p, n->arg[side], n->arg[1 - side], least);
    wpk_buf_append_text(p->out, wrap ? ")" : "");
}

static void print_binary(struct printer *p, const struct wpk_node *n)
{
    int own = 9;
    const struct wpk_node *least = &p->program->nodes[n->arg[1]];
    bool is_zero = least->kind == WPK_NODE_LITERAL &&
                   (wpk_dtype_is_float(least->dtype) ? least->value : (double)least->integer) == 0;
    if (p->fold && n->op == WPK_BINARY_MAX && is_zero) {
        wpk_buf_append_text(p->out, "relu(");
        print_node(p, n->arg[0], 0);
        wpk_buf_append_byte(p->out, ')');
        return;
    }
    if (binary_texts[n->op].call) {
        /* max(i, j) before a name, such as the next stage's, would be a reduction */
        bool names = p->program->nodes[n->arg[0]].kind == WPK_NODE_AXIS &&
                     p->program->nodes[n->arg[1]].kind == WPK_NODE_AXIS;
        wpk_buf_printf(p->out, names ? "(%s(" : "%s(", binary_texts[n->op].text);
        print_operand(p, n->arg[0], n->arg[1], 0);
        wpk_buf_append_text(p->out, ", ");
        print_operand(p, n->arg[1], n->arg[0], 0);
        wpk_buf_append_text(p->out, names ? "))" : ")");
        return;
    }
    own = strength(p->program, (int)(n - p->program->nodes));
    bool index = n->dtype == WPK_I64;
    const struct wpk_node *right = &p->program->nodes[n->arg[1]];
    if (index && n->op == WPK_BINARY_ADD && right->kind == WPK_NODE_LITERAL && right->integer < 0 &&
        right->integer > INT64_MIN) {
        print_operand(p, n->arg[0], n->arg[1], own);
        wpk_buf_printf(p->out, "-%lld", -(long long)right->integer);
        return;
    }
    print_factor(p, n, 0, own);
    wpk_buf_printf(p->out, index ? "%s" : " %s ", binary_texts[n->op].text);
    print_factor(p, n, 1, own + 1);
}

static void print_node(struct printer *p, int node, int least)
{
    const struct wpk_node *n = &p->program->nodes[node];
    bool wrap = strength(p->program, node) < least;
    if (wrap) {
        wpk_buf_append_byte(p->out, '(');
    }
    switch (n->kind) {
    case WPK_NODE_LITERAL:
        print_literal(p->out, n);
        break;
    case WPK_NODE_AXIS:
        wpk_buf_append_text(p->out, p->axis[n->axis]);
        break;
    case WPK_NODE_LOAD:
        print_load(p, n);
        break;
    case WPK_NODE_UNARY:
        if (n->op == WPK_UNARY_NEG || n->op == WPK_UNARY_NOT) {
            wpk_buf_append_text(p->out, unary_text(n->op));
            print_typed(p, n->arg[0], 7);
        } else {
            wpk_buf_printf(p->out, "%s(", unary_text(n->op));
            print_typed(p, n->arg[0], 0);
            wpk_buf_append_byte(p->out, ')');
        }
        break;
    case WPK_NODE_BINARY:
        print_binary(p, n);
        break;
    case WPK_NODE_SELECT:
        wpk_buf_append_text(p->out, "select(");
        print_node(p, n->arg[0], 0);
        wpk_buf_append_text(p->out, ", ");
        print_typed(p, n->arg[1], 0);
        wpk_buf_append_text(p->out, ", ");
        print_typed(p, n->arg[2], 0);
        wpk_buf_append_byte(p->out, ')');
        break;
    case WPK_NODE_CAST:
        if (p->in_index) {
            print_node(p, n->arg[0], least);
            break;
        }
        wpk_buf_printf(p->out, "%s(", wpk_dtype_name(n->dtype));
        print_typed(p, n->arg[0], 0);
        wpk_buf_append_byte(p->out, ')');
        break;
    }
    if (wrap) {
        wpk_buf_append_byte(p->out, ')');
    }
}

static bool begins_with_sign(const struct wpk_program *program, int node)
{
    const struct wpk_node *n = &program->nodes[node];

    while (n->kind == WPK_NODE_BINARY && !binary_texts[n->op].call) {
        node = n->arg[0];
        n = &program->nodes[node];
    }
    return strength(program, node) == 6;
}

static void print_stage_value(struct printer *p, const struct wpk_stage *stage)
{
    static const char *const names[] = {[WPK_REDUCE_SUM] = "sum",
                                        [WPK_REDUCE_MAX] = "max",
                                        [WPK_REDUCE_MIN] = "min",
                                        [WPK_REDUCE_PROD] = "prod"};
    if (stage->reduction == WPK_REDUCE_NONE) {
        print_typed(p, stage->expr, 0);
        return;
    }
    wpk_buf_append_text(p->out, names[stage->reduction]);
    enum wpk_dtype body = p->program->nodes[stage->expr].dtype;
    if (!p->fold || stage->accumulator != wpk_dtype_wide(body)) {
        wpk_buf_printf(p->out, ".%s", wpk_dtype_name(stage->accumulator));
    }
    wpk_buf_append_byte(p->out, '(');
    for (int a = stage->rank; a < stage->axis_count; a++) {
        wpk_buf_printf(p->out, "%s%s:%lld", a == stage->rank ? "" : ",", stage->axes[a].name,
                       (long long)stage->axes[a].extent);
    }
    wpk_buf_append_text(p->out, ") ");
    /* a number alone must not look like the operand of something else */
    bool literal = p->program->nodes[stage->expr].kind == WPK_NODE_LITERAL;
    bool wrap = !literal && begins_with_sign(p->program, stage->expr);
    wpk_buf_append_text(p->out, wrap ? "(" : "");
    print_typed(p, stage->expr, wrap ? 0 : 4);
    wpk_buf_append_text(p->out, wrap ? ")" : "");
}

/* Some load of the stage, or of a reduction that is printed inside it, indexes a dimension by the
 * axis alone: who reads the text learns the extent there. */
static bool tells_extent(const struct printer *p, const struct wpk_stage *stage, int axis)
{
    for (struct wpk_loads load = wpk_loads_of(p->program, stage); wpk_loads_next(&load);) {
        const struct wpk_stage *folded = folded_at(p, load.node);
        for (int d = 0; d < p->program->tensors[load.node->tensor].rank; d++) {
            if (wpk_index_axis(p->program, load.node->index[d]) == axis &&
                (folded != NULL ? tells_extent(p, folded, d)
                                : p->program->tensors[load.node->tensor].extent[d] ==
                                      stage->axes[axis].extent)) {
                return true;
            }
        }
    }
    return false;
}

static void print_stage(struct printer *p, const struct wpk_stage *stage)
{
    bool declared = p->program->tensors[stage->output].role == WPK_ROLE_OUTPUT;

    wpk_buf_append_text(p->out, p->program->tensors[stage->output].name);
    memset(p->axis, 0, sizeof(p->axis));
    for (int a = 0; a < stage->axis_count; a++) {
        p->axis[a] = stage->axes[a].name;
        p->extent[a] = stage->axes[a].extent;
    }
    wpk_buf_append_byte(p->out, '[');
    for (int a = 0; a < stage->rank; a++) {
        wpk_buf_printf(p->out, "%s%s", a == 0 ? "" : ",", stage->axes[a].name);
        if (p->fold && !declared && !tells_extent(p, stage, a)) {
            wpk_buf_printf(p->out, ":%lld", (long long)stage->axes[a].extent);
        }
    }
    wpk_buf_append_text(p->out, "] = ");
    print_stage_value(p, stage);
}

static void print_declaration(const struct wpk_tensor *tensor, struct wpk_buf *out)
{
    static const char *const roles[] = {"input", "constant", "intermediate", "output", "literal"};
    bool padded = false;
    wpk_buf_printf(out, "%s %s %s[", roles[tensor->role], tensor->name,
                   wpk_dtype_name(tensor->dtype));
    for (int d = 0; d < tensor->rank; d++) {
        wpk_buf_printf(out, "%s%lld", d == 0 ? "" : ",", (long long)tensor->extent[d]);
        padded = padded || tensor->pad_before[d] != 0 || tensor->pad_after[d] != 0;
    }
    wpk_buf_append_byte(out, ']');
    for (int d = 0; d < tensor->rank && padded; d++) {
        wpk_buf_printf(out, "%s%lld:%lld", d == 0 ? " pad " : ",", (long long)tensor->pad_before[d],
                       (long long)tensor->pad_after[d]);
    }
    int64_t count = tensor->role == WPK_ROLE_LITERAL ? wpk_tensor_elements(tensor) : 0;
    for (int64_t i = 0; i < count; i++) {
        wpk_buf_append_text(out, i == 0 ? " = " : ",");
        print_real(out, tensor->values[i]);
    }
    wpk_buf_append_byte(out, '\n');
}

wpk_err wpk_program_print(const struct wpk_program *program, struct wpk_buf *out)
{
    struct printer p = {.program = program, .out = out};
    for (int t = 0; t < program->tensor_count; t++) {
        print_declaration(&program->tensors[t], out);
    }
    for (int s = 0; s < program->stage_count; s++) {
        print_stage(&p, &program->stages[s]);
        wpk_buf_append_byte(out, '\n');
    }
    return wpk_buf_status(out);
}

/* A reduction axis of stage s has the name of an axis around it, if it is printed in its reader. */
static bool reuses_name(const struct printer *p, int s)
{
    const struct wpk_stage *stage = &p->program->stages[s];
    bool is_inside = true;

    for (int at = p->reader[s]; is_inside; at = p->reader[at]) {
        const struct wpk_stage *around = &p->program->stages[at];
        is_inside = p->is_folded[at];
        for (int a = is_inside ? around->rank : 0; a < around->axis_count; a++) {
            for (int r = stage->rank; r < stage->axis_count; r++) {
                if (strcmp(around->axes[a].name, stage->axes[r].name) == 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Note the stage as the reader of what it loads, and the tensors that cannot be folded. */
static void find_reader(struct printer *p, int s, int *uses)
{
    const struct wpk_program *program = p->program;
    for (struct wpk_loads load = wpk_loads_of(program, &program->stages[s]);
         wpk_loads_next(&load);) {
        int writer = wpk_program_writer(program, load.node->tensor);
        bool is_plain = load.node->outside < 0;
        for (int d = 0; d < program->tensors[load.node->tensor].rank; d++) {
            int axis = wpk_index_axis(program, load.node->index[d]);
            is_plain = is_plain && axis >= 0 &&
                       program->stages[s].axes[axis].extent ==
                           program->tensors[load.node->tensor].extent[d];
        }
        if (writer >= 0) {
            uses[writer] += is_plain ? 1 : 2;
            p->reader[writer] = s;
        }
    }
}

/* Decide which reductions are printed inside the stage that reads them: readers come after what
 * they read. */
static void find_folded(struct printer *p)
{
    int uses[WPK_STAGES_MAX] = {0};

    if (!wpk_program_loads_fit(p->program)) {
        return;
    }
    for (int s = p->program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &p->program->stages[s];
        p->is_folded[s] = uses[s] == 1 && stage->reduction != WPK_REDUCE_NONE &&
                          p->program->tensors[stage->output].role != WPK_ROLE_OUTPUT &&
                          !reuses_name(p, s);
        find_reader(p, s, uses);
    }
}

wpk_err wpk_notation_print(const struct wpk_program *program, struct wpk_buf *out)
{
    struct printer p = {.program = program, .out = out, .fold = true};
    int printed = 0;
    find_folded(&p);
    for (int s = program->stage_count - 1; s >= 0; s--) {
        if (!p.is_folded[s]) {
            wpk_buf_append_text(out, printed == 0 ? "" : printed == 1 ? " where " : "; ");
            print_stage(&p, &program->stages[s]);
            printed++;
        }
    }
    return wpk_buf_status(out);
}
