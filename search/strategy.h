/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy decides which candidates a search tries next.
 *
 * A strategy does no I/O, reads no clock, starts no thread and has no global state: the same seed
 * and the same tells give the same asks, bit for bit. Calls on one strategy come one at a time;
 * calls on two may run on two threads. A strategy may read its space, and may call:
 *
 *     search/space.h      wpk_space_construct, wpk_space_draw, wpk_space_draw_of,
 *                         wpk_space_repair, wpk_space_is_legal, wpk_space_bound (predicted
 *                         seconds), wpk_space_key, wpk_candidate_equal, wpk_candidate_hash;
 *                         wpk_space_variant before it reads a variant's genes
 *     search/feature.h    what can be counted of a candidate's nest (search/candidate_nest.h)
 *     search/mask.h       which values of the next gene can still become a legal candidate
 *     search/seen.h       the candidates asked for so far, and draws of new ones
 *     search/snapshot.h   the text that `save` writes and `load` reads
 *     common/rng.h        a generator that the strategy owns, started from `seed`
 *
 * The caller tells results in the order of the asks, whatever the order in which workers deliver
 * them. A result may be told before it is durable: what follows from it leaves with it or later.
 * After a crash the caller loads the state that was saved last, and tells it what the store has
 * beyond it. A strategy may refuse an ask until it is told more. strategies.h says how to add
 * one. */
#ifndef WPK_SEARCH_STRATEGY_H
#define WPK_SEARCH_STRATEGY_H

#include "search/space.h"

struct wpk_strategy;

/* The result of a trial, as a strategy sees it. */
struct wpk_tell {
    bool ok;         /* false: the trial failed, or its error is outside the accuracy class */
    bool censored;   /* raced out: `relative` is a lower bound */
    double relative; /* time / the anchor's time: less is better; no meaning unless ok */
};

struct wpk_strategy_class {
    const char *name;    /* "random", "ga" */
    const char *version; /* of the text that `save` writes, e.g. "ga-4": changed whenever the same
                            text, or the same tells, would give other asks */
    /* required; create a strategy that was never asked.
     *   owns    caller calls free; `space` is borrowed until then
     *   errors  WPK_ENOMEM */
    wpk_err (*make)(const struct wpk_space *space, uint64_t seed, struct wpk_strategy **out);
    /* required; fill up to `count` candidates that are new to this strategy and set *filled to
     * their number. WPK_OK with *filled 0: the strategy must be told more first.
     *   errors  WPK_EEXHAUSTED no new candidate was found; WPK_ENOMEM the next asks give what they
     *           would have given without this one */
    wpk_err (*ask)(struct wpk_strategy *strategy, int count, struct wpk_candidate *out,
                   int *filled);
    /* required; take the result of the oldest ask not told yet, or of a candidate of the history
     * that this strategy never asked for. Both arguments are borrowed for the call. */
    void (*tell)(struct wpk_strategy *strategy, const struct wpk_candidate *candidate,
                 const struct wpk_tell *tell);
    /* required; append the whole state as one line: about 8 bytes for each candidate asked for, a
     * few thousand for the rest.
     *   errors  WPK_ENOMEM, WPK_ENOSPC */
    wpk_err (*save)(const struct wpk_strategy *strategy, struct wpk_buf *out);
    /* required; restore a saved strategy: its next asks are those that the saved one would have
     * given. After a failure the caller makes a new strategy and tells it every result again.
     *   owns    as for make
     *   errors  WPK_EMISMATCH text of another version or another space; WPK_EPARSE, WPK_ENOMEM */
    wpk_err (*load)(const struct wpk_space *space, const char *text, struct wpk_strategy **out,
                    struct wpk_diag *diag);
    void (*free)(struct wpk_strategy *strategy); /* required; accepts NULL */
};

/* The class of that name; NULL when there is none. */
const struct wpk_strategy_class *wpk_strategy_find(const char *name);
/* All names, separated by ", ", for messages. */
const char *wpk_strategy_names(void);

#endif
