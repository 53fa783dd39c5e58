/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl run: run an operator's served kernel on NumPy files, through libwpk as any host does. */
#include "client/choice_file.h"
#include "client/command.h"
#include "client/find.h"
#include "client/job_file.h"
#include "client/run_model.h"
#include "client/run_tensors.h"
#include "common/fs.h"
#include "common/json.h"
#include "ir/canonical/canonical.h"
#include "ir/notation/definition.h"
#include "ir/reference/accuracy.h"
#include "model/plan/model_file.h"
#include "schema/model_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 4096
#define OP_SIZE_MAX ((size_t)1 << 20)

struct run {
    struct wpk_session_options session;
    struct wpk_option_list inputs;
    struct wpk_option_list outputs;
    const char *op; /* of the job file; NULL: it has one alone */
    bool draw;      /* what no file is given for */
    bool check;
    bool json;
    const char *tmp_dir;
    char path[PATH_SIZE];      /* of the choice, or of a shared object */
    char directory[PATH_SIZE]; /* where it lies; it is ours, to be removed; "": it is not */
    struct wpk_find_wanted wanted;
    struct wpk_accuracy accuracy;
};

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);

    return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

/* ---- what to run */

/* The choice, and the files that it names, in a directory of our own. */
static wpk_err write_choice(struct wpk_session *session, struct run *run,
                            const struct wpk_choice_answer *answer, struct wpk_diag *diag)
{
    char path[PATH_SIZE + sizeof("/kernel")];

    wpk_err err = wpk_fs_make_temporary(run->tmp_dir, "wpk-run", run->directory,
                                        sizeof(run->directory), diag);
    snprintf(path, sizeof(path), "%s/kernel", run->directory);
    snprintf(run->path, sizeof(run->path), "%s%s", path, WPK_CHOICE_SUFFIX);
    return err == WPK_OK ? wpk_choice_file_write(session, answer, path, diag) : err;
}

/* Take the choice that a host would open for the kernel's operator. */
static wpk_err take_kernel(struct wpk_session *session, struct run *run,
                           const struct wpk_api_kernel *kernel, struct wpk_diag *diag)
{
    struct wpk_choice_answer answer = {.signature = ""};

    wpk_err err = wpk_choice_file_ask(session, kernel, "kernel.so", &answer, diag);
    err = err == WPK_OK ? write_choice(session, run, &answer, diag) : err;
    wpk_choice_answer_fini(&answer);
    return err;
}

/* The kernel under the file's own names, where it has canonical ones. */
static wpk_err bind(const struct wpk_program *program, struct wpk_arena *arena,
                    const struct wpk_api_kernel **kernel)
{
    struct wpk_program canonical = {0};
    struct wpk_buf text = {0};
    struct wpk_binding *binding = WPK_ARENA_DEMAND(arena, struct wpk_binding, 1);
    struct wpk_api_kernel *bound = WPK_ARENA_DEMAND(arena, struct wpk_api_kernel, 1);

    wpk_err err = wpk_program_canonical(program, &canonical, binding);
    err = err == WPK_OK ? wpk_binding_print(binding, &text) : err;
    if (err == WPK_OK) {
        *bound = **kernel;
        bound->binding_json = WPK_DEMAND(wpk_arena_copy_text(arena, wpk_buf_text(&text)));
        *kernel = bound;
    }
    wpk_buf_fini(&text);
    wpk_program_fini(&canonical);
    return err;
}

/* The kernel that is served for an operator of a job file, in its layouts and with its threads. */
static wpk_err find_for_job(struct wpk_session *session, struct run *run, const char *path,
                            struct wpk_arena *arena, const struct wpk_api_kernel **out,
                            struct wpk_diag *diag)
{
    struct wpk_job job = {0};
    struct wpk_program program = {0};
    struct wpk_fingerprint fingerprint;
    struct wpk_api_kernel *kernels = NULL;
    char class[WPK_ACCURACY_TEXT_MAX];
    int count = 0, op = 0;

