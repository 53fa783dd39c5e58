/* SPDX-License-Identifier: Apache-2.0 */
/* One output element from one element of each input: elementwise chains with broadcasting, the
 * common ones by name, and transposition. */
#include "ir/notation/parser.h"
#include "ir/notation/shorthand_read.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

struct operand {
    const char *name;
    struct wpk_shape shape;
};

struct chain {
    struct operand operand[WPK_SHORTHAND_TENSORS_MAX - 1];
    int operand_count;
    struct wpk_shape output;
};

/* Shapes are aligned at their last axes; an extent of 1 stretches. */
static void stretch(struct wpk_shorthand *s, const char *key, struct wpk_shape *output,
                    const struct wpk_shape *shape)
{
    int rank = shape->rank > output->rank ? shape->rank : output->rank;
    struct wpk_shape joined = {.rank = rank};
    for (int d = 0; d < rank; d++) {
        int i = d - (rank - shape->rank);
        int j = d - (rank - output->rank);
        int64_t a = i >= 0 ? shape->extent[i] : 1;
        int64_t b = j >= 0 ? output->extent[j] : 1;
        if (a != b && a != 1 && b != 1) {
            wpk_json_fail(s->reader, key, WPK_EINVAL,
                          "extents %" PRId64 " and %" PRId64 " do not match", a, b);
        }
        joined.extent[d] = a == 1 ? b : a;
    }
    *output = joined;
}

static void add_operand(struct wpk_shorthand *s, struct chain *chain, const char *name,
                        const char *key)
{
    if (chain->operand_count == WPK_SHORTHAND_TENSORS_MAX - 1) {
        wpk_json_fail(s->reader, key, WPK_ERANGE, "at most %d inputs",
                      WPK_SHORTHAND_TENSORS_MAX - 1);
    }
    if (wpk_shorthand_failed(s)) {
        return;
    }
    struct operand *operand = &chain->operand[chain->operand_count++];
    operand->name = name;
    operand->shape = wpk_shorthand_shape(s, key, 0, WPK_RANK_MAX);
    if (!wpk_shorthand_failed(s)) {
        stretch(s, key, &chain->output, &operand->shape);
    }
}

static void declare(struct wpk_shorthand *s, const struct chain *chain)
{
    for (int i = 0; i < chain->operand_count; i++) {
        wpk_shorthand_declare(s, chain->operand[i].name, s->dtype, &chain->operand[i].shape, false);
    }
    wpk_shorthand_declare_output(s, &chain->output);
    wpk_shorthand_constants(s);
    wpk_shorthand_print(s, chain->output.rank, NULL, "Y[*] = ");
}

static void print_operand(struct wpk_shorthand *s, const struct chain *chain,
                          const struct operand *operand)
{
    int skipped = chain->output.rank - operand->shape.rank;
    wpk_buf_printf(&s->text, "%s[", operand->name);
    for (int d = 0; d < operand->shape.rank; d++) {
        bool stretched = operand->shape.extent[d] == 1 && chain->output.extent[skipped + d] != 1;
        wpk_buf_printf(&s->text, "%s%s", d > 0 ? "," : "",
                       stretched ? "0" : wpk_shorthand_axes[skipped + d]);
    }
    wpk_buf_append_text(&s->text, "]");
}

/* ---- elementwise */

static const struct operand *find_operand(const struct chain *chain, const char *name, size_t size)
{
    for (int i = 0; i < chain->operand_count; i++) {
        if (strlen(chain->operand[i].name) == size &&
            memcmp(chain->operand[i].name, name, size) == 0) {
            return &chain->operand[i];
        }
    }
    return NULL;
}

/* An expression that brings indices or another equation along is none: a lone = would be one. */
static bool is_expression(const char *expr)
{
    for (const char *c = expr; *c != '\0'; c++) {
        bool compares = c[1] == '=' || (c > expr && strchr("<>=!", c[-1]) != NULL);
        if (strchr("[];#\n", *c) != NULL || (*c == '=' && !compares)) {
            return false;
        }
    }
    return true;
}

/* Copy the expression with each input's name followed by its indices. */
static void print_expr(struct wpk_shorthand *s, const struct chain *chain, const char *expr)
{
    if (!is_expression(expr)) {
        wpk_json_fail(s->reader, "expr", WPK_EINVAL,
                      "names of inputs, numbers, operators and functions only");
        return;
    }
    while (*expr != '\0') {
        size_t size = 0;
        while (wpk_parser_continues_name(expr[size])) {
            size++;
        }
        const struct operand *operand =
            isdigit((unsigned char)*expr) ? NULL : find_operand(chain, expr, size);
        if (operand != NULL) {
            print_operand(s, chain, operand);
        } else {
            wpk_buf_append(&s->text, expr, size > 0 ? size : 1);
        }
        expr += size > 0 ? size : 1;
    }
}

static void check_input_name(struct wpk_shorthand *s, const char *name)
{
    size_t size = 0;
    while (wpk_parser_continues_name(name[size])) {
        size++;
    }
    bool taken = strcmp(name, "Y") == 0 || strcmp(name, "inf") == 0 || strcmp(name, "where") == 0 ||
                 (name[0] == 'a' && isdigit((unsigned char)name[1]) && name[2] == '\0');
    if (size == 0 || name[size] != '\0' || isdigit((unsigned char)name[0]) ||
        size >= WPK_NAME_MAX || taken) {
        wpk_json_fail(s->reader, NULL, WPK_EINVAL, "'%s' cannot be the name of an input", name);
    }
}

