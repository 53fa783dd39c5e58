/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded schedule as code, to be read. */
#ifndef WPK_CLIENT_KERNEL_CODE_H
#define WPK_CLIENT_KERNEL_CODE_H

#include "common/buf.h"

enum wpk_kernel_code {
    WPK_KERNEL_CODE_HALIDE, /* Halide's program in C++ */
    WPK_KERNEL_CODE_CUDA,   /* the CUDA C that the back end prints */
};

/* Append the code of a schedule's main program.
 *   shape   schedule: its text
 *   errors  WPK_EUNSUPPORTED the schedule has no such code, with the reason; those of
 *           wpk_schedule_parse; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_kernel_code_print(enum wpk_kernel_code form, const char *schedule,
                                             struct wpk_buf *out, struct wpk_diag *diag);

#endif
