/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that nvcc made of testdata/kernels.cu compute what they should without a fault; each
 * planted bug is found. */
#include "tests/gpu/launch.h"

#include "common/fs.h"
#include "tests/ptx_module.h"

#include <math.h>

/* ---- planted bugs */

/* Two warps; y has 64 words, memory beside it is not allocated. `s` are 256 bytes that are shared,
 * `l` 64 bytes of each thread; %d2 is the thread's word of y, %r2 its word of s. */
#define SHARED_HEAD                                                                                \
    HEAD ".entry k(.param .u64 y)\n{\n.shared .align 16 .b8 s[256];\n.local .align 8 .b8 "         \
         "l[64];\n" REGISTERS                                                                      \
         "ld.param.u64 %d1, [y];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 4;\n"               \
         "add.s64 %d2, %d2, %d1;\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 2;\n"                         \
         "add.u32 %r2, %r2, %r3;\n"
#define FIRST "setp.eq.u32 %p1, %r1, 0;\n"

static const struct {
    const char *name, *text;
    enum wpk_kernel_fault expected;
} bugs[] = {
    {"stays inside", "st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r4, [%r2];",
     WPK_KERNEL_FAULT_NONE},
    {"stores behind the end", "st.global.u32 [%d2+4], %r1;", WPK_KERNEL_FAULT_BOUNDS},
    {"loads before the start", "ld.global.u32 %r4, [%d2+-4];", WPK_KERNEL_FAULT_BOUNDS},
    {"a vector reaches over the end",
     "and.b64 %d3, %d2, -16; setp.gt.u32 %p1, %r1, 60; @%p1 ld.global.v4.u32 "
     "{%r4,%r5,%r6,%r7}, [%d3+16];",
     WPK_KERNEL_FAULT_BOUNDS},
    {"a vector whose last element nobody wrote",
     "setp.lt.u32 %p1, %r1, 3; @%p1 st.shared.u32 [%r2], %r1; bar.sync 0; mov.u32 %r3, s; "
     "ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r3];",
     WPK_KERNEL_FAULT_UNWRITTEN},
    {"the same, where it is not used",
     "setp.lt.u32 %p1, %r1, 3; @%p1 st.shared.u32 [%r2], %r1; bar.sync 0; mov.u32 %r3, s; "
     ".pragma \"used_bytes_mask 4095\"; ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r3];",
     WPK_KERNEL_FAULT_NONE},
    {"address zero", "mov.u64 %d3, 0; ld.global.u32 %r4, [%d3];", WPK_KERNEL_FAULT_BOUNDS},
    {"shared memory behind its end", "st.shared.u32 [%r2+4], %r1;", WPK_KERNEL_FAULT_BOUNDS},
    {"shared memory before its start", "st.shared.u32 [%r2+-4], %r1;", WPK_KERNEL_FAULT_BOUNDS},
    {"local memory behind its end", "mov.u64 %d3, l; st.local.u32 [%d3+64], %r1;",
     WPK_KERNEL_FAULT_BOUNDS},
    {"shared memory that is nobody's", "st.shared.u32 [%r3], %r1;", WPK_KERNEL_FAULT_BOUNDS},
    {"a generic address behind shared memory",
     "cvt.u64.u32 %d3, %r2; cvta.shared.u64 %d4, %d3; st.u32 [%d4+4], %r1;",
     WPK_KERNEL_FAULT_BOUNDS},
    {"misaligned load", "ld.global.u32 %r4, [%d1+2];", WPK_KERNEL_FAULT_ALIGNMENT},
    {"misaligned vector", "ld.global.v2.u32 {%r4,%r5}, [%d1+4];", WPK_KERNEL_FAULT_ALIGNMENT},
    {"misaligned shared store", "mov.u16 %h1, 1; st.shared.u16 [%r2+1], %h1;",
     WPK_KERNEL_FAULT_ALIGNMENT},
    {"misaligned shared vector", "mov.u32 %r4, s; st.shared.v4.u32 [%r4+8], {%r1,%r1,%r1,%r1};",
     WPK_KERNEL_FAULT_ALIGNMENT},
    {"stores what was never written", "st.global.u32 [%d2], %r9;", WPK_KERNEL_FAULT_UNDEFINED},
    {"stores a sum of what was never written", "add.u32 %r8, %r9, 1; st.global.u32 [%d2], %r8;",
     WPK_KERNEL_FAULT_UNDEFINED},
    {"branches by what was never written", "@%p5 bra E; E: mov.u32 %r4, 0;",
     WPK_KERNEL_FAULT_UNDEFINED},
    {"stores a lowest byte that was never written",
     "prmt.b32 %r8, %r1, %r9, 0x3214; st.global.u32 [%d2], %r8;", WPK_KERNEL_FAULT_UNDEFINED},
    {"packs bytes that were never written behind one that was",
     "prmt.b32 %r8, %r9, %r1, 0x3214; st.global.u32 [%d2], %r8;", WPK_KERNEL_FAULT_NONE},
    {"an address of what was never written", "ld.global.u32 %r4, [%d9];",
     WPK_KERNEL_FAULT_UNDEFINED},
    {"written by some lanes only", FIRST "@%p1 mov.u32 %r4, 0; st.global.u32 [%d2], %r4;",
     WPK_KERNEL_FAULT_UNDEFINED},
    {"reads shared memory that nobody wrote", "ld.shared.u32 %r4, [%r2];",
     WPK_KERNEL_FAULT_UNWRITTEN},
    {"reads half of what was written",
     "mov.u16 %h1, 1; st.shared.u16 [%r2], %h1; ld.shared.u32 %r4, [%r2];",
     WPK_KERNEL_FAULT_UNWRITTEN},
    {"reads local memory that was never written", "mov.u64 %d3, l; ld.local.u32 %r4, [%d3+8];",
     WPK_KERNEL_FAULT_UNWRITTEN},
    {"all write one word", "mov.u32 %r4, s; st.shared.u32 [%r4], %r1;", WPK_KERNEL_FAULT_RACE},
    {"reads the neighbour's word without a barrier",
     "st.shared.u32 [%r2], %r1; xor.b32 %r5, %r2, 4; ld.shared.u32 %r4, [%r5];",
     WPK_KERNEL_FAULT_RACE},
    {"reads the other warp's word after a barrier of its warp only",
     "st.shared.u32 [%r2], %r1; bar.sync 0; st.shared.u32 [%r2], %r1; bar.warp.sync -1;\n"
     "xor.b32 %r5, %r2, 128; ld.shared.u32 %r4, [%r5];",
     WPK_KERNEL_FAULT_RACE},
    {"reads the neighbour's word after a barrier of the warp",
     "st.shared.u32 [%r2], %r1; bar.warp.sync -1; xor.b32 %r5, %r2, 4; ld.shared.u32 %r4, [%r5];",
     WPK_KERNEL_FAULT_NONE},
    {"writes again what others still read",
     "st.shared.u32 [%r2], %r1; bar.sync 0; xor.b32 %r5, %r2, 128; ld.shared.u32 %r4, [%r5];\n"
     "st.shared.u32 [%r2], %r1;",
     WPK_KERNEL_FAULT_RACE},
    {"all read one word, then one writes it",
     FIRST "mov.u32 %r5, s; @%p1 st.shared.u32 [%r5], %r1; bar.sync 0; ld.shared.u32 %r4, [%r5];\n"
           "@%p1 st.shared.u32 [%r5], %r1;",
     WPK_KERNEL_FAULT_RACE},
    {"different bytes of a word",
     "cvt.u16.u32 %h1, %r1; add.u32 %r5, %r1, 0; mov.u32 %r6, s; add.u32 %r5, %r5, %r6;\n"
     "st.shared.u8 [%r5], %h1;",
     WPK_KERNEL_FAULT_NONE},
    {"reads before the copy was waited for",
     "cp.async.ca.shared.global [%r2], [%d2], 4; cp.async.commit_group; ld.shared.u32 %r4, [%r2];",
     WPK_KERNEL_FAULT_PENDING},
    {"reads after the wait, without a barrier",
     "cp.async.ca.shared.global [%r2], [%d2], 4; cp.async.commit_group; cp.async.wait_group 0;\n"
     "xor.b32 %r5, %r2, 128; ld.shared.u32 %r4, [%r5];",
     WPK_KERNEL_FAULT_UNWRITTEN},
    {"one group may be under way",
     "cp.async.ca.shared.global [%r2], [%d2], 4; cp.async.commit_group; cp.async.wait_group 1;\n"
     "ld.shared.u32 %r4, [%r2];",
     WPK_KERNEL_FAULT_PENDING},
    {"copies over what others still read",
     "st.shared.u32 [%r2], %r1; bar.sync 0; xor.b32 %r5, %r2, 128; ld.shared.u32 %r4, [%r5];\n"
     "cp.async.ca.shared.global [%r2], [%d2], 4; cp.async.commit_group; bar.sync 0;\n"
     "cp.async.wait_group 0;",
     WPK_KERNEL_FAULT_PENDING},
    {"two copies to one place",
     "cp.async.ca.shared.global [%r2], [%d2], 4; cp.async.ca.shared.global [%r2], [%d2], 4;",
     WPK_KERNEL_FAULT_PENDING},
    {"copies behind the end of shared memory", "cp.async.ca.shared.global [%r2+4], [%d2], 4;",
     WPK_KERNEL_FAULT_BOUNDS},
    {"reads what was copied",
     "cp.async.ca.shared.global [%r2], [%d2], 4; cp.async.commit_group; cp.async.wait_group 0;\n"
     "bar.sync 0; xor.b32 %r5, %r2, 128; ld.shared.u32 %r4, [%r5];",
     WPK_KERNEL_FAULT_NONE},
    {"copies from behind the end", "cp.async.ca.shared.global [%r2], [%d2+4], 4;",
     WPK_KERNEL_FAULT_BOUNDS},
    {"half of a warp is at another barrier",
     "setp.lt.u32 %p1, %r1, 16; @%p1 bra E; bar.sync 0; bra F; E: bar.sync 0; F:",
     WPK_KERNEL_FAULT_BARRIER},
    {"half of a warp is at a barrier, half at a shuffle",
     "setp.lt.u32 %p1, %r1, 16; @%p1 bra E; bar.sync 0; bra F;\n"
     "E: shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1; F:",
     WPK_KERNEL_FAULT_SHUFFLE},
    {"lanes meet before the block that some came by",
     "setp.lt.u32 %p1, %r1, 16; @%p1 bra SLOW; BACK: bar.sync 0; exit; SLOW: mov.u32 %r4, 1;\n"
     "bra BACK;",
     WPK_KERNEL_FAULT_NONE},
    {"half of a warp ends, half is at the barrier",
     "setp.lt.u32 %p1, %r1, 16; @%p1 exit; bar.sync 0;", WPK_KERNEL_FAULT_NONE},
    {"a shuffle orders no memory",
     "st.shared.u32 [%r2], %r1; shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1; xor.b32 %r5, %r2, 4;\n"
     "ld.shared.u32 %r4, [%r5];",
     WPK_KERNEL_FAULT_RACE},
    {"half of a warp synchronises",
     "st.shared.u32 [%r2], %r1; setp.lt.u32 %p1, %r1, 16; @%p1 bra E; bra F;\n"
     "E: bar.warp.sync 0xffff; F: xor.b32 %r5, %r2, 4; ld.shared.u32 %r4, [%r5];",
     WPK_KERNEL_FAULT_RACE},
    {"a shuffle reads what was never written",
     FIRST "@%p1 mov.u32 %r4, 1; shfl.sync.idx.b32 %r5, %r4, 1, 31, -1; st.global.u32 [%d2], %r5;",
     WPK_KERNEL_FAULT_UNDEFINED},
    {"a shuffle of the one lane that was written",
     "and.b32 %r5, %r1, 31; setp.eq.u32 %p1, %r5, 0; @%p1 mov.u32 %r4, 1;\n"
     "shfl.sync.idx.b32 %r5, %r4, 0, 31, -1; st.global.u32 [%d2], %r5;",
     WPK_KERNEL_FAULT_NONE},
    {"a choice of what was written",
     FIRST "@%p1 mov.u32 %r4, 1; selp.b32 %r5, %r4, 0, %p1; st.global.u32 [%d2], %r5;",
     WPK_KERNEL_FAULT_NONE},
    {"a choice of what was never written",
     FIRST "@%p1 mov.u32 %r4, 1; selp.b32 %r5, 0, %r4, %p1; st.global.u32 [%d2], %r5;",
     WPK_KERNEL_FAULT_UNDEFINED},
    {"one warp has ended", "setp.lt.u32 %p1, %r1, 32; @%p1 exit; bar.sync 0;",
     WPK_KERNEL_FAULT_NONE},
    {"warps at two barriers",
     "setp.lt.u32 %p1, %r1, 32; @%p1 bra E; bar.sync 1; bra F; E: bar.sync 2; F:",
     WPK_KERNEL_FAULT_BARRIER},
    {"halves of a warp shuffle apart",
     "setp.lt.u32 %p1, %r1, 16; selp.b32 %r5, 0xffff, 0xffff0000, %p1;\n"
     "and.b32 %r6, %r1, 31; setp.lt.u32 %p2, %r6, 16; selp.b32 %r5, 0xffff, 0xffff0000, %p2;\n"
     "shfl.sync.bfly.b32 %r4, %r1, 1, 31, %r5;",
     WPK_KERNEL_FAULT_NONE},
    {"a shuffle that half of a warp comes by",
     "setp.lt.u32 %p1, %r1, 16; @%p1 shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;",
     WPK_KERNEL_FAULT_SHUFFLE},
    {"a shuffle of the half of a warp that comes by",
     "setp.lt.u32 %p1, %r1, 16; @%p1 shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xffff;",
     WPK_KERNEL_FAULT_NONE},
    {"a shuffle that does not name itself", "shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xfffffffe;",
     WPK_KERNEL_FAULT_SHUFFLE},
    {"a shuffle reads a lane that has ended",
     "setp.lt.u32 %p1, %r1, 16; @%p1 exit; shfl.sync.idx.b32 %r4, %r1, 3, 31, 0xffff0000;\n"
     "st.global.u32 [%d2], %r4;",
     WPK_KERNEL_FAULT_UNDEFINED},
    {"a trap", FIRST "@%p1 trap;", WPK_KERNEL_FAULT_TRAP},
    {"no end, and a branch to it",
     "setp.lt.u32 %p1, %r1, 9; @%p1 bra E; bar.warp.sync -1; E: }\n.entry j() {\n",
     WPK_KERNEL_FAULT_NONE},
    {"others end behind a barrier",
     "setp.lt.u32 %p1, %r1, 16; @%p1 bra E; bar.sync 0; bra F; F: exit; E:", WPK_KERNEL_FAULT_NONE},
    {"others end behind a shuffle",
     "setp.lt.u32 %p1, %r1, 16; @%p1 bra E; shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1; exit; E:",
     WPK_KERNEL_FAULT_NONE},
    {"a barrier of an unknown number", "bar.sync %r9;", WPK_KERNEL_FAULT_UNDEFINED},
    {"a shuffle by an unknown number",
     "shfl.sync.idx.b32 %r4, %r1, %r9, 31, -1; st.global.u32 [%d2], %r4;",
     WPK_KERNEL_FAULT_UNDEFINED},
    {"a sum of half a warp",
     "and.b32 %r6, %r1, 31; setp.ge.u32 %p1, %r6, 16; @%p1 exit;\n"
     "shfl.sync.down.b32 %r4, %r1, 8, 31, 0xffff; add.u32 %r4, %r4, %r1;\n"
     "setp.eq.u32 %p1, %r6, 0; @%p1 st.global.u32 [%d2], %r4;",
     WPK_KERNEL_FAULT_NONE},
    {"a copy of what is left, and zeros",
     "setp.eq.u32 %p1, %r1, 63; mov.u32 %r5, 0; @%p1 mov.u32 %r5, 4; @%p1 shl.b32 %r6, %r1, 0;\n"
     "and.b32 %r6, %r1, 15; shl.b32 %r6, %r6, 4; mov.u32 %r7, s; add.u32 %r7, %r7, %r6;\n"
     "@%p1 add.s64 %d2, %d2, 0; and.b64 %d3, %d2, -16; setp.lt.u32 %p2, %r1, 16;\n"
     "@%p2 cp.async.cg.shared.global [%r7], [%d3], 16, %r5;",
     WPK_KERNEL_FAULT_NONE},
    {"a copy of more than it copies",
     "mov.u32 %r5, 8; cp.async.ca.shared.global [%r2], [%d2], 4, %r5;", WPK_KERNEL_FAULT_BOUNDS},
    {"a copy of an unknown size", "cp.async.ca.shared.global [%r2], [%d2], 4, %r9;",
     WPK_KERNEL_FAULT_UNDEFINED},
    {"one lane waits for all",
     "cp.async.ca.shared.global [%r2], [%d2], 4; cp.async.commit_group; and.b32 %r5, %r1, 31;\n"
     "setp.eq.u32 %p1, %r5, 0; @%p1 cp.async.wait_group 0; ld.shared.u32 %r4, [%r2];",
     WPK_KERNEL_FAULT_PENDING},
    {"each half of a warp has one group under way",
     "setp.lt.u32 %p1, %r1, 16; @%p1 bra E; cp.async.ca.shared.global [%r2], [%d2], 4;\n"
     "cp.async.commit_group; bra F; E: cp.async.ca.shared.global [%r2], [%d2], 4;\n"
     "cp.async.commit_group; F: cp.async.wait_group 1; ld.shared.u32 %r4, [%r2];",
     WPK_KERNEL_FAULT_PENDING},
    {"a negative base and an offset", "add.s32 %r4, %r2, -128; st.shared.u32 [%r4+128], %r1;",
     WPK_KERNEL_FAULT_NONE},
    {"stores, passes a fence, and counts",
     "setp.ne.u32 %p1, %r1, 0; @%p1 st.global.u32 [%d2], %r1; fence.acq_rel.gpu; bar.sync 0;\n"
     "@%p1 exit;\n"
     "mov.u64 %d3, %d1; mov.u32 %r6, 1; atom.global.inc.u32 %r4, [%d3], %r6;",
     WPK_KERNEL_FAULT_NONE},
    {"counts without a fence",
     "st.global.u32 [%d2], %r1; bar.sync 0; mov.u32 %r6, 1; atom.global.inc.u32 %r4, [%d1], %r6;",
     WPK_KERNEL_FAULT_UNPUBLISHED},
    {"counts without a barrier",
     "st.global.u32 [%d2], %r1; membar.gl; mov.u32 %r6, 1; atom.global.inc.u32 %r4, [%d1], %r6;",
     WPK_KERNEL_FAULT_UNPUBLISHED},
    {"blocks store the same", "st.global.u32 [%d2], %r1;", WPK_KERNEL_FAULT_NONE},
    {"blocks store their own numbers", "mov.u32 %r4, %ctaid.x; st.global.u32 [%d2], %r4;",
     WPK_KERNEL_FAULT_BLOCKS},
    {"a block reads what another one stored", "ld.global.u32 %r4, [%d2]; st.global.u32 [%d2], %r4;",
     WPK_KERNEL_FAULT_BLOCKS},
    {"a block stores what another one read",
     "mov.u32 %r5, %ctaid.x; setp.ne.u32 %p1, %r5, 0; @%p1 st.global.u32 [%d2], %r5;\n"
     "ld.global.u32 %r4, [%d1];",
     WPK_KERNEL_FAULT_BLOCKS},
    {"never ends", "L: bra L;", WPK_KERNEL_FAULT_HANG},
};

