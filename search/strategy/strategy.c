/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a search, which all strategies share. */
#include "search/strategy/strategy.h"

#include "common/format.h"
#include "search/model/prior.h"
#include "search/strategy/seen.h"
#include "search/strategy/strategies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTSTANDING_MAX 256
#define FIRST_MAX 64
#define LOG_STEPS 1048576.0            /* of a logarithm, in 1 */
#define BEST_KEPT (WPK_TRIALS_MAX / 8) /* of the trials, where they are thinned out */

struct outstanding {
    struct wpk_candidate candidate;
    struct wpk_tell tell;
    int hint; /* its number; -1: none */
    const char *source;
};

struct wpk_strategy {
    const struct wpk_strategy_class *class;
    struct wpk_course course;
    void *state; /* of the class */
    struct wpk_candidate first[FIRST_MAX];
    int first_count; /* asks of construction, with those drawn between them */
    int constructed_count, constructed_next;
    struct wpk_hints hints;
    bool exhausted;
    uint64_t told;    /* asks told, in their order; never more than asked */
    uint64_t applied; /* of them, learnt from; never more than told */
    struct outstanding pending[OUTSTANDING_MAX]; /* ask i at i % OUTSTANDING_MAX, until applied */
};

/* ---- making */

void wpk_strategy_free(struct wpk_strategy *strategy)
{
    if (strategy == NULL) {
        return;
    }
    if (strategy->state != NULL) {
        strategy->class->free(strategy->state);
    }
    wpk_seen_fini(&strategy->course.seen);
    free(strategy->course.trial);
    free(strategy);
}

static wpk_err construct(struct wpk_strategy *strategy)
{
    const struct wpk_strategy_class *class = strategy->class;
    int count = class->first_of != NULL ? class->first_of(strategy->course.space) : class->first;
    if (count == 0) {
        return WPK_OK;
    }
    count = count < FIRST_MAX ? count : FIRST_MAX;
    int drawn = class->drawn == 0 ? 0 : count / class->drawn;
    strategy->first_count = count;
    return wpk_space_construct(strategy->course.space, strategy->first, count - drawn,
                               &strategy->constructed_count);
}

wpk_err wpk_strategy_make(const struct wpk_strategy_class *class, const struct wpk_space *space,
                          const struct wpk_strategy_setup *setup, struct wpk_strategy **out)
{
    struct wpk_strategy *strategy = calloc(1, sizeof *strategy);
    if (strategy == NULL) {
        return WPK_ENOMEM;
    }
    strategy->class = class;
    strategy->course.space = space;
    strategy->course.prior = setup->prior;
    strategy->course.relatives = setup->relatives;
    strategy->course.relative_count = class->takes_relatives ? setup->relative_count : 0;
    strategy->course.twin_count = class->takes_relatives ? setup->twin_count : 0;
    strategy->hints = (struct wpk_hints){.hint = setup->hints, .count = setup->hint_count};
    strategy->course.best = -1;
    strategy->course.origin = HUGE_VAL;
    wpk_rng_seed(&strategy->course.rng, setup->seed);
    wpk_err err = wpk_strategy_read_options(class, setup->options, strategy->course.option);
    if (err == WPK_OK && class->keeps) {
        strategy->course.trial = calloc(WPK_TRIALS_MAX, sizeof(struct wpk_course_trial));
        err = strategy->course.trial == NULL ? WPK_ENOMEM : WPK_OK;
    }
    err = err == WPK_OK ? construct(strategy) : err;
    if (err == WPK_OK && class->make != NULL) {
        err = class->make(&strategy->course, &strategy->state);
    }
    if (err != WPK_OK) {
        wpk_strategy_free(strategy);
        return err;
    }
    *out = strategy;
    return WPK_OK;
}

/* ---- learning */

/* Rounded, so that what is in units of another anchor teaches the same. */
static double log_time(struct wpk_course *course, double relative)
{
    double time = wpk_real_log(relative);
    course->origin = isfinite(course->origin) ? course->origin : time;
    return rint((time - course->origin) * LOG_STEPS) / LOG_STEPS;
}

