/* SPDX-License-Identifier: Apache-2.0 */
/* bench-http: one thread sends requests over connections that stay open, and measures the answers'
 * times.
 *
 * Closed loop: each connection sends its next request when it has the answer; the rate is measured.
 * Open loop (--rate): requests are due at fixed times, independent of earlier answers, and a time
 * counts from when the request was due. The time includes waiting for a free connection, so a
 * service that stalls cannot hide it. */
#include "bench/http_load_times.h"

#include "bench/usage.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/fs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096
#define HEAD_MAX 16384
#define EVENTS_MAX 256
#define TARGETS_MAX 65536
#define FILE_MAX ((size_t)64 << 20)

static const char usage[] =
    "usage: bench-http --to unix:PATH|IPV4:PORT [options]\n"
    "  --target PATH       what to ask for; default /healthz\n"
    "  --targets FILE      or one line of it after the other\n"
    "  --post FILE         POST one line of it after the other, as application/json\n"
    "  --token TOKEN       as Authorization: Bearer\n"
    "  --connections N     default 32\n"
    "  --seconds S         default 5, after one that does not count\n"
    "  --rate R            open loop: requests a second; default: closed loop\n"
    "  --pid PID           of the service: its processor time a request is shown too\n"
    "Prints one JSON object; exit code 1 when an answer was no 200, or none came.\n";

struct options {
    const char *to;
    const char *target;
    const char *targets;
    const char *post;
    const char *token;
    uint32_t connections;
    double seconds;
    double rate; /* 0: closed loop */
    int pid;     /* 0: none */
};

struct connection {
    int fd;
    bool busy;
    const struct wpk_buf *request;
    size_t sent;
    uint64_t due_ns;
    char head[HEAD_MAX]; /* of the answer */
    size_t head_size;
    bool in_body;
    uint64_t body_left;
};

