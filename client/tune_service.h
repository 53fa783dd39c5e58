/* SPDX-License-Identifier: Apache-2.0 */
/* A wpkd as the source of a model's kernels (model/plan/tune_source.h). */
#ifndef WPK_CLIENT_TUNE_SERVICE_H
#define WPK_CLIENT_TUNE_SERVICE_H

#include "client/session.h"
#include "model/plan/tune_source.h"

struct wpk_tune_service {
    struct wpk_session *session; /* borrowed; open */
    bool quiet;
    bool own_worker; /* as in struct wpk_follow_options */
    int submitted;   /* jobs so far */
};

/* Fill in a source that asks the service; Ctrl-C interrupts it (client/follow.h). */
void wpk_tune_service_source(struct wpk_tune_service *service, struct wpk_tune_source *out);

/* Describe the machine that times a job's kernels: this one, with rates of some server's cores, or
 * with a named service its first ready worker of the job's device.
 *   errors  those of wpk_list_fetch and wpk_api_decode_workers */
wpk_err wpk_tune_service_machine(struct wpk_session *session, const struct wpk_job *job,
                                 struct wpk_tune_machine *out, struct wpk_diag *diag);

#endif
