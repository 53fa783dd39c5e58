/* SPDX-License-Identifier: Apache-2.0 */
/* Launches while they are printed: numbers of threads, shared memory, and plans by hand. */
#include "target/gpu/point.h"
#include "target/gpu/print.h"

#include "nest/nest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A kernel without a nest, and its launch. */
struct subject {
    struct wpk_c_kernel kernel; /* large */
    struct wpk_cuda_launch launch;
    struct wpk_buf text;
};

static struct subject *begin(void)
{
    struct subject *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->kernel.launch = &s->launch;
    s->kernel.text.out = &s->text;
    s->kernel.text.forms = &s->kernel.forms;
    s->kernel.forms.width = 1;
    return s;
}

static void end(struct subject *s)
{
    wpk_forms_fini(&s->kernel.forms);
    wpk_buf_fini(&s->text);
    free(s);
}

static void loops_that_cut_threads_alike_share_a_variable(void **state)
{
    (void)state;
    struct subject *s = begin();
    int first = wpk_cuda_part(&s->kernel, 1, 32), other = wpk_cuda_part(&s->kernel, 32, 8);
    assert_int_not_equal(first, other);
    assert_int_equal(wpk_cuda_part(&s->kernel, 1, 32), first);
    assert_int_not_equal(wpk_cuda_part(&s->kernel, 1, 16), first);
    assert_int_equal(s->launch.part_count, 3);
    struct wpk_form form = wpk_form_atom(other, 1);
    int64_t low = -1, high = -1;
    wpk_form_range(&s->kernel.forms, &form, &low, &high);
    assert_true(low == 0 && high == 7);
    end(s);
}

static void a_launch_has_at_most_64_such_variables(void **state)
{
    (void)state;
    struct subject *s = begin();
    for (int64_t i = 0; i < WPK_CUDA_PARTS_MAX; i++) {
        (void)wpk_cuda_part(&s->kernel, 1, i + 2);
    }
    assert_null(s->kernel.refusal);
    (void)wpk_cuda_part(&s->kernel, 1, 2); /* that is known */
    assert_null(s->kernel.refusal);
    assert_int_equal(wpk_cuda_part(&s->kernel, 2, 2), 0);
    assert_string_equal(s->kernel.refusal, "too many loops over threads");
    end(s);
}

static void shared_memory_is_as_large_as_the_largest_use(void **state)
{
    (void)state;
    struct subject *s = begin();
    wpk_cuda_share(&s->kernel, 4, 100);
    wpk_cuda_share(&s->kernel, 5, 10);
    wpk_cuda_share(&s->kernel, 4, 60);
    wpk_cuda_share(&s->kernel, 5, 20);
    assert_int_equal(s->launch.share_count, 2);
    assert_int_equal(s->launch.share[0].elements, 100);
    assert_int_equal(s->launch.share[1].elements, 20);
    for (int t = 6; t < 4 + WPK_CUDA_SHARES_MAX; t++) {
        wpk_cuda_share(&s->kernel, t, 1);
    }
    assert_null(s->kernel.refusal);
    wpk_cuda_share(&s->kernel, 99, 1);
    assert_string_equal(s->kernel.refusal, "too many tensors in shared memory");
    end(s);
}

/* 10 elements in three buffers, each from a multiple of 16 bytes on. */
static void buffers_begin_at_multiples_of_16_bytes(void **state)
{
    (void)state;
    struct subject *s = begin();
    wpk_cuda_put_share(&s->kernel, 7, 10);
    assert_string_equal(wpk_buf_text(&s->text), "shared7;\n");
    assert_int_equal(s->launch.share[0].elements, 10);
    wpk_buf_reset(&s->text);
    s->launch.depth = 3;
    s->launch.buffer = wpk_form_atom(wpk_form_variable(&s->kernel.forms, "n", 0, 2), 1);
    wpk_cuda_put_share(&s->kernel, 7, 10);
    assert_int_equal(s->launch.share[0].elements, 36);
    assert_non_null(strstr(wpk_buf_text(&s->text), "shared7 + "));
    assert_non_null(strstr(wpk_buf_text(&s->text), "12"));
    end(s);
}

