/* SPDX-License-Identifier: Apache-2.0 */
/* A model computed node by node by the interpreter of programs (ir/reference/reference.h): floats
 * in f64, integers exactly. It defines what a model means: everything faster is compared with it.
 * Values are cells (schema/convert.h). */
#ifndef WPK_MODEL_OPERATOR_INTERPRET_H
#define WPK_MODEL_OPERATOR_INTERPRET_H

#include "common/rng.h"
#include "model/graph.h"

/* Compute one node.
 *
 *   shape   values [graph->value_count], each NULL or [extent...] row-major; those that the node
 *           reads are set, but for constants; out [extent...] of its output 0
 *   errors  those of wpk_graph_lower and wpk_reference_run, `diag` without the node; WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_graph_interpret_node(const struct wpk_graph *graph, int node,
                                                double *const *values, double *out,
                                                struct wpk_diag *diag);

/* Compute the model's outputs. Floats between nodes stay in f64; values live until their last
 * reader has run.
 *
 *   shape   inputs [graph->input_count], outputs [graph->output_count]: each [extent...] row-major
 *   owns    the caller owns all arrays
 *   errors  as above; `diag` names the node
 */
WPK_MUST_CHECK wpk_err wpk_graph_interpret(const struct wpk_graph *graph,
                                           const double *const *inputs, double *const *outputs,
                                           struct wpk_diag *diag);

/* The same by direct evaluation (ir/reference/reference.h): each operation rounds to its declared
 * type. The error of that is what a model allows of any implementation. With `rng`, which may be
 * NULL, each f32 that a node computes moves by up to a unit in its last place: by luck direct
 * evaluation may be exact where other orders of the same sums are not. */
WPK_MUST_CHECK wpk_err wpk_graph_interpret_direct(const struct wpk_graph *graph,
                                                  struct wpk_rng *rng, const double *const *inputs,
                                                  double *const *outputs, struct wpk_diag *diag);

#endif
