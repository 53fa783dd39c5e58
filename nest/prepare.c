/* SPDX-License-Identifier: Apache-2.0 */
/* A trial prepares a kernel's constants up to three times, and a user's program once for each
 * kernel that it opens. The schedule is fixed: it is not worth a search, and candidates share its
 * object.
 *
 * Lanes run along one axis of each stage. The main program reads a prepared tensor along its last
 * axis, so the lanes of the stage that writes it run along that one. From there the choice goes
 * back to the stages that are read, so that only the first of them gathers values one by one.
 * Intermediate tensors are stored with the axis of lanes last.
 *
 * A transform (Winograd's) has axes that the constants do not have. They are unrolled inside the
 * loops over the others: each constant is read once, and what is between lies in registers. */
#include "nest/schedule.h"

#include "common/cuda_machine.h"
#include "ir/infinite.h"
#include "nest/nest.h"

#include <string.h>

#define LANES_MAX 16
#define LANES_MIN 4
#define UNROLLED_TERMS_MAX 16
#define UNROLLED_POINTS_MAX 64 /* of a transform */

/* The axis of each stage that runs in lanes, -1: none. */
struct lanes {
    int axis[WPK_STAGES_MAX];
    int64_t count[WPK_STAGES_MAX];
};

/* The largest power of two that divides the extent. */
static int64_t lanes_of(int64_t extent)
{
    int64_t lanes = LANES_MAX;
    while (extent % lanes != 0) {
        lanes /= 2;
    }
    return lanes;
}

/* `wanted` if it divides well; else what divides best, of an output only the last axis. */
static void choose(const struct wpk_program *program, int s, int wanted, struct lanes *lanes)
{
    const struct wpk_stage *stage = &program->stages[s];
    const struct wpk_tensor *tensor = &program->tensors[stage->output];
    bool stored = tensor->role == WPK_ROLE_OUTPUT;
    int first = stored ? stage->rank - 1 : 0;
    lanes->axis[s] = -1;
    lanes->count[s] = 1;
    for (int a = first; a >= 0 && a < stage->rank && tensor->dtype != WPK_BOOL; a++) {
        int64_t count = lanes_of(stage->axes[a].extent);
        bool better = count >= lanes->count[s];
        if (count >= LANES_MIN && (a == wanted || (better && lanes->axis[s] != wanted))) {
            lanes->axis[s] = a;
            lanes->count[s] = count;
        }
    }
}

/* Consumers come after what they read: the last stage chooses first. */
static void choose_all(const struct wpk_program *program, struct lanes *lanes)
{
    int wanted[WPK_STAGES_MAX];
    for (int s = 0; s < program->stage_count; s++) {
        wanted[s] = -2; /* no axis, nor what -1 stands for */
    }
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        choose(program, s, wanted[s], lanes);
        for (struct wpk_loads load = wpk_loads_of(program, stage);
             wpk_loads_next(&load) && lanes->axis[s] >= 0;) {
            int writer = wpk_program_writer(program, load.node->tensor);
            for (int d = 0; writer >= 0 && d < program->tensors[load.node->tensor].rank; d++) {
                struct wpk_affine affine;
                if (wpk_index_affine(program, load.node->index[d], &affine) &&
                    affine.coefficient[lanes->axis[s]] == 1) {
                    wanted[writer] = d;
                }
            }
        }
    }
}

/* ---- transforms */

/* For each axis of each stage, the axes of the output's stage that it moves with, as bits. */
struct moves {
    unsigned of[WPK_STAGES_MAX][WPK_AXES_MAX];
    unsigned by_constants; /* that the indices of constants move with */
    bool affine;
};

/* Carry on from a stage to what it reads. */
static void follow_load(const struct wpk_program *program, int s, const struct wpk_node *load,
                        struct moves *moves)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    int writer = wpk_program_writer(program, load->tensor);
    for (int d = 0; d < tensor->rank; d++) {
        struct wpk_affine affine;
        unsigned with = 0;
        moves->affine = moves->affine && wpk_index_affine(program, load->index[d], &affine);
        for (int a = 0; moves->affine && a < program->stages[s].axis_count; a++) {
            with |= affine.coefficient[a] != 0 ? moves->of[s][a] : 0;
        }
        if (writer >= 0) {
            moves->of[writer][d] |= with;
        } else if (tensor->role != WPK_ROLE_LITERAL) {
            moves->by_constants |= with;
        }
    }
}

