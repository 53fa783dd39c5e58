/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand workers at one wpkd, without the sockets: how many results a second it records.
 *
 *     crew ──frames──▶ loop: performer ──batches──▶ writer: SQLite, on disk
 *       ▲                │  ▲
 *       └────replies─────┘  └── strategies, on threads of their own
 *
 * The crew has what it is given for a second, and wants more than can be given: 40,000 a second
 * with what is the default. Its own codecs run on its thread, whose CPU time is shown apart, as
 * every thread's. */
#include "bench/fleet_crew.h"
#include "bench/fleet_fill.h"
#include "bench/fleet_fsync.h"
#include "bench/fleet_link.h"
#include "bench/fleet_report.h"
#include "bench/usage.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "common/log.h"
#include "coordinator/api/api.h"
#include "coordinator/effects/performer.h"
#include "coordinator/store/store.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define TURN_MAX 256 /* frames of a batch, as the service has it */
#define TICK_MS 200
#define STRATEGY_THREADS 1

struct options {
    const char *data;
    const char *json; /* where to write it; NULL: nowhere */
    int64_t rows;
    int64_t kernels;
    uint32_t workers;
    uint32_t batch;
    int jobs;
    int seconds;
    int fsync_ms;
    int think_ms;
    bool fill_only;
};

/* A worker that is at work until then. */
struct busy {
    uint32_t worker;
    uint64_t until_ns;
};

struct fleet {
    struct options options;
    struct bench_link to_wpkd;
    struct bench_link to_crew;
    struct bench_crew crew;
    struct busy *busy; /* owned; a ring of as many as there are workers, in order of time */
    uint64_t busy_first;
    uint64_t busy_end;
    struct wpk_store *store;
    struct wpk_performer *performer;
    uint64_t commits;
    struct bench_latencies latencies; /* from results sent to results acknowledged */
    _Atomic uint64_t results;         /* acknowledged, as the crew counts */
};

static uint64_t now_ns(void)
{
    return wpk_clock_now_ns(wpk_clock_system());
}

/* ---- the crew's thread */

static void ask(struct fleet *fleet, uint32_t index)
{
    struct wpk_buf frame = {0};
    bench_crew_ask(&fleet->crew, index, &frame);
    fleet->crew.hands[index].asked_ns = now_ns();
    bench_link_put(&fleet->to_wpkd, index, frame);
}

/* With work in its hands it is busy for a while; else it asks at once. */
static void go_on(struct fleet *fleet, uint32_t index)
{
    if (fleet->crew.hands[index].held_count == 0) {
        ask(fleet, index);
        return;
    }
    uint64_t until_ns = now_ns() + (uint64_t)fleet->options.think_ms * WPK_NS_PER_MS;
    fleet->busy[fleet->busy_end++ % fleet->crew.count] = (struct busy){index, until_ns};
}

static void finish_work(struct fleet *fleet)
{
    while (fleet->busy_first < fleet->busy_end &&
           fleet->busy[fleet->busy_first % fleet->crew.count].until_ns <= now_ns()) {
        ask(fleet, fleet->busy[fleet->busy_first++ % fleet->crew.count].worker);
    }
}

static void *run_crew(void *user)
{
    struct fleet *fleet = user;
    static struct bench_frame frames[TURN_MAX];
    uint32_t count = 0;
    prctl(PR_SET_NAME, "crew");
    for (uint32_t i = 0; i < fleet->crew.count; i++) {
        ask(fleet, i);
    }
    while (bench_link_take(&fleet->to_crew, 5, TURN_MAX, frames, &count)) {
        finish_work(fleet);
        for (uint32_t i = 0; i < count; i++) {
            struct bench_hand *hand = &fleet->crew.hands[frames[i].worker];
            if (hand->asked == WPK_MESSAGE_RESULTS) {
                bench_latencies_add(&fleet->latencies, now_ns() - hand->asked_ns);
            }
            bench_crew_take(&fleet->crew, frames[i].worker, frames[i].data.data,
                            frames[i].data.size);
            wpk_buf_fini(&frames[i].data);
            go_on(fleet, frames[i].worker);
        }
        fleet->results = fleet->crew.results;
    }
    for (uint32_t i = 0; i < count; i++) {
        wpk_buf_fini(&frames[i].data);
    }
    return NULL;
}

/* ---- wpkd's loop */

static void on_reply(void *user, const struct wpk_net_address *address, const void *data,
                     size_t size)
{
    struct fleet *fleet = user;
    struct wpk_buf copy = {0};
    uint32_t worker;
    memcpy(&worker, address->header, sizeof worker);
    wpk_buf_append(&copy, data, size);
    bench_link_put(&fleet->to_crew, worker, copy);
}

