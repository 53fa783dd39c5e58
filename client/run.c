/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl run: run what is served of an operator on NumPy files, through libwpk as any host does. */
#include "client/command.h"
#include "client/find.h"
#include "client/job_file.h"
#include "client/output.h"
#include "client/run_check.h"
#include "client/run_tensors.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/suggest.h"
#include "op/canonical.h"
#include "op/definition.h"
#include "op/fingerprint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define OP_SIZE_MAX ((size_t)1 << 20)

struct run {
    struct wpk_session_options session;
    struct wpk_option_list inputs;
    struct wpk_option_list outputs;
    const char *op; /* of the job file; NULL: it has one alone */
    bool check;
    bool json;
    const char *tmp_dir;
    char path[PATH_SIZE]; /* of the shared object */
    bool temporary;       /* it is ours: to be removed */
    struct wpk_find_wanted wanted;
    struct wpk_accuracy accuracy;
    struct wpk_run_names names;
    struct wpk_arena arena; /* what `names` borrows */
};

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);

    return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

/* ---- what to run */

static wpk_err download(struct wpk_session *session, struct run *run, const char *sha256,
                        struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    char request[128];
    char got[WPK_SHA256_HEX_SIZE];

    snprintf(request, sizeof(request), "/v1/artifacts/%s", sha256);
    wpk_err err = wpk_session_ask(session, request, NULL, &reply, diag);
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(wpk_buf_text(&reply.body), reply.body.size, got);
        err = strcmp(got, sha256) == 0 ? WPK_OK : WPK_ECORRUPT;
    }
    if (err == WPK_OK) {
        snprintf(run->path, sizeof(run->path), "%s/wpk-run-XXXXXX.so", run->tmp_dir);
        int fd = mkstemps(run->path, (int)strlen(".so"));
        if (fd < 0) {
            wpk_diag_set(diag, "cannot write in %s: %s; set TMPDIR to one that can be written",
                         run->tmp_dir, strerror(errno));
            err = wpk_fs_err(errno);
        } else {
            close(fd);
            run->temporary = true;
            err = wpk_fs_write(run->path, reply.body.data, reply.body.size, 0700, diag);
        }
    }
    wpk_http_reply_fini(&reply);
    return err;
}

static void take_names(struct run *run, const struct wpk_api_kernel *kernel)
{
    for (int i = 0; i < kernel->binding_count && i < WPK_RUN_TENSORS_MAX; i++) {
        run->names.name[run->names.count++] = (struct wpk_run_name){
            .asked = kernel->binding[i].asked, .kernel = kernel->binding[i].kernel};
    }
}

/* The served kernel's object, or that of our best where a vendor's is served. */
static wpk_err take_kernel(struct wpk_session *session, struct run *run,
                           const struct wpk_api_kernel *kernel, struct wpk_diag *diag)
{
    const char *sha256 = kernel->served.artifact;

    if (sha256[0] == '\0' && kernel->own.provider != NULL) {
        sha256 = kernel->own.artifact;
        fprintf(stderr, "the fastest is %s's, which is no file: this is the best of our own\n",
                kernel->served.provider);
    }
    if (!wpk_crypto_hex_valid(sha256, WPK_SHA256_SIZE)) {
        wpk_diag_set(
            diag,
            "kernel %s is no file: no generated kernel of it worked; wpkctl trials JOB says why",
            kernel->id);
        return WPK_ENOENT;
    }
    if (kernel->accuracy[0] != '\0') {
        wpk_err err = wpk_accuracy_parse(kernel->accuracy, &run->accuracy, diag);
        if (err != WPK_OK) {
            return err;
        }
    }
    take_names(run, kernel);
    return download(session, run, sha256, diag);
}

/* The operator of a job file that is meant; -1 with the reason. */
static int choose_op(const struct run *run, const struct wpk_job *job, struct wpk_diag *diag)
{
    struct wpk_suggest suggest = {.word = run->op != NULL ? run->op : ""};

    for (int i = 0; i < job->op_count; i++) {
        if (run->op == NULL ? job->op_count == 1 : strcmp(job->ops[i].name, run->op) == 0) {
            return i;
        }
        wpk_suggest_offer(&suggest, job->ops[i].name);
    }
    if (run->op == NULL) {
        wpk_diag_set(diag, "the file has %d operators: name one with --op", job->op_count);
    } else {
        wpk_diag_set(diag, "--op: the file has no operator '%s'%s", run->op,
                     wpk_suggest_text(&suggest));
    }
    return -1;
}

