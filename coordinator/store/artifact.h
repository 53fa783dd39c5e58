/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects by their content: artifacts/ab/<sha256>.so in the data directory. The row in the
 * store comes after the file, so that a row always has one; a file without a row is harmless. */
#ifndef WPK_COORDINATOR_STORE_ARTIFACT_H
#define WPK_COORDINATOR_STORE_ARTIFACT_H

#include "common/buf.h"

/* Write the bytes, durably, if they are not there yet.
 *
 *   errors  WPK_ECORRUPT  they are not what `sha256` names
 *           WPK_ENOSPC, WPK_EACCES, WPK_EIO
 */
WPK_MUST_CHECK wpk_err wpk_artifact_put(const char *data_dir, const char *sha256, const void *bytes,
                                        size_t size, struct wpk_diag *diag);

/* Append the bytes to `out`, after comparing them with their name.
 *
 *   errors  WPK_ENOENT; WPK_ECORRUPT they changed on the disk: nothing is given out
 */
WPK_MUST_CHECK wpk_err wpk_artifact_get(const char *data_dir, const char *sha256,
                                        struct wpk_buf *out, struct wpk_diag *diag);

/* Remove the file, if there is one. */
void wpk_artifact_remove(const char *data_dir, const char *sha256);

/* Call `fn` for every file that has an artifact's name; it may remove that one. */
void wpk_artifact_each(const char *data_dir, void (*fn)(void *user, const char *sha256),
                       void *user);

/* Remove what a wpkd that was killed had begun to write. For the start, when nobody writes. */
void wpk_artifact_sweep(const char *data_dir);

#endif
