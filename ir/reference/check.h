/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the outputs of a run with the reference interpreter. The error is given as a share of
 * the output, and as a multiple of the error of direct evaluation on the same inputs; of several
 * outputs the largest. Integers are compared bit for bit. An infinity or a NaN is right where the
 * reference, rounded to the output's type, is the same, or direct evaluation is. */
#ifndef WPK_IR_REFERENCE_CHECK_H
#define WPK_IR_REFERENCE_CHECK_H

#include "schema/accuracy.h"
#include "schema/tensor.h"

/* An argument of a kernel, with its data. */
struct wpk_check_tensor {
    const char *name; /* as in the operator */
    const struct wpk_tensor_type *type;
    const void *dense; /* [extent...] row-major, whatever the layout */
};

struct wpk_check {
    int64_t points;      /* number of compared points */
    double rms;          /* of the reference's values */
    double of_rms;       /* rms of the errors ÷ rms */
    double max_of_rms;   /* largest error ÷ rms */
    double times_direct; /* rms of the errors ÷ direct's, or ÷ a last place; 0: integers */
    double allowed;      /* largest times_direct of the class, for this number of points */
    bool passed;
};

/* Points of an output that are compared at most, and as many as some seconds allow. */
#define WPK_CHECK_POINTS_MAX 65536

/* Compare each output at up to `points_max` points, or as many as some seconds allow.
 *
 *   shape   op: the operator in whole form; tensors [input_count + output_count]: inputs and
 *           constants, then outputs
 *   errors  those of wpk_program_parse and wpk_reference_run_at; WPK_ECORRUPT a
 *           tensor that the operator does not have */
wpk_err wpk_check(const char *op, const struct wpk_check_tensor *tensors, int input_count,
                  int output_count, struct wpk_accuracy accuracy, int64_t points_max,
                  struct wpk_check *out, struct wpk_diag *diag);

#endif
