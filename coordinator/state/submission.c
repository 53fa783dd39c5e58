/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/submission.h"

#include "common/crypto.h"
#include "coordinator/state/job.h"
#include "ir/cost.h"
#include "ir/notation/definition.h"
#include "ir/notation/notation.h"
#include "nest/reach.h"
#include "schema/job.h"
#include "search/back_end.h"
#include "search/mask.h"
#include "search/strategy/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

wpk_err wpk_op_identity_of(const struct wpk_program *asked, struct wpk_op_identity *out,
                           struct wpk_diag *diag)
{
    struct wpk_binding binding;
    struct wpk_cost cost = {0};
    struct wpk_buf text = {0};
    memset(out, 0, sizeof *out);
    wpk_err err = wpk_program_identity(asked, &out->program, &binding, &out->fingerprint);
    err = err == WPK_OK ? wpk_program_print(&out->program, &text) : err;
    err = err == WPK_OK ? wpk_buf_take(&text, &out->op, NULL) : err;
    err = err == WPK_OK ? wpk_binding_print(&binding, &text) : err;
    err = err == WPK_OK ? wpk_buf_take(&text, &out->binding, NULL) : err;
    wpk_buf_fini(&text);
    if (err != WPK_OK) {
        wpk_diag_set(diag, "the operator has no canonical form: %s", wpk_err_text(err));
        wpk_op_identity_fini(out);
        return err;
    }
    wpk_cost(&out->program, &cost);
    out->flops = cost.flops;
    out->bytes = cost.bytes_min;
    return WPK_OK;
}

void wpk_op_identity_fini(struct wpk_op_identity *identity)
{
    wpk_program_fini(&identity->program);
    free(identity->op);
    free(identity->binding);
    memset(identity, 0, sizeof *identity);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "gene=value;gene=value", sorted, so that their order in the file makes no difference. */
static wpk_err join_pins(char **pins, int count, struct wpk_job_op_state *op, struct wpk_diag *diag)
{
    struct wpk_buf text = {.size_max = WPK_PINS_TEXT_MAX - 1};
    qsort(pins, (size_t)count, sizeof *pins, compare_lines);
    for (int i = 0; i < count; i++) {
        wpk_buf_append_text(&text, i > 0 ? ";" : "");
        wpk_buf_append_text(&text, pins[i]);
    }
    wpk_err err = wpk_buf_take(&text, &op->pins, NULL);
    wpk_buf_fini(&text);
    if (err == WPK_ENOSPC) {
        return wpk_fail(diag, WPK_EINVAL, "the pins have more than %d bytes",
                        WPK_PINS_TEXT_MAX - 1);
    }
    return err;
}

static wpk_err translate_pin(const struct wpk_job_pin *pin, const struct wpk_program *asked,
                             const struct wpk_canonical_map *map, char **out, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    struct wpk_buf value = {0};
    wpk_err err = wpk_pin_canonical(asked, map, pin->gene, pin->value, &text, &value);
    wpk_buf_append_byte(&text, '=');
    wpk_buf_append(&text, value.data, value.size);
    err = err == WPK_OK ? wpk_buf_take(&text, out, NULL) : err;
    if (err == WPK_OK && strpbrk(*out, ";\n") != NULL) {
        err = wpk_fail(diag, WPK_EINVAL, "a ';' in a pin");
    }
    wpk_buf_fini(&text);
    wpk_buf_fini(&value);
    return err;
}

/* True if a sum reads values of a byte or two, which back ends convert in their own ways. */
static bool adds_narrow(const struct wpk_program *program)
{
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        if (load.stage->reduction == WPK_REDUCE_SUM && wpk_dtype_size(load.node->dtype) <= 2) {
            return true;
        }
    }
    return false;
}

/* A job that pins no back end searches with any for an operator that only one of them computes in
 * the output's memory, or whose operands are narrow. */
static bool wants_any_back_end(const struct wpk_job *job, const struct wpk_program *asked)
{
    bool some = false;
    for (int i = 0; wpk_back_end_name(i) != NULL; i++) {
        some = some ||
               ((wpk_back_ends_of(job->kind) & 1U << i) != 0 && wpk_back_end_has_scope_output(i));
    }
    for (int i = 0; i < job->pin_count; i++) {
        some = some && strcmp(job->pins[i].gene, WPK_BACK_END_GENE) != 0;
    }
    return some && (wpk_program_may_use_output(asked) || adds_narrow(asked));
}

static wpk_err fill_pins(const struct wpk_job *job, const struct wpk_program *asked,
                         struct wpk_job_op_state *op, struct wpk_diag *diag)
{
    struct wpk_canonical_map *map = WPK_DEMAND(malloc(sizeof *map));
    struct wpk_program canonical = {0};
    char *pins[WPK_JOB_PINS_MAX + 1] = {NULL};
    int count = job->pin_count;
    wpk_err err = count > 0 ? wpk_program_canonical_map(asked, &canonical, map) : WPK_OK;
    for (int i = 0; err == WPK_OK && i < job->pin_count; i++) {
        const struct wpk_job_pin *pin = &job->pins[i];
        if (strcmp(pin->gene, WPK_BACK_END_GENE) == 0 && !wpk_back_ends_known(pin->value)) {
            err = wpk_fail(diag, WPK_EINVAL, "'%s' is no list of back ends, such as halide-cpu+c",
                           pin->value);
            break;
        }
        err = translate_pin(&job->pins[i], asked, map, &pins[i], diag);
    }
    if (wants_any_back_end(job, asked)) {
        pins[count++] = WPK_DEMAND(strdup(WPK_BACK_END_GENE "=" WPK_BACK_ENDS_ANY));
    }
    err = err == WPK_OK && count > 0 ? join_pins(pins, count, op, diag) : err;
    for (int i = 0; i < count; i++) {
        free(pins[i]);
    }
    wpk_program_fini(&canonical);
    free(map);
    return err;
}

