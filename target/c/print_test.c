/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in C compute what the reference computes, of programs nobody thought of. WPK_TEST_SEED
 * draws others, WPK_TEST_PROGRAMS more. */
#include "target/c/print.h"

#include "ir/notation/notation.h"
#include "search/back_end.h"
#include "target/codegen.h"
#include "tests/fake_target.h"
#include "tests/kernel_check.h"
#include "tests/random_program.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 20261123
#define RANDOM_PROGRAMS wpk_test_share(40) /* ASan is in the kernels, too */
#define CANDIDATES_MAX 2
#define CANDIDATES wpk_test_share(CANDIDATES_MAX) /* constructed, and as many drawn */

static struct wpk_space_options draw_options(struct wpk_rng *rng, wpk_cpu_flags flags)
{
    struct wpk_space_options options = {.layouts = wpk_rng_chance(rng, 0.5) ? "any" : "fixed",
                                        .threads = (int)wpk_rng_between(rng, 1, 2)};
    wpk_device_claim(flags, &options.device);
    return options;
}

/* Put the schedules of some candidates of a program into the batch. */
static void add_subjects(struct wpk_kernels *batch, struct wpk_rng *rng,
                         const struct wpk_program *program, bool panels)
{
    struct wpk_space space;
    struct wpk_candidate candidate[2 * CANDIDATES_MAX];
    struct wpk_diag diag = {0};
    struct wpk_space_options options = draw_options(rng, batch->flags);
    options.target = panels ? wpk_target_fake_panels() : options.target;
    if ((batch->flags & WPK_CPU_AVX512_VNNI) != 0) {
        options.back_ends = 1U << WPK_BACK_END_halide | 1U << WPK_BACK_END_c;
    }
    wpk_err err = wpk_space_derive(program, &options, &space, &diag);
    if (err == WPK_EUNSUPPORTED) {
        return;
    }
    assert_int_equal(err, WPK_OK);
    int count = 0;
    assert_int_equal(wpk_space_construct(&space, candidate, CANDIDATES, &count), WPK_OK);
    for (int i = 0; i < CANDIDATES; i++) {
        count += wpk_space_draw(&space, rng, &candidate[count]) == WPK_OK;
    }
    for (int i = 0; i < count && batch->count < WPK_KERNELS_MAX; i++) {
        struct wpk_kernel_case *subject = &batch->subject[batch->count++];
        assert_int_equal(wpk_lower(&space, &candidate[i], &subject->schedule, &diag), WPK_OK);
        (void)wpk_candidate_encode(&space, &candidate[i], subject->words, sizeof(subject->words));
        struct wpk_buf text = {0};
        if (!wpk_c_accepts(&subject->schedule, &diag) ||
            wpk_c_print(&subject->schedule, "k", &text, &diag) != WPK_OK) {
            if (strstr(subject->words, ".dot=") != NULL) {
                fail_msg("%s: %s", subject->words, diag.text);
            }
            wpk_schedule_fini(&subject->schedule);
            batch->count--;
        }
        wpk_buf_fini(&text);
    }
    wpk_space_fini(&space);
}

/* True if rounding errors cannot flip a result. If they can, results are not compared with the
 * reference. */
static bool is_steady(const struct wpk_program *program)
{
    bool steady = true;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        bool rounds = !wpk_dtype_is_float(program->tensors[stage->output].dtype);
        bool sums = stage->reduction != WPK_REDUCE_NONE && wpk_dtype_is_float(stage->accumulator);
        steady = steady && !(sums && rounds);
    }
    for (int i = 0; i < program->node_count; i++) {
        const struct wpk_node *node = &program->nodes[i];
        int arg = node->kind == WPK_NODE_UNARY || node->kind == WPK_NODE_BINARY ? node->arg[0] : i;
        bool steps = node->kind == WPK_NODE_UNARY
                         ? node->op >= WPK_UNARY_FLOOR && node->op <= WPK_UNARY_ROUND
                         : node->kind == WPK_NODE_BINARY &&
                               (node->op == WPK_BINARY_MOD || node->op >= WPK_BINARY_LT);
        bool rounds = node->kind == WPK_NODE_CAST && !wpk_dtype_is_float(node->dtype);
        arg = rounds ? node->arg[0] : arg;
        steady = steady && !((steps || rounds) && wpk_dtype_is_float(program->nodes[arg].dtype));
    }
    return steady;
}

