/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/gpu_program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The lock guards the modules, their number and the steps. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wpk_gpu_module *modules;
static uint64_t steps;
static int kept_max;

static bool is_same(const struct wpk_gpu_module *module, const void *context,
                    const struct wpk_launch_code *code)
{
    return module->context == context && module->code.size == code->cubin_size + code->ptx_size &&
           memcmp(module->code.data, code->cubin, code->cubin_size) == 0 &&
           memcmp(module->code.data + code->cubin_size, code->ptx, code->ptx_size) == 0;
}

/* A driver finds the end of a text by its NUL, and that of a cubin by its head; the emulated driver
 * looks behind the cubin for the PTX, which it runs. A cubin of another architecture is no binary
 * for the GPU; one that is newer than the driver is an invalid image. */
static wpk_err load(struct wpk_gpu_module *module, const struct wpk_launch_code *code,
                    struct wpk_diag *diag)
{
    const struct wpk_cuda_driver *driver = module->driver;
    int result = WPK_CUDA_NO_BINARY_FOR_GPU;
    wpk_buf_append(&module->code, code->cubin, code->cubin_size);
    wpk_buf_append(&module->code, code->ptx, code->ptx_size);
    wpk_err err = wpk_buf_status(&module->code);
    if (err != WPK_OK) {
        return err;
    }
    if (code->cubin_size > 0) {
        result = driver->cuModuleLoadData(&module->handle, module->code.data);
    }
    if (result == WPK_CUDA_NO_BINARY_FOR_GPU || result == WPK_CUDA_INVALID_IMAGE) {
        module->by_driver = true;
        result = driver->cuModuleLoadData(&module->handle, module->code.data + code->cubin_size);
    }
    return wpk_cuda_driver_check(driver, result, "loading the kernel", diag);
}

static wpk_err add(const struct wpk_cuda_driver *driver, const void *context,
                   const struct wpk_launch_code *code, struct wpk_gpu_module **out,
                   struct wpk_diag *diag)
{
    struct wpk_gpu_module *module = calloc(1, sizeof(*module));
    if (module == NULL) {
        return WPK_ENOMEM;
    }
    *module = (struct wpk_gpu_module){.driver = driver, .context = context, .users = 1};
    wpk_err err = load(module, code, diag);
    if (err != WPK_OK) {
        wpk_buf_fini(&module->code);
        free(module);
        return err;
    }
    module->next = modules;
    modules = module;
    *out = module;
    return WPK_OK;
}

/* Load the code into the context, which is current, or count one more user of it.
 *   owns    caller calls give_module
 *   errors  WPK_EUNSUPPORTED, WPK_ESYSTEM, WPK_ENOMEM */
static wpk_err take_module(const struct wpk_cuda_driver *driver, const void *context,
                           const struct wpk_launch_code *code, struct wpk_gpu_module **out,
                           struct wpk_diag *diag)
{
    pthread_mutex_lock(&lock);
    struct wpk_gpu_module *module = modules;
    while (module != NULL && !is_same(module, context, code)) {
        module = module->next;
    }
    wpk_err err = WPK_OK;
    if (module != NULL) {
        module->users++;
        *out = module;
    } else {
        err = add(driver, context, code, out, diag);
    }
    pthread_mutex_unlock(&lock);
    return err;
}

/* Unload the one of the context that has had no users for longest, if more are kept than may be. */
static void shrink(const void *context)
{
    struct wpk_gpu_module **oldest = NULL;
    int unused = 0;
    for (struct wpk_gpu_module **at = &modules; *at != NULL; at = &(*at)->next) {
        if ((*at)->users == 0 && (*at)->context == context) {
            unused++;
            oldest = oldest == NULL || (*at)->given < (*oldest)->given ? at : oldest;
        }
    }
    if (unused > kept_max) {
        struct wpk_gpu_module *module = *oldest;
        *oldest = module->next;
        (void)module->driver->cuModuleUnload(module->handle);
        wpk_buf_fini(&module->code);
        free(module);
    }
}

void wpk_gpu_module_keep(int count)
{
    pthread_mutex_lock(&lock);
    kept_max = count;
    pthread_mutex_unlock(&lock);
}

static int count_tensors(const struct wpk_gpu_program *program)
{
    return program->plan.argument_count + program->plan.scratch_count;
}

