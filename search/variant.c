/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms are tried on every order of axes and kept where they apply; nothing is listed by
 * operator. An order "last<p>" moves axis p of all tensors of the output's rank to the end: that
 * axis becomes contiguous at the boundary (layouts "any") or behind staging copies ("fixed"). */
#include "search/variant.h"

#include "op/contraction.h"
#include "op/cost.h"
#include "op/derive.h"
#include "op/winograd_choice.h"
#include "search/gene_list.h"
#include "search/genes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- orders of axes */

static int find_role(const struct wpk_program *program, enum wpk_role role)
{
    for (int t = 0; t < program->tensor_count; t++) {
        if (program->tensors[t].role == role) {
            return t;
        }
    }
    return -1;
}

/* Is dimension p of every input of the output's rank indexed by one axis alone, nowhere through a
 * window? Then it can be the contiguous one. */
static bool may_be_last(const struct wpk_program *program, int rank, int p)
{
    bool used = false;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
        for (int i = 0; i < count; i++) {
            const struct wpk_node *load = &program->nodes[loads[i]];
            const struct wpk_tensor *tensor = &program->tensors[load->tensor];
            if (tensor->role != WPK_ROLE_INPUT || tensor->rank != rank) {
                continue;
            }
            if (wpk_index_axis(program, load->index[p]) < 0) {
                return false;
            }
            used = true;
        }
    }
    return used;
}

