/* SPDX-License-Identifier: Apache-2.0 */
/* The genetic algorithm: one chromosome for the whole candidate, algorithm and layout included.
 *
 *   generation 0   constructed candidates and random draws, as many as the population holds
 *   afterwards     each ask makes one child: of two parents drawn by roulette wheel (crossover), or
 *                  of one (mutation); the population keeps the best that were told (elitism)
 *
 * It is a steady-state algorithm, because builders must not wait for a generation to end: ask i is
 * a function of the seed and of the tells before i - AHEAD, and of nothing else. Tells that come
 * sooner wait in `pending`; an ask that comes too soon is refused. So the asks are the same
 * whatever the number of workers and the order in which results came in.
 *
 *   source  population grows with the logarithm of the space's size, roulette wheel on fitness,
 *           crossover, mutation, elitism: Woodpecker-DL, section on genetic search. Steady state:
 *           Whitley, The GENITOR algorithm, ICGA 1989. The rates were chosen by the synthetic
 *           spaces of strategy_test.c. */
#include "search/seen.h"
#include "search/strategies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VERSION "ga-4"
#define POPULATION_MIN 8
#define POPULATION_MAX 64
#define AHEAD 16 /* asks under way: keeps two builders busy past a build of two seconds */
#define OUTSTANDING_MAX 256
#define CHILD_TRIES_MAX 64
#define CROSSOVER_RATE 0.5
#define IMMIGRANT_RATE 0.04  /* children that are random draws: the way out of a dead end */
#define SELECTION_POWER 12.0 /* fitness^power on the wheel: times of good candidates lie close */
#define STEP_RATE 0.7        /* ordered genes: a step to a neighbour, else any value */

struct individual {
    struct wpk_candidate candidate;
    double relative; /* time / reference; smaller is better */
};

struct outstanding {
    struct wpk_candidate candidate;
    struct wpk_tell tell;
};

