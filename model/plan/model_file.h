/* SPDX-License-Identifier: Apache-2.0 */
/* A model file as the commands take it. */
#ifndef WPK_MODEL_PLAN_MODEL_FILE_H
#define WPK_MODEL_PLAN_MODEL_FILE_H

#include "common/args.h"
#include "model/graph.h"

/* Extents and values of a model's inputs that the user fixes. */
struct wpk_model_fixing {
    struct wpk_option_list shapes; /* "INPUT=EXTENT,..." */
    struct wpk_option_list binds;  /* "INPUT=FILE.npy": the input becomes a constant */
    const char *math;              /* "bf16": of the operands of products; NULL: as they are */
    const char *weights;           /* "bf16", "i8" or "i4": of constant operands; likewise */
};

/* Rows of a command's options. `fixing` is a struct wpk_model_fixing. */
#define WPK_MODEL_FIXING_OPTION_ROWS(fixing)                                                       \
    WPK_ARGS_LIST("shape", "INPUT=EXTENT,...",                                                     \
                  "of a model's input that the file leaves open, e.g. x=1,3,224,224 (repeatable)", \
                  &(fixing).shapes),                                                               \
        WPK_ARGS_LIST("bind", "INPUT=FILE.npy",                                                    \
                      "make a model's input a constant, e.g. one of axes (repeatable)",            \
                      &(fixing).binds),                                                            \
        WPK_ARGS_TEXT("math", "TYPE",                                                              \
                      "compute products from operands of bf16, with sums of f32; default f32",     \
                      &(fixing).math),                                                             \
        WPK_ARGS_TEXT(                                                                             \
            "weights", "TYPE",                                                                     \
            "store constant operands of MatMul and Gemm as bf16, as i8 with a scale for "          \
            "each column, or as i4 with one for each 32 elements of a column",                     \
            &(fixing).weights)

/* True if the name before the last '=' of "NAME=EXTENT,..." is this one. */
bool wpk_model_shape_is_of(const char *shape, const char *name);

/* The sets of shapes that are asked for: as many as the input has shapes that has most.
 *   errors  WPK_EINVAL an input with fewer shapes than that, but more than one; more than `max` */
WPK_MUST_CHECK wpk_err wpk_model_fixing_count(const struct wpk_model_fixing *fixing, int max,
                                              int *out, struct wpk_diag *diag);
/* Fill `out` with the shapes of set `index`: of each input shape number `index`, or the only
 * one. */
void wpk_model_fixing_of_set(const struct wpk_model_fixing *fixing, int index,
                             struct wpk_model_fixing *out);

/* True if the name ends in ".onnx". */
bool wpk_model_file_is_onnx(const char *path);

/* Read an ONNX file, fix its inputs, each by one shape at most, and infer its shapes.
 *   shape   problems: everything that is not supported is appended, a line each, with the file and
 *           the node
 *   owns    caller calls wpk_graph_fini, after failures too
 *   errors  those of wpk_onnx_read, wpk_graph_set_shape, wpk_graph_bind and wpk_graph_infer; a
 *           file that is missing is WPK_EINVAL */
WPK_MUST_CHECK wpk_err wpk_model_file_read(const char *path, const struct wpk_model_fixing *fixing,
                                           struct wpk_graph *out, struct wpk_buf *problems,
                                           struct wpk_diag *diag);

/* The value's type, row-major. */
struct wpk_tensor_type wpk_model_value_type(const struct wpk_graph_value *value);
/* Append "1,3,224,224". */
void wpk_model_print_extents(const int64_t *extent, int rank, struct wpk_buf *out);
/* Append "f32[1,3,224,224]". */
void wpk_model_print_type(const struct wpk_graph_value *value, struct wpk_buf *out);

#endif
