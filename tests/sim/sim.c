/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/sim.h"

#include "common/fs.h"
#include "tests/sim/sim_fair.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void wpk_sim_say(const struct wpk_sim *sim, const char *format, ...)
{
    if (!sim->options.verbose) {
        return;
    }
    va_list args;
    va_start(args, format);
    printf("%9.3f ", (double)(sim->clock.now_ns - sim->began_ns) / 1e9);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

void wpk_sim_fail(const struct wpk_sim *sim, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fprintf(stderr, "seed %llu, after %.3f s: ", (unsigned long long)sim->options.seed,
            (double)(sim->clock.now_ns - sim->began_ns) / 1e9);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nreplay: sim --seed %llu --verbose; the store is in %s\n",
            (unsigned long long)sim->options.seed, sim->directory);
    va_end(args);
    exit(1);
}

static void happen(struct wpk_sim *sim, struct wpk_sim_event *event)
{
    struct wpk_sim_worker *worker = &sim->workers[event->worker];
    bool stale = sim->store == NULL || event->number != sim->life;
    switch (event->kind) {
    case WPK_SIM_TO_WPKD:
        wpk_sim_net_arrive(sim, event);
        return; /* it has taken the data */
    case WPK_SIM_TO_WORKER:
        wpk_sim_worker_receive(sim, worker, event);
        break;
    case WPK_SIM_TURN:
        if (!stale) {
            wpk_sim_wpkd_turn(sim);
        }
        break;
    case WPK_SIM_TICK:
        if (!stale) {
            wpk_sim_wpkd_tick(sim);
        }
        break;
    case WPK_SIM_START:
        wpk_sim_wpkd_start(sim);
        break;
    case WPK_SIM_BIRTH:
        wpk_sim_worker_start(sim, event->worker);
        break;
    case WPK_SIM_WAKE:
        if (worker->wake == event->number) {
            wpk_sim_worker_turn(sim, worker);
        }
        break;
    case WPK_SIM_ACT:
        wpk_sim_act(sim, (int)event->number);
        break;
    }
    wpk_buf_fini(&event->data);
}

static void advance_to(struct wpk_sim *sim, uint64_t at_ns)
{
    if (at_ns > sim->clock.now_ns) {
        wpk_clock_fake_advance(&sim->clock, at_ns - sim->clock.now_ns);
    }
}

void wpk_sim_run(struct wpk_sim *sim, uint64_t ms)
{
    uint64_t end_ns = sim->clock.now_ns + ms * WPK_NS_PER_MS;
    while (wpk_sim_queue_next_ns(&sim->queue) <= end_ns) {
        struct wpk_sim_event event = wpk_sim_queue_take(&sim->queue);
        advance_to(sim, event.at_ns);
        happen(sim, &event);
    }
    advance_to(sim, end_ns);
}

void wpk_sim_calm(struct wpk_sim *sim)
{
    sim->trouble = 0;
    sim->disk_full_ns = sim->disk_full_ns != 0 ? 1 : 0; /* long ago */
    for (int i = 0; i < sim->worker_count; i++) {
        struct wpk_sim_worker *worker = &sim->workers[i];
        worker->hung_until_ns = 0;
        /* There is somebody of each class again, for jobs that wait for it. */
        if (worker->peer != 0 && worker->device != i % sim->options.class_count) {
            wpk_sim_worker_die(sim, i, 1000);
        }
    }
}

static bool is_stuck(const struct wpk_sim *sim)
{
    for (int i = 0; i < sim->worker_count; i++) {
        if (sim->workers[i].run_until_ns > sim->clock.now_ns + 60 * WPK_NS_PER_S) {
            return true;
        }
    }
    return false;
}

bool wpk_sim_finish(struct wpk_sim *sim, int hours)
{
    for (int i = 0; i < hours * 3600 && (wpk_sim_is_live(sim) || is_stuck(sim)); i++) {
        wpk_sim_run(sim, 1000);
    }
    return !wpk_sim_is_live(sim);
}

void wpk_sim_init(struct wpk_sim *sim, const struct wpk_sim_options *options)
{
    /* The files need not survive this machine: a disk would only add its time. */
    const char *place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    memset(sim, 0, sizeof *sim);
    sim->options = *options;
    sim->trouble = options->trouble;
    wpk_rng_seed(&sim->rng, options->seed);
    wpk_clock_fake_init(&sim->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    sim->began_ns = sim->clock.now_ns;
    snprintf(sim->directory, sizeof sim->directory, "%s/wpk-sim-XXXXXX", place);
    WPK_SIM_CHECK(sim, mkdtemp(sim->directory) != NULL, "no directory in %s", place);
    sim->http_last = WPK_SIM_JOBS_MAX;
    sim->owner = "x";
    wpk_sim_fair_begin(sim);
    wpk_sim_wpkd_start(sim);
    WPK_ASSERT(options->worker_count <= WPK_SIM_WORKERS_MAX);
    sim->worker_count = options->worker_count;
    for (int i = 0; i < sim->worker_count; i++) {
        wpk_sim_worker_start(sim, i);
    }
}

void wpk_sim_fini(struct wpk_sim *sim)
{
    wpk_sim_fair_end(sim);
    for (int i = 0; i < sim->worker_count; i++) {
        wpk_sim_worker_fini(&sim->workers[i]);
    }
    if (sim->store != NULL) {
        wpk_sim_wpkd_stop(sim);
    }
    wpk_sim_queue_fini(&sim->queue);
    for (uint32_t i = 0; i < sim->request_count; i++) {
        free(sim->requests[i].ids);
        free(sim->requests[i].built);
    }
    free(sim->requests);
    free(sim->inbox);
    free(sim->items);
    wpk_err err = wpk_fs_remove_tree(sim->directory, NULL);
    WPK_SIM_CHECK(sim, err == WPK_OK, "the directory cannot be removed");
}
