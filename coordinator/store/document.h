/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of schema/openapi.yaml as JSON. */
#ifndef WPK_COORDINATOR_STORE_DOCUMENT_H
#define WPK_COORDINATOR_STORE_DOCUMENT_H

#include "coordinator/store/history_admin.h"

#define WPK_DOCUMENT_OPS_MAX 256 /* of a job */

/* The members of a job without its kernels, into the object that `w` is in. */
void wpk_document_job(struct wpk_json_writer *w, const struct wpk_coordinator *coordinator,
                      const struct wpk_job_entry *job, uint64_t now_ns, uint64_t wall_ns);

/* A job with its kernels, as text, whether it lives or has ended. Without a coordinator only what
 * has ended is found.
 *   errors  WPK_ENOENT no such job; WPK_EBUSY it lives, and the coordinator does not have it yet;
 *           WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_document_job_whole(const struct wpk_coordinator *coordinator,
                                              struct wpk_store *store, const char *id,
                                              uint64_t now_ns, struct wpk_buf *out);

/* The names of a job's operators, as texts in `arena`, and the job's number.
 *   shape   names [WPK_DOCUMENT_OPS_MAX]
 *   errors  WPK_ENOENT no such job; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_document_op_names(struct wpk_store *store, const char *id,
                                             struct wpk_arena *arena, const char **names,
                                             uint32_t *count, uint64_t *number);

void wpk_document_worker(struct wpk_json_writer *w, const struct wpk_worker *worker,
                         uint64_t now_ns);

#endif