/* The axes of the last stage that no constant has, as bits; 0: the program is no transform. All
 * stages are read once, but for the last, which is stored. */
static unsigned find_transform(const struct wpk_program *program, const struct lanes *lanes)
{
    struct moves moves = {.affine = true};
    int readers[WPK_STAGES_MAX] = {0};
    int last = program->stage_count - 1;
    const struct wpk_stage *root = &program->stages[last];
    int64_t points = 1;
    for (int a = 0; a < root->rank; a++) {
        moves.of[last][a] = 1U << a;
    }
    for (int s = last; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        if ((s < last && readers[s] != 1) ||
            (program->tensors[stage->output].role == WPK_ROLE_OUTPUT) != (s == last)) {
            return 0;
        }
        for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
            int writer = wpk_program_writer(program, load.node->tensor);
            follow_load(program, s, load.node, &moves);
            readers[writer >= 0 ? writer : s] += writer >= 0;
        }
    }
    unsigned own = ((1U << root->rank) - 1) & ~moves.by_constants;
    for (int a = 0; a < root->rank; a++) {
        points *= (own >> a & 1U) != 0 ? root->axes[a].extent : 1;
    }
    int lane = lanes->axis[last];
    bool fits = moves.affine && points <= UNROLLED_POINTS_MAX && lane >= 0 &&
                (own >> lane & 1U) == 0 && root->reduction == WPK_REDUCE_NONE;
    return fits ? own : 0;
}

/* Where an intermediate tensor is computed: inside the `level` outermost loops of stage `root`, so
 * that what it takes stays in a cache. */
struct place {
    int root;
    int level; /* 0: before everything else */
};

/* Count the leading dimensions of `load` that are indexed by the reader's axes 0, 1, ... in
 * order. */
static int leading(const struct wpk_program *program, const struct wpk_node *load)
{
    int count = 0;
    while (count < program->tensors[load->tensor].rank &&
           wpk_index_axis(program, load->index[count]) == count) {
        count++;
    }
    return count;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The outermost loops of `root` around at least two others, and not those that are in lanes. */
static int loops_around(const struct wpk_program *program, const struct lanes *lanes, int root)
{
    int count = program->stages[root].rank - 2;
    count = lanes->axis[root] >= 0 ? least(count, lanes->axis[root]) : count;
    return count > 0 ? count : 0;
}

/* Of a tensor that one stage reads, those loops around it that it has, too. */
static void find_places(const struct wpk_program *program, const struct lanes *lanes,
                        struct place *places)
{
    int readers[WPK_STAGES_MAX] = {0};
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        bool stored = program->tensors[stage->output].role == WPK_ROLE_OUTPUT;
        if (stored || readers[s] != 1) {
            places[s] = (struct place){.root = s};
        }
        for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
            int writer = wpk_program_writer(program, load.node->tensor);
            if (writer >= 0) {
                int root = places[s].root;
                int around = root == s ? loops_around(program, lanes, s) : places[s].level;
                int level = least(leading(program, load.node), around);
                /* lanes are computed whole, wherever that is */
                level = lanes->axis[writer] >= 0 ? least(level, lanes->axis[writer]) : level;
                places[writer] = (struct place){.root = root, .level = level};
                readers[writer]++;
            }
        }
    }
}

/* Innermost first: lanes, a sum's terms, what is unrolled, the rest of the axis in lanes, the other
 * axes.
 *   unit   inner: the axes that are unrolled, as bits */
