/* SPDX-License-Identifier: Apache-2.0 */
/* bench-search: strategies on tables, which are spaces small enough to be timed whole.
 *
 *     bench-search list OP [--layouts L] [--threads N] [--pin GENE=VALUES]...
 *         prints the key and the text of every candidate with a schedule of its own
 *     bench-search asks TABLE STRATEGY --trials N
 *         prints the keys of its first asks
 *     bench-search learn PRIOR TABLE... [--trials N] [--negate 1]
 *         makes a prior of N schedules of each table, drawn at random; negated, it misleads
 *     bench-search rank TABLE model [--seeds N] [--prior FILE]
 *         shares of pairs that the cost model ranks right, with so many trials of the table known
 *     bench-search replay TABLE STRATEGY [--trials N] [--seeds N] [--set OPTION=NUMBER]
 *                  [--prior FILE]
 *         runs a strategy with many seeds, and compares its best at the end with that of `random`
 *         with the same seeds by Wilcoxon's signed-rank test */
#include "bench/search_table.h"
#include "bench/stats.h"
#include "bench/usage.h"
#include "common/clock.h"
#include "common/fs.h"
#include "search/strategy/model.h"
#include "search/strategy/seen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS_MAX 1024
#define SEEDS_MAX 1000
#define POINTS 8

static const char usage[] = "usage: bench-search list OP [--layouts any|fixed] [--threads N] "
                            "[--pin GENE=VALUES]...\n"
                            "       bench-search asks TABLE STRATEGY --trials N\n"
                            "       bench-search learn PRIOR TABLE... [--trials N] [--negate 1]\n"
                            "       bench-search rank TABLE model [--seeds N] [--prior FILE]\n"
                            "       bench-search replay TABLE STRATEGY [--trials N] [--seeds N] "
                            "[--set OPTION=NUMBER] [--prior FILE]\n";

/* The options of the command line. */
struct given {
    struct bench_search_table table; /* of `list` */
    int trials, seeds;
    bool negated;
    char set[256];
    struct wpk_prior *prior; /* owned; NULL: none */
    const char *operand[16];
    int operand_count;
};

/* ---- list */

static int list(struct bench_search_table *table)
{
    struct wpk_seen seen = {0};
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 1);
    bench_search_table_derive(table);
    printf("device %s\n", table->device);
    for (int count = 0; count < BENCH_ROWS_MAX; count++) {
        struct wpk_candidate one;
        char text[WPK_CANDIDATE_TEXT_MAX];
        if (wpk_seen_draw(&seen, &table->space, &rng, &one) != WPK_OK ||
            wpk_seen_put(&seen, &table->space, &one) != WPK_OK ||
            wpk_candidate_encode(&table->space, &one, text, sizeof(text)) != WPK_OK) {
            break;
        }
        printf("%016" PRIx64 " %s\n", wpk_space_key(&table->space, &one), text);
    }
    wpk_seen_fini(&seen);
    wpk_space_fini(&table->space);
    return 0;
}

/* ---- replay */

/* The best time after each trial.   shape  best [trials] */
static void run(const struct bench_search_table *table, const struct wpk_strategy_class *class,
                const struct wpk_strategy_setup *setup, int trials, double *best)
{
    static struct wpk_candidate asked[TRIALS_MAX];
    struct wpk_strategy *strategy = NULL;
    int count = 0, told = 0;
    double least = HUGE_VAL, anchor = 0;
    wpk_err err = wpk_strategy_make(class, &table->space, setup, &strategy);
    while (err == WPK_OK && told < trials) {
        int filled = 0;
        if (count < trials) {
            err = wpk_strategy_ask(strategy, 1, &asked[count], &filled);
            if (err == WPK_EEXHAUSTED) {
                trials = count;
                err = WPK_OK;
            }
        }
        count += filled;
        if (filled == 0 && told < count) {
            double ns = bench_search_table_time(table, &asked[told]);
            anchor = anchor == 0 && ns > 0 ? ns : anchor;
            least = ns > 0 ? fmin(least, ns) : least;
            best[told++] = least;
            wpk_strategy_tell(strategy, &(struct wpk_tell){.ok = ns > 0, .relative = ns / anchor});
        }
    }
    for (; told < trials; told++) {
        best[told] = least;
    }
    wpk_strategy_free(strategy);
}

