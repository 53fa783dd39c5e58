/* SPDX-License-Identifier: Apache-2.0 */
#include "search/space.h"

#include "common/format.h"
#include "ir/data_index.h"
#include "search/back_end.h"
#include "search/candidate_nest.h"
#include "search/feature.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/prune.h"
#include "search/space_kind.h"
#include "search/variant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_TRIES_MAX 400
#define PART_WORK_MIN 8192.0 /* some microseconds, as a thread's start takes */

void wpk_space_measure(struct wpk_space *space)
{
    double points = 0, first = 0;
    for (int v = 0; v < space->variant_count; v++) {
        double log2_size = 0;
        for (int i = 0; i < space->variants[v].gene_count; i++) {
            log2_size += log2((double)space->variants[v].genes[i].choice_count);
        }
        if (space->variants[v].state == WPK_VARIANT_DERIVED) {
            first = first > 0 ? first : exp2(log2_size);
            points += exp2(log2_size);
        }
    }
    for (int v = 0; v < space->variant_count; v++) {
        points += space->variants[v].state == WPK_VARIANT_LISTED ? first : 0;
    }
    space->size_log2 = log2(points);
}

/* Derives the first that can be derived, and all if few depend on each other; drops those that
 * cannot, unless others wait. */
static wpk_err derive_first(struct wpk_space *space)
{
    bool found = false, full = false, keep[WPK_VARIANTS_MAX];
    for (int v = 0; v < space->variant_count && !(space->lazy && found); v++) {
        wpk_err err = wpk_variant_derive(space, &space->variants[v]);
        found = found || err == WPK_OK;
        full = full || err == WPK_ENOSPC;
        if (err == WPK_ENOMEM) {
            return err;
        }
    }
    for (int v = 0; v < space->variant_count; v++) {
        keep[v] = space->variants[v].state != WPK_VARIANT_NONE;
    }
    wpk_variants_keep(space, keep);
    return found ? WPK_OK : full ? WPK_ENOSPC : WPK_EUNSUPPORTED;
}

/* True if one of the first `count` variants computes the same, or an input would need a border. */
static bool is_needless(const struct wpk_space *space, const struct wpk_variant *variant, int count)
{
    bool needless = count == WPK_VARIANTS_MAX;
    for (int i = 0; i < space->sites->count; i++) {
        needless = needless || space->sites->site[i].choice[variant->choice[i]].bare;
    }
    for (int u = 0; u < count && !needless; u++) {
        const struct wpk_variant *other = &space->variants[u];
        needless = variant->last == other->last &&
                   memcmp(variant->choice, other->choice, sizeof(variant->choice)) == 0;
    }
    return needless;
}

/* Of a kind of space without groups: each combination of choices once over the program as it is
 * written, and then, with free layouts, for each order of axes. Copies and borders of inputs are
 * the kind's own affair. */
static wpk_err list_orders(struct wpk_space *space)
{
    struct wpk_variant *listed = space->variants;
    int listed_count = space->variant_count;
    bool free_layouts = strcmp(space->options.layouts, "any") == 0;
    space->variant_count = 0;
    space->variants = calloc(WPK_VARIANTS_MAX, sizeof(*space->variants));
    for (int ordered = 0; ordered <= free_layouts && space->variants != NULL; ordered++) {
        for (int v = 0; v < listed_count; v++) {
            struct wpk_variant variant = listed[v];
            variant.last = ordered ? variant.last : -1;
            variant.staged = false;
            if ((ordered && variant.last < 0) ||
                is_needless(space, &variant, space->variant_count)) {
                continue;
            }
            snprintf(variant.layout, sizeof(variant.layout), ordered ? "last%d" : "asis",
                     variant.last);
            space->variants[space->variant_count++] = variant;
        }
    }
    free(listed);
    return space->variants == NULL ? WPK_ENOMEM : WPK_OK;
}

