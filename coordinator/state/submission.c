/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/submission.h"

#include "coordinator/state/coordinator.h"
#include "op/cost.h"
#include "op/definition.h"
#include "op/fingerprint.h"
#include "op/notation.h"
#include "schema/job.h"
#include "search/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wpk_err fill_op(const struct wpk_job *job, int index, struct wpk_job_op_state *op,
                       struct wpk_diag *diag)
{
    struct wpk_program program = {0};
    struct wpk_fingerprint fingerprint;
    struct wpk_cost cost = {0};
    struct wpk_buf text = {0};
    wpk_err err = wpk_job_op_program(job, index, &program, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = wpk_fingerprint(&program, &fingerprint);
    if (err == WPK_OK) {
        err = wpk_program_print(&program, &text);
    }
    if (err == WPK_OK) {
        err = wpk_buf_take(&text, &op->op, NULL);
    }
    if (err == WPK_OK) {
        wpk_cost(&program, &cost);
        op->flops = cost.flops;
        snprintf(op->name, sizeof op->name, "%s", job->ops[index].name);
        snprintf(op->layouts, sizeof op->layouts, "%s", wpk_layouts_name(job->ops[index].layouts));
        wpk_accuracy_name(job->ops[index].accuracy, op->accuracy);
        op->conditions = job->ops[index].conditions;
        snprintf(op->fingerprint, sizeof op->fingerprint, "%s", fingerprint.exact);
        snprintf(op->family, sizeof op->family, "%s", fingerprint.family);
    }
    wpk_buf_fini(&text);
    wpk_program_fini(&program);
    return err;
}

static int compare_pins(const void *a, const void *b)
{
    return strcmp(((const struct wpk_job_pin *)a)->gene, ((const struct wpk_job_pin *)b)->gene);
}

/* Pins sorted, so that their order in the file makes no difference. */
static wpk_err fill_parameters(struct wpk_job *job, struct wpk_job_entry *entry,
                               struct wpk_diag *diag)
{
    size_t at = 0;
    if (job->pin_count > 0) {
        qsort(job->pins, (size_t)job->pin_count, sizeof job->pins[0], compare_pins);
    }
    for (int i = 0; i < job->pin_count; i++) {
        int size = snprintf(entry->parameters + at, sizeof entry->parameters - at, "%s%s=%s",
                            i > 0 ? ";" : "", job->pins[i].gene, job->pins[i].value);
        at += (size_t)size;
        if (at >= sizeof entry->parameters || strchr(job->pins[i].value, ';') != NULL) {
            wpk_diag_set(diag, "too many pins, or a ';' in one");
            return WPK_EINVAL;
        }
    }
    return WPK_OK;
}

_Static_assert(WPK_JOB_LABELS_MAX <= WPK_WORKER_LABELS_MAX, "a job's labels have room");

static wpk_err fill(struct wpk_job *job, struct wpk_job_entry *entry, struct wpk_diag *diag)
{
    if (wpk_strategy_find(job->strategy) == NULL) {
        wpk_diag_set(diag, "there is no strategy \"%s\", only: %s", job->strategy,
                     wpk_strategy_names());
        if (diag != NULL) {
            snprintf(diag->field, sizeof diag->field, "search.strategy");
        }
        return WPK_ENOENT;
    }
    snprintf(entry->name, sizeof entry->name, "%s", job->name);
    snprintf(entry->owner, sizeof entry->owner, "%s", job->owner);
    snprintf(entry->kind, sizeof entry->kind, "%s", job->kind);
    snprintf(entry->strategy, sizeof entry->strategy, "%s", job->strategy);
    for (int i = 0; i < job->label_count; i++) {
        struct wpk_worker_label *label = &entry->labels[entry->label_count++];
        snprintf(label->name, sizeof label->name, "%s", job->labels[i].name);
        snprintf(label->value, sizeof label->value, "%s", job->labels[i].value);
    }
    entry->priority = job->priority;
    entry->threads = job->threads;
    entry->seed = job->seed;
    entry->candidates = (uint32_t)job->candidates;
    entry->time_ns = (uint64_t)job->seconds * UINT64_C(1000000000);
    entry->ops = calloc((size_t)job->op_count, sizeof *entry->ops);
    if (entry->ops == NULL) {
        return WPK_ENOMEM;
    }
    entry->op_count = (uint32_t)job->op_count;
    wpk_err err = fill_parameters(job, entry, diag);
    for (int i = 0; err == WPK_OK && i < job->op_count; i++) {
        err = fill_op(job, i, &entry->ops[i], diag);
    }
    return err;
}

wpk_err wpk_submission_decode(const char *text, size_t size, struct wpk_job_entry **out,
                              struct wpk_diag *diag)
{
    struct wpk_job job = {0};
    wpk_err err = wpk_job_decode(text, size, &job, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_job_entry *entry = calloc(1, sizeof *entry);
    err = entry != NULL ? fill(&job, entry, diag) : WPK_ENOMEM;
    wpk_job_fini(&job);
    if (err != WPK_OK) {
        wpk_job_entry_free(entry);
        return err;
    }
    *out = entry;
    return WPK_OK;
}

void wpk_submission_extents(const char *op, char out[WPK_EXTENTS_SIZE])
{
    struct wpk_program program = {0};
    struct wpk_fingerprint fingerprint;
    out[0] = '\0';
    if (wpk_program_parse(op, &program, NULL) == WPK_OK &&
        wpk_fingerprint(&program, &fingerprint) == WPK_OK) {
        memcpy(out, fingerprint.extents, sizeof fingerprint.extents);
    }
    wpk_program_fini(&program);
}