static bool has_window(const struct wpk_program *program)
{
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
        for (int i = 0; i < count; i++) {
            const struct wpk_node *load = &program->nodes[loads[i]];
            for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
                if (program->tensors[load->tensor].role == WPK_ROLE_INPUT &&
                    wpk_index_axis(program, load->index[d]) < 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

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

/* ---- one variant */

struct request {
    int64_t winograd[WPK_WINOGRAD_PAIRS_MAX]; /* m of each axis, 0: no */
    double error_sums, error_rest;            /* of it: see wpk_variant */
    bool phases;                              /* a strided window is cut into phases first */
    bool im2col;
    int last;    /* axis moved to the end, -1: as written */
    bool staged; /* inputs that leave or are reordered go through copies */
    bool bare;   /* the first windowed dimension gets no border */
};

/* The first dimension of an input that is read through a window, or -1. */
static int first_window(const struct wpk_program *program)
{
    int found = -1;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
        for (int i = 0; i < count; i++) {
            const struct wpk_node *load = &program->nodes[loads[i]];
            for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
                int64_t low = 0, high = 0;
                wpk_index_range(program, stage, load->index[d], &low, &high);
                bool leaves = low < 0 || high >= program->tensors[load->tensor].extent[d];
                if (program->tensors[load->tensor].role == WPK_ROLE_INPUT && leaves &&
                    (found < 0 || d < found)) {
                    found = d;
                }
            }
        }
    }
    return found;
}

/* Names of the boundary tensors that need staging, collected before any of them moves. */
static wpk_err stage_all(struct wpk_program *program, const int *order, int rank, int bare)
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
        bool leaves = false;
        for (int s = 0; s < program->stage_count; s++) {
            const struct wpk_stage *stage = &program->stages[s];
            int loads[WPK_LOADS_MAX];
            int n = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
            for (int k = 0; k < n; k++) {
                leaves = leaves || (program->nodes[loads[k]].tensor == t &&
                                    wpk_load_may_leave(program, stage, loads[k]));
            }
        }
        wpk_err err = WPK_OK;
        if (tensor->role == WPK_ROLE_INPUT && (reordered || leaves)) {
            err = wpk_derive_stage_input(program, t, reordered ? order : NULL, bare);
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

static wpk_err transform(struct wpk_program *program, const struct request *request,
                         const struct wpk_machine *machine)
{
    int rank = program->tensors[find_role(program, WPK_ROLE_OUTPUT)].rank;
    int order[WPK_RANK_MAX];
    wpk_err err = WPK_OK;
    if (request->last >= 0) {
        order_with_last(rank, request->last, order);
        err = wpk_derive_permute(program, order, rank);
    }
    if (err == WPK_OK && request->phases) {
        err = wpk_derive_phases(program, request->winograd);
    }
    if (err == WPK_OK && request->winograd[0] > 0) {
        err = wpk_derive_winograd_per_axis(program, request->winograd);
    }
    if (err == WPK_OK && request->im2col) {
        err = wpk_derive_im2col(program);
    }
    int bare = -1;
    if (err == WPK_OK && request->bare) {
        bare = first_window(program);
        err = bare < 0 ? WPK_EUNSUPPORTED : WPK_OK;
    }
    if (err == WPK_OK && request->staged) {
        err = stage_all(program, request->last >= 0 ? order : NULL, rank, bare);
    } else if (err == WPK_OK) {
        err = wpk_derive_halo(program, bare);
    }
    return err == WPK_OK ? wpk_plan_normalize(program, machine) : err;
}

void wpk_variant_fini(struct wpk_variant *variant)
{
    if (variant == NULL) {
        return;
    }
    for (int i = 0; i < variant->gene_count; i++) {
        wpk_gene_fini(&variant->genes[i]);
    }
    free(variant->genes);
    if (variant->plan != NULL) {
        wpk_accesses_fini(&((struct wpk_structure *)variant->plan)->accesses);
    }
    free(variant->plan);
    wpk_program_fini(&variant->program);
    memset(variant, 0, sizeof(*variant));
}

static void name_winograd(const struct request *request, struct wpk_variant *out)
{
    const char *phased = request->phases ? "phased-" : "";
    long long m = request->winograd[0], other = request->winograd[1];
    if (m == other) {
        snprintf(out->algorithm, sizeof(out->algorithm), "%swinograd(%lld)", phased, m);
    } else {
        snprintf(out->algorithm, sizeof(out->algorithm), "%swinograd(%lld,%lld)", phased, m, other);
    }
}

static wpk_err build_variant(const struct wpk_program *program, const struct request *request,
                             const struct wpk_space_options *options, struct wpk_variant *out)
{
    memset(out, 0, sizeof(*out));
    struct wpk_structure *structure = calloc(1, sizeof(*structure));
    out->plan = structure;
    wpk_err err = structure == NULL ? WPK_ENOMEM : wpk_program_copy(program, &out->program);
    if (err == WPK_OK) {
        err = transform(&out->program, request, &options->target.machine);
    }
    if (err == WPK_OK) {
        err = wpk_plan_derive(&out->program, &structure->plan);
    }
    err = err == WPK_OK ? wpk_accesses_init(&out->program, &structure->accesses) : err;
    if (err == WPK_OK) {
        wpk_strides_derive(out);
        err = wpk_genes_derive(out, structure, options);
    }
    if (err != WPK_OK) {
        wpk_variant_fini(out);
        return err;
    }
    out->error_sums = 1;
    if (request->winograd[0] > 0) {
        name_winograd(request, out);
        out->error_sums = request->error_sums;
        out->error_rest = request->error_rest;
    } else {
        snprintf(out->algorithm, sizeof(out->algorithm), "%s",
                 request->im2col ? "im2col" : "direct");
    }
    if (request->bare) {
        snprintf(out->algorithm, sizeof(out->algorithm), "bare");
    }
    const char *boundary = request->staged ? "staged" : "halo";
    out->boundary_last = request->staged ? -1 : request->last;
    if (request->last >= 0) {
        snprintf(out->layout, sizeof(out->layout), "%s-last%d", boundary, request->last);
    } else {
        snprintf(out->layout, sizeof(out->layout), "%s", request->staged ? "staged" : "asis");
    }
    return WPK_OK;
}

static wpk_err add_variant(const struct wpk_program *program, const struct request *request,
                           struct wpk_space *space)
{
    if (space->variant_count == WPK_VARIANTS_MAX) {
        return WPK_OK;
    }
    struct wpk_variant *grown =
        realloc(space->variants, (size_t)(space->variant_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return WPK_ENOMEM;
    }
    space->variants = grown;
    wpk_err err =
        build_variant(program, request, &space->options, &space->variants[space->variant_count]);
    space->variant_count += err == WPK_OK;
    /* that an algorithm does not apply, or outgrows a limit, is an answer */
    return err == WPK_ENOMEM ? err : WPK_OK;
}

/* Does some contraction have an axis short enough to be unrolled for its border? */
static bool borders_unroll(const struct wpk_program *program)
{
    int contraction = wpk_contraction_find(program), bare = first_window(program);
    int loads[WPK_LOADS_MAX];
    if (contraction < 0 || bare < 0) {
        return false;
    }
    const struct wpk_stage *stage = &program->stages[contraction];
    int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
    for (int i = 0; i < count; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        struct wpk_affine affine;
        if (program->tensors[load->tensor].role != WPK_ROLE_INPUT ||
            bare >= program->tensors[load->tensor].rank ||
            !wpk_index_affine(program, load->index[bare], &affine)) {
            continue;
        }
        for (int a = 0; a < stage->axis_count; a++) {
            if (affine.coefficient[a] != 0 && stage->axes[a].extent > WPK_BORDER_EXTENT_MAX) {
                return false;
            }
        }
        return true;
    }
    return false;
}

/* Minimal filtering with the sizes that pay, of the window or of its phases. */
static wpk_err add_winograd(const struct wpk_program *program, struct request request,
                            struct wpk_space *space)
{
    struct wpk_winograd_choice choices[WPK_WINOGRAD_CHOICES_MAX];
    struct wpk_program copy = {0};
    wpk_err err = WPK_OK;
    for (int phases = 0; phases < 2 && err == WPK_OK; phases++) {
        err = wpk_program_copy(program, &copy);
        if (err == WPK_OK && phases > 0 &&
            wpk_derive_phases(&copy, (const int64_t[WPK_WINOGRAD_PAIRS_MAX]){1, 1}) != WPK_OK) {
            wpk_program_fini(&copy);
            break;
        }
        int count = err == WPK_OK ? wpk_winograd_choices(&copy, choices) : 0;
        wpk_program_fini(&copy);
        request.phases = phases > 0;
        for (int i = count - 1; i >= 0 && err == WPK_OK; i--) {
            memcpy(request.winograd, choices[i].m, sizeof(request.winograd));
            request.error_sums = choices[i].error;
            request.error_rest = choices[i].error_rest;
            err = add_variant(program, &request, space);
        }
    }
    return err;
}

static wpk_err add_algorithms(const struct wpk_program *program, struct request request,
                              struct wpk_space *space)
{
    wpk_err err = add_variant(program, &request, space);
    err = err == WPK_OK ? add_winograd(program, request, space) : err;
    request.bare = true;
    err = err == WPK_OK && borders_unroll(program) ? add_variant(program, &request, space) : err;
    request.bare = false;
    request.im2col = true;
    return err == WPK_OK ? add_variant(program, &request, space) : err;
}

/* An input or constant that the output does not depend on, or -1: kernels would not take it. */
static int find_idle(const struct wpk_program *program)
{
    bool needed[WPK_TENSORS_MAX] = {false};
    needed[find_role(program, WPK_ROLE_OUTPUT)] = true;
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
        for (int i = 0; i < count && needed[stage->output]; i++) {
            needed[program->nodes[loads[i]].tensor] = true;
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

/* Whether there can be a space at all, before anything is derived. */
static wpk_err check_program(const struct wpk_program *program, struct wpk_diag *diag)
{
    if (!wpk_program_loads_fit(program)) {
        wpk_diag_set(diag, "a stage of this program reads tensors in more than %d places",
                     WPK_LOADS_MAX);
        return WPK_EUNSUPPORTED;
    }
    int idle = find_idle(program);
    if (idle >= 0) {
        wpk_diag_set(diag, "the output does not depend on %s", program->tensors[idle].name);
        return WPK_EUNSUPPORTED;
    }
    return WPK_OK;
}

wpk_err wpk_variants_derive(const struct wpk_program *program, struct wpk_space *space,
                            struct wpk_diag *diag)
{
    int output = find_role(program, WPK_ROLE_OUTPUT);
    WPK_ASSERT(output >= 0);
    int rank = program->tensors[output].rank;
    bool any = strcmp(space->options.layouts, "any") == 0;
    wpk_err err = check_program(program, diag);
    if (err != WPK_OK) {
        return err;
    }
    bool window = has_window(program);
    /* contiguous channels first: what a window slides over is then a whole vector */
    bool contracts = wpk_contraction_find(program) >= 0;
    for (int p = 0; p + 1 < rank && err == WPK_OK && (window || contracts); p++) {
        if (program->tensors[output].extent[p] > 1 && may_be_last(program, rank, p)) {
            err = add_algorithms(program, (struct request){.last = p, .staged = !any}, space);
        }
    }
    /* as written: where no other order applies, or where another one costs copies */
    struct request plain = {.last = -1, .staged = !any};
    if (err == WPK_OK && (space->variant_count == 0 || !window)) {
        err = add_algorithms(program, plain, space);
    } else if (err == WPK_OK && !any) {
        err = add_variant(program, &plain, space);
    }
    if (err == WPK_OK && space->variant_count == 0) {
        wpk_diag_set(diag, "no implementation can be derived for this program");
        err = WPK_EUNSUPPORTED;
    }
    return err;
}

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
    int output = find_role(original, WPK_ROLE_OUTPUT);
    if (variant->boundary_last >= 0 && logical->rank == original->tensors[output].rank &&
        logical->role != WPK_ROLE_CONSTANT) {
        order_with_last(logical->rank, variant->boundary_last, out->layout.axis);
    }
    const struct wpk_tensor *laid = &variant->program.tensors[physical];
    for (int d = 0; d < laid->rank; d++) {
        out->layout.pad_before[out->layout.axis[d]] = laid->pad_before[d];
        out->layout.pad_after[out->layout.axis[d]] = laid->pad_after[d];
    }
    return WPK_OK;
}
