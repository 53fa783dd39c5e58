/* SPDX-License-Identifier: Apache-2.0 */
#include "client/output.h"

#include "common/suggest.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80 /* of a terminal that does not say */

wpk_err wpk_output_check(struct wpk_output *output, struct wpk_diag *diag)
{
    static const char *const formats[] = {"wide", "json", "csv"};
    struct wpk_suggest suggest = {.word = output->format != NULL ? output->format : ""};

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        wpk_suggest_offer(&suggest, formats[i]);
        if (strcmp(suggest.word, formats[i]) == 0) {
            output->json = output->json || strcmp(formats[i], "json") == 0;
            return WPK_OK;
        }
    }
    if (output->format == NULL) {
        return WPK_OK;
    }
    return wpk_fail(diag, WPK_EINVAL, "-o takes wide, json or csv, not '%s'%s", output->format,
                    wpk_suggest_text(&suggest));
}

int wpk_output_width(int fd)
{
    struct winsize size = {0};

    if (isatty(fd) != 1) {
        return 0;
    }
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : WIDTH_DEFAULT;
}

void wpk_output_table(const struct wpk_output *output, const struct wpk_text_table *table,
                      struct wpk_buf *out)
{
    if (output->format != NULL && strcmp(output->format, "csv") == 0) {
        wpk_text_table_print_csv(table, out);
    } else {
        wpk_text_table_print(table, output->format != NULL ? 0 : wpk_output_width(STDOUT_FILENO),
                             out);
    }
}

wpk_err wpk_output_puts_table(const struct wpk_output *output, const struct wpk_text_table *table)
{
    struct wpk_buf out = {0};

    wpk_output_table(output, table, &out);
    fputs(wpk_buf_text(&out), stdout);
    wpk_err err = wpk_buf_status(&out);
    wpk_buf_fini(&out);
    return err;
}
