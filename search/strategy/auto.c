/* SPDX-License-Identifier: Apache-2.0 */
/* The default, which needs no options. It begins with the constructed candidates that are predicted
 * to be fastest. Then every ask is drafted by several sources, and the cost model ranks the drafts:
 *
 *   construct   the next constructed candidates
 *   neighbour   one gene of a leader changed
 *   cross       two leaders crossed
 *   walk        several steps from a leader, each the best of some by the model
 *   draw        random draws
 *
 * Most asks are the best draft of all. The others are the best of one source, which a bandit
 * chooses by how often what it drafted became a leader. Variants of which nothing runs are left to
 * draws.
 *
 *   source  ranking drafts by a learnt model: Zheng et al., Ansor, OSDI 2020; choosing among
 *           operators by their credit: Fialho et al., Analyzing bandit-based adaptive operator
 *           selection mechanisms, 2010 */
#include "search/model/prior.h"
#include "search/strategy/model.h"
#include "search/strategy/strategies.h"

#include <math.h>
#include <stdlib.h>

#define FIRST 8
#define CONSTRUCTED 64
#define LEADERS 8
#define WALK_STEPS 4
#define WALK_TRIES 5
#define PENDING 256    /* asks whose source is remembered */
#define FORGET 0.95    /* of a source's credit, with each of its tells */
#define NOTHING_RUNS 4 /* failures of a variant without a success */
#define FIT_EVERY 4    /* tells, at first */
#define FIT_SHARE 16   /* later a sixteenth of the trials */

enum source { CONSTRUCT, NEIGHBOUR, CROSS, WALK, DRAW, SOURCES };

static const int drafts[SOURCES] = {8, 24, 8, 3, 8};
static const char *const names[SOURCES] = {"constructed", "neighbour", "crossed", "walked",
                                           "drawn"};

/* The number of drafts that an ask is chosen from. Long searches are given to those who have many
 * workers: their asks must be cheap, and each of them decides less. */
#define MANY 512 /* asks, after which each source drafts one, and every eighth ask has a walk */

static int count_drafts(enum source source, uint64_t asked)
{
    return asked < MANY ? drafts[source] : source != WALK || asked % 8 == 0 ? 1 : 0;
}

enum { EXPLORE };

static const struct wpk_strategy_option options[] = {
    [EXPLORE] = {"explore", "share of the asks that a source other than the best drafts", 0, 1,
                 0.25, false},
};

struct draft {
    struct wpk_candidate candidate;
    double time; /* predicted, log */
};

struct automatic {
    struct wpk_cost_model *model;
    struct wpk_candidate constructed[CONSTRUCTED];
    int constructed_count;
    double gained[SOURCES], tried[SOURCES]; /* credit */
    uint8_t source[PENDING];                /* of ask i at i % PENDING */
};

static void auto_free(void *state)
{
    struct automatic *a = state;
    wpk_cost_model_free(a->model);
    free(a);
}

static wpk_err make(const struct wpk_course *course, void **state)
{
    struct automatic *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return WPK_ENOMEM;
    }
    a->model = wpk_cost_model_new(course->prior == NULL ? NULL : &course->prior->trees);
    wpk_err err = a->model == NULL ? WPK_ENOMEM
                                   : wpk_space_construct(course->space, a->constructed, CONSTRUCTED,
                                                         &a->constructed_count);
    if (err != WPK_OK) {
        auto_free(a);
        return err;
    }
    *state = a;
    return WPK_OK;
}

/* ---- leaders */

/* The best trials, best first, at most three of one variant.
 *   shape   out [LEADERS]; returns how many */
static int list_leaders(const struct wpk_course *course, int *out)
{
    int count = 0;
    for (int round = 0; round < LEADERS; round++) {
        int best = -1;
        for (int t = 0; t < course->trial_count; t++) {
            int same = 0;
            bool taken = false;
            for (int k = 0; k < count; k++) {
                const struct wpk_course_trial *leader = &course->trial[out[k]];
                same += leader->candidate.variant == course->trial[t].candidate.variant;
                taken = taken || out[k] == t;
            }
            bool better = best < 0 || course->trial[t].time < course->trial[best].time;
            if (course->trial[t].tell.ok && !taken && (same < 3 || round >= 4) && better) {
                best = t;
            }
        }
        if (best < 0) {
            break;
        }
        out[count++] = best;
    }
    return count;
}

