/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the emulated driver share. */
#ifndef WPK_TESTS_GPU_DRIVER_H
#define WPK_TESTS_GPU_DRIVER_H

#include "common/cuda_calls.h"

#include <stdbool.h>

#define WPK_DRIVER_PARAMETERS_MAX 4096 /* bytes of a launch */

#define WPK_DRIVER_BUS "0000:00:00.0"  /* the emulated GPU's place */

#define WPK_DRIVER_DECLARE(name, parameters)                                                       \
    __attribute__((visibility("default"))) int name parameters;
WPK_CUDA_CALL_LIST(WPK_DRIVER_DECLARE)

/* The error with which a call of the driver's function `name` fails on order, or 0. An error that
 * ends a context sticks. */
int wpk_driver_ordered(const char *name);

/* Each function of the driver begins with it. */
#define WPK_OBEY_ORDERS()                                                                          \
    do {                                                                                           \
        int failure = wpk_driver_ordered(__func__);                                                \
        if (failure != WPK_CUDA_SUCCESS) {                                                         \
            return failure;                                                                        \
        }                                                                                          \
    } while (0)

/* Check that a call may use the current context: the driver is started, no error sticks, and the
 * thread has a current context. Returns a CUresult. */
int wpk_driver_entered(void);

/* Let a stream record launches for a graph; NULL: none does any more. */
void wpk_driver_set_capturing(const void *stream);
bool wpk_driver_is_capturing(const void *stream);
/* The CUresult of a call that such a stream refuses. */
int wpk_driver_uncaptured(const void *stream);

/* Check a launch, and copy the values of its parameters.
 *   shape   values [WPK_DRIVER_PARAMETERS_MAX], of which *size are written on success */
int wpk_driver_take(const struct wpk_cuda_kernel_node *launch, uint8_t *values, size_t *size);

/* Run a launch on values that were taken, and advance the clock. */
int wpk_driver_launch(const struct wpk_cuda_kernel_node *launch, const uint8_t *values);

#endif
