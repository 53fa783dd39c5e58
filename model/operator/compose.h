/* SPDX-License-Identifier: Apache-2.0 */
/* Appends nodes to a graph: those that an operator without a program consists of. After a failure,
 * which is kept, nothing more is appended. Functions return the value that the node computes; 0
 * after a failure. */
#ifndef WPK_MODEL_OPERATOR_COMPOSE_H
#define WPK_MODEL_OPERATOR_COMPOSE_H

#include "model/graph.h"

struct wpk_compose {
    struct wpk_graph *graph;
    const char *name; /* of the node that the appended ones are for */
    int loop;         /* of which nodes are appended (loop.h); 0: none */
    int64_t times;    /* its iterations */
    wpk_err err;      /* WPK_ENOSPC, WPK_ENOMEM */
};

/* "NAME.PART", in the graph's arena. */
const char *wpk_compose_name(struct wpk_compose *c, const char *part);

struct wpk_graph_attribute wpk_compose_integer(const char *name, int64_t value);
struct wpk_graph_attribute wpk_compose_real(const char *name, float value);
/*   shape   values [count], at most WPK_RANK_MAX */
struct wpk_graph_attribute wpk_compose_integers(struct wpk_compose *c, const char *name,
                                                const int64_t *values, int count);

/* A node with lists that are copied, as node.inputs [node.input_count] and so on. It computes
 * `output`; -1: a new value. */
int wpk_compose_node(struct wpk_compose *c, const struct wpk_graph_node *node, int output);

int wpk_compose_unary(struct wpk_compose *c, const char *op, int x);
int wpk_compose_binary(struct wpk_compose *c, const char *op, const char *name, int x, int y);
/*   shape   extent [rank]
 *   owns    data: borrowed for the graph's life */
int wpk_compose_constant(struct wpk_compose *c, enum wpk_dtype dtype, int rank,
                         const int64_t *extent, const void *data);
int wpk_compose_number(struct wpk_compose *c, float value);
int wpk_compose_reshape(struct wpk_compose *c, int x, const char *name, int rank,
                        const int64_t *extent, int output);
int wpk_compose_transpose(struct wpk_compose *c, int x, int rank, const int64_t *order, int output);
/* Elements [begin, end) of an axis. */
int wpk_compose_slice(struct wpk_compose *c, int x, int64_t axis, int64_t begin, int64_t end);
int wpk_compose_concat(struct wpk_compose *c, const int *values, int count, int64_t axis,
                       int output);
/* x y^T + z; z: -1 for none. */
int wpk_compose_product(struct wpk_compose *c, const char *name, int x, int y, int z);

/* The operators of loop.h.   shape  of a Read: the part [rank] */
int wpk_compose_enter(struct wpk_compose *c, const char *name, int x);
int wpk_compose_read(struct wpk_compose *c, int x, int64_t offset, int64_t step, int rank,
                     const int64_t *extent);
int wpk_compose_store(struct wpk_compose *c, int next, int start, bool is_reverse);
int wpk_compose_result(struct wpk_compose *c, int all, int other);

#endif
