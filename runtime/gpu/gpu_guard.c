/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/gpu_state.h"

#include <stdlib.h>
#include <string.h>

#define NAN_BYTE 0xFF /* all ones: a NaN of each floating type */

void wpk_gpu_guard(struct wpk_gpu *gpu, size_t shift)
{
    WPK_ASSERT(shift % WPK_GPU_ALIGNMENT == 0 && shift < WPK_GPU_BORDER);
    gpu->guarded = true;
    gpu->border = WPK_GPU_BORDER + shift;
    gpu->upload_border = gpu->upload_count == 0 ? WPK_GPU_BORDER : gpu->upload_border;
}

/* ---- memory */

wpk_err wpk_gpu_guard_take(const struct wpk_gpu *gpu, size_t border, size_t size, const char *doing,
                           uint64_t *out, struct wpk_diag *diag)
{
    size_t all = border > 0 ? border + size + WPK_GPU_BORDER : size;
    uint64_t memory = 0;
    wpk_err err = wpk_gpu_check(gpu, gpu->driver->cuMemAlloc_v2(&memory, all), doing, diag);
    if (err == WPK_OK && border > 0) {
        err = wpk_gpu_check(gpu, gpu->driver->cuMemsetD8Async(memory, NAN_BYTE, all, NULL), doing,
                            diag);
    }
    if (err == WPK_OK) {
        *out = memory + border;
    } else if (memory != 0) {
        (void)gpu->driver->cuMemFree_v2(memory);
    }
    return err;
}

void wpk_gpu_guard_give(const struct wpk_gpu *gpu, size_t border, uint64_t *memory, int count)
{
    for (int i = 0; i < count; i++) {
        if (memory[i] != 0) {
            (void)gpu->driver->cuMemFree_v2(memory[i] - border);
            memory[i] = 0;
        }
    }
}

wpk_err wpk_gpu_guard_poison(struct wpk_gpu_call *call)
{
    const struct wpk_gpu *gpu = call->gpu;
    const struct wpk_launch_plan *plan = &gpu->main.plan;
    wpk_err err = WPK_OK;
    for (int i = 0; i < plan->scratch_count && err == WPK_OK; i++) {
        if (!plan->scratch[i].zeroed) {
            err = wpk_gpu_check(gpu,
                                gpu->driver->cuMemsetD8Async(call->scratch[i], NAN_BYTE,
                                                             (size_t)plan->scratch[i].bytes,
                                                             call->stream),
                                "filling scratch", &call->trouble);
        }
    }
    return err;
}

/* ---- comparison */

static wpk_err read_back(const struct wpk_gpu *gpu, void *to, uint64_t from, size_t size,
                         struct wpk_diag *diag)
{
    wpk_err err = wpk_gpu_check(gpu, gpu->driver->cuMemcpyDtoHAsync_v2(to, from, size, NULL),
                                "comparing the GPU's memory", diag);
    return err == WPK_OK ? wpk_gpu_check(gpu, gpu->driver->cuStreamSynchronize(NULL),
                                         "comparing the GPU's memory", diag)
                         : err;
}

wpk_err wpk_gpu_guard_copy(struct wpk_gpu *gpu, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (int i = 0; i < gpu->upload_count && err == WPK_OK; i++) {
        if (gpu->upload_copy[i] != NULL) {
            continue;
        }
        void *copy = malloc(gpu->upload_size[i]);
        err = copy != NULL ? read_back(gpu, copy, gpu->upload[i], gpu->upload_size[i], diag)
                           : WPK_ENOMEM;
        if (err != WPK_OK) {
            free(copy);
            copy = NULL;
        }
        gpu->upload_copy[i] = copy;
    }
    return err;
}

/* The first byte that is another one than in `wanted`, or, NULL, than a border's; -1: none. */
static int64_t find_difference(const unsigned char *bytes, const unsigned char *wanted, size_t size)
{
    if (wanted != NULL && memcmp(bytes, wanted, size) == 0) {
        return -1;
    }
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != (wanted != NULL ? wanted[i] : NAN_BYTE)) {
            return (int64_t)i;
        }
    }
    return -1;
}

struct piece {
    uint64_t from;
    size_t size;
    const void *wanted; /* NULL: NaN */
    int64_t at;         /* of its first byte in the part */
};

