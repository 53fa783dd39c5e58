/* SPDX-License-Identifier: Apache-2.0 */
/* Copying the files of a data directory. For db.c and db_backup.c. */
#ifndef WPK_COORDINATOR_DB_DB_COPY_H
#define WPK_COORDINATOR_DB_DB_COPY_H

#include "common/buf.h"

#include <stdint.h>

/* True if `directory`/`name` exists. */
bool wpk_db_exists(const char *directory, const char *name);

/* Copy the file `name` from one directory to another, durably.
 *   errors  WPK_ENOENT; WPK_ERANGE larger than size_max; those of wpk_fs_read and wpk_fs_write */
WPK_MUST_CHECK wpk_err wpk_db_copy_file(const char *from, const char *to, const char *name,
                                        size_t size_max, unsigned mode, struct wpk_diag *diag);

/* Copy every artifact that `to` lacks, and add their number to *count. A damaged or vanishing one
 * is skipped; a check of the copy finds that it is missing. */
WPK_MUST_CHECK wpk_err wpk_db_copy_artifacts(const char *from, const char *to, int64_t *count,
                                             struct wpk_diag *diag);

/* Run by root on another user's data directory, give root's files in it to the directory's owner.
 * The owner may be hostile and change the directory meanwhile, so a file with other hard links is
 * not given. Does nothing for other users.
 *   errors  WPK_EACCES, WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_db_give_to_owner(const char *data_dir, struct wpk_diag *diag);

/* Rename within a directory, durably. A missing file is no error. */
WPK_MUST_CHECK wpk_err wpk_db_rename(const char *directory, const char *name, const char *to,
                                     struct wpk_diag *diag);

#endif
