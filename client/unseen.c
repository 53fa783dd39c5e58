/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_model.h"

#include "client/private.h"
#include "common/fs.h"
#include "ir/notation/notation.h"

#include <stdio.h>
#include <string.h>

#define PATH_SIZE 4096
#define ANSWER_SIZE_MAX (64 << 10)

/* Ask wpk-runner of the operator at `op_path`; its words go to `answer_path`. */
static wpk_err ask(const char *op_path, const char *answer_path, struct wpk_diag *diag)
{
    struct wpk_child child = {0};
    const char *const argv[] = {"wpk-runner", "--unseen", op_path, NULL};

    wpk_err err = wpk_child_start(&child, argv, answer_path, diag);
    if (err == WPK_OK && wpk_child_wait(&child, NULL) != 0) {
        char words[WPK_DIAG_TEXT_MAX];
        wpk_child_last_words(answer_path, words, sizeof(words));
        err =
            wpk_fail(diag, WPK_EUNSUPPORTED, "%s", words[0] != '\0' ? words : "wpk-runner failed");
    }
    return err;
}

static wpk_err find_in(const char *dir, const struct wpk_buf *op, struct wpk_buf *out,
                       struct wpk_diag *diag)
{
    char op_path[PATH_SIZE];
    char answer_path[PATH_SIZE];
    struct wpk_buf answer = {.size_max = ANSWER_SIZE_MAX + 1};

    snprintf(op_path, sizeof(op_path), "%s/op", dir);
    snprintf(answer_path, sizeof(answer_path), "%s/answer", dir);
    wpk_err err = wpk_fs_write(op_path, wpk_buf_text(op), op->size, 0600, diag);
    err = err == WPK_OK ? ask(op_path, answer_path, diag) : err;
    err = err == WPK_OK ? wpk_fs_read(answer_path, ANSWER_SIZE_MAX, &answer, diag) : err;
    if (err == WPK_OK) {
        const char *text = wpk_buf_text(&answer);
        wpk_buf_append(out, text, strcspn(text, "\n"));
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&answer);
    return err;
}

wpk_err wpk_unseen_find(const char *tmp_dir, const struct wpk_program *op, struct wpk_buf *out,
                        struct wpk_diag *diag)
{
    char dir[PATH_SIZE - 16];
    struct wpk_buf text = {0};

    wpk_err err = wpk_program_print(op, &text);
    err = err == WPK_OK ? wpk_fs_make_temporary(tmp_dir, "wpk-check", dir, sizeof(dir), diag) : err;
    if (err == WPK_OK) {
        err = find_in(dir, &text, out, diag);
        (void)!wpk_fs_remove_tree(dir, NULL); /* what is left there harms nobody */
    }
    wpk_buf_fini(&text);
    return err;
}
