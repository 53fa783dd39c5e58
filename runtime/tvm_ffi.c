/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel as functions of TVM's ABI. `wpkctl get NAME --tvm-ffi` links this file for each kernel:
 *
 *     c6_ffi.so             __tvm_ffi_c6(inputs..., outputs...)
 *                           __tvm_ffi_c6_prepare(constants...)
 *     c6_ffi.kernel.so ...  the kernel with its choice, opened by libwpk at the first call
 *
 * It needs libc alone: libwpk is looked for at run time, and TVM's library, which takes errors, is
 * there when somebody calls. Declarations of both sides' structs follow
 * dlpack/dlpack.h and tvm/ffi/c_api.h. Calls of one kernel wait for each other. */
#define _GNU_SOURCE
#include "runtime/wpk.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 64
#define OBJECT_HEAD 24 /* bytes of a reference-counted object before what it holds */
#define ON_CPU 1

enum { NONE = 0, TENSOR_POINTER = 7, TENSOR_OBJECT = 70 };

struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *extent;
    int64_t *stride; /* elements; NULL: row-major */
    uint64_t offset; /* bytes */
};

struct any {
    int32_t type;
    uint32_t zero;
    void *pointer;
};

extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
    __attribute__((weak));

#define LIBRARY_LIST(X)                                                                            \
    X(wpk_open)                                                                                    \
    X(wpk_context_new)                                                                             \
    X(wpk_context_trouble)                                                                         \
    X(wpk_kernel_prepare)                                                                          \
    X(wpk_kernel_run)                                                                              \
    X(wpk_kernel_input_count)                                                                      \
    X(wpk_kernel_output_count)                                                                     \
    X(wpk_kernel_constant_count)                                                                   \
    X(wpk_kernel_input)                                                                            \
    X(wpk_kernel_output)                                                                           \
    X(wpk_kernel_constant)                                                                         \
    X(wpk_tensor_pack)                                                                             \
    X(wpk_tensor_unpack)                                                                           \
    X(wpk_tensor_type_bytes)                                                                       \
    X(wpk_layout_is_row_major)                                                                     \
    X(wpk_err_text)

