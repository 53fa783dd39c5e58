/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-builder: turns schedules into shared objects. Started by a worker, never by hand.
 *
 *     wpk-builder CACHE_DIR TARGET LOG_LEVEL LOG_FORMAT        with a channel at descriptor 3 */
#include "codegen/halide.h"
#include "common/log.h"
#include "runtime/link.h"
#include "worker/builder.h"
#include "worker/process.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 5 || wpk_process_init_log("wpk-builder", argv[3], argv[4]) != WPK_OK) {
        fprintf(stderr, "wpk-builder is started by wpk-worker\n");
        return 2;
    }
    struct wpk_diag diag = {0};
    wpk_err err = wpk_link_write_parts(argv[1], &diag);
    if (err == WPK_OK) {
        err = wpk_halide_warm(argv[2], &diag);
    }
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_ERROR, "failed", err, &diag);
        return 1;
    }
    const struct wpk_builder_options options = {.cache_dir = argv[1]};
    return wpk_builder_serve(&options);
}
