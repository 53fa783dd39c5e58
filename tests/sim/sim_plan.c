/* SPDX-License-Identifier: Apache-2.0 */
/* Actions of users: jobs on few operators, so that jobs share searches and problems, and sometimes
 * a cancellation. Each action is drawn when it happens. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

#define OPS 5
#define OPS_OF_A_JOB_MAX 3
#define JOBS_MAX 7
#define REVOKED_MS 30000 /* until then: kernels have to be there first */
#define CANDIDATES_MIN 4
#define CANDIDATES_MAX 40
#define SECONDS 3600
#define FEW_SECONDS 5
#define CANCELLED_CHANCE 0.15
#define LABEL_CHANCE 0.25
#define HOPELESS_CHANCE 0.05
#define REVOKED_CHANCE 0.2
#define ROLLED_BACK_CHANCE 0.25
#define JUMP_HOURS_MAX 100

enum action { SUBMIT, CANCEL, TEARS, PAUSE, RESUME, ORDER, REVOKE, ROLL_BACK, JUMP };

void wpk_sim_submit(struct wpk_sim *sim, const char *job)
{
    wpk_sim_post(sim, 0, "/v1/jobs", job);
}

void wpk_sim_cancel(struct wpk_sim *sim, const char *id)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/jobs/%s:cancel", id);
    wpk_sim_post(sim, 0, path, "");
}

/* The first worker of each timing class is in the first lab. */
const char *wpk_sim_lab(const struct wpk_sim *sim, int worker)
{
    return worker / sim->options.class_count % 2 == 0 ? "a" : "b";
}

static void put_ops(struct wpk_sim *sim, struct wpk_buf *out)
{
    int count = 1 + (int)wpk_rng_below(&sim->rng, OPS_OF_A_JOB_MAX);
    int first = (int)wpk_rng_below(&sim->rng, OPS);
    for (int i = 0; i < count; i++) {
        int op = 2 + (first + i) % OPS;
        wpk_buf_printf(out,
                       "%s{\"name\":\"o%d\",\"op\":\"Y[i] = X[i] * %d\",\"tensors\":{\"X\":"
                       "\"f32[8]\",\"Y\":\"f32[8]\"}}",
                       i > 0 ? "," : "", op, op);
    }
}

/* Those that take milliseconds an ask are rare. */
static const char *draw_strategy(struct wpk_sim *sim)
{
    static const char *const common[] = {"ga", "random", "anneal", "mcmc", "construct"};
    static const char *const rare[] = {"auto", "bayes", "rl"};
    return wpk_rng_chance(&sim->rng, 0.9) ? common[wpk_rng_below(&sim->rng, 5)]
                                          : rare[wpk_rng_below(&sim->rng, 3)];
}

/* The answer may never come: then it is submitted or not, and its user does not know. */
static void submit(struct wpk_sim *sim)
{
    struct wpk_buf text = {0};
    if (sim->job_count == WPK_SIM_JOBS_MAX || sim->store == NULL) {
        return;
    }
    struct wpk_sim_job *job = &sim->jobs[sim->job_count];
    bool hurried = wpk_rng_chance(&sim->rng, 0.2);
    job->submitted = true;
    job->candidates = (uint32_t)wpk_rng_between(&sim->rng, CANDIDATES_MIN, CANDIDATES_MAX);
    job->candidates = hurried ? 1000 : job->candidates;
    job->seconds = hurried ? 1 + (uint32_t)wpk_rng_below(&sim->rng, FEW_SECONDS) : SECONDS;
    wpk_buf_printf(&text, "{\"name\":\"n%d\",\"ops\":[", sim->job_count);
    put_ops(sim, &text);
    job->hopeless = wpk_rng_chance(&sim->rng, HOPELESS_CHANCE);
    if (job->hopeless || wpk_rng_chance(&sim->rng, LABEL_CHANCE)) {
        wpk_buf_printf(&text, "],\"target\":{\"labels\":{\"lab\":\"%s\"}}",
                       job->hopeless ? "nowhere" : "a");
    } else {
        wpk_buf_printf(&text, "]");
    }
    wpk_buf_printf(&text,
                   ",\"search\":{\"strategy\":\"%s\",\"seed\":%d},\"budget\":{\"candidates\":%u,"
                   "\"seconds\":%u},\"priority\":%d}",
                   draw_strategy(sim), 1 + (int)wpk_rng_below(&sim->rng, 2), job->candidates,
                   job->seconds, (int)wpk_rng_below(&sim->rng, 2));
    static const char *const owners[] = {"x", "y", "z"};
    sim->owner = owners[wpk_rng_below(&sim->rng, 3)];
    wpk_sim_say(sim, "user: submits %s", wpk_buf_text(&text));
    sim->job_count++;
    wpk_sim_post(sim, (uint64_t)sim->job_count, "/v1/jobs", wpk_buf_text(&text));
    wpk_buf_fini(&text);
}

static void change(struct wpk_sim *sim, const struct wpk_sim_job *job, const char *verb)
{
    char path[64];
    wpk_sim_say(sim, "user: %s n%d", verb, (int)(job - sim->jobs));
    snprintf(path, sizeof path, "/v1/jobs/%s:%s", job->id, verb);
    wpk_sim_post(sim, 0, path, "");
}

