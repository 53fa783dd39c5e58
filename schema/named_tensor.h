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
 *   errors  WPK_ENOSPC a layout with too long a text; what `writer` meets is its own failure */
WPK_MUST_CHECK wpk_err wpk_named_tensors_put(struct wpk_json_writer *writer, const char *key,
                                             const struct wpk_named_tensor *tensors, int count);

/* Read the object that the reader is at; failures are the reader's. The bytes of what is accepted
 * fit 64 bits with any padding. */
void wpk_named_tensor_get(struct wpk_json_reader *reader, struct wpk_named_tensor *out);

#endif
