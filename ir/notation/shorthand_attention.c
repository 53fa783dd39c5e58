/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention of several heads. */
#include "ir/notation/shorthand_read.h"

#include <math.h>

static void declare(struct wpk_shorthand *s, const char *name, int rank, int64_t outer,
                    int64_t middle, int64_t inner)
{
    const struct wpk_shape head = {.rank = 3, .extent = {outer, middle, inner}};
    const struct wpk_shape matrix = {.rank = 2, .extent = {middle, inner}};
    wpk_shorthand_declare(s, name, s->dtype, rank == 3 ? &head : &matrix, false);
}

/* As in softmax, each part is a stage of its own, and the largest score is taken off first. The sum
 * of a row divides the output, which has fewer elements than the weights. */
static void expand_attention(struct wpk_shorthand *s)
{
    const struct wpk_shape shape = wpk_shorthand_shape(s, "shape", 3, 3);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    const int64_t heads = shape.extent[0], queries = shape.extent[1], size = shape.extent[2];
    const int64_t keys = wpk_json_has(s->reader, "keys")
                             ? wpk_json_get_int(s->reader, "keys", 1, INT32_MAX)
                             : queries;
    const double scale = wpk_shorthand_real(s, "scale", -1e6, 1e6, 1 / sqrt((double)size));
    const bool mask = wpk_shorthand_flag(s, "mask", false);
    declare(s, "Q", 3, heads, queries, size);
    declare(s, "K", 3, heads, keys, size);
    declare(s, "V", 3, heads, keys, size);
    if (mask) {
        declare(s, "M", 2, 0, queries, keys);
    }
    wpk_shorthand_declare_output(s, &shape);
    wpk_buf_printf(&s->text,
                   "Y[h,i,d] = (sum(j) E[h,i,j] * V[h,j,d]) / D[h,i] where "
                   "S[h,i,j] = (sum(d) Q[h,i,d] * K[h,j,d]) * %.17g%s; "
                   "X[h,i] = max(j) S[h,i,j]; E[h,i,j] = exp(S[h,i,j] - X[h,i]); "
                   "D[h,i] = sum(j) E[h,i,j]",
                   scale, mask ? " + M[i,j]" : "");
}

static const char attention_fields[] = "shape keys scale mask dtype output_dtype";

const struct wpk_shorthand_type wpk_shorthand_attention_types[] = {
    {"attention", attention_fields, expand_attention, WPK_SHORTHAND_FLOAT},
    {.name = NULL},
};
