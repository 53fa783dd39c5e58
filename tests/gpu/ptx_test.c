/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/ptx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static void test_modules(void **state)
{
    (void)state;
    struct wpk_ptx ptx;
    struct wpk_diag diag = {0};
    const char *text = HEAD "// a comment\n.global .align 4 .b32 table[3] = {1, 2, 0x10};\n"
                            ".visible .entry one(\n.param .u32 n,\n.param .u64 .ptr .global .align "
                            "16 p,\n.param .align 8 .b8 s[12]\n)\n"
                            ".maxntid 8, 4, 1\n.minnctapersm 2\n{\n.reg .b32 %r<3>, %single;\n"
                            ".shared .align 16 .b8 tile[40];\n.local .align 8 .b8 spill[20];\n"
                            ".loc 1 2 3\nmov.u32 %r1, %tid.x;\nLOOP:\nbra.uni LOOP;\n}\n"
                            ".entry two()\n{\n.reg .b64 %r<2>;\nmov.u64 %r1, table;\nret;\n}\n";
    assert_int_equal(wpk_ptx_parse(text, &ptx, &diag), WPK_OK);
    assert_int_equal(ptx.entry_count, 2);
    const struct wpk_ptx_entry *one = wpk_ptx_find(&ptx, "one");
    assert_int_equal(one->parameter_count, 3);
    assert_int_equal(one->parameter[1].offset, 8);
    assert_int_equal(one->parameter[2].offset, 16);
    assert_int_equal(one->parameter_size, 28);
    assert_int_equal(one->threads_max, 32);
    assert_int_equal(one->shared_size, 40);
    assert_int_equal(one->local_size, 32);
    assert_int_equal(one->instruction_count, 3); /* an end is added */
    assert_int_equal(one->instruction[1].target, 1);
    assert_int_equal(one->instruction[0].line, 18);
    assert_int_equal(wpk_ptx_find(&ptx, "two")->shared_size, 0);
    assert_int_equal(((const int32_t *)ptx.tables)[2], 16);
    assert_null(wpk_ptx_find(&ptx, "three"));
    wpk_ptx_fini(&ptx);
    wpk_ptx_fini(&ptx);
}

#define BODY(text)                                                                                 \
    HEAD                                                                                           \
        ".entry k(.param .u64 p)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n" text \
        "\nret;\n}\n"

