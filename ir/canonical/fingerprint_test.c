/* SPDX-License-Identifier: Apache-2.0 */
/* A program is rewritten at random in all the ways that must not matter, then in those that do. */
#include "ir/canonical/canonical.h"

#include "common/buf.h"
#include "common/crypto.h"
#include "common/rng.h"
#include "ir/notation/notation.h"
#include "tests/random_program.h"
#include "tests/rewritten_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SHUFFLES 40

/* ---- the same program, written differently */

static void assert_same(const struct wpk_program *program, uint64_t shuffles)
{
    struct wpk_fingerprint expected;
    assert_int_equal(wpk_fingerprint(program, &expected), WPK_OK);
    for (uint64_t seed = 0; seed < shuffles; seed++) {
        struct wpk_program other = {0};
        int map[WPK_TENSORS_MAX];
        struct wpk_fingerprint got;
        wpk_rewritten_program(program, seed, &other, map);
        assert_int_equal(wpk_fingerprint(&other, &got), WPK_OK);
        if (strcmp(got.exact, expected.exact) != 0) {
            struct wpk_buf a = {0};
            struct wpk_buf b = {0};
            (void)wpk_program_print(program, &a);
            (void)wpk_program_print(&other, &b);
            fail_msg("seed %d:\n%s\n%s", (int)seed, wpk_buf_text(&a), wpk_buf_text(&b));
        }
        assert_string_equal(got.family, expected.family);
        assert_string_equal(got.extents, expected.extents);
        wpk_program_fini(&other);
    }
}

/* ---- programs */

#define EXTENTS(...) ((const int64_t[]){__VA_ARGS__})
#define INDICES(...) ((const int[]){__VA_ARGS__})

struct variant {
    int64_t size, channels, stride, before;
    enum wpk_dtype dtype;
    enum wpk_role bias_role;
    int64_t pad;
    enum wpk_unary extra; /* applied at the end; COUNT: nothing */
};

static const struct variant base = {8, 4, 1, 1, WPK_F32, WPK_ROLE_CONSTANT, 0, WPK_UNARY_COUNT};

static int sum2(struct wpk_program *p, int a, int b)
{
    return wpk_node_binary(p, WPK_BINARY_ADD, a, b);
}

static int times(struct wpk_program *p, int a, int b)
{
    return wpk_node_binary(p, WPK_BINARY_MUL, a, b);
}

static int ax(struct wpk_program *p, int axis)
{
    return wpk_node_axis(p, axis);
}

static struct wpk_stage *new_stage(struct wpk_program *p, int output, enum wpk_reduction reduction,
                                   int count, const int64_t *extent)
{
    int s = wpk_program_add_stage(p, output, NULL);
    assert_true(s >= 0);
    struct wpk_stage *stage = &p->stages[s];
    stage->reduction = reduction;
    stage->accumulator = p->tensors[output].dtype;
    for (int i = 0; i < count; i++) {
        char name[WPK_NAME_MAX];
        (void)snprintf(name, sizeof name, "r%d", i);
        assert_true(wpk_stage_add_reduction_axis(stage, name, extent[i]) >= 0);
    }
    return stage;
}

/* Y = max(sum(c,r,s) X * W + B + Z, 0) */
static void build_conv(struct wpk_program *p, const struct variant *v)
{
    int64_t o = (v->size + 2 * v->before - 3) / v->stride + 1;
    const int64_t out[4] = {1, 6, o, o};
    int x = wpk_program_add_tensor(p, "X", WPK_ROLE_INPUT, v->dtype, 4,
                                   EXTENTS(1, v->channels, v->size, v->size));
    int w = wpk_program_add_tensor(p, "W", WPK_ROLE_CONSTANT, v->dtype, 4,
                                   EXTENTS(6, v->channels, 3, 3));
    int b = wpk_program_add_tensor(p, "B", v->bias_role, v->dtype, 1, EXTENTS(6));
    int z = wpk_program_add_tensor(p, "Z", WPK_ROLE_INPUT, v->dtype, 4, out);
    int t = wpk_program_add_tensor(p, "T", WPK_ROLE_INTERMEDIATE, v->dtype, 4, out);
    int y = wpk_program_add_tensor(p, "Y", WPK_ROLE_OUTPUT, v->dtype, 4, out);
    p->tensors[x].pad_before[2] = v->pad;
    struct wpk_stage *s = new_stage(p, t, WPK_REDUCE_SUM, 3, EXTENTS(v->channels, 3, 3));
    int row = sum2(p, sum2(p, times(p, wpk_node_int(p, v->stride), ax(p, 2)), ax(p, 5)),
                   wpk_node_int(p, -v->before));
    int column = sum2(p, sum2(p, times(p, wpk_node_int(p, v->stride), ax(p, 3)), ax(p, 6)),
                      wpk_node_int(p, -v->before));
    int lx = wpk_node_load(p, x, INDICES(ax(p, 0), ax(p, 4), row, column),
                           wpk_node_real(p, v->dtype, 0.0));
    s->expr =
        times(p, lx, wpk_node_load(p, w, INDICES(ax(p, 1), ax(p, 4), ax(p, 5), ax(p, 6)), -1));
    s = new_stage(p, y, WPK_REDUCE_NONE, 0, NULL);
    int point[4] = {ax(p, 0), ax(p, 1), ax(p, 2), ax(p, 3)};
    int sum = sum2(p, sum2(p, wpk_node_load(p, t, point, -1), wpk_node_load(p, b, point + 1, -1)),
                   wpk_node_load(p, z, point, -1));
    int relu = wpk_node_binary(p, WPK_BINARY_MAX, sum, wpk_node_real(p, v->dtype, 0.0));
    s->expr = v->extra == WPK_UNARY_COUNT ? relu : wpk_node_unary(p, v->extra, relu);
}

