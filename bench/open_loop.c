/* SPDX-License-Identifier: Apache-2.0 */
/* bench-open-loop: sends results to a real wpkd over real sockets at fixed times, and measures how
 * long a worker waits from its result to its next lease. A time counts from when the result was
 * due, even if its connection was not free then.
 *
 *     bench-open-loop DIR [LOG]                   measures a wpkd of its own on DIR, with a log
 *     bench-open-loop --join HTTP WORKERS RATE    keeps one that runs busy, until it is killed
 */
#include "bench/fleet_crew.h"
#include "bench/fleet_report.h"
#include "bench/fleet_wpkd.h"
#include "bench/usage.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/net.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CONNECTIONS 200
#define RESULTS_PER_S 3000
#define SECONDS 20
#define JOINED_S 600
#define WARM_S 5
#define REQUEST_MS 30000

static const char usage[] =
    "usage: bench-open-loop DIR [LOG], or --join HTTP WORKERS RATE\n"
    "  wpkd over DIR, which is made, under 3000 results a second that come whether it answers\n"
    "  or not, with a log in the PostgreSQL of the URI LOG, if one is given; --join keeps a wpkd\n"
    "  busy with RATE of them a second, until it is killed: HTTP is the address of its REST\n"
    "  port, WORKERS that of its workers' port\n";

struct connection {
    struct loop *loop;
    struct wpk_net_client *client;
    atomic_bool woken;
    bool busy;
    bool ready;        /* it has a lease, and nothing to do */
    uint64_t meant_ns; /* when the result under way was to be sent; 0: none is */
};

struct loop {
    int wake_fd;
    struct bench_crew crew;
    struct connection connections[CONNECTIONS];
    uint64_t *due_ns; /* [due_count]: owned; a queue of results that had no connection yet */
    uint32_t due_first;
    uint32_t due_count;
    struct bench_latencies latencies;
    uint64_t failures;
};

static void on_wake(void *user)
{
    struct connection *connection = user;
    uint64_t one = 1;
    atomic_store(&connection->woken, true);
    ssize_t written = write(connection->loop->wake_fd, &one, sizeof one);
    (void)written;
}

static void ask(struct loop *loop, uint32_t index)
{
    struct connection *connection = &loop->connections[index];
    struct wpk_buf frame = {0};
    bench_crew_ask(&loop->crew, index, &frame);
    wpk_err err = wpk_net_client_put(connection->client, 0, frame.data, frame.size, REQUEST_MS);
    WPK_ASSERT(err == WPK_OK);
    wpk_buf_fini(&frame);
    connection->busy = true;
}

static void send_result(struct loop *loop, uint32_t index, uint64_t meant_ns)
{
    loop->connections[index].meant_ns = meant_ns;
    loop->connections[index].ready = false;
    ask(loop, index);
}

/* A connection has its answer: on with its hello, its poll, or the next result that is due. */
static void go_on(struct loop *loop, uint32_t index)
{
    struct connection *connection = &loop->connections[index];
    const struct bench_hand *hand = &loop->crew.hands[index];
    if (hand->session == 0 || hand->held_count == 0) {
        ask(loop, index);
        return;
    }
    if (connection->meant_ns != 0) {
        bench_latencies_add(&loop->latencies, wpk_clock_ns() - connection->meant_ns);
        connection->meant_ns = 0;
    }
    connection->ready = true;
    if (loop->due_first < loop->due_count) {
        send_result(loop, index, loop->due_ns[loop->due_first++]);
    }
}

static void take_answers(struct loop *loop)
{
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        struct connection *connection = &loop->connections[i];
        int slot;
        wpk_err err;
        char *data;
        size_t size;
        if (!atomic_exchange(&connection->woken, false)) {
            continue;
        }
        while (wpk_net_client_next(connection->client, &slot, &err, &data, &size)) {
            connection->busy = false;
            if (err == WPK_OK) {
                bench_crew_take(&loop->crew, i, data, size);
            } else {
                loop->failures++;
            }
            free(data);
            go_on(loop, i);
        }
    }
}

/* A result is due: it goes to a connection that is free, or waits for one. */
static void fall_due(struct loop *loop, uint64_t meant_ns, uint32_t *turn)
{
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        uint32_t index = (*turn + i) % CONNECTIONS;
        if (loop->connections[index].ready) {
            *turn = index + 1;
            send_result(loop, index, meant_ns);
            return;
        }
    }
    loop->due_ns[loop->due_count++] = meant_ns;
}

static void wait_until(struct loop *loop, uint64_t until_ns)
{
    uint64_t now = wpk_clock_ns();
    struct pollfd waits = {.fd = loop->wake_fd, .events = POLLIN};
    struct timespec time = {0};
    time.tv_nsec = until_ns > now ? (long)(until_ns - now) : 0;
    uint64_t count;
    if (ppoll(&waits, 1, &time, NULL) > 0) {
        ssize_t size = read(loop->wake_fd, &count, sizeof count);
        (void)size;
    }
    take_answers(loop);
}

static void open_connections(struct loop *loop, const struct bench_wpkd *wpkd)
{
    struct wpk_diag diag = {0};
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bench_crew_init(&loop->crew, CONNECTIONS, 1);
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        struct connection *connection = &loop->connections[i];
        connection->loop = loop;
        struct wpk_net_client_options options = {.url = wpkd->workers,
                                                 .size_max = WPK_MESSAGE_SIZE_MAX,
                                                 .slot_count = 1,
                                                 .wake = on_wake,
                                                 .user = connection};
        if (wpk_net_client_open(&options, &connection->client, &diag) != WPK_OK) {
            fprintf(stderr, "bench-open-loop: %s\n", diag.text);
            exit(1);
        }
        ask(loop, i);
    }
}

