/* SPDX-License-Identifier: Apache-2.0 */
/* The Kernel of schema/openapi.yaml as JSON, and members that the operators of a job have too. */
#ifndef WPK_COORDINATOR_STORE_DOCUMENT_KERNEL_H
#define WPK_COORDINATOR_STORE_DOCUMENT_KERNEL_H

#include "coordinator/store/history_admin.h"

/* Append the kernel that PUT_KERNEL stores, without the members id, name and from_history.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_document_kernel(struct wpk_store *store, const struct wpk_effect *effect,
                                           struct wpk_buf *out);

/* Append a row of the table as text: its changing members, then those of its stored document.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_document_kernel_row(const struct wpk_kernel_row *row,
                                               struct wpk_buf *out);

/* Put member "time_ns". */
void wpk_document_put_time(struct wpk_json_writer *w, uint64_t median_ns, uint64_t min_ns,
                           uint64_t mad_ns);

/* Put member "algorithm": the value of a candidate's gene `algorithm`, else `detail`. */
void wpk_document_put_algorithm(struct wpk_json_writer *w, const char *candidate,
                                const char *detail);

#endif