    wpk_err err = wpk_job_file_read(path, &job, diag);
    err = err == WPK_OK ? wpk_job_file_op(&job, run->op, &op, diag) : err;
    err = err == WPK_OK ? wpk_job_op_program(&job, op, &program, diag) : err;
    err = err == WPK_OK ? wpk_fingerprint(&program, &fingerprint) : err;
    if (err == WPK_OK) {
        err = wpk_find_by_fingerprint(session, fingerprint.exact, arena, &kernels, &count, diag);
    }
    if (err == WPK_OK) {
        wpk_accuracy_name(job.ops[op].accuracy, class);
        const struct wpk_find_wanted wanted = {
            .layouts = wpk_layouts_name(job.ops[op].layouts),
            .threads = job.threads,
            .accuracy = run->wanted.accuracy != NULL ? run->wanted.accuracy : class,
            .conditions = run->wanted.conditions != NULL
                              ? run->wanted.conditions
                              : wpk_conditions_name(job.ops[op].conditions),
        };
        err = wpk_find_best(kernels, count, &wanted, out, diag);
    }
    if (err == WPK_ENOENT) {
        wpk_diag_set(diag,
                     "no kernel of '%s' is served for its layouts, threads, accuracy and "
                     "conditions; wpkctl tune %s makes one",
                     job.ops[op].name, path);
    }
    err = err == WPK_OK ? bind(&program, arena, out) : err;
    wpk_program_fini(&program);
    wpk_job_fini(&job);
    return err;
}

static wpk_err find(const struct wpk_command_context *context, struct run *run, const char *what,
                    struct wpk_diag *diag)
{
    struct wpk_session session = {0};
    struct wpk_arena arena = {0};
    const struct wpk_api_kernel *kernel = NULL;
    bool is_file = false;

    wpk_err err = wpk_find_file(what, &is_file, diag);
    if (err != WPK_OK) {
        return err;
    }
    if (is_file && (ends_with(what, ".so") || ends_with(what, WPK_CHOICE_SUFFIX))) {
        if (run->op != NULL || run->wanted.conditions != NULL || run->wanted.job != NULL) {
            return wpk_fail(diag, WPK_EINVAL, "%s: %s is one kernel already; leave the option out",
                            run->op != NULL           ? "--op"
                            : run->wanted.job != NULL ? "--job"
                                                      : "--conditions",
                            what);
        }
        snprintf(run->path, sizeof(run->path), "%s", what);
        return WPK_OK;
    }
    if (is_file && run->wanted.job != NULL) {
        return wpk_fail(diag, WPK_EINVAL, "--job: takes an operator's name, not the file %s", what);
    }
    err = wpk_session_open(context, &run->session, &session, diag);
    if (err == WPK_OK) {
        err = is_file ? find_for_job(&session, run, what, &arena, &kernel, diag)
                      : wpk_find_kernel(&session, what, &run->wanted, &arena, &kernel, diag);
    }
    err = err == WPK_OK ? take_kernel(&session, run, kernel, diag) : err;
    wpk_session_close(&session);
    wpk_arena_fini(&arena);
    return err;
}

/* ---- running, and saying what came out */

/* The operator in the names that the kernel's arguments have: of the choice, or of the object's
 * manifest. A choice says its class of accuracy, too. */
static wpk_err read_operator(const struct wpk_kernel *kernel, struct run *run, struct wpk_buf *out,
                             struct wpk_diag *diag)
{
    bool chosen = ends_with(run->path, WPK_CHOICE_SUFFIX);
    struct wpk_json_reader *r = NULL;
    struct wpk_buf text = {0};

    wpk_err err = WPK_OK;
    if (chosen) {
        err = wpk_fs_read(run->path, WPK_CHOICE_SIZE_MAX, &text, diag);
    } else {
        wpk_buf_append_text(&text, wpk_kernel_manifest(kernel));
    }
    if (err == WPK_OK) {
        err = wpk_json_open(wpk_buf_text(&text), text.size, WPK_CHOICE_SIZE_MAX, &r, diag);
    }
    if (err == WPK_OK) {
        wpk_buf_append_text(out, wpk_json_get_text(r, chosen ? "operator" : "op", OP_SIZE_MAX));
        if (chosen && run->wanted.accuracy == NULL) {
            wpk_accuracy_get(r, "accuracy", &run->accuracy);
        }
        err = wpk_json_status(r);
    }
    wpk_json_close(r);
    wpk_buf_fini(&text);
    return err == WPK_OK ? wpk_buf_status(out) : err;
}

static wpk_err check(const struct wpk_kernel *kernel, struct run *run,
                     const struct wpk_run_tensors *tensors, struct wpk_check *out,
                     struct wpk_diag *diag)
{
    struct wpk_buf op = {.size_max = OP_SIZE_MAX};

