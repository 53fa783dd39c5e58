/* SPDX-License-Identifier: Apache-2.0 */
/* What an op must give on an input set, from the interpreter: values, the magnitudes that scale the
 * tolerance, and the error of direct evaluation, the unit of accuracy. Computed once per op and
 * set, kept in a file that every candidate's process maps. */
#ifndef WPK_WORKER_ANSWERS_H
#define WPK_WORKER_ANSWERS_H

#include "op/accuracy.h"
#include "op/program.h"
#include "worker/inputs.h"

/* Points computed where the whole output would take too long, and of a winner's fresh sets: an
 * eighth of them is chosen for its place, the others count in the error. */
#define WPK_ANSWERS_SAMPLE_COUNT                                                                   \
    (WPK_ACCURACY_POINTS_MIN + WPK_ACCURACY_POINTS_MIN / 7 + 2 * (WPK_RANK_MAX + 2))

/* = {0} is empty. Arrays point into `block`. */
struct wpk_answers {
    struct wpk_input_options inputs; /* what to make the inputs from */
    bool whole;                      /* every point of the output, in order */
    int rank;
    int64_t count;
    int draws;               /* of inputs, 1 or more, each with its answers */
    const int64_t *points;   /* [count][rank]; NULL when whole */
    const double *value;     /* [draws][count] */
    const double *magnitude; /* [draws][count] sum of |terms| that went into the point */
    double magnitude_max;
    /* Nothing rounds on these inputs, in whatever order it is computed: the integers' sums are
     * small enough, or of reals direct evaluation has the reference's values at all points. */
    bool exact;
    uint8_t seen[WPK_STAGES_MAX]; /* by stage: the faults that this set shows, a bit each */
    double direct_error;          /* E of direct evaluation, see op/accuracy.h; 0: exact */
    void *block;                  /* owned */
    size_t block_size;            /* bytes */
    bool mapped;                  /* block comes from mmap */
};

/* Compute. `sample_count` 0: the whole output, or WPK_ANSWERS_SAMPLE_COUNT points of it when it
 * is more than WPK_REFERENCE_WHOLE_MAX allows. Else so many points at most, and no more than can be
 * computed within a candidate's time. Among the points are the first and the last index of every
 * dimension. Draws positive integers and reals when others give values that are not finite; of
 * another kind the answers are then none (count 0), as where the program's inputs do not differ.
 * Large integers are drawn smaller until no sum of them leaves its type (inputs.large says how
 * large they are; given, it is kept). Masked inputs have whole rows masked (inputs.rows) where
 * kernels agree with the reference on what is NaN then, and half of the values are numbers.
 *
 *   owns    caller calls wpk_answers_fini
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED: also where one point alone is too much, and where values
 *           are not finite on positive inputs either */
wpk_err wpk_answers_make(const struct wpk_program *program, const struct wpk_input_options *inputs,
                         int64_t sample_count, struct wpk_answers *out, struct wpk_diag *diag);
/* Draw more inputs like the first, until the errors are those of WPK_ACCURACY_POINTS_MIN values or
 * a candidate's share of time is spent: an output that is smaller has a noisy error. Nothing is
 * drawn where there is no error to measure.
 *   errors  WPK_ENOMEM */
wpk_err wpk_answers_draw_more(const struct wpk_program *program, struct wpk_answers *answers,
                              struct wpk_diag *diag);
/* What to make the inputs of a draw from. */
struct wpk_input_options wpk_answers_inputs(const struct wpk_answers *answers, int draw);
/* Does a point count in the errors of the whole set? Not if it was chosen for its place. */
bool wpk_answers_count(const struct wpk_answers *answers, int64_t index);
/* Keep what wpk_faults_look found.   shape  seen [WPK_STAGES_MAX] */
void wpk_answers_note(struct wpk_answers *answers, const uint8_t *seen);
void wpk_answers_fini(struct wpk_answers *answers);

/* To a file, atomically, and back.
 *   errors  of wpk_fs_write; WPK_ENOENT, WPK_ECORRUPT on load */
wpk_err wpk_answers_save(const struct wpk_answers *answers, const char *path,
                         struct wpk_diag *diag);
wpk_err wpk_answers_load(const char *path, struct wpk_answers *out);

#endif
