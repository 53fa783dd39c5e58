/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/reference/reference.h"

#include "schema/convert.h"
#include "schema/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS 32
#define ITERATIONS_MAX 5e7                     /* half a second */
#define ELEMENTS_MAX ((int64_t)1 << 26)        /* of all inputs: doubles, 512 MiB */
#define POINTS_STREAM UINT64_C(0x706f696e7473) /* apart from the tensors' */

/* Everything that one test needs: the inputs, and the points of the output at hand. */
struct making {
    const struct wpk_program *program;
    const struct wpk_choice_list *outputs;
    struct wpk_choice_test *test;
    double *wide[WPK_TENSORS_MAX]; /* owned */
    int64_t points[POINTS * WPK_RANK_MAX];
    double value[POINTS];
    double magnitude[POINTS];
    int64_t count;
};

static wpk_err draw_tensors(struct making *m)
{
    for (int i = 0; i < m->program->tensor_count; i++) {
        const struct wpk_tensor *tensor = &m->program->tensors[i];
        int64_t count = wpk_tensor_elements(tensor);
        if (!wpk_tensor_is_given(tensor)) {
            continue;
        }
        if (m->wide[i] == NULL) {
            m->wide[i] = malloc((size_t)count * sizeof(double));
        }
        void *dense = malloc((size_t)count * wpk_dtype_size(tensor->dtype));
        if (m->wide[i] == NULL || dense == NULL) {
            free(dense);
            return WPK_ENOMEM;
        }
        wpk_draw_tensor(m->test->seed, tensor->name, tensor->dtype, m->test->domain, count, dense);
        wpk_convert_widen(tensor->dtype, dense, count, m->wide[i]);
        free(dense);
    }
    return WPK_OK;
}

/* Leave out the points where the operator is infinite, as a mask makes it: a choice's numbers are
 * finite. False if some value is no number, or none is finite. */
static bool keep_finite(struct making *m, int rank)
{
    int64_t kept = 0;

    for (int64_t i = 0; i < m->count; i++) {
        if (isnan(m->value[i]) || isnan(m->magnitude[i])) {
            return false;
        }
    }
    for (int64_t i = 0; i < m->count; i++) {
        if (isinf(m->value[i]) || isinf(m->magnitude[i])) {
            continue;
        }
        memmove(&m->points[kept * rank], &m->points[i * rank], (size_t)rank * sizeof *m->points);
        m->value[kept] = m->value[i];
        m->magnitude[kept++] = m->magnitude[i];
    }
    m->count = kept;
    return kept > 0;
}

/* Of |terms|: more than the least accurate algorithm loses, less than a term left out. */
static const double relative_tolerances[WPK_DTYPE_COUNT] = {
    [WPK_F32] = 0x1p-15, [WPK_F64] = 0x1p-15, [WPK_F16] = 0x1p-8, [WPK_BF16] = 0x1p-5};

/*   shape   view: the program with this output alone */
static wpk_err make_view(struct making *m, const struct wpk_program *view, int tensor,
                         struct wpk_choice_expected *out, struct wpk_diag *diag)
{
    const struct wpk_tensor *output = &view->tensors[tensor];
    struct wpk_reference_args args = {.tensor = {NULL}};

    for (int i = 0; i < view->tensor_count; i++) {
        args.tensor[i] = m->wide[i];
    }
    struct wpk_rng rng;
    int64_t *at = m->points;
    wpk_rng_seed(&rng, m->test->seed ^ POINTS_STREAM);
    for (int p = 0; p < POINTS; p++) {
        for (int d = 0; d < output->rank; d++) {
            int64_t last = output->extent[d] - 1;
            int64_t drawn = wpk_rng_between(&rng, 0, last);
            *at++ = p == 0 ? 0 : p == 1 ? last : drawn;
        }
    }
    wpk_err err = wpk_reference_points_within(view, m->points, POINTS,
                                              ITERATIONS_MAX / m->outputs->count, &m->count, diag);
    if (err == WPK_OK && m->count > 0) {
        err = wpk_reference_run_at(view, &args, m->points, m->count, m->value, m->magnitude, diag);
    }
    if (err == WPK_OK && m->count > 0 && keep_finite(m, output->rank)) {
        double magnitude_max = 0;
        for (int64_t i = 0; i < m->count; i++) {
            const int64_t *point = &m->points[i * output->rank];
            int64_t flat = 0;
            for (int d = 0; d < output->rank; d++) {
                flat = flat * output->extent[d] + point[d];
            }
            out->point[i] = flat;
            out->value[i] = m->value[i];
            magnitude_max = fmax(magnitude_max, m->magnitude[i]);
        }
        out->count = (int)m->count;
        out->tolerance = relative_tolerances[output->dtype] * magnitude_max;
    }
    return err;
}

/* Set *complete if every output has points. */
static wpk_err make_outputs(struct making *m, bool *complete, struct wpk_diag *diag)
{
    wpk_err err = draw_tensors(m);

    *complete = true;
    for (int i = 0; i < m->outputs->count && *complete && err == WPK_OK; i++) {
        struct wpk_choice_expected *expected = &m->test->output[i];
        int tensor = wpk_program_find_tensor(m->program, m->outputs->tensor[i].canonical);
        struct wpk_program view = {0};
        *expected = (struct wpk_choice_expected){0};
        if (tensor >= 0 && m->program->tensors[tensor].role == WPK_ROLE_OUTPUT) {
            err = wpk_program_view(m->program, tensor, &view);
        }
        if (view.tensor_count > 0) {
            err = make_view(m, &view, tensor, expected, diag);
            wpk_program_fini(&view);
        }
        *complete = expected->count > 0;
    }
    return err;
}

wpk_err wpk_selftest_make(const struct wpk_program *program, uint64_t seed,
                          const struct wpk_choice_list *outputs, struct wpk_choice_test *out,
                          struct wpk_diag *diag)
{
    int64_t elements = 0;
    bool complete = false;

    *out = (struct wpk_choice_test){.seed = seed};
    for (int i = 0; i < program->tensor_count; i++) {
        const struct wpk_tensor *tensor = &program->tensors[i];
        elements += wpk_tensor_is_given(tensor) ? wpk_tensor_elements(tensor) : 0;
    }
    if (elements > ELEMENTS_MAX) {
        return WPK_OK;
    }
    struct making *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return WPK_ENOMEM;
    }
    *m = (struct making){.program = program, .outputs = outputs, .test = out};
    wpk_err err = make_outputs(m, &complete, diag);
    for (int d = 1; d < WPK_DRAW_DOMAINS && err == WPK_OK && !complete; d++) {
        out->domain = (enum wpk_draw_domain)d;
        err = make_outputs(m, &complete, diag);
    }
    for (int i = 0; i < program->tensor_count; i++) {
        free(m->wide[i]);
    }
    free(m);
    return err;
}
