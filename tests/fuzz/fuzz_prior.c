/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a prior, as a job brings it. */
#include "search/model/prior.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    struct wpk_prior *prior = NULL, *again = NULL;
    struct wpk_buf once = {0}, twice = {0};
    struct wpk_diag diag = {0};

    WPK_ASSERT(text != NULL);
    if (wpk_prior_decode(text, &prior, &diag) == WPK_OK) {
        const double x[WPK_FEATURES] = {0};
        (void)wpk_trees_add(&prior->trees, x, 0);
        WPK_ASSERT(wpk_prior_encode(prior, &once) == WPK_OK);
        WPK_ASSERT(wpk_prior_decode(wpk_buf_text(&once), &again, NULL) == WPK_OK);
        WPK_ASSERT(wpk_prior_encode(again, &twice) == WPK_OK);
        WPK_ASSERT(strcmp(wpk_buf_text(&once), wpk_buf_text(&twice)) == 0);
    } else {
        WPK_ASSERT(diag.text[0] != '\0');
    }
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
    free(prior);
    free(again);
    free(text);
    return 0;
}
