/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with one mistake each, evaluated on the input sets of the correct program. Verification
 * must see every mistake that has an effect. */
#include "worker/runner/runner_ops.h"
#include "worker/verify/verify.h"

#include "common/rng.h"
#include "ir/derive/rewrite.h"
#include "ir/notation/notation.h"
#include "ir/reference/reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MUTANTS 300
#define NODES_MAX 512
#define POINTS_MAX 4096

static const char *const texts[] = {
    "input X f32[1,5,9,9]\nconstant W f32[4,5,3,3]\nconstant B f32[4]\noutput Y f32[1,4,9,9]\n"
    "intermediate T f32[1,4,9,9]\n"
    "T[n,k,y,x] = sum(c:5,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n"
    "Y[n,k,y,x] = max(T[n,k,y,x] + B[k], 0)\n",
    "input X f32[2,3,11,11]\nconstant W f32[3,3,3]\noutput Y f32[2,3,5,5]\n"
    "Y[n,c,y,x] = sum(r:3,s:3) X[n,c,2*y+r,2*x+s] * W[c,r,s]\n",
    "input A f32[13,17]\ninput B f32[17,11]\noutput C f32[13,11]\n"
    "C[i,j] = sum(k:17) A[i,k] * B[k,j]\n",
    "input A i8[9,24]\ninput B u8[24,7]\noutput C i32[9,7]\n"
    "C[i,j] = sum(k:24) (i32(A[i,k]) - 3) * i32(B[k,j])\n",
    "input X f32[8,20]\noutput Y f32[8,20]\nintermediate M f32[8]\nintermediate S f32[8]\n"
    "M[i] = max(k:20) X[i,k]\nS[i] = sum(k:20) exp(X[i,k] - M[i])\n"
    "Y[i,j] = exp(X[i,j] - M[i]) / S[i]\n",
    "input X f32[8,24]\nconstant G f32[24]\nconstant B f32[24]\noutput Y f32[8,24]\n"
    "intermediate M f32[8]\nintermediate V f32[8]\nM[i] = sum(k:24) X[i,k] / 24\n"
    "V[i] = sum(k:24) (X[i,k] - M[i]) * (X[i,k] - M[i]) / 24\n"
    "Y[i,j] = (X[i,j] - M[i]) * rsqrt(V[i] + 0.00001) * G[j] + B[j]\n",
    "input X f32[1,4,12,12]\noutput Y f32[1,4,7,7]\n"
    "Y[n,c,y,x] = max(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1 | -inf]\n",
    "input X f32[40]\ninput Z f32[40]\noutput Y f32[40]\n"
    "Y[i] = X[i] * 0.5 * (1 + erf(X[i] * 0.7071067811865476)) - Z[i] * sigmoid(Z[i])\n",
    "input X f32[6,10]\ninput Z f32[6,10]\noutput Y f32[6,10]\n"
    "Y[i,j] = select(X[i,j] < Z[i,j], X[i,j] - Z[i,j], tanh(X[i,j]) / (2 + Z[i,j] * Z[i,j]))\n",
    "input X f32[30]\noutput Y i8[30]\nY[i] = i8(X[i] * 20.0 + 1.5)\n",
    "input Q f32[2,6,8]\ninput K f32[2,6,8]\ninput A f32[6,6]\noutput Y f32[2,6,6]\n"
    "intermediate T f32[2,6,6]\nintermediate M f32[2,6]\nintermediate S f32[2,6]\n"
    "T[b,i,j] = (sum(k:8) Q[b,i,k] * K[b,j,k]) * 0.35355339059327373 + A[i,j]\n"
    "M[b,i] = max(j:6) T[b,i,j]\nS[b,i] = sum(j:6) exp(T[b,i,j] - M[b,i])\n"
    "Y[b,i,j] = exp(T[b,i,j] - M[b,i]) / S[b,i]\n",
    "input X bf16[12,16]\ninput B bf16[16,10]\noutput C bf16[12,10]\nintermediate T f32[12,10]\n"
    "T[i,j] = sum(k:16) f32(X[i,k]) * f32(B[k,j])\nC[i,j] = bf16(T[i,j])\n",
};

static struct wpk_program parse(const char *text)
{
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    if (wpk_program_parse(text, &program, &diag) != WPK_OK) {
        fail_msg("%s in %s", diag.text, text);
    }
    return program;
}

/* ---- one mistake */

struct nodes {
    int id[NODES_MAX];
    int count;
};

static void collect(const struct wpk_program *program, int node, void *user)
{
    (void)program;
    struct nodes *nodes = user;
    assert_true(nodes->count < NODES_MAX);
    nodes->id[nodes->count++] = node;
}

