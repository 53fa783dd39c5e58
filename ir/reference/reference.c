/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating a program: which box of which tensor is computed when.
 *
 * All points: the stages one after the other, whole; an intermediate lives until its last use.
 * Chosen points: intermediates that are cheap are computed whole, once. Of the others each point
 * asks for a box: walking the stages backwards, the box a stage must produce gives, through the
 * ranges of its indices, the boxes it needs of the tensors it loads; walking forwards, the boxes
 * are computed. A box stays for the points after it: a sum over everything is computed once. */
#include "ir/reference/reference.h"

#include "ir/data_index.h"
#include "ir/node.h"
#include "ir/reference/tape.h"

#include <stdlib.h>
#include <string.h>

/* Multiply-adds up to which an intermediate is computed whole for chosen points. */
#define WHOLE_INTERMEDIATE_MAX 10000000.0
/* Elements of a box computed for one point: 256 MiB of doubles. */
#define BOX_ELEMENTS_MAX ((int64_t)1 << 25)

/* A half-open box of indices; empty when some high <= low. */
struct box {
    int64_t low[WPK_RANK_MAX];
    int64_t high[WPK_RANK_MAX];
    bool wanted;
};

struct evaluation {
    const struct wpk_program *program;
    struct wpk_tape_arithmetic arithmetic;
    int64_t runs;                          /* points to come, 1 for all at once */
    int output;                            /* tensor */
    bool live[WPK_STAGES_MAX];             /* the output depends on it */
    bool whole[WPK_STAGES_MAX];            /* computed whole, before any point */
    int last_use[WPK_TENSORS_MAX];         /* stage */
    struct wpk_tape *tape[WPK_STAGES_MAX]; /* owned */
    int *loads[WPK_STAGES_MAX];            /* owned; distinct load nodes */
    int load_count[WPK_STAGES_MAX];
    struct wpk_region region[WPK_TENSORS_MAX];
    double *memory[WPK_TENSORS_MAX]; /* owned, of intermediates */
    int64_t memory_elements[WPK_TENSORS_MAX];
    struct box held[WPK_TENSORS_MAX]; /* what memory holds for chosen points */
};

/* ---- set up */

static wpk_err find_output(struct evaluation *e, struct wpk_diag *diag)
{
    e->output = -1;
    for (int t = e->program->tensor_count - 1; t >= 0; t--) {
        e->output = e->program->tensors[t].role == WPK_ROLE_OUTPUT ? t : e->output;
    }
    if (e->output < 0 || wpk_program_writer(e->program, e->output) < 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "the program has no output that the interpreter could compute");
    }
    return WPK_OK;
}

/* Mark live stages and last uses, and list the loads of each live stage. */
static wpk_err trace(struct evaluation *e)
{
    const struct wpk_program *program = e->program;
    bool needed[WPK_TENSORS_MAX] = {false};
    needed[e->output] = true;
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        if (!needed[stage->output]) {
            continue;
        }
        e->live[s] = true;
        int *loads = malloc(((size_t)program->node_count + 1) * sizeof *loads);
        if (loads == NULL) {
            return WPK_ENOMEM;
        }
        int count = wpk_stage_loads(program, stage, loads, program->node_count);
        for (int i = 0; i < count; i++) {
            int tensor = program->nodes[loads[i]].tensor;
            if (!needed[tensor]) {
                needed[tensor] = true;
                e->last_use[tensor] = s;
            }
        }
        e->loads[s] = loads;
        e->load_count[s] = count;
    }
    return WPK_OK;
}

/* Make the region's numbers cells, rounded to the tensor's type, in memory of our own. */
static wpk_err copy_cells(struct evaluation *e, int t)
{
    enum wpk_dtype dtype = e->program->tensors[t].dtype;
    const double *number = e->region[t].value;
    int64_t count = wpk_tensor_elements(&e->program->tensors[t]);
    e->memory[t] = malloc((size_t)count * sizeof(double));
    if (e->memory[t] == NULL) {
        return WPK_ENOMEM;
    }
    for (int64_t i = 0; i < count; i++) {
        e->memory[t][i] = dtype == WPK_I64 ? wpk_cell_of(wpk_convert_int64(number[i]))
                                           : wpk_dtype_round(dtype, number[i]);
    }
    e->region[t].value = e->memory[t];
    return WPK_OK;
}

