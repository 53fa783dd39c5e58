/* SPDX-License-Identifier: Apache-2.0 */
/* Attention against loops: groups of heads, masks, a cache, and flat tensors. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, H = 4, KV = 2, Q = 3, K = 5, E = 4, V = 3, MAX = 512 };

struct tensors {
    double q[B * H * Q * E], k[B * KV * K * E], v[B * KV * K * V], mask[Q * K];
};

static void draw(struct tensors *t)
{
    wpk_model_case_draw(1, t->q, B * H * Q * E);
    wpk_model_case_draw(2, t->k, B * KV * K * E);
    wpk_model_case_draw(3, t->v, B * KV * K * V);
    wpk_model_case_draw(4, t->mask, Q * K);
}

struct rule {
    double scale, cap; /* cap: 0 for none */
    bool is_causal, has_mask;
};

/* Scores of one query, and the sum of values that they weigh: head h reads keys of head h / 2. */
static void attend(const struct tensors *t, const struct rule *rule, int b, int h, int i,
                   double *out)
{
    double score[K], sum = 0, most = -INFINITY;
    for (int j = 0; j < K; j++) {
        score[j] = 0;
        for (int e = 0; e < E; e++) {
            score[j] +=
                t->q[((b * H + h) * Q + i) * E + e] * t->k[((b * KV + h * KV / H) * K + j) * E + e];
        }
        score[j] *= rule->scale;
        score[j] = rule->cap > 0 ? rule->cap * tanh(score[j] / rule->cap) : score[j];
        score[j] += rule->has_mask ? t->mask[i * K + j] : 0;
        score[j] = rule->is_causal && j > i ? -INFINITY : score[j];
        most = score[j] > most ? score[j] : most;
    }
    for (int j = 0; j < K; j++) {
        score[j] = exp(score[j] - most);
        sum += score[j];
    }
    for (int e = 0; e < V; e++) {
        out[e] = 0;
        for (int j = 0; j < K; j++) {
            out[e] += score[j] / sum * t->v[((b * KV + h * KV / H) * K + j) * V + e];
        }
    }
}

static void check(const struct rule *rule, const char *attributes)
{
    static struct tensors t;
    static double found[MAX], expected[MAX];
    draw(&t);
    const struct wpk_model_input inputs[] = {{.type = "f64[2,4,3,4]", .data = t.q},
                                             {.type = "f64[2,2,5,4]", .data = t.k},
                                             {.type = "f64[2,2,5,3]", .data = t.v},
                                             {.type = "f64[3,5]", .data = t.mask}};
    for (int n = 0; n < B * H * Q; n++) {
        attend(&t, rule, n / (H * Q), n / Q % H, n % Q, expected + (ptrdiff_t)n * V);
    }
    int64_t count = wpk_model_case_compute("Attention", 23, attributes, inputs,
                                           rule->has_mask ? 4 : 3, 0, found, MAX);
    assert_int_equal(count, B * H * Q * V);
    wpk_model_case_compare(attributes, found, expected, count);
}

static void queries_weigh_values_by_their_keys(void **state)
{
    (void)state;
    check(&(struct rule){.scale = 0.5}, "");
    check(&(struct rule){.scale = 0.25}, "scale:f=0.25");
    check(&(struct rule){.scale = 0.5, .cap = 2}, "softcap:f=2");
    check(&(struct rule){.scale = 0.5, .is_causal = true}, "is_causal:i=1");
    check(&(struct rule){.scale = 0.5, .has_mask = true}, "qk_matmul_output_mode:i=0");
    check(&(struct rule){.scale = 0.5, .has_mask = true, .is_causal = true}, "is_causal:i=1");
}

/* [batch, row, heads * size] is the same as [batch, head, row, size]. */
static void flat_tensors_have_their_heads_in_rows(void **state)
{
    (void)state;
    static struct tensors t, flat;
    static double found[MAX], expected[V];
    draw(&t);
    for (int n = 0; n < B * H * Q * E; n++) {
        int e = n % E, i = n / E % Q, h = n / (E * Q) % H, b = n / (E * Q * H);
        flat.q[((b * Q + i) * H + h) * E + e] = t.q[n];
    }
    for (int n = 0; n < B * KV * K * E; n++) {
        int e = n % E, j = n / E % K, h = n / (E * K) % KV, b = n / (E * K * KV);
        flat.k[((b * K + j) * KV + h) * E + e] = t.k[n];
    }
    for (int n = 0; n < B * KV * K * V; n++) {
        int e = n % V, j = n / V % K, h = n / (V * K) % KV, b = n / (V * K * KV);
        flat.v[((b * K + j) * KV + h) * V + e] = t.v[n];
    }
    const struct wpk_model_input inputs[] = {{.type = "f64[2,3,16]", .data = flat.q},
                                             {.type = "f64[2,5,8]", .data = flat.k},
                                             {.type = "f64[2,5,6]", .data = flat.v}};
    int64_t count = wpk_model_case_compute("Attention", 23, "q_num_heads:i=4 kv_num_heads:i=2",
                                           inputs, 3, 0, found, MAX);
    assert_int_equal(count, B * Q * H * V);
    const struct rule rule = {.scale = 0.5};
    for (int n = 0; n < B * Q * H; n++) {
        attend(&t, &rule, n / (Q * H), n % H, n / H % Q, expected);
        wpk_model_case_compare("flat", found + (ptrdiff_t)n * V, expected, V);
    }
}