/* True if several trials of the variant failed, and none ran. */
static bool never_runs(const struct wpk_course *course, int variant)
{
    int failed = 0;
    for (int t = 0; t < course->trial_count; t++) {
        if (course->trial[t].candidate.variant == variant) {
            if (course->trial[t].tell.ok) {
                return false;
            }
            failed++;
        }
    }
    return failed >= NOTHING_RUNS;
}

/* ---- drafts */

struct drafting {
    struct automatic *a;
    struct wpk_course *course;
    int leader[LEADERS];
    int leader_count;
};

static const struct wpk_candidate *pick_leader(struct drafting *d)
{
    /* the first one as often as all others together */
    uint64_t at = wpk_rng_chance(&d->course->rng, 0.5)
                      ? 0
                      : wpk_rng_below(&d->course->rng, (uint64_t)d->leader_count);
    return &d->course->trial[d->leader[at]].candidate;
}

static wpk_err neighbour(struct drafting *d, const struct wpk_candidate *from,
                         struct wpk_candidate *out)
{
    return wpk_move_neighbour(d->course->space, &d->course->seen, &d->course->rng, from, out);
}

static wpk_err cross(struct drafting *d, struct wpk_candidate *out)
{
    struct wpk_course *course = d->course;
    wpk_move_cross(course->space, &course->rng, pick_leader(d), pick_leader(d), out);
    wpk_err err = wpk_space_repair(course->space, &course->rng, out);
    return err == WPK_OK && wpk_seen_has(&course->seen, course->space, out) ? WPK_EEXHAUSTED : err;
}

static wpk_err walk(struct drafting *d, struct wpk_candidate *out)
{
    struct wpk_candidate at = *pick_leader(d);
    bool moved = false;
    for (int step = 0; step < WALK_STEPS; step++) {
        double best = HUGE_VAL;
        for (int i = 0; i < WALK_TRIES; i++) {
            struct wpk_candidate one;
            if (neighbour(d, &at, &one) == WPK_OK) {
                double time = wpk_cost_model_time(d->a->model, d->course->space, &one);
                if (time < best) {
                    best = time;
                    *out = one;
                    moved = true;
                }
            }
        }
        at = moved ? *out : at;
    }
    return moved ? WPK_OK : WPK_EEXHAUSTED;
}

/* The `number`-th constructed candidate that is not seen. */
static wpk_err constructed(struct drafting *d, int number, struct wpk_candidate *out)
{
    for (int i = 0; i < d->a->constructed_count; i++) {
        const struct wpk_candidate *one = &d->a->constructed[i];
        if (!wpk_seen_has(&d->course->seen, d->course->space, one) && number-- == 0) {
            *out = *one;
            return WPK_OK;
        }
    }
    return WPK_EEXHAUSTED;
}

static wpk_err draw(struct drafting *d, struct wpk_candidate *out)
{
    wpk_err err = wpk_space_draw(d->course->space, &d->course->rng, out);
    return err == WPK_OK && wpk_seen_has(&d->course->seen, d->course->space, out) ? WPK_EEXHAUSTED
                                                                                  : err;
}

static wpk_err draft(struct drafting *d, enum source source, int number, struct wpk_candidate *out)
{
    if (source == CONSTRUCT) {
        return constructed(d, number, out);
    }
    if (source == DRAW) {
        return draw(d, out);
    }
    if (d->leader_count == 0) {
        return WPK_EEXHAUSTED;
    }
    return source == NEIGHBOUR ? neighbour(d, pick_leader(d), out)
           : source == CROSS   ? cross(d, out)
                               : walk(d, out);
}

/* A source that was seldom tried is worth a trial. */
static enum source choose_source(struct automatic *a, struct wpk_rng *rng)
{
    double share[SOURCES], sum = 0;
    for (int s = 0; s < SOURCES; s++) {
        share[s] = (a->gained[s] + 0.5) / (a->tried[s] + 1);
        sum += share[s];
    }
    double ball = wpk_rng_unit(rng) * sum;
    int s = 0;
    while (s < SOURCES - 1 && ball >= share[s]) {
        ball -= share[s++];
    }
    return (enum source)s;
}

