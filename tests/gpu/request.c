/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/request.h"

#include "common/cuda_machine.h"
#include "tests/gpu/warp.h"

/* Words of one bank are served one after another, equal ones at once; lanes of 8 bytes go in two
 * halves, of 16 bytes in four quarters. */
uint64_t wpk_request_wavefronts(uint32_t active, const uint64_t *address, uint32_t bytes)
{
    uint32_t size = bytes < 4 ? 4 : bytes;
    int lanes = (int)(WPK_WARP_LANES * 4 / size);
    uint64_t count = 0;
    for (int first = 0; first < WPK_WARP_LANES; first += lanes) {
        uint32_t word[WPK_CUDA_BANKS][WPK_WARP_LANES]; /* distinct ones of each bank */
        uint8_t depth[WPK_CUDA_BANKS] = {0};
        uint8_t most = 0;
        for (int lane = first; lane < first + lanes && lane < WPK_WARP_LANES; lane++) {
            for (uint32_t b = 0; b < size && (active >> lane & 1) != 0; b += 4) {
                uint32_t at = (uint32_t)(address[lane] + b) / 4, bank = at % WPK_CUDA_BANKS;
                uint8_t i = 0;
                while (i < depth[bank] && word[bank][i] != at) {
                    i++;
                }
                if (i == depth[bank]) {
                    word[bank][depth[bank]++] = at;
                    most = depth[bank] > most ? depth[bank] : most;
                }
            }
        }
        count += most;
    }
    return count;
}

/* The same without conflicts: of each part of the lanes one, unless all are idle. */
uint64_t wpk_request_least_wavefronts(uint32_t active, uint32_t bytes)
{
    int lanes = (int)(WPK_WARP_LANES * 4 / (bytes < 4 ? 4 : bytes));
    uint64_t count = 0;
    for (int first = 0; first < WPK_WARP_LANES; first += lanes) {
        uint64_t part = (((uint64_t)1 << lanes) - 1) << first;
        count += (active & part) != 0;
    }
    return count;
}

/* Lanes that access what the lane before accesses need nothing more. */
uint64_t wpk_request_least_sectors(uint32_t active, const uint64_t *address, uint32_t bytes)
{
    uint64_t total = 0, last = UINT64_MAX;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        if ((active >> lane & 1) != 0 && address[lane] != last) {
            total += bytes;
            last = address[lane];
        }
    }
    return (total + WPK_CUDA_SECTOR_BYTES - 1) / WPK_CUDA_SECTOR_BYTES;
}

uint64_t wpk_request_sectors(uint32_t active, const uint64_t *address)
{
    uint64_t seen[4 * WPK_WARP_LANES];
    int count = 0, newest = 0;
    for (int lane = 0; lane < WPK_WARP_LANES; lane++) {
        uint64_t sector = address[lane] / WPK_CUDA_SECTOR_BYTES;
        if ((active >> lane & 1) == 0 || (count > 0 && seen[newest] == sector)) {
            continue;
        }
        int i = 0;
        while (i < count && seen[i] != sector) {
            i++;
        }
        newest = i;
        if (i == count) {
            seen[count++] = sector;
        }
    }
    return (uint64_t)count;
}
