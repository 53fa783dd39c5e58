/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the program of an operator that is written by name, in whole form:
 * expand '{"type":"conv2d",…}'. Tests that try candidates of every name use it. */
#include "ir/notation/definition.h"
#include "ir/notation/notation.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    struct wpk_buf text = {0};
    wpk_err err = argc == 2 ? wpk_shorthand_expand(argv[1], &program, &diag) : WPK_EINVAL;
    if (err == WPK_OK) {
        err = wpk_program_print(&program, &text);
    }
    if (err == WPK_OK) {
        fputs(wpk_buf_text(&text), stdout);
    } else {
        fprintf(stderr, "expand: %s: %s\n", diag.field, diag.text);
    }
    wpk_buf_fini(&text);
    wpk_program_fini(&program);
    return err == WPK_OK ? 0 : 2;
}
