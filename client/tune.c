/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl tune: tune a job, or a model, here and now. The command starts a wpkd and a wpk-worker of
 * its own over local sockets; they are the programs of a service. Results stay in the data
 * directory. */
#include "model/plan/tune.h"
#include "client/command.h"
#include "client/follow.h"
#include "client/job_file.h"
#include "client/lock.h"
#include "client/output.h"
#include "client/run_model.h"
#include "client/tune_service.h"
#include "common/format.h"
#include "common/fs.h"
#include "schema/device.h"
#include "target/codegen.h"

#include <stdio.h>
#include <string.h>

#define PLAN_SIZE_MAX ((size_t)1 << 40)
#define TIMES_LONGER 4 /* the search that is proposed next, against this one */

struct tune {
    const char *program;
    struct wpk_job_overrides overrides;
    struct wpk_job_inline given;
    struct wpk_session_options wanted;
    const char *gpu;  /* --gpu; NULL: the job says for which kind of device it is */
    const char *file; /* NULL with --op */
    struct wpk_output output;
    bool quiet;
    struct wpk_job given_job; /* without a model */
    struct wpk_job *job;      /* borrowed; that one, or the model's */
    struct wpk_session session;
    bool is_model; /* the file is an ONNX model: -o names the plan that is written */
    struct wpk_model_fixing fixing;
    const char *plan_path;
    const char *lock_path; /* --lock; NULL: none */
    struct wpk_lock lock;
    FILE *report; /* standard output, unless the plan may go there */
    struct wpk_tune_service service;
    struct wpk_tune_source source;
    struct wpk_tune model; /* its tuning */
};

static void print_notice(const char *text, void *user)
{
    const struct tune *tune = user;

    if (!tune->quiet) {
        fprintf(stderr, "%s\n", text);
    }
}

/* A job for GPUs needs a worker that serves one; --gpu makes every job one for GPUs. */
static wpk_err choose_device(struct tune *tune, struct wpk_diag *diag)
{
    if (tune->gpu == NULL && strcmp(tune->job->kind, "cuda") != 0) {
        return WPK_OK;
    }
    if (tune->is_model) {
        return wpk_fail(diag, WPK_EINVAL, "a model's plan runs on a CPU: leave --gpu out");
    }
    if (tune->job->threads > 1) {
        return wpk_fail(diag, WPK_EINVAL, "a kernel for a GPU has one thread on the CPU, not %d",
                        tune->job->threads);
    }
    tune->gpu = tune->gpu != NULL ? tune->gpu : "0";
    snprintf(tune->job->kind, sizeof(tune->job->kind), "cuda");
    return WPK_OK;
}

/* A model of views and of functions of libwpk alone: its plan needs no kernel. */
static bool has_nothing_to_tune(const struct tune *tune)
{
    return tune->is_model && tune->model.model.kernel_count == 0;
}

/* Set everything of a model's job but its operators. */
static wpk_err set_job(struct tune *tune, struct wpk_diag *diag)
{
    const struct wpk_job_overrides *overrides = &tune->overrides;
    struct wpk_tune_class *wanted = &tune->model.options.wanted;
    wpk_err err = WPK_OK;

    wpk_job_init(tune->job);
    snprintf(tune->job->name, sizeof(tune->job->name), "model");
    tune->job->candidates = WPK_TUNE_CANDIDATES;
    tune->job->seconds = WPK_TUNE_SECONDS;
    if (overrides->layouts != NULL) {
        return wpk_fail(diag, WPK_EINVAL, "--layouts: a model's tensors are row-major");
    }
    err = wpk_job_file_class(overrides, &wanted->accuracy, &wanted->conditions, diag);
    wanted->has_conditions = overrides->conditions != NULL;
    return err == WPK_OK ? wpk_job_file_override(overrides, tune->job, diag) : err;
}

/* Read the model, and make its job as for this machine: a wrong one is told before any work. */
static wpk_err read_model(struct tune *tune, struct wpk_diag *diag)
{
    struct wpk_tune *model = &tune->model;
    struct wpk_buf problems = {0};

    tune->service = (struct wpk_tune_service){.session = &tune->session,
                                              .quiet = tune->quiet,
                                              .lock = tune->lock_path != NULL ? &tune->lock : NULL};
    wpk_tune_service_source(&tune->service, &tune->source);
    model->options.path = tune->file;
    model->options.fixing = &tune->fixing;
    model->options.source = &tune->source;
    model->options.search_places = tune->overrides.strategy != NULL || tune->overrides.total > 0;
    model->options.seconds = tune->overrides.seconds;
    wpk_err err = wpk_tune_read(model, &problems, diag);
    fputs(wpk_buf_text(&problems), stderr);
    wpk_buf_fini(&problems);
    err = err == WPK_OK ? set_job(tune, diag) : err;
    if (err == WPK_OK) {
        err = wpk_tune_service_machine(&tune->session, tune->job, &model->options.machine, diag);
    }
    return err == WPK_OK ? wpk_tune_make_job(model, diag) : err;
}

