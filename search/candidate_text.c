/* SPDX-License-Identifier: Apache-2.0 */
/* The hash and the text of a candidate. */
#include "search/space.h"

#include "search/back_end.h"
#include "search/candidate_nest.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/variant.h"

#include <stdio.h>
#include <string.h>

const char *wpk_candidate_back_end(const struct wpk_space *space,
                                   const struct wpk_candidate *candidate)
{
    return wpk_back_end_name(wpk_genes_back_end(&space->variants[candidate->variant], candidate));
}

bool wpk_candidate_equal(const struct wpk_candidate *a, const struct wpk_candidate *b)
{
    return a->variant == b->variant && a->gene_count == b->gene_count &&
           memcmp(a->gene, b->gene, (size_t)a->gene_count) == 0;
}

uint64_t wpk_candidate_hash(const struct wpk_candidate *candidate)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)candidate->variant; /* FNV-1a, 64 bits */
    for (int i = 0; i < candidate->gene_count; i++) {
        hash = (hash ^ candidate->gene[i]) * 0x100000001b3u;
    }
    return hash;
}

uint64_t wpk_space_key(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    struct wpk_nest nest;
    wpk_err err = wpk_candidate_nest(space, candidate, &nest);
    uint64_t hash = err == WPK_OK ? wpk_nest_hash(&nest) : wpk_candidate_hash(candidate);
    uint64_t program =
        space->lazy ? space->variants[candidate->variant].identity : (uint64_t)candidate->variant;
    int back_end = wpk_genes_back_end(&space->variants[candidate->variant], candidate);
    return hash ^ program ^ (uint64_t)back_end << 32;
}

/* The choice that texts leave out, or -1: no panels, tails like all tiles, the first back end. Such
 * a text reads as in a space that has no other: it is the same candidate. */
static int unwritten(const struct wpk_variant *variant, int gene)
{
    const struct wpk_structure *structure = variant->plan;
    const struct wpk_gene *g = &variant->genes[gene];
    return g->optional             ? wpk_gene_find(g, WPK_GENE_ALL)
           : gene == structure->by ? wpk_gene_find(g, structure->back_end)
                                   : -1;
}

wpk_err wpk_candidate_encode(const struct wpk_space *space, const struct wpk_candidate *candidate,
                             char *out, size_t size)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct wpk_variant_algorithm algorithm;
    int used = snprintf(out, size, "%s", wpk_space_version(space));
    for (int i = 0; wpk_variant_algorithm(variant, i, &algorithm) && (size_t)used < size; i++) {
        used +=
            snprintf(out + used, size - (size_t)used, " %s=%s", algorithm.gene, algorithm.value);
    }
    if ((size_t)used < size) {
        used += snprintf(out + used, size - (size_t)used, " layout=%s", variant->layout);
    }
    for (int i = 0; i < variant->gene_count && used >= 0 && (size_t)used < size; i++) {
        const struct wpk_gene *gene = &variant->genes[i];
        if (gene->choice_count == 0 || candidate->gene[i] == unwritten(variant, i)) {
            continue;
        }
        used += snprintf(out + used, size - (size_t)used, " %s=%s", gene->name,
                         gene->choice[candidate->gene[i]].text);
    }
    return used < 0 || (size_t)used >= size ? WPK_ENOSPC : WPK_OK;
}

/*   shape  algorithm: as in wpk_variant */
static wpk_err find_variant(const struct wpk_space *space, const char *algorithm,
                            const char *layout, int *out)
{
    for (int v = 0; v < space->variant_count; v++) {
        if (strcmp(space->variants[v].algorithm, algorithm) == 0 &&
            strcmp(space->variants[v].layout, layout) == 0) {
            *out = v;
            return wpk_space_variant(space, v) != NULL ? WPK_OK : wpk_space_variant_error(space, v);
        }
    }
    return WPK_ENOENT;
}

static wpk_err decode_gene(const struct wpk_variant *variant, char *word, struct wpk_candidate *out,
                           bool *given, struct wpk_diag *diag)
{
    char *equals = strchr(word, '=');
    if (equals == NULL) {
        return wpk_fail(diag, WPK_EPARSE, "expected gene=value, not '%s'", word);
    }
    *equals = '\0';
    for (int i = 0; i < variant->gene_count; i++) {
        if (strcmp(variant->genes[i].name, word) != 0) {
            continue;
        }
        int choice = wpk_gene_choice(&variant->genes[i], equals + 1);
        /* Of a larger shape; this one's operand is copied whole. */
        if (choice < 0 && strcmp(equals + 1, "halves") == 0) {
            choice = wpk_gene_find(&variant->genes[i], 1);
        }
        if (choice < 0) {
            return wpk_fail(diag, WPK_ENOENT, "gene %s has no value %s", word, equals + 1);
        }
        out->gene[i] = (uint8_t)choice;
        given[i] = true;
        return WPK_OK;
    }
    return wpk_fail(diag, WPK_ENOENT, "algorithm %s has no gene %s", variant->algorithm, word);
}

static wpk_err decode_head(const struct wpk_space *space, char **rest, struct wpk_candidate *out,
                           struct wpk_diag *diag)
{
    char algorithm[WPK_ALGORITHM_MAX];
    const char *layout = NULL;
    wpk_err err = wpk_candidate_read_head(space, rest, algorithm, &layout, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = find_variant(space, algorithm, layout, &out->variant);
    if (err != WPK_OK) {
        wpk_diag_set(diag, "no variant with the algorithm %s and the layout=%s", algorithm, layout);
        return err;
    }
    out->gene_count = space->variants[out->variant].gene_count;
    return WPK_OK;
}

wpk_err wpk_candidate_decode(const struct wpk_space *space, const char *text,
                             struct wpk_candidate *out, struct wpk_diag *diag)
{
    char copy[WPK_CANDIDATE_TEXT_MAX];
    bool given[WPK_GENES_MAX] = {false};
    struct wpk_candidate decoded = {0};
    char *rest = copy;
    if (strlen(text) >= sizeof(copy)) {
        return wpk_fail(diag, WPK_ERANGE, "a candidate of more than %d characters",
                        WPK_CANDIDATE_TEXT_MAX - 1);
    }
    snprintf(copy, sizeof(copy), "%s", text);
    wpk_err err = decode_head(space, &rest, &decoded, diag);
    const struct wpk_variant *variant = err == WPK_OK ? &space->variants[decoded.variant] : NULL;
    for (char *word; err == WPK_OK && (word = strtok_r(NULL, " ", &rest)) != NULL;) {
        err = decode_gene(variant, word, &decoded, given, diag);
    }
    for (int i = 0; err == WPK_OK && i < variant->gene_count; i++) {
        int choice = given[i] ? -1 : unwritten(variant, i);
        if (choice >= 0) {
            decoded.gene[i] = (uint8_t)choice;
        } else if (!given[i] && variant->genes[i].choice_count > 0) {
            err = wpk_fail(diag, WPK_EPARSE, "gene %s is missing", variant->genes[i].name);
        }
    }
    if (err == WPK_OK) {
        *out = decoded;
    }
    return err;
}
