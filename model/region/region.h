/* SPDX-License-Identifier: Apache-2.0 */
/* The regions of a graph: what is tuned as one program, and computed by one call of its kernel.
 *
 * A region is a group of nodes: any one, and those around it that compute element by element. A
 * value stays inside a region if only its nodes read it, each at the element that it computes.
 * Groups whose programs have one fingerprint share their region. */
#ifndef WPK_MODEL_REGION_REGION_H
#define WPK_MODEL_REGION_REGION_H

#include "ir/canonical/fingerprint.h"
#include "model/graph.h"
#include "model/operator/host.h"
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

#endif
