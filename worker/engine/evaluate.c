/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine/evaluate.h"
#include "worker/engine/gpu_device.h"

#include "common/fs.h"
#include "common/json.h"
#include "ir/cost.h"
#include "ir/notation/notation.h"
#include "runtime/kernel/trust.h"
#include "runtime/vendor/gpu_vendor.h"
#include "schema/message.h"
#include "target/codegen.h"
#include "worker/engine/engine.h"
#include "worker/engine/planner.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSTRUCT_DEFAULT 8
#define CANDIDATES_SIZE_MAX ((size_t)64 << 20)

struct run {
    const struct wpk_evaluation *e;
    struct wpk_device device;
    struct wpk_buf op;
    struct wpk_buf schedule; /* by hand */
    double flops;
    char **candidates; /* owned; [count] */
    int count;
    struct wpk_record *records; /* [count]; kept until their turn to be printed comes */
    bool *done;                 /* [count] */
    int failed;
    uint64_t best_ns;
    char *best_artifact; /* owned */
    uint64_t start_ns;
};

/* ---- what to try */

static wpk_err add_candidate(struct run *run, const char *text)
{
    if (run->count == WPK_EVALUATION_MAX) {
        return WPK_ENOSPC;
    }
    run->candidates =
        WPK_DEMAND(realloc(run->candidates, (size_t)(run->count + 1) * sizeof(*run->candidates)));
    run->candidates[run->count++] = WPK_DEMAND(strdup(text));
    return WPK_OK;
}

static wpk_err read_candidates(struct run *run, struct wpk_diag *diag)
{
    struct wpk_buf text;
    wpk_buf_init(&text, CANDIDATES_SIZE_MAX);
    wpk_err err = wpk_fs_read(run->e->candidates_path, CANDIDATES_SIZE_MAX, &text, diag);
    char *rest = text.data;
    while (err == WPK_OK && rest != NULL) {
        char *line = strsep(&rest, "\n");
        if (line[0] != '\0' && line[0] != '#') {
            err = add_candidate(run, line);
        }
    }
    wpk_buf_fini(&text);
    return err;
}

static wpk_err encode_and_add(struct run *run, const struct wpk_space *space,
                              const struct wpk_candidate *candidate)
{
    char text[WPK_CANDIDATE_TEXT_MAX];
    wpk_err err = wpk_candidate_encode(space, candidate, text, sizeof(text));
    return err == WPK_OK ? add_candidate(run, text) : err;
}

static wpk_err pin(struct run *run, struct wpk_space *space, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    bool by = false;
    for (int i = 0; i < run->e->pin_count && err == WPK_OK; i++) {
        char name[WPK_GENE_NAME_MAX];
        const char *equals = strchr(run->e->pins[i], '=');
        snprintf(name, sizeof(name), "%.*s", (int)(equals - run->e->pins[i]), run->e->pins[i]);
        err = wpk_space_pin(space, name, equals + 1, diag);
        by = by || strcmp(name, WPK_BACK_END_GENE) == 0;
    }
    const char *provided = wpk_codegen_of(run->e->provider)->name;
    return err != WPK_OK || by ? err : wpk_space_pin(space, WPK_BACK_END_GENE, provided, diag);
}

static wpk_err draw_candidates(struct run *run, struct wpk_diag *diag)
{
    static struct wpk_planner planner;
    struct wpk_planner_entry *entry = NULL;
    wpk_planner_init(&planner, &run->device);
    const struct wpk_planner_request request = {.op = wpk_buf_text(&run->op),
                                                .layouts = run->e->layouts,
                                                .threads = run->e->policy.threads};
    wpk_err err = wpk_planner_open_space(&planner, &request, &entry, diag);
    err = err == WPK_OK ? pin(run, &entry->space, diag) : err;
    int wanted = run->e->construct_count;
    if (wanted == 0 && run->e->random_count == 0) {
        wanted = CONSTRUCT_DEFAULT;
    }
    struct wpk_candidate *made = calloc((size_t)(wanted > 0 ? wanted : 1), sizeof(*made));
    if (err == WPK_OK && made != NULL) {
        int got = 0;
        err = wpk_space_construct(&entry->space, made, wanted, &got);
        for (int i = 0; i < got && err == WPK_OK; i++) {
            err = encode_and_add(run, &entry->space, &made[i]);
        }
    }
    struct wpk_rng rng;
    wpk_rng_seed(&rng, run->e->seed);
    for (int i = 0; i < run->e->random_count && err == WPK_OK; i++) {
        struct wpk_candidate candidate;
        err = wpk_space_draw(&entry->space, &rng, &candidate);
        err = err == WPK_OK ? encode_and_add(run, &entry->space, &candidate) : err;
    }
    free(made);
    wpk_planner_fini(&planner);
    return err;
}

