/* SPDX-License-Identifier: Apache-2.0 */
#include "client/job_file.h"

#include "common/fs.h"
#include "common/suggest.h"
#include "ir/notation/definition.h"
#include "search/strategy/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A strategy that nobody knows is found before anything is sent. */
static wpk_err check_strategy(const char *name, struct wpk_diag *diag)
{
    struct wpk_suggest suggest = {.word = name};
    char known[WPK_SUGGEST_SIZE];

    if (wpk_strategy_find(name) != NULL) {
        return WPK_OK;
    }
    for (const char *at = wpk_strategy_names(); *at != '\0'; at += strspn(at, ", ")) {
        size_t size = strcspn(at, ",");
        snprintf(known, sizeof(known), "%.*s", (int)size, at);
        wpk_suggest_offer(&suggest, known);
        at += size;
    }
    return wpk_fail(diag, WPK_EINVAL, "there is no strategy '%s'; there are %s%s", name,
                    wpk_strategy_names(), wpk_suggest_text(&suggest));
}

/* Check the options of the job's strategy.
 *   errors  WPK_EINVAL an option that the strategy lacks, or a value out of its range */
/* Read the job's prior from its file: the strategy begins from it.
 *   errors  those of wpk_fs_read and wpk_prior_check, with the file's name in `diag` */
static wpk_err read_prior(const char *path, struct wpk_job *job, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read(path, WPK_JOB_PRIOR_MAX, &text, diag);
    err = err == WPK_OK ? wpk_prior_check(job->strategy, wpk_buf_text(&text), diag) : err;
    if (err == WPK_OK) {
        free(job->prior_text);
        job->prior_text = WPK_DEMAND(strdup(wpk_buf_text(&text)));
    } else if (diag != NULL && diag->file[0] == '\0') {
        struct wpk_diag why = *diag;
        *diag = (struct wpk_diag){0};
        wpk_diag_set(diag, "prior %s: %s", path, why.text);
    }
    wpk_buf_fini(&text);
    return err == WPK_OK || err == WPK_ENOMEM ? err : WPK_EINVAL;
}

/* The prior that the job file names lies beside it. */
static wpk_err read_named_prior(const char *job_path, struct wpk_job *job, struct wpk_diag *diag)
{
    char path[2 * WPK_JOB_PATH_MAX];
    const char *slash = strrchr(job_path, '/');
    int folder = slash == NULL || job->prior[0] == '/' ? 0 : (int)(slash + 1 - job_path);
    if (job->prior[0] == '\0') {
        return wpk_prior_check(job->strategy, job->prior_text, diag);
    }
    snprintf(path, sizeof(path), "%.*s%s", folder, job_path, job->prior);
    wpk_err err = read_prior(path, job, diag);
    if (err != WPK_OK) {
        wpk_job_locate_search(job, "prior", NULL, diag);
    }
    return err;
}

static wpk_err check(const struct wpk_job *job, struct wpk_diag *diag)
{
    bool first = diag != NULL && diag->text[0] == '\0';
    wpk_err err = check_strategy(job->strategy, diag);

    if (err != WPK_OK) {
        if (first) {
            wpk_job_locate_search(job, "strategy", NULL, diag);
        }
        return err;
    }
    err = wpk_strategy_check_job(job, diag);
    return err == WPK_OK ? wpk_job_check(job, diag) : WPK_EINVAL;
}

wpk_err wpk_job_file_read(const char *path, struct wpk_job *out, struct wpk_diag *diag)
{
    struct wpk_buf text;
    struct wpk_job job = {0};

    wpk_buf_init(&text, WPK_JOB_SIZE_MAX + 1);
    wpk_err err = wpk_fs_read(path, WPK_JOB_SIZE_MAX, &text, diag);
    if (err != WPK_OK) {
        wpk_buf_fini(&text);
        return err == WPK_ENOENT || err == WPK_EACCES ? WPK_EINVAL : err;
    }
    err = wpk_job_decode(wpk_buf_text(&text), text.size, &job, diag);
    wpk_buf_fini(&text);
    err = err == WPK_OK ? check(&job, diag) : err;
    err = err == WPK_OK ? read_named_prior(path, &job, diag) : err;
    if (err != WPK_OK) {
        wpk_job_fini(&job);
        return wpk_diag_in_file(diag, err, path);
    }
    *out = job;
    return WPK_OK;
}