static wpk_err fill_op(const struct wpk_job *job, int index, struct wpk_job_op_state *op,
                       struct wpk_diag *diag)
{
    const struct wpk_job_op *asked = &job->ops[index];
    struct wpk_program program = {0};
    struct wpk_op_identity identity = {0};
    wpk_err err = wpk_job_op_program(job, index, &program, diag);
    err = err == WPK_OK ? wpk_op_identity_of(&program, &identity, diag) : err;
    if (err == WPK_OK) {
        snprintf(op->name, sizeof op->name, "%s", asked->name);
        snprintf(op->layouts, sizeof op->layouts, "%s", wpk_layouts_name(asked->layouts));
        wpk_accuracy_name(asked->accuracy, op->accuracy);
        op->conditions = asked->conditions;
        op->count = asked->count > 0 ? (uint32_t)asked->count : 1;
        memcpy(op->fingerprint, identity.fingerprint.exact, sizeof identity.fingerprint.exact);
        memcpy(op->family, identity.fingerprint.family, sizeof identity.fingerprint.family);
        op->flops = identity.flops;
        op->bytes = identity.bytes;
        op->op = identity.op;
        op->binding = identity.binding;
        identity.op = NULL;
        identity.binding = NULL;
        err = fill_pins(job, &program, op, diag);
    }
    wpk_op_identity_fini(&identity);
    wpk_program_fini(&program);
    return err;
}

_Static_assert(WPK_JOB_LABELS_MAX <= WPK_WORKER_LABELS_MAX, "a job's labels have room");

/* Take the job's prior, if it has one that its strategy can begin from. */
static wpk_err fill_prior(const struct wpk_job *job, struct wpk_job_entry *entry,
                          struct wpk_diag *diag)
{
    wpk_err err = wpk_prior_check(job->strategy, job->prior_text, diag);
    if (err == WPK_OK && job->prior_text == NULL && job->prior[0] != '\0') {
        err = wpk_fail(diag, WPK_EINVAL, "only wpkctl reads files; send the content as prior_text");
    }
    if (err != WPK_OK) {
        if (diag != NULL) {
            wpk_job_locate_search(job, job->prior_text != NULL ? "prior_text" : "prior", NULL,
                                  diag);
        }
        return err;
    }
    if (job->prior_text != NULL) {
        entry->prior_text = WPK_DEMAND(strdup(job->prior_text));
        wpk_crypto_sha256_hex(job->prior_text, strlen(job->prior_text), entry->prior);
    }
    return err;
}

static wpk_err fill(const struct wpk_job *job, struct wpk_job_entry *entry, struct wpk_diag *diag)
{
    if (wpk_strategy_find(job->strategy) == NULL) {
        wpk_diag_set(diag, "there is no strategy \"%s\", only: %s", job->strategy,
                     wpk_strategy_names());
        if (diag != NULL) {
            wpk_job_locate_search(job, "strategy", NULL, diag);
        }
        return WPK_ENOENT;
    }
    wpk_err checked = wpk_strategy_check_job(job, diag);
    checked = checked == WPK_OK ? fill_prior(job, entry, diag) : checked;
    if (checked != WPK_OK) {
        return checked;
    }
    memcpy(entry->options, job->options, sizeof entry->options);
    memcpy(entry->until, job->until, sizeof entry->until);
    snprintf(entry->name, sizeof entry->name, "%s", job->name);
    snprintf(entry->kind, sizeof entry->kind, "%s", job->kind);
    snprintf(entry->device, sizeof entry->device, "%s", job->device);
    snprintf(entry->strategy, sizeof entry->strategy, "%s", job->strategy);
    for (int i = 0; i < job->label_count; i++) {
        entry->labels[entry->label_count++] = job->labels[i];
    }
    entry->priority = job->priority;
    entry->threads = job->threads;
    entry->seed = job->seed;
    entry->candidates = (uint32_t)job->candidates;
    entry->total = (uint32_t)job->total;
    entry->time_ns = (uint64_t)job->seconds * UINT64_C(1000000000);
    entry->ops = WPK_DEMAND(calloc((size_t)job->op_count, sizeof *entry->ops));
    entry->op_count = (uint32_t)job->op_count;
    wpk_err err = WPK_OK;
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
    err = err == WPK_OK ? wpk_submission_make(&job, out, diag) : err;
    wpk_job_fini(&job);
    return err;
}

wpk_err wpk_submission_make(const struct wpk_job *job, struct wpk_job_entry **out,
                            struct wpk_diag *diag)
{
    struct wpk_job_entry *entry = WPK_DEMAND(calloc(1, sizeof *entry));
    wpk_err err = fill(job, entry, diag);
    if (err != WPK_OK) {
        wpk_job_entry_free(entry);
        return err;
    }
    *out = entry;
    return WPK_OK;
}

void wpk_submission_fingerprint(const char *op, struct wpk_fingerprint *out)
{
    struct wpk_program program = {0};
    if (wpk_program_parse(op, &program, NULL) != WPK_OK ||
        wpk_fingerprint(&program, out) != WPK_OK) {
        *out = (struct wpk_fingerprint){0};
    }
    wpk_program_fini(&program);
}
