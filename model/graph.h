/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a graph: nodes that compute values from values.
 *
 * Nodes are in topological order, as ONNX demands of its files. Nodes and values refer to each
 * other by index. Constants point into the mapped model file, or a file of external data, wherever
 * their bytes lie there as they are; only what the file spells otherwise is copied.
 *
 * Invariants of a graph that was read:
 *   - each value has one origin: a model input, constant data, or one node
 *   - a node reads only inputs, constants and values of earlier nodes; -1 is an input left out
 *   - names are UTF-8 without control characters
 * What shape inference (shape.h) finds out is written into the values. */
#ifndef WPK_MODEL_GRAPH_H
#define WPK_MODEL_GRAPH_H

#include "common/arena.h"
#include "common/buf.h"
#include "schema/tensor.h"

#define WPK_GRAPH_NODES_MAX 65536
#define WPK_GRAPH_VALUES_MAX 262144
#define WPK_GRAPH_MEMORY_MAX                                                                       \
    ((size_t)4 << 30)         /* bytes beside the mapped files: attributes, copies */
#define WPK_GRAPH_MAPS_MAX 64 /* the model file and its files of external data */

struct wpk_graph_value {
    const char *name; /* "" for a constant of an attribute */
    int element_type; /* ONNX's number that the file says; 0: not known */
    enum wpk_dtype dtype;
    bool is_typed;  /* dtype is known, and of those that can be computed */
    bool is_shaped; /* rank and extents are known */
    bool is_fixed;  /* of a node whose output's shape data decides: the user gave it */
    int rank;
    int64_t extent[WPK_RANK_MAX];       /* [rank], >= 1; constants may have 0 */
    const char *free_dim[WPK_RANK_MAX]; /* inputs: the name of an extent that is not fixed, "" for
                                            an unnamed one; NULL: fixed */
    int64_t pad_before[WPK_RANK_MAX];   /* [rank] what lies around it in memory (region/layout.h) */
    int64_t pad_after[WPK_RANK_MAX];
    bool is_part;     /* that belongs to others; else it is zero */
    const void *data; /* constants: row-major, any alignment; borrowed */
    size_t size;      /* bytes of `data` */
    int writer;       /* node that computes it; -1: none */
    int wide;         /* the value that is it as f32; 0: none yet */
    bool is_input;
    bool is_output;
    bool is_read;   /* by a node */
    bool is_dead;   /* computed in a branch that is not taken */
    bool is_stored; /* stays in memory between the step that computes it and those that read it */
};

enum wpk_graph_attribute_kind {
    WPK_ATTRIBUTE_OTHER, /* a graph, texts, and what else no supported operator has */
    WPK_ATTRIBUTE_INT,
    WPK_ATTRIBUTE_FLOAT,
    WPK_ATTRIBUTE_TEXT,
    WPK_ATTRIBUTE_INTS,
    WPK_ATTRIBUTE_FLOATS,
    WPK_ATTRIBUTE_TENSOR,
};

struct wpk_graph_attribute {
    const char *name;
    enum wpk_graph_attribute_kind kind;
    int64_t integer;
    float real;
    const char *text;
    const int64_t *integers; /* [count] */
    const float *reals;      /* [count] */
    int count;
    int tensor; /* TENSOR: a constant value */
};

/* Constant operands of products that are stored in a narrower type; f32: they are not. */
struct wpk_graph_weights {
    enum wpk_dtype dtype; /* f32, bf16 or i8 */
    bool is_i4;           /* dtype i8: matrices have 4 bits, in blocks (operator/precision.c) */
    int count;            /* of products whose weights are */
    double energy, noise; /* sums of squares: of the weights, and of what they lost */
};

/* A node in a branch of an If: it is one of the graph's only if the condition has this value. */
struct wpk_graph_guard {
    int condition; /* value */
    bool wanted;
};

struct wpk_graph_body;

struct wpk_graph_node {
    const char *name; /* of the file; else that of its first output */
    const char *op;   /* such as "Conv" */
    const char *domain;
    const int *inputs; /* [input_count] values; -1: left out */
    int input_count;
    const int *outputs; /* [output_count] values; -1: nobody asks for it */
    int output_count;   /* 1, once wpk_graph_split_outputs has run */
    int part;           /* which of ONNX's outputs `outputs[0]` is */
    int part_count;     /* how many outputs ONNX's node has */
    const struct wpk_graph_attribute *attributes;
    int attribute_count;
    const struct wpk_graph_guard *guard; /* NULL: none; gone once shapes are inferred */
    const struct wpk_graph_body *body;   /* of a Loop or Scan, gone then, too; else NULL */
    int loop;                            /* of which it is a node (loop.h); 0: none */
    int64_t times;                       /* iterations of that loop */
};

/* The body of a Loop or Scan. The body's nodes are not among the graph's, and their values stand
 * for those of an iteration (loop.h). */
struct wpk_graph_body {
    const struct wpk_graph_node *nodes; /* [node_count] */
    int node_count;
    const int *inputs; /* [input_count] values */
    int input_count;
    const int *outputs; /* [output_count] values */
    int output_count;
};

/* A node that the graph lost, and why. */
struct wpk_graph_note {
    const char *node;
    const char *why; /* "folded into conv1" */
};

struct wpk_graph_map {
    void *bytes;
    size_t size;
};

