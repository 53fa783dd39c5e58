/* SPDX-License-Identifier: Apache-2.0 */
/* A nest: how each stage of a program is computed. It says which loops a stage has, where among the
 * loops of its readers it is computed, and how much of it is needed there.
 *
 *     Y  loops  n  y step 4  x  k step 32 | unroll y, x; lanes k 16
 *        T  computed inside Y's loop k: 4 x 1 x 32 elements
 *           pure    unroll y, k; lanes k
 *           update  c  r  s | unroll y, k; lanes k
 *
 * A nest has entries. Most are stages of the program. A sum in blocks has two entries: the stage
 * itself, which adds up the sums of blocks, and a part, which is the sum of one block. An operand
 * that is copied into the order of its use is an entry, too. Parts and copies become stages when
 * the program is lowered; their axes are known before.
 *
 * Several loops over an axis cut it. Those that are unrolled or in lanes are the register tile,
 * which the innermost of the others steps over: the tile is cut out of the axis first, then what is
 * inside it from the outermost loop inwards. Loops further out step over whole tiles, and their
 * tails are about numbers of tiles.
 *
 * Invariants:
 *   - an entry comes after all entries that read it
 *   - an entry that is computed inside a loop is read only inside that loop
 *   - loops of one axis have steps that do not grow from the outermost to the innermost, whose step
 *     is 1
 *   - an axis without a loop has an extent of 1 where the entry is computed, unless the definition
 *     is `atomic` or the entry is a copy */
#ifndef WPK_NEST_NEST_H
#define WPK_NEST_NEST_H

#include "ir/derive/derive.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_NEST_ENTRIES_MAX 128
#define WPK_NEST_LOOPS_MAX 1024
#define WPK_NEST_NAME_MAX (WPK_NAME_MAX + 5) /* a loop's name: an axis's, a dot, a number */

#define WPK_NEST_AHEAD_MAX 8 /* `depth` */

#define WPK_BIND_LIST(X)                                                                           \
    X(SERIAL, "serial")                                                                            \
    X(UNROLL, "unroll")                                                                            \
    X(LANES, "lanes")                                                                              \
    X(PARALLEL, "parallel") /* all such loops of a definition run as one */                        \
    X(BLOCK_Z, "block.z")   /* from here on: of a grid of blocks of threads */                     \
    X(BLOCK_Y, "block.y")                                                                          \
    X(BLOCK_X, "block.x")                                                                          \
    X(THREAD_Z, "thread.z")                                                                        \
    X(THREAD_Y, "thread.y")                                                                        \
    X(THREAD_X, "thread.x")                                                                        \
    X(DOT, "dot") /* terms of a sum of products, which one instruction adds in each lane */

#define WPK_BIND_ENUM(name, text) WPK_BIND_##name,
enum wpk_loop_binding { WPK_BIND_LIST(WPK_BIND_ENUM) WPK_BIND_COUNT };

/* How the iterations of a loop cover an extent that their step does not divide. */
#define WPK_TAIL_LIST(X)                                                                           \
    X(EXACT, "exact")         /* the step divides the extent */                                    \
    X(GUARD, "guard")         /* an if around the tail */                                          \
    X(PREDICATE, "predicate") /* masked loads and stores */                                        \
    X(SHIFT, "shift")         /* the last iteration moves inwards; pure stages only */             \
    X(ROUND, "round")         /* computes past the end; only where storage is rounded up */

#define WPK_TAIL_ENUM(name, text) WPK_TAIL_##name,
enum wpk_tail { WPK_TAIL_LIST(WPK_TAIL_ENUM) WPK_TAIL_COUNT };

/* Where an entry's values are kept. */
#define WPK_SCOPE_LIST(X)                                                                          \
    X(ANY, "") /* wherever the back end puts them */                                               \
    X(REGISTER, "register")                                                                        \
    X(STACK, "stack")                                                                              \
    X(HEAP, "heap")                                                                                \
    X(OUTPUT, "output") /* in that of the output that it is computed in */                         \
    X(SHARED, "shared") /* by the threads of a block */                                            \
    X(GLOBAL, "global") /* by all blocks */

#define WPK_SCOPE_ENUM(name, text) WPK_SCOPE_##name,
enum wpk_scope { WPK_SCOPE_LIST(WPK_SCOPE_ENUM) WPK_SCOPE_COUNT };

/* The way in which a copy's elements are moved. */
#define WPK_COPY_LIST(X)                                                                           \
    X(ANY, "")        /* asynchronously ahead, if the device can; else by loads */                 \
    X(LOAD, "load")   /* through registers of the threads */                                       \
    X(ASYNC, "async") /* without them, while the threads go on */