static void build_softmax(struct wpk_program *p)
{
    const int64_t columns = 9;
    int x = wpk_program_add_tensor(p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(5, 9));
    int m = wpk_program_add_tensor(p, "M", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(5));
    int d = wpk_program_add_tensor(p, "D", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(5));
    int a = wpk_program_add_tensor(p, "A", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(5));
    int y = wpk_program_add_tensor(p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(5, 9));
    int ij[2] = {ax(p, 0), ax(p, 1)};
    int lx = wpk_node_load(p, x, ij, -1);
    int e = wpk_node_unary(p, WPK_UNARY_EXP,
                           wpk_node_binary(p, WPK_BINARY_SUB, lx, wpk_node_load(p, m, ij, -1)));
    new_stage(p, m, WPK_REDUCE_MAX, 1, &columns)->expr = lx;
    new_stage(p, d, WPK_REDUCE_SUM, 1, &columns)->expr = e;
    new_stage(p, a, WPK_REDUCE_MIN, 1, &columns)->expr = lx;
    int low = sum2(p, wpk_node_load(p, a, ij, -1), wpk_node_load(p, d, ij, -1));
    new_stage(p, y, WPK_REDUCE_NONE, 0, NULL)->expr = wpk_node_binary(p, WPK_BINARY_DIV, e, low);
}

/* Inputs A, B, C, D of one type, combined by `shape`. */
static void build_four(struct wpk_program *p, int shape)
{
    int t[4];
    int l[4];
    static const char *const names[] = {"A", "B", "C", "D"};
    int i = ax(p, 0);
    for (int k = 0; k < 4; k++) {
        t[k] = wpk_program_add_tensor(p, names[k], WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(7));
        l[k] = wpk_node_load(p, t[k], &i, -1);
    }
    int y = wpk_program_add_tensor(p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(7));
    struct wpk_stage *s = new_stage(p, y, WPK_REDUCE_NONE, 0, NULL);
    switch (shape) {
    case 0: /* two pairs */
        s->expr = sum2(p, times(p, l[0], l[1]), times(p, l[2], l[3]));
        break;
    case 1: /* a ring: A B + B C + C D + D A */
        s->expr = sum2(p, sum2(p, times(p, l[0], l[1]), times(p, l[1], l[2])),
                       sum2(p, times(p, l[2], l[3]), times(p, l[3], l[0])));
        break;
    case 2: /* a path: A B + B C + C D + D D */
        s->expr = sum2(p, sum2(p, times(p, l[0], l[1]), times(p, l[1], l[2])),
                       sum2(p, times(p, l[2], l[3]), times(p, l[3], l[3])));
        break;
    case 3: /* A A + B B + C D + C D: each is read twice */
        s->expr = sum2(p, sum2(p, times(p, l[0], l[0]), times(p, l[1], l[1])),
                       sum2(p, times(p, l[2], l[3]), times(p, l[2], l[3])));
        break;
    case 4: /* A B + B C + C D: two pairs of equals, of which one tells the other apart */
        s->expr =
            sum2(p, sum2(p, times(p, l[0], l[1]), times(p, l[1], l[2])), times(p, l[2], l[3]));
        break;
    default: /* B and C as one, shared: (A + B) (A + B) C / D */
        i = sum2(p, l[0], l[1]);
        s->expr = wpk_node_binary(p, WPK_BINARY_DIV, times(p, times(p, i, i), l[2]), l[3]);
    }
}

