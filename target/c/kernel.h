/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel while it is printed: what the files c_*.c share.
 *
 *     target/c/print.c       the whole: two passes, arguments, the function itself
 *     target/c/nest.c        loops, tails, places
 *     target/c/region.c      the boxes of what is computed inside loops
 *     target/c/point.c       a stage at one point
 *     target/c/dot.c         instructions that add several terms
 *     target/c/task.c        the bodies of parallel loops
 *     target/c/expression.c  nodes to values; loads, limits of tensors, inlined stages
 *     target/c/operation.c   operations on values
 *     target/c/storage.c     where tensors lie: arguments, memory, registers
 *     target/c/text.c        how types, values and operations are spelled in C
 *     target/c/math.c        functions over vectors
 *     target/c/form.c        index arithmetic
 *
 * The kernel is printed twice. The first pass surveys how each storage is used: one whose every use
 * has an index that is a number becomes variables, which compilers keep in registers. Both passes
 * make the same storages in the same order. */
#ifndef WPK_TARGET_C_KERNEL_H
#define WPK_TARGET_C_KERNEL_H

#include "nest/nest.h"
#include "target/c/form.h"
#include "target/c/text.h"

#define WPK_C_LIVE_MAX 256
#define WPK_C_STORAGES_MAX 4096
#define WPK_C_OWN_MAX 32    /* elements along an axis that a thread has apart from one another */
#define WPK_C_CELLS_MAX 512 /* variables that one storage may become */

/* Where the elements of a tensor lie. Index i of dimension d is at (i - low[d]) * stride[d]. */
struct wpk_c_storage {
    int tensor;
    enum wpk_dtype dtype;
    int rank;
    struct wpk_form low[WPK_RANK_MAX];
    int64_t size[WPK_RANK_MAX];
    int64_t stride[WPK_RANK_MAX];
    int64_t count; /* of elements, with their padding */
    bool global;   /* an argument or a literal: visible in every function */
    bool named;    /* by the text of the function that is printed */
    int function;  /* that declares it, as a number */
    bool memory;   /* indexed by variables, or in several ways: an array */
    bool heap;
    bool pokes; /* single elements are written */
    int dim;    /* of the lanes of its variables, -1: none */
    int width;  /* of its variables */
    /* of a launch: threads divide the elements among them, and `size` is what one of them has */
    bool accessed, divided;
    struct wpk_form part[WPK_RANK_MAX]; /* what a thread's number contributes to an index */
    /* Of the first pass: what is left of a thread's indices. If they are numbers, and few, a thread
     * has one element for each; else all up to the largest. */
    int64_t own[WPK_RANK_MAX];
    int own_count[WPK_RANK_MAX];                 /* -1: they are not */
    int32_t own_at[WPK_RANK_MAX][WPK_C_OWN_MAX]; /* ascending */
    int64_t row_padding; /* elements behind each row of the innermost axis */
    int spaced;          /* dimension each of whose elements is followed by `spacing` more */
    int64_t spacing;
};

struct wpk_cuda_launch;

/* The point at which a stage is evaluated: the value of each axis, and how many lanes there are. */
struct wpk_c_point {
    const struct wpk_stage *stage;
    struct wpk_form axis[WPK_AXES_MAX];
    int width;
    int serial; /* of the point: what is known of nodes is known at a point */
};

/* The elements [low, low + size) of each axis of an entry. */
struct wpk_c_box {
    bool present;
    struct wpk_form low[WPK_AXES_MAX];
    int64_t size[WPK_AXES_MAX];
};

/* A node's value at a point that was printed already. */
struct wpk_c_known {
    int serial;
    struct wpk_c_value value;
};

struct wpk_c_kernel {
    const struct wpk_nest *nest;
    const struct wpk_program *program; /* expanded; tensors and stages as in nest->program */
    const char *symbol;
    int in_place; /* input that may be the output's memory; -1: none, or a launch */
    int vector_bytes;
    bool strict; /* each operation rounds */
    struct wpk_forms forms;
    struct wpk_c_text text;
    bool surveying;                                     /* the first pass */
    int storage_of[WPK_TENSORS_MAX];                    /* current; -1: none */
    struct wpk_c_storage *storage[WPK_C_STORAGES_MAX];  /* owned */
    struct wpk_c_storage *surveyed[WPK_C_STORAGES_MAX]; /* owned; of the first pass */
    int storage_count, surveyed_count;
    int entry_of[WPK_STAGES_MAX]; /* the nest's entry of a stage */
    int live[WPK_C_LIVE_MAX];     /* atoms: variables of the loops around */
    int live_count;
    int function, function_count; /* the function being printed */
    struct wpk_c_known *known;    /* owned; [node_count] */
    bool *used;                   /* owned; [node_count]: by the stage being printed */
    struct wpk_buf functions;     /* the tasks of parallel loops */
    int serial_count;
    struct wpk_position printing;   /* of the stage that is printed */
    struct wpk_cuda_launch *launch; /* that is printed (target/gpu); NULL: a function of c */
    bool in_index;                  /* loads are parts of an index */
    const char *refusal;            /* what cannot be printed; NULL: nothing so far */
    struct wpk_position refused;    /* of the stage in which that is */
};

