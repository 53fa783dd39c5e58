/* SPDX-License-Identifier: Apache-2.0 */
/* The part of devices of the kind "cuda", for schema/device.c. */
#ifndef WPK_SCHEMA_DEVICE_CUDA_H
#define WPK_SCHEMA_DEVICE_CUDA_H

#include "schema/device.h"

#define WPK_DEVICE_CUDA_LEAST 50

void wpk_device_cuda_class(const struct wpk_device *device, char *out, size_t size);
/*   errors  WPK_EPARSE */
WPK_MUST_CHECK wpk_err wpk_device_cuda_of_class(const char *text, struct wpk_device *out);

/* The members of a device's object. Failures are the writer's or the reader's. */
void wpk_device_cuda_put(struct wpk_json_writer *writer, const struct wpk_device *device);
void wpk_device_cuda_get(struct wpk_json_reader *reader, struct wpk_device *out);

#endif
