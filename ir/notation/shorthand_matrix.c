/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, single or in batches. */
#include "ir/notation/shorthand_read.h"

#include <inttypes.h>
#include <string.h>

/* A operand's batch axes come first; then its rows and columns, exchanged when transposed. */
struct operand {
    struct wpk_shape shape;
    bool transposed;
};

struct product {
    struct operand a, b;
    int batch_rank;
    struct wpk_shape output;
};

static int64_t rows(const struct operand *o)
{
    return o->shape.extent[o->shape.rank - (o->transposed ? 1 : 2)];
}

static int64_t columns(const struct operand *o)
{
    return o->shape.extent[o->shape.rank - (o->transposed ? 2 : 1)];
}

static void read_product(struct wpk_shorthand *s, int rank_min, int rank_max, struct product *p)
{
    *p = (struct product){0};
    p->a.shape = wpk_shorthand_shape(s, "a", rank_min, rank_max);
    p->b.shape = wpk_shorthand_shape(s, "b", rank_min, rank_max);
    p->a.transposed = wpk_shorthand_flag(s, "transpose_a", false);
    p->b.transposed = wpk_shorthand_flag(s, "transpose_b", false);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    if (p->a.shape.rank != p->b.shape.rank) {
        wpk_json_fail(s->reader, "b", WPK_EINVAL, "%d dimensions, but a has %d", p->b.shape.rank,
                      p->a.shape.rank);
    } else if (columns(&p->a) != rows(&p->b)) {
        wpk_json_fail(s->reader, "b", WPK_EINVAL, "%" PRId64 " rows, but a has %" PRId64 " columns",
                      rows(&p->b), columns(&p->a));
    } else {
        p->batch_rank = p->a.shape.rank - 2;
        /* Batch extents must be equal, or 1 on one side. */
        for (int d = 0; d < p->batch_rank && !wpk_shorthand_failed(s); d++) {
            int64_t a = p->a.shape.extent[d];
            int64_t b = p->b.shape.extent[d];
            if (a != b && a != 1 && b != 1) {
                wpk_json_fail(s->reader, "b", WPK_EINVAL, "batches of %" PRId64 " and %" PRId64, a,
                              b);
            }
            p->output.extent[d] = a > b ? a : b;
        }
        p->output.rank = p->a.shape.rank;
        p->output.extent[p->batch_rank] = rows(&p->a);
        p->output.extent[p->batch_rank + 1] = columns(&p->b);
    }
}

static void declare_operands(struct wpk_shorthand *s, const struct product *p)
{
    wpk_shorthand_declare(s, "A", s->dtype, &p->a.shape, false);
    wpk_shorthand_declare(s, "B", s->dtype, &p->b.shape, false);
}

static void print_operand(struct wpk_shorthand *s, const struct product *p,
                          const struct operand *operand, const char *name, const char *row,
                          const char *column)
{
    wpk_buf_printf(&s->text, "%s[", name);
    for (int d = 0; d < p->batch_rank; d++) {
        bool repeated = operand->shape.extent[d] == 1 && p->output.extent[d] != 1;
        wpk_buf_printf(&s->text, "%s,", repeated ? "0" : wpk_shorthand_axes[d]);
    }
    wpk_buf_printf(&s->text, "%s,%s]", operand->transposed ? column : row,
                   operand->transposed ? row : column);
}

static void print_output(struct wpk_shorthand *s, const struct product *p)
{
    wpk_buf_append_text(&s->text, "Y[");
    for (int d = 0; d < p->batch_rank; d++) {
        wpk_buf_printf(&s->text, "%s,", wpk_shorthand_axes[d]);
    }
    wpk_buf_append_text(&s->text, "i,j] = ");
}

static void print_sum(struct wpk_shorthand *s, const struct product *p)
{
    wpk_buf_append_text(&s->text, "sum(k) ");
    print_operand(s, p, &p->a, "A", "i", "k");
    wpk_buf_append_text(&s->text, " * ");
    print_operand(s, p, &p->b, "B", "k", "j");
}