/* ---- target/c/nest.c */

/* Print all entries that are computed before everything, and the outputs. */
void wpk_c_print_entries(struct wpk_c_kernel *k);

/* ---- target/c/region.c */

/* Fill `box` for each entry that is computed inside the loop that `place` names: what its readers
 * need. The axes of the loop's entry have the values [low, low + size) there.
 *   shape  box [entry_count], that of place->entry filled, the others zero */
void wpk_c_find_boxes(struct wpk_c_kernel *k, const struct wpk_nest_place *place,
                      struct wpk_c_box *box);

/* ---- target/c/expression.c */

/* The point of a stage whose axes are `axis`; width as given. */
void wpk_c_point_begin(struct wpk_c_kernel *k, const struct wpk_stage *stage, int width,
                       struct wpk_c_point *point);
/* Print what computes a node at a point, unless it is known. */
struct wpk_c_value wpk_c_evaluate(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id);
/* The indices of a load that reads its tensor's storage at the point, in all lanes inside its
 * limits or in all of them outside, where it is 0; false: it is another load.
 *   shape  index [rank of the tensor] */
bool wpk_c_load_indices(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id,
                        struct wpk_form *index);
/* Begin a branch for such a load where it is inside; returns how many were begun, 0 or 1. */
int wpk_c_open_inside(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id);
/* The form of an index expression, or false. */
bool wpk_c_index(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id,
                 struct wpk_form *out);
/* Mark the nodes that a stage is made of, with those of the stages inlined in it. */
void wpk_c_find_used(struct wpk_c_kernel *k, const struct wpk_stage *stage);

/* ---- target/c/operation.c */

struct wpk_c_value wpk_c_unary(struct wpk_c_kernel *k, const struct wpk_node *node,
                               const struct wpk_c_value *a);
struct wpk_c_value wpk_c_select(struct wpk_c_kernel *k, enum wpk_dtype dtype,
                                const struct wpk_c_value *c, const struct wpk_c_value *a,
                                const struct wpk_c_value *b);
/* A rounded float as a byte, `shift` (a byte; NULL: none) above it, within the type. */
struct wpk_c_value wpk_c_round_to_bytes(struct wpk_c_kernel *k, enum wpk_dtype to,
                                        const struct wpk_c_value *a,
                                        const struct wpk_c_value *shift);
struct wpk_c_value wpk_c_cast(struct wpk_c_kernel *k, enum wpk_dtype to,
                              const struct wpk_c_value *a);
struct wpk_c_value wpk_c_binary(struct wpk_c_kernel *k, enum wpk_binary op,
                                const struct wpk_c_value *a, const struct wpk_c_value *b);
/* The lanes of a vector, combined. */
struct wpk_c_value wpk_c_combine_lanes(struct wpk_c_kernel *k, enum wpk_binary op,
                                       const struct wpk_c_value *a);

/* ---- target/c/point.c */

/* The operation that joins two results of a reduction. */
enum wpk_binary wpk_c_joining(enum wpk_reduction reduction);
/* Print a stage's value at one point, or one term of its reduction.
 *   shape  axis [axis_count] */
void wpk_c_print_point(struct wpk_c_kernel *k, const struct wpk_stage *stage, bool update,
                       const struct wpk_form *axis);
/* Print the terms of a reduction at `count` values of its axis `vector`, in vectors of up to
 * `native` lanes. */
void wpk_c_print_lanes_of_terms(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                                const struct wpk_form *axis, int vector, int64_t count, int native);

/* ---- target/c/dot.c */

/* Print `count` terms of a sum, from `axis` on, as one instruction over all lanes. False: nothing
 * was printed, since there is no instruction for so few lanes.
 *   shape  axis [axis_count] */
bool wpk_c_print_dot(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                     const struct wpk_form *axis, const struct wpk_nest_loop *loop, int64_t count);

/* ---- target/c/task.c */

/* A task under way: where its caller is printed. */
struct wpk_c_task {
    struct wpk_buf text;
    struct wpk_buf *caller;
    int depth, live_count, number;
};

/* Begin the function that runs one iteration, `index`, of a parallel loop. Text printed until
 * wpk_c_task_end() is the function's body; wpk_c_task_end() prints the call. */
void wpk_c_task_begin(struct wpk_c_kernel *k, struct wpk_c_task *task);
void wpk_c_task_end(struct wpk_c_kernel *k, struct wpk_c_task *task, int64_t iterations);

/* ---- target/c/storage.c */

/* Add the storage of a tensor: its whole for arguments and literals, else the box. Declare it,
 * unless the survey is to find out what it is. */
