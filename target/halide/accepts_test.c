/* SPDX-License-Identifier: Apache-2.0 */
/* Nests of blocks and threads that Halide's back ends refuse, with the word at fault.
 * tests/halide_cuda.c runs those that it accepts. */
#include "target/halide/halide.h"

#include "target/codegen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define PRODUCT                                                                                    \
    "layout A f32[64,64] 0,1\nlayout B f32[64,64] 0,1\nlayout Y f32[64,64] 0,1\nprogram\n"         \
    "input A f32[64,64]\ninput B f32[64,64]\nintermediate R f32[64,64]\n"                          \
    "intermediate S f32[64,64]\nintermediate T f32[64,64]\noutput Y f32[64,64]\n"                  \
    "R[i,k] = A[i,k]\nS[k,j] = B[k,j]\nT[i,j] = sum.f32(k:64) R[i,k] * S[k,j]\n"                   \
    "Y[i,j] = max(T[i,j], 0)\nend\n"
#define TILES                                                                                      \
    "stage Y root\nblock.y i step 32 exact\nblock.x j step 32 exact\nthread.y i.1 step 4 exact\n"  \
    "thread.x j.1 step 4 exact\nunroll i.2\nunroll j.2\nstage T in Y j\n"
#define SUMS                                                                                       \
    "scope register\nextent i 32 j 32\ninit\nthread.y i step 4 exact\n"                            \
    "thread.x j step 4 exact\nunroll i.1\nunroll j.1\n"
#define TERMS                                                                                      \
    "thread.y i step 4 exact\nthread.x j step 4 exact\nserial k.1\nunroll i.1\nunroll j.1\n"
#define INLINED "stage S inline\nstage R inline\n"

static const struct {
    const char *nest;
    const char *expected; /* "": it is accepted */
    int line;             /* of the nest, from 1 */
} cases[] = {
    {TILES SUMS "update\nserial k step 8 exact\n" TERMS INLINED, "", 0},
    {TILES SUMS "update\nserial k step 8 exact\n" TERMS
                "stage S in T k\nscope shared\npadded 4\nthread.y k\nthread.x j\nstage R inline\n",
     "", 0},
    {"stage Y root\nblock.x i\nblock.x j step 32 exact\nthread.x j.1\nstage T root\ninit\n"
     "serial i\nserial j\nupdate\nblock.x i\nthread.x j\nserial k\n" INLINED,
     "", 0},
    {TILES SUMS "update\nserial k step 8 exact\n" TERMS
                "stage S in T k\nscope shared\ndepth 2\nthread.y k\nthread.x j step 4 exact\n"
                "lanes j.1\nstage R inline\n",
     "copies nothing ahead: leave depth out", 23},
    {TILES SUMS "update atomic\nblock.x k step 8 exact\n" TERMS INLINED,
     "adds up no parts of blocks or threads: write serial", 17},
    {"stage Y root\nblock.x i\nthread.x j\nstage T in Y j\nscope register\ninit\nupdate atomic\n"
     "thread.x k\n" INLINED,
     "adds up no parts of blocks or threads: write serial", 8},
    {"stage Y root\nblock.x i\nthread.x j\nstage T in Y i\nscope register\ninit\nserial j\n"
     "update\nserial k\nserial j\n" INLINED,
     "by one of them: write scope shared, or thread.x", 4},
    {"stage Y root\nserial i\nblock.x j step 32 exact\nthread.x j.1\nstage T in Y j.1\n"
     "scope register\ninit\nupdate\nserial k\n" INLINED,
     "launches once: write the loops over blocks outside of all others", 3},
    {"stage Y root\nblock.x i step 4 exact\nthread.y i.1\nthread.x j\nstage T in Y i.1\n"
     "scope register\ninit\nserial j\nupdate\nserial k\nserial j\n" INLINED,
     "has no place between loops over threads", 5},
    {"stage Y root\nparallel i\nserial j\nstage T in Y j\ninit\nupdate\nserial k\n" INLINED,
     "parallel", 2},
};

static void expect(const char *by, const char *target, size_t c)
{
    static struct wpk_schedule schedule; /* large */
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    wpk_buf_printf(&text, "wpk-schedule 2\ntarget %s threads 1\nby %s\n" PRODUCT, target, by);
    int head = 0;
    for (const char *at = wpk_buf_text(&text); (at = strchr(at, '\n')) != NULL; at++) {
        head++;
    }
    wpk_buf_append_text(&text, cases[c].nest);
    assert_int_equal(wpk_schedule_parse(wpk_buf_text(&text), &schedule, &diag), WPK_OK);
    wpk_err err = wpk_codegen_check(&schedule, &diag);
    bool accepted = cases[c].expected[0] == '\0';
    if ((err == WPK_OK) != accepted || strstr(diag.text, cases[c].expected) == NULL ||
        (!accepted && diag.line != head + cases[c].line)) {
        fail_msg("%s, case %zu: line %d: %s", by, c, diag.line - head, diag.text);
    }
    wpk_schedule_fini(&schedule);
    wpk_buf_fini(&text);
}

static void test_cuda(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        expect("halide-cuda", "cuda-sm_90", c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
