/* SPDX-License-Identifier: Apache-2.0 */
/* Runs seeds: sim [--seed FIRST] [--count N] [--verbose]. The first violation ends the program. */
#include "common/log.h"
#include "tests/sim/sim.h"
#include "tests/sim/sim_fair.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOURS_MAX 4                  /* in which every job has ended, without trouble */
#define QUIET_MS 30000               /* longer than a lease */
#define GROWTH_MAX ((size_t)1 << 20) /* bytes, of caches, over all seeds */

static void run(uint64_t seed, bool verbose)
{
    struct wpk_rng rng;
    wpk_rng_seed(&rng, seed);
    struct wpk_sim_options options = {
        .seed = seed,
        .worker_count = (int)wpk_rng_between(&rng, 2, 8),
        .class_count = wpk_rng_chance(&rng, 0.5) ? 1 : 2,
        .trouble = seed % 10 == 0 ? 0 : wpk_rng_unit(&rng),
        .liars = true,
        .mixed = wpk_rng_chance(&rng, 0.3),
        .late = wpk_rng_chance(&rng, 0.3),
        .jumps = wpk_rng_chance(&rng, 0.2),
        .rules = wpk_rng_chance(&rng, 0.5),
        .skewed = wpk_rng_chance(&rng, 0.2),
        .skew = wpk_rng_chance(&rng, 0.5) ? 0.1 : 10,
        .run_ms = wpk_rng_chance(&rng, 0.2) ? 100 : 0,
        .verbose = verbose,
    };
    if (wpk_rng_chance(&rng, 0.05)) {
        options.worker_count = WPK_SIM_WORKERS_MAX;
    }
    struct wpk_sim *sim = calloc(1, sizeof *sim);
    WPK_ASSERT(sim != NULL);
    wpk_sim_init(sim, &options);
    wpk_sim_run(sim, wpk_sim_plan(sim));
    wpk_sim_calm(sim);
    wpk_sim_resume_all(sim);
    bool ended = wpk_sim_finish(sim, HOURS_MAX);
    WPK_SIM_CHECK(sim, ended, "jobs do not end");
    wpk_sim_run(sim, QUIET_MS);
    wpk_sim_check_end(sim);
    if (verbose) {
        printf("seed %llu: %d workers, %d jobs, %d executions, %d crashes of wpkd, %d of workers,"
               " %d commits, %d refusals, %d revoked, %d rolled back%s\n",
               (unsigned long long)seed, sim->worker_count, sim->job_count, sim->executions,
               sim->crashes, sim->deaths, sim->commits, sim->refusals, sim->revoked,
               sim->rolled_back, sim->found ? ", one outlier" : "");
    }
    wpk_sim_fini(sim);
    free(sim);
}

/* Bytes that are allocated; 0 where the allocator does not say. */
static size_t allocated(void)
{
    return mallinfo2().uordblks;
}

int main(int argc, char **argv)
{
    uint64_t first = 1;
    uint64_t count = 1;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            first = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc) {
            count = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else {
            fprintf(stderr, "usage: sim [--seed FIRST] [--count N] [--verbose]\n");
            return 2;
        }
    }
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("sim", verbose ? WPK_LOG_INFO : WPK_LOG_ERROR, verbose ? 1 : null);
    setvbuf(stdout, NULL, _IOLBF, 0);
    size_t before = 0;
    for (uint64_t i = 0; i < count; i++) {
        run(first + i, verbose);
        before = i == 0 ? allocated() : before;
    }
    size_t after = allocated();
    if (after > before + GROWTH_MAX) {
        fprintf(stderr, "%zu bytes are left behind by %llu seeds\n", after - before,
                (unsigned long long)count);
        return 1;
    }
    printf("%llu seeds from %llu, %llu windows of leases\n", (unsigned long long)count,
           (unsigned long long)first, (unsigned long long)wpk_sim_fair_windows());
    close(null);
    return 0;
}
