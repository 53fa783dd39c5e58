/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session/arguments.h"

#include "common/fs.h"
#include "common/json.h"
#include "common/net.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char wpk_arguments_usage[] =
    "usage: wpk-worker --cpu --coordinator URL [options]\n"
    "       wpk-worker --gpu WHICH --coordinator URL [options]\n"
    "  --cpu              serve this machine's processor\n"
    "  --gpu WHICH        serve a GPU: a number in PCI order, or a UUID; `emulated`: none at all,\n"
    "                     kernels are verified, and ranked by a model instead of timed\n"
    "  --check            say what the GPU, its driver and the compilers are, and end\n"
    "  --arch sm_NN       with --build-only: build for GPUs of that architecture; needs no GPU\n"
    "  --coordinator URL  where wpkd listens: ipc://PATH, tcp://HOST:PORT, tls+tcp://HOST:PORT\n"
    "  --build-only       build for other machines, and time nothing\n"
    "  --run-only         time what others have built; needs no compiler\n"
    "  --compiler NAME    with --run-only of a GPU: what the builders compile with, as their "
    "--check\n"
    "                     says; default nvrtc-12.9\n"
    "  --cuda-dir DIR     a CUDA toolkit, in which alone NVRTC and ptxas are looked for\n"
    "  --slots N          programs built at a time; default: as many as cores\n"
    "  --run-timeout S    seconds for which a candidate may be verified and timed; default 30, on\n"
    "                     an emulated GPU 120; long operators get up to three times as many\n"
    "  --label NAME=VALUE what jobs may select this worker by; up to 16 times\n"
    "  --token-file FILE  the token that wpkd wants over tcp; else the credential `token`\n"
    "  --ca FILE          certificates trusted for tls+tcp, in PEM; default: the system's\n"
    "  --insecure         show the token over tcp:// to another machine, too\n"
    "  --config FILE      these options from a file, as JSON; what is said here counts more\n"
    "  --data DIR         where a directory for temporary files is made; default $TMPDIR, /tmp\n"
    "  --isa-max NAME     claim no more than sse41, avx, avx2, avx512, avx512vnni or zen4, and\n"
    "                     flags that follow: avx2+avx_vnni\n"
    "  --name NAME        unique among the workers; default host/pid\n"
    "  --trace FILE       write a Chrome trace of where the time goes\n"
    "  --private          end with the process that started it, and with wpkd\n"
    "  --log-level LEVEL  debug, info (default), warn or error\n"
    "  --log-format NAME  text (default), json or journal\n"
    "  --help, --version\n"
    "\n"
    "SIGTERM and SIGINT end it: what is being timed is finished, and the rest is given back. "
    "Without\n"
    "wpkd it waits for one. Exit codes: 0 ended when told to, 1 a failure, 2 usage, 3 wpkd refuses "
    "it.\n";

enum {
    CPU = 256,
    GPU,
    CHECK,
    ARCH,
    COMPILER,
    CUDA_DIR,
    URL,
    BUILD_ONLY,
    RUN_ONLY,
    SLOTS,
    RUN_TIMEOUT,
    LABEL,
    TOKEN_FILE,
    CA,
    INSECURE,
    CONFIG,
    DATA,
    ISA,
    NAME,
    TRACE,
    PRIVATE,
    LEVEL,
    FORMAT,
    HELP,
    VERSION
};

static const struct option options[] = {
    {"cpu", no_argument, NULL, CPU},
    {"gpu", required_argument, NULL, GPU},
    {"check", no_argument, NULL, CHECK},
    {"arch", required_argument, NULL, ARCH},
    {"compiler", required_argument, NULL, COMPILER},
    {"cuda-dir", required_argument, NULL, CUDA_DIR},
    {"coordinator", required_argument, NULL, URL},
    {"build-only", no_argument, NULL, BUILD_ONLY},
    {"run-only", no_argument, NULL, RUN_ONLY},
    {"slots", required_argument, NULL, SLOTS},
    {"run-timeout", required_argument, NULL, RUN_TIMEOUT},
    {"label", required_argument, NULL, LABEL},
    {"token-file", required_argument, NULL, TOKEN_FILE},
    {"ca", required_argument, NULL, CA},
    {"insecure", no_argument, NULL, INSECURE},
    {"config", required_argument, NULL, CONFIG},
    {"data", required_argument, NULL, DATA},
    {"isa-max", required_argument, NULL, ISA},
    {"name", required_argument, NULL, NAME},
    {"trace", required_argument, NULL, TRACE},
    {"private", no_argument, NULL, PRIVATE},
    {"log-level", required_argument, NULL, LEVEL},
    {"log-format", required_argument, NULL, FORMAT},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {0},
};