static void change_any(struct wpk_sim *sim, const char *verb)
{
    int index = sim->job_count > 0 ? (int)wpk_rng_below(&sim->rng, (uint64_t)sim->job_count) : 0;
    if (sim->jobs[index].accepted) {
        change(sim, &sim->jobs[index], verb);
    }
}

/* Revoke a served kernel, as if it had turned out to be wrong. */
static void revoke(struct wpk_sim *sim)
{
    char path[64];
    if (sim->store == NULL || sim->degraded) {
        return;
    }
    int64_t kernel = wpk_sim_count(sim, "SELECT COALESCE(MAX(id), 0) FROM kernel WHERE served = 1");
    if (kernel != 0) {
        wpk_sim_say(sim, "user: revokes kernel %lld", (long long)kernel);
        sim->revoked++;
        /* Ours that is left follows, even where a vendor's is faster. */
        int64_t problem = wpk_sim_find_kernel(sim, kernel)->problem;
        for (int i = 0; i < sim->kernel_count; i++) {
            sim->kernels[i].rolled_back |= sim->kernels[i].problem == problem;
        }
        snprintf(path, sizeof path, "/v1/kernels/k%lld:revoke", (long long)kernel);
        wpk_sim_post(sim, 0, path, "");
    }
}

/* Of the wall clock only: nothing that has to last so long may depend on it. */
static void jump(struct wpk_sim *sim)
{
    int64_t hours = wpk_rng_between(&sim->rng, -JUMP_HOURS_MAX, JUMP_HOURS_MAX);
    wpk_sim_say(sim, "clock: set by %lld hours", (long long)hours);
    sim->clock.wall_ns += (uint64_t)(hours * 3600) * WPK_NS_PER_S;
}

static void set_admin_state(struct wpk_sim *sim, struct wpk_sim_worker *worker, const char *verb)
{
    char path[64];
    char body[64];
    wpk_sim_say(sim, "user: %s w%d", verb, worker->index);
    snprintf(path, sizeof path, "/v1/workers:%s", verb);
    snprintf(body, sizeof body, "{\"name\":\"w%d.%d\"}", worker->index, worker->life);
    wpk_sim_excuse(worker,
                   sim->clock.now_ns + 3600 * WPK_NS_PER_S); /* its work is given to others */
    wpk_sim_post(sim, 0, path, body);
}

void wpk_sim_resume_all(struct wpk_sim *sim)
{
    while (sim->store == NULL || sim->degraded) {
        wpk_sim_run(sim, 100);
    }
    for (int i = 0; i < sim->job_count; i++) {
        if (sim->jobs[i].accepted) {
            change(sim, &sim->jobs[i], sim->jobs[i].hopeless ? "cancel" : "resume");
        }
    }
    for (int i = 0; i < sim->worker_count; i++) {
        set_admin_state(sim, &sim->workers[i], "resume");
    }
}

void wpk_sim_act(struct wpk_sim *sim, int action)
{
    switch ((enum action)action) {
    case SUBMIT:
        submit(sim);
        break;
    case CANCEL:
        change_any(sim, "cancel");
        break;
    case PAUSE:
        change_any(sim, "pause");
        break;
    case RESUME:
        change_any(sim, "resume");
        break;
    case ORDER:
        set_admin_state(sim, &sim->workers[wpk_rng_below(&sim->rng, (uint64_t)sim->worker_count)],
                        wpk_rng_chance(&sim->rng, 0.5) ? "drain" : "quarantine");
        break;
    case JUMP:
        jump(sim);
        break;
    case REVOKE:
        revoke(sim);
        break;
    case ROLL_BACK:
        wpk_sim_roll_back(sim);
        break;
    case TEARS:
        wpk_sim_net_cut(sim, sim->workers[0].peer);
        break;
    }
}

static void put(struct wpk_sim *sim, enum action action, uint64_t ms)
{
    struct wpk_sim_event event = {.kind = WPK_SIM_ACT, .number = action};
    event.at_ns = sim->clock.now_ns + ms * WPK_NS_PER_MS;
    wpk_sim_queue_put(&sim->queue, event);
}

uint64_t wpk_sim_plan(struct wpk_sim *sim)
{
    uint64_t length_ms = 3000 + wpk_rng_below(&sim->rng, 15000);
    int jobs = 1 + (int)wpk_rng_below(&sim->rng, JOBS_MAX);
    for (int i = 0; i < jobs; i++) {
        put(sim, SUBMIT, i == 0 ? 200 : wpk_rng_below(&sim->rng, length_ms));
        if (wpk_rng_chance(&sim->rng, CANCELLED_CHANCE)) {
            put(sim, CANCEL, wpk_rng_below(&sim->rng, length_ms));
        }
        if (wpk_rng_chance(&sim->rng, REVOKED_CHANCE)) {
            put(sim, REVOKE, wpk_rng_below(&sim->rng, REVOKED_MS));
        }
        if (wpk_rng_chance(&sim->rng, ROLLED_BACK_CHANCE)) {
            put(sim, ROLL_BACK, wpk_rng_below(&sim->rng, REVOKED_MS));
        }
        if (sim->options.jumps) {
            put(sim, JUMP, wpk_rng_below(&sim->rng, length_ms));
        }
        for (enum action action = TEARS; action <= ORDER; action++) {
            if (wpk_rng_chance(&sim->rng, sim->trouble / 2)) {
                put(sim, action, wpk_rng_below(&sim->rng, length_ms));
            }
        }
    }
    return length_ms;
}
