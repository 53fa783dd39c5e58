/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernel_check.h"

#include "common/fs.h"
#include "ir/node.h"
#include "ir/reference/accuracy.h"
#include "ir/reference/direct.h"
#include "ir/reference/reference.h"
#include "ir/reference/tape.h"
#include "schema/convert.h"
#include "target/c/print.h"
#include "tests/reference_check.h"
#include "tests/share.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ARGUMENTS_MAX WPK_TENSORS_MAX
#define TIMES 16.0 /* as for verification (worker/verify/verify.h) */
#define PAGE ((size_t)4096)
#define PATH_SIZE 80
#define SMALL 65536 /* elements */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZE "-fsanitize=address"
#else
#define SANITIZE "-g0"
#endif

/* ---- the arguments of a kernel: the layout that runtime/abi.h says */

struct dimension {
    int32_t min, extent, stride;
    uint32_t flags;
};

struct buffer {
    uint64_t device;
    const void *interface;
    uint8_t *host;
    uint64_t flags;
    uint8_t code, bits;
    uint16_t lanes;
    int32_t dimensions;
    struct dimension *dimension;
    void *padding;
};

enum { SIGNED_INTEGER, UNSIGNED_INTEGER, FLOATING, BRAIN_FLOATING };

#define HOST_IS_NEWER 1 /* flag of a buffer: a device copies it before use */

struct argument {
    struct buffer buffer;
    struct dimension dimension[WPK_RANK_MAX];
    uint8_t *map; /* pages between two that fault; shared with the process that runs the kernel */
    size_t map_size;
    int tensor;
    int64_t elements; /* with the padding */
    double *values;   /* cells, without it; of what is read */
};

/* Take memory that ends, or begins, where a page faults. */
static void take_memory(struct argument *a, size_t size, bool at_end)
{
    size_t body = (size + PAGE - 1) / PAGE * PAGE;
    a->map_size = body + 2 * PAGE;
    void *map = mmap(NULL, a->map_size, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    a->map = map;
    assert_int_equal(mprotect(a->map + PAGE, body, PROT_READ | PROT_WRITE), 0);
    a->buffer.host = a->map + PAGE + (at_end ? body - size : 0);
}

static uint8_t code_of(enum wpk_dtype dtype)
{
    bool is_unsigned = dtype == WPK_U8 || dtype == WPK_BOOL;
    return dtype == WPK_BF16           ? BRAIN_FLOATING
           : wpk_dtype_is_float(dtype) ? FLOATING
           : is_unsigned               ? UNSIGNED_INTEGER
                                       : SIGNED_INTEGER;
}

static void describe(const struct wpk_program *program, int tensor, bool at_end, struct argument *a)
{
    const struct wpk_tensor *t = &program->tensors[tensor];
    a->tensor = tensor;
    a->elements = 1;
    a->buffer.code = code_of(t->dtype);
    a->buffer.bits = (uint8_t)(8 * wpk_dtype_size(t->dtype));
    a->buffer.lanes = 1;
    a->buffer.flags = t->role == WPK_ROLE_OUTPUT ? 0 : HOST_IS_NEWER;
    a->buffer.dimensions = t->rank;
    a->buffer.dimension = a->dimension;
    for (int d = t->rank - 1; d >= 0; d--) {
        struct dimension *out = &a->dimension[t->rank - 1 - d];
        out->min = (int32_t)-t->pad_before[d];
        out->extent = (int32_t)(t->pad_before[d] + t->extent[d] + t->pad_after[d]);
        out->stride = (int32_t)a->elements;
        a->elements *= out->extent;
    }
    take_memory(a, (size_t)a->elements * wpk_dtype_size(t->dtype), at_end);
}

/* Copy between an argument and its values without padding. */
static void move(const struct wpk_program *program, const struct argument *a, double *values,
                 bool in)
{
    const struct wpk_tensor *t = &program->tensors[a->tensor];
    size_t size = wpk_dtype_size(t->dtype);
    for (int64_t i = 0; i < wpk_tensor_elements(t); i++) {
        int64_t rest = i, at = 0;
        for (int d = t->rank - 1; d >= 0; d--) {
            const struct dimension *dimension = &a->dimension[t->rank - 1 - d];
            at += (rest % t->extent[d] - dimension->min) * dimension->stride;
            rest /= t->extent[d];
        }
        if (in) {
            wpk_convert_from_cells(t->dtype, &values[i], 1, a->buffer.host + (size_t)at * size);
        }
        wpk_convert_to_cells(t->dtype, a->buffer.host + (size_t)at * size, 1, &values[i]);
    }
}

/* ---- compiling */

static const char hooks_text[] =
    "#include <stdlib.h>\n"
    "void *halide_malloc(void *user, unsigned long size)"
    " { (void)user; return aligned_alloc(64, (size + 63) / 64 * 64); }\n"
    "void halide_free(void *user, void *memory) { (void)user; free(memory); }\n"
    "void halide_error(void *user, const char *message) { (void)user; (void)message; abort(); }\n"
    "int halide_do_par_for(void *user, int (*task)(void *, int, unsigned char *), int min,"
    " int extent, unsigned char *closure) {\n"
    "  for (int i = min + extent - 1; i >= min; i--) { task(user, i, closure); }\n"
    "  return 0;\n}\n";

static bool is_by_c(const struct wpk_kernels *batch, int i)
{
    return i == batch->count || batch->emit == NULL ||
           strcmp(batch->subject[i].schedule.by, "c") == 0;
}

/* Of a kernel, or of the hooks, which come last. */
static void put_path(const struct wpk_kernels *batch, int i, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/k%d.%c", batch->directory, i, is_by_c(batch, i) ? 'c' : 'o');
}

static void run_compiler(const struct wpk_kernels *batch)
{
    static char paths[WPK_KERNELS_MAX + 1][PATH_SIZE];
    const char *command[WPK_C_FLAGS_MAX + WPK_KERNELS_MAX + 16];
    char object[80];
    const char *given = getenv("CC");
    int count = 0;
    command[count++] = given == NULL ? "gcc" : given;
    wpk_c_flags(&batch->subject[0].schedule, command + count);
    while (command[count] != NULL) {
        count++;
    }
    snprintf(object, sizeof(object), "%s/all.so", batch->directory);
    command[count++] = "-O1";
    command[count++] = SANITIZE;
    command[count++] = "-shared";
    command[count++] = "-o";
    command[count++] = object;
    for (int i = 0; i <= batch->count; i++) {
        if (i == batch->count || !batch->subject[i].refused) {
            put_path(batch, i, paths[i]);
            command[count++] = paths[i];
        }
    }
    command[count++] = "-lm";
    command[count] = NULL;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], (char *const *)command);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("the compiler refuses kernels in %s", batch->directory);
    }
}

