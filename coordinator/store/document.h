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
WPK_MUST_CHECK wpk_err wpk_document_job_whole(const struct wpk_coordinator *coordinator,
                                              struct wpk_store *store, const char *id,
                                              uint64_t now_ns, struct wpk_buf *out);

void wpk_document_worker(struct wpk_json_writer *w, const struct wpk_worker *worker,
                         uint64_t now_ns);

#endif
