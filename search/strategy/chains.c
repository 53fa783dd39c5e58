/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated annealing and Markov chain Monte Carlo: several chains walk over neighbours. An ask
 * proposes a neighbour of one chain's state, chains in turn; its tell decides by Metropolis' rule
 * on the logarithm of the time whether the chain goes there.
 *
 *   anneal   all chains have one temperature, which falls with each tell; a chain that has fallen
 *            far behind starts again from the best
 *   mcmc     each chain keeps a temperature of a ladder; neighbours on it exchange their states
 *
 * Temperatures are in units of the spread of the first trials, so that they fit every operator.
 *
 *   source  Kirkpatrick, Gelatt & Vecchi, Optimization by simulated annealing, 1983; Swendsen &
 *           Wang, Replica Monte Carlo simulation of spin glasses, 1986 */
#include "common/format.h"
#include "search/strategy/strategies.h"

#include <math.h>
#include <stdlib.h>

#define CHAINS_MAX 16
#define FIRST 16 /* constructed and drawn asks, from which the spread is taken */
#define DRAWN 4  /* each fourth of them is drawn */
#define SPREAD_LEAST 0.02

enum { CHAINS, START, COOLING, BEHIND };

static const struct wpk_strategy_option anneal_options[] = {
    [CHAINS] = {"chains", "chains that walk in turn", 1, CHAINS_MAX, 2, true},
    [START] = {"temperature", "at first, in spreads of the first trials", 0.001, 10, 0.2, false},
    [COOLING] = {"cooling", "factor of the temperature for each step of all chains", 0.1, 1, 0.85,
                 false},
    [BEHIND] = {"behind", "spreads behind the best at which a chain starts again", 0.1, 100, 0.7,
                false},
};

static const struct wpk_strategy_option mcmc_options[] = {
    [CHAINS] = {"chains", "chains of the ladder", 1, CHAINS_MAX, 3, true},
    [START] = {"temperature", "of the hottest, in spreads of the first trials", 0.001, 10, 0.2,
               false},
    [COOLING] = {"ladder", "factor from one temperature to the next", 0.1, 1, 0.3, false},
};

struct chain {
    struct wpk_candidate at;
    double time; /* log; +inf: it is nowhere */
};

struct walk {
    bool ladder;
    struct chain chain[CHAINS_MAX];
    double first[FIRST]; /* sorted log times of the first trials */
    int first_count;
    uint64_t steps; /* tells behind the first ones */
    double best;
    struct wpk_candidate best_at;
    struct wpk_rng rng; /* of acceptance */
};

static wpk_err make(const struct wpk_course *course, bool ladder, void **state)
{
    struct walk *walk = calloc(1, sizeof *walk);
    struct wpk_rng rng = course->rng;
    if (walk == NULL) {
        return WPK_ENOMEM;
    }
    walk->ladder = ladder;
    walk->best = HUGE_VAL;
    wpk_rng_fork(&rng, &walk->rng);
    for (int i = 0; i < CHAINS_MAX; i++) {
        walk->chain[i].time = HUGE_VAL;
    }
    *state = walk;
    return WPK_OK;
}

static wpk_err make_anneal(const struct wpk_course *course, void **state)
{
    return make(course, false, state);
}

static wpk_err make_mcmc(const struct wpk_course *course, void **state)
{
    return make(course, true, state);
}

static int count_chains(const struct wpk_course *course)
{
    return (int)course->option[CHAINS];
}

/* From the best of the first trials to their median. */
static double spread(const struct walk *walk)
{
    double wide = walk->first_count < 2 ? 0 : walk->first[walk->first_count / 2] - walk->first[0];
    return fmax(wide, SPREAD_LEAST);
}

static double temperature(const struct walk *walk, const struct wpk_course *course, int chain)
{
    int chains = count_chains(course);
    uint64_t times = walk->ladder ? (uint64_t)(chains - 1 - chain) : walk->steps / (uint64_t)chains;
    double t = course->option[START] * spread(walk);
    for (uint64_t i = 0; i < times && t > 1e-6; i++) {
        t *= course->option[COOLING];
    }
    return t;
}

/* The first trials fill the chains with the best of them, in order. */
static void begin(struct walk *walk, const struct wpk_course *course,
                  const struct wpk_course_trial *trial)
{
    int chains = count_chains(course), at = chains;
    if (trial->tell.ok && walk->first_count < FIRST) {
        int i = walk->first_count++;
        while (i > 0 && walk->first[i - 1] > trial->time) {
            walk->first[i] = walk->first[i - 1];
            i--;
        }
        walk->first[i] = trial->time;
    }
    while (at > 0 && trial->time < walk->chain[at - 1].time) {
        at--;
    }
    for (int i = chains - 1; i > at; i--) {
        walk->chain[i] = walk->chain[i - 1];
    }
    if (at < chains) {
        walk->chain[at] = (struct chain){trial->candidate, trial->time};
    }
}