static void add_loops(struct wpk_nest *nest, const struct lanes *lanes, unsigned inner, bool update)
{
    struct wpk_nest_entry *entry = &nest->entry[nest->entry_count - 1];
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    int axis = lanes->axis[entry->stage];
    bool unrolls = axis >= 0 && wpk_stage_terms(stage) <= UNROLLED_TERMS_MAX;
    struct wpk_nest_loop loop = {.step = 1};
    for (int a = 0; a < stage->rank; a++) {
        loop.axis = a;
        if (a != axis && (inner >> a & 1U) == 0) {
            wpk_nest_add_loop(nest, loops, &loop);
        }
    }
    if (axis >= 0) {
        bool ends_early = entry->least[axis] != entry->extent[axis];
        struct wpk_nest_loop rest = {.axis = axis,
                                     .step = lanes->count[entry->stage],
                                     .tail = ends_early ? WPK_TAIL_GUARD : WPK_TAIL_EXACT};
        wpk_nest_add_loop(nest, loops, &rest);
    }
    loop.binding = WPK_BIND_UNROLL;
    for (int a = 0; a < stage->rank; a++) {
        loop.axis = a;
        if (a != axis && (inner >> a & 1U) != 0) {
            wpk_nest_add_loop(nest, loops, &loop);
        }
    }
    loop.binding = unrolls ? WPK_BIND_UNROLL : WPK_BIND_SERIAL;
    for (int a = stage->rank; a < stage->axis_count && update; a++) {
        loop.axis = a;
        wpk_nest_add_loop(nest, loops, &loop);
    }
    if (axis >= 0) {
        struct wpk_nest_loop in_lanes = {.axis = axis, .step = 1, .binding = WPK_BIND_LANES};
        wpk_nest_add_loop(nest, loops, &in_lanes);
    }
}

static void add_stage(struct wpk_nest *nest, int s, const struct lanes *lanes,
                      const struct place *place, unsigned transform)
{
    const struct wpk_program *program = nest->program;
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, s);
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    int axis = lanes->axis[s];
    bool stored = program->tensors[stage->output].role == WPK_ROLE_OUTPUT;
    if (!stored && place->level > 0) {
        int at = program->stage_count - 1 - place->root;
        entry->place = (struct wpk_nest_place){
            .entry = at,
            .update = wpk_nest_has_update(nest, &nest->entry[at]),
            .loop = place->level - 1,
        };
    }
    wpk_nest_find_region(nest);
    if (!stored && axis >= 0) {
        /* what is needed of it grows to whole vectors, which divide the axis */
        entry->align[axis] = lanes->count[s];
        entry->reordered = true;
        for (int a = 0, at = 0; a < stage->rank; a++) {
            entry->storage[a == axis ? stage->rank - 1 : at++] = a;
        }
    }
    /* inside a transform's loops all axes are short */
    unsigned inner = transform == 0 ? 0 : stored ? transform : ~0U;
    add_loops(nest, lanes, inner, false);
    if (stage->reduction != WPK_REDUCE_NONE) {
        add_loops(nest, lanes, inner, true);
    }
}

/* ---- on a GPU */

#define GPU_THREADS 128

/* A stage that computes is a launch, whose threads run along one axis. The last block of the
 * launch moves inwards, unless the stage adds up: then the blocks divide the axis. */
static void add_launch(struct wpk_nest *nest, int s, bool update)
{
    struct wpk_nest_entry *entry = &nest->entry[nest->entry_count - 1];
    const struct wpk_stage *stage = &nest->program->stages[s];
    struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    /* The last axis, along which neighbours lie, unless it has less than a warp: then the
     * longest. */
    int axis = stage->rank - 1;
    for (int a = 0; a < stage->rank && stage->axes[stage->rank - 1].extent < WPK_CUDA_WARP; a++) {
        axis = stage->axes[a].extent > stage->axes[axis].extent ? a : axis;
    }
    struct wpk_nest_loop loop = {.step = 1, .binding = WPK_BIND_BLOCK_Y};
    for (loop.axis = 0; loop.axis < stage->rank; loop.axis++) {
        if (loop.axis != axis) {
            wpk_nest_add_loop(nest, loops, &loop);
        }
    }
    if (axis >= 0) {
        int64_t extent = stage->axes[axis].extent;
        int64_t step = extent < GPU_THREADS ? extent : GPU_THREADS;
        while (update && extent % step != 0) {
            step--;
        }
        enum wpk_tail tail = extent % step == 0 ? WPK_TAIL_EXACT : WPK_TAIL_SHIFT;
        wpk_nest_add_loop(
            nest, loops,
            &(struct wpk_nest_loop){
                .axis = axis, .binding = WPK_BIND_BLOCK_X, .step = step, .tail = tail});
        loop = (struct wpk_nest_loop){.axis = axis, .step = 1, .binding = WPK_BIND_THREAD_X};
        wpk_nest_add_loop(nest, loops, &loop);
    }
    loop.binding = WPK_BIND_SERIAL;
    for (loop.axis = stage->rank; loop.axis < stage->axis_count && update; loop.axis++) {
        wpk_nest_add_loop(nest, loops, &loop);
    }
}

