/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of all strategies, for strategy.c, which finds them by name.
 *
 * To add a strategy: write its class in a file of its own, declare it here, list it in both
 * functions of strategy.c, and name it in schema/job.schema.json and client/job_file.h. */
#ifndef WPK_SEARCH_STRATEGIES_H
#define WPK_SEARCH_STRATEGIES_H

#include "search/strategy.h"

extern const struct wpk_strategy_class wpk_strategy_ga;
extern const struct wpk_strategy_class wpk_strategy_random;

#endif
