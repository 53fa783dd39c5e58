/* SPDX-License-Identifier: Apache-2.0 */
/* A request under way: what the files api_*.c, one for each resource, share. Nobody else includes
 * this. */
#ifndef WPK_COORDINATOR_API_API_CALL_H
#define WPK_COORDINATOR_API_API_CALL_H

#include "common/json.h"
#include "coordinator/api/api.h"

struct wpk_call {
    const struct wpk_api *api;
    const struct wpk_http_request *request;
    struct wpk_api_answer *answer;
    char name[WPK_ID_MAX]; /* what the path names: a job, an artifact */
};

/* ---- answering */

void wpk_call_problem(struct wpk_call *call, int status, wpk_err err, const char *field,
                      const char *text);
/* Takes `w`. */
void wpk_call_json(struct wpk_call *call, struct wpk_json_writer *w);
/* The answer is JSON that stands in its body already. */
void wpk_call_text(struct wpk_call *call);
/* The HTTP status of a failure. */
int wpk_api_status(wpk_err err);

/* A job, as answer to the request that changed it. */
void wpk_api_job(struct wpk_api_answer *answer, const struct wpk_api *api, int status,
                 const char *id);
/* What was ordered of a worker, as answer to the request that did. */
void wpk_api_admin_state(struct wpk_api_answer *answer, int status, const char *name,
                         enum wpk_admin_state state, const char *reason);

/* On a thread of the server: leave the call to the loop; true then. */
bool wpk_call_queue(struct wpk_call *call);

/* Is there an index? False after answering that there is none. */
WPK_MUST_CHECK bool wpk_call_index(struct wpk_call *call);

/* The answer changes with the index alone: name it so, which costs no hashing. True when the client
 * has it already: that is answered then. */
WPK_MUST_CHECK bool wpk_call_has_version(struct wpk_call *call,
                                         const struct wpk_index_version *version);

/* ---- parameters of the query */

/* The value of a parameter; "" where it is not given. */
const char *wpk_call_get(const struct wpk_call *call, const char *name);
/* A decimal parameter in [min, max]; false after answering with a problem. */
WPK_MUST_CHECK bool wpk_call_number(struct wpk_call *call, const char *name, uint64_t fallback,
                                    uint64_t min, uint64_t max, uint64_t *out);
WPK_MUST_CHECK bool wpk_call_page_size(struct wpk_call *call, int *out);
/* The kernel that the path names, "k17"; false after answering that there is none. */
WPK_MUST_CHECK bool wpk_call_kernel_id(struct wpk_call *call, uint64_t *out);
/* The body {"reason": "..."}, or none; false after answering with a problem. */
WPK_MUST_CHECK bool wpk_call_reason(struct wpk_call *call, char *out, size_t size);
/* `next_page_token`: 0 on the last page. */
void wpk_call_put_token(struct wpk_json_writer *w, uint64_t token);

/* ---- what several resources do, on the loop */

/* A job file, and what it means once it was read. */
struct wpk_call_job {
    const char *source;
    size_t size;
    struct wpk_job_entry *job; /* owned until it is submitted; NULL: not read */
};

/* On any thread: a large one takes seconds to understand, which are not to be the loop's. False
 * after answering with a problem. */
WPK_MUST_CHECK bool wpk_call_read_job(struct wpk_call *call, struct wpk_call_job *job);

/* Step a job of whoever calls in, under this id, for `request` to be answered (0: nobody): true
 * when it was accepted. False after answering that the text is no job; or it was refused, and the
 * step answers that. */
bool wpk_call_submit(struct wpk_call *call, const char *id, struct wpk_call_job *job,
                     uint64_t request);

/* The same, once: where the same job has not ended yet, of whatever day, `id` is its id. Else it is
 * submitted under an id that follows from `kind`, `key` and the day, unless today's is done
 * already; one that was cancelled or failed is replaced. It is answered to nobody. False after
 * answering with a problem. */
bool wpk_call_submit_once(struct wpk_call *call, const char *kind, const char *key,
                          struct wpk_call_job *job, char id[WPK_JOB_ID_SIZE]);

/* ---- resources: each answers the call, queues it, or begins what will answer it */

#define WPK_API_HANDLERS(X)                                                                        \
    X(get_health) X(get_ready) X(get_metrics) X(get_signing_key)                                   \
    X(post_job) X(list_jobs) X(get_job) X(cancel_job) X(pause_job) X(resume_job) X(list_trials)    \
    X(list_workers) X(drain_worker) X(quarantine_worker) X(resume_worker) X(list_devices)          \
    X(list_kernels) X(get_kernel) X(get_manifest) X(list_kernel_history) X(lookup_kernel)          \
    X(choose_kernel)                                                                               \
    X(pin_kernel) X(unpin_kernel) X(revoke_kernel) X(roll_back_kernel)                             \
    X(get_artifact) X(post_token) X(list_tokens) X(delete_token) X(list_audit)

#define WPK_API_DECLARE(name) void wpk_api_##name(struct wpk_call *call);
WPK_API_HANDLERS(WPK_API_DECLARE)
#undef WPK_API_DECLARE

#endif
