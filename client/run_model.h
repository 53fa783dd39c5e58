/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl run of a model on NumPy files. */
#ifndef WPK_CLIENT_RUN_MODEL_H
#define WPK_CLIENT_RUN_MODEL_H

#include "client/session.h"
#include "common/buf.h"
#include "ir/program.h"
#include "model/plan/check_plan.h"
#include "model/plan/model_file.h"

struct wpk_run_model {
    struct wpk_model_fixing fixing; /* of a plan: `shapes` choose its set of shapes */
    struct wpk_option_list inputs;  /* "NAME=FILE.npy" */
    struct wpk_option_list outputs; /* the same */
    bool draw;                      /* inputs that no file is given for, by their names */
    bool check;                     /* of a plan: each step (model/plan/check_plan.h) */
    const char *verify;             /* of a plan: the ONNX model that it is of; NULL: none */
    bool json;                      /* say what was computed as JSON */
    /* Of wpk_run_model_with: an ONNX model stands for the plan that this history has of it. */
    const struct wpk_session_options *history; /* NULL: it takes plans alone */
    const char *tmp_dir;                       /* with a history */
    int threads;                               /* likewise; 0: one */
};

/* Compute an ONNX model node by node in f64 and write its outputs in their own types.
 *   errors  those of wpk_model_file_read and wpk_graph_interpret; WPK_EINVAL  a wrong or missing
 *           file, with the input's name; those of wpk_fs_write */
wpk_err wpk_run_model_interpret(const char *path, const struct wpk_run_model *options,
                                struct wpk_diag *diag);

/* A function that uses an open plan once. */
typedef wpk_err (*wpk_run_model_use)(const struct wpk_plan_call *call, void *user,
                                     struct wpk_diag *diag);

/* Open a plan through libwpk, as any host does, read or draw its inputs, and call `use`. The plan
 * of a model is made by `wpkctl tune`, without a search: an operator without a kernel gets one
 * candidate.
 *   errors  those of wpk_model_open, wpk_model_context_new and `use`; as above; WPK_EUNSUPPORTED
 *           there is no plan of the model; those of wpk_child_start */
wpk_err wpk_run_model_with(const char *path, const struct wpk_run_model *options,
                           wpk_run_model_use use, void *user, struct wpk_diag *diag);

/* Run a plan through libwpk, as any host does, and write its outputs. With `check`, each step is
 * compared at some points, and the largest error is printed. With `verify`, the ONNX model is
 * interpreted on the same inputs, and the largest difference is printed.
 *   errors  those of wpk_model_open, wpk_model_context_new and wpk_model_run; as above; those of
 *           wpk_check_plan and wpk_verify_plan_file */
wpk_err wpk_run_model_plan(const char *path, const struct wpk_run_model *options,
                           struct wpk_diag *diag);

/* wpkctl check of a model: its inputs, outputs and operators, or all that is not supported. */

struct wpk_check_model {
    struct wpk_model_fixing fixing;
    bool expand; /* print each node's equations, too */
    bool json;
    const struct wpk_session_options *history; /* of a service that is asked; NULL: of none */
    bool no_peak;                              /* do not measure this machine */
    int64_t missed_calls, missed_ns;           /* of the model on a host without a plan */
};

/* Say what narrower weights lost, if a product has them. */
void wpk_print_weights(const struct wpk_graph *graph, FILE *out);

/* Print what the model is, its steps, and how long a run is expected to take.
 *   errors  those of wpk_model_file_read, wpk_graph_lower, wpk_session_open and
 *           wpk_estimate_model */
wpk_err wpk_check_model(const struct wpk_command_context *context, const char *path,
                        const struct wpk_check_model *options, struct wpk_diag *diag);

/* Append the drawing of a plan, or a report with it, and with times if the plan runs here.
 *   shape   onnx: the model's file, whose own graph the report shows, too; NULL: none
 *   errors  those of reading the plan and the model; WPK_EINVAL  it has no such shapes */
wpk_err wpk_plan_show(const char *path, const struct wpk_option_list *shapes, bool is_page,
                      const char *onnx, struct wpk_buf *out, struct wpk_diag *diag);
/* Append a table of where the time of a plan's run goes, as wpkctl profile prints it.
 *   errors  those of wpk_run_model_with; nothing is appended then */
wpk_err wpk_profile_page(const char *path, const struct wpk_option_list *shapes,
                         struct wpk_buf *out, struct wpk_diag *diag);

/* Lists the faults of an operator that verification would not see. wpk-runner finds them, because
 * it also verifies. */

/* Append a text such as "M: identity; S: first term dropped"; append nothing if every fault would
 * be seen. wpk-runner reads the operator from a file in `tmp_dir`, which is removed afterwards.
 *   errors  WPK_EUNSUPPORTED the interpreter cannot evaluate the operator; WPK_EINVAL no such
 *           directory; those of wpk_child_start and wpk_fs_write */
wpk_err wpk_unseen_find(const char *tmp_dir, const struct wpk_program *op, struct wpk_buf *out,
                        struct wpk_diag *diag);

/* Which of a plan's sets of shapes a command means. */

#define WPK_PLAN_SHAPE_OPTION_ROW(shapes)                                                          \
    WPK_ARGS_LIST("shape", "INPUT=EXTENT,...",                                                     \
                  "which of a plan's sets of shapes, if it has several (repeatable)", &(shapes))

/* The inputs of a plan in each of its sets. */
struct wpk_plan_shapes {
    struct wpk_argument *inputs; /* owned; [count][input_count]; names are borrowed */
    int count;
    int input_count;
};

/* Fill in the sets of an open plan.
 *   owns    caller frees `inputs` */
void wpk_plan_shapes_of_model(const struct wpk_model *model, struct wpk_plan_shapes *out);

/* True if "NAME=EXTENT,..." is of an input of the plan. */
bool wpk_plan_shapes_has(const struct wpk_plan_shapes *sets, const char *shape);

/* The first set in which the inputs have the extents of `shapes` and of their files.
 *   shape   shapes: "INPUT=EXTENT,..."; files: "INPUT=FILE.npy", and other names
 *   errors  WPK_EINVAL none: `diag` lists those that there are; those of reading a file */
wpk_err wpk_plan_shapes_choose(const struct wpk_plan_shapes *sets,
                               const struct wpk_option_list *shapes,
                               const struct wpk_option_list *files, size_t *out,
                               struct wpk_diag *diag);

#endif
