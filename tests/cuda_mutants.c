/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with one mistake each, of the kinds that a generator of GPU code makes: the emulator's
 * checks or the comparison with the reference must see every one. A mistake is an edit of the
 * printed CUDA C or of the plan of launches. */
#include "tests/cuda_mutants.h"
#include "ir/notation/notation.h"
#include "target/codegen.h"
#include "tests/cuda_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the kernels */

enum {
    OF_PRODUCT,
    OF_ROWS,
    OF_LAUNCHES,
    OF_AHEAD,
    OF_WINDOW,
    OF_PARTS,
    OF_SHARES,
    OF_COLUMNS,
    OF_LOADS,
    OF_ORDER,
    OF_IM2COL,
    OF_WINOGRAD,
    OF_JOINED,
    OF_BOX,
    KERNELS
};

#define PINS_MAX 4

static const struct {
    const char *text;
    double tolerance;
    const char *pins[PINS_MAX][2]; /* none: the text is a schedule */
} kernels[KERNELS] = {
    [OF_PRODUCT] = {PRODUCT, 0, {{NULL}}},
    [OF_ROWS] = {ROWS, 1e-5, {{NULL}}},
    [OF_LAUNCHES] = {LAUNCHES, 0, {{NULL}}},
    [OF_AHEAD] = {AHEAD, 0, {{NULL}}},
    [OF_WINDOW] = {WINDOW, 0, {{NULL}}},
    [OF_PARTS] = {PARTS, 0, {{NULL}}},
    [OF_SHARES] = {SHARES, 0, {{NULL}}},
    [OF_COLUMNS] = {COLUMNS, 0, {{NULL}}},
    [OF_LOADS] = {LOADS, 1e-5, {{NULL}}},
    [OF_ORDER] = {ORDER, 0, {{NULL}}},
    [OF_IM2COL] = {CONVOLUTION, 0, {{"algorithm", "im2col"}}},
    [OF_WINOGRAD] = {CONVOLUTION,
                     0,
                     {{"algorithm", "winograd(4)"}, {"T_m.at", "root"}, {"T_v.at", "root"}}},
    [OF_JOINED] =
        {CONVOLUTION,
         0,
         {{"algorithm", "winograd(2)"}, {"T_m.at", "Y"}, {"T_v.at", "T_m"}, {"T_m.step.c", "8"}}},
    [OF_BOX] = {CONVOLUTION,
                0,
                {{"algorithm", "direct"},
                 {"Y.stage.X_b_t", "box"},
                 {"Y.step.c", "8"},
                 {"Y.together.y", "8"}}},
};

