/* SPDX-License-Identifier: Apache-2.0 */
/* Halide's code for masked inputs: no instruction that may see an infinity is one of fast
 * arithmetic, whose value would be undefined. And that a nest is bound for a CPU as for blocks and
 * threads. */
#include "codegen/halide.h"

#include "codegen/codegen.h"
#include "codegen/lower.h"
#include "common/fs.h"
#include "op/notation.h"
#include "search/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CONSTRUCTED 3
#define VALUES_MAX 4000
#define LLVM_SIZE_MAX ((size_t)8 << 20)
#define LLVM_LINE_MAX 4000

/* A value's name in LLVM's text, from its % on. */
struct value {
    const char *name;
    size_t size;
};

struct values {
    struct value value[VALUES_MAX];
    int count;
};

/* LLVM's text, and what is known of its values. */
struct llvm {
    const char *text;
    struct values infinite; /* or NaN */
    struct values guarded;  /* fast casts of such, which may be selected only where they are not */
    int followed;           /* instructions with an infinite operand */
    int clamps;             /* of them: those that make a number of it */
};

static struct value value_at(const char *text)
{
    size_t size = text[1] == '"' ? strcspn(text + 2, "\"") + 3 : strcspn(text, " ,)\n");
    return (struct value){.name = text, .size = size};
}

static bool has(const struct values *values, struct value value)
{
    for (int i = 0; i < values->count; i++) {
        const struct value *other = &values->value[i];
        if (other->size == value.size && memcmp(other->name, value.name, value.size) == 0) {
            return true;
        }
    }
    return false;
}

static void put(struct values *values, struct value value)
{
    if (!has(values, value)) {
        assert_true(values->count < VALUES_MAX);
        values->value[values->count++] = value;
    }
}

/* The buffer that an access is marked with: !9 = !{!10, ...}, !10 = !{!"X.width16.base0", ...} */
static void find_buffer(const struct llvm *llvm, const char *line, char name[64])
{
    const char *mark = strstr(line, "!tbaa !");
    int node = 0, of = 0;
    char head[32];
    name[0] = '\0';
    if (mark == NULL || sscanf(mark, "!tbaa !%d", &of) != 1) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        node = of;
        snprintf(head, sizeof(head), "\n!%d = !{!", node);
        const char *found = strstr(llvm->text, head);
        if (found == NULL || sscanf(found + strlen(head), "%d", &of) == 1) {
            continue;
        }
        (void)sscanf(found + strlen(head), "\"%63[^.$\"]", name);
    }
}

static bool is_one_of(const char *words, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = words; size > 0 && at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, word, size) == 0 && (at[size] == ' ' || at[size] == '\0')) {
            return true;
        }
    }
    return false;
}

/* In the line of the text from `at` to `end`. */
static bool has_operand(const struct values *values, const char *at, const char *end)
{
    for (; at < end; at++) {
        if (*at == '%' && has(values, value_at(at))) {
            return true;
        }
    }
    return false;
}

/* Does the definition in this line break the rule? */
static bool follow(struct llvm *llvm, const char *buffers, const char *at, const char *end)
{
    char line[LLVM_LINE_MAX], buffer[64];
    snprintf(line, sizeof(line), "%.*s", (int)(end - at), at);
    const char *name = strchr(line, '%'), *operation = strstr(line, " = ");
    if (name == NULL || operation == NULL || operation < name) {
        return false;
    }
    struct value value = value_at(at + (name - line));
    if (strncmp(operation, " = load ", 8) == 0) {
        find_buffer(llvm, line, buffer);
        if (is_one_of(buffers, buffer)) {
            put(&llvm->infinite, value);
        }
        return false;
    }
    bool operand = has_operand(&llvm->infinite, at + (operation - line), end);
    bool selects = strncmp(operation, " = select ", 10) == 0;
    bool casts = strstr(operation, " = fpext ") != NULL || strstr(operation, " = fptrunc ") != NULL;
    bool clamp = selects && strstr(line, "-1.280000e+02") != NULL;
    bool fast = strstr(line, " nnan ") != NULL || strstr(line, " ninf ") != NULL ||
                strstr(line, " fast ") != NULL;
    llvm->followed += operand;
    llvm->clamps += operand && clamp;
    if (operand && casts && fast) {
        put(&llvm->guarded, value);
        return false;
    }
    if (operand && !clamp && strstr(operation, "cmp ") == NULL) {
        put(&llvm->infinite, value);
    }
    return (fast && (operand || strstr(operation, " = fdiv ") != NULL)) ||
           (!selects && has_operand(&llvm->guarded, at + (operation - line), end));
}

