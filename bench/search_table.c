/* SPDX-License-Identifier: Apache-2.0 */
/* bench-search: strategies on tables, which are spaces small enough to be timed whole.
 *
 *     bench-search list OP [--layouts L] [--threads N] [--pin GENE=VALUES]...
 *         prints the key and the text of every candidate with a schedule of its own
 *     bench-search asks TABLE STRATEGY --trials N
 *         prints the keys of its first asks
 *     bench-search rank TABLE model [--seeds N]
 *         shares of pairs that the cost model ranks right, with so many trials of the table known
 *     bench-search replay TABLE STRATEGY [--trials N] [--seeds N] [--set OPTION=NUMBER]
 *         runs a strategy with many seeds on a table that bench/search_tables.py made
 *
 * A table is text: lines "name value" say what it is of, then a line "rows", then a line for each
 * schedule: its key, 0 or the time in ns. The table has a row for every candidate of the pinned
 * space: no time is interpolated. */
#include "bench/usage.h"
#include "common/clock.h"
#include "common/fs.h"
#include "op/notation.h"
#include "search/model.h"
#include "search/seen.h"
#include "search/strategy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PINS_MAX 64
#define ROWS_MAX 8192
#define TRIALS_MAX 1024
#define POINTS 8

static const char usage[] = "usage: bench-search list OP [--layouts any|fixed] [--threads N] "
                            "[--pin GENE=VALUES]...\n"
                            "       bench-search asks TABLE STRATEGY --trials N\n"
                            "       bench-search rank TABLE model [--seeds N]\n"
                            "       bench-search replay TABLE STRATEGY [--trials N] [--seeds N] "
                            "[--set OPTION=NUMBER]\n";

struct row {
    uint64_t key;
    double ns; /* 0: it fails */
};

struct table {
    char *text; /* owned */
    const char *op;
    char layouts[8];
    char device[256]; /* "": this machine's */
    int threads;
    char *pin[PINS_MAX]; /* into `text` */
    int pin_count;
    struct row row[ROWS_MAX];
    int row_count;
    double best;
    struct wpk_space space;
};

static void fail(const char *what, const struct wpk_diag *diag)
{
    fprintf(stderr, "bench-search: %s: %s\n", what, diag->text);
    exit(2);
}

static void derive(struct table *table)
{
    struct wpk_diag diag = {0};
    struct wpk_program program = {0};
    struct wpk_space_options options = {
        .layouts = strcmp(table->layouts, "any") == 0 ? "any" : "fixed",
        .threads = table->threads,
        .back_ends = wpk_back_ends_read("halide-cpu"),
    };
    wpk_err err = WPK_OK;
    if (table->device[0] == '\0') { /* of its class: the table is read on other machines */
        err = wpk_device_probe((enum wpk_isa)(WPK_ISA_COUNT - 1), &options.device);
        wpk_device_class(&options.device, table->device, sizeof(table->device));
    }
    err = err == WPK_OK ? wpk_device_of_class(table->device, &options.device) : err;
    err = err == WPK_OK ? wpk_program_parse(table->op, &program, &diag) : err;
    err = err == WPK_OK ? wpk_space_derive(&program, &options, &table->space, &diag) : err;
    wpk_program_fini(&program);
    for (int i = 0; i < table->pin_count && err == WPK_OK; i++) {
        char name[WPK_GENE_NAME_MAX];
        const char *equals = strchr(table->pin[i], '=');
        snprintf(name, sizeof(name), "%.*s", (int)(equals - table->pin[i]), table->pin[i]);
        err = wpk_space_pin(&table->space, name, equals + 1, &diag);
    }
    if (err != WPK_OK) {
        fail(wpk_err_text(err), &diag);
    }
}

/* ---- list */