static void submit_jobs(const struct bench_wpkd *wpkd)
{
    for (int i = 0; i < 10; i++) {
        char body[1024];
        snprintf(body, sizeof body,
                 "{\"name\":\"open%d\",\"ops\":[{\"name\":\"op\",\"op\":\"C[i,j] = sum(k) A[i,k] * "
                 "B[k,j]\",\"tensors\":{\"A\":\"f32[%d,64]\",\"B\":\"f32[64,64]\",\"C\":"
                 "\"f32[%d,64]\"}}],\"search\":{\"strategy\":\"random\",\"seed\":1},\"budget\":{"
                 "\"candidates\":1000000,\"seconds\":86400}}",
                 i, 32 + 16 * i, 32 + 16 * i);
        if (bench_wpkd_ask(wpkd, "POST", "/v1/jobs", body, NULL) != 201) {
            fprintf(stderr, "bench-open-loop: a job is refused\n");
            exit(1);
        }
    }
}

static void print(struct loop *loop, double cpu_s, double rss_mib)
{
    printf("%d connections, %d results/s meant for %d s\n", CONNECTIONS, RESULTS_PER_S, SECONDS);
    printf("  results sent, each with its next lease  %10u\n", loop->latencies.count);
    printf("  result to next lease, ms  %8.2f p50 %8.2f p99 %8.2f p99.9 %8.2f max\n",
           bench_latencies_ms(&loop->latencies, 0.5), bench_latencies_ms(&loop->latencies, 0.99),
           bench_latencies_ms(&loop->latencies, 0.999), bench_latencies_ms(&loop->latencies, 1));
    printf("  failures, errors          %8llu %8llu\n", (unsigned long long)loop->failures,
           (unsigned long long)loop->crew.errors);
    printf("  wpkd: %.0f %% of a core, %.0f MiB resident\n", 100 * cpu_s / SECONDS, rss_mib);
}

/* Jobs, connections, and results at `rate` for so long. */
static void send_results(struct loop *loop, uint32_t rate, uint32_t seconds)
{
    uint32_t turn = 0;
    uint64_t began_ns = wpk_clock_ns();
    uint64_t total = (uint64_t)seconds * rate;
    loop->due_first = 0;
    loop->due_count = 0;
    free(loop->due_ns);
    loop->due_ns = calloc(total + 1, sizeof *loop->due_ns);
    WPK_ASSERT(loop->due_ns != NULL);
    for (uint64_t sent = 0; sent < total;) {
        uint64_t due_ns = began_ns + sent * WPK_NS_PER_S / rate;
        if (wpk_clock_ns() >= due_ns) {
            fall_due(loop, due_ns, &turn);
            sent++;
        } else {
            wait_until(loop, due_ns);
        }
        take_answers(loop);
    }
}

static void prepare(struct loop *loop, const struct bench_wpkd *wpkd)
{
    bench_wpkd_await(wpkd, "/healthz");
    submit_jobs(wpkd);
    open_connections(loop, wpkd);
    sleep(1); /* they join */
}

static int join(struct loop *loop, char **arguments)
{
    struct bench_wpkd wpkd = {0};
    snprintf(wpkd.http, sizeof wpkd.http, "%s",
             arguments[0] + (strncmp(arguments[0], "unix:", 5) == 0 ? 5 : 0));
    snprintf(wpkd.workers, sizeof wpkd.workers, "%s", arguments[1]);
    long rate = strtol(arguments[2], NULL, 10);
    if (rate < 1 || rate > 100000) {
        fprintf(stderr, "bench-open-loop: RATE has to be a number up to 100000\n");
        return 2;
    }
    prepare(loop, &wpkd);
    send_results(loop, (uint32_t)rate, JOINED_S);
    return 0;
}

int main(int argc, char **argv)
{
    static struct loop loop;
    struct bench_wpkd wpkd;
    double before_s;
    double after_s;
    double rss_mib;
    bench_usage_help(argc, argv, usage);
    if (argc == 5 && strcmp(argv[1], "--join") == 0) {
        return join(&loop, argv + 2);
    }
    if ((argc != 2 && argc != 3) || argv[1][0] == '-' ||
        wpk_fs_make_dirs(argv[1], NULL) != WPK_OK) {
        fputs(usage, stderr);
        return 2;
    }
    bench_wpkd_start(&wpkd, argv[1], argc == 3 ? argv[2] : NULL);
    prepare(&loop, &wpkd);
    send_results(&loop, RESULTS_PER_S, WARM_S);
    bench_latencies_reset(&loop.latencies);
    bench_wpkd_usage(&wpkd, &before_s, &rss_mib);
    send_results(&loop, RESULTS_PER_S, SECONDS);
    bench_wpkd_usage(&wpkd, &after_s, &rss_mib);
    print(&loop, after_s - before_s, rss_mib);
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        wpk_net_client_close(loop.connections[i].client);
    }
    bench_wpkd_stop(&wpkd);
    bench_crew_fini(&loop.crew);
    free(loop.due_ns);
    return 0;
}
