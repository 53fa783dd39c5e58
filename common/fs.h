/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: reading has a limit; a crash while writing leaves the old file or the new one. */
#ifndef WPK_COMMON_FS_H
#define WPK_COMMON_FS_H

#include "common/buf.h"
#include "common/err.h"

/* Append the file's content to `out`; "-" is standard input.
 *
 *   errors  WPK_ENOENT, WPK_EACCES, WPK_EIO
 *           WPK_ERANGE  longer than size_max; nothing past the limit is read
 *           `diag` names the file
 */
wpk_err wpk_fs_read(const char *path, size_t size_max, struct wpk_buf *out, struct wpk_diag *diag);

/* True if `path` is a device, a pipe, a socket, or an open file such as /dev/stdout: it is written
 * into, is never replaced, and has no files beside it. Links are followed. */
bool wpk_fs_is_stream(const char *path);

/* Replace `path` by these bytes: temporary file beside it, fsync, rename, fsync of the directory.
 * The new file has `mode` less the umask; the old file's mode is not kept. A symbolic link is
 * followed: the file that it names is replaced. A stream is written into.
 *
 *   errors  WPK_ENOSPC disk full, WPK_EACCES (read-only too), WPK_ENOENT no such directory,
 *           WPK_EIO; the old content stands and no temporary file is left
 */
wpk_err wpk_fs_write(const char *path, const void *data, size_t size, unsigned mode,
                     struct wpk_diag *diag);

/* Write all bytes to a file descriptor; false: errno says why that failed. */
bool wpk_fs_write_all(int fd, const char *data, size_t size);

/* Sync the directory in which `path` is a name. */
wpk_err wpk_fs_sync_name(const char *path, struct wpk_diag *diag);

/* Rename within a directory, durably. */
wpk_err wpk_fs_rename(const char *from, const char *to, struct wpk_diag *diag);

/* Create a directory and its missing parents with mode 0700, and sync their names as far as that
 * is possible. A directory that exists already is no error. */
wpk_err wpk_fs_make_dirs(const char *path, struct wpk_diag *diag);

/* Remove a file, or a directory with its content. Links are removed, not followed. A path that does
 * not exist is no error. */
wpk_err wpk_fs_remove_tree(const char *path, struct wpk_diag *diag);

/* Make a directory of our own, which the caller removes with its content.
 *   shape   tmp_dir: where; stem: how its name begins; out: "" after a failure
 *   errors  WPK_ERANGE the path is too long; WPK_EINVAL no such directory; WPK_EACCES, WPK_ENOSPC,
 *           WPK_EIO */
wpk_err wpk_fs_make_temporary(const char *tmp_dir, const char *stem, char *out, size_t size,
                              struct wpk_diag *diag);

/* Check that `path` does not exist or is a socket: a library that binds there removes a stale
 * socket, and must not remove another file.
 *
 *   errors  WPK_EINVAL  the path exists and is no socket
 */
wpk_err wpk_fs_check_socket(const char *path, struct wpk_diag *diag);

/* Append the directory of a user's history: `given`, else $XDG_DATA_HOME/woodpecker, else
 * $HOME/.local/share/woodpecker. The three come from main, which alone reads the environment;
 * NULL means not set, and so does "" in the environment. Relative XDG_DATA_HOME is ignored, as its
 * specification asks.
 *
 *   errors  WPK_EINVAL  none of the three is set, or `given` is ""
 */
wpk_err wpk_fs_data_dir(const char *given, const char *xdg_data_home, const char *home,
                        struct wpk_buf *out, struct wpk_diag *diag);

/* Append the directory of the running program; the programs that it starts lie there too. */
wpk_err wpk_fs_program_dir(struct wpk_buf *out, struct wpk_diag *diag);

/* Translate an errno; the only table of this translation. */
wpk_err wpk_fs_err(int system_errno);

/* Advice for an errno, as the end of a message, such as "; check the path". */
const char *wpk_fs_advice(int system_errno);

/* Set `diag` to what errno says of `path`, with the advice, and return it as a code. */
wpk_err wpk_fs_fail(const char *path, struct wpk_diag *diag);

/* Whether a file may be written, asked before the work whose result it keeps. */

/* True of "-" and of streams. */
bool wpk_output_path_is_stream(const char *path);

/* Check that `path` can be created or replaced by wpk_fs_write, and that it is no file of a
 * history. "-" and streams (common/fs.h) always can. The check creates no file.
 *
 *   errors  WPK_EINVAL  "", a directory, a missing directory, or a history's file
 *           WPK_EACCES, WPK_ESYSTEM  the directory does not permit it
 */
wpk_err wpk_output_path_check(const char *path, struct wpk_diag *diag);

/* Check that `path` is not the file `input`, by whatever name. Streams are no file.
 *   errors  WPK_EINVAL */
wpk_err wpk_output_path_differs(const char *path, const char *input, struct wpk_diag *diag);

#endif
