/* SPDX-License-Identifier: Apache-2.0 */
/* A request under way: what the files api_*.c, one for each resource, share. Nobody else includes
 * this. */
#ifndef WPK_COORDINATOR_API_CALL_H
#define WPK_COORDINATOR_API_CALL_H

#include "common/json.h"
#include "coordinator/api.h"

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

/* On a thread of the server: leave the call to the loop; true then. */
bool wpk_call_queue(struct wpk_call *call);

/* Is there an index? False after answering that there is none. */
WPK_MUST_CHECK bool wpk_call_index(struct wpk_call *call);

/* ---- parameters of the query */

/* The value of a parameter; "" where it is not given. */
const char *wpk_call_get(const struct wpk_call *call, const char *name);
/* A decimal parameter in [min, max]; false after answering with a problem. */
WPK_MUST_CHECK bool wpk_call_number(struct wpk_call *call, const char *name, uint64_t fallback,
                                    uint64_t min, uint64_t max, uint64_t *out);
WPK_MUST_CHECK bool wpk_call_page_size(struct wpk_call *call, int *out);
/* The kernel that the path names, "k17"; false after answering that there is none. */
WPK_MUST_CHECK bool wpk_call_kernel_id(struct wpk_call *call, uint64_t *out);
/* `next_page_token`: 0 on the last page. */
void wpk_call_put_token(struct wpk_json_writer *w, uint64_t token);

/* ---- resources: each answers the call, queues it, or leaves an event or an order that answers */

void wpk_api_get_health(struct wpk_call *call);
void wpk_api_post_job(struct wpk_call *call);
void wpk_api_get_job(struct wpk_call *call);
void wpk_api_cancel_job(struct wpk_call *call);
void wpk_api_list_jobs(struct wpk_call *call);
void wpk_api_list_trials(struct wpk_call *call);
void wpk_api_list_workers(struct wpk_call *call);
void wpk_api_list_kernels(struct wpk_call *call);
void wpk_api_get_kernel(struct wpk_call *call);
void wpk_api_get_manifest(struct wpk_call *call);
void wpk_api_list_kernel_history(struct wpk_call *call);
void wpk_api_lookup_kernel(struct wpk_call *call);
void wpk_api_get_artifact(struct wpk_call *call);

#endif
