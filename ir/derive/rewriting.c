/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/derive/rewriting.h"

#include "ir/data_index.h"
#include "ir/derive/extract.h"
#include "ir/derive/winograd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SPREAD 4 /* parts for each thread, so that the last one is not waited for long */

/* How a stage's window is split before minimal filtering. */
enum phasing { WHOLE, STRIDED, DILATED };

/* The functions are given a program of their own, which `list` leaves as it is. */
struct wpk_rewriting {
    /* Add the choices that are worth a trial: none where the rewriting does not apply. */
    wpk_err (*list)(const struct wpk_rewriting *rewriting, struct wpk_program *program, int stage,
                    struct wpk_site *out);
    /* NULL: by `derive`; if that is NULL, too, the stage stays as it is. */
    wpk_err (*apply)(const struct wpk_rewriting *rewriting, struct wpk_program *program, int stage,
                     const int64_t *parameter);
    int tensors; /* that it adds, at most */
    enum phasing phasing;
    /* Of those without a parameter: */
    wpk_err (*derive)(struct wpk_program *program, int stage);
    const char *name;
    struct wpk_site_choice traits; /* late, written, bare */
    bool extrema;                  /* of maxima and minima, not of contractions */
};

static void add_choice(struct wpk_site *site, const struct wpk_site_choice *choice)
{
    if (site->choice_count < WPK_SITE_CHOICES_MAX) {
        struct wpk_site_choice *added = &site->choice[site->choice_count++];
        *added = *choice;
        added->tensors = choice->rewriting == NULL ? 0 : choice->rewriting->tensors;
    }
}

static void add_plain(struct wpk_site *site, const struct wpk_rewriting *rewriting,
                      const char *text, const struct wpk_site_choice *traits)
{
    struct wpk_site_choice choice = *traits;
    choice.rewriting = rewriting;
    choice.operations = choice.error_sums = 1;
    snprintf(choice.text, sizeof(choice.text), "%s", text);
    add_choice(site, &choice);
}

/* A rewriting without a parameter, wherever it applies. */
static wpk_err list_derived(const struct wpk_rewriting *rewriting, struct wpk_program *program,
                            int stage, struct wpk_site *out)
{
    struct wpk_program copy = {0};
    wpk_err err = wpk_program_copy(program, &copy);
    if (err == WPK_OK && rewriting->derive(&copy, stage) == WPK_OK) {
        add_plain(out, rewriting, rewriting->name, &rewriting->traits);
        out->choice[out->choice_count - 1].tensors = copy.tensor_count - program->tensor_count;
    }
    wpk_program_fini(&copy);
    return err;
}

/* ---- minimal filtering */

/* The sizes that pay, the cheapest first.   unit  share: of the operator's multiply-adds that the
 * stage has */
static void add_winograd(const struct wpk_rewriting *rewriting, struct wpk_program *program,
                         int stage, const char *prefix, double share, struct wpk_site *out)
{
    struct wpk_winograd_choice sizes[WPK_WINOGRAD_CHOICES_MAX];
    for (int i = wpk_winograd_choices(program, stage, sizes) - 1; i >= 0; i--) {
        struct wpk_site_choice choice = {.rewriting = rewriting,
                                         .operations = share * sizes[i].operations,
                                         .error_sums = fmax(sizes[i].error, 1),
                                         .error_rest = sizes[i].error_rest};
        /* of n terms in blocks of the root of n, as search/variant_list.c has it */
        double blocks = sizes[i].terms > 4 ? 2 / sqrt(sizes[i].terms) : 1;
        choice.error_least = hypot(choice.error_sums * sqrt(blocks), choice.error_rest);
        long long m = sizes[i].m[0], other = sizes[i].m[1];
        memcpy(choice.parameter, sizes[i].m, sizeof(choice.parameter));
        if (m == other) {
            snprintf(choice.text, sizeof(choice.text), "%swinograd(%lld)", prefix, m);
        } else {
            snprintf(choice.text, sizeof(choice.text), "%swinograd(%lld,%lld)", prefix, m, other);
        }
        add_choice(out, &choice);
    }
}