static int compare_times(const void *a, const void *b)
{
    const struct wpk_course_trial *x = *(const struct wpk_course_trial *const *)a;
    const struct wpk_course_trial *y = *(const struct wpk_course_trial *const *)b;
    return x->time != y->time ? (x->time < y->time ? -1 : 1) : (x > y) - (x < y);
}

/* Keep the best and every second one of the others. */
static void thin_out(struct wpk_course *course)
{
    const struct wpk_course_trial *sorted[WPK_TRIALS_MAX];
    bool keep[WPK_TRIALS_MAX];
    int kept = 0;
    for (int i = 0; i < course->trial_count; i++) {
        sorted[i] = &course->trial[i];
        keep[i] = i % 2 == 1;
    }
    qsort(sorted, (size_t)course->trial_count, sizeof(sorted[0]), compare_times);
    for (int i = 0; i < BEST_KEPT && i < course->trial_count; i++) {
        keep[sorted[i] - course->trial] = true;
    }
    for (int i = 0; i < course->trial_count; i++) {
        if (keep[i]) {
            course->best = i == course->best ? kept : course->best;
            course->trial[kept++] = course->trial[i];
        }
    }
    course->trial_count = kept;
}

static void apply(struct wpk_strategy *strategy, const struct wpk_candidate *candidate,
                  const struct wpk_tell *tell)
{
    struct wpk_course *course = &strategy->course;
    struct wpk_course_trial one = {.candidate = *candidate, .tell = *tell};
    bool timed = tell->ok && tell->relative > 0 && isfinite(tell->relative);
    one.tell.ok = timed;
    one.time = timed ? log_time(course, tell->relative) : HUGE_VAL;
    course->learnt++;
    course->ok_count += timed;
    if (strategy->class->keeps) {
        if (course->trial_count == WPK_TRIALS_MAX) {
            thin_out(course);
        }
        course->trial[course->trial_count++] = one;
        if (timed && (course->best < 0 || one.time < course->trial[course->best].time)) {
            course->best = course->trial_count - 1;
        }
    }
    if (strategy->class->learn != NULL) {
        strategy->class->learn(strategy->state, course, &one);
    }
}

uint64_t wpk_strategy_asked(const struct wpk_strategy *strategy)
{
    return strategy->course.asked;
}

const char *wpk_strategy_source(const struct wpk_strategy *strategy, uint64_t ask)
{
    return strategy->pending[ask % OUTSTANDING_MAX].source;
}

const struct wpk_network *wpk_strategy_policy(const struct wpk_strategy *strategy)
{
    return strategy->class->policy == NULL ? NULL : strategy->class->policy(strategy->state);
}

void wpk_strategy_tell(struct wpk_strategy *strategy, const struct wpk_tell *tell)
{
    WPK_ASSERT(strategy->told < strategy->course.asked);
    strategy->pending[strategy->told++ % OUTSTANDING_MAX].tell = *tell;
}

void wpk_strategy_learn(struct wpk_strategy *strategy, const struct wpk_candidate *candidate,
                        const struct wpk_tell *tell)
{
    struct wpk_course *course = &strategy->course;
    if (!wpk_seen_has(&course->seen, course->space, candidate) &&
        wpk_seen_put(&course->seen, course->space, candidate) == WPK_OK) {
        apply(strategy, candidate, tell); /* forgetting it for want of memory costs a trial */
    }
}

/* ---- asking */

/* The first of so many relatives that was not asked for yet. */
static bool next_relative(const struct wpk_course *course, int count, struct wpk_candidate *out)
{
    for (int i = 0; i < count; i++) {
        if (!wpk_seen_has(&course->seen, course->space, &course->relatives[i])) {
            *out = course->relatives[i];
            return true;
        }
    }
    return false;
}

/* The next constructed candidate, where it is one's turn. */
static bool next_constructed(struct wpk_strategy *strategy, struct wpk_candidate *out)
{
    struct wpk_course *course = &strategy->course;
    uint64_t drawn = (uint64_t)strategy->class->drawn;
    if (course->asked >= (uint64_t)strategy->first_count ||
        (drawn > 0 && course->asked % drawn == drawn - 1)) {
        return false;
    }
    while (strategy->constructed_next < strategy->constructed_count) {
        const struct wpk_candidate *one = &strategy->first[strategy->constructed_next++];
        if (!wpk_seen_has(&course->seen, course->space, one)) {
            *out = *one;
            return true;
        }
    }
    return false;
}

