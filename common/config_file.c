/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"

#include "common/fs.h"

#include <stdio.h>

void wpk_config_file_strip(char *text, size_t size)
{
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        if (in_string && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            in_string = !in_string;
        } else if (text[i] == '\n') {
            in_string = false; /* no string of JSON spans lines: the parser will say so */
        } else if (!in_string && text[i] == '/' && i + 1 < size && text[i + 1] == '/') {
            while (i < size && text[i] != '\n') {
                text[i++] = ' ';
            }
        }
    }
}

wpk_err wpk_config_file_open(const char *path, struct wpk_json_reader **reader,
                             struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read(path, WPK_CONFIG_FILE_SIZE_MAX, &text, diag);
    if (err != WPK_OK) { /* which names the file itself */
        wpk_buf_fini(&text);
        return err;
    }
    if (diag != NULL) {
        snprintf(diag->file, sizeof diag->file, "%s", path);
    }
    if (text.size > 0) {
        wpk_config_file_strip(text.data, text.size);
    }
    struct wpk_json_reader *opened = NULL;
    err = wpk_json_open(wpk_buf_text(&text), text.size, WPK_CONFIG_FILE_SIZE_MAX, &opened, diag);
    wpk_buf_fini(&text);
    if (err == WPK_OK && wpk_json_kind_of(opened, NULL) != WPK_JSON_OBJECT) {
        wpk_diag_set_at(diag, 1, 1, "an object is expected");
        wpk_json_close(opened);
        return WPK_EINVAL;
    }
    if (err == WPK_OK) {
        *reader = opened;
    }
    return err;
}