/* Of a number, a UUID ("GPU-8932...", "MIG-..."), or "emulated". */
#define GPU_LETTERS "abcdefghijklmnopqrstuvwxyzGPUMI0123456789-/"

/* ---- one option */

static bool set_text(const char **field, const char *value, size_t size)
{
    *field = value;
    return value[0] != '\0' && strlen(value) < size;
}

/* A name that is given again changes its value. */
static bool set_label(struct wpk_arguments *a, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t size = equals != NULL ? (size_t)(equals - text) : 0;
    if (size == 0 || size >= WPK_WORKER_LABEL_NAME_MAX ||
        strspn(text, WPK_WORKER_LABEL_LETTERS) != size ||
        strlen(equals + 1) >= WPK_WORKER_LABEL_VALUE_MAX) {
        return false;
    }
    uint32_t at = 0;
    while (at < a->label_count &&
           (strncmp(a->labels[at].name, text, size) != 0 || a->labels[at].name[size] != '\0')) {
        at++;
    }
    if (at == WPK_WORKER_LABELS_MAX) {
        return false;
    }
    a->label_count += at == a->label_count;
    snprintf(a->labels[at].name, sizeof a->labels[at].name, "%.*s", (int)size, text);
    snprintf(a->labels[at].value, sizeof a->labels[at].value, "%s", equals + 1);
    return true;
}

static bool set_slots(struct wpk_arguments *a, const char *text)
{
    char *end = NULL;
    long count = strtol(text, &end, 10);
    a->slot_count = (int)count;
    return *text != '\0' && *end == '\0' && count >= 1 && count <= WPK_SLOTS_MAX;
}

static bool set_run_timeout(struct wpk_arguments *a, const char *text)
{
    char *end = NULL;
    long seconds = strtol(text, &end, 10);
    a->run_timeout_s = (int)seconds;
    return *text != '\0' && *end == '\0' && seconds >= 1 && seconds <= WPK_RUN_TIMEOUT_S_MAX;
}

/* "nvrtc-", and a number with one dot in it. */
static bool set_compiler(struct wpk_arguments *a, const char *text)
{
    const char *number = text + strlen("nvrtc-");
    a->compiler = text;
    if (strncmp(text, "nvrtc-", strlen("nvrtc-")) != 0 || strlen(number) > 8) {
        return false;
    }
    size_t major = strspn(number, "0123456789");
    size_t minor = number[major] == '.' ? strspn(number + major + 1, "0123456789") : 0;
    return major > 0 && minor > 0 && number[major + 1 + minor] == '\0';
}

static bool set_flag(struct wpk_arguments *a, int option)
{
    bool *flags[] = {[CPU - CPU] = &a->cpu,
                     [CHECK - CPU] = &a->check,
                     [BUILD_ONLY - CPU] = &a->build_only,
                     [RUN_ONLY - CPU] = &a->run_only,
                     [INSECURE - CPU] = &a->insecure,
                     [PRIVATE - CPU] = &a->is_private,
                     [HELP - CPU] = &a->help,
                     [VERSION - CPU] = &a->version};
    WPK_ASSERT(flags[option - CPU] != NULL);
    *flags[option - CPU] = true;
    return true;
}