static void show(const struct wpk_kernels *batch, int i)
{
    struct wpk_buf text = {0};
    (void)wpk_schedule_print(&batch->subject[i].schedule, &text);
    print_error("%s/k%d\n%s\n", batch->directory, i, batch->subject[i].words);
    fprintf(stderr, "%s", wpk_buf_text(&text)); /* print_error() cuts it */
    wpk_buf_fini(&text);
}

static void write_kernels(struct wpk_kernels *batch)
{
    char path[PATH_SIZE], symbol[16];
    for (int i = 0; i < batch->count; i++) {
        const struct wpk_schedule *schedule = &batch->subject[i].schedule;
        struct wpk_buf text = {0};
        struct wpk_diag diag = {0};
        put_path(batch, i, path);
        snprintf(symbol, sizeof(symbol), "k%d", i);
        wpk_err err = is_by_c(batch, i) ? wpk_c_print(schedule, symbol, &text, &diag)
                                        : batch->emit(schedule, symbol, path, &diag);
        batch->subject[i].refused = err != WPK_OK && !is_by_c(batch, i);
        batch->refused += batch->subject[i].refused;
        if (err != WPK_OK) {
            show(batch, i);
            print_error("%s\n", diag.text);
            assert_true(batch->subject[i].refused);
        }
        if (is_by_c(batch, i)) {
            assert_int_equal(wpk_fs_write(path, text.data, text.size, 0644, NULL), WPK_OK);
        }
        wpk_buf_fini(&text);
    }
    put_path(batch, batch->count, path);
    assert_int_equal(wpk_fs_write(path, hooks_text, strlen(hooks_text), 0644, NULL), WPK_OK);
}

/* ---- comparing */

