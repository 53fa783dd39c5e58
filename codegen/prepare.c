/* SPDX-License-Identifier: Apache-2.0 */
/* A trial prepares a kernel's constants up to three times, and a user's program once for each
 * kernel that it opens. The schedule is fixed: it is not worth a search, and candidates share its
 * object.
 *
 * Lanes run along one axis of each stage. The main program reads a prepared tensor along its last
 * axis, so the lanes of the stage that writes it run along that one. From there the choice goes
 * back to the stages that are read, so that only the first of them gathers values one by one.
 * Intermediate tensors are stored with the axis of lanes last. */
#include "codegen/prepare.h"

#include "op/infinite.h"

#include <string.h>

#define LANES_MAX 16
#define LANES_MIN 4
#define UNROLLED_TERMS_MAX 16

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
        int loads[WPK_LOADS_MAX];
        choose(program, s, wanted[s], lanes);
        int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
        for (int i = 0; i < count && i < WPK_LOADS_MAX && lanes->axis[s] >= 0; i++) {
            const struct wpk_node *load = &program->nodes[loads[i]];
            int writer = wpk_program_writer(program, load->tensor);
            for (int d = 0; writer >= 0 && d < program->tensors[load->tensor].rank; d++) {
                struct wpk_affine affine;
                if (wpk_index_affine(program, load->index[d], &affine) &&
                    affine.coefficient[lanes->axis[s]] == 1) {
                    wanted[writer] = d;
                }
            }
        }
    }
}

/* Where an intermediate tensor is computed: inside the `level` outermost loops of stage `root`, so
 * that what it takes stays in a cache. */
struct place {
    int root;
    int level; /* 0: before everything else */
};

/* How many of the first indices of `load` are the first axes of the stage that reads? */
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
        int loads[WPK_LOADS_MAX];
        bool stored = program->tensors[stage->output].role == WPK_ROLE_OUTPUT;
        if (stored || readers[s] != 1) {
            places[s] = (struct place){.root = s};
        }
        int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
        for (int i = 0; i < count && i < WPK_LOADS_MAX; i++) {
            const struct wpk_node *load = &program->nodes[loads[i]];
            int writer = wpk_program_writer(program, load->tensor);
            if (writer >= 0) {
                int root = places[s].root;
                int around = root == s ? loops_around(program, lanes, s) : places[s].level;
                int level = least(leading(program, load), around);
                /* lanes are computed whole, wherever that is */
                level = lanes->axis[writer] >= 0 ? least(level, lanes->axis[writer]) : level;
                places[writer] = (struct place){.root = root, .level = level};
                readers[writer]++;
            }
        }
    }
}

/* Innermost first: lanes, a sum's terms, the rest of the axis in lanes, the other axes. */
static void add_loops(struct wpk_nest *nest, const struct lanes *lanes, bool update)
{
    struct wpk_nest_entry *entry = &nest->entry[nest->entry_count - 1];
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    int axis = lanes->axis[entry->stage];
    int64_t terms = 1;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        terms *= stage->axes[a].extent;
    }
    bool unrolls = axis >= 0 && terms <= UNROLLED_TERMS_MAX;
    struct wpk_nest_loop loop = {.step = 1};
    for (int a = 0; a < stage->rank; a++) {
        loop.axis = a;
        if (a != axis) {
            wpk_nest_add_loop(nest, loops, &loop);
        }
    }
    if (axis >= 0) {
        struct wpk_nest_loop rest = {.axis = axis, .step = lanes->count[entry->stage]};
        wpk_nest_add_loop(nest, loops, &rest);
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
                      const struct place *place)
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
    add_loops(nest, lanes, false);
    if (stage->reduction != WPK_REDUCE_NONE) {
        add_loops(nest, lanes, true);
    }
}

/* ---- on a GPU */

#define GPU_THREADS 128
#define GPU_WARP 32

/* The last axis, along which neighbours lie, unless it has less than a warp: then the longest. */
static int threads_axis(const struct wpk_stage *stage)
{
    int axis = stage->rank - 1;
    for (int a = 0; a < stage->rank && stage->axes[stage->rank - 1].extent < GPU_WARP; a++) {
        axis = stage->axes[a].extent > stage->axes[axis].extent ? a : axis;
    }
    return axis;
}

/* A stage that computes is a launch, whose threads run along one axis. */
static void add_launch(struct wpk_nest *nest, int s, bool update)
{
    struct wpk_nest_entry *entry = &nest->entry[nest->entry_count - 1];
    const struct wpk_stage *stage = &nest->program->stages[s];
    struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    int axis = threads_axis(stage);
    struct wpk_nest_loop loop = {.step = 1, .binding = WPK_BIND_BLOCK_Y};
    for (loop.axis = 0; loop.axis < stage->rank; loop.axis++) {
        if (loop.axis != axis) {
            wpk_nest_add_loop(nest, loops, &loop);
        }
    }
    if (axis >= 0) {
        int64_t extent = stage->axes[axis].extent;
        int64_t step = extent < GPU_THREADS ? extent : GPU_THREADS;
        enum wpk_tail tail = extent % step == 0 ? WPK_TAIL_EXACT : WPK_TAIL_SHIFT;
        wpk_nest_add_loop(nest, loops,
                          &(struct wpk_nest_loop){.axis = axis,
                                                  .binding = WPK_BIND_BLOCK_X,
                                                  .step = step,
                                                  .tail = update ? WPK_TAIL_EXACT : tail});
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

/* Is there a constant of the main program that may be infinite and that is computed? */
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

wpk_err wpk_prepare_schedule(const struct wpk_schedule *schedule, struct wpk_schedule *out)
{
    struct lanes lanes;
    struct place places[WPK_STAGES_MAX];
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
        bool cuda = wpk_device_is_cuda(&device);
        choose_all(&out->main, &lanes);
        find_places(&out->main, &lanes, places);
        for (int s = out->main.stage_count - 1; s >= 0; s--) {
            if (cuda) {
                add_launches(out->nest, s);
            } else {
                add_stage(out->nest, s, &lanes, &places[s]);
            }
        }
        err = out->nest->full ? WPK_ENOSPC : WPK_OK;
    }
    if (err != WPK_OK) {
        wpk_schedule_fini(out);
    }
    return err;
}