static void test_planted_bugs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
        struct ptx_module s;
        set_up(&s, SHARED_HEAD, bugs[i].text, TAIL);
        uint32_t *y = allocate(&s, 64 * sizeof(*y));
        const uint64_t parameters[] = {(uint64_t)(uintptr_t)y};
        struct wpk_kernel_fault_report report = launch(&s, "k", 2, 1, 64, parameters, NULL);
        if (report.fault == WPK_KERNEL_FAULT_NONE) { /* readers are noted of what kernels store */
            report = launch(&s, "k", 2, 1, 64, parameters, NULL);
        }
        if (report.fault != bugs[i].expected) {
            fail_msg("%s: %s, thread %d, line %d", bugs[i].name,
                     wpk_kernel_fault_text(report.fault), report.thread, report.line);
        }
        tear_down(&s);
    }
}

/* A kernel may read bytes that the host, it or a launch before wrote, and no others. */
static void test_never_written(void **state)
{
    (void)state;
    struct ptx_module s;
    uint64_t y = 0;
    set_up(&s, SHARED_HEAD,
           "ld.global.u8 %r4, [%d2]; setp.ne.u32 %p1, %r1, 63; @%p1 st.global.u32 [%d2], %r1;",
           TAIL);
    assert_int_equal(wpk_device_memory_new(&s.memory, 256, &y), WPK_OK);
    assert_int_equal(launch(&s, "k", 1, 1, 64, &y, NULL).fault, WPK_KERNEL_FAULT_UNWRITTEN);
    wpk_device_memory_store(&s.memory, y, 252);
    struct wpk_kernel_fault_report report = launch(&s, "k", 1, 1, 64, &y, NULL);
    assert_int_equal(report.fault, WPK_KERNEL_FAULT_UNWRITTEN);
    assert_int_equal(report.thread, 63);
    wpk_device_memory_store(&s.memory, y + 252, 1);
    assert_int_equal(launch(&s, "k", 1, 1, 64, &y, NULL).fault, WPK_KERNEL_FAULT_NONE);
    assert_int_equal(launch(&s, "k", 1, 1, 64, &y, NULL).fault, WPK_KERNEL_FAULT_NONE);
    tear_down(&s);
}