struct wpk_strategy {
    const struct wpk_space *space;
    struct wpk_rng rng;
    struct wpk_seen seen;
    struct wpk_candidate constructed[POPULATION_MAX];
    int constructed_count;
    int constructed_next;
    int population_size;
    struct individual population[POPULATION_MAX]; /* sorted, best first; only those with a time */
    int population_count;
    uint64_t asked;   /* asks given; never less than told, told never less than applied */
    uint64_t told;    /* of them, told */
    uint64_t applied; /* of them, taken into the population */
    struct outstanding pending[OUTSTANDING_MAX]; /* ask i at i % OUTSTANDING_MAX, until applied */
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

static void ga_free(struct wpk_strategy *ga)
{
    if (ga != NULL) {
        wpk_seen_fini(&ga->seen);
        free(ga);
    }
}

static wpk_err ga_make(const struct wpk_space *space, uint64_t seed, struct wpk_strategy **out)
{
    struct wpk_strategy *ga = calloc(1, sizeof *ga);
    if (ga == NULL) {
        return WPK_ENOMEM;
    }
    ga->space = space;
    wpk_rng_seed(&ga->rng, seed);
    ga->population_size = population_for(space);
    /* Seven in eight constructed: the rest is drawn: what nobody thought of has a chance. */
    wpk_err err = wpk_space_construct(space, ga->constructed, (ga->population_size * 7 + 7) / 8,
                                      &ga->constructed_count);
    if (err != WPK_OK) {
        ga_free(ga);
        return err;
    }
    *out = ga;
    return WPK_OK;
}

/* ---- the population */

static bool has_time(const struct wpk_tell *tell)
{
    return tell->ok && tell->relative > 0 && isfinite(tell->relative);
}

static void insert(struct wpk_strategy *ga, const struct wpk_candidate *candidate,
                   const struct wpk_tell *tell)
{
    if (!has_time(tell)) {
        return;
    }
    int at = ga->population_count;
    while (at > 0 && ga->population[at - 1].relative > tell->relative) {
        at--;
    }
    if (at == ga->population_size) {
        return;
    }
    if (ga->population_count < ga->population_size) {
        ga->population_count++;
    }
    memmove(&ga->population[at + 1], &ga->population[at],
            (size_t)(ga->population_count - 1 - at) * sizeof ga->population[0]);
    ga->population[at] = (struct individual){*candidate, tell->relative};
}

/* Roulette wheel: a share of the wheel for each individual, by fitness relative to the best. */
static const struct individual *select_parent(struct wpk_strategy *ga)
{
    WPK_ASSERT(ga->population_count > 0);
    double share[POPULATION_MAX];
    double whole = 0;
    for (int i = 0; i < ga->population_count; i++) {
        double fitness = ga->population[0].relative / ga->population[i].relative;
        share[i] = pow(fitness, SELECTION_POWER);
        whole += share[i];
    }
    double ball = wpk_rng_unit(&ga->rng) * whole;
    for (int i = 0; i < ga->population_count; i++) {
        ball -= share[i];
        if (ball < 0) {
            return &ga->population[i];
        }
    }
    return &ga->population[ga->population_count - 1];
}

/* ---- children */

static int find_gene(const struct wpk_variant *variant, const char *name)
{
    for (int g = 0; g < variant->gene_count; g++) {
        if (strcmp(variant->genes[g].name, name) == 0) {
            return g;
        }
    }
    return -1;
}

/* The choice of `gene` that reads as `text`; -1 when it has none. */
static int find_choice(const struct wpk_gene *gene, const char *text)
{
    for (int c = 0; c < gene->choice_count; c++) {
        if (strcmp(gene->choice[c].text, text) == 0) {
            return c;
        }
    }
    return -1;
}

/* Uniform crossover: the child is of the first parent's variant, and takes each gene from the
 * second with probability 1/2, where that one has a gene of this name with a value that exists. */
static void cross(struct wpk_strategy *ga, const struct wpk_candidate *first,
                  const struct wpk_candidate *second, struct wpk_candidate *child)
{
    const struct wpk_variant *to = &ga->space->variants[first->variant];
    const struct wpk_variant *from = &ga->space->variants[second->variant];
    *child = *first;
    for (int g = 0; g < to->gene_count; g++) {
        if (!wpk_rng_chance(&ga->rng, 0.5)) {
            continue;
        }
        int source = to == from ? g : find_gene(from, to->genes[g].name);
        if (source < 0) {
            continue;
        }
        int choice =
            find_choice(&to->genes[g], from->genes[source].choice[second->gene[source]].text);
        if (choice >= 0) {
            child->gene[g] = (uint8_t)choice;
        }
    }
}

static void mutate_gene(struct wpk_strategy *ga, const struct wpk_gene *gene, uint8_t *value)
{
    int count = gene->choice_count;
    if (gene->ordered && wpk_rng_chance(&ga->rng, STEP_RATE)) {
        bool up = *value == 0 || (*value + 1 < count && wpk_rng_chance(&ga->rng, 0.5));
        *value = (uint8_t)(up ? *value + 1 : *value - 1);
        return;
    }
    /* Any value but the present one. */
    int drawn = (int)wpk_rng_below(&ga->rng, (uint64_t)count - 1);
    *value = (uint8_t)(drawn < *value ? drawn : drawn + 1);
}

/* Redraw at least one gene; each further one with probability 1/2. */
static void mutate(struct wpk_strategy *ga, struct wpk_candidate *child)
{
    const struct wpk_variant *variant = &ga->space->variants[child->variant];
    int open[WPK_GENES_MAX];
    int open_count = 0;
    for (int g = 0; g < variant->gene_count; g++) {
        if (variant->genes[g].choice_count > 1) {
            open[open_count++] = g;
        }
    }
    if (open_count == 0) {
        return;
    }
    do {
        int g = open[wpk_rng_below(&ga->rng, (uint64_t)open_count)];
        mutate_gene(ga, &variant->genes[g], &child->gene[g]);
    } while (wpk_rng_chance(&ga->rng, 0.5));
}

/* One child that was never asked for.
 *   errors  WPK_EEXHAUSTED the parents gave none */
static wpk_err breed(struct wpk_strategy *ga, struct wpk_candidate *out)
{
    for (int i = 0; i < CHILD_TRIES_MAX; i++) {
        struct wpk_candidate child = select_parent(ga)->candidate;
        bool crossed = wpk_rng_chance(&ga->rng, CROSSOVER_RATE);
        if (crossed) {
            struct wpk_candidate first = child;
            cross(ga, &first, &select_parent(ga)->candidate, &child);
        }
        if (!crossed || wpk_rng_chance(&ga->rng, 0.5)) {
            mutate(ga, &child);
        }
        if (wpk_space_repair(ga->space, &ga->rng, &child) == WPK_OK &&
            !wpk_seen_has(&ga->seen, ga->space, &child)) {
            *out = child;
            return WPK_OK;
        }
    }
    return WPK_EEXHAUSTED;
}

/* Generation 0 interleaves the two kinds, so that a small budget sees both. */
static bool next_constructed(struct wpk_strategy *ga, struct wpk_candidate *out)
{
    if (ga->asked % 8 == 7 && ga->asked < (uint64_t)ga->population_size) {
        return false;
    }
    while (ga->constructed_next < ga->constructed_count) {
        const struct wpk_candidate *candidate = &ga->constructed[ga->constructed_next++];
        if (!wpk_seen_has(&ga->seen, ga->space, candidate)) {
            *out = *candidate;
            return true;
        }
    }
    return false;
}

static wpk_err next_candidate(struct wpk_strategy *ga, struct wpk_candidate *out)
{
    bool first_generation = ga->asked < (uint64_t)ga->population_size;
    if (first_generation && next_constructed(ga, out)) {
        return WPK_OK;
    }
    bool draws =
        first_generation || ga->population_count == 0 || wpk_rng_chance(&ga->rng, IMMIGRANT_RATE);
    if (!draws && breed(ga, out) == WPK_OK) {
        return WPK_OK;
    }
    return wpk_seen_draw(&ga->seen, ga->space, &ga->rng, out);
}

/* Number `i` of an ask. The next ask says that the space is exhausted where this one has others. */
static wpk_err take_candidate(struct wpk_strategy *ga, int i, struct wpk_candidate *out)
{
    const struct wpk_rng rng = ga->rng;
    const struct wpk_seen seen = ga->seen;
    const int constructed_next = ga->constructed_next;
    wpk_err err = next_candidate(ga, out);
    if (err == WPK_OK) {
        err = wpk_seen_put(&ga->seen, ga->space, out);
    }
    if (err == WPK_ENOMEM || (err == WPK_EEXHAUSTED && i > 0)) {
        ga->rng = rng;
        ga->seen = seen;
        ga->constructed_next = constructed_next;
    }
    return err;
}

/* ---- asks and tells */

/* How many tells ask number `ask` depends on. */
static uint64_t tells_needed(const struct wpk_strategy *ga, uint64_t ask)
{
    bool first_generation = ask < (uint64_t)ga->population_size;
    return first_generation || ask < AHEAD ? 0 : ask - AHEAD;
}

static wpk_err ga_ask(struct wpk_strategy *ga, int count, struct wpk_candidate *out, int *filled)
{
    *filled = 0;
    while (*filled < count) {
        uint64_t needed = tells_needed(ga, ga->asked);
        if (needed > ga->told) {
            return WPK_OK;
        }
        while (ga->applied < needed) {
            const struct outstanding *next = &ga->pending[ga->applied++ % OUTSTANDING_MAX];
            insert(ga, &next->candidate, &next->tell);
        }
        struct wpk_candidate *candidate = &out[*filled];
        wpk_err err = take_candidate(ga, *filled, candidate);
        if (err != WPK_OK) {
            return *filled > 0 ? WPK_OK : err;
        }
        WPK_ASSERT(ga->asked - ga->applied < OUTSTANDING_MAX);
        ga->pending[ga->asked++ % OUTSTANDING_MAX].candidate = *candidate;
        (*filled)++;
    }
    return WPK_OK;
}

static void ga_tell(struct wpk_strategy *ga, const struct wpk_candidate *candidate,
                    const struct wpk_tell *tell)
{
    if (ga->told < ga->asked) {
        struct outstanding *next = &ga->pending[ga->told % OUTSTANDING_MAX];
        if (wpk_candidate_equal(&next->candidate, candidate)) {
            next->tell = *tell;
            ga->told++;
            return;
        }
    }
    /* Not asked for here: it comes from history, and is as good a parent as any. Forgetting it for
     * want of memory costs a trial, no more. */
    if (!wpk_seen_has(&ga->seen, ga->space, candidate)) {
        wpk_err err = wpk_seen_put(&ga->seen, ga->space, candidate);
        (void)err;
        insert(ga, candidate, tell);
    }
}

/* ---- snapshots */

static void save_pending(const struct wpk_strategy *ga, struct wpk_buf *out)
{
    for (uint64_t ask = ga->applied; ask < ga->asked; ask++) {
        const struct outstanding *pending = &ga->pending[ask % OUTSTANDING_MAX];
        wpk_snapshot_put_candidate(out, &pending->candidate);
        if (ask < ga->told) {
            wpk_snapshot_put_real(out, has_time(&pending->tell) ? pending->tell.relative : 0);
        }
    }
}

static wpk_err ga_save(const struct wpk_strategy *ga, struct wpk_buf *out)
{
    wpk_snapshot_begin(out, VERSION, ga->space);
    wpk_snapshot_put_rng(out, &ga->rng);
    wpk_snapshot_put_number(out, (uint64_t)ga->constructed_next);
    wpk_snapshot_put_number(out, (uint64_t)ga->population_count);
    for (int i = 0; i < ga->population_count; i++) {
        wpk_snapshot_put_candidate(out, &ga->population[i].candidate);
        wpk_snapshot_put_real(out, ga->population[i].relative);
    }
    wpk_snapshot_put_number(out, ga->asked);
    wpk_snapshot_put_number(out, ga->asked - ga->told);
    wpk_snapshot_put_number(out, ga->asked - ga->applied);
    save_pending(ga, out);
    return wpk_seen_save(&ga->seen, out);
}

static void load_population(struct wpk_strategy *ga, struct wpk_snapshot_reader *reader)
{
    ga->population_count = (int)wpk_snapshot_number(reader, (uint64_t)ga->population_size);
    for (int i = 0; i < ga->population_count; i++) {
        struct individual *one = &ga->population[i];
        wpk_snapshot_candidate(reader, &one->candidate);
        one->relative = wpk_snapshot_real(reader);
        bool sorted = i == 0 || one->relative >= one[-1].relative;
        if (!(one->relative > 0) || !sorted) {
            reader->err = WPK_EPARSE;
        }
    }
}

static void load_pending(struct wpk_strategy *ga, struct wpk_snapshot_reader *reader)
{
    ga->asked = wpk_snapshot_number(reader, UINT64_MAX);
    uint64_t untold = wpk_snapshot_number(reader, OUTSTANDING_MAX - 1);
    uint64_t unapplied = wpk_snapshot_number(reader, OUTSTANDING_MAX - 1);
    if (untold > unapplied || unapplied > ga->asked) {
        reader->err = WPK_EPARSE;
        return;
    }
    ga->told = ga->asked - untold;
    ga->applied = ga->asked - unapplied;
    for (uint64_t ask = ga->applied; ask < ga->asked; ask++) {
        struct outstanding *pending = &ga->pending[ask % OUTSTANDING_MAX];
        wpk_snapshot_candidate(reader, &pending->candidate);
        if (ask < ga->told) {
            pending->tell.relative = wpk_snapshot_real(reader);
            pending->tell.ok = pending->tell.relative > 0;
        }
    }
}

static wpk_err ga_load(const struct wpk_space *space, const char *text, struct wpk_strategy **out,
                       struct wpk_diag *diag)
{
    struct wpk_snapshot_reader reader;
    struct wpk_strategy *ga = NULL;
    wpk_err err = wpk_snapshot_open(&reader, text, VERSION, space, diag);
    if (err == WPK_OK) {
        err = ga_make(space, 0, &ga);
    }
    if (err != WPK_OK) {
        return err;
    }
    wpk_snapshot_rng(&reader, &ga->rng);
    ga->constructed_next = (int)wpk_snapshot_number(&reader, (uint64_t)ga->constructed_count);
    load_population(ga, &reader);
    load_pending(ga, &reader);
    err = wpk_seen_load(&ga->seen, &reader);
    if (err == WPK_OK) {
        err = wpk_snapshot_close(&reader, diag);
    }
    if (err != WPK_OK) {
        ga_free(ga);
        return err;
    }
    *out = ga;
    return WPK_OK;
}

const struct wpk_strategy_class wpk_strategy_ga = {
    .name = "ga",
    .version = VERSION,
    .make = ga_make,
    .ask = ga_ask,
    .tell = ga_tell,
    .save = ga_save,
    .load = ga_load,
    .free = ga_free,
};
