/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/notation/definition.h"

#include "ir/notation/shorthand_read.h"

#include <stdio.h>
#include <string.h>

#define FIELDS_MAX 16 /* of a type */

static const struct wpk_shorthand_type *const families[] = {
    wpk_shorthand_conv_types, wpk_shorthand_pool_types,      wpk_shorthand_matrix_types,
    wpk_shorthand_norm_types, wpk_shorthand_attention_types, wpk_shorthand_pointwise_types,
};

#define FAMILY_COUNT (sizeof families / sizeof *families)

static const struct wpk_shorthand_type *find_type(const char *name)
{
    for (size_t f = 0; f < FAMILY_COUNT; f++) {
        for (const struct wpk_shorthand_type *type = families[f]; type->name != NULL; type++) {
            if (strcmp(type->name, name) == 0) {
                return type;
            }
        }
    }
    return NULL;
}

/* The equations are ours: what can still be wrong with them is their size, or what the user wrote
 * into "expr". Their line and column mean nothing in the user's file. */
static void parse(struct wpk_shorthand *s, struct wpk_program *out)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_buf_status(&s->text);
    if (err == WPK_OK) {
        err = wpk_notation_parse(wpk_buf_text(&s->text), s->tensor, s->tensor_count, out, &diag);
    }
    if (err != WPK_OK) {
        const char *field = wpk_json_has(s->reader, "expr") ? "expr" : NULL;
        wpk_json_fail(s->reader, field, err, "%s",
                      diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
    }
}

static enum wpk_dtype get_dtype(struct wpk_shorthand *s, const char *key, enum wpk_dtype absent)
{
    static const char *const names[] = {"f32", "f64", "f16", "bf16", "i8", "u8", "i16", "i32"};
    enum wpk_dtype dtype = absent;
    if (wpk_json_has(s->reader, key)) {
        size_t choice = wpk_json_get_choice(s->reader, key, names, sizeof names / sizeof *names);
        WPK_ASSERT(wpk_dtype_parse(names[choice], &dtype) == WPK_OK);
    }
    return dtype;
}

/* Read "dtype" (absent: f32) and "output_dtype" (absent: the same, or i32 if it widens). */
static void read_dtypes(struct wpk_shorthand *s, enum wpk_shorthand_operands operands)
{
    s->dtype = get_dtype(s, "dtype", WPK_F32);
    bool widens = operands == WPK_SHORTHAND_WIDENED && !wpk_dtype_is_float(s->dtype);
    s->output_dtype = get_dtype(s, "output_dtype", widens ? WPK_I32 : s->dtype);
    if (operands == WPK_SHORTHAND_FLOAT) {
        wpk_shorthand_need_float(s);
    }
}

static void expand(struct wpk_shorthand *s, struct wpk_program *out)
{
    s->name = wpk_json_get_text(s->reader, "type", WPK_NAME_MAX);
    if (wpk_shorthand_failed(s)) {
        return;
    }
    const struct wpk_shorthand_type *type = find_type(s->name);
    if (type == NULL) {
        wpk_json_fail(s->reader, "type", WPK_EINVAL, "no operator is called '%s'", s->name);
        return;
    }
    /* Fail on a field that is not in the list. */
    char list[256];
    const char *names[FIELDS_MAX + 2] = {"type"};
    WPK_ASSERT(strlen(type->fields) < sizeof list);
    snprintf(list, sizeof list, "%s", type->fields);
    int count = 1;
    for (char *at = list; at != NULL && count <= FIELDS_MAX; count++) {
        names[count] = at;
        at = strchr(at, ' ');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    wpk_json_allow(s->reader, names);
    if (!wpk_shorthand_failed(s)) {
        read_dtypes(s, type->operands);
        type->expand(s);
    }
    if (!wpk_shorthand_failed(s)) {
        parse(s, out);
    }
}

wpk_err wpk_shorthand_expand(const char *json, struct wpk_program *out, struct wpk_diag *diag)
{
    struct wpk_shorthand s = {0};
    struct wpk_program program = {0};
    wpk_err err = wpk_json_open(json, strlen(json), 0, &s.reader, diag);
    memset(out, 0, sizeof *out);
    if (err != WPK_OK) {
        return err;
    }
    expand(&s, &program);
    err = wpk_json_status(s.reader);
    wpk_json_close(s.reader);
    wpk_buf_fini(&s.text);
    if (err != WPK_OK) {
        wpk_program_fini(&program);
    }
    *out = program;
    return err;
}