/* The next candidate from rules or other searches: schedules of the same shape, some that are
 * constructed, those of other shapes, and all others that are constructed. Returns its source;
 * NULL: there is none. */
static const char *next_known(struct wpk_strategy *strategy, struct wpk_candidate *out)
{
    const struct wpk_course *course = &strategy->course;
    bool early =
        strategy->class->takes_relatives && strategy->constructed_next < (int)course->option[0];
    return next_relative(course, course->twin_count, out)       ? "history"
           : early && next_constructed(strategy, out)           ? "constructed"
           : next_relative(course, course->relative_count, out) ? "history"
           : next_constructed(strategy, out)                    ? "constructed"
                                                                : NULL;
}

static wpk_err next_candidate(struct wpk_strategy *strategy, struct outstanding *out)
{
    struct wpk_course *course = &strategy->course;
    bool first = course->asked < (uint64_t)strategy->first_count;
    out->hint = -1;
    out->source = next_known(strategy, &out->candidate);
    if (out->source != NULL) {
        return WPK_OK;
    }
    if (!first) {
        out->hint = wpk_hints_take(&strategy->hints, &course->seen, course->space);
    }
    if (out->hint >= 0) {
        out->candidate = strategy->hints.hint[out->hint].candidate;
        out->source = "hint";
        return WPK_OK;
    }
    course->source = "proposed";
    wpk_err err = first || strategy->class->propose == NULL
                      ? WPK_EEXHAUSTED
                      : strategy->class->propose(strategy->state, course, &out->candidate);
    out->source = err == WPK_EEXHAUSTED ? "drawn" : course->source;
    return err == WPK_EEXHAUSTED
               ? wpk_seen_draw(&course->seen, course->space, &course->rng, &out->candidate)
               : err;
}

/* A failed ask leaves no trace. */
static wpk_err take_candidate(struct wpk_strategy *strategy, struct outstanding *out)
{
    struct wpk_course *course = &strategy->course;
    const struct wpk_rng rng = course->rng;
    const struct wpk_seen seen = course->seen;
    const struct wpk_hints hints = strategy->hints;
    const int constructed_next = strategy->constructed_next;
    wpk_err err = next_candidate(strategy, out);
    err = err == WPK_OK ? wpk_seen_put(&course->seen, course->space, &out->candidate) : err;
    if (err == WPK_ENOMEM) {
        course->rng = rng;
        course->seen = seen;
        strategy->constructed_next = constructed_next;
        strategy->hints = hints;
    }
    return err;
}

/* How many tells ask number `ask` depends on. */
static uint64_t tells_needed(const struct wpk_strategy *strategy, uint64_t ask)
{
    uint64_t ahead = (uint64_t)strategy->class->ahead;
    bool first = ask < (uint64_t)strategy->first_count || wpk_hints_wait(&strategy->hints);
    return first || ask < ahead ? 0 : ask - ahead;
}

/* Once the hints that were asked for are told, the others are learnt. */
static void learn_hints(struct wpk_strategy *strategy)
{
    double time;
    int next = 0;
    for (const struct wpk_hint *hint;
         (hint = wpk_hints_learn(&strategy->hints, &next, &time)) != NULL;) {
        const struct wpk_tell tell = {.ok = true, .relative = wpk_real_exp(time)};
        wpk_strategy_learn(strategy, &hint->candidate, &tell);
    }
}

static void apply_until(struct wpk_strategy *strategy, uint64_t number)
{
    while (strategy->applied < number) {
        const struct outstanding *next = &strategy->pending[strategy->applied++ % OUTSTANDING_MAX];
        apply(strategy, &next->candidate, &next->tell);
        if (next->hint >= 0) {
            bool timed = next->tell.ok && next->tell.relative > 0;
            wpk_hints_tell(&strategy->hints, next->hint,
                           timed ? wpk_real_log(next->tell.relative) : HUGE_VAL);
            learn_hints(strategy);
        }
    }
}

