/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/halide_cuda.h"

#include "codegen/cuda_print.h"
#include "codegen/halide.h"
#include "common/fs.h"

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

wpk_err wpk_halide_cuda_build(const struct wpk_schedule *schedule, const char *symbol,
                              const char *path, struct wpk_diag *diag)
{
    static struct wpk_launch_plan plan; /* large */
    struct wpk_buf ptx = {0}, image = {0};
    wpk_err err = check_registers(schedule, symbol, diag);
    if (err == WPK_OK) {
        err = wpk_halide_launches(schedule, symbol, &plan, &ptx, diag);
    }
    if (err == WPK_OK) {
        err = wpk_launch_plan_encode(&plan, wpk_buf_text(&ptx), &image);
    }
    if (err == WPK_OK) {
        err = wpk_fs_write(path, image.data, image.size, 0644, diag);
    }
    wpk_buf_fini(&ptx);
    wpk_buf_fini(&image);
    return err;
}
