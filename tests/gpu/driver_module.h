/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of the emulated driver, which runs PTX. Of a cubin the driver reads what the functions
 * need; the PTX of the same functions has to lie behind it in memory, as libwpk lays it. */
#ifndef WPK_TESTS_GPU_DRIVER_MODULE_H
#define WPK_TESTS_GPU_DRIVER_MODULE_H

#include "tests/gpu/ptx.h"

#include <stddef.h>

#define WPK_DRIVER_CAPABILITY 90 /* of the emulated GPU */

struct wpk_driver_module {
    struct wpk_ptx ptx;
    void *cubin; /* owned; NULL: the module is PTX alone */
    size_t cubin_size;
};

/* Load PTX, or a cubin with PTX behind it. Returns a CUresult; `fault` has the line of PTX that the
 * emulator does not take.
 *   owns  caller calls wpk_driver_module_free */
int wpk_driver_module_load(const void *image, struct wpk_driver_module **out, char *fault,
                           size_t fault_size);
void wpk_driver_module_free(struct wpk_driver_module *module);

/* The function of that name, and the registers of a thread, 0 if they are not known; NULL: the
 * module has none. */
const struct wpk_ptx_entry *wpk_driver_module_find(const struct wpk_driver_module *module,
                                                   const char *name, int *registers);

#endif
