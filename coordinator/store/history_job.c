/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/history_job.h"

#include "schema/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing */

static void put_op(struct wpk_store *store, uint64_t number, uint32_t position,
                   const struct wpk_job_op_state *op)
{
    wpk_store_run(
        store,
        "INSERT INTO job_op (job_number, position, search_id, kernel_id, phase, reason,"
        " from_history, name, count, layouts, accuracy, conditions, fingerprint, family, op,"
        " flops, bytes, pins, binding, epoch)"
        " VALUES (?, ?, NULL, NULL, ?, '', 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "iittittttttrrtti", (int64_t)number, (int64_t)position, wpk_phase_name(op->phase), op->name,
        (int64_t)op->count, op->layouts, op->accuracy, wpk_conditions_name(op->conditions),
        op->fingerprint, op->family, op->op, op->flops, op->bytes, op->pins != NULL ? op->pins : "",
        op->binding != NULL ? op->binding : "", wpk_store_epoch(store));
}

void wpk_history_put_job(struct wpk_store *store, const struct wpk_job_entry *job)
{
    char seed[24];
    struct wpk_buf labels = {0};
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)job->seed);
    for (uint32_t i = 0; i < job->label_count; i++) { /* neither has control characters */
        wpk_buf_printf(&labels, "%s=%s\n", job->labels[i].name, job->labels[i].value);
    }
    wpk_store_run(
        store,
        "INSERT INTO job (number, id, name, owner, priority, state, reason,"
        " document, created_at, started_at, finished_at, kind, device, threads, labels,"
        " strategy, options, prior, seed, candidates, total, time_ns, until, epoch)"
        " VALUES (?, ?, ?, ?, ?, ?, '', '', ?, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "itttitittitttttiiiti", (int64_t)job->number, job->id, job->name, job->owner,
        (int64_t)job->priority, wpk_job_state_name(job->state), (int64_t)job->created_wall_ns,
        job->kind, job->device, (int64_t)job->threads, wpk_buf_text(&labels), job->strategy,
        job->options, job->prior, seed, (int64_t)job->candidates, (int64_t)job->total,
        (int64_t)job->time_ns, job->until, wpk_store_epoch(store));
    wpk_buf_fini(&labels);
    if (job->prior_text != NULL) {
        wpk_store_run(store,
                      "INSERT OR IGNORE INTO prior (sha256, text, created_at, epoch)"
                      " VALUES (?, ?, ?, ?)",
                      "ttii", job->prior, job->prior_text, (int64_t)wpk_store_wall_ns(store),
                      wpk_store_epoch(store));
    }
    for (uint32_t i = 0; i < job->op_count; i++) {
        put_op(store, job->number, i, &job->ops[i]);
    }
}

void wpk_history_set_job(struct wpk_store *store, const struct wpk_job_entry *job,
                         const char *document)
{
    wpk_store_run(store,
                  "UPDATE job SET state = ?, reason = ?, document = ?, started_at = ?,"
                  " finished_at = ? WHERE number = ?",
                  "tttiii", wpk_job_state_name(job->state), job->reason, document,
                  (int64_t)job->started_wall_ns, (int64_t)job->finished_wall_ns,
                  (int64_t)job->number);
    if (job->finished_wall_ns != 0) { /* its document says the rest */
        wpk_store_run(store, "UPDATE job_op SET op = '', binding = '' WHERE job_number = ?", "i",
                      (int64_t)job->number);
    }
}

void wpk_history_set_op(struct wpk_store *store, const struct wpk_history_op_row *row)
{
    wpk_store_run(store,
                  "UPDATE job_op SET search_id = ?, kernel_id = ?, phase = ?, reason = ?,"
                  " from_history = ? WHERE job_number = ? AND position = ?",
                  "IIttiii", (int64_t)row->search_id, (int64_t)row->op.kernel_id,
                  wpk_phase_name(row->op.phase), row->op.reason, (int64_t)row->op.from_history,
                  (int64_t)row->job_number, (int64_t)row->position);
}

/* ---- live jobs */

uint64_t wpk_history_job_number_next(struct wpk_store *store)
{
    uint64_t next = 1;
    wpk_rows_take(wpk_store_query(store, "SELECT COALESCE(MAX(number), 0) + 1 FROM job", ""), "u",
                  &next);
    return next;
}

