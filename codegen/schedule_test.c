/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: text and back, what the model refuses, and that whatever a space can say lowers to a
 * schedule that the model accepts. */
#include "codegen/schedule.h"

#include "codegen/lower.h"
#include "codegen/prepare.h"
#include "codegen/schedule_halide.h"
#include "op/notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DRAWS 12
#define CONSTRUCTED 24

#define HEAD                                                                                       \
    "wpk-schedule 1\ntarget x86-64-linux-sse41-avx threads 1\n"                                    \
    "layout X f32[12,20] 0,1\nlayout Y f32[12] 0\nprogram\n"                                       \
    "input X f32[12,20]\nintermediate T f32[12]\noutput Y f32[12]\n"                               \
    "T[i] = sum.f32(j:20) X[i,j]\nY[i] = T[i] * 2\nend\n"

/* Line 11 is the first directive. */
#define FIRST_LINE 12

static wpk_err parse(const char *directives, struct wpk_schedule *out, struct wpk_diag *diag)
{
    char text[4096];
    snprintf(text, sizeof(text), "%s%s", HEAD, directives);
    memset(diag, 0, sizeof(*diag));
    return wpk_schedule_parse(text, out, diag);
}

/* ---- text */

static void expect_round_trip(const struct wpk_schedule *schedule)
{
    struct wpk_buf first = {0}, second = {0};
    struct wpk_schedule read;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_schedule_print(schedule, &first), WPK_OK);
    if (wpk_schedule_parse(wpk_buf_text(&first), &read, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&first));
    }
    assert_int_equal(wpk_schedule_print(&read, &second), WPK_OK);
    assert_string_equal(wpk_buf_text(&first), wpk_buf_text(&second));
    wpk_schedule_fini(&read);
    wpk_buf_fini(&first);
    wpk_buf_fini(&second);
}

static void test_every_directive_survives_its_text(void **state)
{
    (void)state;
    struct wpk_schedule schedule;
    struct wpk_diag diag;
    const char *all = "Y split i iT iI 5 guard\nY split iT iB iS 2 shift\nY reorder iI iS iB\n"
                      "Y fuse iS iB jobs\nY vectorize iI\nY parallel jobs\nY no_partition jobs\n"
                      "T compute_at Y jobs\nT store_in stack\nT reorder_storage i\n"
                      "T align_storage i 4\nT bound_extent i 5\nT align_bounds i 4\n"
                      "T.0 split j jO jU 4 predicate\nT.0 split jO jA jB 5 round\n"
                      "T.0 reorder i jU jB jA\nT.0 atomic\nT.0 vectorize jU\nT.0 unroll jB\n"
                      "T compute_root\nT inline\nT expand\n";
    assert_int_equal(parse(all, &schedule, &diag), WPK_OK);
    assert_int_equal(schedule.directive_count, 22);
    assert_int_equal(schedule.main.stage_count, 2);
    assert_int_equal(schedule.prepare.stage_count, 0);
    expect_round_trip(&schedule);
    wpk_schedule_fini(&schedule);
    assert_int_equal(parse("# nothing\n\n", &schedule, &diag), WPK_OK);
    assert_int_equal(schedule.directive_count, 0);
    expect_round_trip(&schedule);
    wpk_schedule_fini(&schedule);
}

static void expect_error_at(const char *directives, wpk_err err, int line, int column,
                            const char *words)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag;
    assert_int_equal(parse(directives, &schedule, &diag), err);
    if (diag.line != FIRST_LINE + line || diag.column != column ||
        strstr(diag.text, words) == NULL) {
        fail_msg("%d:%d: %s", diag.line - FIRST_LINE, diag.column, diag.text);
    }
}

