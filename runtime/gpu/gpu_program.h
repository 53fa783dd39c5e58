/* SPDX-License-Identifier: Apache-2.0 */
/* A program of a GPU's kernel: a module with its launches, or a vendor's primitive. They run one by
 * one or as a graph. The device's context is current in all calls. */
#ifndef WPK_RUNTIME_GPU_GPU_PROGRAM_H
#define WPK_RUNTIME_GPU_GPU_PROGRAM_H

#include "runtime/gpu/cuda_driver.h"
#include "runtime/scratch.h"
#include "runtime/vendor/gpu_vendor.h"
#include "schema/launch_plan.h"

struct wpk_gpu_graph;

/* Modules that are loaded in this process. Each is loaded once in a context, whatever the number of
 * kernels that have its code: its users are counted, and the last one unloads it. A context must
 * not be destroyed or reset while a kernel is open in it. */

struct wpk_gpu_module {
    void *handle;   /* the driver's */
    bool by_driver; /* the driver compiled it from PTX */
    /* Of the list, under its lock. */
    const struct wpk_cuda_driver *driver;
    const void *context;
    struct wpk_buf code; /* cubin and PTX */
    int users;
    uint64_t given; /* when the last user has gone, in steps of all modules */
    struct wpk_gpu_module *next;
};

/* Of modules without users, the last `count` stay loaded: for a process that keeps its context, and
 * opens the same kernels again. */
void wpk_gpu_module_keep(int count);

struct wpk_gpu_program {
    const struct wpk_cuda_driver *driver;
    struct wpk_launch_plan plan;
    struct wpk_gpu_module *module;       /* a user of it; NULL: there is no such program, or it is
                                          * a primitive */
    struct wpk_gpu_primitive *primitive; /* owned; NULL: there is a module */
    void *function[WPK_LAUNCHES_MAX];
};

/* Load an image's module into the context, which is current: the cubin, or where the driver has no
 * use for it, the PTX. A program of no size has none.
 *   owns    caller calls wpk_gpu_program_unload, after a failure, too
 *   errors  WPK_ECORRUPT, WPK_EMISMATCH, WPK_EUNSUPPORTED, WPK_ESYSTEM, WPK_ENOMEM */
wpk_err wpk_gpu_program_load(const struct wpk_cuda_driver *driver, const void *context,
                             const struct wpk_span *image, struct wpk_gpu_program *out,
                             struct wpk_diag *diag);
/* Make a vendor's primitive. The arguments are the recipe's tensors; the scratch is a workspace.
 * `any`: see runtime/vendor/gpu_vendor.h.
 *   owns    as wpk_gpu_program_load
 *   errors  those of the vendor's `make` */
wpk_err wpk_gpu_program_make(const struct wpk_cuda_driver *driver,
                             const struct wpk_gpu_vendor *vendor, const struct wpk_recipe *recipe,
                             bool any, struct wpk_gpu_program *out, struct wpk_diag *diag);
void wpk_gpu_program_unload(struct wpk_gpu_program *program);

/* Launch all, one after another.
 *   shape   pointers [arguments and scratch tensors of the plan]: to their beginnings */
wpk_err wpk_gpu_program_launch(const struct wpk_gpu_program *program, void *stream,
                               const uint64_t *pointers, struct wpk_diag *diag);

/* Some calls of a program as one graph, each with pointers of its own. */

#define WPK_GPU_GRAPH_LAUNCHES_MAX 4096 /* of all its calls */

/* Make a graph whose calls all have these pointers.
 *   shape   calls >= 1, with all their launches at most WPK_GPU_GRAPH_LAUNCHES_MAX launches
 *   owns    `program` stays the caller's and outlives the graph; caller calls wpk_gpu_graph_free
 *   errors  WPK_ESYSTEM, WPK_ENOMEM */
wpk_err wpk_gpu_graph_new(const struct wpk_gpu_program *program, int calls,
                          const uint64_t *pointers, struct wpk_gpu_graph **out,
                          struct wpk_diag *diag);
void wpk_gpu_graph_free(struct wpk_gpu_graph *graph);

int wpk_gpu_graph_calls(const struct wpk_gpu_graph *graph); /* 0 of NULL */

/* Give a call other pointers in later launches of the graph; the driver is asked for nothing if
 * they are the same. */
wpk_err wpk_gpu_graph_point(struct wpk_gpu_graph *graph, int call, const uint64_t *pointers,
                            struct wpk_diag *diag);
/* Bring to the device what the next launch needs, so that the launch does not. A primitive's graph
 * is recorded here, each time anew; `stream` is no stream 0. */
wpk_err wpk_gpu_graph_upload(struct wpk_gpu_graph *graph, void *stream, struct wpk_diag *diag);
wpk_err wpk_gpu_graph_launch(struct wpk_gpu_graph *graph, void *stream, struct wpk_diag *diag);

#endif
