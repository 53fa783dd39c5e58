/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a data directory, from one place to another. For db.c and db_backup.c. */
#ifndef WPK_COORDINATOR_DB_DB_COPY_H
#define WPK_COORDINATOR_DB_DB_COPY_H

#include "common/buf.h"

#include <stdint.h>

/* Is anything at `directory`/`name`? */
bool wpk_db_exists(const char *directory, const char *name);

/* Copy a file of the one directory into the other, durably.
 *   errors  WPK_ENOENT it is not there; WPK_ERANGE larger than size_max; of wpk_fs_read/write */
WPK_MUST_CHECK wpk_err wpk_db_copy_file(const char *from, const char *to, const char *name,
                                        size_t size_max, unsigned mode, struct wpk_diag *diag);

/* Copy every artifact that `to` has not got. One that is damaged or vanishes is passed over: what
 * needs it will say so.
 *   shape   *count: of those copied */
WPK_MUST_CHECK wpk_err wpk_db_copy_artifacts(const char *from, const char *to, int64_t *count,
                                             struct wpk_diag *diag);

/* Root works on a history that is another user's, a service's: what root made or replaced there
 * becomes that user's, whom the directory itself belongs to. He may not be trusted, and be at work
 * there: nothing is given that has another name elsewhere. Nothing for anybody but root.
 *   errors  WPK_EACCES, WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_db_give_to_owner(const char *data_dir, struct wpk_diag *diag);

/* Rename within a directory, durably; nothing there is no error. */
WPK_MUST_CHECK wpk_err wpk_db_rename(const char *directory, const char *name, const char *to,
                                     struct wpk_diag *diag);

#endif
