/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of store.c for opening a database whose tables may be missing. For store_open.c. */
#ifndef WPK_COORDINATOR_STORE_STORE_SQL_H
#define WPK_COORDINATOR_STORE_STORE_SQL_H

#include "coordinator/store/store.h"

/* Open the file `path`, or create it unless `reader`; runs no statement.   owns  caller closes */
WPK_MUST_CHECK wpk_err wpk_store_attach(const char *path, const struct wpk_clock *clock,
                                        bool reader, struct wpk_store **out, struct wpk_diag *diag);
bool wpk_store_is_writable(const struct wpk_store *store);
/* Read the first column of the first row.   errors  WPK_ENOENT no row */
WPK_MUST_CHECK wpk_err wpk_store_read_int(struct wpk_store *store, const char *sql, int64_t *out,
                                          struct wpk_diag *diag);
/* Read the epoch that wpk_store_epoch() returns. */
WPK_MUST_CHECK wpk_err wpk_store_read_epoch(struct wpk_store *store, struct wpk_diag *diag);

#endif