wpk_err wpk_gpu_program_load(const struct wpk_cuda_driver *driver, const void *context,
                             const struct wpk_span *image, struct wpk_gpu_program *out,
                             struct wpk_diag *diag)
{
    struct wpk_launch_code code;
    out->driver = driver;
    if (image->size == 0) {
        return WPK_OK;
    }
    wpk_err err = wpk_launch_plan_decode(image->data, image->size, &out->plan, &code, diag);
    if (err != WPK_OK) {
        return err == WPK_ENOMEM || err == WPK_EMISMATCH ? err : WPK_ECORRUPT;
    }
    err = take_module(driver, context, &code, &out->module, diag);
    for (int i = 0; i < out->plan.launch_count && err == WPK_OK; i++) {
        const char *entry = out->plan.launch[i].entry;
        err = wpk_cuda_driver_check(
            driver, driver->cuModuleGetFunction(&out->function[i], out->module->handle, entry),
            entry, diag);
    }
    return err;
}

wpk_err wpk_gpu_program_make(const struct wpk_cuda_driver *driver,
                             const struct wpk_gpu_vendor *vendor, const struct wpk_recipe *recipe,
                             bool any, struct wpk_gpu_program *out, struct wpk_diag *diag)
{
    wpk_err err = vendor->make(vendor, recipe, any, &out->primitive, diag);
    out->driver = driver;
    if (err == WPK_OK) {
        out->plan.argument_count = recipe->tensor_count;
        out->plan.launch_count = 1;
        out->plan.scratch_count = 1;
        const struct wpk_gpu_primitive *primitive = out->primitive;
        size_t bytes = primitive->workspace(primitive, primitive->recipe.algorithm);
        for (int i = 0; i < primitive->algorithm_count && any; i++) {
            size_t own = primitive->workspace(primitive, i);
            bytes = own > bytes ? own : bytes;
        }
        out->plan.scratch[0].bytes = (int64_t)bytes;
    }
    return err;
}

void wpk_gpu_program_unload(struct wpk_gpu_program *program)
{
    if (program->primitive != NULL) {
        program->primitive->free(program->primitive);
        program->primitive = NULL;
    }
    if (program->module != NULL) {
        /* The module's context is current. */
        struct wpk_gpu_module *module = program->module;
        pthread_mutex_lock(&lock);
        WPK_ASSERT(module->users > 0);
        module->users--;
        module->given = ++steps;
        shrink(module->context);
        pthread_mutex_unlock(&lock);
        program->module = NULL;
    }
}

/* The parameters of a launch, which the driver copies values from: of a number of 4 bytes the lower
 * ones, which come first. */
struct parameters {
    uint64_t value[WPK_LAUNCH_PARAMETERS_MAX];
    void *list[WPK_LAUNCH_PARAMETERS_MAX];
};

static void fill_parameters(const struct wpk_launch_plan *plan, int launch,
                            const uint64_t *pointers, struct parameters *out)
{
    const struct wpk_launch_step *step = &plan->launch[launch];
    const struct wpk_launch_parameter *from = &plan->parameter[step->parameter_first];
    for (int i = 0; i < step->parameter_count; i++) {
        uint64_t beginning = from[i].tensor >= 0 ? pointers[from[i].tensor] : 0;
        out->value[i] = beginning + (uint64_t)from[i].value;
        out->list[i] = &out->value[i];
    }
}

wpk_err wpk_gpu_program_launch(const struct wpk_gpu_program *program, void *stream,
                               const uint64_t *pointers, struct wpk_diag *diag)
{
    struct parameters parameters;
    if (program->primitive != NULL) {
        return program->primitive->launch(program->primitive, stream, pointers, diag);
    }
    for (int i = 0; i < program->plan.launch_count; i++) {
        const struct wpk_launch_step *step = &program->plan.launch[i];
        fill_parameters(&program->plan, i, pointers, &parameters);
        int result = program->driver->cuLaunchKernel(
            program->function[i], (unsigned)step->blocks[0], (unsigned)step->blocks[1],
            (unsigned)step->blocks[2], (unsigned)step->threads[0], (unsigned)step->threads[1],
            (unsigned)step->threads[2], (unsigned)step->added_bytes, stream, parameters.list, NULL);
        if (result != WPK_CUDA_SUCCESS) {
            return wpk_cuda_driver_fail(program->driver, result, step->entry, diag);
        }
    }
    return WPK_OK;
}

