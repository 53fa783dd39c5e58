/* SPDX-License-Identifier: Apache-2.0 */
/* The list of variants: orders of axes, and for each the choices of the sites. Variants are derived
 * elsewhere, and no list depends on the operator. */
#include "search/variant.h"

#include "ir/derive/extract.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/prune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a derived variant, for each of its tensors and for each stage of the program as it is given:
 * test_memory_is_bounded measures them. */
#define TENSOR_BYTES ((size_t)6 << 10)
#define STAGE_BYTES ((size_t)8 << 10)
#define BOUND_TIMES 2.0 /* combinations that are expected to take longer than that are not listed */

/* ---- orders of axes */

/* True if dimension p of every input of the output's rank is indexed by one axis alone, not through
 * a window: it can then be the contiguous one. */
static bool may_be_last(const struct wpk_program *program, int rank, int p)
{
    bool used = false;
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        const struct wpk_tensor *tensor = &program->tensors[load.node->tensor];
        if (tensor->role != WPK_ROLE_INPUT || tensor->rank != rank) {
            continue;
        }
        if (wpk_index_axis(program, load.node->index[p]) < 0) {
            return false;
        }
        used = true;
    }
    return used;
}

static bool has_window(const struct wpk_program *program)
{
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        for (int d = 0; d < program->tensors[load.node->tensor].rank; d++) {
            if (program->tensors[load.node->tensor].role == WPK_ROLE_INPUT &&
                wpk_index_axis(program, load.node->index[d]) < 0) {
                return true;
            }
        }
    }
    return false;
}

/* ---- combinations of choices */

struct combination {
    uint8_t choice[WPK_SITES_MAX];
    double operations;
    int tensors; /* that the rewritings add */
};

/* Limits on the combinations of a list. */
struct need {
    double times; /* of the class of accuracy */
    int tensors;  /* that may be added, at most */
};

static int compare(const void *a, const void *b)
{
    const struct combination *x = a, *y = b;
    if (x->operations != y->operations) {
        return x->operations < y->operations ? -1 : 1;
    }
    return memcmp(x->choice, y->choice, sizeof(x->choice));
}

/* How many tensors rewritings may add: what a reduction reads may get a border, too. */
static int count_room(const struct wpk_program *program)
{
    int room = WPK_TENSORS_MAX - program->tensor_count;
    for (int s = 0; s < program->stage_count; s++) {
        room -= program->stages[s].reduction != WPK_REDUCE_NONE;
    }
    return room;
}

/* Add the choices of one more site, and keep the `max` best: the best sums of several lists begin
 * with the best sums of the first ones. */
static int extend(const struct wpk_site *site, int number, const struct need *need,
                  struct combination *list, int count, int max)
{
    struct combination all[WPK_VARIANTS_MAX * WPK_SITE_CHOICES_MAX];
    int total = 0;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < site->choice_count; k++) {
            const struct wpk_site_choice *choice = &site->choice[k];
            if (wpk_accuracy_admits((struct wpk_accuracy){need->times}, choice->error_least) &&
                list[i].tensors + choice->tensors <= need->tensors) {
                all[total] = list[i];
                all[total].choice[number] = (uint8_t)k;
                all[total].tensors += site->choice[k].tensors;
                all[total++].operations += site->work * site->choice[k].operations;
            }
        }
    }
    if (number > 0) {
        qsort(all, (size_t)total, sizeof(all[0]), compare);
    }
    total = total < max ? total : max;
    memcpy(list, all, (size_t)total * sizeof(all[0]));
    return total;
}

/* The combinations of a class, of several sites the best ones.   shape  list [max] */
static int combine_class(const struct wpk_sites *sites, const struct need *need, int max,
                         struct combination *list)
{
    int count = 1;
    list[0] = (struct combination){.operations = 0};
    for (int s = 0; s < sites->count; s++) {
        count = extend(&sites->site[s], s, need, list, count, max);
    }
    return count;
}

