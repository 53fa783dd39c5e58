/* SPDX-License-Identifier: Apache-2.0 */
/* The groups that programs fall into, written as trees: "Y(s(s1) e~)" is a root Y with the members
 * s, which reads s1, and e, which is inlined; behind it what the group is. */
#include "search/plan.h"

#include "ir/derive/derive.h"
#include "ir/derive/extract.h"
#include "ir/notation/notation.h"
#include "search/candidate_nest.h"
#include "tests/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct wpk_machine machine = {.lanes_max = 16, .lanes_min = 4, .row_vectors = 4};

static void parse(const char *text, struct wpk_program *out)
{
    struct wpk_diag diag = {0};
    if (wpk_program_parse(text, out, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, text);
    }
}

static const char *name_of(const struct wpk_program *program, int stage)
{
    return program->tensors[program->stages[stage].output].name;
}

static void write_members(const struct wpk_program *program, const struct wpk_group *group,
                          int consumer, struct wpk_buf *out)
{
    int written = 0;
    for (int m = 0; m < group->member_count; m++) {
        if (group->member[m].consumer != consumer) {
            continue;
        }
        wpk_buf_printf(out, "%s%s%s", written++ == 0 ? "(" : " ",
                       name_of(program, group->member[m].stage),
                       group->member[m].inlined ? "~" : "");
        write_members(program, group, m, out);
    }
    if (written > 0) {
        wpk_buf_append_byte(out, ')');
    }
}

static void write_plan(const struct wpk_program *program, const struct wpk_plan *plan,
                       struct wpk_buf *out)
{
    for (int g = 0; g < plan->group_count; g++) {
        const struct wpk_group *group = &plan->group[g];
        wpk_buf_printf(out, "%s%s", g == 0 ? "" : " | ", group->name);
        write_members(program, group, -1, out);
        if (group->contraction >= 0) {
            wpk_buf_printf(out, " sums %s%s",
                           name_of(program, group->member[group->contraction].stage),
                           group->reuse ? ", reuse" : "");
        }
        wpk_buf_append_text(out, group->rows ? ", rows" : "");
        const struct wpk_stage *root = &program->stages[group->root];
        for (int a = 0; a < root->rank; a++) {
            if (group->whole[a]) {
                wpk_buf_printf(out, ", whole %s", root->axes[a].name);
            }
            if (group->align[a] > 1) {
                wpk_buf_printf(out, ", %s by %lld", root->axes[a].name, (long long)group->align[a]);
            }
        }
    }
}

/* Every stage is in exactly one group, and groups stand in topological order. */
static void expect_sound(const struct wpk_program *program, const struct wpk_plan *plan)
{
    int seen[WPK_STAGES_MAX] = {0};
    for (int g = 0; g < plan->group_count; g++) {
        const struct wpk_group *group = &plan->group[g];
        seen[group->root]++;
        assert_int_equal(plan->group_of[group->root], g);
        assert_int_equal(program->stages[group->root].reduction, WPK_REDUCE_NONE);
        for (int m = 0; m < group->member_count; m++) {
            seen[group->member[m].stage]++;
            assert_int_equal(plan->group_of[group->member[m].stage], g);
            assert_true(group->member[m].consumer < m);
        }
        for (int h = 0; h <= g; h++) {
            assert_false(plan->feeds[g][h]);
        }
    }
    for (int s = 0; s < program->stage_count; s++) {
        assert_int_equal(seen[s], plan->prepare[s] ? 0 : 1);
    }
    int last = plan->group[plan->group_count - 1].root;
    assert_int_equal(program->tensors[program->stages[last].output].role, WPK_ROLE_OUTPUT);
}

static void expect_groups(const char *text, int64_t winograd, const char *expected)
{
    struct wpk_program program = {0};
    struct wpk_plan plan;
    struct wpk_buf got = {0};
    struct wpk_diag diag = {0};
    parse(text, &program);
    if (winograd > 0) {
        assert_int_equal(wpk_derive_winograd(&program, wpk_contraction_find(&program),
                                             (const int64_t[]){winograd, winograd}),
                         WPK_OK);
        assert_int_equal(wpk_derive_halo(&program, NULL), WPK_OK);
    }
    assert_int_equal(wpk_plan_normalize(&program, &machine), WPK_OK);
    assert_int_equal(wpk_program_validate(&program, &diag), WPK_OK);
    assert_int_equal(wpk_plan_derive(&program, &plan), WPK_OK);
    expect_sound(&program, &plan);
    write_plan(&program, &plan, &got);
    assert_string_equal(wpk_buf_text(&got), expected);
    wpk_buf_fini(&got);
    wpk_plan_fini(&plan);
    wpk_program_fini(&program);
}