/* = {0} is the empty graph. */
struct wpk_graph {
    struct wpk_arena arena;         /* names, attributes, lists of nodes, copied constants */
    struct wpk_graph_value *values; /* owned */
    int value_count;
    int value_capacity;
    struct wpk_graph_node *nodes; /* owned */
    int node_count;
    int node_capacity;
    int *inputs; /* [input_count] values, owned; without those that have constant data */
    int input_count;
    int *outputs; /* [output_count] values, owned */
    int output_count;
    int *slots; /* hash table of names, owned: a value's index + 1, or 0; power of two */
    int slot_count;
    struct wpk_graph_note *notes; /* [note_count], owned */
    int note_count;
    int note_capacity;
    double fold_work; /* operations that folding its large constants took (shape.h) */
    int64_t opset;    /* of ONNX's own operators */
    struct wpk_graph_weights weights;
    enum wpk_dtype math; /* of the operands of products of f32: f32, f16 or bf16 */
    int loop_count;      /* their numbers begin with 1 */
    struct wpk_graph_map maps[WPK_GRAPH_MAPS_MAX];
    int map_count;
    struct wpk_lowering *lowering; /* owned; programs of nodes (operator/lower.h); NULL: none yet */
    void (*lowering_free)(struct wpk_lowering *lowering);
};

void wpk_graph_fini(struct wpk_graph *graph);

/* Append a value, or a node, zeroed but for its name.
 *   shape   name: in the graph's arena; value names are found by wpk_graph_find unless ""
 *   errors  WPK_ENOSPC a limit of this header; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_add_value(struct wpk_graph *graph, const char *name, int *out);
WPK_MUST_CHECK wpk_err wpk_graph_add_node(struct wpk_graph *graph,
                                          const struct wpk_graph_node *node);

/* Take all nodes out of the graph, to be added again one by one.
 *   owns    caller frees the array; NULL: there were none */
struct wpk_graph_node *wpk_graph_take_nodes(struct wpk_graph *graph, int *count);
/* Free what was taken, and number the writers of values anew. */
void wpk_graph_end_nodes(struct wpk_graph *graph, struct wpk_graph_node *taken);

/* A text in the graph's arena, in the manner of printf. */
const char *wpk_graph_format(struct wpk_graph *graph, const char *format, ...) WPK_PRINTF(2, 3);

/* Append a note.   shape  node: in the graph's arena, or static
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_add_note(struct wpk_graph *graph, const char *node,
                                          const char *why, ...) WPK_PRINTF(3, 4);

/* The value of this name; -1: none. */
int wpk_graph_find(const struct wpk_graph *graph, const char *name);

/* The attribute of this name and kind; NULL: none. */
const struct wpk_graph_attribute *wpk_graph_attribute(const struct wpk_graph_node *node,
                                                      const char *name,
                                                      enum wpk_graph_attribute_kind kind);
int64_t wpk_graph_int(const struct wpk_graph_node *node, const char *name, int64_t otherwise);
double wpk_graph_real(const struct wpk_graph_node *node, const char *name, double otherwise);
const char *wpk_graph_text(const struct wpk_graph_node *node, const char *name,
                           const char *otherwise);

/* The value that is input number `index` of the node; NULL: left out. */
const struct wpk_graph_value *wpk_graph_input(const struct wpk_graph *graph,
                                              const struct wpk_graph_node *node, int index);

bool wpk_graph_same_attributes(const struct wpk_graph_node *a, const struct wpk_graph_node *b);
bool wpk_graph_same_shape(const struct wpk_graph_value *a, const struct wpk_graph_value *b);

/* How often each value is read by a node, or is an output of the model.
 *   owns    caller frees the array [value_count] */
int *wpk_graph_count_uses(const struct wpk_graph *graph);

/* Bytes of the constants that nodes read which are no constants themselves. */
int64_t wpk_graph_constant_bytes(const struct wpk_graph *graph);

int64_t wpk_graph_elements(const struct wpk_graph_value *value);

/* Read a constant of integers, i32 or i64.
 *   shape   out [max]; count: its elements
 *   errors  WPK_ENOENT  no such constant; WPK_ERANGE  more than max */
WPK_MUST_CHECK wpk_err wpk_graph_integers(const struct wpk_graph_value *value, int64_t *out,
                                          int max, int *count);
/* Read element `index` of a constant as a double, and of an integer type as it is. */
double wpk_graph_element(const struct wpk_graph_value *value, int64_t index);
int64_t wpk_graph_integer(const struct wpk_graph_value *value, int64_t index);

/* ONNX's name of an element type, such as "float16"; "type 77" has none: "unknown". */
const char *wpk_graph_element_type_name(int element_type);
/* The end of a message that refuses this type: "; convert the model to float32", or "". */
const char *wpk_graph_element_type_advice(int element_type);
/* The dtype of an ONNX element type, but of integers that are not computed with, and of texts.
 *   errors  WPK_EUNSUPPORTED */
WPK_MUST_CHECK wpk_err wpk_graph_dtype(int element_type, enum wpk_dtype *out);
/* ONNX's number of a type that wpk_graph_dtype() knows. */
int wpk_graph_element_of(enum wpk_dtype dtype);

/* True of an If, whose nodes model/onnx/reader.h tells of. */
bool wpk_graph_is_branching(const struct wpk_graph_node *node);

#endif
