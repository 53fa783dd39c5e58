/* SPDX-License-Identifier: Apache-2.0 */
/* Global memory traffic of launches, counted for each allocation. A sector that holds bytes which
 * no block accesses has to be moved all the same: the least number of sectors is that of the bytes
 * that are accessed, times the share of them in the sectors that they lie in. A stride of 2 needs
 * twice the sectors of the bytes. */
#ifndef WPK_TESTS_GPU_TRAFFIC_H
#define WPK_TESTS_GPU_TRAFFIC_H

#include "common/cuda_machine.h"
#include "tests/gpu/memory.h"
#include "tests/gpu/warp.h"

#define WPK_TRAFFIC_WORDS_MAX (4 * WPK_WARP_LANES) /* of a request */

/* Of one allocation. */
struct wpk_traffic_range {
    uint64_t from;
    uint64_t sectors;  /* of all requests */
    /* Requests by their number of words; those that the lane before accesses, too, are left out. */
    uint64_t requests[WPK_TRAFFIC_WORDS_MAX + 1];
    uint8_t *accessed; /* a bit for each word; owned */
    uint64_t words;
};

struct wpk_traffic {
    struct wpk_traffic_range *range; /* one for each of the memory's; owned */
    size_t range_count;
};

/* Memory that is allocated later is not looked at.   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_traffic_init(struct wpk_traffic *traffic,
                                        const struct wpk_device_memory *memory);
void wpk_traffic_fini(struct wpk_traffic *traffic);

/* Note a request of a warp's active lanes for `size` bytes each.
 *   shape  address [WPK_WARP_LANES] */
void wpk_traffic_note(struct wpk_traffic *traffic, uint32_t active, const uint64_t *address,
                      uint32_t size, uint64_t sectors);

/* Sectors that the words of each request fill, with as many holes as all words have that were
 * accessed. */
double wpk_traffic_least(const struct wpk_traffic_range *range);

#endif
