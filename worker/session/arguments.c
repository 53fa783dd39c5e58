/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session/arguments.h"

#include "common/args.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/net.h"

#include <string.h>
#include <unistd.h>

/* Letters of a number, a UUID ("GPU-8932...", "MIG-..."), or "emulated". */
#define URL_SIZE 1024
#define GPU_LETTERS "abcdefghijklmnopqrstuvwxyzGPUMI0123456789-/"

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

static wpk_err take_label(void *out, const char *value, struct wpk_diag *diag WPK_UNUSED)
{
    return set_label(out, value) ? WPK_OK : WPK_EINVAL;
}

static wpk_err take_gpu(void *out, const char *value, struct wpk_diag *diag WPK_UNUSED)
{
    *(const char **)out = value;
    size_t size = strlen(value);
    return size > 0 && size < 64 && strspn(value, GPU_LETTERS) == size ? WPK_OK : WPK_EINVAL;
}

/* "nvrtc-", and a number with one dot in it. */
static wpk_err take_compiler(void *out, const char *value, struct wpk_diag *diag WPK_UNUSED)
{
    const char *number = value + strlen("nvrtc-");
    *(const char **)out = value;
    if (!wpk_begins(value, "nvrtc-") || strlen(number) > 8) {
        return WPK_EINVAL;
    }
    size_t major = strspn(number, "0123456789");
    size_t minor = number[major] == '.' ? strspn(number + major + 1, "0123456789") : 0;
    return major > 0 && minor > 0 && number[major + 1 + minor] == '\0' ? WPK_OK : WPK_EINVAL;
}

static wpk_err take_flags(void *out, const char *value, struct wpk_diag *diag WPK_UNUSED)
{
    return wpk_cpu_flags_parse(value, out);
}

#define PATH(name, what, help, out) WPK_ARGS_ROW(name, 0, what, help, TEXT, out, 0, 4095)

/* The options; `a` is a struct wpk_arguments. */
#define OPTIONS(a)                                                                                 \
    {                                                                                              \
        WPK_ARGS_FLAG("cpu", "serve this machine's processor", &(a)->cpu),                         \
            WPK_ARGS_CALL(                                                                         \
                "gpu", "WHICH",                                                                    \
                "serve a GPU: a number in PCI order, or a UUID; `emulated`: none at all, "         \
                "kernels are verified, and ranked by a model instead of timed",                    \
                &(a)->gpu, take_gpu),                                                              \
            WPK_ARGS_FLAG("check", "say what the GPU, its driver and the compilers are, and end",  \
                          &(a)->check),                                                            \
            WPK_ARGS_ROW("arch", 0, "sm_NN",                                                       \
                         "with --build-only: build for GPUs of that architecture; needs no GPU",   \
                         TEXT, &(a)->architecture, 0, 15),                                         \
            WPK_ARGS_ROW("coordinator", 0, "URL",                                                  \
                         "where wpkd listens: ipc://PATH, tcp://HOST:PORT, tls+tcp://HOST:PORT; "  \
                         "of several with commas between them the one that answers",               \
                         TEXT, &(a)->url, 0, URL_SIZE - 1),                                        \
            WPK_ARGS_FLAG("build-only", "build for other machines, and time nothing",              \
                          &(a)->build_only),                                                       \
            WPK_ARGS_FLAG("run-only", "time what others have built; needs no compiler",            \
                          &(a)->run_only),                                                         \
            WPK_ARGS_CALL("compiler", "NAME",                                                      \
                          "with --run-only of a GPU: what the builders compile with, as their "    \
                          "--check says; default nvrtc-12.9",                                      \
                          &(a)->compiler, take_compiler),                                          \
            WPK_ARGS_ROW("cuda-dir", 0, "DIR",                                                     \
                         "a CUDA toolkit, in which alone NVRTC and ptxas are looked for", TEXT,    \
                         &(a)->cuda_dir, 0, 1023),                                                 \
            WPK_ARGS_COUNT("slots", "N", "programs built at a time; default: as many as cores",    \
                           &(a)->slot_count, 1, WPK_SLOTS_MAX),                                    \
            WPK_ARGS_COUNT(                                                                        \
                "run-timeout", "S",                                                                \
                "seconds for which a candidate may be verified and timed; default 30, on "         \
                "an emulated GPU 120; long operators get up to three times as many",               \
                &(a)->run_timeout_s, 1, WPK_RUN_TIMEOUT_S_MAX),                                    \
            WPK_ARGS_COUNT("exit-when-idle", "S", "leave after so many seconds without work",      \
                           &(a)->idle_s, 1, WPK_LEAVE_S_MAX),                                      \
            WPK_ARGS_COUNT("leave-after", "S",                                                     \
                           "take no more work so many seconds after the start, and leave",         \
                           &(a)->leave_s, 1, WPK_LEAVE_S_MAX),                                     \
            WPK_ARGS_CALL("label", "NAME=VALUE",                                                   \
                          "what jobs may select this worker by; up to 16 times", a, take_label),   \
            PATH("token-file", "FILE",                                                             \
                 "the token that wpkd wants over tcp; else the credential `token`",                \
                 &(a)->token_file),                                                                \
            PATH("ca", "FILE", "certificates trusted for tls+tcp, in PEM; default: the system's",  \
                 &(a)->ca),                                                                        \
            WPK_ARGS_FLAG("insecure", "show the token over tcp:// to another machine, too",        \
                          &(a)->insecure),                                                         \
            PATH("config", "FILE",                                                                 \
                 "these options from a file, as JSON; what is said here counts more",              \
                 &(a)->config),                                                                    \
            PATH("data", "DIR",                                                                    \
                 "where a directory for temporary files is made; default $TMPDIR, /tmp",           \
                 &(a)->data),                                                                      \
            WPK_ARGS_CALL("isa-max", "NAME",                                                       \
                          "claim no more than sse41, avx, avx2, avx512, avx512vnni, avx512bf16 "   \
                          "or zen4, and "                                                          \
                          "flags that follow: avx2+avx_vnni",                                      \
                          &(a)->flags_max, take_flags),                                            \
            WPK_ARGS_ROW("name", 0, "NAME", "unique among the workers; default host/pid", TEXT,    \
                         &(a)->name, 0, WPK_WORKER_NAME_MAX - 1),                                  \
            PATH("trace", "FILE", "write a Chrome trace of where the time goes", &(a)->trace),     \
            WPK_ARGS_FLAG("private", "end with the process that started it, and with wpkd",        \
                          &(a)->is_private),                                                       \
            WPK_ARGS_LOG_ROWS(&(a)->log_level, &(a)->log_format),                                  \
            WPK_ARGS_FLAG("version", "print the version", &(a)->version), WPK_ARGS_END,            \
    }

