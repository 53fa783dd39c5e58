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

#include "common/log.h"
#include "target/codegen.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: wpk-evaluate --op FILE [what to try] [options]\n"
    "  --op FILE            the operator in whole form (docs/notation.md); - is standard input\n"
    "what to try (constructed candidates if nothing is said):\n"
    "  --candidate TEXT     one candidate's genes\n"
    "  --candidates FILE    one candidate a line\n"
    "  --construct N        the first N constructed candidates\n"
    "  --random N           N random candidates, of --seed S\n"
    "  --schedule FILE      a schedule written by hand\n"
    "  --provider onednn    the vendor's implementation, on a GPU cublaslt or cudnn; c: "
    "candidates\n"
    "                       of that back end\n"
    "options:\n"
    "  --layouts any|fixed  default fixed\n"
    "  --threads N          of the kernel, default 1\n"
    "  --pin GENE=VALUE     restrict the space; may be repeated\n"
    "  --gpu WHICH          for a GPU, as wpk-worker's option\n"
    "  --isa NAME           claim no more than sse41, avx, avx2, avx512, avx512vnni or zen4,\n"
    "                       and flags that follow: avx2+avx_vnni\n"
    "  --race RATIO         stop timing what is so much slower than the best so far\n"
    "  --time-ms N          measured time of each candidate, default 20\n"
    "  --conditions NAME    warm (the default), cold-constants or cold\n"
    "  --work DIR           where files go; a temporary directory otherwise\n"
    "  --keep               keep every shared object in DIR/artifacts\n"
    "  --trace FILE         write a Chrome trace of where the time goes\n"
    "  --print              print schedules, build nothing\n"
    "  --duel ROUNDS        in the end, time the best candidate and the vendor in turns\n"
    "  --plain              the kernel that runs everywhere: constructed candidates of algorithm\n"
    "                       direct, sse41, one thread\n"
    "  --output FILE        write the best candidate's shared object\n"
    "  --quiet              no lines for people\n";

static bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
    char *end = NULL;
    *out = strtoull(text, &end, 10);
    return end != text && *end == '\0' && *out <= max;
}

static bool parse_pin(struct wpk_evaluation *e, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || e->pin_count == WPK_EVALUATION_PINS_MAX) {
        return false;
    }
    e->pins[e->pin_count++] = text;
    return true;
}

enum {
    PIN = 256,
    GPU,
    ISA,
    OUTPUT,
    RACE,
    TIME,
    CONDITIONS,
    WORK,
    KEEP,
    TRACE,
    PRINT,
    DUEL,
    PLAIN,
    QUIET,
    SEED
};

