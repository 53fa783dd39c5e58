/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor argument: its name, declared type and layout, as manifests and recipes write them.
 *
 *     {"name":"X","type":"f32[1,128,28,28]","layout":"0,2,3,1 pad 0:0,0:0,1:1,1:1"} */
#ifndef WPK_SCHEMA_NAMED_TENSOR_H
#define WPK_SCHEMA_NAMED_TENSOR_H

#include "common/json.h"
#include "schema/tensor.h"

struct wpk_named_tensor {
    char name[WPK_NAME_MAX];
    struct wpk_tensor_type type;
};

/* Write the list as an array of objects.
 *   shape   tensors [count]
 *   errors  WPK_ENOSPC the text of a layout is too long; other failures are the writer's */
WPK_MUST_CHECK wpk_err wpk_named_tensors_put(struct wpk_json_writer *writer, const char *key,
                                             const struct wpk_named_tensor *tensors, int count);

/* Read the current object; failures are the reader's. The size in bytes of an accepted tensor fits
 * 64 bits, with its padding. */
void wpk_named_tensor_get(struct wpk_json_reader *reader, struct wpk_named_tensor *out);

#endif
