/* SPDX-License-Identifier: Apache-2.0 */
/* Genes of a variant while they are being listed, and looking choices up. */
#ifndef WPK_SEARCH_GENE_LIST_H
#define WPK_SEARCH_GENE_LIST_H

#include "search/space.h"

/* The first failure sticks: every later call does nothing. */
struct wpk_gene_list {
    struct wpk_variant *variant;
    wpk_err err; /* WPK_ENOMEM, WPK_ENOSPC */
};

/* Returns the number of a new gene without choices, -1 on failure. Ordered: its choices are sizes,
 * and a mutation may step to a neighbour. */
int wpk_gene_list_add(struct wpk_gene_list *list, bool ordered, const char *format, ...)
    WPK_PRINTF(3, 4);
/* A choice, unless there is one of this value; nothing where the gene is -1. */
void wpk_gene_list_choice(struct wpk_gene_list *list, int gene, int64_t value, const char *text);
/* A size: WPK_GENE_ALL reads "all". */
void wpk_gene_list_number(struct wpk_gene_list *list, int gene, int64_t value);
/* Ascending. */
void wpk_gene_list_sort(struct wpk_gene_list *list, int gene);
void wpk_gene_fini(struct wpk_gene *gene);

/* Index of the choice with this text, or value; -1: there is none. */
int wpk_gene_choice(const struct wpk_gene *gene, const char *text);
int wpk_gene_find(const struct wpk_gene *gene, int64_t value);
/* The choice that is the largest number <= value, or the first one. */
int wpk_gene_floor(const struct wpk_gene *gene, int64_t value);

#endif
