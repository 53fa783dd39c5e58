/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/build.h"
#include "target/gpu/print.h"
#include "target/halide/halide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Halide gives each thread registers of its own, and does not notice that another thread reads
 * them: the printer of CUDA C does. */
static wpk_err check_registers(const struct wpk_schedule *schedule, const char *symbol,
                               struct wpk_diag *diag)
{
    static struct wpk_cuda_plan plan; /* large */
    struct wpk_buf text = {0};
    wpk_err err = wpk_cuda_print(schedule, symbol, &text, &plan, diag);
    wpk_buf_fini(&text);
    return err;
}

wpk_err wpk_halide_cuda_compile(const struct wpk_schedule *schedule, const char *symbol,
                                struct wpk_launch_plan *plan, struct wpk_buf *ptx,
                                struct wpk_diag *diag)
{
    struct wpk_schedule *bounded = WPK_DEMAND(calloc(1, sizeof(*bounded)));
    struct wpk_nest *nest = WPK_DEMAND(calloc(1, sizeof(*nest)));
    wpk_err err = check_registers(schedule, symbol, diag);
    if (err == WPK_OK) {
        *bounded = *schedule;
        *nest = *schedule->nest;
        bounded->nest = nest;
        /* Where loops are unrolled whose iterations are not as many everywhere, the most are
         * computed. */
        for (int e = 0; e < nest->entry_count; e++) {
            nest->entry[e].bounded =
                nest->entry[e].bounded || !wpk_halide_is_cut(nest, &nest->entry[e]);
        }
        err = wpk_halide_launches(bounded, symbol, plan, ptx, diag);
    }
    free(nest);
    free(bounded);
    return err;
}

/* The architecture of plain kernels, for which ptxas of CUDA 13 makes no code any more. */
static bool is_least(const char *architecture)
{
    struct wpk_device least = {.kind = "cuda"};
    char name[16];
    wpk_device_make_plain(&least);
    snprintf(name, sizeof(name), "sm_%d", least.cuda.capability);
    return strcmp(name, architecture) == 0;
}

wpk_err wpk_halide_cuda_build(const struct wpk_schedule *schedule, const char *symbol,
                              const char *path, struct wpk_diag *diag)
{
    static struct wpk_launch_plan plan; /* large */
    struct wpk_buf cubin = {0}, ptx = {0};
    wpk_err err = wpk_halide_cuda_compile(schedule, symbol, &plan, &ptx, diag);
    if (err == WPK_OK && wpk_cuda_ptxas_find() != NULL) {
        bool least = is_least(plan.architecture); /* its PTX does */
        err = wpk_cuda_ptxas(&ptx, plan.architecture, path, &cubin, least ? NULL : diag);
        err = least && err == WPK_EUNSUPPORTED ? WPK_OK : err;
    }
    err = err == WPK_OK ? wpk_cuda_image_write(&plan, &cubin, &ptx, path, diag) : err;
    wpk_buf_fini(&cubin);
    wpk_buf_fini(&ptx);
    return err;
}