/* Split "name=value"; the name is copied. */
static wpk_err split_pair(const char *option, const char *pair, char *name, size_t name_size,
                          const char **value, struct wpk_diag *diag)
{
    const char *equals = strchr(pair, '=');

    if (equals == NULL || equals == pair || equals[1] == '\0' ||
        (size_t)(equals - pair) >= name_size) {
        return wpk_fail(diag, WPK_EINVAL, "--%s takes NAME=VALUE, not '%s'", option, pair);
    }
    snprintf(name, name_size, "%.*s", (int)(equals - pair), pair);
    *value = equals + 1;
    return WPK_OK;
}

static wpk_err fill_tensors(const struct wpk_job_inline *given, struct wpk_job_op *op,
                            struct wpk_diag *diag)
{
    if (given->tensors.count > WPK_JOB_TENSORS_MAX) {
        return wpk_fail(diag, WPK_ERANGE, "an operator has at most %d tensors",
                        WPK_JOB_TENSORS_MAX);
    }
    for (int i = 0; i < given->tensors.count; i++) {
        struct wpk_job_tensor *tensor = &op->tensors[i];
        const char *type;
        wpk_err err = split_pair("tensor", given->tensors.items[i], tensor->name,
                                 sizeof(tensor->name), &type, diag);
        if (err != WPK_OK) {
            return err;
        }
        snprintf(tensor->type, sizeof(tensor->type), "%s", type);
        op->tensor_count++;
    }
    for (int i = 0; i < given->constants.count; i++) {
        int at = 0;
        while (at < op->tensor_count &&
               strcmp(op->tensors[at].name, given->constants.items[i]) != 0) {
            at++;
        }
        if (at == op->tensor_count) {
            return wpk_fail(diag, WPK_EINVAL,
                            "--constant %s is not among the tensors; declare it with --tensor",
                            given->constants.items[i]);
        }
        op->tensors[at].constant = true;
    }
    return WPK_OK;
}

wpk_err wpk_job_file_make(const struct wpk_job_inline *given, struct wpk_job *out,
                          struct wpk_diag *diag)
{
    static const char empty[] = "{\"ops\":[{\"name\":\"op\",\"op\":\"\",\"tensors\":{}}]}";
    struct wpk_job job;

    wpk_err err = wpk_job_decode(empty, sizeof(empty) - 1, &job, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_job_op *op = &job.ops[0];
    free(op->notation);
    free(op->tensors);
    /* Without a source, positions are those within the notation. */
    free(job.source);
    job.source = NULL;
    op->notation = WPK_DEMAND(strdup(given->op));
    op->tensors = WPK_DEMAND(calloc(WPK_JOB_TENSORS_MAX, sizeof(*op->tensors)));
    err = fill_tensors(given, op, diag);
    err = err == WPK_OK ? wpk_diag_in_file(diag, check(&job, diag), "--op") : err;
    if (err != WPK_OK) {
        wpk_job_fini(&job);
        return err;
    }
    *out = job;
    return WPK_OK;
}

static wpk_err override_layouts(const char *text, struct wpk_job *job, struct wpk_diag *diag)
{
    enum wpk_layouts layouts;

    if (wpk_layouts_parse(text, &layouts) != WPK_OK) {
        return wpk_fail(diag, WPK_EINVAL, "--layouts takes fixed or any, not '%s'", text);
    }
    for (int i = 0; i < job->op_count; i++) {
        job->ops[i].layouts = layouts;
    }
    return WPK_OK;
}

wpk_err wpk_job_file_class(const struct wpk_job_overrides *overrides, struct wpk_accuracy *accuracy,
                           enum wpk_conditions *conditions, struct wpk_diag *diag)
{
    const char *text = overrides->conditions;
    wpk_err err = WPK_OK;

