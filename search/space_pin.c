/* SPDX-License-Identifier: Apache-2.0 */
/* Pins: a space keeps one value of a gene, or some. */
#include "search/space.h"

#include "search/back_end.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/mask.h"
#include "search/transfer.h"
#include "search/variant.h"

#include <stdio.h>
#include <string.h>

#define DRAWS_MAX 1000 /* each of them is repaired; few may be legal */
#define VALUE_MAX 128  /* characters of a value */

/* True if the word is in a list, joined by '+'. */
static bool is_listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list;; at++) {
        size_t end = strcspn(at, "+");
        if (end == length && strncmp(at, word, length) == 0) {
            return true;
        }
        at += end;
        if (*at == '\0') {
            return false;
        }
    }
}

/* True if the variant has this layout, or this algorithm at the site that the gene names; the gene
 * "algorithm" stands for all sites. */
static bool is_of(const struct wpk_variant *variant, const char *gene, const char *value)
{
    struct wpk_variant_algorithm algorithm;
    bool all = strcmp(gene, "algorithm") == 0, found = false;
    if (strcmp(gene, "layout") == 0) {
        return is_listed(value, variant->layout);
    }
    for (int i = 0; wpk_variant_algorithm(variant, i, &algorithm); i++) {
        if (all || strcmp(algorithm.gene, gene) == 0) {
            found = is_listed(value, algorithm.value);
            if (!found) {
                return false;
            }
        }
    }
    return found;
}

/* True if the gene chooses the variant. */
static bool chooses_variant(const struct wpk_space *space, const char *gene)
{
    struct wpk_variant_algorithm algorithm;
    bool found = strcmp(gene, "algorithm") == 0 || strcmp(gene, "layout") == 0;
    for (int i = 0;
         space->variant_count > 0 && wpk_variant_algorithm(&space->variants[0], i, &algorithm);
         i++) {
        found = found || strcmp(algorithm.gene, gene) == 0;
    }
    return found;
}

static wpk_err pin_variants(struct wpk_space *space, const char *gene, const char *value)
{
    bool keep[WPK_VARIANTS_MAX];
    for (int v = 0; v < space->variant_count; v++) {
        keep[v] = is_of(&space->variants[v], gene, value);
    }
    wpk_variants_keep(space, keep);
    for (int v = 0; v < space->variant_count;
         v++) { /* one at least can be derived, as in every space */
        if (wpk_space_variant(space, v) != NULL) {
            return WPK_OK;
        }
        if (wpk_space_variant_error(space, v) == WPK_ENOMEM) {
            return WPK_ENOMEM;
        }
    }
    return WPK_ENOENT;
}

/* The neutral candidate is illegal, too, where a gene is pinned to a place that it lacks. */
static bool has_candidate(const struct wpk_space *space, int v)
{
    struct wpk_candidate candidate;
    struct wpk_rng rng;
    bool found = wpk_mask_begin(space, v, &candidate) == WPK_OK;
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < DRAWS_MAX && !found; i++) {
        found = wpk_space_draw_of(space, &rng, v, &candidate) == WPK_OK;
    }
    return found;
}

/* Keep the values of the list, if the variant has one of them. */
static bool pin_variant(struct wpk_variant *variant, const char *name, const char *list)
{
    for (int i = 0; i < variant->gene_count; i++) {
        struct wpk_gene *gene = &variant->genes[i];
        bool any = false;
        for (int k = 0; k < gene->choice_count && strcmp(gene->name, name) == 0; k++) {
            any = any || is_listed(list, gene->choice[k].text);
        }
        for (int k = gene->choice_count - 1; k >= 0 && any; k--) {
            if (!is_listed(list, gene->choice[k].text)) {
                wpk_gene_remove(gene, k);
            }
        }
        if (any) {
            return true;
        }
    }
    return false;
}

/*   shape  empty [variant_count] is set where a variant has no legal candidate left */
static wpk_err pin_gene(struct wpk_space *space, const char *name, const char *value, bool *empty)
{
    bool found = false, legal = false;
    for (int v = 0; v < space->variant_count; v++) {
        struct wpk_variant *variant = &space->variants[v];
        if (wpk_space_variant(space, v) == NULL) {
            if (wpk_space_variant_error(space, v) == WPK_ENOMEM) {
                return WPK_ENOMEM;
            }
            continue;
        }
        if (!pin_variant(variant, name, value)) {
            continue;
        }
        empty[v] = !has_candidate(space, v);
        legal = legal || !empty[v];
        found = true;
    }
    return legal ? WPK_OK : found ? WPK_EUNSUPPORTED : WPK_ENOENT;
}

