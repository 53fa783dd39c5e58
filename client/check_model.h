/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl check of a model: its inputs, outputs and operators, or all that is not supported. */
#ifndef WPK_CLIENT_CHECK_MODEL_H
#define WPK_CLIENT_CHECK_MODEL_H

#include "client/session.h"
#include "model/plan/model_file.h"

struct wpk_check_model {
    struct wpk_model_fixing fixing;
    bool expand; /* print each node's equations, too */
    bool json;
    const struct wpk_session_options *history; /* of a service that is asked; NULL: of none */
    bool no_peak;                              /* do not measure this machine */
};

/* Print what the model is, its steps, and how long a run is expected to take.
 *   errors  those of wpk_model_file_read, wpk_graph_lower, wpk_session_open and
 *           wpk_estimate_model */
WPK_MUST_CHECK wpk_err wpk_check_model(const struct wpk_command_context *context, const char *path,
                                       const struct wpk_check_model *options,
                                       struct wpk_diag *diag);

#endif
