/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a recipe, as a worker records it. */
#include "schema/recipe.h"
#include "tests/fuzz/fuzz.h"
#include "tests/recipe_text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wpk_recipe recipe = {0};
    struct wpk_recipe again = {0};
    struct wpk_buf once = {0};
    struct wpk_buf twice = {0};
    struct wpk_diag diag = {0};

    if (wpk_recipe_decode((const char *)data, size, &recipe, &diag) != WPK_OK) {
        WPK_ASSERT(diag.text[0] != '\0');
        return 0;
    }
    WPK_ASSERT(wpk_recipe_encode(&recipe, &once) == WPK_OK);
    WPK_ASSERT(wpk_recipe_decode(once.data, once.size, &again, NULL) == WPK_OK);
    WPK_ASSERT(wpk_recipe_encode(&again, &twice) == WPK_OK);
    WPK_ASSERT(strcmp(once.data, twice.data) == 0);
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
    return 0;
}
