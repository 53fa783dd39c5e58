/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that may crash, hang or be killed, and never outlive whoever started them.
 *
 *     engine ──exec──▶ wpk-builder ──fork──▶ child per build ──exec──▶ ld
 *            ──exec──▶ wpk-runner  ──fork──▶ child per candidate
 *
 * Each is the leader of a process group of its own, so that it and all below it are stopped or
 * killed with one signal, and asks the kernel to be killed when its parent dies. */
#ifndef WPK_WORKER_PROCESS_H
#define WPK_WORKER_PROCESS_H

#include "worker/channel.h"

#include <stdint.h>
#include <sys/types.h>

#define WPK_PROCESS_CORES_MAX 1024 /* as many as an affinity mask has */

/* A started program. = {.channel = {.fd = -1}} is none. */
struct wpk_process {
    pid_t pid; /* 0: none */
    struct wpk_channel channel;
};

/* Start `path` with a channel at WPK_CHANNEL_FD; argv ends in NULL.
 *   errors  WPK_ENOENT, WPK_EACCES no such program; WPK_ESYSTEM */
wpk_err wpk_process_start(const char *path, char *const *argv, struct wpk_process *out,
                          struct wpk_diag *diag);
/* Kill its group and reap it; `out` is none afterwards. Returns how it ended, as of waitpid: one
 * that was dying already of what it was dying of; 0 when there was none. */
int wpk_process_kill(struct wpk_process *process);

#define WPK_PROCESS_END_SIZE 48
/* "died by SIGSEGV", "exited with code 3" */
void wpk_process_describe_end(int status, char out[WPK_PROCESS_END_SIZE]);

/* In a started program: log in its own name, at the level and in the format that whoever started
 * it named.   errors  WPK_EINVAL */
WPK_MUST_CHECK wpk_err wpk_process_init_log(const char *program, const char *level,
                                            const char *format);

/* What a forked child may use. */
struct wpk_child_limits {
    uint64_t memory_bytes_max; /* address space; 0: no limit */
    uint64_t cpu_seconds_max;  /* a net below the wall-clock timeout; 0: no limit */
};

/* In the child, first thing after fork: own group, dies with `parent`, default signal mask, limits,
 * no core file. */
void wpk_process_enter_child(pid_t parent, const struct wpk_child_limits *limits);
/* Run the calling thread, and what it forks from now on, on `count` cores from `first` on, counted
 * among those this process may use; count <= 0: all of them. Programs are started unpinned. */
void wpk_process_pin(int first, int count);
/* Cores this process may use. */
int wpk_process_core_count(void);
/* Are two of them threads of one core of the hardware (or the same)? Each slows the other. */
bool wpk_process_are_siblings(int a, int b);

/* Signal a child's whole group; fine if it is gone. */
void wpk_process_signal(pid_t pid, int signal_number);

/* "SIGSEGV" for SIGSEGV; "signal 42" for those without a name (in static memory). */
const char *wpk_process_signal_name(int signal_number);

#endif