static void test_errors_have_positions(void **state)
{
    (void)state;
    expect_error_at("Z split i a b 4 exact\n", WPK_EPARSE, 0, 1, "no such stage");
    expect_error_at("Y splat i\n", WPK_EPARSE, 0, 3, "unknown directive");
    expect_error_at("Y prefetch X i 2\n", WPK_EPARSE, 0, 3, "unknown directive");
    expect_error_at("Y unroll i\nY vectorize\n", WPK_EPARSE, 1, 3, "operands");
    expect_error_at("Y vectorize i i\n", WPK_EPARSE, 0, 3, "operands");
    expect_error_at("Y split i a b four exact\n", WPK_EPARSE, 0, 15, "number");
    expect_error_at("Y split i a b 0 exact\n", WPK_ERANGE, 0, 15, "range");
    expect_error_at("Y split i a b 4 about\n", WPK_EPARSE, 0, 17, "tail");
    expect_error_at("Y.0 unroll i\n", WPK_EPARSE, 0, 1, "does not reduce");
    expect_error_at("Y\n", WPK_EPARSE, 0, 1, "STAGE");

    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_schedule_parse("", &schedule, &diag), WPK_EPARSE);
    assert_int_equal(wpk_schedule_parse("wpk-schedule 2\n", &schedule, &diag), WPK_EPARSE);
    memset(&diag, 0, sizeof(diag));
    const char *twice = "wpk-schedule 1\ntarget x threads 1\nprogram\ninput X f32[2]\n"
                        "output Y f32[2]\nY[i] = X[k]\nend\n";
    assert_int_not_equal(wpk_schedule_parse(twice, &schedule, &diag), WPK_OK);
    assert_int_equal(diag.line, 6);
    assert_int_equal(diag.column, 10);
}

/* ---- the model */

static void expect_refused(const char *directives, const char *words)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag;
    if (parse(directives, &schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s", diag.line, diag.column, diag.text);
    }
    wpk_err err = wpk_schedule_check(&schedule, &diag);
    if (words == NULL ? err != WPK_OK : err != WPK_EINVAL || strstr(diag.text, words) == NULL) {
        fail_msg("%s: %s, not %s", directives, diag.text, words == NULL ? "accepted" : words);
    }
    wpk_schedule_fini(&schedule);
}

static void test_model_refuses_what_halide_drowns_in(void **state)
{
    (void)state;
    expect_refused("", NULL);
    expect_refused("Y split i iT iI 4 exact\nY vectorize iI\nT compute_at Y iT\n"
                   "T bound_extent i 4\nT vectorize i\nT.0 reorder i j\nT.0 vectorize i\n",
                   NULL);
    expect_refused("Y vectorize i\nY split i iT iI 4 exact\n", "no longer serial");
    expect_refused("Y unroll i\nY split i iT iI 4 exact\n", "no longer serial");
    expect_refused("Y vectorize i\nY unroll i\n", "no longer serial");
    expect_refused("Y split i iT iI 5 exact\n", "does not divide");
    expect_refused("Y split i iT iI 4 exact\nY split iI iA iB 3 exact\n", "does not divide");
    expect_refused("Y split i iT iI 5 guard\nY split iT iT iB 2 guard\n", "already a loop");
    expect_refused("Y split k a b 4 guard\n", "no loop k");
    expect_refused("Y reorder i k\n", "no loop k");
    expect_refused("Y reorder i i\n", "named twice");
    expect_refused("Y fuse i k both\n", "no loop k");
    expect_refused("Y unroll k\n", "no loop k");
    expect_refused("Y no_partition k\n", "no loop k");
    /* a serial loop inside an unrolled one repeats its code */
    expect_refused("T.0 reorder j i\nT.0 unroll i\n", "inside the unrolled loop i");
    expect_refused("T.0 reorder j i\nT.0 vectorize i\n", "inside the lanes i");
    expect_refused("T.0 reorder i j\nT.0 unroll i\n", NULL);
    /* a fused loop stands where its inner one stood: inside iS here, and outside of it */
    expect_refused("Y split i iT iI 3 exact\nY split iT iB iS 2 exact\nY fuse iI iB both\n"
                   "Y unroll iS\n",
                   "serial loop both stands inside the unrolled loop iS");
    expect_refused("Y split i iT iI 3 exact\nY split iT iB iS 2 exact\nY fuse iI iB both\n"
                   "Y unroll both\n",
                   NULL);
    /* reductions */
    expect_refused("T.0 split j a b 3 shift\n", "cannot be shifted");
    expect_refused("T.0 reorder j i\nT.0 vectorize j\n", "only an atomic update");
    expect_refused("T.0 parallel j\n", "only an atomic update");
    expect_refused("T.0 reorder j i\nT.0 atomic\nT.0 vectorize j\n", NULL);
    expect_refused("Y atomic\n", "does not reduce");
    expect_refused("T expand\nT vectorize i\n", NULL);
    expect_refused("T expand\nT.0 unroll j\n", "has no update");
    expect_refused("Y expand\n", "only an intermediate sum");
    /* placement */
    expect_refused("T compute_at Z i\n", "no stage Z");
    expect_refused("T compute_at Y k\n", "no loop k");
    expect_refused("T compute_at T i\n", "inside itself");
    expect_refused("T store_in moon\n", "no such memory");
    expect_refused("T bound_extent k 4\n", "no axis");
    expect_refused("T split i iT iI 4 guard\nT bound_extent i 4\n", "no axis");
}

