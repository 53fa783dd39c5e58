/* SPDX-License-Identifier: Apache-2.0 */
/* State and error reporting shared by the files that read ONNX. */
#ifndef WPK_MODEL_ONNX_READER_H
#define WPK_MODEL_ONNX_READER_H

#include "model/graph.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A reader of protocol buffers' wire format over bytes in memory; nothing is copied.
 *
 *   source  protobuf.dev, "Encoding": varints, tags, length-delimited fields; groups are refused */

enum wpk_protobuf_wire {
    WPK_PROTOBUF_VARINT = 0,
    WPK_PROTOBUF_FIXED64 = 1,
    WPK_PROTOBUF_BYTES = 2,
    WPK_PROTOBUF_FIXED32 = 5,
};

/* One message, or a packed field, that is being read. Invariant: at <= end. */
struct wpk_protobuf {
    const uint8_t *at;
    const uint8_t *end;
    bool malformed; /* sticks: `at` is where the field began that could not be read */
};

struct wpk_protobuf_field {
    uint32_t number; /* >= 1 */
    enum wpk_protobuf_wire wire;
    uint64_t value;            /* VARINT, FIXED64, FIXED32 */
    struct wpk_protobuf bytes; /* BYTES: text, a message, or packed values; borrowed */
};

/* Read the next field. False at the end, and where the rest is malformed. */
bool wpk_protobuf_next(struct wpk_protobuf *reader, struct wpk_protobuf_field *out);

/* Read the next varint of a packed field, under the same rule. */
bool wpk_protobuf_varint(struct wpk_protobuf *reader, uint64_t *out);

/* Bytes that are left. */
size_t wpk_protobuf_size(const struct wpk_protobuf *reader);

#define WPK_ONNX_CALLS_MAX 32 /* functions and branches inside each other */

/* A function that the model defines. */
struct wpk_onnx_function {
    const char *name;
    const char *domain;
    struct wpk_protobuf message;
};

/* A name of the function, and the value that it is in a call; -1: left out. */
struct wpk_onnx_formal {
    const char *name;
    int value;
    bool is_output;
    bool is_given; /* false: an output that no node has computed yet */
};

/* A call, or a branch. Names that are not formal are its own: `prefix` stands before them. */
struct wpk_onnx_scope {
    const struct wpk_onnx_function *function; /* NULL: a branch, where outer names are known, too */
    const struct wpk_graph_node *caller;
    struct wpk_onnx_scope *outer; /* NULL: the model's graph */
    const char *prefix;
    struct wpk_onnx_formal *formals;
    int formal_count;
    struct wpk_graph_attribute *defaults; /* of attributes that the caller leaves out */
    int default_count;
};

struct wpk_onnx_reader {
    struct wpk_graph *graph;
    const char *path; /* of the model */
    struct wpk_diag *diag;
    const char *external_path; /* the last file of external data; NULL: none was read */
    struct wpk_protobuf external;
    struct wpk_onnx_function *functions; /* [function_count] of the model */
    int function_count;
    bool has_opset;                      /* the model says that of ONNX's own operators */
    int call_count;                      /* of functions, so far */
    struct wpk_onnx_scope *scope;        /* that is being read; NULL: the model's graph */
    const struct wpk_graph_guard *guard; /* of the branch that is being read; NULL: none */
    char where[128];                     /* "node conv1 (Conv)", "tensor W"; "": the model itself */
};

/* Fail with `diag` about reader->where.   errors  returns `err` */
WPK_MUST_CHECK wpk_err wpk_onnx_fail(const struct wpk_onnx_reader *reader, wpk_err err,
                                     const char *format, ...) WPK_PRINTF(3, 4);
/* WPK_OK if the message was read to its end, else an error that says where the file is bad. */
WPK_MUST_CHECK wpk_err wpk_onnx_end(const struct wpk_onnx_reader *reader,
                                    const struct wpk_protobuf *message);

/* Copy a field's text into the arena and check it.   errors  WPK_EPARSE; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_onnx_text(const struct wpk_onnx_reader *reader,
                                     const struct wpk_protobuf_field *field, const char **out);

/* How many fields of this number the message has. */
int wpk_onnx_count(struct wpk_protobuf message, uint32_t number);

/* Read every message that is field `number` of a message.   errors  those of `read`; WPK_EPARSE */
WPK_MUST_CHECK wpk_err wpk_onnx_read_parts(struct wpk_onnx_reader *reader,
                                           struct wpk_protobuf message, uint32_t number,
                                           wpk_err (*read)(struct wpk_onnx_reader *,
                                                           struct wpk_protobuf));