static void on_respond(void *user, uint64_t request, const struct wpk_api_answer *answer)
{
    (void)user;
    (void)request;
    if (answer->status >= 300) {
        fprintf(stderr, "bench-fleet: a job is refused: %s\n", wpk_buf_text(&answer->body));
        exit(1);
    }
}

static void on_wake(void *user)
{
    bench_link_wake(user);
}

static void commit(struct fleet *fleet)
{
    struct wpk_diag diag = {0};
    if (wpk_performer_commit(fleet->performer, &diag) != WPK_OK) {
        fprintf(stderr, "bench-fleet: %s\n", diag.text);
        exit(1);
    }
}

static void turn(struct fleet *fleet, const struct bench_frame *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct wpk_net_address address = {.peer = frames[i].worker + 1,
                                          .header_size = sizeof frames[i].worker};
        uint64_t number;
        memcpy(address.header, &frames[i].worker, sizeof frames[i].worker);
        wpk_crypto_random(&number, sizeof number);
        wpk_performer_frame(fleet->performer, &address, frames[i].data.data, frames[i].data.size,
                            number);
    }
    commit(fleet);
    wpk_performer_poll(fleet->performer);
}

static void run_loop(struct fleet *fleet, uint64_t until_ns)
{
    static struct bench_frame frames[TURN_MAX];
    uint64_t tick_ns = now_ns();
    uint32_t count = 0;
    while (now_ns() < until_ns) {
        bool open = bench_link_take(&fleet->to_wpkd, TICK_MS, TURN_MAX, frames, &count);
        WPK_ASSERT(open);
        turn(fleet, frames, count);
        for (uint32_t i = 0; i < count; i++) {
            wpk_buf_fini(&frames[i].data);
        }
        if (now_ns() > tick_ns + TICK_MS * WPK_NS_PER_MS) {
            struct wpk_event tick = {.kind = WPK_EVENT_TICK};
            tick_ns = now_ns();
            wpk_performer_step(fleet->performer, &tick);
            commit(fleet);
        }
    }
}

/* ---- jobs */

static void submit(struct fleet *fleet, int number)
{
    struct wpk_buf body = {0};
    int size = 16 * (1 + number % 64);
    wpk_buf_printf(
        &body,
        "{\"name\":\"bench%d\",\"ops\":[{\"name\":\"op\",\"op\":\"C[i,j] = sum(k) A[i,k] * "
        "B[k,j]\",\"tensors\":{\"A\":\"f32[%d,64]\",\"B\":\"f32[64,64]\",\"C\":"
        "\"f32[%d,64]\"}}],\"search\":{\"strategy\":\"random\",\"seed\":%d},\"budget\":{"
        "\"candidates\":1000000,\"seconds\":86400}}",
        number, size, size, number);
    struct wpk_http_request request = {.id = (uint64_t)number + 1,
                                       .identity = {.roles = WPK_ROLE_ALL},
                                       .method = "POST",
                                       .path = "/v1/jobs",
                                       .body = wpk_buf_text(&body),
                                       .body_size = body.size,
                                       .content_type = "application/json"};
    uint64_t random;
    wpk_crypto_random(&random, sizeof random);
    snprintf(request.identity.owner, sizeof request.identity.owner, "owner%d", number % 10);
    wpk_api_request(fleet->performer, &request, random);
    commit(fleet);
    wpk_buf_fini(&body);
}

static void submit_jobs(struct fleet *fleet)
{
    const struct wpk_coordinator *coordinator = wpk_performer_coordinator(fleet->performer);
    for (int i = (int)wpk_coordinator_job_count(coordinator); i < fleet->options.jobs; i++) {
        submit(fleet, i);
    }
}

/* ---- measuring */

static void measure(struct fleet *fleet, struct bench_fleet_report *report)
{
    uint64_t s = (uint64_t)fleet->options.seconds * WPK_NS_PER_S;
    pthread_t thread;
    bench_crew_init(&fleet->crew, fleet->options.workers, fleet->options.batch);
    fleet->busy = calloc(fleet->options.workers, sizeof *fleet->busy);
    WPK_ASSERT(fleet->busy != NULL);
    pthread_create(&thread, NULL, run_crew, fleet);
    run_loop(fleet, now_ns() + s / 4); /* workers join, spaces are derived, caches fill */
    uint64_t began_ns = now_ns();
    uint64_t results = fleet->results;
    unsigned long fsyncs = bench_fsync_count();
    bench_latencies_reset(&fleet->latencies);
    bench_threads_take(&report->before);
    run_loop(fleet, began_ns + s);
    bench_threads_take(&report->after);
    report->seconds = (double)(now_ns() - began_ns) / 1e9;
    report->results = fleet->results - results;
    report->commits = bench_fsync_count() - fsyncs;
    bench_link_close(&fleet->to_crew);
    pthread_join(thread, NULL);
    report->latencies = &fleet->latencies;
    report->repeated = fleet->crew.repeated;
    report->errors = fleet->crew.errors;
}

