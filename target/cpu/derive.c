/* SPDX-License-Identifier: Apache-2.0 */
/* Deriving a variant for CPUs: the choices of its sites, borders or copies at the boundary, then
 * groups and genes. */
#include "ir/derive/derive.h"
#include "ir/data_index.h"
#include "search/variant.h"
#include "target/cpu/rules.h"

#include <stdio.h>
#include <string.h>

/* The inputs that get no border along a dimension, by name: derivations renumber tensors. */
struct bare {
    struct {
        char name[WPK_NAME_MAX];
        int dim;
    } input[WPK_TENSORS_MAX];
    int count;
};

/* The dimension of the tensor without a border, or -1. */
static int bare_dim(const struct bare *bare, const char *name)
{
    for (int i = 0; i < bare->count; i++) {
        if (strcmp(bare->input[i].name, name) == 0) {
            return bare->input[i].dim;
        }
    }
    return -1;
}

/* The inputs of the sites whose choice is to have no border. */
static void find_bare(const struct wpk_program *program, const struct wpk_space *space,
                      const struct wpk_variant *variant, struct bare *out)
{
    out->count = 0;
    for (int i = 0; i < space->sites->count; i++) {
        const struct wpk_site *site = &space->sites->site[i];
        int stage = wpk_program_writer(program, wpk_program_find_tensor(program, site->name));
        bool bare = stage >= 0 && site->choice[variant->choice[i]].bare; /* an output needs it */
        for (int t = 0; t < program->tensor_count && bare; t++) {
            int dim = program->tensors[t].role == WPK_ROLE_INPUT
                          ? wpk_site_bare_dim(program, stage, t)
                          : -1;
            if (dim >= 0 && bare_dim(out, program->tensors[t].name) < 0) {
                memcpy(out->input[out->count].name, program->tensors[t].name, WPK_NAME_MAX);
                out->input[out->count++].dim = dim;
            }
        }
    }
}

/* True if some load may leave the tensor along another dimension than `bare`. */
static bool is_left(const struct wpk_program *program, int tensor, int bare)
{
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        for (int d = 0; load.node->tensor == tensor && d < program->tensors[tensor].rank; d++) {
            int64_t low = 0, high = 0;
            const struct wpk_tensor *of = &program->tensors[tensor];
            wpk_index_range(program, load.stage, load.node->index[d], &low, &high);
            if (d != bare &&
                (low < -of->pad_before[d] || high >= of->extent[d] + of->pad_after[d])) {
                return true;
            }
        }
    }
    return false;
}

/* Names of the boundary tensors that need staging, collected before any of them moves. */
static wpk_err stage_all(struct wpk_program *program, const int *order, int rank,
                         const struct bare *bare)
{
    char names[WPK_TENSORS_MAX][WPK_NAME_MAX];
    int count = 0;
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        if (tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_OUTPUT) {
            snprintf(names[count++], WPK_NAME_MAX, "%s", tensor->name);
        }
    }
    for (int i = 0; i < count; i++) {
        int t = wpk_program_find_tensor(program, names[i]);
        const struct wpk_tensor *tensor = &program->tensors[t];
        bool reordered = order != NULL && tensor->rank == rank;
        bool leaves = is_left(program, t, bare_dim(bare, names[i]));
        wpk_err err = WPK_OK;
        if (tensor->role == WPK_ROLE_INPUT && wpk_tensor_gathers(program, t)) {
            continue; /* a few of its rows are read: it stays as it is */
        }
        if (tensor->role == WPK_ROLE_INPUT && (reordered || leaves)) {
            err = wpk_derive_stage_input(program, t, reordered ? order : NULL,
                                         bare_dim(bare, names[i]));
            /* read with several values outside, which no copy can hold: each load checks */
            err = err == WPK_EUNSUPPORTED && !reordered ? WPK_OK : err;
        } else if (tensor->role == WPK_ROLE_OUTPUT && reordered) {
            err = wpk_derive_stage_output(program, t, order);
        }
        if (err != WPK_OK) {
            return err;
        }
    }
    return WPK_OK;
}

/* Which site a tensor is of, by name: the one that it is the result of, or the one whose rewriting
 * added it. */
struct owners {
    struct {
        char name[WPK_NAME_MAX];
        int site; /* -1: none */
    } tensor[2 * WPK_TENSORS_MAX];
    int count;
};

