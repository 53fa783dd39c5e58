/* SPDX-License-Identifier: Apache-2.0 */
/* The workers: they speak the protocol as wpk-worker does, with delays, and make results up. This
 * file sends messages; sim_answer.c handles the answers. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WANTED 6          /* work items at a time */
#define PATIENCE_MS 2500  /* then a question or its answer is lost */
#define AGAIN_MS 200      /* between two polls of one that wants more */
#define HEARTBEAT_MS 4000 /* of one that does not */
#define POLL_WAIT_MS 1500
#define RUN_MS_MIN 10
#define RUN_MS_MAX 400
#define HANG_S_MAX 60
#define STICK_S 2400 /* longer than a lease may be named as the one that runs */
#define BORN_AGAIN_MS 2000

void wpk_sim_worker_wake(struct wpk_sim *sim, struct wpk_sim_worker *worker, uint64_t at_ns)
{
    struct wpk_sim_event wake = {.kind = WPK_SIM_WAKE, .worker = worker->index, .at_ns = at_ns};
    if (wake.at_ns <= sim->clock.now_ns) {
        wake.at_ns = sim->clock.now_ns + WPK_NS_PER_MS;
    }
    wake.number = ++sim->queue.order_last;
    worker->wake = wake.number;
    wpk_sim_queue_put(&sim->queue, wake);
}

/* ---- life */

void wpk_sim_worker_start(struct wpk_sim *sim, int index)
{
    struct wpk_sim_worker *worker = &sim->workers[index];
    int life = worker->life + 1;
    memset(worker, 0, sizeof *worker);
    worker->index = index;
    worker->life = life;
    worker->roles = WPK_WORKER_ROLES_ALL;
    if (sim->options.mixed && index >= sim->options.class_count) {
        worker->roles = 1 + (unsigned)wpk_rng_below(&sim->rng, WPK_WORKER_ROLES_ALL);
    }
    worker->device = index % sim->options.class_count;
    worker->peer = ++sim->peer_last;
    wpk_sim_worker_wake(sim, worker,
                        sim->clock.now_ns + wpk_rng_below(&sim->rng, 100 * WPK_NS_PER_MS));
}

void wpk_sim_worker_fini(struct wpk_sim_worker *worker)
{
    for (uint32_t i = 0; i < worker->held_count; i++) {
        free(worker->held[i].candidate);
    }
    for (uint32_t i = 0; i < WPK_SIM_MEMORY; i++) {
        free(worker->sent[i].candidate);
        worker->sent[i].candidate = NULL;
    }
    worker->held_count = 0;
}

void wpk_sim_worker_die(struct wpk_sim *sim, int index, uint64_t ms)
{
    struct wpk_sim_worker *worker = &sim->workers[index];
    struct wpk_sim_event birth = {.kind = WPK_SIM_BIRTH, .worker = index};
    wpk_sim_say(sim, "w%d: dies with %u", index, worker->held_count);
    wpk_sim_net_cut(sim, worker->peer);
    wpk_sim_worker_fini(worker);
    worker->peer = 0;
    worker->wake = 0;
    birth.at_ns = sim->clock.now_ns + ms * WPK_NS_PER_MS;
    wpk_sim_queue_put(&sim->queue, birth);
    sim->deaths++;
}

/* ---- asking */

void wpk_sim_excuse(struct wpk_sim_worker *worker, uint64_t until_ns)
{
    worker->excused_ns = until_ns > worker->excused_ns ? until_ns : worker->excused_ns;
}

