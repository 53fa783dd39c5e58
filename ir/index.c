/* SPDX-License-Identifier: Apache-2.0 */
/* The affine form, the range and the alignment of index expressions.
 *
 * Arithmetic saturates at +-INDEX_LIMIT, far beyond any tensor: a hostile `4611686018427387904*y*y`
 * is then merely out of range. */
#include "ir/node.h"

#include <stdlib.h>

#define SHARE_ROWS_MAX 256
#define SHARE_STEP_MAX ((int64_t)1 << 20)
#define INDEX_LIMIT ((int64_t)1 << 61)

static int64_t clamp(__int128 value)
{
    return value > INDEX_LIMIT ? INDEX_LIMIT : value < -INDEX_LIMIT ? -INDEX_LIMIT : (int64_t)value;
}

static int64_t add(int64_t a, int64_t b)
{
    return clamp((__int128)a + b);
}

static int64_t multiply(int64_t a, int64_t b)
{
    return clamp((__int128)a * b);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

static const struct wpk_node *node_at(const struct wpk_program *program, int id)
{
    WPK_ASSERT(id >= 0 && id < program->node_count);
    return &program->nodes[id];
}

static bool is_constant(const struct wpk_affine *affine)
{
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        if (affine->coefficient[a] != 0) {
            return false;
        }
    }
    return true;
}

static void scale(struct wpk_affine *affine, int64_t factor)
{
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        affine->coefficient[a] = multiply(affine->coefficient[a], factor);
    }
    affine->constant = multiply(affine->constant, factor);
}

static bool affine_binary(const struct wpk_program *program, const struct wpk_node *node,
                          struct wpk_affine *out)
{
    struct wpk_affine b;
    if (!wpk_index_affine(program, node->arg[0], out) ||
        !wpk_index_affine(program, node->arg[1], &b)) {
        return false;
    }
    if (node->op == WPK_BINARY_MUL) {
        if (is_constant(out)) {
            int64_t factor = out->constant;
            *out = b;
            scale(out, factor);
            return true;
        }
        scale(out, b.constant);
        return is_constant(&b);
    }
    if (node->op != WPK_BINARY_ADD && node->op != WPK_BINARY_SUB) {
        return false;
    }
    if (node->op == WPK_BINARY_SUB) {
        scale(&b, -1);
    }
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        out->coefficient[a] = add(out->coefficient[a], b.coefficient[a]);
    }
    out->constant = add(out->constant, b.constant);
    return true;
}

bool wpk_index_affine(const struct wpk_program *program, int node, struct wpk_affine *out)
{
    const struct wpk_node *at = node_at(program, node);
    *out = (struct wpk_affine){0};
    switch (at->kind) {
    case WPK_NODE_LITERAL:
        out->constant = at->integer;
        return true;
    case WPK_NODE_AXIS:
        out->coefficient[at->axis] = 1;
        return true;
    case WPK_NODE_BINARY:
        return affine_binary(program, at, out);
    default:
        return false;
    }
}

int wpk_index_axis(const struct wpk_program *program, int node)
{
    const struct wpk_node *at = node_at(program, node);
    return at->kind == WPK_NODE_AXIS ? at->axis : -1;
}

/* ---- range */

/* An expression's values in a box, and what is known of how it comes by them. */
struct span {
    int64_t low, high;
    uint32_t axes; /* that it reads, a bit each */
    bool affine;
};

_Static_assert(WPK_AXES_MAX <= 32, "a bit for each axis");

struct box {
    const int64_t *low;    /* [axes] */
    const int64_t *extent; /* [axes] */
};

static struct span span_of(const struct wpk_program *program, int id, const struct box *box);

static void take_affine(const struct wpk_affine *affine, const struct box *box, struct span *out)
{
    out->low = affine->constant;
    out->high = affine->constant;
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        int64_t c = affine->coefficient[a];
        if (c == 0) {
            continue;
        }
        int64_t first = multiply(c, box->low[a]);
        int64_t last = multiply(c, box->low[a] + box->extent[a] - 1);
        out->low = add(out->low, c > 0 ? first : last);
        out->high = add(out->high, c > 0 ? last : first);
    }
}

