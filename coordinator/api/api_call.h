/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is being served: the functions that the files api_*.c, one for each resource,
 * share. Only these files include this. */
#ifndef WPK_COORDINATOR_API_API_CALL_H
#define WPK_COORDINATOR_API_API_CALL_H

#include "common/json.h"
#include "coordinator/api/api.h"

struct wpk_call {
    const struct wpk_api *api;
    const struct wpk_http_request *request;
    struct wpk_api_answer *answer;
    char name[WPK_ID_MAX]; /* the id in the path: of a job, an artifact */
    const char *verb;      /* of the path, such as cancel; "": none */
};

/* ---- answering */

/* Answer with a problem document. Returns false, for the caller to return. */
bool wpk_call_problem(struct wpk_call *call, int status, wpk_err err, const char *field,
                      const char *text);
/* Answer with the document of `w`, which is taken. */
void wpk_call_json(struct wpk_call *call, struct wpk_json_writer *w);
/* Answer with the JSON that is in the answer's body. */
void wpk_call_text(struct wpk_call *call);
/* The HTTP status of a failure. */
int wpk_api_status(wpk_err err);

/* Answer with a job, after a request that changed it. */
void wpk_api_job(struct wpk_api_answer *answer, const struct wpk_api *api, int status,
                 const char *id);
/* Answer that there is no such job, or with what is left of one that was pruned. */
void wpk_api_no_job(struct wpk_api_answer *answer, const struct wpk_api *api, const char *id);
/* Answer with a worker's admin state, after a request that changed it. */
void wpk_api_admin_state(struct wpk_api_answer *answer, int status, const char *name,
                         enum wpk_admin_state state, const char *reason);

/* Read the body, a JSON object, by `get`, which fails through the reader; false after answering
 * with a problem. */
WPK_MUST_CHECK bool wpk_call_read(struct wpk_call *call,
                                  void (*get)(struct wpk_json_reader *r, void *out), void *out);

/* On a thread of the server: leave the call to the loop, and return true. On the loop: false. */
bool wpk_call_queue(struct wpk_call *call);

/* True if there is an index; false after answering that there is none. */
WPK_MUST_CHECK bool wpk_call_index(struct wpk_call *call);

/* Set the etag of an answer that changes only with the index, without hashing it. True when the
 * client has this version already; the answer is 304 then. */
WPK_MUST_CHECK bool wpk_call_has_version(struct wpk_call *call,
                                         const struct wpk_index_version *version);

/* ---- parameters of the query */

/* The value of a parameter; "" if absent. */
const char *wpk_call_get(const struct wpk_call *call, const char *name);
/* Read a decimal parameter in [min, max]; false after answering with a problem. */
WPK_MUST_CHECK bool wpk_call_number(struct wpk_call *call, const char *name, uint64_t fallback,
                                    uint64_t min, uint64_t max, uint64_t *out);
WPK_MUST_CHECK bool wpk_call_page_size(struct wpk_call *call, int *out);
/* Parse the kernel's id in the path, "k17"; false after answering that there is none. */
WPK_MUST_CHECK bool wpk_call_kernel_id(struct wpk_call *call, uint64_t *out);
/* Put `next_page_token`; `token` is 0 on the last page. */
void wpk_call_put_token(struct wpk_json_writer *w, uint64_t token);

/* ---- jobs, for several resources */

/* Make the client the owner of the job. */
void wpk_call_own_job(const struct wpk_call *call, struct wpk_job_entry *job);

/* On the loop: submit the client's job, which is taken, under this id; the step answers `request`
 * (0: none). False when the step refuses it. */
bool wpk_call_submit(struct wpk_call *call, const char *id, struct wpk_job_entry *job,
                     uint64_t request);

/* On the loop: submit a job unless it exists. `id` becomes that of an equal live job, else one
 * derived from `kind`, `key` and the day; a job with this id is not submitted again unless it was
 * cancelled, failed, or was paused by another owner. The step answers no request. False after
 * answering with a problem.
 *   owns  *job is taken, and NULL then, if it is submitted */
bool wpk_call_submit_once(struct wpk_call *call, const char *kind, const char *key,
                          struct wpk_job_entry **job, char id[WPK_JOB_ID_SIZE]);

/* ---- resources: each handler answers the call, queues it, or begins what will answer it
 *
 * To add a resource, describe it in schema/openapi.yaml, list its handler below, add its route in
 * api.c, and write the handler in api_NAME.c. docs/hacking.md names the files in other folders. */

/* clang-format off */
#define WPK_API_HANDLERS(X)                                                                        \
    X(get_health) X(get_ready) X(get_metrics) X(get_signing_key) X(get_demand) X(post_job)         \
    X(list_jobs) X(get_job) X(change_job) X(list_trials) X(list_workers) X(set_worker)             \
    X(list_devices) X(list_kernels) X(list_misses) X(get_kernel) X(get_manifest)                   \
    X(list_kernel_history) X(lookup_kernel) X(choose_kernel) X(change_kernel) X(get_artifact)      \
    X(post_token) X(list_tokens) X(delete_token) X(list_audit) X(page_home) X(page_jobs)           \
    X(page_job) X(page_report) X(page_compare) X(page_trials) X(page_kernels) X(page_kernel)       \
    X(page_misses) X(page_fleet) X(page_style) X(page_script) X(page_sign_in) X(sign_in)
/* clang-format on */

#define WPK_API_DECLARE(name) void wpk_api_##name(struct wpk_call *call);
WPK_API_HANDLERS(WPK_API_DECLARE)
#undef WPK_API_DECLARE

#endif