static void expect_no_fast_infinity(const char *buffers, const char *path)
{
    static struct llvm llvm;
    struct wpk_buf text = {0};
    memset(&llvm, 0, sizeof(llvm));
    assert_int_equal(wpk_fs_read(path, LLVM_SIZE_MAX, &text, NULL), WPK_OK);
    llvm.text = wpk_buf_text(&text);
    /* twice: what a loop carries is defined before what it comes from */
    for (int pass = 0; pass < 2; pass++) {
        const char *end = NULL;
        for (const char *at = llvm.text; *at != '\0'; at = *end == '\0' ? end : end + 1) {
            end = at + strcspn(at, "\n");
            if (follow(&llvm, buffers, at, end)) {
                fail_msg("fast: %.*s", (int)(end - at), at);
            }
        }
    }
    assert_true(llvm.followed > 8 && llvm.clamps > 0);
    wpk_buf_fini(&text);
}

struct subject {
    const char *program;
    /* What may be infinite. Halide has one memory for the partial maxima of a row and its partial
     * sums, which are finite: the first program has no sums. */
    const char *buffers;
};

static void expect_subject(const struct subject *subject, const char *object, const char *llvm)
{
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_candidate made[CONSTRUCTED];
    struct wpk_diag diag = {0};
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    options.device.isa = WPK_ISA_AVX512;
    options.device.vector_bytes = 64;
    options.device.vector_registers = 32;
    assert_int_equal(wpk_program_parse(subject->program, &program, &diag), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, &diag), WPK_OK);
    int count = wpk_space_construct(&space, made, CONSTRUCTED);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        struct wpk_schedule schedule;
        assert_int_equal(wpk_lower(&space, &made[i], &schedule, &diag), WPK_OK);
        if (wpk_halide_build(&schedule, "wpk_main", object, llvm, &diag) != WPK_OK) {
            fail_msg("%s", diag.text);
        }
        expect_no_fast_infinity(subject->buffers, llvm);
        wpk_schedule_fini(&schedule);
    }
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

static void test_infinities_meet_no_fast_arithmetic(void **state)
{
    (void)state;
    static const struct subject subjects[] = {
        {"input X f32[64,128]\noutput Y f32[64]\nintermediate M f32[64]\n"
         "M[i] = max(k:128) X[i,k]\nY[i] = exp(M[i] - 1)\n",
         "X M M_p M_r"},
        {"input X f32[64,128]\noutput Y f32[64,128]\nintermediate M f32[64]\n"
         "intermediate S f32[64]\nM[i] = max(k:128) X[i,k]\n"
         "S[i] = sum(k:128) exp(X[i,k] - M[i])\nY[i,j] = exp(X[i,j] - M[i]) / S[i]\n",
         "X M"},
        {"input X f32[64,40]\ninput A f32[64,40]\noutput Y f32[64,40]\n"
         "intermediate T f32[64,40]\nintermediate M f32[64]\nintermediate S f32[64]\n"
         "T[i,j] = X[i,j] * 0.125 + A[i,j]\nM[i] = max(j:40) T[i,j]\n"
         "S[i] = sum(j:40) exp(T[i,j] - M[i])\nY[i,j] = exp(T[i,j] - M[i]) / S[i]\n",
         "A T M"},
        {"input X f16[64,32]\noutput Y f16[64,32]\nintermediate M f32[64]\n"
         "intermediate S f32[64]\nM[i] = max(k:32) f32(X[i,k])\n"
         "S[i] = sum(k:32) exp(f32(X[i,k]) - M[i])\n"
         "Y[i,j] = f16(exp(f32(X[i,j]) - M[i]) / S[i])\n",
         "X M"},
    };
    char object[] = "/tmp/wpk-halide-XXXXXX", llvm[sizeof(object) + 3];
    int file = mkstemp(object);
    assert_true(file >= 0);
    close(file);
    snprintf(llvm, sizeof(llvm), "%s.ll", object);
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        expect_subject(&subjects[i], object, llvm);
    }
    unlink(object);
    unlink(llvm);
}