/* Split a strided or a dilated window into phases, and find the stage with the window that is left.
 *   shape   tile [WPK_WINOGRAD_PAIRS_MAX] */
static wpk_err split_window(struct wpk_program *program, enum phasing phasing, int stage,
                            const int64_t *tile, int *window)
{
    char name[WPK_NAME_MAX];
    snprintf(name, sizeof(name), "%s", program->tensors[program->stages[stage].output].name);
    wpk_err err = phasing == DILATED ? wpk_derive_dilated(program, stage, tile, name)
                                     : wpk_derive_phases(program, stage, tile);
    *window = err == WPK_OK ? wpk_program_find_stage(program, name) : -1;
    return err;
}

/* Minimal filtering of the window, or of the one that its phases leave. */
static wpk_err list_winograd(const struct wpk_rewriting *rewriting, struct wpk_program *program,
                             int stage, struct wpk_site *out)
{
    static const int64_t one[WPK_WINOGRAD_PAIRS_MAX] = {1, 1};
    struct wpk_program copy = {0};
    int window = -1;
    if (rewriting->phasing == WHOLE) {
        add_winograd(rewriting, program, stage, "", 1, out);
        return WPK_OK;
    }
    wpk_err err = wpk_program_copy(program, &copy);
    if (err != WPK_OK) {
        return err;
    }
    if (split_window(&copy, rewriting->phasing, stage, one, &window) == WPK_OK) {
        double share =
            wpk_stage_points(&copy.stages[window]) / wpk_stage_points(&program->stages[stage]);
        add_winograd(rewriting, &copy, window, "phased-", share, out);
    } else if (copy.starved) {
        err = WPK_ENOMEM;
    }
    wpk_program_fini(&copy);
    return err;
}

static wpk_err apply_winograd(const struct wpk_rewriting *rewriting, struct wpk_program *program,
                              int stage, const int64_t *m)
{
    int window = stage;
    wpk_err err = rewriting->phasing == WHOLE
                      ? WPK_OK
                      : split_window(program, rewriting->phasing, stage, m, &window);
    return err == WPK_OK ? wpk_derive_winograd(program, window, m) : err;
}

/* ---- no border */

int wpk_site_bare_dim(const struct wpk_program *program, int stage, int tensor)
{
    int found = -1;
    for (struct wpk_loads load = wpk_loads_of(program, &program->stages[stage]);
         wpk_loads_next(&load);) {
        for (int d = 0; load.node->tensor == tensor && d < program->tensors[tensor].rank; d++) {
            int64_t low = 0, high = 0;
            wpk_index_range(program, &program->stages[stage], load.node->index[d], &low, &high);
            bool leaves = low < 0 || high >= program->tensors[tensor].extent[d];
            found = leaves && (found < 0 || d < found) ? d : found;
        }
    }
    return found;
}

/* True if the axes that index the padded dimension are short enough to be unrolled. */
static bool border_unrolls(const struct wpk_program *program, const struct wpk_stage *stage,
                           const struct wpk_node *load, int dim)
{
    struct wpk_affine affine;
    if (!wpk_index_affine(program, load->index[dim], &affine)) {
        return false;
    }
    for (int a = 0; a < stage->axis_count; a++) {
        if (affine.coefficient[a] != 0 && stage->axes[a].extent > WPK_BORDER_EXTENT_MAX) {
            return false;
        }
    }
    return true;
}

static wpk_err list_bare(const struct wpk_rewriting *rewriting, struct wpk_program *program, int id,
                         struct wpk_site *out)
{
    const struct wpk_stage *stage = &program->stages[id];
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        bool input = program->tensors[load.node->tensor].role == WPK_ROLE_INPUT;
        int dim = input ? wpk_site_bare_dim(program, id, load.node->tensor) : -1;
        if (dim >= 0 && border_unrolls(program, stage, load.node, dim)) {
            add_plain(out, rewriting, "bare", &rewriting->traits);
            return WPK_OK;
        }
    }
    return WPK_OK;
}

