/* SPDX-License-Identifier: Apache-2.0 */
#include "search/gene_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICES_STEP 8 /* most genes have a few */

int wpk_gene_list_add(struct wpk_gene_list *c, bool ordered, const char *format, ...)
{
    struct wpk_variant *variant = c->variant;
    va_list args;
    if (c->err != WPK_OK || variant->gene_count == WPK_GENES_MAX) {
        c->err = c->err == WPK_OK ? WPK_ENOSPC : c->err;
        return -1;
    }
    struct wpk_gene *grown =
        realloc(variant->genes, (size_t)(variant->gene_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        c->err = WPK_ENOMEM;
        return -1;
    }
    variant->genes = grown;
    struct wpk_gene *gene = &variant->genes[variant->gene_count];
    memset(gene, 0, sizeof(*gene));
    gene->ordered = ordered;
    va_start(args, format);
    vsnprintf(gene->name, sizeof(gene->name), format, args);
    va_end(args);
    return variant->gene_count++;
}

void wpk_gene_list_choice(struct wpk_gene_list *c, int gene, int64_t value, const char *text)
{
    struct wpk_gene *g = gene < 0 ? NULL : &c->variant->genes[gene];
    if (g == NULL || c->err != WPK_OK || g->choice_count == WPK_CHOICES_MAX ||
        wpk_gene_find(g, value) >= 0) {
        return;
    }
    struct wpk_gene_value *grown = g->choice;
    if (g->choice_count % CHOICES_STEP == 0) {
        grown = realloc(g->choice, (size_t)(g->choice_count + CHOICES_STEP) * sizeof(*grown));
    }
    g->choice = grown != NULL ? grown : g->choice;
    char *copy = grown != NULL ? strdup(text) : NULL;
    if (copy == NULL) {
        c->err = WPK_ENOMEM;
        return;
    }
    g->choice[g->choice_count++] = (struct wpk_gene_value){value, copy};
    g->listed_count = g->choice_count;
}

void wpk_gene_list_number(struct wpk_gene_list *c, int gene, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    wpk_gene_list_choice(c, gene, value, value == WPK_GENE_ALL ? "all" : text);
}

void wpk_gene_remove(struct wpk_gene *gene, int choice)
{
    WPK_ASSERT(choice >= 0 && choice < gene->choice_count);
    struct wpk_gene_value removed = gene->choice[choice];
    gene->choice_count--;
    memmove(&gene->choice[choice], &gene->choice[choice + 1],
            (size_t)(gene->choice_count - choice) * sizeof(removed));
    gene->choice[gene->choice_count] = removed;
}

void wpk_gene_fini(struct wpk_gene *gene)
{
    for (int i = 0; i < gene->listed_count; i++) {
        free(gene->choice[i].text);
    }
    free(gene->choice);
    memset(gene, 0, sizeof(*gene));
}

int wpk_gene_choice(const struct wpk_gene *gene, const char *text)
{
    return WPK_FIND(struct wpk_gene_value, text, gene->choice, gene->choice_count, text);
}

int wpk_gene_find(const struct wpk_gene *gene, int64_t value)
{
    for (int i = 0; i < gene->choice_count; i++) {
        if (gene->choice[i].value == value) {
            return i;
        }
    }
    return -1;
}

int wpk_gene_floor(const struct wpk_gene *gene, int64_t value)
{
    int best = 0;
    for (int i = 0; i < gene->choice_count; i++) {
        best = gene->choice[i].value <= value ? i : best;
    }
    return best;
}

static int compare_values(const void *a, const void *b)
{
    int64_t x = ((const struct wpk_gene_value *)a)->value,
            y = ((const struct wpk_gene_value *)b)->value;
    return (x > y) - (x < y);
}

void wpk_gene_list_sort(struct wpk_gene_list *c, int gene)
{
    struct wpk_gene *g = gene >= 0 && c->err == WPK_OK ? &c->variant->genes[gene] : NULL;
    if (g != NULL && g->choice_count > 0) {
        qsort(g->choice, (size_t)g->choice_count, sizeof(*g->choice), compare_values);
    }
}