static int list(struct table *table)
{
    struct wpk_seen seen = {0};
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 1);
    derive(table);
    printf("device %s\n", table->device);
    for (int count = 0; count < ROWS_MAX; count++) {
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

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void read_word(struct table *table, char *line)
{
    char *value = strchr(line, ' ');
    if (value == NULL) {
        return;
    }
    *value++ = '\0';
    if (strcmp(line, "op") == 0) {
        for (char *at = value; *at != '\0'; at++) {
            *at = *at == '|' && at[1] == '|' ? '\n' : *at; /* lines are joined by "||" */
            if (*at == '\n') {
                memmove(at + 1, at + 2, strlen(at + 2) + 1);
            }
        }
        table->op = value;
    } else if (strcmp(line, "layouts") == 0) {
        snprintf(table->layouts, sizeof(table->layouts), "%s", value);
    } else if (strcmp(line, "device") == 0) {
        snprintf(table->device, sizeof(table->device), "%s", value);
    } else if (strcmp(line, "threads") == 0) {
        table->threads = (int)strtol(value, NULL, 10);
    } else if (strcmp(line, "pin") == 0 && table->pin_count < PINS_MAX) {
        table->pin[table->pin_count++] = value;
    }
}

static void read_table(const char *path, struct table *table)
{
    struct wpk_buf text = {0};
    bool rows = false;
    if (wpk_fs_read(path, 64 << 20, &text, NULL) != WPK_OK) {
        fprintf(stderr, "bench-search: %s cannot be read\n", path);
        exit(2);
    }
    table->text = strdup(wpk_buf_text(&text));
    wpk_buf_fini(&text);
    table->best = HUGE_VAL;
    char *rest = table->text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (!rows) {
            rows = strcmp(line, "rows") == 0;
            read_word(table, line);
        } else if (table->row_count < ROWS_MAX && *line != '\0') {
            struct row *row = &table->row[table->row_count++];
            char *end = NULL;
            row->key = strtoull(line, &end, 16);
            row->ns = strtod(end, NULL);
            table->best = row->ns > 0 ? fmin(table->best, row->ns) : table->best;
        }
    }
    qsort(table->row, (size_t)table->row_count, sizeof(table->row[0]), compare_rows);
}

static double time_of(const struct table *table, const struct wpk_candidate *candidate)
{
    const struct row wanted = {.key = wpk_space_key(&table->space, candidate)};
    const struct row *found =
        bsearch(&wanted, table->row, (size_t)table->row_count, sizeof(wanted), compare_rows);
    if (found == NULL) {
        fprintf(stderr, "bench-search: a candidate has no row: the table is of another space\n");
        exit(2);
    }
    return found->ns;
}

