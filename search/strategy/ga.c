/* SPDX-License-Identifier: Apache-2.0 */
/* The genetic algorithm: one chromosome for the whole candidate, algorithm and layout included.
 *
 *   generation 0   constructed candidates and random draws, as many as the population holds
 *   afterwards     each ask makes one child: of two parents drawn by roulette wheel (crossover), or
 *                  of one (mutation); the population keeps the best that were told (elitism)
 *
 *   source  population grows with the logarithm of the space's size, roulette wheel on fitness,
 *           crossover, mutation, elitism: Woodpecker-DL, section on genetic search. Steady state:
 *           Whitley, The GENITOR algorithm, ICGA 1989. The rates were chosen by the synthetic
 *           spaces of tests/strategy_suite.c. */
#include "search/strategy/strategies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POPULATION_MIN 8
#define POPULATION_MAX 64
#define CHILD_TRIES_MAX 64
#define SELECTION_POWER 12 /* fitness^power on the wheel: times of good candidates lie close */

enum { CROSSOVER, IMMIGRANTS };

static const struct wpk_strategy_option options[] = {
    [CROSSOVER] = {"crossover", "share of children that have two parents", 0, 1, 0.5, false},
    [IMMIGRANTS] = {"immigrants", "share of random draws among the children", 0, 1, 0.04, false},
};

struct individual {
    struct wpk_candidate candidate;
    double relative; /* smaller is better */
};

struct ga {
    int size;
    int count;
    struct individual population[POPULATION_MAX]; /* [count], best first */
};

/* Two individuals for each bit of the space, 64 for a convolution; a space that is smaller than
 * its population is searched whole in any case. */
static int population_for(const struct wpk_space *space)
{
    double size = ceil(2.0 * space->size_log2);
    if (!(size > POPULATION_MIN)) {
        return POPULATION_MIN;
    }
    return size < POPULATION_MAX ? (int)size : POPULATION_MAX;
}

static wpk_err make(const struct wpk_course *course, void **state)
{
    struct ga *ga = calloc(1, sizeof *ga);
    if (ga == NULL) {
        return WPK_ENOMEM;
    }
    ga->size = population_for(course->space);
    *state = ga;
    return WPK_OK;
}

static void learn(void *state, struct wpk_course *course WPK_UNUSED,
                  const struct wpk_course_trial *trial)
{
    struct ga *ga = state;
    int at = ga->count;
    while (at > 0 && trial->tell.ok && ga->population[at - 1].relative > trial->tell.relative) {
        at--;
    }
    if (!trial->tell.ok || at == ga->size) {
        return;
    }
    ga->count += ga->count < ga->size;
    memmove(&ga->population[at + 1], &ga->population[at],
            (size_t)(ga->count - 1 - at) * sizeof ga->population[0]);
    ga->population[at] = (struct individual){trial->candidate, trial->tell.relative};
}

/* Roulette wheel: a share of the wheel for each individual, by fitness relative to the best. */
static const struct wpk_candidate *select_parent(const struct ga *ga, struct wpk_rng *rng)
{
    double share[POPULATION_MAX];
    double whole = 0;
    for (int i = 0; i < ga->count; i++) {
        double fitness = ga->population[0].relative / ga->population[i].relative;
        share[i] = 1;
        for (int k = 0; k < SELECTION_POWER; k++) {
            share[i] *= fitness;
        }
        whole += share[i];
    }
    double ball = wpk_rng_unit(rng) * whole;
    for (int i = 0; i < ga->count; i++) {
        ball -= share[i];
        if (ball < 0) {
            return &ga->population[i].candidate;
        }
    }
    return &ga->population[ga->count - 1].candidate;
}

static wpk_err propose(void *state, struct wpk_course *course, struct wpk_candidate *out)
{
    struct ga *ga = state;
    struct wpk_rng *rng = &course->rng;
    if (ga->count == 0 || wpk_rng_chance(rng, course->option[IMMIGRANTS])) {
        return WPK_EEXHAUSTED;
    }
    for (int i = 0; i < CHILD_TRIES_MAX; i++) {
        struct wpk_candidate child = *select_parent(ga, rng);
        bool crossed = wpk_rng_chance(rng, course->option[CROSSOVER]);
        if (crossed) {
            struct wpk_candidate parent = child;
            wpk_move_cross(course->space, rng, &parent, select_parent(ga, rng), &child);
        }
        if (!crossed || wpk_rng_chance(rng, 0.5)) {
            wpk_move_some(course->space, rng, &child);
        }
        if (wpk_space_repair(course->space, rng, &child) == WPK_OK &&
            !wpk_seen_has(&course->seen, course->space, &child)) {
            *out = child;
            return WPK_OK;
        }
    }
    return WPK_EEXHAUSTED;
}

static void save(const void *state, struct wpk_buf *out)
{
    const struct ga *ga = state;
    wpk_snapshot_put_number(out, (uint64_t)ga->count);
    for (int i = 0; i < ga->count; i++) {
        wpk_snapshot_put_candidate(out, &ga->population[i].candidate);
        wpk_snapshot_put_real(out, ga->population[i].relative);
    }
}

static void load(void *state, const struct wpk_course *course WPK_UNUSED,
                 struct wpk_snapshot_reader *reader)
{
    struct ga *ga = state;
    ga->count = (int)wpk_snapshot_number(reader, (uint64_t)ga->size);
    for (int i = 0; i < ga->count; i++) {
        struct individual *one = &ga->population[i];
        wpk_snapshot_candidate(reader, &one->candidate);
        one->relative = wpk_snapshot_real(reader);
        if (!(one->relative > 0) || (i > 0 && one->relative < one[-1].relative)) {
            reader->err = WPK_EPARSE;
        }
    }
}

const struct wpk_strategy_class wpk_strategy_ga = {
    .name = "ga",
    .version = "ga-6",
    .summary = "genetic algorithm; for hundreds of trials and many workers",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .ahead = 16, /* keeps two builders busy past a build of two seconds */
    .first_of = population_for,
    .drawn = 8, /* the others are constructed: diversity */
    .make = make,
    .free = free,
    .propose = propose,
    .learn = learn,
    .save = save,
    .load = load,
};
