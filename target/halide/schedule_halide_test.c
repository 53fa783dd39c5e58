/* SPDX-License-Identifier: Apache-2.0 */
/* Every candidate of a space lowers to a schedule that the check of nests accepts, that survives
 * printing and parsing, and that prints as Halide. */
#include "target/halide/schedule_halide.h"

#include "ir/notation/notation.h"
#include "nest/schedule.h"
#include "target/codegen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DRAWS 12
#define CONSTRUCTED 24

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

/* The C++ has all loops that the directives name. */
static void expect_directives(const struct wpk_schedule *schedule, const char *halide)
{
    struct wpk_directives directives;
    wpk_directives_make(schedule, &directives);
    for (int i = 0; i < directives.count; i++) {
        const struct wpk_directive *d = &directives.item[i];
        char known[WPK_LOOP_NAME_MAX] = "";
        if (d->loop_count > 0) {
            (void)wpk_halide_loop_name(d->loop[d->loop_count - 1], known);
        }
        assert_non_null(strstr(halide, known));
    }
    wpk_directives_fini(&directives);
}

static void expect_prepared(const struct wpk_schedule *schedule)
{
    struct wpk_schedule prepare;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_prepare_schedule(schedule, &prepare), WPK_OK);
    if (wpk_codegen_check(&prepare, &diag) != WPK_OK) {
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
    if (wpk_codegen_check(&schedule, &diag) != WPK_OK) {
        fail_msg("refused: %s\n%s", diag.text, text);
    }
    assert_int_equal(wpk_program_validate(&schedule.main, &diag), WPK_OK);
    expect_round_trip(&schedule);
    assert_int_equal(wpk_schedule_print_halide(&schedule, &halide), WPK_OK);
    expect_directives(&schedule, wpk_buf_text(&halide));
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
            options.device.cpu.flags = device == 0   ? WPK_CPU_SET_AVX512
                                       : device == 1 ? WPK_CPU_SET_AVX2
                                                     : WPK_CPU_SET_SSE41;
            options.device.cpu.vector_bytes = vector_bytes[device];
            options.device.cpu.vector_registers = device == 0 ? 32 : 16;
            assert_int_equal(wpk_program_parse(programs[p], &program, &diag), WPK_OK);
            assert_int_equal(wpk_space_derive(&program, &options, &space, &diag), WPK_OK);
            int count = 0;
            assert_int_equal(wpk_space_construct(&space, made, CONSTRUCTED, &count), WPK_OK);
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

static void expect_halide(const char *schedule_text, const char *const *expected, size_t count)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    struct wpk_buf text = {0};
    if (wpk_schedule_parse(schedule_text, &schedule, &diag) != WPK_OK ||
        wpk_codegen_check(&schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s", diag.line, diag.column, diag.text);
    }
    assert_int_equal(wpk_schedule_print_halide(&schedule, &text), WPK_OK);
    for (size_t i = 0; i < count; i++) {
        if (strstr(wpk_buf_text(&text), expected[i]) == NULL) {
            fail_msg("missing:\n%sin\n%s", expected[i], wpk_buf_text(&text));
        }
    }
    wpk_buf_fini(&text);
    wpk_schedule_fini(&schedule);
}

#define HEAD                                                                                       \
    "wpk-schedule 2\ntarget x86-64-linux-sse41-avx threads 1\nby halide-cpu\n"                     \
    "layout X f32[12,20] 0,1\nlayout Y f32[12] 0\nprogram\n"                                       \
    "input X f32[12,20]\nintermediate T f32[12]\noutput Y f32[12]\n"                               \
    "T[i] = sum.f32(j:20) X[i,j]\nY[i] = T[i] * 2\nend\n"

static void test_readable_halide(void **state)
{
    (void)state;
    const char *const expected[] = {
        ("    ImageParam X(type_of<float>(), 2, \"X\");\n"
         "    X.dim(0).set_bounds(0, 20).set_stride(1);\n"
         "    X.dim(1).set_bounds(0, 12).set_stride(20);\n"),
        "    T(i) = 0.0f;\n    T(i) = T(i) + X(T_j, i);\n",
        "    Y(i) = (T(i) * 2.0f);\n",
        "    RVar T_j$T(\"j$T\"), T_j$I(\"j$I\");\n",
        ("    Y\n        .split(i, i$T, i$I, 4, TailStrategy::RoundUp)\n"
         "        .reorder(i$I, i$T)\n        .vectorize(i$I);\n"),
        ("    T\n        .compute_at(Y, i$T)\n        .bound_extent(i, 4)\n"
         "        .store_in(MemoryType::Stack)\n        .vectorize(i);\n"),
        ("    T.update()\n        .split(T_j, T_j$T, T_j$I, 4, TailStrategy::Auto)\n"
         "        .reorder(i, T_j$I, T_j$T)\n        .vectorize(i)\n        .unroll(T_j$I);\n"),
        ".compile_to_object(\"kernel.o\", {X}, \"wpk_main\",",
    };
    expect_halide(HEAD
                  "stage Y root\n  serial i step 4 exact\n  lanes i.1\n"
                  "stage T in Y i\n  scope stack\n  extent i 4\n  init\n    lanes i\n  update\n"
                  "    serial j step 4 exact\n    unroll j.1\n    lanes i\n",
                  expected, sizeof(expected) / sizeof(expected[0]));
    const char *const terms = " + X(18, i)) + X(19, i));\n";
    expect_halide(HEAD "stage Y root\n  serial i\nstage T root\n  expanded\n  lanes i\n", &terms,
                  1);
}

/* Operations on values that may be infinite are strict, and a maximum of such values starts from an
 * infinity. */
static void test_readable_strict_halide(void **state)
{
    (void)state;
    static const char softmax[] =
        "wpk-schedule 2\ntarget x86-64-linux-sse41 threads 1\nby halide-cpu\n"
        "layout X f32[4,8] 0,1\nlayout Y f32[4,8] 0,1\nprogram\n"
        "input X f32[4,8]\noutput Y f32[4,8]\nintermediate M f32[4]\nintermediate S f32[4]\n"
        "M[i] = max(k:8) X[i,k]\nS[i] = sum(k:8) exp(X[i,k] - M[i])\n"
        "Y[i,j] = exp(X[i,j] - M[i]) / S[i]\nend\n"
        "stage Y root\n  serial i\n  serial j\n"
        "stage S root\n  init\n    serial i\n  update\n    serial i\n    serial k\n"
        "stage M root\n  init\n    serial i\n  update\n    serial i\n    serial k\n";
    static const char *const expected[] = {
        ("-std::numeric_limits<float>::infinity());\n    M(i) = strict_float(max(M(i), X(M_k, "
         "i)));\n"),
        "    S(i) = S(i) + exp(strict_float((X(S_k, i) - M(i))));\n",
        "    Y(j, i) = strict_float((exp(",
    };
    expect_halide(softmax, expected, sizeof(expected) / sizeof(expected[0]));
}

/* Count the first candidates of a 3x3 window that skip taps in the border. */
static int count_inside(const char *extent)
{
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_candidate made[CONSTRUCTED];
    struct wpk_space_options options = {.layouts = "any", .threads = 1};
    struct wpk_buf text = {0};
    int count = 0, inside = 0;
    options.device.cpu.flags = WPK_CPU_SET_AVX512;
    options.device.cpu.vector_bytes = 64;
    options.device.cpu.vector_registers = 32;
    wpk_buf_printf(&text,
                   "input X f32[1,24,%s,%s]\nconstant W f32[96,24,3,3]\noutput Y f32[1,96,%s,%s]\n"
                   "Y[n,k,y,x] = sum(c:24,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n",
                   extent, extent, extent, extent);
    assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &program, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
    assert_int_equal(wpk_space_construct(&space, made, CONSTRUCTED, &count), WPK_OK);
    for (int i = 0; i < count; i++) {
        struct wpk_schedule schedule;
        struct wpk_buf halide = {0};
        wpk_buf_reset(&text);
        assert_int_equal(wpk_lower(&space, &made[i], &schedule, NULL), WPK_OK);
        assert_int_equal(wpk_schedule_print(&schedule, &text), WPK_OK);
        assert_int_equal(wpk_schedule_print_halide(&schedule, &halide), WPK_OK);
        bool word = strstr(wpk_buf_text(&text), " inside\n") != NULL;
        assert_int_equal(strstr(wpk_buf_text(&halide), "_domain.where(") != NULL, word);
        inside += word;
        wpk_buf_fini(&halide);
        wpk_schedule_fini(&schedule);
    }
    wpk_space_fini(&space);
    wpk_program_fini(&program);
    wpk_buf_fini(&text);
    return inside;
}

/* Of 7 rows the border is a tenth of the terms, of 56 rows a hundredth. */
static void test_borders_are_left_out(void **state)
{
    (void)state;
    assert_in_range(count_inside("7"), 4, CONSTRUCTED);
    assert_int_equal(count_inside("56"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_candidate_lowers),
        cmocka_unit_test(test_readable_halide),
        cmocka_unit_test(test_borders_are_left_out),
        cmocka_unit_test(test_readable_strict_halide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
