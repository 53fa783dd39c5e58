/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products by instructions that add several terms, held to the interpreter bit for bit. */
#include "ir/instruction/instruction.h"
#include "target/c/print.h"
#include "target/codegen.h"
#include "tests/kernel_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TARGET "x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake-avx512_sapphirerapids"

static wpk_err parse(const char *program, const char *nest, const char *instruction,
                     struct wpk_schedule *out, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_buf_printf(&text, "wpk-schedule 2\ntarget " TARGET " threads 1\nby c\n%s%s", program, nest);
    char *at = strstr(wpk_buf_text(&text), "vpdpbusd");
    struct wpk_buf named = {0};
    wpk_buf_printf(&named, "%.*s%s%s", (int)(at - wpk_buf_text(&text)), wpk_buf_text(&text),
                   instruction, at + strlen("vpdpbusd"));
    wpk_err err = wpk_schedule_parse(wpk_buf_text(&named), out, diag);
    wpk_buf_fini(&text);
    wpk_buf_fini(&named);
    return err;
}

/* True if the program reads a tensor of this type. */
static bool reads(const char *program, enum wpk_dtype dtype)
{
    char type[16];
    snprintf(type, sizeof(type), " %s[", wpk_dtype_name(dtype));
    return strstr(program, type) != NULL;
}

/* Run the nest by every instruction of the same operands that the CPU has. Sums of floats are held
 * to their accuracy, other ones bit for bit. */
static void expect(const char *program, const char *nest)
{
    bool of_floats = strstr(program, "bf16") != NULL;
    static struct wpk_kernels batch; /* large */
    struct wpk_device here;
    struct wpk_rng rng;
    assert_int_equal(wpk_device_probe(WPK_CPU_FLAGS_ALL, &here), WPK_OK);
    wpk_rng_seed(&rng, 1);
    batch.exact = !of_floats;
    batch.count = 0;
    for (int i = 0; i < wpk_instruction_count(); i++) {
        const struct wpk_instruction *instruction = wpk_instruction_at(i);
        struct wpk_kernel_case *subject = &batch.subject[batch.count];
        struct wpk_diag diag = {0};
        if (!wpk_cpu_flags_fit(instruction->flags, here.cpu.flags) ||
            !reads(program, instruction->operand[0]) || !reads(program, instruction->operand[1])) {
            continue;
        }
        if (parse(program, nest, instruction->name, &subject->schedule, &diag) != WPK_OK ||
            wpk_codegen_check(&subject->schedule, &diag) != WPK_OK) {
            fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, nest);
        }
        assert_true(wpk_cpu_flags_fit(instruction->flags, wpk_c_needs(&subject->schedule)));
        subject->values = of_floats ? "n" : "nfw";
        snprintf(subject->words, sizeof(subject->words), "%s", instruction->name);
        batch.count++;
    }
    if (batch.count == 0) {
        skip();
    }
    batch.flags = here.cpu.flags;
    wpk_check_kernels(&batch, &rng);
}

#define PRODUCT(k, x, w, x_type, x_order, w_type, w_order)                                         \
    "layout X " x_type " " x_order "\nlayout W " w_type " " w_order "\nlayout Y i32[5,40] 0,1\n"   \
    "program\ninput X " x_type "\ninput W " w_type "\nintermediate T i32[5,40]\n"                  \
    "output Y i32[5,40]\nT[i,j] = sum.i32(k:" k ") i32(" x ") * i32(" w ")\n"                      \
    "Y[i,j] = T[i,j] + 1\nend\n"

#define TILES TILES_OF("")
#define TILES_OF(more)                                                                             \
    "stage Y root\nserial i step 3 guard\nserial j step 32 guard\nunroll i.1\n"                    \
    "unroll j.1 step 16 guard\nlanes j.2\nstage T in Y j\nextent i 3 j 32\n" more                  \
    "init\nunroll i\n"                                                                             \
    "unroll j step 16 exact\nlanes j.1\nupdate\n"
#define TERMS "unroll i\nunroll j step 16 exact\nlanes j.1\ndot "

static void test_whole_groups(void **state)
{
    (void)state;
    expect(PRODUCT("20", "X[i,k]", "W[k/4,j,k%4]", "u8[5,20]", "0,1", "i8[5,40,4]", "0,1,2"),
           TILES "serial k step 4 exact\n" TERMS "k.1 vpdpbusd\n");
}

/* The last group has two terms; its block of W is whole. */
static void test_tail_of_terms(void **state)
{
    (void)state;
    expect(PRODUCT("50", "X[i,k]", "W[j/16,k/4,j%16,k%4]", "u8[5,50]", "0,1", "i8[3,13,16,4]",
                   "0,1,2,3"),
           TILES "serial k step 4 guard\n" TERMS "k.1 vpdpbusd\n");
    expect(PRODUCT("50", "X[i,k]", "W[j/16,k/4,j%16,k%4]", "u8[5,50]", "0,1", "i8[3,13,16,4]",
                   "0,1,2,3"),
           TILES "serial k step 16 guard\nserial k.1 step 4 guard\n" TERMS "k.2 vpdpbusd\n");
}

/* The last 8 columns are computed as 16, of which W has all. Without its last block nothing may be
 * read past the end, and the vectors begin earlier. */
static void test_vectors_past_the_end(void **state)
{
    (void)state;
    expect(PRODUCT("50", "X[i,k]", "W[j/16,k/4,j%16,k%4]", "u8[5,50]", "0,1", "i8[3,13,16,4]",
                   "0,1,2,3"),
           TILES_OF("align j 16\n") "serial k step 4 guard\n" TERMS "k.1 vpdpbusd\n");
    expect(PRODUCT("20", "X[i,k]", "W[k/4,j,k%4]", "u8[5,20]", "0,1", "i8[5,40,4]", "0,1,2"),
           TILES_OF("align j 16\n") "serial k step 4 exact\n" TERMS "k.1 vpdpbusd\n");
}

