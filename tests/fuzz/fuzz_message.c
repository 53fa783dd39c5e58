/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes messages between worker and wpkd. An accepted message survives a round trip. */
#include "schema/message.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wpk_message message = {0};
    struct wpk_diag diag = {0};
    wpk_err err = wpk_message_decode((const char *)data, size, &message, &diag);
    if (err != WPK_OK) {
        WPK_ASSERT(err == WPK_ENOMEM || diag.text[0] != '\0');
        return 0;
    }
    struct wpk_buf once = {0};
    struct wpk_buf twice = {0};
    struct wpk_message again = {0};
    WPK_ASSERT(wpk_message_encode(&message, &once) == WPK_OK);
    WPK_ASSERT(wpk_message_decode(once.data, once.size, &again, &diag) == WPK_OK);
    WPK_ASSERT(wpk_message_encode(&again, &twice) == WPK_OK);
    WPK_ASSERT(once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
    wpk_message_fini(&again);
    wpk_message_fini(&message);
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
    return 0;
}
