/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that the hardware makes of a request: of an access by the active lanes of a warp.
 *
 *   shape  address [WPK_WARP_LANES]; bytes: of a lane */
#ifndef WPK_TESTS_GPU_REQUEST_H
#define WPK_TESTS_GPU_REQUEST_H

#include <stdint.h>

/* Of shared memory: wavefronts, and as many as there were without conflicts of banks. */
uint64_t wpk_request_wavefronts(uint32_t active, const uint64_t *address, uint32_t bytes);
uint64_t wpk_request_least_wavefronts(uint32_t active, uint32_t bytes);
/* Of global memory: sectors, and as many as there were if what lanes access lay together. */
uint64_t wpk_request_sectors(uint32_t active, const uint64_t *address);
uint64_t wpk_request_least_sectors(uint32_t active, const uint64_t *address, uint32_t bytes);

#endif
