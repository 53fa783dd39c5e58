/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a choice with its recipes, which libwpk reads from a file. */
#include "schema/choice.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wpk_choice choice = {0};
    struct wpk_choice again = {0};
    struct wpk_buf once = {0};
    struct wpk_buf twice = {0};
    struct wpk_diag diag = {0};

    if (wpk_choice_decode((const char *)data, size, &choice, &diag) != WPK_OK) {
        WPK_ASSERT(diag.text[0] != '\0');
        return 0;
    }
    WPK_ASSERT(wpk_choice_encode(&choice, &once) == WPK_OK);
    WPK_ASSERT(wpk_choice_decode(once.data, once.size, &again, NULL) == WPK_OK);
    WPK_ASSERT(wpk_choice_encode(&again, &twice) == WPK_OK);
    WPK_ASSERT(strcmp(once.data, twice.data) == 0);
    wpk_choice_fini(&choice);
    wpk_choice_fini(&again);
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
    return 0;
}
