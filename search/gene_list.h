/* SPDX-License-Identifier: Apache-2.0 */
/* Building the genes of a variant, and finding choices of a gene. */
#ifndef WPK_SEARCH_GENE_LIST_H
#define WPK_SEARCH_GENE_LIST_H

#include "search/space.h"

/* The first failure sticks: every later call does nothing. */
struct wpk_gene_list {
    struct wpk_variant *variant;
    wpk_err err; /* WPK_ENOMEM, WPK_ENOSPC */
};

/* Add a gene without choices, named by `format`; return its number, or -1 on failure. `ordered`:
 * the choices are sizes, and a mutation may step to a neighbour. */
int wpk_gene_list_add(struct wpk_gene_list *list, bool ordered, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Add a choice, unless the gene is -1, has a choice of this value, or has WPK_CHOICES_MAX. */
void wpk_gene_list_choice(struct wpk_gene_list *list, int gene, int64_t value, const char *text);
/* Add a size as a choice; the text of WPK_GENE_ALL is "all". */
void wpk_gene_list_number(struct wpk_gene_list *list, int gene, int64_t value);
/* Sort the gene's choices by value, ascending. */
void wpk_gene_list_sort(struct wpk_gene_list *list, int gene);
/* Move a choice behind those that are left. */
void wpk_gene_remove(struct wpk_gene *gene, int choice);
void wpk_gene_fini(struct wpk_gene *gene);

/* The index of the choice with this text, or of this value; -1 when there is none. */
int wpk_gene_choice(const struct wpk_gene *gene, const char *text);
int wpk_gene_find(const struct wpk_gene *gene, int64_t value);
/* The index of the last choice with a value <= `value`; 0 when there is none. */
int wpk_gene_floor(const struct wpk_gene *gene, int64_t value);

/* The head of a candidate's text: all words before the genes. */

/* Read the words before the genes: the space's version, the algorithm, the layout. The text is cut
 * into words; *rest is then that of the genes.
 *   owns    *layout is borrowed from the text
 *   errors  WPK_EMISMATCH another version; WPK_EPARSE */
wpk_err wpk_candidate_read_head(const struct wpk_space *space, char **rest,
                                char algorithm[WPK_ALGORITHM_MAX], const char **layout,
                                struct wpk_diag *diag);

#endif