/* Print the keys of the first asks, without telling anything. */
static int print_asks(const struct bench_search_table *table, const char *name, int trials)
{
    const struct wpk_strategy_class *class = wpk_strategy_find(name);
    const struct wpk_strategy_setup setup = {.seed = 1};
    struct wpk_strategy *strategy = NULL;
    static struct wpk_candidate asked[TRIALS_MAX];
    int filled = 0;
    if (class == NULL || wpk_strategy_make(class, &table->space, &setup, &strategy) != WPK_OK ||
        wpk_strategy_ask(strategy, trials, asked, &filled) != WPK_OK) {
        fprintf(stderr, "bench-search: %s asks for nothing\n", name);
        return 2;
    }
    for (int i = 0; i < filled; i++) {
        printf("%016" PRIx64 "\n", wpk_space_key(&table->space, &asked[i]));
    }
    wpk_strategy_free(strategy);
    return 0;
}

/* Run with each seed.   shape  last [seeds]: best time at the end */
static void run_seeds(const struct bench_search_table *table, const char *name,
                      const struct given *given, double *last)
{
    static const int points[POINTS] = {8, 16, 32, 64, 96, 128, 192, 256};
    static double best[TRIALS_MAX];
    double share[POINTS] = {0}, worst[POINTS], to_97 = 0;
    const struct wpk_strategy_class *class = wpk_strategy_find(name);
    uint64_t from = wpk_clock_ns();
    for (int s = 0; s < given->seeds; s++) {
        const struct wpk_strategy_setup setup = {
            .seed = (uint64_t)s + 1, .options = given->set, .prior = given->prior};
        run(table, class, &setup, given->trials, best);
        int needed = given->trials;
        for (int i = given->trials - 1; i >= 0 && table->best / best[i] >= 0.97; i--) {
            needed = i;
        }
        to_97 += needed + 1;
        last[s] = best[given->trials - 1];
        for (int p = 0; p < POINTS && points[p] <= given->trials; p++) {
            double reached = table->best / best[points[p] - 1];
            share[p] += reached / given->seeds;
            worst[p] = s == 0 ? reached : fmin(worst[p], reached);
        }
    }
    printf("%-10s", name);
    for (int p = 0; p < POINTS && points[p] <= given->trials; p++) {
        printf("  %d: %.3f (%.3f)", points[p], share[p], worst[p]);
    }
    printf("  to 97 %%: %.1f  %.2f ms each", to_97 / given->seeds,
           (double)(wpk_clock_ns() - from) / 1e6 / given->seeds / given->trials);
}

static int replay(const struct bench_search_table *table, const char *name,
                  const struct given *given)
{
    static double own[SEEDS_MAX], random[SEEDS_MAX], best[TRIALS_MAX];
    if (wpk_strategy_find(name) == NULL) {
        fprintf(stderr, "bench-search: no strategy %s\n", name);
        return 2;
    }
    run_seeds(table, name, given, own);
    for (int s = 0; s < given->seeds && strcmp(name, "random") != 0; s++) {
        const struct wpk_strategy_setup setup = {.seed = (uint64_t)s + 1};
        run(table, wpk_strategy_find("random"), &setup, given->trials, best);
        random[s] = best[given->trials - 1];
    }
    if (strcmp(name, "random") != 0) {
        int better = 0, worse = 0;
        double p = bench_stats_wilcoxon(random, own, given->seeds, &better, &worse);
        printf("  against random: %d better, %d worse, p %.2g", better, worse, p);
    }
    puts("");
    return 0;
}

/* ---- rank: pairs that the cost model puts in the right order */

static struct wpk_candidate drawn[BENCH_ROWS_MAX];
static double ns_of[BENCH_ROWS_MAX], predicted[BENCH_ROWS_MAX];