static void add_launches(struct wpk_nest *nest, int s)
{
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, s);
    const struct wpk_program *program = nest->program;
    const struct wpk_stage *stage = &program->stages[s];
    if (program->tensors[stage->output].role == WPK_ROLE_INTERMEDIATE &&
        stage->reduction == WPK_REDUCE_NONE && program->nodes[stage->expr].kind == WPK_NODE_LOAD) {
        entry->inlined = true; /* it only moves values */
        return;
    }
    entry->place = (struct wpk_nest_place){.entry = -1, .loop = -1};
    wpk_nest_find_region(nest);
    add_launch(nest, s, false);
    if (stage->reduction != WPK_REDUCE_NONE) {
        add_launch(nest, s, true);
    }
}

/* ---- */

/* True if the prepare program computes a constant of the main program that may be infinite. */
static bool prepares_infinite(const struct wpk_schedule *schedule)
{
    struct wpk_infinite infinite;
    bool found = false;
    wpk_infinite_find(&schedule->main, &infinite);
    for (int t = 0; t < schedule->main.tensor_count; t++) {
        int made = wpk_program_find_tensor(&schedule->prepare, schedule->main.tensors[t].name);
        found = found || (infinite.tensor[t] && made >= 0 &&
                          schedule->prepare.tensors[made].role == WPK_ROLE_OUTPUT);
    }
    return found;
}

/* The nest as a transform's, or if it is none that can be computed so, each stage on its own. */
static void fill_nest(struct wpk_nest *nest)
{
    const struct wpk_program *program = nest->program;
    struct lanes lanes;
    struct place places[WPK_STAGES_MAX];
    choose_all(program, &lanes);
    unsigned transform = find_transform(program, &lanes);
    if (transform != 0) {
        /* All intermediates of a transform are inside the last stage's loops over the constants'
         * axes. */
        int last = program->stage_count - 1;
        int level = 0;
        for (int a = 0; a < program->stages[last].rank; a++) {
            level += (transform >> a & 1U) == 0;
        }
        for (int s = 0; s < last; s++) {
            places[s] = (struct place){.root = last, .level = level};
        }
        for (int s = program->stage_count - 1; s >= 0; s--) {
            add_stage(nest, s, &lanes, &places[s], transform);
        }
        if (!nest->full && wpk_nest_check(nest, NULL) == WPK_OK) {
            return;
        }
        nest->entry_count = 0;
        nest->loop_count = 0;
        nest->full = false;
    }
    find_places(program, &lanes, places);
    for (int s = program->stage_count - 1; s >= 0; s--) {
        add_stage(nest, s, &lanes, &places[s], 0);
    }
}

wpk_err wpk_prepare_schedule(const struct wpk_schedule *schedule, struct wpk_schedule *out)
{
    WPK_ASSERT(schedule->prepare.stage_count > 0);
    memset(out, 0, sizeof(*out));
    /* nobody waits for it: all of its arithmetic may be strict */
    if (prepares_infinite(schedule)) {
        wpk_err strict = wpk_target_make_strict(schedule->target, out->target);
        if (strict != WPK_OK) {
            return strict;
        }
    } else {
        memcpy(out->target, schedule->target, sizeof(out->target));
    }
    out->threads = schedule->threads;
    memcpy(out->by, schedule->by, sizeof(out->by));
    wpk_err err = wpk_program_copy(&schedule->prepare, &out->main);
    err = err == WPK_OK ? wpk_schedule_add_nest(out) : err;
    if (err == WPK_OK) {
        struct wpk_device device;
        wpk_target_read(out->target, &device);
        if (wpk_device_is_cuda(&device)) {
            for (int s = out->nest->program->stage_count - 1; s >= 0; s--) {
                add_launches(out->nest, s);
            }
        } else {
            fill_nest(out->nest);
        }
        err = out->nest->full ? WPK_ENOSPC : WPK_OK;
    }
    if (err != WPK_OK) {
        wpk_schedule_fini(out);
    }
    return err;
}
