/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: one by one, in graphs, and recorded by a stream for one. A handle is looked up among
 * those that exist, so that one of another kind, or of something destroyed, is refused.
 *
 * A node runs after the one that it depends on, and no earlier than it must: the nodes added last
 * come first. A dependency that was forgotten so changes the order, as it may on a GPU. */
#include "tests/gpu/driver.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct graph *graph;
    int behind; /* the number of the node that it depends on; -1: none */
    struct wpk_cuda_kernel_node launch;
    uint8_t *values; /* [size]: of its parameters; owned */
    size_t size;
};

struct graph {
    struct node **node; /* [count]; owned */
    int count;
    struct graph *next;
};

/* A copy of the graph's launches, in the order in which they run. */
struct exec {
    const struct graph *graph; /* compared only: it may be destroyed */
    struct node *node;         /* [count]; owned */
    int *place;                /* [count]: of the graph's node in `node`; owned */
    int count;
    struct exec *next;
};

static struct graph *graphs; /* that exist; owned */
static struct exec *execs;

static struct graph *find_graph(const void *handle)
{
    struct graph *at = graphs;
    while (at != NULL && at != handle) {
        at = at->next;
    }
    return at;
}

static struct exec *find_exec(const void *handle)
{
    struct exec *at = execs;
    while (at != NULL && at != handle) {
        at = at->next;
    }
    return at;
}

/* The node's number in the graph, or -1. */
static int find_node(const struct graph *graph, const void *handle)
{
    int i = graph->count - 1;
    while (i >= 0 && graph->node[i] != handle) {
        i--;
    }
    return i;
}

/* ---- graphs */

int cuGraphCreate(void **graph, unsigned flags)
{
    WPK_OBEY_ORDERS();
    int result = wpk_driver_entered();
    if (result != WPK_CUDA_SUCCESS || flags != 0) {
        return result != WPK_CUDA_SUCCESS ? result : WPK_CUDA_INVALID_VALUE;
    }
    struct graph *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    made->next = graphs;
    graphs = made;
    *graph = made;
    return WPK_CUDA_SUCCESS;
}

int cuGraphDestroy(void *graph)
{
    WPK_OBEY_ORDERS();
    struct graph **at = &graphs, *found = find_graph(graph);
    if (found == NULL) {
        return WPK_CUDA_INVALID_VALUE;
    }
    while (*at != found) {
        at = &(*at)->next;
    }
    *at = found->next;
    for (int i = 0; i < found->count; i++) {
        free(found->node[i]->values);
        free(found->node[i]);
    }
    free(found->node);
    free(found);
    return WPK_CUDA_SUCCESS;
}

/* Set a node's launch.   errors  a CUresult; the node is then as it was */
static int set_launch(struct node *node, const struct wpk_cuda_kernel_node *launch)
{
    uint8_t taken[WPK_DRIVER_PARAMETERS_MAX];
    size_t size = 0;
    int result = wpk_driver_take(launch, taken, &size);
    uint8_t *values = result == WPK_CUDA_SUCCESS ? malloc(size + 1) : NULL;
    if (values == NULL) {
        return result != WPK_CUDA_SUCCESS ? result : WPK_CUDA_OUT_OF_MEMORY;
    }
    memcpy(values, taken, size);
    free(node->values);
    node->values = values;
    node->size = size;
    node->launch = *launch;
    return WPK_CUDA_SUCCESS;
}

int cuGraphAddKernelNode_v2(void **node, void *graph, void *const *dependencies,
                            size_t dependency_count, const struct wpk_cuda_kernel_node *launch)
{
    WPK_OBEY_ORDERS();
    struct graph *found = find_graph(graph);
    int result = wpk_driver_entered();
    int behind = found != NULL && dependency_count > 0 ? find_node(found, dependencies[0]) : -1;
    if (result != WPK_CUDA_SUCCESS) {
        return result;
    }
    /* More than one dependency is refused by the emulated driver alone. */
    if (found == NULL || dependency_count > 1 || (dependency_count > 0 && behind < 0)) {
        return WPK_CUDA_INVALID_VALUE;
    }
    struct node **grown = realloc(found->node, sizeof(struct node *) * ((size_t)found->count + 1));
    if (grown == NULL) {
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    found->node = grown;
    struct node *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    made->graph = found;
    made->behind = behind;
    result = set_launch(made, launch);
    if (result != WPK_CUDA_SUCCESS) {
        free(made);
        return result;
    }
    found->node[found->count++] = made;
    *node = made;
    return WPK_CUDA_SUCCESS;
}

/* ---- graphs that can be launched */

static void free_exec(struct exec *exec)
{
    for (int i = 0; exec->node != NULL && i < exec->count; i++) {
        free(exec->node[i].values);
    }
    free(exec->node);
    free(exec->place);
    free(exec);
}

/* The place of each node: those added last come first, each behind the one it depends on. */
static void order(const struct graph *graph, int *place)
{
    int next = 0;
    for (int i = 0; i < graph->count; i++) {
        place[i] = -1;
    }
    for (int last = graph->count - 1; last >= 0; last--) {
        int length = 0;
        for (int at = last; at >= 0 && place[at] < 0; at = graph->node[at]->behind) {
            length++;
        }
        int at = last;
        for (int i = length - 1; i >= 0; i--) {
            place[at] = next + i;
            at = graph->node[at]->behind;
        }
        next += length;
    }
}

int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
    WPK_OBEY_ORDERS();
    const struct graph *found = find_graph(graph);
    int result = wpk_driver_entered();
    if (result != WPK_CUDA_SUCCESS) {
        return result;
    }
    if (found == NULL || flags != 0) {
        return WPK_CUDA_INVALID_VALUE;
    }
    struct exec *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    made->graph = found;
    made->count = found->count;
    made->node = calloc((size_t)found->count + 1, sizeof(*made->node));
    made->place = calloc((size_t)found->count + 1, sizeof(*made->place));
    if (made->node == NULL || made->place == NULL) {
        free_exec(made);
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    order(found, made->place);
    for (int i = 0; i < found->count; i++) {
        struct node *copy = &made->node[made->place[i]];
        copy->launch = found->node[i]->launch;
        copy->size = found->node[i]->size;
        copy->values = malloc(copy->size + 1);
        if (copy->values == NULL) {
            free_exec(made);
            return WPK_CUDA_OUT_OF_MEMORY;
        }
        memcpy(copy->values, found->node[i]->values, copy->size);
    }
    made->next = execs;
    execs = made;
    *exec = made;
    return WPK_CUDA_SUCCESS;
}

int cuGraphExecDestroy(void *exec)
{
    WPK_OBEY_ORDERS();
    struct exec **at = &execs, *found = find_exec(exec);
    if (found == NULL) {
        return WPK_CUDA_INVALID_VALUE;
    }
    while (*at != found) {
        at = &(*at)->next;
    }
    *at = found->next;
    free_exec(found);
    return WPK_CUDA_SUCCESS;
}

int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node,
                                      const struct wpk_cuda_kernel_node *launch)
{
    WPK_OBEY_ORDERS();
    struct exec *found = find_exec(exec);
    int result = wpk_driver_entered();
    if (result != WPK_CUDA_SUCCESS) {
        return result;
    }
    const struct graph *graph = found != NULL ? find_graph(found->graph) : NULL;
    int number = graph != NULL ? find_node(graph, node) : -1;
    if (number < 0 || number >= found->count) {
        return WPK_CUDA_INVALID_VALUE;
    }
    return set_launch(&found->node[found->place[number]], launch);
}