static void take_product(const struct span *a, const struct span *b, struct span *out)
{
    const int64_t corner[4] = {multiply(a->low, b->low), multiply(a->low, b->high),
                               multiply(a->high, b->low), multiply(a->high, b->high)};
    out->low = corner[0];
    out->high = corner[0];
    for (int i = 1; i < 4; i++) {
        out->low = corner[i] < out->low ? corner[i] : out->low;
        out->high = corner[i] > out->high ? corner[i] : out->high;
    }
}

static void take_quotient(enum wpk_binary op, const struct span *a, const struct span *b,
                          struct span *out)
{
    out->affine = false;
    if (b->low != b->high || b->low < 1) {
        out->low = -INDEX_LIMIT;
        out->high = INDEX_LIMIT;
        return;
    }
    int64_t low = floor_div(a->low, b->low), high = floor_div(a->high, b->low);
    if (op == WPK_BINARY_DIV) {
        out->low = low;
        out->high = high;
    } else if (op == WPK_BINARY_MOD && low == high) {
        out->low = a->low - low * b->low;
        out->high = a->high - low * b->low;
    } else {
        out->low = 0;
        out->high = b->low - 1;
    }
}

/* Operands that share no axis take their extremes independently: what follows from their ranges is
 * exact. Those that share one (y - y) are put together first, where they are affine. */
static struct span binary_span(const struct wpk_program *program, int id, const struct box *box)
{
    const struct wpk_node *node = node_at(program, id);
    const struct span a = span_of(program, node->arg[0], box);
    const struct span b = span_of(program, node->arg[1], box);
    struct span out = {.axes = a.axes | b.axes, .affine = a.affine && b.affine};
    bool sums = node->op == WPK_BINARY_ADD || node->op == WPK_BINARY_SUB;
    struct wpk_affine affine;
    if (!sums && node->op != WPK_BINARY_MUL) {
        take_quotient((enum wpk_binary)node->op, &a, &b, &out);
        return out;
    }
    bool entangled = sums ? (a.axes & b.axes) != 0 : a.axes != 0 && b.axes != 0;
    if (out.affine && entangled) {
        out.affine = wpk_index_affine(program, id, &affine);
        if (out.affine) {
            take_affine(&affine, box, &out);
            return out;
        }
    }
    if (node->op == WPK_BINARY_MUL) {
        take_product(&a, &b, &out);
    } else if (node->op == WPK_BINARY_ADD) {
        out.low = add(a.low, b.low);
        out.high = add(a.high, b.high);
    } else {
        out.low = add(a.low, -b.high);
        out.high = add(a.high, -b.low);
    }
    return out;
}

static struct span span_of(const struct wpk_program *program, int id, const struct box *box)
{
    const struct wpk_node *node = node_at(program, id);
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        return (struct span){node->integer, node->integer, 0, true};
    case WPK_NODE_AXIS:
        return (struct span){box->low[node->axis],
                             box->low[node->axis] + box->extent[node->axis] - 1,
                             UINT32_C(1) << node->axis, true};
    case WPK_NODE_BINARY:
        return binary_span(program, id, box);
    default:
        return (struct span){-INDEX_LIMIT, INDEX_LIMIT, 0, false};
    }
}

void wpk_index_range_in(const struct wpk_program *program, int node, const int64_t *low,
                        const int64_t *extent, int64_t *out_low, int64_t *out_high)
{
    struct box box = {low, extent};
    struct span span = span_of(program, node, &box);
    *out_low = span.low;
    *out_high = span.high;
}

void wpk_index_range(const struct wpk_program *program, const struct wpk_stage *stage, int node,
                     int64_t *low, int64_t *high)
{
    const int64_t zero[WPK_AXES_MAX] = {0};
    int64_t extent[WPK_AXES_MAX] = {0};
    for (int a = 0; a < stage->axis_count; a++) {
        extent[a] = stage->axes[a].extent;
    }
    wpk_index_range_in(program, node, zero, extent, low, high);
}