static bool has_combination(const struct combination *list, int count,
                            const struct combination *one)
{
    for (int i = 0; i < count; i++) {
        if (memcmp(list[i].choice, one->choice, sizeof(one->choice)) == 0) {
            return true;
        }
    }
    return false;
}

/* The choices of a single site as they are listed. With several sites, direct evaluation first,
 * then the best combinations of each accuracy class, with equal shares of the list: the best of all
 * would leave the stricter classes none.   shape  list [max] */
static int combine(const struct wpk_space *space, int max, struct combination *list)
{
    const struct wpk_sites *sites = space->sites;
#define TIMES(suffix, text, times) times,
    static const double classes[] = {WPK_ACCURACY_LIST(TIMES) INFINITY};
#undef TIMES
    const int class_count = (int)(sizeof(classes) / sizeof(classes[0]));
    struct combination direct = {.operations = 0};
    int kept = 1;
    struct need need = {.times = INFINITY, .tensors = WPK_TENSORS_MAX};
    if (sites->count < 2) {
        return combine_class(sites, &need, max, list);
    }
    need.tensors = count_room(&space->program);
    for (int s = 0; s < sites->count; s++) {
        direct.operations += sites->site[s].work;
    }
    list[0] = direct;
    for (int c = 0; c < class_count; c++) {
        struct combination best[WPK_VARIANTS_MAX];
        need.times = classes[c];
        int count = combine_class(sites, &need, max, best);
        int end = 1 + (max - 1) * (c + 1) / class_count;
        for (int i = 0; i < count && kept < end; i++) {
            if (best[i].operations <= BOUND_TIMES * best[0].operations &&
                !has_combination(list, kept, &best[i])) {
                list[kept++] = best[i];
            }
        }
    }
    qsort(&list[1], (size_t)kept - 1, sizeof(list[0]), compare);
    return kept;
}

/* ---- variants */

static void name_algorithm(const struct wpk_sites *sites, struct wpk_variant *out)
{
    size_t used = 0;
    for (int i = 0; i < sites->count; i++) {
        const struct wpk_site *site = &sites->site[i];
        used += (size_t)snprintf(out->algorithm + used, sizeof(out->algorithm) - used, "%s%s%s%s",
                                 i == 0 ? "" : " ", sites->count > 1 ? site->name : "",
                                 sites->count > 1 ? "=" : "", site->choice[out->choice[i]].text);
        WPK_ASSERT(used < sizeof(out->algorithm));
    }
    if (sites->count == 0) {
        snprintf(out->algorithm, sizeof(out->algorithm), "direct");
    }
}

static void list_variant(struct wpk_space *space, const struct combination *combination, int last)
{
    if (space->variant_count == WPK_VARIANTS_MAX) {
        return;
    }
    struct wpk_variant *out = &space->variants[space->variant_count++];
    bool staged = strcmp(space->options.layouts, "any") != 0;
    out->last = last;
    out->staged = staged;
    out->operations = combination->operations;
    memcpy(out->choice, combination->choice, sizeof(out->choice));
    for (int i = 0; i < space->sites->count; i++) {
        const struct wpk_site_choice *choice = &space->sites->site[i].choice[out->choice[i]];
        out->error_sums[i] = choice->error_sums;
        out->error_rest[i] = choice->error_rest;
    }
    name_algorithm(space->sites, out);
    const char *boundary = staged ? "staged" : "halo";
    if (last >= 0) {
        snprintf(out->layout, sizeof(out->layout), "%s-last%d", boundary, last);
    } else {
        snprintf(out->layout, sizeof(out->layout), "%s", staged ? "staged" : "asis");
    }
}

/* ---- what there is no space of */

