/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/codegen.h"

#include "codegen/c_compiler.h"
#include "codegen/c_print.h"
#include "codegen/cuda_nvrtc.h"
#include "codegen/cuda_print.h"
#include "op/nest_check.h"

#include <stdio.h>
#include <string.h>

/* The loop that is unrolled or in lanes over all that is needed of an axis, which is not as much in
 * every iteration of the loops around; -1: none. */
static int find_uncut(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                      const struct wpk_nest_loops *loops)
{
    unsigned cut = 0;
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        bool varies = loop->axis < wpk_nest_stage(nest, entry)->rank &&
                      ((entry->place.entry >= 0 && entry->align[loop->axis] > 1) ||
                       (!entry->bounded && entry->least[loop->axis] != entry->extent[loop->axis]));
        if (varies && !wpk_nest_is_rolled(loop) && (cut >> loop->axis & 1) == 0) {
            return i;
        }
        cut |= 1U << loop->axis;
    }
    return -1;
}

/* Halide unrolls loops, and makes vectors of them, whose extents are numbers. */
static bool are_cut(const struct wpk_nest *nest, struct wpk_diag *diag)
{
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        for (int update = 0; update <= 1 && entry->place.entry >= 0 && !entry->inlined; update++) {
            const struct wpk_nest_loops *loops = update != 0 ? &entry->update : &entry->pure;
            int i = find_uncut(nest, entry, loops);
            if (i < 0) {
                continue;
            }
            char name[WPK_NEST_NAME_MAX];
            const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
            wpk_nest_name_loop(nest, entry, loops, i, name);
            wpk_diag_set_at(diag, loop->at.line, loop->at.column,
                            "stage %s loop %s: iterations around it need more or less: write "
                            "serial %s step N guard around it, or extent and no align",
                            nest->program->tensors[wpk_nest_stage(nest, entry)->output].name, name,
                            name);
            return false;
        }
    }
    return true;
}

/* The second of two loops of one binding over blocks or threads, which Halide does not run as one;
 * NULL: there is none. */
static const struct wpk_nest_loop *find_repeated(const struct wpk_nest *nest)
{
    for (int e = 0; e < nest->entry_count; e++) {
        for (int update = 0; update <= 1; update++) {
            const struct wpk_nest_loops *loops =
                update != 0 ? &nest->entry[e].update : &nest->entry[e].pure;
            for (int i = 1; i < loops->count; i++) {
                const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
                bool grid = wpk_bind_is_block(loop->binding) || wpk_bind_is_thread(loop->binding);
                if (grid && loop->binding == wpk_nest_at(nest, loops, i - 1)->binding) {
                    return loop;
                }
            }
        }
    }
    return NULL;
}

static bool opencl_accepts(const struct wpk_nest *nest, struct wpk_diag *diag)
{
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        for (int i = 0; i < entry->update.count; i++) {
            const struct wpk_nest_loop *loop = wpk_nest_at(nest, &entry->update, i);
            if (wpk_nest_is_shared_out(nest, entry, i)) {
                wpk_diag_set_at(diag, loop->at.line, loop->at.column,
                                "the back end halide-cpu adds up no parts of blocks or threads: "
                                "write serial");
                return false;
            }
        }
    }
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        if (entry->row_padding > 0 || entry->spacing > 0 || entry->depth > 0) {
            wpk_diag_set_at(diag, entry->at.line, entry->at.column,
                            "the back end halide-cpu stores rows one after the other, and computes "
                            "nothing ahead: leave padded, spaced and depth out");
            return false;
        }
    }
    return true;
}

/* Halide has a call for every word of a nest, but blocks and threads need a device to run on. */
static bool halide_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    const struct wpk_nest *nest = schedule->nest;
    if (!are_cut(nest, diag)) {
        return false;
    }
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        if (entry->scope == WPK_SCOPE_OUTPUT) {
            wpk_diag_set_at(diag, entry->at.line, entry->at.column,
                            "scope output needs the back end c: write by c, or scope heap");
            return false;
        }
    }
    const struct wpk_nest_loop *repeated = find_repeated(nest);
    if (repeated != NULL) {
        wpk_diag_set_at(diag, repeated->at.line, repeated->at.column,
                        "two loops of %s: write another binding for one of them",
                        wpk_bind_name(repeated->binding));
        return false;
    }
    if (strstr(schedule->target, "-opencl") != NULL) {
        return opencl_accepts(nest, diag);
    }
    for (int i = 0; i < nest->loop_count; i++) {
        const struct wpk_nest_loop *loop = &nest->loop[i];
        if (wpk_bind_is_block(loop->binding) || wpk_bind_is_thread(loop->binding)) {
            wpk_diag_set_at(diag, loop->at.line, loop->at.column,
                            "%s needs a target with opencl: write parallel, serial or unroll",
                            wpk_bind_name(loop->binding));
            return false;
        }
    }
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        if (entry->scope == WPK_SCOPE_SHARED || entry->scope == WPK_SCOPE_GLOBAL) {
            wpk_diag_set_at(diag, entry->at.line, entry->at.column,
                            "scope %s needs a target with opencl: write stack or heap",
                            wpk_scope_name(entry->scope));
            return false;
        }
    }
    return true;
}

