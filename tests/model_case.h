/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a single operator, and what they compute or why they are refused. */
#ifndef WPK_TESTS_MODEL_CASE_H
#define WPK_TESTS_MODEL_CASE_H

#include "tests/model_fixture.h"

#include <stddef.h>

/* A node of constant inputs. */
struct wpk_model_case {
    const char *op;     /* "Op"; "Op>1" for its output number 1; "Op@11": of that opset, not 20 */
    const char *inputs; /* "1,2:f32[2] :i64[3]": values, 1, 2, 3, ... without them; "-": none */
    const char *attributes; /* as of wpk_model_fixture_node() */
    const char *expected;   /* "f32[2] 1,2"; or a part of the problem, after '!' */
};

/* Check each of them; a difference fails the test and names the operator. */
void wpk_model_case_check(const struct wpk_model_case *cases, size_t count);

#define WPK_MODEL_CASES(cases) wpk_model_case_check(cases, sizeof(cases) / sizeof((cases)[0]))

/* An input that a node is given as the model's input, or as a constant if it has values. */
struct wpk_model_input {
    const char *type;   /* "f32[2,3]"; NULL: left out */
    const double *data; /* of a float type; NULL: a constant */
    const char *values; /* of a constant; NULL: 1, 2, 3, ... */
};

/* Compute output number `part` of a node by the interpreter; a problem fails the test.
 *   shape   inputs [count]; out: the output's elements, at most `max` of them
 *   returns how many there are */
int64_t wpk_model_case_compute(const char *op, int opset, const char *attributes,
                               const struct wpk_model_input *inputs, int count, int part,
                               double *out, int64_t max);

/* Fail the test unless the numbers agree but for a part of 1e-9. */
void wpk_model_case_compare(const char *what, const double *found, const double *expected,
                            int64_t count);
/* Numbers in [-2, 2], by a generator that begins at `seed`. */
void wpk_model_case_draw(unsigned seed, double *out, int64_t count);

/* Read a model and infer its shapes; a problem fails the test. */
void wpk_model_case_read(struct wpk_model_fixture *model, struct wpk_graph *graph);
/* Read a model and infer its shapes; there is a problem that has this text. */
void wpk_model_case_refuse(struct wpk_model_fixture *model, const char *expected);

#endif