/* Y = sum(r,s,t) A[r,s,t] op(A with the axes in another order) */
static void build_axes(struct wpk_program *p, bool cyclic)
{
    int a = wpk_program_add_tensor(p, "A", WPK_ROLE_INPUT, WPK_F32, 3, EXTENTS(4, 4, 4));
    int y = wpk_program_add_tensor(p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 0, NULL);
    struct wpk_stage *s = new_stage(p, y, WPK_REDUCE_SUM, 3, EXTENTS(4, 4, 4));
    int x[3] = {ax(p, 0), ax(p, 1), ax(p, 2)};
    s->expr = times(
        p, wpk_node_load(p, a, x, -1),
        wpk_node_load(p, a, cyclic ? INDICES(x[1], x[2], x[0]) : INDICES(x[1], x[0], x[2]), -1));
}

/* ---- tests */

static void fingerprint_of(const struct variant *v, struct wpk_fingerprint *out)
{
    struct wpk_program p = {0};
    build_conv(&p, v);
    assert_int_equal(wpk_fingerprint(&p, out), WPK_OK);
    wpk_program_fini(&p);
}

static void test_writing_does_not_matter(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    build_conv(&p, &base);
    assert_same(&p, SHUFFLES);
    wpk_program_fini(&p);
    build_softmax(&p);
    assert_same(&p, SHUFFLES);
    wpk_program_fini(&p);
}

static void test_symmetric_inputs(void **state)
{
    (void)state;
    struct wpk_fingerprint seen[6];
    for (int shape = 0; shape < 6; shape++) {
        struct wpk_program p = {0};
        build_four(&p, shape);
        assert_same(&p, SHUFFLES);
        assert_int_equal(wpk_fingerprint(&p, &seen[shape]), WPK_OK);
        for (int o = 0; o < shape; o++) {
            assert_string_not_equal(seen[o].exact, seen[shape].exact);
            assert_string_not_equal(seen[o].family, seen[shape].family);
        }
        wpk_program_fini(&p);
    }
}

static void test_symmetric_axes(void **state)
{
    (void)state;
    struct wpk_fingerprint seen[2];
    for (int cyclic = 0; cyclic < 2; cyclic++) {
        struct wpk_program p = {0};
        build_axes(&p, cyclic == 1);
        assert_same(&p, SHUFFLES);
        assert_int_equal(wpk_fingerprint(&p, &seen[cyclic]), WPK_OK);
        wpk_program_fini(&p);
    }
    assert_string_not_equal(seen[0].exact, seen[1].exact);
}

/* Fewer ways of writing each, so that there can be many. */
static void test_random_programs(void **state)
{
    struct wpk_rng rng;
    (void)state;
    wpk_rng_seed(&rng, 5);
    for (int i = 0; i < 200; i++) {
        struct wpk_program p;
        wpk_random_program(&rng, &(struct wpk_random_options){.data = i % 2 == 0}, &p);
        assert_same(&p, 4);
        wpk_program_fini(&p);
    }
}

static void test_extents_change_exact_only(void **state)
{
    (void)state;
    struct wpk_fingerprint a;
    struct wpk_fingerprint b;
    fingerprint_of(&base, &a);
    struct variant larger = base;
    larger.size = 16;
    fingerprint_of(&larger, &b);
    assert_string_not_equal(a.exact, b.exact);
    assert_string_equal(a.family, b.family);
    struct variant deeper = base;
    deeper.channels = 5;
    fingerprint_of(&deeper, &b);
    assert_string_not_equal(a.exact, b.exact);
    assert_string_equal(a.family, b.family);
}

/* A value with zeros around it in memory, or a part of another one, is the same equation. */
static void test_borders_change_exact_only(void **state)
{
    (void)state;
    struct wpk_fingerprint a;
    struct wpk_fingerprint b;
    fingerprint_of(&base, &a);
    struct variant bordered = base;
    bordered.pad = 1;
    fingerprint_of(&bordered, &b);
    assert_string_not_equal(a.exact, b.exact);
    assert_string_equal(a.family, b.family);
    assert_string_equal(a.extents, b.extents);
}