uint32_t wpk_history_live_jobs(struct wpk_store *store, uint64_t *out, uint32_t max)
{
    uint32_t count = 0;
    struct wpk_rows *rows = wpk_store_query(store,
                                            "SELECT number FROM job WHERE state IN ('queued',"
                                            " 'running', 'paused') ORDER BY number LIMIT ?",
                                            "i", (int64_t)max);
    while (wpk_rows_next(rows)) {
        out[count++] = (uint64_t)wpk_rows_int(rows, 0);
    }
    return count;
}

static void read_labels(const char *text, struct wpk_job_entry *job)
{
    while (*text != '\0' && job->label_count < WPK_WORKER_LABELS_MAX) {
        struct wpk_worker_label *label = &job->labels[job->label_count++];
        size_t name_size = strcspn(text, "=\n");
        size_t size = strcspn(text, "\n");
        snprintf(label->name, sizeof label->name, "%.*s", (int)name_size, text);
        snprintf(label->value, sizeof label->value, "%.*s",
                 name_size < size ? (int)(size - name_size - 1) : 0, text + name_size + 1);
        text += size + (text[size] == '\n');
    }
}

/* Columns of the query in wpk_history_read_job. */
static struct wpk_job_entry *read_job(const struct wpk_rows *rows, uint64_t number)
{
    struct wpk_job_entry *job = WPK_DEMAND(calloc(1, sizeof *job));
    const char *labels, *seed;
    bool paused;
    wpk_rows_get(rows, "tttduuftdstswuttttw", job->id, sizeof job->id, job->name, sizeof job->name,
                 job->owner, sizeof job->owner, &job->priority, &job->created_wall_ns,
                 &job->started_wall_ns, &paused, job->kind, sizeof job->kind, &job->threads,
                 &labels, job->strategy, sizeof job->strategy, &seed, &job->candidates,
                 &job->time_ns, job->device, sizeof job->device, job->options, sizeof job->options,
                 job->until, sizeof job->until, job->prior, sizeof job->prior, &job->total);
    job->number = number;
    job->state = paused                      ? WPK_JOB_PAUSED
                 : job->started_wall_ns != 0 ? WPK_JOB_RUNNING
                                             : WPK_JOB_QUEUED;
    job->seed = strtoull(seed, NULL, 10);
    read_labels(labels, job);
    return job;
}

static void read_op(const struct wpk_rows *rows, struct wpk_job_op_state *op)
{
    const char *conditions;
    wpk_rows_get(rows, "tttsttcrrCCw", op->name, sizeof op->name, op->layouts, sizeof op->layouts,
                 op->accuracy, sizeof op->accuracy, &conditions, op->fingerprint,
                 sizeof op->fingerprint, op->family, sizeof op->family, &op->op, &op->flops,
                 &op->bytes, &op->pins, &op->binding, &op->count);
    if (wpk_conditions_parse(conditions, &op->conditions) != WPK_OK) {
        op->conditions = WPK_CONDITIONS_WARM;
    }
}

static void read_ops(struct wpk_store *store, struct wpk_job_entry *job)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT name, layouts, accuracy, conditions, fingerprint, family, op, flops, bytes, pins,"
        " binding, count FROM job_op WHERE job_number = ? ORDER BY position",
        "i", (int64_t)job->number);
    job->ops = WPK_DEMAND(calloc(WPK_JOB_OPS_MAX, sizeof *job->ops));
    while (job->op_count < WPK_JOB_OPS_MAX && wpk_rows_next(rows)) {
        read_op(rows, &job->ops[job->op_count++]);
    }
    wpk_rows_close(rows);
    if (job->op_count > 0) {
        struct wpk_job_op_state *fitting = realloc(job->ops, job->op_count * sizeof *job->ops);
        job->ops = fitting != NULL ? fitting : job->ops;
    }
}

struct wpk_job_entry *wpk_history_read_job(struct wpk_store *store, uint64_t number)
{
    struct wpk_job_entry *job = NULL;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT id, name, owner, priority, created_at, started_at, state = 'paused', kind,"
        " threads, labels, strategy, seed, candidates, time_ns, device, options, until, prior, "
        "total"
        " FROM job WHERE number = ?",
        "i", (int64_t)number);
    if (wpk_rows_next(rows)) {
        job = read_job(rows, number);
    }
    wpk_rows_close(rows);
    if (job != NULL) {
        read_ops(store, job);
    }
    return job;
}

