/* SPDX-License-Identifier: Apache-2.0 */
/* bench-gate: shows whether a change of search/ or target/ has changed the code of the bench's
 * kernels. bench/gate.sh runs it.
 *
 * A check reads the candidates from a file (gate_file.h), so it depends neither on how candidates
 * are constructed nor on the order in which they are drawn. It makes schedules and objects as
 * wpk-builder does: from the schedule's text, in children of a process that has warmed Halide.
 * Halide numbers the names that it makes, so each object is made in a child of its own. */
#include "bench/gate_file.h"
#include "bench/usage.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "ir/notation/definition.h"
#include "nest/schedule.h"
#include "schema/accuracy.h"
#include "search/prune.h"
#include "target/codegen.h"
#include "target/halide/halide.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The same on every machine. The caches of this device are 0: neither search/ nor target/ reads
 * them. */
#define DEVICE "cpu/gate/avx512"
#define HEAD "wpk-gate 1 halide " BENCH_HALIDE_VERSION " device " DEVICE " accuracy standard"

#define OBJECT_SIZE_MAX ((size_t)64 << 20)
#define CPU_SECONDS_MAX 120 /* of a build */
#define PATH_SIZE 64
#define SETTINGS 4    /* of an operator: layouts and threads */
#define CONSTRUCTED 3 /* of a setting */
#define DRAWN 2       /* of a setting */
#define WALK 96       /* constructed candidates to choose from */
#define SEED 1

enum exit_code { SAME = 0, DIFFERENT = 1, NOT_COMPARED = 2 };

static const char usage[] =
    "usage: bench-gate [--make | --again | --schedule LINE | [--only NAME] [--count N]] OPS FILE\n"
    "  builds the candidates of FILE for the operators of the job file OPS, and compares the\n"
    "  hashes of their schedules and objects with those in FILE\n"
    "  --only NAME      the candidates of one operator\n"
    "  --count N        the first N of them\n"
    "  --schedule LINE  print the schedule of the candidate in this line of FILE, build nothing\n"
    "  --again          write FILE anew, with the same candidates\n"
    "  --make           choose 20 candidates of each convolution of OPS and write FILE anew\n"
    "exit code: 0 all hashes are the same, 1 some differ, 2 nothing was compared\n";

static const char *const hash_names[] = {"schedule", "object", "prepare"};
_Static_assert(sizeof(hash_names) / sizeof(hash_names[0]) == BENCH_GATE_HASH_COUNT,
               "one name each");

struct gate {
    struct bench_gate_file file;
    struct wpk_job job;
    struct wpk_program program;        /* of `space` */
    struct wpk_space space;            /* of the entry `of` */
    const struct bench_gate_entry *of; /* NULL: none is open */
    char directory[PATH_SIZE];         /* of objects; "": none yet */
    int running, running_max;          /* children */
    int started;
};

/* ---- spaces and schedules */

static void close_space(struct gate *gate)
{
    if (gate->of != NULL) {
        wpk_space_fini(&gate->space);
        wpk_program_fini(&gate->program);
        gate->of = NULL;
    }
}

static wpk_err derive(struct gate *gate, const struct bench_gate_entry *entry,
                      struct wpk_diag *diag)
{
    int op = 0;
    struct wpk_space_options options = {.layouts = entry->layouts, .threads = entry->threads};
    while (op < gate->job.op_count && strcmp(gate->job.ops[op].name, entry->op) != 0) {
        op++;
    }
    if (op == gate->job.op_count) {
        return wpk_fail(diag, WPK_ENOENT, "there is no operator %s", entry->op);
    }
    wpk_err err = wpk_device_of_class(DEVICE, &options.device);
    if (err == WPK_OK) {
        err = wpk_job_op_program(&gate->job, op, &gate->program, diag);
    }
    if (err == WPK_OK) {
        err = wpk_space_derive(&gate->program, &options, &gate->space, diag);
        if (err != WPK_OK) {
            wpk_program_fini(&gate->program);
        }
    }
    return err;
}

/* Leave the entry's space in gate->space. */
static wpk_err open_space(struct gate *gate, const struct bench_gate_entry *entry,
                          struct wpk_diag *diag)
{
    const struct bench_gate_entry *of = gate->of;
    if (of != NULL && strcmp(of->op, entry->op) == 0 && strcmp(of->layouts, entry->layouts) == 0 &&
        of->threads == entry->threads) {
        return WPK_OK;
    }
    close_space(gate);
    wpk_err err = derive(gate, entry, diag);
    if (err == WPK_OK) {
        gate->of = entry;
    }
    return err;
}

