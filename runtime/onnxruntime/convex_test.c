/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/session.h"

#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NODES_MAX 24
#define EDGES_MAX (NODES_MAX * NODES_MAX)

struct graph {
    size_t node_count, edge_count, layer_count;
    bool is_claimable[NODES_MAX];
    struct wpk_convex_edge edges[EDGES_MAX];
    size_t layer[NODES_MAX];
};

static void split(struct graph *graph)
{
    graph->layer_count = wpk_convex_layers(graph->node_count, graph->is_claimable,
                                           graph->edge_count, graph->edges, graph->layer);
}

static void add_edge(struct graph *graph, size_t from, size_t to)
{
    graph->edges[graph->edge_count++] = (struct wpk_convex_edge){.from = from, .to = to};
}

static void draw(struct wpk_rng *rng, struct graph *graph)
{
    *graph = (struct graph){.node_count = 1 + wpk_rng_below(rng, NODES_MAX)};
    uint64_t sparsity = 1 + wpk_rng_below(rng, NODES_MAX);
    for (size_t to = 0; to < graph->node_count; to++) {
        graph->is_claimable[to] = wpk_rng_below(rng, 4) > 0;
        for (size_t from = 0; from < to; from++) {
            if (wpk_rng_below(rng, sparsity) == 0) {
                add_edge(graph, from, to);
            }
        }
    }
}

/* The node that stands for `node` once the groups are merged: the first of its group. */
static size_t merged(const struct graph *graph, size_t node)
{
    if (graph->is_claimable[node]) {
        for (size_t i = 0; i < node; i++) {
            if (graph->is_claimable[i] && graph->layer[i] == graph->layer[node]) {
                return i;
            }
        }
    }
    return node;
}

/* Whether the merged graph has a circle: it reaches a node from itself. */
static bool has_circle(const struct graph *graph)
{
    static bool reaches[NODES_MAX][NODES_MAX];
    memset(reaches, 0, sizeof(reaches));
    for (size_t i = 0; i < graph->edge_count; i++) {
        size_t from = merged(graph, graph->edges[i].from);
        size_t to = merged(graph, graph->edges[i].to);
        reaches[from][to] |= from != to;
    }
    for (size_t via = 0; via < graph->node_count; via++) {
        for (size_t a = 0; a < graph->node_count; a++) {
            for (size_t b = 0; b < graph->node_count; b++) {
                reaches[a][b] |= reaches[a][via] && reaches[via][b];
            }
        }
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        if (reaches[i][i]) {
            return true;
        }
    }
    return false;
}

static void random_groups_leave_no_circle(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 46);
    for (int round = 0; round < 20000; round++) {
        struct graph graph;
        draw(&rng, &graph);
        split(&graph);
        if (has_circle(&graph)) {
            fail_msg("round %d: the groups leave a circle", round);
        }
        for (size_t i = 0; i < graph.node_count; i++) {
            assert_true(graph.layer[i] < graph.layer_count);
        }
    }
}

/* The check itself finds a group that is not convex. */
static void circle_is_found(void **state)
{
    (void)state;
    struct graph graph = {.node_count = 3, .is_claimable = {true, false, true}};
    add_edge(&graph, 0, 1);
    add_edge(&graph, 1, 2);
    assert_true(has_circle(&graph));
}

static void example_of_the_header(void **state)
{
    (void)state;
    enum { A, B, E, X, C, D };
    struct graph graph = {.node_count = 6, .is_claimable = {true, true, true, false, true, true}};
    add_edge(&graph, A, B);
    add_edge(&graph, B, X);
    add_edge(&graph, X, C);
    add_edge(&graph, C, D);
    add_edge(&graph, E, D);
    /* Sorted by `to`: A-B, B-X, X-C, C-D, E-D. */
    split(&graph);
    assert_int_equal(graph.layer_count, 2);
    assert_int_equal(graph.layer[A], 0);
    assert_int_equal(graph.layer[B], 0);
    assert_int_equal(graph.layer[E], 0);
    assert_int_equal(graph.layer[C], 1);
    assert_int_equal(graph.layer[D], 1);
}

/* A graph that can be claimed whole is one group, however it branches. */
static void whole_graph_is_one_group(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 47);
    for (int round = 0; round < 100; round++) {
        struct graph graph;
        draw(&rng, &graph);
        memset(graph.is_claimable, true, sizeof(graph.is_claimable));
        split(&graph);
        assert_int_equal(graph.layer_count, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_groups_leave_no_circle),
        cmocka_unit_test(circle_is_found),
        cmocka_unit_test(example_of_the_header),
        cmocka_unit_test(whole_graph_is_one_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
