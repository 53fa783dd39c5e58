/* SPDX-License-Identifier: Apache-2.0 */
/* One wpkd and a few workers in one thread. Everything random comes from the seed, which a failure
 * prints; the same seed gives the same run.
 *
 * What goes wrong, each with its own probability: a frame is lost or comes twice, either way; a
 * worker dies and another takes its place; wpkd dies, before or after a commit, and opens its store
 * again. Workers are never wrong about a candidate: its outcome is a function of its text. So in
 * the end every run must have recorded the same as one in which nothing went wrong. */
#include "common/crypto.h"
#include "common/fs.h"
#include "common/log.h"
#include "coordinator/performer.h"
#include "search/fake_space.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WORKERS 3
#define HELD_MAX 16
#define FRAMES_MAX 256
#define STEP_MS 50
#define SEEDS_DEFAULT 12
#define STEPS_MAX 40000

static const char job_text[] =
    "{\"name\":\"sim\",\"ops\":["
    "{\"name\":\"a\",\"op\":\"Y[i] = X[i] * 2\",\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}},"
    "{\"name\":\"b\",\"op\":\"Y[i] = X[i] * 3\",\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}],"
    "\"search\":{\"strategy\":\"ga\",\"seed\":5},\"budget\":{\"candidates\":60,\"seconds\":3600}}";

struct frame {
    bool to_worker;
    int worker;
    uint32_t peer;
    struct wpk_buf data;
};

/* What a worker knows; it dies with all of it. */
struct sim_worker {
    uint32_t peer; /* of its connection; a new one for each life */
    int life;
    uint64_t session;
    bool awaits; /* an answer */
    uint64_t asked_ns;
    wpk_work_id held[HELD_MAX];
    struct wpk_work work[HELD_MAX]; /* texts owned: candidate */
    char *candidate[HELD_MAX];
    char provider[HELD_MAX][WPK_PROVIDER_NAME_MAX];
    bool done[HELD_MAX];
    bool uploaded[HELD_MAX];
    uint32_t held_count;
    enum wpk_message_kind asked;
    int asked_index;
};

struct sim {
    struct wpk_rng rng;
    double trouble; /* 0: nothing goes wrong */
    char directory[64];
    struct wpk_clock_fake clock;
    struct wpk_store *store;
    struct wpk_performer *performer;
    struct sim_worker workers[WORKERS];
    uint32_t peer_next;
    struct frame frames[FRAMES_MAX];
    int frame_count;
    int responses;
    int executions; /* trials run, the same one twice included */
    int crashes;
    char job_id[WPK_JOB_ID_SIZE];
};

/* ---- network */

static void send_frame(struct sim *sim, bool to_worker, int worker, uint32_t peer, const void *data,
                       size_t size)
{
    int copies = wpk_rng_chance(&sim->rng, sim->trouble) ? (int)wpk_rng_below(&sim->rng, 3) : 1;
    for (int i = 0; i < copies && sim->frame_count < FRAMES_MAX; i++) {
        struct frame *frame = &sim->frames[sim->frame_count++];
        memset(frame, 0, sizeof *frame);
        frame->to_worker = to_worker;
        frame->worker = worker;
        frame->peer = peer;
        wpk_buf_append(&frame->data, data, size);
    }
}

static void on_reply(void *user, const struct wpk_net_address *address, const void *data,
                     size_t size)
{
    struct sim *sim = user;
    send_frame(sim, true, address->header[0], address->peer, data, size);
}

static void on_respond(void *user, uint64_t request, const struct wpk_api_answer *answer)
{
    struct sim *sim = user;
    (void)request;
    assert_int_equal(answer->status, 201);
    sim->responses++;
    const char *id = strstr(wpk_buf_text(&answer->body), "\"id\":\"");
    snprintf(sim->job_id, sizeof sim->job_id, "%.17s", id + 6);
}

/* ---- wpkd */

static void start_wpkd(struct sim *sim)
{
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_store_open(sim->directory, &sim->clock.clock, &sim->store, &diag), WPK_OK);
    struct wpk_performer_options options = {
        .store = sim->store,
        .data_dir = sim->directory,
        .clock = &sim->clock.clock,
        .out = {.reply = on_reply, .respond = on_respond, .user = sim},
    };
    wpk_err err = wpk_performer_new(&options, &sim->performer, &diag);
    if (err != WPK_OK) {
        fail_msg("wpkd does not start: %s", diag.text);
    }
}