/* A fault says where it was. */
static void test_report(void **state)
{
    (void)state;
    struct ptx_module s;
    set_up(&s, THREADS_HEAD, "st.global.u32 [%d2], %r1;", TAIL);
    uint32_t *y = allocate(&s, 40 * sizeof(*y));
    const uint64_t parameters[] = {(uint64_t)(uintptr_t)y};
    struct wpk_kernel_fault_report report = launch(&s, "k", 1, 1, 64, parameters, NULL);
    assert_int_equal(report.fault, WPK_KERNEL_FAULT_BOUNDS);
    assert_int_equal(report.thread, 40);
    assert_int_equal(report.line, 14);
    assert_int_equal(report.address, (uint64_t)(uintptr_t)(y + 40));
    assert_int_equal(wpk_device_memory_free(&s.memory, parameters[0]), WPK_OK);
    report = launch(&s, "k", 1, 1, 32, parameters, NULL);
    assert_int_equal(report.fault, WPK_KERNEL_FAULT_BOUNDS); /* it was freed */
    assert_int_equal(report.thread, 0);
    tear_down(&s);
}

/* ---- what is counted */

static const struct {
    const char *text;
    uint64_t wavefronts, sectors;
} counted[] = {
    {"st.shared.u32 [%r2], %r1;", 2, 0},
    {"shl.b32 %r4, %r1, 5; and.b32 %r4, %r4, 255; mov.u32 %r5, s; add.u32 %r4, %r4, %r5;\n"
     "mov.u32 %r6, 0; setp.lt.u32 %p1, %r1, 8; @%p1 st.shared.u32 [%r4], %r6;",
     2, 0},                                                    /* eight lanes in four banks */
    {"st.shared.u32 [%r2], %r1; bar.sync 0; mov.u32 %r5, s;\n" /* the same word for all */
     "ld.shared.u32 %r4, [%r5];",
     4, 0},
    {"and.b32 %r4, %r3, 15; sub.u32 %r4, %r2, %r4; mov.u32 %r6, 0; setp.eq.u32 %p1, %r3, 0;\n"
     "@%p1 st.shared.v4.u32 [%r4], {%r6,%r6,%r6,%r6};",
     1, 0},
    {"ld.global.u32 %r4, [%d2];", 0, 8},
    {"ld.global.u32 %r4, [%d1];", 0, 2},
    {"shr.u32 %r4, %r1, 3; mul.wide.u32 %d3, %r4, 32; add.s64 %d3, %d3, %d1;\n"
     "ld.global.u32 %r4, [%d3];",
     0, 8},
};