/* Map a file for reading and note it in the graph. `folder` < 0: the path is the user's; else it is
 * a plain path below that directory, and no link in it is followed.
 *   errors  those of opening files; WPK_ENOSPC more than WPK_GRAPH_MAPS_MAX */
WPK_MUST_CHECK wpk_err wpk_onnx_map(const struct wpk_onnx_reader *reader, int folder,
                                    const char *path, struct wpk_protobuf *out);

/* The formal of this name in the call that is being read; NULL: none. */
struct wpk_onnx_formal *wpk_onnx_formal_find(const struct wpk_onnx_reader *reader,
                                             const char *name);
/* Find the value that a name has here: of the call, or of the branch and what is around it. *out is
 * -1 for an input that the caller leaves out.   returns false: there is none */
bool wpk_onnx_find_value(const struct wpk_onnx_reader *reader, const char *name, int *out);
/* WPK_OK if one more call or branch may be opened. */
WPK_MUST_CHECK wpk_err wpk_onnx_count_call(struct wpk_onnx_reader *reader);
/* The value's name in the graph, in the graph's arena; NULL: no memory. */
const char *wpk_onnx_scoped_name(const struct wpk_onnx_reader *reader, const char *name);

/* Fill in what the caller gives, or the function's default, but for the name. False: neither. */
bool wpk_onnx_scoped_attribute(const struct wpk_onnx_reader *reader, const char *reference,
                               struct wpk_graph_attribute *out);

/* Attributes of nodes. */

/* Read an AttributeProto.   errors  WPK_EPARSE, WPK_EUNSUPPORTED, those of wpk_onnx_tensor */
WPK_MUST_CHECK wpk_err wpk_onnx_attribute(struct wpk_onnx_reader *reader,
                                          struct wpk_protobuf message,
                                          struct wpk_graph_attribute *out);

/* Constants of a model file, and of its files of external data. */

/* Read a TensorProto into a new value that is a constant, under its name or, for attributes,
 * without one.
 *   errors  WPK_EPARSE, WPK_EUNSUPPORTED, WPK_ERANGE, those of external data; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_onnx_tensor(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                                       bool is_attribute, int *out);

/* Functions that a model file defines: a node that calls one stands for the function's nodes. */

/* Read the names of the model's functions into the reader.   errors  WPK_EPARSE, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_onnx_functions_read(struct wpk_onnx_reader *reader,
                                               struct wpk_protobuf model);

/* The function that the node calls; NULL: it is an operator. */
const struct wpk_onnx_function *wpk_onnx_function_find(const struct wpk_onnx_reader *reader,
                                                       const struct wpk_graph_node *node);

/* Read each of the function's nodes by `read`, as if they stood in place of `caller`.
 *   errors  WPK_EPARSE, WPK_EUNSUPPORTED with a reason; those of `read`; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_onnx_function_call(struct wpk_onnx_reader *reader,
                                              const struct wpk_onnx_function *function,
                                              const struct wpk_graph_node *caller,
                                              wpk_err (*read)(struct wpk_onnx_reader *reader,
                                                              struct wpk_protobuf node));

/* Branches of an If, and bodies of a Loop or Scan. The nodes of both branches are read into the
 * graph with a guard, and the If becomes one node for each output, with the condition and the two
 * values that it has to choose from as inputs. Shape inference (shape.c) leaves out the branch that
 * is not taken, where the condition follows from constants and shapes; else both are computed, and
 * a Where chooses. A body stays apart from the graph (loop.h). */

/* The functions that read parts of a GraphProto. */
struct wpk_onnx_parts {
    wpk_err (*initializer)(struct wpk_onnx_reader *reader, struct wpk_protobuf message);
    wpk_err (*node)(struct wpk_onnx_reader *reader, struct wpk_protobuf message);
};

/* Add the nodes of an If, whose inputs and outputs are known; `message` is its NodeProto.
 *   errors  WPK_EPARSE a branch is missing, or has not as many outputs; those of the parts */
WPK_MUST_CHECK wpk_err wpk_onnx_branch_read(struct wpk_onnx_reader *reader,
                                            const struct wpk_graph_node *node,
                                            struct wpk_protobuf message,
                                            const struct wpk_onnx_parts *parts);

/* True for a node that has a body: a Loop or Scan. */
bool wpk_onnx_is_repeating(const struct wpk_graph_node *node);

/* Read the body of such a node.   owns  *out is the graph's
 *   errors  WPK_EPARSE the body is missing; those of the parts */
WPK_MUST_CHECK wpk_err wpk_onnx_body_read(struct wpk_onnx_reader *reader,
                                          const struct wpk_graph_node *node,
                                          struct wpk_protobuf message,
                                          const struct wpk_onnx_parts *parts,
                                          const struct wpk_graph_body **out);

#endif
