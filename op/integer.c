/* SPDX-License-Identifier: Apache-2.0 */
#include "op/integer.h"

#include "op/cost.h"
#include "op/node.h"

#include <stdlib.h>
#include <string.h>

struct evaluation {
    const struct wpk_program *program;
    const int64_t *value[WPK_TENSORS_MAX];
    int64_t axis[WPK_AXES_MAX];
};

/* ---- what fits */

static bool is_integer(enum wpk_dtype dtype)
{
    return !wpk_dtype_is_float(dtype);
}

static void refuse(const struct wpk_program *program, int id, void *user)
{
    const struct wpk_node *node = &program->nodes[id];
    bool power = node->kind == WPK_NODE_BINARY && node->op == WPK_BINARY_POW;
    bool function = node->kind == WPK_NODE_UNARY && node->op != WPK_UNARY_NEG &&
                    node->op != WPK_UNARY_NOT && node->op != WPK_UNARY_ABS;
    *(bool *)user = *(bool *)user && is_integer(node->dtype) && !power && !function;
}

bool wpk_integer_fits(const struct wpk_program *program)
{
    struct wpk_cost cost;
    wpk_cost(program, &cost);
    bool fits = cost.iterations <= WPK_INTEGER_ITERATIONS_MAX;
    for (int t = 0; t < program->tensor_count; t++) {
        fits = fits && is_integer(program->tensors[t].dtype);
    }
    for (int s = 0; s < program->stage_count && fits; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        fits = stage->reduction == WPK_REDUCE_NONE || is_integer(stage->accumulator);
        wpk_node_walk(program, stage->expr, true, refuse, &fits);
    }
    return fits;
}

/* ---- nodes */

static int64_t wrap(enum wpk_dtype dtype, int64_t value)
{
    switch (dtype) {
    case WPK_BOOL:
        return value != 0;
    case WPK_I8:
        return (int8_t)(uint8_t)(uint64_t)value;
    case WPK_U8:
        return (uint8_t)(uint64_t)value;
    case WPK_I32:
        return (int32_t)(uint32_t)(uint64_t)value;
    default:
        return value;
    }
}

static int64_t divide(int64_t a, int64_t b, bool remainder)
{
    if (b == 0) {
        return 0;
    }
    if (b == -1) { /* the least number has no negative */
        return remainder ? 0 : (int64_t)(0 - (uint64_t)a);
    }
    int64_t quotient = a / b, rest = a % b;
    bool floors = rest != 0 && (rest < 0) != (b < 0);
    return remainder ? rest + (floors ? b : 0) : quotient - floors;
}

static int64_t operate(int op, int64_t a, int64_t b)
{
    switch (op) {
    case WPK_BINARY_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case WPK_BINARY_SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case WPK_BINARY_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case WPK_BINARY_DIV:
        return divide(a, b, false);
    case WPK_BINARY_MOD:
        return divide(a, b, true);
    case WPK_BINARY_MIN:
        return a < b ? a : b;
    case WPK_BINARY_MAX:
        return a > b ? a : b;
    case WPK_BINARY_LT:
        return a < b;
    case WPK_BINARY_LE:
        return a <= b;
    case WPK_BINARY_EQ:
        return a == b;
    case WPK_BINARY_NE:
        return a != b;
    case WPK_BINARY_AND:
        return a != 0 && b != 0;
    default:
        WPK_ASSERT(op == WPK_BINARY_OR);
        return a != 0 || b != 0;
    }
}

static int64_t evaluate(const struct evaluation *e, int id);

static int64_t load(const struct evaluation *e, const struct wpk_node *node)
{
    const struct wpk_tensor *t = &e->program->tensors[node->tensor];
    int64_t at = 0;
    for (int d = 0; d < t->rank; d++) {
        int64_t i = evaluate(e, node->index[d]);
        if (i < 0 || i >= t->extent[d]) { /* padding is 0 */
            bool padded = i >= -t->pad_before[d] && i < t->extent[d] + t->pad_after[d];
            return node->outside < 0 || padded ? 0 : evaluate(e, node->outside);
        }
        at = at * t->extent[d] + i;
    }
    return t->role == WPK_ROLE_LITERAL ? (int64_t)t->values[at] : e->value[node->tensor][at];
}

