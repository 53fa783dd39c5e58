/* SPDX-License-Identifier: Apache-2.0 */
/* The strategies that learn nothing. Random search draws without replacement: every other strategy
 * is compared with it. Construction gives what the rules of construct.c find, best first, then
 * draws. The strategy nearest takes the schedules of other borders and shapes. */
#include "search/strategy/strategies.h"

#define CONSTRUCTED 64

const struct wpk_strategy_class wpk_strategy_random = {
    .name = "random",
    .version = "random-6",
    .summary = "draws without replacement; to compare with",
    .ahead = 1,
};

const struct wpk_strategy_class wpk_strategy_construct = {
    .name = "construct",
    .version = "construct-2",
    .summary = "64 candidates made by rules, best first, then draws; for budgets below ten",
    .ahead = 1,
    .first = CONSTRUCTED,
};

static const struct wpk_strategy_option nearest_options[] = {
    {"constructed", "constructed candidates before schedules of other shapes", 0, CONSTRUCTED, 1,
     true},
};

const struct wpk_strategy_class wpk_strategy_nearest = {
    .name = "nearest",
    .version = "nearest-1",
    .summary =
        "the best schedules of the same shape with other borders, a constructed one, those of "
        "the nearest shapes, then as construct; for budgets of one to three",
    .options = nearest_options,
    .option_count = 1,
    .ahead = 1,
    .takes_relatives = true,
    .first = CONSTRUCTED,
};
