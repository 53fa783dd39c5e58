/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/derive_check.h"

#include "ir/notation/notation.h"
#include "ir/reference/reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CLOSE                                                                                      \
    1e-9 /* relative to the terms; F(6,5) in two dimensions loses five digits of sixteen */

#define LL(x) ((long long)(x))

/* to[i] = from[j] where j[order[d]] = i[d]; `extent` is of `to`. */
static void rearrange(const double *from, int rank, const int64_t *extent, const int *order,
                      double *to)
{
    int64_t index[WPK_RANK_MAX] = {0}, from_extent[WPK_RANK_MAX], count = 1;
    for (int d = 0; d < rank; d++) {
        from_extent[order[d]] = extent[d];
        count *= extent[d];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at = 0, moved[WPK_RANK_MAX] = {0};
        for (int d = rank - 1; d >= 0; d--) {
            index[d] = rest % extent[d];
            rest /= extent[d];
            moved[order[d]] = index[d];
        }
        for (int d = 0; d < rank; d++) {
            at = at * from_extent[d] + moved[d];
        }
        to[i] = from[at];
    }
}

static double *draw_values(struct wpk_rng *rng, int64_t count)
{
    double *values = malloc((size_t)count * sizeof(double));
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = 2 * wpk_rng_unit(rng) - 1;
    }
    return values;
}

/* Inputs bound by name; `order` says how the derived boundary lies, NULL: as the original's. */
static void bind(const struct wpk_program *original, const struct wpk_program *derived,
                 const int *order, struct wpk_rng *rng, double **values,
                 struct wpk_reference_args *first, struct wpk_reference_args *second,
                 double **moved)
{
    for (int t = 0; t < original->tensor_count; t++) {
        const struct wpk_tensor *tensor = &original->tensors[t];
        if (tensor->role != WPK_ROLE_INPUT && tensor->role != WPK_ROLE_CONSTANT) {
            continue;
        }
        int there = wpk_program_find_tensor(derived, tensor->name);
        int64_t count = wpk_tensor_elements(tensor);
        first->tensor[t] = values[t] = draw_values(rng, count);
        if (there < 0) {
            continue; /* nothing that the output needs reads it */
        }
        assert_int_equal(wpk_tensor_elements(&derived->tensors[there]), count);
        second->tensor[there] = values[t];
        if (order != NULL && tensor->role == WPK_ROLE_INPUT &&
            tensor->rank == original->tensors[wpk_program_output(original)].rank) {
            moved[t] = malloc((size_t)count * sizeof(double));
            assert_non_null(moved[t]);
            rearrange(values[t], tensor->rank, derived->tensors[there].extent, order, moved[t]);
            second->tensor[there] = moved[t];
        }
    }
}

static void show(const char *what, const struct wpk_program *program)
{
    struct wpk_buf text = {0};
    if (wpk_program_print(program, &text) == WPK_OK) {
        print_error("%s:\n%s\n", what, wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
}

static void check(const struct wpk_program *original, const struct wpk_program *derived,
                  const int *order, double tolerance, struct wpk_rng *rng)
{
    struct wpk_reference_args first = {.tensor = {NULL}}, second = {.tensor = {NULL}};
    double *values[WPK_TENSORS_MAX] = {0}, *moved[WPK_TENSORS_MAX] = {0};
    struct wpk_diag diag = {0};
    const struct wpk_tensor *out = &original->tensors[wpk_program_output(original)];
    const struct wpk_tensor *derived_out = &derived->tensors[wpk_program_output(derived)];
    int64_t count = wpk_tensor_elements(out);
    assert_string_equal(out->name, derived_out->name);
    assert_int_equal(wpk_tensor_elements(derived_out), count);
    bind(original, derived, order, rng, values, &first, &second, moved);
    double *y = malloc((size_t)count * sizeof(double)),
           *sum = malloc((size_t)count * sizeof(double));
    double *z = malloc((size_t)count * sizeof(double)), *w = malloc((size_t)count * sizeof(double));
    assert_true(y != NULL && sum != NULL && z != NULL && w != NULL);
    assert_int_equal(wpk_reference_run(original, &first, y, sum, &diag), WPK_OK);
    wpk_err err = wpk_reference_run(derived, &second, w, NULL, &diag);
    if (err != WPK_OK) {
        show("original", original);
        show("derived", derived);
        fail_msg("the derived program does not run: %s", diag.text);
    }
    if (order != NULL) { /* w = rearranged z: turn it back */
        int inverse[WPK_RANK_MAX];
        for (int d = 0; d < out->rank; d++) {
            inverse[order[d]] = d;
        }
        rearrange(w, out->rank, out->extent, inverse, z);
    } else {
        memcpy(z, w, (size_t)count * sizeof(double));
    }
    double largest = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, sum[i]);
    }
    for (int64_t i = 0; i < count; i++) {
        /* a NaN is wrong unless the original has it too; equal infinities are right */
        if (y[i] != z[i] && !(isnan(y[i]) && isnan(z[i])) &&
            !(fabs(y[i] - z[i]) <= tolerance * (1 + largest))) {
            show("original", original);
            show("derived", derived);
            fail_msg("element %lld is %.17g, should be %.17g", LL(i), z[i], y[i]);
        }
    }
    free(y);
    free(sum);
    free(z);
    free(w);
    for (int t = 0; t < WPK_TENSORS_MAX; t++) {
        free(values[t]);
        free(moved[t]);
    }
}

void wpk_check_derived(const struct wpk_program *original, const struct wpk_program *derived,
                       const int *order, struct wpk_rng *rng)
{
    check(original, derived, order, CLOSE, rng);
}

void wpk_check_close(const struct wpk_program *original, const struct wpk_program *derived,
                     double tolerance, struct wpk_rng *rng)
{
    check(original, derived, NULL, tolerance, rng);
}

void wpk_check_whole(const struct wpk_program *program)
{
    struct wpk_diag diag = {0};
    struct wpk_buf first = {0}, second = {0};
    struct wpk_program parsed = {0};
    if (wpk_program_validate(program, &diag) != WPK_OK) {
        show("derived", program);
        fail_msg("invalid: %s", diag.text);
    }
    assert_int_equal(wpk_program_print(program, &first), WPK_OK);
    if (wpk_program_parse(wpk_buf_text(&first), &parsed, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&first));
    }
    assert_int_equal(wpk_program_print(&parsed, &second), WPK_OK);
    assert_string_equal(wpk_buf_text(&first), wpk_buf_text(&second));
    wpk_program_fini(&parsed);
    wpk_buf_fini(&first);
    wpk_buf_fini(&second);
}