static void remember_request(struct wpk_sim *sim, struct wpk_sim_worker *worker,
                             const struct wpk_message *message)
{
    if (sim->request_count == sim->request_capacity) {
        sim->request_capacity = sim->request_capacity == 0 ? 1024 : sim->request_capacity * 2;
        struct wpk_sim_request *grown =
            realloc(sim->requests, sim->request_capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        sim->requests = grown;
    }
    struct wpk_sim_request *request = &sim->requests[sim->request_count];
    worker->asked_number = sim->request_count++;
    *request = (struct wpk_sim_request){.count = message->result_count};
    if (request->count > 0) {
        request->ids = calloc(request->count, sizeof *request->ids);
        request->built = calloc(request->count, sizeof *request->built);
        WPK_ASSERT(request->ids != NULL && request->built != NULL);
    }
    for (uint32_t i = 0; i < request->count; i++) {
        const struct wpk_result *result = &message->results[i];
        request->ids[i] = result->id;
        request->built[i] =
            result->record.outcome == WPK_OUTCOME_ABANDONED ||
            (result->stage == WPK_STAGE_BUILD && result->record.outcome == WPK_OUTCOME_OK);
    }
}

static void ask(struct wpk_sim *sim, struct wpk_sim_worker *worker, struct wpk_message *message)
{
    struct wpk_buf data = {0};
    message->session = worker->session;
    remember_request(sim, worker, message);
    wpk_err err = wpk_message_encode(message, &data);
    WPK_SIM_CHECK(sim, err == WPK_OK, "a message is not encoded: %s", wpk_err_text(err));
    worker->awaits = true;
    worker->asked = message->kind;
    worker->asked_ns = sim->clock.now_ns;
    wpk_sim_net_to_wpkd(sim, worker, data.data, data.size);
    wpk_buf_fini(&data);
}

static void list_held(const struct wpk_sim_worker *worker, wpk_work_id *ids,
                      struct wpk_message *message)
{
    for (uint32_t i = 0; i < worker->held_count; i++) {
        ids[i] = worker->held[i].work.id;
    }
    message->holding = ids;
    message->holding_count = worker->held_count;
}

/* It may say that it is another device now, with all that it holds. */
static void say_hello(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    struct wpk_hello hello = {
        .device = {.kind = "cpu",
                   .cpu = {.flags = WPK_CPU_SET_AVX2,
                           .l1_bytes = 1,
                           .l2_bytes = 1,
                           .l3_bytes = 1,
                           .vector_bytes = 32,
                           .vector_registers = 16},
                   .core_count = 2},
        .environment = "sim=1",
        .providers = {{.name = "halide-cpu"}, {.name = "vendor", .vendor = true}},
        .provider_count = 2,
        .roles = worker->roles,
    };
    wpk_work_id ids[WPK_SIM_HELD_MAX];
    if (sim->options.liars && wpk_rng_chance(&sim->rng, sim->trouble / 10)) {
        worker->device = (worker->device + 1) % sim->options.class_count;
        wpk_sim_excuse(worker, sim->clock.now_ns + 60 * WPK_NS_PER_S);
        wpk_sim_say(sim, "w%d: is sim%d now", worker->index, worker->device);
    }
    snprintf(hello.name, sizeof hello.name, "w%d.%d", worker->index, worker->life);
    hello.label_count = 1;
    snprintf(hello.labels[0].name, sizeof hello.labels[0].name, "lab");
    snprintf(hello.labels[0].value, sizeof hello.labels[0].value, "%s",
             wpk_sim_lab(sim, worker->index));
    snprintf(hello.device.model, sizeof hello.device.model, "sim%d", worker->device);
    snprintf(hello.device.instance, sizeof hello.device.instance, "sim%d/cpu%d", worker->device,
             worker->index);
    struct wpk_message message = {.kind = WPK_MESSAGE_HELLO, .hello = &hello};
    list_held(worker, ids, &message);
    ask(sim, worker, &message);
}

static bool has_artifact(const struct wpk_sim_holding *held)
{
    bool own = held->work.id.kind != WPK_WORK_VENDOR && held->work.id.kind != WPK_WORK_FINAL;
    return own && held->work.stage != WPK_STAGE_RUN;
}

static void upload(struct wpk_sim *sim, struct wpk_sim_worker *worker, uint32_t index)
{
    const struct wpk_sim_holding *held = &worker->held[index];
    struct wpk_message put = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                              .made_for = held->work.id,
                              .bytes = held->candidate,
                              .bytes_size = strlen(held->candidate)};
    wpk_sim_artifact(held->candidate, put.sha256);
    worker->asked_index = index;
    ask(sim, worker, &put);
}

static double skew_of(const struct wpk_sim *sim, const struct wpk_sim_worker *worker)
{
    return sim->options.skewed && worker->index == 0 ? sim->options.skew : 1;
}

/* Upload what has to be, then send every result that is ready; false when there is nothing. */
static bool send_results(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    struct wpk_result results[WPK_SIM_HELD_MAX];
    struct wpk_message message = {.kind = WPK_MESSAGE_RESULTS, .results = results};
    for (uint32_t i = 0; i < worker->held_count; i++) {
        const struct wpk_sim_holding *held = &worker->held[i];
        if (held->done && has_artifact(held) && !held->uploaded) {
            upload(sim, worker, i);
            return true;
        }
        if (held->done) {
            wpk_sim_fill_result(held, skew_of(sim, worker), &results[message.result_count++]);
        }
    }
    if (message.result_count > 0) {
        ask(sim, worker, &message);
    }
    return message.result_count > 0;
}

