/* SPDX-License-Identifier: Apache-2.0 */
/* Operators with a state step by step. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 256 };

/* y[t] = sum of w[k] times the k-th of the elements that end at t, of the past and x. */
static void causal_windows_end_at_their_element(void **state)
{
    (void)state;
    enum { B = 2, C = 3, T = 4, K = 3 };
    double x[B * C * T], w[C * K], bias[C], past[B * C * (K - 1)];
    double found[MAX], expected[MAX], last[MAX];
    wpk_model_case_draw(1, x, (int64_t)B * C * T);
    wpk_model_case_draw(2, w, (int64_t)C * K);
    wpk_model_case_draw(3, bias, C);
    wpk_model_case_draw(4, past, (int64_t)B * C * (K - 1));
    for (int i = 0; i < 8; i++) {
        bool has_bias = i % 2 != 0, has_past = i / 2 % 2 != 0, is_silu = i / 4 != 0;
        for (int n = 0; n < B * C; n++) {
            double all[T + K - 1];
            for (int t = 0; t < T + K - 1; t++) {
                all[t] =
                    t >= K - 1 ? x[n * T + t - (K - 1)] : (has_past ? past[n * (K - 1) + t] : 0);
            }
            for (int t = 0; t < T; t++) {
                double sum = has_bias ? bias[n % C] : 0;
                for (int k = 0; k < K; k++) {
                    sum += w[n % C * K + k] * all[t + k];
                }
                expected[n * T + t] = is_silu ? sum / (1 + exp(-sum)) : sum;
            }
            memcpy(last + (ptrdiff_t)n * (K - 1), all + T, (K - 1) * sizeof(double));
        }
        const struct wpk_model_input inputs[] = {
            {.type = "f64[2,3,4]", .data = x},
            {.type = "f64[3,1,3]", .data = w},
            {.type = has_bias ? "f64[3]" : NULL, .data = bias},
            {.type = has_past ? "f64[2,3,2]" : NULL, .data = past}};
        const char *attributes = is_silu ? "activation:s=silu" : "";
        int64_t count =
            wpk_model_case_compute("CausalConvWithState", 27, attributes, inputs, 4, 0, found, MAX);
        assert_int_equal(count, B * C * T);
        wpk_model_case_compare(attributes, found, expected, count);
        count =
            wpk_model_case_compute("CausalConvWithState", 27, attributes, inputs, 4, 1, found, MAX);
        assert_int_equal(count, B * C * (K - 1));
        wpk_model_case_compare("state", found, last, count);
    }
}

enum { B = 2, T = 3, H = 2, Q = 4, E = 2, V = 3 }; /* Q: heads of queries */

struct tensors {
    double q[B * T * Q * E], k[B * T * H * E], v[B * T * H * V], past[B * H * E * V];
    double decay[B * T * H * E], beta[B * T * H];
};

struct rule {
    const char *name;
    bool is_gated, is_delta, has_past;
    int decays; /* of a head: 1 or E */
    int betas;  /* 1 or H */
};

/* y [B, T, Q * V] and the last state [B, H, E, V]. */
static void attend(const struct tensors *t, const struct rule *rule, double *y, double *last)
{
    double s[E][V];
    for (int n = 0; n < B * H; n++) {
        int b = n / H, h = n % H;
        for (int e = 0; e < E * V; e++) {
            s[e / V][e % V] = rule->has_past ? t->past[n * E * V + e] : 0;
        }
        for (int step = 0; step < T; step++) {
            int row = b * T + step;
            const double *k = t->k + (ptrdiff_t)(row * H + h) * E;
            const double *v = t->v + (ptrdiff_t)(row * H + h) * V;
            double beta = rule->is_delta ? t->beta[row * rule->betas + h % rule->betas] : 1;
            for (int e = 0; e < E && rule->is_gated; e++) {
                for (int d = 0; d < V; d++) {
                    s[e][d] *= exp(t->decay[(row * H + h) * rule->decays + e % rule->decays]);
                }
            }
            for (int d = 0; d < V; d++) {
                double known = 0;
                for (int e = 0; e < E && rule->is_delta; e++) {
                    known += s[e][d] * k[e];
                }
                for (int e = 0; e < E; e++) {
                    s[e][d] += beta * k[e] * (v[d] - known);
                }
            }
            for (int head = h * Q / H; head < (h + 1) * Q / H; head++) {
                for (int d = 0; d < V; d++) {
                    double sum = 0;
                    for (int e = 0; e < E; e++) {
                        sum += t->q[(row * Q + head) * E + e] * s[e][d];
                    }
                    y[(row * Q + head) * V + d] = sum / sqrt(E);
                }
            }
        }
        memcpy(last + (ptrdiff_t)n * E * V, s, sizeof(s));
    }
}