/* Held for a whole call; what is NULL was not opened yet. */
static struct {
    pthread_mutex_t lock;
#define FIELD(name) __typeof__(name) *name;
    LIBRARY_LIST(FIELD)
#undef FIELD
    struct wpk_kernel *kernel;
    struct wpk_context *context;
    bool is_prepared;            /* constants, or there are none */
    void *buffer[ARGUMENTS_MAX]; /* of arguments whose layout is not row-major, by their place */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int fail(const char *kind, const char *what, const char *why)
{
    char text[8192];
    snprintf(text, sizeof(text), "%s: %s", what, why);
    if (TVMFFIErrorSetRaisedFromCStr != NULL) {
        TVMFFIErrorSetRaisedFromCStr(kind, text);
    }
    return -1;
}

/* ---- opening */

/* libwpk is on this file's run path, which begins with its own folder, or is loaded already, or the
 * system has it. */
static int open_library(void)
{
    void *library = dlopen("libwpk.so.0", RTLD_NOW);
    if (library == NULL) {
        return fail("RuntimeError", "put libwpk beside this library, or load it before", dlerror());
    }
#define FIND(name)                                                                                 \
    self.name = (__typeof__(name) *)dlsym(library, #name);                                         \
    if (self.name == NULL) {                                                                       \
        return fail("RuntimeError", "libwpk of another version has no", #name);                    \
    }
    LIBRARY_LIST(FIND)
#undef FIND
    return 0;
}

/* The absolute path of this shared library: the process may change its working directory later. */
static char here[4096];

__attribute__((constructor)) static void find_here(void)
{
    Dl_info info;
    if (dladdr(&self, &info) == 0 || realpath(info.dli_fname, here) == NULL) {
        here[0] = '\0';
    }
}

static int open_kernel(void)
{
    char path[sizeof(here) + 32];
    struct wpk_diag diag = {.line = 0};
    if (self.context != NULL) {
        return 0;
    }
    if (open_library() != 0) {
        return -1;
    }
    size_t length = strlen(here);
    length -= length > 3 && strcmp(here + length - 3, ".so") == 0 ? 3 : 0;
    snprintf(path, sizeof(path), "%.*s.kernel.so.choice", (int)length, here);
    wpk_err err = self.kernel == NULL ? self.wpk_open(path, NULL, &self.kernel, &diag) : WPK_OK;
    if (err == WPK_OK) {
        const struct wpk_context_options options = {.threads = 0};
        err = self.wpk_context_new(&options, &self.context);
    }
    self.is_prepared = err == WPK_OK && self.wpk_kernel_constant_count(self.kernel) == 0 &&
                       self.wpk_kernel_prepare(self.kernel, NULL, 0, &diag) == WPK_OK;
    return err == WPK_OK ? 0
                         : fail("RuntimeError", path,
                                diag.text[0] != '\0' ? diag.text : self.wpk_err_text(err));
}

/* ---- arguments */

static bool has_type(const struct dl_tensor *tensor, enum wpk_dtype dtype)
{
    static const uint8_t codes[WPK_DTYPE_COUNT] = {
        [WPK_F32] = 2, [WPK_F64] = 2, [WPK_F16] = 2, [WPK_BF16] = 4, [WPK_I8] = 0,
        [WPK_U8] = 1,  [WPK_I16] = 0, [WPK_I32] = 0, [WPK_I64] = 0,  [WPK_BOOL] = 6};
#define BITS(name, text, size, floating) [WPK_##name] = 8 * (size),
    static const uint8_t bits[WPK_DTYPE_COUNT] = {WPK_DTYPE_LIST(BITS)};
#undef BITS
    return tensor->code == codes[dtype] && tensor->bits == bits[dtype] && tensor->lanes == 1;
}

static bool has_shape(const struct dl_tensor *tensor, const struct wpk_tensor_type *type)
{
    int64_t step = 1;
    bool same = tensor->rank == type->rank;
    for (int d = type->rank - 1; d >= 0 && same; d--) {
        same = tensor->extent[d] == type->extent[d] &&
               (tensor->stride == NULL || type->extent[d] == 1 || tensor->stride[d] == step);
        step *= type->extent[d];
    }
    return same;
}

/* The tensor of a call as data of the kernel's argument: where it lies, if it lies as the kernel
 * wants it, else in the buffer of its place. */
static int take(const struct any *given, const struct wpk_argument *argument, bool is_dense,
                int place, struct wpk_tensor_data *out)
{
    const char *head = given->pointer;
    const struct dl_tensor *tensor =
        (const void *)(given->type == TENSOR_OBJECT ? head + OBJECT_HEAD : head);
    if (given->type != TENSOR_OBJECT && given->type != TENSOR_POINTER) {
        return fail("TypeError", argument->name, "no tensor");
    }
    if (tensor->device_type != ON_CPU) {
        return fail("ValueError", argument->name, "not in the CPU's memory");
    }
    if (!has_type(tensor, argument->type.dtype)) {
        return fail("TypeError", argument->name, "elements of another type");
    }
    if (!has_shape(tensor, &argument->type)) {
        return fail("ValueError", argument->name, "of another shape, or not contiguous");
    }
    size_t bytes = self.wpk_tensor_type_bytes(&argument->type);
    *out = (struct wpk_tensor_data){argument->name, (char *)tensor->data + tensor->offset, bytes};
    if (is_dense || self.wpk_layout_is_row_major(&argument->type.layout)) {
        return 0;
    }
    if (self.buffer[place] == NULL) {
        self.buffer[place] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    }
    out->data = self.buffer[place];
    return out->data != NULL ? 0 : fail("MemoryError", argument->name, "out of memory");
}

/* ---- the functions */

static int check_count(int32_t count, size_t wanted)
{
    char text[64];
    snprintf(text, sizeof(text), "%d given, %zu wanted", (int)count, wanted);
    return (size_t)count == wanted && wanted <= ARGUMENTS_MAX
               ? 0
               : fail("TypeError", "arguments", text);
}

static int prepare(const struct any *args, int32_t count)
{
    struct wpk_tensor_data constants[ARGUMENTS_MAX];
    struct wpk_diag diag = {.line = 0};
    if (open_kernel() != 0 ||
        check_count(count, self.wpk_kernel_constant_count(self.kernel)) != 0) {
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if (take(&args[i], self.wpk_kernel_constant(self.kernel, (size_t)i), true, 0,
                 &constants[i]) != 0) {
            return -1;
        }
    }
    wpk_err err = self.wpk_kernel_prepare(self.kernel, constants, (size_t)count, &diag);
    self.is_prepared = err == WPK_OK;
    return err == WPK_OK ? 0 : fail("RuntimeError", self.wpk_err_text(err), diag.text);
}

static int run(const struct any *args, int32_t count)
{
    struct wpk_tensor_data data[ARGUMENTS_MAX];
    const struct wpk_argument *argument[ARGUMENTS_MAX];
    void *own[ARGUMENTS_MAX];
    if (open_kernel() != 0) {
        return -1;
    }
    size_t inputs = self.wpk_kernel_input_count(self.kernel);
    size_t outputs = self.wpk_kernel_output_count(self.kernel);
    if (check_count(count, inputs + outputs) != 0) {
        return -1;
    }
    if (!self.is_prepared) {
        return fail("RuntimeError", "the kernel has constants",
                    "call NAME_prepare with them first");
    }
    for (size_t i = 0; i < inputs + outputs; i++) {
        argument[i] = i < inputs ? self.wpk_kernel_input(self.kernel, i)
                                 : self.wpk_kernel_output(self.kernel, i - inputs);
        struct wpk_tensor_data dense;
        if (take(&args[i], argument[i], true, (int)i, &dense) != 0 ||
            take(&args[i], argument[i], false, (int)i, &data[i]) != 0) {
            return -1;
        }
        own[i] = dense.data;
        if (i < inputs && data[i].data != own[i]) {
            self.wpk_tensor_pack(&argument[i]->type, own[i], data[i].data);
        }
    }
    wpk_err err =
        self.wpk_kernel_run(self.kernel, self.context, data, inputs, data + inputs, outputs);
    for (size_t i = inputs; i < inputs + outputs && err == WPK_OK; i++) {
        if (data[i].data != own[i]) {
            self.wpk_tensor_unpack(&argument[i]->type, data[i].data, own[i]);
        }
    }
    return err == WPK_OK ? 0
                         : fail("RuntimeError", self.wpk_err_text(err),
                                self.wpk_context_trouble(self.context));
}

#define EXPORT(name, function)                                                                     \
    __attribute__((visibility("default"))) int name(void *, const struct any *, int32_t,           \
                                                    struct any *);                                 \
    int name(void *handle, const struct any *args, int32_t count, struct any *result)              \
    {                                                                                              \
        (void)handle;                                                                              \
        pthread_mutex_lock(&self.lock);                                                            \
        int status = function(args, count);                                                        \
        pthread_mutex_unlock(&self.lock);                                                          \
        *result = (struct any){.type = NONE};                                                      \
        return status;                                                                             \
    }
EXPORT(wpk_tvm_ffi_run, run)
EXPORT(wpk_tvm_ffi_prepare, prepare)
