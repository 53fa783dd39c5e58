/* SPDX-License-Identifier: Apache-2.0 */
/* Files, whole: read with a limit, written so that a crash leaves the old one or the new one. */
#ifndef WPK_COMMON_FS_H
#define WPK_COMMON_FS_H

#include "common/buf.h"

/* Append the file's content to `out`; "-" is standard input.
 *
 *   errors  WPK_ENOENT, WPK_EACCES, WPK_EIO
 *           WPK_ERANGE  longer than size_max; nothing past the limit is read
 *           and names the file in `diag`
 */
WPK_MUST_CHECK wpk_err wpk_fs_read(const char *path, size_t size_max, struct wpk_buf *out,
                                   struct wpk_diag *diag);

/* Replace `path` by these bytes: temporary file beside it, fsync, rename, fsync of the directory.
 * It has `mode` less the umask, whatever the old one had.
 *
 *   errors  WPK_ENOSPC disk full, WPK_EACCES (read-only too), WPK_ENOENT no such directory,
 *           WPK_EIO; the old content stands and no temporary file is left
 */
WPK_MUST_CHECK wpk_err wpk_fs_write(const char *path, const void *data, size_t size, unsigned mode,
                                    struct wpk_diag *diag);

/* Sync the directory in which `path` is a name. */
WPK_MUST_CHECK wpk_err wpk_fs_sync_name(const char *path, struct wpk_diag *diag);

/* Rename within a directory, durably. */
WPK_MUST_CHECK wpk_err wpk_fs_rename(const char *from, const char *to, struct wpk_diag *diag);

/* Create the directory and those above it, for our user alone (0700); fine if it is there. What is
 * made is as durable as what is put into it. */
WPK_MUST_CHECK wpk_err wpk_fs_make_dirs(const char *path, struct wpk_diag *diag);

/* Remove what is at `path`, a directory with all in it; fine if nothing is there. Links are
 * removed, not followed. */
WPK_MUST_CHECK wpk_err wpk_fs_remove_tree(const char *path, struct wpk_diag *diag);

/* May a socket be made at `path`, where a stale one is removed first? What is anything else was
 * put there by somebody, and stays.
 *
 *   errors  WPK_EINVAL  something is there, and is no socket
 */
WPK_MUST_CHECK wpk_err wpk_fs_check_socket(const char *path, struct wpk_diag *diag);

/* Where a user's history lives: `given`, else $XDG_DATA_HOME/woodpecker, else
 * $HOME/.local/share/woodpecker. The three come from main, which alone reads the environment;
 * NULL or "" means not set. Relative XDG_DATA_HOME is ignored, as its specification asks.
 *
 *   errors  WPK_EINVAL  none of the three is set
 */
WPK_MUST_CHECK wpk_err wpk_fs_data_dir(const char *given, const char *xdg_data_home,
                                       const char *home, struct wpk_buf *out,
                                       struct wpk_diag *diag);

/* The directory of the running program: what it starts lies beside it. */
WPK_MUST_CHECK wpk_err wpk_fs_program_dir(struct wpk_buf *out, struct wpk_diag *diag);

/* errno as a wpk_err: the one table of this translation. */
wpk_err wpk_fs_err(int system_errno);

/* What to do about errno: the end of a message, such as "; check the path". */
const char *wpk_fs_advice(int system_errno);

#endif