static const struct {
    const char *text;
    wpk_err err;
    int line;
    const char *said;
} refused[] = {
    {BODY("tex.2d.v4.f32.s32 {%r1,%r1,%r1,%r1}, [%d1];"), WPK_EUNSUPPORTED, 9, "tex.2d"},
    {BODY("add.sat.s32 %r1, %r1, %r2;"), WPK_EUNSUPPORTED, 9, "add.sat"},
    {BODY("setp.lt.and.s32 %p1, %r1, %r2, %p0;"), WPK_EUNSUPPORTED, 9, "setp.lt.and"},
    {BODY("add.u32 %r1, %r2, %r9;"), WPK_EPARSE, 9, "unknown operand at '%r9'"},
    {BODY("add.u32 %r1, %r2, %d1;"), WPK_EPARSE, 9, "another size"},
    {BODY("add.u32 %r1, %r2;"), WPK_EPARSE, 9, "expected ','"},
    {BODY("add.u32 %r1, %r2, 1, 2;"), WPK_EPARSE, 9, "expected ';'"},
    {BODY("add.f32 %r1, %r2, 0d3FF0000000000000;"), WPK_EPARSE, 9, "unknown operand"},
    {BODY("bra NOWHERE;"), WPK_EPARSE, 9, "NOWHERE is nowhere"},
    {BODY("L: L: ret;"), WPK_EPARSE, 9, "L is there twice"},
    {BODY("@%r1 ret;"), WPK_EPARSE, 9, "no predicate"},
    {BODY("ld.param.u64 %d1, [q];"), WPK_EPARSE, 9, "unknown parameter"},
    {BODY("ld.param.u64 %d1, [p+4];"), WPK_EPARSE, 9, "outside"},
    {BODY("ld.param.u64 %d1, [p+-8];"), WPK_EPARSE, 9, "outside"},
    {BODY("cp.async.ca.shared.global [%r1], [%d1], 5;"), WPK_EPARSE, 9, "4, 8 or 16"},
    {BODY("bar.sync 0, 64;"), WPK_EPARSE, 9, "expected ';'"},
    {HEAD ".entry k()\n{\nret;\n", WPK_EPARSE, 7, "ends within"},
    {HEAD ".func f()\n{\nret;\n}\n", WPK_EUNSUPPORTED, 4, ".func"},
    {HEAD ".entry k()\n{\n.reg .b32 %r<99999999>;\nret;\n}\n", WPK_EUNSUPPORTED, 6, "registers"},
    {HEAD ".global .b8 t[2] = {1, 2, 3};\n", WPK_EPARSE, 4, "value '3'"},
    {HEAD ".shared .b8 t[99999999999];\n", WPK_EPARSE, 4, "no possible size"},
    {HEAD ".entry k()\n{\n.reg .b32 %r<-4261412864>;\nret;\n}\n", WPK_EUNSUPPORTED, 6, "registers"},
    {HEAD ".shared .b8 t[300000];\n", WPK_EUNSUPPORTED, 4, "too much shared"},
    {HEAD ".entry k()\n{\n.local .b8 t[90000];\nret;\n}\n", WPK_EUNSUPPORTED, 6, "too much local"},
    {BODY("add.s32. %r1, %r1, %r1;"), WPK_EUNSUPPORTED, 9, "add.s32."},
    {BODY("add.v2.s32 %r1, %r1, %r1;"), WPK_EUNSUPPORTED, 9, "add.v2"},
    {BODY("add.s32.f32 %r1, %r1, %r1;"), WPK_EUNSUPPORTED, 9, "add.s32.f32"},
    {BODY("cvt.f32 %r1, %p1;"), WPK_EUNSUPPORTED, 9, "cvt.f32"},
    {BODY("ld.global.pred %p1, [%d1];"), WPK_EUNSUPPORTED, 9, "ld.global.pred"},
    {BODY("st.param.u64 [p], %d1;"), WPK_EUNSUPPORTED, 9, "st.param"},
    {BODY("add.s32 5, %r1, %r2;"), WPK_EPARSE, 9, "may be written"},
    {BODY("mov.u32 %tid.x, 3;"), WPK_EPARSE, 9, "may be written"},
    {BODY("mov.b64 {%r1, %r2}, {%r1, %d1};"), WPK_EPARSE, 9, "unknown operand"},
    {BODY("mov.b64 {%r1, %d2}, %d1;"), WPK_EPARSE, 9, "another size"},
    {BODY("ld.global.u32 %r1, [%d1+4294967296];"), WPK_EPARSE, 9, "too large"},
    {BODY("ld.param.u64 %d1, [p+9223372036854775807];"), WPK_EPARSE, 9, "too large"},
    {BODY("cp.async.wait_group -1;"), WPK_EPARSE, 9, "number of groups"},
    {BODY("cp.async.ca.shared.global [%r1], [%d1], 260;"), WPK_EPARSE, 9, "4, 8 or 16"},
    {"nonsense", WPK_EUNSUPPORTED, 1, "nonsense"},
};

static void test_what_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct wpk_ptx ptx = {0};
        struct wpk_diag diag = {0};
        wpk_err err = wpk_ptx_parse(refused[i].text, &ptx, &diag);
        if (err != refused[i].err || diag.line != refused[i].line ||
            strstr(diag.text, refused[i].said) == NULL) {
            fail_msg("%s: %s, line %d: %s", refused[i].text, wpk_err_name(err), diag.line,
                     diag.text);
        }
        wpk_ptx_fini(&ptx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