bool wpk_load_may_leave(const struct wpk_program *program, const struct wpk_stage *stage, int load)
{
    const struct wpk_node *node = node_at(program, load);
    WPK_ASSERT(node->kind == WPK_NODE_LOAD);
    const struct wpk_tensor *tensor = &program->tensors[node->tensor];
    for (int d = 0; d < tensor->rank; d++) {
        int64_t low, high;
        wpk_index_range(program, stage, node->index[d], &low, &high);
        if (low < -tensor->pad_before[d] || high >= tensor->extent[d] + tensor->pad_after[d]) {
            return true;
        }
    }
    return false;
}

bool wpk_load_is_zero_outside(const struct wpk_program *program, const struct wpk_node *load)
{
    const struct wpk_node *outside = load->outside < 0 ? NULL : node_at(program, load->outside);
    return outside != NULL && outside->kind == WPK_NODE_LITERAL && outside->value == 0 &&
           outside->integer == 0;
}

/* How many of `extent` indices at, at + step, ... are in [low, high). */
static int64_t count_steps(int64_t at, int64_t step, int64_t extent, int64_t low, int64_t high)
{
    at += step < 0 ? step * (extent - 1) : 0;
    step = llabs(step);
    int64_t first = -floor_div(at - low, step), end = -floor_div(at - high, step);
    first = first < 0 ? 0 : first;
    end = end > extent ? extent : end;
    return end > first ? end - first : 0;
}

double wpk_index_share(const struct wpk_program *program, const struct wpk_stage *stage, int node,
                       int64_t low, int64_t high)
{
    struct wpk_affine affine;
    int axis[WPK_AXES_MAX] = {0}, count = 0;
    int64_t rows = 1, inside = 0;
    if (!wpk_index_affine(program, node, &affine) || llabs(affine.constant) > SHARE_STEP_MAX) {
        return 1;
    }
    for (int a = 0; a < stage->axis_count && rows <= SHARE_ROWS_MAX; a++) {
        if (llabs(affine.coefficient[a]) > SHARE_STEP_MAX) {
            return 1;
        }
        if (affine.coefficient[a] != 0) {
            rows *= count > 0 ? stage->axes[a].extent : 1;
            axis[count++] = a;
        }
    }
    if (count == 0 || rows > SHARE_ROWS_MAX) {
        return 1;
    }
    for (int64_t row = 0; row < rows; row++) { /* along the first of the axes */
        int64_t at = affine.constant, rest = row;
        for (int i = 1; i < count; i++) {
            at += affine.coefficient[axis[i]] * (rest % stage->axes[axis[i]].extent);
            rest /= stage->axes[axis[i]].extent;
        }
        inside +=
            count_steps(at, affine.coefficient[axis[0]], stage->axes[axis[0]].extent, low, high);
    }
    return (double)inside / (double)(rows * stage->axes[axis[0]].extent);
}

/* ---- alignment */

int64_t wpk_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

int64_t wpk_lcm(int64_t a, int64_t b)
{
    __int128 product = (__int128)(a / wpk_gcd(a, b)) * b;
    return product > WPK_ELEMENTS_MAX ? WPK_ELEMENTS_MAX : (int64_t)product;
}

int wpk_load_flat_dim(const struct wpk_program *program, const struct wpk_node *load)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    for (int d = 0; d + 1 < tensor->rank; d++) {
        const struct wpk_node *row = node_at(program, load->index[d]);
        const struct wpk_node *column = node_at(program, load->index[d + 1]);
        bool divide = row->kind == WPK_NODE_BINARY && row->op == WPK_BINARY_DIV &&
                      column->kind == WPK_NODE_BINARY && column->op == WPK_BINARY_MOD;
        if (!divide || tensor->pad_before[d + 1] + tensor->pad_after[d + 1] > 0) {
            continue;
        }
        int axis = wpk_index_axis(program, row->arg[0]);
        if (axis >= 0 && axis == wpk_index_axis(program, column->arg[0]) &&
            node_at(program, row->arg[1])->integer == tensor->extent[d + 1] &&
            node_at(program, column->arg[1])->integer == tensor->extent[d + 1]) {
            return d;
        }
    }
    return -1;
}

struct alignment {
    int axis;
    bool tile; /* of register tiles */
    int64_t lcm;
};

/* How fast an expression grows with the axis, as numerator / denominator. A step of the axis by k
 * moves x / d or x % d evenly when k * numerator is a multiple of denominator * d. */