/* As kill -9 would: what was not committed is gone. */
static void kill_wpkd(struct sim *sim)
{
    wpk_store_close(sim->store);
    sim->store = NULL;
    /* The performer only frees memory: nothing of it reaches the store any more. */
    wpk_performer_free(sim->performer);
    sim->performer = NULL;
    sim->crashes++;
}

static void commit(struct sim *sim)
{
    struct wpk_diag diag = {0};
    if (wpk_performer_commit(sim->performer, &diag) != WPK_OK) {
        fail_msg("commit: %s", diag.text);
    }
}

/* ---- workers */

static void worker_die(struct sim *sim, int index)
{
    struct sim_worker *worker = &sim->workers[index];
    struct wpk_event gone = {.kind = WPK_EVENT_GONE, .address = {.peer = worker->peer}};
    for (uint32_t i = 0; i < worker->held_count; i++) {
        free(worker->candidate[i]);
    }
    int life = worker->life + 1;
    memset(worker, 0, sizeof *worker);
    worker->life = life;
    worker->peer = ++sim->peer_next;
    wpk_performer_step(sim->performer, &gone);
    commit(sim);
}

static void worker_send(struct sim *sim, int index, struct wpk_message *message)
{
    struct sim_worker *worker = &sim->workers[index];
    struct wpk_buf frame = {0};
    message->session = worker->session;
    assert_int_equal(wpk_message_encode(message, &frame), WPK_OK);
    worker->awaits = true;
    worker->asked = message->kind;
    worker->asked_ns = sim->clock.now_ns;
    send_frame(sim, false, index, worker->peer, frame.data, frame.size);
    wpk_buf_fini(&frame);
}

static void say_hello(struct sim *sim, int index)
{
    struct wpk_hello hello = {
        .device = {.kind = "cpu",
                   .model = "sim",
                   .isa = WPK_ISA_AVX2,
                   .core_count = 2,
                   .l1_bytes = 1,
                   .l2_bytes = 1,
                   .l3_bytes = 1,
                   .vector_bytes = 32,
                   .vector_registers = 16,
                   .instance = "sim/cpu0"},
        .environment = "sim=1",
        .providers = {{.name = "halide-cpu"}, {.name = "vendor", .vendor = true}},
        .provider_count = 2,
    };
    snprintf(hello.name, sizeof hello.name, "w%d.%d", index, sim->workers[index].life);
    struct wpk_message message = {.kind = WPK_MESSAGE_HELLO, .hello = &hello};
    worker_send(sim, index, &message);
}

static double time_of(const char *candidate)
{
    uint64_t hash[4];
    wpk_crypto_sha256(candidate, strlen(candidate), (uint8_t *)hash);
    return hash[0] % 10 == 0 ? -1 : 1e5 + (double)(hash[1] % 1000000);
}

/* The artifact of a candidate: its text stands for the code. */
static void artifact_hash(const char *candidate, char out[WPK_SHA256_HEX_SIZE])
{
    wpk_crypto_sha256_hex(candidate, strlen(candidate), out);
}

static struct wpk_timing timing_of(double ns)
{
    struct wpk_timing timing = {.median_ns = (uint64_t)ns,
                                .min_ns = (uint64_t)ns - 10,
                                .mad_ns = 5,
                                .sample_count = 1,
                                .repeat_count = 1,
                                .sample_ns = {(uint64_t)ns}};
    return timing;
}

static void fill_result(const struct sim_worker *worker, uint32_t i, struct wpk_result *result)
{
    const struct wpk_work *work = &worker->work[i];
    memset(result, 0, sizeof *result);
    result->id = work->id;
    result->attempt = work->attempt;
    result->failure = "";
    if (work->id.kind == WPK_WORK_FINAL) {
        result->timing_count = work->contender_count;
        for (uint32_t c = 0; c < work->contender_count; c++) {
            result->timing[c] = timing_of(1e5 + 1000 * c);
        }
        return;
    }
    double ns = work->id.kind == WPK_WORK_VENDOR ? 3e5 : time_of(worker->candidate[i]);
    result->record.outcome = ns > 0 ? WPK_OUTCOME_OK : WPK_OUTCOME_BUILD_ERROR;
    if (ns > 0) {
        result->record.timing = timing_of(ns);
        if (work->id.kind != WPK_WORK_VENDOR) {
            artifact_hash(worker->candidate[i], result->record.artifact_sha256);
        }
    }
}

