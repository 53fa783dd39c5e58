/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a strategy, and the classes of all strategies.
 *
 * strategy.c does what all of them share: it keeps the candidates seen, the constructed ones of the
 * first asks, the asks under way and the trials, refuses asks that come too soon, takes failed asks
 * back and saves. A class proposes one candidate at a time and learns from one trial at a time.
 * It may call:
 *
 *     search/space.h      wpk_space_draw, wpk_space_draw_of, wpk_space_repair, wpk_space_is_legal,
 *                         wpk_space_predict (log of seconds), wpk_space_features,
 *                         wpk_candidate_equal; wpk_space_variant before it reads a variant's genes
 *     search/mask.h       which values of the next gene can still become a legal candidate
 *     search/strategy/strategies.h       mutations and crossover
 *     search/strategy/model.h      the cost model
 *     search/model/prior.h      what other operators' trials taught; course->prior may be NULL
 *     search/strategy/seen.h       the candidates asked for so far
 *     search/snapshot.h   the text that `save` writes and `load` reads
 *     common/format.h       exponentials and logarithms that are the same everywhere
 *
 * To add a strategy: write its class in a file of its own and list it in WPK_STRATEGY_LIST.
 * tests/strategy_suite.c and search/snapshot_test.c hold every class of the list to the rules. */
#ifndef WPK_SEARCH_STRATEGY_STRATEGIES_H
#define WPK_SEARCH_STRATEGY_STRATEGIES_H

#include "search/strategy/seen.h"
#include "search/strategy/strategy.h"

#define WPK_TRIALS_MAX 512 /* that a strategy keeps */

struct wpk_course_trial {
    struct wpk_candidate candidate;
    struct wpk_tell tell;
    double time; /* log of `relative` over the course's first one; +inf unless there is one */
};

/* The inputs that the asks of a strategy depend on, besides its own state. */
struct wpk_course {
    const struct wpk_space *space;
    const struct wpk_prior *prior;         /* NULL: none */
    const struct wpk_candidate *relatives; /* [relative_count] of other borders and shapes */
    int relative_count;
    int twin_count;                 /* of them, of other borders: asked for first */
    double option[WPK_OPTIONS_MAX]; /* of the class, in its order */
    struct wpk_rng rng;
    struct wpk_seen seen;
    double origin;                  /* log of the first `relative`, +inf before */
    uint64_t asked;                 /* asks given */
    uint64_t learnt;                /* tells learnt from, those of the history too */
    uint64_t ok_count;              /* of them, with a time */
    struct wpk_course_trial *trial; /* owned; [trial_count], in the order in which they were
                                           learnt: all, or the best and a sample of the others */
    int trial_count;
    int best;           /* the fastest of them, -1: none has a time */
    const char *source; /* of what is being proposed; a class may set it: static */
};

/* All strategies, in the order in which they are listed; each has a class wpk_strategy_NAME. */
#define WPK_STRATEGY_LIST(X)                                                                       \
    X(auto) X(construct) X(random) X(ga) X(anneal) X(mcmc) X(bayes) X(rl) X(nearest)

#define WPK_STRATEGY_DECLARE(name) extern const struct wpk_strategy_class wpk_strategy_##name;
WPK_STRATEGY_LIST(WPK_STRATEGY_DECLARE)

/* Fill in the options of a class: those that `text` gives ("ga.elite=4;..."; NULL: none), and the
 * initial values of the others.   shape  out [kind->option_count]
 *   errors  those of wpk_strategy_check_option; WPK_EPARSE */
wpk_err wpk_strategy_read_options(const struct wpk_strategy_class *kind, const char *text,
                                  double *out);

/* Candidates made from others. The new candidates may be illegal. */

/* Move one gene, and each further one with probability 1/2. */
void wpk_move_some(const struct wpk_space *space, struct wpk_rng *rng,
                   struct wpk_candidate *candidate);
/* Uniform crossover: the child is of the first parent's variant, and takes each gene from the
 * second with probability 1/2, where that one has a gene of this name with a value that exists. */
void wpk_move_cross(const struct wpk_space *space, struct wpk_rng *rng,
                    const struct wpk_candidate *first, const struct wpk_candidate *second,
                    struct wpk_candidate *child);

/* A legal candidate that is not seen and differs from `from` in one gene, or in few where no such
 * one is found: mostly of the same variant.
 *   errors  WPK_EEXHAUSTED */
wpk_err wpk_move_neighbour(const struct wpk_space *space, const struct wpk_seen *seen,
                           struct wpk_rng *rng, const struct wpk_candidate *from,
                           struct wpk_candidate *out);

#endif
