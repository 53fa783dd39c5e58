/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/expansion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_extents(const struct wpk_graph_value *value, enum wpk_dtype dtype, int rank,
                        const int64_t *extent)
{
    return value->rank == rank && value->dtype == dtype &&
           memcmp(value->extent, extent, (size_t)rank * sizeof(int64_t)) == 0;
}

/* ---- CausalConvWithState: a load outside reads 0, so what is past and what is new are added */

wpk_err wpk_expand_causal_conv(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0), w = wpk_expansion_input(e, 1);
    const struct wpk_graph_value bias = wpk_expansion_input(e, 2);
    const struct wpk_graph_value past = wpk_expansion_input(e, 3);
    bool is_silu = strcmp(wpk_graph_text(e->node, "activation", "none"), "none") != 0;
    int64_t size = w.rank == 3 ? w.extent[2] : 0;
    const int64_t state[] = {x.extent[0], x.extent[1], size - 1};

    if (x.rank != 3 || !wpk_dtype_is_float(x.dtype) ||
        !has_extents(&w, x.dtype, 3, (int64_t[]){x.extent[1], 1, size}) ||
        (bias.rank >= 0 && !has_extents(&bias, x.dtype, 1, &x.extent[1])) ||
        (past.rank >= 0 && !has_extents(&past, x.dtype, 3, state))) {
        return wpk_expansion_refuse(e, "its inputs do not fit each other");
    }
    int inputs[4] = {e->node->inputs[0], e->node->inputs[1]};
    int count = 2;
    char of_past[32] = "", of_bias[32] = "";
    if (past.rank >= 0) {
        snprintf(of_past, sizeof(of_past), " + X%d[d0,d1,d2+k]", count);
        inputs[count++] = e->node->inputs[3];
    }
    if (bias.rank >= 0) {
        snprintf(of_bias, sizeof(of_bias), " + X%d[d1]", count);
        inputs[count++] = e->node->inputs[2];
    }
    if (wpk_expansion_output(e, 0) >= 0) {
        wpk_buf_printf(&e->text,
                       "Y[d0,d1,d2] = %s(sum(k:%lld) X1[d1,0,k] * (X[d0,d1,d2+k-%lld]%s))%s%s",
                       is_silu ? "silu(" : "", (long long)size, (long long)size - 1, of_past,
                       of_bias, is_silu ? ")" : "");
        (void)wpk_expansion_equation(e, inputs, count, x.dtype, 3, x.extent,
                                     wpk_expansion_output(e, 0));
    }
    if (wpk_expansion_output(e, 1) >= 0) {
        if (size < 2) {
            return wpk_expansion_refuse(e, "a window of one element has a state without elements");
        }
        wpk_buf_printf(&e->text, "Y[d0,d1,d2] = X[d0,d1,d2+%lld]",
                       (long long)(x.extent[2] - size + 1));
        if (past.rank >= 0) {
            wpk_buf_printf(&e->text, " + X1[d0,d1,d2+%lld]", (long long)x.extent[2]);
            inputs[1] = e->node->inputs[3];
        }
        (void)wpk_expansion_equation(e, inputs, past.rank >= 0 ? 2 : 1, x.dtype, 3, state,
                                     wpk_expansion_output(e, 1));
    }
    return WPK_OK;
}