/* Two numbers of 4 bits in each byte of an operand: the low halves are multiplied with the first
 * twelve terms of the other one, the high halves with the rest. */
static void test_halves_of_bytes(void **state)
{
    (void)state;
    static const char program[] =
        "layout X i8[5,24] 0,1\nlayout W u8[3,40,4] 0,1,2\nlayout Y i32[5,40] 0,1\n"
        "program\ninput X i8[5,24]\ninput W u8[3,40,4]\nintermediate T i32[5,40]\n"
        "output Y i32[5,40]\nT[i,j] = sum.i32(k:12) (i32(W[k/4,j,k%4]) % 16 * i32(X[i,k]) + "
        "i32(W[k/4,j,k%4]) / 16 * i32(X[i,k+12]))\nY[i,j] = T[i,j] + 1\nend\n";
    expect(program, TILES "serial k step 4 exact\n" TERMS "k.1 vpdpbusd\n");
}

/* The signed operand is broadcast, and lanes have the unsigned one. */
static void test_operands_in_the_other_order(void **state)
{
    (void)state;
    expect(PRODUCT("20", "X[i,k]", "W[k/4,j,k%4]", "i8[5,20]", "0,1", "u8[5,40,4]", "0,1,2"),
           TILES "serial k step 4 exact\n" TERMS "k.1 vpdpbusd\n");
}

#define REAL_PRODUCT(k, x, w, x_type, x_order, w_type, w_order)                                    \
    "layout X " x_type " " x_order "\nlayout W " w_type " " w_order "\nlayout Y f32[5,40] 0,1\n"   \
    "program\ninput X " x_type "\ninput W " w_type "\nintermediate T f32[5,40]\n"                  \
    "output Y f32[5,40]\nT[i,j] = sum.f32(k:" k ") f32(" x ") * f32(" w ")\n"                      \
    "Y[i,j] = T[i,j] + 1\nend\n"

/* Whole groups of two, and a last term alone. */
static void test_pairs_of_bf16(void **state)
{
    (void)state;
    expect(
        REAL_PRODUCT("20", "X[i,k]", "W[k/2,j,k%2]", "bf16[5,20]", "0,1", "bf16[10,40,2]", "0,1,2"),
        TILES "serial k step 2 exact\n" TERMS "k.1 vpdpbusd\n");
    expect(REAL_PRODUCT("21", "X[i,k]", "W[j/16,k/2,j%16,k%2]", "bf16[5,21]", "0,1",
                        "bf16[3,11,16,2]", "0,1,2,3"),
           TILES "serial k step 2 guard\n" TERMS "k.1 vpdpbusd\n");
}

/* Of words, and those of a last group. */
static void test_pairs_of_i16(void **state)
{
    (void)state;
    expect(PRODUCT("20", "X[i,k]", "W[k/2,j,k%2]", "i16[5,20]", "0,1", "i16[10,40,2]", "0,1,2"),
           TILES "serial k step 2 exact\n" TERMS "k.1 vpdpbusd\n");
    expect(PRODUCT("21", "X[i,k]", "W[j/16,k/2,j%16,k%2]", "i16[5,21]", "0,1", "i16[3,11,16,2]",
                   "0,1,2,3"),
           TILES "serial k step 2 guard\n" TERMS "k.1 vpdpbusd\n");
}

static void expect_refusal(const char *program, const char *nest, const char *why)
{
    struct wpk_schedule schedule = {0};
    struct wpk_diag diag = {0};
    struct wpk_buf out = {0};
    wpk_err err = parse(program, nest, "vpdpbusd", &schedule, &diag);
    err = err == WPK_OK ? wpk_codegen_check(&schedule, &diag) : err;
    err = err == WPK_OK ? wpk_c_print(&schedule, "kernel", &out, &diag) : err;
    assert_int_not_equal(err, WPK_OK);
    if (strstr(diag.text, why) == NULL) {
        fail_msg("%s", diag.text);
    }
    wpk_buf_fini(&out);
    wpk_schedule_fini(&schedule);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char apart[] =
        PRODUCT("20", "X[i,k]", "W[k,j]", "u8[5,20]", "0,1", "i8[20,40]", "0,1");
    static const char both_signed[] =
        PRODUCT("20", "X[i,k]", "W[j,k]", "i8[5,20]", "0,1", "i8[40,20]", "0,1");
    static const char rows[] =
        PRODUCT("20", "X[i,k]", "W[k/4,j,k%4]", "u8[5,20]", "0,1", "i8[5,40,4]", "0,1,2");
    expect_refusal(apart, TILES "serial k step 4 exact\n" TERMS "k.1 vpdpbusd\n",
                   "do not lie together");
    expect_refusal(both_signed, TILES "serial k step 4 exact\n" TERMS "k.1 vpdpbusd\n",
                   "products of u8 and i8");
    expect_refusal(rows, TILES "serial k step 5 exact\n" TERMS "k.1 vpdpbusd\n", "adds 4");
    expect_refusal(rows,
                   TILES "serial k step 4 exact\nunroll i\nunroll j step 16 exact\n"
                         "dot k.1 vpdpbusd\nlanes j.1\n",
                   "innermost loop");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_groups),
        cmocka_unit_test(test_tail_of_terms),
        cmocka_unit_test(test_vectors_past_the_end),
        cmocka_unit_test(test_halves_of_bytes),
        cmocka_unit_test(test_operands_in_the_other_order),
        cmocka_unit_test(test_pairs_of_bf16),
        cmocka_unit_test(test_pairs_of_i16),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
