/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl pin: write down which implementation each operator of a model has, in one file that wpkd
 * signed; find out which of them still apply here. */
#include "client/choice_file.h"
#include "client/job_file.h"
#include "client/lock.h"
#include "client/output.h"
#include "client/tune_service.h"
#include "common/fs.h"
#include "common/json.h"
#include "model/plan/tune.h"
#include "runtime/wpk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pin {
    struct wpk_session_options wanted;
    struct wpk_session session;
    struct wpk_output output;
    struct wpk_job_overrides overrides;
    struct wpk_model_fixing fixing;
    const char *path;       /* of the lock file */
    const char *public_key; /* --public-key; NULL: the service's */
    const char *tmp_dir;
    bool check;
    struct wpk_tune model; /* whose job the operators are; of a job's file that alone */
    struct wpk_lock lock;
};

/* ---- writing */

static wpk_err read_operators(struct pin *pin, const char *file, struct wpk_diag *diag)
{
    struct wpk_tune *model = &pin->model;
    struct wpk_buf problems = {0};

    if (!wpk_model_file_is_onnx(file)) {
        return wpk_job_file_take(file, &(struct wpk_job_inline){0}, &pin->overrides, &model->job,
                                 diag);
    }
    model->options.path = file;
    model->options.fixing = &pin->fixing;
    wpk_err err = wpk_tune_read(model, &problems, diag);
    fputs(wpk_buf_text(&problems), stderr);
    wpk_buf_fini(&problems);
    wpk_job_init(&model->job);
    model->options.wanted.has_conditions = pin->overrides.conditions != NULL;
    if (err == WPK_OK) {
        err = wpk_job_file_class(&pin->overrides, &model->options.wanted.accuracy,
                                 &model->options.wanted.conditions, diag);
    }
    err = err == WPK_OK ? wpk_job_file_override(&pin->overrides, &model->job, diag) : err;
    if (err == WPK_OK) {
        err = wpk_tune_service_machine(&pin->session, &model->job, &model->options.machine, diag);
    }
    return err == WPK_OK ? wpk_tune_make_job(model, diag) : err;
}

/* One more entry: the match's kernel, as the service signs it. */
static wpk_err add_entry(struct pin *pin, struct wpk_json_reader *r, const char *name,
                         struct wpk_diag *diag)
{
    struct wpk_lock_entry *entry = &pin->lock.entries[pin->lock.count++];
    struct wpk_choice_answer answer = {.signature = ""};
    struct wpk_buf binding = {0};
    struct wpk_accuracy accuracy = WPK_ACCURACY_STANDARD;
    struct wpk_api_kernel kernel = {0};

    wpk_json_get_raw(r, "binding", &binding);
    wpk_accuracy_get(r, "accuracy", &accuracy);
    wpk_accuracy_name(accuracy, kernel.found_for);
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    wpk_json_get_copy(r, "kernel_id", entry->kernel, sizeof(entry->kernel));
    wpk_json_get_copy(r, "device", entry->device, sizeof(entry->device));
    entry->environment = WPK_DEMAND(wpk_arena_copy_text(
        &pin->lock.arena, wpk_json_get_text(r, "environment", WPK_CANDIDATE_TEXT_MAX)));
    kernel.id = entry->kernel;
    kernel.binding_json = wpk_buf_text(&binding);
    wpk_err err = wpk_json_status(r);
    err = err == WPK_OK ? wpk_choice_file_ask(&pin->session, &kernel, "kernel.so", &answer, diag)
                        : err;
    if (err == WPK_OK) {
        entry->choice =
            WPK_DEMAND(wpk_arena_copy_text(&pin->lock.arena, wpk_buf_text(&answer.choice)));
        memcpy(entry->signature, answer.signature, sizeof(entry->signature));
    }
    wpk_choice_answer_fini(&answer);
    wpk_buf_fini(&binding);
    return err;
}

/* Every operator is to have a kernel of its own: what is missing would be another one tomorrow. */
static wpk_err add_entries(struct pin *pin, const struct wpk_http_reply *reply,
                           struct wpk_diag *diag)
{
    const struct wpk_job *job = &pin->model.job;
    struct wpk_json_reader *r = NULL;
    const char *first_missing = NULL;
    int missing = 0;
    wpk_err err = wpk_json_open(reply->body.data, reply->body.size, WPK_HTTP_REPLY_MAX, &r, diag);

