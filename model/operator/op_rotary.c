/* SPDX-License-Identifier: Apache-2.0 */
/* With cosines C and sines N of row s, and the other element of the pair p:
 *     Y[e] = X[e] * C[s,j] - X[p] * N[s,j]     for the first of a pair, + for the second
 * Pairs are neighbours if interleaved, else half of the turned elements apart. */
#include "model/operator/operator_forms.h"

#include <stdio.h>

enum { DATA, COSINES, SINES, POSITIONS };

#define POSITIONS_MAX 4096 /* that are searched */

struct rotary {
    int64_t batch;
    int64_t rows;
    int64_t size;   /* of a head */
    int64_t turned; /* elements of it */
};

static wpk_err read_rotary(const struct wpk_graph_node *node,
                           const struct wpk_graph_value *const *input, struct rotary *out,
                           struct wpk_diag *diag)
{
    const struct wpk_graph_value *x = input[DATA];
    const struct wpk_graph_value *cosines = input[COSINES];
    const struct wpk_graph_value *positions = input[POSITIONS];
    int64_t heads = wpk_graph_int(node, "num_heads", 0);
    bool fits = x->rank == 4 || (x->rank == 3 && heads >= 1 && x->extent[2] % heads == 0);

    if (fits) {
        out->batch = x->extent[0];
        out->rows = x->extent[x->rank == 4 ? 2 : 1];
        out->size = x->rank == 4 ? x->extent[3] : x->extent[2] / heads;
        out->turned = wpk_graph_int(node, "rotary_embedding_dim", 0);
        out->turned = out->turned == 0 ? out->size : out->turned;
        fits = out->turned >= 2 && out->turned <= out->size && out->turned % 2 == 0 &&
               cosines->rank == (positions != NULL ? 2 : 3) &&
               cosines->extent[cosines->rank - 1] == out->turned / 2 &&
               input[SINES]->rank == cosines->rank && cosines->dtype == x->dtype &&
               input[SINES]->dtype == x->dtype;
    }
    for (int d = 0; fits && d < cosines->rank; d++) {
        fits = input[SINES]->extent[d] == cosines->extent[d];
    }
    const struct wpk_graph_value *table = positions != NULL ? positions : cosines;
    fits = fits && table->extent[0] == out->batch && table->extent[1] == out->rows &&
           (positions == NULL || (positions->rank == 2 && !wpk_dtype_is_float(positions->dtype)));
    if (!fits || (positions != NULL && cosines->extent[0] > POSITIONS_MAX)) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "its caches or positions do not fit its input, or are too long");
    }
    return WPK_OK;
}

wpk_err wpk_infer_rotary(const struct wpk_inference *in)
{
    const struct wpk_graph_value *input[POSITIONS + 1];
    struct rotary r;

    for (int i = 0; i <= POSITIONS; i++) {
        input[i] = wpk_graph_input(in->graph, in->node, i);
    }
    wpk_err err = read_rotary(in->node, input, &r, in->diag);
    return err == WPK_OK ? wpk_infer_like(in) : err;
}

/* "X[d0,d1,d2,d3+4]" */
static void print_shifted(struct wpk_printer *printer, const char *shift)
{
    wpk_buf_printf(printer->text, "X[%s%s]", wpk_axis_names(printer->out->rank), shift);
}

/* The cosine or sine of the output's row; `name` is the stage that chooses it by its position. */
static void print_angle(struct wpk_printer *printer, int input, const char *name, const char *pair)
{
    const char *table = input == COSINES ? "X1" : "X2";

    wpk_buf_printf(printer->text, "%s[d0,d%d,%s]", printer->input[POSITIONS] != NULL ? name : table,
                   printer->out->rank == 4 ? 2 : 1, pair);
}

/* "; C[b:2,s:3,j:4] = sum(p:50) select(X3[b,s] == p, X1[p,j], 0)" */
static void print_choice(struct wpk_printer *printer, const struct rotary *r, int input,
                         const char *name)
{
    wpk_buf_printf(printer->text, "; %s[b:%lld,s:%lld,j:%lld] = sum(p:%lld) select(", name,
                   (long long)r->batch, (long long)r->rows, (long long)(r->turned / 2),
                   (long long)printer->input[input]->extent[0]);
    wpk_buf_printf(printer->text, "X3[b,s] == p, X%d[p,j], 0)", input);
}

wpk_err wpk_print_rotary(struct wpk_printer *printer)
{
    bool is_interleaved = wpk_graph_int(printer->node, "interleaved", 0) != 0;
    int last = printer->out->rank - 1;
    struct rotary r = {.batch = 0};
    char element[32];
    char pair[64];
    char shift[2][32];

    wpk_err err = read_rotary(printer->node, printer->input, &r, printer->diag);
    if (err != WPK_OK) {
        return err;
    }
    long long half = (long long)r.turned / 2;
    long long apart = is_interleaved ? 1 : half;
    snprintf(element, sizeof(element), "d%d%%%lld", last, (long long)r.size);
    snprintf(pair, sizeof(pair), is_interleaved ? "%s/2" : "%s%%%lld", element, half);
    snprintf(shift[0], sizeof(shift[0]), "+%lld", apart);
    snprintf(shift[1], sizeof(shift[1]), "-%lld", apart);
    wpk_printer_output(printer);
    wpk_buf_printf(printer->text, "select(%s < %lld, ", element, (long long)r.turned);
    print_shifted(printer, "");
    wpk_buf_append_text(printer->text, " * ");
    print_angle(printer, COSINES, "C", pair);
    wpk_buf_printf(printer->text,
                   is_interleaved ? " + select(%s %% 2 < 1, -" : " + select(%s < %lld, -", element,
                   half);
    print_shifted(printer, shift[0]);
    wpk_buf_append_text(printer->text, ", ");
    print_shifted(printer, shift[1]);
    wpk_buf_append_text(printer->text, ") * ");
    print_angle(printer, SINES, "N", pair);
    wpk_buf_append_text(printer->text, ", ");
    print_shifted(printer, "");
    wpk_buf_append_text(printer->text, ")");
    if (printer->input[POSITIONS] != NULL) {
        print_choice(printer, &r, COSINES, "C");
        print_choice(printer, &r, SINES, "N");
    }
    return WPK_OK;
}
