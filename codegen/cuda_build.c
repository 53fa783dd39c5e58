/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/cuda_build.h"

#include "codegen/cuda_image.h"
#include "codegen/cuda_nvrtc.h"
#include "codegen/cuda_print.h"
#include "codegen/target.h"

#include <stdio.h>
#include <string.h>

static struct wpk_cuda_nvrtc opened; /* by wpk_cuda_warm(); {0}: not yet */

void wpk_cuda_warm(void)
{
    if (opened.library == NULL) {
        (void)!wpk_cuda_nvrtc_open(&opened, NULL, NULL);
    }
}

/* Memory of an intermediate tensor that one launch leaves to the next. */
static struct wpk_launch_scratch scratch_of(const struct wpk_tensor *tensor, enum wpk_dtype dtype)
{
    int64_t element = (int64_t)wpk_dtype_size(dtype);
    struct wpk_launch_scratch scratch = {.bytes = element};
    int64_t stride = element;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        scratch.offset += tensor->pad_before[d] * stride;
        stride *= tensor->pad_before[d] + tensor->extent[d] + tensor->pad_after[d];
    }
    scratch.bytes = stride;
    return scratch;
}

/* All functions take all pointers. */
static struct wpk_launch_step launch_of(const struct wpk_cuda_step *step, int pointers)
{
    struct wpk_launch_step launch = {.blocks = {step->blocks, 1, 1},
                                     .threads = {step->threads, 1, 1},
                                     .shared_bytes = step->shared_bytes,
                                     .parameter_count = pointers};
    memcpy(launch.entry, step->entry, sizeof(launch.entry));
    for (int i = 0; i < pointers; i++) {
        launch.parameter[i] = (uint8_t)i;
    }
    return launch;
}

static wpk_err make_plan(const struct wpk_schedule *schedule, const struct wpk_cuda_plan *printed,
                         const char *architecture, struct wpk_launch_plan *out)
{
    *out = (struct wpk_launch_plan){.launch_count = printed->step_count};
    snprintf(out->architecture, sizeof(out->architecture), "%s", architecture);
    for (int i = 0; i < printed->argument_count; i++) {
        const struct wpk_tensor *tensor = &schedule->main.tensors[printed->argument[i]];
        if (tensor->role != WPK_ROLE_INTERMEDIATE) {
            out->argument_count++;
            continue;
        }
        if (out->scratch_count == WPK_LAUNCH_SCRATCH_MAX) {
            return WPK_ENOSPC;
        }
        out->scratch[out->scratch_count++] = scratch_of(tensor, printed->dtype[i]);
    }
    if (printed->part_bytes > 0) {
        if (out->scratch_count + 2 > WPK_LAUNCH_SCRATCH_MAX) {
            return WPK_ENOSPC;
        }
        out->scratch[out->scratch_count++] =
            (struct wpk_launch_scratch){.bytes = printed->part_bytes};
        out->scratch[out->scratch_count++] = (struct wpk_launch_scratch){
            .bytes = printed->ticket_count * (int64_t)sizeof(uint32_t), .zeroed = true};
    }
    if (out->argument_count > WPK_LAUNCH_ARGUMENTS_MAX) {
        return WPK_ENOSPC;
    }
    for (int i = 0; i < out->launch_count; i++) {
        out->launch[i] = launch_of(&printed->step[i], out->argument_count + out->scratch_count);
    }
    return WPK_OK;
}

static wpk_err compile(const struct wpk_schedule *schedule, const char *symbol, const char *path,
                       struct wpk_diag *diag)
{
    static struct wpk_cuda_plan printed; /* large */
    static struct wpk_launch_plan plan;
    struct wpk_buf text = {0}, cubin = {0}, ptx = {0};
    char architecture[WPK_LAUNCH_ARCHITECTURE_MAX];
    wpk_err err = wpk_target_architecture(schedule->target, architecture, sizeof(architecture));
    if (err != WPK_OK) {
        wpk_diag_set(diag, "the target %s names no architecture of a GPU", schedule->target);
        return WPK_EUNSUPPORTED;
    }
    err = wpk_cuda_print(schedule, symbol, &text, &printed, diag);
    if (err == WPK_OK) {
        err = make_plan(schedule, &printed, architecture, &plan);
    }
    if (err == WPK_OK) {
        err = wpk_cuda_nvrtc_compile(&opened, wpk_buf_text(&text), architecture,
                                     wpk_target_is_strict(schedule->target), &cubin, &ptx, diag);
        err = err == WPK_EINVAL ? WPK_EUNSUPPORTED : err;
    }
    if (err == WPK_OK) {
        err = wpk_cuda_image_write(&plan, &cubin, &ptx, path, diag);
    }
    wpk_buf_fini(&text);
    wpk_buf_fini(&cubin);
    wpk_buf_fini(&ptx);
    return err;
}

wpk_err wpk_cuda_build(const struct wpk_schedule *schedule, const char *symbol, const char *path,
                       struct wpk_diag *diag)
{
    wpk_err err = opened.library == NULL ? wpk_cuda_nvrtc_open(&opened, NULL, diag) : WPK_OK;
    if (err == WPK_ENOENT) {
        return WPK_EUNSUPPORTED;
    }
    if (err == WPK_OK) {
        err = compile(schedule, symbol, path, diag);
    }
    return err;
}
