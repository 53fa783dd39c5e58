/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the interpreter with the simple one, and has short functions to build programs with. */
#ifndef WPK_TESTS_REFERENCE_CHECK_H
#define WPK_TESTS_REFERENCE_CHECK_H

#include "common/rng.h"
#include "ir/reference/reference.h"

/* Fail the running cmocka test unless wpk_reference_run and wpk_reference_run_at agree with the
 * simple interpreter, on values drawn from the seed, within 1e-12 of the magnitude. */
void wpk_check_reference(const struct wpk_program *program, uint64_t seed);
/* Fail the test unless wpk_reference_run_at gives these results at single points.
 *   shape  value, magnitude [elements of the output] */
void wpk_check_points(const struct wpk_program *program, const struct wpk_reference_args *args,
                      const double *value, const double *magnitude);
/* Random elements of a tensor, from the whole range of its type.   owns  caller frees */
double *wpk_check_values(struct wpk_rng *rng, const struct wpk_tensor *tensor);

/* ---- building */

#define EXTENTS(...) ((const int64_t[]){__VA_ARGS__})
#define INDICES(...) ((const int[]){__VA_ARGS__})

static inline int tensor(struct wpk_program *p, const char *name, enum wpk_role role,
                         enum wpk_dtype dtype, int rank, const int64_t *extent)
{
    return wpk_program_add_tensor(p, name, role, dtype, rank, extent);
}

static inline struct wpk_stage *stage(struct wpk_program *p, int output)
{
    int s = wpk_program_add_stage(p, output, NULL);
    WPK_ASSERT(s >= 0);
    return &p->stages[s];
}

static inline void reduce(struct wpk_stage *s, enum wpk_reduction reduction,
                          enum wpk_dtype accumulator, int count, const int64_t *extent)
{
    static const char *const names[] = {"r0", "r1", "r2", "r3"};
    s->reduction = reduction;
    s->accumulator = accumulator;
    for (int i = 0; i < count; i++) {
        WPK_ASSERT(wpk_stage_add_reduction_axis(s, names[i], extent[i]) >= 0);
    }
}

static inline int ax(struct wpk_program *p, int axis)
{
    return wpk_node_axis(p, axis);
}

static inline int op2(struct wpk_program *p, enum wpk_binary op, int a, int b)
{
    return wpk_node_binary(p, op, a, b);
}

/* scale * a + b + shift */
static inline int slide(struct wpk_program *p, int64_t scale, int a, int b, int64_t shift)
{
    int sum =
        op2(p, WPK_BINARY_ADD, op2(p, WPK_BINARY_MUL, wpk_node_int(p, scale), ax(p, a)), ax(p, b));
    return op2(p, WPK_BINARY_ADD, sum, wpk_node_int(p, shift));
}

static inline int zero(struct wpk_program *p, enum wpk_dtype dtype)
{
    return wpk_node_real(p, dtype, 0.0);
}

#endif
