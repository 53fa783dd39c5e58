/* SPDX-License-Identifier: Apache-2.0 */
/* Bayesian optimization: a Gaussian process over the genes predicts the logarithm of the time that
 * the bound leaves unexplained, with its uncertainty; an ask is the candidate of a pool with the
 * most expected improvement times the chance that it runs at all.
 *
 * Distances: ordered genes by the distance of their places, orders of axes by the places that
 * differ, other genes by whether they differ; another variant is as far as several genes. The
 * length scale is the likeliest one of a few.
 *
 *   source  Jones, Schonlau & Welch, Efficient global optimization of expensive black-box
 *           functions, 1998; Rasmussen & Williams, Gaussian processes for machine learning, 2006 */
#include "common/format.h"
#include "search/strategy/strategies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 16
#define DRAWN 4
#define VARIANT_DISTANCE 6 /* of other variants, in genes */
#define PRUNED 32          /* of a pool, whose variance is computed */
#define SCALES 5

enum { POOL, NOISE, EXPLORE };

static const struct wpk_strategy_option options[] = {
    [POOL] = {"pool", "candidates that an ask chooses from", 8, 1024, 160, true},
    [NOISE] = {"noise", "standard deviation of the log of a time", 1e-4, 1, 0.02, false},
    [EXPLORE] = {"explore", "log time by which an improvement has to exceed the best", 0, 1, 0.002,
                 false},
};

struct bayes {
    int count;                        /* rows, of trials that ran */
    int row[WPK_TRIALS_MAX];          /* their trials */
    double predicted[WPK_TRIALS_MAX]; /* log, of each trial of the course */
    double *factor;                   /* owned; lower triangle of [WPK_TRIALS_MAX]^2 */
    double alpha[WPK_TRIALS_MAX];     /* weights of the rows */
    double mean, scale, variance;     /* scale: squared length */
    int scaled;                       /* rows when the scale was chosen; 0: never */
    int trials;                       /* of the course, that rows were made of */
};

static void bayes_free(void *state)
{
    struct bayes *bayes = state;
    free(bayes->factor);
    free(bayes);
}

static wpk_err make(const struct wpk_course *course WPK_UNUSED, void **state)
{
    struct bayes *bayes = calloc(1, sizeof *bayes);
    if (bayes == NULL) {
        return WPK_ENOMEM;
    }
    bayes->factor = calloc((size_t)WPK_TRIALS_MAX * WPK_TRIALS_MAX, sizeof(double));
    if (bayes->factor == NULL) {
        free(bayes);
        return WPK_ENOMEM;
    }
    *state = bayes;
    return WPK_OK;
}

/* ---- the process */

/* Texts that list axes, as "y,x,k": the share of places that differ. */
static double order_distance(const char *a, const char *b)
{
    int places = 0, differ = 0;
    while (*a != '\0' && *b != '\0') {
        size_t x = strcspn(a, ","), y = strcspn(b, ",");
        places++;
        differ += x != y || strncmp(a, b, x) != 0;
        a += x + (a[x] == ',');
        b += y + (b[y] == ',');
    }
    return places == 0 ? 1 : (double)differ / places;
}

static double distance(const struct wpk_space *space, const struct wpk_candidate *a,
                       const struct wpk_candidate *b)
{
    const struct wpk_variant *variant = &space->variants[a->variant];
    double sum = 0;
    if (a->variant != b->variant) {
        return VARIANT_DISTANCE;
    }
    for (int g = 0; g < variant->gene_count; g++) {
        const struct wpk_gene *gene = &variant->genes[g];
        if (a->gene[g] == b->gene[g]) {
            continue;
        }
        const char *x = gene->choice[a->gene[g]].text, *y = gene->choice[b->gene[g]].text;
        double steps = (double)a->gene[g] - (double)b->gene[g];
        sum += gene->ordered            ? steps * steps / (4.0 + steps * steps)
               : strchr(x, ',') == NULL ? 1
                                        : order_distance(x, y);
    }
    return sum;
}

static double kernel(const struct bayes *bayes, double distance)
{
    return bayes->variance * wpk_real_exp(-distance / bayes->scale);
}

