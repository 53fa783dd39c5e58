/* SPDX-License-Identifier: Apache-2.0 */
/* The table of strategies. */
#include "search/strategy.h"

#include "search/strategies.h"

#include <string.h>

static const struct wpk_strategy_class *const classes[] = {
    &wpk_strategy_ga,
    &wpk_strategy_random,
};

const struct wpk_strategy_class *wpk_strategy_find(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (strcmp(classes[i]->name, name) == 0) {
            return classes[i];
        }
    }
    return NULL;
}

const char *wpk_strategy_names(void)
{
    return "ga, random";
}