/* An input or constant that the output does not depend on, or -1: kernels would not take it. */
static int find_idle(const struct wpk_program *program)
{
    bool needed[WPK_TENSORS_MAX] = {false};
    for (int t = 0; t < program->tensor_count; t++) {
        needed[t] = program->tensors[t].role == WPK_ROLE_OUTPUT;
    }
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        for (struct wpk_loads load = wpk_loads_of(program, stage);
             wpk_loads_next(&load) && needed[stage->output];) {
            needed[load.node->tensor] = true;
        }
    }
    for (int t = 0; t < program->tensor_count; t++) {
        enum wpk_role role = program->tensors[t].role;
        if (!needed[t] && (role == WPK_ROLE_INPUT || role == WPK_ROLE_CONSTANT)) {
            return t;
        }
    }
    return -1;
}

wpk_err wpk_variants_check(const struct wpk_program *program, struct wpk_diag *diag)
{
    if (!wpk_program_loads_fit(program)) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "a stage of this program reads tensors in more than %d places",
                        WPK_LOADS_MAX);
    }
    int idle = find_idle(program);
    if (idle >= 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "the output does not depend on %s",
                        program->tensors[idle].name);
    }
    return WPK_OK;
}

/* True if the combination is worth a trial with the axes as they are written, where other orders
 * have been listed: each site has direct evaluation, which then needs no copies, or an algorithm
 * that works with axes in any order as well. */
static bool keeps_order(const struct wpk_sites *sites, const struct combination *combination)
{
    bool all = true;
    for (int i = 0; i < sites->count; i++) {
        int choice = combination->choice[i];
        all = all && (choice == 0 || sites->site[i].choice[choice].written);
    }
    return all;
}

static int count_kept(const struct wpk_sites *sites, const struct combination *list, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        kept += keeps_order(sites, &list[i]);
    }
    return kept;
}

/* As many variants as wpkd has memory for. */
static int count_bearable(const struct wpk_space *space)
{
    int room = count_room(&space->program), added = 0;
    for (int i = 0; i < space->sites->count; i++) {
        const struct wpk_site *site = &space->sites->site[i];
        int most = 0;
        for (int k = 0; k < site->choice_count; k++) {
            most = site->choice[k].tensors > most ? site->choice[k].tensors : most;
        }
        added += most;
    }
    size_t tensors = (size_t)(WPK_TENSORS_MAX - room + (added < room ? added : room));
    size_t bytes = tensors * TENSOR_BYTES + (size_t)space->program.stage_count * STAGE_BYTES;
    size_t count = WPK_SPACE_BYTES_MAX / bytes;
    return count < WPK_VARIANTS_MAX ? (int)count : WPK_VARIANTS_MAX;
}

wpk_err wpk_variants_list(struct wpk_space *space, bool written)
{
    const struct wpk_program *program = &space->program;
    const struct wpk_tensor *output = &program->tensors[wpk_program_output(program)];
    int order[WPK_RANK_MAX + 1], count = 0;
    bool window = has_window(program);
    bool reorder = !written && (window || wpk_contraction_find(program) >= 0);
    if (space->variants == NULL) {
        space->variants = calloc(WPK_VARIANTS_MAX, sizeof(*space->variants));
    }
    if (space->variants == NULL) {
        return WPK_ENOMEM;
    }
    /* contiguous channels first: what a window slides over is then a whole vector */
    for (int p = 0; p + 1 < output->rank && reorder; p++) {
        if (output->extent[p] > 1 && may_be_last(program, output->rank, p)) {
            order[count++] = p;
        }
    }
    /* as written: where no other order applies, or where another one costs copies */
    bool last = count == 0 || !window;
    if (last) {
        order[count++] = -1;
    }
    struct combination list[WPK_VARIANTS_MAX];
    int bearable = count_bearable(space);
    int combinations = combine(space, bearable / count, list);
    while (!last && combinations > 1 &&
           count * combinations + count_kept(space->sites, list, combinations) > bearable) {
        combinations--;
    }
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < combinations; k++) {
            list_variant(space, &list[k], order[i]);
        }
    }
    for (int k = 0; k < combinations && !last; k++) {
        if (keeps_order(space->sites, &list[k])) {
            list_variant(space, &list[k], -1);
        }
    }
    return WPK_OK;
}

