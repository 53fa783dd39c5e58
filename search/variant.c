/* SPDX-License-Identifier: Apache-2.0 */
/* Deriving one variant: its order of axes, the choices of its sites, borders or copies at the
 * boundary, then groups and genes. An order "last<p>" moves axis p of all tensors of the output's
 * rank to the end: that axis becomes contiguous at the boundary (layouts "any") or behind staging
 * copies ("fixed"). */
#include "search/variant.h"

#include "ir/data_index.h"
#include "ir/derive/derive.h"
#include "ir/derive/rewrite.h"
#include "ir/notation/notation.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/space_kind.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- orders of axes */

static void order_with_last(int rank, int last, int *order)
{
    int n = 0;
    for (int d = 0; d < rank; d++) {
        if (d != last) {
            order[n++] = d;
        }
    }
    order[n] = last;
}

/* ---- the program */

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

static wpk_err add_halos(struct wpk_program *program, const struct bare *bare)
{
    int dim[WPK_TENSORS_MAX];
    for (int t = 0; t < program->tensor_count; t++) {
        dim[t] = bare_dim(bare, program->tensors[t].name);
    }
    return wpk_derive_halo(program, dim);
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

/* Move the axis to the end of all tensors of the output's rank. */
static wpk_err permute(struct wpk_program *program, int last)
{
    int rank = program->tensors[wpk_program_output(program)].rank, order[WPK_RANK_MAX];
    order_with_last(rank, last, order);
    return wpk_derive_permute(program, order, rank);
}

static wpk_err transform(const struct wpk_space *space, const struct wpk_variant *variant,
                         struct wpk_program *program, struct owners *owners)
{
    int rank = program->tensors[wpk_program_output(program)].rank;
    int order[WPK_RANK_MAX];
    struct bare bare;
    wpk_err err = wpk_program_tidy(program); /* no stage that the output does not need */
    if (err == WPK_OK && variant->last >= 0) {
        order_with_last(rank, variant->last, order);
        err = wpk_derive_permute(program, order, rank);
    }
    if (err == WPK_OK) {
        find_bare(program, space, variant, &bare);
        owners->count = 0;
        note_owned(owners, program, -1);
        for (int i = 0; i < space->sites->count; i++) {
            int found = find_owned(owners, space->sites->site[i].name);
            if (found >= 0) {
                owners->tensor[found].site = i;
            }
        }
    }
    err = err == WPK_OK ? apply_choices(space, variant, false, program, owners) : err;
    err = err == WPK_OK ? wpk_derive_borders(program) : err;
    if (err == WPK_OK) {
        err = variant->staged ? stage_all(program, variant->last >= 0 ? order : NULL, rank, &bare)
                              : add_halos(program, &bare);
    }
    err = err == WPK_OK ? apply_choices(space, variant, true, program, owners) : err;
    const struct wpk_machine *machine = &space->options.target.machine;
    err = err == WPK_OK ? wpk_derive_whole_rows(program, machine->lanes_max) : err;
    return err == WPK_OK ? wpk_plan_normalize(program, machine) : err;
}

/* ---- one variant */

void wpk_variant_drop(struct wpk_variant *variant)
{
    struct wpk_structure *structure = variant->plan;
    for (int i = 0; i < variant->gene_count; i++) {
        wpk_gene_fini(&variant->genes[i]);
    }
    free(variant->genes);
    if (structure != NULL) {
        wpk_accesses_fini(&structure->accesses);
        wpk_plan_fini(&structure->plan);
        free(structure->kind);
    }
    free(structure);
    wpk_program_fini(&variant->program);
    variant->genes = NULL;
    variant->gene_count = 0;
    variant->plan = NULL;
    variant->state = WPK_VARIANT_NONE;
}

void wpk_variant_fini(struct wpk_variant *variant)
{
    if (variant != NULL) {
        wpk_variant_drop(variant);
        memset(variant, 0, offsetof(struct wpk_variant, program));
    }
}

void wpk_variants_keep(struct wpk_space *space, const bool *keep)
{
    int kept = 0;
    for (int v = 0; v < space->variant_count; v++) {
        struct wpk_variant *from = &space->variants[v], *to = &space->variants[kept];
        if (!keep[v]) {
            wpk_variant_fini(from);
            continue;
        }
        kept++;
        if (from != to) {
            memcpy(to, from, offsetof(struct wpk_variant, program));
            wpk_program_move(&from->program, &to->program);
            memset(from, 0, offsetof(struct wpk_variant, program));
        }
    }
    space->variant_count = kept;
}

/* A space may keep many variants: give back what building the program took beyond it. */
static void trim(struct wpk_program *program)
{
    size_t used = (size_t)program->node_count * sizeof(*program->nodes);
    struct wpk_node *nodes = used == 0 ? NULL : realloc(program->nodes, used);
    if (nodes != NULL) {
        program->nodes = nodes;
        program->node_capacity = program->node_count;
    }
}

/* FNV-1a, 64 bits, of the program's text. */
static wpk_err identify(struct wpk_variant *variant)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_program_print(&variant->program, &text);
    wpk_buf_append_text(&text, variant->layout);
    err = err == WPK_OK ? wpk_buf_status(&text) : err;
    variant->identity = 0xcbf29ce484222325u;
    for (size_t i = 0; i < text.size && err == WPK_OK; i++) {
        variant->identity = (variant->identity ^ (uint8_t)text.data[i]) * 0x100000001b3u;
    }
    wpk_buf_fini(&text);
    return err;
}