/* The file's own names, where the kernel has canonical ones. */
static wpk_err bind(struct run *run, const struct wpk_program *program)
{
    struct wpk_program canonical = {0};
    struct wpk_binding *binding = WPK_ARENA_NEW(&run->arena, struct wpk_binding, 1);

    wpk_err err =
        binding != NULL ? wpk_program_canonical(program, &canonical, binding) : WPK_ENOMEM;
    for (int i = 0; err == WPK_OK && i < binding->count && run->names.count < WPK_RUN_TENSORS_MAX;
         i++) {
        run->names.name[run->names.count++] = (struct wpk_run_name){
            .asked = binding->tensor[i].name, .kernel = binding->tensor[i].canonical};
    }
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
    int count = 0;

    wpk_err err = wpk_job_file_read(path, &job, diag);
    int op = err == WPK_OK ? choose_op(run, &job, diag) : -1;
    if (err == WPK_OK) {
        err = op >= 0 ? wpk_job_op_program(&job, op, &program, diag) : WPK_EINVAL;
    }
    if (err == WPK_OK) {
        err = wpk_fingerprint(&program, &fingerprint);
    }
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
    if (err == WPK_OK) {
        err = bind(run, &program);
    }
    wpk_program_fini(&program);
    wpk_job_fini(&job);
    return err;
}

static wpk_err find(const struct wpk_command_context *context, struct run *run, const char *what,
                    struct wpk_diag *diag)
{
    struct wpk_session session = {0};
    const struct wpk_api_kernel *kernel = NULL;
    bool is_file = access(what, F_OK) == 0;

    if (is_file && ends_with(what, ".so")) {
        snprintf(run->path, sizeof(run->path), "%s", what);
        return WPK_OK;
    }
    wpk_err err = wpk_session_open(context, &run->session, &session, diag);
    if (err == WPK_OK) {
        err = is_file ? find_for_job(&session, run, what, &run->arena, &kernel, diag)
                      : wpk_find_kernel(&session, what, &run->wanted, &run->arena, &kernel, diag);
    }
    if (err == WPK_OK) {
        err = take_kernel(&session, run, kernel, diag);
    }
    wpk_session_close(&session);
    return err;
}

/* ---- running, and saying what came out */

static wpk_err check(const struct wpk_kernel *kernel, const struct run *run,
                     const struct wpk_run_tensors *tensors, struct wpk_run_check *out,
                     struct wpk_diag *diag)
{
    const char *manifest = wpk_kernel_manifest(kernel);
    struct wpk_json_reader *r = NULL;

    wpk_err err = wpk_json_open(manifest, strlen(manifest), 0, &r, diag);
    if (err == WPK_OK) {
        const char *op = wpk_json_get_text(r, "op", OP_SIZE_MAX);
        err = wpk_json_status(r);
        if (err == WPK_OK) {
            err = wpk_run_check(op, tensors, run->accuracy, out, diag);
        }
    }
    wpk_json_close(r);
    return err;
}

static void print(const struct run *run, const struct wpk_run_tensors *tensors,
                  const struct wpk_run_check *result)
{
    char class[WPK_ACCURACY_TEXT_MAX];
    int first = tensors->input_count + tensors->constant_count;

    for (int i = first; i < first + tensors->output_count; i++) {
        const struct wpk_run_tensor *tensor = &tensors->tensor[i];
        printf("%s%s%s\n", tensor->name, tensor->path != NULL ? ": " : " was computed",
               tensor->path != NULL ? tensor->path : "; --output NAME=FILE keeps it");
    }
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

static wpk_err print_json(const struct run *run, const struct wpk_run_tensors *tensors,
                          const struct wpk_run_check *result)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf text = {0};
    int first = tensors->input_count + tensors->constant_count;

    wpk_json_begin_array(w, "outputs");
    for (int i = first; i < first + tensors->output_count; i++) {
        const struct wpk_run_tensor *tensor = &tensors->tensor[i];
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", tensor->name);
        wpk_json_put_text(w, "type", wpk_dtype_name(tensor->argument->type.dtype));
        if (tensor->path != NULL) {
            wpk_json_put_text(w, "file", tensor->path);
        } else {
            wpk_json_put_null(w, "file");
        }
        wpk_json_end(w);
    }
    wpk_json_end(w);
    if (run->check) {
        wpk_json_begin_object(w, "check");
        wpk_json_put_bool(w, "passed", result->passed);
        wpk_json_put_real(w, "of_rms", result->of_rms);
        wpk_json_put_real(w, "max_of_rms", result->max_of_rms);
        wpk_json_put_real(w, "times_direct", result->times_direct);
        wpk_json_put_real(w, "allowed", result->allowed);
        wpk_accuracy_put(w, "accuracy", run->accuracy);
        wpk_json_put_int(w, "points", result->points);
        wpk_json_end(w);
    } else {
        wpk_json_put_null(w, "check");
    }
    wpk_err err = wpk_json_print(w, false, &text);
    wpk_json_writer_free(w);
    puts(wpk_buf_text(&text));
    wpk_buf_fini(&text);
    return err;
}

