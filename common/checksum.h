/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whether a large block of bytes was changed by accident, at the speed of memory. It protects
 * from nobody who changes bytes on purpose: see crypto.h. */
#ifndef WPK_COMMON_CHECKSUM_H
#define WPK_COMMON_CHECKSUM_H

#include <stddef.h>

#define WPK_CHECKSUM_HEX_SIZE 33 /* lower-case hex and NUL */

/* XXH3 with 128 bits.   shape  data: bytes [size] */
void wpk_checksum_hex(const void *data, size_t size, char out[WPK_CHECKSUM_HEX_SIZE]);

#endif
