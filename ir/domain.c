/* SPDX-License-Identifier: Apache-2.0 */
/* From the last stage to the first, and from each expression to its operands: the domain that a
 * node needs follows from those of the nodes that use it. */
#include "ir/data_index.h"
#include "ir/node.h"

#include <math.h>

#define POSITIVE 0.125 /* the least operand of a logarithm, far from where it loses digits */

bool wpk_domain_is_limited(const struct wpk_domain *domain)
{
    return domain->low > -WPK_DOMAIN_MOST || domain->high < WPK_DOMAIN_MOST;
}

void wpk_domain_narrow(struct wpk_domain *domain, struct wpk_domain other)
{
    double low = fmax(domain->low, other.low);
    double high = fmin(domain->high, other.high);

    if (low <= high) {
        *domain = (struct wpk_domain){low, high};
    }
}

struct finding {
    const struct wpk_program *program;
    const struct wpk_stage *stage;
    struct wpk_domain *tensors;
};

/* The values that a node is known to have: a literal, an axis, a constant. */
static bool find_known(const struct finding *f, int node, struct wpk_domain *out)
{
    const struct wpk_node *n = &f->program->nodes[node];

    switch (n->kind) {
    case WPK_NODE_LITERAL:
        *out = (struct wpk_domain){wpk_node_number(n), wpk_node_number(n)};
        return true;
    case WPK_NODE_AXIS:
        *out = (struct wpk_domain){0, (double)f->stage->axes[n->axis].extent - 1};
        return true;
    case WPK_NODE_CAST:
        return find_known(f, n->arg[0], out);
    case WPK_NODE_LOAD:
        *out = f->tensors[n->tensor];
        return f->program->tensors[n->tensor].role == WPK_ROLE_CONSTANT &&
               wpk_domain_is_limited(out);
    default:
        return false;
    }
}

static void need(const struct finding *f, int node, struct wpk_domain domain);

/* Any values do; what is below the operands may need some. */
static void need_any(const struct finding *f, const struct wpk_node *n)
{
    need(f, n->arg[0], wpk_domain_all());
    need(f, n->arg[1], wpk_domain_all());
}

/* Both ends, in order. */
static struct wpk_domain between(double a, double b)
{
    return (struct wpk_domain){fmin(a, b), fmax(a, b)};
}

/* An end moved by a known number; no limit stays none. */
static double move(double end, double by)
{
    return fabs(end) < WPK_DOMAIN_MOST ? end + by : end;
}

static double scale(double end, double by)
{
    return fabs(end) < WPK_DOMAIN_MOST ? end * by : by < 0 ? -end : end;
}

/* `x + c` and `x - c` are in the domain for every c of `known`, if possible. */
static void need_shifted(const struct finding *f, int x, struct wpk_domain domain, double low,
                         double high)
{
    struct wpk_domain of_x = {move(domain.low, -low), move(domain.high, -high)};

    if (of_x.low <= of_x.high) {
        need(f, x, of_x);
    }
}

static void need_sum(const struct finding *f, const struct wpk_node *n, struct wpk_domain domain)
{
    struct wpk_domain known;
    struct wpk_domain half = {domain.low > 0 ? scale(domain.low, 0.5) : domain.low,
                              domain.high > 0 ? scale(domain.high, 0.5) : domain.high};

    if (find_known(f, n->arg[1], &known)) {
        need_shifted(f, n->arg[0], domain, known.low, known.high);
    } else if (find_known(f, n->arg[0], &known)) {
        need_shifted(f, n->arg[1], domain, known.low, known.high);
    } else if (domain.low >= 0) {
        need(f, n->arg[0], half);
        need(f, n->arg[1], half);
    } else {
        need_any(f, n);
    }
}

static void need_difference(const struct finding *f, const struct wpk_node *n,
                            struct wpk_domain domain)
{
    struct wpk_domain known;

    if (find_known(f, n->arg[1], &known)) {
        need_shifted(f, n->arg[0], domain, -known.high, -known.low);
    } else if (find_known(f, n->arg[0], &known)) {
        struct wpk_domain of_x = {move(-domain.high, known.high), move(-domain.low, known.low)};
        bool is_complement = known.low == 1 && known.high == 1; /* of a mask, or a share */
        wpk_domain_narrow(&of_x, is_complement ? between(0, 1) : wpk_domain_all());
        if (of_x.low <= of_x.high) {
            need(f, n->arg[1], of_x);
        }
    } else {
        need_any(f, n);
    }
}

static bool is_same(const struct wpk_program *p, int a, int b)
{
    const struct wpk_node *x = &p->nodes[a];
    const struct wpk_node *y = &p->nodes[b];

    return a == b ||
           (x->kind == WPK_NODE_LOAD && y->kind == WPK_NODE_LOAD && x->tensor == y->tensor);
}

static void need_product(const struct finding *f, const struct wpk_node *n,
                         struct wpk_domain domain)
{
    struct wpk_domain known;
    bool is_right = find_known(f, n->arg[1], &known);

    if (is_same(f->program, n->arg[0], n->arg[1])) {
        double high = domain.high < WPK_DOMAIN_MOST ? sqrt(domain.high) : domain.high;
        need(f, n->arg[0], domain.low > 0 ? between(sqrt(domain.low), high) : wpk_domain_all());
    } else if ((is_right || find_known(f, n->arg[0], &known)) && known.low == known.high &&
               known.low != 0) {
        need(f, n->arg[is_right ? 0 : 1],
             between(scale(domain.low, 1 / known.low), scale(domain.high, 1 / known.low)));
    } else {
        need_any(f, n);
    }
}

