/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of schema/openapi.yaml as JSON. */
#ifndef WPK_COORDINATOR_STORE_DOCUMENT_H
#define WPK_COORDINATOR_STORE_DOCUMENT_H

#include "coordinator/store/history_admin.h"

/* Put the members of a job, without its kernels, into the current object of `w`. */
void wpk_document_job(struct wpk_json_writer *w, const struct wpk_coordinator *coordinator,
                      const struct wpk_job_entry *job, uint64_t now_ns, uint64_t wall_ns);

/* Append a job with its kernels as text, live or ended. Without a coordinator only ended jobs are
 * found.
 *   errors  WPK_ENOENT no such job; WPK_EBUSY a live job that the coordinator does not have yet;
 *           WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_document_job_whole(const struct wpk_coordinator *coordinator, struct wpk_store *store,
                               const char *id, uint64_t now_ns, struct wpk_buf *out);

void wpk_document_worker(struct wpk_json_writer *w, const struct wpk_worker *worker,
                         uint64_t now_ns);

/* The Kernel of schema/openapi.yaml as JSON, and members that the operators of a job have too. */

/* Append the kernel that PUT_KERNEL stores, without the members id, name and from_history.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_document_kernel(struct wpk_store *store, const struct wpk_effect *effect,
                            struct wpk_buf *out);

/* Append a row of the table as text: its changing members, then those of its stored document.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_document_kernel_row(const struct wpk_kernel_row *row, struct wpk_buf *out);

/* Put member "time_ns". */
void wpk_document_put_time(struct wpk_json_writer *w, uint64_t median_ns, uint64_t min_ns,
                           uint64_t mad_ns);

/* Put member "algorithm": the value of a candidate's gene `algorithm`, else `detail`. */
void wpk_document_put_algorithm(struct wpk_json_writer *w, const char *candidate,
                                const char *detail);

#endif
