/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a .npy file, as a user gives it to wpkctl run. */
#include "schema/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wpk_npy npy;
    struct wpk_diag diag = {0};

    if (wpk_npy_decode(data, size, &npy, &diag) != WPK_OK) {
        WPK_ASSERT(diag.text[0] != '\0');
        return 0;
    }
    WPK_ASSERT(npy.rank <= WPK_RANK_MAX && npy.size <= size);
    WPK_ASSERT((const uint8_t *)npy.data + npy.size == data + size);
    const struct wpk_tensor_type type = {.dtype = WPK_F32, .layout = wpk_layout_row_major(0)};
    float number = 0;
    wpk_err err = wpk_npy_read(&npy, &type, &number, &diag);
    WPK_ASSERT(err == WPK_OK || diag.text[0] != '\0');
    return 0;
}
