/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of machines that the back end `c` uses. */
#ifndef WPK_TARGET_C_TARGET_H
#define WPK_TARGET_C_TARGET_H

#include "schema/device.h"

/* The widest vectors of floating numbers that the instruction set computes with. */
int wpk_c_vector_bytes(enum wpk_isa isa);

#endif