wpk_err wpk_strategy_ask(struct wpk_strategy *strategy, int count, struct wpk_candidate *out,
                         int *filled)
{
    struct wpk_course *course = &strategy->course;
    *filled = 0;
    while (*filled < count) {
        bool learns = strategy->class->learn != NULL;
        uint64_t needed = learns ? tells_needed(strategy, course->asked) : strategy->told;
        apply_until(strategy, needed < strategy->told ? needed : strategy->told);
        if (strategy->exhausted) {
            return *filled > 0 ? WPK_OK : WPK_EEXHAUSTED;
        }
        /* asks of a strategy that needs no tells are also told before their ring is full */
        bool has_room = course->asked - strategy->applied < OUTSTANDING_MAX - 1;
        if (needed > strategy->told || !has_room) {
            return WPK_OK;
        }
        struct outstanding *pending = &strategy->pending[course->asked % OUTSTANDING_MAX];
        wpk_err err = take_candidate(strategy, pending);
        if (err == WPK_EEXHAUSTED) {
            strategy->exhausted = true;
            continue;
        }
        if (err != WPK_OK) {
            return *filled > 0 ? WPK_OK : err;
        }
        course->asked++;
        out[(*filled)++] = pending->candidate;
    }
    return WPK_OK;
}

/* ---- snapshots */

static void put_trial(struct wpk_buf *out, const struct wpk_candidate *candidate,
                      const struct wpk_tell *tell)
{
    wpk_snapshot_put_candidate(out, candidate);
    wpk_snapshot_put_real(out, tell->ok && isfinite(tell->relative) ? tell->relative : 0);
    wpk_snapshot_put_number(out, tell->censored);
}

static void get_tell(struct wpk_snapshot_reader *reader, struct wpk_tell *tell)
{
    tell->relative = wpk_snapshot_real(reader);
    tell->ok = tell->relative > 0;
    tell->censored = wpk_snapshot_number(reader, 1) != 0;
}

wpk_err wpk_strategy_save(const struct wpk_strategy *strategy, struct wpk_buf *out)
{
    const struct wpk_course *course = &strategy->course;
    wpk_snapshot_begin(out, strategy->class->version, course->space);
    wpk_snapshot_put_rng(out, &course->rng);
    wpk_snapshot_put_number(out, (uint64_t)strategy->constructed_next);
    wpk_snapshot_put_number(out, strategy->exhausted);
    wpk_snapshot_put_number(out, course->learnt);
    wpk_snapshot_put_number(out, course->ok_count);
    wpk_snapshot_put_number(out, isfinite(course->origin) ? 1 : 0);
    wpk_snapshot_put_real(out, isfinite(course->origin) ? course->origin : 0);
    wpk_snapshot_put_number(out, (uint64_t)course->trial_count);
    for (int i = 0; i < course->trial_count; i++) {
        put_trial(out, &course->trial[i].candidate, &course->trial[i].tell);
    }
    wpk_snapshot_put_number(out, course->asked);
    wpk_snapshot_put_number(out, course->asked - strategy->told);
    wpk_snapshot_put_number(out, course->asked - strategy->applied);
    for (uint64_t ask = strategy->applied; ask < course->asked; ask++) {
        const struct outstanding *pending = &strategy->pending[ask % OUTSTANDING_MAX];
        const struct wpk_tell none = {.ok = false};
        put_trial(out, &pending->candidate, ask < strategy->told ? &pending->tell : &none);
        wpk_snapshot_put_number(out, (uint64_t)(pending->hint + 1));
    }
    wpk_hints_save(&strategy->hints, out);
    if (strategy->class->save != NULL) {
        strategy->class->save(strategy->state, out);
    }
    return wpk_seen_save(&course->seen, out);
}