static double target(const struct bayes *bayes, const struct wpk_course *course, int row)
{
    int t = bayes->row[row];
    return course->trial[t].time - bayes->predicted[t] - bayes->mean;
}

/* Solve L x = b in place for the first `count` rows. */
static void solve_lower(const struct bayes *bayes, int count, double *b)
{
    for (int i = 0; i < count; i++) {
        const double *row = &bayes->factor[(size_t)i * WPK_TRIALS_MAX];
        double sum = b[i];
        for (int k = 0; k < i; k++) {
            sum -= row[k] * b[k];
        }
        b[i] = sum / row[i];
    }
}

/* Append a row to the factor. */
static void extend(struct bayes *bayes, const struct wpk_course *course, int i)
{
    double *row = &bayes->factor[(size_t)i * WPK_TRIALS_MAX];
    const struct wpk_candidate *at = &course->trial[bayes->row[i]].candidate;
    double noise = course->option[NOISE] * course->option[NOISE] + 1e-6 * bayes->variance;
    double rest = bayes->variance + noise;
    for (int k = 0; k < i; k++) {
        row[k] =
            kernel(bayes, distance(course->space, at, &course->trial[bayes->row[k]].candidate));
    }
    solve_lower(bayes, i, row);
    for (int k = 0; k < i; k++) {
        rest -= row[k] * row[k];
    }
    row[i] = sqrt(fmax(rest, noise)); /* less is rounding */
}

static void weigh(struct bayes *bayes, const struct wpk_course *course)
{
    for (int i = 0; i < bayes->count; i++) {
        bayes->alpha[i] = target(bayes, course, i);
    }
    solve_lower(bayes, bayes->count, bayes->alpha);
    for (int i = bayes->count - 1; i >= 0; i--) {
        bayes->alpha[i] /= bayes->factor[(size_t)i * WPK_TRIALS_MAX + (size_t)i];
        for (int k = 0; k < i; k++) {
            bayes->alpha[k] -=
                bayes->alpha[i] * bayes->factor[(size_t)i * WPK_TRIALS_MAX + (size_t)k];
        }
    }
}

/* Twice the log of the marginal likelihood, but for a constant, with the given scale. */
static double likelihood(struct bayes *bayes, const struct wpk_course *course, double scale)
{
    double sum = 0, work[WPK_TRIALS_MAX];
    bayes->scale = scale;
    for (int i = 0; i < bayes->count; i++) {
        extend(bayes, course, i);
        sum -= 2 * wpk_real_log(bayes->factor[(size_t)i * WPK_TRIALS_MAX + (size_t)i]);
        work[i] = target(bayes, course, i);
    }
    solve_lower(bayes, bayes->count, work);
    for (int i = 0; i < bayes->count; i++) {
        sum -= work[i] * work[i];
    }
    return sum;
}

static void choose_scale(struct bayes *bayes, const struct wpk_course *course)
{
    double best = -HUGE_VAL, chosen = 1, sum = 0, square = 0;
    bayes->mean = 0;
    for (int i = 0; i < bayes->count; i++) {
        sum += target(bayes, course, i);
    }
    bayes->mean = sum / bayes->count;
    for (int i = 0; i < bayes->count; i++) {
        square += target(bayes, course, i) * target(bayes, course, i);
    }
    bayes->variance = fmax(square / bayes->count, 1e-4);
    for (int s = 0; s < SCALES; s++) {
        double scale = 0.5 * (double)(1 << 2 * s);
        double likely = likelihood(bayes, course, scale);
        if (likely > best) {
            best = likely;
            chosen = scale;
        }
    }
    bayes->scale = chosen;
    bayes->scaled = bayes->count;
    for (int i = 0; i < bayes->count; i++) {
        extend(bayes, course, i);
    }
}

