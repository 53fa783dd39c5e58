/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/vendor/cudnn_graph.h"

#define RESULTS_MAX 64 /* of one heuristic */
#define KNOBS_MAX 64   /* of an engine */
#define VALUES_MAX 8   /* of a knob: as many as that, at equal distances */

/* ---- plans */

bool wpk_cudnn_build(struct wpk_cudnn_pool *pool, struct wpk_cudnn_plan *plan,
                     int64_t workspace_max)
{
    int64_t count = 0;
    void *made = NULL;
    int status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &made);
    wpk_cudnn_set(pool, &status, made, WPK_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, WPK_CUDNN_TYPE_HANDLE,
                  1, &pool->handle);
    wpk_cudnn_set_descriptor(pool, &status, made, WPK_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                             plan->config);
    status = wpk_cudnn_finish(pool, status, made);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = pool->calls->cudnnBackendGetAttribute(
            made, WPK_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, WPK_CUDNN_TYPE_INT64, 1, &count,
            &plan->workspace_bytes);
    }
    if (status == WPK_CUDNN_STATUS_SUCCESS && plan->workspace_bytes <= workspace_max) {
        plan->plan = made;
    }
    return plan->plan != NULL;
}

int wpk_cudnn_execute(const struct wpk_cudnn_pool *pool, const struct wpk_cudnn_plan *plan,
                      const int64_t *uid, void *const *pointer, int count, void *workspace)
{
    void *pack = NULL;
    int status =
        pool->calls->cudnnBackendCreateDescriptor(WPK_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != WPK_CUDNN_STATUS_SUCCESS) {
        return status;
    }
    wpk_cudnn_set(pool, &status, pack, WPK_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, WPK_CUDNN_TYPE_INT64,
                  count, uid);
    wpk_cudnn_set(pool, &status, pack, WPK_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                  WPK_CUDNN_TYPE_VOID_PTR, count, pointer);
    wpk_cudnn_set(pool, &status, pack, WPK_CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                  WPK_CUDNN_TYPE_VOID_PTR, 1, &workspace);
    status = wpk_cudnn_finish(pool, status, pack);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = pool->calls->cudnnBackendExecute(pool->handle, plan->plan, pack);
    }
    (void)pool->calls->cudnnBackendDestroyDescriptor(pack);
    return status;
}

/* ---- how they are found */

/* Plans while they are found. */
struct finding {
    struct wpk_cudnn_pool *pool;
    void *graph;
    struct wpk_cudnn_plan *plans; /* [WPK_CUDNN_PLANS_MAX], of which *count are there */
    int *count;
};

static int get(const struct finding *f, void *descriptor, int name, int type, int64_t max,
               int64_t *count, void *out)
{
    return f->pool->calls->cudnnBackendGetAttribute(descriptor, name, type, max, count, out);
}

static void add(struct finding *f, void *config)
{
    if (*f->count < WPK_CUDNN_PLANS_MAX) {
        f->plans[(*f->count)++] = (struct wpk_cudnn_plan){.config = config};
    }
}

/* True if the engine computes in f32: on tensor cores, operands of that type are TF32. */
static bool is_f32(const struct finding *f, void *engine)
{
    int notes[WPK_CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    int status = get(f, engine, WPK_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, WPK_CUDNN_TYPE_NUMERICAL_NOTE,
                     WPK_CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes);
    bool exact = status == WPK_CUDNN_STATUS_SUCCESS;
    for (int64_t i = 0; i < count && exact; i++) {
        exact = notes[i] != WPK_CUDNN_NUMERICAL_NOTE_TENSOR_CORE &&
                notes[i] != WPK_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    }
    return exact;
}

/* ---- what heuristics name */

static bool is_config_f32(const struct finding *f, void *config)
{
    void *engine = NULL;
    int64_t count = 0;
    int status = wpk_cudnn_make(f->pool, WPK_CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = get(f, config, WPK_CUDNN_ATTR_ENGINECFG_ENGINE, WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR,
                     1, &count, &engine);
    }
    return status == WPK_CUDNN_STATUS_SUCCESS && is_f32(f, engine);
}

static void find_by(struct finding *f, int mode)
{
    void *heuristic = NULL, *config[RESULTS_MAX] = {NULL};
    struct wpk_cudnn_pool *pool = f->pool;
    int64_t found = 0;
    int status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic);
    wpk_cudnn_set_descriptor(pool, &status, heuristic, WPK_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                             f->graph);
    wpk_cudnn_set(pool, &status, heuristic, WPK_CUDNN_ATTR_ENGINEHEUR_MODE,
                  WPK_CUDNN_TYPE_HEUR_MODE, 1, &mode);
    status = wpk_cudnn_finish(pool, status, heuristic);
    for (int i = 0; i < RESULTS_MAX && status == WPK_CUDNN_STATUS_SUCCESS; i++) {
        status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[i]);
    }
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = get(f, heuristic, WPK_CUDNN_ATTR_ENGINEHEUR_RESULTS,
                     WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR, RESULTS_MAX, &found, (void *)config);
    }
    for (int64_t i = 0; i < found && status == WPK_CUDNN_STATUS_SUCCESS; i++) {
        if (is_config_f32(f, config[i])) {
            add(f, config[i]);
        }
    }
}

/* ---- all engines, and their knobs */

struct knob {
    int type;
    int64_t min, max, stride;
};

