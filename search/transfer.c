/* SPDX-License-Identifier: Apache-2.0 */
#include "search/transfer.h"

#include "common/format.h"
#include "search/gene_list.h"
#include "search/genes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSTRUCTED 64 /* among which a variant's first one is looked for */

wpk_err wpk_space_fits(const struct wpk_space *space, const char *candidate,
                       struct wpk_candidate *out, struct wpk_diag *diag)
{
    struct wpk_candidate read;
    if (wpk_candidate_decode(space, candidate, &read, diag) != WPK_OK) {
        return WPK_EMISMATCH;
    }
    const char *why = NULL;
    if (!space->options.target.rules->legal(space, &read, &why)) {
        return wpk_fail(diag, WPK_EMISMATCH, "%s", why);
    }
    if (out != NULL) {
        *out = read;
    }
    return WPK_OK;
}

/* ---- as near as it can be */

/* The variant with this algorithm; of several the one with this layout, else the first.
 *   shape   algorithm: as in wpk_variant; -1: there is none */
static int find_variant(const struct wpk_space *space, const char *algorithm, const char *layout)
{
    int found = -1;
    for (int v = 0; v < space->variant_count; v++) {
        const struct wpk_variant *variant = &space->variants[v];
        bool same = strcmp(variant->layout, layout) == 0;
        if (strcmp(variant->algorithm, algorithm) == 0 && (same || found < 0) &&
            wpk_space_variant(space, v) != NULL) {
            found = v;
        }
        if (same && found == v) {
            return v;
        }
    }
    return found;
}

/* Read the words before the genes.
 *   shape   returns the variant; -1: there is none */
static int read_head(const struct wpk_space *space, char **rest, struct wpk_diag *diag)
{
    char algorithm[WPK_ALGORITHM_MAX];
    const char *layout = NULL;
    if (wpk_candidate_read_head(space, rest, algorithm, &layout, diag) != WPK_OK) {
        return -1;
    }
    int variant = find_variant(space, algorithm, layout);
    if (variant < 0) {
        wpk_diag_set(diag, "no variant with the algorithm %s", algorithm);
    }
    return variant;
}

/* Fill `out` with the variant's first constructed candidate; if there is none, with its first
 * choices. */
static wpk_err begin(const struct wpk_space *space, int variant, struct wpk_candidate *out)
{
    struct wpk_candidate *constructed = calloc(CONSTRUCTED, sizeof(*constructed));
    const struct wpk_variant *of = &space->variants[variant];
    int count = 0;
    wpk_err err = constructed == NULL
                      ? WPK_ENOMEM
                      : wpk_space_construct(space, constructed, CONSTRUCTED, &count);
    *out = (struct wpk_candidate){.variant = variant, .gene_count = of->gene_count};
    for (int i = 0; err == WPK_OK && i < count; i++) {
        if (constructed[i].variant == variant) {
            *out = constructed[i];
            break;
        }
    }
    free(constructed);
    return err;
}

/* The choice whose size is nearest; -1: the text is no size, or there is no choice. */
static int nearest_choice(const struct wpk_gene *gene, const char *text)
{
    char *end = NULL;
    double size = strcmp(text, "all") == 0 ? HUGE_VAL : (double)strtoll(text, &end, 10);
    int best = -1;
    double least = HUGE_VAL;
    if (!gene->ordered || !(size > 0) || (end != NULL && *end != '\0')) {
        return -1;
    }
    size = isinf(size) ? size : wpk_real_log(size);
    for (int i = 0; i < gene->choice_count; i++) {
        if (gene->choice[i].value <= 0) {
            continue;
        }
        /* A size as a number; WPK_GENE_ALL is larger than any. */
        double other = gene->choice[i].value == WPK_GENE_ALL
                           ? HUGE_VAL
                           : wpk_real_log((double)gene->choice[i].value);
        double distance = isinf(size) || isinf(other) ? (size == other ? 0 : 1e3 - fmin(other, 1e2))
                                                      : fabs(size - other);
        if (distance < least) {
            least = distance;
            best = i;
        }
    }
    return best;
}

/* Take over what the text says of a gene; return its number, -1: there is no such gene here. */
static int take_gene(const struct wpk_variant *variant, const char *name, const char *value,
                     struct wpk_candidate *out)
{
    for (int i = 0; i < variant->gene_count; i++) {
        const struct wpk_gene *gene = &variant->genes[i];
        if (strcmp(gene->name, name) == 0) {
            int choice = wpk_gene_choice(gene, value);
            choice = choice < 0 ? nearest_choice(gene, value) : choice;
            out->gene[i] = choice < 0 ? out->gene[i] : (uint8_t)choice;
            return i;
        }
    }
    return -1;
}

/* A gene that the text leaves out is all, or the first back end. */
static void take_unwritten(const struct wpk_variant *variant, const bool *given,
                           struct wpk_candidate *out)
{
    const struct wpk_structure *structure = variant->plan;
    for (int i = 0; i < variant->gene_count; i++) {
        const struct wpk_gene *gene = &variant->genes[i];
        int choice = given[i]             ? -1
                     : gene->optional     ? wpk_gene_find(gene, WPK_GENE_ALL)
                     : i == structure->by ? wpk_gene_find(gene, structure->back_end)
                                          : -1;
        out->gene[i] = choice < 0 ? out->gene[i] : (uint8_t)choice;
    }
}

wpk_err wpk_space_adapt(const struct wpk_space *space, const char *candidate,
                        struct wpk_candidate *out, struct wpk_diag *diag)
{
    char copy[WPK_CANDIDATE_TEXT_MAX];
    bool given[WPK_GENES_MAX] = {false};
    struct wpk_candidate near;
    struct wpk_rng rng;
    char *rest = copy;
    if (snprintf(copy, sizeof(copy), "%s", candidate) >= (int)sizeof(copy)) {
        return WPK_EMISMATCH;
    }
    int v = read_head(space, &rest, diag);
    wpk_err err = v < 0 ? WPK_EMISMATCH : begin(space, v, &near);
    if (err != WPK_OK) {
        return err;
    }
    for (char *word; (word = strtok_r(NULL, " ", &rest)) != NULL;) {
        char *equals = strchr(word, '=');
        if (equals != NULL) {
            *equals = '\0';
            int gene = take_gene(&space->variants[v], word, equals + 1, &near);
            if (gene >= 0) {
                given[gene] = true;
            }
        }
    }
    take_unwritten(&space->variants[v], given, &near);
    wpk_rng_seed(&rng, 1);
    err = wpk_space_repair(space, &rng, &near);
    if (err == WPK_OK) {
        *out = near;
    }
    return err;
}
