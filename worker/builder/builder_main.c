/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-builder: turns schedules into shared objects. Started by a worker, never by hand.
 *
 *     wpk-builder CACHE_DIR TARGET LOG_LEVEL LOG_FORMAT        with a channel at descriptor 3 */
#include "common/log.h"
#include "runtime/link.h"
#include "target/gpu/build.h"
#include "target/gpu/nvrtc.h"
#include "target/halide/halide.h"
#include "worker/builder/builder.h"
#include "worker/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fill the cache; temporary files (builder_temporary.c) lie beside those that are kept. */
static wpk_err warm_in(const char *cache_dir, const char *target, struct wpk_diag *diag)
{
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (here < 0 || chdir(cache_dir) != 0) {
        return wpk_fail(diag, WPK_ESYSTEM, "no way into %s", cache_dir);
    }
    char path[WPK_HALIDE_PATH_MAX];
    wpk_err err = WPK_OK;
    if (strcmp(target, "cuda") == 0) {
        wpk_cuda_warm();
    } else if (wpk_halide_find(path, diag) == WPK_OK) {
        err = wpk_halide_warm(target, diag);
    } else {
        wpk_log(WPK_LOG_WARN, "halide_missing", "reason=\"%s\"", diag->text);
    }
    if (fchdir(here) != 0 && err == WPK_OK) {
        err = wpk_fail(diag, WPK_ESYSTEM, "no way back from %s", cache_dir);
    }
    close(here);
    return err;
}

int main(int argc, char **argv)
{
    if (argc != 5 || wpk_process_init_log("wpk-builder", argv[3], argv[4]) != WPK_OK) {
        fprintf(stderr, "wpk-builder is started by wpk-worker\n");
        return 2;
    }
    struct wpk_diag diag = {0};
    wpk_cuda_set_toolkit(getenv(WPK_CUDA_DIRECTORY_VARIABLE));
    wpk_err err = wpk_link_write_parts(argv[1], &diag);
    err = err == WPK_OK ? warm_in(argv[1], argv[2], &diag) : err;
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_ERROR, "failed", err, &diag);
        return 1;
    }
    const struct wpk_builder_options options = {.cache_dir = argv[1]};
    return wpk_builder_serve(&options);
}