static double unit_of(const struct wpk_program *program)
{
    double unit = 0x1p-53;
    for (int i = 0; i < program->node_count; i++) {
        double own = wpk_accuracy_unit(program->nodes[i].dtype);
        unit = own > unit ? own : unit;
    }
    for (int t = 0; t < program->tensor_count; t++) {
        double own = wpk_accuracy_unit(program->tensors[t].dtype);
        unit = own > unit ? own : unit;
    }
    return unit;
}

/* The largest number of the narrowest type: what is larger may overflow. */
static double largest_of(const struct wpk_program *program)
{
    double largest = DBL_MAX;
    for (int i = 0; i < program->node_count; i++) {
        enum wpk_dtype dtype = program->nodes[i].dtype;
        double own = dtype == WPK_F16                        ? 65504
                     : dtype == WPK_F32 || dtype == WPK_BF16 ? (double)FLT_MAX
                                                             : DBL_MAX;
        largest = own < largest ? own : largest;
    }
    return largest;
}

static double terms_of(const struct wpk_program *program)
{
    double most = 1;
    for (int s = 0; s < program->stage_count; s++) {
        double terms = 1;
        for (int a = program->stages[s].rank; a < program->stages[s].axis_count; a++) {
            terms *= (double)program->stages[s].axes[a].extent;
        }
        most = terms > most ? terms : most;
    }
    return most;
}

/* The least normal number of the output's type, or of a narrower one that is computed before. */
static double least_of(const struct wpk_program *program, const struct wpk_tensor *output)
{
    double least = output->dtype == WPK_F64 ? 0x1p-1022 : 0x1p-126;
    for (int t = 0; t < program->tensor_count; t++) {
        bool half = program->tensors[t].dtype == WPK_F16 && wpk_program_writer(program, t) >= 0;
        least = half ? 0x1p-14 : least;
    }
    return least;
}

static void expect_close(const struct wpk_kernels *batch, int i, char values,
                         const struct argument *output, double *value, const double *magnitude)
{
    bool special = batch->masked || batch->exact || values != WPK_VALUES_NUMBERS;
    const struct wpk_program *program = &batch->subject[i].schedule.main;
    const struct wpk_tensor *t = &program->tensors[output->tensor];
    int64_t count = wpk_tensor_elements(t);
    double unit = unit_of(program), root = 2 * sqrt(terms_of(program));
    double least = least_of(program, t);
    double most = largest_of(program);
    double *got = malloc((size_t)count * sizeof(*got));
    assert_non_null(got);
    move(program, output, got, false);
    for (int64_t p = 0; p < count; p++) {
        bool floating = wpk_dtype_is_float(t->dtype);
        bool bits = memcmp(&got[p], &value[p], sizeof(*got)) == 0;
        got[p] = wpk_cell_number(t->dtype, got[p]);
        value[p] = wpk_cell_number(t->dtype, value[p]);
        double tolerance = values == WPK_VALUES_BITS ? 0
                           : floating ? unit * (6 * TIMES * magnitude[p] + root * fabs(value[p])) +
                                            wpk_accuracy_unit(t->dtype) * fabs(value[p]) + least
                                      : floor(magnitude[p] / WPK_REFERENCE_STEP);
        bool same = bits || (got[p] == value[p] && t->dtype != WPK_I64) ||
                    (isnan(got[p]) && isnan(value[p]));
        if (batch->units > 0 && floating) {
            tolerance = 2 * batch->units * wpk_accuracy_unit(t->dtype) * fabs(value[p]) + 2 * least;
            bool beyond = isfinite(value[p]) && fabs(value[p]) - tolerance > most;
            same = same || (fabs(value[p]) > most && got[p] == copysign(INFINITY, value[p]));
            if (beyond && !same) {
                show(batch, i);
                fail_msg("values %c: %.9g instead of an infinity", values, got[p]);
            }
        }
        same =
            batch->exact && !isnan(value[p]) ? got[p] == wpk_dtype_round(t->dtype, value[p]) : same;
        tolerance = batch->exact ? 0 : tolerance;
        bool fits = isfinite(value[p]) ? fabs(value[p]) <= most && tolerance <= most
                                       : special; /* else it overflows */
        if (!same && fits && !(fabs(got[p] - value[p]) <= tolerance && isfinite(value[p]))) {
            show(batch, i);
            fail_msg("values %c, point %lld of %s: %.9g, expected %.9g within %g", values,
                     (long long)p, t->name, got[p], value[p], tolerance);
        }
    }
    free(got);
}

