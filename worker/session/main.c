/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-worker: joins a wpkd and works for it. Exit codes: 0 ended when told to or in time, 1 a
 * failure, 2 usage, 3 wpkd refuses it, and would again: its token, its role, or its protocol
 * version. */
#include "common/clock.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/notify.h"
#include "target/codegen.h"
#include "target/gpu/nvrtc.h"
#include "worker/engine/gpu_device.h"
#include "worker/process.h"
#include "worker/session/arguments.h"
#include "worker/session/session.h"
#include "worker/session/workplace.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ENDED, FAILED, MISUSED, REFUSED };

/* ---- ending */

static int stop_fd = -1;

static void on_stop(int signal_number)
{
    uint64_t one = 1;
    (void)!write(stop_fd, &one, sizeof one);
    signal(signal_number, SIG_DFL); /* a second one kills */
}

static wpk_err prepare_signals(bool is_private, pid_t parent)
{
    stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop_fd < 0) {
        return WPK_ESYSTEM;
    }
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (is_private && (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)) {
        return WPK_ECLOSED; /* it has gone before we could ask to be told */
    }
    return WPK_OK;
}

/* ---- working */

static struct wpk_gpu_wanted wanted_gpu(const struct wpk_arguments *a)
{
    const char *compiler = a->compiler != NULL ? a->compiler : WPK_GPU_COMPILER;
    return (struct wpk_gpu_wanted){.which = a->gpu,
                                   .architecture = a->architecture,
                                   .compiler = a->run_only ? compiler : NULL};
}

/* Device, environment and vendors of the session.
 *   owns    gpu: borrowed by the session */
static wpk_err describe_device(const struct wpk_arguments *a, struct wpk_gpu_device *gpu,
                               struct wpk_worker_session_options *out, struct wpk_diag *diag)
{
    static const char *const vendors[] = {"onednn"};
    char codegen[32];
    struct wpk_peak peak = {0};
    if (a->cpu) {
        out->vendors = vendors;
        out->vendor_count = a->build_only ? 0 : 1;
        wpk_err err = wpk_device_probe(a->flags_max, &out->device);
        if (err == WPK_OK && wpk_peak_measure(&peak) == WPK_OK) {
            out->device.peak_flops_per_s = peak.flops_per_s;
            out->device.peak_bytes_per_s = peak.bytes_per_s;
        }
        return err;
    }
    snprintf(codegen, sizeof codegen, "%.*s", (int)strcspn(WPK_ENVIRONMENT, ";"), WPK_ENVIRONMENT);
    const struct wpk_gpu_wanted wanted = wanted_gpu(a);
    wpk_err err = wpk_gpu_device_describe(&wanted, codegen, gpu, diag);
    out->device = gpu->device;
    out->environment = gpu->environment;
    out->vendors = gpu->vendors;
    out->vendor_count = a->build_only ? 0 : gpu->vendor_count;
    return err;
}

static wpk_err open_engine(const struct wpk_arguments *a,
                           const struct wpk_worker_session_options *session,
                           const char *program_dir, struct wpk_engine **out, struct wpk_diag *diag)
{
    char builder[4096];
    struct wpk_engine_options engine = {.device = session->device,
                                        .program_dir = program_dir,
                                        .work_dir = session->work_dir,
                                        .builder_count = a->slot_count,
                                        .run_timeout_ms = (uint64_t)a->run_timeout_s * 1000,
                                        .builds_not = a->run_only,
                                        .runs_not = a->build_only,
                                        .trace_path = a->trace};
    snprintf(builder, sizeof builder, "%s/wpk-builder", program_dir);
    if (!a->run_only && access(builder, X_OK) != 0) {
        return wpk_fail(diag, WPK_ENOENT,
                        "%s is not there: this machine can only work with --run-only", builder);
    }
    return wpk_engine_open(&engine, out, diag);
}

/* Find the back ends besides the first of the kind, with the reason if this machine lacks one.
 *   shape   out [WPK_BACK_ENDS_MAX] */
static wpk_err find_back_ends(const char *kind, struct wpk_message_back_end *out, uint32_t *count,
                              struct wpk_diag *diag)
{
    const struct wpk_codegen *codegen;
    unsigned of_kind = wpk_back_ends_of(kind);
    *count = 0;
    for (int i = wpk_back_end_first(kind) + 1; (codegen = wpk_codegen_at(i)) != NULL; i++) {
        if ((of_kind & 1U << i) == 0) {
            continue;
        }
        WPK_ASSERT(*count < WPK_BACK_ENDS_MAX);
        struct wpk_message_back_end *back_end = &out[(*count)++];
        struct wpk_diag why = {0};
        char version[WPK_CODEGEN_VERSION_MAX];
        wpk_err err = codegen->find(version, &why);
        snprintf(back_end->name, sizeof back_end->name, "%s", codegen->name);
        if (err == WPK_OK && codegen->found_here) {
            snprintf(back_end->version, sizeof back_end->version, "%s", version);
        }
        if (err == WPK_ENOENT) {
            snprintf(back_end->missing, sizeof back_end->missing, "%.*s",
                     WPK_BACK_END_REASON_MAX - 1, why.text);
            wpk_log(WPK_LOG_INFO, "back_end_missing", "name=%s reason=\"%s\"", back_end->name,
                    back_end->missing);
        } else if (err != WPK_OK) {
            *diag = why;
            return err;
        }
    }
    return WPK_OK;
}