    *conditions = WPK_CONDITIONS_WARM;
    if (text != NULL && wpk_conditions_parse(text, conditions) != WPK_OK) {
        return wpk_fail(diag, WPK_EINVAL,
                        "--conditions takes warm, cold-constants or cold, not '%s'", text);
    }
    err = wpk_accuracy_parse(overrides->accuracy != NULL ? overrides->accuracy : "standard",
                             accuracy, diag);
    if (err != WPK_OK && diag != NULL) {
        snprintf(diag->field, sizeof(diag->field), "--accuracy");
    }
    return err;
}

/* Apply the overrides that are set in each operator. */
static wpk_err override_ops(const struct wpk_job_overrides *overrides, struct wpk_job *job,
                            struct wpk_diag *diag)
{
    wpk_err err =
        overrides->layouts != NULL ? override_layouts(overrides->layouts, job, diag) : WPK_OK;
    struct wpk_accuracy accuracy;
    enum wpk_conditions conditions;
    err = err == WPK_OK ? wpk_job_file_class(overrides, &accuracy, &conditions, diag) : err;
    for (int i = 0; err == WPK_OK && i < job->op_count; i++) {
        struct wpk_job_op *op = &job->ops[i];
        op->accuracy = overrides->accuracy != NULL ? accuracy : op->accuracy;
        op->conditions = overrides->conditions != NULL ? conditions : op->conditions;
    }
    return err;
}

wpk_err wpk_job_file_override(const struct wpk_job_overrides *overrides, struct wpk_job *job,
                              struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    if (overrides->total > 0) {
        job->total = overrides->total;
        job->candidates = overrides->total;
    }
    job->candidates = overrides->candidates > 0 ? overrides->candidates : job->candidates;
    job->seconds = overrides->seconds > 0 ? overrides->seconds : job->seconds;
    job->threads = overrides->threads > 0 ? (int)overrides->threads : job->threads;
    job->seed = overrides->seed.given ? overrides->seed.value : job->seed;
    if (overrides->strategy != NULL) {
        err = check_strategy(overrides->strategy, diag);
        if (err != WPK_OK) {
            return err;
        }
        snprintf(job->strategy, sizeof(job->strategy), "%s", overrides->strategy);
    }
    err = overrides->until != NULL ? wpk_job_set_until(job, overrides->until, diag) : WPK_OK;
    if (err == WPK_OK) {
        err = overrides->prior != NULL ? read_prior(overrides->prior, job, diag)
                                       : wpk_prior_check(job->strategy, job->prior_text, diag);
    }
    err = err == WPK_OK ? override_ops(overrides, job, diag) : err;
    if (err != WPK_OK) {
        return err;
    }
    for (int i = 0; i < overrides->options.count; i++) {
        char name[WPK_JOB_GENE_MAX];
        const char *value;
        err = split_pair("set", overrides->options.items[i], name, sizeof(name), &value, diag);
        if (err == WPK_OK && wpk_job_set_option(job, name, value) != WPK_OK) {
            err = wpk_fail(diag, WPK_EINVAL,
                           "--set %s: give a name and a number, as ga.crossover=0.4",
                           overrides->options.items[i]);
        }
        if (err == WPK_OK) {
            err = wpk_strategy_check_option(wpk_strategy_find(job->strategy), name, value, diag);
            err = err == WPK_OK ? WPK_OK : WPK_EINVAL;
        }
        if (err != WPK_OK) {
            return err;
        }
    }
    for (int i = 0; i < overrides->pins.count; i++) {
        char gene[WPK_JOB_GENE_MAX];
        const char *value;
        err = split_pair("pin", overrides->pins.items[i], gene, sizeof(gene), &value, diag);
        if (err != WPK_OK) {
            return err;
        }
        err = wpk_job_pin(job, gene, value);
        if (err != WPK_OK) {
            wpk_diag_set(diag, "--pin %s: %s; wpkctl genes lists what can be pinned",
                         overrides->pins.items[i], wpk_err_text(err));
            return err;
        }
    }
    return WPK_OK;
}

wpk_err wpk_job_file_take(const char *path, const struct wpk_job_inline *given,
                          const struct wpk_job_overrides *overrides, struct wpk_job *out,
                          struct wpk_diag *diag)
{
    if ((path != NULL) == (given->op != NULL)) {
        return wpk_fail(diag, WPK_EINVAL, "give a job file or --op: one of the two");
    }
    wpk_err err =
        path != NULL ? wpk_job_file_read(path, out, diag) : wpk_job_file_make(given, out, diag);
    return err == WPK_OK ? wpk_job_file_override(overrides, out, diag) : err;
}

wpk_err wpk_job_file_op(const struct wpk_job *job, const char *name, int *out,
                        struct wpk_diag *diag)
{
    struct wpk_suggest suggest = {.word = name != NULL ? name : ""};

    for (int i = 0; i < job->op_count; i++) {
        if (name == NULL ? job->op_count == 1 : strcmp(job->ops[i].name, name) == 0) {
            *out = i;
            return WPK_OK;
        }
        wpk_suggest_offer(&suggest, job->ops[i].name);
    }
    if (name == NULL) {
        return wpk_fail(diag, WPK_EINVAL, "the file has %d operators: name one with --op",
                        job->op_count);
    }
    return wpk_fail(diag, WPK_EINVAL, "--op: the file has no operator '%s'%s", name,
                    wpk_suggest_text(&suggest));
}