    wpk_arena_init(&pin->lock.arena, SIZE_MAX);
    pin->lock.entries =
        WPK_ARENA_DEMAND(&pin->lock.arena, struct wpk_lock_entry, (size_t)job->op_count);
    if (err != WPK_OK) {
        return err;
    }
    wpk_json_enter_array(r, "matches");
    for (int i = 0; err == WPK_OK && i < job->op_count && wpk_json_next(r); i++) {
        const char *match = wpk_json_get_text(r, "match", 64);
        if (strcmp(match, "exact") == 0 || strcmp(match, "vendor") == 0) {
            err = add_entry(pin, r, job->ops[i].name, diag);
        } else if (missing++ == 0) {
            first_missing = job->ops[i].name;
        }
    }
    wpk_json_leave(r);
    err = err == WPK_OK ? wpk_json_status(r) : err;
    wpk_json_close(r);
    if (err == WPK_OK && missing > 0) {
        err = wpk_fail(diag, WPK_ENOENT,
                       "%d of %d operators have no kernel on this device, %s among them; wpkctl "
                       "tune finds them",
                       missing, job->op_count, first_missing);
    }
    return err;
}

static wpk_err write_lock(struct pin *pin, const char *file, struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    struct wpk_buf text = {0};

    wpk_err err = read_operators(pin, file, diag);
    err =
        err == WPK_OK ? wpk_tune_service_lookup(&pin->session, &pin->model.job, &reply, diag) : err;
    err = err == WPK_OK ? add_entries(pin, &reply, diag) : err;
    err = err == WPK_OK ? wpk_lock_print(&pin->lock, &text) : err;
    err = err == WPK_OK ? wpk_fs_write(pin->path, text.data, text.size, 0644, diag) : err;
    if (err == WPK_OK) {
        fprintf(stderr, "%s: the implementations of %d operators\n", pin->path, pin->lock.count);
    }
    wpk_buf_fini(&text);
    wpk_http_reply_fini(&reply);
    return err;
}

/* ---- checking */

/* Open the entry as a host would: in a directory of its own, with the key. `why` is set unless the
 * implementation that was pinned is the one that would run. */
static wpk_err try_entry(struct pin *pin, const struct wpk_lock_entry *entry, const char *directory,
                         struct wpk_diag *why)
{
    struct wpk_choice_answer answer = {.signature = ""};
    struct wpk_choice *choice = WPK_DEMAND(calloc(1, sizeof(*choice))); /* large */
    struct wpk_kernel *kernel = NULL;
    char path[512], file[544];

    snprintf(path, sizeof(path), "%s/kernel", directory);
    snprintf(file, sizeof(file), "%s%s", path, WPK_CHOICE_SUFFIX);
    snprintf(answer.signature, sizeof(answer.signature), "%s", entry->signature);
    wpk_buf_append_text(&answer.choice, entry->choice);
    wpk_err err = wpk_choice_decode(entry->choice, strlen(entry->choice), choice, why);
    for (int i = 0; err == WPK_OK && i < choice->chain_count; i++) {
        const struct wpk_choice_entry *one = &choice->chain[i];
        if (one->kind != WPK_CHOICE_VENDOR && answer.object_count < WPK_CHOICE_OBJECTS_MAX) {
            struct wpk_choice_object *object = &answer.object[answer.object_count++];
            snprintf(object->file, sizeof(object->file), "%s", one->file);
            snprintf(object->sha256, sizeof(object->sha256), "%s", one->sha256);
        }
    }
    err = err == WPK_OK ? wpk_choice_file_write(&pin->session, &answer, path, why) : err;
    if (err == WPK_OK) {
        const struct wpk_open_options options = {.public_key = pin->public_key,
                                                 .self_test = wpk_choice_has_test(choice)};
        err = wpk_open(file, &options, &kernel, why);
    }
    if (err == WPK_OK && wpk_kernel_choice(kernel).index > 0) {
        err = wpk_fail(why, WPK_EMISMATCH, "%.*s",
                       (int)strcspn(wpk_kernel_choice(kernel).reason, "\n"),
                       wpk_kernel_choice(kernel).reason);
    }
    wpk_kernel_close(kernel);
    wpk_choice_answer_fini(&answer);
    wpk_choice_fini(choice);
    free(choice);
    return err;
}

