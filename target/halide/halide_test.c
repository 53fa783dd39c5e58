/* SPDX-License-Identifier: Apache-2.0 */
/* Halide's code for masked inputs: no instruction that may see an infinity is one of fast
 * arithmetic, whose value would be undefined. An exp's limits make numbers of infinities; of a NaN
 * its fast arithmetic makes a NaN. */
#include "target/halide/halide.h"

#include "common/fs.h"
#include "ir/notation/notation.h"
#include "search/space.h"
#include "target/codegen.h"

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

/* True if the definition in this line breaks the rule: fast arithmetic of a value that may be
 * infinite. */
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
    bool clamp = selects && strstr(line, "0xC055D589E0000000") != NULL;
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
    /* Buffers whose values may be infinite. Halide has one memory for the partial maxima of a row
     * and its partial sums, which are finite: the first program has no sums. */
    const char *buffers;
};

/* A kernel is linked without the compiler's library, which converts what the machine does not. */
static void expect_no_conversion(const char *path)
{
    struct wpk_buf object = {0};
    assert_int_equal(wpk_fs_read(path, 1 << 24, &object, NULL), WPK_OK);
    assert_null(memmem(object.data, object.size, "__trunc", strlen("__trunc")));
    wpk_buf_fini(&object);
}

static void expect_subject(const struct subject *subject, const char *object, const char *llvm)
{
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_candidate made[CONSTRUCTED];
    struct wpk_diag diag = {0};
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    options.device.cpu.flags = WPK_CPU_SET_AVX512;
    options.device.cpu.vector_bytes = 64;
    options.device.cpu.vector_registers = 32;
    assert_int_equal(wpk_program_parse(subject->program, &program, &diag), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, &diag), WPK_OK);
    int count = 0;
    assert_int_equal(wpk_space_construct(&space, made, CONSTRUCTED, &count), WPK_OK);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        struct wpk_schedule schedule;
        assert_int_equal(wpk_lower(&space, &made[i], &schedule, &diag), WPK_OK);
        if (wpk_halide_build(&schedule, "wpk_main", object, &diag) != WPK_OK) {
            fail_msg("%s", diag.text);
        }
        if (subject->buffers != NULL) {
            assert_int_equal(wpk_halide_print_llvm(&schedule, "wpk_main", llvm, &diag), WPK_OK);
            expect_no_fast_infinity(subject->buffers, llvm);
        }
        expect_no_conversion(object);
        wpk_schedule_fini(&schedule);
    }
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

static void expect_all(const struct subject *subjects, size_t count)
{
    char object[] = "/tmp/wpk-halide-XXXXXX", llvm[sizeof(object) + 3];
    int file = mkstemp(object);
    assert_true(file >= 0);
    close(file);
    snprintf(llvm, sizeof(llvm), "%s.ll", object);
    for (size_t i = 0; i < count; i++) {
        expect_subject(&subjects[i], object, llvm);
    }
    unlink(object);
    unlink(llvm);
}

#define STAGED                                                                                     \
    "wpk-schedule 2\ntarget x86-64-linux-sse41-avx-avx2-f16c-fma threads 1\nby halide-cpu\n"       \
    "layout X f64[64,32] 0,1\nlayout Y f16[64,32] 0,1\nprogram\ninput X f64[64,32]\n"              \
    "intermediate T f32[64,32]\noutput Y f16[64,32]\nT[i,j] = f32(X[i,j])\n"                       \
    "Y[i,j] = f16(T[i,j])\nend\n"

/* A stage whose loops are unrolled within those of its consumer is in registers. */
static void test_casts_in_registers_call_nothing(void **state)
{
    (void)state;
    static const char *const nests[] = {
        STAGED "stage Y root\nserial i\nserial j step 8 exact\nlanes j.1\nstage T in Y j\n"
               "extent i 1 j 8\nlanes j\n",
        STAGED "stage Y root\nserial i\nserial j step 4 exact\nunroll j.1\nstage T in Y j\n"
               "extent i 1 j 4\nunroll j\n",
        STAGED "stage Y root\nserial i\nserial j\nstage T inline\n",
    };
    char object[] = "/tmp/wpk-halide-XXXXXX";
    int file = mkstemp(object);
    assert_true(file >= 0);
    close(file);
    for (size_t i = 0; i < sizeof(nests) / sizeof(nests[0]); i++) {
        struct wpk_schedule schedule;
        struct wpk_diag diag = {0};
        if (wpk_schedule_parse(nests[i], &schedule, &diag) != WPK_OK ||
            wpk_halide_build(&schedule, "wpk_main", object, &diag) != WPK_OK) {
            fail_msg("%d: %s", diag.line, diag.text);
        }
        expect_no_conversion(object);
        wpk_schedule_fini(&schedule);
    }
    unlink(object);
}

static void test_casts_call_nothing(void **state)
{
    (void)state;
    static const struct subject casts[] = {
        {"input X f64[64,32]\noutput Y f16[64,32]\nY[i,j] = f16(X[i,j] * X[i,j])\n", NULL},
        {"input X f64[64,32]\noutput Y f16[64,32]\nY[i,j] = f16(f32(X[i,j]))\n", NULL},
        {"input X f64[64,32]\noutput Y bf16[64,32]\nY[i,j] = bf16(X[i,j] * X[i,j])\n", NULL},
        {"input X f64[64,32]\noutput Y f16[64,32]\nintermediate T f32[64,32]\n"
         "T[i,j] = f32(X[i,j])\nY[i,j] = f16(T[i,j])\n",
         NULL},
        {"input X f64[64,32]\noutput Y f16[64,32]\nY[i,j] = f16(f32(X[i-1,j]))\n", NULL},
        {"input X f64[64,32]\noutput Y f16[64,32]\nY[i,j] = f16(max(f32(X[i-1,j]), -9))\n", NULL},
    };
    expect_all(casts, sizeof(casts) / sizeof(casts[0]));
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
    expect_all(subjects, sizeof(subjects) / sizeof(subjects[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_casts_call_nothing),
        cmocka_unit_test(test_casts_in_registers_call_nothing),
        cmocka_unit_test(test_infinities_meet_no_fast_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