static wpk_err work(const struct wpk_arguments *a, const char *token, struct wpk_workplace *place,
                    const struct wpk_notify *notify, struct wpk_diag *diag)
{
    struct wpk_message_back_end back_ends[WPK_BACK_ENDS_MAX] = {0};
    struct wpk_worker_session_options session = {
        .url = a->url,
        .token = token,
        .ca = a->ca,
        .environment = WPK_ENVIRONMENT,
        .back_ends = back_ends,
        .roles = a->build_only ? WPK_WORKER_BUILDS
                 : a->run_only ? WPK_WORKER_RUNS
                               : WPK_WORKER_ROLES_ALL,
        .labels = a->labels,
        .label_count = a->label_count,
        .work_dir = place->path,
        .notify = notify,
        .is_private = a->is_private,
        .idle_ns = (uint64_t)a->idle_s * WPK_NS_PER_S,
        .leave_after_ns = (uint64_t)a->leave_s * WPK_NS_PER_S,
        .stop_fd = stop_fd,
    };
    struct wpk_buf program_dir = {0};
    char name[160];
    struct wpk_gpu_device gpu;
    wpk_err err = describe_device(a, &gpu, &session, diag);
    if (err == WPK_OK && !a->run_only) {
        err = find_back_ends(session.device.kind, back_ends, &session.back_end_count, diag);
    }
    err = err == WPK_OK ? wpk_fs_program_dir(&program_dir, diag) : err;
    if (err == WPK_OK) {
        snprintf(name, sizeof name, "%.120s/%d", session.device.instance, (int)getpid());
        session.name = a->name != NULL ? a->name : name;
        session.slots =
            !a->run_only ? (uint32_t)(a->slot_count > 0 ? a->slot_count : wpk_process_core_count())
                         : 0;
        err = open_engine(a, &session, program_dir.data, &session.engine, diag);
    }
    if (err == WPK_OK) {
        err = wpk_worker_session_run(&session, diag);
        wpk_engine_close(session.engine);
    }
    wpk_buf_fini(&program_dir);
    return err;
}

static int run(const struct wpk_arguments *a, pid_t parent)
{
    struct wpk_diag diag = {0};
    struct wpk_workplace place = {0};
    struct wpk_notify notify = {0};
    const struct wpk_notify_environment manager = {.notify_socket = getenv("NOTIFY_SOCKET"),
                                                   .watchdog_usec = getenv("WATCHDOG_USEC"),
                                                   .watchdog_pid = getenv("WATCHDOG_PID")};
    const char *temporary = getenv("TMPDIR");
    char token[WPK_TOKEN_MAX];
    wpk_log_init("wpk-worker", a->log_level, 2);
    wpk_log_set_format(a->log_format);
    wpk_err err = wpk_arguments_read_token(a, getenv("CREDENTIALS_DIRECTORY"), token, &diag);
    if (err == WPK_EINVAL) {
        wpk_log_failure(WPK_LOG_ERROR, "failed", err, &diag);
        return MISUSED;
    }
    err = err == WPK_OK ? prepare_signals(a->is_private, parent) : err;
    err = err == WPK_OK ? wpk_notify_open(&manager, &notify, &diag) : err;
    if (err == WPK_OK) {
        const char *base = a->data != NULL ? a->data : temporary != NULL ? temporary : "/tmp";
        err = wpk_workplace_open(base, &place, &diag);
    }
    err = err == WPK_OK ? work(a, token, &place, &notify, &diag) : err;
    wpk_workplace_close(&place);
    wpk_notify_close(&notify);
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_ERROR, "failed", err, &diag);
        return err == WPK_EACCES || err == WPK_EMISMATCH ? REFUSED : FAILED;
    }
    return ENDED;
}

int main(int argc, char **argv)
{
    pid_t parent = getppid();
    struct wpk_arguments a;
    struct wpk_diag diag = {0};
    int code = ENDED;
    wpk_err err = wpk_limits_raise_stack(argv, &diag);
    err = err == WPK_OK ? wpk_arguments_parse(argc, argv, &a, &diag) : err;
    if (err == WPK_OK && a.cuda_dir != NULL) { /* for the builder, too */
        err = setenv(WPK_CUDA_DIRECTORY_VARIABLE, a.cuda_dir, 1) == 0 ? WPK_OK : WPK_ENOMEM;
    }
    wpk_cuda_set_toolkit(getenv(WPK_CUDA_DIRECTORY_VARIABLE));
    if (err != WPK_OK) {
        char text[1024];
        wpk_diag_format(&diag, text, sizeof text);
        fprintf(stderr, "wpk-worker: %s\n", text);
        code = MISUSED;
    } else if (a.help) {
        wpk_arguments_print(stdout);
    } else if (a.version) {
        puts("wpk-worker " WPK_VERSION);
    } else if (a.check) {
        const struct wpk_gpu_wanted wanted = wanted_gpu(&a);
        code = wpk_gpu_device_check(&wanted) ? ENDED : FAILED;
    } else {
        code = run(&a, parent);
    }
    wpk_arguments_fini(&a);
    return code;
}