/* Upload what has to be, then send every result that is ready. */
static bool send_results(struct sim *sim, int index)
{
    struct sim_worker *worker = &sim->workers[index];
    struct wpk_result results[HELD_MAX];
    struct wpk_message message = {.kind = WPK_MESSAGE_RESULTS, .results = results};
    for (uint32_t i = 0; i < worker->held_count; i++) {
        bool has_artifact =
            worker->work[i].id.kind == WPK_WORK_TRIAL || worker->work[i].id.kind == WPK_WORK_VERIFY;
        if (worker->done[i] && has_artifact && !worker->uploaded[i]) {
            struct wpk_message put = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                      .bytes = worker->candidate[i],
                                      .bytes_size = strlen(worker->candidate[i])};
            artifact_hash(worker->candidate[i], put.sha256);
            worker->asked_index = (int)i;
            worker_send(sim, index, &put);
            return true;
        }
        if (worker->done[i]) {
            fill_result(worker, i, &results[message.result_count++]);
        }
    }
    if (message.result_count > 0) {
        worker_send(sim, index, &message);
    }
    return message.result_count > 0;
}

static void send_poll(struct sim *sim, int index)
{
    struct sim_worker *worker = &sim->workers[index];
    struct wpk_message message = {.kind = WPK_MESSAGE_POLL,
                                  .want = 6 - worker->held_count,
                                  .wait_ms = 500,
                                  .holding = worker->held,
                                  .holding_count = worker->held_count};
    worker_send(sim, index, &message);
}

static void worker_turn(struct sim *sim, int index)
{
    struct sim_worker *worker = &sim->workers[index];
    if (worker->awaits && sim->clock.now_ns > worker->asked_ns + 2000 * WPK_NS_PER_MS) {
        worker->awaits = false; /* lost: ask again */
    }
    for (uint32_t i = 0; i < worker->held_count; i++) {
        if (!worker->done[i] && wpk_rng_chance(&sim->rng, 0.4)) {
            worker->done[i] = true;
            sim->executions++;
        }
    }
    if (worker->awaits) {
        return;
    }
    if (worker->session == 0) {
        say_hello(sim, index);
    } else if (!send_results(sim, index) && worker->held_count < 6) {
        send_poll(sim, index);
    }
}

static void take_work(struct sim_worker *worker, const struct wpk_message *message)
{
    for (uint32_t i = 0; i < message->work_count && worker->held_count < HELD_MAX; i++) {
        bool held = false;
        for (uint32_t h = 0; h < worker->held_count; h++) {
            held = held || wpk_work_id_equal(worker->held[h], message->work[i].id);
        }
        if (!held) {
            uint32_t at = worker->held_count++;
            worker->held[at] = message->work[i].id;
            worker->work[at] = message->work[i];
            worker->candidate[at] = strdup(message->work[i].candidate);
            worker->done[at] = false;
            worker->uploaded[at] = false;
        }
    }
}

static void drop_done(struct sim_worker *worker, uint32_t count)
{
    uint32_t kept = 0;
    uint32_t dropped = 0;
    for (uint32_t i = 0; i < worker->held_count; i++) {
        if (worker->done[i] && dropped < count) {
            dropped++;
            free(worker->candidate[i]);
            continue;
        }
        worker->held[kept] = worker->held[i];
        worker->work[kept] = worker->work[i];
        worker->candidate[kept] = worker->candidate[i];
        worker->done[kept] = worker->done[i];
        worker->uploaded[kept] = worker->uploaded[i];
        kept++;
    }
    worker->held_count = kept;
}

/* An answer belongs to the last question, if to any: the network library sees to that. */
static void worker_receive(struct sim *sim, int index, const struct frame *frame)
{
    struct sim_worker *worker = &sim->workers[index];
    struct wpk_message message = {0};
    if (frame->peer != worker->peer || !worker->awaits) {
        return;
    }
    assert_int_equal(wpk_message_decode(frame->data.data, frame->data.size, &message, NULL),
                     WPK_OK);
    bool fits = message.kind == WPK_MESSAGE_ERROR ||
                (worker->asked == WPK_MESSAGE_HELLO && message.kind == WPK_MESSAGE_WELCOME) ||
                (worker->asked == WPK_MESSAGE_POLL && message.kind == WPK_MESSAGE_WORK) ||
                (worker->asked == WPK_MESSAGE_RESULTS && message.kind == WPK_MESSAGE_ACK &&
                 message.ack_count > 0) ||
                (worker->asked == WPK_MESSAGE_PUT_ARTIFACT && message.kind == WPK_MESSAGE_ACK &&
                 message.ack_count == 0);
    if (fits) {
        worker->awaits = false;
        if (message.kind == WPK_MESSAGE_WELCOME) {
            worker->session = message.session;
        } else if (message.kind == WPK_MESSAGE_WORK) {
            take_work(worker, &message);
        } else if (message.kind == WPK_MESSAGE_ERROR) {
            assert_int_equal(message.err, WPK_ENOENT);
            worker->session = 0;
        } else if (message.ack_count == 0) {
            worker->uploaded[worker->asked_index] = true;
        } else {
            drop_done(worker, message.ack_count);
        }
    }
    wpk_message_fini(&message);
}

