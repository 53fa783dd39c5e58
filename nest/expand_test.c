/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/expand.h"

#include "ir/notation/notation.h"
#include "ir/reference/direct.h"
#include "ir/reference/reference.h"
#include "tests/derive_check.h"
#include "tests/random_program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 200
#define VALUES_MAX 4096
#define TEXT_MAX 65536

static const bool no_sums[WPK_STAGES_MAX];

static void parse(const char *text, struct wpk_program *out)
{
    struct wpk_diag diag = {0};
    if (wpk_program_parse(text, out, &diag) != WPK_OK) {
        fail_msg("%s of %s", diag.text, text);
    }
}

static void expand(const struct wpk_program *program, const bool *sums, struct wpk_program *out)
{
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_program_expand(program, sums, out), WPK_OK);
    if (wpk_program_validate(out, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    for (int s = 0; s < program->stage_count; s++) {
        assert_int_equal(out->stages[s].output, program->stages[s].output);
        assert_int_equal(out->stages[s].rank, program->stages[s].rank);
    }
}

static void run(const struct wpk_program *program, const double *input, double *value)
{
    struct wpk_reference_args args = {.tensor = {NULL}};
    for (int t = 0; t < program->tensor_count; t++) {
        args.tensor[t] = program->tensors[t].role == WPK_ROLE_INPUT ? input : NULL;
    }
    assert_int_equal(wpk_reference_run(program, &args, value, NULL, NULL), WPK_OK);
}

/* The expanded program computes what kernels of the program are to compute; inputs have the same
 * elements all. */
static void expect_same(const char *text, const double *input, double tolerance)
{
    struct wpk_program program, expanded;
    double value[VALUES_MAX], other[VALUES_MAX];
    parse(text, &program);
    expand(&program, no_sums, &expanded);
    int64_t count = wpk_tensor_elements(&program.tensors[wpk_program_output(&program)]);
    assert_true(count <= VALUES_MAX);
    run(&program, input, value);
    run(&expanded, input, other);
    for (int64_t i = 0; i < count; i++) {
        bool same = value[i] == other[i] || (isnan(value[i]) && isnan(other[i])) ||
                    fabs(value[i] - other[i]) <= tolerance * fabs(value[i]) + 1e-50;
        if (!same) {
            fail_msg("element %lld is %.17g, should be %.17g, of\n%s", (long long)i, other[i],
                     value[i], text);
        }
    }
    wpk_program_fini(&program);
    wpk_program_fini(&expanded);
}

/* Small and large numbers of both signs, zero among them. */
static void fill_numbers(double *values)
{
    for (int i = 0; i < 64; i++) {
        values[i] = (i % 2 != 0 ? -1 : 1) * (i < 4 ? 0.0 : ldexp(1.0 + i / 64.0, i / 4 - 12));
    }
}

static void test_functions_of_numbers(void **state)
{
    (void)state;
    static const char *const functions[] = {
        "tanh(X[i])",
        "sigmoid(X[i])",
        "rsqrt(X[i] * X[i] + 1)",
        "erf(X[i])",
        "X[i] * tanh(X[i] * X[i]) + sigmoid(tanh(X[i]))",
        "abs(X[i]) + floor(X[i])",
    };
    double values[64];
    fill_numbers(values);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "input X f32[64]\noutput Y f32[64]\nY[i] = %s\n",
                 functions[i]);
        expect_same(text, values, 0x1p-24); /* constants are rounded */
        snprintf(text, sizeof(text), "input X f64[64]\noutput Y f64[64]\nY[i] = %s\n",
                 functions[i]);
        expect_same(text, values, 1e-14);
    }
}

/* ---- erf's error */

#define ERF_FLOATS "2048" /* of an octave; WPK_TEST_FLOATS=8388608: all of them */
#define ERF_CHUNK 2048
#define ERF_OCTAVE_MIN (-28) /* below, x^2 is nothing beside 1, in f64 too */
#define ERF_OCTAVE_MAX 3     /* from 4 on, erf is 1 in f32; in f64 from 6 on */

/* The largest error of erf in units in the last place, over an octave, [2^e, 2^(e+1)). Of a number
 * and its negative one is tried: their values are opposite. */
