/* SPDX-License-Identifier: Apache-2.0 */
#include "target/c/kernel.h"

#include <string.h>

enum wpk_binary wpk_c_joining(enum wpk_reduction reduction)
{
    return reduction == WPK_REDUCE_SUM    ? WPK_BINARY_ADD
           : reduction == WPK_REDUCE_PROD ? WPK_BINARY_MUL
           : reduction == WPK_REDUCE_MAX  ? WPK_BINARY_MAX
                                          : WPK_BINARY_MIN;
}

static void begin_point(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                        const struct wpk_form *axis, struct wpk_c_point *point)
{
    memcpy(point->axis, axis, (size_t)stage->axis_count * sizeof(*axis));
    wpk_c_point_begin(k, stage, k->forms.width, point);
    wpk_c_line(&k->text, "{");
}

/* The value as a variable of its own. */
static struct wpk_c_value spread(struct wpk_c_kernel *k, const struct wpk_c_value *value, int width)
{
    bool mask = value->dtype == WPK_BOOL && width > 1;
    struct wpk_c_value out =
        mask ? wpk_c_begin_mask(&k->text, width, 4) : wpk_c_begin(&k->text, value->dtype, width);
    if (mask) {
        wpk_c_put_mask(&k->text, value, width, 4);
    } else {
        wpk_c_put_value(&k->text, value, width);
    }
    wpk_c_end(&k->text);
    return out;
}

/* Vectors are combined first, then their lanes. */
void wpk_c_print_lanes_of_terms(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                                const struct wpk_form *axis, int vector, int64_t count, int native)
{
    enum wpk_binary op = wpk_c_joining(stage->reduction);
    struct wpk_c_point point;
    struct wpk_c_value total = {.width = 0};
    begin_point(k, stage, axis, &point);
    for (int64_t left = count; left > 0; left -= k->forms.width) {
        int width = native;
        while (width > left) {
            width /= 2;
        }
        point.axis[vector].lane = width > 1;
        point.width = width;
        point.serial = ++k->serial_count;
        k->forms.width = width;
        struct wpk_c_value term = wpk_c_evaluate(k, &point, stage->expr);
        if (term.width != width) { /* it is the same in all lanes, or is no variable yet */
            term = spread(k, &term, width);
        }
        if (total.width > width) {
            total = wpk_c_combine_lanes(k, op, &total);
            term = wpk_c_combine_lanes(k, op, &term);
        }
        total = total.width == 0 ? term : wpk_c_binary(k, op, &total, &term);
        point.axis[vector].constant += width;
    }
    k->forms.width = 1;
    point.axis[vector] = wpk_form_number(0);
    total = wpk_c_combine_lanes(k, op, &total);
    struct wpk_c_value before = wpk_c_storage_read(k, stage->output, point.axis, 1);
    total = wpk_c_binary(k, op, &before, &total);
    wpk_c_storage_write(k, stage->output, point.axis, 1, &total);
    wpk_c_line(&k->text, "}");
}

void wpk_c_print_point(struct wpk_c_kernel *k, const struct wpk_stage *stage, bool update,
                       const struct wpk_form *axis)
{
    struct wpk_c_point point;
    begin_point(k, stage, axis, &point);
    if (update) {
        /* The term joins what was reduced before; of a sum of two products each is added by itself,
         * in one instruction. */
        enum wpk_binary op = wpk_c_joining(stage->reduction);
        const struct wpk_node *node = &k->program->nodes[stage->expr];
        bool parts = op == WPK_BINARY_ADD && node->kind == WPK_NODE_BINARY &&
                     node->op == (int)WPK_BINARY_ADD && !node->strict;
        int width = k->forms.width;
        struct wpk_c_value all = wpk_c_storage_read(k, stage->output, point.axis, width);
        for (int i = 0; i <= (parts ? 1 : 0); i++) {
            struct wpk_c_value term = wpk_c_evaluate(k, &point, parts ? node->arg[i] : stage->expr);
            all = wpk_c_binary(k, op, &all, &term);
        }
        wpk_c_storage_write(k, stage->output, point.axis, width, &all);
    } else {
        bool reduces = stage->reduction != WPK_REDUCE_NONE;
        struct wpk_c_value value =
            wpk_c_evaluate(k, &point, reduces ? stage->identity : stage->expr);
        wpk_c_storage_write(k, stage->output, axis, k->forms.width, &value);
    }
    wpk_c_line(&k->text, "}");
}