static void test_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
        struct ptx_module s;
        struct wpk_launch_counts counts = {0};
        set_up(&s, SHARED_HEAD, counted[i].text, TAIL);
        uint32_t *y = allocate(&s, 64 * sizeof(*y));
        const uint64_t parameters[] = {(uint64_t)(uintptr_t)y};
        struct wpk_kernel_fault_report report = launch(&s, "k", 1, 1, 64, parameters, &counts);
        assert_string_equal(wpk_kernel_fault_text(report.fault),
                            wpk_kernel_fault_text(WPK_KERNEL_FAULT_NONE));
        if (counts.shared_wavefronts != counted[i].wavefronts ||
            counts.global_sectors != counted[i].sectors) {
            fail_msg("%s: %llu wavefronts, %llu sectors", counted[i].text,
                     (unsigned long long)counts.shared_wavefronts,
                     (unsigned long long)counts.global_sectors);
        }
        tear_down(&s);
    }
}

/* ---- kernels */

static const char *kernels = "tests/gpu/testdata/kernels.ptx"; /* or the first argument */

static void set_up_kernels(struct ptx_module *s)
{
    struct wpk_buf text = {0};
    assert_int_equal(wpk_fs_read(kernels, 1 << 20, &text, NULL), WPK_OK);
    set_up(s, wpk_buf_text(&text), "", "");
    wpk_buf_fini(&text);
}