/* ---- the run */

static void deliver_one(struct sim *sim)
{
    /* Any of them: frames overtake each other. */
    int at = (int)wpk_rng_below(&sim->rng, (uint64_t)sim->frame_count);
    struct frame frame = sim->frames[at];
    sim->frames[at] = sim->frames[--sim->frame_count];
    if (frame.to_worker) {
        worker_receive(sim, frame.worker, &frame);
    } else {
        struct wpk_net_address address = {.peer = frame.peer, .header_size = 1};
        address.header[0] = (uint8_t)frame.worker;
        wpk_performer_frame(sim->performer, &address, frame.data.data, frame.data.size,
                            wpk_rng_next(&sim->rng));
        if (wpk_rng_chance(&sim->rng, sim->trouble / 20)) {
            kill_wpkd(sim); /* before its commit */
            start_wpkd(sim);
        } else {
            commit(sim);
        }
    }
    wpk_buf_fini(&frame.data);
}

static void step(struct sim *sim)
{
    struct wpk_event tick = {.kind = WPK_EVENT_TICK};
    wpk_clock_fake_advance(&sim->clock, STEP_MS * WPK_NS_PER_MS);
    wpk_performer_step(sim->performer, &tick);
    commit(sim);
    for (int i = 0; i < WORKERS; i++) {
        worker_turn(sim, i);
        if (wpk_rng_chance(&sim->rng, sim->trouble / 100)) {
            worker_die(sim, i);
        }
    }
    for (int i = sim->frame_count; i > 0 && sim->frame_count > 0; i--) {
        deliver_one(sim);
    }
    if (wpk_rng_chance(&sim->rng, sim->trouble / 100)) {
        kill_wpkd(sim);
        start_wpkd(sim);
    }
}

static void submit(struct sim *sim)
{
    struct wpk_http_request request = {.id = 1,
                                       .method = "POST",
                                       .path = "/v1/jobs",
                                       .body = job_text,
                                       .body_size = strlen(job_text),
                                       .content_type = "application/json"};
    wpk_performer_request(sim->performer, &request, wpk_rng_next(&sim->rng));
    commit(sim);
}

static bool job_is_live(struct sim *sim)
{
    return wpk_coordinator_job_count(wpk_performer_coordinator(sim->performer)) > 0;
}

/* Everything that was recorded of asks, as one text. */
static void recorded(struct sim *sim, struct wpk_buf *out)
{
    struct wpk_rows *rows =
        wpk_store_query(sim->store,
                        "SELECT p.fingerprint, a.number, a.candidate, t.outcome FROM ask a"
                        " JOIN search s ON s.id = a.search_id JOIN problem p ON p.id = s.problem_id"
                        " LEFT JOIN trial t ON t.id = a.trial_id ORDER BY p.fingerprint, a.number",
                        "");
    while (wpk_rows_next(rows)) {
        wpk_buf_printf(out, "%.8s %d %s %s\n", wpk_rows_text(rows, 0), (int)wpk_rows_int(rows, 1),
                       wpk_rows_text(rows, 2), wpk_rows_text(rows, 3));
    }
    wpk_rows_close(rows);
}

static int64_t count(struct sim *sim, const char *sql)
{
    int64_t value = -1;
    struct wpk_rows *rows = wpk_store_query(sim->store, sql, "");
    if (wpk_rows_next(rows)) {
        value = wpk_rows_int(rows, 0);
    }
    wpk_rows_close(rows);
    return value;
}

static void check_invariants(struct sim *sim)
{
    assert_int_equal(sim->responses, 1);
    /* Two searches of 60, everything recorded, nothing twice. */
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM ask"), 120);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM ask WHERE trial_id IS NULL"), 0);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM trial WHERE candidate <> ''"), 120);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM trial WHERE candidate = ''"), 2);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM (SELECT trial_id FROM measurement WHERE kind"
                                " = 'trial' GROUP BY trial_id HAVING COUNT(*) > 1)"),
                     0);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 1);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM kernel WHERE served = 1"), 2);
    /* A kernel's artifact is there. */
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM kernel WHERE artifact_sha256 <> '' AND"
                                " artifact_sha256 NOT IN (SELECT sha256 FROM artifact)"),
                     0);
}