static const struct option options[] = {
    {"op", required_argument, NULL, 'o'},
    {"candidate", required_argument, NULL, 'c'},
    {"candidates", required_argument, NULL, 'f'},
    {"construct", required_argument, NULL, 'g'},
    {"random", required_argument, NULL, 'r'},
    {"schedule", required_argument, NULL, 's'},
    {"provider", required_argument, NULL, 'p'},
    {"layouts", required_argument, NULL, 'l'},
    {"threads", required_argument, NULL, 't'},
    {"pin", required_argument, NULL, PIN},
    {"gpu", required_argument, NULL, GPU},
    {"isa", required_argument, NULL, ISA},
    {"race", required_argument, NULL, RACE},
    {"time-ms", required_argument, NULL, TIME},
    {"conditions", required_argument, NULL, CONDITIONS},
    {"work", required_argument, NULL, WORK},
    {"keep", no_argument, NULL, KEEP},
    {"trace", required_argument, NULL, TRACE},
    {"print", no_argument, NULL, PRINT},
    {"duel", required_argument, NULL, DUEL},
    {"plain", no_argument, NULL, PLAIN},
    {"output", required_argument, NULL, OUTPUT},
    {"quiet", no_argument, NULL, QUIET},
    {"seed", required_argument, NULL, SEED},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool parse_count(const char *text, uint64_t min, uint64_t max, int *out)
{
    uint64_t number = 0;
    bool ok = parse_number(text, max, &number) && number >= min;
    *out = (int)number;
    return ok;
}

/* How it is timed; false for other options too. */
static bool apply_policy(struct wpk_policy *policy, int option, const char *value)
{
    int milliseconds = 0;
    switch (option) {
    case 't':
        return parse_count(value, 1, 1024, &policy->threads);
    case RACE:
        policy->race_ratio = strtod(value, NULL);
        return policy->race_ratio >= 1;
    case TIME:
        if (!parse_count(value, 1, 60000, &milliseconds)) {
            return false;
        }
        policy->time_ns_min = (uint64_t)milliseconds * WPK_NS_PER_MS;
        return true;
    case CONDITIONS:
        return wpk_conditions_parse(value, &policy->conditions) == WPK_OK;
    default:
        return false;
    }
}

/* Where an option's text goes as it is; NULL: it is of another kind. */
static const char **find_text(struct wpk_evaluation *e, int option)
{
    switch (option) {
    case 'o':
        return &e->op_path;
    case 'c':
        return &e->candidate;
    case 'f':
        return &e->candidates_path;
    case 's':
        return &e->schedule_path;
    case 'p':
        return &e->provider;
    case 'l':
        return &e->layouts;
    case GPU:
        return &e->gpu;
    case WORK:
        return &e->work_dir;
    case TRACE:
        return &e->trace_path;
    case OUTPUT:
        return &e->output_path;
    default:
        return NULL;
    }
}

static bool *find_flag(struct wpk_evaluation *e, int option)
{
    return option == KEEP    ? &e->keep
           : option == PLAIN ? &e->plain
           : option == PRINT ? &e->print_only
           : option == QUIET ? &e->quiet
                             : NULL;
}

static bool apply(struct wpk_evaluation *e, int option, const char *value)
{
    const char **text = find_text(e, option);
    bool *flag = find_flag(e, option);
    if (text != NULL) {
        *text = value;
        return option != 'l' || strcmp(value, "any") == 0 || strcmp(value, "fixed") == 0;
    }
    if (flag != NULL) {
        *flag = true;
        return true;
    }
    switch (option) {
    case 'g':
        return parse_count(value, 0, WPK_EVALUATION_MAX, &e->construct_count);
    case 'r':
        return parse_count(value, 0, WPK_EVALUATION_MAX, &e->random_count);
    case DUEL:
        return parse_count(value, 1, WPK_SAMPLES_MAX, &e->duel_rounds);
    case SEED:
        return parse_number(value, UINT64_MAX, &e->seed);
    case PIN:
        return parse_pin(e, value);
    case ISA:
        return wpk_cpu_flags_parse(value, &e->flags_max) == WPK_OK;
    default:
        return apply_policy(&e->policy, option, value);
    }
}

int main(int argc, char **argv)
{
    struct wpk_evaluation e = {
        .layouts = "fixed", .flags_max = WPK_CPU_FLAGS_ALL, .seed = 1, .policy = {.threads = 1}};
    int option;
    wpk_cuda_set_toolkit(getenv(WPK_CUDA_DIRECTORY_VARIABLE));
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        if (!apply(&e, option, optarg)) {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (e.op_path == NULL || optind != argc) {
        fputs(usage, stderr);
        return 2;
    }
    struct wpk_diag diag = {0};
    int failed = 0;
    if (e.provider == NULL) {
        e.provider = wpk_back_end_name(wpk_back_end_first(e.gpu != NULL ? "cuda" : "cpu"));
    }
    /* Outcomes of candidates are printed; the log says only that a program of ours died. */
    wpk_log_init("wpk-evaluate", WPK_LOG_WARN, 2);
    wpk_err err = wpk_evaluation_run(&e, &failed, &diag);
    if (err != WPK_OK) {
        char text[WPK_DIAG_TEXT_MAX + 256];
        wpk_diag_format(&diag, text, sizeof(text));
        fprintf(stderr, "wpk-evaluate: %s: %s\n", wpk_err_text(err), text);
        return err == WPK_EPARSE || err == WPK_EINVAL || err == WPK_ENOENT ? 2 : 3;
    }
    return failed > 0 ? 1 : 0;
}