#define CONV                                                                                       \
    "input X f32[1,16,16,14]\nconstant W f32[24,14,3,3]\nconstant B f32[24]\n"                     \
    "intermediate T f32[1,14,12,24]\noutput Y f32[1,14,12,24]\n"                                   \
    "T[n,y,x,k] = sum(c:14,r:3,s:3) X[n,y+r,x+s,c] * W[k,c,r,s]\n"                                 \
    "Y[n,y,x,k] = max(T[n,y,x,k] + B[k], 0)\n"

static void test_convolution(void **state)
{
    (void)state;
    expect_groups(CONV, 0, "Y(T) sums T, reuse");
    /* one group for each transform and one for the products; weights are prepared */
    expect_groups(CONV, 4,
                  "T_v(T_v_r(T_v1)), whole a, whole b | T_m(T_m_r) sums T_m_r, reuse | "
                  "Y(T_s(T_s1)), y by 4, x by 4");
}

static void test_winograd_1d(void **state)
{
    (void)state;
    expect_groups(
        "input X f32[2,20,6]\nconstant W f32[5,6,3]\noutput Y f32[2,18,5]\n"
        "Y[n,x,k] = sum(c:6,s:3) X[n,x+s,c] * W[k,c,s]\n",
        2, "Y_r_v(Y_r_v_r), whole a | Y_r_m(Y_r_m_r) sums Y_r_m_r, reuse | Y(Y_r_s), x by 2");
}

static void test_reductions_over_rows(void **state)
{
    (void)state;
    expect_groups("input X f32[13,48]\nintermediate M f32[13]\nintermediate D f32[13]\n"
                  "output S f32[13,48]\nM[i] = max(j:48) X[i,j]\n"
                  "D[i] = sum(j:48) exp(X[i,j] - M[i])\nS[i,j] = exp(X[i,j] - M[i]) / D[i]\n",
                  0, "M(M_r(M_p)) sums M_p, rows | D(D_r(D_p)) sums D_p, rows | S");
    expect_groups("input X f32[9,64]\nconstant G f32[64]\nintermediate M f32[9]\n"
                  "intermediate V f32[9]\noutput Y f32[9,64]\nM[i] = sum(j:64) X[i,j]\n"
                  "V[i] = sum(j:64) (X[i,j] - M[i]) * (X[i,j] - M[i])\n"
                  "Y[i,j] = (X[i,j] - M[i]) * rsqrt(V[i]) * G[j]\n",
                  0, "M(M_r(M_p)) sums M_p, rows | V(V_r(V_p)) sums V_p, rows | Y");
    /* what is left of a row that lanes do not divide is a stage of its own; short rows stay */
    expect_groups("input X f32[5,31]\noutput Y f32[5]\nY[i] = sum(j:31) X[i,j]\n", 0,
                  "Y(Y_w(Y_w_p) Y_q) sums Y_w_p, rows");
    expect_groups("input X f32[5,7]\noutput Y f32[5]\nY[i] = sum(j:7) X[i,j]\n", 0,
                  "Y(Y_r) sums Y_r");
    expect_groups("input X f32[96]\noutput Y f32[]\nY[] = sum(i:96) X[i] * X[i]\n", 0,
                  "Y(Y_r(Y_p)) sums Y_p, rows");
}

#define BLOCKS                                                                                     \
    "input X i8[6,5,8]\nconstant W i8[5,8,40]\nconstant S f32[5,40]\nintermediate P i32[6,5,40]\n" \
    "output Y f32[6,40]\nP[i,b,j] = sum(k:8) i32(X[i,b,k]) * i32(W[b,k,j])\n"

/* The sum of a block is computed where it is added to the others: nothing of its operands is read
 * again by the terms of these. Parts that are only added up stay apart, for threads. */
static void test_sums_of_blocks(void **state)
{
    (void)state;
    expect_groups(BLOCKS "Y[i,j] = sum(b:5) f32(P[i,b,j]) * S[b,j]\n", 0,
                  "Y(Y_r(P)) sums P, reuse");
    expect_groups("input X i8[6,5,8]\nconstant W i8[5,8,40]\nintermediate P f32[6,5,40]\n"
                  "output Y f32[6,40]\nP[i,b,j] = sum(k:8) f32(X[i,b,k]) * f32(W[b,k,j])\n"
                  "Y[i,j] = sum(b:5) P[i,b,j]\n",
                  0, "P(P_r) sums P_r, reuse | Y(Y_r) sums Y_r");
    /* each term of Y would read all of a row of X again */
    expect_groups("input X f32[6,8]\nconstant W f32[8,5]\nconstant S f32[5]\n"
                  "intermediate P f32[6,5]\noutput Y f32[6]\n"
                  "P[i,b] = sum(k:8) X[i,k] * W[k,b]\nY[i] = sum(b:5) P[i,b] * S[b]\n",
                  0, "P(P_r) sums P_r, reuse | Y(Y_r) sums Y_r");
}