static void test_what_changes_both(void **state)
{
    (void)state;
    struct variant variants[6];
    for (int i = 0; i < 6; i++) {
        variants[i] = base;
    }
    variants[1].stride = 2;
    variants[2].before = 0;
    variants[3].dtype = WPK_F64;
    variants[4].bias_role = WPK_ROLE_INPUT;
    variants[5].extra = WPK_UNARY_EXP;
    struct wpk_fingerprint seen[6];
    for (int i = 0; i < 6; i++) {
        fingerprint_of(&variants[i], &seen[i]);
        for (int o = 0; o < i; o++) {
            assert_string_not_equal(seen[o].exact, seen[i].exact);
            assert_string_not_equal(seen[o].family, seen[i].family);
        }
    }
}

static void test_literal_values_count(void **state)
{
    (void)state;
    struct wpk_fingerprint seen[2];
    for (int i = 0; i < 2; i++) {
        struct wpk_program p = {0};
        const double values[2] = {1.0, i};
        int a = wpk_program_add_literal(&p, "A", WPK_F32, 1, EXTENTS(2), values);
        int y = wpk_program_add_tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(2));
        int axis = ax(&p, 0);
        new_stage(&p, y, WPK_REDUCE_NONE, 0, NULL)->expr = wpk_node_load(&p, a, &axis, -1);
        assert_int_equal(wpk_fingerprint(&p, &seen[i]), WPK_OK);
        wpk_program_fini(&p);
    }
    assert_string_not_equal(seen[0].exact, seen[1].exact);
    assert_string_not_equal(seen[0].family, seen[1].family);
}

/* Literals that were computed so that 64-bit labels of the factors met. */
static void test_equal_fingerprints_cannot_be_constructed(void **state)
{
    static const char *const factors[] = {"(X[i] + 617.614 + 31.26721924671236)",
                                          "(X[i] + 1.0 + 2.0)"};
    struct wpk_fingerprint found[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct wpk_program p = {0};
        char text[256];
        snprintf(text, sizeof(text),
                 "input X f64[4]\noutput Y f64[4]\nY[i] = (X[i] + 1.0 + 2.0) * %s\n", factors[i]);
        assert_int_equal(wpk_program_parse(text, &p, NULL), WPK_OK);
        assert_int_equal(wpk_fingerprint(&p, &found[i]), WPK_OK);
        wpk_program_fini(&p);
    }
    assert_string_not_equal(found[0].exact, found[1].exact);
    assert_string_not_equal(found[0].family, found[1].family);
}

/* An unused input and a dead stage leave no trace. */
static void test_dead_parts(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    build_conv(&p, &base);
    struct wpk_fingerprint before;
    struct wpk_fingerprint after;
    assert_int_equal(wpk_fingerprint(&p, &before), WPK_OK);
    int u = wpk_program_add_tensor(&p, "U", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(3));
    int v = wpk_program_add_tensor(&p, "V", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(3));
    int axis = ax(&p, 0);
    new_stage(&p, v, WPK_REDUCE_NONE, 0, NULL)->expr = wpk_node_load(&p, u, &axis, -1);
    assert_int_equal(wpk_fingerprint(&p, &after), WPK_OK);
    assert_string_equal(before.exact, after.exact);
    wpk_program_fini(&p);
}

/* The text is a stored contract: changing it takes a new version line. */
static void expect_hash_of(const char *text, const char *got)
{
    char expected[WPK_FINGERPRINT_SIZE];
    wpk_crypto_sha256_hex(text, strlen(text), expected);
    assert_string_equal(got, expected);
}

/* History is keyed by it: a change of the canonical text is a change of its version. */
static void test_text(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int a = wpk_program_add_tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(64, 128));
    int b = wpk_program_add_tensor(&p, "B", WPK_ROLE_CONSTANT, WPK_F32, 2, EXTENTS(128, 32));
    int y = wpk_program_add_tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(64, 32));
    p.tensors[a].pad_after[1] = 16;
    struct wpk_stage *s = new_stage(&p, y, WPK_REDUCE_SUM, 1, EXTENTS(128));
    int k = ax(&p, 2);
    s->expr = wpk_node_binary(&p, WPK_BINARY_SUB, wpk_node_load(&p, a, INDICES(ax(&p, 0), k), -1),
                              wpk_node_load(&p, b, INDICES(k, ax(&p, 1)), -1));
    struct wpk_fingerprint got;
    assert_int_equal(wpk_fingerprint(&p, &got), WPK_OK);
    expect_hash_of("wpk-program-2\n"
                   "input t0 f32[64,128] pad 0:0,0:16\n"
                   "constant t1 f32[128,32]\n"
                   "output t2 f32[64,32]\n"
                   "t2[a0,a1] = sum.f32(a2:128) (t0[a0,a2] - t1[a2,a1])\n",
                   got.exact);
    expect_hash_of("wpk-program-2\n"
                   "input t0 f32[0,0]\n"
                   "constant t1 f32[0,0]\n"
                   "output t2 f32[0,0]\n"
                   "t2[a0,a1] = sum.f32(a2:0) (t0[a0,a2] - t1[a2,a1])\n",
                   got.family);
    assert_string_equal(got.extents, "64,32,128");
    wpk_program_fini(&p);
}

