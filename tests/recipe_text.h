/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes as documents of their own. */
#ifndef WPK_TESTS_RECIPE_TEXT_H
#define WPK_TESTS_RECIPE_TEXT_H

#include "schema/fields.h"
#include "schema/recipe.h"

#include <string.h>

static inline wpk_err wpk_recipe_encode(const struct wpk_recipe *recipe, struct wpk_buf *out)
{
    return wpk_fields_encode(wpk_recipe_fields, recipe, out);
}

/*   errors  those of wpk_fields_decode(); *out is as it was then */
static inline wpk_err wpk_recipe_decode(const char *text, size_t size, struct wpk_recipe *out,
                                        struct wpk_diag *diag)
{
    const struct wpk_fields_text from = {text, size, WPK_RECIPE_SIZE_MAX, NULL, false};
    struct wpk_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    wpk_err err = wpk_fields_decode(&from, wpk_recipe_fields, &recipe, diag);
    if (err == WPK_OK) {
        *out = recipe;
    }
    return err;
}

#endif
