/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/c_kernel.h"

#include <string.h>

static enum wpk_binary operation_of(enum wpk_reduction reduction)
{
    return reduction == WPK_REDUCE_SUM    ? WPK_BINARY_ADD
           : reduction == WPK_REDUCE_PROD ? WPK_BINARY_MUL
           : reduction == WPK_REDUCE_MAX  ? WPK_BINARY_MAX
                                          : WPK_BINARY_MIN;
}

/* The term, or its lanes combined, joins what was reduced before. */
static void print_term(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                       const struct wpk_c_point *point, int vector)
{
    enum wpk_binary op = operation_of(stage->reduction);
    int width = k->forms.width;
    bool combines = width > 1 && vector >= stage->rank;
    int out = combines ? 1 : width;
    struct wpk_c_value before = wpk_c_storage_read(k, stage->output, point->axis, out);
    struct wpk_c_value term = wpk_c_evaluate(k, point, stage->expr);
    term = combines ? wpk_c_combine_lanes(k, op, &term) : term;
    k->forms.width = out;
    term = wpk_c_binary(k, op, &before, &term);
    wpk_c_storage_write(k, stage->output, point->axis, out, &term);
    k->forms.width = width;
}

void wpk_c_print_point(struct wpk_c_kernel *k, const struct wpk_stage *stage, bool update,
                       const struct wpk_form *axis, int vector)
{
    struct wpk_c_point point;
    int width = k->forms.width;
    memcpy(point.axis, axis, (size_t)stage->axis_count * sizeof(*axis));
    wpk_c_point_begin(k, stage, width, &point);
    wpk_c_line(&k->text, "{");
    k->text.depth++;
    if (update) {
        print_term(k, stage, &point, vector);
    } else {
        bool reduces = stage->reduction != WPK_REDUCE_NONE;
        struct wpk_c_value value =
            wpk_c_evaluate(k, &point, reduces ? stage->identity : stage->expr);
        wpk_c_storage_write(k, stage->output, axis, width, &value);
    }
    k->text.depth--;
    wpk_c_line(&k->text, "}");
}
