/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/twin.h"

#include <string.h>

/* One copy in the making. */
struct copy {
    const struct wpk_ort *ort;
    struct wpk_arena *arena;
    const struct ort_graph *from;
    struct ort_graph *to; /* owned until the model has it */
};

/* The elements of an attribute of `size` bytes and their number, as CreateOpAttr takes them.
 * Strings come one after another, each with a NUL at the end, and go as an array of pointers. */
static struct ort_status *arrange(struct copy *copy, int type, const char *data, size_t size,
                                  const void **elements, int *count)
{
    const struct wpk_ort *ort = copy->ort;
    struct ort_status *status = NULL;
    const char **strings;
    *count = type == ORT_ATTRIBUTE_INTS     ? (int)(size / sizeof(int64_t))
             : type == ORT_ATTRIBUTE_FLOATS ? (int)(size / sizeof(float))
             : type == ORT_ATTRIBUTE_STRING ? (int)size
                                            : 1;
    *elements = data;
    if (type == ORT_ATTRIBUTE_STRINGS) {
        WPK_ORT_TAKE(copy->arena, size + 1, strings);
        *count = 0;
        for (const char *p = data; p < data + size; p += strlen(p) + 1) {
            strings[(*count)++] = p;
        }
        *elements = strings;
    }
done:
    return status;
}

static struct ort_status *copy_attribute(struct copy *copy, const struct ort_attribute *from,
                                         struct ort_attribute **out)
{
    const struct wpk_ort *ort = copy->ort;
    struct ort_status *status = NULL;
    const char *name;
    int type;
    size_t size = 0;
    char *data;
    const void *elements;
    int count;
    WPK_ORT_TRY(ort->OpAttr_GetName(from, &name));
    WPK_ORT_TRY(ort->OpAttr_GetType(from, &type));
    /* Without room it says how much is needed, and that there is too little. */
    ort->ReleaseStatus(ort->ReadOpAttr(from, type, NULL, 0, &size));
    WPK_ORT_TAKE(copy->arena, size + 1, data);
    WPK_ORT_TRY(ort->ReadOpAttr(from, type, data, size, &size));
    WPK_ORT_TRY(arrange(copy, type, data, size, &elements, &count));
    WPK_ORT_TRY(ort->CreateOpAttr(name, elements, count, type, out));
done:
    return status;
}

/* The names of values; "" where an optional one is left out. */
static struct ort_status *list_names(struct copy *copy, const struct ort_value_info **values,
                                     size_t count, const char ***out)
{
    const struct wpk_ort *ort = copy->ort;
    struct ort_status *status = NULL;
    const char **names;
    WPK_ORT_TAKE(copy->arena, count, names);
    for (size_t i = 0; i < count; i++) {
        names[i] = "";
        if (values[i] != NULL) {
            WPK_ORT_TRY(ort->GetValueInfoName(values[i], &names[i]));
        }
    }
    *out = names;
done:
    return status;
}

/* The model editor makes no attribute of a tensor. ConstantOfShape, the only common operator of
 * numbers with one, is Expand of a scalar. */
static const char fill_operator[] = "ConstantOfShape";

bool wpk_copy_takes(const char *op_type, int attribute_type)
{
    return attribute_type == ORT_ATTRIBUTE_TENSOR
               ? strcmp(op_type, fill_operator) == 0
               : attribute_type >= ORT_ATTRIBUTE_INT && attribute_type <= ORT_ATTRIBUTE_STRINGS;
}

/* A node in the making: what CreateNode takes. */
struct draft {
    const char *name, *op_type, *domain;
    const char **inputs, **outputs;
    size_t input_count, output_count;
    struct ort_attribute **attributes; /* [attribute_count], each owned or NULL */
    size_t attribute_count;
};

/* Turn the draft of a ConstantOfShape into one of Expand; `value` is the attribute, of one element.
 * The scalar is a constant with a name that no value of a model has: it contains a newline. */
