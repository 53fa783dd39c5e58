/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling kernels, running them between guard pages, and comparing them with the reference, for
 * the tests of back ends. A compiler takes longer to start than to compile most kernels: many are
 * compiled at once. */
#ifndef WPK_TESTS_KERNEL_CHECK_H
#define WPK_TESTS_KERNEL_CHECK_H

#include "common/rng.h"
#include "nest/schedule.h"
#include "search/space.h"

#define WPK_KERNELS_MAX 64

/* Values of inputs, by letter: what some elements are, and the rest numbers. */
#define WPK_VALUES_NUMBERS 'n'
#define WPK_VALUES_MASKED 'm'   /* -inf, of the first row all */
#define WPK_VALUES_INFINITE 'i' /* -inf or +inf */
#define WPK_VALUES_LARGEST                                                                         \
    'f'                         /* the largest numbers of the type, of the first row the negative;
                                   of i32 these, -1, 0 and others */
#define WPK_VALUES_SMALLEST 'd' /* numbers that are not normal */
#define WPK_VALUES_NAN 'a'
#define WPK_VALUES_NOT_ZERO 'z' /* integers from -9 to 9 without 0 */
#define WPK_VALUES_BITS                                                                            \
    'b'                        /* numbers beside those at which casts change; outputs are those of
                                   direct evaluation, bit for bit */
#define WPK_VALUES_SPECIAL 's' /* all of these, and the ends of the domains of functions */
#define WPK_VALUES_ALL 'w'     /* of all exponents and both signs */

/* One kernel of a batch. */
struct wpk_kernel_case {
    struct wpk_schedule schedule;
    const char *values; /* letters of the runs of the kernel; NULL: as the batch says */
    char words[WPK_CANDIDATE_TEXT_MAX];
    bool refused; /* by `emit` */
};

struct wpk_kernels {
    struct wpk_kernel_case subject[WPK_KERNELS_MAX]; /* [count] */
    int count;
    int kernels; /* of all batches */
    int refused; /* of them, by `emit`, with a message that is printed */
    wpk_cpu_flags flags;
    bool masked;  /* inputs have -inf where they may */
    bool exact;   /* outputs are the reference's values, rounded once; inputs of f64 have a NaN */
    double units; /* > 0: by which outputs may be off in the last place, beside the least number */
    /* Compiles a schedule that is not by c to an object; NULL: all are by c. */
    wpk_err (*emit)(const struct wpk_schedule *schedule, const char *symbol,
                    const char *object_path, struct wpk_diag *diag);
    char directory[64];
};

/* Compile the batch, run its kernels on values drawn from `rng`, and empty the batch. Fail the
 * running cmocka test unless the kernels compute what the reference does, and touch nothing outside
 * of their arguments. */
void wpk_check_kernels(struct wpk_kernels *batch, struct wpk_rng *rng);

#endif