static void test_model_bounds_statements(void **state)
{
    (void)state;
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    const char *text = "wpk-schedule 1\ntarget x threads 1\nlayout X f32[90,100] 0,1\n"
                       "layout Y f32[90,100] 0,1\nprogram\ninput X f32[90,100]\n"
                       "output Y f32[90,100]\nY[i,j] = X[i,j]\nend\nY unroll j\nY unroll i\n";
    assert_int_equal(wpk_schedule_parse(text, &schedule, &diag), WPK_OK);
    assert_int_equal(wpk_schedule_check(&schedule, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "unrolled statements"));
    wpk_schedule_fini(&schedule);
}

/* ---- lowering */

static const char *const programs[] = {
    "input X f32[1,12,14,14]\nconstant W f32[20,12,3,3]\nconstant B f32[20]\n"
    "intermediate T f32[1,20,14,14]\noutput Y f32[1,20,14,14]\n"
    "T[n,k,y,x] = sum(c:12,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"
    "Y[n,k,y,x] = max(T[n,k,y,x] + B[k], 0)\n",
    "input X f32[1,19,15,15]\nconstant W f32[19,3,3]\noutput Y f32[1,19,8,8]\n"
    "Y[n,c,y,x] = sum(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1] * W[c,r,s]\n",
    "input A f32[31,40]\ninput B f32[40,53]\noutput Y f32[31,53]\nY[i,j] = sum(k:40) A[i,k] * "
    "B[k,j]\n",
    "input X f32[13,48]\nintermediate M f32[13]\nintermediate D f32[13]\noutput S f32[13,48]\n"
    "M[i] = max(j:48) X[i,j]\nD[i] = sum(j:48) exp(X[i,j] - M[i])\n"
    "S[i,j] = exp(X[i,j] - M[i]) / D[i]\n",
    "input X f32[1,20,15,15]\noutput Y f32[1,20,8,8]\n"
    "Y[n,c,y,x] = max(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1 | -inf]\n",
    "input X f32[13,40]\nintermediate T f32[13,40]\noutput Y f32[13,40]\n"
    "T[i,j] = X[i,j-1] + 2 * X[i,j] + X[i,j+1]\nY[i,j] = T[i-1,j] + T[i+1,j]\n",
    "input X f32[6,20]\noutput Y f32[4,30]\nY[i,j] = X[(i*30+j)/20,(i*30+j)%20]\n",
    "input X f32[96]\noutput Y f32[]\nY[] = sum(i:96) X[i] * X[i]\n",
    "input X u8[1,8,9,9]\nconstant W i8[12,8,3,3]\noutput Y i32[1,12,9,9]\n"
    "Y[n,k,y,x] = sum(c:8,r:3,s:3) i32(X[n,c,y+r-1,x+s-1]) * i32(W[k,c,r,s])\n",
    "input X f32[12,20]\nconstant V f32[20,24]\nconstant W f32[24,16]\nintermediate H f32[12,24]\n"
    "intermediate R f32[12,24]\noutput Y f32[12,16]\nH[i,k] = sum(c:20) X[i,c] * V[c,k]\n"
    "R[i,k] = max(H[i,k], 0)\nY[i,j] = sum(k:24) R[i,k] * W[k,j]\n",
};

#define PROGRAMS ((int)(sizeof(programs) / sizeof(programs[0])))

