/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy decides which candidates a search tries next.
 *
 * A strategy does no I/O, reads no clock, starts no thread and has no global state: the same seed
 * and the same tells give the same asks, bit for bit, on every machine. Calls on one strategy come
 * one at a time; calls on two may run on two threads.
 *
 * Ask i is a function of the seed, the options and the tells before i - `ahead` of its class, and
 * of nothing else: builders must not wait for each other. Tells that come sooner wait; an ask that
 * comes too soon is refused. So the asks are the same whatever the number of workers.
 *
 * `tell` may precede the commit; an ask based on it is sent only after the commit. After a crash
 * the caller loads the state that was saved last, and tells it what the store has beyond it.
 * strategies.h says how to add a strategy. */
#ifndef WPK_SEARCH_STRATEGY_STRATEGY_H
#define WPK_SEARCH_STRATEGY_STRATEGY_H

#include "search/space.h"

#define WPK_OPTIONS_MAX 12 /* of one strategy */

struct wpk_course;
struct wpk_course_trial;
struct wpk_job;
struct wpk_network;
struct wpk_prior;
struct wpk_snapshot_reader;
struct wpk_strategy;

/* A number that a user may set, as "rl.learning_rate". */
struct wpk_strategy_option {
    const char *name; /* without the strategy's */
    const char *help; /* one line */
    double least, most, initial;
    bool whole; /* an integer */
};

/* The result of a trial, as a strategy sees it. */
struct wpk_tell {
    bool ok;         /* false: the trial failed, or its error is outside the accuracy class */
    bool censored;   /* raced out: `relative` is a lower bound */
    double relative; /* time / the anchor's time: less is better; no meaning unless ok */
};

/* A candidate that was timed elsewhere (hints.c). */
struct wpk_hint {
    struct wpk_candidate candidate; /* legal */
    double time_ns;                 /* there; above 0 */
};

/* The arguments of wpk_strategy_make(), besides the space. */
struct wpk_strategy_setup {
    uint64_t seed;
    const char *options; /* "name=value;name=value", checked before; "" or NULL: all initial */
    const struct wpk_prior *prior; /* borrowed until the strategy is freed; NULL: none. Classes that
                                      take none ignore it */
    const struct wpk_hint *hints;  /* [hint_count], fastest first; borrowed likewise */
    int hint_count;
    /* [relative_count] schedules of other borders, the first `twin_count`, and of other shapes,
     * each best first; borrowed likewise. Classes that take none ignore them */
    const struct wpk_candidate *relatives;
    int relative_count;
    int twin_count;
};

/* The functions of a strategy (strategies.h), and what users and services are told of it. */
struct wpk_strategy_class {
    const char *name; /* "random", "ga" */
    /* Of the text that it saves, "ga-5": changed whenever the same text, or the same tells, would
     * give other asks. */
    const char *version;
    const char *summary;                       /* one line: what it does and when to use it */
    const struct wpk_strategy_option *options; /* [option_count] */
    int option_count;
    int ahead;        /* asks under way that an ask does not wait for */
    bool keeps;       /* trials */
    bool is_slow;     /* it learns a model: an ask takes milliseconds */
    bool takes_prior; /* it begins from a prior of other operators' trials (prior.h) */
    /* It takes schedules of other paddings and shapes (transfer.h): its first option says how many
     * constructed candidates come before those of other shapes. */
    bool takes_relatives;
    /* The number of the first asks that construction gives, 0: none; `first_of` if it depends on
     * the space, else NULL. Every `drawn`-th of them is drawn at random; 0: none is. */
    int first, drawn;
    int (*first_of)(const struct wpk_space *space);
    /* Create the state of a strategy that was never asked; NULL: it has none.
     *   owns    caller calls free
     *   errors  WPK_ENOMEM */
    wpk_err (*make)(const struct wpk_course *course, void **state);
    void (*free)(void *state);
    /* Propose a candidate that is legal and not seen.
     *   errors  WPK_EEXHAUSTED it found none: one is drawn at random; WPK_ENOMEM: `state` is as
     *           before. `course->rng` may have changed: the caller takes that back */
    wpk_err (*propose)(void *state, struct wpk_course *course, struct wpk_candidate *out);
    /* Learn from the trial that was kept last, or, if the class keeps none, from this one; NULL:
     * there is nothing to learn. */
    void (*learn)(void *state, struct wpk_course *course, const struct wpk_course_trial *trial);
    /* The policy that it has learnt; NULL: it learns none. */
    const struct wpk_network *(*policy)(const void *state);
    /* Append the state to a snapshot, and read it into one just made; NULL: there is none. State
     * that can be computed from the trials need not be saved: `load` finds them in the course. */
    void (*save)(const void *state, struct wpk_buf *out);
    void (*load)(void *state, const struct wpk_course *course, struct wpk_snapshot_reader *reader);
};

