/* SPDX-License-Identifier: Apache-2.0 */
#include "client/bench_peer.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_SIZE 512

extern char **environ;
extern const unsigned char wpk_bench_peer_text[]; /* bench_peer.py */
extern const size_t wpk_bench_peer_text_size;

/* Read one line without its end.   errors  WPK_ECLOSED */
static wpk_err read_line(int socket, char *out, size_t size)
{
    size_t used = 0;

    while (used + 1 < size) {
        ssize_t got = read(socket, out + used, 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return WPK_ECLOSED;
        }
        if (out[used] == '\n') {
            break;
        }
        used++;
    }
    out[used] = '\0';
    return WPK_OK;
}

static wpk_err spawn(struct wpk_bench_peer *peer, const char *python, const char *const *argv,
                     struct wpk_diag *diag)
{
    int pair[2];
    posix_spawn_file_actions_t actions;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return WPK_ESYSTEM;
    }
    peer->socket = pair[0];
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pair[1], STDOUT_FILENO);
    int error = posix_spawnp(&peer->pid, python, &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
    if (error != 0) {
        peer->pid = 0;
        wpk_diag_set(diag, "cannot start %s: %s; --python names another", python, strerror(error));
        return error == ENOENT ? WPK_ENOENT : WPK_ESYSTEM;
    }
    return WPK_OK;
}

/* "ready VERSION", or "failed WHY". */
static wpk_err read_ready(struct wpk_bench_peer *peer, struct wpk_diag *diag)
{
    char line[LINE_MAX_SIZE];

    if (read_line(peer->socket, line, sizeof(line)) != WPK_OK) {
        return wpk_fail(diag, WPK_ECLOSED, "%s ended before it had run the model", peer->name);
    }
    if (!wpk_begins(line, "ready ")) {
        return wpk_fail(diag, WPK_EINVAL, "%s: %s", peer->name,
                        wpk_begins(line, "failed ") ? line + 7 : line);
    }
    snprintf(peer->version, sizeof(peer->version), "%.60s", line + 6);
    return WPK_OK;
}

bool wpk_bench_peer_is_known(const char *name)
{
    static const char *const names[] = {
        "onnxruntime", "openvino", "openvino-installed", "mnn",
        "ncnn",        "litert",   "onnxruntime-noamx",  "openvino-noamx"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

wpk_err wpk_bench_peer_start(struct wpk_bench_peer *peer, const char *python, const char *name,
                             const char *model, const char *folder, int threads, double round_s,
                             struct wpk_diag *diag)
{
    char *text = WPK_DEMAND(calloc(wpk_bench_peer_text_size + 1, 1));
    char thread_text[16];
    char round_text[32];
    const char *const argv[] = {python, "-c",        text,       name, model,
                                folder, thread_text, round_text, NULL};

    *peer = (struct wpk_bench_peer){.socket = -1};
    snprintf(peer->name, sizeof(peer->name), "%s", name);
    memcpy(text, wpk_bench_peer_text, wpk_bench_peer_text_size);
    snprintf(thread_text, sizeof(thread_text), "%d", threads);
    snprintf(round_text, sizeof(round_text), "%g", round_s);
    wpk_err err = spawn(peer, python, argv, diag);
    free(text);
    return err == WPK_OK ? read_ready(peer, diag) : err;
}

wpk_err wpk_bench_peer_time(struct wpk_bench_peer *peer, uint64_t *ns, struct wpk_diag *diag)
{
    static const char request[] = "time\n";
    char line[LINE_MAX_SIZE];

    *ns = 0;
    if (send(peer->socket, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request) &&
        read_line(peer->socket, line, sizeof(line)) == WPK_OK) {
        *ns = strtoull(line, NULL, 10);
    }
    return *ns == 0 ? wpk_fail(diag, WPK_ECLOSED, "%s ended while it was timed", peer->name)
                    : WPK_OK;
}

void wpk_bench_peer_stop(struct wpk_bench_peer *peer)
{
    if (peer->socket > 0) {
        close(peer->socket);
    }
    if (peer->pid > 0) {
        kill(peer->pid, SIGKILL);
        while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    *peer = (struct wpk_bench_peer){.socket = -1};
}