void wpk_c_storage_argument(struct wpk_c_kernel *k, int tensor);
void wpk_c_storage_add(struct wpk_c_kernel *k, int tensor, const struct wpk_c_box *box);
/* End the storages from number `first` on, which free what the heap has of them. */
void wpk_c_storage_end(struct wpk_c_kernel *k, int first);
/* Free a list of storages, which is empty then. */
void wpk_c_storage_drop(struct wpk_c_storage **storage, int *count);
/* The entry that computes a tensor. */
const struct wpk_nest_entry *wpk_c_entry_of(const struct wpk_c_kernel *k, int tensor);

const char *wpk_c_atom_name(const struct wpk_c_kernel *k, int atom);
/* Add `factor` times the atom to *at. */
void wpk_c_advance(struct wpk_c_kernel *k, struct wpk_form *at, int atom, int64_t factor);
/* Read or write the elements at these indices, one for each lane.
 *   shape  index [rank of the tensor] */
struct wpk_c_value wpk_c_storage_read(struct wpk_c_kernel *k, int tensor,
                                      const struct wpk_form *index, int width);
void wpk_c_storage_write(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index,
                         int width, const struct wpk_c_value *value);
/* The number of the element at these indices in the memory of the tensor, which is not in
 * registers; and "TENSOR[NUMBER]". */
bool wpk_c_storage_place(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index,
                         struct wpk_form *number);
void wpk_c_storage_put_element(struct wpk_c_kernel *k, int tensor, const struct wpk_form *number);
/* The same for the lanes of a group of elements, which have to be in memory: a storage that was
 * variables so far is not. */
bool wpk_c_storage_group(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index,
                         struct wpk_form *number);
/* The variables or elements of a tensor that is no argument, and one of them. */
int64_t wpk_c_storage_cells(const struct wpk_c_kernel *k, int tensor);
void wpk_c_storage_put_cell(struct wpk_c_kernel *k, int tensor, int64_t cell);
/* Print the declaration of a storage as a pointer, and its name. */
void wpk_c_storage_put_pointer(struct wpk_c_kernel *k, const struct wpk_c_storage *storage);
/* Write a literal's values as a table: "QUALIFIERS TYPE NAME[] = {...};". */
void wpk_c_storage_put_literal(struct wpk_c_kernel *k, int tensor, const char *qualifiers,
                               struct wpk_buf *out);
void wpk_c_storage_put_name(struct wpk_c_kernel *k, int tensor, int storage);

/* ---- target/c/print.c: the state of a kernel, and its passes; of target/gpu/print.c, too */

struct wpk_schedule;

/* A kernel of this name for a schedule and its program, expanded, which are borrowed. */
struct wpk_c_kernel *wpk_c_kernel_new(const struct wpk_schedule *schedule,
                                      const struct wpk_program *program, const char *symbol);
void wpk_c_kernel_free(struct wpk_c_kernel *k);
/* Print the kernel twice by `pass`, from empty storages: the first time is a survey, which finds
 * how each storage is used. */
void wpk_c_print_passes(struct wpk_c_kernel *k, void (*pass)(struct wpk_c_kernel *k, void *user),
                        void *user);

/* ---- everywhere */

/* Note the first reason why the kernel cannot be printed. */
void wpk_c_refuse(struct wpk_c_kernel *k, const char *why);

#define WPK_C_LOOPS_MAX 64

/* List the loops of a definition: first one for each axis that has none in the nest.
 *   shape   loop [WPK_C_LOOPS_MAX]; *added of the loops are not the nest's; returns how many */
int wpk_c_list_loops(const struct wpk_c_kernel *k, int entry, bool update,
                     struct wpk_nest_loop *loop, int *added);

/* ---- where a launch lies otherwise than a function of c; target/gpu defines these */

/* True if the tensor lies in the memory of a block. */
bool wpk_cuda_is_shared(const struct wpk_c_kernel *k, int tensor);
/* True if each thread has elements of its own of the tensor. */
bool wpk_cuda_is_private(const struct wpk_c_kernel *k, int tensor);
/* The same, and print where they are: "sharedTENSOR;", or
 * the part of it that `launch->buffer` numbers. */
void wpk_cuda_put_share(struct wpk_c_kernel *k, int tensor, int64_t elements);
/* Leave what the thread's number contributes out of an index of elements that threads have for
 * themselves. The first access, which writes, decides whether they divide the tensor; others have
 * to access elements of the same thread. */
void wpk_cuda_localize(struct wpk_c_kernel *k, struct wpk_c_storage *s, struct wpk_form *at);
/* Print the element if it was fetched; else false. */
bool wpk_cuda_put_fetched(struct wpk_c_kernel *k, int tensor, const struct wpk_form *at);
/* Note variables of a launch, if one is printed. */
void wpk_cuda_count_cells(struct wpk_c_kernel *k, int64_t count);

#endif