static void elements_are_apart_by_a_number_or_not_known(void **state)
{
    (void)state;
    struct subject *s = begin();
    struct wpk_form i = wpk_form_atom(wpk_form_variable(&s->kernel.forms, "i", 0, 9), 4);
    struct wpk_form j = wpk_form_atom(wpk_form_variable(&s->kernel.forms, "j", 0, 9), 1);
    struct wpk_form behind = wpk_form_scale(&i, 1, 3);
    assert_true(wpk_cuda_are_apart(&s->kernel, &i, &behind, 3));
    assert_false(wpk_cuda_are_apart(&s->kernel, &i, &behind, 2));
    assert_true(wpk_cuda_are_apart(&s->kernel, &behind, &i, -3));
    assert_false(wpk_cuda_are_apart(&s->kernel, &i, &j, 0));
    end(s);
}

/* ---- definitions */

/* Loops of a definition over two axes. */
static void blocks_and_threads_are_counted_from_inside(void **state)
{
    (void)state;
    struct wpk_cuda_definition d = {.loop = {{.axis = 0, .binding = WPK_BIND_BLOCK_Y, .step = 32},
                                             {.axis = 1, .binding = WPK_BIND_BLOCK_X, .step = 64},
                                             {.axis = 0, .binding = WPK_BIND_THREAD_Y, .step = 4},
                                             {.axis = 1, .binding = WPK_BIND_THREAD_X, .step = 4},
                                             {.axis = 0, .binding = WPK_BIND_UNROLL, .step = 1}},
                                    .count = 5,
                                    .width = 1};
    const int64_t size[] = {100, 130};
    int64_t blocks = 0;
    wpk_cuda_count_parallel(&d, size, &blocks);
    assert_int_equal(blocks, 4 * 3); /* the last ones are not whole */
    assert_int_equal(d.threads, 8 * 16);
    assert_int_equal(d.inside[1], 1);
    assert_int_equal(d.inside[0], 3);
    assert_int_equal(d.inside[3], 1);
    assert_int_equal(d.inside[2], 16);
    assert_int_equal(d.most[4], 4);
    assert_true(wpk_cuda_has_thread_loop(&d, WPK_BIND_THREAD_Y, WPK_BIND_THREAD_Y));
    assert_false(wpk_cuda_has_thread_loop(&d, WPK_BIND_THREAD_Z, WPK_BIND_THREAD_Z));
    d.width = 32; /* so many threads along x run all of it */
    wpk_cuda_count_parallel(&d, size, &blocks);
    assert_int_equal(d.threads, 32 * 8 * 16);
    assert_int_equal(d.inside[3], 32);
}

static void parts_are_a_first_loop_of_blocks_over_terms(void **state)
{
    (void)state;
    const struct wpk_stage stage = {.rank = 2, .axis_count = 3};
    struct wpk_cuda_definition d = {.loop = {{.axis = 2, .binding = WPK_BIND_BLOCK_X}, {.axis = 0}},
                                    .count = 2,
                                    .update = true,
                                    .stage = &stage};
    assert_true(wpk_cuda_has_parts(&d));
    d.update = false;
    assert_false(wpk_cuda_has_parts(&d));
    d.update = true;
    d.loop[0].axis = 1; /* no term */
    assert_false(wpk_cuda_has_parts(&d));
    d.loop[0] = (struct wpk_nest_loop){.axis = 2, .binding = WPK_BIND_SERIAL};
    assert_false(wpk_cuda_has_parts(&d));
    d.count = 0;
    assert_false(wpk_cuda_has_parts(&d));
}

/* ---- whole kernels */