wpk_err wpk_expand_flex_attention(struct wpk_expansion *e)
{
    const struct wpk_graph_attribute *scale =
        wpk_graph_attribute(e->node, "scale", WPK_ATTRIBUTE_FLOAT);

    if (wpk_expansion_input(e, 0).rank != 4) {
        return wpk_expansion_refuse(e, "its queries do not have four axes");
    }
    (void)wpk_expansion_node(e, "", "Attention", e->node->inputs, 3, scale, scale != NULL,
                             wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* ---- LinearAttention
 *
 * A step of the loop turns the state S [batch, heads, keys, values] into
 *
 *     D = exp(g) S      S' = D + b k (v - D k)'     or, without the delta rule, S' = D + k v'
 *
 * and the results of all steps, scale * q S', are computed at once behind it. */

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA };

struct linear {
    int64_t batch, steps, heads, keys, values;
    int64_t query_heads;
    int64_t decays; /* of a head; 0: none */
    int64_t betas;  /* of a step; 0: none, and no delta rule */
    enum wpk_dtype dtype;
};

static bool describe_linear(const struct wpk_expansion *e, struct linear *l)
{
    const struct wpk_graph_value q = wpk_expansion_input(e, QUERY), k = wpk_expansion_input(e, KEY);
    const struct wpk_graph_value v = wpk_expansion_input(e, VALUE);
    const struct wpk_graph_value past = wpk_expansion_input(e, PAST);
    const struct wpk_graph_value decay = wpk_expansion_input(e, DECAY);
    const struct wpk_graph_value beta = wpk_expansion_input(e, BETA);
    const char *rule = wpk_graph_text(e->node, "update_rule", "gated_delta");
    bool is_gated = wpk_begins(rule, "gated");
    bool is_delta = strstr(rule, "delta") != NULL;

    l->heads = wpk_graph_int(e->node, "kv_num_heads", 0);
    l->query_heads = wpk_graph_int(e->node, "q_num_heads", 0);
    if (q.rank != 3 || k.rank != 3 || v.rank != 3 || l->heads < 1 || l->query_heads < 1 ||
        l->query_heads % l->heads != 0 || !wpk_dtype_is_float(q.dtype) ||
        k.extent[2] % l->heads != 0 || v.extent[2] % l->heads != 0) {
        return false;
    }
    l->dtype = q.dtype;
    l->batch = q.extent[0];
    l->steps = q.extent[1];
    l->keys = k.extent[2] / l->heads;
    l->values = v.extent[2] / l->heads;
    l->decays = is_gated && decay.rank == 3 ? decay.extent[2] / l->heads : 0;
    l->betas = is_delta && beta.rank == 3 ? beta.extent[2] : 0;
    const int64_t row[] = {l->batch, l->steps};
    const int64_t state[] = {l->batch, l->heads, l->keys, l->values};
    bool fits = has_extents(&k, l->dtype, 3, (int64_t[]){row[0], row[1], k.extent[2]}) &&
                has_extents(&v, l->dtype, 3, (int64_t[]){row[0], row[1], v.extent[2]}) &&
                q.extent[2] == l->query_heads * l->keys &&
                (past.rank < 0 || has_extents(&past, l->dtype, 4, state));
    if (is_gated) {
        fits = fits && (l->decays == 1 || l->decays == l->keys) &&
               has_extents(&decay, l->dtype, 3, (int64_t[]){row[0], row[1], l->decays * l->heads});
    }
    if (is_delta) {
        fits = fits && (l->betas == 1 || l->betas == l->heads) &&
               has_extents(&beta, l->dtype, 3, (int64_t[]){row[0], row[1], l->betas});
    }
    return fits;
}

/* The part of an input [batch, steps, ...] that an iteration reads, [batch, width]; it is put
 * before the loop with its steps first. */
static int steps_first(struct wpk_expansion *e, int input)
{
    return wpk_compose_transpose(&e->to, e->node->inputs[input], 3, (int64_t[]){1, 0, 2}, -1);
}

/* The state that follows `state`; its inputs are the state, k, v, and g and b where there are. */
static int add_step(struct wpk_expansion *e, const struct linear *l, const int *inputs, int count)
{
    const int64_t extent[] = {l->batch, l->heads, l->keys, l->values};
    struct wpk_buf *text = &e->text;
    long long keys = (long long)l->keys, values = (long long)l->values;
    int beta = l->decays > 0 ? 4 : 3;

    wpk_buf_append_text(text, "Y[d0,d1,d2,d3] = D[d0,d1,d2,d3] + ");
    if (l->betas > 0) {
        wpk_buf_printf(text, "X%d[d0,%s] * ", beta, l->betas > 1 ? "d1" : "0");
    }
    wpk_buf_printf(text,
                   "X1[d0,%lld*d1+d2] * (X2[d0,%lld*d1+d3]%s) where D[d0:%lld,d1:%lld,"
                   "d2:%lld,d3:%lld] = ",
                   keys, values, l->betas > 0 ? " - U[d0,d1,d3]" : "", (long long)l->batch,
                   (long long)l->heads, keys, values);
    if (l->decays > 0) {
        wpk_buf_printf(text, "exp(X3[d0,%lld*d1%s]) * ", (long long)l->decays,
                       l->decays > 1 ? "+d2" : "");
    }
    wpk_buf_append_text(text, "X[d0,d1,d2,d3]");
    if (l->betas > 0) {
        wpk_buf_printf(text,
                       "; U[d0:%lld,d1:%lld,d3:%lld] = sum(i:%lld) D[d0,d1,i,d3] * "
                       "X1[d0,%lld*d1+i]",
                       (long long)l->batch, (long long)l->heads, values, keys, keys);
    }
    return wpk_expansion_equation(e, inputs, count, l->dtype, 4, extent, -1);
}

static int add_zeros(struct wpk_expansion *e, const struct linear *l)
{
    const int64_t extent[] = {l->batch, l->heads, l->keys, l->values};
    double *cells = WPK_ARENA_NEW(&e->graph->arena, double, (size_t)wpk_extents_product(extent, 4));

    if (cells == NULL) {
        return 0;
    }
    return wpk_expansion_constant(e, l->dtype, 4, extent, cells);
}

/* The states before, between and behind the steps, [steps + 1, ...]. */
static int add_loop(struct wpk_expansion *e, const struct linear *l, int first)
{
    const int64_t extent[] = {l->batch, l->heads, l->keys, l->values};
    int rows[] = {steps_first(e, KEY), steps_first(e, VALUE),
                  l->decays > 0 ? steps_first(e, DECAY) : -1,
                  l->betas > 0 ? steps_first(e, BETA) : -1};
    const int64_t width[] = {l->heads * l->keys, l->heads * l->values, l->heads * l->decays,
                             l->betas};
    int start = wpk_compose_enter(&e->to, wpk_compose_name(&e->to, "start"), first);
    int inputs[5];
    int count = 1;

    e->to.loop = ++e->graph->loop_count;
    e->to.times = l->steps;
    inputs[0] = wpk_compose_read(&e->to, start, 0, wpk_extents_product(extent, 4), 4, extent);
    for (int i = 0; i < 4; i++) {
        const int64_t row[] = {l->batch, width[i]};
        if (rows[i] >= 0) {
            inputs[count++] =
                wpk_compose_read(&e->to, rows[i], 0, wpk_extents_product(row, 2), 2, row);
        }
    }
    int all = wpk_compose_store(&e->to, add_step(e, l, inputs, count), start, false);
    e->to.loop = 0;
    return wpk_compose_result(&e->to, all, -1);
}

wpk_err wpk_expand_linear_attention(struct wpk_expansion *e)
{
    struct linear l = {.batch = 0};

    if (!describe_linear(e, &l)) {
        return wpk_expansion_refuse(e, "its inputs do not fit its heads or its update_rule");
    }
    double given = wpk_graph_real(e->node, "scale", 0);
    const int64_t state[] = {l.batch, l.heads, l.keys, l.values};
    const int64_t extent[] = {l.batch, l.steps, l.query_heads * l.values};
    bool has_past = wpk_expansion_input(e, PAST).rank >= 0;
    int states = add_loop(e, &l, has_past ? e->node->inputs[PAST] : add_zeros(e, &l));
    if (wpk_expansion_output(e, 0) >= 0) {
        wpk_buf_printf(&e->text,
                       "Y[d0,d1,d2] = %.17g * (sum(i:%lld) X[d0,d1,%lld*(d2/%lld)+i] * "
                       "X1[d1+1,d0,d2/%lld,i,d2%%%lld])",
                       given != 0 ? given : 1 / sqrt((double)l.keys), (long long)l.keys,
                       (long long)l.keys, (long long)l.values,
                       (long long)(l.values * (l.query_heads / l.heads)), (long long)l.values);
        (void)wpk_expansion_equation(e, (int[]){e->node->inputs[QUERY], states}, 2, l.dtype, 3,
                                     extent, wpk_expansion_output(e, 0));
    }
    if (wpk_expansion_output(e, 1) >= 0) {
        wpk_buf_printf(&e->text, "Y[d0,d1,d2,d3] = X[%lld,d0,d1,d2,d3]", (long long)l.steps);
        (void)wpk_expansion_equation(e, &states, 1, l.dtype, 4, state, wpk_expansion_output(e, 1));
    }
    return WPK_OK;
}
