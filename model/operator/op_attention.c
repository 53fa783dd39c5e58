/* SPDX-License-Identifier: Apache-2.0 */
/* Stages over batch b, head h, query i and key j:
 *     R = sum(e) Q * K      S = scale and soft cap      W = S with masks
 *     M = max(j) W          Z = sum(j) exp(W - M)       P = exp(W - M) / Z, 0 for a masked row
 *     Y = sum(j) P * V */
#include "model/operator/operator_forms.h"

#include <math.h>

enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { RESULT, PRESENT_KEY, PRESENT_VALUE, SCORES };
enum { RAW, CAPPED, MASKED, NORMALIZED }; /* qk_matmul_output_mode */

struct attention {
    bool is_flat; /* tensors are [batch, row, heads * size], not [batch, head, row, size] */
    int64_t batch;
    int64_t heads;
    int64_t kv_heads;
    int64_t queries;
    int64_t past;  /* keys in the cache */
    int64_t keys;  /* all of them */
    int64_t size;  /* of a key */
    int64_t width; /* of a value */
};

/* ---- extents */

static bool fits(const struct wpk_graph_value *value, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return value->rank == 4 && value->extent[0] == a && value->extent[1] == b &&
           value->extent[2] == c && value->extent[3] == d;
}

static bool read_extents(const struct wpk_graph_node *node,
                         const struct wpk_graph_value *const *input, struct attention *a)
{
    const struct wpk_graph_value *q = input[QUERY];
    const struct wpk_graph_value *k = input[KEY];
    const struct wpk_graph_value *v = input[VALUE];
    bool is_flat = q->rank == 3;
    int row = is_flat ? 1 : 2;

    if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank) {
        return false;
    }
    a->is_flat = is_flat;
    a->batch = q->extent[0];
    a->heads = is_flat ? wpk_graph_int(node, "q_num_heads", 0) : q->extent[1];
    a->kv_heads = is_flat ? wpk_graph_int(node, "kv_num_heads", 0) : k->extent[1];
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads != 0) {
        return false;
    }
    a->queries = q->extent[row];
    a->keys = k->extent[row];
    a->size = is_flat ? q->extent[2] / a->heads : q->extent[3];
    a->width = is_flat ? v->extent[2] / a->kv_heads : v->extent[3];
    if (k->extent[0] != a->batch || v->extent[0] != a->batch || v->extent[row] != a->keys) {
        return false;
    }
    return is_flat ? q->extent[2] == a->heads * a->size && k->extent[2] == a->kv_heads * a->size &&
                         v->extent[2] == a->kv_heads * a->width
                   : k->extent[3] == a->size && v->extent[1] == a->kv_heads;
}

static bool read_past(const struct wpk_graph_value *const *input, struct attention *a)
{
    const struct wpk_graph_value *key = input[PAST_KEY];
    const struct wpk_graph_value *value = input[PAST_VALUE];

    if (key == NULL && value == NULL) {
        return true;
    }
    if (key == NULL || value == NULL || key->rank != 4 || input[LENGTHS] != NULL) {
        return false;
    }
    a->past = key->extent[2];
    a->keys += a->past;
    return fits(key, a->batch, a->kv_heads, a->past, a->size) &&
           fits(value, a->batch, a->kv_heads, a->past, a->width);
}

/* The mask broadcasts to [batch, head, query, key]; of keys it may have less. */
static bool is_mask(const struct wpk_graph_value *mask, const struct attention *a)
{
    const int64_t extent[4] = {a->batch, a->heads, a->queries, a->keys};
    bool is_good = mask->rank >= 1 && mask->rank <= 4;

    for (int d = 0; is_good && d < mask->rank; d++) {
        int axis = 4 - mask->rank + d;
        is_good = axis == 3 ? mask->extent[d] <= a->keys
                            : mask->extent[d] == 1 || mask->extent[d] == extent[axis];
    }
    return is_good;
}