static wpk_err derive_variants(struct wpk_space *space, struct wpk_diag *diag)
{
    wpk_err err = wpk_variants_check(&space->program, diag);
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_machine *machine = &space->options.target.machine;
    const struct wpk_parallelism parallelism = {.threads = space->options.threads,
                                                .tile = (int64_t)machine->lanes_max *
                                                        machine->registers / 2,
                                                .work_min = PART_WORK_MIN};
    space->sites = calloc(1, sizeof(*space->sites));
    err = space->sites == NULL ? WPK_ENOMEM
                               : wpk_sites_find(&space->program, &parallelism, space->sites);
    for (int written = 0; written < 2 && err == WPK_OK && space->variant_count == 0; written++) {
        space->lazy = space->sites->count > 1;
        err = wpk_variants_list(space, written > 0);
        if (err == WPK_OK && wpk_space_kind_of(space) != NULL) {
            err = list_orders(space);
        }
        err = err == WPK_OK ? derive_first(space) : err;
        err = (err == WPK_EUNSUPPORTED || err == WPK_ENOSPC) && written == 0 ? WPK_OK : err;
    }
    if (err == WPK_ENOSPC) {
        wpk_diag_set(diag,
                     "this program is too large for a space: it has more than %d loop nests, %d "
                     "stages in one of them, or %d genes",
                     WPK_GROUPS_MAX, WPK_MEMBERS_MAX, WPK_GENES_MAX - 1);
        err = WPK_EUNSUPPORTED;
    } else if (err == WPK_EUNSUPPORTED) {
        wpk_diag_set(diag, "no implementation can be derived for this program");
    }
    return err;
}

wpk_err wpk_space_derive(const struct wpk_program *program, const struct wpk_space_options *options,
                         struct wpk_space *out, struct wpk_diag *diag)
{
    memset(out, 0, sizeof(*out));
    out->options = *options;
    out->options.layouts = strcmp(options->layouts, "any") == 0 ? "any" : "fixed";
    if (out->options.target.rules == NULL) {
        out->options.target.rules = wpk_target_rules_find(&options->device);
    }
    if (out->options.target.rules == NULL) {
        wpk_diag_set(diag, "there are no rules for devices of the kind %s", options->device.kind);
        return WPK_EUNSUPPORTED;
    }
    if (strcmp(out->options.target.rules->kind, "cuda") == 0 && wpk_program_gathers(program)) {
        wpk_diag_set(diag, "an index that is data is read on CPUs alone so far");
        return WPK_EUNSUPPORTED;
    }
    out->options.back_ends &= wpk_back_ends_of(out->options.target.rules->kind);
    out->options.target.rules->describe(&options->device, &out->options.target.machine);
    wpk_err err = wpk_program_copy(program, &out->program);
    if (err == WPK_OK) {
        err = derive_variants(out, diag);
    }
    if (err != WPK_OK) {
        wpk_space_fini(out);
        return err;
    }
    wpk_space_measure(out);
    return WPK_OK;
}

void wpk_space_fini(struct wpk_space *space)
{
    if (space == NULL) {
        return;
    }
    for (int v = 0; v < space->variant_count; v++) {
        wpk_variant_fini(&space->variants[v]);
    }
    free(space->variants);
    free(space->sites);
    wpk_program_fini(&space->program);
    memset(space, 0, sizeof(*space));
}

const struct wpk_variant *wpk_space_variant(const struct wpk_space *space, int v)
{
    struct wpk_variant *variant = &space->variants[v];
    WPK_ASSERT(v >= 0 && v < space->variant_count);
    if (variant->state == WPK_VARIANT_LISTED && wpk_variant_derive(space, variant) == WPK_OK &&
        space->pruned && !wpk_variant_prune(variant, space->accuracy, space->error_least)) {
        wpk_variant_drop(variant);
    }
    return variant->state == WPK_VARIANT_DERIVED ? variant : NULL;
}

wpk_err wpk_space_variant_error(const struct wpk_space *space, int v)
{
    return space->variants[v].state == WPK_VARIANT_LISTED ? WPK_ENOMEM : WPK_ENOENT;
}

/* ---- legality, drawing, repair */

bool wpk_space_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    if (kind != NULL) {
        return wpk_space_kind_is_legal(space, candidate, NULL);
    }
    for (int g = 0; g < structure->plan.group_count; g++) {
        struct wpk_decisions decisions;
        wpk_genes_read(variant, candidate, g, &decisions);
        if (!wpk_group_is_legal(variant, &space->options, g, &decisions, NULL)) {
            return false;
        }
    }
    return wpk_placement_is_legal(variant, &space->options, candidate, NULL) &&
           wpk_back_end_is_legal(variant, candidate, NULL);
}

static void redraw(const struct wpk_variant *variant, struct wpk_rng *rng, int gene,
                   struct wpk_candidate *candidate)
{
    if (gene >= 0) {
        candidate->gene[gene] =
            (uint8_t)wpk_rng_below(rng, (uint64_t)variant->genes[gene].choice_count);
    }
}

