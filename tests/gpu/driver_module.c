/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/driver_module.h"

#include "common/cubin.h"
#include "common/cuda_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTX_VERSION 90 /* 9.0: of CUDA 13.0 */

/* The numbers that the text's first lines have behind ".version " and ".target sm_"; 0: none. */
static void read_head(const char *text, int *version, int *target)
{
    const char *at = strstr(text, ".version ");
    char *end = NULL;
    *version = at != NULL ? (int)strtol(at + strlen(".version "), &end, 10) * 10 : 0;
    *version += end != NULL && *end == '.' ? (int)strtol(end + 1, NULL, 10) : 0;
    at = strstr(text, ".target sm_");
    *target = at != NULL ? (int)strtol(at + strlen(".target sm_"), NULL, 10) : 0;
}

/* Machine code runs on GPUs of its generation, of its capability or a later one. */
static int take_cubin(struct wpk_driver_module *module, const void *image)
{
    int capability = 0;
    module->cubin_size = wpk_cubin_bytes(image);
    module->cubin = malloc(module->cubin_size + 1);
    if (module->cubin == NULL) {
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    memcpy(module->cubin, image, module->cubin_size);
    if (wpk_cubin_capability(module->cubin, module->cubin_size, &capability) != WPK_OK) {
        return WPK_CUDA_INVALID_IMAGE;
    }
    bool fits =
        capability / 10 == WPK_DRIVER_CAPABILITY / 10 && capability <= WPK_DRIVER_CAPABILITY;
    return fits ? WPK_CUDA_SUCCESS : WPK_CUDA_NO_BINARY_FOR_GPU;
}

static int take_ptx(struct wpk_driver_module *module, const char *text, char *fault,
                    size_t fault_size)
{
    struct wpk_diag diag = {0};
    int version, target;
    read_head(text, &version, &target);
    if (version > PTX_VERSION) {
        return WPK_CUDA_UNSUPPORTED_PTX_VERSION;
    }
    if (target > WPK_DRIVER_CAPABILITY) {
        return WPK_CUDA_NO_BINARY_FOR_GPU;
    }
    wpk_err err = wpk_ptx_parse(text, &module->ptx, &diag);
    if (err != WPK_OK) {
        snprintf(fault, fault_size, "line %d of the PTX: %.200s", diag.line, diag.text);
        return err == WPK_ENOMEM ? WPK_CUDA_OUT_OF_MEMORY : WPK_CUDA_INVALID_PTX;
    }
    return WPK_CUDA_SUCCESS;
}

void wpk_driver_module_free(struct wpk_driver_module *module)
{
    wpk_ptx_fini(&module->ptx);
    free(module->cubin);
    free(module);
}

int wpk_driver_module_load(const void *image, struct wpk_driver_module **out, char *fault,
                           size_t fault_size)
{
    struct wpk_driver_module *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    bool cubin = wpk_cubin_is(image, strlen(image));
    int result = cubin ? take_cubin(made, image) : WPK_CUDA_SUCCESS;
    if (result == WPK_CUDA_SUCCESS) {
        result = take_ptx(made, (const char *)image + made->cubin_size, fault, fault_size);
    }
    if (result != WPK_CUDA_SUCCESS) {
        wpk_driver_module_free(made);
        return result;
    }
    *out = made;
    return WPK_CUDA_SUCCESS;
}

const struct wpk_ptx_entry *wpk_driver_module_find(const struct wpk_driver_module *module,
                                                   const char *name, int *registers)
{
    struct wpk_cubin_function code = {0};
    if (module->cubin != NULL &&
        wpk_cubin_find(module->cubin, module->cubin_size, name, &code) != WPK_OK) {
        return NULL;
    }
    *registers = code.registers;
    return wpk_ptx_find(&module->ptx, name);
}
