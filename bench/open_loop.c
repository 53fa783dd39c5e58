/* SPDX-License-Identifier: Apache-2.0 */
/* bench-open-loop: sends results to a real wpkd over real sockets at fixed times, and measures how
 * long a worker waits from its result to its next lease. A time counts from when the result was
 * due, even if its connection was not free then. One thread has all connections, as bare sockets:
 * workers are elsewhere, and what they cost is not to be measured.
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
#include "common/net_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 200
#define RESULTS_PER_S 3000
#define SECONDS 20
#define JOINED_S 600
#define WARM_S 5

#define IPC "ipc://"
#define INPUT_MAX (WPK_MESSAGE_SIZE_MAX + WPK_NET_HEAD_MAX)

static const char usage[] =
    "usage: bench-open-loop DIR [LOG], or --join HTTP WORKERS RATE\n"
    "  wpkd over DIR, which is made, under 3000 results a second that come whether it answers\n"
    "  or not, with a log in the PostgreSQL of the URI LOG, if one is given; --join keeps a wpkd\n"
    "  busy with RATE of them a second, until it is killed: HTTP is the address of its REST\n"
    "  port, WORKERS that of its workers' port, ipc://PATH\n";

struct connection {
    int fd;
    uint32_t number;   /* of the request under way */
    char *input;       /* owned; [INPUT_MAX]: bytes of its answer */
    size_t input_size; /* that have come */
    bool ready;        /* it has a lease, and nothing to do */
    uint64_t meant_ns; /* when the result under way was to be sent; 0: none is */
};

struct loop {
    int epoll_fd;
    struct bench_crew crew;
    struct connection connections[CONNECTIONS];
    uint64_t *due_ns; /* [due_count]: owned; a queue of results that had no connection yet */
    uint32_t due_first;
    uint32_t due_count;
    struct bench_latencies latencies;
};

/* ---- sockets, in the wire format of common/net_line.h */

static void fail(const char *what)
{
    fprintf(stderr, "bench-open-loop: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void dial(struct loop *loop, uint32_t index, const char *url)
{
    char greeting[WPK_NET_GREETING_SIZE];
    struct connection *connection = &loop->connections[index];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    snprintf(address.sun_path, sizeof address.sun_path, "%s",
             wpk_begins(url, IPC) ? url + strlen(IPC) : url);
    connection->input = WPK_DEMAND(malloc(INPUT_MAX));
    connection->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        !wpk_fs_write_all(connection->fd, wpk_net_greeting_asks, sizeof greeting) ||
        recv(connection->fd, greeting, sizeof greeting, MSG_WAITALL) != sizeof greeting ||
        memcmp(greeting, wpk_net_greeting_answers, sizeof greeting) != 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, connection->fd, &event) != 0) {
        fail(url);
    }
}

static void put_request(struct connection *connection, const struct wpk_buf *data)
{
    size_t size;
    char *frame = WPK_DEMAND(wpk_net_line_frame(true, ++connection->number | WPK_NET_NUMBER_FIRST,
                                                data->data, data->size, &size));
    if (!wpk_fs_write_all(connection->fd, frame, size)) {
        fail("a request");
    }
    free(frame);
}

/* True: the answer is here, and its head is read. */
static bool take_input(struct connection *connection, struct wpk_net_head *head)
{
    ssize_t got = recv(connection->fd, connection->input + connection->input_size,
                       INPUT_MAX - connection->input_size, MSG_DONTWAIT);
    if (got <= 0) {
        fail("an answer");
    }
    connection->input_size += (size_t)got;
    return connection->input_size >= WPK_NET_HEAD_MAX &&
           wpk_net_head_read(connection->input, true, WPK_MESSAGE_SIZE_MAX, head) &&
           connection->input_size == WPK_NET_HEAD_MAX + head->size;
}

/* ---- workers */

static void ask(struct loop *loop, uint32_t index)
{
    struct wpk_buf data = {0};
    bench_crew_ask(&loop->crew, index, &data);
    put_request(&loop->connections[index], &data);
    wpk_buf_fini(&data);
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

/* Take what has come by then. */
static void take_answers(struct loop *loop, uint64_t until_ns)
{
    struct epoll_event events[CONNECTIONS];
    struct timespec time = {0};
    uint64_t now = wpk_clock_ns();
    struct wpk_net_head head;
    time.tv_nsec = until_ns > now ? (long)(until_ns - now) : 0;
    int count = epoll_pwait2(loop->epoll_fd, events, CONNECTIONS, &time, NULL);
    for (int i = 0; i < count; i++) {
        uint32_t index = events[i].data.u32;
        struct connection *connection = &loop->connections[index];
        if (take_input(connection, &head)) {
            connection->input_size = 0;
            bench_crew_take(&loop->crew, index, connection->input + WPK_NET_HEAD_MAX, head.size);
            go_on(loop, index);
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

static void open_connections(struct loop *loop, const struct bench_wpkd *wpkd)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    bench_crew_init(&loop->crew, CONNECTIONS, 1);
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        dial(loop, i, wpkd->workers);
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

static void print(struct loop *loop, double cpu_s, double own_s, double rss_mib)
{
    printf("%d connections, %d results/s meant for %d s\n", CONNECTIONS, RESULTS_PER_S, SECONDS);
    printf("  results sent, each with its next lease  %10u\n", loop->latencies.count);
    printf("  result to next lease, ms  %8.2f p50 %8.2f p99 %8.2f p99.9 %8.2f max\n",
           bench_latencies_ms(&loop->latencies, 0.5), bench_latencies_ms(&loop->latencies, 0.99),
           bench_latencies_ms(&loop->latencies, 0.999), bench_latencies_ms(&loop->latencies, 1));
    printf("  errors                    %8llu\n", (unsigned long long)loop->crew.errors);
    printf("  wpkd: %.0f %% of a core, %.0f MiB resident; these workers: %.0f %% of a core\n",
           100 * cpu_s / SECONDS, rss_mib, 100 * own_s / SECONDS);
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
            take_answers(loop, due_ns);
        }
        take_answers(loop, 0);
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
    clock_t own = clock();
    bench_wpkd_usage(&wpkd, &before_s, &rss_mib);
    send_results(&loop, RESULTS_PER_S, SECONDS);
    bench_wpkd_usage(&wpkd, &after_s, &rss_mib);
    print(&loop, after_s - before_s, (double)(clock() - own) / CLOCKS_PER_SEC, rss_mib);
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        close(loop.connections[i].fd);
        free(loop.connections[i].input);
    }
    bench_wpkd_stop(&wpkd);
    bench_crew_fini(&loop.crew);
    free(loop.due_ns);
    return 0;
}
