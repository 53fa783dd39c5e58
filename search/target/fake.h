/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of device for tests: vectors of 4 elements, 8 registers, rules of its own. */
#ifndef WPK_SEARCH_TARGET_FAKE_H
#define WPK_SEARCH_TARGET_FAKE_H

#include "search/space.h"

/* Options of a space for such a device. */
struct wpk_space_options wpk_target_fake_options(const char *layouts, int threads);

#endif