/* Each addition rounds the sum so far. The mean square of the error of a sum of n random terms is
 * that of all partial sums together: 1 + 2 + .. + n = n^2 / 2 times that of a term. Of a sum in
 * blocks of b, n/b blocks have b^2 / 2 each and their total has b (n/b)^2 / 2: b/n + 1/b of the
 * whole, which is least where b is the root of n.
 *
 *   source  Higham, Accuracy and Stability of Numerical Algorithms, 4.2, for random terms */

static double share_of(const struct wpk_variant *variant, const struct wpk_group *group,
                       int64_t block)
{
    const struct wpk_stage *stage = wpk_contraction_of(variant, group);
    if (stage == NULL || block == WPK_GENE_ALL) {
        return 1;
    }
    int axis = wpk_largest_reduction(stage, group->member[group->contraction].literal);
    double blocks = (double)stage->axes[axis].extent / (double)block;
    return 1 / blocks + blocks / wpk_stage_terms(stage);
}

double wpk_variant_error(const struct wpk_variant *variant, int g, int64_t block)
{
    const struct wpk_structure *s = variant->plan;
    int site = s->site_of[g];
    double sums = site < 0 ? 1 : variant->error_sums[site];
    double rest = site < 0 ? 0 : variant->error_rest[site];
    return sqrt(sums * sums * share_of(variant, &s->plan.group[g], block) + rest * rest);
}

double wpk_variant_error_least(const struct wpk_variant *variant)
{
    const struct wpk_structure *s = variant->plan;
    bool grouped[WPK_SITES_MAX] = {false};
    double worst = 0;
    for (int g = 0; g < s->plan.group_count; g++) {
        if (s->plan.group[g].contraction < 0) {
            continue; /* it adds nothing up */
        }
        const struct wpk_gene *gene = s->slots[g].sum < 0 ? NULL : &variant->genes[s->slots[g].sum];
        double least = wpk_variant_error(variant, g, WPK_GENE_ALL);
        for (int i = 0; gene != NULL && i < gene->choice_count; i++) {
            double error = wpk_variant_error(variant, g, gene->choice[i].value);
            least = i == 0 || error < least ? error : least;
        }
        worst = least > worst ? least : worst;
        if (s->site_of[g] >= 0) {
            grouped[s->site_of[g]] = true;
        }
    }
    for (int i = 0; i < WPK_SITES_MAX; i++) { /* its sums are not those that a gene decides */
        double error = grouped[i] ? 0 : hypot(variant->error_sums[i], variant->error_rest[i]);
        worst = error > worst ? error : worst;
    }
    return worst > 0 ? worst : 1;
}

/* `least`: the error of the most accurate. */
static bool stays(struct wpk_accuracy accuracy, double least, double error)
{
    return error <= least || wpk_accuracy_admits(accuracy, error);
}

/* Keep the choices that are accurate enough, and no panels: `sum` decides then. */
static void prune_gene(struct wpk_variant *variant, int g, int slot, struct wpk_accuracy accuracy,
                       double least)
{
    struct wpk_gene *gene = slot < 0 ? NULL : &variant->genes[slot];
    for (int i = gene == NULL ? -1 : gene->choice_count - 1; i >= 0; i--) {
        int64_t value = gene->choice[i].value;
        if ((!gene->optional || value != WPK_GENE_ALL) &&
            !stays(accuracy, least, wpk_variant_error(variant, g, value))) {
            wpk_gene_remove(gene, i);
        }
    }
    WPK_ASSERT(gene == NULL || gene->choice_count > 0);
}

bool wpk_variant_prune(struct wpk_variant *variant, struct wpk_accuracy accuracy, double least)
{
    const struct wpk_structure *s = variant->plan;
    if (!stays(accuracy, least, wpk_variant_error_least(variant))) {
        return false;
    }
    for (int g = 0; g < s->plan.group_count; g++) {
        prune_gene(variant, g, s->slots[g].sum, accuracy, least);
        prune_gene(variant, g, s->slots[g].panel, accuracy, least);
    }
    return true;
}
