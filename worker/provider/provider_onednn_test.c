/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of match, computed by the library and compared with the interpreter. */
#include "common/fs.h"
#include "ir/notation/definition.h"
#include "ir/reference/reference.h"
#include "runtime/wpk.h"
#include "tests/notation_check.h"
#include "worker/provider/provider.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void *take(void *user, size_t size, size_t element)
{
    (void)element;
    size_t whole = (size + 63) / 64 * 64;
    void *memory = aligned_alloc(64, whole);

    ++*(int *)user;
    assert_non_null(memory);
    memset(memory, 0, whole);
    return memory;
}

static void give(void *user, void *memory)
{
    --*(int *)user;
    free(memory);
}

static const struct wpk_given ops[] = {
    {"Y[n,k,y,x] = relu(sum(c,r,s) X[n,c,2*y+r-1,2*x+s-1] * W[k,c,r,s] + B[k])",
     {"X f32[1,20,14,13]", "W f32[24,20,3,3]", "B f32[24]", "Y f32[1,24,7,7]"}},
    {"Y[n,y,x,k] = sum(c,r,s) W[r,s,c,k] * X[n,y+2*r-2,x+2*s-2,c]",
     {"X f32[2,10,11,8]", "W f32[3,3,8,16]", "Y f32[2,10,11,16]"}},
    {"Y[n,k,y,x] = sum(c) X[n,c,2*y,2*x] * W[k,c]",
     {"X f32[1,24,12,12]", "W f32[32,24]", "Y f32[1,32,6,6]"}},
    {"Y[n,k,y,x] = sum(c,r,s) X[n,k/4*8+c,y+r-1,x+s-1] * W[k,c,r,s]",
     {"X f32[1,32,9,9]", "W f32[16,8,3,3]", "Y f32[1,16,9,9]"}},
    {"Y[n,c,y,x] = sum(r,s) X[n,c,y+r-1,x+s-1] * W[c,r,s]",
     {"X f32[1,32,9,9]", "W f32[32,3,3]", "Y f32[1,32,9,9]"}},
    {"Y[i,j] = max(sum(k) X[i,k] * W[j,k] + B[j], 0)",
     {"X f32[8,17]", "W f32[24,17]", "B f32[24]", "Y f32[8,24]"}},
    {"Y[b,i,j] = sum(k) X[b,i,k] * Z[b,k,j]",
     {"X f32[3,12,16]", "Z f32[3,16,10]", "Y f32[3,12,10]"}},
    {"S[i,j] = exp(X[i,j] - M[i]) / D[i] where M[i] = max(j) X[i,j]; "
     "D[i] = sum(j) exp(X[i,j] - M[i])",
     {"X f32[32,100]", "S f32[32,100]"}},
    {"Y[i,j] = (X[i,j] - M[i]) * rsqrt(V[i] + 0.00001) * G[j] + H[j] where "
     "M[i] = (sum(j) X[i,j]) / 100; V[i] = (sum(j) (X[i,j]-M[i])*(X[i,j]-M[i])) / 100",
     {"X f32[32,100]", "G f32[100]", "H f32[100]", "Y f32[32,100]"}},
    {"P[n,c,y,x] = max(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1 | -inf]",
     {"X f32[1,20,14,14]", "P f32[1,20,7,7]"}},
    {"P[n,c,y,x] = (sum(r:2,s:2) X[n,c,2*y+r,2*x+s]) / 4",
     {"X f32[1,20,14,14]", "P f32[1,20,7,7]"}},
    {"Y[i,j] = tanh(2 * X[i,j])", {"X f32[8,9]", "Y f32[8,9]"}},
    {"Y[i,j] = max(X[i,j] * Z[j], 0)", {"X f32[8,9]", "Z f32[9]", "Y f32[8,9]"}},
};

/* Multiples of 1/8 that neither repeat with a row nor are all of one sign. */
static double pattern(int tensor, int64_t i)
{
    return (double)((i * 7 + tensor * 3) % 17 - 8) / 8;
}

struct values {
    float *dense[WPK_TENSORS_MAX];
    double *wide[WPK_TENSORS_MAX];
    double *want;
    float *got;
    int output;
    int64_t count; /* of the output */
};

