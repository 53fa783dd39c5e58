/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shorthand_check.h"

#include "common/rng.h"
#include "ir/notation/definition.h"
#include "ir/reference/reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static wpk_err expand(const char *json, struct wpk_program *out, struct wpk_diag *diag)
{
    char *quoted = strdup(json);
    assert_non_null(quoted);
    for (char *c = quoted; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    wpk_err err = wpk_shorthand_expand(quoted, out, diag);
    free(quoted);
    return err;
}

static double *draw(struct wpk_rng *rng, const struct wpk_tensor *tensor)
{
    int64_t count = wpk_tensor_elements(tensor);
    double *values = malloc((size_t)count * sizeof *values);
    bool whole = !wpk_dtype_is_float(tensor->dtype);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        double quarters = (double)wpk_rng_between(rng, tensor->dtype == WPK_U8 ? 0 : -8, 8);
        values[i] = whole ? quarters : quarters / 4;
    }
    return values;
}

void wpk_expanded_init(struct wpk_expanded *e, const char *json)
{
    struct wpk_diag diag = {0};
    struct wpk_rng rng;
    struct wpk_reference_args args = {.tensor = {NULL}};
    int output = -1;
    memset(e, 0, sizeof *e);
    wpk_rng_seed(&rng, 1);
    if (expand(json, &e->program, &diag) != WPK_OK) {
        fail_msg("%s\n%s: %s", json, diag.field, diag.text);
    }
    for (int t = 0; t < e->program.tensor_count; t++) {
        const struct wpk_tensor *tensor = &e->program.tensors[t];
        if (tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_CONSTANT) {
            args.tensor[t] = e->value[t] = draw(&rng, tensor);
        } else if (tensor->role == WPK_ROLE_OUTPUT) {
            output = t;
        }
    }
    assert_true(output >= 0);
    size_t count = (size_t)wpk_tensor_elements(&e->program.tensors[output]);
    e->value[output] = malloc(count * sizeof(double));
    assert_non_null(e->value[output]);
    wpk_err err = wpk_reference_run(&e->program, &args, e->value[output], NULL, &diag);
    if (err != WPK_OK) {
        fail_msg("%s\n%s", json, diag.text);
    }
}

void wpk_expanded_fini(struct wpk_expanded *e)
{
    for (int t = 0; t < e->program.tensor_count; t++) {
        free(e->value[t]);
    }
    wpk_program_fini(&e->program);
    memset(e, 0, sizeof *e);
}

const struct wpk_tensor *wpk_expanded_tensor(const struct wpk_expanded *e, const char *name)
{
    int id = wpk_program_find_tensor(&e->program, name);
    if (id < 0) {
        fail_msg("there is no tensor %s", name);
    }
    return &e->program.tensors[id];
}

const double *wpk_expanded_values(const struct wpk_expanded *e, const char *name)
{
    return e->value[wpk_expanded_tensor(e, name) - e->program.tensors];
}

void wpk_expanded_expect(const struct wpk_expanded *e, int64_t at, double expected)
{
    const struct wpk_tensor *output = wpk_expanded_tensor(e, "Y");
    assert_in_range(at, 0, wpk_tensor_elements(output) - 1);
    double got = wpk_expanded_values(e, "Y")[at];
    if (!(fabs(got - expected) <= 1e-6 * (1 + fabs(expected)))) {
        fail_msg("element %lld is %.9g, not %.9g", (long long)at, got, expected);
    }
}

void wpk_expect_mistakes(const struct wpk_shorthand_mistake *mistakes, size_t count)
{
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const struct wpk_shorthand_mistake *m = &mistakes[i];
        struct wpk_program program;
        struct wpk_diag diag = {0};
        wpk_err err = expand(m->json, &program, &diag);
        if (err != m->err || strcmp(diag.field, m->field) != 0 ||
            strstr(diag.text, m->says) == NULL || diag.line != 1) {
            print_error("%s\n%s %d %s: %s\nnot %s 1 %s: %s\n", m->json, wpk_err_name(err),
                        diag.line, diag.field, diag.text, wpk_err_name(m->err), m->field, m->says);
            wrong++;
        }
        assert_int_equal(program.tensor_count, 0);
    }
    assert_int_equal(wrong, 0);
}