#define PRODUCT                                                                                    \
    "wpk-schedule 2\ntarget cuda-sm_%d threads 1\nby c\nlayout A f32[64,96] 0,1\n"                 \
    "layout B f32[96,64] 0,1\nlayout Y f32[64,64] 0,1\nprogram\ninput A f32[64,96]\n"              \
    "input B f32[96,64]\nintermediate R f32[64,96]\nintermediate S f32[96,64]\n"                   \
    "intermediate T f32[64,64]\noutput Y f32[64,64]\nR[i,k] = A[i,k]\nS[k,j] = B[k,j]\n"           \
    "T[i,j] = sum.f32(k:96) R[i,k] * S[k,j]\nY[i,j] = max(T[i,j], 0)\nend\n"

/* Print a schedule; the test fails if it is refused. */
static void print(int capability, const char *nest, struct wpk_buf *out, struct wpk_cuda_plan *plan)
{
    struct wpk_schedule schedule;
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    wpk_buf_printf(&text, PRODUCT, capability);
    wpk_buf_append_text(&text, nest);
    if (wpk_schedule_parse(wpk_buf_text(&text), &schedule, &diag) != WPK_OK ||
        wpk_nest_check(schedule.nest, &diag) != WPK_OK ||
        wpk_cuda_print(&schedule, "k", out, plan, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s", diag.line, diag.column, diag.text);
    }
    wpk_schedule_fini(&schedule);
    wpk_buf_fini(&text);
}

static int count(const struct wpk_buf *text, const char *word)
{
    int found = 0;
    for (const char *at = strstr(wpk_buf_text((struct wpk_buf *)text), word); at != NULL;
         at = strstr(at + 1, word)) {
        found++;
    }
    return found;
}

/* A tile of 32 x 32 a block, 4 x 4 a thread, in steps of eight terms. */
#define TILE                                                                                       \
    "stage Y root\nblock.y i step 32 exact\nblock.x j step 32 exact\nthread.y i.1 step 4 exact\n"  \
    "thread.x j.1 step 4 exact\nunroll i.2\nlanes j.2\n"                                           \
    "stage T in Y j\nscope register\nextent i 32 j 32\ninit\nthread.y i step 4 exact\n"            \
    "thread.x j step 4 exact\nunroll i.1\nunroll j.1\n"
#define COPIES(at, more)                                                                           \
    "stage S in T " at "\nscope shared\n" more "thread.y k\nthread.x j step 4 exact\nlanes j.1\n"  \
    "stage R in T " at "\nscope shared\n" more "thread.y i step 4 exact\nthread.x k\nunroll i.1\n"

static void a_tile_is_one_launch_with_its_operands_in_shared_memory(void **state)
{
    (void)state;
    struct wpk_cuda_plan *plan = calloc(1, sizeof(*plan));
    struct wpk_buf text = {0};
    assert_non_null(plan);
    print(90,
          TILE "update\nserial k step 8 exact\nthread.y i step 4 exact\nthread.x j step 4 exact\n"
               "serial k.1\nunroll i.1\nunroll j.1\n" COPIES("k", ""),
          &text, plan);
    assert_int_equal(plan->step_count, 1);
    assert_int_equal(plan->step[0].blocks, 4);
    assert_int_equal(plan->step[0].threads, 64);
    assert_int_equal(plan->step[0].shared_bytes, 2 * 8 * 32 * 4);
    assert_int_equal(plan->step[0].taken_count, 3); /* A, B, Y */
    assert_int_equal(plan->part_bytes, 0);
    assert_string_equal(plan->step[0].entry, "k_0");
    /* each step writes shared memory, and the next one overwrites it */
    assert_int_equal(count(&text, "__syncthreads();"), 2);
    assert_int_equal(count(&text, "*(float4 *)&"), 4); /* a thread's rows are stored together */
    assert_true(count(&text, "wpk_move16(&") >= 1);    /* and those of B moved */
    wpk_buf_fini(&text);
    free(plan);
}

/* Blocks leave 32 x 32 sums each, and take a ticket of the tile. */
static void parts_take_memory_and_tickets(void **state)
{
    (void)state;
    struct wpk_cuda_plan *plan = calloc(1, sizeof(*plan));
    struct wpk_buf text = {0};
    assert_non_null(plan);
    print(90,
          TILE "update atomic\nblock.x k step 24 exact\nserial k.1 step 8 exact\n"
               "thread.y i step 4 exact\nthread.x j step 4 exact\nserial k.2\nunroll i.1\n"
               "unroll j.1\n" COPIES("k.1", ""),
          &text, plan);
    assert_int_equal(plan->step[0].blocks, 4 * 4); /* parts times tiles */
    assert_int_equal(plan->part_bytes, 4 * 4 * 32 * 32 * 4);
    assert_int_equal(plan->ticket_count, 4);
    assert_int_equal(plan->step[0].shared_bytes, 2 * 8 * 32 * 4 + 4);
    assert_int_equal(plan->step[0].taken_count, 5); /* the memory for parts, and the tickets */
    assert_int_equal(plan->step[0].taken[3], plan->argument_count);
    assert_non_null(strstr(wpk_buf_text(&text), "atomicInc(&tickets[(i32)blockIdx.x % 4], 3u)"));
    assert_non_null(strstr(wpk_buf_text(&text), "for (i32 part = 1; part < 4; part++) {"));
    wpk_buf_fini(&text);
    free(plan);
}

/* Two buffers of each operand; only sm_80 and later copy them while others are read. */
static void copies_ahead_have_buffers_and_are_asynchronous_from_sm_80_on(void **state)
{
    (void)state;
    for (int capability = 75; capability <= 80; capability += 5) {
        struct wpk_cuda_plan *plan = calloc(1, sizeof(*plan));
        struct wpk_buf text = {0};
        assert_non_null(plan);
        print(capability,
              TILE "update\nserial k step 8 exact\nthread.y i step 4 exact\n"
                   "thread.x j step 4 exact\nserial k.1\nunroll i.1\nunroll j.1\n" COPIES(
                       "k", "depth 2\n"),
              &text, plan);
        assert_int_equal(plan->step[0].shared_bytes, 2 * 2 * 8 * 32 * 4);
        assert_int_equal(count(&text, "cp.async.cg") > 0, capability >= 80);
        assert_int_equal(count(&text, "wpk_ahead16(&") > 0, capability >= 80);
        wpk_buf_fini(&text);
        free(plan);
    }
}

/* Eight threads share the 96 terms of an element: three exchanges, and no shared memory. */
static void threads_of_a_warp_exchange_their_sums(void **state)
{
    (void)state;
    static const struct {
        const char *update;
        int threads, exchanges, barriers;
        int64_t shared;
    } cases[] = {
        /* 8 lanes that are neighbours */
        {"serial k step 8 exact\nthread.y j\nthread.x k.1\n", 8 * 64, 3, 0, 0},
        {"serial k step 4 exact\nthread.y j\nthread.x k.1\n", 4 * 64, 2, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_cuda_plan *plan = calloc(1, sizeof(*plan));
        struct wpk_buf text = {0}, nest = {0};
        assert_non_null(plan);
        wpk_buf_printf(&nest,
                       "stage Y root\nblock.x i\nthread.y j\nstage T in Y i\nscope register\ninit\n"
                       "thread.y j\nupdate atomic\n%sstage S inline\nstage R inline\n",
                       cases[i].update);
        print(90, wpk_buf_text(&nest), &text, plan);
        assert_int_equal(plan->step[0].threads, cases[i].threads);
        assert_int_equal(count(&text, "__shfl_xor_sync("), cases[i].exchanges);
        assert_int_equal(count(&text, "__syncthreads();"), cases[i].barriers);
        assert_int_equal(plan->step[0].shared_bytes, cases[i].shared);
        wpk_buf_fini(&nest);
        wpk_buf_fini(&text);
        free(plan);
    }
}

/* Several warps share an element's terms: their lanes exchange, and the first ones leave sums. */
static void warps_leave_their_sums_in_shared_memory(void **state)
{
    (void)state;
    struct wpk_cuda_plan *plan = calloc(1, sizeof(*plan));
    struct wpk_buf text = {0};
    assert_non_null(plan);
    print(90,
          "stage Y root\nblock.y i\nblock.x j\nstage T in Y j\nscope register\ninit\n"
          "update atomic\nthread.x k\nstage S inline\nstage R inline\n",
          &text, plan);
    assert_int_equal(plan->step[0].blocks, 64 * 64);
    assert_int_equal(plan->step[0].threads, 96);
    /* 96 is no power of two: no lanes exchange, each thread leaves its term */
    assert_int_equal(count(&text, "__shfl_xor_sync("), 0);
    assert_int_equal(plan->step[0].shared_bytes, 96 * 4);
    assert_non_null(strstr(wpk_buf_text(&text), "_share < 96;"));
    wpk_buf_fini(&text);
    print(90,
          "stage Y root\nblock.y i\nblock.x j\nstage T in Y j\nscope register\ninit\n"
          "update atomic\nserial k step 64 guard\nthread.x k.1\nstage S inline\nstage R inline\n",
          &text, plan);
    assert_int_equal(plan->step[0].threads, 64);
    assert_int_equal(count(&text, "__shfl_xor_sync("), 5 + 1); /* of two warps */
    assert_int_equal(plan->step[0].shared_bytes, 2 * 4);
    wpk_buf_fini(&text);
    free(plan);
}

/* R and T are computed before everything: each is a launch, and T has two. */
static void stages_before_everything_are_launches(void **state)
{
    (void)state;
    struct wpk_cuda_plan *plan = calloc(1, sizeof(*plan));
    struct wpk_buf text = {0};
    assert_non_null(plan);
    print(90,
          "stage Y root\nblock.x i\nthread.x j\nstage T root\ninit\nblock.x i\nthread.x j\n"
          "update\nblock.x i\nthread.x j\nserial k\nstage S inline\n"
          "stage R root\nscope global\nblock.x i step 2 exact\nthread.y i.1\nthread.x k\n",
          &text, plan);
    static const struct {
        int64_t blocks, threads;
        int taken;
    } steps[] = {{32, 192, 2}, {64, 64, 1}, {64, 64, 3}, {64, 64, 2}};
    assert_int_equal(plan->step_count, 4);
    for (int i = 0; i < 4; i++) {
        char entry[8];
        snprintf(entry, sizeof(entry), "k_%d", i);
        assert_string_equal(plan->step[i].entry, entry);
        assert_int_equal(plan->step[i].blocks, steps[i].blocks);
        assert_int_equal(plan->step[i].threads, steps[i].threads);
        assert_int_equal(plan->step[i].taken_count, steps[i].taken);
    }
    assert_int_equal(plan->argument_count, 5); /* A, B, Y; R and T between launches */
    wpk_buf_fini(&text);
    free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_that_cut_threads_alike_share_a_variable),
        cmocka_unit_test(a_launch_has_at_most_64_such_variables),
        cmocka_unit_test(shared_memory_is_as_large_as_the_largest_use),
        cmocka_unit_test(buffers_begin_at_multiples_of_16_bytes),
        cmocka_unit_test(elements_are_apart_by_a_number_or_not_known),
        cmocka_unit_test(blocks_and_threads_are_counted_from_inside),
        cmocka_unit_test(parts_are_a_first_loop_of_blocks_over_terms),
        cmocka_unit_test(a_tile_is_one_launch_with_its_operands_in_shared_memory),
        cmocka_unit_test(parts_take_memory_and_tickets),
        cmocka_unit_test(copies_ahead_have_buffers_and_are_asynchronous_from_sm_80_on),
        cmocka_unit_test(threads_of_a_warp_exchange_their_sums),
        cmocka_unit_test(warps_leave_their_sums_in_shared_memory),
        cmocka_unit_test(stages_before_everything_are_launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
