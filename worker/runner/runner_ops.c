/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/runner_ops.h"

#include "ir/cost.h"
#include "ir/notation/notation.h"
#include "worker/process.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEED UINT64_C(0x776f6f64) /* with the set's number: the same sets on every machine */

/* Of all runs together: 20 of a kernel at 40 GFLOP/s, a third of what a core of Zen 4 reaches. */
#define FLOPS_PER_MS 2e6
#define TIMEOUT_TIMES_MAX 3 /* the engine waits for four times as long */

uint64_t wpk_runner_ops_timeout_ms(const struct wpk_program *program, uint64_t timeout_ms)
{
    struct wpk_cost cost;
    wpk_cost(program, &cost);
    double more = cost.flops / FLOPS_PER_MS, most = (double)timeout_ms * (TIMEOUT_TIMES_MAX - 1);
    return timeout_ms + (uint64_t)(more < most ? more : most);
}

void wpk_runner_ops_init(struct wpk_runner_ops *ops, const char *directory)
{
    *ops = (struct wpk_runner_ops){.directory = directory};
}

static void name_file(const struct wpk_runner_ops *ops, const struct wpk_runner_known *known,
                      int set, char *out, size_t size)
{
    snprintf(out, size, "%s/%s-%d.answers", ops->directory, known->hash, set);
}

static void forget(struct wpk_runner_known *known)
{
    for (int i = 0; i < WPK_RUNNER_SETS; i++) {
        struct wpk_runner_set *set = &known->sets[i];
        if (set->pid != 0) {
            wpk_process_signal(set->pid, SIGKILL);
            waitpid(set->pid, NULL, 0);
            close(set->fd);
        }
        wpk_answers_fini(&set->answers);
        wpk_inputs_fini(&set->inputs);
    }
    wpk_program_fini(&known->program);
    *known = (struct wpk_runner_known){0};
}

/* ---- computing */

static void load_set(struct wpk_runner_ops *ops, struct wpk_runner_known *known, int index)
{
    struct wpk_runner_set *set = &known->sets[index];
    char path[4096];
    name_file(ops, known, index, path, sizeof(path));
    if (wpk_answers_load(path, &set->answers) != WPK_OK) {
        return;
    }
    struct wpk_input_options options = set->answers.inputs;
    struct wpk_input_options reals = options;
    reals.kind = WPK_INPUT_REALS;
    options.inputs_only = index != WPK_RUNNER_REALS && wpk_inputs_share_constants(&options, &reals);
    if (set->answers.count == 0 ||
        wpk_inputs_make(&known->program, &options, &set->inputs) == WPK_OK) {
        set->ready = true;
    } else {
        wpk_answers_fini(&set->answers);
    }
}

static void compute_set(const struct wpk_runner_ops *ops, const struct wpk_runner_known *known,
                        int index)
{
    char path[4096];
    struct wpk_answers answers = {0};
    const struct wpk_input_options inputs = {
        .kind = (enum wpk_input_kind)index, .seed = SEED + (uint64_t)index, .constants_seed = SEED};
    bool sampled = index != WPK_RUNNER_INTEGERS && index != WPK_RUNNER_REALS;
    name_file(ops, known, index, path, sizeof(path));
    wpk_err err = wpk_answers_make(&known->program, &inputs, sampled ? WPK_ANSWERS_SAMPLE_COUNT : 0,
                                   &answers, NULL);
    err = err == WPK_OK ? wpk_answers_draw_more(&known->program, &answers, NULL) : err;
    err = err == WPK_OK ? wpk_faults_look(&known->program, &answers) : err;
    err = err == WPK_OK ? wpk_answers_save(&answers, path, NULL) : err;
    _exit(err == WPK_OK ? 0 : 1);
}

/* Half of the machine's memory on top of what is mapped already, which is shared with us. */
static uint64_t find_memory_limit(void)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t mapped = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%" SCNu64, &mapped) != 1) {
        mapped = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return (mapped + (uint64_t)sysconf(_SC_PHYS_PAGES) / 2) * page;
}

/* False when there is no process for it. */
static bool start_set(struct wpk_runner_ops *ops, struct wpk_runner_known *known, int index)
{
    struct wpk_runner_set *set = &known->sets[index];
    const struct wpk_child_limits limits = {.memory_bytes_max = find_memory_limit(),
                                            .cpu_seconds_max = WPK_RUNNER_SET_CPU_SECONDS_MAX};
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        wpk_process_enter_child(parent, &limits);
        close(WPK_CHANNEL_FD);
        compute_set(ops, known, index);
    }
    set->fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (pid > 0 && set->fd < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    } else if (pid > 0) {
        set->pid = pid;
    }
    return set->pid != 0;
}

int wpk_runner_ops_poll(const struct wpk_runner_ops *ops, struct pollfd *out, int max)
{
    int count = 0;
    for (int i = 0; i < WPK_RUNNER_OPS_MAX; i++) {
        for (int k = 0; k < WPK_RUNNER_SETS && count < max; k++) {
            if (ops->known[i].sets[k].pid != 0) {
                out[count++] = (struct pollfd){.fd = ops->known[i].sets[k].fd, .events = POLLIN};
            }
        }
    }
    return count;
}

