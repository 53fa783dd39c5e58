/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WPK_CLIENT_IMPORT_T4_H
#define WPK_CLIENT_IMPORT_T4_H

#include "common/err.h"

/* Read a T4 document of an operator of this job file, and make standard input an export with its
 * correct trials as hints. `op` NULL: the job's only operator.
 *   errors  WPK_EINVAL a file that cannot be read, no such operator, a configuration that the
 *           operator does not have: `diag` has file, line and field; WPK_ESYSTEM */
WPK_MUST_CHECK wpk_err wpk_import_t4(const char *path, const char *job_path, const char *op,
                                     struct wpk_diag *diag);

#endif
