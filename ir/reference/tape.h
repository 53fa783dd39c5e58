/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the interpreter, shared by reference*.c alone.
 *
 * Walking an expression tree for every point is a hundred times too slow for convolutions. A stage
 * is compiled into a tape: a list of instructions over lanes. One axis of the stage, the lane axis,
 * runs through the lanes of a vector; the other axes are a loop nest around it.
 *
 *     loops, outermost first:
 *         lane axis, other output axes | reduction axes               lane axis is an output axis
 *         output axes | other reduction axes, lane axis               lane axis is reduced
 *
 * An instruction's level is the innermost loop it depends on; it runs when that loop ticks, so
 * whatever is invariant is hoisted. An instruction that does not depend on the lane axis is
 * uniform: it computes one number. A sum of products leaves its last product to the accumulator,
 * which adds a row of products per step; that is where a convolution or a matrix product spends
 * its time, and nothing in it knows about either. */
#ifndef WPK_IR_REFERENCE_TAPE_H
#define WPK_IR_REFERENCE_TAPE_H

#include "ir/program.h"
#include "schema/convert.h"

#define WPK_TAPE_LANES 256 /* lanes of a vector: two rows of doubles fit into half of a 32 KiB L1 */

/* The values of a tensor, or of a box of it, in memory. */
struct wpk_region {
    int64_t low[WPK_RANK_MAX];    /* index of the first element held */
    int64_t extent[WPK_RANK_MAX]; /* elements held; 0 somewhere: none */
    int64_t stride[WPK_RANK_MAX]; /* in elements */
    const double *value;
    const double *magnitude; /* NULL: |value| */
    bool fixed;              /* has the same values in all runs of a tape */
};

/* Row-major strides for the extents; returns the elements. */
int64_t wpk_region_set_dense(struct wpk_region *region, int rank);

enum wpk_tape_kind {
    WPK_TAPE_LITERAL,
    WPK_TAPE_AXIS,
    WPK_TAPE_LOAD,
    WPK_TAPE_BROADCAST, /* a uniform slot to all lanes */
    WPK_TAPE_UNARY,
    WPK_TAPE_BINARY,
    WPK_TAPE_SELECT,
    WPK_TAPE_CAST,
};

/* One operation. Instruction i writes slot i. */
struct wpk_tape_instruction {
    enum wpk_tape_kind kind;
    int op;
    enum wpk_dtype dtype;
    enum wpk_dtype from; /* CAST, BINARY: the operands' type */
    int arg[3];          /* slots */
    int axis;            /* AXIS */
    int load;            /* LOAD: index into `loads` */
    double literal;      /* a cell */
    uint64_t salt;       /* hashed into a function's error, see wpk_lanes_move */
    uint32_t axes;       /* bit a: the result depends on axis a */
    int level;           /* position of the innermost loop that it depends on, -1: none */
    bool lanes;          /* depends on the lane axis, or BROADCAST */
    bool wraps;          /* integer result that may leave its type */
    bool rounds;         /* floating result that its type may be unable to represent */
    bool bare;           /* LOAD used only as a factor of the accumulator: no |value| is made */
    double low, high;    /* bounds of an integer result, before it wraps */
};

/* A slot's current content, as cells (schema/convert.h): n lanes, or one number when the
 * instruction is uniform. */
struct wpk_tape_slot {
    const double *value;
    const double *magnitude; /* NULL: |value|, only for bare loads */
    double *value_own;       /* the slot's own memory */
    double *magnitude_own;
};

struct wpk_tape_term {
    int axis;
    int64_t coefficient;
};

/* One dimension of a load: affine in the axes, or the content of a slot. */
struct wpk_tape_dim {
    int slot; /* -1: affine */
    int term_count;
    struct wpk_tape_term term[WPK_AXES_MAX];
    int64_t constant;
    int64_t lane_coefficient; /* of the lane axis */
    bool checked;             /* may leave [0, extent) */
};

struct wpk_tape_load {
    int tensor;
    int rank;
    struct wpk_tape_dim dim[WPK_RANK_MAX];
    double outside; /* a cell */
    enum wpk_dtype dtype;
    bool gathers; /* some dimension is a slot with lanes */
    int pack_dim; /* dimension to copy into the last place first, -1: none */
    /* Set for each run: offset = flat_constant + sum(flat term) + slot dimensions. */
    struct wpk_region region;
    double *packed; /* owned; freed after a run, or with the tape if the region is fixed */
    struct wpk_region packed_region;
    int64_t flat_constant;
    int flat_count;
    struct wpk_tape_term flat[WPK_AXES_MAX];
    int64_t lane_stride;
};

/* The arithmetic of a tape; = {0} is that of doubles. */
struct wpk_tape_arithmetic {
    bool with_magnitude;
    bool rounds;   /* each result to its declared type, see direct.h; without magnitudes */
    uint64_t seed; /* of the functions' errors, if `rounds` */
};