struct shift {
    int load; /* how many loads to go */
    int dimension;
    int64_t by;
};

static int shift_load(struct wpk_program *program, const struct wpk_node *load, const int *index,
                      void *user)
{
    struct shift *shift = user;
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    if (shift->load-- != 0 || tensor->rank == 0) {
        return wpk_rewrite_keep(program, load, index);
    }
    int moved[WPK_RANK_MAX];
    memcpy(moved, index, sizeof(moved));
    int d = shift->dimension % tensor->rank;
    moved[d] = wpk_index_add_constant(program, moved[d], shift->by);
    if (load->outside < 0) {
        moved[d] = wpk_index_mod(program, moved[d], tensor->extent[d]);
    }
    return wpk_rewrite_keep(program, load, moved);
}

static bool mutate_node(struct wpk_node *node, struct wpk_rng *rng)
{
    static const enum wpk_binary others[WPK_BINARY_COUNT] = {
        [WPK_BINARY_ADD] = WPK_BINARY_SUB, [WPK_BINARY_SUB] = WPK_BINARY_ADD,
        [WPK_BINARY_MUL] = WPK_BINARY_ADD, [WPK_BINARY_DIV] = WPK_BINARY_MUL,
        [WPK_BINARY_MAX] = WPK_BINARY_MIN, [WPK_BINARY_MIN] = WPK_BINARY_MAX,
        [WPK_BINARY_LT] = WPK_BINARY_LE,
    };
    int first = node->arg[0];
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        node->integer += wpk_rng_chance(rng, 0.5) ? 1 : -1;
        node->value = wpk_rng_chance(rng, 0.5) ? node->value + 1 : node->value * 2;
        return true;
    case WPK_NODE_UNARY:
        node->op = node->op == WPK_UNARY_TANH ? WPK_UNARY_ERF : WPK_UNARY_TANH;
        return true;
    case WPK_NODE_BINARY:
        if (wpk_rng_chance(rng, 0.5)) {
            node->arg[0] = node->arg[1];
            node->arg[1] = first;
        } else {
            node->op = (int)others[node->op];
        }
        return true;
    case WPK_NODE_SELECT:
        node->arg[1] = node->arg[2];
        return true;
    case WPK_NODE_LOAD:
    case WPK_NODE_AXIS:
    case WPK_NODE_CAST:
        break;
    }
    return false;
}

static bool mutate_reduction(struct wpk_stage *stage, struct wpk_rng *rng)
{
    if (stage->reduction == WPK_REDUCE_NONE) {
        return false;
    }
    int axis = (int)wpk_rng_between(rng, stage->rank, stage->axis_count - 1);
    if (wpk_rng_chance(rng, 0.5)) {
        stage->reduction = stage->reduction == WPK_REDUCE_SUM ? WPK_REDUCE_MAX : WPK_REDUCE_SUM;
        return true;
    }
    return --stage->axes[axis].extent > 0;
}

/* False when there is nothing to be mutated where the dice fell. */
static bool mutate(struct wpk_program *program, struct wpk_rng *rng)
{
    struct wpk_stage *stage = &program->stages[wpk_rng_between(rng, 0, program->stage_count - 1)];
    struct nodes nodes = {.count = 0};
    struct shift shift = {.load = (int)wpk_rng_between(rng, 0, 3),
                          .dimension = (int)wpk_rng_between(rng, 0, 3),
                          .by = wpk_rng_chance(rng, 0.5) ? 1 : -1};
    switch (wpk_rng_between(rng, 0, 3)) {
    case 0:
        return mutate_reduction(stage, rng);
    case 1:
        stage->expr = wpk_rewrite_expr(program, stage->expr, NULL, -1, shift_load, &shift);
        return stage->expr >= 0;
    default:
        wpk_node_walk(program, stage->expr, false, collect, &nodes);
        return mutate_node(&program->nodes[nodes.id[wpk_rng_between(rng, 0, nodes.count - 1)]],
                           rng);
    }
}

/* ---- evaluation */

static void evaluate(const struct wpk_program *program, const struct wpk_program *op,
                     const struct wpk_answers *answers, double *out)
{
    struct wpk_inputs inputs = {0};
    struct wpk_reference_args args = {.tensor = {NULL}};
    assert_true(answers->count <= POINTS_MAX);
    assert_int_equal(wpk_inputs_make(op, &answers->inputs, &inputs), WPK_OK);
    assert_int_equal(wpk_inputs_widen(op, &inputs), WPK_OK);
    for (int t = 0; t < op->tensor_count; t++) {
        args.tensor[t] = inputs.wide[t];
    }
    wpk_err err = answers->whole ? wpk_reference_run(program, &args, out, NULL, NULL)
                                 : wpk_reference_run_at(program, &args, answers->points,
                                                        answers->count, out, NULL, NULL);
    assert_int_equal(err, WPK_OK);
    wpk_inputs_fini(&inputs);
}