#define WPK_COPY_ENUM(name, text) WPK_COPY_##name,
enum wpk_copy_by { WPK_COPY_LIST(WPK_COPY_ENUM) WPK_COPY_COUNT };

/* Where a loop or an entry stands in the text that it was read from; 0: it was not. */
struct wpk_position {
    int line, column; /* from 1 */
};

struct wpk_nest_loop {
    int axis; /* of the stage */
    enum wpk_loop_binding binding;
    enum wpk_tail tail;
    bool whole;      /* no prologue and epilogue are made of it */
    bool inside;     /* terms that a border makes 0 may be left out (nest/reach.h) */
    int instruction; /* of dot: its number (ir/instruction/instruction.h) */
    int64_t step;    /* elements of the axis from one iteration to the next */
    struct wpk_position at;
};

/* The loops of a stage's pure definition or of its update, outermost first. */
struct wpk_nest_loops {
    int first; /* in wpk_nest.loop */
    int count;
    bool atomic; /* the update's reduction runs in lanes, or in blocks and threads */
};

/* The place of an entry, inside a loop of one of its readers. */
struct wpk_nest_place {
    int entry;   /* -1: before everything */
    bool update; /* the loop is one of the reader's update */
    int loop;    /* of that definition, 0 the outermost; -1: before the reader's loops */
};

enum wpk_nest_kind {
    WPK_NEST_STAGE,
    WPK_NEST_PART, /* the sum of one block of the entry before it, of the same stage */
    WPK_NEST_COPY, /* of a tensor that the program reads */
};

struct wpk_nest_entry {
    enum wpk_nest_kind kind;
    int stage; /* of the program; -1: a copy */
    struct wpk_nest_place place;
    bool inlined;                 /* has no loops; the others are meaningless */
    bool expanded;                /* a short sum is one expression; there is no update */
    bool bounded;                 /* computed for whole tiles: `extent` in every iteration */
    int64_t block;                /* terms in a block of the axis `blocked`; 0: no blocks */
    int blocked;                  /* reduction axis that is summed in blocks */
    int64_t extent[WPK_AXES_MAX]; /* [axis_count] needed at the place, at most */
    int64_t least[WPK_RANK_MAX];  /* [rank] needed at the tails of the loops around */
    int64_t grain[WPK_RANK_MAX];  /* [rank] divides where it begins; 0: it begins at 0 */
    struct wpk_nest_loops pure;
    struct wpk_nest_loops update;
    struct wpk_packing packing; /* of a copy */
    enum wpk_scope scope;
    /* Values stay from one iteration to the next of the reader's loops inside its loop `slide`, and
     * only those are computed that are not there yet. */
    bool slides;
    int slide;                   /* of the same definition as the place's loop, and around it */
    int64_t align[WPK_RANK_MAX]; /* [rank] what is computed begins and ends at multiples; 0: any */
    bool reordered;              /* its storage has the order of axes `storage` */
    int storage[WPK_RANK_MAX];   /* [rank] outermost first */
    int64_t row_padding;         /* elements behind each row of the innermost axis in memory */
    int spaced;                  /* axis: behind each of its elements, with all that is stored */
    int64_t spacing;             /* inside, so many more follow; 0: none */
    /* Iterations of the place's loop of which there is storage at a time: while one computes, the
     * values of the next depth - 1 are on their way. 0: one */
    int depth;
    enum wpk_copy_by by;
    struct wpk_position at;
};

/* A box of indices of each tensor that is read in an iteration of `place`. */
struct wpk_nest_boxes {
    struct wpk_nest_place place;
    int next; /* first entry whose loads are not in the boxes yet */
    int64_t low[WPK_TENSORS_MAX][WPK_RANK_MAX];
    int64_t high[WPK_TENSORS_MAX][WPK_RANK_MAX];
    /* How fast a dimension's box moves from one iteration to the next, 0: not at all; and the
     * largest number that divides all its steps. */
    uint64_t rate[WPK_TENSORS_MAX][WPK_RANK_MAX];
    int64_t grain[WPK_TENSORS_MAX][WPK_RANK_MAX];
    bool varies[WPK_TENSORS_MAX][WPK_RANK_MAX]; /* iterations need boxes of different sizes */
    bool whole[WPK_TENSORS_MAX][WPK_RANK_MAX];  /* one load reads all of it in every iteration */
    bool present[WPK_TENSORS_MAX];
};

/* = {0} is the empty nest. */
struct wpk_nest {
    const struct wpk_program *program; /* borrowed */
    struct wpk_nest_entry entry[WPK_NEST_ENTRIES_MAX];
    int entry_count;
    struct wpk_nest_loop loop[WPK_NEST_LOOPS_MAX];
    int loop_count;
    /* A limit was reached, or tiles need different regions of a bounded entry: it is of no use. */
    bool full;
    struct wpk_nest_boxes tile; /* scratch of wpk_nest_find_region() */
};