struct wpk_tape {
    const struct wpk_program *program;
    const struct wpk_stage *stage;
    bool with_magnitude;
    bool rounds;
    bool ordered; /* rounds, and terms of a floating sum or product join in the axes' order */
    uint64_t seed;
    int lane_axis; /* -1: the stage has no axes */
    int loop_count;
    int loop_axis[WPK_AXES_MAX];               /* outermost first */
    int output_loops;                          /* how many loops, the first ones, are output axes */
    struct wpk_tape_instruction *instructions; /* [instruction_count] in the order of creation */
    int instruction_count;
    int instruction_capacity;
    int *order; /* [instruction_count] by level */
    int level_first[WPK_AXES_MAX +
                    2];          /* `order` of level l: [level_first[l+1], level_first[l+2]) */
    struct wpk_tape_load *loads; /* [load_count] */
    int load_count;
    int load_capacity;
    int factor[2];    /* slots; factor[1] < 0: accumulate factor[0] as it is */
    bool wraps_often; /* the accumulator leaves 2^53 unless it wraps after each step */
    bool sparse;      /* factor[0] is uniform: a zero skips the row */
    /* The state of a run. */
    struct wpk_tape_slot *slots; /* [instruction_count] */
    double *memory;              /* of all slots */
    int64_t axis_low[WPK_AXES_MAX];
    int64_t axis_extent[WPK_AXES_MAX];
    int64_t axis_value[WPK_AXES_MAX]; /* of the lane axis: at lane 0 */
    int lanes;                        /* in use now */
    int lanes_most;                   /* in this run */
    struct wpk_region *out;
    double *out_value, *out_magnitude;
    double sum[WPK_TAPE_LANES], sum_magnitude[WPK_TAPE_LANES];
    /* The accumulator of an ordered tape: ir/reference/order.c. */
    float sum_f32[WPK_TAPE_LANES]; /* the sums of a row of points, in f32 */
    double total;                  /* lanes along a reduction axis: the point's sum */
    double *terms;                 /* [term_count] of a point, in order; NULL: not needed */
    int64_t term_count;
    int64_t term_stride[WPK_AXES_MAX]; /* in `terms`, of the reduction axes */
};

static inline void wpk_tape_fill(double *to, double value, int count)
{
    for (int i = 0; i < count; i++) {
        to[i] = value;
    }
}

/* True if lanes are points of a reduction axis. */
static inline bool wpk_order_lane_is_reduced(const struct wpk_tape *tape)
{
    return tape->lane_axis >= tape->stage->rank;
}

/* The expected use of a tape, for which it is compiled. */
struct wpk_tape_use {
    const int64_t *extent;            /* [stage->axis_count] of a box, approximately */
    int64_t runs;                     /* number of boxes, approximately */
    const struct wpk_region *regions; /* [tensor_count] of the first run */
};

/* Compile `stage`.
 *   errors  WPK_ENOMEM
 *   owns    caller calls wpk_tape_free; borrows program and stage
 */
wpk_err wpk_tape_new(const struct wpk_program *program, const struct wpk_stage *stage,
                     const struct wpk_tape_use *use, const struct wpk_tape_arithmetic *arithmetic,
                     struct wpk_tape **out);
void wpk_tape_free(struct wpk_tape *tape);

/* Evaluate the stage over the box that `out` holds.
 *
 *   shape   regions [tensor_count]: those loaded must hold every element inside their tensor that
 *           the box needs; value, magnitude: memory of `out`, magnitude NULL iff !with_magnitude
 *   errors  WPK_ENOMEM
 */
wpk_err wpk_tape_run(struct wpk_tape *tape, const struct wpk_region *regions,
                     struct wpk_region *out, double *value, double *magnitude);

/* ---- the lane axis: ir/reference/order.c */

/* Choose the lane axis: the one whose rows cost least; -1 when there are no axes.
 *   shape   loads [node_count], scratch */
int wpk_tape_lane_axis(const struct wpk_program *program, const struct wpk_stage *stage,
                       const struct wpk_tape_use *use, bool ordered, int *loads);
/* The dimension of a load's tensor to move to the last place, so that lanes along `axis` are
 * contiguous; -1 where this does not pay. */
int wpk_tape_dim_to_pack(const struct wpk_program *program, const struct wpk_node *load, int axis,
                         const struct wpk_tape_use *use, int64_t iterations);

/* ---- loads: ir/reference/load.c */

/* Bind a load to the regions of the next run.   errors  WPK_ENOMEM */
wpk_err wpk_tape_bind(struct wpk_tape *tape, struct wpk_tape_load *load,
                      const struct wpk_region *regions);
/* Fill the slot with what the load reads at the axes' current values. */
void wpk_tape_load(const struct wpk_tape *tape, const struct wpk_tape_instruction *ins,
                   struct wpk_tape_slot *slot);

/* ---- arithmetic over lanes: ir/reference/lanes.c. Magnitudes may all be NULL. */

struct wpk_lanes {
    const double *value, *magnitude;
};

/* Run a statement for each i in [0, count): in blocks of constant length as long as there are any,
 * because gcc -O2 vectorises only those. */
