/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl lookup: show what history knows of operators, and how well it fits. */
#include "client/command.h"
#include "client/find.h"
#include "client/job_file.h"
#include "client/schedule_file.h"
#include "client/show.h"
#include "common/format.h"
#include "common/fs.h"
#include "common/json.h"
#include "schema/accuracy.h"
#include "schema/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct lookup {
    struct wpk_session_options session;
    const char *device;
    const char *environment;
    struct wpk_job_overrides
        wanted; /* layouts, threads, class; else the file's, or what there is */
    bool tune;
    bool schedule; /* write one for each operator that something is known of */
    bool json;
};

/* The lookups of one request, and the names under which answers are printed. */
struct batch {
    const struct wpk_job *job; /* NULL: asked for by fingerprint */
    struct wpk_buf body;       /* {"lookups":[...]} */
    int count;
    char name[WPK_JOB_OPS_MAX][WPK_JOB_NAME_MAX + 64]; /* [count] */
    enum wpk_layouts layouts[WPK_JOB_OPS_MAX];
    int threads[WPK_JOB_OPS_MAX];
};

/* ---- asking */

/* Write the key of a kernel among those of its operator and device, for the wanted class. */
static wpk_err put_key(const struct wpk_api_kernel *kernel, const char *class,
                       struct wpk_json_writer *w)
{
    struct wpk_accuracy accuracy = WPK_ACCURACY_STANDARD;
    wpk_err err = WPK_OK;

    wpk_json_put_text(w, "fingerprint", kernel->fingerprint);
    if (class[0] != '\0') {
        err = wpk_accuracy_parse(class, &accuracy, NULL);
        wpk_accuracy_put(w, "accuracy", &accuracy);
    }
    if (kernel->conditions[0] != '\0') {
        wpk_json_put_text(w, "conditions", kernel->conditions);
    }
    return err;
}

/* The class that a kernel is looked up in: the one that was asked for, else its own. */
static const char *class_for(const struct lookup *lookup, const struct wpk_api_kernel *kernel)
{
    return lookup->wanted.accuracy != NULL ? lookup->wanted.accuracy : kernel->accuracy;
}

/* One more lookup: of an operator of the job, or of what a kernel is known for. */
static wpk_err add_lookup(const struct lookup *lookup, struct batch *batch,
                          const struct wpk_job_op *op, const struct wpk_api_kernel *kernel)
{
    const char *device = kernel != NULL ? kernel->device : lookup->device;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_err err = WPK_OK;

    if (kernel != NULL) {
        err = put_key(kernel, class_for(lookup, kernel), w);
        wpk_json_put_text(w, "layouts", kernel->layouts);
    } else {
        wpk_job_op_put(op, w);
    }
    wpk_json_put_int(w, "threads", batch->threads[batch->count]);
    if (device != NULL) {
        wpk_json_put_text(w, "device", device);
    }
    if (lookup->environment != NULL) {
        wpk_json_put_text(w, "environment", lookup->environment);
    }
    wpk_buf_append_text(&batch->body, batch->count++ > 0 ? "," : "{\"lookups\":[");
    wpk_err printed = wpk_json_finish(w, false, &batch->body);
    return err == WPK_OK ? printed : err;
}

static const char *get_text(struct wpk_json_reader *r, const char *key)
{
    return wpk_json_kind_of(r, key) == WPK_JSON_STRING
               ? wpk_json_get_text(r, key, WPK_CANDIDATE_TEXT_MAX)
               : "";
}

/* Print "12 ns ± 1 ns". */
static void print_duration(struct wpk_json_reader *r, const char *key, double ratio)
{
    char median[WPK_FORMAT_SIZE];
    char noise[WPK_FORMAT_SIZE];

    wpk_json_enter(r, key);
    wpk_format_ns((uint64_t)(wpk_show_number(r, "median") * ratio), median);
    wpk_format_ns((uint64_t)(wpk_show_number(r, "mad") * ratio), noise);
    wpk_json_leave(r);
    printf("%s ± %s", median, noise);
}

/* `ratio`: what is expected here by what was measured; 1 where it was measured for this shape. */
static void print_time(struct wpk_json_reader *r, const char *key, const char *label, double ratio)
{
    if (wpk_json_kind_of(r, key) == WPK_JSON_OBJECT) {
        printf("  %-12s ", label);
        print_duration(r, key, ratio);
        puts(ratio != 1 ? ", scaled" : "");
    }
}

/* The time says it of an operator that was measured as it is. */
static void print_expected(struct wpk_json_reader *r, const char *match)
{
    if (wpk_json_kind_of(r, "expected_ns") == WPK_JSON_OBJECT && strcmp(match, "exact") != 0 &&
        strcmp(match, "vendor") != 0) {
        printf("  %-12s ", "expected");
        print_duration(r, "expected_ns", 1);
        printf(", from: %s\n", get_text(r, "expected_from"));
    }
}