/* ---- graphs */

struct wpk_gpu_graph {
    const struct wpk_gpu_program *program;
    int calls;
    uint64_t *pointers; /* [calls, tensors of the program]; owned */
    void **node;        /* [calls, launches]; owned; they are the graph's */
    void *graph, *exec; /* the driver's; owned */
};

/* `parameters`: room for them. */
static struct wpk_cuda_kernel_node describe(const struct wpk_gpu_program *program, int launch,
                                            const uint64_t *pointers, struct parameters *parameters)
{
    const struct wpk_launch_step *step = &program->plan.launch[launch];
    fill_parameters(&program->plan, launch, pointers, parameters);
    return (struct wpk_cuda_kernel_node){.function = program->function[launch],
                                         .grid_x = (unsigned)step->blocks[0],
                                         .grid_y = (unsigned)step->blocks[1],
                                         .grid_z = (unsigned)step->blocks[2],
                                         .block_x = (unsigned)step->threads[0],
                                         .block_y = (unsigned)step->threads[1],
                                         .block_z = (unsigned)step->threads[2],
                                         .shared_bytes = (unsigned)step->added_bytes,
                                         .parameters = parameters->list};
}

/* Each launch waits for the one before it. */
static wpk_err add_launches(struct wpk_gpu_graph *graph, const uint64_t *pointers,
                            struct wpk_diag *diag)
{
    const struct wpk_gpu_program *program = graph->program;
    int launches = program->plan.launch_count;
    struct parameters parameters;
    wpk_err err = WPK_OK;
    for (int i = 0; i < graph->calls * launches && err == WPK_OK; i++) {
        const struct wpk_cuda_kernel_node node =
            describe(program, i % launches, pointers, &parameters);
        void *const *before = i > 0 ? &graph->node[i - 1] : NULL;
        err =
            wpk_cuda_driver_check(program->driver,
                                  program->driver->cuGraphAddKernelNode_v2(
                                      &graph->node[i], graph->graph, before, before != NULL, &node),
                                  program->plan.launch[i % launches].entry, diag);
    }
    return err;
}

static wpk_err build(struct wpk_gpu_graph *graph, const uint64_t *pointers, struct wpk_diag *diag)
{
    const struct wpk_cuda_driver *driver = graph->program->driver;
    wpk_err err = wpk_cuda_driver_check(driver, driver->cuGraphCreate(&graph->graph, 0),
                                        "a graph of launches", diag);
    err = err == WPK_OK ? add_launches(graph, pointers, diag) : err;
    return err == WPK_OK
               ? wpk_cuda_driver_check(
                     driver, driver->cuGraphInstantiateWithFlags(&graph->exec, graph->graph, 0),
                     "a graph of launches", diag)
               : err;
}

wpk_err wpk_gpu_graph_new(const struct wpk_gpu_program *program, int calls,
                          const uint64_t *pointers, struct wpk_gpu_graph **out,
                          struct wpk_diag *diag)
{
    size_t count = (size_t)count_tensors(program);
    WPK_ASSERT(calls >= 1 && calls <= WPK_GPU_GRAPH_LAUNCHES_MAX / program->plan.launch_count);
    struct wpk_gpu_graph *graph = calloc(1, sizeof(*graph));
    if (graph == NULL) {
        return WPK_ENOMEM;
    }
    graph->program = program;
    graph->calls = calls;
    graph->pointers = calloc((size_t)calls * count + 1, sizeof(*graph->pointers));
    graph->node = calloc((size_t)(calls * program->plan.launch_count), sizeof(*graph->node));
    wpk_err err = graph->pointers != NULL && graph->node != NULL ? WPK_OK : WPK_ENOMEM;
    if (err == WPK_OK && program->primitive == NULL) {
        err = build(graph, pointers, diag);
    }
    if (err != WPK_OK) {
        wpk_gpu_graph_free(graph);
        return err;
    }
    for (int i = 0; i < calls; i++) {
        memcpy(graph->pointers + (size_t)i * count, pointers, count * sizeof(*pointers));
    }
    *out = graph;
    return WPK_OK;
}