/* Programs of masked attention and the like: all inputs reach an exp. */
static void test_masks(void **state)
{
    (void)state;
    static const char *const programs[] = {
        "input X f32[16,128]\noutput Y f32[16]\nintermediate M f32[16]\n"
        "M[i] = max(k:128) X[i,k]\nY[i] = exp(M[i] - 1)\n",
        "input X f32[16,40]\noutput Y f32[16,40]\nintermediate M f32[16]\n"
        "intermediate S f32[16]\nM[i] = max(k:40) X[i,k]\n"
        "S[i] = sum(k:40) exp(X[i,k] - M[i])\nY[i,j] = exp(X[i,j] - M[i]) / S[i]\n",
        "input X f16[16,32]\noutput Y f16[16,32]\nintermediate M f32[16]\n"
        "intermediate S f32[16]\nM[i] = max(k:32) f32(X[i,k])\n"
        "S[i] = sum(k:32) exp(f32(X[i,k]) - M[i])\n"
        "Y[i,j] = f16(exp(f32(X[i,j]) - M[i]) / S[i])\n",
    };
    static struct wpk_kernels batch; /* large */
    struct wpk_device here;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, SEED);
    batch.masked = true;
    assert_int_equal(wpk_device_probe(WPK_CPU_SET_AVX2, &here), WPK_OK);
    batch.flags = here.cpu.flags;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        struct wpk_program program;
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_program_parse(programs[i], &program, &diag), WPK_OK);
        add_subjects(&batch, &rng, &program, false);
        wpk_program_fini(&program);
    }
    assert_true(batch.count > 3);
    wpk_check_kernels(&batch, &rng);
    batch.masked = false;
}

/* Long sums in panels, with operands staged in them, of one thread and of two. */
static void test_panels(void **state)
{
    (void)state;
    static const char *const programs[] = {
        "input A f32[16,512]\nconstant B f32[512,32]\noutput Y f32[16,32]\n"
        "Y[i,j] = sum(k:512) A[i,k] * B[k,j]\n",
        "input A f32[2,8,512]\ninput B f32[2,512,32]\ninput C f32[32]\n"
        "intermediate T f32[2,8,32]\noutput Y f32[2,8,32]\n"
        "T[b,i,j] = sum(k:512) A[b,i,k] * B[b,k,j]\nY[b,i,j] = max(T[b,i,j] + C[j], 0)\n",
        "input X f32[1,512,3,8]\nconstant W f32[32,512,1,1]\noutput Y f32[1,32,3,8]\n"
        "Y[n,k,y,x] = sum(c:512,r:1,s:1) X[n,c,y+r,x+s] * W[k,c,r,s]\n",
    };
    static struct wpk_kernels batch; /* large */
    struct wpk_device here;
    struct wpk_rng rng;
    int panels = 0, staged = 0;
    wpk_rng_seed(&rng, SEED);
    assert_int_equal(wpk_device_probe(WPK_CPU_SET_AVX2, &here), WPK_OK);
    batch.flags = here.cpu.flags;
    for (int i = 0; i < 6 && here.cpu.flags == WPK_CPU_SET_AVX2; i++) {
        struct wpk_program program;
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_program_parse(programs[i / 2], &program, &diag), WPK_OK);
        add_subjects(&batch, &rng, &program, true);
        wpk_program_fini(&program);
    }
    for (int i = 0; i < batch.count; i++) {
        panels += strstr(batch.subject[i].words, ".panel=") != NULL;
        staged += strstr(batch.subject[i].words, "=panel") != NULL;
    }
    print_message("%d with panels, %d with staged operands\n", panels, staged);
    assert_true(batch.count == 0 || (panels > 3 && staged > 0));
    wpk_check_kernels(&batch, &rng);
}