static void extents_of(const char *text, struct wpk_fingerprint *out)
{
    struct wpk_program p = {0};
    assert_int_equal(wpk_program_parse(text, &p, NULL), WPK_OK);
    assert_int_equal(wpk_fingerprint(&p, out), WPK_OK);
    wpk_program_fini(&p);
}

/* Two shapes of a family name the same axes at the same places, however each was written. */
static void test_extents_of_a_family(void **state)
{
    (void)state;
    struct wpk_fingerprint small, large, swapped;
    extents_of("input X f32[1,64,56,56]\nconstant W f32[64,64,3,3]\noutput Y f32[1,64,56,56]\n"
               "Y[n,k,y,x] = sum(c:64,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
               &small);
    extents_of("constant V f32[512,128,5,3]\noutput Z f32[2,512,14,28]\ninput A f32[2,128,14,28]\n"
               "Z[a,b,c,d] = sum(q:3,p:5,m:128) V[b,m,p,q] * A[a,m,c+p-1,d+q-1]\n",
               &large);
    assert_string_equal(small.family, large.family);
    /* Reduction axes by label: their order is the family's, not the writer's. */
    int n, k, y, x, r0, r1, r2;
    assert_int_equal(sscanf(large.extents, "%d,%d,%d,%d,%d,%d,%d", &n, &k, &y, &x, &r0, &r1, &r2),
                     7);
    assert_int_equal(n * 1000 + k, 2512);
    assert_int_equal(y * 100 + x, 1428);
    assert_int_equal(r0 * r1 * r2, 128 * 5 * 3);
    /* Two inputs that only their extents tell apart. */
    extents_of("input A f32[3]\ninput B f32[5]\noutput Y f32[]\nY[] = sum(i:3,j:5) A[i] * B[j]\n",
               &small);
    extents_of("input A f32[5]\ninput B f32[3]\noutput Y f32[]\nY[] = sum(j:3,i:5) B[j] * A[i]\n",
               &swapped);
    assert_string_equal(small.exact, swapped.exact);
    assert_string_equal(small.extents, swapped.extents);
}

/* More axes than are told: as many everywhere all the same. */
static void test_extents_are_bounded(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int previous =
        wpk_program_add_tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(4000000, 1000));
    for (int i = 0; i < 40; i++) {
        char name[WPK_NAME_MAX];
        (void)snprintf(name, sizeof name, "T%d", i);
        int next =
            wpk_program_add_tensor(&p, name, i == 39 ? WPK_ROLE_OUTPUT : WPK_ROLE_INTERMEDIATE,
                                   WPK_F32, 2, EXTENTS(4000000, 1000));
        struct wpk_stage *s = new_stage(&p, next, WPK_REDUCE_NONE, 0, NULL);
        int point[2] = {ax(&p, 0), ax(&p, 1)};
        s->expr = wpk_node_unary(&p, WPK_UNARY_TANH, wpk_node_load(&p, previous, point, -1));
        previous = next;
    }
    struct wpk_fingerprint got;
    assert_int_equal(wpk_fingerprint(&p, &got), WPK_OK);
    int commas = 0;
    for (const char *at = got.extents; *at != '\0'; at++) {
        commas += *at == ',';
    }
    assert_int_equal(commas, WPK_EXTENTS_MAX - 1);
    wpk_program_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writing_does_not_matter),
        cmocka_unit_test(test_symmetric_inputs),
        cmocka_unit_test(test_symmetric_axes),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_extents_change_exact_only),
        cmocka_unit_test(test_borders_change_exact_only),
        cmocka_unit_test(test_what_changes_both),
        cmocka_unit_test(test_literal_values_count),
        cmocka_unit_test(test_equal_fingerprints_cannot_be_constructed),
        cmocka_unit_test(test_dead_parts),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_extents_of_a_family),
        cmocka_unit_test(test_extents_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