static void test_other_programs(void **state)
{
    (void)state;
    expect_groups("input A f32[33,40]\nconstant B f32[40,50]\noutput Y f32[33,50]\n"
                  "Y[i,j] = sum(k:40) A[i,k] * B[k,j]\n",
                  0, "Y(Y_r) sums Y_r, reuse");
    /* a constant matrix meets one vector: its copy is read in one stream */
    expect_groups("input A f32[1,40]\nconstant B f32[40,50]\noutput Y f32[1,50]\n"
                  "Y[i,j] = sum(k:40) A[i,k] * B[k,j]\n",
                  0, "Y(Y_r) sums Y_r, reuse");
    expect_groups("constant W f32[96,64]\ninput x f32[64]\noutput Y f32[96]\n"
                  "Y[i] = sum(k:64) W[i,k] * x[k]\n",
                  0, "Y(Y_r) sums Y_r, reuse");
    expect_groups("input X f32[14,14,19]\nconstant W f32[19,3,3]\noutput Y f32[12,12,19]\n"
                  "Y[y,x,c] = sum(r:3,s:3) X[y+r,x+s,c] * W[c,r,s]\n",
                  0, "Y(Y_r) sums Y_r, reuse");
    expect_groups("input X f32[15,15,20]\noutput Y f32[7,7,20]\n"
                  "Y[y,x,c] = max(r:3,s:3) X[2*y+r,2*x+s,c]\n",
                  0, "Y(Y_r) sums Y_r, reuse");
    expect_groups("input X f32[7,30]\nconstant B f32[30]\noutput Y f32[7,30]\n"
                  "Y[i,j] = tanh(X[i,j] + B[j])\n",
                  0, "Y");
    expect_groups("input A f32[14,22]\ninput B f32[18,22]\noutput Y f32[14,18]\n"
                  "Y[i,j] = sum(k:22) abs(A[i,k] - B[j,k])\n",
                  0, "Y(Y_r) sums Y_r, reuse");
    expect_groups("input X f32[12,20]\nconstant V f32[20,24]\nconstant W f32[24,16]\n"
                  "intermediate H f32[12,24]\nintermediate R f32[12,24]\noutput Y f32[12,16]\n"
                  "H[i,k] = sum(c:20) X[i,c] * V[c,k]\nR[i,k] = max(H[i,k], 0)\n"
                  "Y[i,j] = sum(k:24) R[i,k] * W[k,j]\n",
                  0, "R(H) sums H, reuse | Y(Y_r) sums Y_r, reuse");
    expect_groups("input X f32[13,40]\nintermediate T f32[13,40]\noutput Y f32[13,40]\n"
                  "T[i,j] = X[i,j-1] + X[i,j+1]\nY[i,j] = T[i-1,j] + T[i+1,j]\n",
                  0, "T | Y");
    expect_groups("input X f32[10,30]\nintermediate A f32[10,30]\nintermediate S f32[10]\n"
                  "output Y f32[10,30]\nA[i,j] = exp(X[i,j])\nS[i] = sum(j:30) A[i,j]\n"
                  "Y[i,j] = A[i,j] / (1 + S[i])\n",
                  0, "A | S(S_w(S_w_p) S_q) sums S_w_p, rows | Y");
    expect_groups("input X f32[6,20]\noutput Y f32[4,30]\nY[i,j] = X[(i*30+j)/20,(i*30+j)%20]\n", 0,
                  "Y, i by 2, j by 20");
    expect_groups("input X f32[6,20]\nintermediate Z f32[6,20]\noutput Y f32[20,6]\n"
                  "Z[i,j] = exp(X[i,j])\nY[a,b] = Z[b,a] + 1\n",
                  0, "Y(Z~)");
    /* a tile of Y begins anywhere within a division by 9 */
    expect_groups("input X f32[12,40]\nintermediate S f32[12]\nintermediate R f32[96]\n"
                  "output Y f32[95]\nS[j] = sum(k:40) X[j,k]\nR[q] = S[(q+8)/9] * 2\n"
                  "Y[i] = R[i+1] + 1\n",
                  0, "R(S(S_p)) sums S_p, rows, q by 9 | Y");
}