static wpk_err read_attention(const struct wpk_graph_node *node,
                              const struct wpk_graph_value *const *input, struct attention *out,
                              struct wpk_diag *diag)
{
    const struct wpk_graph_value *mask = input[MASK];
    const struct wpk_graph_value *lengths = input[LENGTHS];

    *out = (struct attention){.past = 0};
    if (!read_extents(node, input, out) || !read_past(input, out)) {
        return wpk_fail(diag, WPK_EINVAL, "its queries, keys and values do not fit each other");
    }
    bool is_typed = wpk_dtype_is_float(input[QUERY]->dtype);
    for (int i = KEY; i <= PAST_VALUE; i++) {
        is_typed = is_typed && (input[i] == NULL || input[i]->dtype == input[QUERY]->dtype ||
                                (i == MASK && input[i]->dtype == WPK_BOOL));
    }
    if (!is_typed || (mask != NULL && !is_mask(mask, out)) ||
        (lengths != NULL && (lengths->rank != 1 || lengths->extent[0] != out->batch))) {
        return wpk_fail(diag, WPK_EINVAL, "its mask or lengths do not fit its queries and keys");
    }
    return WPK_OK;
}

wpk_err wpk_infer_attention(const struct wpk_inference *in)
{
    const struct wpk_graph_value *input[LENGTHS + 1];
    struct attention a;
    int64_t *extent = in->out->extent;

    for (int i = 0; i <= LENGTHS; i++) {
        input[i] = wpk_graph_input(in->graph, in->node, i);
    }
    wpk_err err = read_attention(in->node, input, &a, in->diag);
    if (err != WPK_OK) {
        return err;
    }
    bool is_flat = a.is_flat && in->node->part == RESULT;
    in->out->rank = is_flat ? 3 : 4;
    extent[0] = a.batch;
    if (is_flat) {
        extent[1] = a.queries;
        extent[2] = a.heads * a.width;
        return WPK_OK;
    }
    bool is_cache = in->node->part == PRESENT_KEY || in->node->part == PRESENT_VALUE;
    extent[1] = is_cache ? a.kv_heads : a.heads;
    extent[2] = is_cache ? a.keys : a.queries;
    extent[3] = in->node->part == SCORES        ? a.keys
                : in->node->part == PRESENT_KEY ? a.size
                                                : a.width;
    return WPK_OK;
}

/* ---- equations */

static void print_tensor(struct wpk_printer *printer, const struct attention *a, int input,
                         const char *batch, const char *head, const char *row, int64_t size,
                         const char *element)
{
    if (a->is_flat) {
        wpk_buf_printf(printer->text, "X%.0d[%s,%s,%lld*(%s)+%s]", input, batch, row,
                       (long long)size, head, element);
    } else {
        wpk_buf_printf(printer->text, "X%.0d[%s,%s,%s,%s]", input, batch, head, row, element);
    }
}

/* A key or value: of the cache, or behind it. */
static void print_cached(struct wpk_printer *printer, const struct attention *a, int input,
                         const char *batch, const char *head, const char *row, const char *element)
{
    int64_t size = input == KEY ? a->size : a->width;
    struct wpk_buf behind = {0};

    if (a->past == 0) {
        print_tensor(printer, a, input, batch, head, row, size, element);
        return;
    }
    wpk_buf_printf(printer->text, "select(%s < %lld, X%d[%s,%s,%s+0,%s], ", row, (long long)a->past,
                   input == KEY ? PAST_KEY : PAST_VALUE, batch, head, row, element);
    wpk_buf_printf(&behind, "%s-%lld", row, (long long)a->past);
    print_tensor(printer, a, input, batch, head, wpk_buf_text(&behind), size, element);
    wpk_buf_append_text(printer->text, ")");
    wpk_buf_fini(&behind);
}