/* Redraw one of the genes that the group's rules are about. */
static void redraw_one(const struct wpk_variant *variant, struct wpk_rng *rng, int g,
                       struct wpk_candidate *candidate)
{
    const struct wpk_structure *structure = variant->plan;
    const struct wpk_slots *slots = &structure->slots[g];
    int genes[WPK_RANK_MAX + 8], count = 0;
    const int single[] = {slots->lanes, slots->vec,   slots->unroll, slots->split,
                          slots->sum,   slots->panel, slots->tail,   slots->dot};
    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
        if (single[i] >= 0) {
            genes[count++] = single[i];
        }
    }
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        if (slots->tile[a] >= 0) {
            genes[count++] = slots->tile[a];
        }
    }
    redraw(variant, rng, genes[wpk_rng_below(rng, (uint64_t)count)], candidate);
}

static bool is_legal_group(const struct wpk_space *space, int g,
                           const struct wpk_candidate *candidate)
{
    struct wpk_decisions decisions;
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    wpk_genes_read(variant, candidate, g, &decisions);
    return wpk_group_is_legal(variant, &space->options, g, &decisions, NULL);
}

/* Most draws break one rule: bring the vector axis's tile to the nearest whole vectors. */
static void align_tile(const struct wpk_variant *variant, int g, struct wpk_candidate *candidate)
{
    const struct wpk_structure *structure = variant->plan;
    struct wpk_decisions d;
    wpk_genes_read(variant, candidate, g, &d);
    int slot = d.vec < 0 ? -1 : structure->slots[g].tile[d.vec];
    if (slot < 0) {
        return;
    }
    const struct wpk_gene *gene = &variant->genes[slot];
    int at = candidate->gene[slot];
    for (int distance = 0; distance < gene->choice_count; distance++) {
        for (int side = -1; side <= 1; side += 2) {
            int choice = at + side * distance;
            if (choice >= 0 && choice < gene->choice_count &&
                gene->choice[choice].value % d.lanes == 0) {
                candidate->gene[slot] = (uint8_t)choice;
                return;
            }
        }
    }
}

/* The least that can be asked for: one vector, no other tile, nothing unrolled, no panels. */
static bool shrink_group(const struct wpk_space *space, int g, struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    const struct wpk_slots *slots = &structure->slots[g];
    struct wpk_candidate attempt = *candidate;
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        if (slots->tile[a] >= 0) {
            attempt.gene[slots->tile[a]] = 0;
        }
    }
    if (slots->unroll >= 0) {
        attempt.gene[slots->unroll] = 0;
    }
    if (slots->dot >= 0) {
        attempt.gene[slots->dot] =
            (uint8_t)wpk_gene_find(&variant->genes[slots->dot], WPK_GENE_ALL);
    }
    if (slots->panel >= 0) {
        attempt.gene[slots->panel] = (uint8_t)(variant->genes[slots->panel].choice_count - 1);
    }
    if (slots->tail >= 0) {
        attempt.gene[slots->tail] =
            (uint8_t)wpk_gene_find(&variant->genes[slots->tail], WPK_GENE_ALL);
    }
    for (int v = 0; v < variant->genes[slots->vec].choice_count; v++) {
        for (int n = 0; n < variant->genes[slots->lanes].choice_count; n++) {
            struct wpk_candidate small = attempt;
            small.gene[slots->vec] = (uint8_t)v;
            small.gene[slots->lanes] = (uint8_t)n;
            align_tile(variant, g, &small);
            if (is_legal_group(space, g, &small)) {
                *candidate = small;
                return true;
            }
        }
    }
    return false;
}

static bool repair_group(const struct wpk_space *space, struct wpk_rng *rng, int g,
                         struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    if (is_legal_group(space, g, candidate)) {
        return true;
    }
    align_tile(variant, g, candidate);
    struct wpk_candidate attempt = *candidate;
    for (int tries = 0; tries < GROUP_TRIES_MAX; tries++) {
        if (is_legal_group(space, g, &attempt)) {
            *candidate = attempt;
            return true;
        }
        if (tries % 8 == 7) {
            attempt = *candidate; /* walked too far: start again near the parent */
        }
        redraw_one(variant, rng, g, &attempt);
        align_tile(variant, g, &attempt);
    }
    return shrink_group(space, g, candidate);
}

