/* SPDX-License-Identifier: Apache-2.0 */
/* Ensembles of decision trees. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_TREE_H
#define WPK_MODEL_OPERATOR_EXPAND_TREE_H

#include "model/operator/expansion.h"

/* TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier.
 *   errors  WPK_EUNSUPPORTED, WPK_EPARSE with a reason; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_expand_trees(struct wpk_expansion *e);

#endif