static void draw(int kernel, struct wpk_schedule *out)
{
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_candidate best;
    struct wpk_diag diag = {0};
    int count = 0;
    assert_int_equal(wpk_device_emulate("sm_90", 132, &options.device, &diag), WPK_OK);
    wpk_err err = wpk_program_parse(kernels[kernel].text, &program, &diag);
    err = err == WPK_OK ? wpk_space_derive(&program, &options, &space, &diag) : err;
    for (int p = 0; p < PINS_MAX && kernels[kernel].pins[p][0] != NULL && err == WPK_OK; p++) {
        const char *const *pin = kernels[kernel].pins[p];
        err = wpk_space_pin(&space, pin[0], pin[1], &diag);
    }
    if (err != WPK_OK || wpk_space_construct(&space, &best, 1, &count) != WPK_OK ||
        wpk_lower(&space, &best, out, &diag) != WPK_OK) {
        fail_msg("kernel %d: %s", kernel, diag.text);
    }
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

static void print_kernel(int kernel, struct wpk_cuda_subject *k)
{
    if (kernels[kernel].pins[0][0] == NULL) {
        wpk_cuda_subject_parse(kernels[kernel].text, "", &k->schedule);
    } else {
        draw(kernel, &k->schedule);
    }
    wpk_cuda_subject_print(k);
}

/* ---- mistakes in the code */

#define BARRIER "__syncthreads();"

static const struct {
    int kernel;
    const char *mistake;
    const char *right;
    int number; /* of the occurrence, from 0 */
    const char *wrong;
} edits[] = {
    {OF_PRODUCT, "no barrier before the copies of a step", BARRIER, 0, ""},
    {OF_PRODUCT, "no barrier behind the copies of a step", BARRIER, 1, ""},
    {OF_PRODUCT, "no barrier before the copies of the last step", BARRIER, 2, ""},
    {OF_PRODUCT, "no barrier behind the copies of the last step", BARRIER, 3, ""},
    {OF_PRODUCT, "one step of the reduction is missing", "n2_k < 4", 0, "n2_k < 3"},
    {OF_PRODUCT, "one step of the reduction too many", "n2_k < 4", 0, "n2_k < 5"},
    {OF_PRODUCT, "the last term of each step is missing", "n11_k < 8", 0, "n11_k < 7"},
    {OF_PRODUCT, "the last term of the last step is missing", "n100_k < 5", 0, "n100_k < 4"},
    {OF_PRODUCT, "one term of the last step too many", "n100_k < 5", 0, "n100_k < 6"},
    {OF_PRODUCT, "the last step begins one term early", "thread3 + 32)", 0, "thread3 + 31)"},
    {OF_PRODUCT, "wrong stride of an operand", "37 * n0_i", 0, "36 * n0_i"},
    {OF_PRODUCT, "wrong stride between the rows of threads", "148 * thread0", 0, "111 * thread0"},
    {OF_PRODUCT, "wrong stride of a step", "560 * n2_k", 1, "490 * n2_k"},
    {OF_PRODUCT, "wrong stride of the result", "280 * thread0", 3, "276 * thread0"},
    {OF_PRODUCT, "the last block does not move inwards",
     "wpk_least(32 * ((i32)blockIdx.x / 3 % 2), 17)", 0, "32 * ((i32)blockIdx.x / 3 % 2)"},
    {OF_PRODUCT, "the last block moves one too far inwards", ", 17);", 0, ", 16);"},
    {OF_PRODUCT, "blocks are dealt out wrongly", "blockIdx.x / 3 % 2", 0, "blockIdx.x / 2 % 2"},
    {OF_PRODUCT, "rows and columns of threads are the same", "threadIdx.x / 8 % 8", 0,
     "threadIdx.x / 1 % 8"},
    {OF_PRODUCT, "one thread of the copies is idle", "threadIdx.x < 40", 0, "threadIdx.x < 39"},
    {OF_PRODUCT, "threads of the copies that should be idle work", "threadIdx.x < 40", 1,
     "threadIdx.x < 64"},
    {OF_PRODUCT, "shared memory is too small: two tensors overlap", "shared2[256]", 0,
     "shared2[128]"},
    {OF_PRODUCT, "two tensors have the same shared memory", "= shared3;", 0, "= shared2;"},
    {OF_PRODUCT, "a sum begins at another value", "c3_5_T = 0x0p+0f;", 0, "c3_5_T = 0x1p-4f;"},
    {OF_PRODUCT, "a sum has no first value", "c3_5_T = 0x0p+0f;", 0, "(void)c3_5_T;"},
    {OF_PRODUCT, "an operand's tile is read transposed", "s4_R[(32 * thread0 + n11_k)]", 0,
     "s4_R[(thread0 + 8 * n11_k)]"},
    {OF_PRODUCT, "two elements have one place",
     "s2_Y[(70 * n0_i + 2 * n1_j + 280 * thread0 + 4 * thread1 + 213)] =", 0,
     "s2_Y[(70 * n0_i + 2 * n1_j + 280 * thread0 + 4 * thread1 + 212)] ="},
    {OF_PRODUCT, "an element is not stored",
     "s2_Y[(70 * n0_i + 2 * n1_j + 280 * thread0 + 4 * thread1 + 71)] =", 0, "(void)"},
    {OF_PRODUCT, "another value in the pointwise stage", "max(0x0p+0f, ", 0, "max(-0x1p+20f, "},
    {OF_ROWS, "no barrier between a row's maximum and its readers", BARRIER, 1, ""},
    {OF_ROWS, "no barrier between a row's sum and its readers", BARRIER, 4, ""},
    {OF_ROWS, "a barrier in a condition", "if (threadIdx.x < 10) {", 0,
     "if (threadIdx.x < 10) { __syncthreads();"},
    {OF_ROWS, "a row's last elements are missing", "threadIdx.x < 10", 0, "threadIdx.x < 9"},
    {OF_ROWS, "each thread's last element is missing", "n5_j < 4", 0, "n5_j < 3"},
    {OF_ROWS, "the last term is missing", "n10_k < 40", 0, "n10_k < 39"},
    {OF_ROWS, "the tail's guard is off by one", "(3 * thread1 - 39) < 0", 0,
     "(3 * thread1 - 40) < 0"},
    {OF_ROWS, "the tail has no guard", "if ((3 * thread1 - 38) < 0)", 0, "if (1)"},
    {OF_ROWS, "all threads write a first value", "if (threadIdx.x == 0)", 0, "if (1)"},
    {OF_ROWS, "all threads add up", "if (threadIdx.x == 0)", 3, "if (1)"},
    {OF_ROWS, "the padding of a tensor is left out of its stride", "43 * n0_i", 1, "40 * n0_i"},
    {OF_ROWS, "a layout is read in another order", "s1_Y[(n0_i + 15 * thread1)]", 0,
     "s1_Y[(40 * n0_i + 3 * thread1)]"},
    {OF_AHEAD, "copies are not waited for", "cp.async.wait_group 0;", 0, ""},
    {OF_AHEAD, "the newest copies are not waited for", "wait_group 0", 0, "wait_group 1"},
    {OF_AHEAD, "copies ahead belong to no group", "cp.async.commit_group;", 1, ""},
    {OF_AHEAD, "the first copies belong to no group", "cp.async.commit_group;", 0, ""},
    {OF_AHEAD, "no barrier behind the wait", BARRIER, 0, ""},
    {OF_AHEAD, "the first copies are missing", "n2_early < 1", 0, "n2_early < 0"},
    {OF_AHEAD, "the last copies are missing", "n3_now < 5", 0, "n3_now < 4"},
    {OF_AHEAD, "one copy too many", "n3_now < 5", 0, "n3_now < 6"},
    {OF_AHEAD, "copies go to the buffer that is read", "n4_later % 2u", 0, "n3_now % 2u"},
    {OF_AHEAD, "the buffer that is filled is read", "n3_now % 2u", 0, "(n3_now + 1) % 2u"},
    {OF_AHEAD, "copies are a step behind", "n3_now + 1;", 0, "n3_now;"},
    {OF_AHEAD, "there is one buffer only", "shared2[768]", 0, "shared2[384]"},
    {OF_AHEAD, "buffers overlap", "shared2 + (384 * (i32)((u32)n4_later", 0,
     "shared2 + (372 * (i32)((u32)n4_later"},
    {OF_AHEAD, "a copy is not aligned in memory", "48 * thread2 + 4 * thread3 + 8 * n4_later", 0,
     "48 * thread2 + 3 * thread3 + 8 * n4_later"},
    {OF_AHEAD, "a copy is not aligned in shared memory", "s6_R[(12 * thread2", 0,
     "s6_R[(11 * thread2"},
    {OF_AHEAD, "rows are read without their padding", "s8_R[(12 * thread0 + 4 * n5_k)]", 0,
     "s8_R[(8 * thread0 + 4 * n5_k)]"},
    {OF_AHEAD, "a copy of 4 bytes for one of 16", "wpk_ahead16(&s6_R", 0, "wpk_ahead4(&s6_R"},
    {OF_WINDOW, "too many copies are not waited for", "wait_group 1", 0, "wait_group 2"},
    {OF_WINDOW, "a row of the border is read", "n8_r - 1) >= 0", 0, "n8_r - 1) >= -1"},
    {OF_WINDOW, "a column inside the border is left out", "n9_s - 1) <= 15", 0, "n9_s - 1) <= 14"},
    {OF_WINDOW, "steps are dealt out wrongly", "n6_later / 9u", 0, "n6_later / 6u"},
    {OF_PARTS, "parts are left without a fence", "__threadfence();", 0, ""},
    {OF_PARTS, "a ticket is taken before all threads have left their parts", BARRIER, 2, ""},
    {OF_PARTS, "the ticket is read before it is there", BARRIER, 3, ""},
    {OF_PARTS, "the last block but one goes on", "!= 3u", 0, "!= 2u"},
    {OF_PARTS, "tickets count to one more", "], 3u)", 0, "], 4u)"},
    {OF_PARTS, "tiles have one ticket", "% 6], 3u)", 0, "% 3], 3u)"},
    {OF_PARTS, "a part is missing", "part < 4;", 0, "part < 3;"},
    {OF_PARTS, "one part too many", "part < 4;", 0, "part < 5;"},
    {OF_PARTS, "parts of another tile", "from += 6144;", 0, "from += 1024;"},
    {OF_PARTS, "blocks leave their parts in one place", "(i32)blockIdx.x * 1024", 0,
     "(i32)blockIdx.x % 6 * 1024"},
    {OF_PARTS, "an element of the part is not left", "mine[192] =", 0, "(void)"},
    {OF_PARTS, "terms are dealt out wrongly", "blockIdx.x / 6 % 4", 0, "blockIdx.x / 6 % 3"},
    {OF_SHARES, "lanes exchange at a wrong distance", "c3_0_T, 8)", 0, "c3_0_T, 4)"},
    {OF_SHARES, "an exchange is missing", "= t18 + t19;", 0, "= t18;"},
    {OF_SHARES, "an exchange names half of the warp", "0xffffffffu", 0, "0xffffu"},
    {OF_SHARES, "some lanes come by an exchange", "const f32 t13 =", 0,
     "f32 t13 = 0; if (thread1 < 40) t13 ="},
    {OF_SHARES, "a warp leaves no total", "if (thread3 == 0)", 0, "if (thread1 == 0)"},
    {OF_SHARES, "totals of warps are taken before they are there", BARRIER, 0, ""},
    {OF_SHARES, "warps leave their totals in one place", "(thread0 + 2 * thread2)] =", 0,
     "thread0] ="},
    {OF_SHARES, "totals of another row are taken", "(thread0 + 2 * thread4)", 0,
     "(2 * thread0 + thread4)"},
    {OF_SHARES, "totals of warps are not joined", "= t27 + t28;", 0, "= t27;"},
    {OF_SHARES, "the last terms have no guard", "if ((thread1 - 8) < 0)", 0, "if (1)"},
    {OF_SHARES, "the last term is missing", "(thread1 - 8) < 0", 0, "(thread1 - 7) < 0"},
    {OF_SHARES, "no thread stores the result of a row", "if (thread1 == 0)", 0,
     "if (thread1 == 64)"},
    {OF_SHARES, "warps have the rows of others", "200 * thread0", 0, "200 * thread2"},
    {OF_COLUMNS, "one share is missing", "n11_share < 4", 0, "n11_share < 3"},
    {OF_COLUMNS, "one share too many", "n11_share < 4", 0, "n11_share < 5"},
    {OF_COLUMNS, "lanes of two columns exchange", "c2_0_T, 16)", 0, "c2_0_T, 8)"},
    {OF_COLUMNS, "terms are dealt out wrongly", "threadIdx.x / 16 % 8", 0, "threadIdx.x / 8 % 8"},
    {OF_COLUMNS, "both threads of a pair leave their total", "if (thread3 == 0)", 0, "if (1)"},
    {OF_COLUMNS, "a column is not stored", "if (threadIdx.x < 16)", 0, "if (threadIdx.x < 15)"},
    {OF_COLUMNS, "shared memory is too small", "shared1[64]", 0, "shared1[32]"},
    {OF_LOADS, "four elements begin at no multiple of 16 bytes", "4 * thread1", 0, "5 * thread1"},
    {OF_LOADS, "an element of four is taken twice", ".z;", 0, ".y;"},
    {OF_LOADS, "threads load what others have", "4 * thread1", 0, "4 * (thread1 / 2)"},
    {OF_ORDER, "groups of blocks are dealt out wrongly", "blockIdx.x / 8 % 2", 0,
     "blockIdx.x / 4 % 2"},
    {OF_ORDER, "blocks of a group have the columns of others", "blockIdx.x / 2 % 4", 0,
     "blockIdx.x / 1 % 4"},
    {OF_ORDER, "blocks of a group have the same rows", "blockIdx.x / 1 % 2", 0,
     "blockIdx.x / 8 % 2"},
    {OF_IM2COL, "the first row of the border is read", ") >= 0", 0, ") >= -1"},
    {OF_IM2COL, "a row inside the border is left out", ") >= 0", 0, ") >= 1"},
    {OF_IM2COL, "a column behind the border is read", " <= 11", 1, " <= 12"},
    {OF_IM2COL, "rows of a copy are dealt out wrongly", "threadIdx.x / 8 % 4", 0,
     "threadIdx.x / 4 % 4"},
    {OF_IM2COL, "eight rows of a copy overlap", "20 * thread1", 0, "16 * thread1"},
    {OF_IM2COL, "other rows are copied", "1152 * thread4", 0, "1008 * thread4"},
    {OF_IM2COL, "what is outside is copied, too", "inside ? 4 : 0", 0, "4"},
    {OF_WINOGRAD, "a number of the transform has the wrong sign", "(-0x1.52p+1f) *", 0,
     "0x1.52p+1f *"},
    {OF_WINOGRAD, "a number of the transform is another", "0x1.c2p-1f *", 0, "0x1.c3p-1f *"},
    {OF_JOINED, "a step is transformed before all have read the one before", BARRIER, 0, ""},
    {OF_JOINED, "products are made before all is transformed", BARRIER, 1, ""},
    {OF_JOINED, "products are transformed before all are there", BARRIER, 2, ""},
    {OF_JOINED, "one step of the products is missing", "n2_c < 2", 0, "n2_c < 1"},
    {OF_JOINED, "some tiles of a step are not transformed", "threadIdx.x < 96", 0,
     "threadIdx.x < 84"},
    {OF_JOINED, "some tiles of the output are missing", "threadIdx.x < 96", 1, "threadIdx.x < 84"},
    {OF_JOINED, "products have the memory of an operand", "= shared10;", 0, "= shared6;"},
    {OF_JOINED, "products of another row of tiles are transformed", "6 * thread8 + thread9", 0,
     "6 * (1 - thread8) + thread9"},
    {OF_JOINED, "a tile is left where another one's is", "s6_T_v[(12 * thread3 + thread4)]", 0,
     "s6_T_v[(11 * thread3 + thread4)]"},
    {OF_BOX, "a box is read before all of it is there", BARRIER, 0, ""},
    {OF_BOX, "the last rows of a box are not copied", "if ((thread3 - 4) < 0)", 0,
     "if ((thread3 - 3) < 0)"},
    {OF_BOX, "a channel of a box is not copied", "n3_i1 < 8", 0, "n3_i1 < 7"},
    {OF_BOX, "what is outside of the image is copied", "(thread4 - 1) >= 0", 0,
     "(thread4 - 1) >= -1"},
    {OF_BOX, "rows of a box are read without their padding", "17 * n12_r + 3", 0, "16 * n12_r + 3"},
    {OF_BOX, "a row of the window is missing", "n12_r < 3", 0, "n12_r < 2"},
    {OF_BOX, "the last block of rows does not move inwards",
     "wpk_least(2 * ((i32)blockIdx.x / 1 % 2), 1)", 0, "2 * ((i32)blockIdx.x / 1 % 2)"},
};

#define EDITS (sizeof(edits) / sizeof(edits[0]))

static void edit(struct wpk_buf *text, size_t e)
{
    struct wpk_buf changed = {0};
    const char *all = wpk_buf_text(text), *at = strstr(all, edits[e].right);
    for (int i = 0; i < edits[e].number && at != NULL; i++) {
        at = strstr(at + 1, edits[e].right);
    }
    if (at == NULL) {
        fail_msg("%s: the code has no \"%s\"", edits[e].mistake, edits[e].right);
        return;
    }
    wpk_buf_append(&changed, all, (size_t)(at - all));
    wpk_buf_append_text(&changed, edits[e].wrong);
    wpk_buf_append_text(&changed, at + strlen(edits[e].right));
    wpk_buf_fini(text);
    *text = changed;
}

/* ---- mistakes in the plan of launches */

static void swap_steps(struct wpk_cuda_plan *plan, int a, int b)
{
    struct wpk_cuda_step first = plan->step[a];
    plan->step[a] = plan->step[b];
    plan->step[b] = first;
}

static void drop_block(struct wpk_cuda_subject *k)
{
    k->plan.step[0].blocks--;
}

static void halve_threads(struct wpk_cuda_subject *k)
{
    k->plan.step[0].threads /= 2;
}

static void double_threads(struct wpk_cuda_subject *k)
{
    k->plan.step[0].threads *= 2;
}

static void swap_operands(struct wpk_cuda_subject *k)
{
    uint64_t first = k->address[0];
    k->address[0] = k->address[1];
    k->address[1] = first;
}

static void drop_last(struct wpk_cuda_subject *k)
{
    k->plan.step_count--;
}

static void drop_first(struct wpk_cuda_subject *k)
{
    swap_steps(&k->plan, 0, 1);
    swap_steps(&k->plan, 1, 2);
    swap_steps(&k->plan, 2, 3);
    k->plan.step_count--;
}

static void read_early(struct wpk_cuda_subject *k)
{
    swap_steps(&k->plan, 0, 2);
}

static void begin_late(struct wpk_cuda_subject *k)
{
    swap_steps(&k->plan, 1, 2);
}

static void repeat(struct wpk_cuda_subject *k)
{
    k->plan.step[4] = k->plan.step[3];
    k->plan.step[3] = k->plan.step[2];
    k->plan.step_count++;
}

static void dirty_tickets(struct wpk_cuda_subject *k)
{
    *(uint32_t *)(uintptr_t)k->tickets = 1; // NOLINT: a device address is a host's
}

static void share_scratch(struct wpk_cuda_subject *k)
{
    k->address[k->plan.argument_count - 1] = k->address[k->plan.argument_count - 2];
}

static void shrink_scratch(struct wpk_cuda_subject *k)
{
    k->missing[k->plan.argument_count - 1] = 1;
}

static void shrink_output(struct wpk_cuda_subject *k)
{
    k->missing[2] = 1;
}

static const struct {
    int kernel;
    const char *mistake;
    void (*before)(struct wpk_cuda_subject *k); /* memory is allocated; NULL: nothing */
    void (*after)(struct wpk_cuda_subject *k);
} plans[] = {
    {OF_PRODUCT, "a block is missing", drop_block, NULL},
    {OF_PRODUCT, "half of the threads are missing", halve_threads, NULL},
    {OF_PRODUCT, "more threads than the kernel was compiled for", double_threads, NULL},
    {OF_PRODUCT, "operands are exchanged", NULL, swap_operands},
    {OF_PRODUCT, "the output is too small by an element", shrink_output, NULL},
    {OF_LAUNCHES, "the last launch is missing", drop_last, NULL},
    {OF_LAUNCHES, "the first launch is missing", drop_first, NULL},
    {OF_LAUNCHES, "a launch reads what a later one writes", read_early, NULL},
    {OF_LAUNCHES, "sums grow before they begin", begin_late, NULL},
    {OF_LAUNCHES, "a launch that adds up runs twice", repeat, NULL},
    {OF_LAUNCHES, "two scratch tensors have the same memory", NULL, share_scratch},
    {OF_LAUNCHES, "scratch is too small by an element", shrink_scratch, NULL},
    {OF_PARTS, "a ticket does not begin at 0", NULL, dirty_tickets},
    {OF_PARTS, "the last block is missing", drop_block, NULL},
    {OF_WINOGRAD, "a block of the first transform is missing", drop_block, NULL},
    {OF_WINOGRAD, "the last transform is missing", drop_last, NULL},
};

#define PLANS (sizeof(plans) / sizeof(plans[0]))

/* ---- tests */

/* How the emulator or the comparison sees a mistake; "": neither does. The kernel is compiled. */
static const char *run(struct wpk_cuda_subject *k, int kernel,
                       void (*after)(struct wpk_cuda_subject *))
{
    static struct wpk_diag diag;
    struct wpk_kernel_fault_report report;
    struct wpk_rng rng;
    diag = (struct wpk_diag){0};
    wpk_rng_seed(&rng, 7);
    wpk_cuda_subject_fill(k, &rng);
    if (after != NULL) {
        after(k);
    }
    wpk_err err = wpk_cuda_subject_launch(k, &report);
    if (err != WPK_OK) {
        return wpk_err_text(err);
    }
    if (report.fault != WPK_KERNEL_FAULT_NONE) {
        return wpk_kernel_fault_text(report.fault);
    }
    for (int64_t i = 0; i < k->plan.ticket_count; i++) {
        if (((const uint32_t *)(uintptr_t)k->tickets)[i] != 0) { // NOLINT: a host's address
            return "a ticket that the next launch begins with is not 0";
        }
    }
    return wpk_cuda_subject_agrees(k, kernels[kernel].tolerance, &diag) ? "" : diag.text;
}

static void expect_seen(const char *mistake, const char *seen, int *missed)
{
    print_message("%s: %s\n", mistake, seen[0] != '\0' ? seen : "MISSED");
    *missed += seen[0] == '\0';
}

static void test_without_mistakes(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    wpk_cuda_subject_open(&nvrtc);
    for (int i = 0; i < KERNELS; i++) {
        print_kernel(i, &k);
        wpk_cuda_subject_compile(&nvrtc, &k);
        assert_string_equal(run(&k, i, NULL), "");
        wpk_cuda_subject_fini(&k);
    }
    wpk_cuda_nvrtc_close(&nvrtc);
}

static void test_code(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    int missed = 0;
    wpk_cuda_subject_open(&nvrtc);
    for (size_t e = 0; e < EDITS; e++) {
        print_kernel(edits[e].kernel, &k);
        edit(&k.text, e);
        wpk_cuda_subject_compile(&nvrtc, &k);
        expect_seen(edits[e].mistake, run(&k, edits[e].kernel, NULL), &missed);
        wpk_cuda_subject_fini(&k);
    }
    wpk_cuda_nvrtc_close(&nvrtc);
    assert_int_equal(missed, 0);
}

static void test_plans(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    int missed = 0;
    wpk_cuda_subject_open(&nvrtc);
    for (size_t p = 0; p < PLANS; p++) {
        print_kernel(plans[p].kernel, &k);
        wpk_cuda_subject_compile(&nvrtc, &k);
        if (plans[p].before != NULL) {
            plans[p].before(&k);
        }
        expect_seen(plans[p].mistake, run(&k, plans[p].kernel, plans[p].after), &missed);
        wpk_cuda_subject_fini(&k);
    }
    wpk_cuda_nvrtc_close(&nvrtc);
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_mistakes),
        cmocka_unit_test(test_code),
        cmocka_unit_test(test_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
