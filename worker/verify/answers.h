/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of an op on an input set, from the interpreter: the right values, the magnitudes that
 * scale the tolerance, and the error of direct evaluation, the unit of accuracy. They are computed
 * once for each op and set, and kept in a file that every candidate's process maps. */
#ifndef WPK_WORKER_VERIFY_ANSWERS_H
#define WPK_WORKER_VERIFY_ANSWERS_H

#include "ir/program.h"
#include "ir/reference/accuracy.h"
#include "worker/verify/inputs.h"

/* Points computed for a winner's fresh sets, and where the whole output would take too long. An
 * eighth of them is chosen for its place; the others count in the error. */
#define WPK_ANSWERS_SAMPLE_COUNT                                                                   \
    (WPK_ACCURACY_POINTS_MIN + WPK_ACCURACY_POINTS_MIN / 7 + 2 * (WPK_RANK_MAX + 2))

/* = {0} is empty. Arrays point into `block`. */
struct wpk_answers {
    struct wpk_input_options inputs; /* what to make the inputs from */
    bool whole;                      /* the points are all of the output's, in order */
    int rank;
    int64_t count;
    int draws;               /* how often inputs were drawn, 1 or more, each with answers */
    const int64_t *points;   /* [count][rank]; NULL when whole */
    const double *value;     /* [draws][count] */
    const double *magnitude; /* [draws][count] sum of |terms| that went into the point; -1: not
                                to be compared */
    double magnitude_max;
    /* No computation rounds on these inputs, in any order: the sums of integers are small enough,
     * or direct evaluation on reals gives the reference's values at all points. */
    bool exact;
    uint8_t seen[WPK_STAGES_MAX]; /* by stage: bit f is set if this set shows fault f */
    double direct_error;          /* E of direct evaluation, see accuracy.h; 0: exact */
    void *block;                  /* owned */
    size_t block_size;            /* bytes */
    bool mapped;                  /* block comes from mmap */
};

/* Compute the answers of a set. `sample_count` 0: at all points, or at WPK_ANSWERS_SAMPLE_COUNT of
 * them when WPK_REFERENCE_WHOLE_MAX is exceeded. Else: at `sample_count` points at most, and at no
 * more than a candidate's time allows. The points include the first and the last index of every
 * dimension.
 *
 * Integers and reals are drawn from other domains when any give values that are not finite. The
 * answers of another kind are then empty (count 0), and also where the kind draws the program's
 * inputs like reals. Large integers are drawn smaller until no sum of them leaves its type, unless
 * inputs.large gives their magnitude. Masked inputs have whole rows masked (inputs.rows) where no
 * NaN meets a choice, and half of the values are numbers.
 *
 *   owns    caller calls wpk_answers_fini
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED also where one point alone takes too long, and where
 *           values are finite on inputs of no domain */
wpk_err wpk_answers_make(const struct wpk_program *program, const struct wpk_input_options *inputs,
                         int64_t sample_count, struct wpk_answers *out, struct wpk_diag *diag);
/* Draw more inputs of the same kind, because the error of a small output is noisy: until
 * WPK_ACCURACY_POINTS_MIN values are compared, or a candidate's time is spent. Answers of which
 * there is no error to measure stay as they are, but for special ones, of which all are to occur.
 *   errors  WPK_ENOMEM */
wpk_err wpk_answers_draw_more(const struct wpk_program *program, struct wpk_answers *answers,
                              struct wpk_diag *diag);
/* The options that wpk_inputs_make needs for a draw. */
struct wpk_input_options wpk_answers_inputs(const struct wpk_answers *answers, int draw);
/* True if a point counts in the errors of the whole set: it was not chosen for its place. */
bool wpk_answers_count(const struct wpk_answers *answers, int64_t index);
/* Set `seen`, as wpk_faults_look found it.   shape  seen [WPK_STAGES_MAX] */
void wpk_answers_note(struct wpk_answers *answers, const uint8_t *seen);
void wpk_answers_fini(struct wpk_answers *answers);

/* Write answers to a file, atomically, and read them back.
 *   errors  save: those of wpk_fs_write; load: WPK_ENOENT, WPK_ECORRUPT */
wpk_err wpk_answers_save(const struct wpk_answers *answers, const char *path,
                         struct wpk_diag *diag);
wpk_err wpk_answers_load(const char *path, struct wpk_answers *out);

/* The block that answers lie in, the same in memory and in a file: a head, then the arrays. */

/* Changes with the format and with how inputs are drawn. */
#define WPK_ANSWERS_MAGIC UINT64_C(0x39736e61706b7731)

struct wpk_answers_head {
    uint64_t magic;
    uint64_t seed;
    uint64_t constants_seed;
    int64_t count;
    double magnitude_max;
    double direct_error;
    double large;
    int32_t rank;
    int32_t draws;
    uint8_t kind;
    uint8_t domain; /* enum wpk_draw_domain */
    uint8_t whole;
    uint8_t exact;
    uint8_t rows;
    uint8_t zero[3];
    uint8_t seen[WPK_STAGES_MAX];
};

/* Point the answers' arrays into their block. */
void wpk_answers_point_into(struct wpk_answers *answers);
/* Bytes of a block. */
size_t wpk_answers_block_size(bool whole, int rank, int64_t count, int draws);

#endif