/* Masks: the first row whole, of the others a third. */
static void mask(struct wpk_rng *rng, const struct wpk_tensor *t, double *values)
{
    int64_t row = t->rank == 0 ? 1 : t->extent[t->rank - 1];
    for (int64_t i = 0; i < wpk_tensor_elements(t); i++) {
        values[i] = i < row || wpk_rng_chance(rng, 0.3) ? -INFINITY : values[i];
    }
}

static double largest_number(enum wpk_dtype dtype)
{
    return dtype == WPK_F16 ? 65504 : dtype == WPK_BF16 ? 0x1.fep127 : (double)FLT_MAX;
}

static void make_cells(const struct wpk_tensor *t, double *values)
{
    for (int64_t i = 0; i < wpk_tensor_elements(t) && t->dtype == WPK_I64; i++) {
        values[i] = wpk_cell_of(wpk_convert_int64(values[i]));
    }
}

/* Around these, functions become 0, 1, infinite, undefined, or change their method. */
static double special_number(struct wpk_rng *rng, enum wpk_dtype dtype)
{
    static const double numbers[] = {
        0,      -0.0,    INFINITY, -INFINITY, NAN,     0x1p-126, -0x1p-126, 0x1p-133, -0x1p-133,
        0.5,    -0.5,    1,        -1,        2,       -2,       3,         -3,       88.5,
        88.75,  -87,     -87.5,    89,        -90,     103,      -104,      709.75,   710,
        -708.5, -745.25, 3.9375,   -4,        0.04999, 0.05001,  0x1p-20,   1e5,      -16777217,
        127.5,  0x1p126, 0x1p127,  -0x1p127,  0.75,    -0.75,    1.0625,    1000.5,   6,
    };
    size_t count = sizeof(numbers) / sizeof(numbers[0]);
    uint64_t at = wpk_rng_below(rng, count + 2);
    return at >= count ? (at == count ? 1 : -1) * largest_number(dtype) : numbers[at];
}

static double any_number(struct wpk_rng *rng, enum wpk_dtype dtype)
{
    int64_t least = dtype == WPK_F64 ? -1022 : dtype == WPK_F16 ? -24 : -133;
    int64_t most = dtype == WPK_F64 ? 1023 : dtype == WPK_F16 ? 14 : 127;
    double size = ldexp(1 + wpk_rng_unit(rng), (int)wpk_rng_between(rng, least, most - 1));
    return wpk_rng_chance(rng, 0.5) ? size : -size;
}

/* Set elements to what the letter says. */
static void put_values(struct wpk_rng *rng, char letter, const struct wpk_tensor *t, double *values)
{
    int64_t row = t->rank == 0 ? 1 : t->extent[t->rank - 1];
    bool floating = wpk_dtype_is_float(t->dtype);
    if (letter == WPK_VALUES_MASKED && floating) {
        mask(rng, t, values);
    }
    for (int64_t i = 0; i < wpk_tensor_elements(t); i++) {
        bool here = wpk_rng_chance(rng, 0.15), negative = wpk_rng_chance(rng, 0.5) || i < row;
        double sign = negative ? -1 : 1;
        if (letter == WPK_VALUES_NOT_ZERO && !floating) {
            values[i] = (double)wpk_rng_between(rng, 1, 9);
            values[i] *= t->dtype == WPK_U8 || t->dtype == WPK_BOOL ? 1 : sign;
        } else if (letter == WPK_VALUES_LARGEST && t->dtype == WPK_I32) {
            static const double numbers[] = {INT32_MIN, INT32_MAX, -1, 0, 1, 2, -3};
            values[i] = numbers[wpk_rng_below(rng, sizeof(numbers) / sizeof(numbers[0]))];
        } else if (letter == WPK_VALUES_INFINITE && here && floating) {
            values[i] = sign * INFINITY;
        } else if (letter == WPK_VALUES_LARGEST && (here || i < row) && floating) {
            values[i] = sign * largest_number(t->dtype);
        } else if (letter == WPK_VALUES_SMALLEST && floating) {
            values[i] = sign * (t->dtype == WPK_F16 ? 0x1p-24 : 0x1p-133) * (double)(1 + i % 7);
        } else if (letter == WPK_VALUES_NAN && here && floating) {
            values[i] = NAN;
        } else if (letter == WPK_VALUES_SPECIAL && floating) {
            values[i] = special_number(rng, t->dtype);
        } else if (letter == WPK_VALUES_ALL && floating) {
            values[i] = any_number(rng, t->dtype);
        }
    }
}