/* Schedules of the table in random order, those that run.   shape  returns how many */
static int draw_all(const struct bench_search_table *table, uint64_t seed)
{
    struct wpk_seen seen = {0};
    struct wpk_rng rng;
    int count = 0;
    wpk_rng_seed(&rng, seed);
    for (struct wpk_candidate one;
         count < BENCH_ROWS_MAX && wpk_seen_draw(&seen, &table->space, &rng, &one) == WPK_OK;) {
        if (wpk_seen_put(&seen, &table->space, &one) != WPK_OK) {
            break;
        }
        ns_of[count] = bench_search_table_time(table, &one);
        drawn[count] = one;
        count += ns_of[count] > 0;
    }
    wpk_seen_fini(&seen);
    return count;
}

/* The share of the pairs of all but the first `known` schedules that are more than 2 % apart. */
static double rank_pairs(const struct bench_search_table *table, const struct wpk_prior *prior,
                         int known, int count)
{
    static struct wpk_course_trial trials[WPK_TRIALS_MAX];
    struct wpk_course course = {.space = &table->space, .trial = trials, .trial_count = known};
    struct wpk_cost_model *model = wpk_cost_model_new(prior == NULL ? NULL : &prior->trees);
    double right = 0, pairs = 0;
    for (int i = 0; i < known; i++) {
        trials[i] = (struct wpk_course_trial){.candidate = drawn[i],
                                              .tell = {.ok = true, .relative = ns_of[i]},
                                              .time = log(ns_of[i])};
    }
    if (model == NULL) {
        return 0;
    }
    if (known > 0) {
        wpk_cost_model_fit(model, &course);
    }
    for (int i = known; i < count; i++) {
        double x[WPK_FEATURES];
        WPK_ASSERT(wpk_space_features(&table->space, &drawn[i], x) == WPK_OK);
        predicted[i] = known == 0 && prior != NULL ? wpk_trees_add(&prior->trees, x, x[0])
                                                   : wpk_cost_model_predict(model, x);
        for (int k = known; k < i; k++) {
            if (fabs(ns_of[i] / ns_of[k] - 1) > 0.02) {
                pairs++;
                right += (ns_of[i] < ns_of[k]) == (predicted[i] < predicted[k]);
            }
        }
    }
    wpk_cost_model_free(model);
    return right / pairs;
}

static int rank(const struct bench_search_table *table, const struct given *given)
{
    static const int known[] = {0, 8, 32, 128};
    double sum[4] = {0};
    for (int s = 0; s < given->seeds; s++) {
        int count = draw_all(table, (uint64_t)s + 1);
        for (int k = 0; k < 4; k++) {
            sum[k] += rank_pairs(table, given->prior, known[k], count) / given->seeds;
        }
    }
    for (int k = 0; k < 4; k++) {
        printf("%s%d trials known: %.3f", k > 0 ? "  " : "", known[k], sum[k]);
    }
    puts("");
    return 0;
}

/* ---- learn */

/* A prior of the first schedules that draw_all() draws of each table. */
static int learn(const struct given *given)
{
    static struct bench_search_table tables[16];
    static struct wpk_lesson lessons[16];
    static struct wpk_prior prior;
    struct wpk_buf text = {0};
    int count = given->operand_count - 1;
    for (int n = 0; n < count; n++) {
        bench_search_table_read(given->operand[n + 1], &tables[n]);
        struct wpk_course_trial *trials = calloc((size_t)given->trials, sizeof *trials);
        int known = draw_all(&tables[n], 1);
        WPK_ASSERT(trials != NULL);
        known = known < given->trials ? known : given->trials;
        for (int i = 0; i < known; i++) {
            double time = log(ns_of[i] / ns_of[0]) * (given->negated ? -1 : 1);
            trials[i] = (struct wpk_course_trial){
                .candidate = drawn[i], .tell = {.ok = true, .relative = exp(time)}, .time = time};
        }
        lessons[n] = (struct wpk_lesson){&tables[n].space, trials, known};
    }
    wpk_err err = wpk_prior_teach(lessons, count, &prior);
    err = err == WPK_OK ? wpk_prior_encode(&prior, &text) : err;
    err = err == WPK_OK ? wpk_fs_write(given->operand[0], text.data, text.size, 0666, NULL) : err;
    wpk_buf_fini(&text);
    for (int n = 0; n < count; n++) {
        free((void *)lessons[n].trial);
        bench_search_table_fini(&tables[n]);
    }
    if (err != WPK_OK) {
        fprintf(stderr, "bench-search: %s: %s\n", given->operand[0], wpk_err_text(err));
    }
    return err == WPK_OK ? 0 : 2;
}

