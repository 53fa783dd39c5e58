/* SPDX-License-Identifier: Apache-2.0 */
/* Every strategy there is; for strategy.c, which looks them up by name. */
#ifndef WPK_SEARCH_STRATEGIES_H
#define WPK_SEARCH_STRATEGIES_H

#include "search/strategy.h"

extern const struct wpk_strategy_class wpk_strategy_ga;
extern const struct wpk_strategy_class wpk_strategy_random;

#endif
