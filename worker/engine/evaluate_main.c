/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-evaluate: builds, verifies and times candidates on this machine, without a service.
 *
 * One line of JSON for each candidate on standard output, in the order given:
 *
 *     {"index":0,"candidate":"...","record":{...}}          (schema/record.h)
 *
 * and one line for people on standard error. Exit code: 0 all ran well, 1 some did not, 2 usage,
 * 3 the machine. */
#include "target/gpu/nvrtc.h"
#include "worker/engine/evaluate.h"

#include "common/args.h"
#include "common/log.h"
#include "target/codegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wpk_err take_pin(void *out, const char *value, struct wpk_diag *diag WPK_UNUSED)
{
    struct wpk_evaluation *e = out;
    if (strchr(value, '=') == NULL || e->pin_count == WPK_EVALUATION_PINS_MAX) {
        return WPK_EINVAL;
    }
    e->pins[e->pin_count++] = value;
    return WPK_OK;
}

static wpk_err take_layouts(void *out, const char *value, struct wpk_diag *diag WPK_UNUSED)
{
    *(const char **)out = value;
    return strcmp(value, "any") == 0 || strcmp(value, "fixed") == 0 ? WPK_OK : WPK_EINVAL;
}

static wpk_err take_flags(void *out, const char *value, struct wpk_diag *diag WPK_UNUSED)
{
    return wpk_cpu_flags_parse(value, out);
}

static wpk_err take_race(void *out, const char *value, struct wpk_diag *diag WPK_UNUSED)
{
    *(double *)out = strtod(value, NULL);
    return *(double *)out >= 1 ? WPK_OK : WPK_EINVAL;
}

static wpk_err take_conditions(void *out, const char *value, struct wpk_diag *diag WPK_UNUSED)
{
    return wpk_conditions_parse(value, out);
}

/* The options; `e` is a struct wpk_evaluation, `seed` and `time_ms` are apart. */
#define OPTIONS(e, seed, time_ms)                                                                  \
    {                                                                                              \
        WPK_ARGS_TEXT("op", "FILE",                                                                \
                      "the operator in whole form (docs/notation.md); - is standard input",        \
                      &(e)->op_path),                                                              \
            WPK_ARGS_TEXT("candidate", "TEXT", "try one candidate's genes", &(e)->candidate),      \
            WPK_ARGS_TEXT("candidates", "FILE", "try one candidate a line",                        \
                          &(e)->candidates_path),                                                  \
            WPK_ARGS_COUNT("construct", "N", "try the first N constructed candidates",             \
                           &(e)->construct_count, 0, WPK_EVALUATION_MAX),                          \
            WPK_ARGS_COUNT("random", "N", "try N random candidates", &(e)->random_count, 0,        \
                           WPK_EVALUATION_MAX),                                                    \
            WPK_ARGS_U64("seed", "S", "of the random candidates, default 1", seed),                \
            WPK_ARGS_TEXT("schedule", "FILE", "try a schedule written by hand",                    \
                          &(e)->schedule_path),                                                    \
            WPK_ARGS_TEXT(                                                                         \
                "provider", "NAME",                                                                \
                "try the vendor's implementation: onednn, on a GPU cublaslt or cudnn; c: "         \
                "candidates of that back end",                                                     \
                &(e)->provider),                                                                   \
            WPK_ARGS_CALL("layouts", "any|fixed", "default fixed", &(e)->layouts, take_layouts),   \
            WPK_ARGS_COUNT("threads", "N", "of the kernel, default 1", &(e)->policy.threads, 1,    \
                           1024),                                                                  \
            WPK_ARGS_CALL("pin", "GENE=VALUE", "restrict the space; may be repeated", e,           \
                          take_pin),                                                               \
            WPK_ARGS_TEXT("gpu", "WHICH", "for a GPU, as wpk-worker's option", &(e)->gpu),         \
            WPK_ARGS_CALL("isa", "NAME",                                                           \
                          "claim no more than sse41, avx, avx2, avx512, avx512vnni, avx512bf16 "   \
                          "or zen4, and "                                                          \
                          "flags that follow: avx2+avx_vnni",                                      \
                          &(e)->flags_max, take_flags),                                            \
            WPK_ARGS_CALL("race", "RATIO",                                                         \
                          "stop timing what is so much slower than the best so far",               \
                          &(e)->policy.race_ratio, take_race),                                     \
            WPK_ARGS_COUNT("time-ms", "N", "measured time of each candidate, default 20", time_ms, \
                           1, 60000),                                                              \
            WPK_ARGS_CALL("conditions", "NAME", "warm (the default), cold-constants or cold",      \
                          &(e)->policy.conditions, take_conditions),                               \
            WPK_ARGS_TEXT("work", "DIR", "where files go; a temporary directory otherwise",        \
                          &(e)->work_dir),                                                         \
            WPK_ARGS_FLAG("keep", "keep every shared object in DIR/artifacts", &(e)->keep),        \
            WPK_ARGS_TEXT("trace", "FILE", "write a Chrome trace of where the time goes",          \
                          &(e)->trace_path),                                                       \
            WPK_ARGS_FLAG("print", "print schedules, build nothing", &(e)->print_only),            \
            WPK_ARGS_COUNT("duel", "ROUNDS",                                                       \
                           "in the end, time the best candidate and the vendor in turns",          \
                           &(e)->duel_rounds, 1, WPK_SAMPLES_MAX),                                 \
            WPK_ARGS_FLAG("plain",                                                                 \
                          "the kernel that runs everywhere: constructed candidates of algorithm "  \
                          "direct, sse41, one thread",                                             \
                          &(e)->plain),                                                            \
            WPK_ARGS_TEXT("output", "FILE", "write the best candidate's shared object",            \
                          &(e)->output_path),                                                      \
            WPK_ARGS_FLAG("quiet", "no lines for people", &(e)->quiet), WPK_ARGS_END,              \
    }