/* Winograd's transforms are expressions, whose literals fold before anything is compiled. */
static void expect_transforms_expanded(const struct wpk_schedule *schedule)
{
    const struct wpk_program *program = &schedule->main;
    for (int s = 0; s < program->stage_count; s++) {
        int loads[WPK_LOADS_MAX];
        bool transforms = false;
        int count = wpk_stage_loads(program, &program->stages[s], loads, WPK_LOADS_MAX);
        for (int i = 0; i < count; i++) {
            int tensor = program->nodes[loads[i]].tensor;
            transforms = transforms || program->tensors[tensor].role == WPK_ROLE_LITERAL;
        }
        assert_int_equal(wpk_schedule_expands(schedule, &program->stages[s]), transforms);
    }
}

static void expect_prepared(const struct wpk_schedule *schedule)
{
    struct wpk_schedule prepare;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_prepare_schedule(schedule, &prepare), WPK_OK);
    if (wpk_schedule_check(&prepare, &diag) != WPK_OK) {
        fail_msg("refused: %s", diag.text);
    }
    wpk_schedule_fini(&prepare);
}

static void expect_lowered(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    struct wpk_buf halide = {0};
    char text[WPK_CANDIDATE_TEXT_MAX] = "";
    (void)wpk_candidate_encode(space, candidate, text, sizeof(text));
    if (wpk_lower(space, candidate, &schedule, &diag) != WPK_OK) {
        fail_msg("not lowered: %s\n%s", diag.text, text);
    }
    if (wpk_schedule_check(&schedule, &diag) != WPK_OK) {
        fail_msg("refused: %s\n%s", diag.text, text);
    }
    assert_int_equal(wpk_program_validate(&schedule.main, &diag), WPK_OK);
    expect_round_trip(&schedule);
    assert_int_equal(wpk_schedule_print_halide(&schedule, &halide), WPK_OK);
    for (int i = 0; i < schedule.directive_count; i++) {
        const struct wpk_directive *d = &schedule.directives[i];
        char known[WPK_LOOP_NAME_MAX] = "";
        if (d->loop_count > 0) {
            (void)wpk_halide_loop_name(d->loop[d->loop_count - 1], known);
        }
        assert_non_null(strstr(wpk_buf_text(&halide), known));
    }
    expect_transforms_expanded(&schedule);
    if (schedule.prepare.stage_count > 0) {
        expect_prepared(&schedule);
    }
    wpk_buf_fini(&halide);
    wpk_schedule_fini(&schedule);
}

static void test_every_candidate_lowers(void **state)
{
    (void)state;
    static const int vector_bytes[] = {64, 32, 16};
    for (int p = 0; p < PROGRAMS; p++) {
        for (int setting = 0; setting < 6; setting++) {
            struct wpk_program program;
            struct wpk_space space;
            struct wpk_diag diag = {0};
            struct wpk_candidate made[CONSTRUCTED];
            struct wpk_rng rng;
            struct wpk_space_options options = {.layouts = setting % 2 == 0 ? "fixed" : "any",
                                                .threads = 1 + (setting + p) % 2};
            int device = setting / 2;
            options.device.isa = device == 0   ? WPK_ISA_AVX512
                                 : device == 1 ? WPK_ISA_AVX2
                                               : WPK_ISA_SSE41;
            options.device.vector_bytes = vector_bytes[device];
            options.device.vector_registers = device == 0 ? 32 : 16;
            assert_int_equal(wpk_program_parse(programs[p], &program, &diag), WPK_OK);
            assert_int_equal(wpk_space_derive(&program, &options, &space, &diag), WPK_OK);
            int count = wpk_space_construct(&space, made, CONSTRUCTED);
            for (int i = 0; i < count; i++) {
                expect_lowered(&space, &made[i]);
            }
            wpk_rng_seed(&rng, (uint64_t)(p * 100 + setting));
            for (int i = 0; i < DRAWS; i++) {
                assert_int_equal(wpk_space_draw(&space, &rng, &made[0]), WPK_OK);
                expect_lowered(&space, &made[0]);
            }
            wpk_space_fini(&space);
            wpk_program_fini(&program);
        }
    }
}

