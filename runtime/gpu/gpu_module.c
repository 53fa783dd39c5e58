/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/gpu_program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The lock guards all of it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wpk_gpu_module *modules;
static uint64_t steps;
static int kept_max;

static bool is_same(const struct wpk_gpu_module *module, const void *context,
                    const struct wpk_launch_code *code)
{
    return module->context == context && module->code.size == code->cubin_size + code->ptx_size &&
           memcmp(module->code.data, code->cubin, code->cubin_size) == 0 &&
           memcmp(module->code.data + code->cubin_size, code->ptx, code->ptx_size) == 0;
}

/* A driver finds the end of a text by its NUL, and that of a cubin by its head; the emulated driver
 * looks behind the cubin for the PTX, which it runs. A cubin of another architecture is no binary
 * for the GPU; one that is newer than the driver is an invalid image. */
static wpk_err load(struct wpk_gpu_module *module, const struct wpk_launch_code *code,
                    struct wpk_diag *diag)
{
    const struct wpk_cuda_driver *driver = module->driver;
    int result = WPK_CUDA_NO_BINARY_FOR_GPU;
    wpk_buf_append(&module->code, code->cubin, code->cubin_size);
    wpk_buf_append(&module->code, code->ptx, code->ptx_size);
    wpk_err err = wpk_buf_status(&module->code);
    if (err != WPK_OK) {
        return err;
    }
    if (code->cubin_size > 0) {
        result = driver->cuModuleLoadData(&module->handle, module->code.data);
    }
    if (result == WPK_CUDA_NO_BINARY_FOR_GPU || result == WPK_CUDA_INVALID_IMAGE) {
        module->by_driver = true;
        result = driver->cuModuleLoadData(&module->handle, module->code.data + code->cubin_size);
    }
    return wpk_cuda_driver_check(driver, result, "loading the kernel", diag);
}

static wpk_err add(const struct wpk_cuda_driver *driver, const void *context,
                   const struct wpk_launch_code *code, struct wpk_gpu_module **out,
                   struct wpk_diag *diag)
{
    struct wpk_gpu_module *module = calloc(1, sizeof(*module));
    if (module == NULL) {
        return WPK_ENOMEM;
    }
    *module = (struct wpk_gpu_module){.driver = driver, .context = context, .users = 1};
    wpk_err err = load(module, code, diag);
    if (err != WPK_OK) {
        wpk_buf_fini(&module->code);
        free(module);
        return err;
    }
    module->next = modules;
    modules = module;
    *out = module;
    return WPK_OK;
}

wpk_err wpk_gpu_module_take(const struct wpk_cuda_driver *driver, const void *context,
                            const struct wpk_launch_code *code, struct wpk_gpu_module **out,
                            struct wpk_diag *diag)
{
    pthread_mutex_lock(&lock);
    struct wpk_gpu_module *module = modules;
    while (module != NULL && !is_same(module, context, code)) {
        module = module->next;
    }
    wpk_err err = WPK_OK;
    if (module != NULL) {
        module->users++;
        *out = module;
    } else {
        err = add(driver, context, code, out, diag);
    }
    pthread_mutex_unlock(&lock);
    return err;
}

/* Unload the one of the context that has had no users for longest, if more are kept than may be. */
static void shrink(const void *context)
{
    struct wpk_gpu_module **oldest = NULL;
    int unused = 0;
    for (struct wpk_gpu_module **at = &modules; *at != NULL; at = &(*at)->next) {
        if ((*at)->users == 0 && (*at)->context == context) {
            unused++;
            oldest = oldest == NULL || (*at)->given < (*oldest)->given ? at : oldest;
        }
    }
    if (unused > kept_max) {
        struct wpk_gpu_module *module = *oldest;
        *oldest = module->next;
        (void)module->driver->cuModuleUnload(module->handle);
        wpk_buf_fini(&module->code);
        free(module);
    }
}

void wpk_gpu_module_give(struct wpk_gpu_module *module)
{
    pthread_mutex_lock(&lock);
    WPK_ASSERT(module->users > 0);
    module->users--;
    module->given = ++steps;
    shrink(module->context);
    pthread_mutex_unlock(&lock);
}

void wpk_gpu_module_keep(int count)
{
    pthread_mutex_lock(&lock);
    kept_max = count;
    pthread_mutex_unlock(&lock);
}