/* The best time after each trial.   shape  best [trials] */
static void run(const struct table *table, const struct wpk_strategy_class *class,
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
            double ns = time_of(table, &asked[told]);
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
static int print_asks(const struct table *table, const char *name, int trials)
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

static int replay(struct table *table, const char *name, int trials, int seeds, const char *options)
{
    static const int points[POINTS] = {8, 16, 32, 64, 96, 128, 192, 256};
    static double best[TRIALS_MAX];
    double share[POINTS] = {0}, worst[POINTS], to_97 = 0;
    const struct wpk_strategy_class *class = wpk_strategy_find(name);
    if (class == NULL) {
        fprintf(stderr, "bench-search: no strategy %s\n", name);
        return 2;
    }
    for (int p = 0; p < POINTS; p++) {
        worst[p] = 1;
    }
    uint64_t from = wpk_clock_ns();
    for (int s = 0; s < seeds; s++) {
        const struct wpk_strategy_setup setup = {.seed = (uint64_t)s + 1, .options = options};
        run(table, class, &setup, trials, best);
        int needed = trials;
        for (int i = trials - 1; i >= 0 && table->best / best[i] >= 0.97; i--) {
            needed = i;
        }
        to_97 += needed + 1;
        for (int p = 0; p < POINTS && points[p] <= trials; p++) {
            double reached = table->best / best[points[p] - 1];
            share[p] += reached / seeds;
            worst[p] = fmin(worst[p], reached);
        }
    }
    printf("%-10s", name);
    for (int p = 0; p < POINTS && points[p] <= trials; p++) {
        printf("  %d: %.3f (%.3f)", points[p], share[p], worst[p]);
    }
    printf("  to 97 %%: %.1f  %.2f ms each\n", to_97 / seeds,
           (double)(wpk_clock_ns() - from) / 1e6 / seeds / trials);
    return 0;
}

/* ---- rank: pairs that the cost model puts in the right order */

static struct wpk_candidate drawn[ROWS_MAX];
static double ns_of[ROWS_MAX], predicted[ROWS_MAX];

/* Schedules of the table in random order, those that run.   shape  returns how many */
static int draw_all(const struct table *table, uint64_t seed)
{
    struct wpk_seen seen = {0};
    struct wpk_rng rng;
    int count = 0;
    wpk_rng_seed(&rng, seed);
    for (struct wpk_candidate one;
         count < ROWS_MAX && wpk_seen_draw(&seen, &table->space, &rng, &one) == WPK_OK;) {
        if (wpk_seen_put(&seen, &table->space, &one) != WPK_OK) {
            break;
        }
        ns_of[count] = time_of(table, &one);
        drawn[count] = one;
        count += ns_of[count] > 0;
    }
    wpk_seen_fini(&seen);
    return count;
}

/* The share of the pairs of all but the first `known` schedules that are more than 2 % apart. */
static double rank_pairs(const struct table *table, int known, int count)
{
    static struct wpk_course_trial trials[WPK_TRIALS_MAX];
    struct wpk_course course = {.space = &table->space, .trial = trials, .trial_count = known};
    struct wpk_cost_model *model = wpk_cost_model_new();
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
        predicted[i] = wpk_cost_model_time(model, &table->space, &drawn[i]);
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

static int rank(const struct table *table, int seeds)
{
    static const int known[] = {0, 8, 32, 128};
    double sum[4] = {0};
    for (int s = 0; s < seeds; s++) {
        int count = draw_all(table, (uint64_t)s + 1);
        for (int k = 0; k < 4; k++) {
            sum[k] += rank_pairs(table, known[k], count) / seeds;
        }
    }
    for (int k = 0; k < 4; k++) {
        printf("%s%d trials known: %.3f", k > 0 ? "  " : "", known[k], sum[k]);
    }
    puts("");
    return 0;
}

int main(int argc, char **argv)
{
    static struct table table = {.threads = 1, .layouts = "any"};
    int trials = 128, seeds = 40;
    char options[256] = "";
    bench_usage_help(argc, argv, usage);
    if (argc < 3) {
        fputs(usage, stderr);
        return 2;
    }
    bool lists = strcmp(argv[1], "list") == 0;
    for (int i = lists ? 3 : 4; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--pin") == 0 && table.pin_count < PINS_MAX) {
            table.pin[table.pin_count++] = argv[i + 1];
        } else if (strcmp(argv[i], "--layouts") == 0) {
            snprintf(table.layouts, sizeof(table.layouts), "%s", argv[i + 1]);
        } else if (strcmp(argv[i], "--threads") == 0) {
            table.threads = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--trials") == 0) {
            trials = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--seeds") == 0) {
            seeds = (int)strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--set") == 0) {
            size_t used = strlen(options);
            snprintf(options + used, sizeof(options) - used, "%s%s", used > 0 ? ";" : "",
                     argv[i + 1]);
        }
    }
    if (lists) {
        struct wpk_buf text = {0};
        if (wpk_fs_read(argv[2], 1 << 20, &text, NULL) != WPK_OK) {
            fprintf(stderr, "bench-search: %s cannot be read\n", argv[2]);
            return 2;
        }
        table.op = wpk_buf_text(&text);
        int code = list(&table);
        wpk_buf_fini(&text);
        return code;
    }
    if (argc < 4 || trials > TRIALS_MAX) {
        fputs(usage, stderr);
        return 2;
    }
    read_table(argv[2], &table);
    derive(&table);
    bool asks = strcmp(argv[1], "asks") == 0;
    int code = asks                           ? print_asks(&table, argv[3], trials)
               : strcmp(argv[1], "rank") == 0 ? rank(&table, seeds)
                                              : replay(&table, argv[3], trials, seeds, options);
    wpk_space_fini(&table.space);
    free(table.text);
    return code;
}