    wpk_err err = read_operator(kernel, run, &op, diag);
    if (err == WPK_OK) {
        int inputs = tensors->input_count + tensors->constant_count;
        int count = inputs + tensors->output_count;
        struct wpk_check_tensor *list = WPK_DEMAND(calloc((size_t)count + 1, sizeof(*list)));
        for (int i = 0; i < count; i++) {
            const struct wpk_run_tensor *tensor = &tensors->tensor[i];
            list[i] = (struct wpk_check_tensor){
                .name = tensor->name, .type = &tensor->type, .dense = tensor->dense};
        }
        err = wpk_check(wpk_buf_text(&op), list, inputs, tensors->output_count, run->accuracy,
                        WPK_CHECK_POINTS_MAX, out, diag);
        free(list);
    }
    wpk_buf_fini(&op);
    return err;
}

/* Which entry of the choice ran, and why not those before it. */
static void print_entry(const struct wpk_choice_taken *taken)
{
    if (taken->index >= 0) {
        printf("entry   %d of the choice: %s\n", taken->index, taken->kind);
    }
    if (taken->reason[0] != '\0') {
        fprintf(stderr, "not taken: %s\n", taken->reason);
    }
}

static void put_entry(struct wpk_json_writer *w, const struct wpk_choice_taken *taken)
{
    if (taken->index < 0) {
        wpk_json_put_null(w, "entry");
        return;
    }
    wpk_json_begin_object(w, "entry");
    wpk_json_put_int(w, "index", taken->index);
    wpk_json_put_text(w, "kind", taken->kind);
    wpk_json_put_text(w, "reason", taken->reason);
    wpk_json_end(w);
}

static void print(const struct run *run, const struct wpk_choice_taken *taken,
                  const struct wpk_run_tensors *tensors, const struct wpk_check *result)
{
    char class[WPK_ACCURACY_TEXT_MAX];

    print_entry(taken);
    wpk_run_tensors_print(tensors);
    if (!run->check) {
        return;
    }
    wpk_accuracy_name(run->accuracy, class);
    printf("error   %.2e of the output's rms, largest %.2e, at %lld points\n", result->of_rms,
           result->max_of_rms, (long long)result->points);
    printf("direct  %.2f times the error of direct evaluation, %.2f allowed (%s)\n",
           result->times_direct, result->allowed, class);
    puts(result->passed ? "passed" : "FAILED");
}

static wpk_err print_json(const struct run *run, const struct wpk_choice_taken *taken,
                          const struct wpk_run_tensors *tensors, const struct wpk_check *result)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    put_entry(w, taken);
    wpk_run_tensors_put(tensors, w);
    if (run->check) {
        wpk_json_begin_object(w, "check");
        wpk_json_put_bool(w, "passed", result->passed);
        wpk_json_put_real(w, "of_rms", result->of_rms);
        wpk_json_put_real(w, "max_of_rms", result->max_of_rms);
        wpk_json_put_real(w, "times_direct", result->times_direct);
        wpk_json_put_real(w, "allowed", result->allowed);
        wpk_accuracy_put(w, "accuracy", &run->accuracy);
        wpk_json_put_int(w, "points", result->points);
        wpk_json_end(w);
    } else {
        wpk_json_put_null(w, "check");
    }
    return wpk_json_puts(w, false);
}

static wpk_err run_kernel(struct run *run, enum wpk_exit *status, struct wpk_diag *diag)
{
    struct wpk_run_tensors tensors = {.input_count = 0};
    struct wpk_kernel *kernel = NULL;
    struct wpk_check result = {.passed = true};

    wpk_err err = ends_with(run->path, WPK_CHOICE_SUFFIX)
                      ? wpk_open(run->path, NULL, &kernel, diag)
                      : wpk_kernel_open(run->path, NULL, &kernel, diag);
    if (err == WPK_OK) {
        err = wpk_run_tensors_read(kernel, &run->inputs, &run->outputs, run->draw, &tensors, diag);
    }
    err = err == WPK_OK ? wpk_run_tensors_run(kernel, &tensors, diag) : err;
    err = err == WPK_OK ? wpk_run_tensors_write(&tensors, diag) : err;
    if (err == WPK_OK && run->check) {
        err = check(kernel, run, &tensors, &result, diag);
    }
    if (err == WPK_OK) {
        struct wpk_choice_taken taken = wpk_kernel_choice(kernel);
        if (run->json) {
            err = print_json(run, &taken, &tensors, &result);
        } else {
            print(run, &taken, &tensors, &result);
        }
    }
    *status = result.passed ? WPK_EXIT_OK : WPK_EXIT_FAILED;
    wpk_run_tensors_fini(&tensors);
    wpk_kernel_close(kernel);
    return err;
}

