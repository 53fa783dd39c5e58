/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/ptxas.h"

#include "common/fs.h"
#include "target/c/compiler.h"
#include "target/gpu/nvrtc.h"

#include <stdio.h>
#include <unistd.h>

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
        wpk_diag_set(diag, "no ptxas: run make setup-gpu");
        return WPK_ENOENT;
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
    if (err == WPK_OK) {
        err = wpk_fs_read(result, CUBIN_BYTES_MAX, cubin, diag);
    }
    (void)unlink(source);
    (void)unlink(result);
    return err;
}