static struct ort_status *make_expand(struct copy *copy, struct draft *draft,
                                      const struct ort_attribute *value)
{
    const struct wpk_ort *ort = copy->ort;
    struct ort_status *status = NULL;
    struct ort_value *from = NULL, *scalar = NULL;
    struct ort_allocator *allocator;
    struct wpk_ort_tensor source, target;
    const char **inputs;
    char *name;
    WPK_ORT_TRY(ort->OpAttr_GetTensorAttributeAsOrtValue(value, &from));
    WPK_ORT_TRY(wpk_ort_tensor(ort, from, &source));
    WPK_ORT_TRY(ort->GetAllocatorWithDefaultOptions(&allocator));
    WPK_ORT_TRY(ort->CreateTensorAsOrtValue(allocator, NULL, 0, source.element, &scalar));
    WPK_ORT_TRY(wpk_ort_tensor(ort, scalar, &target));
    memcpy(target.data, source.data, target.size);
    size_t name_size = strlen(draft->outputs[0]);
    WPK_ORT_TAKE(copy->arena, name_size + 2, name);
    memcpy(name, draft->outputs[0], name_size);
    name[name_size] = '\n';
    WPK_ORT_TRY(ort->AddInitializerToGraph(copy->to, name, scalar, false));
    scalar = NULL;
    WPK_ORT_TAKE(copy->arena, 2, inputs);
    inputs[0] = name;
    inputs[1] = draft->inputs[0];
    draft->op_type = "Expand";
    draft->inputs = inputs;
    draft->input_count = 2;
    draft->attribute_count = 0;
done:
    ort->ReleaseValue(scalar);
    ort->ReleaseValue(from);
    return status;
}

static struct ort_status *copy_attributes(struct copy *copy, const struct ort_node *from,
                                          struct draft *draft)
{
    const struct wpk_ort *ort = copy->ort;
    struct ort_status *status = NULL;
    const struct ort_attribute **attributes;
    size_t count;
    WPK_ORT_LIST(copy->arena, Node, Attributes, from, attributes, count);
    WPK_ORT_TAKE(copy->arena, count, draft->attributes);
    draft->attribute_count = count;
    for (size_t i = 0; i < count; i++) {
        int type;
        WPK_ORT_TRY(ort->OpAttr_GetType(attributes[i], &type));
        if (type == ORT_ATTRIBUTE_TENSOR) {
            WPK_ORT_TRY(make_expand(copy, draft, attributes[i]));
        } else {
            WPK_ORT_TRY(copy_attribute(copy, attributes[i], &draft->attributes[i]));
        }
    }
done:
    return status;
}

/* A node without a name gets its first output's, by which error messages can name it. */
static struct ort_status *copy_node(struct copy *copy, const struct ort_node *from)
{
    const struct wpk_ort *ort = copy->ort;
    struct ort_status *status = NULL;
    struct ort_node *node = NULL;
    struct draft draft = {0};
    const struct ort_value_info **inputs, **outputs;
    WPK_ORT_TRY(ort->Node_GetName(from, &draft.name));
    WPK_ORT_TRY(ort->Node_GetOperatorType(from, &draft.op_type));
    WPK_ORT_TRY(ort->Node_GetDomain(from, &draft.domain));
    WPK_ORT_LIST(copy->arena, Node, Inputs, from, inputs, draft.input_count);
    WPK_ORT_TRY(list_names(copy, inputs, draft.input_count, &draft.inputs));
    WPK_ORT_LIST(copy->arena, Node, Outputs, from, outputs, draft.output_count);
    WPK_ORT_TRY(list_names(copy, outputs, draft.output_count, &draft.outputs));
    WPK_ORT_TRY(copy_attributes(copy, from, &draft));
    if (draft.name[0] == '\0' && draft.output_count > 0) {
        draft.name = draft.outputs[0];
    }
    WPK_ORT_TRY(ort->CreateNode(draft.op_type, draft.domain, draft.name, draft.inputs,
                                draft.input_count, draft.outputs, draft.output_count,
                                draft.attributes, draft.attribute_count, &node));
    WPK_ORT_TRY(ort->AddNodeToGraph(copy->to, node));
    node = NULL;
done:
    /* Those that CreateNode took are NULL. */
    for (size_t i = 0; i < draft.attribute_count; i++) {
        if (draft.attributes[i] != NULL) {
            ort->ReleaseOpAttr(draft.attributes[i]);
        }
    }
    ort->ReleaseNode(node);
    return status;
}

/* Declare an output with the type and the rank of `value`; its own declaration where that has no
 * rank, or rank 0. */
