/* SPDX-License-Identifier: Apache-2.0 */
/* wpkd: the real one, except for the loop, the sockets and the clock. */
#include "coordinator/api/api.h"
#include "coordinator/index/index.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/state/event.h"
#include "coordinator/state/model.h"
#include "coordinator/store/store.h"
#include "tests/sim/sim.h"
#include "tests/sim/sim_disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS 200
#define DISK_FULL_MS 3000
#define WRITES_OF_A_COMMIT 12
#define LATE_MS 2000  /* what a strategy takes */
#define WEIGHT 2      /* of y, where there are rules */
#define QUOTA 1       /* jobs of z */
#define WRITES_MAX 40 /* before the disk breaks: a few commits */

/* ---- out */

static void on_reply(void *user, const struct wpk_net_address *address, const void *data,
                     size_t size)
{
    struct wpk_sim *sim = user;
    wpk_sim_check_reply(sim, address, data, size);
    wpk_sim_net_to_worker(sim, address, data, size);
}

/* The id of the job in an answer to POST /v1/jobs. */
static void note_accepted(struct wpk_sim *sim, uint64_t request,
                          const struct wpk_api_answer *answer)
{
    if (request > WPK_SIM_JOBS_MAX || answer->status != 201) {
        return; /* not the request that submits a job of the plan */
    }
    struct wpk_sim_job *job = &sim->jobs[request - 1];
    const char *at = strstr(answer->location, "/v1/jobs/");
    WPK_SIM_CHECK(sim, at != NULL, "a job has no location");
    snprintf(job->id, sizeof job->id, "%s", at + strlen("/v1/jobs/"));
    job->accepted = true;
}

static uint32_t count_live(const struct wpk_coordinator *c, const char *owner)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->job_count; i++) {
        count += strcmp(c->jobs[i]->owner, owner) == 0 && c->jobs[i]->finished_wall_ns == 0;
    }
    return count;
}

static void on_respond(void *user, uint64_t request, struct wpk_api_answer *answer)
{
    struct wpk_sim *sim = user;
    if (sim->store == NULL) {
        return; /* it dies: nobody hears its last words */
    }
    WPK_SIM_CHECK(sim, sim->committing || answer->status >= 400,
                  "an answer leaves before its batch is durable");
    wpk_sim_say(sim, "wpkd: answers %d to request %llu", answer->status,
                (unsigned long long)request);
    sim->responses += answer->status == 200 || answer->status == 201;
    note_accepted(sim, request, answer);
    if (answer->status == 429) {
        sim->refusals++;
        WPK_SIM_CHECK(sim, sim->options.rules && strcmp(sim->owner, "z") == 0,
                      "%s has no quota, and his job is refused", sim->owner);
        WPK_SIM_CHECK(sim, answer->retry_after_s > 0, "it is not said when to come again");
        WPK_SIM_CHECK(sim, count_live(wpk_sim_coordinator(sim), "z") == QUOTA,
                      "a job is refused, and there is room for it");
    }
}

/* ---- strategies */

/* A strategy thinks on another thread: what it answers may come many turns later. */
bool wpk_sim_take_answers(struct wpk_executor *executor) __asm__(
    "__wrap_wpk_executor_take_answers");
bool wpk_sim_real_take_answers(struct wpk_executor *executor) __asm__(
    "__real_wpk_executor_take_answers");
static struct wpk_sim *thinking; /* the one whose strategies take their time; NULL: none does */

bool wpk_sim_take_answers(struct wpk_executor *executor)
{
    struct wpk_sim *sim = thinking;
    if (sim != NULL && sim->late_ns <= sim->clock.now_ns && wpk_rng_chance(&sim->rng, 0.1)) {
        sim->late_ns = sim->clock.now_ns + wpk_rng_below(&sim->rng, LATE_MS * WPK_NS_PER_MS);
    }
    if (sim != NULL && sim->late_ns > sim->clock.now_ns) {
        return false;
    }
    return wpk_sim_real_take_answers(executor);
}

/* ---- life */

static void start_again_later(struct wpk_sim *sim, uint64_t ms)
{
    struct wpk_sim_event start = {.kind = WPK_SIM_START,
                                  .at_ns = sim->clock.now_ns + ms * WPK_NS_PER_MS};
    wpk_sim_queue_put(&sim->queue, start);
}

/* Said again whenever there is another coordinator. */
static void set_rules(void *user)
{
    struct wpk_sim *sim = user;
    struct wpk_event weight = {.kind = WPK_EVENT_SET_OWNER,
                               .owner = {.name = "y", .weight = WEIGHT, .jobs_max = 1000}};
    struct wpk_event quota = {.kind = WPK_EVENT_SET_OWNER,
                              .owner = {.name = "z", .weight = 1, .jobs_max = QUOTA}};
    if (sim->options.rules) {
        wpk_executor_step(sim->executor, &weight);
        wpk_executor_step(sim->executor, &quota);
    }
}

