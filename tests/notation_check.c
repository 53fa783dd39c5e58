/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/notation_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

wpk_err wpk_given_parse(const struct wpk_given *given, struct wpk_program *out,
                        struct wpk_diag *diag)
{
    struct wpk_declaration declarations[WPK_GIVEN_MAX];
    char names[WPK_GIVEN_MAX][WPK_NAME_MAX];
    int count = 0;
    for (; count < WPK_GIVEN_MAX && given->tensors[count] != NULL; count++) {
        const char *text = given->tensors[count];
        size_t size = strcspn(text, " ");
        memcpy(names[count], text, size);
        names[count][size] = '\0';
        declarations[count] = (struct wpk_declaration){.name = names[count]};
        assert_int_equal(wpk_notation_parse_type(text + size + 1, &declarations[count], diag),
                         WPK_OK);
    }
    return wpk_notation_parse(given->text, declarations, count, out, diag);
}

void wpk_given_parse_good(const struct wpk_given *given, struct wpk_program *out)
{
    struct wpk_diag diag = {0};
    if (wpk_given_parse(given, out, &diag) != WPK_OK) {
        fail_msg("%s\n%d:%d: %s", given->text, diag.line, diag.column, diag.text);
    }
}

void wpk_given_parse_constants(const struct wpk_given *given, struct wpk_program *out)
{
    wpk_given_parse_good(given, out);
    for (int t = 0; t < out->tensor_count; t++) {
        struct wpk_tensor *tensor = &out->tensors[t];
        bool constant = tensor->role == WPK_ROLE_INPUT && strchr("WB", tensor->name[0]) != NULL;
        tensor->role = constant ? WPK_ROLE_CONSTANT : tensor->role;
    }
}

char *wpk_print_again(const struct wpk_program *program)
{
    struct wpk_buf once = {0}, twice = {0};
    struct wpk_program again;
    struct wpk_diag diag = {0};
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(wpk_program_print(program, &once), WPK_OK);
    if (wpk_program_parse(wpk_buf_text(&once), &again, &diag) != WPK_OK) {
        fail_msg("%s%d:%d: %s", wpk_buf_text(&once), diag.line, diag.column, diag.text);
    }
    assert_int_equal(wpk_program_print(&again, &twice), WPK_OK);
    assert_string_equal(wpk_buf_text(&twice), wpk_buf_text(&once));
    wpk_program_fini(&again);
    wpk_buf_fini(&twice);
    assert_int_equal(wpk_buf_take(&once, &text, &size), WPK_OK);
    wpk_buf_fini(&once);
    return text;
}
