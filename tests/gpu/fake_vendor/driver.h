/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the libraries that stand for vendors': the emulated driver computes for them. */
#ifndef WPK_TESTS_GPU_FAKE_VENDOR_DRIVER_H
#define WPK_TESTS_GPU_FAKE_VENDOR_DRIVER_H

#include "common/cuda_calls.h"

#include <stdbool.h>

#define FAKE_FIELD(name, parameters) int(*name) parameters;
struct fake_driver {
    WPK_CUDA_CALL_LIST(FAKE_FIELD)
    void *module;
};

/* Find the driver, which the process has opened, and load code. */
bool fake_driver_open(struct fake_driver *driver, const char *ptx);
bool fake_driver_find(const struct fake_driver *driver, const char *name, void **function);

/* The variable of the environment is this word. */
bool fake_is_mode(const char *variable, const char *mode);

#endif
