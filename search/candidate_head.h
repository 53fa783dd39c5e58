/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a candidate's text: all words before the genes. */
#ifndef WPK_SEARCH_CANDIDATE_HEAD_H
#define WPK_SEARCH_CANDIDATE_HEAD_H

#include "search/space.h"

/* Read the words before the genes: the space's version, the algorithm, the layout. The text is cut
 * into words; *rest is then that of the genes.
 *   owns    *layout is borrowed from the text
 *   errors  WPK_EMISMATCH another version; WPK_EPARSE */
WPK_MUST_CHECK wpk_err wpk_candidate_read_head(const struct wpk_space *space, char **rest,
                                               char algorithm[WPK_ALGORITHM_MAX],
                                               const char **layout, struct wpk_diag *diag);

#endif