static double median_of(struct wpk_json_reader *r, const char *key)
{
    double median = 0;

    if (wpk_json_kind_of(r, key) == WPK_JSON_OBJECT) {
        wpk_json_enter(r, key);
        median = wpk_show_number(r, "median");
        wpk_json_leave(r);
    }
    return median;
}

static void print_differs(struct wpk_json_reader *r)
{
    if (wpk_json_kind_of(r, "differs") != WPK_JSON_ARRAY) {
        return;
    }
    wpk_json_enter_array(r, "differs");
    while (wpk_json_next(r)) {
        printf("  %-12s %s is %s, wanted %s\n", "differs", get_text(r, "field"), get_text(r, "has"),
               get_text(r, "wants"));
    }
    wpk_json_leave(r);
}

/* The class that serves it, and its error where that was measured on this shape. */
static void print_class(struct wpk_json_reader *r, bool near)
{
    char class[WPK_ACCURACY_TEXT_MAX];

    if (!wpk_json_has(r, "accuracy") || wpk_json_kind_of(r, "accuracy") == WPK_JSON_NULL) {
        return;
    }
    struct wpk_accuracy accuracy;
    wpk_accuracy_get(r, "accuracy", &accuracy);
    wpk_accuracy_name(accuracy, class);
    printf("  %-12s %s, %s", "class", class, get_text(r, "conditions"));
    if (!near && wpk_json_kind_of(r, "verified") == WPK_JSON_OBJECT) {
        wpk_json_enter(r, "verified");
        printf(", error %.1e of rms, %.1fx direct", wpk_show_number(r, "of_rms"),
               wpk_show_number(r, "times_direct"));
        wpk_json_leave(r);
    }
    putchar('\n');
}

static void print_known(struct wpk_json_reader *r, bool near)
{
    double measured = median_of(r, "time_ns");
    double ratio = near && measured > 0 ? median_of(r, "expected_ns") / measured : 1;

    printf("  %-12s %s of operator %.12s\n", "kernel", get_text(r, "kernel_id"),
           get_text(r, "fingerprint"));
    printf("  %-12s %s %s\n", "by", get_text(r, "provider"), get_text(r, "algorithm"));
    printf("  %-12s %s, %s\n", "on", get_text(r, "device"), get_text(r, "environment"));
    print_time(r, "time_ns", near ? "there" : "time", 1);
    /* A neighbour's vendor was timed on the neighbour's shape: it is scaled as our time is. */
    if (wpk_json_kind_of(r, "baseline") == WPK_JSON_OBJECT) {
        wpk_json_enter(r, "baseline");
        print_time(r, "time_ns", get_text(r, "provider"), ratio);
        wpk_json_leave(r);
    }
    print_class(r, near);
    if (wpk_show_number(r, "speedup") > 0) {
        printf("  %-12s %.2fx\n", "speedup", wpk_show_number(r, "speedup"));
    }
    const char *artifact = get_text(r, "artifact");
    if (near) {
        printf("  %-12s %s\n", "to build", "wpkctl lookup FILE --schedule, then wpkctl build");
    } else {
        printf("  %-12s %s\n", "artifact", artifact[0] != '\0' ? artifact : "none");
    }
    if (wpk_json_kind_of(r, "provenance") == WPK_JSON_OBJECT) {
        wpk_json_enter(r, "provenance");
        printf("  %-12s %s in job %s, by %s\n", "measured", get_text(r, "measured"),
               get_text(r, "job"), get_text(r, "worker"));
        wpk_json_leave(r);
    }
}

static void print_match(struct wpk_json_reader *r, const char *name)
{
    const char *match = get_text(r, "match");
    bool known = strcmp(match, "none") != 0;

    printf("%s: %s", name, match);
    if (wpk_show_number(r, "distance") > 0) {
        printf(", %.2f away", wpk_show_number(r, "distance"));
    }
    putchar('\n');
    print_expected(r, match);
    if (known) {
        print_known(r, strcmp(match, "nearest_shape") == 0);
        print_differs(r);
    }
    if (get_text(r, "job_id")[0] != '\0') {
        printf("  %-12s %s tunes it\n", "job", get_text(r, "job_id"));
    }
}

/* NAME.schedule, for the operator as it is in the file. */
static wpk_err write_schedule(struct wpk_json_reader *r, const struct batch *batch, int index,
                              struct wpk_diag *diag)
{
    char path[WPK_JOB_NAME_MAX + 16];
    const char *match = get_text(r, "match");
    struct wpk_buf text = {0};
    char *device = WPK_DEMAND(strdup(get_text(r, "device")));
    char *candidate = WPK_DEMAND(strdup(get_text(r, "candidate")));
    const struct wpk_lookup_found found = {.device = device,
                                           .candidate = candidate,
                                           .layouts = batch->layouts[index],
                                           .threads = batch->threads[index]};
    bool usable = strcmp(match, "none") != 0 && strcmp(match, "same_family") != 0;

