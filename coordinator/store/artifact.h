/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts by their hash: artifacts/ab/<sha256>.so in the data directory. The file is written
 * before its row in the store, so that every row has a file; a file without a row is harmless. */
#ifndef WPK_COORDINATOR_STORE_ARTIFACT_H
#define WPK_COORDINATOR_STORE_ARTIFACT_H

#include "common/buf.h"

/* Write the artifact durably, unless its file exists undamaged.
 *
 *   errors  WPK_ECORRUPT  the bytes do not have the hash `sha256`
 *           WPK_ENOSPC, WPK_EACCES, WPK_EIO
 */
wpk_err wpk_artifact_put(const char *data_dir, const char *sha256, const void *bytes, size_t size,
                         struct wpk_diag *diag);

/* Append the artifact to `out`, after checking its hash. A damaged file is counted.
 *
 *   errors  WPK_ENOENT; WPK_ECORRUPT the file was changed, and nothing is appended
 */
wpk_err wpk_artifact_get(const char *data_dir, const char *sha256, struct wpk_buf *out,
                         struct wpk_diag *diag);

/* As wpk_artifact_get(), but count no damaged file: it is read again, or replaced. */
wpk_err wpk_artifact_look(const char *data_dir, const char *sha256, struct wpk_buf *out,
                          struct wpk_diag *diag);

/* Remove the file, if there is one. */
void wpk_artifact_remove(const char *data_dir, const char *sha256);

/* Call `fn` for every file with an artifact's name; `fn` may remove that file. */
void wpk_artifact_each(const char *data_dir, void (*fn)(void *user, const char *sha256),
                       void *user);

/* Remove temporary files that a killed wpkd has left. For the start, before anything is written. */
void wpk_artifact_sweep(const char *data_dir);

#endif
