/* SPDX-License-Identifier: Apache-2.0 */
/* Writes small ONNX models for tests, without ONNX. */
#ifndef WPK_TESTS_MODEL_FIXTURE_H
#define WPK_TESTS_MODEL_FIXTURE_H

#include "model/graph.h"

/* A model that grows; = {0} is empty. */
struct wpk_model_fixture {
    struct wpk_buf graph; /* the fields of its GraphProto */
    struct wpk_buf other; /* further fields of its ModelProto, before the graph */
    int opset;            /* 0: 17; -1: the model says none */
    char path[64];        /* of a memory file, once written */
    int fd;
};

/* Add an input or a constant of this type, such as "f32[1,3]"; a constant's elements are 1, 2, 3,
 * ..., or those of `values` ("1,-1"), if that is not NULL. */
void wpk_model_fixture_input(struct wpk_model_fixture *model, const char *name, const char *type);
void wpk_model_fixture_constant(struct wpk_model_fixture *model, const char *name, const char *type,
                                const char *values);
/* Add a node that is named like its outputs.
 *   shape   op "Relu" or "ai.onnx.ml:Scaler"; inputs "x,w,,b"; output "y" or "y,z"; attributes
 *           "axis:i=1 pads:I=1,1 alpha:f=0.5 scales:F=1,2 auto_pad:s=VALID names:S=a,b" */
void wpk_model_fixture_node(struct wpk_model_fixture *model, const char *op, const char *inputs,
                            const char *output, const char *attributes);
/* Add a node with another model's inputs, constants, nodes and outputs as its body; empties it. */
void wpk_model_fixture_body(struct wpk_model_fixture *model, const char *op, const char *inputs,
                            const char *output, const char *attributes,
                            struct wpk_model_fixture *body);
void wpk_model_fixture_output(struct wpk_model_fixture *model, const char *name);

/* Write the first `size` bytes of the model, or all, to a memory file and return its path, which
 * is valid until wpk_model_fixture_fini. */
const char *wpk_model_fixture_write(struct wpk_model_fixture *model, size_t size_max);
void wpk_model_fixture_fini(struct wpk_model_fixture *model);

/* Append a field to a message: a varint, bytes, a text, or another message, which is empty then. */
void wpk_model_put_number(struct wpk_buf *out, int field, int64_t value);
void wpk_model_put_bytes(struct wpk_buf *out, int field, const void *data, size_t size);
void wpk_model_put_text(struct wpk_buf *out, int field, const char *text);
void wpk_model_put_message(struct wpk_buf *out, int field, struct wpk_buf *message);

#endif