/* wpk-builder links it: deploy/requirements.txt pins its version. */
static wpk_err find_halide(char version[WPK_CODEGEN_VERSION_MAX], struct wpk_diag *diag)
{
    (void)diag;
    snprintf(version, WPK_CODEGEN_VERSION_MAX, "halide-21.0.0");
    return WPK_OK;
}

_Static_assert(WPK_C_COMPILER_VERSION_MAX == WPK_CODEGEN_VERSION_MAX, "a compiler's version fits");
_Static_assert(sizeof("c/") - 1 + WPK_CODEGEN_VERSION_MAX <= WPK_BACK_END_MAX,
               "so does a provider");

static wpk_err find_compiler(char version[WPK_CODEGEN_VERSION_MAX], struct wpk_diag *diag)
{
    struct wpk_c_compiler compiler;
    wpk_err err = wpk_c_compiler_find(&compiler, diag);
    if (err == WPK_OK) {
        snprintf(version, WPK_CODEGEN_VERSION_MAX, "%s", compiler.version);
    }
    return err;
}

_Static_assert(WPK_CUDA_NVRTC_VERSION_MAX <= WPK_CODEGEN_VERSION_MAX, "NVRTC's version fits");

static wpk_err find_nvrtc(char version[WPK_CODEGEN_VERSION_MAX], struct wpk_diag *diag)
{
    struct wpk_cuda_nvrtc nvrtc;
    wpk_err err = wpk_cuda_nvrtc_open(&nvrtc, NULL, diag);
    if (err == WPK_OK) {
        snprintf(version, WPK_CODEGEN_VERSION_MAX, "%s", nvrtc.version);
        wpk_cuda_nvrtc_close(&nvrtc);
    }
    return err == WPK_EUNSUPPORTED ? WPK_ENOENT : err;
}

static const struct wpk_codegen all[] = {
    {.name = "halide-cpu", .accepts = halide_accepts, .find = find_halide},
    {.name = "c", .accepts = wpk_c_accepts, .find = find_compiler, .found_here = true},
    {.name = "cuda", .accepts = wpk_cuda_accepts, .find = find_nvrtc, .makes_images = true},
};

#define COUNT ((int)(sizeof(all) / sizeof(all[0])))

const struct wpk_codegen *wpk_codegen_at(int i)
{
    return i < COUNT ? &all[i] : NULL;
}

const struct wpk_codegen *wpk_codegen_find(const char *name)
{
    int i = 0;
    while (i < COUNT && strcmp(all[i].name, name) != 0) {
        i++;
    }
    return wpk_codegen_at(i);
}

const struct wpk_codegen *wpk_codegen_of(const char *provider)
{
    char name[WPK_BACK_END_MAX];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(provider, "/"), provider);
    return wpk_codegen_find(name);
}

wpk_err wpk_codegen_provider(const struct wpk_codegen *codegen, char out[WPK_BACK_END_MAX],
                             struct wpk_diag *diag)
{
    char version[WPK_CODEGEN_VERSION_MAX];
    wpk_err err = codegen->find(version, diag);
    if (err == WPK_OK) {
        snprintf(out, WPK_BACK_END_MAX, "%s%s%s", codegen->name, codegen->found_here ? "/" : "",
                 codegen->found_here ? version : "");
    }
    return err;
}

wpk_err wpk_codegen_version(const struct wpk_codegen *codegen, char out[WPK_CODEGEN_VERSION_MAX],
                            struct wpk_diag *diag)
{
    wpk_err err = codegen->find(out, diag);
    if (err == WPK_ENOENT) {
        snprintf(out, WPK_CODEGEN_VERSION_MAX, "none");
        return WPK_OK;
    }
    return err;
}

wpk_err wpk_codegen_check(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    const struct wpk_codegen *by = wpk_codegen_find(schedule->by);
    WPK_ASSERT(by != NULL);
    wpk_err err = wpk_nest_check(schedule->nest, diag);
    return err == WPK_OK && !by->accepts(schedule, diag) ? WPK_EINVAL : err;
}
