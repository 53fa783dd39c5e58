/* SPDX-License-Identifier: Apache-2.0 */
/* Which faults of an operator would verification not see? wpk-runner, which verifies, says it. */
#ifndef WPK_CLIENT_UNSEEN_H
#define WPK_CLIENT_UNSEEN_H

#include "common/buf.h"
#include "op/program.h"

/* Append "M: identity; S: first term dropped", nothing where all would be seen. `tmp_dir` is where
 * the question lies meanwhile.
 *   errors  WPK_EUNSUPPORTED the interpreter cannot evaluate the operator; WPK_EINVAL no such
 *           directory; of wpk_child_start and wpk_fs_write */
WPK_MUST_CHECK wpk_err wpk_unseen_find(const char *tmp_dir, const struct wpk_program *op,
                                       struct wpk_buf *out, struct wpk_diag *diag);

#endif