static wpk_err check_lock(struct pin *pin, int *lost, struct wpk_diag *diag)
{
    static struct wpk_text_table table; /* large, and there is one per process */
    char key[WPK_SIGN_PUBLIC_HEX_SIZE];
    char directory[400];

    wpk_err err = wpk_lock_read(pin->path, &pin->lock, diag);
    if (err == WPK_OK && pin->public_key == NULL) {
        err = wpk_manifest_file_key(&pin->session, key, diag);
        pin->public_key = key;
    }
    table = (struct wpk_text_table){.arena = &pin->lock.arena, .column_count = 4};
    wpk_text_table_add(&table, (const char *const[]){"operator", "kernel", "applies", "why not"});
    for (int i = 0; err == WPK_OK && i < pin->lock.count; i++) {
        const struct wpk_lock_entry *entry = &pin->lock.entries[i];
        struct wpk_diag why = {0};
        err = wpk_fs_make_temporary(pin->tmp_dir, "wpk-pin", directory, sizeof(directory), diag);
        if (err != WPK_OK) {
            break;
        }
        wpk_err fits = try_entry(pin, entry, directory, &why);
        (void)!wpk_fs_remove_tree(directory, NULL);
        *lost += fits != WPK_OK;
        const char *text = why.text[0] != '\0' ? why.text : wpk_err_text(fits);
        wpk_text_table_add(&table,
                           (const char *const[]){
                               entry->name, entry->kernel, fits == WPK_OK ? "yes" : "no",
                               fits == WPK_OK ? "" : wpk_arena_copy_text(&pin->lock.arena, text)});
    }
    err = err == WPK_OK ? wpk_output_puts_table(&pin->output, &table) : err;
    if (err == WPK_OK && *lost > 0) {
        fprintf(stderr, "%d of %d no longer apply here\n", *lost, pin->lock.count);
    }
    return err;
}

enum wpk_exit wpk_command_pin(struct wpk_invocation *call)
{
    static struct pin pin; /* large, and there is one per process */
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(pin.wanted),
        WPK_ARGS_OUTPUT("the lock file", &pin.path),
        WPK_ARGS_FLAG("check", "FILE is a lock file: which of its entries still apply here?",
                      &pin.check),
        WPK_ARGS_TEXT("public-key", "HEX", "with --check: who signed; default the service's",
                      &pin.public_key),
        WPK_ARGS_INT("threads", "N", "of the kernels", &pin.overrides.threads, 1,
                     WPK_JOB_THREADS_MAX),
        WPK_JOB_CLASS_OPTION_ROWS(pin.overrides),
        WPK_MODEL_FIXING_OPTION_ROWS(pin.fixing),
        WPK_ARGS_END,
    };
    int lost = 0;

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    const char *file = call->args.operands[0];
    pin.tmp_dir = call->context->tmp_dir;
    pin.wanted.need = WPK_SESSION_HISTORY;
    wpk_err err = WPK_OK;
    if (pin.check == (pin.path != NULL)) {
        err = wpk_fail(&call->diag, WPK_EINVAL,
                       pin.check ? "--check writes nothing: leave -o out"
                                 : "-o FILE says where the lock file goes");
    }
    err = err == WPK_OK ? wpk_session_open(call->context, &pin.wanted, &pin.session, &call->diag)
                        : err;
    if (err == WPK_OK && pin.check) {
        pin.path = file;
        err = check_lock(&pin, &lost, &call->diag);
    } else if (err == WPK_OK) {
        err = write_lock(&pin, file, &call->diag);
    }
    call->status = lost > 0 ? WPK_EXIT_FAILED : call->status;
    wpk_session_close(&pin.session);
    wpk_lock_fini(&pin.lock);
    wpk_tune_fini(&pin.model);
    return wpk_command_end(call, err);
}