static wpk_err propose(void *state, struct wpk_course *course, struct wpk_candidate *out)
{
    struct automatic *a = state;
    struct drafting d = {.a = a, .course = course};
    struct draft best[SOURCES];
    int chosen = -1;
    d.leader_count = list_leaders(course, d.leader);
    for (int s = 0; s < SOURCES; s++) {
        best[s].time = HUGE_VAL;
        for (int i = 0; i < count_drafts((enum source)s, course->asked); i++) {
            struct wpk_candidate one;
            wpk_err err = draft(&d, (enum source)s, i, &one);
            if (err == WPK_ENOMEM) {
                return err;
            }
            if (err != WPK_OK || (s != DRAW && never_runs(course, one.variant))) {
                continue;
            }
            double time = wpk_cost_model_time(a->model, course->space, &one);
            if (time < best[s].time) {
                best[s] = (struct draft){one, time};
            }
        }
        if (isfinite(best[s].time) && (chosen < 0 || best[s].time < best[chosen].time)) {
            chosen = s;
        }
    }
    if (wpk_rng_chance(&course->rng, course->option[EXPLORE])) {
        int other = (int)choose_source(a, &course->rng);
        chosen = isfinite(best[other].time) ? other : chosen;
    }
    if (chosen < 0) {
        return WPK_EEXHAUSTED;
    }
    a->source[course->asked % PENDING] = (uint8_t)chosen;
    course->source = names[chosen];
    *out = best[chosen].candidate;
    return WPK_OK;
}

/* ---- learning */

/* True if the trial is a leader: one of the fastest tenth. */
static bool leads(const struct wpk_course *course, const struct wpk_course_trial *trial)
{
    int faster = 0;
    for (int t = 0; t < course->trial_count; t++) {
        faster += course->trial[t].time < trial->time;
    }
    return trial->tell.ok && faster <= course->trial_count / 10;
}

static void learn(void *state, struct wpk_course *course, const struct wpk_course_trial *trial)
{
    struct automatic *a = state;
    if (course->learnt > FIRST) {
        int source = a->source[(course->learnt - 1) % PENDING];
        a->gained[source] = FORGET * a->gained[source] + (leads(course, trial) ? 1 : 0);
        a->tried[source] = FORGET * a->tried[source] + 1;
    }
    int fitted = wpk_cost_model_fitted(a->model);
    int wait = fitted / FIT_SHARE > FIT_EVERY ? fitted / FIT_SHARE : FIT_EVERY;
    if (fitted > course->trial_count || course->trial_count >= fitted + wait) {
        wpk_cost_model_fit(a->model, course);
    }
}

/* ---- snapshots */

static void save(const void *state, struct wpk_buf *out)
{
    const struct automatic *a = state;
    for (int s = 0; s < SOURCES; s++) {
        wpk_snapshot_put_real(out, a->gained[s]);
        wpk_snapshot_put_real(out, a->tried[s]);
    }
    wpk_buf_append_byte(out, ' ');
    for (int i = 0; i < PENDING; i++) {
        wpk_buf_append_byte(out, (char)('0' + a->source[i]));
    }
    wpk_snapshot_put_number(out, (uint64_t)wpk_cost_model_fitted(a->model));
}

static void load(void *state, const struct wpk_course *course, struct wpk_snapshot_reader *reader)
{
    struct automatic *a = state;
    size_t length;
    for (int s = 0; s < SOURCES; s++) {
        a->gained[s] = wpk_snapshot_real(reader);
        a->tried[s] = wpk_snapshot_real(reader);
        if (!(a->gained[s] >= 0) || !(a->tried[s] >= 0)) {
            reader->err = WPK_EPARSE;
        }
    }
    const char *sources = wpk_snapshot_word(reader, &length);
    if (length != PENDING) {
        reader->err = WPK_EPARSE;
    }
    for (size_t i = 0; i < PENDING && reader->err == WPK_OK; i++) {
        a->source[i] = (uint8_t)(sources[i] - '0');
        if (a->source[i] >= SOURCES) {
            reader->err = WPK_EPARSE;
        }
    }
    int fitted = (int)wpk_snapshot_number(reader, (uint64_t)course->trial_count);
    if (fitted > 0 && reader->err == WPK_OK) {
        wpk_cost_model_restore(a->model, course, fitted);
    }
}

const struct wpk_strategy_class wpk_strategy_auto = {
    .name = "auto",
    .version = "auto-3",
    .summary = "the default: construction, then drafts of several sources, ranked by a cost model",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .ahead = 6,
    .keeps = true,
    .takes_prior = true,
    .first = FIRST,
    .is_slow = true,
    .make = make,
    .free = auto_free,
    .propose = propose,
    .learn = learn,
    .save = save,
    .load = load,
};
