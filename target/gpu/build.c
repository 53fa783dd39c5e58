/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/build.h"

#include "common/fs.h"
#include "nest/target.h"
#include "target/c/compiler.h"
#include "target/gpu/nvrtc.h"
#include "target/gpu/print.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct wpk_cuda_nvrtc opened; /* by wpk_cuda_warm(); {0}: not yet */

void wpk_cuda_warm(void)
{
    if (opened.library == NULL) {
        (void)!wpk_cuda_nvrtc_open(&opened, NULL, NULL);
    }
}

/* The bytes before element [0, 0, ...] of a tensor; *bytes: of all of it. */
static int64_t find_origin(const struct wpk_tensor *tensor, enum wpk_dtype dtype, int64_t *bytes)
{
    int64_t stride = (int64_t)wpk_dtype_size(dtype), origin = 0;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        origin += tensor->pad_before[d] * stride;
        stride *= tensor->pad_before[d] + tensor->extent[d] + tensor->pad_after[d];
    }
    *bytes = stride;
    return origin;
}

static wpk_err add_scratch(struct wpk_launch_plan *plan, int64_t bytes, bool zeroed)
{
    if (plan->scratch_count == WPK_LAUNCH_SCRATCH_MAX) {
        return WPK_ENOSPC;
    }
    plan->scratch[plan->scratch_count++] =
        (struct wpk_launch_scratch){.bytes = bytes, .zeroed = zeroed};
    return WPK_OK;
}

/* Add the tensors of the plan, in the order of what is printed.
 *   shape   origin [printed->argument_count + 2] */
static wpk_err add_tensors(const struct wpk_schedule *schedule, const struct wpk_cuda_plan *printed,
                           struct wpk_launch_plan *out, int64_t *origin)
{
    wpk_err err = WPK_OK;
    for (int i = 0; i < printed->argument_count && err == WPK_OK; i++) {
        const struct wpk_tensor *tensor = &schedule->main.tensors[printed->argument[i]];
        int64_t bytes = 0;
        origin[i] = find_origin(tensor, printed->dtype[i], &bytes);
        if (tensor->role == WPK_ROLE_INTERMEDIATE) {
            err = add_scratch(out, bytes, false);
        } else {
            out->argument_count++;
        }
    }
    if (err == WPK_OK && printed->part_bytes > 0) {
        err = add_scratch(out, printed->part_bytes, false);
        err = err == WPK_OK
                  ? add_scratch(out, printed->ticket_count * (int64_t)sizeof(uint32_t), true)
                  : err;
    }
    return err == WPK_OK && out->argument_count > WPK_LAUNCH_ARGUMENTS_MAX ? WPK_ENOSPC : err;
}

static wpk_err add_launch(const struct wpk_cuda_step *step, const int64_t *origin,
                          struct wpk_launch_plan *out)
{
    struct wpk_launch_step *launch = &out->launch[out->launch_count++];
    wpk_err err = WPK_OK;
    *launch = (struct wpk_launch_step){.blocks = {step->blocks, 1, 1},
                                       .threads = {step->threads, 1, 1},
                                       .shared_bytes = step->shared_bytes};
    memcpy(launch->entry, step->entry, sizeof(launch->entry));
    for (int i = 0; i < step->taken_count && err == WPK_OK; i++) {
        const struct wpk_launch_parameter parameter = {
            .tensor = step->taken[i], .bytes = 8, .value = origin[step->taken[i]]};
        err = wpk_launch_plan_add(out, parameter);
    }
    return err;
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
        return wpk_fail(diag, WPK_EUNSUPPORTED, "the target %s names no architecture of a GPU",
                        schedule->target);
    }
    err = wpk_cuda_print(schedule, symbol, &text, &printed, diag);
    if (err == WPK_OK) {
        int64_t origin[WPK_TENSORS_MAX + 2] = {0};
        plan = (struct wpk_launch_plan){0};
        snprintf(plan.architecture, sizeof(plan.architecture), "%s", architecture);
        err = add_tensors(schedule, &printed, &plan, origin);
        for (int i = 0; i < printed.step_count && err == WPK_OK; i++) {
            err = add_launch(&printed.step[i], origin, &plan);
        }
    }
    if (err == WPK_OK) {
        err = wpk_cuda_nvrtc_compile(&opened, wpk_buf_text(&text), architecture,
                                     wpk_target_is_strict(schedule->target), &cubin, &ptx, diag);
        err = err == WPK_EINVAL ? WPK_EUNSUPPORTED : err;
    }
    err = err == WPK_OK ? wpk_cuda_image_write(&plan, &cubin, &ptx, path, diag) : err;
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
    err = err == WPK_OK ? compile(schedule, symbol, path, diag) : err;
    return err;
}

#define PATH_SIZE 4096
#define CUBIN_BYTES_MAX ((size_t)64 << 20)

const char *wpk_cuda_ptxas_find(void)
{
    static const char *const all[] = {WPK_NVRTC_DIRECTORY "/../bin/ptxas",
                                      "/usr/local/cuda/bin/ptxas"};
    static char own[PATH_SIZE];
    const char *toolkit = wpk_cuda_toolkit();
    if (toolkit != NULL) {
        snprintf(own, sizeof(own), "%s/bin/ptxas", toolkit);
        return access(own, X_OK) == 0 ? own : NULL;
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (access(all[i], X_OK) == 0) {
            return all[i];
        }
    }
    return NULL;
}

wpk_err wpk_cuda_ptxas(const struct wpk_buf *ptx, const char *architecture, const char *path,
                       struct wpk_buf *cubin, struct wpk_diag *diag)
{
    const char *program = wpk_cuda_ptxas_find();
    char source[PATH_SIZE], result[PATH_SIZE];
    if (program == NULL) {
        return wpk_fail(diag, WPK_ENOENT, "no ptxas: run make setup-gpu");
    }
    if (snprintf(source, sizeof(source), "%s.ptx", path) >= PATH_SIZE ||
        snprintf(result, sizeof(result), "%s.cubin", path) >= PATH_SIZE) {
        return WPK_ENOSPC;
    }
    const char *command[] = {program, "-arch", architecture, source, "-o", result, NULL};
    wpk_err err = wpk_fs_write(source, ptx->data, ptx->size, 0644, diag);
    if (err == WPK_OK) {
        err = wpk_c_compiler_run(command, NULL, NULL, 0);
        if (err != WPK_OK) {
            wpk_diag_set(diag, "ptxas refuses the kernel for %s", architecture);
        }
    }
    err = err == WPK_OK ? wpk_fs_read(result, CUBIN_BYTES_MAX, cubin, diag) : err;
    (void)unlink(source);
    (void)unlink(result);
    return err;
}