static wpk_err run_kernel(const struct run *run, enum wpk_exit *status, struct wpk_diag *diag)
{
    static struct wpk_run_tensors tensors; /* large, and there is one per process */
    struct wpk_kernel *kernel = NULL;
    struct wpk_run_check result = {.passed = true};

    wpk_err err = wpk_kernel_open(run->path, NULL, &kernel, diag);
    if (run->temporary) {
        (void)unlink(run->path); /* it is loaded, or of no use */
    }
    if (err == WPK_OK) {
        err =
            wpk_run_tensors_read(kernel, &run->names, &run->inputs, &run->outputs, &tensors, diag);
    }
    if (err == WPK_OK) {
        err = wpk_run_tensors_run(kernel, &tensors, diag);
    }
    if (err == WPK_OK) {
        err = wpk_run_tensors_write(&tensors, diag);
    }
    if (err == WPK_OK && run->check) {
        err = check(kernel, run, &tensors, &result, diag);
    }
    if (err == WPK_OK && run->json) {
        err = print_json(run, &tensors, &result);
    } else if (err == WPK_OK) {
        print(run, &tensors, &result);
    }
    *status = result.passed ? WPK_EXIT_OK : WPK_EXIT_FAILED;
    wpk_run_tensors_fini(&tensors);
    wpk_kernel_close(kernel);
    return err;
}

static enum wpk_exit run_main(const struct wpk_command *command,
                              const struct wpk_command_context *context, int argc, char **argv)
{
    bool given = context->tmp_dir != NULL && context->tmp_dir[0] != '\0';
    static struct run run;
    const struct wpk_option options[] = {
        {"op", 0, "NAME", "which operator of a job file", WPK_OPTION_TEXT, &run.op, 0, 0},
        {"input", 0, "TENSOR=FILE.npy", "an input or a constant; bf16 as <u2 (repeatable)",
         WPK_OPTION_LIST, &run.inputs, 0, 0},
        {"output", 0, "TENSOR=FILE.npy", "where an output goes (repeatable)", WPK_OPTION_LIST,
         &run.outputs, 0, 0},
        WPK_FIND_OPTION_ROWS(run.wanted),
        {"check", 0, NULL, "compare with the reference interpreter", WPK_OPTION_FLAG, &run.check, 0,
         0},
        {"json", 0, NULL, "what came out, as JSON", WPK_OPTION_FLAG, &run.json, 0, 0},
        WPK_SESSION_OPTION_ROWS(run.session),
        {NULL, 0, NULL, NULL, WPK_OPTION_FLAG, NULL, 0, 0},
    };
    struct wpk_args args;
    struct wpk_diag diag = {0};
    enum wpk_exit status = WPK_EXIT_OK;

    if (!wpk_command_begin(command, options, argc, argv, 1, 1, &args, &status)) {
        return status;
    }
    run.session.need = WPK_SESSION_HISTORY;
    run.tmp_dir = given ? context->tmp_dir : "/tmp";
    /* A kernel that names no class was held to none: the widest is what can be asked of it. */
    run.accuracy = (struct wpk_accuracy){.times_direct = 16};
    wpk_err err = find(context, &run, args.operands[0], &diag);
    if (err == WPK_OK) {
        err = run_kernel(&run, &status, &diag);
    }
    wpk_arena_fini(&run.arena);
    return err != WPK_OK ? wpk_command_fail(err, &diag) : status;
}

const struct wpk_command wpk_command_run = {
    .name = "run",
    .operands = "NAME|FINGERPRINT|FILE",
    .summary = "run what is served on NumPy files, and compare it with the reference",
    .run = run_main,
};
