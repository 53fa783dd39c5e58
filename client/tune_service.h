/* SPDX-License-Identifier: Apache-2.0 */
/* A wpkd as the source of a model's kernels (model/plan/tune_source.h). */
#ifndef WPK_CLIENT_TUNE_SERVICE_H
#define WPK_CLIENT_TUNE_SERVICE_H

#include "client/lock.h"
#include "model/plan/tune_source.h"

struct wpk_tune_service {
    struct wpk_session *session; /* borrowed; open */
    bool quiet;
    bool own_worker;       /* as in struct wpk_follow_options */
    int submitted;         /* jobs so far */
    struct wpk_lock *lock; /* operators that are taken from it are not searched; NULL: none */
};

/* Fill in a source that asks the service; Ctrl-C interrupts it (client/follow.h). */
void wpk_tune_service_source(struct wpk_tune_service *service, struct wpk_tune_source *out);

/* Describe the machine that times a job's kernels: this one, with rates of some server's cores, or
 * with a named service its first ready worker of the job's device.
 *   errors  those of wpk_list_fetch and wpk_api_decode_workers */
wpk_err wpk_tune_service_machine(struct wpk_session *session, const struct wpk_job *job,
                                 struct wpk_tune_machine *out, struct wpk_diag *diag);

/* The class of device whose kernels are asked for: a private service's is this machine's, a named
 * one's the job's; "": the only one that it knows.   shape  out [WPK_JOB_DEVICE_MAX] */
void wpk_tune_service_device(const struct wpk_session *session, const struct wpk_job *job,
                             char *out);
/* Ask what the service has for each operator of a job, on that device.
 *   shape   reply: a document of `matches`, in the order of the operators
 *   owns    caller calls wpk_http_reply_fini, after failures too
 *   errors  WPK_ENOMEM; those of wpk_session_ask */
wpk_err wpk_tune_service_lookup(struct wpk_session *session, const struct wpk_job *job,
                                struct wpk_http_reply *reply, struct wpk_diag *diag);

#endif