/* A result that was acknowledged long ago, or one for what never was. */
static void send_old_result(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    struct wpk_result result;
    struct wpk_message message = {
        .kind = WPK_MESSAGE_RESULTS, .results = &result, .result_count = 1};
    uint32_t known = worker->sent_count < WPK_SIM_MEMORY ? worker->sent_count : WPK_SIM_MEMORY;
    wpk_sim_fill_result(&worker->sent[wpk_rng_below(&sim->rng, known)], skew_of(sim, worker),
                        &result);
    if (wpk_rng_chance(&sim->rng, 0.2)) {
        result.id.search += 1000;
        result.id.index += 1000;
    }
    wpk_sim_say(sim, "w%d: an old result of %llu/%u", worker->index,
                (unsigned long long)result.id.search, result.id.index);
    ask(sim, worker, &message);
}

/* Ask for an artifact that was built elsewhere. */
static bool fetch(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    for (uint32_t i = 0; i < worker->held_count; i++) {
        struct wpk_sim_holding *held = &worker->held[i];
        while (held->fetched < held->artifact_count && held->artifacts[held->fetched][0] == '\0') {
            held->fetched++;
        }
        if (held->fetched < held->artifact_count) {
            struct wpk_message get = {.kind = WPK_MESSAGE_GET_ARTIFACT};
            memcpy(get.sha256, held->artifacts[held->fetched], sizeof get.sha256);
            worker->asked_index = i;
            ask(sim, worker, &get);
            return true;
        }
    }
    return false;
}

static struct wpk_sim_holding *to_run(struct wpk_sim_worker *worker)
{
    for (uint32_t i = 0; i < worker->held_count; i++) {
        struct wpk_sim_holding *held = &worker->held[i];
        if (!held->done && held->fetched == held->artifact_count) {
            return held;
        }
    }
    return NULL;
}

static void send_poll(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    wpk_work_id ids[WPK_SIM_HELD_MAX];
    struct wpk_message message = {.kind = WPK_MESSAGE_POLL, .want = WANTED - worker->held_count};
    message.wait_ms = worker->held_count == 0 ? POLL_WAIT_MS : 0;
    const struct wpk_sim_holding *first = to_run(worker);
    message.running = worker->run_until_ns != 0 && first != NULL ? first->work.lease : 0;
    list_held(worker, ids, &message);
    worker->polled_ns = sim->clock.now_ns;
    ask(sim, worker, &message);
}

static void give_back(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    wpk_work_id ids[WPK_SIM_HELD_MAX];
    struct wpk_message message = {.kind = WPK_MESSAGE_GIVE_BACK};
    list_held(worker, ids, &message);
    message.given_back = message.holding;
    message.given_back_count = message.holding_count;
    message.holding = NULL;
    message.holding_count = 0;
    wpk_sim_say(sim, "w%d: gives %u back", worker->index, worker->held_count);
    ask(sim, worker, &message);
}

/* One that has something to do does not wait at wpkd, where it could not bring results. */
static uint64_t next_poll_ns(const struct wpk_sim_worker *worker)
{
    uint64_t ms = worker->held_count == 0       ? 0
                  : worker->held_count < WANTED ? AGAIN_MS
                                                : HEARTBEAT_MS;
    return worker->polled_ns + ms * WPK_NS_PER_MS;
}

static void ask_next(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    uint64_t now_ns = sim->clock.now_ns;
    if (worker->session == 0) {
        say_hello(sim, worker);
    } else if (worker->leaving) {
        give_back(sim, worker);
    } else if (!worker->named) {
        send_poll(sim, worker); /* uploads are for leases, which are its own again then */
    } else if (worker->sent_count > 0 && wpk_rng_chance(&sim->rng, sim->trouble / 40)) {
        send_old_result(sim, worker);
    } else if (!send_results(sim, worker) && !fetch(sim, worker) &&
               now_ns >= next_poll_ns(worker)) {
        send_poll(sim, worker);
    }
}

/* ---- working */

/* It is built again, whoever builds it still: wpkd was brought it by another one. */
static void overtake(struct wpk_sim *sim, wpk_work_id id)
{
    for (int w = 0; w < sim->worker_count; w++) {
        for (uint32_t i = 0; i < sim->workers[w].held_count; i++) {
            struct wpk_sim_holding *held = &sim->workers[w].held[i];
            held->overtaken = held->overtaken || (held->work.stage != WPK_STAGE_RUN &&
                                                  wpk_work_id_equal(held->work.id, id));
        }
    }
}