static wpk_err print_schedule(struct gate *gate, const struct bench_gate_entry *entry,
                              struct wpk_buf *text, struct wpk_diag *diag)
{
    static struct wpk_schedule schedule; /* large */
    struct wpk_candidate candidate;
    wpk_err err = open_space(gate, entry, diag);
    if (err == WPK_OK) {
        err = wpk_candidate_decode(&gate->space, entry->candidate, &candidate, diag);
    }
    if (err == WPK_OK) {
        err = wpk_lower(&gate->space, &candidate, &schedule, diag);
    }
    if (err == WPK_OK) {
        err = wpk_schedule_print(&schedule, text);
        wpk_schedule_fini(&schedule);
    }
    return err;
}

/* ---- objects */

static wpk_err build(const struct wpk_schedule *schedule, const char *symbol, const char *path,
                     char hash[WPK_SHA256_HEX_SIZE], struct wpk_diag *diag)
{
    struct wpk_buf object = {0};
    wpk_err err = wpk_emit(schedule, symbol, path, diag);
    if (err == WPK_OK) {
        err = wpk_fs_read(path, OBJECT_SIZE_MAX, &object, diag);
    }
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(object.data, object.size, hash);
    }
    wpk_buf_fini(&object);
    unlink(path);
    return err;
}

static void complain(const struct gate *gate, const struct bench_gate_entry *entry, wpk_err err,
                     const struct wpk_diag *diag)
{
    fprintf(stderr, "bench-gate: %s:%d: %s: %s\n", gate->file.path, entry->line, wpk_err_text(err),
            diag->text);
}

static void wait_for_child(struct gate *gate)
{
    int status = 0;
    while (wait(&status) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "bench-gate: a build died by signal %d\n", WTERMSIG(status));
    }
    gate->running--;
}

/* Start a child that fills in the hash; it stays empty if the build fails. */
static wpk_err start_build(struct gate *gate, struct bench_gate_entry *entry,
                           const struct wpk_schedule *schedule, enum bench_gate_hash which)
{
    char path[PATH_SIZE + 16];
    snprintf(path, sizeof(path), "%s/%d.o", gate->directory, gate->started++);
    while (gate->running == gate->running_max) {
        wait_for_child(gate);
    }
    pid_t pid = fork();
    if (pid < 0) {
        return WPK_ESYSTEM;
    }
    if (pid == 0) {
        const struct rlimit cpu = {CPU_SECONDS_MAX, CPU_SECONDS_MAX};
        struct wpk_diag diag = {0};
        (void)setrlimit(RLIMIT_CPU, &cpu);
        wpk_err err = build(schedule, which == BENCH_GATE_OBJECT ? "wpk_main" : "wpk_prepare", path,
                            entry->made[which], &diag);
        if (err != WPK_OK) {
            complain(gate, entry, err, &diag);
        }
        _exit(0); /* not exit(): what Halide registered there is the parent's */
    }
    gate->running++;
    return WPK_OK;
}

/* Before the first build. */
static wpk_err warm(struct gate *gate, const char *target, struct wpk_diag *diag)
{
    if (gate->directory[0] != '\0') {
        return WPK_OK;
    }
    snprintf(gate->directory, sizeof(gate->directory), "/tmp/wpk-gate-XXXXXX");
    if (mkdtemp(gate->directory) == NULL) {
        gate->directory[0] = '\0';
        return wpk_fail(diag, WPK_ESYSTEM, "cannot create a directory in /tmp: %s",
                        strerror(errno));
    }
    return wpk_halide_warm(target, diag);
}

static wpk_err start_builds(struct gate *gate, struct bench_gate_entry *entry,
                            const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    static struct wpk_schedule prepare; /* large */
    wpk_err err = wpk_codegen_check(schedule, diag);
    if (err == WPK_OK) {
        err = warm(gate, schedule->target, diag);
    }
    if (err == WPK_OK) {
        err = start_build(gate, entry, schedule, BENCH_GATE_OBJECT);
    }
    if (err == WPK_OK && schedule->prepare.stage_count == 0) {
        snprintf(entry->made[BENCH_GATE_PREPARE], sizeof(entry->made[BENCH_GATE_PREPARE]), "-");
    } else if (err == WPK_OK) {
        err = wpk_prepare_schedule(schedule, &prepare);
        if (err == WPK_OK) {
            err = start_build(gate, entry, &prepare, BENCH_GATE_PREPARE);
            wpk_schedule_fini(&prepare);
        }
    }
    return err;
}

