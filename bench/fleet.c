/* SPDX-License-Identifier: Apache-2.0 */
/* bench-fleet: ten thousand workers at one wpkd, without sockets. Measures the results recorded a
 * second.
 *
 *     crew ──frames──▶ loop: executor ──batches──▶ writer: SQLite, on disk
 *       ▲                │  ▲
 *       └────replies─────┘  └── strategies, on threads of their own
 *
 * Each worker of the crew holds its work items for a second (--think-ms). By default the crew asks
 * for 40,000 work items a second, more than wpkd can give. The crew's codecs run on its own thread;
 * the CPU time of each thread is shown. With --artifacts the run has two parts: without uploads,
 * then with uploads. */
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
#include "coordinator/effects/executor.h"
#include "coordinator/pages/pages.h"
#include "coordinator/store/keeper.h"

#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define TURN_MAX 256 /* frames of a batch, as the service has it */
#define TICK_MS 200
#define STRATEGY_THREADS 1
#define PAGES 20
#define BATCHES_MAX 256 /* more than the executor lets wait */

struct options {
    const char *data;
    const char *log;  /* URI of PostgreSQL; NULL: the disk alone */
    const char *json; /* where to write it; NULL: nowhere */
    int64_t rows;
    int64_t kernels;
    uint32_t workers;
    uint32_t batch;
    int jobs;
    int seconds;
    int fsync_ms;
    int think_ms;
    size_t artifact_size; /* of uploads; 0: none */
    int uploads_per_s;
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
    struct wpk_keeper *keeper; /* NULL: the history has no log */
    struct wpk_executor *executor;
    struct bench_fleet_report report;
    struct bench_fleet_part warming;         /* what is not measured goes there */
    _Atomic(struct bench_fleet_part *) part; /* that is measured now */
    uint64_t given_ns[BATCHES_MAX];          /* when batch n was handed to the writer */
    uint64_t given;                          /* batches, so far */
    uint64_t released;
    atomic_bool uploading;
    uint64_t uploads_ns;      /* the crew's uploads have been due until then */
    _Atomic uint64_t results; /* acknowledged, as the crew counts */
    _Atomic uint64_t uploads; /* likewise: begun, */
    _Atomic uint64_t refused; /* and of these refused */
};

/* ---- the crew's thread */

static void ask(struct fleet *fleet, uint32_t index)
{
    struct wpk_buf frame = {0};
    bench_crew_ask(&fleet->crew, index, &frame);
    fleet->crew.hands[index].asked_ns = wpk_clock_ns();
    bench_link_put(&fleet->to_wpkd, index, frame);
}

/* With work in its hands it is busy for a while; else it asks at once. */
static void go_on(struct fleet *fleet, uint32_t index)
{
    if (fleet->crew.hands[index].held_count == 0) {
        ask(fleet, index);
        return;
    }
    uint64_t until_ns = wpk_clock_ns() + (uint64_t)fleet->options.think_ms * WPK_NS_PER_MS;
    fleet->busy[fleet->busy_end++ % fleet->crew.count] = (struct busy){index, until_ns};
}

static void finish_work(struct fleet *fleet)
{
    while (fleet->busy_first < fleet->busy_end &&
           fleet->busy[fleet->busy_first % fleet->crew.count].until_ns <= wpk_clock_ns()) {
        ask(fleet, fleet->busy[fleet->busy_first++ % fleet->crew.count].worker);
    }
}

