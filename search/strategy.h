/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy decides what to try next. It does no I/O and reads no clock: the same seed and the
 * same results give the same asks, bit for bit.
 *
 * The owner asks and tells in one fixed order: tell for ask i is given before tell i + 1, whatever
 * the order in which results came in. A strategy may refuse to ask until it was told more. */
#ifndef WPK_SEARCH_STRATEGY_H
#define WPK_SEARCH_STRATEGY_H

#include "search/space.h"

struct wpk_strategy;

/* What the strategy learns of a trial: failures have no time. */
struct wpk_tell {
    bool ok;
    bool censored;       /* raced out: `relative` is a lower bound */
    double relative;     /* time / reference kernel's time on the same instance: less is better */
};

struct wpk_strategy_class {
    const char *name;    /* "random", "ga" */
    const char *version; /* of what `save` writes, "ga-1": grows when the same text, or the same
                            results, would give other asks */
    /* required; `space` is borrowed for the strategy's life */
    wpk_err (*make)(const struct wpk_space *space, uint64_t seed, struct wpk_strategy **out);
    /* required; fills up to `count` candidates never asked before, *filled says how many; 0 with
     * WPK_OK: tell first; WPK_EEXHAUSTED: the space holds nothing new */
    wpk_err (*ask)(struct wpk_strategy *strategy, int count, struct wpk_candidate *out,
                   int *filled);
    /* required; in the order of the asks */
    void (*tell)(struct wpk_strategy *strategy, const struct wpk_candidate *candidate,
                 const struct wpk_tell *tell);
    /* required; append all that it knows, as one line: about 8 bytes for each candidate asked for,
     * a few thousand for the rest. errors  WPK_ENOMEM, WPK_ENOSPC */
    wpk_err (*save)(const struct wpk_strategy *strategy, struct wpk_buf *out);
    /* required; the strategy as it was: asked as often and told as much, so that it goes on with
     * the very asks that it would have given. Where that fails, the owner makes a new one and
     * tells it everything.
     *   owns    as for make()
     *   errors  WPK_EMISMATCH another version's text or another space's; WPK_EPARSE, WPK_ENOMEM */
    wpk_err (*load)(const struct wpk_space *space, const char *text, struct wpk_strategy **out,
                    struct wpk_diag *diag);
    void (*free)(struct wpk_strategy *strategy); /* required; accepts NULL */
};

/* NULL when there is no such strategy. */
const struct wpk_strategy_class *wpk_strategy_find(const char *name);
/* Names separated by ", " for messages. */
const char *wpk_strategy_names(void);

#endif