    wpk_err err = WPK_OK;
    if (!usable) {
        err = wpk_fail(diag, WPK_ENOENT,
                       "%s: no schedule is known that is legal on it; wpkctl tune finds one",
                       batch->name[index]);
    }
    err = err == WPK_OK ? wpk_lookup_schedule(batch->job, index, &found, &text, diag) : err;
    if (err == WPK_OK) {
        snprintf(path, sizeof(path), "%s.schedule", batch->job->ops[index].name);
        err = wpk_fs_write(path, text.data, text.size, 0644, diag);
    }
    if (err == WPK_OK) {
        fprintf(stderr, "%s: the %s's schedule for this shape; wpkctl build %s builds it\n", path,
                strcmp(match, "nearest_shape") == 0 ? "nearest one" : "served kernel", path);
    }
    free(device);
    free(candidate);
    wpk_buf_fini(&text);
    return err;
}

static wpk_err show(const struct lookup *lookup, const struct batch *batch,
                    const struct wpk_buf *body, bool *all_known, struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(wpk_buf_text(body), body->size, WPK_HTTP_REPLY_MAX, &r, diag);

    if (err != WPK_OK) {
        return err;
    }
    wpk_json_enter_array(r, "matches");
    for (int i = 0; err == WPK_OK && i < batch->count && wpk_json_next(r); i++) {
        bool is_tuned = get_text(r, "job_id")[0] != '\0'; /* by a job: an answer too */
        *all_known = *all_known && (strcmp(get_text(r, "match"), "none") != 0 || is_tuned);
        if (!lookup->json) {
            print_match(r, batch->name[i]);
        }
        if (lookup->schedule) {
            err = write_schedule(r, batch, i, diag);
        }
    }
    wpk_json_leave(r);
    err = err == WPK_OK ? wpk_json_status(r) : err;
    wpk_json_close(r);
    if (err == WPK_OK && lookup->json) {
        puts(wpk_buf_text(body));
    }
    return err;
}

/* ---- what to ask */

static wpk_err add_file(const struct lookup *lookup, const struct wpk_job *job, struct batch *batch)
{
    wpk_err err = WPK_OK;

    batch->job = job;
    for (int i = 0; err == WPK_OK && i < job->op_count; i++) {
        batch->layouts[i] = job->ops[i].layouts;
        batch->threads[i] = job->threads;
        snprintf(batch->name[i], sizeof(batch->name[i]), "%s", job->ops[i].name);
        err = add_lookup(lookup, batch, &job->ops[i], NULL);
    }
    return err;
}

/* True if the options admit the kernel, and its key is not in the request yet. */
static bool is_wanted(const struct lookup *lookup, const struct wpk_api_kernel *kernels, int index)
{
    const struct wpk_api_kernel *kernel = &kernels[index];
    const struct wpk_job_overrides *w = &lookup->wanted;
    bool wanted = (w->layouts == NULL || strcmp(w->layouts, kernel->layouts) == 0) &&
                  (w->threads == 0 || (int)w->threads == kernel->threads) &&
                  (w->conditions == NULL || strcmp(w->conditions, kernel->conditions) == 0) &&
                  (lookup->device == NULL || strcmp(lookup->device, kernel->device) == 0);

    for (int i = 0; wanted && i < index; i++) {
        wanted = kernels[i].threads != kernel->threads ||
                 strcmp(class_for(lookup, &kernels[i]), class_for(lookup, kernel)) != 0 ||
                 strcmp(kernels[i].conditions, kernel->conditions) != 0 ||
                 strcmp(kernels[i].layouts, kernel->layouts) != 0 ||
                 strcmp(kernels[i].device, kernel->device) != 0;
    }
    return wanted;
}

/* Every layout, class, number of threads and device that there is a kernel for. */
static wpk_err add_fingerprint(struct wpk_session *session, const struct lookup *lookup,
                               const char *fingerprint, struct batch *batch, struct wpk_diag *diag)
{
    struct wpk_arena arena = {0};
    struct wpk_api_kernel *kernels = NULL;
    int count = 0;

    wpk_err err = wpk_find_by_fingerprint(session, fingerprint, &arena, &kernels, &count, diag);
    for (int i = 0; err == WPK_OK && i < count && batch->count < WPK_JOB_OPS_MAX; i++) {
        int at = batch->count;
        if (!is_wanted(lookup, kernels, i)) {
            continue;
        }
        err = wpk_layouts_parse(kernels[i].layouts, &batch->layouts[at]);
        batch->threads[at] = kernels[i].threads;
        snprintf(batch->name[at], sizeof(batch->name[at]),
                 "%.12s, layouts %s, threads %d, accuracy %s, conditions %s",
                 kernels[i].fingerprint, kernels[i].layouts, kernels[i].threads,
                 class_for(lookup, &kernels[i]), kernels[i].conditions);
        err = err == WPK_OK ? add_lookup(lookup, batch, NULL, &kernels[i]) : err;
    }
    if (err == WPK_OK && batch->count == 0) {
        err =
            wpk_fail(diag, WPK_ENOENT,
                     "operator %s is known, but not so; wpkctl kernels --fingerprint %s lists how",
                     fingerprint, fingerprint);
    }
    wpk_arena_fini(&arena);
    return err;
}