static bool apply(struct wpk_arguments *a, int option, const char *value)
{
    switch (option) {
    case GPU:
        return set_text(&a->gpu, value, 64) && strspn(value, GPU_LETTERS) == strlen(value);
    case ARCH:
        return set_text(&a->architecture, value, 16);
    case COMPILER:
        return set_compiler(a, value);
    case CUDA_DIR:
        return set_text(&a->cuda_dir, value, 1024) && value[0] == '/';
    case URL:
        return set_text(&a->url, value, 1024);
    case SLOTS:
        return set_slots(a, value);
    case RUN_TIMEOUT:
        return set_run_timeout(a, value);
    case LABEL:
        return set_label(a, value);
    case TOKEN_FILE:
        return set_text(&a->token_file, value, 4096);
    case CA:
        return set_text(&a->ca, value, 4096);
    case CONFIG:
        return set_text(&a->config, value, 4096);
    case DATA:
        return set_text(&a->data, value, 4096);
    case ISA:
        return wpk_cpu_flags_parse(value, &a->flags_max) == WPK_OK;
    case NAME:
        return set_text(&a->name, value, WPK_WORKER_NAME_MAX);
    case TRACE:
        return set_text(&a->trace, value, 4096);
    case LEVEL:
        return wpk_log_level_parse(value, &a->log_level) == WPK_OK;
    case FORMAT:
        return wpk_log_format_parse(value, &a->log_format) == WPK_OK;
    default:
        return set_flag(a, option);
    }
}

/* ---- the file */

/* In a file their names have '_' where the command line has '-'. */
static bool is_named(const struct option *option, const char *name)
{
    size_t i = 0;
    while (option->name[i] != '\0' && name[i] == (option->name[i] == '-' ? '_' : option->name[i])) {
        i++;
    }
    return option->name[i] == '\0' && name[i] == '\0';
}

static const struct option *find_option(const char *name)
{
    for (const struct option *option = options; option->name != NULL; option++) {
        bool in_files = option->val != CONFIG && option->val != HELP && option->val != VERSION;
        if (in_files && is_named(option, name)) {
            return option;
        }
    }
    return NULL;
}

static wpk_err apply_labels(struct wpk_arguments *a, struct wpk_json_reader *r)
{
    char text[WPK_WORKER_LABEL_NAME_MAX + WPK_WORKER_LABEL_VALUE_MAX];
    wpk_json_enter(r, NULL);
    while (wpk_json_next(r)) {
        snprintf(text, sizeof text, "%s=%s", wpk_json_name(r),
                 wpk_json_get_text(r, NULL, WPK_WORKER_LABEL_VALUE_MAX - 1));
        if (wpk_json_status(r) == WPK_OK && !set_label(a, text)) {
            wpk_json_fail(r, NULL, WPK_EINVAL, "not a label, or more than %d of them",
                          WPK_WORKER_LABELS_MAX);
        }
    }
    wpk_json_leave(r);
    return wpk_json_status(r);
}

/* The member at hand. */
static wpk_err apply_member(struct wpk_arguments *a, struct wpk_json_reader *r)
{
    char number[32];
    const struct option *option = find_option(wpk_json_name(r));
    const char *value = NULL;
    if (option == NULL) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "there is no such option");
        return wpk_json_status(r);
    }
    if (option->val == LABEL) {
        return apply_labels(a, r);
    }
    if (option->has_arg == no_argument) {
        if (!wpk_json_get_bool(r, NULL)) {
            return wpk_json_status(r);
        }
    } else if (wpk_json_kind_of(r, NULL) == WPK_JSON_NUMBER) {
        snprintf(number, sizeof number, "%lld",
                 (long long)wpk_json_get_int(r, NULL, 0, WPK_JSON_INT_MAX));
        value = number;
    } else {
        value = wpk_arena_copy_text(&a->arena, wpk_json_get_text(r, NULL, 4095));
    }
    if (wpk_json_status(r) == WPK_OK && !apply(a, option->val, value)) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "not a value for it");
    }
    return wpk_json_status(r);
}

static wpk_err apply_file(struct wpk_arguments *a, const char *path, struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_config_file_open(path, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    while (err == WPK_OK && wpk_json_next(r)) {
        err = apply_member(a, r);
    }
    err = wpk_json_status(r);
    wpk_json_close(r);
    return err;
}

/* ---- all of them */

static wpk_err apply_line(struct wpk_arguments *a, int argc, char **argv, bool file_only,
                          struct wpk_diag *diag)
{
    int option;
    optind = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == '?') {
            wpk_diag_set(diag, "see wpk-worker --help");
            return WPK_EINVAL;
        }
        if ((!file_only || option == CONFIG) && !apply(a, option, optarg)) {
            wpk_diag_set(diag, "%s: not a value for that option; see wpk-worker --help", optarg);
            return WPK_EINVAL;
        }
    }
    return WPK_OK;
}