/* A candidate that others have to pack like. */
struct like {
    const char *text;
    struct wpk_candidate near; /* the same in this space, as far as that goes */
    bool differs;              /* in a gene that copies are made from */
};

/* Keep the candidate's choice alone, unless that was done before. */
static void keep_choice(struct wpk_variant *variant, int number, struct like *like)
{
    char word[2 * VALUE_MAX];
    struct wpk_gene *gene = number < 0 ? NULL : &variant->genes[number];
    if (gene == NULL) {
        return;
    }
    for (int k = gene->choice_count == 1 ? 0 : gene->choice_count; k > 0; k--) {
        if (k - 1 != like->near.gene[number]) {
            wpk_gene_remove(gene, k - 1);
        }
    }
    int size = snprintf(word, sizeof word, " %s=", gene->name);
    const char *said = strstr(like->text, word), *kept = gene->choice[0].text;
    like->differs = like->differs || (said != NULL && (strcspn(said + size, " ") != strlen(kept) ||
                                                       !wpk_begins(said + size, kept)));
}

/* Keep what search/candidate_copy.c makes the copy of an operand from. Rows of it lie in the order
 * of tiles, and its terms in that of the sum's loops, if it has several of these. */
static void keep_copy(struct wpk_variant *variant, int g, int slot, struct like *like)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_node *load = &variant->program.nodes[slots->pack_load[slot]];
    int rank = variant->program.stages[member->stage].rank, rows = 0, terms = 0;
    for (int dim = 0; dim < variant->program.tensors[load->tensor].rank; dim++) {
        int axis = wpk_index_axis(&variant->program, load->index[dim]);
        if (axis >= rank) {
            terms++;
        } else if (axis >= 0 && member->root_axis[axis] >= 0) {
            keep_choice(variant, slots->tile[member->root_axis[axis]], like);
            rows++;
        }
    }
    keep_choice(variant, slots->vec, like);
    keep_choice(variant, slots->lanes, like);
    keep_choice(variant, slots->dot, like);
    keep_choice(variant, slots->instruction, like);
    keep_choice(variant, rows > 1 ? slots->inner : -1, like);
    keep_choice(variant, terms > 1 ? slots->red : -1, like);
    keep_choice(variant, terms > 1 ? slots->split : -1, like);
    keep_choice(variant, terms > 1 ? slots->sum : -1, like);
    keep_choice(variant, terms > 1 ? slots->panel : -1, like);
}

wpk_err wpk_space_pin_packing(struct wpk_space *space, const char *text, struct wpk_diag *diag)
{
    struct like like = {.text = text};
    bool keep[WPK_VARIANTS_MAX] = {false};
    wpk_err err = wpk_space_adapt(space, text, &like.near, diag);
    if (err != WPK_OK) {
        return err;
    }
    int v = like.near.variant;
    struct wpk_variant *variant = &space->variants[v];
    const struct wpk_structure *s = variant->plan;
    for (int g = 0; g < s->plan.group_count; g++) {
        const struct wpk_slots *slots = &s->slots[g];
        for (int i = 0; i < slots->pack_count; i++) {
            int tensor = variant->program.nodes[slots->pack_load[i]].tensor;
            if (variant->program.tensors[tensor].role != WPK_ROLE_CONSTANT) {
                continue;
            }
            if (slots->pack[i] >= 0 &&
                variant->genes[slots->pack[i]].choice[like.near.gene[slots->pack[i]]].value != 0) {
                keep_copy(variant, g, i, &like);
            }
            keep_choice(variant, slots->pack[i], &like);
            keep[v] = true;
        }
    }
    if (keep[v]) {
        wpk_variants_keep(space, keep);
        wpk_space_measure(space);
    }
    return !keep[v] || (!like.differs && has_candidate(space, 0)) ? WPK_OK : WPK_EUNSUPPORTED;
}

/* The back end of candidates without a gene for it, as a bit. */
static unsigned first_back_end(const struct wpk_space *space)
{
    return 1U << wpk_back_end_first(space->options.target.rules->kind);
}

/* Variants that wait are derived with the back ends that are left.
 *   shape  empty: as of pin_gene() */