/* The variant is complete, or there is none. */
static wpk_err finish(struct wpk_variant *variant, wpk_err err)
{
    if (err == WPK_OK) {
        trim(&variant->program);
        variant->state = WPK_VARIANT_DERIVED;
    } else {
        wpk_variant_drop(variant);
        variant->state = err == WPK_ENOMEM ? WPK_VARIANT_LISTED : WPK_VARIANT_NONE;
    }
    return err;
}

/* Of a space without groups. */
static wpk_err derive_kind(const struct wpk_space *space, const struct wpk_space_kind *kind,
                           struct wpk_variant *variant)
{
    struct wpk_structure *structure = variant->plan;
    wpk_err err = wpk_program_tidy(&variant->program);
    err = err == WPK_OK && variant->last >= 0 ? permute(&variant->program, variant->last) : err;
    err = err == WPK_OK ? kind->derive(space, variant) : err;
    err = err == WPK_OK ? wpk_accesses_init(&variant->program, &structure->accesses) : err;
    return err == WPK_OK ? wpk_genes_derive_back_end(variant, &space->options) : err;
}

wpk_err wpk_variant_derive(const struct wpk_space *space, struct wpk_variant *variant)
{
    WPK_ASSERT(variant->state == WPK_VARIANT_LISTED);
    struct wpk_program *program = &variant->program;
    struct wpk_structure *structure = calloc(1, sizeof(*structure));
    struct owners owners;
    variant->plan = structure;
    wpk_err err = structure == NULL ? WPK_ENOMEM : wpk_program_copy(&space->program, program);
    const struct wpk_space_kind *kind = space->options.target.rules->space;
    if (kind != NULL) {
        err = err == WPK_OK ? derive_kind(space, kind, variant) : err;
        return finish(variant, err);
    }
    err = err == WPK_OK ? transform(space, variant, program, &owners) : err;
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
    err = err == WPK_OK && space->lazy ? identify(variant) : err;
    err = err != WPK_OK && program->full ? wpk_program_full_error(program) : err;
    if (err == WPK_OK) {
        wpk_limits_derive(variant, &space->options);
    }
    return finish(variant, err);
}

bool wpk_variant_is_short(const struct wpk_space *space, int variant)
{
    const struct wpk_program *program = &space->program;
    int last = space->variants[variant].last, rank = 0;
    for (int t = 0; t < program->tensor_count; t++) {
        bool output = program->tensors[t].role == WPK_ROLE_OUTPUT;
        rank = output ? program->tensors[t].rank : rank;
    }
    for (int t = 0; t < program->tensor_count && last >= 0; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        bool permuted = tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_OUTPUT;
        if (permuted && tensor->rank == rank &&
            tensor->extent[last] >= space->options.target.machine.lanes_max) {
            return false;
        }
    }
    return last >= 0;
}

bool wpk_variant_algorithm(const struct wpk_variant *variant, int site,
                           struct wpk_variant_algorithm *out)
{
    const char *word = variant->algorithm;
    for (int i = 0; i < site && *word != '\0'; i++) {
        word += strcspn(word, " ");
        word += *word == ' ';
    }
    int length = (int)strcspn(word, " "), name = (int)strcspn(word, "= ");
    bool named = word[name] == '=';
    snprintf(out->gene, sizeof(out->gene), "algorithm%s%.*s", named ? "." : "", named ? name : 0,
             word);
    snprintf(out->value, sizeof(out->value), "%.*s", named ? length - name - 1 : length,
             word + (named ? name + 1 : 0));
    return length > 0;
}

/* ---- the boundary */

wpk_err wpk_variant_boundary(const struct wpk_variant *variant, const struct wpk_program *original,
                             int tensor, struct wpk_tensor_type *out)
{
    const struct wpk_tensor *logical = &original->tensors[tensor];
    int physical = wpk_program_find_tensor(&variant->program, logical->name);
    if (physical < 0) {
        return WPK_ENOENT;
    }
    memset(out, 0, sizeof(*out));
    out->dtype = logical->dtype;
    out->rank = logical->rank;
    memcpy(out->extent, logical->extent, sizeof(out->extent));
    out->layout = wpk_layout_row_major(logical->rank);
    int output = wpk_program_output(original);
    int last = variant->staged ? -1 : variant->last;
    if (last >= 0 && logical->rank == original->tensors[output].rank &&
        logical->role != WPK_ROLE_CONSTANT) {
        order_with_last(logical->rank, last, out->layout.axis);
    }
    const struct wpk_tensor *laid = &variant->program.tensors[physical];
    for (int d = 0; d < laid->rank && laid->rank == logical->rank; d++) { /* else without borders */
        out->layout.pad_before[out->layout.axis[d]] = laid->pad_before[d];
        out->layout.pad_after[out->layout.axis[d]] = laid->pad_after[d];
    }
    return WPK_OK;
}
