/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions give what the ISA says, for one thread and for the lanes of a warp. */
#include "tests/gpu/operation.h"

#include "tests/ptx_module.h"

/* ---- single instructions */

#define F(x)                                                                                       \
    ((union {                                                                                      \
         float f;                                                                                  \
         uint32_t u;                                                                               \
     }){.f = (x)}                                                                                  \
         .u)
#define D(x)                                                                                       \
    ((union {                                                                                      \
         double d;                                                                                 \
         uint64_t u;                                                                               \
     }){.d = (x)}                                                                                  \
         .u)
#define NAN_32 0x7fc00000

/* a, b, c are in %d1 …, %r1 …, %h1 …; `result` says of which kind the result 0 is. */
static const struct {
    const char *text;
    char result;
    uint64_t a, b, c, expected;
} rows[] = {
    {"add.u32 %r0, %r1, %r2;", 'r', UINT32_MAX, 2, 0, 1},
    {"sub.s16 %h0, %h1, %h2;", 'h', 1, 2, 0, 0xffff},
    {"add.s64 %d0, %d1, -5;", 'd', 3, 0, 0, (uint64_t)-2},
    {"mul.lo.s32 %r0, %r1, %r2;", 'r', 0x10001, 0x10001, 0, 0x20001},
    {"mul.hi.s32 %r0, %r1, %r2;", 'r', (uint32_t)-2, 3, 0, UINT32_MAX},
    {"mul.hi.u32 %r0, %r1, %r2;", 'r', (uint32_t)-2, 3, 0, 2},
    {"mul.hi.u64 %d0, %d1, %d2;", 'd', UINT64_MAX, 16, 0, 15},
    {"mul.wide.s32 %d0, %r1, %r2;", 'd', (uint32_t)-2, 3, 0, (uint64_t)-6},
    {"mul.wide.u16 %r0, %h1, %h2;", 'r', 0xffff, 0xffff, 0, 0xfffe0001},
    {"mad.lo.s32 %r0, %r1, %r2, %r3;", 'r', 7, (uint32_t)-3, 1, (uint32_t)-20},
    {"mad.wide.u32 %d0, %r1, %r2, %d3;", 'd', UINT32_MAX, 2, 5, 0x200000003},
    {"div.s32 %r0, %r1, %r2;", 'r', (uint32_t)-7, 2, 0, (uint32_t)-3},
    {"div.s32 %r0, %r1, %r2;", 'r', 0x80000000, (uint32_t)-1, 0, 0x80000000},
    {"rem.s32 %r0, %r1, %r2;", 'r', (uint32_t)-7, 2, 0, (uint32_t)-1},
    {"div.u32 %r0, %r1, %r2;", 'r', 7, 0, 0, UINT32_MAX},
    {"min.s32 %r0, %r1, %r2;", 'r', (uint32_t)-7, 2, 0, (uint32_t)-7},
    {"min.u32 %r0, %r1, %r2;", 'r', (uint32_t)-7, 2, 0, 2},
    {"abs.s32 %r0, %r1;", 'r', (uint32_t)-7, 0, 0, 7},
    {"shl.b32 %r0, %r1, %r2;", 'r', 3, 31, 0, 0x80000000},
    {"shl.b32 %r0, %r1, %r2;", 'r', 3, 33, 0, 0},
    {"shr.s32 %r0, %r1, %r2;", 'r', 0x80000000, 40, 0, UINT32_MAX},
    {"shr.u64 %d0, %d1, %r2;", 'd', (uint64_t)1 << 40, 39, 0, 2},
    {"bfe.u32 %r0, %r1, 4, 8;", 'r', 0x12345678, 0, 0, 0x67},
    {"bfe.s32 %r0, %r1, 4, 4;", 'r', 0x000000f0, 0, 0, UINT32_MAX},
    {"bfe.s32 %r0, %r1, 28, 8;", 'r', 0x80000000, 0, 0, 0xfffffff8},
    {"bfi.b32 %r0, %r1, %r2, 8, 4;", 'r', 0xab, 0xffffffff, 0, 0xfffffbff},
    {"bfi.b64 %d0, %d1, %d2, 32, 32;", 'd', 0xab, 1, 0, 0xab00000001},
    {"prmt.b32 %r0, %r1, %r2, 0x4561;", 'r', 0x33221100, 0x77665544, 0, 0x44556611},
    {"prmt.b32 %r0, %r1, %r2, 0x8888;", 'r', 0x80, 0, 0, UINT32_MAX},
    {"dp2a.lo.u32.u32 %r0, %r1, %r2, %r3;", 'r', 0x00030002, 0xff00ff05, 7, 0x30e},
    {"dp2a.hi.s32.s32 %r0, %r1, %r2, %r3;", 'r', 0x0003fffe, 0xff05ff00, 7, (uint32_t)-6},
    {"dp4a.u32.s32 %r0, %r1, %r2, %r3;", 'r', 0xff010203, 0xff010203, 1, (uint32_t)-240},
    {"brev.b32 %r0, %r1;", 'r', 1, 0, 0, 0x80000000},
    {"popc.b64 %r0, %d1;", 'r', UINT64_MAX, 0, 0, 64},
    {"clz.b32 %r0, %r1;", 'r', 0, 0, 0, 32},
    {"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", 'r', 0xf0, 0xcc, 0xaa, 0x96},
    {"shf.l.wrap.b32 %r0, %r1, %r2, 8;", 'r', 0xab000000, 0x12345678, 0, 0x345678ab},
    {"shf.r.clamp.b32 %r0, %r1, %r2, 40;", 'r', 1, 2, 0, 2},
    {"add.f32 %r0, %r1, %r2;", 'r', 0x3fc00000, 0xbe800000, 0, 0x3fa00000},
    {"add.rz.f32 %r0, %r1, %r2;", 'r', 0x3f800000, 0x33c00000, 0, 0x3f800000},
    {"add.rp.f32 %r0, %r1, %r2;", 'r', 0x3f800000, 0x30800000, 0, 0x3f800001},
    {"fma.rn.f32 %r0, %r1, %r2, %r3;", 'r', 0x3f800800, 0x3f800800, 0xbf801000, 0x33800000},
    {"fma.rm.f32 %r0, %r1, %r2, %r3;", 'r', 0x3f800000, 0xb0800000, 0x3f800000, 0x3f7fffff},
    {"div.rn.f64 %d0, %d1, %d2;", 'd', 0x3ff0000000000000, 0x4008000000000000, 0,
     0x3fd5555555555555},
    {"max.f32 %r0, %r1, %r2;", 'r', NAN_32, 0x40000000, 0, 0x40000000},
    {"max.NaN.f32 %r0, %r1, %r2;", 'r', NAN_32, 0x40000000, 0, NAN_32},
    {"copysign.f32 %r0, %r1, %r2;", 'r', 0x80000000, 0x40000000, 0, 0xc0000000},
    {"ex2.approx.ftz.f32 %r0, %r1;", 'r', 0x40400000, 0, 0, 0x41000000},
    {"sqrt.rn.f32 %r0, %r1;", 'r', 0x40000000, 0, 0, 0x3fb504f3},
    {"rcp.approx.ftz.f32 %r0, %r1;", 'r', 0x40800000, 0, 0, 0x3e800000},
    {"cvt.rzi.s32.f32 %r0, %r1;", 'r', 0xbfe00000, 0, 0, (uint32_t)-1},
    {"cvt.rni.s32.f32 %r0, %r1;", 'r', 0x40200000, 0, 0, 2},
    {"cvt.rzi.u32.f32 %r0, %r1;", 'r', 0xc0400000, 0, 0, 0},
    {"cvt.rzi.s32.f32 %r0, %r1;", 'r', 0x60ad78ec, 0, 0, INT32_MAX},
    {"cvt.rzi.s64.f64 %d0, %d1;", 'd', 0xc6293e5939a08cea, 0, 0, (uint64_t)INT64_MIN},
    {"cvt.rzi.s32.f32 %r0, %r1;", 'r', NAN_32, 0, 0, 0},
    {"cvt.rzi.s64.f32 %d0, %r1;", 'd', NAN_32, 0, 0, (uint64_t)1 << 63},
    {"max.f32 %r0, %r1, %r2;", 'r', 0x80000000, 0, 0, 0},
    {"min.f32 %r0, %r1, %r2;", 'r', 0, 0x80000000, 0, 0x80000000},
    {"min.f32 %r0, %r1, %r2;", 'r', NAN_32, 0x40000000, 0, 0x40000000},
    {"mov.b64 {_, %r0}, %d1;", 'r', 0x700000003, 0, 0, 7},
    {"cvt.rn.f32.s32 %r0, %r1;", 'r', (uint32_t)-16777217, 0, 0, 0xcb800000},
    {"cvt.rz.f32.u64 %r0, %d1;", 'r', 16777219, 0, 0, 0x4b800001},
    {"cvt.rn.f32.f64 %r0, %d1;", 'r', 0x3fb999999999999a, 0, 0, 0x3dcccccd},
    {"cvt.f64.f32 %d0, %r1;", 'd', 0x3f000000, 0, 0, 0x3fe0000000000000},
    {"cvt.rpi.f32.f32 %r0, %r1;", 'r', 0x3fa00000, 0, 0, 0x40000000},
    {"cvt.sat.f32.f32 %r0, %r1;", 'r', 0x3fa00000, 0, 0, 0x3f800000},
    {"cvt.s64.s32 %d0, %r1;", 'd', (uint32_t)-3, 0, 0, (uint64_t)-3},
    {"cvt.u64.u32 %d0, %r1;", 'd', (uint32_t)-3, 0, 0, 0xfffffffd},
    {"cvt.s16.s8 %h0, %h1;", 'h', 0x80, 0, 0, 0xff80},
    {"cvt.u16.u32 %h0, %r1;", 'h', 0x12345, 0, 0, 0x2345},
    {"cvt.sat.s16.s32 %h0, %r1;", 'h', (uint32_t)-100000, 0, 0, 0x8000},
    {"setp.lt.s32 %p0, %r1, %r2;", 'p', (uint32_t)-1, 1, 0, 1},
    {"setp.lt.u32 %p0, %r1, %r2;", 'p', (uint32_t)-1, 1, 0, 0},
    {"setp.ne.f32 %p0, %r1, %r2;", 'p', NAN_32, 0x3f800000, 0, 0},
    {"setp.neu.f32 %p0, %r1, %r2;", 'p', NAN_32, 0x3f800000, 0, 1},
    {"setp.ltu.f32 %p0, %r1, %r2;", 'p', NAN_32, 0x3f800000, 0, 1},
    {"setp.nan.f32 %p0, %r1, %r2;", 'p', NAN_32, 0x3f800000, 0, 1},
    {"setp.eq.s16 %p1, %h1, %h2; not.pred %p0, %p1;", 'p', 3, 3, 0, 0},
    {"setp.gt.f64 %p1, %d1, %d2; selp.b32 %r0, %r3, 9, %p1;", 'r', 0x4000000000000000,
     0x3ff0000000000000, 5, 5},
    {"mov.b64 %d0, {%r1, %r2};", 'd', 1, 2, 0, 0x200000001},
    {"mov.b64 {%r4, %r0}, %d1;", 'r', 0x700000003, 0, 0, 7},
    {"mov.b32 {%h4, %h0}, %r1;", 'h', 0x50003, 0, 0, 5},
    {"mov.f32 %r0, 0f3F800000;", 'r', 0, 0, 0, 0x3f800000},
    {"mov.f64 %d0, 0dBFF0000000000000;", 'd', 0, 0, 0, 0xbff0000000000000},
    {"{ .reg .b32 %r1; mov.u32 %r1, 4; mov.u32 %r0, %r1; }", 'r', 9, 0, 0, 4},
    {"ld.param.s8 %h0, [a];", 'h', 0x80, 0, 0, 0xff80},
    {"ld.param.s16 %r0, [a];", 'r', 0x8000, 0, 0, 0xffff8000},
    {"ld.param.u8 %r0, [a];", 'r', 0x180, 0, 0, 0x80},
    {"ld.param.s32 %d0, [a];", 'd', (uint32_t)-3, 0, 0, (uint64_t)-3},
    {"cvt.rn.sat.f32.s32 %r0, %r1;", 'r', 5, 0, 0, 0x3f800000},
    {"mov.u32 %r0, %ctaid.x;", 'r', 0, 0, 0, 0},
    {"@%p7 bra SKIP; mov.u32 %r0, 3; bra.uni SKIP; mov.u32 %r0, 4; SKIP:", 'r', 0, 0, 0, 3},
};

