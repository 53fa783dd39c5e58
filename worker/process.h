/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes that may crash, hang or be killed, and that never outlive their parent.
 *
 *     engine ──exec──▶ wpk-builder ──fork──▶ child per build ──exec──▶ ld
 *            ──exec──▶ wpk-runner  ──fork──▶ child per candidate
 *
 * Each of these processes leads a process group of its own, so that one signal stops or kills it
 * with all its descendants. Each asks the kernel to kill it when its parent dies. */
#ifndef WPK_WORKER_PROCESS_H
#define WPK_WORKER_PROCESS_H

#include "common/buf.h"

#include <stdint.h>
#include <sys/types.h>

/* Whole messages over a socket pair between the engine and the programs it starts.
 *
 * A message is bytes after their number in four bytes. Each end trusts the other's messages, but
 * expects that the other may die: its death is WPK_ECLOSED, never a signal. */

#define WPK_CHANNEL_FD 3                           /* a started program's end */
#define WPK_CHANNEL_MESSAGE_MAX ((size_t)16 << 20) /* bytes */

/* = {.fd = -1} is closed. */
struct wpk_channel {
    int fd;
    struct wpk_buf in; /* received and not yet taken */
};

void wpk_channel_init(struct wpk_channel *channel, int fd);
/* Free the buffer and close the descriptor. */
void wpk_channel_fini(struct wpk_channel *channel);

/* Send one message; wait up to 5 s while the other end reads nothing.
 *   errors  WPK_ECLOSED, WPK_ETIMEDOUT, WPK_ESYSTEM */
wpk_err wpk_channel_send(struct wpk_channel *channel, const char *text, size_t size);

/* Move the next whole message into `out`, which is reset first, without waiting.
 *   errors  WPK_ENOENT   no whole message has arrived
 *           WPK_ECLOSED, WPK_ESYSTEM, WPK_ECORRUPT (longer than WPK_CHANNEL_MESSAGE_MAX) */
wpk_err wpk_channel_receive(struct wpk_channel *channel, struct wpk_buf *out);

/* The same, but wait for it as long as it takes.   errors  the others of wpk_channel_receive */
wpk_err wpk_channel_wait(struct wpk_channel *channel, struct wpk_buf *out);

#define WPK_PROCESS_CORES_MAX 1024 /* as many as an affinity mask has */

/* A started program. = {.channel = {.fd = -1}}: no program is started. */
struct wpk_process {
    pid_t pid; /* 0: no process */
    struct wpk_channel channel;
};

/* Start `path` with a channel at WPK_CHANNEL_FD; argv ends in NULL.
 *   errors  WPK_ENOENT, WPK_EACCES no such program; WPK_ESYSTEM */
wpk_err wpk_process_start(const char *path, char *const *argv, struct wpk_process *out,
                          struct wpk_diag *diag);
/* Kill the process with its group, reap it, and reset *process. Returns waitpid's status, which for
 * a process that was dying already is its own; 0 when there was no process. */
int wpk_process_kill(struct wpk_process *process);

/* Reap a child that ends or was killed. A process that a driver does not let go of may never end.
 *   errors  WPK_ETIMEDOUT it is still there after `limit_ns` */
wpk_err wpk_process_reap(pid_t pid, uint64_t limit_ns, int *status);

#define WPK_PROCESS_END_SIZE 48
/* Describe a status of waitpid: "died by SIGSEGV", "exited with code 3". */
void wpk_process_describe_end(int status, char out[WPK_PROCESS_END_SIZE]);

/* In a started program: log in the program's name, at the level and in the format that its parent
 * gave it.   errors  WPK_EINVAL */
wpk_err wpk_process_init_log(const char *program, const char *level, const char *format);

/* The resources that a forked child may use. */
struct wpk_child_limits {
    uint64_t memory_bytes_max; /* address space; 0: no limit */
    uint64_t cpu_seconds_max;  /* ends the child if the wall-clock timeout does not; 0: no limit */
};

/* Set up a child, which calls this first after fork: own group, death with `parent`, default
 * signals, limits, no core file. */
void wpk_process_enter_child(pid_t parent, const struct wpk_child_limits *limits);
/* Bind the calling thread, and its later children, to `count` cores from `first` on, counted among
 * the cores that this process may use; count <= 0: all of them. Programs are started unbound. */
void wpk_process_pin(int first, int count);
/* The number of cores that this process may use. */
int wpk_process_core_count(void);
/* True if two cores are the same, or hardware threads of one core, which slow each other. */
bool wpk_process_are_siblings(int a, int b);

/* Send a signal to a child's whole group, which may have ended already. */
void wpk_process_signal(pid_t pid, int signal_number);

/* "SIGSEGV" for SIGSEGV; "signal 42" for those without a name (in static memory). */
const char *wpk_process_signal_name(int signal_number);

#endif