static double erf_error(const struct wpk_program *program, int digits, int e, int64_t count)
{
    static double x[ERF_CHUNK], y[ERF_CHUNK];
    struct wpk_reference_args args = {.tensor = {NULL}};
    double worst = 0;
    args.tensor[0] = x;
    for (int64_t first = 0; first < count; first += ERF_CHUNK) {
        for (int64_t i = 0; i < ERF_CHUNK; i++) {
            double part = (double)((first + i) % count) / (double)count;
            double digit = digits > 24 ? fmod((double)i * 0.6180339887498949, 1) * 0x1p-23 : 0;
            x[i] = ldexp((double)(float)(1 + part) + digit, e) * (i % 2 == 0 ? 1 : -1);
        }
        assert_int_equal(wpk_direct_run(program, &args, (uint64_t)first, y, NULL), WPK_OK);
        for (int64_t i = 0; i < ERF_CHUNK; i++) {
            assert_true(fabs(y[i]) <= 1);
            double wanted = erf(x[i]), unit = ldexp(1, ilogb(wanted) + 1 - digits);
            worst = fmax(worst, fabs(y[i] - wanted) / unit);
        }
    }
    return worst;
}

static void expect_erf(const char *type, int digits, double limit)
{
    struct wpk_program program, expanded;
    char text[128];
    const char *given = getenv("WPK_TEST_FLOATS");
    int64_t count = strtoll(given == NULL ? ERF_FLOATS : given, NULL, 10);
    double worst = 0;
    snprintf(text, sizeof(text), "input X %s[%d]\noutput Y %s[%d]\nY[i] = erf(X[i])\n", type,
             ERF_CHUNK, type, ERF_CHUNK);
    parse(text, &program);
    expand(&program, no_sums, &expanded);
    for (int e = ERF_OCTAVE_MIN; e <= ERF_OCTAVE_MAX; e++) {
        worst = fmax(worst, erf_error(&expanded, digits, e, count));
    }
    print_message("erf in %s: at most %.2f units in the last place\n", type, worst);
    assert_true(worst <= limit);
    wpk_program_fini(&program);
    wpk_program_fini(&expanded);
}

static void test_error_of_erf(void **state)
{
    (void)state;
    expect_erf("f32", 24, 7);
    expect_erf("f64", 53, 12);
}

static void test_casts(void **state)
{
    (void)state;
    static const char *const programs[] = {
        "input X f32[64]\noutput Y i8[64]\nY[i] = i8(X[i])\n",
        "input X f32[64]\noutput Y i32[64]\nY[i] = i32(X[i] * 1e9)\n",
        "input X f32[64]\noutput Y u8[64]\nY[i] = u8(f16(X[i]))\n",
        "input X f32[64]\noutput Y f32[64]\nY[i] = f32(i32(X[i] + 0.5))\n",
        "input X bool[64]\noutput Y bool[64]\nY[i] = !X[i]\n",
        "input X bool[64]\noutput Y f32[64]\nY[i] = select(X[i] && i > 3, 2, 1)\n",
        "input X f32[64]\noutput Y f32[8]\nintermediate T f16[8]\n"
        "T[i] = sum.f32(k:8) X[8*i+k]\nY[i] = f32(T[i]) + f32(T[7-i])\n",
        "input X f32[64]\noutput Y f32[8]\nintermediate T f16[8]\n"
        "T[i] = sum.f32(k:8) X[8*i+k]\nY[i] = max(r:3) f32(T[i+r-1 | 3])\n",
    };
    double values[64], truths[64];
    fill_numbers(values);
    for (int i = 0; i < 64; i++) {
        truths[i] = i % 3 == 0;
    }
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        expect_same(programs[i], strstr(programs[i], "X bool") != NULL ? truths : values, 1e-15);
    }
}

/* A softmax's parts, of a type; the inputs are -inf here and there. */
static void expect_softmax(const char *type, const char *definition, const double *values)
{
    char text[1024];
    snprintf(text, sizeof(text),
             "input X %s[8,8]\noutput Y %s[8,8]\nintermediate M %s[8]\nintermediate S %s[8]\n"
             "M[i] = max(k:8) X[i,k]\nS[i] = sum(k:8) exp(X[i,k] - M[i])\n%s\n",
             type, type, type, type, definition);
    expect_same(text, values, strcmp(type, "f32") == 0 ? 2e-8 : 1e-14);
}

