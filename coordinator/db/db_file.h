/* SPDX-License-Identifier: Apache-2.0 */
/* The export file, which moves history between installations: a database with the tables of
 * schema.sql, in which only problems, trials, measurements, kernels with their searches, artifacts
 * and hints have rows, and one table more with the bytes of the artifacts. A seal is the last line:
 *
 *     wpk-export SHA256     of all bytes before this line
 *
 * Row numbers are those of the history that was exported: an import recognises equal objects by
 * their content. */
#ifndef WPK_COORDINATOR_DB_DB_FILE_H
#define WPK_COORDINATOR_DB_DB_FILE_H

#include "common/err.h"

#define WPK_DB_ARTIFACT_TABLE                                                                      \
    "CREATE TABLE artifact_bytes (sha256 TEXT NOT NULL, bytes BLOB NOT NULL)"
#define WPK_DB_TEMPORARY_SIZE 32

/* Make an empty file under /var/tmp, which only this user can open.
 *   owns    the caller removes it
 *   errors  WPK_ENOSPC, WPK_EACCES, WPK_EIO */
wpk_err wpk_db_make_temporary(char path[WPK_DB_TEMPORARY_SIZE], struct wpk_diag *diag);
/* Copy the content of a file or stream into the file `to` or a stream; "-" is standard input or
 * standard output.
 *   errors  WPK_EINVAL there is no such file; those of its opening, reading and writing */
wpk_err wpk_db_copy_stream(const char *from, const char *to, struct wpk_diag *diag);

/* Append the seal, and sync the file. */
wpk_err wpk_db_seal(const char *path, struct wpk_diag *diag);
/* Check the seal, and cut it off.
 *   errors  WPK_EINVAL no export, or cut off; WPK_ECORRUPT its bytes were changed */
wpk_err wpk_db_unseal(const char *path, struct wpk_diag *diag);

#endif
