/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/space.h"

#include "common/format.h"
#include "ir/data_index.h"
#include "search/variant.h"
#include "target/gpu/space/nest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finding sites needs a machine. */
static void describe(const struct wpk_device *device, struct wpk_machine *out)
{
    (void)device;
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

static wpk_err bound(const struct wpk_space *space, const struct wpk_candidate *candidate,
                     double *seconds)
{
    *seconds = wpk_cuda_bound_all(space, candidate);
    return WPK_OK;
}

static int gene_at(const struct wpk_variant *variant, int step)
{
    (void)variant;
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
    .derive = wpk_cuda_variant_derive,
    .legal = wpk_cuda_are_legal,
    .repair = wpk_cuda_repair,
    .construct = wpk_cuda_construct,
    .features = features,
    .bound = bound,
    .nest = wpk_cuda_nest,
    .gene_at = gene_at,
    .complete = complete,
};
