/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-evaluate: builds, verifies and times candidates on this machine, without a service.
 *
 * One line of JSON for each candidate on standard output, in the order given:
 *
 *     {"index":0,"candidate":"...","record":{...}}          (schema/record.h)
 *
 * and one line for people on standard error. Exit code: 0 all ran well, 1 some did not, 2 usage,
 * 3 the machine. */
#include "worker/evaluate.h"

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
    "  --schedule FILE      directives written by hand\n"
    "  --provider onednn    the vendor's implementation\n"
    "options:\n"
    "  --layouts any|fixed  default fixed\n"
    "  --threads N          of the kernel, default 1\n"
    "  --pin GENE=VALUE     restrict the space; may be repeated\n"
    "  --isa NAME           claim no more than sse41, avx, avx2 or avx512\n"
    "  --race RATIO         stop timing what is so much slower than the best so far\n"
    "  --time-ms N          measured time of each candidate, default 20\n"
    "  --cold               flush caches between samples\n"
    "  --work DIR           where files go; a temporary directory otherwise\n"
    "  --keep               keep every shared object in DIR/artifacts\n"
    "  --trace FILE         write a Chrome trace of where the time goes\n"
    "  --print              print schedules, build nothing\n"
    "  --duel ROUNDS        in the end, time the best candidate and the vendor in turns\n"
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

enum { PIN = 256, ISA, RACE, TIME, COLD, WORK, KEEP, TRACE, PRINT, DUEL, QUIET, SEED };

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
    {"isa", required_argument, NULL, ISA},
    {"race", required_argument, NULL, RACE},
    {"time-ms", required_argument, NULL, TIME},
    {"cold", no_argument, NULL, COLD},
    {"work", required_argument, NULL, WORK},
    {"keep", no_argument, NULL, KEEP},
    {"trace", required_argument, NULL, TRACE},
    {"print", no_argument, NULL, PRINT},
    {"duel", required_argument, NULL, DUEL},
    {"quiet", no_argument, NULL, QUIET},
    {"seed", required_argument, NULL, SEED},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool apply(struct wpk_evaluation *e, int option, const char *value)
{
    uint64_t number = 0;
    bool ok = true;
    switch (option) {
    case 'o':
        e->op_path = value;
        break;
    case 'c':
        e->candidate = value;
        break;
    case 'f':
        e->candidates_path = value;
        break;
    case 's':
        e->schedule_path = value;
        break;
    case 'p':
        e->provider = value;
        break;
    case 'l':
        e->layouts = value;
        ok = strcmp(value, "any") == 0 || strcmp(value, "fixed") == 0;
        break;
    case 'g':
        ok = parse_number(value, WPK_EVALUATION_MAX, &number);
        e->construct_count = (int)number;
        break;
    case 'r':
        ok = parse_number(value, WPK_EVALUATION_MAX, &number);
        e->random_count = (int)number;
        break;
    case 't':
        ok = parse_number(value, 1024, &number) && number > 0;
        e->policy.threads = (int)number;
        break;
    case SEED:
        ok = parse_number(value, UINT64_MAX, &e->seed);
        break;
    case PIN:
        ok = parse_pin(e, value);
        break;
    case ISA:
        ok = wpk_isa_parse(value, &e->isa) == WPK_OK;
        break;
    case RACE:
        e->policy.race_ratio = strtod(value, NULL);
        ok = e->policy.race_ratio >= 1;
        break;
    case TIME:
        ok = parse_number(value, 60000, &number) && number > 0;
        e->policy.time_ns_min = number * WPK_NS_PER_MS;
        break;
    case DUEL:
        ok = parse_number(value, WPK_SAMPLES_MAX, &number) && number > 0;
        e->duel_rounds = (int)number;
        break;
    case COLD:
        e->policy.cold_cache = true;
        break;
    case WORK:
        e->work_dir = value;
        break;
    case KEEP:
        e->keep = true;
        break;
    case TRACE:
        e->trace_path = value;
        break;
    case PRINT:
        e->print_only = true;
        break;
    case QUIET:
        e->quiet = true;
        break;
    default:
        ok = false;
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct wpk_evaluation e = {.layouts = "fixed",
                               .provider = "halide-cpu",
                               .isa = WPK_ISA_AVX512,
                               .seed = 1,
                               .policy = {.threads = 1}};
    int option;
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
    wpk_err err = wpk_evaluation_run(&e, &failed, &diag);
    if (err != WPK_OK) {
        char text[WPK_DIAG_TEXT_MAX + 256];
        wpk_diag_format(&diag, text, sizeof(text));
        fprintf(stderr, "wpk-evaluate: %s: %s\n", wpk_err_text(err), text);
        return err == WPK_EPARSE || err == WPK_EINVAL || err == WPK_ENOENT ? 2 : 3;
    }
    return failed > 0 ? 1 : 0;
}