static void compute_reference(const struct wpk_program *program, struct values *values)
{
    struct wpk_reference_args args = {0};
    struct wpk_diag diag = {0};

    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        int64_t count = wpk_tensor_elements(tensor);
        if (tensor->role == WPK_ROLE_OUTPUT) {
            values->output = t;
            values->count = count;
        }
        if (tensor->role != WPK_ROLE_INPUT && tensor->role != WPK_ROLE_CONSTANT) {
            continue;
        }
        values->dense[t] = malloc((size_t)count * sizeof(float));
        values->wide[t] = malloc((size_t)count * sizeof(double));
        assert_non_null(values->dense[t]);
        assert_non_null(values->wide[t]);
        for (int64_t i = 0; i < count; i++) {
            values->wide[t][i] = pattern(t, i);
            values->dense[t][i] = (float)values->wide[t][i];
        }
        args.tensor[t] = values->wide[t];
    }
    values->want = malloc((size_t)values->count * sizeof(double));
    values->got = malloc((size_t)values->count * sizeof(float));
    assert_non_null(values->want);
    assert_non_null(values->got);
    if (wpk_reference_run(program, &args, values->want, NULL, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

static void free_values(struct values *values)
{
    for (int t = 0; t < WPK_TENSORS_MAX; t++) {
        free(values->dense[t]);
        free(values->wide[t]);
    }
    free(values->want);
    free(values->got);
}

/* The library's exp and tanh are good to about 1e-6. */
static void compare(const char *what, const struct values *values)
{
    for (int64_t i = 0; i < values->count; i++) {
        double error = fabs((double)values->got[i] - values->want[i]);
        if (!(error <= 1e-5 * (1 + fabs(values->want[i])))) {
            fail_msg("%s: %g instead of %g at %lld", what, (double)values->got[i], values->want[i],
                     (long long)i);
        }
    }
}

static void compute(const char *what, const struct wpk_program *program, const char *layouts,
                    int threads)
{
    struct wpk_provider *provider = NULL;
    struct wpk_diag diag = {0};
    struct values values = {0};
    int taken = 0;
    const struct wpk_provider_memory memory = {take, give, &taken};

    compute_reference(program, &values);
    const struct wpk_provider_request request = {
        .program = program, .layouts = layouts, .threads = threads, .memory = &memory};
    if (wpk_provider_open("onednn", &request, &provider, &diag) != WPK_OK) {
        fail_msg("%s: %s", what, diag.text);
    }
    uint64_t constants_bytes = 0;
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        if (tensor->role == WPK_ROLE_CONSTANT) {
            constants_bytes +=
                (uint64_t)wpk_tensor_elements(tensor) * wpk_dtype_size(tensor->dtype);
        }
        if (values.dense[t] != NULL) {
            assert_int_equal(wpk_provider_set(provider, t, values.dense[t], &diag), WPK_OK);
        }
    }
    assert_int_equal(wpk_provider_prepare(provider, &diag), WPK_OK);
    assert_true(wpk_provider_constants_bytes(provider) >= constants_bytes);
    assert_true(constants_bytes > 0 || wpk_provider_constants_bytes(provider) == 0);
    assert_int_equal(wpk_provider_cool(provider, WPK_CONDITIONS_COLD_CONSTANTS), WPK_OK);
    for (int round = 0; round < 2; round++) {
        wpk_provider_poison(provider, 0xff);
        assert_int_equal(wpk_provider_run(provider), WPK_OK);
        assert_int_equal(wpk_provider_check(provider, &diag), WPK_OK);
        assert_int_equal(wpk_provider_get(provider, values.output, values.got), WPK_OK);
        compare(what, &values);
    }
    assert_non_null(strstr(wpk_provider_detail(provider), "oneDNN 3"));
    wpk_provider_close(provider);
    assert_int_equal(taken, 0);
    free_values(&values);
}

static void compute_all(const char *what, const struct wpk_program *program)
{
    compute(what, program, "fixed", 1);
    compute(what, program, "any", 1);
    compute(what, program, "any", 2);
}

static void computes_what_the_interpreter_computes(void **state)
{
    static struct wpk_program program;

    (void)state;
    if (!WPK_HAVE_ONEDNN) {
        print_message("built without oneDNN\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        wpk_given_parse_constants(&ops[i], &program);
        compute_all(ops[i].text, &program);
        wpk_program_fini(&program);
    }
}

/* However the shorthands write these operators, they are recognised. */
static void computes_the_shorthands(void **state)
{
    static const char *const shorthands[] = {
        "{'type':'conv2d','input':[1,8,12,12],'filters':16,'kernel':[3,3],'stride':[2,2],"
        "'padding':[1,1,1,1],'bias':true,'activation':'relu'}",
        "{'type':'conv2d','input':[1,8,12,12],'filters':16,'kernel':[1,1],'bias':true}",
        "{'type':'conv2d','input':[1,16,9,9],'filters':32,'kernel':[3,3],'groups':4,"
        "'padding':[1,1,1,1]}",
        "{'type':'depthwise_conv2d','input':[1,32,9,9],'kernel':[3,3],'padding':[1,1,1,1],"
        "'bias':true,'activation':'relu'}",
        "{'type':'matmul','a':[17,33],'b':[33,20],'bias':true,'activation':'relu'}",
        "{'type':'gemm','a':[17,33],'b':[33,20]}",
        "{'type':'batch_matmul','a':[3,17,33],'b':[3,33,20]}",
        "{'type':'softmax','shape':[4,3,50]}",
        "{'type':'layernorm','shape':[4,3,64]}",
        "{'type':'max_pool2d','input':[1,16,12,12],'kernel':[3,3],'stride':[2,2],"
        "'padding':[1,1,1,1]}",
        "{'type':'avg_pool2d','input':[1,16,12,12],'kernel':[2,2],'stride':[2,2]}",
        "{'type':'avg_pool2d','input':[1,16,12,12],'kernel':[3,3],'stride':[2,2],"
        "'padding':[1,1,1,1]}",
        "{'type':'global_avg_pool','input':[1,16,7,7]}",
    };
    static struct wpk_program program;

    (void)state;
    if (!WPK_HAVE_ONEDNN) {
        print_message("built without oneDNN\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(shorthands) / sizeof(shorthands[0]); i++) {
        struct wpk_diag diag = {0};
        struct wpk_job job = {0};
        char text[1024];
        int length = snprintf(text, sizeof(text), "{'ops':[{'name':'op','op':%s}]}", shorthands[i]);
        for (int c = 0; c < length; c++) {
            text[c] = text[c] == '\'' ? '"' : text[c];
        }
        if (wpk_job_decode(text, (size_t)length, &job, &diag) != WPK_OK ||
            wpk_job_op_program(&job, 0, &program, &diag) != WPK_OK) {
            fail_msg("%s: %s: %s", shorthands[i], diag.field, diag.text);
        }
        compute_all(shorthands[i], &program);
        wpk_program_fini(&program);
        wpk_job_fini(&job);
    }
}

/* A choice whose only entry is `entry`, in the program's names. */
static void write_choice(const struct wpk_program *program, const struct wpk_choice_entry *entry,
                         const char *path)
{
    struct wpk_choice choice = {.op = strdup("made by hand"),
                                .accuracy = WPK_ACCURACY_STANDARD,
                                .layouts = "any",
                                .threads = 1,
                                .plain_missing = "none was built",
                                .chain_count = 1};
    struct wpk_buf text = {0};

    memset(choice.fingerprint, 'a', WPK_CHOICE_HASH_MAX - 1);
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        struct wpk_choice_list *list = tensor->role == WPK_ROLE_INPUT      ? &choice.inputs
                                       : tensor->role == WPK_ROLE_CONSTANT ? &choice.constants
                                       : tensor->role == WPK_ROLE_OUTPUT   ? &choice.outputs
                                                                           : NULL;
        if (list != NULL) {
            struct wpk_choice_tensor *bound = &list->tensor[list->count++];
            snprintf(bound->name, WPK_NAME_MAX, "my_%s", tensor->name);
            snprintf(bound->canonical, WPK_NAME_MAX, "%s", tensor->name);
        }
    }
    choice.chain[0] = *entry;
    assert_int_equal(wpk_selftest_make(program, 7, &choice.outputs, &choice.test, NULL), WPK_OK);
    assert_true(wpk_choice_has_test(&choice));
    assert_int_equal(wpk_choice_encode(&choice, &text), WPK_OK);
    assert_int_equal(wpk_fs_write(path, text.data, text.size, 0644, NULL), WPK_OK);
    wpk_buf_fini(&text);
    free(choice.op);
}

static void open_entry(const struct wpk_program *program, const struct wpk_choice_entry *entry,
                       const char *library_dir, wpk_err want, const char *says)
{
    const struct wpk_open_options options = {.self_test = true, .library_dir = library_dir};
    char path[] = "/tmp/wpk-choice-XXXXXX";
    struct wpk_kernel *kernel = NULL;
    struct wpk_diag diag = {0};

    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_choice(program, entry, path);
    wpk_err err = wpk_open(path, &options, &kernel, &diag);
    if (err != want || strstr(diag.text, says) == NULL) {
        fail_msg("%s: %s", wpk_err_text(err), diag.text);
    }
    if (err == WPK_OK) {
        assert_string_equal(wpk_kernel_choice(kernel).kind, "vendor");
        assert_memory_equal(wpk_kernel_output(kernel, 0)->name, "my_", 3);
    }
    wpk_kernel_close(kernel);
    unlink(path);
}

/* The recipe of what was timed, as a host opens it: self-test included. */
static void ships_what_it_times(void **state)
{
    static struct wpk_program program;
    int taken = 0;
    const struct wpk_provider_memory memory = {take, give, &taken};

    (void)state;
    if (!WPK_HAVE_ONEDNN) {
        print_message("built without oneDNN\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        const char *const layouts[] = {"fixed", "any"};
        wpk_given_parse_constants(&ops[i], &program);
        for (int k = 0; k < 2; k++) {
            const struct wpk_provider_request request = {
                .program = &program, .layouts = layouts[k], .threads = 1, .memory = &memory};
            struct wpk_provider *provider = NULL;
            struct wpk_choice_entry entry;
            assert_int_equal(wpk_provider_open("onednn", &request, &provider, NULL), WPK_OK);
            const char *recipe = wpk_provider_recipe(provider);
            assert_int_equal(wpk_choice_entry_decode(recipe, strlen(recipe), &entry, NULL), WPK_OK);
            wpk_provider_close(provider);
            open_entry(&program, &entry, NULL, WPK_OK, "");
            open_entry(&program, &entry, "/nowhere", WPK_EEXHAUSTED, "/nowhere");
            snprintf(entry.version, sizeof(entry.version), "3.1.999");
            open_entry(&program, &entry, NULL, WPK_EEXHAUSTED, "oneDNN 3.1.999 is wanted");
            wpk_choice_entry_fini(&entry);
        }
        wpk_program_fini(&program);
    }
}

static void says_what_it_cannot_do(void **state)
{
    static const struct wpk_given transposed = {"Y[i,j] = X[j,i]", {"X f32[8,8]", "Y f32[8,8]"}};
    static struct wpk_program program;
    struct wpk_provider *provider = NULL;
    struct wpk_diag diag = {0};
    int taken = 0;
    const struct wpk_provider_memory memory = {take, give, &taken};
    struct wpk_provider_request request = {.program = &program,
                                           .layouts = "any",
                                           .library_dir = "/nowhere",
                                           .threads = 1,
                                           .memory = &memory};

    (void)state;
    wpk_given_parse_constants(&transposed, &program);
    assert_int_equal(wpk_provider_open("onednn", &request, &provider, &diag), WPK_EUNSUPPORTED);
    diag.text[0] = '\0';
    assert_int_equal(wpk_provider_open("tpu", &request, &provider, &diag), WPK_EUNSUPPORTED);
    assert_string_equal(diag.text, "there is no provider tpu");
    wpk_program_fini(&program);
    if (WPK_HAVE_ONEDNN) {
        wpk_given_parse_constants(&ops[0], &program);
        diag.text[0] = '\0';
        assert_int_equal(wpk_provider_open("onednn", &request, &provider, &diag), WPK_ENOENT);
        assert_true(diag.text[0] != '\0');
        wpk_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_what_the_interpreter_computes),
        cmocka_unit_test(computes_the_shorthands),
        cmocka_unit_test(ships_what_it_times),
        cmocka_unit_test(says_what_it_cannot_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