/* Rows of all trials from `trials` on; of all of them where trials were thinned out. */
static void take_trials(struct bayes *bayes, const struct wpk_course *course)
{
    if (bayes->trials >= course->trial_count) {
        bayes->trials = bayes->count = 0;
    }
    int old = bayes->count;
    for (; bayes->trials < course->trial_count; bayes->trials++) {
        const struct wpk_course_trial *trial = &course->trial[bayes->trials];
        double *predicted = &bayes->predicted[bayes->trials];
        if (trial->tell.ok &&
            wpk_space_predict(course->space, &trial->candidate, predicted) == WPK_OK) {
            bayes->row[bayes->count++] = bayes->trials;
        }
    }
    if (bayes->count > 0 && (bayes->scaled == 0 || bayes->count < bayes->scaled ||
                             bayes->count * 3 >= bayes->scaled * 4)) {
        choose_scale(bayes, course);
    } else {
        for (int i = old; i < bayes->count; i++) {
            extend(bayes, course, i);
        }
    }
    weigh(bayes, course);
}

static void learn(void *state, struct wpk_course *course,
                  const struct wpk_course_trial *trial WPK_UNUSED)
{
    if (course->learnt >= FIRST / 2) {
        take_trials(state, course);
    }
}

/* ---- asking */

struct choice {
    struct wpk_candidate candidate;
    double mean, predicted, runs; /* runs: chance that it does */
};

static bool judge(const struct bayes *bayes, const struct wpk_course *course, struct choice *one)
{
    double near[WPK_TRIALS_MAX], sum = 0;
    if (wpk_space_predict(course->space, &one->candidate, &one->predicted) != WPK_OK) {
        return false;
    }
    for (int t = 0; t < course->trial_count; t++) {
        near[t] = distance(course->space, &one->candidate, &course->trial[t].candidate);
    }
    for (int i = 0; i < bayes->count; i++) {
        sum += bayes->alpha[i] * kernel(bayes, near[bayes->row[i]]);
    }
    one->mean = one->predicted + bayes->mean + sum;
    /* Share of the trials near the candidate that ran. */
    double ok = 1, all = 1;
    for (int t = 0; t < course->trial_count; t++) {
        double weight = wpk_real_exp(-near[t] / bayes->scale);
        all += weight;
        ok += course->trial[t].tell.ok ? weight : 0;
    }
    one->runs = ok / all;
    return isfinite(one->mean);
}

static double deviation(const struct bayes *bayes, const struct wpk_course *course,
                        const struct wpk_candidate *candidate)
{
    double work[WPK_TRIALS_MAX], rest = bayes->variance;
    for (int i = 0; i < bayes->count; i++) {
        work[i] = kernel(
            bayes, distance(course->space, candidate, &course->trial[bayes->row[i]].candidate));
    }
    solve_lower(bayes, bayes->count, work);
    for (int i = 0; i < bayes->count; i++) {
        rest -= work[i] * work[i];
    }
    return sqrt(fmax(rest, 1e-8));
}

/* Expected improvement of a normal value below `best`.
 *   source  the error function: Abramowitz & Stegun 7.1.26, to 1.5e-7 */
static double improvement(double best, double mean, double sigma)
{
    double z = (best - mean) / sigma, x = fabs(z) * 0.70710678118654752;
    double t = 1 / (1 + 0.3275911 * x);
    double tail = t *
                  (0.254829592 +
                   t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) *
                  wpk_real_exp(-x * x);
    double below = z >= 0 ? 1 - 0.5 * tail : 0.5 * tail;
    double density = 0.3989422804014327 * wpk_real_exp(-0.5 * z * z);
    return sigma * (z * below + density);
}

/* One more for the pool: a neighbour of a good trial, a child, or a draw. */
static wpk_err draw_one(struct wpk_course *course, const int *best, int count, int i,
                        struct wpk_candidate *out)
{
    struct wpk_rng *rng = &course->rng;
    if (i % 8 == 7 || count == 0) {
        wpk_err err = wpk_space_draw(course->space, rng, out);
        return err == WPK_OK && wpk_seen_has(&course->seen, course->space, out) ? WPK_EEXHAUSTED
                                                                                : err;
    }
    uint64_t from = wpk_rng_below(rng, (uint64_t)count), other = wpk_rng_below(rng, from + 1);
    const struct wpk_candidate *parent = &course->trial[best[other]].candidate;
    if (i % 4 == 3) {
        wpk_move_cross(course->space, rng, parent, &course->trial[best[from]].candidate, out);
        wpk_err err = wpk_space_repair(course->space, rng, out);
        return err == WPK_OK && wpk_seen_has(&course->seen, course->space, out) ? WPK_EEXHAUSTED
                                                                                : err;
    }
    return wpk_move_neighbour(course->space, &course->seen, rng, parent, out);
}