static void load_trials(struct wpk_course *course, bool keeps, struct wpk_snapshot_reader *reader)
{
    course->learnt = wpk_snapshot_number(reader, UINT64_MAX);
    course->ok_count = wpk_snapshot_number(reader, course->learnt);
    bool timed = wpk_snapshot_number(reader, 1) != 0;
    double origin = wpk_snapshot_real(reader);
    course->origin = timed ? origin : HUGE_VAL;
    course->trial_count = (int)wpk_snapshot_number(reader, keeps ? WPK_TRIALS_MAX : 0);
    for (int i = 0; i < course->trial_count; i++) {
        struct wpk_course_trial *one = &course->trial[i];
        wpk_snapshot_candidate(reader, &one->candidate);
        get_tell(reader, &one->tell);
        one->time = one->tell.ok ? log_time(course, one->tell.relative) : HUGE_VAL;
        if (one->tell.ok && (course->best < 0 || one->time < course->trial[course->best].time)) {
            course->best = i;
        }
    }
}

static void load_pending(struct wpk_strategy *strategy, struct wpk_snapshot_reader *reader)
{
    struct wpk_course *course = &strategy->course;
    course->asked = wpk_snapshot_number(reader, UINT64_MAX);
    uint64_t untold = wpk_snapshot_number(reader, OUTSTANDING_MAX - 1);
    uint64_t unapplied = wpk_snapshot_number(reader, OUTSTANDING_MAX - 1);
    if (untold > unapplied || unapplied > course->asked) {
        reader->err = WPK_EPARSE;
        return;
    }
    strategy->told = course->asked - untold;
    strategy->applied = course->asked - unapplied;
    for (uint64_t ask = strategy->applied; ask < course->asked; ask++) {
        struct outstanding *pending = &strategy->pending[ask % OUTSTANDING_MAX];
        wpk_snapshot_candidate(reader, &pending->candidate);
        get_tell(reader, &pending->tell);
        pending->hint = (int)wpk_snapshot_number(reader, (uint64_t)strategy->hints.count) - 1;
    }
    wpk_hints_load(&strategy->hints, reader);
}

wpk_err wpk_strategy_load(const struct wpk_strategy_class *class, const struct wpk_space *space,
                          const struct wpk_strategy_setup *setup, const char *text,
                          struct wpk_strategy **out, struct wpk_diag *diag)
{
    struct wpk_snapshot_reader reader;
    struct wpk_strategy *strategy = NULL;
    wpk_err err = wpk_snapshot_open(&reader, text, class->version, space, diag);
    err = err == WPK_OK ? wpk_strategy_make(class, space, setup, &strategy) : err;
    if (err != WPK_OK) {
        return err;
    }
    wpk_snapshot_rng(&reader, &strategy->course.rng);
    strategy->constructed_next =
        (int)wpk_snapshot_number(&reader, (uint64_t)strategy->constructed_count);
    strategy->exhausted = wpk_snapshot_number(&reader, 1) != 0;
    load_trials(&strategy->course, class->keeps, &reader);
    load_pending(strategy, &reader);
    if (class->load != NULL && reader.err == WPK_OK) {
        class->load(strategy->state, &strategy->course, &reader);
    }
    err = err == WPK_OK ? wpk_seen_load(&strategy->course.seen, &reader) : err;
    err = err == WPK_OK ? wpk_snapshot_close(&reader, diag) : err;
    if (err != WPK_OK) {
        wpk_strategy_free(strategy);
        return err;
    }
    *out = strategy;
    return WPK_OK;
}

wpk_err wpk_prior_check(const char *strategy, const char *text, struct wpk_diag *diag)
{
    char known[64] = "";
    struct wpk_prior *prior = NULL;
    if (text == NULL) {
        return WPK_OK;
    }
    for (int i = 0; wpk_strategy_at(i) != NULL; i++) {
        size_t used = strlen(known);
        if (wpk_strategy_at(i)->takes_prior) {
            snprintf(known + used, sizeof(known) - used, "%s%s", used > 0 ? ", " : "",
                     wpk_strategy_at(i)->name);
        }
    }
    if (!wpk_strategy_find(strategy)->takes_prior) {
        return wpk_fail(diag, WPK_EINVAL, "strategy %s takes no prior; those that do: %s", strategy,
                        known);
    }
    wpk_err err = wpk_prior_decode(text, &prior, diag);
    free(prior);
    return err;
}