/* The number of a tensor among the owners', or -1. */
static int find_owned(const struct owners *owners, const char *name)
{
    for (int i = 0; i < owners->count; i++) {
        if (strcmp(owners->tensor[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Tensors that are new are the site's.   shape  site: -1: of none */
static void note_owned(struct owners *owners, const struct wpk_program *program, int site)
{
    int most = (int)(sizeof(owners->tensor) / sizeof(owners->tensor[0]));
    for (int t = 0; t < program->tensor_count && owners->count < most; t++) {
        if (find_owned(owners, program->tensors[t].name) < 0) {
            memcpy(owners->tensor[owners->count].name, program->tensors[t].name, WPK_NAME_MAX);
            owners->tensor[owners->count++].site = site;
        }
    }
}

static wpk_err apply_choices(const struct wpk_space *space, const struct wpk_variant *variant,
                             bool late, struct wpk_program *program, struct owners *owners)
{
    wpk_err err = WPK_OK;
    note_owned(owners, program, -1);
    for (int i = 0; i < space->sites->count && err == WPK_OK; i++) {
        const struct wpk_site *site = &space->sites->site[i];
        if (site->choice[variant->choice[i]].late == late) {
            err = wpk_site_apply(program, site, variant->choice[i]);
            note_owned(owners, program, i);
        }
    }
    return err;
}

static wpk_err transform(const struct wpk_space *space, const struct wpk_variant *variant,
                         struct wpk_program *program, struct owners *owners)
{
    int rank = program->tensors[wpk_program_output(program)].rank;
    int order[WPK_RANK_MAX], dim[WPK_TENSORS_MAX];
    struct bare bare;
    find_bare(program, space, variant, &bare);
    owners->count = 0;
    note_owned(owners, program, -1);
    for (int i = 0; i < space->sites->count; i++) {
        int found = find_owned(owners, space->sites->site[i].name);
        if (found >= 0) {
            owners->tensor[found].site = i;
        }
    }
    wpk_err err = apply_choices(space, variant, false, program, owners);
    err = err == WPK_OK ? wpk_derive_borders(program) : err;
    if (err == WPK_OK) {
        for (int t = 0; t < program->tensor_count; t++) {
            dim[t] = bare_dim(&bare, program->tensors[t].name);
        }
        wpk_variant_order(rank, variant->last, order);
        err = variant->staged ? stage_all(program, variant->last >= 0 ? order : NULL, rank, &bare)
                              : wpk_derive_halo(program, dim);
    }
    err = err == WPK_OK ? apply_choices(space, variant, true, program, owners) : err;
    const struct wpk_machine *machine = &space->options.target.machine;
    err = err == WPK_OK ? wpk_derive_whole_rows(program, machine->lanes_max) : err;
    return err == WPK_OK ? wpk_plan_normalize(program, machine) : err;
}

wpk_err wpk_cpu_derive(const struct wpk_space *space, struct wpk_variant *variant)
{
    struct wpk_program *program = &variant->program;
    struct wpk_structure *structure = variant->plan;
    struct owners owners;
    wpk_err err = transform(space, variant, program, &owners);
    err = err == WPK_OK ? wpk_plan_derive(program, &structure->plan) : err;
    err = err == WPK_OK ? wpk_accesses_init(program, &structure->accesses) : err;
    if (err == WPK_OK) {
        /* The site of each group's contraction. Stages that normalizing adds between the
         * contraction and the root belong to no site. */
        for (int g = 0; g < structure->plan.group_count; g++) {
            const struct wpk_group *group = &structure->plan.group[g];
            int found = -1, m = group->contraction;
            structure->site_of[g] = -1;
            while (m >= 0 && found < 0) {
                int tensor = program->stages[group->member[m].stage].output;
                found = find_owned(&owners, program->tensors[tensor].name);
                m = group->member[m].consumer;
            }
            if (group->contraction >= 0 && found < 0) {
                found = find_owned(&owners, group->name);
            }
            structure->site_of[g] = found < 0 ? -1 : owners.tensor[found].site;
        }
        wpk_strides_derive(variant);
        err = wpk_genes_derive(variant, structure, &space->options);
    }
    err = err == WPK_OK ? wpk_genes_derive_back_end(variant, &space->options) : err;
    if (err == WPK_OK) {
        wpk_limits_derive(variant, &space->options);
    }
    return err;
}