/* "R[b:2,h:3,i:4,j:6] = " */
static void begin_stage(struct wpk_printer *printer, const struct attention *a, const char *name,
                        bool has_keys)
{
    wpk_buf_printf(printer->text, "; %s[b:%lld,h:%lld,i:%lld", name, (long long)a->batch,
                   (long long)a->heads, (long long)a->queries);
    if (has_keys) {
        wpk_buf_printf(printer->text, ",j:%lld", (long long)a->keys);
    }
    wpk_buf_append_text(printer->text, "] = ");
}

/* R, and S if it is asked for. */
static void print_scores(struct wpk_printer *printer, const struct attention *a, bool has_cap)
{
    double scale = wpk_graph_real(printer->node, "scale", 0);
    double cap = wpk_graph_real(printer->node, "softcap", 0);
    struct wpk_buf head = {0};

    wpk_buf_printf(&head, "h/%lld", (long long)(a->heads / a->kv_heads));
    begin_stage(printer, a, "R", true);
    wpk_printer_number(printer, scale != 0 ? scale : 1 / sqrt((double)a->size));
    wpk_buf_printf(printer->text, " * (sum(e:%lld) ", (long long)a->size);
    print_tensor(printer, a, QUERY, "b", "h", "i", a->size, "e");
    wpk_buf_append_text(printer->text, " * ");
    print_cached(printer, a, KEY, "b", wpk_buf_text(&head), "j", "e");
    wpk_buf_append_text(printer->text, ")");
    wpk_buf_fini(&head);
    if (!has_cap) {
        return;
    }
    begin_stage(printer, a, "S", true);
    if (cap != 0) {
        wpk_printer_number(printer, cap);
        wpk_buf_append_text(printer->text, " * tanh(R[b,h,i,j] / ");
        wpk_printer_number(printer, cap);
        wpk_buf_append_text(printer->text, ")");
    } else {
        wpk_buf_append_text(printer->text, "R[b,h,i,j]");
    }
}

static void print_mask(struct wpk_printer *printer, const struct attention *a)
{
    static const char *const names[] = {"b", "h", "i", "j"};
    const struct wpk_graph_value *mask = printer->input[MASK];

    for (int d = 0; d < mask->rank; d++) {
        int axis = 4 - mask->rank + d;
        bool is_one = mask->extent[d] == 1 && axis < 3;
        wpk_buf_printf(printer->text, "%s%s", d > 0 ? "," : "X3[", is_one ? "0" : names[axis]);
        if (axis == 3 && mask->extent[d] != a->keys) {
            wpk_buf_append_text(printer->text, "+0");
        }
    }
    wpk_buf_append_text(printer->text, mask->dtype == WPK_BOOL ? "]" : " | -inf]");
}

/* " && j <= i + 3", where the queries begin behind the cache, or end at the keys' length. */
static void print_limit(struct wpk_printer *printer, const struct attention *a, const char *compare,
                        int64_t more)
{
    wpk_buf_printf(printer->text, " && j %s i + %lld", compare, (long long)(a->past + more));
    if (printer->input[LENGTHS] != NULL) {
        wpk_buf_printf(printer->text, " + (X6[b] - %lld)", (long long)a->queries);
    }
}

/* W: the scores with the mask, and -inf where a query may not see a key. */
static void print_masked(struct wpk_printer *printer, const struct attention *a)
{
    const struct wpk_graph_value *mask = printer->input[MASK];
    int64_t left = wpk_graph_int(printer->node, "left_window_size", -1);
    int64_t right = wpk_graph_int(printer->node, "right_window_size", -1);

    /* A window beyond all keys hides none. */
    left = left > a->keys + a->queries ? -1 : left;
    right = right > a->keys + a->queries ? -1 : right;

    begin_stage(printer, a, "W", true);
    wpk_buf_append_text(printer->text, "select(j >= 0");
    if (wpk_graph_int(printer->node, "is_causal", 0) != 0) {
        print_limit(printer, a, "<=", 0);
    }
    if (left >= 0) {
        print_limit(printer, a, ">=", -left);
    }
    if (right >= 0) {
        print_limit(printer, a, "<=", right);
    }
    if (printer->input[LENGTHS] != NULL) {
        wpk_buf_append_text(printer->text, " && j < X6[b]");
    }
    if (mask != NULL && mask->dtype == WPK_BOOL) {
        wpk_buf_append_text(printer->text, " && ");
        print_mask(printer, a);
    }
    wpk_buf_append_text(printer->text, ", S[b,h,i,j]");
    if (mask != NULL && mask->dtype != WPK_BOOL) {
        wpk_buf_append_text(printer->text, " + ");
        print_mask(printer, a);
    }
    wpk_buf_append_text(printer->text, ", -inf)");
}