static wpk_err read_job(struct tune *tune, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    tune->job = tune->is_model ? &tune->model.job : &tune->given_job;
    if (tune->lock_path != NULL) {
        err = tune->is_model ? wpk_lock_read(tune->lock_path, &tune->lock, diag)
                             : wpk_fail(diag, WPK_EINVAL, "--lock is for a model");
    }
    if (err == WPK_OK && tune->is_model) {
        err = read_model(tune, diag);
    } else if (err == WPK_OK) {
        err = wpk_job_file_take(tune->file, &tune->given, &tune->overrides, tune->job, diag);
    }
    err = err == WPK_OK ? choose_device(tune, diag) : err;
    if (err != WPK_OK || has_nothing_to_tune(tune)) {
        return err;
    }
    err = wpk_job_space_check(tune->job, diag);
    return tune->file != NULL ? wpk_diag_in_file(diag, err, tune->file) : err;
}

static void print_next(const struct tune *tune, const struct wpk_api_job *job)
{
    const struct wpk_api_kernel *kernel = &job->kernels[0];
    bool ours = kernel->served.artifact[0] != '\0';
    const char *program = tune->program;
    struct wpk_buf file = {0};
    struct wpk_buf of_data = {0};
    char gpu[80] = "";
    char of[64] = ""; /* --job, where history may serve what was found without these pins */

    if (tune->wanted.data_dir != NULL) {
        wpk_buf_append_text(&of_data, " --data ");
        wpk_format_word(tune->wanted.data_dir, &of_data);
    } else if (tune->wanted.given.server != NULL) {
        wpk_buf_printf(&of_data, " --server %s", tune->wanted.given.server);
    }
    wpk_format_word(tune->file != NULL ? tune->file : "", &file);
    const char *data = wpk_buf_text(&of_data);
    if (tune->gpu != NULL) {
        snprintf(gpu, sizeof(gpu), " --gpu %s", tune->gpu);
    }
    if (tune->job->pin_count > 0) {
        snprintf(of, sizeof(of), " --job %s", job->id);
    }
    puts("\nnext:");
    if (ours || kernel->own.provider != NULL) {
        printf("  %s get %s%s%s%s -o %s.so\n", program, kernel->name, ours ? "" : " --own", of,
               data, kernel->name);
    } else {
        printf("  %s kernels%s\n", program, data);
    }
    if (kernel->measured > 0) {
        printf("  %s why %s%s\n", program, kernel->name, data);
    }
    if (tune->file != NULL) {
        printf("  %s tune %s%s%s --candidates %lld --seconds %lld\n", program, wpk_buf_text(&file),
               gpu, data, (long long)tune->job->candidates * TIMES_LONGER,
               (long long)tune->job->seconds * TIMES_LONGER);
    } else {
        printf("  %s get %s --own --schedule%s%s\n", program, kernel->name, of, data);
    }
    wpk_buf_fini(&of_data);
    wpk_buf_fini(&file);
}

static wpk_err report(const struct tune *tune, const struct wpk_api_job *job,
                      struct wpk_arena *arena)
{
    const char *data_dir = wpk_buf_text(&tune->session.data_dir);
    struct wpk_buf out = {0};
    wpk_err err = WPK_OK;

    if (tune->output.json) {
        err = wpk_report_encode(job, data_dir, &out);
        wpk_buf_append_byte(&out, '\n');
    } else if (job->kernel_count > 0) {
        err = wpk_report_print(job, data_dir, &tune->output, arena, &out);
    }
    if (err == WPK_OK) {
        fputs(wpk_buf_text(&out), tune->report);
        if (tune->is_model && !tune->output.json) {
            wpk_print_weights(&tune->model.model.shapes[0].graph, tune->report);
        }
        if (!tune->output.json && tune->output.format == NULL && job->kernel_count > 0 &&
            !tune->is_model) {
            print_next(tune, job);
        }
    }
    wpk_buf_fini(&out);
    return err;
}