static void work(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    struct wpk_sim_holding *held = to_run(worker);
    if (held != NULL && worker->run_until_ns != 0 && sim->clock.now_ns >= worker->run_until_ns) {
        held->done = true;
        held->lost = held->artifact_count > 0 && sim->trouble > 0 &&
                     wpk_rng_chance(&sim->rng, sim->trouble / 4);
        held->anchor_failed = !held->lost && held->anchor[0] != '\0' && sim->trouble > 0 &&
                              held->work.stage != WPK_STAGE_BUILD &&
                              wpk_rng_chance(&sim->rng, sim->trouble / 8);
        worker->run_until_ns = 0;
        if (held->anchor_failed) {
            wpk_sim_say(sim, "w%d: the anchor of %llu/%u fails", worker->index,
                        (unsigned long long)held->work.id.search, held->work.id.index);
        } else if (held->lost) {
            overtake(sim, held->work.id);
            wpk_sim_say(sim, "w%d: cannot get what %llu/%s/%u needs", worker->index,
                        (unsigned long long)held->work.id.search,
                        wpk_work_kind_name(held->work.id.kind), held->work.id.index);
        } else if (held->work.id.kind == WPK_WORK_TRIAL && held->work.stage != WPK_STAGE_BUILD) {
            wpk_sim_check_execution(sim, held->work.id);
        }
        held = to_run(worker);
    }
    if (held != NULL && worker->run_until_ns == 0) {
        uint64_t ms = RUN_MS_MIN + wpk_rng_below(&sim->rng, RUN_MS_MAX - RUN_MS_MIN);
        ms = sim->options.run_ms != 0 ? sim->options.run_ms : ms;
        worker->run_until_ns = sim->clock.now_ns + ms * WPK_NS_PER_MS;
    }
}

static uint64_t next_wake_ns(const struct wpk_sim *sim, const struct wpk_sim_worker *worker)
{
    uint64_t next_ns = next_poll_ns(worker);
    if (worker->awaits) {
        next_ns = worker->asked_ns + (PATIENCE_MS + 1) * WPK_NS_PER_MS;
    } else if (worker->rest_until_ns > sim->clock.now_ns) {
        next_ns = worker->rest_until_ns;
    }
    if (worker->run_until_ns != 0 && worker->run_until_ns < next_ns) {
        next_ns = worker->run_until_ns;
    }
    return next_ns;
}

void wpk_sim_worker_stick(struct wpk_sim *sim, struct wpk_sim_worker *worker, uint64_t s)
{
    worker->run_until_ns = sim->clock.now_ns + s * WPK_NS_PER_S;
    wpk_sim_excuse(worker, worker->run_until_ns + 60 * WPK_NS_PER_S);
    wpk_sim_say(sim, "w%d: is stuck for %llu s", worker->index, (unsigned long long)s);
    sim->deaths++;
}

/* It dies, hangs, leaves, or is stuck with what it runs; true if it does nothing more for now. */
static bool suffer(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    if (wpk_rng_chance(&sim->rng, sim->trouble / 100)) {
        wpk_sim_worker_die(sim, worker->index, wpk_rng_below(&sim->rng, BORN_AGAIN_MS));
        return true;
    }
    if (wpk_rng_chance(&sim->rng, sim->trouble / 150)) {
        uint64_t s = wpk_rng_below(&sim->rng, HANG_S_MAX);
        worker->hung_until_ns = sim->clock.now_ns + s * WPK_NS_PER_S;
        wpk_sim_excuse(worker, worker->hung_until_ns + 60 * WPK_NS_PER_S);
        wpk_sim_say(sim, "w%d: hangs for %llu s", worker->index, (unsigned long long)s);
        sim->deaths++;
    }
    if (!worker->leaving && wpk_rng_chance(&sim->rng, sim->trouble / 150)) {
        worker->leaving = true;
    }
    if (worker->run_until_ns != 0 && wpk_rng_chance(&sim->rng, sim->trouble / 400)) {
        wpk_sim_worker_stick(sim, worker, STICK_S);
    }
    return false;
}

void wpk_sim_worker_turn(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    uint64_t now_ns = sim->clock.now_ns;
    if (worker->peer == 0) {
        return;
    }
    if (worker->hung_until_ns > now_ns || sim->resting) {
        /* Looked at now and then: calm ends it early. */
        wpk_sim_worker_wake(sim, worker, now_ns + WPK_NS_PER_S);
        return;
    }
    if (suffer(sim, worker)) {
        return;
    }
    if (worker->awaits && now_ns > worker->asked_ns + PATIENCE_MS * WPK_NS_PER_MS) {
        worker->awaits = false; /* lost: ask again */
    }
    work(sim, worker);
    if (!worker->awaits && now_ns >= worker->rest_until_ns) {
        ask_next(sim, worker);
    }
    wpk_sim_worker_wake(sim, worker, next_wake_ns(sim, worker));
}