/* The best trials, best first.   shape  best [16]; returns how many */
static int list_best(const struct wpk_course *course, int *best)
{
    int count = 0;
    for (int t = 0; t < course->trial_count; t++) {
        int at = count;
        while (at > 0 && course->trial[best[at - 1]].time > course->trial[t].time) {
            at--;
        }
        if (!course->trial[t].tell.ok || at == 16) {
            continue;
        }
        count += count < 16;
        memmove(&best[at + 1], &best[at], (size_t)(count - 1 - at) * sizeof(*best));
        best[at] = t;
    }
    return count;
}

static wpk_err propose(void *state, struct wpk_course *course, struct wpk_candidate *out)
{
    struct bayes *bayes = state;
    struct choice kept[PRUNED]; /* least mean first */
    int best[16], count = list_best(course, best), kept_count = 0;
    if (bayes->count == 0 || count == 0) {
        return WPK_EEXHAUSTED;
    }
    for (int i = 0; i < (int)course->option[POOL]; i++) {
        struct choice one;
        wpk_err err = draw_one(course, best, count, i, &one.candidate);
        if (err == WPK_ENOMEM) {
            return err;
        }
        if (err != WPK_OK || !judge(bayes, course, &one)) {
            continue;
        }
        int at = kept_count;
        while (at > 0 && kept[at - 1].mean > one.mean) {
            at--;
        }
        if (at < PRUNED) {
            kept_count += kept_count < PRUNED;
            memmove(&kept[at + 1], &kept[at], (size_t)(kept_count - 1 - at) * sizeof(kept[0]));
            kept[at] = one;
        }
    }
    double most = -1, least = course->trial[best[0]].time - course->option[EXPLORE];
    for (int i = 0; i < kept_count; i++) {
        double gain = kept[i].runs * improvement(least, kept[i].mean,
                                                 deviation(bayes, course, &kept[i].candidate));
        if (gain > most) {
            most = gain;
            *out = kept[i].candidate;
        }
    }
    return kept_count > 0 ? WPK_OK : WPK_EEXHAUSTED;
}

/* ---- snapshots: when the scale was chosen, with what; the rest follows from the trials */

static void save(const void *state, struct wpk_buf *out)
{
    const struct bayes *bayes = state;
    wpk_snapshot_put_number(out, (uint64_t)bayes->scaled);
    wpk_snapshot_put_real(out, bayes->scale);
    wpk_snapshot_put_real(out, bayes->mean);
    wpk_snapshot_put_real(out, bayes->variance);
}

static void load(void *state, const struct wpk_course *course, struct wpk_snapshot_reader *reader)
{
    struct bayes *bayes = state;
    bayes->scaled = (int)wpk_snapshot_number(reader, WPK_TRIALS_MAX);
    bayes->scale = wpk_snapshot_real(reader);
    bayes->mean = wpk_snapshot_real(reader);
    bayes->variance = wpk_snapshot_real(reader);
    if (bayes->scaled == 0 || reader->err != WPK_OK) {
        return;
    }
    if (!(bayes->scale > 0) || !(bayes->variance > 0)) {
        reader->err = WPK_EPARSE;
        return;
    }
    for (; bayes->trials < course->trial_count; bayes->trials++) {
        const struct wpk_course_trial *trial = &course->trial[bayes->trials];
        double *predicted = &bayes->predicted[bayes->trials];
        if (trial->tell.ok &&
            wpk_space_predict(course->space, &trial->candidate, predicted) == WPK_OK) {
            bayes->row[bayes->count++] = bayes->trials;
            extend(bayes, course, bayes->count - 1);
        }
    }
    weigh(bayes, course);
}

const struct wpk_strategy_class wpk_strategy_bayes = {
    .name = "bayes",
    .version = "bayes-2",
    .summary = "Gaussian process and expected improvement; for few, expensive trials",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .ahead = 8,
    .keeps = true,
    .first = FIRST,
    .drawn = DRAWN,
    .is_slow = true,
    .make = make,
    .free = bayes_free,
    .propose = propose,
    .learn = learn,
    .save = save,
    .load = load,
};
