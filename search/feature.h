/* SPDX-License-Identifier: Apache-2.0 */
/* Features of a nest: what can be counted of a candidate without lowering or building it. Bounds,
 * limits and learning searches read them.
 *
 * A body is what one iteration of the innermost loop of a definition computes: all that is unrolled
 * and in lanes. Traffic is counted where loops are: the outermost loop of which one iteration's
 * data fits a cache reads all of its data once each time it runs.
 *
 *   source  traffic by the footprints of loops: Ferrante, Sarkar & Thrash, On estimating and
 *           enhancing cache effectiveness, LCPC 1991 */
#ifndef WPK_SEARCH_FEATURE_H
#define WPK_SEARCH_FEATURE_H

#include "ir/instruction/instruction.h"
#include "nest/nest.h"
#include "search/access.h"
#include "search/rules.h"

/* A definition of an entry: its pure one or its update. */
struct wpk_body {
    int entry;
    bool update;
    double runs;         /* iterations of all loops around it, in one call */
    double values;       /* vectors that one run computes */
    double lanes;        /* elements of a vector */
    double arithmetic;   /* instructions that compute, of one run */
    double loads;        /* load instructions of one run */
    double stores;       /* store instructions of one run */
    double singles;      /* loads and stores of single elements, because lanes are no neighbours */
    double accumulators; /* vectors that an update adds to; 0: no update */
    double terms;        /* that one run adds to an accumulator, one after the other */
    double copies;       /* of its code: tails get their own */
    bool multiply_add;   /* a contraction's update */
    double parallel;     /* iterations of the loops around it that run in parallel; 1: none */
    double traffic_bytes[WPK_CACHES]; /* of all runs: what a cache gets from the next one and
                                           beyond, and what it gives back */
};

/* Of one call. */
struct wpk_features {
    double flops;        /* ir/cost.h counts them; what is computed twice counts twice */
    double flops_needed; /* of the same stages, each element once */
    double recomputed;   /* flops / flops_needed: 1 where each element is computed once */
    double arithmetic, loads, stores; /* instructions */
    double loads_per_multiply_add; /* of the body with the most multiply-adds; 0: there is none */
    double accumulators;           /* of that body, in vectors */
    double footprint_bytes[WPK_CACHES]; /* of what is used again while it is in this cache: the
                                             largest iteration that fits it */
    double traffic_bytes[WPK_CACHES];   /* as in wpk_body, of all bodies */
    double bytes;                       /* of all tensors that the nest touches */
    double tails;      /* share of arithmetic that is in loops' last, partial iterations */
    double parallel;   /* share of the arithmetic that is in loops that run in parallel */
    double balance;    /* mean share of a thread's time that it works, in (0, 1] */
    double statements; /* vectors of all bodies */
    int body_count;
    struct wpk_body body[2 * WPK_NEST_ENTRIES_MAX];
};

/* Fill `out` with the features of a nest.
 *   shape   accesses: of nest->program; nest: as wpk_decisions_nest() fills it */
void wpk_features(const struct wpk_accesses *accesses, const struct wpk_nest *nest,
                  const struct wpk_machine *machine, int threads, struct wpk_features *out);

/* The tree of a nest's loops, for feature*.c. Loops with several iterations are nodes; the root is
 * the whole call, and the bodies hang on the leaves. Of every entry is known how wide its axes are
 * in one iteration of each node around it: the widths of an entry inside a loop of another follow
 * from what its readers touch there. */

#define WPK_FEATURE_NODES_MAX 256 /* further loops count as part of the bodies inside them */
#define WPK_FEATURE_ROWS_MAX 1024
#define WPK_FEATURE_DEPTH_MAX 48

struct wpk_feature_node {
    int parent;
    int depth;
    int entry;       /* whose loop it is */
    int row;         /* widths of the entry's axes in one iteration */
    double runs;     /* iterations in one call, those of the loops around included */
    double computed; /* the same without iterations that tails leave out */
    double parallel; /* iterations that run in parallel */
    double copies;   /* of the code inside */
    double whole;    /* share of the iterations that are no partial ones */
};

/* How the vectors of a definition lie. */
struct wpk_feature_shape {
    struct wpk_access_tile tile;
    bool rolls;                        /* has loops of its own over axes of the output */
    int node;                          /* innermost */
    const struct wpk_instruction *dot; /* that adds the terms of one run; NULL: none */
};

struct wpk_feature_tree {
    const struct wpk_accesses *accesses;
    const struct wpk_nest *nest;
    int registers;
    struct wpk_feature_node node[WPK_FEATURE_NODES_MAX];
    int node_count;
    int64_t row[WPK_FEATURE_ROWS_MAX][WPK_AXES_MAX];
    int row_count;
    int loop_node[WPK_NEST_LOOPS_MAX]; /* the innermost node at or around a loop */
    int place[WPK_NEST_ENTRIES_MAX];   /* the node of an entry's place */
    int rows[WPK_NEST_ENTRIES_MAX];    /* its first row: widths at node 0, and at the place last */
    bool held[WPK_NEST_ENTRIES_MAX];   /* its values stay in registers */
    struct wpk_feature_shape pure[WPK_NEST_ENTRIES_MAX], update[WPK_NEST_ENTRIES_MAX];
    int writer[WPK_TENSORS_MAX];     /* entry, or -1 */
    int contiguous[WPK_TENSORS_MAX]; /* dimension whose elements lie side by side */
};

/*   unit  registers: vectors that hold values between the definitions of a tile */
void wpk_feature_tree_init(struct wpk_feature_tree *tree, const struct wpk_accesses *accesses,
                           const struct wpk_nest *nest, int registers);

const struct wpk_stage_access *wpk_feature_facts(const struct wpk_feature_tree *tree, int entry);
double wpk_feature_product(const int64_t *values, int count);
/* True if the entry has an update. */
bool wpk_feature_updates(const struct wpk_feature_tree *tree, int entry);
/* True if neighbouring lanes of an entry are not neighbours in the memory that it writes. */
bool wpk_feature_scatters(const struct wpk_nest_entry *entry, int rank,
                          const struct wpk_access_tile *tile);
/* True if loads of the tensor do not access memory: its values are in registers, or it is
 * inlined. */
bool wpk_feature_is_held(const struct wpk_feature_tree *tree, int tensor);
/* The widths of an entry's axes in one iteration of a node, which is its own or around it. */
const int64_t *wpk_feature_widths_at(const struct wpk_feature_tree *tree, int entry, int node);
/* Elements of a dimension that a load and the stage's further loads of the tensor access. */
int64_t wpk_feature_width(const struct wpk_feature_tree *tree, const struct wpk_access *access,
                          int dim, const int64_t *widths);

#endif