static void open_index(struct wpk_sim *sim)
{
    struct wpk_diag diag = {0};
    sim->index = wpk_index_new();
    wpk_err err = wpk_index_load(sim->index, sim->store, &diag);
    WPK_SIM_CHECK(sim, err == WPK_OK, "there is no index: %s", diag.text);
}

/* As the service does at its start; then files and rows are the same. */
static void sweep_artifacts(struct wpk_sim *sim)
{
    char path[192];
    wpk_history_sweep_artifacts(sim->store, sim->directory);
    struct wpk_rows *rows = wpk_store_query(sim->store, "SELECT sha256 FROM artifact", "");
    while (wpk_rows_next(rows)) {
        const char *sha256 = wpk_rows_text(rows, 0);
        snprintf(path, sizeof path, "%s/artifacts/%.2s/%s.so", sim->directory, sha256, sha256);
        WPK_SIM_CHECK(sim, access(path, R_OK) == 0, "artifact %s has a row and no file", sha256);
    }
    wpk_rows_close(rows);
}

void wpk_sim_wpkd_start(struct wpk_sim *sim)
{
    struct wpk_diag diag = {0};
    struct wpk_executor_options options = {
        .data_dir = sim->directory,
        .clock = &sim->clock.clock,
        .out = {.reply = on_reply, .respond = on_respond, .user = sim},
        .answer = wpk_api_answer_effect,
        .rebuilt = set_rules,
    };
    sim->life++;
    sim->turn_set = false;
    wpk_err err = wpk_store_open(sim->directory, &sim->clock.clock, &sim->store, &diag);
    WPK_SIM_CHECK(sim, err == WPK_OK, "the store does not open: %s", diag.text);
    sweep_artifacts(sim);
    wpk_sim_check_acknowledged(sim);
    wpk_sim_look_at_kernels(sim);
    thinking = sim->options.late ? sim : NULL;
    options.store = sim->store;
    open_index(sim);
    options.index = sim->index;
    sim->committing = true;
    err = wpk_executor_new(&options, &sim->executor, &diag);
    sim->committing = false;
    WPK_SIM_CHECK(sim, err == WPK_OK, "wpkd does not start: %s", diag.text);
    set_rules(sim);
    struct wpk_sim_event tick = {.kind = WPK_SIM_TICK, .number = sim->life};
    tick.at_ns = sim->clock.now_ns + TICK_MS * WPK_NS_PER_MS;
    wpk_sim_queue_put(&sim->queue, tick);
    wpk_sim_say(sim, "wpkd: life %llu, %u jobs", (unsigned long long)sim->life,
                wpk_executor_coordinator(sim->executor)->live_count);
}

void wpk_sim_wpkd_stop(struct wpk_sim *sim)
{
    struct wpk_store *store = sim->store;
    sim->store = NULL;
    wpk_store_close(store);
    /* The executor only frees memory: nothing of it reaches the store any more. */
    wpk_executor_free(sim->executor);
    sim->executor = NULL;
    wpk_index_free(sim->index);
    sim->index = NULL;
    thinking = NULL;
    wpk_sim_disk_mend();
    sim->disk_full_ns = 0;
    sim->degraded = false;
    for (uint32_t i = 0; i < sim->inbox_count; i++) {
        wpk_buf_fini(&sim->inbox[i].data);
    }
    sim->inbox_count = 0;
}

/* Connections end with it: who waits for an answer hears so, or not. */
void wpk_sim_wpkd_crash(struct wpk_sim *sim, uint64_t ms)
{
    wpk_sim_say(sim, "wpkd: killed");
    wpk_sim_wpkd_stop(sim);
    sim->crashes++;
    for (int i = 0; i < sim->worker_count; i++) {
        struct wpk_sim_worker *worker = &sim->workers[i];
        wpk_sim_excuse(worker, sim->clock.now_ns + 60 * WPK_NS_PER_S);
        if (worker->peer != 0 && wpk_rng_chance(&sim->rng, 0.5)) {
            worker->peer = ++sim->peer_last;
            worker->awaits = false;
            wpk_sim_worker_wake(sim, worker, sim->clock.now_ns + 50 * WPK_NS_PER_MS);
        }
    }
    start_again_later(sim, ms);
}

const struct wpk_coordinator *wpk_sim_coordinator(const struct wpk_sim *sim)
{
    return wpk_executor_coordinator(sim->executor);
}

bool wpk_sim_is_live(const struct wpk_sim *sim)
{
    return sim->store == NULL || sim->degraded || wpk_sim_coordinator(sim)->live_count > 0;
}

/* ---- turns */

/* It breaks now and then, at once or within the next commits; an end of its own. */
static void break_or_mend_disk(struct wpk_sim *sim)
{
    if (sim->disk_full_ns != 0 && sim->clock.now_ns > sim->disk_full_ns) {
        wpk_sim_disk_mend();
        sim->disk_full_ns = 0;
    } else if (sim->disk_full_ns == 0 && wpk_rng_chance(&sim->rng, sim->trouble / 200)) {
        long writes = (long)wpk_rng_below(&sim->rng, WRITES_MAX);
        wpk_sim_disk_break(writes, wpk_rng_chance(&sim->rng, 0.5) ? ENOSPC : EIO);
        sim->disk_full_ns =
            sim->clock.now_ns + wpk_rng_below(&sim->rng, DISK_FULL_MS * WPK_NS_PER_MS);
        wpk_sim_say(sim, "disk: breaks after %ld writes", writes);
    }
}