/* The elements that are indices lie inside their axes. */
static wpk_err check_indices(const struct evaluation *e, const struct wpk_reference_args *args,
                             struct wpk_diag *diag)
{
    const struct wpk_program *program = e->program;
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        enum wpk_dtype dtype = tensor->dtype == WPK_I64 ? WPK_I64 : WPK_F64; /* of the cells */
        const char *name = args->name[t] != NULL ? args->name[t] : tensor->name;
        struct wpk_index_bound bounds[WPK_INDEX_BOUNDS_MAX];
        int count = e->region[t].value != NULL ? wpk_index_bounds(program, t, bounds) : 0;
        for (int i = 0; i < count; i++) {
            wpk_err err = wpk_index_check(name, dtype, e->region[t].value, &bounds[i], diag);
            if (err != WPK_OK) {
                return err;
            }
        }
    }
    return WPK_OK;
}

static wpk_err bind_arguments(struct evaluation *e, const struct wpk_reference_args *args,
                              struct wpk_diag *diag)
{
    const struct wpk_program *program = e->program;
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        struct wpk_region *region = &e->region[t];
        for (int d = 0; d < tensor->rank; d++) {
            region->low[d] = 0;
            region->extent[d] = tensor->extent[d];
        }
        (void)wpk_region_set_dense(region, tensor->rank);
        bool is_argument = wpk_tensor_is_given(tensor);
        wpk_err err = WPK_OK;
        e->region[t].fixed = is_argument || tensor->role == WPK_ROLE_LITERAL;
        if (is_argument) {
            e->region[t].value = args->tensor[t];
            bool copies = tensor->dtype == WPK_I64 && !args->cells && args->tensor[t] != NULL;
            err = copies ? copy_cells(e, t) : WPK_OK;
        } else if (tensor->role == WPK_ROLE_LITERAL) {
            e->region[t].value = tensor->values;
            err = e->arithmetic.rounds || tensor->dtype == WPK_I64 ? copy_cells(e, t) : WPK_OK;
        }
        if (err != WPK_OK) {
            return err;
        }
    }
    for (int s = 0; s < program->stage_count; s++) {
        for (int i = 0; e->live[s] && i < e->load_count[s]; i++) {
            int t = program->nodes[e->loads[s][i]].tensor;
            if (e->region[t].value == NULL && wpk_program_writer(program, t) < 0) {
                return wpk_fail(diag, WPK_EINVAL, "no values for tensor %s",
                                program->tensors[t].name);
            }
        }
    }
    return check_indices(e, args, diag);
}

/* Make numbers of the output's cells, unless the caller takes cells. */
static void give(const struct evaluation *e, const struct wpk_reference_args *args, int64_t count,
                 double *value)
{
    bool converts = e->program->tensors[e->output].dtype == WPK_I64 && !args->cells;
    for (int64_t i = 0; converts && i < count; i++) {
        value[i] = wpk_cell_number(WPK_I64, value[i]);
    }
}

static wpk_err look_at(struct evaluation *e, const struct wpk_program *program,
                       struct wpk_diag *diag)
{
    e->program = program;
    wpk_err err = find_output(e, diag);
    return err == WPK_OK ? trace(e) : err;
}

static wpk_err start(struct evaluation *e, const struct wpk_program *program,
                     const struct wpk_reference_args *args,
                     const struct wpk_tape_arithmetic *arithmetic, struct wpk_diag *diag)
{
    e->arithmetic = *arithmetic;
    e->runs = 1;
    wpk_err err = look_at(e, program, diag);
    return err == WPK_OK ? bind_arguments(e, args, diag) : err;
}

