/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fs.h"
#include "target/halide/halide.h"

#include <stdio.h>
#include <unistd.h>

/* From the program's directory: beside it, where it is installed, and in the tree where it is
 * built. */
static const char *const folders[] = {"", WPK_HALIDE_INSTALLED "/", "../target/"};

wpk_err wpk_halide_find(char out[WPK_HALIDE_PATH_MAX], struct wpk_diag *diag)
{
    struct wpk_buf here = {0};
    wpk_err err = wpk_fs_program_dir(&here, diag);

    if (err != WPK_OK) {
        wpk_buf_fini(&here);
        return err;
    }
    err = WPK_ENOENT;
    for (size_t i = 0; err != WPK_OK && i < sizeof(folders) / sizeof(folders[0]); i++) {
        int length = snprintf(out, WPK_HALIDE_PATH_MAX, "%s/%s" WPK_HALIDE_LIBRARY,
                              wpk_buf_text(&here), folders[i]);
        err = length < WPK_HALIDE_PATH_MAX && access(out, R_OK) == 0 ? WPK_OK : WPK_ENOENT;
    }
    if (err != WPK_OK) {
        wpk_diag_set(diag, "no Halide: there is no " WPK_HALIDE_LIBRARY " in %s or in %s/%s",
                     wpk_buf_text(&here), wpk_buf_text(&here), WPK_HALIDE_INSTALLED);
    }
    wpk_buf_fini(&here);
    return err;
}