static void sim_init(struct sim *sim, uint64_t seed, double trouble)
{
    memset(sim, 0, sizeof *sim);
    wpk_rng_seed(&sim->rng, seed);
    sim->trouble = trouble;
    wpk_clock_fake_init(&sim->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    snprintf(sim->directory, sizeof sim->directory, "/tmp/wpk-sim-XXXXXX");
    assert_non_null(mkdtemp(sim->directory));
    for (int i = 0; i < WORKERS; i++) {
        sim->workers[i].peer = ++sim->peer_next;
    }
    start_wpkd(sim);
}

static void sim_fini(struct sim *sim)
{
    for (int w = 0; w < WORKERS; w++) {
        drop_done(&sim->workers[w], 0);
        for (uint32_t i = 0; i < sim->workers[w].held_count; i++) {
            free(sim->workers[w].candidate[i]);
        }
    }
    for (int i = 0; i < sim->frame_count; i++) {
        wpk_buf_fini(&sim->frames[i].data);
    }
    wpk_performer_free(sim->performer);
    wpk_store_close(sim->store);
    wpk_err err = wpk_fs_remove_tree(sim->directory, NULL);
    assert_int_equal(err, WPK_OK);
}

static void run(uint64_t seed, double trouble, struct wpk_buf *out)
{
    struct sim *sim = calloc(1, sizeof *sim);
    sim_init(sim, seed, trouble);
    submit(sim);
    int steps = 0;
    while (job_is_live(sim) && steps < STEPS_MAX) {
        step(sim);
        steps++;
    }
    print_message("seed %llu: %d steps, %d executions, %d crashes of wpkd\n",
                  (unsigned long long)seed, steps, sim->executions, sim->crashes);
    assert_false(job_is_live(sim));
    check_invariants(sim);
    recorded(sim, out);
    sim_fini(sim);
    free(sim);
}

/* A minute in which nothing ran: no lease is taken back, no budget is used up. */
static void a_suspended_machine(void **state)
{
    (void)state;
    struct sim *sim = calloc(1, sizeof *sim);
    sim_init(sim, 1, 0);
    submit(sim);
    for (int i = 0; i < 20; i++) {
        step(sim);
    }
    const struct wpk_coordinator *coordinator = wpk_performer_coordinator(sim->performer);
    assert_int_equal(wpk_coordinator_worker_count(coordinator), WORKERS);
    uint64_t sessions[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        sessions[i] = wpk_coordinator_worker(coordinator, i)->session;
    }
    wpk_clock_fake_advance(&sim->clock, 2 * 3600 * WPK_NS_PER_S);
    for (int steps = 0; job_is_live(sim) && steps < STEPS_MAX; steps++) {
        step(sim);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_true(wpk_coordinator_worker(coordinator, i)->session == sessions[i]);
    }
    check_invariants(sim);
    sim_fini(sim);
    free(sim);
}

static uint64_t first_seed = 1;
static int seed_count = SEEDS_DEFAULT;

static void trouble_changes_nothing(void **state)
{
    (void)state;
    struct wpk_buf undisturbed = {0};
    run(1, 0, &undisturbed);
    for (int i = 0; i < seed_count; i++) {
        struct wpk_buf disturbed = {0};
        run(first_seed + (uint64_t)i, 0.1, &disturbed);
        assert_string_equal(wpk_buf_text(&disturbed), wpk_buf_text(&undisturbed));
        wpk_buf_fini(&disturbed);
    }
    wpk_buf_fini(&undisturbed);
}

/* The same job again: nothing is measured. */
static void history_answers(void **state)
{
    (void)state;
    struct sim *sim = calloc(1, sizeof *sim);
    sim_init(sim, 1, 0);
    submit(sim);
    for (int steps = 0; job_is_live(sim) && steps < STEPS_MAX; steps++) {
        step(sim);
    }
    int executions = sim->executions;
    submit(sim);
    for (int steps = 0; job_is_live(sim) && steps < 10; steps++) {
        step(sim);
    }
    assert_false(job_is_live(sim));
    assert_int_equal(sim->executions, executions);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM job_op WHERE from_history = 1"), 2);
    sim_fini(sim);
    free(sim);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        first_seed = strtoull(argv[1], NULL, 10);
        seed_count = (int)strtol(argv[2], NULL, 10);
    }
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("sim", WPK_LOG_ERROR, null);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_changes_nothing),
        cmocka_unit_test(history_answers),
        cmocka_unit_test(a_suspended_machine),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