static wpk_err finish(struct evaluation *e, wpk_err err, struct wpk_diag *diag)
{
    for (int s = 0; s < WPK_STAGES_MAX; s++) {
        wpk_tape_free(e->tape[s]);
        free(e->loads[s]);
    }
    for (int t = 0; t < WPK_TENSORS_MAX; t++) {
        free(e->memory[t]);
    }
    if (err == WPK_ENOMEM) {
        wpk_diag_set(diag, "out of memory for the reference's intermediates");
    }
    return err;
}

/* ---- one box of one stage */

/* Compute the box that the output's region describes into `value` and `magnitude`. */
static wpk_err compute(struct evaluation *e, int s, double *value, double *magnitude)
{
    const struct wpk_stage *stage = &e->program->stages[s];
    struct wpk_region *region = &e->region[stage->output];
    wpk_err err = WPK_OK;
    if (e->tape[s] == NULL) {
        int64_t extent[WPK_AXES_MAX];
        for (int a = 0; a < stage->axis_count; a++) {
            extent[a] = a < stage->rank ? region->extent[a] : stage->axes[a].extent;
        }
        const struct wpk_tape_use use = {
            .extent = extent, .runs = e->whole[s] ? 1 : e->runs, .regions = e->region};
        err = wpk_tape_new(e->program, stage, &use, &e->arithmetic, &e->tape[s]);
    }
    err = err == WPK_OK ? wpk_tape_run(e->tape[s], e->region, region, value, magnitude) : err;
    region->value = value;
    region->magnitude = magnitude;
    return err;
}

/* The same into memory of our own. */
static wpk_err compute_intermediate(struct evaluation *e, int s)
{
    int t = e->program->stages[s].output;
    int64_t elements = wpk_region_set_dense(&e->region[t], e->program->tensors[t].rank);
    if (elements > e->memory_elements[t]) {
        free(e->memory[t]);
        size_t bytes = (size_t)elements * (e->arithmetic.with_magnitude ? 2 : 1) * sizeof(double);
        e->memory[t] = malloc(bytes);
        e->memory_elements[t] = e->memory[t] == NULL ? 0 : elements;
        if (e->memory[t] == NULL) {
            return WPK_ENOMEM;
        }
    }
    return compute(e, s, e->memory[t],
                   e->arithmetic.with_magnitude ? e->memory[t] + elements : NULL);
}

/* ---- all points */

wpk_err wpk_evaluate(const struct wpk_program *program, const struct wpk_reference_args *args,
                     const struct wpk_tape_arithmetic *arithmetic, double *value, double *magnitude,
                     struct wpk_diag *diag)
{
    struct evaluation e = {0};
    wpk_err err = start(&e, program, args, arithmetic, diag);
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        if (!e.live[s]) {
            continue;
        }
        err = program->stages[s].output == e.output ? compute(&e, s, value, magnitude)
                                                    : compute_intermediate(&e, s);
        wpk_tape_free(e.tape[s]);
        e.tape[s] = NULL;
        for (int t = 0; t < e.program->tensor_count; t++) {
            if (e.last_use[t] == s && e.memory[t] != NULL) {
                free(e.memory[t]);
                e.memory[t] = NULL;
                e.memory_elements[t] = 0;
            }
        }
    }
    if (err == WPK_OK) {
        give(&e, args, wpk_tensor_elements(&program->tensors[e.output]), value);
    }
    return finish(&e, err, diag);
}

wpk_err wpk_reference_run(const struct wpk_program *program, const struct wpk_reference_args *args,
                          double *value, double *magnitude, struct wpk_diag *diag)
{
    const struct wpk_tape_arithmetic exact = {.with_magnitude = magnitude != NULL};
    return wpk_evaluate(program, args, &exact, value, magnitude, diag);
}

/* ---- chosen points */

/* Mark the intermediates that are computed whole: cheap ones that read only such ones and
 * inputs. */