/* The region that one tile needs: windows overlap, whole axes stay whole, no region exceeds its
 * tensor. */
static void test_regions(void **state)
{
    (void)state;
    struct wpk_program program = {0};
    struct wpk_plan plan;
    int64_t region[WPK_MEMBERS_MAX][WPK_AXES_MAX];
    parse(CONV, &program);
    assert_int_equal(
        wpk_derive_winograd(&program, wpk_contraction_find(&program), (const int64_t[]){4, 4}),
        WPK_OK);
    assert_int_equal(wpk_derive_halo(&program, NULL), WPK_OK);
    assert_int_equal(wpk_plan_normalize(&program, &machine), WPK_OK);
    assert_int_equal(wpk_plan_derive(&program, &plan), WPK_OK);
    const struct wpk_group *last = &plan.group[plan.group_count - 1];
    const int64_t tile[WPK_AXES_MAX] = {1, 4, 8, 16}; /* n y x k */
    wpk_plan_regions(&program, last, tile, region);
    /* s [u, v, n, ty, tx, k] then its reduction over b; s1 [u, b, n, ty, tx, k] */
    static const int64_t s[] = {4, 4, 1, 1, 2, 16, 6}, s1[] = {4, 6, 1, 1, 2, 16, 6};
    assert_memory_equal(region[0], s, sizeof(s));
    assert_memory_equal(region[1], s1, sizeof(s1));
    wpk_plan_fini(&plan);
    wpk_program_fini(&program);
    /* of the sum of a block: one block at a time */
    parse(BLOCKS "Y[i,j] = sum(b:5) f32(P[i,b,j]) * S[b,j]\n", &program);
    assert_int_equal(wpk_plan_normalize(&program, &machine), WPK_OK);
    assert_int_equal(wpk_plan_derive(&program, &plan), WPK_OK);
    wpk_plan_regions(&program, &plan.group[0], (const int64_t[WPK_AXES_MAX]){2, 16}, region);
    static const int64_t total[] = {2, 16, 5}, block[] = {2, 1, 16, 8};
    assert_memory_equal(region[0], total, sizeof(total));
    assert_memory_equal(region[1], block, sizeof(block));
    wpk_plan_fini(&plan);
    wpk_program_fini(&program);
}

/* The regions that rules judge a tile by are those that the nest computes.   returns  axes
 * compared */
static int compare_regions(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    static struct wpk_nest nest;
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *s = variant->plan;
    int compared = 0;
    assert_int_equal(wpk_candidate_nest(space, candidate, &nest), WPK_OK);
    for (int e = 0; e < nest.entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest.entry[e];
        int64_t region[WPK_MEMBERS_MAX][WPK_AXES_MAX];
        int g = entry->kind == WPK_NEST_STAGE ? s->plan.group_of[entry->stage] : -1, m = 0;
        if (g < 0 || entry->stage == s->plan.group[g].root) {
            continue;
        }
        const struct wpk_group *group = &s->plan.group[g];
        struct wpk_decisions d;
        wpk_genes_read(variant, candidate, g, &d);
        wpk_plan_regions(&variant->program, group, d.tile, region);
        while (group->member[m].stage != entry->stage) {
            m++;
        }
        for (int a = 0; a < variant->program.stages[entry->stage].axis_count; a++, compared++) {
            assert_int_equal(region[m][a], entry->extent[a]);
        }
    }
    return compared;
}

static void test_regions_are_those_of_nests(void **state)
{
    (void)state;
    struct wpk_rng rng;
    int compared = 0;
    wpk_rng_seed(&rng, 4);
    for (int i = 0; i < 200; i++) {
        struct wpk_program program;
        struct wpk_space space;
        struct wpk_candidate candidate;
        struct wpk_space_options options = {.layouts = "any", .threads = 1};
        const struct wpk_random_options kind = {.products = i % 2 == 0};
        assert_int_equal(wpk_device_of_class("cpu/any/avx512", &options.device), WPK_OK);
        wpk_random_program(&rng, &kind, &program);
        if (wpk_space_derive(&program, &options, &space, NULL) == WPK_OK) {
            for (int k = 0; k < 10; k++) {
                if (wpk_space_draw(&space, &rng, &candidate) == WPK_OK) {
                    compared += compare_regions(&space, &candidate);
                }
            }
            wpk_space_fini(&space);
        }
        wpk_program_fini(&program);
    }
    assert_true(compared > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_winograd_1d),
        cmocka_unit_test(test_reductions_over_rows),
        cmocka_unit_test(test_sums_of_blocks),
        cmocka_unit_test(test_other_programs),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_regions_are_those_of_nests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