int main(int argc, char **argv)
{
    struct wpk_evaluation e = {
        .layouts = "fixed", .flags_max = WPK_CPU_FLAGS_ALL, .policy = {.threads = 1}};
    struct wpk_option_u64 seed = {.value = 1};
    int time_ms = 0;
    const struct wpk_option options[] = OPTIONS(&e, &seed, &time_ms);
    struct wpk_args args = {0};
    struct wpk_diag diag = {0};
    char text[WPK_DIAG_TEXT_MAX + 256];
    int failed = 0;
    wpk_cuda_set_toolkit(getenv(WPK_CUDA_DIRECTORY_VARIABLE));
    wpk_err err = wpk_args_parse(options, argc - 1, argv + 1, &args, &diag);
    if (err == WPK_OK && args.help) {
        fputs("usage: wpk-evaluate --op FILE [options]\n"
              "Constructed candidates are tried if nothing else is asked for.\n\noptions:\n",
              stdout);
        wpk_args_print(options, stdout);
        return 0;
    }
    if (err != WPK_OK || e.op_path == NULL || args.operand_count > 0) {
        wpk_diag_format(&diag, text, sizeof(text));
        fprintf(stderr, "wpk-evaluate: %s\n",
                err != WPK_OK ? text : "it needs --op FILE, and options; see --help");
        return 2;
    }
    e.seed = seed.value;
    e.policy.time_ns_min = (uint64_t)time_ms * WPK_NS_PER_MS;
    if (e.provider == NULL) {
        e.provider = wpk_back_end_name(wpk_back_end_first(e.gpu != NULL ? "cuda" : "cpu"));
    }
    /* Outcomes of candidates are printed; the log says only that a program of ours died. */
    wpk_log_init("wpk-evaluate", WPK_LOG_WARN, 2);
    err = wpk_evaluation_run(&e, &failed, &diag);
    if (err != WPK_OK) {
        wpk_diag_format(&diag, text, sizeof(text));
        fprintf(stderr, "wpk-evaluate: %s: %s\n", wpk_err_text(err), text);
        return err == WPK_EPARSE || err == WPK_EINVAL || err == WPK_ENOENT ? 2 : 3;
    }
    return failed > 0 ? 1 : 0;
}
