/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a GPU program: its launches as data, and the code that they launch.
 *
 *     {"version":5,"architecture":"sm_90","cubin_bytes":9312,"arguments":3,
 *      "launches":[{"entry":"wpk_main_0","blocks":[64,1,1],"threads":[256,1,1],
 *                   "shared_bytes":8192,"added_bytes":0,"registers":32,"local_bytes":0,
 *                   "parameters":[{"tensor":0,"offset":24},{"tensor":3,"offset":0},
 *                                 {"number":-1,"bytes":4}]}],
 *      "scratch":[{"bytes":4096,"zeroed":false}]}
 *     (the cubin)
 *     .version 8.8
 *     ...
 *
 * The first line is the plan, the rest the code: for the architecture as a cubin (common/cubin.h),
 * which may be missing, and as PTX, for newer ones. A program's tensors are its arguments, in the
 * order of the kernel's manifest, then its scratch tensors. A parameter of a launch is an address
 * in one of them, in bytes from its beginning, padding included, or an integer. Launches run one
 * after another; each waits for the one before it. */
#ifndef WPK_SCHEMA_LAUNCH_PLAN_H
#define WPK_SCHEMA_LAUNCH_PLAN_H

#include "common/buf.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_LAUNCH_PLAN_VERSION 5
#define WPK_LAUNCHES_MAX 64
#define WPK_LAUNCH_ENTRY_MAX 64
#define WPK_LAUNCH_SCRATCH_MAX 64
#define WPK_LAUNCH_ARGUMENTS_MAX 64
#define WPK_LAUNCH_TENSORS_MAX (WPK_LAUNCH_ARGUMENTS_MAX + WPK_LAUNCH_SCRATCH_MAX)
#define WPK_LAUNCH_PARAMETERS_MAX 128       /* of a launch */
#define WPK_LAUNCH_PLAN_PARAMETERS_MAX 1024 /* of all launches */
#define WPK_LAUNCH_ARCHITECTURE_MAX 16
#define WPK_LAUNCH_PLAN_SIZE_MAX ((size_t)64 << 10) /* bytes of the first line */

struct wpk_launch_parameter {
    int tensor;    /* an argument, or from `argument_count` on a scratch tensor; -1: a number */
    int bytes;     /* 8: an address, or a number; 4: a number */
    int64_t value; /* bytes from the tensor's beginning, or the number, signed or not */
};

struct wpk_launch_step {
    char entry[WPK_LAUNCH_ENTRY_MAX];     /* the function's name */
    int64_t blocks[3], threads[3];        /* x, y, z; >= 1 */
    int64_t shared_bytes;                 /* that the function declares */
    int64_t added_bytes;                  /* of shared memory that the launch adds to them */
    int registers;                        /* of a thread; 0: not known, since there is no cubin */
    int64_t local_bytes;                  /* of local memory that a thread has: spilled registers */
    int parameter_first, parameter_count; /* of the plan's */
};

/* A tensor that one launch leaves to the next. */
struct wpk_launch_scratch {
    int64_t bytes; /* padding included; >= 1 */
    bool zeroed;   /* its bytes are 0 before the first launch */
};

struct wpk_launch_plan {
    char architecture[WPK_LAUNCH_ARCHITECTURE_MAX]; /* "sm_90" */
    int argument_count;
    int64_t cubin_bytes; /* of its image's code, once it is one */
    struct wpk_launch_step launch[WPK_LAUNCHES_MAX];
    int launch_count;                                                      /* >= 1 */
    struct wpk_launch_parameter parameter[WPK_LAUNCH_PLAN_PARAMETERS_MAX]; /* launch by launch */
    int parameter_count;
    struct wpk_launch_scratch scratch[WPK_LAUNCH_SCRATCH_MAX];
    int scratch_count;
};

/* The code of an image, in its bytes: the PTX lies behind the cubin, and has no NUL. */
struct wpk_launch_code {
    const char *cubin;
    size_t cubin_size; /* bytes; 0: there is none */
    const char *ptx;
    size_t ptx_size; /* bytes; >= 1 */
};

/* Add a parameter to the plan's last launch.
 *   errors  WPK_ENOSPC there are too many; the plan stays as it was */
wpk_err wpk_launch_plan_add(struct wpk_launch_plan *plan, struct wpk_launch_parameter parameter);

/* Check that the addresses that launches take lie inside of the arguments.
 *   shape   bytes [count]: of the arguments that the kernel has, padding included
 *   errors  WPK_ERANGE with the launch; WPK_EMISMATCH another number of arguments */
wpk_err wpk_launch_plan_check(const struct wpk_launch_plan *plan, const size_t *bytes, int count,
                              struct wpk_diag *diag);

/* Append the image: the plan's line, and the code.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_launch_plan_encode(const struct wpk_launch_plan *plan,
                               const struct wpk_launch_code *code, struct wpk_buf *out);

/* Read the plan of an image strictly; *code points into `image`.
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE with the field; WPK_EMISMATCH another version;
 *           WPK_ENOMEM */
wpk_err wpk_launch_plan_decode(const char *image, size_t size, struct wpk_launch_plan *out,
                               struct wpk_launch_code *code, struct wpk_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
