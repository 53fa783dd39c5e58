/* SPDX-License-Identifier: Apache-2.0 */
#include "search/space.h"

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
        err = wpk_fail(diag, WPK_EUNSUPPORTED,
                       "this program is too large for a space: it has more than %d loop nests, %d "
                       "stages in one of them, or %d genes",
                       WPK_GROUPS_MAX, WPK_MEMBERS_MAX, WPK_GENES_MAX - 1);
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
        return wpk_fail(diag, WPK_EUNSUPPORTED, "there are no rules for devices of the kind %s",
                        options->device.kind);
    }
    if (strcmp(out->options.target.rules->kind, "cuda") == 0 && wpk_program_gathers(program)) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "an index that is data is read on CPUs alone so far");
    }
    out->options.back_ends &= wpk_back_ends_of(out->options.target.rules->kind);
    out->options.target.rules->describe(&options->device, &out->options.target.machine);
    wpk_err err = wpk_program_copy(program, &out->program);
    err = err == WPK_OK ? derive_variants(out, diag) : err;
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