/* A row that is -inf becomes 0 / 0 only where the least exp is 0: the reference has f64's. */
static void test_special_values(void **state)
{
    (void)state;
    static const char *const definitions[] = {
        "Y[i,j] = exp(X[i,j] - M[i]) / S[i]",
        "Y[i,j] = X[i,j] - M[i] - log(S[i])",
        "Y[i,j] = exp(X[i,j]) + S[i] + tanh(X[i,j])",
        "Y[i,j] = exp(X[i,j]) + S[i] + erf(X[i,j]) * sigmoid(X[i,j])",
        "Y[i,j] = exp(-X[i,j]) + S[i] * 0.5 + exp(X[i,j])",
        "Y[i,j] = rsqrt(exp(X[i,j] - M[i]) + 1) + S[i]",
        "Y[i,j] = sin(X[i,j]) + exp(X[i,j]) * S[i]",
        "Y[i,j] = cos(X[i,j] - M[i]) + exp(X[i,j]) * S[i]",
        "Y[i,j] = abs(X[i,j]) + floor(X[i,j]) + exp(X[i,j] + S[i])",
        "Y[i,j] = log(abs(X[i,j])) + exp(X[i,j]) + S[i]",
        "Y[i,j] = f32(X[i,j]) + exp(X[i,j]) + S[i]",
        "Y[i,j] = f32(X[i,j] - M[i]) + S[i]",
        "Y[i,j] = f32(-X[i,j]) + exp(X[i,j]) + S[i]",
    };
    double some[64], rows[64];
    for (int i = 0; i < 64; i++) {
        some[i] = i % 3 == 1 && i > 20 ? -INFINITY : (i * 37 % 17) / 8.0 - 1;
        rows[i] = i / 8 == 3 ? -INFINITY : some[i];
    }
    for (size_t i = 0; i < sizeof(definitions) / sizeof(definitions[0]); i++) {
        expect_softmax("f32", definitions[i], some);
        expect_softmax("f64", definitions[i], rows);
    }
    expect_same("input X f16[8,8]\noutput Y f16[8,8]\nintermediate M f32[8]\n"
                "intermediate S f32[8]\nM[i] = max(k:8) f32(X[i,k])\n"
                "S[i] = sum(k:8) exp(f32(X[i,k]) - M[i])\n"
                "Y[i,j] = f16(exp(f32(X[i,j]) - M[i]) / S[i])\n",
                some, 1e-15);
    expect_same("input X f32[64]\noutput Y f32[66]\nY[i] = max(r:3) X[i+r-2 | -inf]\n", some, 0);
}

/* Functions of literals are f32, and of a literal that is cast further the narrow type. */
static double rounding_of(const struct wpk_program *program)
{
    double rounding = 1e-6;
    for (int s = 0; s < program->stage_count; s++) {
        enum wpk_dtype dtype = program->tensors[program->stages[s].output].dtype;
        rounding = fmax(rounding, dtype == WPK_BF16 ? 0x1p-8 : dtype == WPK_F16 ? 0x1p-11 : 0);
    }
    return rounding;
}

static void test_random_programs(void **state)
{
    (void)state;
    struct wpk_random_options smooth = {.smooth = true};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct wpk_program program, expanded;
        struct wpk_rng rng;
        wpk_rng_seed(&rng, seed);
        smooth.data = seed % 2 == 0;
        wpk_random_program(&rng, &smooth, &program);
        expand(&program, no_sums, &expanded);
        wpk_check_close(&program, &expanded, rounding_of(&program), &rng);
        wpk_program_fini(&expanded);
        wpk_program_fini(&program);
        wpk_random_program(&rng, NULL, &program);
        expand(&program, no_sums, &expanded);
        wpk_program_fini(&expanded);
        wpk_program_fini(&program);
    }
}

/* ---- what back ends rely on */

