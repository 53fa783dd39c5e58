/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-runner: verifies and times candidates. Started by a worker, never by hand.
 *
 *     wpk-runner ANSWERS_DIR ONEDNN_PATH        with a channel at descriptor 3 */
#include "worker/isolate.h"
#include "worker/runner.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "wpk-runner is started by wpk-worker\n");
        return 2;
    }
    if (!wpk_isolate_from_network()) {
        fprintf(stderr, "wpk-runner: the network cannot be taken away from candidates here\n");
        return 1;
    }
    const struct wpk_runner_options options = {.answers_dir = argv[1], .onednn_path = argv[2]};
    return wpk_runner_serve(&options);
}
