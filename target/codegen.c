/* SPDX-License-Identifier: Apache-2.0 */
#include "target/codegen.h"

#include "nest/nest.h"
#include "target/c/compiler.h"
#include "target/c/print.h"
#include "target/gpu/build.h"
#include "target/gpu/nvrtc.h"
#include "target/gpu/print.h"
#include "target/halide/halide.h"

#include <stdio.h>
#include <string.h>

/* The library is not loaded for that: deploy/requirements.txt pins the version. */
static wpk_err find_halide(char version[WPK_CODEGEN_VERSION_MAX], struct wpk_diag *diag)
{
    char path[WPK_HALIDE_PATH_MAX];
    wpk_err err = wpk_halide_find(path, diag);
    if (err == WPK_OK) {
        snprintf(version, WPK_CODEGEN_VERSION_MAX, "halide-21.0.0");
    }
    return err;
}

_Static_assert(WPK_C_COMPILER_VERSION_MAX == WPK_CODEGEN_VERSION_MAX, "a compiler's version fits");

static wpk_err find_c(char version[WPK_CODEGEN_VERSION_MAX], struct wpk_diag *diag)
{
    struct wpk_c_compiler compiler;
    wpk_err err = wpk_c_compiler_find(&compiler, diag);
    if (err == WPK_OK) {
        snprintf(version, WPK_CODEGEN_VERSION_MAX, "%s", compiler.version);
    }
    return err;
}

_Static_assert(WPK_CUDA_NVRTC_VERSION_MAX <= WPK_CODEGEN_VERSION_MAX, "NVRTC's version fits");

static wpk_err find_cuda(char version[WPK_CODEGEN_VERSION_MAX], struct wpk_diag *diag)
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
        return wpk_fail(diag, WPK_ENOENT, "no ptxas: run make setup-gpu");
    }
    return find_halide(version, diag);
}

void wpk_codegen_needs(const struct wpk_schedule *schedule, struct wpk_device *out)
{
    wpk_target_read(schedule->target, out);
    if (strcmp(schedule->by, "c") == 0) { /* LLVM may use any flag of the CPU */
        out->cpu.flags = wpk_c_needs(schedule);
    }
}

#define ROW(symbol, text, device, traits)                                                          \
    {.name = (text),                                                                               \
     .kind = (device),                                                                             \
     .accepts = wpk_##symbol##_accepts,                                                            \
     .find = find_##symbol,                                                                        \
     .found_here = ((traits)&WPK_BACK_END_FOUND_HERE) != 0},

static const struct wpk_codegen all[] = {WPK_BACK_END_LIST(ROW)};

#define CHECK_PROVIDER(symbol, name, kind, traits)                                                 \
    _Static_assert(((traits)&WPK_BACK_END_FOUND_HERE) == 0 ||                                      \
                       sizeof(name "/") - 1 + WPK_CODEGEN_VERSION_MAX <= WPK_BACK_END_MAX,         \
                   "name and version fit");
WPK_BACK_END_LIST(CHECK_PROVIDER)

const struct wpk_codegen *wpk_codegen_at(int i)
{
    return i >= 0 && i < WPK_BACK_END_COUNT ? &all[i] : NULL;
}

const struct wpk_codegen *wpk_codegen_find(const char *name)
{
    const struct wpk_codegen *found = wpk_codegen_of(name);
    return found != NULL && strcmp(found->name, name) == 0 ? found : NULL;
}

const struct wpk_codegen *wpk_codegen_of(const char *provider)
{
    return wpk_codegen_at(wpk_back_end_number(provider));
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