/* ---- their operators' progress */

/* The timing class that the operator's search is bound to, as wpk_timing_class_text() has it. */
static char *read_class(struct wpk_store *store, uint64_t job_number, uint32_t position)
{
    char *text = NULL;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT p.device_class || char(10) || p.environment || char(10) || s.providers"
        " FROM job_op o JOIN search s ON s.id = o.search_id JOIN problem p ON p.id = s.problem_id"
        " WHERE o.job_number = ? AND o.position = ?",
        "ii", (int64_t)job_number, (int64_t)position);
    wpk_rows_take(rows, "c", &text);
    return text;
}

/* A contender of a kernel's document, with what a job says of one. */
#define CONTENDER(key)                                                                             \
    " CASE json_type(k.document, '$." key "') WHEN 'object' THEN json_object('provider',"          \
    " json_extract(k.document, '$." key ".provider'), 'algorithm',"                                \
    " json_extract(k.document, '$." key ".algorithm'), 'candidate',"                               \
    " json_extract(k.document, '$." key ".candidate'), 'time_ns',"                                 \
    " json_extract(k.document, '$." key ".time_ns')) END"

/* The report on an operator that has ended, from its kernel; NULL: it never had a search. If
 * nothing works there is no kernel, and all asks have failed. */
static struct wpk_op_past *read_past(struct wpk_store *store, uint64_t job_number,
                                     uint32_t position)
{
    struct wpk_op_past *past = NULL;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT p.device_class, coalesce(json_extract(k.document, '$.candidates.measured'), 0),"
        " coalesce(json_extract(k.document, '$.candidates.failed'),"
        " iif(o.phase = 'failed', s.ended_asks, 0)), s.known_count," CONTENDER("own") "," CONTENDER(
            "baseline") " FROM job_op o JOIN search s ON s.id = o.search_id JOIN problem p ON"
                        " p.id = s.problem_id LEFT JOIN kernel k ON k.id = o.kernel_id AND"
                        " json_valid(k.document) WHERE o.job_number = ? AND o.position = ?",
        "ii", (int64_t)job_number, (int64_t)position);
    if (wpk_rows_next(rows)) {
        past = WPK_DEMAND(calloc(1, sizeof *past));
        wpk_rows_get(rows, "CwwwCC", &past->device_class, &past->ok_count, &past->failed_count,
                     &past->known_count, &past->best, &past->baseline);
    }
    wpk_rows_close(rows);
    return past;
}

/* The columns phase, kernel_id, from_history, reason. */
static struct wpk_history_op read_state(const struct wpk_rows *rows)
{
    struct wpk_history_op op = {.kernel_id = (uint64_t)wpk_rows_int(rows, 1),
                                .from_history = wpk_rows_int(rows, 2) != 0};
    for (int phase = 0; phase < WPK_PHASE_COUNT; phase++) {
        if (strcmp(wpk_phase_name((enum wpk_phase)phase), wpk_rows_text(rows, 0)) == 0) {
            op.phase = (enum wpk_phase)phase;
        }
    }
    snprintf(op.reason, sizeof op.reason, "%s", wpk_rows_text(rows, 3));
    return op;
}

void wpk_history_read_progress(struct wpk_store *store, struct wpk_job_entry *job)
{
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT phase, kernel_id, from_history, reason, search_id FROM job_op"
                        " WHERE job_number = ? ORDER BY position",
                        "i", (int64_t)job->number);
    for (uint32_t i = 0; i < job->op_count && wpk_rows_next(rows); i++) {
        struct wpk_job_op_state *op = &job->ops[i];
        struct wpk_history_op state = read_state(rows);
        op->phase = state.phase;
        op->kernel_id = state.kernel_id;
        op->from_history = state.from_history;
        memcpy(op->reason, state.reason, sizeof op->reason);
        bool has_search = wpk_rows_int(rows, 4) != 0;
        if (has_search && wpk_phase_ended(op->phase)) {
            op->past = read_past(store, job->number, i);
        } else if (has_search) {
            op->bound = read_class(store, job->number, i);
        }
    }
    wpk_rows_close(rows);
}

