/* SPDX-License-Identifier: Apache-2.0 */
/* bench-store: measures how many results a second the writer alone records into a large history.
 *
 *     bench-store DIR [ROWS [SECONDS [BATCH]]]
 *
 * DIR is made, and filled up to ROWS trials if it holds fewer. Each batch records as many asks as
 * it has results, as a search does. An ask and its result count as one result. */
#include "bench/usage.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "coordinator/store/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEARCHES 100
#define FILL_BATCH 8192

static const char usage[] =
    "usage: bench-store DIR [ROWS [SECONDS [BATCH]]]\n"
    "  the writer alone: results a second, into a history of ROWS trials (1000000) in DIR,\n"
    "  which is made; for SECONDS (10), BATCH results in a transaction (500)\n";

struct bench {
    struct wpk_store *store;
    struct wpk_search search;
    uint64_t search_ids[SEARCHES];
    uint64_t problem_ids[SEARCHES];
    uint32_t asked[SEARCHES];
    uint64_t made; /* candidates so far, in this run */
    uint64_t salt;
};

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int64_t read_int(struct wpk_store *store, const char *sql)
{
    struct wpk_rows *rows = wpk_store_query(store, sql, "");
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : 0;
    wpk_rows_close(rows);
    return value;
}

static void open_searches(struct bench *b)
{
    struct wpk_opened opened;
    wpk_store_begin(b->store);
    for (int i = 0; i < SEARCHES; i++) {
        memset(&b->search, 0, sizeof b->search);
        snprintf(b->search.key.fingerprint, sizeof b->search.key.fingerprint, "%064d", i);
        snprintf(b->search.key.providers, sizeof b->search.key.providers, "halide-cpu;onednn");
        snprintf(b->search.key.strategy, sizeof b->search.key.strategy, "random");
        b->search.key.seed = b->salt;
        b->search.op = (char *)"Y[i] = X[i]";
        b->search.policy.threads = 1;
        wpk_history_open_search(b->store, &b->search, &opened);
        b->search_ids[i] = opened.search_id;
        b->problem_ids[i] = opened.problem_id;
        for (uint32_t v = 0; v < opened.vendor_count; v++) {
            free(opened.vendors[v].text);
        }
    }
}

/* As long as real ones are. */
static void make_candidate(const struct bench *b, char out[256])
{
    snprintf(out, 256,
             "cpu-1 algorithm=winograd layout=nchw16c tile_x=%u tile_y=%u order=%u vector=16 "
             "unroll=%u parallel=%u pack=%u fuse=%u salt=%llu number=%llu",
             (unsigned)b->made % 64, (unsigned)b->made % 32, (unsigned)b->made % 24,
             (unsigned)b->made % 4, (unsigned)b->made % 8, (unsigned)b->made % 2,
             (unsigned)b->made % 16, (unsigned long long)b->salt, (unsigned long long)b->made);
}

static void put_result(struct bench *b, int search, uint32_t number)
{
    struct wpk_record record = {.timing = {.median_ns = 1000 + b->made % 1000,
                                           .min_ns = 990,
                                           .mad_ns = 5,
                                           .sample_count = 10,
                                           .repeat_count = 20},
                                .anchor_ns = 900,
                                .build_ns = 150000000,
                                .verify_ns = 2000000,
                                .error_max = 1e-6,
                                .error_tolerance = 1e-5};
    for (int i = 0; i < record.timing.sample_count; i++) {
        record.timing.sample_ns[i] = 1000 + (uint64_t)i;
    }
    snprintf(record.schedule_sha256, sizeof record.schedule_sha256, "%064llx",
             (unsigned long long)b->made);
    snprintf(record.artifact_sha256, sizeof record.artifact_sha256, "%064llx",
             (unsigned long long)b->made);
    struct wpk_history_result result = {.problem_id = b->problem_ids[search],
                                        .work = {b->search_ids[search], WPK_WORK_TRIAL, number},
                                        .record = &record,
                                        .worker = {"host0123/4567", "host0123/cpu0"}};
    wpk_history_put_trial(b->store, &result);
}

/* Asks and results of one transaction. */
static void write_batch(struct bench *b, uint32_t count)
{
    struct wpk_diag diag = {0};
    uint32_t first[SEARCHES];
    memcpy(first, b->asked, sizeof first);
    wpk_store_begin(b->store);
    for (uint32_t i = 0; i < count; i++) {
        char candidate[256];
        struct wpk_trial_summary known;
        int search = (int)(i % SEARCHES);
        make_candidate(b, candidate);
        b->made++;
        struct wpk_history_ask ask = {.search_id = b->search_ids[search],
                                      .problem_id = b->problem_ids[search],
                                      .number = b->asked[search]++,
                                      .provider = "halide-cpu",
                                      .candidate = candidate,
                                      .source = "drawn"};
        wpk_history_put_ask(b->store, &ask, &known);
    }
    /* In two transactions, as it is: nothing is leased before its ask is durable. */
    if (wpk_store_commit(b->store, &diag) != WPK_OK) {
        fprintf(stderr, "%s\n", diag.text);
        exit(1);
    }
    wpk_store_begin(b->store);
    for (int s = 0; s < SEARCHES; s++) {
        for (uint32_t n = first[s]; n < b->asked[s]; n++) {
            put_result(b, s, n);
        }
    }
    if (wpk_store_commit(b->store, &diag) != WPK_OK) {
        fprintf(stderr, "%s\n", diag.text);
        exit(1);
    }
}

static void print_rate(const char *what, uint64_t results, uint64_t commits, uint64_t began_ns,
                       double began_cpu)
{
    double s = (double)(wpk_clock_ns() - began_ns) / 1e9;
    double cpu = cpu_s() - began_cpu;
    printf("%s: %.0f results/s, %.1f commits/s, %.1f us and %.1f us of CPU a result\n", what,
           (double)results / s, (double)commits / s, s * 1e6 / (double)results,
           cpu * 1e6 / (double)results);
}

int main(int argc, char **argv)
{
    struct bench bench = {.salt = wpk_clock_ns()};
    struct wpk_diag diag = {0};
    bench_usage_help(argc, argv, usage);
    long rows = argc > 2 ? strtol(argv[2], NULL, 10) : 1000000;
    long seconds = argc > 3 ? strtol(argv[3], NULL, 10) : 10;
    uint32_t batch = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 500;
    if (argc < 2 || argv[1][0] == '-' || rows < 0 || seconds < 1 || batch < 1) {
        fputs(usage, stderr);
        return 2;
    }
    if (wpk_fs_make_dirs(argv[1], &diag) != WPK_OK ||
        wpk_store_open(argv[1], wpk_clock_system(), &bench.store, &diag) != WPK_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    open_searches(&bench);
    int64_t there = read_int(bench.store, "SELECT COALESCE(MAX(id), 0) FROM trial");
    uint64_t began_ns = wpk_clock_ns();
    double began_cpu = cpu_s();
    uint64_t commits = 0;
    for (int64_t n = there; n < rows; n += FILL_BATCH) {
        write_batch(&bench, FILL_BATCH);
        commits += 2;
    }
    if (commits > 0) {
        print_rate("filling", bench.made, commits, began_ns, began_cpu);
    }
    uint64_t filled = bench.made;
    commits = 0;
    began_ns = wpk_clock_ns();
    began_cpu = cpu_s();
    while (wpk_clock_ns() - began_ns < (uint64_t)seconds * WPK_NS_PER_S) {
        write_batch(&bench, batch);
        commits += 2;
    }
    print_rate("batches", bench.made - filled, commits, began_ns, began_cpu);
    wpk_store_close(bench.store);
    return 0;
}