/* The first two keys and values are a cache: with it the result is that of all five. */
static void a_cache_stands_before_the_keys(void **state)
{
    (void)state;
    enum { PAST = 2, NEW = K - PAST };
    static struct tensors t;
    static double old_k[B * KV * PAST * E], old_v[B * KV * PAST * V], new_k[B * KV * NEW * E],
        new_v[B * KV * NEW * V], found[MAX], expected[V];
    draw(&t);
    for (int h = 0; h < B * KV; h++) {
        memcpy(old_k + (ptrdiff_t)h * PAST * E, t.k + (ptrdiff_t)h * K * E,
               PAST * E * sizeof(double));
        memcpy(new_k + (ptrdiff_t)h * NEW * E, t.k + ((ptrdiff_t)h * K + PAST) * E,
               NEW * E * sizeof(double));
        memcpy(old_v + (ptrdiff_t)h * PAST * V, t.v + (ptrdiff_t)h * K * V,
               PAST * V * sizeof(double));
        memcpy(new_v + (ptrdiff_t)h * NEW * V, t.v + ((ptrdiff_t)h * K + PAST) * V,
               NEW * V * sizeof(double));
    }
    const struct wpk_model_input inputs[] = {
        {.type = "f64[2,4,3,4]", .data = t.q},   {.type = "f64[2,2,3,4]", .data = new_k},
        {.type = "f64[2,2,3,3]", .data = new_v}, {.type = NULL},
        {.type = "f64[2,2,2,4]", .data = old_k}, {.type = "f64[2,2,2,3]", .data = old_v}};
    const struct rule rule = {.scale = 0.5};
    int64_t count = wpk_model_case_compute("Attention", 23, "", inputs, 6, 0, found, MAX);
    assert_int_equal(count, B * H * Q * V);
    for (int n = 0; n < B * H * Q; n++) {
        attend(&t, &rule, n / (H * Q), n / Q % H, n % Q, expected);
        wpk_model_case_compare("cache", found + (ptrdiff_t)n * V, expected, V);
    }
    count = wpk_model_case_compute("Attention", 23, "", inputs, 6, 1, found, MAX); /* all keys */
    assert_int_equal(count, B * KV * K * E);
    wpk_model_case_compare("keys", found, t.k, count);
    count = wpk_model_case_compute("Attention", 23, "", inputs, 6, 2, found, MAX);
    assert_int_equal(count, B * KV * K * V);
    wpk_model_case_compare("values", found, t.v, count);
}

/* A query whose keys are all masked has zeros, and no NaN. */
static void a_query_without_keys_has_zeros(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Attention@23", ":f32[1,1,2,1] :f32[1,1,1,1] 7:f32[1,1,1,1] 1,0:bool[2,1]", "",
         "f32[1,1,2,1] 7,0"},
    };
    WPK_MODEL_CASES(cases);
}

static void tensors_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Attention@23", ":f32[1,3,2,2] :f32[1,2,2,2] :f32[1,2,2,2]", "", "!do not fit each other"},
        {"Attention@23", ":f32[1,2,2,2] :f32[1,2,3,2] :f32[1,2,2,2]", "", "!do not fit each other"},
        {"Attention@23", ":f32[1,2,4] :f32[1,2,4] :f32[1,2,4]", "", "!do not fit each other"},
        {"Attention@23", ":f32[1,2,4] :f32[1,2,4] :f32[1,2,4]", "q_num_heads:i=3 kv_num_heads:i=1",
         "!do not fit each other"},
        {"Attention@23", ":f32[2,4] :f32[2,4] :f32[2,4]", "", "!do not fit each other"},
        {"Attention@23", ":f32[1,1,2,2] :f32[1,1,2,2] :f32[1,1,2,2] :f32[3,2]", "",
         "!its mask or lengths do not fit"},
        {"Attention@23", ":f32[1,1,2,2] :f32[1,1,2,2] :f32[1,1,2,2] :i64[2,2]", "",
         "!its mask or lengths do not fit"},
        {"Attention@23", ":f32[1,1,2,2] :f32[1,1,2,2] :f32[1,1,2,2] - :f32[1,1,1,2]", "",
         "!do not fit each other"}, /* keys without values */
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_weigh_values_by_their_keys),
        cmocka_unit_test(flat_tensors_have_their_heads_in_rows),
        cmocka_unit_test(a_cache_stands_before_the_keys),
        cmocka_unit_test(a_query_without_keys_has_zeros),
        cmocka_unit_test(tensors_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
