/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a schedule's text, which people edit. An accepted schedule prints as text that reads back
 * as the same schedule. wpk_codegen_check refuses it with a reason, or it prints as Halide. */
#include "target/codegen.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_round_trip(const struct wpk_schedule *schedule)
{
    static struct wpk_schedule again;
    struct wpk_buf once = {0};
    struct wpk_buf twice = {0};

    WPK_ASSERT(wpk_schedule_print(schedule, &once) == WPK_OK);
    WPK_ASSERT(wpk_schedule_parse(wpk_buf_text(&once), &again, NULL) == WPK_OK);
    WPK_ASSERT(wpk_schedule_print(&again, &twice) == WPK_OK);
    WPK_ASSERT(strcmp(wpk_buf_text(&once), wpk_buf_text(&twice)) == 0);
    wpk_schedule_fini(&again);
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wpk_schedule schedule; /* too large for a stack */
    struct wpk_diag diag = {0};
    struct wpk_buf halide = {0};
    char *text = malloc(size + 1);

    WPK_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    wpk_err err = wpk_schedule_parse(text, &schedule, &diag);
    free(text);
    if (err != WPK_OK) {
        WPK_ASSERT(diag.text[0] != '\0');
        return 0;
    }
    check_round_trip(&schedule);
    if (wpk_codegen_check(&schedule, &diag) == WPK_OK) {
        WPK_ASSERT(wpk_schedule_print_halide(&schedule, &halide) == WPK_OK);
    } else {
        WPK_ASSERT(diag.text[0] != '\0');
    }
    wpk_buf_fini(&halide);
    wpk_schedule_fini(&schedule);
    return 0;
}
