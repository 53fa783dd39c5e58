/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel as JSON, as schema/openapi.yaml has it, and the members that a job's operators share. */
#ifndef WPK_COORDINATOR_STORE_DOCUMENT_KERNEL_H
#define WPK_COORDINATOR_STORE_DOCUMENT_KERNEL_H

#include "coordinator/store/history_admin.h"

/* The kernel that PUT_KERNEL stores, without what a job adds: id, name, from_history.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_document_kernel(struct wpk_store *store, const struct wpk_effect *effect,
                                           struct wpk_buf *out);

/* A row of the table as text: what may change, in front of the document, which does not.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_document_kernel_row(const struct wpk_kernel_row *row,
                                               struct wpk_buf *out);

/* Member "time_ns". */
void wpk_document_put_time(struct wpk_json_writer *w, uint64_t median_ns, uint64_t min_ns,
                           uint64_t mad_ns);

/* Member "algorithm": the value of the gene of that name in a candidate's text, else `detail`. */
void wpk_document_put_algorithm(struct wpk_json_writer *w, const char *candidate,
                                const char *detail);

#endif
