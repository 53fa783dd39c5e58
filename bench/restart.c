/* SPDX-License-Identifier: Apache-2.0 */
/* bench-restart: measures how long a cold wpkd takes until it is ready, and its memory then. */
#include "bench/fleet_wpkd.h"
#include "bench/usage.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/log.h"
#include "coordinator/api/api.h"
#include "coordinator/effects/executor.h"
#include "coordinator/store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 5
#define OWNERS 16 /* each may have so many jobs */

static const char usage[] =
    "usage: bench-restart DIR [JOBS [OPS]]\n"
    "  how long wpkd takes to be ready; DIR: a history by bench-fleet --fill --jobs 100,\n"
    "  or a new one of JOBS live jobs of OPS convolutions each (256)\n";

static void on_reply(void *user, const struct wpk_net_address *address, const void *data,
                     size_t size)
{
    (void)user;
    (void)address;
    (void)data;
    (void)size;
}

static void on_respond(void *user, uint64_t request, struct wpk_api_answer *answer)
{
    (void)user;
    (void)request;
    if (answer->status >= 300) {
        fprintf(stderr, "bench-restart: a job is refused: %s\n", wpk_buf_text(&answer->body));
        exit(1);
    }
}

static void submit(struct wpk_executor *executor, int number, int ops)
{
    struct wpk_buf body = {0};
    struct wpk_diag diag = {0};
    wpk_buf_printf(&body, "{\"name\":\"bench%d\",\"ops\":[", number);
    for (int i = 0; i < ops; i++) {
        wpk_buf_printf(&body,
                       "%s{\"name\":\"c%d\",\"op\":{\"type\":\"conv2d\",\"input\":[1,64,%d,%d],"
                       "\"filters\":%d,\"kernel\":[3,3],\"padding\":[1,1,1,1],\"bias\":true,"
                       "\"activation\":\"relu\"}}",
                       i > 0 ? "," : "", i, 7 + number % 64, 7 + number / 64, 16 + i);
    }
    wpk_buf_append_text(&body, "]}");
    struct wpk_http_request request = {.id = (uint64_t)number + 1,
                                       .identity = {.roles = WPK_ROLE_ALL},
                                       .method = "POST",
                                       .path = "/v1/jobs",
                                       .body = wpk_buf_text(&body),
                                       .body_size = body.size,
                                       .content_type = "application/json"};
    snprintf(request.identity.owner, sizeof request.identity.owner, "owner%d", number % OWNERS);
    wpk_api_request(executor, &request, (uint64_t)number + 1);
    wpk_err err = wpk_executor_commit(executor, &diag);
    if (err != WPK_OK) {
        fprintf(stderr, "bench-restart: %s\n", diag.text);
        exit(1);
    }
    wpk_buf_fini(&body);
}

static void fill(const char *data, int jobs, int ops)
{
    struct wpk_diag diag = {0};
    struct wpk_store *store = NULL;
    struct wpk_executor *executor = NULL;
    wpk_err err = wpk_fs_make_dirs(data, &diag);
    if (err == WPK_OK) {
        err = wpk_store_open(data, wpk_clock_system(), &store, &diag);
    }
    struct wpk_executor_options options = {.store = store,
                                           .data_dir = data,
                                           .clock = wpk_clock_system(),
                                           .out = {.reply = on_reply, .respond = on_respond},
                                           .answer = wpk_api_answer_effect};
    if (err == WPK_OK) {
        err = wpk_executor_new(&options, &executor, &diag);
    }
    if (err != WPK_OK) {
        fprintf(stderr, "bench-restart: %s\n",
                diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
        exit(1);
    }
    uint32_t there = wpk_executor_coordinator(executor)->live_count;
    for (int i = (int)there; i < jobs; i++) {
        submit(executor, i, ops);
    }
    wpk_executor_free(executor);
    wpk_store_close(store);
}

/* Drop the file from the page cache, so that the first reads go to the disk. */
static void forget_pages(const char *data)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/history.db", data);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fdatasync(fd);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

int main(int argc, char **argv)
{
    bench_usage_help(argc, argv, usage);
    if (argc < 2 || argc > 4 || argv[1][0] == '-') {
        fputs(usage, stderr);
        return 2;
    }
    wpk_log_init("bench-restart", WPK_LOG_ERROR, 2);
    if (argc > 2) {
        int ops = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 256;
        fill(argv[1], (int)strtol(argv[2], NULL, 10), ops);
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct bench_wpkd wpkd;
        double cpu_s;
        double rss_mib;
        forget_pages(argv[1]);
        uint64_t began_ns = wpk_clock_now_ns(wpk_clock_system());
        bench_wpkd_start(&wpkd, argv[1], NULL);
        bench_wpkd_await(&wpkd, "/readyz");
        uint64_t ready_ns = wpk_clock_now_ns(wpk_clock_system()) - began_ns;
        bench_wpkd_usage(&wpkd, &cpu_s, &rss_mib);
        printf("ready after %.3f s; %.2f s of CPU, %.0f MiB resident\n", (double)ready_ns / 1e9,
               cpu_s, rss_mib);
        bench_wpkd_stop(&wpkd);
    }
    return 0;
}