/* Where a group is computed is repaired by trying its other places, root being always right. */
static void repair_placement(const struct wpk_space *space, struct wpk_rng *rng,
                             struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    for (int tries = 0; tries < 2 * WPK_GROUPS_MAX; tries++) {
        if (wpk_placement_is_legal(variant, &space->options, candidate, NULL)) {
            return;
        }
        int g = (int)wpk_rng_below(rng, (uint64_t)structure->plan.group_count);
        redraw(variant, rng, structure->slots[g].at, candidate);
    }
    for (int g = 0; g < structure->plan.group_count; g++) {
        if (structure->slots[g].at >= 0) {
            candidate->gene[structure->slots[g].at] = 0;
        }
    }
}

wpk_err wpk_space_repair(const struct wpk_space *space, struct wpk_rng *rng,
                         struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    for (int i = 0; i < variant->gene_count; i++) {
        if (candidate->gene[i] >= variant->genes[i].choice_count) {
            candidate->gene[i] = 0;
        }
    }
    if (wpk_space_kind_of(space) != NULL) {
        return wpk_space_kind_repair(space, rng, candidate);
    }
    for (int g = 0; g < structure->plan.group_count; g++) {
        if (!repair_group(space, rng, g, candidate)) {
            return WPK_EEXHAUSTED;
        }
    }
    repair_placement(space, rng, candidate);
    if (!wpk_back_end_is_legal(variant, candidate, NULL)) {
        wpk_genes_set_back_end(variant, WPK_BACK_END_c, candidate);
    }
    return wpk_placement_is_legal(variant, &space->options, candidate, NULL) ? WPK_OK
                                                                             : WPK_EEXHAUSTED;
}

wpk_err wpk_space_draw_of(const struct wpk_space *space, struct wpk_rng *rng, int v,
                          struct wpk_candidate *out)
{
    const struct wpk_variant *variant = &space->variants[v];
    struct wpk_candidate drawn = {.variant = v, .gene_count = variant->gene_count};
    for (int i = 0; i < variant->gene_count; i++) {
        redraw(variant, rng, i, &drawn);
    }
    wpk_err err = wpk_space_repair(space, rng, &drawn);
    if (err == WPK_OK) {
        *out = drawn;
    }
    return err;
}

wpk_err wpk_space_draw(const struct wpk_space *space, struct wpk_rng *rng,
                       struct wpk_candidate *out)
{
    for (int tries = 0; tries < WPK_REPAIR_TRIES_MAX; tries++) {
        int v = (int)wpk_rng_below(rng, (uint64_t)space->variant_count);
        for (int i = 0; i < space->variant_count && wpk_space_variant(space, v) == NULL; i++) {
            if (wpk_space_variant_error(space, v) == WPK_ENOMEM) {
                return WPK_ENOMEM;
            }
            v = (v + 1) % space->variant_count;
        }
        if (wpk_space_draw_of(space, rng, v, out) == WPK_OK) {
            return WPK_OK;
        }
    }
    return WPK_EEXHAUSTED;
}

/* ---- ranks */

wpk_err wpk_space_bound(const struct wpk_space *space, const struct wpk_candidate *candidate,
                        double *seconds)
{
    const struct wpk_structure *structure = space->variants[candidate->variant].plan;
    const struct wpk_target *target = &space->options.target;
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    struct wpk_nest nest;
    struct wpk_features features;
    if (kind != NULL) {
        *seconds = wpk_space_kind_bound(space, candidate);
        return WPK_OK;
    }
    wpk_err err = wpk_candidate_nest(space, candidate, &nest);
    if (err == WPK_OK) {
        wpk_features(&structure->accesses, &nest, &target->machine, space->options.threads,
                     &features);
        *seconds = target->rules->bound(&target->machine, &features, space->options.threads);
    }
    return err;
}

wpk_err wpk_space_predict(const struct wpk_space *space, const struct wpk_candidate *candidate,
                          double *out)
{
    double seconds = 1;
    wpk_err err = wpk_device_is_emulated(&space->options.device)
                      ? WPK_OK
                      : wpk_space_bound(space, candidate, &seconds);
    *out = wpk_real_log(fmax(seconds, 1e-12));
    return err;
}

/* In a file of its own, for which tests/fake_space.c stands in tests of strategies. */

static const char *version_of(const struct wpk_space_kind *kind)
{
    return kind == NULL ? WPK_SPACE_VERSION : kind->version;
}

const char *wpk_space_version_of(const char *device_kind)
{
    const struct wpk_target_rules *rules = wpk_target_rules_of(device_kind);
    return version_of(rules != NULL ? rules->space : NULL);
}

const char *wpk_space_version(const struct wpk_space *space)
{
    return version_of(wpk_space_kind_of(space));
}