static float number(int i)
{
    return (float)((i * 7919 + 13) % 101 - 50) / 16;
}

static void test_softmax(void **state)
{
    (void)state;
    enum { ROWS = 3, COLUMNS = 200 };
    struct ptx_module s;
    set_up_kernels(&s);
    float *x = allocate(&s, ROWS * COLUMNS * sizeof(*x));
    float *y = allocate(&s, ROWS * COLUMNS * sizeof(*y));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        x[i] = number(i);
    }
    const uint64_t parameters[] = {(uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)y, COLUMNS};
    struct wpk_kernel_fault_report report = launch(&s, "softmax", ROWS, 1, 96, parameters, NULL);
    assert_string_equal(wpk_kernel_fault_text(report.fault),
                        wpk_kernel_fault_text(WPK_KERNEL_FAULT_NONE));
    for (int row = 0; row < ROWS; row++) {
        double most = -INFINITY, sum = 0;
        for (int i = 0; i < COLUMNS; i++) {
            most = fmax(most, x[row * COLUMNS + i]);
        }
        for (int i = 0; i < COLUMNS; i++) {
            sum += exp(x[row * COLUMNS + i] - most);
        }
        for (int i = 0; i < COLUMNS; i++) {
            double expected = exp(x[row * COLUMNS + i] - most) / sum;
            assert_true(fabs(y[row * COLUMNS + i] - expected) <= 1e-6 * expected);
        }
    }
    tear_down(&s);
}