static wpk_err ask(struct wpk_session *session, const struct lookup *lookup, struct batch *batch,
                   bool *all_known, struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    const char *path = lookup->tune ? "/v1/kernels:lookup?tune=1" : "/v1/kernels:lookup";

    wpk_buf_append_text(&batch->body, "]}");
    wpk_err err = wpk_buf_status(&batch->body);
    err = err == WPK_OK ? wpk_session_ask(session, path, wpk_buf_text(&batch->body), &reply, diag)
                        : err;
    if (err != WPK_OK && diag != NULL) {
        /* A place in a text that this program wrote means nothing to its user. */
        diag->line = 0;
        diag->column = 0;
    }
    err = err == WPK_OK ? show(lookup, batch, &reply.body, all_known, diag) : err;
    wpk_http_reply_fini(&reply);
    return err;
}

static wpk_err look_up(const struct wpk_command_context *context, const struct lookup *lookup,
                       const char *what, bool *all_known, struct wpk_diag *diag)
{
    static struct batch batch; /* large, and there is one per process */
    struct wpk_session session = {0};
    struct wpk_job job = {0};
    bool is_hash = access(what, F_OK) != 0 && wpk_find_is_fingerprint(what);

    if (is_hash && (lookup->tune || lookup->schedule)) {
        return wpk_fail(diag, WPK_EINVAL, "%s needs the operator itself: give its job file",
                        lookup->tune ? "--tune" : "--schedule");
    }
    if (!is_hash && strcmp(what, "-") != 0 && access(what, F_OK) != 0) {
        return wpk_fail(diag, WPK_EINVAL,
                        "'%s' is neither a job file nor a fingerprint, of which at least %d digits "
                        "are needed; wpkctl kernels lists them",
                        what, WPK_FIND_DIGITS_MIN);
    }
    wpk_err err = is_hash ? WPK_OK : wpk_job_file_read(what, &job, diag);
    if (err == WPK_OK) {
        err = wpk_job_file_override(&lookup->wanted, &job, diag); /* of a fingerprint: checked */
    }
    err = err == WPK_OK ? wpk_session_open(context, &lookup->session, &session, diag) : err;
    if (err == WPK_OK) {
        err = is_hash ? add_fingerprint(&session, lookup, what, &batch, diag)
                      : add_file(lookup, &job, &batch);
    }
    err = err == WPK_OK ? ask(&session, lookup, &batch, all_known, diag) : err;
    wpk_buf_fini(&batch.body);
    wpk_job_fini(&job);
    wpk_session_close(&session);
    return err;
}

enum wpk_exit wpk_command_lookup(struct wpk_invocation *call)
{
    struct lookup lookup = {.session = {.need = WPK_SESSION_HISTORY}};
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(lookup.session),
        WPK_ARGS_TEXT("device", "CLASS", "device class; needed where several are known",
                      &lookup.device),
        WPK_ARGS_TEXT("environment", "TEXT",
                      "versions that have to be equal, such as halide=21.0.0", &lookup.environment),
        WPK_ARGS_TEXT("layouts", "fixed|any", "default: the file's, or what there is",
                      &lookup.wanted.layouts),
        WPK_ARGS_INT("threads", "N", "of the kernel; default likewise", &lookup.wanted.threads, 1,
                     1024),
        WPK_JOB_CLASS_OPTION_ROWS(lookup.wanted),
        WPK_ARGS_FLAG("tune", "make a job for what is not known exactly", &lookup.tune),
        WPK_ARGS_FLAG("schedule", "write NAME.schedule for each operator, for wpkctl build",
                      &lookup.schedule),
        WPK_ARGS_FLAG("json", "the matches as JSON", &lookup.json),
        WPK_ARGS_END,
    };
    bool all_known = true;

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    if (lookup.tune) {
        lookup.session.need = WPK_SESSION_RUNNING; /* a private one would end before its job */
    }
    wpk_err err = look_up(call->context, &lookup, call->args.operands[0], &all_known, &call->diag);
    if (err != WPK_OK) {
        return wpk_command_fail(err, &call->diag);
    }
    return all_known ? WPK_EXIT_OK : WPK_EXIT_NOT_FOUND;
}
