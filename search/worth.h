/* SPDX-License-Identifier: Apache-2.0 */
/* The worth of the genes of a search: how much of the scatter of its times the values of each gene
 * explain, and the times of each value. It reads candidates' texts, and knows no space. */
#ifndef WPK_SEARCH_WORTH_H
#define WPK_SEARCH_WORTH_H

#include "search/space.h"

#define WPK_WORTH_GENES_MAX 128
#define WPK_WORTH_VALUES_MAX 64 /* of a gene; times of further ones are left out */

struct wpk_worth_value {
    double best; /* the shortest time of all; first, to sort by it */
    char text[256];
    double *times; /* owned; [count] of trials that are counted; ascending in the end */
    uint32_t count;
    double sum; /* of the logarithms of `times` */
};

struct wpk_worth_gene {
    char name[WPK_GENE_NAME_MAX];
    struct wpk_worth_value values[WPK_WORTH_VALUES_MAX]; /* [value_count], the best first */
    int value_count;
    double share; /* of the scatter that its values explain, 0 to 1 */
};

/* Large. = {0} has no trials. */
struct wpk_worth {
    uint32_t count;      /* trials that are counted */
    double sum, squares; /* of the logarithms of their times */
    double best;         /* the shortest time of all, once finished */
    int gene_count;
    struct wpk_worth_gene genes[WPK_WORTH_GENES_MAX]; /* [gene_count], by their shares */
};

/* Add a trial that was timed whole. One that is not counted only makes the best times better.
 *   unit  time: any, above 0 */
void wpk_worth_add(struct wpk_worth *worth, const char *candidate, double time, bool is_counted);
/* Sort genes and values, and fill in the shares, after the last trial.
 *   source  epsilon squared of an analysis of variance (Kelley 1935), of logarithms, by the scatter
 *           of all trials; 0 below 0 */
void wpk_worth_finish(struct wpk_worth *worth);
void wpk_worth_fini(struct wpk_worth *worth);

#endif
