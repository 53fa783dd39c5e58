/* SPDX-License-Identifier: Apache-2.0 */
/* The property that every derivation stands on: the derived program's reference equals the
 * original's. Over random shapes; WPK_TEST_SEED draws others, a failure prints both programs. */
#include "op/derive.h"

#include "op/derive_fixture.h"
#include "op/notation.h"
#include "op/reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 20240611
#define ROUNDS 24
#define CLOSE                                                                                      \
    1e-9 /* relative to the terms; F(6,5) in two dimensions loses five digits of sixteen */

#define LL(x) ((long long)(x))

/* ---- the property */

static int output_of(const struct wpk_program *program)
{
    for (int t = 0; t < program->tensor_count; t++) {
        if (program->tensors[t].role == WPK_ROLE_OUTPUT) {
            return t;
        }
    }
    fail_msg("no output");
    return -1;
}

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
        assert_true(there >= 0);
        int64_t count = wpk_tensor_elements(tensor);
        assert_int_equal(wpk_tensor_elements(&derived->tensors[there]), count);
        first->tensor[t] = values[t] = draw_values(rng, count);
        second->tensor[there] = values[t];
        if (order != NULL && tensor->role == WPK_ROLE_INPUT &&
            tensor->rank == original->tensors[output_of(original)].rank) {
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

static void expect_equal(const struct wpk_program *original, const struct wpk_program *derived,
                         const int *order, struct wpk_rng *rng)
{
    struct wpk_reference_args first = {{0}}, second = {{0}};
    double *values[WPK_TENSORS_MAX] = {0}, *moved[WPK_TENSORS_MAX] = {0};
    struct wpk_diag diag = {0};
    const struct wpk_tensor *out = &original->tensors[output_of(original)];
    const struct wpk_tensor *derived_out = &derived->tensors[output_of(derived)];
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
        /* not !(<=): a NaN is as wrong as can be, and equal infinities are right */
        if (y[i] != z[i] && !(fabs(y[i] - z[i]) <= CLOSE * (1 + largest))) {
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

/* Valid, and text and back is the same text. */
static void expect_whole(const struct wpk_program *program)
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

/* ---- the derivations */

static int find_input(const struct wpk_program *program, const char *name)
{
    int t = wpk_program_find_tensor(program, name);
    return t >= 0 && program->tensors[t].role == WPK_ROLE_INPUT ? t : -1;
}

static void draw_order(struct wpk_rng *rng, int rank, int *order)
{
    for (int d = 0; d < rank; d++) {
        order[d] = d;
    }
    for (int d = rank - 1; d > 0; d--) {
        int other = (int)wpk_rng_below(rng, (uint64_t)d + 1);
        int kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
}

/* What a derivation is given, and what it leaves behind. */
struct derivation {
    struct wpk_program *program;
    struct wpk_rng *rng;
    int order[WPK_RANK_MAX];
    bool permuted; /* the boundary now lies in `order` */
};

typedef wpk_err (*derive)(struct derivation *d);

static wpk_err derive_permute(struct derivation *d)
{
    int rank = d->program->tensors[output_of(d->program)].rank;
    draw_order(d->rng, rank, d->order);
    d->permuted = true;
    return wpk_derive_permute(d->program, d->order, rank);
}

static wpk_err derive_halo(struct derivation *d)
{
    return wpk_derive_halo(d->program, -1);
}

static wpk_err derive_bare_halo(struct derivation *d)
{
    int rank = d->program->tensors[output_of(d->program)].rank;
    return wpk_derive_halo(d->program, rank - 1 - (int)wpk_rng_below(d->rng, 2) % rank);
}

static wpk_err derive_stages(struct derivation *d, int bare)
{
    int rank = d->program->tensors[output_of(d->program)].rank;
    char output[WPK_NAME_MAX];
    snprintf(output, sizeof(output), "%s", d->program->tensors[output_of(d->program)].name);
    draw_order(d->rng, rank, d->order);
    wpk_err err = wpk_derive_permute(d->program, d->order, rank);
    int x = find_input(d->program, "X");
    if (err == WPK_OK && x >= 0) {
        bool moved = d->program->tensors[x].rank == rank;
        err = wpk_derive_stage_input(d->program, x, moved ? d->order : NULL, bare);
    }
    if (err == WPK_OK) {
        int y = wpk_program_find_tensor(d->program, output);
        err = wpk_derive_stage_output(d->program, y, d->order);
    }
    return err;
}

static wpk_err derive_staged(struct derivation *d)
{
    return find_input(d->program, "X") < 0 ? WPK_EUNSUPPORTED : derive_stages(d, -1);
}

static wpk_err derive_bare_staged(struct derivation *d)
{
    int rank = d->program->tensors[output_of(d->program)].rank;
    return find_input(d->program, "X") < 0 ? WPK_EUNSUPPORTED : derive_stages(d, rank - 1);
}

static wpk_err derive_winograd_2(struct derivation *d)
{
    return wpk_derive_winograd(d->program, 2);
}

static wpk_err derive_winograd_3(struct derivation *d)
{
    return wpk_derive_winograd(d->program, 3);
}

static wpk_err derive_winograd_4(struct derivation *d)
{
    return wpk_derive_winograd(d->program, 4);
}

static wpk_err derive_winograd_6(struct derivation *d)
{
    return wpk_derive_winograd(d->program, 6);
}

/* As the variants of a space do it: another order, Winograd, then copies at the boundary. */
static wpk_err derive_winograd_staged(struct derivation *d)
{
    int rank = d->program->tensors[output_of(d->program)].rank;
    draw_order(d->rng, rank, d->order);
    d->permuted = true;
    wpk_err err = wpk_derive_permute(d->program, d->order, rank);
    err = err == WPK_OK ? wpk_derive_winograd(d->program, 4) : err;
    return err == WPK_OK ? wpk_derive_halo(d->program, -1) : err;
}

static wpk_err derive_phases(struct derivation *d)
{
    return wpk_derive_phases(d->program, wpk_rng_between(d->rng, 1, 6));
}

/* What phases are for: minimal filtering of a strided window. */
static wpk_err derive_phases_winograd(struct derivation *d)
{
    wpk_err err = wpk_derive_phases(d->program, 4);
    err = err == WPK_OK ? wpk_derive_winograd(d->program, 4) : err;
    return err == WPK_OK ? wpk_derive_halo(d->program, -1) : err;
}

static wpk_err derive_im2col(struct derivation *d)
{
    return wpk_derive_im2col(d->program);
}

static wpk_err derive_im2col_halo(struct derivation *d)
{
    wpk_err err = wpk_derive_im2col(d->program);
    return err == WPK_OK ? wpk_derive_halo(d->program, -1) : err;
}

static wpk_err derive_split(struct derivation *d)
{
    static const int64_t lanes[] = {2, 4, 8};
    for (int s = 0; s < d->program->stage_count; s++) {
        const struct wpk_stage *stage = &d->program->stages[s];
        if (stage->reduction != WPK_REDUCE_NONE) {
            int axis = (int)wpk_rng_between(d->rng, stage->rank, stage->axis_count - 1);
            return wpk_derive_split_reduction(d->program, s, axis,
                                              wpk_fixture_pick(d->rng, 3, lanes));
        }
    }
    return WPK_EUNSUPPORTED;
}

static wpk_err derive_copy(struct derivation *d)
{
    int stage = (int)wpk_rng_below(d->rng, (uint64_t)d->program->stage_count);
    return wpk_derive_copy_after(d->program, stage);
}

/* Some dimensions cut into quotient and remainder, in any order. */
static wpk_err derive_pack(struct derivation *d)
{
    static const int64_t blocks[] = {1, 2, 3, 4, 8, 16};
    static const char *const names[] = {"W", "X", "A", "B"};
    struct wpk_packing packing = {.tensor = -1};
    for (int tries = 0; tries < 8 && packing.tensor < 0; tries++) {
        packing.tensor = wpk_program_find_tensor(d->program, names[wpk_rng_below(d->rng, 4)]);
    }
    if (packing.tensor < 0) {
        return WPK_EUNSUPPORTED;
    }
    const struct wpk_tensor *tensor = &d->program->tensors[packing.tensor];
    int rank = tensor->rank, order[WPK_RANK_MAX], dims[2 * WPK_RANK_MAX], count = 0;
    int64_t size[2 * WPK_RANK_MAX];
    for (int dim = 0; dim < rank; dim++) {
        int64_t block = wpk_fixture_pick(d->rng, 6, blocks);
        bool cut = count + 1 + rank - dim < WPK_RANK_MAX && wpk_rng_chance(d->rng, 0.5);
        dims[count] = dim;
        size[count++] = cut ? -block : 0;
        if (cut) {
            dims[count] = dim;
            size[count++] = block;
        }
    }
    draw_order(d->rng, count, order);
    packing.dim_count = count;
    for (int i = 0; i < count; i++) {
        packing.dim[i] = dims[order[i]];
        packing.block[i] = size[order[i]];
    }
    return wpk_derive_pack(d->program, &packing, NULL);
}

static const struct {
    const char *name;
    derive derive;
} derivations[] = {
    {"permute", derive_permute},
    {"halo", derive_halo},
    {"halo, bare", derive_bare_halo},
    {"staged", derive_staged},
    {"staged, bare", derive_bare_staged},
    {"winograd 2", derive_winograd_2},
    {"winograd 3", derive_winograd_3},
    {"winograd 4", derive_winograd_4},
    {"winograd 6", derive_winograd_6},
    {"winograd 4, permuted, halo", derive_winograd_staged},
    {"phases", derive_phases},
    {"phases, winograd 4, halo", derive_phases_winograd},
    {"im2col", derive_im2col},
    {"im2col, halo", derive_im2col_halo},
    {"split reduction", derive_split},
    {"copy after", derive_copy},
    {"pack", derive_pack},
};

#define DERIVATIONS ((int)(sizeof(derivations) / sizeof(derivations[0])))

static bool try_one(enum wpk_fixture_shape shape, const struct wpk_fixture_conv *conv, int which,
                    struct wpk_rng *rng)
{
    struct wpk_buf text = {0};
    struct wpk_program original = {0}, derived = {0};
    struct wpk_diag diag = {0};
    wpk_fixture_write(shape, conv, &text);
    if (wpk_program_parse(wpk_buf_text(&text), &original, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    assert_int_equal(wpk_program_copy(&original, &derived), WPK_OK);
    struct derivation d = {.program = &derived, .rng = rng};
    wpk_err err = derivations[which].derive(&d);
    if (err == WPK_OK) {
        expect_whole(&derived);
        expect_equal(&original, &derived, d.permuted ? d.order : NULL, rng);
    } else {
        assert_true(err == WPK_EUNSUPPORTED || err == WPK_ERANGE);
    }
    wpk_program_fini(&derived);
    wpk_program_fini(&original);
    wpk_buf_fini(&text);
    return err == WPK_OK;
}

static void test_derived_equals_original(void **state)
{
    (void)state;
    struct wpk_rng rng;
    int applied[sizeof(derivations) / sizeof(derivations[0])] = {0}, total = 0;
    const char *given = getenv("WPK_TEST_SEED");
    uint64_t seed = given == NULL ? SEED : strtoull(given, NULL, 10);
    wpk_rng_seed(&rng, seed);
    print_message("WPK_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (int round = 0; round < ROUNDS; round++) {
        for (int shape = 0; shape < WPK_FIXTURE_COUNT; shape++) {
            struct wpk_fixture_conv conv = wpk_fixture_draw(&rng);
            for (int which = 0; which < DERIVATIONS; which++) {
                bool ok = try_one((enum wpk_fixture_shape)shape, &conv, which, &rng);
                applied[which] += ok;
                total += ok;
            }
        }
    }
    for (int which = 0; which < DERIVATIONS; which++) {
        print_message("%-28s %d\n", derivations[which].name, applied[which]);
        assert_true(applied[which] >= 10);
    }
    assert_true(total >= 200);
}

/* ---- what must be refused, and what must not */

static wpk_err winograd_of(const struct wpk_fixture_conv *conv, enum wpk_fixture_shape shape,
                           int64_t m)
{
    struct wpk_buf text = {0};
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    wpk_fixture_write(shape, conv, &text);
    assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &program, &diag), WPK_OK);
    wpk_err err = wpk_derive_winograd(&program, m);
    wpk_program_fini(&program);
    wpk_buf_fini(&text);
    return err;
}

static void test_winograd_applies_where_it_may(void **state)
{
    (void)state;
    const struct wpk_fixture_conv plain = {.n = 1,
                                           .c = 2,
                                           .k = 3,
                                           .h = 7,
                                           .w = 9,
                                           .r = 3,
                                           .s = 3,
                                           .stride = 1,
                                           .dilation = 1,
                                           .pad = 1};
    for (int shape = WPK_FIXTURE_CONV_2D; shape <= WPK_FIXTURE_DEPTHWISE; shape++) {
        for (int64_t m = 2; m <= 6; m++) {
            struct wpk_fixture_conv conv = plain;
            assert_int_equal(winograd_of(&conv, (enum wpk_fixture_shape)shape, m), WPK_OK);
            conv.stride = 2;
            assert_int_equal(winograd_of(&conv, (enum wpk_fixture_shape)shape, m),
                             WPK_EUNSUPPORTED);
            conv.stride = 1;
            conv.dilation = 2;
            assert_int_equal(winograd_of(&conv, (enum wpk_fixture_shape)shape, m),
                             WPK_EUNSUPPORTED);
            conv = plain;
            conv.r = conv.s = 1;
            assert_int_equal(winograd_of(&conv, (enum wpk_fixture_shape)shape, m),
                             WPK_EUNSUPPORTED);
        }
    }
    struct wpk_fixture_conv one = plain;
    one.r = 1; /* one pair is left: the 1-D form */
    assert_int_equal(winograd_of(&one, WPK_FIXTURE_CONV_2D, 4), WPK_OK);
    assert_int_equal(winograd_of(&plain, WPK_FIXTURE_MATMUL, 4), WPK_EUNSUPPORTED);
    assert_int_equal(winograd_of(&plain, WPK_FIXTURE_POOLING, 4), WPK_EUNSUPPORTED);
    assert_int_equal(winograd_of(&plain, WPK_FIXTURE_CONV_2D, 1), WPK_EUNSUPPORTED);
    struct wpk_fixture_conv wide = plain;
    wide.r = wide.s = 5; /* F(8,5) needs more points than there are */
    assert_int_not_equal(winograd_of(&wide, WPK_FIXTURE_CONV_2D, 8), WPK_OK);
}

static void test_im2col_is_for_windows(void **state)
{
    (void)state;
    const struct wpk_fixture_conv conv = {.n = 1,
                                          .c = 2,
                                          .k = 3,
                                          .h = 7,
                                          .w = 9,
                                          .r = 3,
                                          .s = 3,
                                          .stride = 2,
                                          .dilation = 1,
                                          .pad = 1};
    struct wpk_buf text = {0};
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    wpk_fixture_write(WPK_FIXTURE_MATMUL, &conv, &text);
    assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &program, &diag), WPK_OK);
    assert_int_equal(wpk_derive_im2col(&program), WPK_EUNSUPPORTED);
    wpk_program_fini(&program);
    wpk_buf_fini(&text);
}

static void test_winograd_matrices_correlate(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, SEED);
    enum { N = WPK_WINOGRAD_POINTS_MAX };
    for (int64_t m = 1; m <= N; m++) {
        for (int64_t r = 1; m + r - 1 <= N && r <= N; r++) {
            int64_t n = m + r - 1;
            double at[N * N], g[N * N], bt[N * N], data[N], filter[N];
            if (n < 2) {
                assert_int_equal(wpk_winograd_matrices(m, r, at, g, bt), WPK_ERANGE);
                continue;
            }
            assert_int_equal(wpk_winograd_matrices(m, r, at, g, bt), WPK_OK);
            for (int64_t i = 0; i < n; i++) {
                data[i] = 2 * wpk_rng_unit(&rng) - 1;
                filter[i] = 2 * wpk_rng_unit(&rng) - 1;
            }
            for (int64_t i = 0; i < m; i++) {
                double direct = 0, fast = 0, terms = 0;
                for (int64_t k = 0; k < r; k++) {
                    direct += data[i + k] * filter[k];
                }
                for (int64_t j = 0; j < n; j++) {
                    double u = 0, v = 0;
                    for (int64_t k = 0; k < r; k++) {
                        u += g[j * r + k] * filter[k];
                    }
                    for (int64_t k = 0; k < n; k++) {
                        v += bt[j * n + k] * data[k];
                    }
                    fast += at[i * n + j] * u * v;
                    terms += fabs(at[i * n + j] * u * v);
                }
                assert_true(fabs(fast - direct) <= 1e-11 * (1 + terms));
            }
        }
    }
    assert_int_equal(wpk_winograd_matrices(N, 2, NULL, NULL, NULL), WPK_ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_winograd_matrices_correlate),
        cmocka_unit_test(test_winograd_applies_where_it_may),
        cmocka_unit_test(test_im2col_is_for_windows),
        cmocka_unit_test(test_derived_equals_original),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
