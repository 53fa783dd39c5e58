/* SPDX-License-Identifier: Apache-2.0 */
/* An open plan, as the files that open and run it see it. */
#ifndef WPK_RUNTIME_MODEL_MODEL_H
#define WPK_RUNTIME_MODEL_MODEL_H

#include "schema/device.h"
#include "schema/model_plan.h"

#include <pthread.h>

struct wpk_kernel;

/* The constants that one set of shapes prepares. Of equal tensors in a process one copy is kept,
 * whichever plan prepared it, and with it the memory of that plan. `= {0}` is valid to fini. */
struct wpk_constants {
    char *memory; /* [size] */
    size_t size;
    struct wpk_constant_block *block; /* has `memory`; owned, together with others */
    struct wpk_constant_use *uses;    /* owned; tensors that are read, its own among them */
};

/* Take memory.   errors  WPK_ENOMEM */
wpk_err wpk_constants_init(struct wpk_constants *constants, size_t size);
void wpk_constants_fini(struct wpk_constants *constants);
/* Returns where to read the tensor that was prepared at `data`, in the memory: there, or where an
 * equal one lies; the pages at `data` are given back then. */
void *wpk_constants_share(struct wpk_constants *constants, void *data, size_t size);
/* Bytes of the memory; of a tensor that n sets of shapes read, an n-th. */
size_t wpk_constants_size(const struct wpk_constants *constants);

/* The kernels of one set of shapes, once a context wants them. */
struct wpk_model_shape {
    const struct wpk_model_plan *file;
    const struct wpk_model_plan_shape *plan;
    bool is_loaded;
    int open_count;                 /* steps that have been begun to open */
    struct wpk_kernel **kernels;    /* [step_count]; owned by the step itself, if its share is -1 */
    int *share;                     /* owned; [step_count] earlier step whose kernel it runs; -1 */
    struct wpk_constants constants; /* what the kernels prepare */
    struct wpk_argument *inputs;    /* owned; [input_count] */
    struct wpk_argument *outputs;   /* owned; [output_count] */
};

struct wpk_model {
    void *bytes; /* mapped; owned */
    size_t size;
    struct wpk_model_plan plan;
    struct wpk_device device;
    pthread_mutex_t lock;           /* of loading */
    struct wpk_model_shape *shapes; /* owned; [plan.shape_count] */
};

/* Load the kernels of a set of shapes, if they are not loaded yet, and prepare their constants.
 *   errors  as wpk_model_open */
wpk_err wpk_model_load(struct wpk_model *model, size_t shape, struct wpk_diag *diag);

/* The step's argument of this name; NULL: none. */
const struct wpk_model_plan_argument *
wpk_model_find_argument(const struct wpk_model_plan_step *step, const char *name);

/* Steps of a model's plan that plain functions compute: data decides where elements are read. */

/* Check that the step's arguments are of the types and sizes that it reads and writes.
 *   errors  WPK_ECORRUPT */
wpk_err wpk_host_step_check(const struct wpk_model_plan_shape *plan,
                            const struct wpk_model_plan_step *step, struct wpk_diag *diag);

/* Run a checked step.   shape  data [argument_count], inputs first, the output last; diag: with
 *           the node
 *   errors  WPK_ERANGE an index that is out of its axis, or another number of elements that are
 *           not 0 */
wpk_err wpk_host_step_run(const struct wpk_model_plan_shape *plan,
                          const struct wpk_model_plan_step *step, void *const *data,
                          struct wpk_diag *diag);

#endif
