/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the manifest of a recorded kernel, which libwpk reads from a file beside it. */
#include "schema/kernel_manifest.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wpk_kernel_manifest manifest;
    struct wpk_kernel_manifest again;
    struct wpk_buf once = {0};
    struct wpk_buf twice = {0};
    struct wpk_diag diag = {0};

    if (wpk_kernel_manifest_decode((const char *)data, size, &manifest, &diag) != WPK_OK) {
        WPK_ASSERT(diag.text[0] != '\0');
        return 0;
    }
    WPK_ASSERT(wpk_kernel_manifest_encode(&manifest, &once) == WPK_OK);
    WPK_ASSERT(wpk_kernel_manifest_decode(once.data, once.size, &again, NULL) == WPK_OK);
    WPK_ASSERT(wpk_kernel_manifest_encode(&again, &twice) == WPK_OK);
    WPK_ASSERT(strcmp(once.data, twice.data) == 0);
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
    return 0;
}