static void exchange(struct walk *walk, const struct wpk_course *course)
{
    for (int i = 0; i + 1 < count_chains(course); i++) {
        struct chain *cold = &walk->chain[i], *hot = &walk->chain[i + 1];
        double gain = (1 / temperature(walk, course, i) - 1 / temperature(walk, course, i + 1)) *
                      (cold->time - hot->time);
        bool both = isfinite(cold->time) && isfinite(hot->time);
        if (both && (gain >= 0 || wpk_rng_unit(&walk->rng) < wpk_real_exp(gain))) {
            struct chain kept = *cold;
            *cold = *hot;
            *hot = kept;
        }
    }
}

/* The tell of ask i belongs to chain i % chains. */
static void learn(void *state, struct wpk_course *course, const struct wpk_course_trial *trial)
{
    struct walk *walk = state;
    int chains = count_chains(course);
    if (trial->time < walk->best) {
        walk->best = trial->time;
        walk->best_at = trial->candidate;
    }
    if (course->learnt <= FIRST) {
        begin(walk, course, trial);
        return;
    }
    int i = (int)((course->learnt - 1) % (uint64_t)chains);
    struct chain *chain = &walk->chain[i];
    double t = temperature(walk, course, i), worse = trial->time - chain->time;
    if (trial->time <= chain->time ||
        (isfinite(trial->time) && wpk_rng_unit(&walk->rng) < wpk_real_exp(-worse / t))) {
        *chain = (struct chain){trial->candidate, trial->time};
    }
    walk->steps++;
    if (walk->ladder && walk->steps % (uint64_t)chains == 0) {
        exchange(walk, course);
    } else if (!walk->ladder && chain->time > walk->best + course->option[BEHIND] * spread(walk)) {
        *chain = (struct chain){walk->best_at, walk->best};
    }
}

static wpk_err propose(void *state, struct wpk_course *course, struct wpk_candidate *out)
{
    const struct walk *walk = state;
    const struct chain *chain = &walk->chain[course->asked % (uint64_t)count_chains(course)];
    return isfinite(chain->time)
               ? wpk_move_neighbour(course->space, &course->seen, &course->rng, &chain->at, out)
               : WPK_EEXHAUSTED;
}

static void put_place(struct wpk_buf *out, const struct wpk_candidate *at, double time)
{
    wpk_snapshot_put_number(out, isfinite(time) ? 1 : 0);
    if (isfinite(time)) {
        wpk_snapshot_put_candidate(out, at);
        wpk_snapshot_put_real(out, time);
    }
}

static void get_place(struct wpk_snapshot_reader *reader, struct wpk_candidate *at, double *time)
{
    *time = HUGE_VAL;
    if (wpk_snapshot_number(reader, 1) != 0) {
        wpk_snapshot_candidate(reader, at);
        *time = wpk_snapshot_real(reader);
    }
}

static void save(const void *state, struct wpk_buf *out)
{
    const struct walk *walk = state;
    for (int i = 0; i < CHAINS_MAX; i++) {
        put_place(out, &walk->chain[i].at, walk->chain[i].time);
    }
    put_place(out, &walk->best_at, walk->best);
    wpk_snapshot_put_number(out, (uint64_t)walk->first_count);
    for (int i = 0; i < walk->first_count; i++) {
        wpk_snapshot_put_real(out, walk->first[i]);
    }
    wpk_snapshot_put_number(out, walk->steps);
    wpk_snapshot_put_rng(out, &walk->rng);
}

static void load(void *state, const struct wpk_course *course WPK_UNUSED,
                 struct wpk_snapshot_reader *reader)
{
    struct walk *walk = state;
    for (int i = 0; i < CHAINS_MAX; i++) {
        get_place(reader, &walk->chain[i].at, &walk->chain[i].time);
    }
    get_place(reader, &walk->best_at, &walk->best);
    walk->first_count = (int)wpk_snapshot_number(reader, FIRST);
    for (int i = 0; i < walk->first_count; i++) {
        walk->first[i] = wpk_snapshot_real(reader);
    }
    walk->steps = wpk_snapshot_number(reader, UINT64_MAX);
    wpk_snapshot_rng(reader, &walk->rng);
}

