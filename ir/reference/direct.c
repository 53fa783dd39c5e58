/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/reference/direct.h"

#include "ir/reference/tape.h"

wpk_err wpk_direct_run(const struct wpk_program *program, const struct wpk_reference_args *args,
                       uint64_t set, double *value, struct wpk_diag *diag)
{
    const struct wpk_tape_arithmetic rounded = {.rounds = true, .seed = set};
    return wpk_evaluate(program, args, &rounded, value, NULL, diag);
}

wpk_err wpk_direct_run_at(const struct wpk_program *program, const struct wpk_reference_args *args,
                          uint64_t set, const int64_t *points, int64_t count, double *value,
                          struct wpk_diag *diag)
{
    const struct wpk_tape_arithmetic rounded = {.rounds = true, .seed = set};
    return wpk_evaluate_at(program, args, &rounded, points, count, value, NULL, diag);
}
