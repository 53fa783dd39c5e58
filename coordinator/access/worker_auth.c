/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/access/auth.h"

wpk_err wpk_worker_auth_check(struct wpk_auth *auth, const struct wpk_hello *hello,
                              uint64_t wall_ns, struct wpk_identity *identity,
                              struct wpk_diag *diag)
{
    *identity = (struct wpk_identity){.roles = 0};
    if (hello->token[0] == '\0') {
        return wpk_fail(diag, WPK_EACCES,
                        "a worker needs a token here: --token-file, and a version that has it");
    }
    wpk_err err = wpk_auth_check(auth, hello->token, wall_ns, identity, diag);
    if (err != WPK_OK) {
        return err;
    }
    bool builds = (hello->roles & WPK_WORKER_BUILDS) != 0;
    bool runs = (hello->roles & WPK_WORKER_RUNS) != 0;
    if ((builds && !wpk_identity_may(identity, WPK_ROLE_BUILD, diag)) ||
        (runs && !wpk_identity_may(identity, WPK_ROLE_MEASURE, diag))) {
        return WPK_EACCES;
    }
    return WPK_OK;
}