/* Numbers beside those at which casts change, in turns of another order for each tensor. */
static void put_edges(const struct wpk_tensor *t, uint64_t turn, double *values)
{
    static const double numbers[] = {0,          1,      -1,         255,        256,    -129,
                                     0.5,        1.5,    2.5,        -0.5,       -1.7,   127.5,
                                     128.4,      -128.5, 65504,      300,        0x1p31, -0x1p31,
                                     0x1p31 - 1, 0x1p32, 0x1p32 + 5, 0x1p24 + 1, 1e19,   -1e19};
    static const int64_t integers[] = {0,
                                       1,
                                       -1,
                                       255,
                                       256,
                                       -129,
                                       (int64_t)1 << 31,
                                       -((int64_t)1 << 31),
                                       INT32_MAX,
                                       (int64_t)1 << 32,
                                       ((int64_t)1 << 53) + 1,
                                       INT64_MAX,
                                       INT64_MIN,
                                       INT64_MIN + 256,
                                       -((int64_t)1 << 53) - 1,
                                       7};
    for (int64_t i = 0; i < wpk_tensor_elements(t); i++) {
        uint64_t at = (uint64_t)i * (2 * turn + 1) + turn;
        if (wpk_dtype_is_float(t->dtype)) {
            double number = numbers[at % (sizeof(numbers) / sizeof(numbers[0]))];
            bool fits = isfinite(wpk_dtype_round(t->dtype, number));
            values[i] = fits ? number : copysign(65504, number);
        } else {
            int64_t integer = integers[at % (sizeof(integers) / sizeof(integers[0]))];
            values[i] = wpk_reference_cast(WPK_I64, t->dtype, wpk_cell_of(integer));
        }
    }
}

/* A NaN that signals, of which the last digit alone tells that it is none of the infinities. */
static void put_nan(const struct wpk_tensor *t, double *values)
{
    if (t->dtype == WPK_F64) {
        memcpy(values, &(uint64_t){0x7ff0000000000001}, sizeof(*values));
    }
}

/* Compute the reference outputs by the interpreter, or by direct evaluation. */
static void refer(bool directly, const struct wpk_program *program,
                  const struct wpk_reference_args *args, double *value, double *magnitude)
{
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_reference_run(program, args, value, magnitude, &diag), WPK_OK);
    if (directly) {
        assert_int_equal(wpk_direct_run(program, args, 1, value, &diag), WPK_OK);
    }
}

/* Copy the output, the last argument, from the device that computed it, if that is no CPU. */
static int copy_output(void *object, void **values, int count)
{
    int (*copy)(void *, struct buffer *) = NULL;
    *(void **)&copy = dlsym(object, "halide_copy_to_host");
    return copy == NULL ? 0 : copy(NULL, values[count]);
}

/* In a process of its own: a kernel that leaves its arguments faults.
 *   shape  values [1 + count] */
static void call_kernel(const struct wpk_kernels *batch, int i, void *object, void **values,
                        int count)
{
    int (*kernel)(void **) = NULL;
    char symbol[24];
    int status = 0;
    snprintf(symbol, sizeof(symbol), "k%d_argv", i);
    *(void **)&kernel = dlsym(object, symbol);
    assert_non_null(kernel);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka would go on with the tests */
        signal(SIGBUS, SIG_DFL);
        _exit(kernel(values) == 0 && copy_output(object, values, count) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        show(batch, i);
        fail_msg("the kernel ended with status %d", status);
    }
}

/* Compare one output with what the reference makes of the program that has no other. */
static void check_output(const struct wpk_kernels *batch, int i, char letter,
                         const struct wpk_reference_args *args, const struct argument *output)
{
    struct wpk_program view;
    assert_int_equal(wpk_program_view(&batch->subject[i].schedule.main, output->tensor, &view),
                     WPK_OK);
    const struct wpk_program *program = &view;
    size_t points = (size_t)wpk_tensor_elements(&program->tensors[output->tensor]);
    double *value = malloc(points * sizeof(*value)), *magnitude = malloc(points * sizeof(*value));
    assert_true(value != NULL && magnitude != NULL);
    refer(letter == WPK_VALUES_BITS, program, args, value, magnitude);
    expect_close(batch, i, letter, output, value, magnitude);
    free(value);
    free(magnitude);
    wpk_program_fini(&view);
}