/* ---- matrix products */

/* True if the stage reads some tensor along a sum of axes, or with a stride: a matrix of that is
 * more than a copy. */
static bool reads_windows(const struct wpk_program *program, int id)
{
    const struct wpk_stage *stage = &program->stages[id];
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        for (int d = 0; d < program->tensors[load.node->tensor].rank; d++) {
            struct wpk_affine affine;
            int axes = 0;
            if (!wpk_index_affine(program, load.node->index[d], &affine)) {
                return true;
            }
            for (int a = 0; a < stage->axis_count; a++) {
                if (affine.coefficient[a] != 0 && stage->axes[a].extent > 1) {
                    axes += affine.coefficient[a] == 1 ? 1 : 2;
                }
            }
            if (axes > 1) {
                return true;
            }
        }
    }
    return false;
}

static wpk_err list_im2col(const struct wpk_rewriting *rewriting, struct wpk_program *program,
                           int stage, struct wpk_site *out)
{
    return reads_windows(program, stage) ? list_derived(rewriting, program, stage, out) : WPK_OK;
}

/* ---- parts of a reduction */

/* The longest reduction axis. */
static int find_terms(const struct wpk_stage *stage)
{
    int axis = stage->rank;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        axis = stage->axes[a].extent > stage->axes[axis].extent ? a : axis;
    }
    return axis;
}

/* True if each element of one load is multiplied by several of the other, and each element of the
 * other is constant or also multiplied by several. */
static bool is_used_again(const struct wpk_program *program, int id)
{
    const struct wpk_stage *stage = &program->stages[id];
    struct wpk_node data, weight;
    bool by_data = false, by_weight = false;
    wpk_contraction_operands(program, id, &data, &weight);
    for (int a = 0; a < stage->rank; a++) {
        bool in_data = wpk_contraction_uses_axis(program, &data, a);
        bool in_weight = wpk_contraction_uses_axis(program, &weight, a);
        bool several = stage->axes[a].extent > 1;
        by_weight = by_weight || (several && in_weight && !in_data);
        by_data = by_data || (several && in_data && !in_weight);
    }
    return by_weight && (by_data || program->tensors[weight.tensor].role == WPK_ROLE_CONSTANT);
}

/* A product of few results runs on few threads. In parts of consecutive terms it has more, and its
 * terms are added in an order that is no less accurate. Parts of reductions that use nothing again
 * would be computed in the loop nest that adds them up (search/plan.h), and on no more threads. */
static wpk_err list_split(const struct wpk_rewriting *rewriting, struct wpk_program *program,
                          int id, struct wpk_site *out)
{
    const struct wpk_stage *stage = &program->stages[id];
    const struct wpk_parallelism *parallelism = &out->parallelism;
    double results = wpk_stage_points_of(stage, 0, stage->rank), work = wpk_stage_points(stage);
    if (parallelism->threads < 2 || stage->rank == WPK_RANK_MAX || !is_used_again(program, id) ||
        results >= SPREAD * parallelism->threads * (double)parallelism->tile) {
        return WPK_OK;
    }
    int64_t extent = stage->axes[find_terms(stage)].extent;
    for (int64_t parts = parallelism->threads; parts <= SPREAD * parallelism->threads; parts *= 2) {
        if (extent % parts == 0 && work >= parallelism->work_min * (double)parts) {
            struct wpk_site_choice choice = {
                .rewriting = rewriting, .operations = 1, .error_sums = 1, .parameter = {parts}};
            snprintf(choice.text, sizeof(choice.text), "split(%lld)", (long long)parts);
            add_choice(out, &choice);
        }
    }
    return WPK_OK;
}

static wpk_err apply_split(const struct wpk_rewriting *rewriting WPK_UNUSED,
                           struct wpk_program *program, int id, const int64_t *parts)
{
    char name[WPK_NAME_MAX];
    const struct wpk_stage *stage = &program->stages[id];
    int axis = find_terms(stage);
    return wpk_derive_block_reduction(program, id, axis, stage->axes[axis].extent / *parts, name);
}

