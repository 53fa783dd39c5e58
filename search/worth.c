/* SPDX-License-Identifier: Apache-2.0 */
#include "search/worth.h"

#include "common/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The value of "NAME=VALUE", which is added; NULL: it is no gene, or there are too many.
 *   shape  word [size], with name_size bytes before '=' */
static struct wpk_worth_value *find_value(struct wpk_worth *worth, const char *word, size_t size,
                                          size_t name_size)
{
    char name[WPK_GENE_NAME_MAX] = "", text[sizeof(((struct wpk_worth_value *)0)->text)] = "";
    if (name_size >= size || name_size >= sizeof name || size - name_size > sizeof text) {
        return NULL;
    }
    memcpy(name, word, name_size);
    memcpy(text, word + name_size + 1, size - name_size - 1);
    int at = WPK_FIND(struct wpk_worth_gene, name, worth->genes, worth->gene_count, name);
    at = at < 0 ? worth->gene_count : at;
    if (at == WPK_WORTH_GENES_MAX) {
        return NULL;
    }
    struct wpk_worth_gene *gene = &worth->genes[at];
    worth->gene_count += at == worth->gene_count;
    memcpy(gene->name, name, sizeof name);
    at = WPK_FIND(struct wpk_worth_value, text, gene->values, gene->value_count, text);
    if (at < 0 && gene->value_count < WPK_WORTH_VALUES_MAX) {
        at = gene->value_count++;
        memcpy(gene->values[at].text, text, sizeof text);
        gene->values[at].best = HUGE_VAL;
    }
    return at >= 0 ? &gene->values[at] : NULL;
}

void wpk_worth_add(struct wpk_worth *worth, const char *candidate, double time, bool is_counted)
{
    double logarithm = log(time);
    for (const char *at = candidate; *at != '\0'; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        struct wpk_worth_value *value = find_value(worth, at, size, strcspn(at, "= "));
        if (value != NULL) {
            value->best = fmin(value->best, time);
        }
        if (value != NULL && is_counted) {
            if ((value->count & (value->count - 1)) == 0) { /* it has room for a power of two */
                value->times = WPK_DEMAND(
                    realloc(value->times, (2 * (size_t)value->count + 1) * sizeof *value->times));
            }
            value->times[value->count++] = time;
            value->sum += logarithm;
        }
        at += size;
    }
    worth->count += is_counted;
    worth->sum += is_counted ? logarithm : 0;
    worth->squares += is_counted ? logarithm * logarithm : 0;
}

static int compare_genes(const void *a, const void *b)
{
    const struct wpk_worth_gene *x = a, *y = b;
    return (x->share < y->share) - (x->share > y->share);
}

/* The share that the gene's values explain, less what as many values would explain by chance. */
static double share_of(const struct wpk_worth *worth, const struct wpk_worth_gene *gene)
{
    double all = worth->squares - worth->sum * worth->sum / worth->count;
    double sum = 0, count = 0, between = 0, values = 0;
    for (int i = 0; i < gene->value_count; i++) {
        const struct wpk_worth_value *value = &gene->values[i];
        between += value->count > 0 ? value->sum * value->sum / value->count : 0;
        sum += value->sum;
        count += value->count;
        values += value->count > 0;
    }
    between -= count > 0 ? sum * sum / count : 0;
    if (count <= values || all < 1e-9) {
        return 0;
    }
    return fmax(0, (between - (values - 1) * (all - between) / (worth->count - values)) / all);
}

void wpk_worth_finish(struct wpk_worth *worth)
{
    for (int i = 0; i < worth->gene_count; i++) {
        struct wpk_worth_gene *gene = &worth->genes[i];
        gene->share = share_of(worth, gene);
        for (int k = 0; k < gene->value_count; k++) {
            qsort(gene->values[k].times, gene->values[k].count, sizeof(double), wpk_real_compare);
        }
        qsort(gene->values, (size_t)gene->value_count, sizeof gene->values[0], wpk_real_compare);
        worth->best = fmin(i == 0 ? HUGE_VAL : worth->best, gene->values[0].best);
    }
    qsort(worth->genes, (size_t)worth->gene_count, sizeof worth->genes[0], compare_genes);
}

void wpk_worth_fini(struct wpk_worth *worth)
{
    for (int i = 0; i < worth->gene_count; i++) {
        for (int k = 0; k < worth->genes[i].value_count; k++) {
            free(worth->genes[i].values[k].times);
        }
    }
    memset(worth, 0, (size_t)((char *)&worth->genes[worth->gene_count] - (char *)worth));
}