/* A token is not shown to whoever listens on the way. */
static wpk_err check_exposure(const struct wpk_arguments *a, struct wpk_diag *diag)
{
    if (a->insecure || strncmp(a->url, "ipc://", 6) == 0 || strncmp(a->url, "tls+", 4) == 0 ||
        wpk_address_url_is_loopback(a->url)) {
        return WPK_OK;
    }
    wpk_diag_set(diag, "a token goes over tls+tcp://, or with --insecure");
    return WPK_EINVAL;
}

static wpk_err check_all(const struct wpk_arguments *a, struct wpk_diag *diag)
{
    bool gpu = a->gpu != NULL || a->architecture != NULL;
    if (a->cpu == gpu) {
        wpk_diag_set(diag, gpu ? "--cpu and --gpu are two workers" : "it needs --cpu or --gpu");
    } else if (a->check && !gpu) {
        wpk_diag_set(diag, "--check is about a GPU: give --gpu, or --build-only --arch");
    } else if (a->architecture != NULL && (!a->build_only || a->gpu != NULL)) {
        wpk_diag_set(diag, "--arch is for --build-only without --gpu");
    } else if (a->compiler != NULL && (!a->run_only || a->gpu == NULL)) {
        wpk_diag_set(diag, "--compiler is for --run-only with --gpu");
    } else if (a->url == NULL && !a->check) {
        wpk_diag_set(diag, "it needs --coordinator");
    } else if (a->build_only && a->run_only) {
        wpk_diag_set(diag,
                     "--build-only and --run-only leave nothing to be done; give one of them");
    } else {
        return a->token_file != NULL ? check_exposure(a, diag) : WPK_OK;
    }
    return WPK_EINVAL;
}

wpk_err wpk_arguments_parse(int argc, char **argv, struct wpk_arguments *out, struct wpk_diag *diag)
{
    *out = (struct wpk_arguments){.flags_max = WPK_CPU_FLAGS_ALL, .log_level = WPK_LOG_INFO};
    wpk_err err = apply_line(out, argc, argv, true, diag);
    if (err == WPK_OK && out->config != NULL) {
        err = apply_file(out, out->config, diag);
    }
    if (err == WPK_OK) {
        err = apply_line(out, argc, argv, false, diag);
    }
    if (err == WPK_OK && optind != argc) {
        wpk_diag_set(diag, "%s: not an option; see wpk-worker --help", argv[optind]);
        err = WPK_EINVAL;
    }
    return err != WPK_OK || out->help || out->version ? err : check_all(out, diag);
}

void wpk_arguments_fini(struct wpk_arguments *arguments)
{
    wpk_arena_fini(&arguments->arena);
    *arguments = (struct wpk_arguments){0};
}

static wpk_err read_token_file(const char *path, char *out, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read(path, 4096, &text, diag);
    if (err == WPK_OK) {
        const char *begin = wpk_buf_text(&text);
        begin += strspn(begin, " \t\r\n");
        size_t size = strcspn(begin, " \t\r\n");
        const char *rest = begin + size;
        rest += strspn(rest, " \t\r\n");
        if (size == 0 || size >= WPK_TOKEN_MAX || *rest != '\0') {
            wpk_diag_set(diag, "%s: not a token of at most %d bytes", path, WPK_TOKEN_MAX - 1);
            err = WPK_EINVAL;
        } else {
            snprintf(out, WPK_TOKEN_MAX, "%.*s", (int)size, begin);
        }
    }
    if (text.data != NULL) {
        explicit_bzero(text.data, text.size);
    }
    wpk_buf_fini(&text);
    return err;
}

wpk_err wpk_arguments_read_token(const struct wpk_arguments *arguments, const char *credentials,
                                 char *out, struct wpk_diag *diag)
{
    const char *path = arguments->token_file;
    char credential[4096];
    out[0] = '\0';
    if (path == NULL && credentials != NULL) {
        snprintf(credential, sizeof credential, "%s/token", credentials);
        path = access(credential, F_OK) == 0 ? credential : NULL;
    }
    wpk_err err = path != NULL ? read_token_file(path, out, diag) : WPK_OK;
    return err == WPK_OK && out[0] != '\0' ? check_exposure(arguments, diag) : err;
}