static void expect_identity(const char *program, double value, bool strict)
{
    struct wpk_program parsed, expanded;
    parse(program, &parsed);
    expand(&parsed, no_sums, &expanded);
    const struct wpk_stage *stage = &expanded.stages[0];
    const struct wpk_node *identity = &expanded.nodes[stage->identity];
    bool floating = wpk_dtype_is_float(identity->dtype);
    double found = floating ? identity->value : (double)identity->integer;
    if (found != value || stage->strict != strict) {
        fail_msg("%.17g instead of %.17g, or strict, in %s", found, value, program);
    }
    assert_int_equal(wpk_program_is_strict(&expanded), strict);
    wpk_program_fini(&parsed);
    wpk_program_fini(&expanded);
}

static void test_identities(void **state)
{
    (void)state;
    expect_identity("input X f32[8]\noutput Y f32[1]\nY[i] = sum(k:8) X[k]\n", 0, false);
    expect_identity("input X f32[8]\noutput Y f32[1]\nY[i] = prod(k:8) X[k]\n", 1, false);
    expect_identity("input X f32[8]\noutput Y f32[1]\nY[i] = max(k:8) X[k]\n", -INFINITY, true);
    expect_identity("input X f64[8]\noutput Y f64[1]\nY[i] = min(k:8) X[k]\n", INFINITY, true);
    expect_identity("input X f32[8]\noutput Y f32[1]\nY[i] = max(k:9) X[k | -inf]\n", -INFINITY,
                    true);
    expect_identity("input X i32[8]\noutput Y i32[1]\nY[i] = max(k:8) X[k]\n", INT32_MIN, false);
    expect_identity("input X i64[8]\noutput Y i64[1]\nY[i] = max(k:8) X[k]\n", -0x1p63, false);
    expect_identity("input X bool[8]\nintermediate T bool[1]\noutput Y bool[1]\n"
                    "T[i] = max.bool(k:8) X[k]\nY[i] = T[i]\n",
                    0, false);
    expect_identity("input X bool[8]\nintermediate T bool[1]\noutput Y bool[1]\n"
                    "T[i] = min.bool(k:8) X[k]\nY[i] = T[i]\n",
                    1, false);
    expect_identity("input X u8[8]\noutput Y u8[1]\nY[i] = min.u8(k:8) X[k]\n", 255, false);
}

static const struct wpk_node *find_load(const struct wpk_program *program, const char *tensor,
                                        int *count)
{
    const struct wpk_node *found = NULL;
    *count = 0;
    for (int i = 0; i < program->node_count; i++) {
        const struct wpk_node *node = &program->nodes[i];
        bool loads =
            node->kind == WPK_NODE_LOAD && strcmp(program->tensors[node->tensor].name, tensor) == 0;
        found = loads ? node : found;
        *count += loads;
    }
    return found;
}

static void test_loads_outside(void **state)
{
    (void)state;
    struct wpk_program program, expanded;
    int count = 0;
    parse("input X f32[8]\ninput Z f32[8] pad 1:1\ninput W f32[64]\noutput Y f32[8]\n"
          "Y[i] = X[i-1 | 3] + Z[i+1 | 2] + W[i*8/8 | 1]\n",
          &program);
    expand(&program, no_sums, &expanded);
    const struct wpk_node *load = find_load(&expanded, "X", &count);
    assert_true(load->outside >= 0 && expanded.nodes[load->outside].value == 3);
    assert_int_equal(find_load(&expanded, "Z", &count)->outside, -1);
    assert_int_equal(find_load(&expanded, "W", &count)->outside, -1);
    wpk_program_fini(&program);
    wpk_program_fini(&expanded);
}

