/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/fleet_wpkd.h"

#include "bench/fleet_report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "bench: %s\n", why);
    exit(1);
}

static void path_of_wpkd(char *out, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash == NULL) {
        give_up("where am I?");
    }
    snprintf(slash, size - (size_t)(slash - out), "/../bin/wpkd");
}

void bench_wpkd_start(struct bench_wpkd *wpkd, const char *data, const char *log)
{
    char path[4096];
    char http[128];
    path_of_wpkd(path, sizeof path);
    snprintf(wpkd->http, sizeof wpkd->http, "%s/http.sock", data);
    snprintf(http, sizeof http, "unix:%s", wpkd->http);
    snprintf(wpkd->workers, sizeof wpkd->workers, "ipc://%s/workers.sock", data);
    wpkd->pid = fork();
    if (wpkd->pid == 0) {
        execl(path, path, "--data", data, "--http", http, "--listen", wpkd->workers, "--log-level",
              "error", log != NULL ? "--log" : (char *)NULL, log, (char *)NULL);
        _exit(127);
    }
    if (wpkd->pid < 0) {
        give_up("wpkd does not start");
    }
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int bench_wpkd_ask(const struct bench_wpkd *wpkd, const char *method, const char *path,
                   const char *body, struct wpk_buf *answer)
{
    struct wpk_buf request = {0};
    struct wpk_buf text = {0};
    char part[4096];
    int fd = connect_to(wpkd->http);
    if (fd < 0) {
        return 0;
    }
    wpk_buf_printf(&request,
                   "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
                   "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                   method, path, body != NULL ? strlen(body) : 0, body != NULL ? body : "");
    ssize_t size = send(fd, request.data, request.size, MSG_NOSIGNAL);
    while (size > 0 && (size = recv(fd, part, sizeof part, 0)) > 0) {
        wpk_buf_append(&text, part, (size_t)size);
    }
    close(fd);
    const char *space = strchr(wpk_buf_text(&text), ' ');
    int status = space != NULL ? (int)strtol(space, NULL, 10) : 0;
    if (answer != NULL) {
        wpk_buf_append_text(answer, wpk_buf_text(&text));
    }
    wpk_buf_fini(&request);
    wpk_buf_fini(&text);
    return status;
}

void bench_wpkd_await(const struct bench_wpkd *wpkd, const char *path)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    for (int i = 0; bench_wpkd_ask(wpkd, "GET", path, NULL, NULL) != 200; i++) {
        if (i > 30000 || waitpid(wpkd->pid, NULL, WNOHANG) != 0) {
            give_up("wpkd does not answer");
        }
        nanosleep(&pause, NULL);
    }
}

void bench_wpkd_usage(const struct bench_wpkd *wpkd, double *cpu_s, double *rss_mib)
{
    char path[64];
    char text[1024] = "";
    unsigned long user = 0;
    unsigned long system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)wpkd->pid);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    const char *close = strrchr(text, ')');
    if (close != NULL && sscanf(close + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                &user, &system) != 2) {
        user = 0;
    }
    *cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    *rss_mib = bench_rss_mib((int)wpkd->pid);
}

void bench_wpkd_stop(struct bench_wpkd *wpkd)
{
    kill(wpkd->pid, SIGTERM);
    waitpid(wpkd->pid, NULL, 0);
}