static void make_set(const struct wpk_program *op, uint64_t seed, int k, struct wpk_answers *out)
{
    const struct wpk_input_options inputs = {
        .kind = (enum wpk_input_kind)k, .seed = seed + (uint64_t)k, .constants_seed = seed};
    assert_int_equal(wpk_answers_make(op, &inputs, k < 2 ? 0 : 400, out, NULL), WPK_OK);
}

/* Those that candidates of the op face. */
static void make_sets(const struct wpk_program *op, uint64_t seed, struct wpk_answers *out)
{
    for (int k = 0; k < WPK_INPUT_KINDS; k++) {
        if (wpk_faults_ask_for(op, out, (enum wpk_input_kind)k)) {
            make_set(op, seed, k, &out[k]);
            assert_int_equal(wpk_faults_look(op, &out[k]), WPK_OK);
        }
    }
}

static bool is_caught(const struct wpk_program *op, const struct wpk_program *mutant,
                      const struct wpk_answers *sets)
{
    static double value[POINTS_MAX];
    const struct wpk_verify_rule rule = {.exact = wpk_verify_is_exact(op),
                                         .times = WPK_VERIFY_TIMES};
    for (int k = 0; k < WPK_INPUT_KINDS; k++) {
        if (sets[k].count == 0) {
            continue;
        }
        evaluate(mutant, op, &sets[k], value);
        for (int64_t i = 0; i < sets[k].count; i++) {
            if (wpk_verify_ratio(op, &sets[k], &rule, i, value[i]) > 1) {
                return true;
            }
        }
    }
    return false;
}

static bool same(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(a) || a == b || (isnan(a) && isnan(b));
}

/* True if the mistake changes no value, on many other inputs either. */
static bool is_equivalent(const struct wpk_program *op, const struct wpk_program *mutant)
{
    static double value[POINTS_MAX];
    bool equal = true;
    for (uint64_t seed = 1000; seed < 1400 && equal; seed += 100) {
        for (int k = 0; k < WPK_INPUT_KINDS; k++) {
            struct wpk_answers set = {0};
            make_set(op, seed, k, &set);
            if (set.count > 0) {
                evaluate(mutant, op, &set, value);
            }
            for (int64_t i = 0; i < set.count && equal; i++) {
                equal = same(set.value[i], value[i]);
            }
            wpk_answers_fini(&set);
        }
    }
    return equal;
}

/* The next mutant that is another program; returns how many are counted. */
static int try_mutant(const struct wpk_program *op, const struct wpk_answers *sets,
                      struct wpk_rng *rng, int *survivors)
{
    struct wpk_program mutant;
    int counted = 0;
    assert_int_equal(wpk_program_copy(op, &mutant), WPK_OK);
    if (mutate(&mutant, rng)) {
        bool caught = is_caught(op, &mutant, sets);
        counted = caught || !is_equivalent(op, &mutant);
        if (counted && !caught) {
            struct wpk_buf text = {0};
            assert_int_equal(wpk_program_print(&mutant, &text), WPK_OK);
            fprintf(stderr, "survives:\n%s\n", wpk_buf_text(&text));
            wpk_buf_fini(&text);
            ++*survivors;
        }
    }
    wpk_program_fini(&mutant);
    return counted;
}

static void test_no_mutant_survives(void **state)
{
    (void)state;
    int survivors = 0;
    int program_count = (int)(sizeof(texts) / sizeof(texts[0]));
    for (int p = 0; p < program_count; p++) {
        struct wpk_program op = parse(texts[p]);
        struct wpk_answers sets[WPK_INPUT_KINDS] = {0};
        struct wpk_rng rng;
        wpk_rng_seed(&rng, (uint64_t)p);
        make_sets(&op, 7, sets);
        for (int counted = 0; counted < MUTANTS / program_count;) {
            counted += try_mutant(&op, sets, &rng, &survivors);
        }
        for (int k = 0; k < WPK_INPUT_KINDS; k++) {
            wpk_answers_fini(&sets[k]);
        }
        wpk_program_fini(&op);
    }
    assert_int_equal(survivors, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_mutant_survives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
