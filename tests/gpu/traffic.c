/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/traffic.h"

#include <math.h>
#include <stdlib.h>

#define WORD 4
#define SECTOR_WORDS (WPK_CUDA_SECTOR_BYTES / WORD) /* a byte of bits */

wpk_err wpk_traffic_init(struct wpk_traffic *traffic, const struct wpk_device_memory *memory)
{
    *traffic = (struct wpk_traffic){0};
    traffic->range = calloc(memory->range_count + 1, sizeof(*traffic->range));
    if (traffic->range == NULL) {
        return WPK_ENOMEM;
    }
    for (size_t i = 0; i < memory->range_count; i++) {
        const struct wpk_device_range *of = &memory->range[i];
        uint64_t words = (of->to - of->from + WORD - 1) / WORD;
        uint8_t *accessed = calloc(words / SECTOR_WORDS + 1, 1);
        if (accessed == NULL) {
            wpk_traffic_fini(traffic);
            return WPK_ENOMEM;
        }
        traffic->range[traffic->range_count++] =
            (struct wpk_traffic_range){.from = of->from, .accessed = accessed, .words = words};
    }
    return WPK_OK;
}

void wpk_traffic_fini(struct wpk_traffic *traffic)
{
    for (size_t i = 0; i < traffic->range_count; i++) {
        free(traffic->range[i].accessed);
    }
    free(traffic->range);
    *traffic = (struct wpk_traffic){0};
}

static struct wpk_traffic_range *find(struct wpk_traffic *traffic, uint64_t address)
{
    for (size_t i = 0; i < traffic->range_count; i++) {
        struct wpk_traffic_range *range = &traffic->range[i];
        if (address >= range->from && address - range->from < range->words * WORD) {
            return range;
        }
    }
    return NULL;
}

void wpk_traffic_note(struct wpk_traffic *traffic, uint32_t active, const uint64_t *address,
                      uint32_t size, uint64_t sectors)
{
    struct wpk_traffic_range *range =
        active == 0 ? NULL : find(traffic, address[__builtin_ctz(active)]);
    uint64_t last = UINT64_MAX, words = 0;
    if (range == NULL) {
        return;
    }
    range->sectors += sectors;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        if ((active >> lane & 1) == 0 || address[lane] == last ||
            (address[lane] - range->from) / WORD >= range->words) {
            continue;
        }
        last = address[lane];
        words += (size + WORD - 1) / WORD;
        for (uint64_t at = last - range->from; at < last - range->from + size; at += WORD) {
            range->accessed[at / WPK_CUDA_SECTOR_BYTES] |=
                (uint8_t)(1U << at / WORD % SECTOR_WORDS);
        }
    }
    range->requests[words]++;
}

double wpk_traffic_least(const struct wpk_traffic_range *range)
{
    uint64_t words = 0, sectors = 0;
    double least = 0;
    for (uint64_t s = 0; s <= range->words / SECTOR_WORDS; s++) {
        words += (uint64_t)__builtin_popcount(range->accessed[s]);
        sectors += range->accessed[s] != 0;
    }
    double each = words == 0 ? 0 : (double)sectors / (double)words;
    for (int w = 1; w <= WPK_TRAFFIC_WORDS_MAX; w++) {
        least += (double)range->requests[w] * ceil((double)w * each);
    }
    return least;
}