void wpk_runner_ops_collect(struct wpk_runner_ops *ops)
{
    for (int i = 0; i < WPK_RUNNER_OPS_MAX; i++) {
        for (int k = 0; k < WPK_RUNNER_SETS; k++) {
            struct wpk_runner_set *set = &ops->known[i].sets[k];
            int status = 0;
            if (set->pid == 0 || waitpid(set->pid, &status, WNOHANG) != set->pid) {
                continue;
            }
            close(set->fd);
            set->pid = 0;
            load_set(ops, &ops->known[i], k);
            /* Killed at its limits: it would be again. */
            set->tries = WIFSIGNALED(status) ? WPK_RUNNER_SET_TRIES_MAX : set->tries + !set->ready;
        }
    }
}

/* ---- asking */

static struct wpk_runner_known *find(struct wpk_runner_ops *ops, const char *hash)
{
    struct wpk_runner_known *oldest = &ops->known[0];
    for (int i = 0; i < WPK_RUNNER_OPS_MAX; i++) {
        struct wpk_runner_known *known = &ops->known[i];
        if (strcmp(known->hash, hash) == 0) {
            return known;
        }
        if (known->used < oldest->used) {
            oldest = known;
        }
    }
    forget(oldest);
    return oldest;
}

/* Start to compute a set unless it is known.
 *   errors  WPK_EBUSY being computed; WPK_EUNSUPPORTED cannot be; WPK_ESYSTEM no process for it */
static wpk_err ask_for_set(struct wpk_runner_ops *ops, struct wpk_runner_known *known, int index,
                           struct wpk_diag *diag)
{
    struct wpk_runner_set *set = &known->sets[index];
    if (!set->ready && set->pid == 0 && set->tries < WPK_RUNNER_SET_TRIES_MAX &&
        !start_set(ops, known, index)) {
        return WPK_ESYSTEM;
    }
    if (set->ready) {
        return WPK_OK;
    }
    if (set->pid == 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "the interpreter cannot do it, or not within its limits");
    }
    return WPK_EBUSY;
}

static wpk_err learn(struct wpk_runner_ops *ops, struct wpk_runner_known *known, const char *text,
                     const char *hash, struct wpk_diag *diag)
{
    wpk_err err = wpk_program_parse(text, &known->program, diag);
    if (err != WPK_OK) {
        return err;
    }
    memcpy(known->hash, hash, sizeof(known->hash));
    for (int k = 0; k < WPK_RUNNER_SETS; k++) {
        load_set(ops, known, k);
    }
    return WPK_OK;
}

/* The sets that were made without constants get those of the reals, unless they need their own. */
static wpk_err share_constants(struct wpk_runner_known *known)
{
    const struct wpk_runner_set *reals = &known->sets[WPK_RUNNER_REALS];
    for (int k = 0; k < WPK_RUNNER_SETS; k++) {
        struct wpk_runner_set *set = &known->sets[k];
        bool shared = wpk_inputs_share_constants(&set->answers.inputs, &reals->answers.inputs);
        for (int t = 0; t < known->program.tensor_count && set->answers.count > 0; t++) {
            if (known->program.tensors[t].role != WPK_ROLE_CONSTANT ||
                set->inputs.dense[t] != NULL) {
                continue;
            }
            if (!shared) {
                wpk_inputs_fini(&set->inputs);
                wpk_err err = wpk_inputs_make(&known->program, &set->answers.inputs, &set->inputs);
                if (err != WPK_OK) {
                    return err;
                }
                known->inputs[k] = set->inputs;
                break;
            }
            known->inputs[k].dense[t] = reals->inputs.dense[t];
        }
    }
    return WPK_OK;
}

wpk_err wpk_runner_ops_get(struct wpk_runner_ops *ops, const char *text, struct wpk_runner_op *out,
                           struct wpk_diag *diag)
{
    char hash[WPK_SHA256_HEX_SIZE];
    wpk_crypto_sha256_hex(text, strlen(text), hash);
    struct wpk_runner_known *known = find(ops, hash);
    if (known->hash[0] == '\0') {
        wpk_err err = learn(ops, known, text, hash, diag);
        if (err != WPK_OK) {
            return err;
        }
    }
    known->used = ++ops->used;
    wpk_err err = WPK_OK;
    for (int k = 0; k < WPK_RUNNER_SETS && err != WPK_ESYSTEM; k++) {
        /* Those that join wait for what the others show. */
        bool joins = k >= WPK_INPUT_JOINING;
        if (joins &&
            (err != WPK_OK || known->ready ||
             !wpk_faults_ask_for(&known->program, known->answers, (enum wpk_input_kind)k))) {
            continue;
        }
        wpk_err of_set = ask_for_set(ops, known, k, diag);
        of_set = joins && of_set == WPK_EUNSUPPORTED ? WPK_OK : of_set; /* goes on without it */
        err = of_set == WPK_ESYSTEM || err == WPK_OK || of_set == WPK_EUNSUPPORTED ? of_set : err;
        known->answers[k] = known->sets[k].answers;
        known->inputs[k] = known->sets[k].inputs;
    }
    err = err == WPK_OK ? share_constants(known) : err;
    if (err == WPK_OK && !known->ready) {
        wpk_faults_unseen(&known->program, known->answers, WPK_RUNNER_SETS, known->unseen);
        known->ready = true;
    }
    *out = (struct wpk_runner_op){.program = &known->program,
                                  .answers = known->answers,
                                  .inputs = known->inputs,
                                  .unseen = known->unseen};
    return err;
}
