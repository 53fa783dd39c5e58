/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-runner: verifies and times candidates. Started by a worker, never by hand.
 *
 *     wpk-runner ANSWERS_DIR LOG_LEVEL LOG_FORMAT    with a channel at descriptor 3 */
#include "common/log.h"
#include "worker/isolate.h"
#include "worker/process.h"
#include "worker/runner.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 4 || wpk_process_init_log("wpk-runner", argv[2], argv[3]) != WPK_OK) {
        fprintf(stderr, "wpk-runner is started by wpk-worker\n");
        return 2;
    }
    if (!wpk_isolate_from_network()) {
        wpk_log(WPK_LOG_ERROR, "failed", "reason=\"%s\"",
                "the network cannot be taken away from candidates here");
        return 1;
    }
    const struct wpk_runner_options options = {.answers_dir = argv[1]};
    return wpk_runner_serve(&options);
}