static void run_kernel(const struct wpk_kernels *batch, int i, char letter, bool at_end,
                       void *object, struct wpk_rng *rng)
{
    const struct wpk_program *program = &batch->subject[i].schedule.main;
    struct argument *arguments = calloc(ARGUMENTS_MAX, sizeof(*arguments));
    void *user = NULL, *values[1 + ARGUMENTS_MAX] = {&user};
    struct wpk_reference_args args = {.cells = true};
    int count = 0;
    assert_non_null(arguments);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < program->tensor_count; t++) {
            enum wpk_role role = program->tensors[t].role;
            bool read = role == WPK_ROLE_INPUT || role == WPK_ROLE_CONSTANT;
            if (pass == 0 ? !read : role != WPK_ROLE_OUTPUT) {
                continue;
            }
            struct argument *a = &arguments[count++];
            describe(program, t, at_end, a);
            values[count] = &a->buffer;
            if (read) {
                a->values = wpk_check_values(rng, &program->tensors[t]);
                if (batch->masked) {
                    mask(rng, &program->tensors[t], a->values);
                }
                if (batch->exact) {
                    put_nan(&program->tensors[t], a->values);
                }
                put_values(rng, letter, &program->tensors[t], a->values);
                make_cells(&program->tensors[t], a->values);
                if (letter == WPK_VALUES_BITS) {
                    put_edges(&program->tensors[t], (uint64_t)t, a->values);
                }
                move(program, a, a->values, true);
                args.tensor[t] = a->values;
            }
        }
    }
    call_kernel(batch, i, object, values, count);
    for (int o = 0; o < count; o++) {
        if (program->tensors[arguments[o].tensor].role == WPK_ROLE_OUTPUT) {
            check_output(batch, i, letter, &args, &arguments[o]);
        }
    }
    for (int a = 0; a < count; a++) {
        munmap(arguments[a].map, arguments[a].map_size);
        free(arguments[a].values);
    }
    free(arguments);
}

/* The reference takes little time. */
static bool is_small(const struct wpk_program *program)
{
    int64_t most = 0;
    for (int t = 0; t < program->tensor_count; t++) {
        int64_t elements = wpk_tensor_elements(&program->tensors[t]);
        most = elements > most ? elements : most;
    }
    return most <= SMALL;
}

static void clear(struct wpk_kernels *batch)
{
    char path[PATH_SIZE];
    for (int i = 0; i <= batch->count; i++) {
        put_path(batch, i, path);
        unlink(path);
        if (i < batch->count) {
            wpk_schedule_fini(&batch->subject[i].schedule);
        }
    }
    snprintf(path, sizeof(path), "%s/all.so", batch->directory);
    unlink(path);
    rmdir(batch->directory);
    batch->count = 0;
}

void wpk_check_kernels(struct wpk_kernels *batch, struct wpk_rng *rng)
{
    char path[PATH_SIZE];
    if (batch->count == 0) {
        return;
    }
    snprintf(batch->directory, sizeof(batch->directory), "%s/wpk-c-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(batch->directory));
    write_kernels(batch);
    run_compiler(batch);
    snprintf(path, sizeof(path), "%s/all.so", batch->directory);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        fail_msg("%s", dlerror());
    }
    for (int i = 0; i < batch->count; i++) {
        if (batch->subject[i].refused) {
            continue;
        }
        const char *letter = batch->subject[i].values;
        if (letter == NULL) {
            run_kernel(batch, i, WPK_VALUES_NUMBERS, true, object, rng);
            if (is_small(&batch->subject[i].schedule.main)) {
                run_kernel(batch, i, WPK_VALUES_NUMBERS, false, object, rng);
            }
            continue;
        }
        for (int k = 0; letter[k] != '\0'; k++) {
            run_kernel(batch, i, letter[k], k % 2 == 0, object, rng);
        }
    }
    dlclose(object);
    batch->kernels += batch->count;
    clear(batch);
}
