/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/space.h"

#include "common/format.h"
#include "ir/data_index.h"
#include "ir/derive/derive.h"
#include "search/genes.h"
#include "search/variant.h"
#include "target/gpu/space/template.h"
#include "target/gpu/space/transforms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finding sites needs a machine. */
static void describe(const struct wpk_device *device WPK_UNUSED, struct wpk_machine *out)
{
    *out = (struct wpk_machine){.lanes_max = 1, .lanes_min = 1, .registers = 2, .row_vectors = 1};
}

static wpk_err check(const struct wpk_program *program, struct wpk_diag *diag)
{
    return wpk_program_gathers(program)
               ? wpk_fail(diag, WPK_EUNSUPPORTED,
                          "an index that is data is read on CPUs alone so far")
               : wpk_variants_check(program, diag);
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

/* Each combination of choices once over the program as it is written, and then, with free layouts,
 * for each order of axes: groups copy what they read, and need no borders. */
static wpk_err list(struct wpk_space *space, bool written)
{
    wpk_err err = wpk_variants_list(space, written);
    struct wpk_variant *listed = space->variants;
    int listed_count = space->variant_count;
    bool free_layouts = strcmp(space->options.layouts, "any") == 0;
    if (err != WPK_OK) {
        return err;
    }
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

/* Make one axis of axes that a contraction's tensors address as one; without them, change
 * nothing. */
static wpk_err collapse(struct wpk_program *program)
{
    wpk_err err = WPK_OK;
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        struct wpk_program attempt = {0};
        if (program->stages[s].reduction == WPK_REDUCE_NONE || wpk_cuda_is_transform(program, s)) {
            continue;
        }
        err = wpk_program_copy(program, &attempt);
        wpk_err collapsed = err == WPK_OK ? wpk_derive_collapse(&attempt, s) : err;
        if (collapsed == WPK_OK) {
            wpk_program_fini(program);
            wpk_program_move(&attempt, program);
            s = -1; /* stages have moved, and there may be more axes */
        }
        wpk_program_fini(&attempt);
    }
    return err;
}

/* Those that are applied late come last. */
static wpk_err apply_choices(const struct wpk_space *space, const struct wpk_variant *variant,
                             struct wpk_program *program)
{
    int count = space->sites->count;
    wpk_err err = WPK_OK;
    for (int i = 0; i < 2 * count && err == WPK_OK; i++) {
        const struct wpk_site *site = &space->sites->site[i % count];
        int choice = variant->choice[i % count];
        if (site->choice[choice].late == (i >= count)) {
            err = wpk_site_apply(program, site, choice);
        }
    }
    return err;
}

static wpk_err derive(const struct wpk_space *space, struct wpk_variant *variant)
{
    struct wpk_structure *structure = variant->plan;
    struct wpk_program *program = &variant->program;
    struct wpk_gene_list list = {.variant = variant};
    struct wpk_cuda_kept *kept = calloc(1, sizeof(*kept));
    struct wpk_cuda_machine machine;
    wpk_cuda_read_machine(space, &machine);
    structure->kind = kept;
    wpk_err err = kept == NULL ? WPK_ENOMEM : apply_choices(space, variant, program);
    err = err == WPK_OK ? collapse(program) : err;
    err = err == WPK_OK ? wpk_cuda_groups_normalize(program, space->options.strict) : err;
    err = err == WPK_OK ? wpk_cuda_groups_find(program, space->options.strict, &kept->groups) : err;
    for (int g = 0; err == WPK_OK && g < kept->groups.count; g++) {
        struct wpk_cuda_adding adding = {.program = program,
                                         .kept = kept,
                                         .machine = &machine,
                                         .strict = space->options.strict,
                                         .list = &list,
                                         .number = g};
        wpk_cuda_add_genes(&adding);
        err = list.err;
    }
    err = err == WPK_OK ? wpk_accesses_init(program, &structure->accesses) : err;
    return err == WPK_OK ? wpk_genes_derive_back_end(variant, &space->options) : err;
}

/* The prediction, and the genes as they are: sizes as logarithms. */
static wpk_err features(const struct wpk_space *space, const struct wpk_candidate *candidate,
                        double *out)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    for (int i = 0; i < variant->gene_count && i < WPK_FEATURES - 1; i++) {
        double value = (double)variant->genes[i].choice[candidate->gene[i]].value;
        out[i + 1] = variant->genes[i].ordered ? wpk_real_log(1 + fmax(value, 0)) : value;
    }
    return wpk_space_predict(space, candidate, &out[0]);
}

static int gene_at(const struct wpk_variant *variant WPK_UNUSED, int step)
{
    return step;
}

/* The first choices are the neutral ones. */
static bool complete(const struct wpk_space *space, int step, struct wpk_candidate *candidate)
{
    memset(&candidate->gene[step + 1], 0, (size_t)(candidate->gene_count - step - 1));
    return wpk_cuda_are_legal(space, candidate, NULL);
}

const struct wpk_target_rules wpk_target_cuda = {
    .kind = "cuda",
    .version = "cuda-13",
    .describe = describe,
    .check = check,
    .list = list,
    .derive = derive,
    .legal = wpk_cuda_are_legal,
    .repair = wpk_cuda_repair,
    .construct = wpk_cuda_construct,
    .features = features,
    .bound = wpk_cuda_bound_all,
    .nest = wpk_cuda_nest,
    .gene_at = gene_at,
    .complete = complete,
};