static wpk_err make_hashes(struct gate *gate, struct bench_gate_entry *entry, struct wpk_diag *diag)
{
    static struct wpk_schedule schedule; /* large */
    struct wpk_buf text = {0};
    wpk_err err = print_schedule(gate, entry, &text, diag);
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(text.data, text.size, entry->made[BENCH_GATE_SCHEDULE]);
        err = wpk_schedule_parse(wpk_buf_text(&text), &schedule, diag);
    }
    if (err == WPK_OK) {
        err = start_builds(gate, entry, &schedule, diag);
        wpk_schedule_fini(&schedule);
    }
    wpk_buf_fini(&text);
    return err;
}

static void make_all(struct gate *gate)
{
    for (int i = 0; i < gate->file.count; i++) {
        struct bench_gate_entry *entry = &gate->file.entries[i];
        struct wpk_diag diag = {0};
        if (i == 0 || strcmp(entry->op, entry[-1].op) != 0) {
            fprintf(stderr, "%s\n", entry->op);
        }
        wpk_err err = make_hashes(gate, entry, &diag);
        if (err != WPK_OK) {
            complain(gate, entry, err, &diag);
        }
    }
    while (gate->running > 0) {
        wait_for_child(gate);
    }
}

/* ---- the choice of candidates */

static wpk_err add_entry(struct gate *gate, const struct bench_gate_entry *like,
                         const struct wpk_candidate *candidate)
{
    char text[WPK_CANDIDATE_TEXT_MAX];
    wpk_err err = wpk_candidate_encode(&gate->space, candidate, text, sizeof(text));
    return err == WPK_OK ? bench_gate_file_add(&gate->file, like, text, strlen(text)) : err;
}

/* Number `n` of the variant's candidates in the walk, or NULL. */
static const struct wpk_candidate *find_constructed(const struct wpk_candidate *walk, int count,
                                                    int variant, int n)
{
    for (int i = 0; i < count; i++) {
        if (walk[i].variant == variant && n-- == 0) {
            return &walk[i];
        }
    }
    return NULL;
}

/* The candidates of one operator with layouts and threads. Layouts `any` take the first variants,
 * `fixed` the last ones, one candidate of each in turn: both together have most algorithms. */
static wpk_err choose(struct gate *gate, const struct bench_gate_entry *like, struct wpk_diag *diag)
{
    static struct wpk_candidate walk[WALK];
    struct wpk_candidate drawn;
    struct wpk_rng rng;
    wpk_err err = open_space(gate, like, diag);
    if (err != WPK_OK) {
        return err;
    }
    wpk_space_prune(&gate->space, WPK_ACCURACY_STANDARD);
    int count = 0;
    err = wpk_space_construct(&gate->space, walk, WALK, &count);
    for (int i = 0; i < CONSTRUCTED && err == WPK_OK; i++) {
        int n = (like->threads - 1) * CONSTRUCTED + i;
        int first = n % gate->space.variant_count;
        bool last = strcmp(like->layouts, "fixed") == 0;
        const struct wpk_candidate *made =
            find_constructed(walk, count, last ? gate->space.variant_count - 1 - first : first, n);
        err = made != NULL ? add_entry(gate, like, made) : WPK_EEXHAUSTED;
    }
    wpk_rng_seed(&rng, SEED);
    for (int i = 0; i < DRAWN && err == WPK_OK; i++) {
        err = wpk_space_draw(&gate->space, &rng, &drawn);
        if (err == WPK_OK) {
            err = add_entry(gate, like, &drawn);
        }
    }
    close_space(gate); /* it lacks what was pruned, and `like` is the caller's */
    return err;
}

static wpk_err choose_all(struct gate *gate, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (int op = 0; op < gate->job.op_count; op++) {
        int number = 0;
        struct bench_gate_entry like = {0};
        snprintf(like.op, sizeof(like.op), "%s", gate->job.ops[op].name);
        bool held = sscanf(like.op, "c%d", &number) == 1 || strncmp(like.op, "odd-", 4) == 0;
        for (int i = 0; i < SETTINGS && held && err == WPK_OK; i++) {
            snprintf(like.layouts, sizeof(like.layouts), "%s", i < 2 ? "any" : "fixed");
            like.threads = 1 + i % 2;
            err = choose(gate, &like, diag);
        }
    }
    return err;
}

/* ---- what it is asked for */

static enum exit_code compare(const struct gate *gate)
{
    int same = 0;
    for (int i = 0; i < gate->file.count; i++) {
        const struct bench_gate_entry *entry = &gate->file.entries[i];
        bool differs = false;
        for (int h = 0; h < BENCH_GATE_HASH_COUNT; h++) {
            if (strcmp(entry->made[h], entry->expected[h]) != 0) {
                if (!differs) {
                    printf("%s:%d: %s %s %d:", gate->file.path, entry->line, entry->op,
                           entry->layouts, entry->threads);
                }
                printf(" %s", hash_names[h]);
                differs = true;
            }
        }
        if (differs) {
            printf(" differs: %s\n", entry->candidate);
        }
        same += !differs;
    }
    printf("%d candidates, %d the same, %d differ\n", gate->file.count, same,
           gate->file.count - same);
    return same == gate->file.count ? SAME : DIFFERENT;
}