#define WPK_LANES_BLOCK 8
#define WPK_LANES_EACH(count, statement)                                                           \
    int begin = 0;                                                                                 \
    for (; begin + WPK_LANES_BLOCK <= (count); begin += WPK_LANES_BLOCK) {                         \
        for (int j = 0; j < WPK_LANES_BLOCK; j++) {                                                \
            const int i = begin + j;                                                               \
            statement;                                                                             \
        }                                                                                          \
    }                                                                                              \
    for (int i = begin; i < (count); i++) {                                                        \
        statement;                                                                                 \
    }

void wpk_lanes_unary(enum wpk_unary op, int count, struct wpk_lanes a, double *value,
                     double *magnitude);
void wpk_lanes_binary(enum wpk_binary op, enum wpk_dtype dtype, int count, struct wpk_lanes a,
                      struct wpk_lanes b, double *value, double *magnitude);
void wpk_lanes_select(int count, struct wpk_lanes condition, struct wpk_lanes a, struct wpk_lanes b,
                      double *value, double *magnitude);

/* sum += a * b; a is one number when `uniform`. b.magnitude may be NULL for |b|, a's too. */
void wpk_lanes_multiply_add(int count, bool uniform, struct wpk_lanes a, struct wpk_lanes b,
                            double *sum, double *sum_magnitude);
/* Products of i32 and what is made of i64 wrap. */
void wpk_lanes_reduce(enum wpk_reduction reduction, enum wpk_dtype dtype, int count,
                      struct wpk_lanes a, double *sum, double *sum_magnitude);

/* ---- the same of i64, whose lanes are cells: ir/reference/integer.c */

void wpk_lanes_unary_i64(enum wpk_unary op, int count, struct wpk_lanes a, double *value,
                         double *magnitude);
void wpk_lanes_binary_i64(enum wpk_binary op, int count, struct wpk_lanes a, struct wpk_lanes b,
                          double *value, double *magnitude);
void wpk_lanes_reduce_i64(enum wpk_reduction reduction, int count, const double *a, double *sum);

/* ---- lanes in declared types: ir/reference/round.c. Sums and products only. */

/* Round every value to the nearest one of the type. */
void wpk_lanes_round(enum wpk_dtype dtype, int count, double *value);
/* Set value to x - y * floor(x / y), each operation rounded. */
void wpk_lanes_modulo(enum wpk_dtype dtype, int count, const double *x, const double *y,
                      double *value);
/* A hash of a number. */
uint64_t wpk_lanes_mix(uint64_t number);
/* Move lane i by -2 to 2 units in the last place, chosen by hash + i * step. Zeros, infinities and
 * NaN stay, and so do values that would change their sign or exceed `most`. */
void wpk_lanes_move(enum wpk_dtype dtype, int count, uint64_t hash, uint64_t step, double most,
                    double *value);
void wpk_lanes_multiply_add_f32(int count, bool uniform, const double *a, const double *b,
                                float *sum);
/* sum[i] = sum[i] + a[i], or *; rounded. */
void wpk_lanes_join(enum wpk_reduction reduction, enum wpk_dtype dtype, int count, const double *a,
                    double *sum);
/* Join all terms to one sum, one after the other, and return it. */
double wpk_lanes_fold(enum wpk_reduction reduction, enum wpk_dtype dtype, int64_t count,
                      const double *terms, double sum);

/* ---- the accumulator of ordered tapes: ir/reference/order.c */

/*   errors  WPK_ENOMEM */
wpk_err wpk_order_new(struct wpk_tape *tape);
void wpk_order_begin(struct wpk_tape *tape);
/* b NULL: no second factor. */
void wpk_order_add(struct wpk_tape *tape, const double *a, const double *b);
/* Write the results to tape->sum. */
void wpk_order_end(struct wpk_tape *tape);

/* ---- conversion: ir/reference/round.c */

/* |value| of a cell, for the tolerance; 0 for infinities, which are exact. */
double wpk_reference_magnitude(enum wpk_dtype dtype, double cell);
/* Bring a value into the range of an integer type, modulo 2^bits; values of other types, and cells
 * of i64, stay. Exact below 2^53. */
double wpk_reference_wrap(enum wpk_dtype dtype, double value);
/* From a cell to a cell. */
double wpk_reference_cast(enum wpk_dtype from, enum wpk_dtype to, double cell);
/* The magnitude of a cast's result, from the operand's cell and magnitude. */
double wpk_reference_cast_magnitude(enum wpk_dtype from, enum wpk_dtype to, double cell,
                                    double magnitude);

/* The magnitude of an integer made of two: below WPK_REFERENCE_STEP unless one is marked. */
double wpk_reference_limit(double magnitude, double a, double b);

/* ---- evaluation: reference.c, as ir/reference/reference.h has it; magnitude NULL iff
 * !with_magnitude */

struct wpk_reference_args;
wpk_err wpk_evaluate(const struct wpk_program *program, const struct wpk_reference_args *args,
                     const struct wpk_tape_arithmetic *arithmetic, double *value, double *magnitude,
                     struct wpk_diag *diag);
wpk_err wpk_evaluate_at(const struct wpk_program *program, const struct wpk_reference_args *args,
                        const struct wpk_tape_arithmetic *arithmetic, const int64_t *points,
                        int64_t count, double *value, double *magnitude, struct wpk_diag *diag);

#endif
