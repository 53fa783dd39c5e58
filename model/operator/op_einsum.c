/* SPDX-License-Identifier: Apache-2.0 */
/* Each letter is an axis, and so is each dimension that "..." stands for, counted from the last.
 * Axes of the result are d0, d1, ...; the others are summed over. */
#include "model/operator/operator_forms.h"

#include <ctype.h>
#include <string.h>

#define LETTERS 128 /* labels below are letters */
#define LABELS_MAX                                                                                 \
    (LETTERS + WPK_RANK_MAX) /* LETTERS + k: the k-th dimension of "..." from behind */
#define TERMS_MAX 8
#define SUMMED_MAX WPK_RANK_MAX /* reduction axes of the notation */

/* The labels of one operand's dimensions. */
struct term {
    int label[WPK_RANK_MAX];
    int rank;
};

struct einsum {
    struct term term[TERMS_MAX];
    struct term result;
    int term_count;
    int64_t extent[LABELS_MAX]; /* 0: not used */
    int uses[LABELS_MAX];
    int hidden; /* the most dimensions that a "..." stands for */
};

static bool add_label(struct term *term, int label)
{
    if (term->rank == WPK_RANK_MAX) {
        return false;
    }
    term->label[term->rank++] = label;
    return true;
}

/* Read one term up to ',', "->" or the end. `hidden` is how many dimensions "..." stands for; -1:
 * those that `rank` leaves.   Returns NULL if it is not well formed */
static const char *read_term(const char *at, int rank, int hidden, struct term *out)
{
    int letters = 0;
    bool has_dots = false;

    for (size_t i = 0; at[i] != '\0' && at[i] != ',' && at[i] != '-'; i++) {
        letters += isalpha((unsigned char)at[i]) != 0;
    }
    hidden = hidden >= 0 ? hidden : rank - letters;
    for (; *at != '\0' && *at != ',' && *at != '-'; at++) {
        bool is_good = true;
        if (wpk_begins(at, "...") && !has_dots && hidden >= 0) {
            for (int k = hidden - 1; is_good && k >= 0; k--) {
                is_good = add_label(out, LETTERS + k);
            }
            has_dots = true;
            at += 2;
        } else if (isalpha((unsigned char)*at)) {
            is_good = add_label(out, *at);
        } else {
            is_good = *at == ' ';
        }
        if (!is_good) {
            return NULL;
        }
    }
    return at;
}

static bool take_extents(struct einsum *e, const struct term *term,
                         const struct wpk_graph_value *value)
{
    if (term->rank != value->rank) {
        return false;
    }
    for (int d = 0; d < term->rank; d++) {
        int label = term->label[d];
        int64_t *extent = &e->extent[label];
        if (*extent > 1 && value->extent[d] > 1 && *extent != value->extent[d]) {
            return false;
        }
        *extent = value->extent[d] > *extent ? value->extent[d] : *extent;
        e->uses[label]++;
        e->hidden =
            label >= LETTERS && label - LETTERS >= e->hidden ? label - LETTERS + 1 : e->hidden;
    }
    return true;
}

/* Without "->": the dimensions of "...", then the letters that occur once, sorted. */
static bool imply_result(struct einsum *e)
{
    bool is_good = true;

    for (int k = e->hidden - 1; is_good && k >= 0; k--) {
        is_good = add_label(&e->result, LETTERS + k);
    }
    for (int letter = 0; is_good && letter < LETTERS; letter++) {
        is_good = e->uses[letter] != 1 || add_label(&e->result, letter);
    }
    return is_good;
}

static wpk_err read_einsum(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                           struct einsum *out, struct wpk_diag *diag)
{
    const char *at = wpk_graph_text(node, "equation", "");

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < node->input_count; i++) {
        const struct wpk_graph_value *value = wpk_graph_input(graph, node, i);
        if (i == TERMS_MAX || value == NULL || (i > 0 && *at++ != ',')) {
            return wpk_fail(diag, WPK_EUNSUPPORTED,
                            "its equation has not one term for each input, of up to 8");
        }
        at = read_term(at, value->rank, -1, &out->term[i]);
        if (at == NULL || !take_extents(out, &out->term[i], value)) {
            return wpk_fail(diag, WPK_EUNSUPPORTED, "its equation does not fit its inputs");
        }
        out->term_count++;
    }
    if (*at == '\0') {
        return imply_result(out)
                   ? WPK_OK
                   : wpk_fail(diag, WPK_EUNSUPPORTED, "its equation has too many axes");
    }
    at = wpk_begins(at, "->") ? read_term(at + 2, 0, out->hidden, &out->result) : NULL;
    if (at == NULL || *at != '\0') {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "its equation is not well formed");
    }
    for (int d = 0; d < out->result.rank; d++) {
        int label = out->result.label[d];
        for (int k = 0; k < d; k++) {
            if (out->result.label[k] == label) {
                return wpk_fail(diag, WPK_EUNSUPPORTED,
                                "its equation repeats an axis of the result");
            }
        }
        if (out->extent[label] == 0) {
            return wpk_fail(diag, WPK_EUNSUPPORTED, "its equation has an axis in the result alone");
        }
    }
    return WPK_OK;
}

wpk_err wpk_infer_einsum(const struct wpk_inference *in)
{
    struct einsum e;

    wpk_err err = read_einsum(in->graph, in->node, &e, in->diag);
    for (int d = 0; err == WPK_OK && d < e.result.rank; d++) {
        in->out->extent[d] = e.extent[e.result.label[d]];
    }
    in->out->rank = err == WPK_OK ? e.result.rank : 0;
    return err;
}

static int find_label(const struct term *term, int label)
{
    for (int d = 0; d < term->rank; d++) {
        if (term->label[d] == label) {
            return d;
        }
    }
    return -1;
}

static void print_operand(struct wpk_printer *printer, const struct einsum *e, int input)
{
    const struct term *term = &e->term[input];

    wpk_buf_printf(printer->text, "X%.0d[", input);
    for (int d = 0; d < term->rank; d++) {
        int place = find_label(&e->result, term->label[d]);
        wpk_buf_append_text(printer->text, d > 0 ? "," : "");
        if (printer->input[input]->extent[d] == 1) {
            wpk_buf_append_text(printer->text, "0");
        } else {
            wpk_buf_printf(printer->text, place >= 0 ? "d%d" : "s%d",
                           place >= 0 ? place : term->label[d]);
        }
    }
    wpk_buf_append_text(printer->text, "]");
}

wpk_err wpk_print_einsum(struct wpk_printer *printer)
{
    struct einsum e;
    int summed = 0;

    wpk_err err = read_einsum(printer->graph, printer->node, &e, printer->diag);
    if (err != WPK_OK) {
        return err;
    }
    wpk_printer_output(printer);
    for (int label = 0; label < LABELS_MAX; label++) {
        if (e.extent[label] > 1 && find_label(&e.result, label) < 0) {
            wpk_buf_printf(printer->text, "%ss%d:%lld", summed++ > 0 ? "," : "sum(", label,
                           (long long)e.extent[label]);
        }
    }
    if (summed > SUMMED_MAX) {
        return wpk_fail(printer->diag, WPK_EUNSUPPORTED, "its equation sums over too many axes");
    }
    wpk_buf_append_text(printer->text, summed > 0 ? ") " : "");
    for (int i = 0; i < e.term_count; i++) {
        wpk_buf_append_text(printer->text, i > 0 ? " * " : "");
        print_operand(printer, &e, i);
    }
    return WPK_OK;
}