static wpk_err show_schedule(struct gate *gate, int line, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = WPK_ENOENT;
    for (int i = 0; i < gate->file.count; i++) {
        if (gate->file.entries[i].line == line) {
            err = print_schedule(gate, &gate->file.entries[i], &text, diag);
        }
    }
    if (err == WPK_OK) {
        fputs(wpk_buf_text(&text), stdout);
    } else {
        wpk_diag_set(diag, "%s has no candidate in line %d", gate->file.path, line);
    }
    wpk_buf_fini(&text);
    return err;
}

static wpk_err read_job(const char *path, struct wpk_job *out, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read(path, WPK_JOB_SIZE_MAX, &text, diag);
    if (err == WPK_OK) {
        err = wpk_job_decode(text.data, text.size, out, diag);
    }
    wpk_buf_fini(&text);
    return err;
}

struct request {
    bool make;
    bool again;
    int line; /* 0: no schedule is asked for */
    const char *only;
    int count;
};

static wpk_err run(struct gate *gate, const struct request *request, const char *ops_path,
                   enum exit_code *code, struct wpk_diag *diag)
{
    wpk_err err = read_job(ops_path, &gate->job, diag);
    if (err == WPK_OK) {
        err = request->make ? choose_all(gate, diag) : bench_gate_file_read(&gate->file, diag);
    }
    if (err == WPK_OK && request->line > 0) {
        return show_schedule(gate, request->line, diag);
    }
    if (err == WPK_OK && !request->make) {
        bench_gate_file_select(&gate->file, request->only, request->count);
        if (gate->file.count == 0) {
            err = wpk_fail(diag, WPK_ENOENT, "%s has no such candidates", gate->file.path);
        }
    }
    if (err == WPK_OK) {
        make_all(gate);
        if (request->make || request->again) {
            err = bench_gate_file_write(&gate->file, diag);
        } else {
            *code = compare(gate);
        }
    }
    return err;
}

static void fini(struct gate *gate)
{
    close_space(gate);
    bench_gate_file_fini(&gate->file);
    wpk_job_fini(&gate->job);
    if (gate->directory[0] != '\0') {
        wpk_err err = wpk_fs_remove_tree(gate->directory, NULL);
        (void)err; /* what is left there harms nobody */
    }
}

static bool read_request(int argc, char **argv, struct request *out)
{
    static const struct option options[] = {
        {"make", no_argument, NULL, 'm'},           {"again", no_argument, NULL, 'a'},
        {"only", required_argument, NULL, 'o'},     {"count", required_argument, NULL, 'c'},
        {"schedule", required_argument, NULL, 's'}, {0},
    };
    *out = (struct request){.count = BENCH_GATE_ENTRIES_MAX};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'm':
            out->make = true;
            break;
        case 'a':
            out->again = true;
            break;
        case 'o':
            out->only = optarg;
            break;
        case 'c':
            out->count = (int)strtol(optarg, NULL, 10);
            break;
        case 's':
            out->line = (int)strtol(optarg, NULL, 10);
            break;
        default:
            return false;
        }
        if ((option == 'c' && out->count < 1) || (option == 's' && out->line < 1)) {
            return false;
        }
    }
    bool part = out->only != NULL || out->count != BENCH_GATE_ENTRIES_MAX;
    return argc - optind == 2 && out->make + out->again + (out->line > 0) + part <= 1;
}

int main(int argc, char **argv)
{
    struct gate gate = {.running_max = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    struct request request;
    struct wpk_diag diag = {0};
    enum exit_code code = SAME;
    bench_usage_help(argc, argv, usage);
    if (!read_request(argc, argv, &request)) {
        fputs(usage, stderr);
        return NOT_COMPARED;
    }
    wpk_err err = bench_gate_file_init(&gate.file, argv[optind + 1], HEAD);
    if (err == WPK_OK) {
        err = run(&gate, &request, argv[optind], &code, &diag);
    }
    fini(&gate);
    if (err != WPK_OK) {
        char text[WPK_DIAG_TEXT_MAX + 256];
        wpk_diag_format(&diag, text, sizeof(text));
        fprintf(stderr, "bench-gate: %s: %s\n", wpk_err_text(err), text);
        code = NOT_COMPARED;
    }
    return (int)code;
}
