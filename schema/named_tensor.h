/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor argument: its name, declared type and layout, as manifests and recipes write them.
 *
 *     {"name":"X","type":"f32[1,128,28,28]","layout":"0,2,3,1 pad 0:0,0:0,1:1,1:1"} */
#ifndef WPK_SCHEMA_NAMED_TENSOR_H
#define WPK_SCHEMA_NAMED_TENSOR_H

#include "schema/fields.h"
#include "schema/tensor.h"

struct wpk_named_tensor {
    char name[WPK_NAME_MAX];
    struct wpk_tensor_type type;
};

/* Rows for a type with its layout, and for a named tensor (schema/fields.h). The size in bytes of
 * an accepted tensor fits 64 bits, with its padding. A layout whose text is too long fails with
 * WPK_ENOSPC. */
extern const struct wpk_field wpk_tensor_type_fields[];
extern const struct wpk_field wpk_named_tensor_fields[];

#endif