static int64_t evaluate(const struct evaluation *e, int id)
{
    const struct wpk_node *node = &e->program->nodes[id];
    int64_t value = 0;
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        value = node->integer;
        break;
    case WPK_NODE_AXIS:
        value = e->axis[node->axis];
        break;
    case WPK_NODE_LOAD:
        return load(e, node);
    case WPK_NODE_UNARY:
        value = evaluate(e, node->arg[0]);
        value = node->op == WPK_UNARY_NOT                ? value == 0
                : node->op == WPK_UNARY_NEG || value < 0 ? (int64_t)(0 - (uint64_t)value)
                                                         : value;
        break;
    case WPK_NODE_BINARY:
        value = operate(node->op, evaluate(e, node->arg[0]), evaluate(e, node->arg[1]));
        break;
    case WPK_NODE_SELECT:
        value = evaluate(e, node->arg[evaluate(e, node->arg[0]) != 0 ? 1 : 2]);
        break;
    case WPK_NODE_CAST:
        value = evaluate(e, node->arg[0]);
        break;
    }
    return wrap(node->dtype, value);
}

/* ---- stages */

static int64_t identity_of(const struct wpk_stage *stage)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    if (stage->accumulator != WPK_I64) {
        wpk_dtype_integer_range(stage->accumulator, &low, &high);
    }
    return stage->reduction == WPK_REDUCE_MAX    ? low
           : stage->reduction == WPK_REDUCE_MIN  ? high
           : stage->reduction == WPK_REDUCE_PROD ? 1
                                                 : 0;
}

static int64_t join(const struct wpk_stage *stage, int64_t sum, int64_t term)
{
    int op = stage->reduction == WPK_REDUCE_MAX    ? WPK_BINARY_MAX
             : stage->reduction == WPK_REDUCE_MIN  ? WPK_BINARY_MIN
             : stage->reduction == WPK_REDUCE_PROD ? WPK_BINARY_MUL
                                                   : WPK_BINARY_ADD;
    return wrap(stage->accumulator, operate(op, sum, term));
}

/* Step the axes from `first` on; false after the last element. */
static bool step(struct evaluation *e, const struct wpk_stage *stage, int first, int end)
{
    for (int a = end - 1; a >= first; a--) {
        if (++e->axis[a] < stage->axes[a].extent) {
            return true;
        }
        e->axis[a] = 0;
    }
    return false;
}

static void compute(struct evaluation *e, const struct wpk_stage *stage, int64_t *out)
{
    memset(e->axis, 0, sizeof(e->axis));
    do {
        int64_t value;
        if (stage->reduction == WPK_REDUCE_NONE) {
            value = evaluate(e, stage->expr);
        } else {
            value = identity_of(stage);
            do {
                value = join(stage, value, evaluate(e, stage->expr));
            } while (step(e, stage, stage->rank, stage->axis_count));
        }
        *out++ = wrap(e->program->tensors[stage->output].dtype, value);
    } while (step(e, stage, 0, stage->rank));
}

wpk_err wpk_integer_run(const struct wpk_program *program, const int64_t *const *given,
                        int64_t *out)
{
    struct evaluation e = {.program = program};
    int64_t *own[WPK_TENSORS_MAX] = {NULL};
    wpk_err err = WPK_OK;
    memcpy(e.value, given, (size_t)program->tensor_count * sizeof(*given));
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        const struct wpk_tensor *t = &program->tensors[stage->output];
        int64_t *values = out;
        if (t->role != WPK_ROLE_OUTPUT) {
            values = malloc((size_t)wpk_tensor_elements(t) * sizeof(*values));
            own[stage->output] = values;
        }
        err = values == NULL ? WPK_ENOMEM : WPK_OK;
        if (err == WPK_OK) {
            e.value[stage->output] = values;
            compute(&e, stage, values);
        }
    }
    for (int t = 0; t < program->tensor_count; t++) {
        free(own[t]);
    }
    return err;
}
