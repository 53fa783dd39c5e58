/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-worker: joins a wpkd and works for it. Exit codes: 0 ended when told to, 1 a failure,
 * 2 usage. */
#include "common/clock.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/peak.h"
#include "worker/session.h"
#include "worker/workplace.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char usage[] =
    "usage: wpk-worker --cpu --coordinator URL [options]\n"
    "  --cpu              serve this machine's processor\n"
    "  --coordinator URL  where wpkd listens: ipc://PATH or tcp://HOST:PORT\n"
    "  --data DIR         where a directory for temporary files is made; default $TMPDIR, /tmp\n"
    "  --isa-max NAME     claim no more than sse41, avx, avx2 or avx512\n"
    "  --builders N       programs built at a time; default: as many as cores\n"
    "  --name NAME        unique among the workers; default host/pid\n"
    "  --trace FILE       write a Chrome trace of where the time goes\n"
    "  --private          end with the process that started it, and with wpkd\n"
    "  --log-level LEVEL  debug, info (default), warn or error\n"
    "  --help, --version\n"
    "\n"
    "SIGTERM and SIGINT end it: what it holds is given back. Without wpkd it waits for one.\n";

struct arguments {
    const char *url;
    const char *data;
    const char *name;
    const char *trace;
    enum wpk_isa isa_max;
    int builder_count;
    bool cpu;
    bool is_private;
    enum wpk_log_level log_level;
};

enum { CPU = 256, URL, DATA, ISA, BUILDERS, NAME, TRACE, PRIVATE, LEVEL, HELP, VERSION };

static const struct option options[] = {
    {"cpu", no_argument, NULL, CPU},
    {"coordinator", required_argument, NULL, URL},
    {"data", required_argument, NULL, DATA},
    {"isa-max", required_argument, NULL, ISA},
    {"builders", required_argument, NULL, BUILDERS},
    {"name", required_argument, NULL, NAME},
    {"trace", required_argument, NULL, TRACE},
    {"private", no_argument, NULL, PRIVATE},
    {"log-level", required_argument, NULL, LEVEL},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {0},
};

static bool apply(struct arguments *a, int option, const char *value)
{
    char *end = NULL;
    switch (option) {
    case CPU:
        a->cpu = true;
        return true;
    case URL:
        a->url = value;
        return true;
    case DATA:
        a->data = value;
        return true;
    case ISA:
        return wpk_isa_parse(value, &a->isa_max) == WPK_OK;
    case BUILDERS:
        a->builder_count = (int)strtol(value, &end, 10);
        return *value != '\0' && *end == '\0' && a->builder_count >= 1 && a->builder_count <= 1024;
    case NAME:
        a->name = value;
        return strlen(value) < 128;
    case TRACE:
        a->trace = value;
        return true;
    case PRIVATE:
        a->is_private = true;
        return true;
    case LEVEL:
        return wpk_log_level_parse(value, &a->log_level) == WPK_OK;
    default:
        return false;
    }
}

/* ---- ending */

static int stop_fd = -1;

static void on_stop(int signal_number)
{
    uint64_t one = 1;
    ssize_t written = write(stop_fd, &one, sizeof one);
    (void)written;
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

static wpk_err describe_device(const struct arguments *a, struct wpk_device *out)
{
    struct wpk_peak peak = {0};
    wpk_err err = wpk_device_probe(a->isa_max, out);
    if (err == WPK_OK && wpk_peak_measure(&peak) == WPK_OK) {
        out->peak_flops_per_s = peak.flops_per_s;
        out->peak_bytes_per_s = peak.bytes_per_s;
    }
    return err;
}

static wpk_err work(const struct arguments *a, struct wpk_workplace *place, struct wpk_diag *diag)
{
    static const char *const vendors[] = {"onednn"};
    struct wpk_session_options session = {.url = a->url,
                                          .name = a->name,
                                          .environment = WPK_ENVIRONMENT,
                                          .vendors = vendors,
                                          .vendor_count = 1,
                                          .work_dir = place->path,
                                          .is_private = a->is_private,
                                          .stop_fd = stop_fd};
    struct wpk_buf program_dir = {0};
    char name[160];
    wpk_err err = describe_device(a, &session.device);
    if (err == WPK_OK) {
        err = wpk_fs_program_dir(&program_dir, diag);
    }
    if (err == WPK_OK) {
        snprintf(name, sizeof name, "%.120s/%d", session.device.instance, (int)getpid());
        session.name = a->name != NULL ? a->name : name;
        struct wpk_engine_options engine = {.device = session.device,
                                            .program_dir = program_dir.data,
                                            .work_dir = place->path,
                                            .builder_count = a->builder_count,
                                            .trace_path = a->trace};
        err = wpk_engine_open(&engine, &session.engine, diag);
    }
    if (err == WPK_OK) {
        err = wpk_session_run(&session, diag);
        wpk_engine_close(session.engine);
    }
    wpk_buf_fini(&program_dir);
    return err;
}

static int run(const struct arguments *a, pid_t parent)
{
    struct wpk_diag diag = {0};
    struct wpk_workplace place = {0};
    const char *temporary = getenv("TMPDIR");
    wpk_log_init("wpk-worker", a->log_level, 2);
    wpk_err err = prepare_signals(a->is_private, parent);
    if (err == WPK_OK) {
        const char *base = a->data != NULL ? a->data : temporary != NULL ? temporary : "/tmp";
        err = wpk_workplace_open(base, &place, &diag);
    }
    if (err == WPK_OK) {
        err = work(a, &place, &diag);
    }
    wpk_workplace_close(&place);
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_ERROR, "failed", err, &diag);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    pid_t parent = getppid();
    struct arguments a = {.isa_max = WPK_ISA_AVX512, .log_level = WPK_LOG_INFO};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == HELP) {
            fputs(usage, stdout);
            return 0;
        }
        if (option == VERSION) {
            puts("wpk-worker " WPK_VERSION);
            return 0;
        }
        if (!apply(&a, option, optarg)) {
            fputs("wpk-worker: see wpk-worker --help\n", stderr);
            return 2;
        }
    }
    if (!a.cpu || a.url == NULL || optind != argc) {
        fputs(usage, stderr);
        return 2;
    }
    return run(&a, parent);
}