static struct ort_status *copy_output(struct copy *copy, const struct ort_value_info *value,
                                      struct ort_value_info **out)
{
    const struct wpk_ort *ort = copy->ort;
    struct ort_status *status = NULL;
    struct ort_shape_info *shape = NULL;
    struct ort_type_info *simple = NULL;
    const struct ort_type_info *own;
    struct wpk_ort_type type;
    const char *name;
    WPK_ORT_TRY(ort->GetValueInfoName(value, &name));
    WPK_ORT_TRY(ort->GetValueInfoTypeInfo(value, &own));
    WPK_ORT_TRY(wpk_ort_type(ort, copy->arena, own, &type));
    if (type.rank > 0) {
        for (size_t i = 0; i < type.rank; i++) {
            type.extents[i] = -1;
        }
        WPK_ORT_TRY(ort->CreateTensorTypeAndShapeInfo(&shape));
        WPK_ORT_TRY(ort->SetTensorElementType(shape, type.element));
        WPK_ORT_TRY(ort->SetDimensions(shape, type.extents, type.rank));
        WPK_ORT_TRY(ort->CreateTensorTypeInfo(shape, &simple));
    }
    WPK_ORT_TRY(ort->CreateValueInfo(name, simple != NULL ? simple : own, out));
done:
    ort->ReleaseTypeInfo(simple);
    ort->ReleaseTensorTypeAndShapeInfo(shape);
    return status;
}

static struct ort_status *copy_outputs(struct copy *copy, const struct ort_value_info **values,
                                       size_t count)
{
    const struct wpk_ort *ort = copy->ort;
    struct ort_status *status = NULL;
    struct ort_value_info **infos = NULL;
    WPK_ORT_TAKE(copy->arena, count, infos);
    for (size_t i = 0; i < count; i++) {
        WPK_ORT_TRY(copy_output(copy, values[i], &infos[i]));
    }
    WPK_ORT_TRY(ort->SetGraphOutputs(copy->to, infos, count));
done:
    /* Those that the graph took are NULL. */
    for (size_t i = 0; infos != NULL && i < count; i++) {
        if (infos[i] != NULL) {
            ort->ReleaseValueInfo(infos[i]);
        }
    }
    return status;
}

static struct ort_status *copy_constants(struct copy *copy, struct wpk_constant_files *files)
{
    const struct wpk_ort *ort = copy->ort;
    struct ort_status *status = NULL;
    const struct ort_value_info **infos;
    size_t count;
    const char *path = NULL;
    WPK_ORT_TRY(ort->Graph_GetModelPath(copy->from, &path));
    WPK_ORT_LIST(copy->arena, Graph, Initializers, copy->from, infos, count);
    for (size_t i = 0; i < count; i++) {
        bool is_constant;
        WPK_ORT_TRY(ort->ValueInfo_IsConstantInitializer(infos[i], &is_constant));
        if (is_constant) {
            WPK_ORT_TRY(wpk_constant_add(ort, copy->arena, infos[i], path == NULL ? "" : path,
                                         files, copy->to));
        }
    }
done:
    return status;
}

struct ort_status *wpk_copy_model(const struct wpk_ort *ort, struct wpk_arena *arena,
                                  const struct ort_graph *graph,
                                  const struct ort_value_info **outputs, size_t output_count,
                                  struct wpk_constant_files *files, struct ort_model **out)
{
    struct copy copy = {.ort = ort, .arena = arena, .from = graph};
    struct ort_status *status = NULL;
    struct ort_model *model = NULL;
    const struct ort_node **nodes;
    size_t node_count;
    WPK_ORT_TRY(ort->CreateGraph(&copy.to));
    WPK_ORT_TRY(copy_outputs(&copy, outputs, output_count));
    WPK_ORT_TRY(copy_constants(&copy, files));
    WPK_ORT_LIST(arena, Graph, Nodes, graph, nodes, node_count);
    for (size_t i = 0; i < node_count; i++) {
        WPK_ORT_TRY(copy_node(&copy, nodes[i]));
    }
    WPK_ORT_TRY(ort->CreateModel(NULL, NULL, 0, &model));
    WPK_ORT_TRY(ort->AddGraphToModel(model, copy.to));
    copy.to = NULL;
    *out = model;
    model = NULL;
done:
    ort->ReleaseGraph(copy.to);
    ort->ReleaseModel(model);
    return status;
}