static void expand_elementwise(struct wpk_shorthand *s)
{
    struct chain chain = {0};
    const char *expr = wpk_json_get_text(s->reader, "expr", WPK_NOTATION_SIZE_MAX / 2);
    wpk_json_enter(s->reader, "inputs");
    while (wpk_json_next(s->reader)) {
        const char *input = wpk_json_name(s->reader);
        check_input_name(s, input);
        add_operand(s, &chain, input, NULL);
    }
    wpk_json_leave(s->reader);
    if (!wpk_shorthand_failed(s)) {
        declare(s, &chain);
        print_expr(s, &chain, expr);
    }
}

/* ---- by name */

static void expand_unary(struct wpk_shorthand *s)
{
    struct chain chain = {0};
    add_operand(s, &chain, "X", "shape");
    if (!wpk_shorthand_failed(s)) {
        declare(s, &chain);
        wpk_buf_printf(&s->text, "%s(", s->name);
        print_operand(s, &chain, &chain.operand[0]);
        wpk_buf_append_text(&s->text, ")");
    }
}

static void expand_binary(struct wpk_shorthand *s)
{
    static const struct {
        const char *name, *before, *between;
    } forms[] = {{"add", "(", " + "}, {"sub", "(", " - "},   {"mul", "(", " * "},
                 {"div", "(", " / "}, {"min", "min(", ", "}, {"max", "max(", ", "}};
    struct chain chain = {0};
    size_t form = 0;
    while (strcmp(forms[form].name, s->name) != 0) {
        form++;
    }
    struct wpk_activation activation = wpk_shorthand_activation(s);
    add_operand(s, &chain, "A", "a");
    add_operand(s, &chain, "B", "b");
    if (!wpk_shorthand_failed(s)) {
        declare(s, &chain);
        wpk_buf_printf(&s->text, "%s%s", activation.begin, forms[form].before);
        print_operand(s, &chain, &chain.operand[0]);
        wpk_buf_append_text(&s->text, forms[form].between);
        print_operand(s, &chain, &chain.operand[1]);
        wpk_buf_printf(&s->text, ")%s", activation.end);
    }
}

static void expand_transpose(struct wpk_shorthand *s)
{
    int64_t order[WPK_RANK_MAX];
    bool seen[WPK_RANK_MAX] = {false};
    struct wpk_shape shape = wpk_shorthand_shape(s, "shape", 1, WPK_RANK_MAX);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    struct wpk_shape output = {.rank = shape.rank};
    size_t count = wpk_json_get_ints(s->reader, "perm", 0, shape.rank - 1, order, WPK_RANK_MAX);
    for (size_t d = 0; d < count; d++) {
        seen[order[d]] = true;
        output.extent[d] = shape.extent[order[d]];
    }
    for (int d = 0; d < shape.rank && !wpk_shorthand_failed(s); d++) {
        if (count != (size_t)shape.rank || !seen[d]) {
            wpk_json_fail(s->reader, "perm", WPK_EINVAL, "each of the %d axes once", shape.rank);
        }
    }
    if (wpk_shorthand_failed(s)) {
        return;
    }
    wpk_shorthand_declare(s, "X", s->dtype, &shape, false);
    wpk_shorthand_declare_output(s, &output);
    wpk_buf_append_text(&s->text, "Y");
    for (size_t d = 0; d < count; d++) {
        wpk_buf_printf(&s->text, "%s%s", d == 0 ? "[" : ",", wpk_shorthand_axes[order[d]]);
    }
    wpk_shorthand_print(s, shape.rank, NULL, "] = X[*]");
}

static const char elementwise_fields[] = "expr inputs dtype output_dtype constants";
static const char unary_fields[] = "shape dtype output_dtype";
static const char binary_fields[] = "a b activation dtype output_dtype constants";
static const char transpose_fields[] = "shape perm dtype output_dtype";

const struct wpk_shorthand_type wpk_shorthand_pointwise_types[] = {
    {"elementwise", elementwise_fields, expand_elementwise, WPK_SHORTHAND_ANY},
    {"add", binary_fields, expand_binary, WPK_SHORTHAND_ANY},
    {"sub", binary_fields, expand_binary, WPK_SHORTHAND_ANY},
    {"mul", binary_fields, expand_binary, WPK_SHORTHAND_ANY},
    {"div", binary_fields, expand_binary, WPK_SHORTHAND_ANY},
    {"min", binary_fields, expand_binary, WPK_SHORTHAND_ANY},
    {"max", binary_fields, expand_binary, WPK_SHORTHAND_ANY},
    {"relu", unary_fields, expand_unary, WPK_SHORTHAND_ANY},
    {"relu6", unary_fields, expand_unary, WPK_SHORTHAND_ANY},
    {"leaky_relu", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"sigmoid", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"tanh", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"gelu", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"silu", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"hardswish", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"exp", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"log", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"sqrt", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"rsqrt", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"erf", unary_fields, expand_unary, WPK_SHORTHAND_FLOAT},
    {"abs", unary_fields, expand_unary, WPK_SHORTHAND_ANY},
    {"transpose", transpose_fields, expand_transpose, WPK_SHORTHAND_ANY},
    {.name = NULL},
};
