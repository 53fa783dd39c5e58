/* SPDX-License-Identifier: Apache-2.0 */
/* State of the GPU that is number 0 for this process, from NVIDIA's management library. The library
 * is opened when it is first needed, and stays open; a machine may have none. */
#ifndef WPK_WORKER_PROVIDER_NVML_H
#define WPK_WORKER_PROVIDER_NVML_H

#include "common/err.h"

/* True if the GPU's clocks are lowered now: it is too hot, or its power brake is set. False, too,
 * where nothing can be asked. A load at the power limit, idleness and set clocks do not count. */
bool wpk_nvml_is_throttled(bool emulated);

/* Temperature, power limit, and whether the GPU is throttled, as a text for people; or why they are
 * not known. */
void wpk_nvml_describe(bool emulated, char *out, size_t size);

#endif