#define VALUES_HEAD                                                                                \
    HEAD ".entry k(.param .u64 y, .param .u64 a, .param .u64 b, .param .u64 c)\n{\n" REGISTERS     \
         "ld.param.u64 %d8, [y];\nld.param.u64 %d1, [a];\nld.param.u64 %d2, [b];\n"                \
         "ld.param.u64 %d3, [c];\nld.param.u32 %r1, [a];\nld.param.u32 %r2, [b];\n"                \
         "ld.param.u32 %r3, [c];\nld.param.u16 %h1, [a];\nld.param.u16 %h2, [b];\n"                \
         "setp.ne.s32 %p7, 0, 0;\n"
#define VALUES_TAIL "st.global.u64 [%d8], %d9;\nret;\n}\n"

static const char *store_of(char result)
{
    switch (result) {
    case 'r':
        return "cvt.u64.u32 %d9, %r0;" VALUES_TAIL;
    case 'h':
        return "cvt.u64.u16 %d9, %h0;" VALUES_TAIL;
    case 'p':
        return "selp.b64 %d9, 1, 0, %p0;" VALUES_TAIL;
    default:
        return "mov.b64 %d9, %d0;" VALUES_TAIL;
    }
}

static void test_instructions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ptx_module s;
        set_up(&s, VALUES_HEAD, rows[i].text, store_of(rows[i].result));
        uint64_t *y = allocate(&s, 8);
        const uint64_t parameters[] = {(uint64_t)(uintptr_t)y, rows[i].a, rows[i].b, rows[i].c};
        struct wpk_kernel_fault_report report = launch(&s, "k", 1, 1, 1, parameters, NULL);
        if (report.fault != WPK_KERNEL_FAULT_NONE || *y != rows[i].expected) {
            fail_msg("%s gives %llx instead of %llx: %s", rows[i].text, (unsigned long long)*y,
                     (unsigned long long)rows[i].expected, wpk_kernel_fault_text(report.fault));
        }
        tear_down(&s);
    }
}