static void destroy(struct wpk_gpu_graph *graph)
{
    if (graph->exec != NULL) {
        (void)graph->program->driver->cuGraphExecDestroy(graph->exec);
        graph->exec = NULL;
    }
    if (graph->graph != NULL) {
        (void)graph->program->driver->cuGraphDestroy(graph->graph);
        graph->graph = NULL;
    }
}

void wpk_gpu_graph_free(struct wpk_gpu_graph *graph)
{
    if (graph != NULL) {
        destroy(graph);
        free(graph->node);
        free(graph->pointers);
        free(graph);
    }
}

int wpk_gpu_graph_calls(const struct wpk_gpu_graph *graph)
{
    return graph != NULL ? graph->calls : 0;
}

wpk_err wpk_gpu_graph_point(struct wpk_gpu_graph *graph, int call, const uint64_t *pointers,
                            struct wpk_diag *diag)
{
    const struct wpk_gpu_program *program = graph->program;
    size_t count = (size_t)count_tensors(program), size = count * sizeof(*pointers);
    uint64_t *own = graph->pointers + (size_t)call * count;
    struct parameters parameters;
    wpk_err err = WPK_OK;
    if (memcmp(own, pointers, size) == 0) {
        return WPK_OK;
    }
    int launches = program->primitive == NULL ? program->plan.launch_count : 0;
    for (int i = 0; i < launches && err == WPK_OK; i++) {
        const struct wpk_cuda_kernel_node node = describe(program, i, pointers, &parameters);
        err = wpk_cuda_driver_check(
            program->driver,
            program->driver->cuGraphExecKernelNodeSetParams_v2(
                graph->exec, graph->node[call * program->plan.launch_count + i], &node),
            program->plan.launch[i].entry, diag);
    }
    /* A call that has some of them is given all of them the next time: zeros are no call's. */
    memset(own, 0, size);
    if (err == WPK_OK) {
        memcpy(own, pointers, size);
    }
    return err;
}

static wpk_err record_calls(struct wpk_gpu_graph *graph, void *stream, struct wpk_diag *diag)
{
    const struct wpk_gpu_program *program = graph->program;
    size_t count = (size_t)count_tensors(program);
    wpk_err err = WPK_OK;
    for (int i = 0; i < graph->calls && err == WPK_OK; i++) {
        err = program->primitive->launch(program->primitive, stream,
                                         graph->pointers + (size_t)i * count, diag);
    }
    return err;
}

/* The library's launches are not known: the stream records them. A library need not be able to:
 * that is no failure of the device. */
static wpk_err record(struct wpk_gpu_graph *graph, void *stream, struct wpk_diag *diag)
{
    const struct wpk_cuda_driver *driver = graph->program->driver;
    destroy(graph);
    wpk_err err = wpk_cuda_driver_check(
        driver, driver->cuStreamBeginCapture_v2(stream, WPK_CUDA_CAPTURE_MODE_RELAXED),
        "recording calls", diag);
    if (err != WPK_OK) {
        return err;
    }
    err = record_calls(graph, stream, diag);
    int result = driver->cuStreamEndCapture(stream, &graph->graph);
    err = err == WPK_OK ? wpk_cuda_driver_check(driver, result, "recording calls", diag) : err;
    if (err != WPK_OK) {
        return WPK_EUNSUPPORTED;
    }
    return wpk_cuda_driver_check(driver,
                                 driver->cuGraphInstantiateWithFlags(&graph->exec, graph->graph, 0),
                                 "recording calls", diag);
}

wpk_err wpk_gpu_graph_upload(struct wpk_gpu_graph *graph, void *stream, struct wpk_diag *diag)
{
    const struct wpk_cuda_driver *driver = graph->program->driver;
    wpk_err err = graph->program->primitive != NULL ? record(graph, stream, diag) : WPK_OK;
    if (err != WPK_OK) {
        return err;
    }
    return wpk_cuda_driver_check(driver, driver->cuGraphUpload(graph->exec, stream),
                                 "a graph of launches", diag);
}

wpk_err wpk_gpu_graph_launch(struct wpk_gpu_graph *graph, void *stream, struct wpk_diag *diag)
{
    const struct wpk_cuda_driver *driver = graph->program->driver;
    return wpk_cuda_driver_check(driver, driver->cuGraphLaunch(graph->exec, stream),
                                 "launching the kernel", diag);
}