static wpk_err pin_back_ends(struct wpk_space *space, const char *list, bool *empty)
{
    bool legal = false;
    unsigned *has = &space->options.back_ends;
    unsigned kept = wpk_back_ends_read(list) & (*has == 0 ? first_back_end(space) : *has);
    if (kept == 0 || !wpk_back_ends_known(list)) {
        return WPK_ENOENT;
    }
    *has = kept;
    for (int v = 0; v < space->variant_count; v++) {
        struct wpk_variant *variant = &space->variants[v];
        const struct wpk_structure *structure = variant->plan;
        int slot = variant->state != WPK_VARIANT_DERIVED ? -1 : structure->by;
        struct wpk_gene *gene = slot < 0 ? NULL : &variant->genes[slot];
        for (int i = gene == NULL ? 0 : gene->choice_count; i > 0; i--) {
            if ((kept & 1U << gene->choice[i - 1].value) == 0) {
                wpk_gene_remove(gene, i - 1);
            }
        }
        empty[v] = gene != NULL && !has_candidate(space, v);
        legal = legal || (variant->state != WPK_VARIANT_NONE && !empty[v]);
    }
    return legal ? WPK_OK : WPK_EUNSUPPORTED;
}

/* True if the word is in a list whose words are separated by ", ". */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(list, word); at != NULL; at = strstr(at + 1, word)) {
        bool begins = at == list || (at >= list + 2 && at[-1] == ' ' && at[-2] == ',');
        if (begins && (wpk_begins(at + length, ", ") || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Add a word to a list in `out`, unless it is there or there is no room. */
static void add_word(const char *word, char *out, size_t size)
{
    size_t used = strlen(out);
    if (has_word(out, word)) {
        return;
    }
    snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", word);
}

/* List the choices of gene `name`, separated by ", "; "" if there is no such gene. */
static void list_choices(const struct wpk_space *space, const char *name, char *out, size_t size)
{
    out[0] = '\0';
    unsigned back_ends = space->options.back_ends;
    back_ends = back_ends == 0 ? first_back_end(space) : back_ends;
    for (int i = 0; strcmp(name, WPK_BACK_END_GENE) == 0 && wpk_back_end_name(i) != NULL; i++) {
        if ((back_ends & 1U << i) != 0) {
            add_word(wpk_back_end_name(i), out, size);
        }
    }
    for (int v = 0; v < space->variant_count; v++) {
        const struct wpk_variant *variant = &space->variants[v];
        struct wpk_variant_algorithm algorithm;
        for (int i = 0; wpk_variant_algorithm(variant, i, &algorithm); i++) {
            if (strcmp(name, "algorithm") == 0 || strcmp(name, algorithm.gene) == 0) {
                add_word(algorithm.value, out, size);
            }
        }
        if (strcmp(name, "layout") == 0) {
            add_word(variant->layout, out, size);
        }
        for (int i = 0; i < variant->gene_count; i++) {
            const struct wpk_gene *gene = &variant->genes[i];
            for (int k = 0; k < gene->choice_count && strcmp(gene->name, name) == 0; k++) {
                add_word(gene->choice[k].text, out, size);
            }
        }
    }
}

wpk_err wpk_space_pin(struct wpk_space *space, const char *name, const char *value,
                      struct wpk_diag *diag)
{
    char choices[WPK_DIAG_TEXT_MAX / 2];
    bool empty[WPK_VARIANTS_MAX] = {false};
    if (strcmp(name, WPK_PACKING_GENE) == 0) {
        return strcmp(value, WPK_PACKING_SHARED) == 0
                   ? WPK_OK
                   : wpk_fail(diag, WPK_ENOENT, "%s cannot be %s here, but: " WPK_PACKING_SHARED,
                              name, value);
    }
    list_choices(space, name, choices, sizeof(choices));
    for (const char *at = value; strcmp(name, WPK_BACK_END_GENE) != 0 && choices[0] != '\0';) {
        char word[VALUE_MAX];
        size_t end = strcspn(at, "+");
        snprintf(word, sizeof(word), "%.*s", (int)end, at);
        if (!has_word(choices, word)) {
            return wpk_fail(diag, WPK_ENOENT, "%s cannot be %s here, but: %s", name, word, choices);
        }
        if (at[end] == '\0') {
            break;
        }
        at += end + 1;
    }
    wpk_err err = strcmp(name, WPK_BACK_END_GENE) == 0 ? pin_back_ends(space, value, empty)
                  : chooses_variant(space, name)       ? pin_variants(space, name, value)
                                                       : pin_gene(space, name, value, empty);
    if (err == WPK_OK) {
        for (int v = 0; v < space->variant_count; v++) { /* `value` may be a text of one of them */
            if (empty[v]) {
                wpk_variant_drop(&space->variants[v]);
            }
        }
        wpk_space_measure(space);
    } else if (err == WPK_EUNSUPPORTED) {
        wpk_diag_set(diag, "no legal candidate has %s=%s beside the other pins", name, value);
    } else if (choices[0] == '\0') {
        wpk_diag_set(diag, "no variant of this operator has a gene %s", name);
    } else {
        wpk_diag_set(diag, "%s cannot be %s here, but: %s", name, value, choices);
    }
    return err;
}