static void open_wpkd(struct fleet *fleet)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_fs_make_dirs(fleet->options.data, &diag);
    if (err == WPK_OK) {
        err = wpk_store_open(fleet->options.data, wpk_clock_system(), &fleet->store, &diag);
    }
    if (err == WPK_OK) {
        err = bench_fleet_fill(fleet->store, fleet->options.rows, fleet->options.kernels, &diag);
    }
    struct wpk_performer_options options = {
        .store = fleet->store,
        .data_dir = fleet->options.data,
        .clock = wpk_clock_system(),
        .out = {.reply = on_reply, .respond = on_respond, .user = fleet},
        .answer = wpk_api_answer_effect,
        .threads = STRATEGY_THREADS,
        .wake = on_wake,
        .wake_user = &fleet->to_wpkd,
    };
    if (err == WPK_OK) {
        err = wpk_performer_new(&options, &fleet->performer, &diag);
    }
    if (err != WPK_OK) {
        fprintf(stderr, "bench-fleet: %s\n", diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
        exit(1);
    }
}

static const char usage[] = "usage: bench-fleet --data DIR [options]\n"
                            "  --rows N        trials in the history first (1000000)\n"
                            "  --kernels N     kernels in it (10000)\n"
                            "  --workers N     (10000)\n"
                            "  --batch N       results in a message, 1 to 16 (4)\n"
                            "  --jobs N        live jobs, each a search of its own (20)\n"
                            "  --think-ms N    a worker has what it was given so long (1000)\n"
                            "  --seconds N     to measure; a quarter more to warm up (20)\n"
                            "  --fsync-ms N    added to each fsync (0)\n"
                            "  --fill          only make the history, and leave the jobs live\n"
                            "  --json FILE\n";

static struct options parse(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"data", required_argument, NULL, 'd'},     {"rows", required_argument, NULL, 'r'},
        {"kernels", required_argument, NULL, 'k'},  {"workers", required_argument, NULL, 'w'},
        {"batch", required_argument, NULL, 'b'},    {"jobs", required_argument, NULL, 'j'},
        {"seconds", required_argument, NULL, 's'},  {"fsync-ms", required_argument, NULL, 'f'},
        {"think-ms", required_argument, NULL, 't'}, {"fill", no_argument, NULL, 'F'},
        {"json", required_argument, NULL, 'o'},     {NULL, 0, NULL, 0},
    };
    struct options options = {.rows = 1000000,
                              .kernels = 10000,
                              .workers = 10000,
                              .batch = 4,
                              .jobs = 20,
                              .think_ms = 1000,
                              .seconds = 20};
    for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        long number = optarg != NULL ? strtol(optarg, NULL, 10) : 0;
        switch (c) {
        case 'd':
            options.data = optarg;
            break;
        case 'o':
            options.json = optarg;
            break;
        case 'r':
            options.rows = number;
            break;
        case 'k':
            options.kernels = number;
            break;
        case 'w':
            options.workers = (uint32_t)number;
            break;
        case 'b':
            options.batch = (uint32_t)number;
            break;
        case 'j':
            options.jobs = (int)number;
            break;
        case 's':
            options.seconds = (int)number;
            break;
        case 'f':
            options.fsync_ms = (int)number;
            break;
        case 't':
            options.think_ms = (int)number;
            break;
        case 'F':
            options.fill_only = true;
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (options.data == NULL) {
        fputs(usage, stderr);
        exit(2);
    }
    return options;
}

int main(int argc, char **argv)
{
    static struct fleet fleet;
    static struct bench_fleet_report report;
    bench_usage_help(argc, argv, usage);
    fleet.options = parse(argc, argv);
    wpk_log_init("bench-fleet", WPK_LOG_ERROR, 2);
    bench_link_init(&fleet.to_wpkd);
    bench_link_init(&fleet.to_crew);
    open_wpkd(&fleet);
    submit_jobs(&fleet);
    bench_fsync_delay(fleet.options.fsync_ms);
    if (fleet.options.fill_only) {
        fleet.options.workers = 100;
        fleet.options.seconds = 5;
    }
    report.workers = fleet.options.workers;
    report.batch = fleet.options.batch;
    report.fsync_ms = fleet.options.fsync_ms;
    report.rows = fleet.options.rows;
    measure(&fleet, &report);
    bench_fleet_report_print(&report, stdout);
    if (fleet.options.json != NULL) {
        bench_fleet_report_write(&report, fleet.options.json);
    }
    wpk_performer_free(fleet.performer);
    wpk_store_close(fleet.store);
    free(fleet.busy);
    bench_crew_fini(&fleet.crew);
    bench_link_fini(&fleet.to_wpkd);
    bench_link_fini(&fleet.to_crew);
    return 0;
}