/* ---- options */

static void read_prior(const char *path, struct wpk_prior **out)
{
    struct wpk_diag diag = {0};
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read(path, WPK_PRIOR_SIZE_MAX, &text, &diag);
    err = err == WPK_OK ? wpk_prior_decode(wpk_buf_text(&text), out, &diag) : err;
    if (err != WPK_OK) {
        fprintf(stderr, "bench-search: %s: %s\n", path, diag.text);
        exit(2);
    }
    wpk_buf_fini(&text);
}

/* False for an option that there is not. */
static bool read_option(struct given *given, const char *name, char *value)
{
    struct bench_search_table *table = &given->table;
    if (strcmp(name, "--pin") == 0 && table->pin_count < BENCH_PINS_MAX) {
        table->pin[table->pin_count++] = value;
    } else if (strcmp(name, "--layouts") == 0) {
        snprintf(table->layouts, sizeof(table->layouts), "%s", value);
    } else if (strcmp(name, "--threads") == 0) {
        table->threads = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--trials") == 0) {
        given->trials = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--seeds") == 0) {
        given->seeds = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--negate") == 0) {
        given->negated = strcmp(value, "0") != 0;
    } else if (strcmp(name, "--prior") == 0) {
        read_prior(value, &given->prior);
    } else if (strcmp(name, "--set") == 0) {
        size_t used = strlen(given->set);
        snprintf(given->set + used, sizeof(given->set) - used, "%s%s", used > 0 ? ";" : "", value);
    } else {
        return false;
    }
    return given->trials >= 1 && given->trials <= TRIALS_MAX && given->seeds >= 1 &&
           given->seeds <= SEEDS_MAX;
}

static int list_file(struct given *given)
{
    struct wpk_buf text = {0};
    if (wpk_fs_read(given->operand[0], 1 << 20, &text, NULL) != WPK_OK) {
        fprintf(stderr, "bench-search: %s cannot be read\n", given->operand[0]);
        return 2;
    }
    given->table.op = wpk_buf_text(&text);
    int code = list(&given->table);
    wpk_buf_fini(&text);
    return code;
}

int main(int argc, char **argv)
{
    static struct given given = {
        .table = {.threads = 1, .layouts = "any"}, .trials = 128, .seeds = 40};
    static struct bench_search_table table;
    bool right = argc > 1;
    bench_usage_help(argc, argv, usage);
    for (int i = 2; i < argc && right; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            right = i + 1 < argc && read_option(&given, argv[i], argv[i + 1]);
            i++;
        } else if ((right = given.operand_count < 16)) {
            given.operand[given.operand_count++] = argv[i];
        }
    }
    const char *command = right ? argv[1] : "";
    if (strcmp(command, "list") == 0 && given.operand_count == 1) {
        return list_file(&given);
    }
    if (given.operand_count < 2) {
        fputs(usage, stderr);
        return 2;
    }
    if (strcmp(command, "learn") == 0) {
        return learn(&given);
    }
    bench_search_table_read(given.operand[0], &table);
    int code = strcmp(command, "asks") == 0   ? print_asks(&table, given.operand[1], given.trials)
               : strcmp(command, "rank") == 0 ? rank(&table, &given)
                                              : replay(&table, given.operand[1], &given);
    bench_search_table_fini(&table);
    free(given.prior);
    return code;
}
