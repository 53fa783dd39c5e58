/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/named_tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_TEXT_MAX 256
#define LAYOUT_TEXT_MAX 512

/* ---- out */

static void type_print(const struct wpk_tensor_type *type, char out[TYPE_TEXT_MAX])
{
    struct wpk_buf buf = {.size_max = TYPE_TEXT_MAX};

    wpk_buf_printf(&buf, "%s[", wpk_dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++) {
        wpk_buf_printf(&buf, "%s%lld", i > 0 ? "," : "", (long long)type->extent[i]);
    }
    wpk_buf_append_text(&buf, "]");
    snprintf(out, TYPE_TEXT_MAX, "%s", wpk_buf_text(&buf));
    wpk_buf_fini(&buf);
}

static void put_type(struct wpk_json_writer *w, const char *key, const void *member)
{
    char text[TYPE_TEXT_MAX];
    type_print(member, text);
    wpk_json_put_text(w, key, text);
}

static void put_layout(struct wpk_json_writer *w, const char *key, const void *member)
{
    const struct wpk_tensor_type *type = member;
    char text[LAYOUT_TEXT_MAX] = "";
    wpk_err err = wpk_layout_encode(&type->layout, text, sizeof(text));
    if (err != WPK_OK) {
        wpk_json_writer_fail(w, err);
    }
    wpk_json_put_text(w, key, text);
}

/* ---- in */

/* "f32[1,128,28,28]" -> dtype and extents. Sizes are bounded so that bytes fit 64 bits with any
 * padding a layout may add. */
static wpk_err type_parse(const char *text, struct wpk_tensor_type *type)
{
    char dtype[16];
    const char *p = strchr(text, '[');
    int64_t elements = 1;

    if (p == NULL || (size_t)(p - text) >= sizeof(dtype)) {
        return WPK_EPARSE;
    }
    snprintf(dtype, sizeof(dtype), "%.*s", (int)(p - text), text);
    if (wpk_dtype_parse(dtype, &type->dtype) != WPK_OK) {
        return WPK_EPARSE;
    }
    type->rank = 0;
    for (p++; *p != ']'; p += *p == ',' && p[1] != ']') {
        char *end = NULL;
        if (*p < '0' || *p > '9' || type->rank == WPK_RANK_MAX) {
            return WPK_EPARSE;
        }
        long long extent = strtoll(p, &end, 10);
        if (extent > WPK_ELEMENTS_MAX / elements) {
            return WPK_ERANGE;
        }
        elements *= extent > 0 ? extent : 1;
        type->extent[type->rank++] = extent;
        p = end;
        if (*p != ',' && *p != ']') {
            return WPK_EPARSE;
        }
    }
    return p[1] == '\0' ? WPK_OK : WPK_EPARSE;
}

/* Padding comes from outside too: the product of padded extents must stay bounded. */
static bool layout_fits(const struct wpk_tensor_type *type)
{
    const struct wpk_layout *layout = &type->layout;
    int64_t elements = 1;

    for (int i = 0; i < type->rank; i++) {
        int64_t before = layout->pad_before[i];
        int64_t after = layout->pad_after[i];
        if (before < 0 || after < 0 || before > WPK_ELEMENTS_MAX || after > WPK_ELEMENTS_MAX) {
            return false;
        }
        int64_t extent = before + type->extent[i] + after;
        if (layout->block > 0 && i == layout->block_axis) {
            /* The buffer starts at a block's boundary: else the kernel's index 0 is none. */
            if (layout->block > WPK_ELEMENTS_MAX || before % layout->block != 0) {
                return false;
            }
            extent = (extent + layout->block - 1) / layout->block * layout->block;
        }
        if (extent > WPK_ELEMENTS_MAX / elements) {
            return false;
        }
        elements *= extent > 0 ? extent : 1;
    }
    return true;
}

static void get_type(struct wpk_json_reader *r, const char *key, void *member)
{
    const char *text = wpk_json_get_text(r, key, TYPE_TEXT_MAX);
    if (wpk_json_status(r) == WPK_OK && type_parse(text, member) != WPK_OK) {
        wpk_json_fail(r, key, WPK_EPARSE, "'%s' is not a tensor type", text);
    }
}

static void get_layout(struct wpk_json_reader *r, const char *key, void *member)
{
    struct wpk_tensor_type *type = member;
    const char *text = wpk_json_get_text(r, key, LAYOUT_TEXT_MAX);
    if (wpk_json_status(r) == WPK_OK &&
        wpk_layout_decode(text, type->rank, &type->layout) != WPK_OK) {
        wpk_json_fail(r, key, WPK_EPARSE, "'%s' is not a layout", text);
    } else if (wpk_json_status(r) == WPK_OK && !layout_fits(type)) {
        wpk_json_fail(r, key, WPK_ERANGE, "'%s' does not fit the type", text);
    }
}

static void check_name(struct wpk_json_reader *r, void *object)
{
    const struct wpk_named_tensor *tensor = object;
    if (tensor->name[0] == '\0') {
        wpk_json_fail(r, "name", WPK_EINVAL, "a tensor needs a name");
    }
}

const struct wpk_field wpk_tensor_type_fields[] = {
    {.name = "type", .kind = WPK_FIELD_KIND_CUSTOM, .put = put_type, .get = get_type},
    {.name = "layout", .kind = WPK_FIELD_KIND_CUSTOM, .put = put_layout, .get = get_layout},
    {WPK_FIELD_END},
};

const struct wpk_field wpk_named_tensor_fields[] = {
    {WPK_FIELD(COPY, "name", named_tensor, name)},
    {WPK_FIELD_CHECK(check_name)},
    {WPK_FIELD_GROUP(named_tensor, type, wpk_tensor_type_fields)},
    {WPK_FIELD_END},
};
