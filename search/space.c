/* SPDX-License-Identifier: Apache-2.0 */
#include "search/space.h"

#include "ir/notation/notation.h"
#include "search/genes.h"
#include "search/variant.h"

#include <math.h>
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

static wpk_err derive_variants(struct wpk_space *space, struct wpk_diag *diag)
{
    const struct wpk_target_rules *rules = space->options.target.rules;
    const struct wpk_machine *machine = &space->options.target.machine;
    const struct wpk_parallelism parallelism = {.threads = space->options.threads,
                                                .tile = (int64_t)machine->lanes_max *
                                                        machine->registers / 2,
                                                .work_min = PART_WORK_MIN};
    space->sites = calloc(1, sizeof(*space->sites));
    wpk_err err = space->sites == NULL
                      ? WPK_ENOMEM
                      : wpk_sites_find(&space->program, &parallelism, space->sites);
    for (int written = 0; written < 2 && err == WPK_OK && space->variant_count == 0; written++) {
        space->lazy = space->sites->count > 1;
        err = rules->list(space, written > 0);
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
    if (options->target.rules == NULL) {
        out->options.target.rules = wpk_target_rules_of(options->device.kind);
    }
    const struct wpk_target_rules *rules = out->options.target.rules;
    if (rules == NULL) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "there are no rules for devices of the kind %s",
                        options->device.kind);
    }
    out->options.back_ends &= wpk_back_ends_of(rules->kind);
    rules->describe(&options->device, &out->options.target.machine);
    wpk_err err = rules->check(program, diag);
    err = err == WPK_OK ? wpk_program_copy(program, &out->program) : err;
    err = err == WPK_OK ? derive_variants(out, diag) : err;
    if (err != WPK_OK) {
        wpk_space_fini(out);
        return err;
    }
    wpk_space_measure(out);
    return WPK_OK;
}

wpk_err wpk_space_derive_text(const char *op, const char *device, const char *layouts, int threads,
                              struct wpk_space *out, struct wpk_diag *diag)
{
    struct wpk_program program = {0};
    struct wpk_space_options options = {
        .layouts = layouts, .threads = threads, .back_ends = WPK_BACK_ENDS_ALL};
    wpk_err err = wpk_device_of_class(device, &options.device);
    err = err == WPK_OK ? wpk_program_parse(op, &program, diag) : err;
    err = err == WPK_OK ? wpk_space_derive(&program, &options, out, diag) : err;
    wpk_program_fini(&program);
    return err;
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

const struct wpk_target_rules *wpk_target_rules_of(const char *kind)
{
    static const struct wpk_target_rules *const all[] = {&wpk_target_cpu, &wpk_target_cuda};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (kind[0] == '\0' || strcmp(kind, all[i]->kind) == 0) {
            return all[i];
        }
    }
    return NULL;
}

const char *wpk_space_version_of(const char *device_kind)
{
    const struct wpk_target_rules *rules = wpk_target_rules_of(device_kind);
    return rules == NULL ? WPK_SPACE_VERSION : rules->version;
}