/* matmul and batch_matmul */
static void expand_matmul(struct wpk_shorthand *s)
{
    bool batch = strcmp(s->name, "batch_matmul") == 0;
    struct product p;
    read_product(s, batch ? 3 : 2, batch ? WPK_RANK_MAX : 2, &p);
    bool bias = wpk_shorthand_flag(s, "bias", false);
    struct wpk_activation activation = wpk_shorthand_activation(s);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    declare_operands(s, &p);
    if (bias) {
        wpk_shorthand_declare(s, "C", s->output_dtype, &(struct wpk_shape){1, {columns(&p.b)}},
                              true);
    }
    wpk_shorthand_declare_output(s, &p.output);
    wpk_shorthand_constants(s);
    print_output(s, &p);
    wpk_buf_append_text(&s->text, activation.begin);
    print_sum(s, &p);
    wpk_buf_printf(&s->text, "%s%s", bias ? " + C[j]" : "", activation.end);
}

/* The addend of a gemm: [M,N], or anything that stretches to it. */
static void print_addend(struct wpk_shorthand *s, const struct wpk_shape *c, double beta)
{
    static const char *const axes[2] = {"i", "j"};
    wpk_buf_append_text(&s->text, " + ");
    if (beta != 1) {
        wpk_buf_printf(&s->text, "%.17g * ", beta);
    }
    wpk_buf_append_text(&s->text, "C[");
    for (int d = 0; d < c->rank; d++) {
        const char *axis = c->extent[d] == 1 ? "0" : axes[2 - c->rank + d];
        wpk_buf_printf(&s->text, "%s%s", d > 0 ? "," : "", axis);
    }
    wpk_buf_append_text(&s->text, "]");
}

static void check_addend(struct wpk_shorthand *s, const struct wpk_shape *c,
                         const struct wpk_shape *output)
{
    for (int d = 0; d < c->rank; d++) {
        int64_t extent = output->extent[2 - c->rank + d];
        if (c->extent[d] != 1 && c->extent[d] != extent) {
            wpk_json_fail(s->reader, "c", WPK_EINVAL, "%" PRId64 " does not stretch to %" PRId64,
                          c->extent[d], extent);
        }
    }
}

static void expand_gemm(struct wpk_shorthand *s)
{
    struct product p;
    struct wpk_shape c = {0};
    bool adds = wpk_json_has(s->reader, "c");
    read_product(s, 2, 2, &p);
    double alpha = wpk_shorthand_real(s, "alpha", -1e30, 1e30, 1);
    double beta = wpk_shorthand_real(s, "beta", -1e30, 1e30, 1);
    struct wpk_activation activation = wpk_shorthand_activation(s);
    if (adds) {
        c = wpk_shorthand_shape(s, "c", 0, 2);
    }
    if (!wpk_shorthand_failed(s)) {
        check_addend(s, &c, &p.output);
    }
    if (wpk_shorthand_failed(s)) {
        return;
    }
    declare_operands(s, &p);
    if (adds) {
        wpk_shorthand_declare(s, "C", s->output_dtype, &c, false);
    }
    wpk_shorthand_declare_output(s, &p.output);
    wpk_shorthand_constants(s);
    print_output(s, &p);
    wpk_buf_append_text(&s->text, activation.begin);
    if (alpha != 1) {
        wpk_buf_printf(&s->text, "%.17g * ", alpha);
    }
    wpk_buf_append_text(&s->text, "(");
    print_sum(s, &p);
    wpk_buf_append_text(&s->text, ")");
    if (adds) {
        print_addend(s, &c, beta);
    }
    wpk_buf_append_text(&s->text, activation.end);
}

static const char matmul_fields[] =
    "a b transpose_a transpose_b bias activation dtype output_dtype constants";
static const char gemm_fields[] =
    "a b c transpose_a transpose_b alpha beta activation dtype output_dtype constants";

const struct wpk_shorthand_type wpk_shorthand_matrix_types[] = {
    {"matmul", matmul_fields, expand_matmul, WPK_SHORTHAND_WIDENED},
    {"batch_matmul", matmul_fields, expand_matmul, WPK_SHORTHAND_WIDENED},
    {"gemm", gemm_fields, expand_gemm, WPK_SHORTHAND_WIDENED},
    {.name = NULL},
};
