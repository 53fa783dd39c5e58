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

wpk_err wpk_named_tensors_put(struct wpk_json_writer *w, const char *key,
                              const struct wpk_named_tensor *tensors, int count)
{
    wpk_err err = WPK_OK;

    wpk_json_begin_array(w, key);
    for (int i = 0; i < count && err == WPK_OK; i++) {
        char text[TYPE_TEXT_MAX];
        char layout[LAYOUT_TEXT_MAX];
        err = wpk_layout_encode(&tensors[i].type.layout, layout, sizeof(layout));
        if (err == WPK_OK) {
            type_print(&tensors[i].type, text);
            wpk_json_begin_object(w, NULL);
            wpk_json_put_text(w, "name", tensors[i].name);
            wpk_json_put_text(w, "type", text);
            wpk_json_put_text(w, "layout", layout);
            wpk_json_end(w);
        }
    }
    wpk_json_end(w);
    return err;
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

void wpk_named_tensor_get(struct wpk_json_reader *r, struct wpk_named_tensor *out)
{
    WPK_JSON_ALLOW(r, "name", "type", "layout");
    wpk_json_get_copy(r, "name", out->name, sizeof(out->name));
    const char *type = wpk_json_get_text(r, "type", TYPE_TEXT_MAX);
    const char *layout = wpk_json_get_text(r, "layout", LAYOUT_TEXT_MAX);
    if (wpk_json_status(r) != WPK_OK) {
        return;
    }
    if (out->name[0] == '\0') {
        wpk_json_fail(r, "name", WPK_EINVAL, "a tensor needs a name");
    } else if (type_parse(type, &out->type) != WPK_OK) {
        wpk_json_fail(r, "type", WPK_EPARSE, "'%s' is not a tensor type", type);
    } else if (wpk_layout_decode(layout, out->type.rank, &out->type.layout) != WPK_OK) {
        wpk_json_fail(r, "layout", WPK_EPARSE, "'%s' is not a layout", layout);
    } else if (!layout_fits(&out->type)) {
        wpk_json_fail(r, "layout", WPK_ERANGE, "'%s' does not fit the type", layout);
    }
}