/* The class of that name; NULL when there is none. */
const struct wpk_strategy_class *wpk_strategy_find(const char *name);
/* Number `i` of all classes, in the order in which help lists them; NULL behind the last. */
const struct wpk_strategy_class *wpk_strategy_at(int i);
/* All names, separated by ", ", for messages. */
const char *wpk_strategy_names(void);

/* Check one option of a strategy.
 *   shape   name: "rl.learning_rate"; value: a number
 *   errors  WPK_ENOENT no such option, with those that there are in `diag`; WPK_ERANGE outside its
 *           range; WPK_EPARSE no number */
wpk_err wpk_strategy_check_option(const struct wpk_strategy_class *kind, const char *name,
                                  const char *value, struct wpk_diag *diag);
/* Check the options of a job, whose strategy exists.
 *   errors  those of wpk_strategy_check_option(), with the member of the job's file in `diag` */
wpk_err wpk_strategy_check_job(const struct wpk_job *job, struct wpk_diag *diag);

/* Create a strategy that was never asked.
 *   owns    caller calls wpk_strategy_free; `space` is borrowed until then
 *   errors  WPK_ENOMEM; those of wpk_strategy_check_option() */
wpk_err wpk_strategy_make(const struct wpk_strategy_class *kind, const struct wpk_space *space,
                          const struct wpk_strategy_setup *setup, struct wpk_strategy **out);
void wpk_strategy_free(struct wpk_strategy *strategy); /* accepts NULL */

/* Fill up to `count` candidates that are new to this strategy and set *filled to their number.
 * WPK_OK with *filled 0: the strategy must be told more first.
 *   errors  WPK_EEXHAUSTED no new candidate was found; WPK_ENOMEM the next asks give what they
 *           would have given without this one */
wpk_err wpk_strategy_ask(struct wpk_strategy *strategy, int count, struct wpk_candidate *out,
                         int *filled);
/* Take the result of the oldest ask not told yet. */
void wpk_strategy_tell(struct wpk_strategy *strategy, const struct wpk_tell *tell);
/* The number of candidates asked for. */
uint64_t wpk_strategy_asked(const struct wpk_strategy *strategy);
/* The source of a candidate, as openapi.yaml has it: a static text.
 *   shape  ask: the number of one of the last ask's candidates */
const char *wpk_strategy_source(const struct wpk_strategy *strategy, uint64_t ask);
/* Take the result of a candidate of the history that this strategy never asked for. */
void wpk_strategy_learn(struct wpk_strategy *strategy, const struct wpk_candidate *candidate,
                        const struct wpk_tell *tell);

/* The policy that the strategy has learnt so far, borrowed from it; NULL: it has none. */
const struct wpk_network *wpk_strategy_policy(const struct wpk_strategy *strategy);

/* Append the whole state as one line: about 8 bytes for each candidate asked for, up to 100 KB for
 * the rest.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_strategy_save(const struct wpk_strategy *strategy, struct wpk_buf *out);
/* Restore a saved strategy: its next asks are those that the saved one would have given. After a
 * failure the caller makes a new strategy and tells it every result again.
 *   owns    as for wpk_strategy_make
 *   errors  WPK_EMISMATCH text of another version or another space; WPK_EPARSE, WPK_ENOMEM */
wpk_err wpk_strategy_load(const struct wpk_strategy_class *kind, const struct wpk_space *space,
                          const struct wpk_strategy_setup *setup, const char *text,
                          struct wpk_strategy **out, struct wpk_diag *diag);

/* Check that the strategy with this name begins from priors, and that `text` is one; NULL: none.
 *   errors  WPK_EINVAL the strategy takes none, with those that do in `diag`; those of
 *           wpk_prior_decode */
wpk_err wpk_prior_check(const char *strategy, const char *text, struct wpk_diag *diag);

#endif