static void need_quotient(const struct finding *f, const struct wpk_node *n,
                          struct wpk_domain domain)
{
    const struct wpk_domain positive = {0, WPK_DOMAIN_MOST};
    struct wpk_domain known;

    if (find_known(f, n->arg[1], &known) && known.low == known.high) {
        need(f, n->arg[0], between(scale(domain.low, known.low), scale(domain.high, known.low)));
    } else if (domain.low >= 0) {
        need(f, n->arg[0], positive);
        need(f, n->arg[1], positive);
    } else {
        need_any(f, n);
    }
}

/* A value that is compared with 0 or 1 is a mask; with an axis, an index into it. */
static void need_equality(const struct finding *f, const struct wpk_node *n)
{
    struct wpk_domain known;
    bool is_right = find_known(f, n->arg[1], &known);

    if (is_right || find_known(f, n->arg[0], &known)) {
        int x = n->arg[is_right ? 0 : 1];
        bool is_mask = known.low == known.high && (known.low == 0 || known.low == 1);
        bool is_axis = f->program->nodes[n->arg[is_right ? 1 : 0]].kind == WPK_NODE_AXIS;
        need(f, x, is_mask ? between(0, 1) : is_axis ? known : wpk_domain_all());
    } else {
        need_any(f, n);
    }
}

/* Powers of negative numbers are numbers for whole exponents alone. */
static void need_power(const struct finding *f, const struct wpk_node *n)
{
    struct wpk_domain known;

    if (!find_known(f, n->arg[1], &known) || known.low != known.high ||
        known.low != floor(known.low)) {
        need(f, n->arg[0], (struct wpk_domain){0, WPK_DOMAIN_MOST});
    }
}

static void need_binary(const struct finding *f, const struct wpk_node *n, struct wpk_domain domain)
{
    switch ((enum wpk_binary)n->op) {
    case WPK_BINARY_ADD:
        need_sum(f, n, domain);
        return;
    case WPK_BINARY_SUB:
        need_difference(f, n, domain);
        return;
    case WPK_BINARY_MUL:
        need_product(f, n, domain);
        return;
    case WPK_BINARY_DIV:
        need_quotient(f, n, domain);
        return;
    case WPK_BINARY_EQ:
    case WPK_BINARY_NE:
        need_equality(f, n);
        return;
    case WPK_BINARY_POW:
        need_power(f, n);
        return;
    default:
        need_any(f, n);
        return;
    }
}

static void need_unary(const struct finding *f, const struct wpk_node *n, struct wpk_domain domain)
{
    switch ((enum wpk_unary)n->op) {
    case WPK_UNARY_NEG:
        domain = between(-domain.high, -domain.low);
        break;
    case WPK_UNARY_LOG:
    case WPK_UNARY_RSQRT:
        domain = (struct wpk_domain){POSITIVE, WPK_DOMAIN_MOST};
        break;
    case WPK_UNARY_SQRT:
        domain = (struct wpk_domain){0, WPK_DOMAIN_MOST};
        break;
    case WPK_UNARY_FLOOR:
    case WPK_UNARY_CEIL:
    case WPK_UNARY_ROUND:
        break;
    default:
        domain = wpk_domain_all();
    }
    need(f, n->arg[0], domain);
}

/* The node's value is to be in the domain. Nodes below are visited without limits, too: what they
 * need of their operands is found there. */
static void need(const struct finding *f, int node, struct wpk_domain domain)
{
    const struct wpk_node *n = &f->program->nodes[node];

    switch (n->kind) {
    case WPK_NODE_LOAD:
        if (f->program->tensors[n->tensor].role != WPK_ROLE_CONSTANT ||
            !wpk_domain_is_limited(&f->tensors[n->tensor])) {
            wpk_domain_narrow(&f->tensors[n->tensor], domain);
        }
        return;
    case WPK_NODE_CAST:
        need(f, n->arg[0], n->dtype == WPK_BOOL ? between(0, 1) : domain);
        return;
    case WPK_NODE_UNARY:
        need_unary(f, n, domain);
        return;
    case WPK_NODE_BINARY:
        need_binary(f, n, domain);
        return;
    case WPK_NODE_SELECT: /* the second arm first: the first one is often of a special case */
        need(f, n->arg[2], domain);
        need(f, n->arg[1], domain);
        need(f, n->arg[0], wpk_domain_all());
        return;
    default:
        return;
    }
}

/* The domain of a reduction's terms for a result in `domain`: sums and products of positive terms
 * are positive. */
static struct wpk_domain of_terms(enum wpk_reduction reduction, struct wpk_domain domain)
{
    switch (reduction) {
    case WPK_REDUCE_NONE:
    case WPK_REDUCE_MAX:
    case WPK_REDUCE_MIN:
        return domain;
    default:
        return domain.low >= 0 ? (struct wpk_domain){domain.low, WPK_DOMAIN_MOST}
                               : wpk_domain_all();
    }
}

void wpk_domain_find(const struct wpk_program *program, struct wpk_domain *tensors)
{
    /* Indices that are data lie inside their axes. */
    int64_t low, high;
    for (int t = 0; t < program->tensor_count; t++) {
        if (wpk_index_bound(program, t, &low, &high)) {
            wpk_domain_narrow(&tensors[t], between((double)low, (double)high));
        }
    }
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        const struct finding f = {program, stage, tensors};
        need(&f, stage->expr, of_terms(stage->reduction, tensors[stage->output]));
    }
}
