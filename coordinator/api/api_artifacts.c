/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto.h"
#include "coordinator/api/api_call.h"
#include "coordinator/store/artifact.h"
#include "coordinator/store/history.h"

#include <stdio.h>

void wpk_api_get_artifact(struct wpk_call *call)
{
    struct wpk_diag diag = {0};
    if (!wpk_crypto_hex_valid(call->name, WPK_SHA256_SIZE)) {
        wpk_call_problem(call, 404, WPK_ENOENT, "sha256",
                         "not a SHA-256 in lower-case hexadecimal");
        return;
    }
    if (wpk_history_artifact_revoked(call->api->store, call->name)) {
        wpk_call_problem(
            call, 410, WPK_ENOENT, "",
            "the kernel that it is was revoked; look its operator up again for another");
        return;
    }
    wpk_err err = wpk_artifact_get(call->api->data_dir, call->name, &call->answer->body, &diag);
    if (err != WPK_OK) {
        /* Other failures name paths of this machine. */
        wpk_api_problem(call->answer, err == WPK_ENOENT ? 404 : 500, err,
                        err == WPK_ECORRUPT ? &diag : NULL);
        return;
    }
    call->answer->status = 200;
    call->answer->content_type = "application/octet-stream";
    snprintf(call->answer->etag, sizeof call->answer->etag, "\"%s\"", call->name);
}