static void mark_cheap(struct evaluation *e)
{
    const struct wpk_program *program = e->program;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        bool whole = e->live[s] && stage->output != e->output &&
                     wpk_stage_points(stage) <= WHOLE_INTERMEDIATE_MAX;
        for (int i = 0; whole && i < e->load_count[s]; i++) {
            int writer = wpk_program_writer(program, program->nodes[e->loads[s][i]].tensor);
            whole = writer < 0 || e->whole[writer];
        }
        e->whole[s] = whole;
    }
}

/* Grow `need` of the tensors that stage `s` loads by what `box` of its output asks for. */
static void spread(const struct evaluation *e, int s, const struct box *box, struct box *need)
{
    const struct wpk_stage *stage = &e->program->stages[s];
    int64_t low[WPK_AXES_MAX] = {0};
    int64_t extent[WPK_AXES_MAX] = {0};
    for (int a = 0; a < stage->axis_count; a++) {
        low[a] = a < stage->rank ? box->low[a] : 0;
        extent[a] = a < stage->rank ? box->high[a] - box->low[a] : stage->axes[a].extent;
    }
    for (int i = 0; i < e->load_count[s]; i++) {
        const struct wpk_node *load = &e->program->nodes[e->loads[s][i]];
        const struct wpk_tensor *tensor = &e->program->tensors[load->tensor];
        int writer = wpk_program_writer(e->program, load->tensor);
        if (writer < 0 || e->whole[writer]) {
            continue;
        }
        struct box part = {.wanted = true};
        for (int d = 0; d < tensor->rank; d++) {
            int64_t last;
            wpk_index_range_in(e->program, load->index[d], low, extent, &part.low[d], &last);
            part.low[d] = part.low[d] < 0 ? 0 : part.low[d];
            part.high[d] = last >= tensor->extent[d] ? tensor->extent[d] : last + 1;
            part.wanted = part.wanted && part.low[d] < part.high[d];
        }
        struct box *all = &need[load->tensor];
        for (int d = 0; part.wanted && d < tensor->rank; d++) {
            bool first = !all->wanted;
            all->low[d] = first || part.low[d] < all->low[d] ? part.low[d] : all->low[d];
            all->high[d] = first || part.high[d] > all->high[d] ? part.high[d] : all->high[d];
        }
        all->wanted = all->wanted || part.wanted;
    }
}

/* False when the box is too large to compute for one point. */
static bool set_box(struct wpk_region *region, const struct box *box, int rank)
{
    int64_t elements = 1;
    for (int d = 0; d < rank; d++) {
        region->low[d] = box->low[d];
        region->extent[d] = box->high[d] - box->low[d];
        elements *= region->extent[d];
        if (elements > BOX_ELEMENTS_MAX) {
            return false;
        }
    }
    return true;
}

static bool contains(const struct box *outer, const struct box *inner, int rank)
{
    bool inside = outer->wanted;
    for (int d = 0; inside && d < rank; d++) {
        inside = outer->low[d] <= inner->low[d] && inner->high[d] <= outer->high[d];
    }
    return inside;
}

/* The boxes to compute for a point; what is held already is not wanted.
 *   shape  need [tensor_count] */
static void plan_point(const struct evaluation *e, const int64_t *point, struct box *need)
{
    const struct wpk_program *program = e->program;
    memset(need, 0, (size_t)program->tensor_count * sizeof *need);
    need[e->output].wanted = true;
    for (int d = 0; d < program->tensors[e->output].rank; d++) {
        WPK_ASSERT(point[d] >= 0);
        WPK_ASSERT(point[d] < program->tensors[e->output].extent[d]);
        need[e->output].low[d] = point[d];
        need[e->output].high[d] = point[d] + 1;
    }
    for (int s = program->stage_count - 1; s >= 0; s--) {
        int t = program->stages[s].output;
        if (!e->live[s] || e->whole[s] || !need[t].wanted) {
            continue;
        }
        if (contains(&e->held[t], &need[t], program->tensors[t].rank)) {
            need[t].wanted = false;
        } else {
            spread(e, s, &need[t], need);
        }
    }
}

