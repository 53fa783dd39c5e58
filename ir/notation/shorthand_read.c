/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/notation/shorthand_read.h"

#include <string.h>

const char *const wpk_shorthand_axes[WPK_RANK_MAX] = {"a0", "a1", "a2", "a3", "a4",
                                                      "a5", "a6", "a7", "a8", "a9"};

bool wpk_shorthand_failed(const struct wpk_shorthand *s)
{
    return wpk_json_status(s->reader) != WPK_OK;
}

struct wpk_shape wpk_shorthand_shape(struct wpk_shorthand *s, const char *key, int rank_min,
                                     int rank_max)
{
    struct wpk_shape shape = {0};
    int64_t elements = 1;
    shape.rank =
        (int)wpk_json_get_ints(s->reader, key, 1, WPK_ELEMENTS_MAX, shape.extent, (size_t)rank_max);
    if (!wpk_shorthand_failed(s) && shape.rank < rank_min) {
        wpk_json_fail(s->reader, key, WPK_EINVAL, "%d extents instead of %d", shape.rank, rank_min);
    }
    for (int d = 0; d < shape.rank && !wpk_shorthand_failed(s); d++) {
        if (shape.extent[d] > WPK_ELEMENTS_MAX / elements) {
            wpk_json_fail(s->reader, key, WPK_ERANGE, "the tensor has too many elements");
            break;
        }
        elements *= shape.extent[d];
    }
    return shape;
}

void wpk_shorthand_steps(struct wpk_shorthand *s, const char *key, int64_t min,
                         const int64_t *defaults, int count, int64_t *out)
{
    memset(out, 0, (size_t)count * sizeof *out);
    if (defaults != NULL && !wpk_json_has(s->reader, key)) {
        memcpy(out, defaults, (size_t)count * sizeof *out);
        return;
    }
    size_t got = wpk_json_get_ints(s->reader, key, min, WPK_SHORTHAND_STEP_MAX, out, (size_t)count);
    if (!wpk_shorthand_failed(s) && got != (size_t)count) {
        wpk_json_fail(s->reader, key, WPK_EINVAL, "%zu numbers instead of %d", got, count);
    }
}

bool wpk_shorthand_flag(struct wpk_shorthand *s, const char *key, bool absent)
{
    return wpk_json_has(s->reader, key) ? wpk_json_get_bool(s->reader, key) : absent;
}

double wpk_shorthand_real(struct wpk_shorthand *s, const char *key, double min, double max,
                          double absent)
{
    return wpk_json_has(s->reader, key) ? wpk_json_get_real(s->reader, key, min, max) : absent;
}

int wpk_shorthand_axis(struct wpk_shorthand *s, const char *key, int rank, int absent)
{
    int64_t axis =
        wpk_json_has(s->reader, key) ? wpk_json_get_int(s->reader, key, -rank, rank - 1) : absent;
    return (int)(axis < 0 ? axis + rank : axis);
}

void wpk_shorthand_need_float(struct wpk_shorthand *s)
{
    if (!wpk_dtype_is_float(s->dtype)) {
        wpk_json_fail(s->reader, "dtype", WPK_EINVAL, "a floating type is needed here");
    }
}

/* ---- tensors */

void wpk_shorthand_declare(struct wpk_shorthand *s, const char *name, enum wpk_dtype dtype,
                           const struct wpk_shape *shape, bool constant)
{
    WPK_ASSERT(s->tensor_count < WPK_SHORTHAND_TENSORS_MAX);
    struct wpk_declaration *tensor = &s->tensor[s->tensor_count++];
    *tensor = (struct wpk_declaration){
        .name = name, .dtype = dtype, .rank = shape->rank, .constant = constant};
    memcpy(tensor->extent, shape->extent, sizeof tensor->extent);
}

void wpk_shorthand_declare_output(struct wpk_shorthand *s, const struct wpk_shape *shape)
{
    wpk_shorthand_declare(s, "Y", s->output_dtype, shape, false);
}

static void mark_constant(struct wpk_shorthand *s, const char *name)
{
    for (int t = 0; t < s->tensor_count; t++) {
        if (strcmp(s->tensor[t].name, name) == 0 && strcmp(name, "Y") != 0) {
            s->tensor[t].constant = true;
            return;
        }
    }
    wpk_json_fail(s->reader, NULL, WPK_EINVAL, "no input is called '%s'", name);
}

void wpk_shorthand_constants(struct wpk_shorthand *s)
{
    if (!wpk_json_has(s->reader, "constants")) {
        return;
    }
    wpk_json_enter_array(s->reader, "constants");
    while (wpk_json_next(s->reader)) {
        const char *name = wpk_json_get_text(s->reader, NULL, WPK_NAME_MAX);
        if (!wpk_shorthand_failed(s)) {
            mark_constant(s, name);
        }
    }
    wpk_json_leave(s->reader);
}

/* ---- text */

/* The axes in brackets: all ('*'), those kept ('k') or the others ('r'). */
static void print_axes(struct wpk_shorthand *s, int rank, const bool *keep, char which)
{
    const char *comma = "";
    for (int d = 0; d < rank; d++) {
        if (which == '*' || keep[d] == (which == 'k')) {
            wpk_buf_printf(&s->text, "%s%s", comma, wpk_shorthand_axes[d]);
            comma = ",";
        }
    }
}

void wpk_shorthand_print(struct wpk_shorthand *s, int rank, const bool *keep, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        bool opened = c > text && (c[-1] == '[' || c[-1] == '(');
        bool closed = c[1] == ']' || c[1] == ')';
        if (opened && closed && strchr("*kr", *c) != NULL) {
            print_axes(s, rank, keep, *c);
        } else {
            wpk_buf_append_byte(&s->text, *c);
        }
    }
}

struct wpk_activation wpk_shorthand_activation(struct wpk_shorthand *s)
{
    static const char *const names[] = {"none", "relu", "relu6",     "sigmoid",   "tanh",
                                        "gelu", "silu", "hardswish", "leaky_relu"};
    static const struct wpk_activation texts[] = {
        {"", ""},       {"relu(", ")"}, {"relu6(", ")"},     {"sigmoid(", ")"},   {"tanh(", ")"},
        {"gelu(", ")"}, {"silu(", ")"}, {"hardswish(", ")"}, {"leaky_relu(", ")"}};
    enum { NAME_COUNT = sizeof names / sizeof *names, INTEGER_COUNT = 3 };
    if (!wpk_json_has(s->reader, "activation")) {
        return texts[0];
    }
    size_t choice = wpk_json_get_choice(s->reader, "activation", names, NAME_COUNT);
    if (choice >= INTEGER_COUNT && !wpk_dtype_is_float(s->output_dtype)) {
        wpk_json_fail(s->reader, "activation", WPK_EINVAL, "%s needs a floating output, not %s",
                      names[choice], wpk_dtype_name(s->output_dtype));
    }
    return texts[choice];
}