static bool read_knob(const struct finding *f, void *info, struct knob *out)
{
    int64_t count = 0;
    const struct {
        int name;
        int64_t *value;
    } numbers[] = {{WPK_CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, &out->min},
                   {WPK_CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, &out->max},
                   {WPK_CUDNN_ATTR_KNOB_INFO_STRIDE, &out->stride}};
    int status = get(f, info, WPK_CUDNN_ATTR_KNOB_INFO_TYPE, WPK_CUDNN_TYPE_KNOB_TYPE, 1, &count,
                     &out->type);
    for (int i = 0; i < 3 && status == WPK_CUDNN_STATUS_SUCCESS; i++) {
        status = get(f, info, numbers[i].name, WPK_CUDNN_TYPE_INT64, 1, &count, numbers[i].value);
    }
    out->stride = out->stride > 0 ? out->stride : 1;
    return status == WPK_CUDNN_STATUS_SUCCESS && out->max >= out->min;
}

/* The engine with one knob set, or (NULL) as it is. The library refuses values that do not go
 * together. */
static void add_config(struct finding *f, void *engine, const struct knob *knob, int64_t value)
{
    struct wpk_cudnn_pool *pool = f->pool;
    void *config = NULL, *choice = NULL;
    int status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config);
    wpk_cudnn_set_descriptor(pool, &status, config, WPK_CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (knob != NULL && status == WPK_CUDNN_STATUS_SUCCESS) {
        status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &choice);
        wpk_cudnn_set(pool, &status, choice, WPK_CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                      WPK_CUDNN_TYPE_KNOB_TYPE, 1, &knob->type);
        wpk_cudnn_set(pool, &status, choice, WPK_CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                      WPK_CUDNN_TYPE_INT64, 1, &value);
        status = wpk_cudnn_finish(pool, status, choice);
        wpk_cudnn_set_descriptor(pool, &status, config, WPK_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                 choice);
    }
    if (wpk_cudnn_finish(pool, status, config) == WPK_CUDNN_STATUS_SUCCESS) {
        add(f, config);
    }
}

static void turn_knobs(struct finding *f, void *engine)
{
    void *info[KNOBS_MAX] = {NULL};
    int64_t count = 0;
    int status = WPK_CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < KNOBS_MAX && status == WPK_CUDNN_STATUS_SUCCESS; i++) {
        status = wpk_cudnn_make(f->pool, WPK_CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, &info[i]);
    }
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = get(f, engine, WPK_CUDNN_ATTR_ENGINE_KNOB_INFO, WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR,
                     KNOBS_MAX, &count, (void *)info);
    }
    for (int64_t i = 0; i < count && status == WPK_CUDNN_STATUS_SUCCESS; i++) {
        struct knob knob = {0};
        if (read_knob(f, info[i], &knob)) {
            int64_t steps = (knob.max - knob.min) / knob.stride;
            int64_t each = steps / VALUES_MAX + 1;
            for (int64_t k = 0; k <= steps; k += each) {
                add_config(f, engine, &knob, knob.min + k * knob.stride);
            }
        }
    }
}

static bool make_engine(const struct finding *f, int64_t index, void **out)
{
    int status = wpk_cudnn_make(f->pool, WPK_CUDNN_BACKEND_ENGINE_DESCRIPTOR, out);
    wpk_cudnn_set_descriptor(f->pool, &status, *out, WPK_CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                             f->graph);
    wpk_cudnn_set(f->pool, &status, *out, WPK_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, WPK_CUDNN_TYPE_INT64,
                  1, &index);
    return wpk_cudnn_finish(f->pool, status, *out) == WPK_CUDNN_STATUS_SUCCESS && is_f32(f, *out);
}

static void find_all(struct finding *f)
{
    void *engine[RESULTS_MAX] = {NULL};
    int64_t count = 0, got = 0;
    int made = 0;
    int status = get(f, f->graph, WPK_CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                     WPK_CUDNN_TYPE_INT64, 1, &got, &count);
    for (int64_t i = 0; i < count && made < RESULTS_MAX && status == WPK_CUDNN_STATUS_SUCCESS;
         i++) {
        made += make_engine(f, i, &engine[made]);
    }
    for (int i = 0; i < made; i++) {
        add_config(f, engine[i], NULL, 0);
    }
    for (int i = 0; i < made; i++) {
        turn_knobs(f, engine[i]);
    }
}

void wpk_cudnn_find_plans(struct wpk_cudnn_pool *pool, void *const *operation, int count, bool all,
                          struct wpk_cudnn_plan *plans, int *plan_count)
{
    struct finding f = {.pool = pool, .plans = plans, .count = plan_count};
    int status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &f.graph);
    wpk_cudnn_set(pool, &status, f.graph, WPK_CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                  WPK_CUDNN_TYPE_HANDLE, 1, &pool->handle);
    wpk_cudnn_set(pool, &status, f.graph, WPK_CUDNN_ATTR_OPERATIONGRAPH_OPS,
                  WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operation);
    if (wpk_cudnn_finish(pool, status, f.graph) == WPK_CUDNN_STATUS_SUCCESS) {
        find_by(&f, WPK_CUDNN_HEUR_MODE_A);
        find_by(&f, WPK_CUDNN_HEUR_MODE_FALLBACK);
        if (all) {
            find_all(&f);
        }
    }
}