static wpk_err compute_point(struct evaluation *e, const int64_t *point, double *value,
                             double *magnitude, struct wpk_diag *diag)
{
    const struct wpk_program *program = e->program;
    struct box need[WPK_TENSORS_MAX];
    plan_point(e, point, need);
    wpk_err err = WPK_OK;
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        int t = program->stages[s].output;
        const struct wpk_tensor *tensor = &program->tensors[t];
        if (!need[t].wanted) {
            continue;
        }
        if (!set_box(&e->region[t], &need[t], tensor->rank)) {
            return wpk_fail(diag, WPK_EUNSUPPORTED,
                            "one point needs too much of the intermediate %s", tensor->name);
        }
        if (t == e->output) {
            (void)wpk_region_set_dense(&e->region[t], tensor->rank);
            err = compute(e, s, value, magnitude);
        } else {
            err = compute_intermediate(e, s);
            e->held[t] = need[t];
        }
    }
    return err;
}

/* Iterations that a point takes; what it computes is held afterwards. */
static double count_point(struct evaluation *e, const int64_t *point)
{
    const struct wpk_program *program = e->program;
    struct box need[WPK_TENSORS_MAX];
    double all = 0;
    plan_point(e, point, need);
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        const struct box *box = &need[stage->output];
        if (!box->wanted) {
            continue;
        }
        double iterations = 1;
        for (int a = 0; a < stage->axis_count; a++) {
            int64_t extent = a < stage->rank ? box->high[a] - box->low[a] : stage->axes[a].extent;
            iterations *= (double)extent;
        }
        all += iterations;
        if (stage->output != e->output) {
            e->held[stage->output] = *box;
        }
    }
    return all;
}

wpk_err wpk_reference_points_within(const struct wpk_program *program, const int64_t *points,
                                    int64_t count, double iterations_max, int64_t *out,
                                    struct wpk_diag *diag)
{
    struct evaluation e = {0};
    double iterations = 0;
    wpk_err err = look_at(&e, program, diag);
    if (err == WPK_OK) {
        mark_cheap(&e);
        for (int s = 0; s < program->stage_count; s++) {
            iterations += e.whole[s] ? wpk_stage_points(&program->stages[s]) : 0;
        }
    }
    *out = 0;
    for (int64_t i = 0; i < count && err == WPK_OK; i++) {
        iterations += count_point(&e, points + i * program->tensors[e.output].rank);
        if (iterations > iterations_max) {
            break;
        }
        *out = i + 1;
    }
    return finish(&e, err, diag);
}

wpk_err wpk_evaluate_at(const struct wpk_program *program, const struct wpk_reference_args *args,
                        const struct wpk_tape_arithmetic *arithmetic, const int64_t *points,
                        int64_t count, double *value, double *magnitude, struct wpk_diag *diag)
{
    struct evaluation e = {0};
    wpk_err err = start(&e, program, args, arithmetic, diag);
    if (err == WPK_OK) {
        mark_cheap(&e);
        for (int s = 0; s < e.program->stage_count && err == WPK_OK; s++) {
            err = e.whole[s] ? compute_intermediate(&e, s) : WPK_OK;
            e.region[e.program->stages[s].output].fixed = e.whole[s];
        }
    }
    e.runs = count;
    int rank = program->tensors[e.output].rank;
    for (int64_t i = 0; i < count && err == WPK_OK; i++) {
        err = compute_point(&e, points + i * rank, value + i,
                            magnitude != NULL ? magnitude + i : NULL, diag);
    }
    if (err == WPK_OK) {
        give(&e, args, count, value);
    }
    return finish(&e, err, diag);
}

wpk_err wpk_reference_run_at(const struct wpk_program *program,
                             const struct wpk_reference_args *args, const int64_t *points,
                             int64_t count, double *value, double *magnitude, struct wpk_diag *diag)
{
    const struct wpk_tape_arithmetic exact = {.with_magnitude = magnitude != NULL};
    return wpk_evaluate_at(program, args, &exact, points, count, value, magnitude, diag);
}
