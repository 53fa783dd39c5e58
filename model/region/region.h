/* SPDX-License-Identifier: Apache-2.0 */
/* The regions of a graph: what is tuned as one program, and computed by one call of its kernel.
 *
 * A region is a group of nodes: any one, and those around it that compute element by element. A
 * value stays inside a region if only its nodes read it, each at the element that it computes.
 * Groups whose programs have one fingerprint share their region. */
#ifndef WPK_MODEL_REGION_REGION_H
#define WPK_MODEL_REGION_REGION_H

#include "ir/canonical/canonical.h"
#include "model/graph.h"
#include "model/operator/view.h"
#include "model/rewrite/rewrite.h"

#define WPK_REGION_NAME_MAX 64

struct wpk_graph_region {
    char name[WPK_REGION_NAME_MAX]; /* unique: "Conv1" */
    struct wpk_fingerprint fingerprint;
    int nodes[WPK_FUSE_NODES_MAX]; /* [node_count] of its first group, ascending */
    int node_count;
    int64_t count; /* calls in a run: its groups, in a loop once for each iteration */
};

/* A tensor of a region's kernel, and the value that it is for a group. */
struct wpk_graph_region_argument {
    char name[WPK_NAME_MAX]; /* canonical */
    int value;
};

/* The step that a node of the graph is computed in, if any. */
struct wpk_graph_region_use {
    int region;     /* of the last node of a group; -1: no step */
    int *nodes;     /* owned; [node_count] that the step computes, this one last */
    int node_count; /* 0: no step */
    bool is_host;   /* a step without a region: `host` computes the node */
    struct wpk_model_plan_host host;
    bool is_view; /* no step: its output is part of an input, or its inputs of its output */
    struct wpk_graph_region_argument *arguments; /* owned; [argument_count] */
    int argument_count;
};

/* = {0} is empty. */
struct wpk_graph_regions {
    struct wpk_graph_region *list; /* owned; [count] */
    int count;
    struct wpk_graph_region_use *uses; /* owned; [use_count], one for each node */
    int use_count;
    struct wpk_graph_views views; /* values that no step writes, or not as memory of their own */
};

/* Find the regions of a graph whose shapes were inferred without problems.
 *   owns    caller calls wpk_graph_regions_fini, after failures too
 *   errors  those of wpk_graph_lower and wpk_program_canonical, `diag` with the node; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_regions_find(const struct wpk_graph *graph,
                                              struct wpk_graph_regions *out, struct wpk_diag *diag);
void wpk_graph_regions_fini(struct wpk_graph_regions *regions);

/* How values between steps are stored: as written, or channels last; with or without borders. */

/* Find the regions of a graph (wpk_graph_regions_find), and store the values that windows
 * (convolutions, pools) read or compute with their channels last, where every step that touches
 * them can take them so. In the graph such a value gets a Transpose behind the node that computes
 * it, and one before each node that reads it: all become part of the steps around them. Then values
 * get borders.
 *
 *   owns    caller calls wpk_graph_regions_fini, after failures too
 *   errors  those of wpk_graph_regions_find; WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_layout(struct wpk_graph *graph, struct wpk_graph_regions *out,
                                        struct wpk_diag *diag);

/* border.c: values with something around them in memory, zeros that windows read or the rest of a
 * Concat. */

/* Set pad_before and pad_after of the values between steps of which a step with little work for
 * each byte, such as a depthwise convolution, reads zeros beyond the ends: the step then needs
 * neither a copy nor conditions. Not of values that are parts of others, or the model's, nor where
 * a step reads something else than zeros out there.
 *   shape   any: true if a value has got a border: the regions are then to be found again
 *   errors  those of wpk_graph_fuse; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_add_borders(struct wpk_graph *graph,
                                             const struct wpk_graph_regions *regions, bool *any,
                                             struct wpk_diag *diag);

/* Let the inputs of a Concat be parts of its output where they do not lie in one piece there: their
 * pads are what lies around them. The views of the next wpk_graph_regions_find have them.
 *   shape   any: true if there are such parts
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_add_places(struct wpk_graph *graph,
                                            const struct wpk_graph_regions *regions, bool *any);

#endif