/* Our own worker is all that serves the job: what it cannot do would be waited for for ever. */
static wpk_err check_threads(const struct wpk_job *job, struct wpk_diag *diag)
{
    struct wpk_device device;
    wpk_err err = wpk_device_probe(WPK_CPU_FLAGS_ALL, &device);

    if (err == WPK_OK && job->threads > device.core_count) {
        err = wpk_fail(
            diag, WPK_EINVAL,
            "the job asks for %d threads, and this machine has %d cores; --threads asks for fewer",
            job->threads, device.core_count);
    }
    return err;
}

/* The same of the back ends that the job pins, or of the first one of its kind. */
static wpk_err check_back_ends(const struct wpk_job *job, struct wpk_diag *diag)
{
    unsigned wanted = 1U << wpk_back_end_first(job->kind);
    struct wpk_diag why = {0};
    const struct wpk_codegen *codegen;

    for (int i = 0; i < job->pin_count; i++) {
        if (strcmp(job->pins[i].gene, WPK_BACK_END_GENE) == 0) {
            wanted = wpk_back_ends_read(job->pins[i].value) & wpk_back_ends_of(job->kind);
        }
    }
    for (int i = 0; (codegen = wpk_codegen_at(i)) != NULL; i++) {
        char version[WPK_CODEGEN_VERSION_MAX];
        if ((wanted & 1U << i) != 0 && codegen->find(version, &why) != WPK_ENOENT) {
            return WPK_OK;
        }
        if ((wanted & 1U << i) != 0) {
            wpk_diag_set(diag, "%s: %.*s", codegen->name, WPK_DIAG_TEXT_MAX - 64, why.text);
        }
    }
    return WPK_EUNSUPPORTED;
}

/* Write the plan of a model whose job is done. */
static wpk_err write_plan(struct tune *tune, struct wpk_diag *diag)
{
    struct wpk_buf plan = {.size_max = PLAN_SIZE_MAX};

    wpk_err err = wpk_tune_plan(&tune->model, &plan, diag);
    err = err == WPK_OK ? wpk_fs_write(tune->plan_path, plan.data, plan.size, 0644, diag) : err;
    if (err == WPK_OK && !tune->output.json && tune->report == stdout) {
        struct wpk_buf path = {0};
        wpk_format_word(tune->plan_path, &path);
        printf("\nnext:\n  %s run %s --random\n", tune->program, wpk_buf_text(&path));
        wpk_buf_fini(&path);
    }
    wpk_buf_fini(&plan);
    return err;
}

static bool has_own_worker(const struct tune *tune)
{
    return tune->session.private_service != NULL &&
           wpk_private_is_owner(tune->session.private_service);
}

/* Tune a model's operators, for the machine that times them. */
static wpk_err run_model(struct tune *tune, struct wpk_api_job *job, struct wpk_diag *diag)
{
    struct wpk_tune *model = &tune->model;

    tune->service.own_worker = has_own_worker(tune);
    wpk_err err =
        wpk_tune_service_machine(&tune->session, tune->job, &model->options.machine, diag);
    err = err == WPK_OK ? wpk_tune_make_job(model, diag) : err;
    err = err == WPK_OK ? wpk_tune_run(model, diag) : err;
    *job = model->rounds.found;
    return err;
}

/* Everything between the job and the report. */
static enum wpk_exit run(const struct wpk_command_context *context, struct tune *tune)
{
    struct wpk_arena arena = {0};
    struct wpk_http_reply reply = {0};
    struct wpk_api_job job = {0};
    struct wpk_diag diag = {0};
    bool interrupted = false;
    enum wpk_exit status = WPK_EXIT_OK;

