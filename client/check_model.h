/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl check of a model: its inputs, outputs and operators, or all that is not supported. */
#ifndef WPK_CLIENT_CHECK_MODEL_H
#define WPK_CLIENT_CHECK_MODEL_H

#include "client/model_file.h"

struct wpk_check_model {
    struct wpk_model_fixing fixing;
    bool expand; /* print each node's equations, too */
    bool json;
};

/*   errors  those of wpk_model_file_read and wpk_graph_lower */
WPK_MUST_CHECK wpk_err wpk_check_model(const char *path, const struct wpk_check_model *options,
                                       struct wpk_diag *diag);

#endif