/* Sums of products of u8 and i8, of numbers of terms that no instruction divides, too. */
static void test_instructions(void **state)
{
    (void)state;
    static const char *const programs[] = {
        "input X u8[20,64]\nconstant W i8[64,48]\noutput Y i32[20,48]\n"
        "Y[i,j] = sum.i32(k:64) i32(X[i,k]) * i32(W[k,j])\n",
        "input X u8[7,37]\nconstant W i8[37,45]\ninput Z i32[45]\nintermediate T i32[7,45]\n"
        "output Y i32[7,45]\nT[i,j] = sum.i32(k:37) i32(X[i,k]) * i32(W[k,j])\n"
        "Y[i,j] = T[i,j] - 3 * Z[j]\n",
        "input X u8[3,9,30]\ninput W i8[3,30,32]\noutput Y i32[3,9,32]\n"
        "Y[b,i,j] = sum.i32(k:30) i32(X[b,i,k]) * i32(W[b,k,j])\n",
        "input X u8[1,8,9,11]\nconstant W i8[32,8,3,3]\noutput Y i32[1,32,9,11]\n"
        "Y[n,f,y,x] = sum.i32(c:8,r:3,s:3) i32(X[n,c,y+r-1,x+s-1 | 0]) * i32(W[f,c,r,s])\n",
        "input X u8[1,50]\nconstant W i8[50,33]\noutput Y i32[1,33]\n"
        "Y[i,j] = sum.i32(k:50) i32(X[i,k]) * i32(W[k,j])\n",
        "input X u8[40,50]\nconstant W i8[50,1]\noutput Y i32[40,1]\n"
        "Y[i,j] = sum.i32(k:50) i32(X[i,k]) * i32(W[k,j])\n",
    };
    static struct wpk_kernels batch; /* large */
    struct wpk_device here;
    struct wpk_rng rng;
    int dots = 0;
    wpk_rng_seed(&rng, SEED);
    assert_int_equal(wpk_device_probe(WPK_CPU_SET_AVX512_VNNI, &here), WPK_OK);
    if (here.cpu.flags != WPK_CPU_SET_AVX512_VNNI) {
        skip();
    }
    batch.flags = here.cpu.flags;
    for (size_t i = 0; i < 2 * sizeof(programs) / sizeof(programs[0]); i++) {
        struct wpk_program program;
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_program_parse(programs[i / 2], &program, &diag), WPK_OK);
        add_subjects(&batch, &rng, &program, false);
        wpk_program_fini(&program);
    }
    for (int i = 0; i < batch.count; i++) {
        dots += strstr(batch.subject[i].words, ".dot=") != NULL;
    }
    print_message("%d of %d by instructions\n", dots, batch.count);
    assert_true(dots > batch.count / 4);
    wpk_check_kernels(&batch, &rng);
}

static int number_of(const char *variable, int otherwise)
{
    const char *given = getenv(variable);
    return given == NULL ? otherwise : (int)strtol(given, NULL, 10);
}

static void test_random_programs(void **state)
{
    (void)state;
    static const wpk_cpu_flags levels[] = {WPK_CPU_SET_SSE41, WPK_CPU_SET_AVX2, WPK_CPU_SET_AVX512};
    static struct wpk_kernels batch; /* large */
    struct wpk_device here;
    struct wpk_rng rng;
    int seed = number_of("WPK_TEST_SEED", SEED);
    int programs = number_of("WPK_TEST_PROGRAMS", RANDOM_PROGRAMS);
    print_message("WPK_TEST_SEED=%d\n", seed);
    wpk_rng_seed(&rng, (uint64_t)seed);
    assert_int_equal(wpk_device_probe(WPK_CPU_FLAGS_ALL, &here), WPK_OK);
    for (int i = 0; i < programs; i++) {
        const struct wpk_random_options kind = {
            .products = i % 2 == 0, .smooth = i % 4 < 2, .data = i % 3 == 0};
        struct wpk_program program;
        if (i % 8 == 0) { /* a batch is of one instruction set */
            wpk_check_kernels(&batch, &rng);
            batch.flags = levels[i / 8 % 3] & here.cpu.flags;
        }
        wpk_random_program(&rng, &kind, &program);
        if (is_steady(&program)) {
            add_subjects(&batch, &rng, &program, false);
        }
        wpk_program_fini(&program);
    }
    wpk_check_kernels(&batch, &rng);
    print_message("%d kernels\n", batch.kernels);
    assert_true(batch.kernels > programs / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_panels),
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