bool wpk_history_op(struct wpk_store *store, uint64_t job_number, uint32_t position,
                    struct wpk_history_op *out)
{
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT phase, kernel_id, from_history, reason FROM job_op"
                        " WHERE job_number = ? AND position = ?",
                        "ii", (int64_t)job_number, (int64_t)position);
    bool found = wpk_rows_next(rows);
    if (found) {
        *out = read_state(rows);
    }
    wpk_rows_close(rows);
    return found;
}

/* ---- ended or not */

wpk_err wpk_history_op_names(struct wpk_store *store, const char *id, struct wpk_arena *arena,
                             const char **names, uint32_t *count, uint64_t *number)
{
    wpk_err err = WPK_OK;
    struct wpk_rows *rows = wpk_store_query(store,
                                            "SELECT j.number, o.name FROM job j JOIN job_op o ON"
                                            " o.job_number = j.number WHERE j.id = ?"
                                            " ORDER BY o.position",
                                            "t", id);
    *count = 0;
    while (err == WPK_OK && *count < WPK_JOB_OPS_MAX && wpk_rows_next(rows)) {
        *number = (uint64_t)wpk_rows_int(rows, 0);
        names[*count] = wpk_arena_copy_text(arena, wpk_rows_text(rows, 1));
        err = names[(*count)++] != NULL ? WPK_OK : WPK_ENOMEM;
    }
    wpk_rows_close(rows);
    return err == WPK_OK && *count == 0 ? WPK_ENOENT : err;
}

bool wpk_history_job_state(struct wpk_store *store, const char *id, enum wpk_job_state *out)
{
    struct wpk_rows *rows = wpk_store_query(store, "SELECT state FROM job WHERE id = ?", "t", id);
    bool found = wpk_rows_next(rows);
    for (int i = 0; found && i < WPK_JOB_STATE_COUNT; i++) {
        if (strcmp(wpk_job_state_name((enum wpk_job_state)i), wpk_rows_text(rows, 0)) == 0) {
            *out = (enum wpk_job_state)i;
        }
    }
    wpk_rows_close(rows);
    return found;
}

bool wpk_history_job_document(struct wpk_store *store, const char *id, struct wpk_buf *out,
                              uint64_t *number)
{
    return wpk_rows_take(
        wpk_store_query(store, "SELECT document, number FROM job WHERE id = ?", "t", id), "bu", out,
        number);
}

bool wpk_history_gone_job(struct wpk_store *store, const char *id, struct wpk_buf *out, char *says,
                          size_t size)
{
    return wpk_rows_take(
        wpk_store_query(store,
                        "SELECT document, printf('job %s of %s ended at %s and was pruned at %s',"
                        " id, document ->> 'owner', document ->> 'finished', document ->> 'pruned')"
                        " FROM gone_job WHERE id = ?",
                        "t", id),
        "bt", out, says, size);
}

uint64_t wpk_history_list_jobs(struct wpk_store *store, uint64_t before, const char *state,
                               int page_size, wpk_history_listed_fn fn, void *user)
{
    uint64_t last = 0;
    int count = 0;
    int64_t limit = (int64_t)page_size + 1;
    /* By the index of states: those few that run are not looked for among all that ever did. */
    struct wpk_rows *rows =
        state[0] == '\0'
            ? wpk_store_query(store,
                              "SELECT number, id, state, document FROM job WHERE number < ?"
                              " ORDER BY number DESC LIMIT ?",
                              "ii", (int64_t)before, limit)
            : wpk_store_query(store,
                              "SELECT number, id, state, document FROM job WHERE state = ?"
                              " AND number < ? ORDER BY number DESC LIMIT ?",
                              "tii", state, (int64_t)before, limit);
    while (wpk_rows_next(rows)) {
        if (count++ == page_size) {
            wpk_rows_close(rows);
            return last;
        }
        last = (uint64_t)wpk_rows_int(rows, 0);
        fn(user, last, wpk_rows_text(rows, 1), wpk_rows_text(rows, 2), wpk_rows_text(rows, 3));
    }
    return 0;
}