/* Uploads of the crew's own artifacts, so many a second. */
static void feed_uploads(struct fleet *fleet)
{
    uint64_t every_ns = WPK_NS_PER_S / (uint64_t)fleet->options.uploads_per_s;
    if (!fleet->uploading) {
        fleet->uploads_ns = wpk_clock_ns();
    }
    for (; fleet->uploads_ns + every_ns <= wpk_clock_ns(); fleet->uploads_ns += every_ns) {
        fleet->crew.uploads_due++;
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
        feed_uploads(fleet);
        finish_work(fleet);
        for (uint32_t i = 0; i < count; i++) {
            struct bench_hand *hand = &fleet->crew.hands[frames[i].worker];
            if (hand->asked == WPK_MESSAGE_RESULTS) {
                struct bench_fleet_part *part = fleet->part;
                bench_latencies_add(&part->acks, wpk_clock_ns() - hand->asked_ns);
            }
            bench_crew_take(&fleet->crew, frames[i].worker, frames[i].data.data,
                            frames[i].data.size);
            wpk_buf_fini(&frames[i].data);
            go_on(fleet, frames[i].worker);
        }
        fleet->results = fleet->crew.results;
        fleet->uploads = fleet->crew.uploads;
        fleet->refused = fleet->crew.uploads_refused;
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

static void on_respond(void *user, uint64_t request, struct wpk_api_answer *answer)
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
    if (wpk_executor_commit(fleet->executor, &diag) != WPK_OK) {
        fprintf(stderr, "bench-fleet: %s\n", diag.text);
        exit(1);
    }
    for (; fleet->given < wpk_executor_given(fleet->executor); fleet->given++) {
        fleet->given_ns[fleet->given % BATCHES_MAX] = wpk_clock_ns();
    }
}

static void release(struct fleet *fleet)
{
    struct bench_fleet_part *part = fleet->part;
    wpk_executor_poll(fleet->executor);
    for (; fleet->released < wpk_executor_released(fleet->executor); fleet->released++) {
        bench_latencies_add(&part->commits,
                            wpk_clock_ns() - fleet->given_ns[fleet->released % BATCHES_MAX]);
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
        wpk_executor_frame(fleet->executor, &address, frames[i].data.data, frames[i].data.size,
                           number);
    }
    commit(fleet);
    release(fleet);
}

static void run_loop(struct fleet *fleet, uint64_t until_ns)
{
    static struct bench_frame frames[TURN_MAX];
    uint64_t tick_ns = wpk_clock_ns();
    uint32_t count = 0;
    while (wpk_clock_ns() < until_ns) {
        bool open = bench_link_take(&fleet->to_wpkd, TICK_MS, TURN_MAX, frames, &count);
        WPK_ASSERT(open);
        turn(fleet, frames, count);
        for (uint32_t i = 0; i < count; i++) {
            wpk_buf_fini(&frames[i].data);
        }
        if (wpk_clock_ns() > tick_ns + TICK_MS * WPK_NS_PER_MS) {
            struct wpk_event tick = {.kind = WPK_EVENT_TICK};
            tick_ns = wpk_clock_ns();
            wpk_executor_step(fleet->executor, &tick);
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
    wpk_api_request(fleet->executor, &request, random);
    commit(fleet);
    wpk_buf_fini(&body);
}

static void submit_jobs(struct fleet *fleet)
{
    const struct wpk_coordinator *coordinator = wpk_executor_coordinator(fleet->executor);
    for (int i = (int)coordinator->live_count; i < fleet->options.jobs; i++) {
        submit(fleet, i);
    }
}

/* ---- measuring */

static void measure_part(struct fleet *fleet, struct bench_fleet_part *part, uint64_t ns)
{
    uint64_t began_ns = wpk_clock_ns();
    uint64_t results = fleet->results;
    uint64_t uploads = fleet->uploads;
    uint64_t refused = fleet->refused;
    unsigned long fsyncs = bench_fsync_count();
    fleet->part = part;
    bench_threads_take(&part->before);
    run_loop(fleet, began_ns + ns);
    bench_threads_take(&part->after);
    fleet->part = &fleet->warming;
    part->seconds = (double)(wpk_clock_ns() - began_ns) / 1e9;
    part->results = fleet->results - results;
    part->uploads = fleet->uploads - uploads;
    part->uploads_refused = fleet->refused - refused;
    part->fsyncs = bench_fsync_count() - fsyncs;
}

static void measure(struct fleet *fleet)
{
    uint64_t ns = (uint64_t)fleet->options.seconds * WPK_NS_PER_S;
    pthread_t thread;
    bench_crew_init(&fleet->crew, fleet->options.workers, fleet->options.batch);
    fleet->busy = calloc(fleet->options.workers, sizeof *fleet->busy);
    WPK_ASSERT(fleet->busy != NULL);
    fleet->part = &fleet->warming;
    if (fleet->options.artifact_size > 0) {
        bench_crew_upload(&fleet->crew, fleet->options.artifact_size);
    }
    pthread_create(&thread, NULL, run_crew, fleet);
    run_loop(fleet, wpk_clock_ns() + ns / 4); /* workers join, spaces are derived, caches fill */
    measure_part(fleet, &fleet->report.parts[0], ns);
    if (fleet->options.artifact_size > 0) {
        fleet->uploading = true;
        run_loop(fleet, wpk_clock_ns() + ns / 4);
        measure_part(fleet, &fleet->report.parts[1], ns);
    }
    bench_link_close(&fleet->to_crew);
    pthread_join(thread, NULL);
    fleet->report.repeated = fleet->crew.repeated;
    fleet->report.errors = fleet->crew.errors;
}

/* Render the fleet's page as it stands, with none and with each of its workers silent. */
static void measure_page(const struct fleet *fleet)
{
    const struct wpk_coordinator *coordinator = wpk_executor_coordinator(fleet->executor);
    for (int silent = 0; silent < 2; silent++) {
        struct wpk_buf page = {0};
        struct timespec began, ended;
        uint64_t now_ns = wpk_clock_ns() + (silent ? (uint64_t)3600 * WPK_NS_PER_S : 0);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
        for (int i = 0; i < PAGES; i++) {
            wpk_buf_reset(&page);
            wpk_page_fleet(&page, coordinator, now_ns);
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
        printf(
            "the fleet's page%s: %.2f ms of CPU, %.1f KB, %u workers\n",
            silent ? ", all silent" : "",
            (double)((ended.tv_sec - began.tv_sec) * 1000000000 + ended.tv_nsec - began.tv_nsec) /
                1e6 / PAGES,
            (double)page.size / 1e3, coordinator->worker_count);
        wpk_buf_fini(&page);
    }
}

/* Give the history, which is filled, to a log; one that has one already goes on. */
static wpk_err open_log(struct fleet *fleet, struct wpk_diag *diag)
{
    wpk_store_close(fleet->store);
    fleet->store = NULL;
    wpk_err err =
        wpk_keeper_open(fleet->options.log, fleet->options.data, "bench", &fleet->keeper, diag);
    err = err == WPK_OK ? wpk_keeper_follow(fleet->keeper, diag) : err;
    return err == WPK_OK || err == WPK_ENOENT
               ? wpk_keeper_claim(fleet->keeper, false, &fleet->store, diag)
               : err;
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
    if (fleet->options.log != NULL && (err == WPK_OK || err == WPK_EMISMATCH)) {
        err = open_log(fleet, &diag);
    }
    struct wpk_executor_options options = {
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
        err = wpk_executor_new(&options, &fleet->executor, &diag);
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
                            "  --jobs N        live jobs, each a search of its own (100)\n"
                            "  --think-ms N    a worker has what it was given so long (1000)\n"
                            "  --seconds N     to measure; a quarter more to warm up (20)\n"
                            "  --artifacts N   measure again with uploads of N bytes (0: do not)\n"
                            "  --uploads N     of these, a second (50)\n"
                            "  --fsync-ms N    added to each fsync (0)\n"
                            "  --log URI       keep a log in this PostgreSQL (none)\n"
                            "  --fill          only make the history, and leave the jobs live\n"
                            "  --json FILE\n";

static const struct options defaults = {
    .rows = 1000000,
    .kernels = 10000,
    .workers = 10000,
    .batch = 4,
    .jobs = 100,
    .think_ms = 1000,
    .uploads_per_s = 50,
    .seconds = 20,
};

static struct options parse(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"data", required_argument, NULL, 'd'},
        {"rows", required_argument, NULL, 'r'},
        {"kernels", required_argument, NULL, 'k'},
        {"workers", required_argument, NULL, 'w'},
        {"batch", required_argument, NULL, 'b'},
        {"jobs", required_argument, NULL, 'j'},
        {"seconds", required_argument, NULL, 's'},
        {"fsync-ms", required_argument, NULL, 'f'},
        {"think-ms", required_argument, NULL, 't'},
        {"fill", no_argument, NULL, 'F'},
        {"json", required_argument, NULL, 'o'},
        {"artifacts", required_argument, NULL, 'a'},
        {"uploads", required_argument, NULL, 'u'},
        {"log", required_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    struct options options = defaults;
    for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        long number = optarg != NULL ? strtol(optarg, NULL, 10) : 0;
        switch (c) {
        case 'd':
            options.data = optarg;
            break;
        case 'l':
            options.log = optarg;
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
        case 'a':
            options.artifact_size = (size_t)number;
            break;
        case 'u':
            options.uploads_per_s = (int)number;
            break;
        case 'F':
            options.fill_only = true;
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    bool fits = options.artifact_size == 0 ||
                (options.artifact_size >= 8 && options.artifact_size <= WPK_ARTIFACT_SIZE_MAX);
    if (options.data == NULL || !fits || options.uploads_per_s < 1) {
        fputs(usage, stderr);
        exit(2);
    }
    return options;
}

int main(int argc, char **argv)
{
    static struct fleet fleet;
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
    fleet.report.workers = fleet.options.workers;
    fleet.report.batch = fleet.options.batch;
    fleet.report.fsync_ms = fleet.options.fsync_ms;
    fleet.report.rows = fleet.options.rows;
    fleet.report.artifact_size = fleet.options.artifact_size;
    measure(&fleet);
    bench_fleet_report_print(&fleet.report, stdout);
    measure_page(&fleet);
    if (fleet.options.json != NULL) {
        bench_fleet_report_write(&fleet.report, fleet.options.json);
    }
    wpk_executor_free(fleet.executor);
    wpk_keeper_close(fleet.keeper);
    wpk_store_close(fleet.store);
    free(fleet.busy);
    bench_crew_fini(&fleet.crew);
    bench_link_fini(&fleet.to_wpkd);
    bench_link_fini(&fleet.to_crew);
    return 0;
}
