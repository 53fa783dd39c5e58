/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules and code of kernels, to be read. */
#ifndef WPK_TARGET_CODE_H
#define WPK_TARGET_CODE_H

#include "search/space.h"

enum wpk_code {
    WPK_CODE_OWN,    /* of the back end that compiled it */
    WPK_CODE_HALIDE, /* Halide's program in C++ */
    WPK_CODE_CUDA,   /* the CUDA C that its back end prints */
};

/* Append the code of a schedule's main program.
 *   shape   schedule: its text
 *   errors  WPK_EUNSUPPORTED the schedule has no such code, with the reason; those of
 *           wpk_schedule_parse and wpk_nest_check */
wpk_err wpk_code_print(enum wpk_code form, const char *schedule, struct wpk_buf *out,
                       struct wpk_diag *diag);

/* Append the schedule of a candidate's text.
 *   errors  those of wpk_space_fits and wpk_lower */
wpk_err wpk_code_schedule(const struct wpk_space *space, const char *candidate, struct wpk_buf *out,
                          struct wpk_diag *diag);

#endif
