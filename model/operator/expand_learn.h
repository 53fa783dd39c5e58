/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of ai.onnx.ml: linear models, and what prepares their inputs. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_LEARN_H
#define WPK_MODEL_OPERATOR_EXPAND_LEARN_H

#include "model/operator/expansion.h"

/*   errors  WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_expand_scaler(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_linear(struct wpk_expansion *e);

/* Apply attribute post_transform to the scores [rows, count], which becomes the value `output`.
 *   errors  WPK_EUNSUPPORTED  another function than NONE, SOFTMAX, LOGISTIC */
WPK_MUST_CHECK wpk_err wpk_expand_post_transform(struct wpk_expansion *e, int scores, int output);

/* How many labels the node has; 0: none.   shape  *ints: NULL if they are texts */
int wpk_expand_label_count(const struct wpk_expansion *e, const int64_t **ints);

/* Compute the labels of the largest scores [rows, count]: output 0, if it is asked for.
 *   errors  WPK_EUNSUPPORTED  labels are texts */
WPK_MUST_CHECK wpk_err wpk_expand_labels(struct wpk_expansion *e, int scores, int64_t rows,
                                         int64_t count);

#endif