static void test_sums(void **state)
{
    (void)state;
    struct wpk_program program, expanded;
    struct wpk_rng rng;
    bool sums[WPK_STAGES_MAX] = {true};
    int count = 0;
    parse("input X f32[6]\nliteral A f32[2,3] = 1,2,3,4,5,6\nliteral B f32[2] = 7,8\n"
          "output Y f32[3]\nintermediate T f32[3]\n"
          "T[i] = sum(a:2, b:2) A[a,i] * B[b] * X[i+a+b-1 | 0]\nY[i] = T[i] * 2\n",
          &program);
    expand(&program, sums, &expanded);
    assert_int_equal(expanded.stages[0].reduction, WPK_REDUCE_NONE);
    assert_int_equal(expanded.stages[0].axis_count, 1);
    assert_int_equal(expanded.stages[0].identity, -1);
    /* a literal's element is a number where its indices are; a term that stays inside is free */
    assert_null(find_load(&expanded, "B", &count));
    assert_non_null(find_load(&expanded, "A", &count));
    assert_int_equal(count, 4);
    (void)find_load(&expanded, "X", &count);
    assert_int_equal(count, 4);
    int guarded = 0;
    for (int i = 0; i < expanded.node_count; i++) {
        guarded += expanded.nodes[i].kind == WPK_NODE_LOAD && expanded.nodes[i].outside >= 0;
    }
    assert_int_equal(guarded, 1);
    wpk_rng_seed(&rng, 3);
    wpk_check_derived(&program, &expanded, NULL, &rng);
    wpk_program_fini(&program);
    wpk_program_fini(&expanded);
}

/* The largest expressions that are valid: a chain of tanh, each of which uses its operand six
 * times, and a sum of as many as there is room for. */
static void test_largest_programs(void **state)
{
    (void)state;
    static char text[2 * TEXT_MAX];
    struct wpk_program program, expanded;
    int size = snprintf(text, sizeof(text), "input X f64[4]\noutput Y f64[4]\nY[i] = ");
    for (int i = 0; i < 50; i++) {
        size += snprintf(text + size, sizeof(text) - (size_t)size, "tanh(");
    }
    size += snprintf(text + size, sizeof(text) - (size_t)size, "X[i]");
    memset(text + size, ')', 50);
    memcpy(text + size + 50, "\n", 2);
    parse(text, &program);
    expand(&program, no_sums, &expanded);
    assert_true(expanded.node_count < 50 * 50);
    wpk_program_fini(&program);
    wpk_program_fini(&expanded);
    static const char *const functions[] = {"tanh", "erf"};
    for (int f = 0; f < 2; f++) {
        size = snprintf(text, sizeof(text), "input X f64[4]\noutput Y f64[4]\nY[i] = exp(X[i])");
        for (int i = 0; i < 2000; i++) {
            size += snprintf(text + size, sizeof(text) - (size_t)size, " + %s(X[i])", functions[f]);
            if (i % 100 == 99) { /* a line of the notation is short */
                size += snprintf(text + size, sizeof(text) - (size_t)size, "\n");
            }
        }
        memcpy(text + size, "\n", 2);
        parse(text, &program);
        expand(&program, no_sums, &expanded);
        assert_true(expanded.node_count > WPK_NODES_MAX);
        wpk_program_fini(&program);
        wpk_program_fini(&expanded);
    }
}

/* Each change of an expanded program breaks one rule. */
static void test_validation(void **state)
{
    (void)state;
    struct wpk_program program, expanded;
    parse("input X f32[8]\noutput Y i32[8]\nintermediate M f32[1]\nM[j] = max(k:8) X[k]\n"
          "Y[i] = i32(exp(X[i] - M[0]))\n",
          &program);
    for (int change = 0; change < 6; change++) {
        expand(&program, no_sums, &expanded);
        struct wpk_stage *stage = &expanded.stages[0];
        for (int i = 0; i < expanded.node_count; i++) {
            struct wpk_node *node = &expanded.nodes[i];
            if (node->kind == WPK_NODE_UNARY && node->op == WPK_UNARY_EXP && change == 0) {
                node->op = WPK_UNARY_TANH;
            } else if (node->kind == WPK_NODE_UNARY && node->op == WPK_UNARY_ROUND && change == 1) {
                node->op = WPK_UNARY_ABS;
            }
            node->strict = node->strict || (node->kind == WPK_NODE_LOAD && change == 2);
        }
        stage->identity = change == 3 ? -1 : change == 4 ? stage->expr : stage->identity;
        expanded.expanded = change != 5;
        assert_int_equal(wpk_program_validate(&expanded, NULL), WPK_EINVAL);
        wpk_program_fini(&expanded);
    }
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_numbers),
        cmocka_unit_test(test_error_of_erf),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_loads_outside),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_largest_programs),
        cmocka_unit_test(test_validation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
