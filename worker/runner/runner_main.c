/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-runner: verifies and times candidates. Started by a worker or by wpkctl, never by hand.
 *
 *     wpk-runner ANSWERS_DIR DEVICE LOG_LEVEL LOG_FORMAT
 *                                                    with a channel at descriptor 3; DEVICE is cpu,
 *                                                    gpu or emulated
 *     wpk-runner --unseen FILE                       prints which faults of the operator in FILE
 *                                                    no set of inputs would show */
#include "common/fs.h"
#include "common/log.h"
#include "ir/notation/notation.h"
#include "worker/process.h"
#include "worker/runner/runner.h"
#include "worker/runner/runner_child.h"
#include "worker/runner/runner_ops.h"

#include <stdio.h>
#include <string.h>

#define OP_SIZE_MAX (1 << 20)
#define UNSEEN_POINTS 512 /* of each set: faults show at many points or at none */
#define UNSEEN_SEED 1

/* Exit code: 2 the operator is wrong, 1 the interpreter cannot do it. */
static int print_unseen(const char *path)
{
    struct wpk_buf text = {.size_max = OP_SIZE_MAX + 1};
    struct wpk_program op = {0};
    struct wpk_diag diag = {0};
    char unseen[WPK_FAULTS_TEXT_MAX] = "";
    int status = 2;
    wpk_err err = wpk_fs_read(path, OP_SIZE_MAX, &text, &diag);
    err = err == WPK_OK ? wpk_program_parse(wpk_buf_text(&text), &op, &diag) : err;
    if (err == WPK_OK) {
        status = 1;
        err = wpk_faults_find(&op, UNSEEN_SEED, UNSEEN_POINTS, WPK_INPUT_KINDS, unseen, &diag);
    }
    if (err == WPK_OK) {
        status = 0;
        puts(unseen);
    } else {
        fprintf(stderr, "wpk-runner: %s\n", diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
    }
    wpk_program_fini(&op);
    wpk_buf_fini(&text);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--unseen") == 0) {
        return print_unseen(argv[2]);
    }
    if (argc != 5 || wpk_process_init_log("wpk-runner", argv[3], argv[4]) != WPK_OK) {
        fprintf(stderr, "wpk-runner is started by wpk-worker\n");
        return 2;
    }
    if (!wpk_isolate_from_network()) {
        wpk_log(WPK_LOG_ERROR, "failed", "reason=\"%s\"",
                "the network cannot be taken away from candidates here");
        return 1;
    }
    const struct wpk_runner_options options = {.answers_dir = argv[1],
                                               .on_gpu = strcmp(argv[2], "cpu") != 0,
                                               .emulated = strcmp(argv[2], "emulated") == 0};
    return wpk_runner_serve(&options);
}
