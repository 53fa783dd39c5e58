/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/session.h"

#include "runtime/onnxruntime/twin.h"

#include <string.h>

/* A node under survey. */
struct candidate {
    const struct ort_value_info **inputs, **outer; /* `outer`: what the bodies of an If read */
    size_t input_count, outer_count;
    size_t id;
};

/* One look at a graph. Memory is the arena's. */
struct survey {
    const struct wpk_ort *ort;
    struct wpk_arena arena;
    const struct ort_node **nodes; /* [node_count], each after those that it reads from */
    struct candidate *candidates;  /* [node_count] */
    bool *is_claimable;            /* [node_count] */
    size_t node_count;
    size_t *index_of_id; /* [id_count] */
    size_t id_count;
    struct wpk_convex_edge *edges; /* [edge_count], sorted by `to` */
    size_t edge_count;
};

static bool is_known_domain(const char *domain)
{
    static const char *const known[] = {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(domain, known[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Clear *is_claimable unless all values are tensors of numbers. One that is left out is NULL. */
static struct ort_status *check_values(struct survey *survey, const struct ort_value_info **values,
                                       size_t count, bool *is_claimable)
{
    struct ort_status *status = NULL;
    for (size_t i = 0; i < count && *is_claimable; i++) {
        struct wpk_ort_type type;
        if (values[i] != NULL) {
            WPK_ORT_TRY(wpk_ort_value_type(survey->ort, &survey->arena, values[i], &type));
            *is_claimable = type.element != 0 && type.element != ORT_ELEMENT_STRING;
        }
    }
done:
    return status;
}

/* Clear *is_claimable unless the node is one of those of capability.h, apart from its values. */
static struct ort_status *check_node(struct survey *survey, const struct ort_node *node,
                                     bool *is_claimable)
{
    const struct wpk_ort *ort = survey->ort;
    struct ort_status *status = NULL;
    const char *domain, *op_type, *provider = NULL;
    const struct ort_attribute **attributes;
    size_t attribute_count;
    WPK_ORT_TRY(ort->Node_GetDomain(node, &domain));
    WPK_ORT_TRY(ort->Node_GetOperatorType(node, &op_type));
    WPK_ORT_TRY(ort->Node_GetEpName(node, &provider));
    *is_claimable = is_known_domain(domain) && (provider == NULL || provider[0] == '\0');
    WPK_ORT_LIST(&survey->arena, Node, Attributes, node, attributes, attribute_count);
    for (size_t i = 0; i < attribute_count; i++) {
        int type;
        WPK_ORT_TRY(ort->OpAttr_GetType(attributes[i], &type));
        *is_claimable &= wpk_copy_takes(op_type, type);
    }
done:
    return status;
}

static struct ort_status *survey_node(struct survey *survey, size_t index)
{
    const struct wpk_ort *ort = survey->ort;
    const struct ort_node *node = survey->nodes[index];
    struct candidate *candidate = &survey->candidates[index];
    bool *is_claimable = &survey->is_claimable[index];
    struct ort_status *status = NULL;
    const struct ort_value_info **outputs;
    size_t output_count;
    WPK_ORT_TRY(check_node(survey, node, is_claimable));
    WPK_ORT_LIST(&survey->arena, Node, Outputs, node, outputs, output_count);
    WPK_ORT_TRY(check_values(survey, outputs, output_count, is_claimable));
    WPK_ORT_LIST(&survey->arena, Node, Inputs, node, candidate->inputs, candidate->input_count);
    WPK_ORT_TRY(check_values(survey, candidate->inputs, candidate->input_count, is_claimable));
    WPK_ORT_LIST(&survey->arena, Node, ImplicitInputs, node, candidate->outer,
                 candidate->outer_count);
    WPK_ORT_TRY(ort->Node_GetId(node, &candidate->id));
    if (survey->id_count <= candidate->id) {
        survey->id_count = candidate->id + 1;
    }
    survey->edge_count += candidate->input_count + candidate->outer_count;
done:
    return status;
}

/* Add an edge for each of these inputs of node number `index` that a node writes. */
static struct ort_status *add_edges(struct survey *survey, size_t index,
                                    const struct ort_value_info **values, size_t count)
{
    const struct wpk_ort *ort = survey->ort;
    struct ort_status *status = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct ort_node *producer = NULL;
        size_t output, id;
        if (values[i] != NULL) {
            WPK_ORT_TRY(ort->ValueInfo_GetValueProducer(values[i], &producer, &output));
        }
        if (producer == NULL) {
            continue;
        }
        WPK_ORT_TRY(ort->Node_GetId(producer, &id));
        if (id >= survey->id_count || survey->index_of_id[id] >= index) {
            WPK_ORT_TRY(wpk_ort_fail(ort, "node %zu is not before one that reads from it", id));
        }
        survey->edges[survey->edge_count++] =
            (struct wpk_convex_edge){.from = survey->index_of_id[id], .to = index};
    }
done:
    return status;
}

/* Survey all nodes, then the edges between them. */
static struct ort_status *survey_graph(struct survey *survey, const struct ort_graph *graph)
{
    const struct wpk_ort *ort = survey->ort;
    struct wpk_arena *arena = &survey->arena;
    struct ort_status *status = NULL;
    WPK_ORT_LIST(arena, Graph, Nodes, graph, survey->nodes, survey->node_count);
    WPK_ORT_TAKE(arena, survey->node_count, survey->candidates);
    WPK_ORT_TAKE(arena, survey->node_count, survey->is_claimable);
    for (size_t i = 0; i < survey->node_count; i++) {
        WPK_ORT_TRY(survey_node(survey, i));
    }
    WPK_ORT_TAKE(arena, survey->id_count, survey->index_of_id);
    WPK_ORT_TAKE(arena, survey->edge_count, survey->edges);
    survey->edge_count = 0;
    for (size_t i = 0; i < survey->node_count; i++) {
        const struct candidate *candidate = &survey->candidates[i];
        survey->index_of_id[candidate->id] = i;
        WPK_ORT_TRY(add_edges(survey, i, candidate->inputs, candidate->input_count));
        WPK_ORT_TRY(add_edges(survey, i, candidate->outer, candidate->outer_count));
    }
done:
    return status;
}

/* Claim each layer's nodes. The group keeps its constants (runtime/onnxruntime/twin.h), so
 * that ONNX Runtime can drop them. */
static struct ort_status *claim_layers(struct survey *survey, struct ort_support_info *info)
{
    const struct wpk_ort *ort = survey->ort;
    struct ort_status *status = NULL;
    size_t *layer;
    const struct ort_node **group;
    WPK_ORT_TAKE(&survey->arena, survey->node_count, layer);
    WPK_ORT_TAKE(&survey->arena, survey->node_count, group);
    size_t layer_count = wpk_convex_layers(survey->node_count, survey->is_claimable,
                                           survey->edge_count, survey->edges, layer);
    struct ort_fusion_options options = {.version = WPK_ORT_VERSION,
                                         .drop_constant_initializers = true};
    for (size_t i = 0; i < layer_count; i++) {
        size_t count = 0;
        for (size_t node = 0; node < survey->node_count; node++) {
            if (survey->is_claimable[node] && layer[node] == i) {
                group[count++] = survey->nodes[node];
            }
        }
        if (count > 0) {
            WPK_ORT_TRY(ort->EpGraphSupportInfo_AddNodesToFuse(info, group, count, &options));
        }
    }
done:
    return status;
}

struct ort_status *wpk_capability_claim(const struct wpk_ort *ort, const struct ort_graph *graph,
                                        struct ort_support_info *info)
{
    struct survey survey = {.ort = ort};
    struct ort_status *status = NULL;
    const struct ort_node *parent = NULL;
    wpk_arena_init(&survey.arena, 0);
    WPK_ORT_TRY(ort->Graph_GetParentNode(graph, &parent));
    if (parent == NULL) {
        WPK_ORT_TRY(survey_graph(&survey, graph));
        WPK_ORT_TRY(claim_layers(&survey, info));
    }
done:
    wpk_arena_fini(&survey.arena);
    return status;
}