/* Compare a part's borders and, unless `wanted` is NULL, the part itself. */
static wpk_err compare(const struct wpk_gpu *gpu, uint64_t memory, size_t border,
                       const void *wanted, struct wpk_gpu_damage *part, struct wpk_diag *diag)
{
    size_t size = part->size, behind = border > 0 ? WPK_GPU_BORDER : 0;
    const struct piece pieces[] = {
        {.from = memory, .size = wanted != NULL ? size : 0, .wanted = wanted},
        {.from = memory + size, .size = behind, .at = (int64_t)size},
        {.from = memory - border, .size = border, .at = -(int64_t)border},
    };
    size_t most = size > border ? size : border;
    unsigned char *bytes = malloc(most > behind ? most : behind);
    wpk_err err = bytes != NULL ? WPK_OK : WPK_ENOMEM;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]) && err == WPK_OK; i++) {
        const struct piece *piece = &pieces[i];
        if (piece->size > 0) {
            err = read_back(gpu, bytes, piece->from, piece->size, diag);
        }
        int64_t found = err == WPK_OK ? find_difference(bytes, piece->wanted, piece->size) : -1;
        if (found >= 0) {
            part->at = piece->at + found;
            err = WPK_ECORRUPT;
        }
    }
    free(bytes);
    return err;
}

static wpk_err compare_scratch(const struct wpk_gpu *gpu, const struct wpk_gpu_program *program,
                               size_t border, const uint64_t *scratch, struct wpk_gpu_damage *part,
                               struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (int i = 0; i < program->plan.scratch_count && err == WPK_OK; i++) {
        *part = (struct wpk_gpu_damage){.part = WPK_GPU_PART_SCRATCH,
                                        .index = i,
                                        .size = (size_t)program->plan.scratch[i].bytes};
        err = compare(gpu, scratch[i], border, NULL, part, diag);
    }
    return err;
}

wpk_err wpk_gpu_guard_check_prepared(const struct wpk_gpu *gpu, const uint64_t *scratch,
                                     struct wpk_diag *diag)
{
    struct wpk_gpu_damage part;
    wpk_err err = compare_scratch(gpu, &gpu->prepare, gpu->upload_border, scratch, &part, diag);
    if (err == WPK_ECORRUPT) {
        wpk_diag_set(diag, "the prepare program wrote beside its scratch %d", part.index);
    }
    return err;
}

static wpk_err compare_arguments(const struct wpk_gpu_call *call, void *const *data,
                                 struct wpk_gpu_damage *part, struct wpk_diag *diag)
{
    const struct wpk_gpu *gpu = call->gpu;
    wpk_err err = WPK_OK;
    for (int i = 0; i < gpu->main.plan.argument_count && err == WPK_OK; i++) {
        const struct wpk_gpu_argument *argument = &gpu->argument[i];
        *part = (struct wpk_gpu_damage){
            .part = WPK_GPU_PART_ARGUMENT, .index = i, .size = argument->size};
        if (call->memory[i] != 0) {
            err = compare(gpu, call->memory[i], call->border, argument->written ? NULL : data[i],
                          part, diag);
        }
    }
    return err;
}

static wpk_err compare_uploads(const struct wpk_gpu *gpu, struct wpk_gpu_damage *part,
                               struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (int i = 0; i < gpu->upload_count && err == WPK_OK; i++) {
        *part = (struct wpk_gpu_damage){
            .part = WPK_GPU_PART_UPLOAD, .index = i, .size = gpu->upload_size[i]};
        err = compare(gpu, gpu->upload[i], gpu->upload_border, gpu->upload_copy[i], part, diag);
    }
    return err;
}

wpk_err wpk_gpu_call_check(struct wpk_gpu_call *call, void *const *data, struct wpk_gpu_damage *out)
{
    const struct wpk_gpu *gpu = call->gpu;
    struct wpk_diag *diag = &call->trouble;
    struct wpk_gpu_damage part = {0};
    wpk_err err = wpk_gpu_enter(gpu, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = compare_arguments(call, data, &part, diag);
    err = err == WPK_OK ? compare_uploads(gpu, &part, diag) : err;
    err = err == WPK_OK ? compare_scratch(gpu, &gpu->main, call->border, call->scratch, &part, diag)
                        : err;
    wpk_gpu_leave(gpu);
    if (err == WPK_ECORRUPT) {
        *out = part;
    }
    return err;
}