static enum wpk_exit run_model(struct wpk_invocation *call, const struct run *run,
                               struct wpk_run_model *model, bool interpret)
{
    const char *path = call->args.operands[0];
    bool is_onnx = wpk_model_file_is_onnx(path);
    wpk_err err = WPK_EINVAL;

    model->inputs = run->inputs;
    model->outputs = run->outputs;
    model->draw = run->draw;
    model->json = run->json;
    model->check = run->check;
    if (is_onnx && run->check) {
        wpk_diag_set(&call->diag, "--check is of kernels and plans; --interpret is the reference");
    } else if (is_onnx && !interpret) {
        wpk_diag_set(&call->diag, "an ONNX model runs with --interpret, node by node in f64, or "
                                  "after wpkctl tune MODEL.onnx -o MODEL" WPK_MODEL_PLAN_SUFFIX);
    } else if (is_onnx && model->verify != NULL) {
        wpk_diag_set(&call->diag, "--verify is of a model's plan, FILE" WPK_MODEL_PLAN_SUFFIX);
    } else if (interpret && !is_onnx) {
        wpk_diag_set(&call->diag, "--interpret takes an ONNX model, FILE.onnx");
    } else {
        err = is_onnx ? wpk_run_model_interpret(path, model, &call->diag)
                      : wpk_run_model_plan(path, model, &call->diag);
    }
    return wpk_command_end(call, err);
}

enum wpk_exit wpk_command_run(struct wpk_invocation *call)
{
    static struct run run;
    static struct wpk_run_model model;
    bool interpret = false;
    const struct wpk_option options[] = {
        WPK_ARGS_TEXT("op", "NAME", "which operator of a job file", &run.op),
        WPK_ARGS_LIST("input", "TENSOR=FILE.npy",
                      "an input or a constant; bf16 as <u2 (repeatable)", &run.inputs),
        WPK_ARGS_ROW("output", 0, "TENSOR=FILE.npy",
                     "where an output goes (repeatable); FILE.npy alone if there is one output",
                     OUTPUTS, &run.outputs, 0, 0),
        WPK_ARGS_FLAG("random", "draw the inputs and constants that no file is given for",
                      &run.draw),
        WPK_ARGS_FLAG("interpret", "compute an ONNX model node by node in f64", &interpret),
        WPK_ARGS_TEXT("verify", "MODEL.onnx",
                      "of a model's plan: compare with the model, interpreted in f64",
                      &model.verify),
        WPK_MODEL_FIXING_OPTION_ROWS(model.fixing),
        WPK_FIND_OPTION_ROWS(run.wanted),
        WPK_ARGS_FLAG("check", "compare with the reference interpreter; of a plan, each step",
                      &run.check),
        WPK_ARGS_FLAG("json", "what came out, as JSON", &run.json),
        WPK_SESSION_OPTION_ROWS(run.session),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    if (interpret || wpk_model_file_is_onnx(call->args.operands[0]) ||
        ends_with(call->args.operands[0], WPK_MODEL_PLAN_SUFFIX)) {
        return run_model(call, &run, &model, interpret);
    }
    run.session.need = WPK_SESSION_HISTORY;
    run.tmp_dir = call->context->tmp_dir;
    /* A shared object alone names no class: the widest is what can be asked of it. */
    run.accuracy = (struct wpk_accuracy){.times_direct = 16};
    wpk_err err = run.wanted.accuracy != NULL
                      ? wpk_accuracy_parse(run.wanted.accuracy, &run.accuracy, &call->diag)
                      : WPK_OK;
    err = err == WPK_OK ? find(call->context, &run, call->args.operands[0], &call->diag) : err;
    err = err == WPK_OK ? run_kernel(&run, &call->status, &call->diag) : err;
    if (run.directory[0] != '\0') {
        (void)!wpk_fs_remove_tree(run.directory, NULL);
    }
    return wpk_command_end(call, err);
}