/* ---- one product, bound for a CPU and for blocks and threads */

#define PRODUCT                                                                                    \
    "by halide-cpu\nlayout A f32[64,64] 0,1\nlayout B f32[64,64] 0,1\n"                            \
    "layout Y f32[64,64] 0,1\nprogram\ninput A f32[64,64]\ninput B f32[64,64]\n"                   \
    "intermediate S f32[64,64]\nintermediate T f32[64,64]\noutput Y f32[64,64]\n"                  \
    "S[i,k] = A[i,k]\nT[i,j] = sum.f32(k:64) S[i,k] * B[k,j]\nY[i,j] = T[i,j]\nend\n"

/* Sixteen columns of A are staged at the loop over blocks of terms. */
static const char for_cpu[] =
    "wpk-schedule 2\ntarget x86-64-linux-sse41-avx-avx2-f16c-fma threads 2\n" PRODUCT
    "stage Y root\n  parallel i step 8 exact\n  serial j step 8 exact\n  serial i.1\n"
    "  lanes j.1\n"
    "stage T in Y j\n  scope stack\n  extent i 8 j 8\n  init\n    serial i\n    lanes j\n"
    "  update\n    serial k step 16 exact\n    serial k.1\n    unroll i\n    lanes j\n"
    "stage S in T k\n  scope stack\n  extent i 8 k 16\n  serial i\n  serial k step 8 exact\n"
    "  lanes k.1\n";
static const char for_blocks[] =
    "wpk-schedule 2\ntarget x86-64-linux-sse41-avx-avx2-f16c-fma-opencl threads 1\n" PRODUCT
    "stage Y root\n  block.y i step 8 exact\n  block.x j step 8 exact\n  thread.y i.1\n"
    "  thread.x j.1\n"
    "stage T in Y j\n  extent i 8 j 8\n  init\n    thread.y i\n    thread.x j\n"
    "  update\n    serial k step 16 exact\n    thread.y i\n    thread.x j\n    serial k.1\n"
    "stage S in T k\n  scope shared\n  extent i 8 k 16\n  thread.y i\n  thread.x k step 2 exact\n"
    "  serial k.1\n";

static void expect_object(const char *text, const char *object, bool kernel)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    struct wpk_buf bytes = {0};
    if (wpk_schedule_parse(text, &schedule, &diag) != WPK_OK ||
        wpk_codegen_check(&schedule, &diag) != WPK_OK ||
        wpk_halide_build(&schedule, "wpk_main", object, NULL, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, text);
    }
    assert_int_equal(wpk_fs_read(object, LLVM_SIZE_MAX, &bytes, NULL), WPK_OK);
    assert_int_equal(memmem(bytes.data, bytes.size, "__kernel", 8) != NULL, kernel);
    wpk_buf_fini(&bytes);
    wpk_schedule_fini(&schedule);
}

static void test_bindings_of_one_product(void **state)
{
    (void)state;
    char object[] = "/tmp/wpk-halide-XXXXXX";
    int file = mkstemp(object);
    assert_true(file >= 0);
    close(file);
    expect_object(for_cpu, object, false);
    expect_object(for_blocks, object, true);
    unlink(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bindings_of_one_product),
        cmocka_unit_test(test_infinities_meet_no_fast_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
