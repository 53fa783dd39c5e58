/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/codegen.h"

#include "codegen/c_compiler.h"
#include "codegen/c_print.h"
#include "codegen/cuda_nvrtc.h"
#include "codegen/cuda_print.h"
#include "codegen/cuda_ptxas.h"
#include "codegen/halide_accepts.h"
#include "op/nest_check.h"

#include <stdio.h>
#include <string.h>

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

/* A kernel that the driver compiles is no answer of a search: it has to be assembled here. */
static wpk_err find_halide_cuda(char version[WPK_CODEGEN_VERSION_MAX], struct wpk_diag *diag)
{
    if (wpk_cuda_ptxas_find() == NULL) {
        wpk_diag_set(diag, "no ptxas: run make setup-gpu");
        return WPK_ENOENT;
    }
    return find_halide(version, diag);
}

static const struct wpk_codegen all[] = {
    {.name = "halide-cpu", .accepts = wpk_halide_accepts, .find = find_halide},
    {.name = "c", .accepts = wpk_c_accepts, .find = find_compiler, .found_here = true},
    {.name = "cuda", .accepts = wpk_cuda_accepts, .find = find_nvrtc, .makes_images = true},
    {.name = "halide-cuda",
     .accepts = wpk_halide_cuda_accepts,
     .find = find_halide_cuda,
     .makes_images = true},
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
        wpk_back_end_entry(codegen->name, codegen->found_here ? version : "", out);
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