struct load {
    struct options options;
    int epoll_fd;
    int timer_fd;
    struct wpk_buf *requests;
    uint32_t request_count;
    uint32_t request_next;
    struct connection *connections;
    uint32_t *free_list;
    uint32_t free_count;
    uint64_t begun_ns;
    uint64_t counted_ns; /* requests that were due before do not count */
    uint64_t ended_ns;
    uint64_t due_count; /* of the open loop, so far */
    uint64_t answer_count;
    uint64_t failure_count; /* answers that were no 200 */
    struct bench_times times;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench-http: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- requests */

/* `line`: a target, or with --post a body. */
static void make_request(const struct options *options, const char *line, size_t size,
                         struct wpk_buf *out)
{
    bool post = options->post != NULL;
    wpk_buf_printf(out, "%s %.*s HTTP/1.1\r\nHost: localhost\r\n", post ? "POST" : "GET",
                   post ? (int)strlen(options->target) : (int)size, post ? options->target : line);
    if (options->token != NULL) {
        wpk_buf_printf(out, "Authorization: Bearer %s\r\n", options->token);
    }
    if (post) {
        wpk_buf_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", size);
    }
    wpk_buf_append_text(out, "\r\n");
    wpk_buf_append(out, line, post ? size : 0);
    if (wpk_buf_status(out) != WPK_OK) {
        fail("the requests");
    }
}

static void read_file(const char *path, struct wpk_buf *out)
{
    struct wpk_diag diag = {0};
    if (wpk_fs_read(path, FILE_MAX, out, &diag) != WPK_OK) {
        fprintf(stderr, "bench-http: %s\n", diag.text);
        exit(1);
    }
}

static void make_requests(struct load *load)
{
    struct wpk_buf lines = {0};
    const char *file = load->options.post != NULL ? load->options.post : load->options.targets;
    if (file != NULL) {
        read_file(file, &lines);
    } else {
        wpk_buf_append_text(&lines, load->options.target);
    }
    load->requests = calloc(TARGETS_MAX, sizeof *load->requests);
    if (load->requests == NULL) {
        fail("memory");
    }
    for (const char *line = wpk_buf_text(&lines); *line != '\0';) {
        size_t size = strcspn(line, "\n");
        if (size > 0 && load->request_count < TARGETS_MAX) {
            make_request(&load->options, line, size, &load->requests[load->request_count++]);
        }
        line += size + (line[size] == '\n');
    }
    wpk_buf_fini(&lines);
    if (load->request_count == 0) {
        fprintf(stderr, "bench-http: nothing to ask for\n");
        exit(1);
    }
}

/* ---- connections */

static int dial(const char *to)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in remote = {.sin_family = AF_INET};
    bool is_local = strncmp(to, "unix:", 5) == 0;
    int fd = socket(is_local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = -1;
    if (is_local) {
        snprintf(local.sun_path, sizeof local.sun_path, "%s", to + 5);
        failed = connect(fd, (struct sockaddr *)&local, sizeof local);
    } else {
        char host[64];
        const char *colon = strrchr(to, ':');
        int on = 1;
        snprintf(host, sizeof host, "%.*s", colon != NULL ? (int)(colon - to) : 0, to);
        remote.sin_port = htons((uint16_t)strtoul(colon != NULL ? colon + 1 : "0", NULL, 10));
        if (inet_pton(AF_INET, host, &remote.sin_addr) == 1) {
            failed = connect(fd, (struct sockaddr *)&remote, sizeof remote);
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if (fd < 0 || failed != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        fail(to);
    }
    return fd;
}

static void open_connections(struct load *load)
{
    uint32_t count = load->options.connections;
    load->connections = calloc(count, sizeof *load->connections);
    load->free_list = calloc(count, sizeof *load->free_list);
    load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    load->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (load->connections == NULL || load->free_list == NULL || load->epoll_fd < 0 ||
        load->timer_fd < 0) {
        fail("memory");
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = count};
    epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, load->timer_fd, &event);
    for (uint32_t i = 0; i < count; i++) {
        load->connections[i].fd = dial(load->options.to);
        load->free_list[load->free_count++] = count - 1 - i;
        event = (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = i};
        epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, load->connections[i].fd, &event);
    }
}

static void send_rest(struct connection *c)
{
    while (c->busy && c->sent < c->request->size) {
        ssize_t sent =
            send(c->fd, c->request->data + c->sent, c->request->size - c->sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            return;
        }
        if (sent <= 0) {
            fail("the service closed a connection");
        }
        c->sent += (size_t)sent;
    }
}

static void ask(struct load *load, uint32_t index, uint64_t due_ns)
{
    struct connection *c = &load->connections[index];
    c->busy = true;
    c->request = &load->requests[load->request_next++ % load->request_count];
    c->sent = 0;
    c->due_ns = due_ns;
    c->head_size = 0;
    c->in_body = false;
    send_rest(c);
}

/* ---- answers */

static uint64_t body_length(const char *head)
{
    for (const char *line = head; line != NULL; line = strstr(line, "\r\n")) {
        line += line == head ? 0 : 2;
        if (strncasecmp(line, "Content-Length:", 15) == 0) {
            return strtoull(line + 15, NULL, 10);
        }
    }
    return 0;
}

static void finish(struct load *load, uint32_t index)
{
    struct connection *c = &load->connections[index];
    uint64_t at_ns = wpk_clock_ns();
    c->busy = false;
    if (c->due_ns >= load->counted_ns && c->due_ns < load->ended_ns) {
        load->answer_count++;
        load->failure_count += strncmp(c->head, "HTTP/1.1 200", 12) != 0;
        bench_times_add(&load->times, at_ns - c->due_ns);
    }
    if (load->options.rate > 0) {
        load->free_list[load->free_count++] = index;
    } else if (at_ns < load->ended_ns) {
        ask(load, index, at_ns);
    }
}

/* Take received bytes: they belong to a head, or to a body whose content is ignored. */
static void take(struct load *load, uint32_t index, const char *data, size_t size)
{
    struct connection *c = &load->connections[index];
    if (!c->in_body) {
        size_t room = sizeof c->head - 1 - c->head_size;
        size_t part = size < room ? size : room;
        memcpy(c->head + c->head_size, data, part);
        c->head[c->head_size + part] = '\0';
        char *end = strstr(c->head, "\r\n\r\n");
        c->head_size += part;
        if (end == NULL) {
            return;
        }
        c->in_body = true;
        c->body_left = body_length(c->head);
        size = c->head_size - (size_t)(end + 4 - c->head) + (size - part);
    }
    c->body_left -= size < c->body_left ? size : c->body_left;
    if (c->body_left == 0) {
        finish(load, index);
    }
}

static void receive(struct load *load, uint32_t index)
{
    static char data[65536];
    struct connection *c = &load->connections[index];
    while (c->busy) {
        ssize_t size = recv(c->fd, data, sizeof data, 0);
        if (size < 0 && errno == EAGAIN) {
            return;
        }
        if (size <= 0) {
            fail("the service closed a connection");
        }
        take(load, index, data, (size_t)size);
        if ((size_t)size < sizeof data) {
            return; /* most likely there is no more; edges tell */
        }
    }
}

/* ---- the loop */

static uint64_t due_at(const struct load *load, uint64_t count)
{
    return load->begun_ns + (uint64_t)((double)count * 1e9 / load->options.rate);
}

/* Send what is due, as far as connections are free, and be woken for the next. */
static void send_due(struct load *load)
{
    uint64_t at_ns = wpk_clock_ns();
    while (load->free_count > 0 && due_at(load, load->due_count) <= at_ns &&
           due_at(load, load->due_count) < load->ended_ns) {
        ask(load, load->free_list[--load->free_count], due_at(load, load->due_count));
        load->due_count++;
    }
    uint64_t next_ns = due_at(load, load->due_count);
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(next_ns / WPK_NS_PER_S),
                                           .tv_nsec = (long)(next_ns % WPK_NS_PER_S)}};
    if (load->free_count > 0) {
        timerfd_settime(load->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    }
}

static uint64_t cpu_ns(int pid)
{
    char path[64];
    struct wpk_buf text = {0};
    unsigned long long user = 0;
    unsigned long long system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (pid == 0 || wpk_fs_read(path, 65536, &text, NULL) != WPK_OK) {
        return 0;
    }
    const char *at = strrchr(wpk_buf_text(&text), ')');
    if (at == NULL || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
                             &system) != 2) {
        user = system = 0;
    }
    wpk_buf_fini(&text);
    return (user + system) * WPK_NS_PER_S / (unsigned long long)sysconf(_SC_CLK_TCK);
}