static void print_softmax(struct wpk_printer *printer, const struct attention *a)
{
    begin_stage(printer, a, "M", false);
    wpk_buf_printf(printer->text, "max(j:%lld) W[b,h,i,j]", (long long)a->keys);
    begin_stage(printer, a, "Z", false);
    wpk_buf_printf(printer->text, "sum(j:%lld) exp(W[b,h,i,j] - M[b,h,i])", (long long)a->keys);
    begin_stage(printer, a, "P", true);
    wpk_buf_append_text(printer->text, "select(M[b,h,i] == -inf, 0, "
                                       "exp(W[b,h,i,j] - M[b,h,i]) / Z[b,h,i])");
}

static void print_result(struct wpk_printer *printer, const struct attention *a)
{
    long long group = (long long)(a->heads / a->kv_heads);
    struct wpk_buf head = {0};
    struct wpk_buf element = {0};

    wpk_printer_output(printer);
    wpk_buf_printf(printer->text, "sum(j:%lld) ", (long long)a->keys);
    if (a->is_flat) {
        wpk_buf_printf(printer->text, "P[d0,d2/%lld,d1,j] * ", (long long)a->width);
        wpk_buf_printf(&head, "d2/%lld", (long long)a->width * group);
        wpk_buf_printf(&element, "d2%%%lld", (long long)a->width);
    } else {
        wpk_buf_append_text(printer->text, "P[d0,d1,d2,j] * ");
        wpk_buf_printf(&head, "d1/%lld", group);
        wpk_buf_append_text(&element, "d3");
    }
    print_cached(printer, a, VALUE, "d0", wpk_buf_text(&head), "j", wpk_buf_text(&element));
    wpk_buf_fini(&head);
    wpk_buf_fini(&element);
}

wpk_err wpk_print_attention(struct wpk_printer *printer)
{
    static const char *const scores[] = {"R", "S", "W", "P"};
    int64_t mode = wpk_graph_int(printer->node, "qk_matmul_output_mode", RAW);
    int part = printer->node->part;
    struct attention a;

    wpk_err err = read_attention(printer->node, printer->input, &a, printer->diag);
    if (err == WPK_OK && (mode < RAW || mode > NORMALIZED)) {
        err = wpk_fail(printer->diag, WPK_EINVAL, "its qk_matmul_output_mode is %lld",
                       (long long)mode);
    }
    if (err != WPK_OK) {
        return err;
    }
    if (part == PRESENT_KEY || part == PRESENT_VALUE) {
        wpk_printer_output(printer);
        print_cached(printer, &a, part == PRESENT_KEY ? KEY : VALUE, "d0", "d1", "d2", "d3");
        return WPK_OK;
    }
    if (part == RESULT) {
        print_result(printer, &a);
        mode = NORMALIZED;
    } else {
        wpk_printer_output(printer);
        wpk_buf_printf(printer->text, "%s[d0,d1,d2,d3]", scores[mode]);
    }
    print_scores(printer, &a, mode >= CAPPED);
    if (mode >= MASKED) {
        print_masked(printer, &a);
    }
    if (mode >= NORMALIZED) {
        print_softmax(printer, &a);
    }
    return WPK_OK;
}