const struct wpk_strategy_class wpk_strategy_anneal = {
    .name = "anneal",
    .version = "anneal-2",
    .summary = "simulated annealing over one-gene moves; for rugged spaces and small budgets",
    .options = anneal_options,
    .option_count = sizeof(anneal_options) / sizeof(anneal_options[0]),
    .ahead = 8,
    .first = FIRST,
    .drawn = DRAWN,
    .make = make_anneal,
    .free = free,
    .propose = propose,
    .learn = learn,
    .save = save,
    .load = load,
};

const struct wpk_strategy_class wpk_strategy_mcmc = {
    .name = "mcmc",
    .version = "mcmc-2",
    .summary = "Markov chains at a ladder of temperatures; never settles, for long searches",
    .options = mcmc_options,
    .option_count = sizeof(mcmc_options) / sizeof(mcmc_options[0]),
    .ahead = 8,
    .first = FIRST,
    .drawn = DRAWN,
    .make = make_mcmc,
    .free = free,
    .propose = propose,
    .learn = learn,
    .save = save,
    .load = load,
};

#define STEP_RATE 0.7 /* ordered genes: a step to a neighbour, else any value */
#define ONE_TRIES 24  /* changes of one gene */
#define SOME_TRIES 24 /* changes of several, repaired */

static void move_gene(struct wpk_rng *rng, const struct wpk_gene *gene, uint8_t *value)
{
    int count = gene->choice_count;
    if (gene->ordered && wpk_rng_chance(rng, STEP_RATE)) {
        bool up = *value == 0 || (*value + 1 < count && wpk_rng_chance(rng, 0.5));
        *value = (uint8_t)(up ? *value + 1 : *value - 1);
        return;
    }
    int drawn = (int)wpk_rng_below(rng, (uint64_t)count - 1); /* any but the present one */
    *value = (uint8_t)(drawn < *value ? drawn : drawn + 1);
}

/* Set one gene that has several choices to another one: of ordered genes mostly a neighbour. False:
 * there is none. */
static bool move_one(const struct wpk_space *space, struct wpk_rng *rng,
                     struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    int open[WPK_GENES_MAX], count = 0;
    for (int g = 0; g < variant->gene_count; g++) {
        if (variant->genes[g].choice_count > 1) {
            open[count++] = g;
        }
    }
    if (count == 0) {
        return false;
    }
    int g = open[wpk_rng_below(rng, (uint64_t)count)];
    move_gene(rng, &variant->genes[g], &candidate->gene[g]);
    return true;
}

void wpk_move_some(const struct wpk_space *space, struct wpk_rng *rng,
                   struct wpk_candidate *candidate)
{
    while (move_one(space, rng, candidate) && wpk_rng_chance(rng, 0.5)) {
    }
}

void wpk_move_cross(const struct wpk_space *space, struct wpk_rng *rng,
                    const struct wpk_candidate *first, const struct wpk_candidate *second,
                    struct wpk_candidate *child)
{
    const struct wpk_variant *to = &space->variants[first->variant];
    const struct wpk_variant *from = &space->variants[second->variant];
    *child = *first;
    for (int g = 0; g < to->gene_count; g++) {
        if (!wpk_rng_chance(rng, 0.5)) {
            continue;
        }
        int source = to == from ? g
                                : WPK_FIND(struct wpk_gene, name, from->genes, from->gene_count,
                                           to->genes[g].name);
        if (source < 0) {
            continue;
        }
        int choice =
            WPK_FIND(struct wpk_gene_value, text, to->genes[g].choice, to->genes[g].choice_count,
                     from->genes[source].choice[second->gene[source]].text);
        if (choice >= 0) {
            child->gene[g] = (uint8_t)choice;
        }
    }
}

wpk_err wpk_move_neighbour(const struct wpk_space *space, const struct wpk_seen *seen,
                           struct wpk_rng *rng, const struct wpk_candidate *from,
                           struct wpk_candidate *out)
{
    for (int i = 0; i < ONE_TRIES + SOME_TRIES; i++) {
        struct wpk_candidate one = *from;
        wpk_err err = WPK_OK;
        if (i < ONE_TRIES) {
            err = move_one(space, rng, &one) && wpk_space_is_legal(space, &one) ? WPK_OK
                                                                                : WPK_EEXHAUSTED;
        } else {
            wpk_move_some(space, rng, &one);
            err = wpk_space_repair(space, rng, &one);
        }
        if (err == WPK_OK && !wpk_seen_has(seen, space, &one)) {
            *out = one;
            return WPK_OK;
        }
    }
    return WPK_EEXHAUSTED;
}