static bool is_over(const struct load *load, uint64_t at_ns)
{
    /* A little longer, for the answers of an open loop that are still to come. */
    return at_ns > load->ended_ns + (load->options.rate > 0 ? WPK_NS_PER_S : 0);
}

static uint64_t run(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t cpu_begun_ns = 0;
    load->begun_ns = wpk_clock_ns();
    load->counted_ns = load->begun_ns + WPK_NS_PER_S;
    load->ended_ns = load->counted_ns + (uint64_t)(load->options.seconds * 1e9);
    for (uint32_t i = 0; load->options.rate <= 0 && i < load->options.connections; i++) {
        ask(load, i, load->begun_ns);
    }
    for (uint64_t at_ns = load->begun_ns; !is_over(load, at_ns); at_ns = wpk_clock_ns()) {
        if (load->options.rate > 0) {
            send_due(load);
        }
        if (cpu_begun_ns == 0 && at_ns >= load->counted_ns) {
            cpu_begun_ns = cpu_ns(load->options.pid) + 1;
        }
        int count = epoll_wait(load->epoll_fd, events, EVENTS_MAX, 100);
        for (int i = 0; i < count; i++) {
            uint32_t index = events[i].data.u32;
            uint64_t expirations;
            if (index == load->options.connections) {
                ssize_t size = read(load->timer_fd, &expirations, sizeof expirations);
                (void)size;
                continue;
            }
            send_rest(&load->connections[index]);
            receive(load, index);
        }
    }
    return cpu_ns(load->options.pid) + 1 - cpu_begun_ns;
}

/* ---- command line and report */

static void report(const struct load *load, uint64_t used_ns)
{
    const struct bench_times *times = &load->times;
    uint64_t answers = load->answer_count;
    double cpu_us = answers > 0 ? (double)used_ns / 1e3 / (double)answers : 0;
    printf("{\"loop\": \"%s\", \"connections\": %u, \"seconds\": %.1f, \"rate\": %.0f, "
           "\"answers\": %" PRIu64 ", \"answers_per_s\": %.0f, \"failures\": %" PRIu64 ", "
           "\"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, "
           "\"max_us\": %.1f",
           load->options.rate > 0 ? "open" : "closed", load->options.connections,
           load->options.seconds, load->options.rate, answers,
           (double)answers / load->options.seconds, load->failure_count,
           bench_times_quantile_us(times, 0.5), bench_times_quantile_us(times, 0.9),
           bench_times_quantile_us(times, 0.99), bench_times_quantile_us(times, 0.999),
           (double)times->max_ns / 1e3);
    if (load->options.pid != 0) {
        printf(", \"cpu_us_per_answer\": %.2f", cpu_us);
    }
    printf("}\n");
}

static const struct option long_options[] = {
    {"to", required_argument, NULL, 't'},      {"target", required_argument, NULL, 'p'},
    {"targets", required_argument, NULL, 'f'}, {"post", required_argument, NULL, 'b'},
    {"token", required_argument, NULL, 'a'},   {"connections", required_argument, NULL, 'c'},
    {"seconds", required_argument, NULL, 's'}, {"rate", required_argument, NULL, 'r'},
    {"pid", required_argument, NULL, 'i'},     {0},
};

static bool parse(int argc, char **argv, struct options *out)
{
    int option;
    *out = (struct options){.target = "/healthz", .connections = 32, .seconds = 5};
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case 't':
            out->to = optarg;
            break;
        case 'p':
            out->target = optarg;
            break;
        case 'f':
            out->targets = optarg;
            break;
        case 'b':
            out->post = optarg;
            break;
        case 'a':
            out->token = optarg;
            break;
        case 'c':
            out->connections = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 's':
            out->seconds = strtod(optarg, NULL);
            break;
        case 'r':
            out->rate = strtod(optarg, NULL);
            break;
        case 'i':
            out->pid = (int)strtol(optarg, NULL, 10);
            break;
        default:
            return false;
        }
    }
    return out->to != NULL && optind == argc && out->connections > 0 &&
           out->connections <= CONNECTIONS_MAX && out->seconds > 0 && out->rate >= 0;
}

int main(int argc, char **argv)
{
    static struct load load;
    bench_usage_help(argc, argv, usage);
    if (!parse(argc, argv, &load.options)) {
        fputs(usage, stderr);
        return 2;
    }
    make_requests(&load);
    open_connections(&load);
    uint64_t used_ns = run(&load);
    report(&load, used_ns);
    for (uint32_t i = 0; i < load.options.connections; i++) {
        close(load.connections[i].fd);
    }
    for (uint32_t i = 0; i < load.request_count; i++) {
        wpk_buf_fini(&load.requests[i]);
    }
    free(load.requests);
    free(load.connections);
    free(load.free_list);
    return load.answer_count == 0 || load.failure_count > 0 ? 1 : 0;
}
