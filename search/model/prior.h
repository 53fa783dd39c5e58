/* SPDX-License-Identifier: Apache-2.0 */
/* Knowledge from trials of some operators, for searches of others: trees for the cost model, and
 * the policy of the strategy rl. teach.h makes one. The text of a prior is words, as in snapshot.h:
 * first versions of the format and of the features, last a line end. */
#ifndef WPK_SEARCH_MODEL_PRIOR_H
#define WPK_SEARCH_MODEL_PRIOR_H

#include "common/err.h"
#include "search/model/rl_network.h"
#include "search/model/trees.h"

#define WPK_PRIOR_VERSION "wpk-prior-1"
#define WPK_PRIOR_SIZE_MAX ((size_t)256 << 10) /* bytes of the text */

struct wpk_prior {
    struct wpk_trees trees;
    struct wpk_network policy; /* its speeds are 0 */
};

/* Append the text.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_prior_encode(const struct wpk_prior *prior, struct wpk_buf *out);
/*   owns    caller calls free
 *   errors  WPK_EMISMATCH of another version; WPK_EPARSE no prior, or a damaged one; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_prior_decode(const char *text, struct wpk_prior **out,
                                        struct wpk_diag *diag);

#endif
