/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the notation: the same bytes as equations over given tensors, and as a program in whole
 * form. An accepted text has a whole form that reads back as itself; a refused one has a reason. */
#include "ir/notation/notation.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* The tensors of the corpus's equations. */
static const struct wpk_declaration declarations[] = {
    {.name = "Y", .dtype = WPK_F32, .rank = 4, .extent = {1, 4, 8, 8}},
    {.name = "X", .dtype = WPK_F32, .rank = 4, .extent = {1, 4, 8, 8}},
    {.name = "W", .dtype = WPK_F32, .rank = 4, .extent = {4, 4, 3, 3}, .constant = true},
    {.name = "B", .dtype = WPK_F32, .rank = 1, .extent = {4}, .constant = true},
    {.name = "S", .dtype = WPK_F32, .rank = 2, .extent = {6, 5}},
    {.name = "A", .dtype = WPK_I8, .rank = 2, .extent = {6, 5}},
};

#define DECLARATION_COUNT (sizeof(declarations) / sizeof(declarations[0]))

static void check_whole_form(const struct wpk_program *program)
{
    struct wpk_buf once = {0};
    struct wpk_buf twice = {0};
    struct wpk_program again = {0};

    WPK_ASSERT(wpk_program_print(program, &once) == WPK_OK);
    if (once.size <= WPK_NOTATION_SIZE_MAX) {
        WPK_ASSERT(wpk_program_parse(wpk_buf_text(&once), &again, NULL) == WPK_OK);
        WPK_ASSERT(wpk_program_print(&again, &twice) == WPK_OK);
        WPK_ASSERT(strcmp(wpk_buf_text(&once), wpk_buf_text(&twice)) == 0);
        wpk_program_fini(&again);
    }
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
}

static void check(wpk_err err, struct wpk_program *program, const struct wpk_diag *diag)
{
    struct wpk_buf equations = {0};

    if (err != WPK_OK) {
        WPK_ASSERT(diag->text[0] != '\0');
        return;
    }
    check_whole_form(program);
    WPK_ASSERT(wpk_notation_print(program, &equations) == WPK_OK);
    wpk_buf_fini(&equations);
    wpk_program_fini(program);
}

/* Those named in the text: a tensor that no equation uses is an error. */
static int choose_declarations(const char *text, struct wpk_declaration *chosen)
{
    int count = 0;

    for (size_t i = 0; i < DECLARATION_COUNT; i++) {
        if (strstr(text, declarations[i].name) != NULL) {
            chosen[count++] = declarations[i];
        }
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wpk_declaration chosen[DECLARATION_COUNT];
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    char *text = malloc(size + 1);

    WPK_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    int count = choose_declarations(text, chosen);
    wpk_err err = wpk_notation_parse(text, chosen, count, &program, &diag);
    check(err, &program, &diag);
    diag = (struct wpk_diag){0};
    err = wpk_program_parse(text, &program, &diag);
    check(err, &program, &diag);
    free(text);
    return 0;
}