static void test_readable_halide(void **state)
{
    (void)state;
    struct wpk_schedule schedule;
    struct wpk_diag diag;
    struct wpk_buf text = {0};
    assert_int_equal(parse("Y split i iT iI 4 exact\nY vectorize iI\nT compute_at Y iT\n"
                           "T.0 split j j.O j.U 4 exact\nT.0 reorder i j.U j.O\nT.0 unroll j.U\n",
                           &schedule, &diag),
                     WPK_OK);
    assert_int_equal(wpk_schedule_print_halide(&schedule, &text), WPK_OK);
    const char *const expected[] = {
        ("    ImageParam X(type_of<float>(), 2, \"X\");\n"
         "    X.dim(0).set_bounds(0, 20).set_stride(1);\n"
         "    X.dim(1).set_bounds(0, 12).set_stride(20);\n"),
        "    T(i) = cast<float>(0);\n    T(i) = T(i) + X(T_j, i);\n",
        "    Y(i) = (T(i) * 2.0f);\n",
        "    RVar T_j$O(\"j$O\"), T_j$U(\"j$U\");\n",
        "    Y\n        .split(i, iT, iI, 4, TailStrategy::RoundUp)\n        .vectorize(iI);\n",
        "    T\n        .compute_at(Y, iT);\n",
        ("    T.update()\n        .split(T_j, T_j$O, T_j$U, 4, TailStrategy::Auto)\n"
         "        .reorder(i, T_j$U, T_j$O)\n        .unroll(T_j$U);\n"),
        ".compile_to_object(\"kernel.o\", {X}, \"wpk_main\",",
    };
    const char *const terms =
        ("    Expr T_sum = cast<float>(0);\n    for (int T_j = 0; T_j < 20; T_j++)\n"
         "        T_sum += X(T_j, i);\n    T(i) = T_sum;\n");
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        if (strstr(wpk_buf_text(&text), expected[i]) == NULL) {
            fail_msg("missing:\n%sin\n%s", expected[i], wpk_buf_text(&text));
        }
    }
    wpk_buf_reset(&text);
    wpk_schedule_fini(&schedule);
    assert_int_equal(parse("T expand\nT vectorize i\n", &schedule, &diag), WPK_OK);
    assert_int_equal(wpk_schedule_print_halide(&schedule, &text), WPK_OK);
    assert_non_null(strstr(wpk_buf_text(&text), terms));
    assert_null(strstr(wpk_buf_text(&text), "expand"));
    wpk_buf_fini(&text);
    wpk_schedule_fini(&schedule);
}

/* What may be infinite is strict, starts from an infinity, and is no less than an exp's least. */
static void test_readable_strict_halide(void **state)
{
    (void)state;
    static const char softmax[] =
        "wpk-schedule 1\ntarget x86-64-linux-sse41 threads 1\n"
        "layout X f32[4,8] 0,1\nlayout Y f32[4,8] 0,1\nprogram\n"
        "input X f32[4,8]\noutput Y f32[4,8]\nintermediate M f32[4]\nintermediate S f32[4]\n"
        "M[i] = max(k:8) X[i,k]\nS[i] = sum(k:8) exp(X[i,k] - M[i])\n"
        "Y[i,j] = exp(X[i,j] - M[i]) / S[i]\nend\nM compute_root\nS compute_root\n";
    static const char *const expected[] = {
        "-std::numeric_limits<float>::infinity());\n    M(i) = strict_float(max(M(i), X(M_k, "
        "i)));\n",
        ("    S(i) = S(i) + exp(strict_float(max(strict_float((X(S_k, i) - M(i))), "
         "-128.0f)));\n"),
        "    Y(j, i) = strict_float((exp(",
    };
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    struct wpk_buf text = {0};
    if (wpk_schedule_parse(softmax, &schedule, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(wpk_schedule_print_halide(&schedule, &text), WPK_OK);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        if (strstr(wpk_buf_text(&text), expected[i]) == NULL) {
            fail_msg("missing:\n%s\nin\n%s", expected[i], wpk_buf_text(&text));
        }
    }
    wpk_buf_fini(&text);
    wpk_schedule_fini(&schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_directive_survives_its_text),
        cmocka_unit_test(test_errors_have_positions),
        cmocka_unit_test(test_model_refuses_what_halide_drowns_in),
        cmocka_unit_test(test_model_bounds_statements),
        cmocka_unit_test(test_every_candidate_lowers),
        cmocka_unit_test(test_readable_halide),
        cmocka_unit_test(test_readable_strict_halide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