static void test_product(void **state)
{
    (void)state;
    enum { N = 64 };
    struct ptx_module s;
    struct wpk_launch_counts counts = {0};
    set_up_kernels(&s);
    float *a = allocate(&s, sizeof(float[N][N])), *b = allocate(&s, sizeof(float[N][N]));
    float *c = allocate(&s, sizeof(float[N][N]));
    for (int i = 0; i < N * N; i++) {
        a[i] = number(i);
        b[i] = number(3 * i + 1);
    }
    const struct {
        uint64_t a, b, c;
        int n;
    } parameters = {(uint64_t)(uintptr_t)a, (uint64_t)(uintptr_t)b, (uint64_t)(uintptr_t)c, N};
    struct wpk_kernel_fault_report report =
        launch(&s, "product", N / 32, N / 32, 64, &parameters, &counts);
    assert_string_equal(wpk_kernel_fault_text(report.fault),
                        wpk_kernel_fault_text(WPK_KERNEL_FAULT_NONE));
    assert_true(counts.thread_instructions > (uint64_t)N * N * N);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            float sum = 0; /* all products are multiples of 1/256: exact */
            for (int k = 0; k < N; k++) {
                sum += a[i * N + k] * b[k * N + j];
            }
            assert_true(c[i * N + j] == sum);
        }
    }
    tear_down(&s);
}