    tune->wanted.need = WPK_SESSION_WORKER;
    tune->wanted.gpu = tune->gpu;
    tune->wanted.notice = print_notice;
    tune->wanted.user = tune;
    wpk_err err = wpk_session_open(context, &tune->wanted, &tune->session, &diag);
    if (err == WPK_OK && tune->session.private_service != NULL) {
        if (!wpk_private_is_owner(tune->session.private_service)) {
            print_notice("attached to the wpkd that works on this data directory", tune);
        } else {
            err = check_threads(tune->job, &diag);
            err = err == WPK_OK ? check_back_ends(tune->job, &diag) : err;
        }
    }
    if (err == WPK_OK) {
        const struct wpk_follow_options follow = {
            .cancel = true, .quiet = tune->quiet, .own_worker = has_own_worker(tune)};
        err = tune->is_model ? run_model(tune, &job, &diag)
                             : wpk_follow_submit(&tune->session, tune->job, &follow, &arena, &reply,
                                                 &job, &diag);
    }
    interrupted = wpk_follow_interrupted() || tune->model.rounds.interrupted;
    if (err == WPK_OK && job.state != NULL) {
        err = report(tune, &job, &arena);
    }
    if (err == WPK_OK && tune->is_model && job.state != NULL && strcmp(job.state, "done") == 0) {
        err = write_plan(tune, &diag);
    }
    if (err != WPK_OK) {
        status = wpk_command_fail(err, &diag);
    } else if (interrupted) {
        fputs("wpkctl: interrupted; what was measured is kept, and the next run goes on from it\n",
              stderr);
    } else if (strcmp(job.state, "done") != 0) {
        wpk_follow_complain(&job);
        status = WPK_EXIT_FAILED;
    }
    wpk_session_close(&tune->session);
    wpk_http_reply_fini(&reply);
    wpk_arena_fini(&arena);
    return interrupted ? WPK_EXIT_INTERRUPTED : status;
}

/* Of a model, -o is the plan's file. */
static wpk_err take_plan_path(struct tune *tune, const struct wpk_option *options,
                              const struct wpk_args *args, struct wpk_diag *diag)
{
    tune->is_model = tune->file != NULL && wpk_model_file_is_onnx(tune->file);
    if (!tune->is_model) {
        return WPK_OK;
    }
    if (tune->output.format == NULL) {
        return wpk_fail(diag, WPK_EINVAL, "of a model, -o FILE.wpk says where its plan goes");
    }
    tune->plan_path = tune->output.format;
    tune->output.format = NULL;
    tune->output.brief = true;
    if (strcmp(tune->plan_path, "-") == 0) {
        return wpk_fail(diag, WPK_EINVAL,
                        "a plan is binary: -o takes a file's name, or /dev/stdout for a pipe");
    }
    if (wpk_fs_is_stream(tune->plan_path)) {
        tune->report = stderr;
    }
    return wpk_args_check_output(options, args, tune->plan_path, diag);
}

enum wpk_exit wpk_command_tune(struct wpk_invocation *call)
{
    /* Large (an operator's tensors), and there is one per process. */
    static struct tune tune;
    const struct wpk_option options[] = {
        WPK_JOB_OPTION_ROWS(tune.overrides, tune.given),
        WPK_ARGS_TEXT("gpu", "WHICH",
                      "for a GPU: its number or UUID; `emulated`: none is there, nothing is timed",
                      &tune.gpu),
        WPK_ARGS_FLAG("verify",
                      "of a model: compare the plan with the model in f64, though it takes long",
                      &tune.model.options.verify),
        WPK_ARGS_TEXT("lock", "FILE",
                      "of a model: take what wpkctl pin wrote down, search the rest alone",
                      &tune.lock_path),
        WPK_MODEL_FIXING_OPTION_ROWS(tune.fixing),
        WPK_SESSION_OPTION_ROWS(tune.wanted),
        WPK_ARGS_ROW("output", 'o', "FILE.wpk|wide|json|csv",
                     "of a model: where its plan goes; else every column, JSON or CSV", TEXT,
                     &tune.output.format, 0, 0),
        WPK_ARGS_FLAG("json", "the same as -o json, and with a plan's -o", &tune.output.json),
        WPK_ARGS_ROW("quiet", 'q', NULL, "no progress", FLAG, &tune.quiet, 0, 0),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 0, 1)) {
        return call->status;
    }
    tune.program = call->context->program;
    tune.file = call->args.operand_count > 0 ? call->args.operands[0] : NULL;
    tune.report = stdout;
    wpk_err err = take_plan_path(&tune, options, &call->args, &call->diag);
    err = err == WPK_OK ? wpk_output_check(&tune.output, &call->diag) : err;
    err = err == WPK_OK ? read_job(&tune, &call->diag) : err;
    if (err == WPK_OK && has_nothing_to_tune(&tune)) {
        print_notice("the model has nothing to tune", &tune);
        err = write_plan(&tune, &call->diag);
    } else if (err == WPK_OK) {
        wpk_follow_catch_signals();
        call->status = run(call->context, &tune);
    }
    wpk_job_fini(&tune.given_job);
    wpk_tune_fini(&tune.model);
    wpk_lock_fini(&tune.lock);
    return wpk_command_end(call, err);
}
