/* SPDX-License-Identifier: Apache-2.0 */
/* State and functions that the parts of ir/derive/winograd.c share.
 *
 *      ir/derive/winograd_transform.c        which axes are correlated
 *      ir/derive/winograd_points.c     G, BT and AT, from the points below
 *      ir/derive/winograd_transform.c    the stages that apply them: U, V and S
 */
#ifndef WPK_IR_DERIVE_WINOGRAD_H
#define WPK_IR_DERIVE_WINOGRAD_H

#include "ir/derive/derive.h"

/* An output axis y and a reduction axis s that meet in one index of the data, as y + s + constant;
 * in the weight s stands alone. */
struct wpk_winograd_pair {
    int output_axis;
    int reduction_axis;
    int64_t m, r, n; /* outputs of a tile, taps, points: n = m + r - 1 */
    int64_t tiles;
    int at, g, bt; /* literal tensors */
};

struct wpk_winograd {
    struct wpk_program *program;
    int stage;
    struct wpk_stage old;         /* a copy: stages are appended */
    struct wpk_node data, weight; /* its loads, as wpk_contraction_operands copies them */
    struct wpk_winograd_pair pair[WPK_WINOGRAD_PAIRS_MAX];
    int pair_count;
    enum wpk_dtype dtype;        /* of the data, V and M */
    enum wpk_dtype weight_dtype; /* of G and U's sums: constants are transformed once, in f64 */
    bool in_data[WPK_AXES_MAX], in_weight[WPK_AXES_MAX]; /* axes that index data, weight */
    char stem[WPK_NAME_MAX];                             /* begins the names of added tensors */
};

/* Find the pairs of w->stage of w->program; false where F(m, r) does not apply. */
bool wpk_winograd_recognise(struct wpk_winograd *w, const int64_t *m);
/* The pair that an axis of the old stage belongs to, or -1. */
int wpk_winograd_pair_of_output(const struct wpk_winograd *w, int axis);
int wpk_winograd_pair_of_reduction(const struct wpk_winograd *w, int axis);

/* Add the literals of every pair.   errors  WPK_EUNSUPPORTED too many points; WPK_ENOSPC */
wpk_err wpk_winograd_add_matrices(struct wpk_winograd *w);

/* A tensor to be added, with the stage that writes it: dimensions and names of the stage's axes. */
struct wpk_winograd_draft {
    enum wpk_dtype dtype;
    int rank;
    int64_t extent[WPK_RANK_MAX];
    char name[WPK_RANK_MAX][WPK_NAME_MAX];
};

/* Add a dimension for the points of each of the first `count` pairs. */
void wpk_winograd_draft_add_points(const struct wpk_winograd *w, struct wpk_winograd_draft *draft,
                                   int count);
/* Add a dimension for an axis of the old stage: of its tiles where it is a pair's output axis. */
void wpk_winograd_draft_add_axis(const struct wpk_winograd *w, struct wpk_winograd_draft *draft,
                                 int axis);
/* Add the tensor and its stage; returns the stage's number, or -1. */
int wpk_winograd_draft_finish(struct wpk_winograd *w, const struct wpk_winograd_draft *draft,
                              const char *suffix);

/* Add the stages of a transform, one for each pair, and return the last stage's tensor, or -1. The
 * points are the first dimensions of U and V. axis_of: the dimension of each of the old stage's
 * axes, or -1.
 *
 *   shape  axis_of [WPK_AXES_MAX]
 */
int wpk_winograd_transform_weight(struct wpk_winograd *w, int *axis_of); /* U */
int wpk_winograd_transform_data(struct wpk_winograd *w, int *axis_of);   /* V */
/* S, from the products M: the positions in the tile, then M's dimensions after its points. */
int wpk_winograd_transform_products(struct wpk_winograd *w, int products);

/* Choosing the tile sizes of minimal filtering that are worth a trial. */

#define WPK_WINOGRAD_CHOICES_MAX 8

struct wpk_winograd_choice {
    int64_t m[WPK_WINOGRAD_PAIRS_MAX];
    double operations; /* expected; 1: as many as direct evaluation */
    /* Expected errors; 1: the error of direct evaluation. The squares of both add up. */
    double error;      /* of sums whose terms are added one after the other */
    double error_rest; /* of the transforms, whose error does not depend on the sums */
    double terms;      /* of each sum */
};

/* Fill `out` with tile sizes for wpk_derive_winograd, most accurate first. Each is cheaper
 * by 4 % or more than all that are more accurate, direct evaluation included.
 *   shape   out [WPK_WINOGRAD_CHOICES_MAX]; returns how many were filled, 0 where minimal filtering
 *           does not apply or does not pay */
int wpk_winograd_choices(struct wpk_program *program, int stage, struct wpk_winograd_choice *out);

/* The points at which F(m, r) multiplies polynomials, and the matrices that follow from points. */

/* n = m + r - 1 distinct points: the finite ones, then infinity where finite_count = n - 1. */
struct wpk_winograd_points {
    int finite_count;
    double finite[WPK_WINOGRAD_POINTS_MAX]; /* [finite_count] */
};

/* The table's points for n = m + r - 1; NULL unless 2 <= n <= WPK_WINOGRAD_POINTS_MAX. */
const struct wpk_winograd_points *wpk_winograd_points(int n);

/* Error of F(m x m, r x r) in f32 ÷ error of direct evaluation, in the limit of many channels and
 * for data without correlations; see winograd_points.c. An axis contributes the square root. */
double wpk_winograd_error(const struct wpk_winograd_points *points, int64_t m, int64_t r);

#endif