/* ---- the registry */

static const struct wpk_rewriting rewritings[] = {
    {.list = list_winograd, .apply = apply_winograd, .tensors = 14},
    {.list = list_winograd, .apply = apply_winograd, .tensors = 16, .phasing = STRIDED},
    {.list = list_winograd, .apply = apply_winograd, .tensors = 16, .phasing = DILATED},
    {.list = list_bare, .traits = {.bare = true}},
    {.list = list_im2col, .derive = wpk_derive_im2col, .name = "im2col"},
    {.list = list_derived,
     .derive = wpk_derive_collapse,
     .name = "collapsed",
     .traits = {.late = true, .written = true}},
    {.list = list_derived,
     .derive = wpk_derive_residues,
     .name = "residues",
     .traits = {.written = true}},
    {.list = list_split, .apply = apply_split, .tensors = 1},
    {.list = list_derived,
     .derive = wpk_derive_separated,
     .name = "separated",
     .traits = {.written = true, .bare = true},
     .extrema = true},
};

static wpk_err describe(struct wpk_program *program, int stage,
                        const struct wpk_parallelism *parallelism, struct wpk_site *out)
{
    wpk_err err = WPK_OK;
    *out = (struct wpk_site){.work = wpk_stage_points(&program->stages[stage]),
                             .parallelism = *parallelism};
    snprintf(out->name, sizeof(out->name), "%s",
             program->tensors[program->stages[stage].output].name);
    add_plain(out, NULL, "direct", &(struct wpk_site_choice){0});
    bool extrema = !wpk_contraction_is(program, stage);
    bool gathers = wpk_stage_gathers(program, &program->stages[stage]);
    for (size_t i = 0; i < sizeof(rewritings) / sizeof(rewritings[0]) && err == WPK_OK; i++) {
        if (rewritings[i].extrema == extrema && !gathers) {
            err = rewritings[i].list(&rewritings[i], program, stage, out);
        }
    }
    return err;
}

/* The site with the least work makes room. */
static void add_site(struct wpk_sites *sites, const struct wpk_site *site)
{
    if (sites->count == WPK_SITES_MAX) {
        int least = 0;
        for (int i = 1; i < sites->count; i++) {
            least = sites->site[i].work < sites->site[least].work ? i : least;
        }
        if (sites->site[least].work >= site->work) {
            return;
        }
        sites->count--;
        memmove(&sites->site[least], &sites->site[least + 1],
                (size_t)(sites->count - least) * sizeof(*site));
    }
    sites->site[sites->count++] = *site;
}

wpk_err wpk_sites_find(const struct wpk_program *program, const struct wpk_parallelism *parallelism,
                       struct wpk_sites *out)
{
    struct wpk_program copy = {0};
    bool prepare[WPK_STAGES_MAX];
    out->count = 0;
    wpk_err err = wpk_program_copy(program, &copy);
    wpk_program_mark_prepare(program, prepare);
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        struct wpk_site site;
        if (!prepare[s] && program->stages[s].reduction != WPK_REDUCE_NONE) {
            err = describe(&copy, s, parallelism, &site);
            if (err == WPK_OK && site.choice_count > 1) {
                add_site(out, &site);
            }
        }
    }
    wpk_program_fini(&copy);
    return err;
}

wpk_err wpk_site_apply(struct wpk_program *program, const struct wpk_site *site, int choice)
{
    WPK_ASSERT(choice >= 0 && choice < site->choice_count);
    const struct wpk_site_choice *c = &site->choice[choice];
    const struct wpk_rewriting *rewriting = c->rewriting;
    int stage = wpk_program_find_stage(program, site->name);
    if (rewriting == NULL || (rewriting->apply == NULL && rewriting->derive == NULL)) {
        return WPK_OK;
    }
    if (stage < 0) {
        return WPK_EUNSUPPORTED;
    }
    return rewriting->apply != NULL ? rewriting->apply(rewriting, program, stage, c->parameter)
                                    : rewriting->derive(program, stage);
}
