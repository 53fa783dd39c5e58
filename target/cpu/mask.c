/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a mask (search/mask.h) decides genes, and their neutral rest. */
#include "target/cpu/rules.h"

/* ---- the order of decisions */

struct list {
    int gene[WPK_GENES_MAX];
    int count;
};

static void put(struct list *list, int gene)
{
    if (gene >= 0) {
        list->gene[list->count++] = gene;
    }
}

/* The first two are the vector axis and the lanes. */
static void list_group(const struct wpk_slots *slots, struct list *list)
{
    put(list, slots->vec);
    put(list, slots->lanes);
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        put(list, slots->tile[a]);
    }
    put(list, slots->tail);
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        put(list, slots->block[a]);
    }
    put(list, slots->outer);
    put(list, slots->inner);
    put(list, slots->red);
    put(list, slots->panel); /* what it leaves to the next three depends on it */
    put(list, slots->split);
    put(list, slots->sum);
    put(list, slots->dot);
    put(list, slots->unroll);
    put(list, slots->roll);
    for (int i = 0; i < slots->pack_count; i++) {
        put(list, slots->pack[i]);
    }
    put(list, slots->at);
    put(list, slots->par);
}

/* The group of a step, its genes, and the number of the step's gene among them. */
static int find_step(const struct wpk_variant *variant, int step, struct list *list, int *number)
{
    const struct wpk_structure *s = variant->plan;
    int g = s->plan.group_count - 1;
    list->count = 0;
    list_group(&s->slots[g], list);
    while (step >= list->count) {
        step -= list->count;
        WPK_ASSERT(g > 0);
        list->count = 0;
        list_group(&s->slots[--g], list);
    }
    *number = step;
    return g;
}

int wpk_cpu_gene_at(const struct wpk_variant *variant, int step)
{
    const struct wpk_structure *s = variant->plan;
    struct list list;
    int number;
    if (step == s->by) { /* the back end is decided last */
        return step;
    }
    (void)find_step(variant, step, &list, &number);
    return list.gene[number];
}

/* ---- the neutral rest */

/* The largest choice of a loop's size is "all", which splits nothing; all other sizes are neutral
 * at their smallest. Copies are neutral at their last choice, which takes the least code. */
static int neutral_choice(const struct wpk_variant *variant, const struct wpk_slots *slots,
                          int gene)
{
    bool largest = gene == slots->split || gene == slots->sum || gene == slots->panel;
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        largest = largest || gene == slots->block[a];
    }
    for (int i = 0; i < slots->pack_count; i++) {
        largest = largest || gene == slots->pack[i];
    }
    return largest ? variant->genes[gene].choice_count - 1 : 0;
}

static bool is_open(const struct list *list, int decided, int gene)
{
    for (int i = decided; i < list->count && gene >= 0; i++) {
        if (list->gene[i] == gene) {
            return true;
        }
    }
    return false;
}

/* True if this axis of the root is the last axis of some member, along which it has lanes. */
static bool is_last(const struct wpk_variant *variant, int g, int axis)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    for (int m = 0; m < group->member_count; m++) {
        int last = variant->program.stages[group->member[m].stage].rank - 1;
        if (last >= 0 && group->member[m].root_axis[last] == axis) {
            return true;
        }
    }
    return false;
}

/* Give each open tile its smallest size: whole vectors along the vector axis, and multiples of
 * `width` along the axes in which stages without that axis have lanes. True if there are such. */
static bool set_tiles(const struct wpk_variant *variant, int g, const struct list *list,
                      int decided, int width, struct wpk_candidate *candidate)
{
    const struct wpk_structure *s = variant->plan;
    struct wpk_decisions d;
    bool widened = false;
    wpk_genes_read(variant, candidate, g, &d);
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        int slot = s->slots[g].tile[a], choice = 0;
        if (!is_open(list, decided, slot)) {
            continue;
        }
        const struct wpk_gene *gene = &variant->genes[slot];
        bool wide = width > 1 && a != d.vec && is_last(variant, g, a);
        int64_t of = a == d.vec ? d.lanes : wide ? width : 1;
        while (choice < gene->choice_count && gene->choice[choice].value % of != 0) {
            choice++;
        }
        widened = widened || (wide && choice < gene->choice_count);
        candidate->gene[slot] = (uint8_t)(choice < gene->choice_count ? choice : 0);
    }
    return widened;
}

/* Complete the group with a vector axis and lanes; an unrolling that is pinned wants another
 * reduction innermost. */
static bool complete_orders(const struct wpk_space *space, int g, const struct list *list,
                            int decided, struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *s = variant->plan;
    int red = s->slots[g].red;
    int orders = is_open(list, decided, red) ? variant->genes[red].choice_count : 1;
    for (int r = 0; r < orders; r++) {
        if (orders > 1) {
            candidate->gene[red] = (uint8_t)r;
        }
        if (wpk_cpu_is_legal_group(space, g, candidate, NULL)) {
            return true;
        }
    }
    return false;
}

static bool complete_lanes(const struct wpk_space *space, int g, const struct list *list,
                           int decided, int width, struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    int vecs = decided > 0 ? 1 : variant->genes[slots->vec].choice_count;
    int lanes = decided > 1 ? 1 : variant->genes[slots->lanes].choice_count;
    for (int v = 0; v < vecs; v++) {
        for (int n = 0; n < lanes; n++) {
            if (decided < 1) {
                candidate->gene[slots->vec] = (uint8_t)v;
            }
            if (decided < 2) {
                candidate->gene[slots->lanes] = (uint8_t)n;
            }
            bool widened = set_tiles(variant, g, list, decided, width, candidate);
            if ((widened || width == 1) && complete_orders(space, g, list, decided, candidate)) {
                return true;
            }
        }
    }
    return false;
}

/* Set the group's genes from number `decided` on to the neutral rest; false if it is illegal. */
static bool complete_group(const struct wpk_space *space, int g, const struct list *list,
                           int decided, struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *s = variant->plan;
    const struct wpk_machine *machine = &space->options.target.machine;
    for (int i = decided; i < list->count; i++) {
        candidate->gene[list->gene[i]] =
            (uint8_t)neutral_choice(variant, &s->slots[g], list->gene[i]);
    }
    int width = wpk_mask_width(machine, 0);
    while (width > 0 && !complete_lanes(space, g, list, decided, width, candidate)) {
        width = wpk_mask_width(machine, width);
    }
    return width > 0;
}

bool wpk_cpu_complete(const struct wpk_space *space, int step, struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *s = variant->plan;
    struct list list = {.count = 0};
    int number, listed = 0;
    bool complete = true;
    for (int g = 0; g < s->plan.group_count && step < 0 && complete; g++) {
        list.count = 0;
        list_group(&s->slots[g], &list);
        listed += list.count;
        complete = complete_group(space, g, &list, 0, candidate);
    }
    if (step < 0) {
        WPK_ASSERT(!complete || listed == variant->gene_count - (s->by >= 0));
        return complete && wpk_placement_is_legal(variant, &space->options, candidate, NULL);
    }
    if (step == s->by) {
        return wpk_space_is_legal(space, candidate);
    }
    int g = find_step(variant, step, &list, &number);
    return complete_group(space, g, &list, number + 1, candidate) &&
           (list.gene[number] != s->slots[g].at ||
            wpk_placement_is_legal(variant, &space->options, candidate, NULL));
}