static wpk_err collect(struct run *run, struct wpk_diag *diag)
{
    const struct wpk_evaluation *e = run->e;
    wpk_err err = WPK_OK;
    for (int i = 0; e->plain && i < WPK_PLAIN_MAX && err == WPK_OK; i++) {
        err = add_candidate(run, "plain");
    }
    if (e->plain) {
        return err;
    }
    if (wpk_codegen_of(e->provider) == NULL || e->schedule_path != NULL) {
        err = add_candidate(run, "");
        if (err == WPK_OK && e->schedule_path != NULL) {
            err = wpk_fs_read(e->schedule_path, CANDIDATES_SIZE_MAX, &run->schedule, diag);
        }
        return err;
    }
    if (e->candidate != NULL) {
        err = add_candidate(run, e->candidate);
    }
    if (err == WPK_OK && e->candidates_path != NULL) {
        err = read_candidates(run, diag);
    }
    bool named = e->candidate != NULL || e->candidates_path != NULL;
    if (err == WPK_OK && (!named || e->construct_count > 0 || e->random_count > 0)) {
        err = draw_candidates(run, diag);
    }
    return err;
}

/* ---- printing */

static void print_person(const struct run *run, int index)
{
    const struct wpk_record *r = &run->records[index];
    fprintf(stderr, "%4d %-13s", index, wpk_outcome_name(r->outcome));
    if (r->timing.sample_count > 0) {
        double ns = (double)r->timing.median_ns;
        fprintf(stderr, " %10.1f us %7.1f GFLOP/s%s", ns / 1e3, run->flops / ns,
                r->timing.censored ? " raced out" : "");
    }
    fprintf(stderr,
            "  err %.2g of rms, %.2f x direct (%.2g of tol)  build %.0f verify %.0f measure %.0f "
            "ms  %s%s\n",
            r->of_rms, r->times_direct, r->error_ratio, (double)r->build_ns / 1e6,
            (double)r->verify_ns / 1e6, (double)r->measure_ns / 1e6, run->candidates[index],
            r->detail != NULL && run->candidates[index][0] == '\0' ? r->detail : "");
    if (r->log[0] != '\0') {
        fprintf(stderr, "     %s\n", r->log);
    }
}

static wpk_err print_line(const struct run *run, int index)
{
    char *record = NULL;
    wpk_err err = wpk_record_encode(&run->records[index], &record);
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_int(w, "index", index);
    wpk_json_put_text(w, "candidate", run->candidates[index]);
    if (err == WPK_OK) {
        wpk_json_put_raw(w, "record", record);
    }
    struct wpk_buf text = {0};
    err = err == WPK_OK ? wpk_json_print(w, false, &text) : err;
    if (err == WPK_OK) {
        puts(wpk_buf_text(&text));
        fflush(stdout);
    }
    wpk_buf_fini(&text);
    wpk_json_writer_free(w);
    free(record);
    return err;
}

static wpk_err print_schedules(struct run *run, struct wpk_diag *diag WPK_UNUSED)
{
    static struct wpk_planner planner;
    wpk_planner_init(&planner, &run->device);
    wpk_err err = WPK_OK;
    for (int i = 0; i < run->count && err == WPK_OK; i++) {
        const struct wpk_planner_request request = {
            .op = wpk_buf_text(&run->op),
            .layouts = run->e->layouts,
            .threads = run->e->policy.threads,
            .candidate = run->candidates[i],
            .plain = run->e->plain ? i + 1 : 0,
            .schedule = run->schedule.size > 0 ? wpk_buf_text(&run->schedule) : NULL,
        };
        struct wpk_planned planned = {0};
        struct wpk_diag own = {0};
        wpk_err planned_err = wpk_planner_plan(&planner, &request, &planned, &own);
        printf("# %s\n", run->candidates[i]);
        if (planned_err != WPK_OK) {
            printf("# %s: %s\n", wpk_err_text(planned_err), own.text);
            run->failed++;
        } else {
            printf("# sha256 %s exact %d transforms %d bound_ns %.0f\n%s", planned.schedule_sha256,
                   planned.rule.exact, planned.rule.transforms, planned.bound_s * 1e9,
                   planned.schedule);
        }
        wpk_planned_fini(&planned);
    }
    wpk_planner_fini(&planner);
    return err;
}

/* ---- trying */

static wpk_err put(struct run *run, struct wpk_engine *engine, int index)
{
    char work[32];
    snprintf(work, sizeof work, "candidate/%d", index);
    struct wpk_trial trial = {
        .id = (uint64_t)index,
        .work = work,
        .op = wpk_buf_text(&run->op),
        .layouts = run->e->layouts,
        .provider = run->e->provider,
        .candidate = run->candidates[index],
        .plain = run->e->plain ? index + 1 : 0,
        .schedule = run->schedule.size > 0 ? wpk_buf_text(&run->schedule) : NULL,
        .policy = run->e->policy,
        .incumbent_ns = run->best_ns,
        .final = true,
        .keep_artifact = run->e->keep || run->e->output_path != NULL,
    };
    return wpk_engine_put(engine, &trial);
}

