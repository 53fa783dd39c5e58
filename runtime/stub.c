/* SPDX-License-Identifier: Apache-2.0 */
/* The stub, which is linked into every kernel's shared object beside the generated code.
 *
 * Generated code calls a few hooks of its generator's runtime. The stub defines them: each hook
 * calls the table that the loader binds. So a kernel needs nothing but libc and libm, and shares no
 * symbol with another copy of that runtime in its process. Code without asserts and bounds queries
 * calls the hooks below only. Code that calls another hook does not link, which is a build error.
 *
 * runtime/link.h says how a kernel is linked. The generator is asked for no_runtime, no_asserts,
 * no_bounds_query and user_context; its wrappers with the suffix _argv take an array of pointers:
 * first one to the user context, then the buffers. */
#include "runtime/abi.h"

#ifdef WPK_HAVE_HALIDE
/* Only to compare layouts: nothing of it is called. The names of Halide are declared before
 * ours. */
#include <HalideRuntime.h>

#define CHECK_FIELD(field)                                                                         \
    _Static_assert(offsetof(struct wpk_abi_buffer, field) ==                                       \
                       offsetof(struct halide_buffer_t, field),                                    \
                   "same place")
CHECK_FIELD(device);
CHECK_FIELD(device_interface);
CHECK_FIELD(host);
CHECK_FIELD(flags);
CHECK_FIELD(dimensions);
CHECK_FIELD(dim);
CHECK_FIELD(padding);
_Static_assert(sizeof(struct wpk_abi_buffer) == sizeof(struct halide_buffer_t), "same size");
_Static_assert(sizeof(struct wpk_abi_dim) == sizeof(struct halide_dimension_t), "same size");
_Static_assert(offsetof(struct wpk_abi_buffer, type_code) ==
                   offsetof(struct halide_buffer_t, type) + offsetof(struct halide_type_t, code),
               "same place");
_Static_assert(offsetof(struct wpk_abi_buffer, type_lanes) ==
                   offsetof(struct halide_buffer_t, type) + offsetof(struct halide_type_t, lanes),
               "same place");
_Static_assert(offsetof(struct wpk_abi_dim, stride) == offsetof(struct halide_dimension_t, stride),
               "same place");
#else
void *halide_malloc(void *user, size_t size);
void halide_free(void *user, void *memory);
int halide_do_par_for(void *user, wpk_abi_task task, int min, int extent, uint8_t *closure);
void halide_error(void *user, const char *message);
#endif

int wpk_main_argv(void **arguments);
/* Absent where there is nothing to prepare; hidden, so that the linker settles it. */
int wpk_prepare_argv(void **arguments) __attribute__((weak, visibility("hidden")));

/* The linker makes these from the file `manifest`. */
extern const char _binary_manifest_start[];
extern const char _binary_manifest_end[];

extern struct wpk_abi_descriptor wpk_descriptor;

static const struct wpk_abi_host *host;

void *halide_malloc(void *user, size_t size)
{
    return host->scratch_take(user, size);
}

void halide_free(void *user, void *memory)
{
    host->scratch_give(user, memory);
}

int halide_do_par_for(void *user, wpk_abi_task task, int min, int extent, uint8_t *closure)
{
    return host->parallel_for(user, task, min, extent, closure);
}

void halide_error(void *user, const char *message)
{
    host->error(user, message);
}

static void bind_host(const struct wpk_abi_host *table)
{
    host = table;
}

static int call(int (*function)(void **), void *user, struct wpk_abi_buffer *const *arguments,
                size_t count)
{
    void *values[1 + WPK_ABI_ARGUMENTS_MAX];

    if (count > WPK_ABI_ARGUMENTS_MAX) {
        host->error(user, "too many arguments");
        return -1;
    }
    values[0] = &user;
    for (size_t i = 0; i < count; i++) {
        values[1 + i] = arguments[i];
    }
    return function(values);
}

static int run(void *user, struct wpk_abi_buffer *const *arguments, size_t count)
{
    return call(wpk_main_argv, user, arguments, count);
}

static int prepare(void *user, struct wpk_abi_buffer *const *arguments, size_t count)
{
    return call(wpk_prepare_argv, user, arguments, count);
}

/* The one exported symbol. */
__attribute__((visibility("default"))) struct wpk_abi_descriptor wpk_descriptor = {
    .abi_version = WPK_ABI_VERSION,
    .manifest = _binary_manifest_start,
    .manifest_end = _binary_manifest_end,
    .bind = bind_host,
    .run = run,
};

/* Fill in the address that only the linker knows when the object is loaded, before it is used. */
__attribute__((constructor)) static void complete_descriptor(void)
{
    wpk_descriptor.prepare = wpk_prepare_argv != NULL ? prepare : NULL;
}
