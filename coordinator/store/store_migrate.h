/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a new database, and migrations from older versions to this one: forwards only, in
 * one transaction, after a backup beside the file. For store_open.c. */
#ifndef WPK_COORDINATOR_STORE_STORE_MIGRATE_H
#define WPK_COORDINATOR_STORE_STORE_MIGRATE_H

#include "coordinator/store/store.h"

/* Bring the database, whose PRAGMA user_version is `version`, to WPK_STORE_VERSION; 0: it has no
 * tables yet. `path` is its file.
 *
 *   errors  WPK_EMISMATCH a newer version; WPK_ECORRUPT; WPK_ENOSPC, WPK_EIO
 */
WPK_MUST_CHECK wpk_err wpk_store_migrate(struct wpk_store *store, const char *path, int64_t version,
                                         struct wpk_diag *diag);

#endif