/* ---- launches that a stream records; each waits for the one before it */

static struct {
    void *graph, *last; /* node */
} capture;

static int record(const struct wpk_cuda_kernel_node *launch)
{
    void *node = NULL;
    int result =
        cuGraphAddKernelNode_v2(&node, capture.graph, &capture.last, capture.last != NULL, launch);
    capture.last = result == WPK_CUDA_SUCCESS ? node : capture.last;
    return result;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    WPK_OBEY_ORDERS();
    (void)mode;
    if (stream == NULL || wpk_driver_is_capturing(stream)) {
        return stream == NULL ? WPK_CUDA_STREAM_CAPTURE_UNSUPPORTED : WPK_CUDA_ILLEGAL_STATE;
    }
    int result = cuGraphCreate(&capture.graph, 0);
    wpk_driver_set_capturing(result == WPK_CUDA_SUCCESS ? stream : NULL);
    capture.last = NULL;
    return result;
}

int cuStreamEndCapture(void *stream, void **graph)
{
    WPK_OBEY_ORDERS();
    if (!wpk_driver_is_capturing(stream)) {
        return WPK_CUDA_ILLEGAL_STATE;
    }
    wpk_driver_set_capturing(NULL);
    *graph = capture.graph;
    return wpk_driver_entered();
}

int cuStreamIsCapturing(void *stream, int *status)
{
    WPK_OBEY_ORDERS();
    *status = wpk_driver_is_capturing(stream) ? WPK_CUDA_CAPTURE_ACTIVE : WPK_CUDA_CAPTURE_NONE;
    return wpk_driver_entered();
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void *stream, void **parameters, void **extra)
{
    WPK_OBEY_ORDERS();
    uint8_t values[WPK_DRIVER_PARAMETERS_MAX];
    size_t size = 0;
    const struct wpk_cuda_kernel_node node = {.function = function,
                                              .grid_x = grid_x,
                                              .grid_y = grid_y,
                                              .grid_z = grid_z,
                                              .block_x = block_x,
                                              .block_y = block_y,
                                              .block_z = block_z,
                                              .shared_bytes = shared_bytes,
                                              .parameters = parameters,
                                              .extra = extra};
    int result = wpk_driver_entered();
    if (result == WPK_CUDA_SUCCESS && wpk_driver_is_capturing(stream)) {
        return record(&node);
    }
    if (result == WPK_CUDA_SUCCESS) {
        result = wpk_driver_take(&node, values, &size);
    }
    return result == WPK_CUDA_SUCCESS ? wpk_driver_launch(&node, values) : result;
}

/* ---- launching graphs */

int cuGraphUpload(void *exec, void *stream)
{
    WPK_OBEY_ORDERS();
    int result = wpk_driver_entered();
    (void)stream;
    if (result != WPK_CUDA_SUCCESS) {
        return result;
    }
    return find_exec(exec) != NULL ? WPK_CUDA_SUCCESS : WPK_CUDA_INVALID_VALUE;
}

int cuGraphLaunch(void *exec, void *stream)
{
    WPK_OBEY_ORDERS();
    const struct exec *found = find_exec(exec);
    int result = wpk_driver_entered();
    result = result == WPK_CUDA_SUCCESS ? wpk_driver_uncaptured(stream) : result;
    if (result == WPK_CUDA_SUCCESS && found == NULL) {
        return WPK_CUDA_INVALID_VALUE;
    }
    for (int i = 0; result == WPK_CUDA_SUCCESS && i < found->count; i++) {
        result = wpk_driver_launch(&found->node[i].launch, found->node[i].values);
    }
    return result;
}