/* ---- lanes of a warp */

/* Bodies that leave a number of each thread in %r0. */
static const struct {
    const char *text;
    uint32_t expected[4]; /* of lanes 0, 1, 30, 31 */
} lanes[] = {
    {"shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1;", {1, 0, 31, 30}},
    {"shfl.sync.down.b32 %r0, %r1, 2, 31, -1;", {2, 3, 30, 31}},
    {"shfl.sync.up.b32 %r0, %r1, 1, 0, -1;", {0, 0, 29, 30}},
    {"shfl.sync.idx.b32 %r0|%p1, %r1, 5, 31, -1;", {5, 5, 5, 5}},
    {"shfl.sync.down.b32 %r2|%p1, %r1, 1, 31, -1; selp.b32 %r0, 1, 0, %p1;", {1, 1, 1, 0}},
    {"shfl.sync.idx.b32 %r0, %r1, 1, 0x181f, -1;", {1, 1, 25, 25}}, /* four segments of eight */
    {"setp.gt.u32 %p1, %r1, 29; vote.sync.ballot.b32 %r0, %p1, -1;",
     {0xc0000000, 0xc0000000, 0xc0000000, 0xc0000000}},
    {"setp.gt.u32 %p1, %r1, 29; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r0, 1, 0, %p2;",
     {1, 1, 1, 1}},
    {"setp.gt.u32 %p1, %r1, 29; vote.sync.all.pred %p2, %p1, -1; selp.b32 %r0, 1, 0, %p2;",
     {0, 0, 0, 0}},
    /* lanes part, and meet again */
    {"setp.gt.u32 %p1, %r1, 29; mov.u32 %r0, 7; @%p1 bra HIGH; add.u32 %r0, %r0, 1; bra DONE;\n"
     "HIGH: add.u32 %r0, %r0, %r1; DONE: activemask.b32 %r3; add.u32 %r0, %r0, %r3;",
     {7, 7, 36, 37}},
    /* each as often as its number says */
    {"mov.u32 %r0, 0; mov.u32 %r2, %r1; LOOP: setp.eq.u32 %p1, %r2, 0; @%p1 bra OUT;\n"
     "add.u32 %r0, %r0, 2; sub.u32 %r2, %r2, 1; bra LOOP; OUT:",
     {0, 2, 60, 62}},
    /* only some end */
    {"mov.u32 %r0, %r1; st.global.u32 [%d2], %r0; setp.lt.u32 %p1, %r1, 16; @%p1 exit;\n"
     "bar.warp.sync 0xffff0000; add.u32 %r0, %r0, 1;",
     {0, 1, 31, 32}},
    {"setp.gt.u32 %p1, %r1, 29; mov.u32 %r0, 1; @%p1 mov.u32 %r0, 2; @!%p1 add.u32 %r0, %r0, 4;",
     {5, 5, 2, 2}},
};

static void test_lanes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
        static const int at[] = {0, 1, 30, 31};
        struct ptx_module s;
        set_up(&s, THREADS_HEAD, lanes[i].text, "\nst.global.u32 [%d2], %r0;\nret;\n}\n");
        uint32_t *y = allocate(&s, WPK_WARP_LANES * sizeof(*y));
        const uint64_t parameters[] = {(uint64_t)(uintptr_t)y};
        struct wpk_kernel_fault_report report = launch(&s, "k", 1, 1, 32, parameters, NULL);
        assert_string_equal(wpk_kernel_fault_text(report.fault),
                            wpk_kernel_fault_text(WPK_KERNEL_FAULT_NONE));
        for (int k = 0; k < 4; k++) {
            if (y[at[k]] != lanes[i].expected[k]) {
                fail_msg("%s: lane %d has %u instead of %u", lanes[i].text, at[k], y[at[k]],
                         lanes[i].expected[k]);
            }
        }
        tear_down(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