static void check_functions(const float *x, const int *divisor, const float *y, const double *wide,
                            int i)
{
    double v = x[i], value = pow(v, i % 8) + tanh(v) + erf(v) + 1 / sqrt(fabs(v) + 1);
    for (int step = 0; step < i % 5; step++) {
        value += pow(fabs(v) + step, 1.5) + sin(v);
    }
    value += i / divisor[i] + i % divisor[i] + log(2 + v * v);
    assert_true(fabs(y[i] - value) <= 2e-5 * fmax(1, fabs(value)));
    double expected = exp(v) + sqrt(i);
    assert_true(wide[i] == expected || fabs(wide[i] - expected) <= 1e-14 * expected);
}

static void test_functions(void **state)
{
    (void)state;
    enum { N = 75 };
    struct ptx_module s;
    set_up_kernels(&s);
    float *x = allocate(&s, N * sizeof(*x)), *y = allocate(&s, N * sizeof(*y));
    int *divisor = allocate(&s, N * sizeof(*divisor));
    double *wide = allocate(&s, N * sizeof(*wide));
    uint8_t *bytes = allocate(&s, N);
    for (int i = 0; i < N; i++) {
        x[i] = i == 8 ? 123456.0F : number(i);
        divisor[i] = i % 13 - 20;
    }
    const struct {
        uint64_t pointer[5];
        int n;
    } parameters = {{(uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)divisor, (uint64_t)(uintptr_t)y,
                     (uint64_t)(uintptr_t)wide, (uint64_t)(uintptr_t)bytes},
                    N};
    struct wpk_kernel_fault_report report = launch(&s, "functions", 3, 1, 32, &parameters, NULL);
    if (report.fault != WPK_KERNEL_FAULT_NONE) {
        fail_msg("%s: thread %d, line %d", wpk_kernel_fault_text(report.fault), report.thread,
                 report.line);
    }
    for (int i = 0; i < N; i++) {
        check_functions(x, divisor, y, wide, i);
        assert_int_equal(bytes[i], (uint8_t)(i * 3 >> 1));
    }
    tear_down(&s);
}