static void take_in(struct run *run, int index, struct wpk_record *record)
{
    run->records[index] = *record;
    run->done[index] = true;
    run->failed += record->outcome != WPK_OUTCOME_OK;
    const struct wpk_timing *timing = &record->timing;
    bool better = record->outcome == WPK_OUTCOME_OK && !timing->censored &&
                  (run->best_ns == 0 || timing->median_ns < run->best_ns);
    if (better) {
        run->best_ns = timing->median_ns;
        if (record->artifact_path != NULL) {
            free(run->best_artifact);
            run->best_artifact = strdup(record->artifact_path);
        }
    }
}

/* Print what is done, as far as nothing before it is missing. */
static wpk_err print_done(struct run *run, int *printed)
{
    wpk_err err = WPK_OK;
    while (*printed < run->count && run->done[*printed] && err == WPK_OK) {
        if (!run->e->quiet) {
            print_person(run, *printed);
        }
        err = print_line(run, *printed);
        wpk_record_fini(&run->records[*printed]);
        (*printed)++;
    }
    return err;
}

/* Few enough under way that the race's incumbent is not stale, enough to keep everybody busy. */
#define UNDER_WAY_MAX 24

static wpk_err try_all(struct run *run, struct wpk_engine *engine, struct wpk_diag *diag)
{
    int next = 0;
    int printed = 0;
    int under_way = 0;
    wpk_err err = WPK_OK;
    while (printed < run->count && err == WPK_OK) {
        while (next < run->count && under_way < UNDER_WAY_MAX && err == WPK_OK) {
            err = put(run, engine, next++);
            under_way++;
        }
        uint64_t wait_ms = 0;
        if (err == WPK_OK) {
            err = wpk_engine_advance(engine, &wait_ms);
            if (err != WPK_OK) {
                *diag = *wpk_engine_failure(engine);
            }
        }
        uint64_t id = 0;
        struct wpk_record record;
        bool took = false;
        while (err == WPK_OK && wpk_engine_take(engine, &id, &record) == WPK_OK) {
            take_in(run, (int)id, &record);
            under_way--;
            took = true;
        }
        err = err == WPK_OK ? print_done(run, &printed) : err;
        if (err == WPK_OK && !took && wait_ms > 0) {
            struct pollfd polled = {.fd = wpk_engine_fd(engine), .events = POLLIN};
            poll(&polled, 1, wait_ms > 60000 ? 60000 : (int)wait_ms);
        }
    }
    return err;
}

static wpk_err hold_duel(struct run *run, struct wpk_engine *engine, struct wpk_diag *diag)
{
    if (run->best_artifact == NULL) {
        return wpk_fail(diag, WPK_ENOENT, "nobody is left for the duel");
    }
    const char *paths[] = {run->best_artifact, run->e->gpu != NULL ? WPK_CUBLASLT_NAME : "onednn"};
    struct wpk_timing timing[2];
    const struct wpk_duel duel = {.op = wpk_buf_text(&run->op),
                                  .layouts = run->e->layouts,
                                  .paths = paths,
                                  .count = 2,
                                  .policy = &run->e->policy,
                                  .round_count = run->e->duel_rounds};
    wpk_err err = wpk_engine_duel(engine, &duel, timing, diag);
    if (err == WPK_OK && (timing[0].sample_count == 0 || timing[1].sample_count == 0)) {
        return WPK_EUNSUPPORTED;
    }
    if (err == WPK_OK) {
        fprintf(stderr, "duel: ours %.1f us (mad %.1f), vendor %.1f us (mad %.1f): %.3f times\n",
                (double)timing[0].median_ns / 1e3, (double)timing[0].mad_ns / 1e3,
                (double)timing[1].median_ns / 1e3, (double)timing[1].mad_ns / 1e3,
                (double)timing[1].median_ns / (double)timing[0].median_ns);
    }
    return err;
}

/* The candidates that failed do not count where one that ran well was asked for. */
static wpk_err write_best(struct run *run, struct wpk_diag *diag)
{
    struct wpk_buf object;

    if (run->best_artifact == NULL) {
        return wpk_fail(diag, WPK_ENOENT, "no candidate ran well, %s is not written",
                        run->e->output_path);
    }
    wpk_buf_init(&object, WPK_KERNEL_SIZE_MAX);
    wpk_err err = wpk_fs_read(run->best_artifact, WPK_KERNEL_SIZE_MAX, &object, diag);
    err = err == WPK_OK ? wpk_fs_write(run->e->output_path, object.data, object.size, 0644, diag)
                        : err;
    wpk_buf_fini(&object);
    run->failed = err == WPK_OK ? 0 : run->failed;
    return err;
}