/* ---- building: entries in the order of the invariants, loops outermost first */

/* Append an entry without loops and return it; `full` is set, and the entry is not counted, when
 * there is no room. */
struct wpk_nest_entry *wpk_nest_add(struct wpk_nest *nest, enum wpk_nest_kind kind, int stage);
/* Append a loop to a definition of the entry that was added last. */
void wpk_nest_add_loop(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                       const struct wpk_nest_loop *loop);
/* Fill `extent` and `grain` of the last entry, and `least` unless it is bounded, from its place and
 * from its readers, which are complete. A reduction's own axes are needed whole, and all axes of an
 * entry before everything that is not bounded.
 *   source  interval analysis of the indices, as compilers of loop nests infer bounds */
void wpk_nest_find_region(struct wpk_nest *nest);

/* ---- reading */

const struct wpk_nest_loop *wpk_nest_at(const struct wpk_nest *nest,
                                        const struct wpk_nest_loops *loops, int loop);
/* The stage of an entry that is no copy. */
const struct wpk_stage *wpk_nest_stage(const struct wpk_nest *nest,
                                       const struct wpk_nest_entry *entry);
/* True if the entry is computed inside the iterations of the loop that `place` names. */
bool wpk_nest_is_inside(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                        const struct wpk_nest_place *place);
/* Write a loop's name: that of its axis, and for the second and each further loop over the axis,
 * counted from outside, a dot and a number from 1. Names of axes have no dots. */
void wpk_nest_name_loop(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                        const struct wpk_nest_loops *loops, int loop, char out[WPK_NEST_NAME_MAX]);
/* True if the loop is one of blocks or of threads. */
bool wpk_bind_is_block(enum wpk_loop_binding binding);
bool wpk_bind_is_thread(enum wpk_loop_binding binding);
/* True if blocks or threads share the terms of a reduction below `update atomic`: those of loop
 * `loop` of the update. */
bool wpk_nest_is_shared_out(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                            int loop);
/* The threads along x that share the terms of the reductions in the launch that the entry belongs
 * to: a definition without thread.x is run by all of them. 1: there are none; 0: two reductions
 * have different numbers. */
int64_t wpk_nest_width(const struct wpk_nest *nest, const struct wpk_nest_entry *entry);
/* True if the loop is neither unrolled nor in lanes nor one instruction. */
bool wpk_nest_is_rolled(const struct wpk_nest_loop *loop);
/* True if the entry is a reduction with an update, whose loops are those of `update`. */
bool wpk_nest_has_update(const struct wpk_nest *nest, const struct wpk_nest_entry *entry);
const char *wpk_tail_name(enum wpk_tail tail);
const char *wpk_bind_name(enum wpk_loop_binding binding);
const char *wpk_scope_name(enum wpk_scope scope);
const char *wpk_copy_by_name(enum wpk_copy_by copy);
/* The elements of the axis that one iteration of the loop covers: the step of the innermost loop
 * over the axis at or around `loop`, or all that is needed of the axis where there is none. The
 * last iteration may cover less. */
int64_t wpk_nest_covered(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                         const struct wpk_nest_loops *loops, int loop, int axis);
/* The most iterations that a loop has. */
int64_t wpk_nest_iterations(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                            const struct wpk_nest_loops *loops, int loop);
/* A hash of all that a schedule of the nest says: nests of one program have the same hash if they
 * are printed alike, and else another one but for chance. */
uint64_t wpk_nest_hash(const struct wpk_nest *nest);
/* True if the stage's reduction has few enough terms to be expanded. */
bool wpk_nest_may_expand(const struct wpk_stage *stage);

/* The validity of a nest whose entries are all stages of its program. */

#define WPK_NEST_STATEMENTS_MAX 8192 /* unrolled, of one definition and the loops around it */
#define WPK_NEST_CODE_MAX 65536      /* their elements; the statements with the copies for tails */
#define WPK_NEST_STACK_BYTES_MAX (1 << 18) /* of all entries */
#define WPK_NEST_LANES_MAX 1024
#define WPK_NEST_DEPTH_MAX 32 /* loops of one definition */

/* Check the invariants of this header, and that a back end can keep to the nest without computing
 * anything else than the program: every axis has its loops, steps divide where the tail says exact,
 * lanes are innermost, no serial loop is inside an unrolled one, nothing reads a stage outside of
 * the loop in which it is computed, bounded extents are what is needed, and unrolled statements
 * stay few. The error names the stage and the loop, with their position if they have one.
 *   errors  WPK_EINVAL; WPK_ENOMEM */
wpk_err wpk_nest_check(const struct wpk_nest *nest, struct wpk_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