struct slope {
    int64_t numerator, denominator;
};

static struct slope slope_of(const struct wpk_program *program, int id, struct alignment *alignment)
{
    const struct wpk_node *node = node_at(program, id);
    if (node->kind == WPK_NODE_AXIS) {
        return (struct slope){node->axis == alignment->axis, 1};
    }
    if (node->kind != WPK_NODE_BINARY) {
        return (struct slope){0, 1};
    }
    struct slope a = slope_of(program, node->arg[0], alignment);
    struct slope b = slope_of(program, node->arg[1], alignment);
    const struct wpk_node *left = node_at(program, node->arg[0]);
    const struct wpk_node *right = node_at(program, node->arg[1]);
    bool divides = node->op == WPK_BINARY_DIV || node->op == WPK_BINARY_MOD;
    if (node->op == WPK_BINARY_MUL) {
        struct slope *moving = left->kind == WPK_NODE_LITERAL ? &b : &a;
        const struct wpk_node *factor = left->kind == WPK_NODE_LITERAL ? left : right;
        moving->numerator = multiply(moving->numerator, factor->integer);
        return *moving;
    }
    if (divides && a.numerator != 0 && right->kind == WPK_NODE_LITERAL && right->integer > 0) {
        int64_t period = multiply(a.denominator, right->integer);
        alignment->lcm = wpk_lcm(alignment->lcm, period / wpk_gcd(a.numerator, period));
        return node->op == WPK_BINARY_MOD ? a : (struct slope){a.numerator, period};
    }
    if (divides) {
        return a;
    }
    int64_t sign = node->op == WPK_BINARY_SUB ? -1 : 1;
    return (struct slope){
        add(multiply(a.numerator, b.denominator), sign * multiply(b.numerator, a.denominator)),
        multiply(a.denominator, b.denominator)};
}

static void align_index(const struct wpk_program *program, int node, void *user)
{
    const struct wpk_node *load = node_at(program, node);
    if (load->kind != WPK_NODE_LOAD) {
        return;
    }
    const struct alignment *alignment = user;
    int flat = alignment->tile ? wpk_load_flat_dim(program, load) : -1;
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        if (flat < 0 || (d != flat && d != flat + 1)) {
            (void)slope_of(program, load->index[d], user);
        }
    }
}

int64_t wpk_axis_alignment(const struct wpk_program *program, const struct wpk_stage *stage,
                           int axis)
{
    struct alignment alignment = {.axis = axis, .lcm = 1};
    wpk_node_walk(program, stage->expr, false, align_index, &alignment);
    return alignment.lcm;
}

int64_t wpk_axis_tile_alignment(const struct wpk_program *program, const struct wpk_stage *stage,
                                int axis)
{
    struct alignment alignment = {.axis = axis, .tile = true, .lcm = 1};
    wpk_node_walk(program, stage->expr, false, align_index, &alignment);
    return alignment.lcm;
}

/* Each stage's axis counts once: of a chain that branches there are more ways than stages.
 *   shape   seen [stage_count]: axes, as bits */
static int64_t align(const struct wpk_program *program, int stage, int axis, uint32_t *seen)
{
    if ((seen[stage] >> axis & 1) != 0) {
        return 1;
    }
    seen[stage] |= 1U << axis;
    const struct wpk_stage *reader = &program->stages[stage];
    int64_t alignment = wpk_axis_alignment(program, reader, axis);
    for (struct wpk_loads it = wpk_loads_of(program, reader); wpk_loads_next(&it);) {
        const struct wpk_node *load = node_at(program, it.id);
        int writer = wpk_program_writer(program, load->tensor);
        for (int d = 0; writer >= 0 && d < program->tensors[load->tensor].rank; d++) {
            if (wpk_index_axis(program, load->index[d]) == axis) {
                alignment = wpk_lcm(alignment, align(program, writer, d, seen));
            }
        }
    }
    return alignment;
}

int64_t wpk_program_alignment(const struct wpk_program *program, int stage, int axis)
{
    uint32_t seen[WPK_STAGES_MAX] = {0};
    return align(program, stage, axis, seen);
}
