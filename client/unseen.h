/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the faults of an operator that verification would not see. wpk-runner finds them, because
 * it also verifies. */
#ifndef WPK_CLIENT_UNSEEN_H
#define WPK_CLIENT_UNSEEN_H

#include "common/buf.h"
#include "ir/program.h"

/* Append a text such as "M: identity; S: first term dropped"; append nothing if every fault would
 * be seen. wpk-runner reads the operator from a file in `tmp_dir`, which is removed afterwards.
 *   errors  WPK_EUNSUPPORTED the interpreter cannot evaluate the operator; WPK_EINVAL no such
 *           directory; those of wpk_child_start and wpk_fs_write */
WPK_MUST_CHECK wpk_err wpk_unseen_find(const char *tmp_dir, const struct wpk_program *op,
                                       struct wpk_buf *out, struct wpk_diag *diag);

#endif
