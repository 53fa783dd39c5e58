/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/build.h"

#include "common/cubin.h"
#include "common/cuda_machine.h"
#include "common/fs.h"

#include <stdio.h>
#include <string.h>

static wpk_err disagree(const struct wpk_launch_step *launch, const char *what, int64_t planned,
                        int64_t compiled, struct wpk_diag *diag)
{
    return wpk_fail(diag, WPK_EUNSUPPORTED, "the cubin's function %s has %s %lld, its launch %lld",
                    launch->entry, what, (long long)compiled, (long long)planned);
}

/* The bytes of a launch's parameters; each lies at a multiple of its own bytes. */
static int64_t parameter_bytes(const struct wpk_launch_plan *plan,
                               const struct wpk_launch_step *launch)
{
    int64_t end = 0;
    for (int i = 0; i < launch->parameter_count; i++) {
        int64_t bytes = plan->parameter[launch->parameter_first + i].bytes;
        end = (end + bytes - 1) / bytes * bytes + bytes;
    }
    return end;
}

static wpk_err describe(struct wpk_launch_plan *plan, struct wpk_launch_step *launch,
                        const struct wpk_buf *cubin, const struct wpk_cuda_machine *machine,
                        struct wpk_diag *diag)
{
    struct wpk_cubin_function function;
    int64_t threads = launch->threads[0] * launch->threads[1] * launch->threads[2];
    int64_t parameters = parameter_bytes(plan, launch);
    wpk_err err = wpk_cubin_find(cubin->data, cubin->size, launch->entry, &function);
    if (err != WPK_OK) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "the cubin has no function %s", launch->entry);
    }
    if (function.parameter_bytes != parameters) {
        return disagree(launch, "bytes of parameters", parameters, function.parameter_bytes, diag);
    }
    if (function.shared_bytes != launch->shared_bytes) {
        return disagree(launch, "shared bytes", launch->shared_bytes, function.shared_bytes, diag);
    }
    if (function.threads_max != 0 && threads > function.threads_max) {
        return disagree(launch, "at most so many threads:", threads, function.threads_max, diag);
    }
    if (wpk_cuda_blocks_by_registers(machine, threads, function.registers) == 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "%s: %lld threads of %d registers: a multiprocessor has %d", launch->entry,
                        (long long)threads, function.registers, machine->registers_max);
    }
    launch->registers = function.registers;
    launch->local_bytes = function.local_bytes;
    return WPK_OK;
}

wpk_err wpk_cuda_image_describe(struct wpk_launch_plan *plan, const struct wpk_buf *cubin,
                                struct wpk_diag *diag)
{
    struct wpk_cuda_machine machine;
    char architecture[WPK_LAUNCH_ARCHITECTURE_MAX];
    int capability = 0;
    wpk_err err = wpk_cubin_capability(cubin->data, cubin->size, &capability);
    if (err != WPK_OK) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "the compiler's machine code is no cubin that wpk knows");
    }
    wpk_cuda_machine(capability, 1, &machine);
    snprintf(architecture, sizeof(architecture), "sm_%d", capability);
    if (strcmp(architecture, plan->architecture) != 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "the cubin is for %s, not for %s", architecture,
                        plan->architecture);
    }
    for (int i = 0; i < plan->launch_count && err == WPK_OK; i++) {
        err = describe(plan, &plan->launch[i], cubin, &machine, diag);
    }
    return err;
}

wpk_err wpk_cuda_image_write(struct wpk_launch_plan *plan, const struct wpk_buf *cubin,
                             const struct wpk_buf *ptx, const char *path, struct wpk_diag *diag)
{
    const struct wpk_launch_code code = {
        .cubin = cubin->data, .cubin_size = cubin->size, .ptx = ptx->data, .ptx_size = ptx->size};
    struct wpk_buf image = {0};
    wpk_err err = cubin->size > 0 ? wpk_cuda_image_describe(plan, cubin, diag) : WPK_OK;
    err = err == WPK_OK ? wpk_launch_plan_encode(plan, &code, &image) : err;
    err = err == WPK_OK ? wpk_fs_write(path, image.data, image.size, 0644, diag) : err;
    wpk_buf_fini(&image);
    return err;
}