void wpk_arguments_print(FILE *out)
{
    struct wpk_arguments defaults;
    const struct wpk_option options[] = OPTIONS(&defaults);
    fputs("usage: wpk-worker --cpu --coordinator URL [options]\n"
          "       wpk-worker --gpu WHICH --coordinator URL [options]\n\noptions:\n",
          out);
    wpk_args_print(options, out);
    fputs("\nSIGTERM and SIGINT end it: what is being timed is finished, and the rest is given "
          "back.\nWithout wpkd it waits for one. Exit codes: 0 ended when told to or in time, "
          "1 a failure,\n2 usage, 3 wpkd refuses it.\n",
          out);
}

/* ---- the file */

static void apply_labels(struct wpk_arguments *a, struct wpk_json_reader *r)
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
}

/* Apply the member at hand. */
static void apply_member(struct wpk_arguments *a, const struct wpk_option *options,
                         struct wpk_json_reader *r)
{
    const char *name = wpk_json_name(r), *value = NULL;
    struct wpk_diag why = {0};
    char number[32];
    if (strcmp(name, "label") == 0) {
        apply_labels(a, r);
        return;
    }
    if (wpk_json_kind_of(r, NULL) == WPK_JSON_BOOL) {
        if (!wpk_json_get_bool(r, NULL)) {
            return;
        }
    } else {
        if (wpk_json_kind_of(r, NULL) == WPK_JSON_NUMBER) {
            snprintf(number, sizeof number, "%lld",
                     (long long)wpk_json_get_int(r, NULL, 0, WPK_JSON_INT_MAX));
            value = wpk_arena_copy_text(&a->arena, number);
        } else {
            value = wpk_arena_copy_text(&a->arena, wpk_json_get_text(r, NULL, 4095));
        }
    }
    bool in_files = strcmp(name, "config") != 0 && strcmp(name, "version") != 0;
    if (wpk_json_status(r) == WPK_OK &&
        wpk_args_set(options, in_files ? name : "", value, &why) != WPK_OK) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "%s", why.text);
    }
}

static wpk_err apply_file(struct wpk_arguments *a, const struct wpk_option *options,
                          struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_config_file_open(a->config, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    while (wpk_json_next(r)) {
        apply_member(a, options, r);
    }
    err = wpk_json_status(r);
    wpk_json_close(r);
    return err;
}

/* ---- all of them */

/* A token is not shown to whoever listens on the way. */
static wpk_err check_exposure(const struct wpk_arguments *a, struct wpk_diag *diag)
{
    char url[URL_SIZE];
    for (const char *at = a->url; !a->insecure && wpk_address_take(&at, url, sizeof url);) {
        if (!wpk_begins(url, "ipc://") && !wpk_begins(url, "tls+") &&
            !wpk_address_url_is_loopback(url)) {
            return wpk_fail(diag, WPK_EINVAL, "a token goes over tls+tcp://, or with --insecure");
        }
    }
    return WPK_OK;
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
    } else if (a->cuda_dir != NULL && a->cuda_dir[0] != '/') {
        wpk_diag_set(diag, "--cuda-dir takes an absolute path");
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
    const struct wpk_option options[] = OPTIONS(out);
    struct wpk_args args = {0};
    wpk_err err = WPK_OK;
    *out = (struct wpk_arguments){.flags_max = WPK_CPU_FLAGS_ALL, .log_level = WPK_LOG_INFO};
    out->config = wpk_args_value("config", argc - 1, argv + 1);
    if (out->config != NULL) {
        err = apply_file(out, options, diag);
    }
    if (err == WPK_OK && diag != NULL) {
        *diag = (struct wpk_diag){0}; /* the file is not to blame for what follows */
    }
    err = err == WPK_OK ? wpk_args_parse(options, argc - 1, argv + 1, &args, diag) : err;
    if (err == WPK_OK && args.operand_count > 0) {
        err = wpk_fail(diag, WPK_EINVAL, "%s: not an option; see wpk-worker --help",
                       args.operands[0]);
    }
    out->help = args.help;
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
            err = wpk_fail(diag, WPK_EINVAL, "%s: not a token of at most %d bytes", path,
                           WPK_TOKEN_MAX - 1);
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