static wpk_err commit_now(struct wpk_sim *sim, struct wpk_diag *diag)
{
    sim->committing = true;
    wpk_err err = wpk_executor_commit(sim->executor, diag);
    sim->committing = false;
    sim->commits++;
    return err;
}

static void commit(struct wpk_sim *sim)
{
    struct wpk_diag diag = {0};
    break_or_mend_disk(sim);
    wpk_err err = commit_now(sim, &diag);
    if (err == WPK_OK) {
        sim->degraded = false;
        wpk_sim_check_state(sim);
        wpk_sim_check_outliers(sim);
        wpk_sim_look_at_kernels(sim);
        wpk_sim_check_index(sim);
    } else if (!sim->degraded) {
        /* It stays, and is as it was; or its operator has had enough. */
        WPK_SIM_CHECK(sim, wpk_sim_disk_failed(), "a commit fails: %s", diag.text);
        wpk_sim_say(sim, "wpkd: %s", diag.text);
        sim->degraded = true;
        for (int i = 0; i < sim->worker_count; i++) {
            wpk_sim_excuse(&sim->workers[i], sim->clock.now_ns + 120 * WPK_NS_PER_S);
        }
        if (wpk_rng_chance(&sim->rng, 0.2)) {
            wpk_sim_wpkd_crash(sim, DISK_FULL_MS);
        }
    }
}

/* It is killed while it writes: some of the batch is on the disk, and nothing more will be. */
static void die_in_commit(struct wpk_sim *sim)
{
    struct wpk_diag diag = {0};
    wpk_sim_disk_break((long)wpk_rng_below(&sim->rng, WRITES_OF_A_COMMIT), EIO);
    wpk_err err = commit_now(sim, &diag);
    wpk_sim_say(sim, "wpkd: in a commit, which %s", err == WPK_OK ? "was done" : "fails");
}

/* The moment in a turn at which wpkd dies. */
enum moment { NEVER, BEFORE_COMMIT, IN_COMMIT, AFTER_COMMIT };

static enum moment draw_death(struct wpk_sim *sim)
{
    bool dies = wpk_rng_chance(&sim->rng, sim->trouble / 30);
    return dies ? (enum moment)(1 + wpk_rng_below(&sim->rng, 3)) : NEVER;
}

static void end_turn(struct wpk_sim *sim)
{
    enum moment death = draw_death(sim);
    if (death == IN_COMMIT) {
        die_in_commit(sim);
    } else if (death != BEFORE_COMMIT) {
        commit(sim);
    }
    if (death != NEVER && sim->store != NULL) {
        wpk_sim_wpkd_crash(sim, 10 + wpk_rng_below(&sim->rng, 3000));
    }
}

static void take(struct wpk_sim *sim, const struct wpk_sim_event *event)
{
    if (event->data.size == 0) {
        struct wpk_event gone = {.kind = WPK_EVENT_GONE, .address = event->address};
        wpk_executor_step(sim->executor, &gone);
        return;
    }
    wpk_executor_frame(sim->executor, &event->address, event->data.data, event->data.size,
                       wpk_rng_next(&sim->rng));
}

void wpk_sim_wpkd_turn(struct wpk_sim *sim)
{
    sim->turn_set = false;
    for (uint32_t i = 0; i < sim->inbox_count; i++) {
        take(sim, &sim->inbox[i]);
        wpk_buf_fini(&sim->inbox[i].data);
    }
    sim->inbox_count = 0;
    end_turn(sim);
}

void wpk_sim_wpkd_tick(struct wpk_sim *sim)
{
    struct wpk_event event = {.kind = WPK_EVENT_TICK};
    struct wpk_sim_event tick = {.kind = WPK_SIM_TICK, .number = sim->life};
    tick.at_ns = sim->clock.now_ns + TICK_MS * WPK_NS_PER_MS;
    wpk_sim_queue_put(&sim->queue, tick);
    wpk_executor_step(sim->executor, &event);
    commit(sim);
}

void wpk_sim_post(struct wpk_sim *sim, uint64_t id, const char *path, const char *body)
{
    struct wpk_http_request request = {.id = id != 0 ? id : ++sim->http_last,
                                       .identity = {.roles = WPK_ROLE_ALL},
                                       .method = "POST",
                                       .path = path,
                                       .body = body,
                                       .body_size = strlen(body),
                                       .content_type = "application/json"};
    if (sim->store == NULL) {
        return; /* nobody is there */
    }
    snprintf(request.identity.owner, sizeof request.identity.owner, "%s", sim->owner);
    wpk_api_request(sim->executor, &request, wpk_rng_next(&sim->rng));
    end_turn(sim);
}