static void linear_attention_updates_its_state(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {"linear", false, false, false, 1, 1},  {"linear", false, false, true, 1, 1},
        {"gated", true, false, true, 1, 1},     {"gated", true, false, false, E, 1},
        {"delta", false, true, true, 1, 1},     {"delta", false, true, false, 1, H},
        {"gated_delta", true, true, true, E, H}};
    static struct tensors t;
    double found[MAX], expected[MAX], last[MAX];
    wpk_model_case_draw(1, t.q, B * T * Q * E);
    wpk_model_case_draw(2, t.k, B * T * H * E);
    wpk_model_case_draw(3, t.v, B * T * H * V);
    wpk_model_case_draw(4, t.past, B * H * E * V);
    wpk_model_case_draw(5, t.decay, B * T * H * E);
    wpk_model_case_draw(6, t.beta, B * T * H);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const struct rule *rule = &rules[i];
        char attributes[96];
        attend(&t, rule, expected, last);
        snprintf(attributes, sizeof(attributes),
                 "q_num_heads:i=4 kv_num_heads:i=2 update_rule:s=%s", rule->name);
        const struct wpk_model_input inputs[] = {
            {.type = "f64[2,3,8]", .data = t.q},
            {.type = "f64[2,3,4]", .data = t.k},
            {.type = "f64[2,3,6]", .data = t.v},
            {.type = rule->has_past ? "f64[2,2,2,3]" : NULL, .data = t.past},
            {.type = !rule->is_gated     ? NULL
                     : rule->decays == 1 ? "f64[2,3,2]"
                                         : "f64[2,3,4]",
             .data = t.decay},
            {.type = !rule->is_delta    ? NULL
                     : rule->betas == 1 ? "f64[2,3,1]"
                                        : "f64[2,3,2]",
             .data = t.beta}};
        int64_t count =
            wpk_model_case_compute("LinearAttention", 27, attributes, inputs, 6, 0, found, MAX);
        assert_int_equal(count, B * T * Q * V);
        wpk_model_case_compare(rule->name, found, expected, count);
        count = wpk_model_case_compute("LinearAttention", 27, attributes, inputs, 6, 1, found, MAX);
        assert_int_equal(count, B * H * E * V);
        wpk_model_case_compare("state", found, last, count);
    }
}

static void rules_ask_for_their_inputs(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"LinearAttention@27", ":f32[1,2,2] :f32[1,2,2] :f32[1,2,2]",
         "q_num_heads:i=1 kv_num_heads:i=1 update_rule:s=gated", "!do not fit its heads"},
        {"LinearAttention@27", ":f32[1,2,2] :f32[1,2,2] :f32[1,2,2]",
         "q_num_heads:i=1 kv_num_heads:i=1 update_rule:s=delta", "!do not fit its heads"},
        {"LinearAttention@27", ":f32[1,2,2] :f32[1,2,2] :f32[1,2,2]",
         "q_num_heads:i=1 kv_num_heads:i=1 update_rule:s=other", "!its update_rule"},
        {"LinearAttention@27", ":f32[1,2,2] :f32[1,2,2] :f32[1,2,2]",
         "q_num_heads:i=1 kv_num_heads:i=2 update_rule:s=linear", "!do not fit its heads"},
        {"LinearAttention@27", ":f32[1,2,2] :f32[1,3,2] :f32[1,2,2]",
         "q_num_heads:i=1 kv_num_heads:i=1 update_rule:s=linear", "!do not fit its heads"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causal_windows_end_at_their_element),
        cmocka_unit_test(linear_attention_updates_its_state),
        cmocka_unit_test(rules_ask_for_their_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