static void test_sizes(void **state)
{
    (void)state;
    struct ptx_module s;
    struct wpk_launch_counts counts = {0};
    struct wpk_kernel_fault_report report = {0};
    set_up(&s, HEAD, ".entry k()\n.maxntid 64, 1, 1\n{", TAIL);
    static const struct {
        uint32_t grid, block, shared;
        wpk_err expected;
    } cases[] = {{1, 64, 0, WPK_OK},
                 {1, 65, 0, WPK_EINVAL},
                 {0, 64, 0, WPK_EINVAL},
                 {1, 0, 0, WPK_EINVAL},
                 {1, 32, WPK_LAUNCH_SHARED_MAX, WPK_OK},
                 {1, 32, WPK_LAUNCH_SHARED_MAX + 1, WPK_EINVAL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wpk_launch one = {.ptx = &s.ptx,
                                       .entry = &s.ptx.entry[0],
                                       .grid = {cases[i].grid, 1, 1},
                                       .block = {cases[i].block, 1, 1},
                                       .shared_size = cases[i].shared,
                                       .memory = &s.memory};
        assert_int_equal(wpk_launch_run(&one, &counts, &report), cases[i].expected);
    }
    tear_down(&s);
}

int main(int argc, char **argv)
{
    kernels = argc > 1 ? argv[1] : kernels;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_bugs), cmocka_unit_test(test_never_written),
        cmocka_unit_test(test_report),       cmocka_unit_test(test_counts),
        cmocka_unit_test(test_softmax),      cmocka_unit_test(test_product),
        cmocka_unit_test(test_functions),    cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