static wpk_err run_engine(struct run *run, const char *work_dir, struct wpk_diag *diag)
{
    struct wpk_buf program_dir = {0};
    struct wpk_engine *engine = NULL;
    wpk_err err = wpk_fs_program_dir(&program_dir, diag);
    if (err == WPK_OK) {
        const struct wpk_engine_options options = {
            .device = run->device,
            .program_dir = wpk_buf_text(&program_dir),
            .work_dir = work_dir,
            .trace_path = run->e->trace_path,
        };
        err = wpk_engine_open(&options, &engine, diag);
    }
    if (err == WPK_OK) {
        run->start_ns = wpk_clock_now_ns(wpk_clock_system());
        err = try_all(run, engine, diag);
    }
    if (err == WPK_OK && !run->e->quiet) {
        double seconds = (double)(wpk_clock_now_ns(wpk_clock_system()) - run->start_ns) / 1e9;
        fprintf(stderr, "%d candidates, %d failed, %.1f s, %.2f/s; best %.1f us, %.1f GFLOP/s\n",
                run->count, run->failed, seconds, run->count / seconds, (double)run->best_ns / 1e3,
                run->best_ns > 0 ? run->flops / (double)run->best_ns : 0);
    }
    if (err == WPK_OK && run->e->duel_rounds > 0) {
        err = hold_duel(run, engine, diag);
    }
    if (err == WPK_OK && run->e->output_path != NULL) {
        err = write_best(run, diag);
    }
    wpk_engine_close(engine);
    wpk_buf_fini(&program_dir);
    return err;
}

static wpk_err run_in_directory(struct run *run, struct wpk_diag *diag)
{
    char temporary[] = "/tmp/wpk-evaluate.XXXXXX";
    if (run->e->work_dir != NULL) {
        wpk_err err = wpk_fs_make_dirs(run->e->work_dir, diag);
        return err == WPK_OK ? run_engine(run, run->e->work_dir, diag) : err;
    }
    if (mkdtemp(temporary) == NULL) {
        return wpk_fs_fail(temporary, diag);
    }
    wpk_err err = run_engine(run, temporary, diag);
    (void)!wpk_fs_remove_tree(temporary, NULL);
    return err;
}

static wpk_err read_op(struct run *run, struct wpk_diag *diag)
{
    struct wpk_program program = {0};
    wpk_err err = wpk_fs_read(run->e->op_path, WPK_NOTATION_SIZE_MAX, &run->op, diag);
    err = err == WPK_OK ? wpk_program_parse(wpk_buf_text(&run->op), &program, diag) : err;
    if (err == WPK_OK) {
        /* The canonical text: what the service would send. */
        struct wpk_cost cost;
        wpk_cost(&program, &cost);
        run->flops = cost.flops;
        wpk_buf_reset(&run->op);
        err = wpk_program_print(&program, &run->op);
    }
    wpk_program_fini(&program);
    return err;
}

static wpk_err find_device(const struct wpk_evaluation *evaluation, struct wpk_device *out,
                           struct wpk_diag *diag)
{
    static struct wpk_gpu_device gpu;
    if (evaluation->gpu == NULL) {
        return wpk_device_probe(evaluation->flags_max, out);
    }
    const struct wpk_gpu_wanted wanted = {.which = evaluation->gpu};
    wpk_err err = wpk_gpu_device_describe(&wanted, "", &gpu, diag);
    *out = gpu.device;
    return err;
}

wpk_err wpk_evaluation_run(const struct wpk_evaluation *evaluation, int *failed,
                           struct wpk_diag *diag)
{
    struct run run = {.e = evaluation};
    wpk_err err = find_device(evaluation, &run.device, diag);
    err = err == WPK_OK ? read_op(&run, diag) : err;
    err = err == WPK_OK ? collect(&run, diag) : err;
    if (err == WPK_OK && run.count == 0) {
        err = wpk_fail(diag, WPK_EINVAL, "there is nothing to try");
    }
    if (err == WPK_OK) {
        run.records = WPK_DEMAND(calloc((size_t)run.count, sizeof(*run.records)));
        run.done = WPK_DEMAND(calloc((size_t)run.count, sizeof(*run.done)));
        err = evaluation->print_only ? print_schedules(&run, diag) : run_in_directory(&run, diag);
    }
    for (int i = 0; i < run.count; i++) {
        free(run.candidates[i]);
        if (run.records != NULL) {
            wpk_record_fini(&run.records[i]);
        }
    }
    free(run.candidates);
    free(run.records);
    free(run.done);
    free(run.best_artifact);
    wpk_buf_fini(&run.op);
    wpk_buf_fini(&run.schedule);
    *failed = run.failed;
    return err;
}
