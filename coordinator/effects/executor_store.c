/* SPDX-License-Identifier: Apache-2.0 */
/* Effects that are written. Each becomes a store write with a copy of what it needs of the state.
 * Data that lies in the effects' arena, or came with a message, lives as long as the batch and is
 * not copied. */
#include "coordinator/effects/executor_parts.h"

#include "coordinator/store/document.h"
#include "coordinator/store/history_job.h"

#include <string.h>

/* ---- jobs */

struct job_write {
    struct wpk_effect_write effect;
    struct wpk_job_entry job; /* with operators of its own, whose searches are not looked at */
    const char *document;     /* set */
};

static void perform_put_job(struct wpk_store_write *write, struct wpk_store *store)
{
    const struct job_write *mine = (const struct job_write *)write;
    wpk_history_put_job(store, &mine->job);
}

/* NULL stays NULL. */
static char *copy_text(struct wpk_executor *p, const char *text)
{
    return text != NULL ? wpk_batch_text(p->batch, text) : NULL;
}

static void put_job(struct wpk_executor *p, const struct wpk_effect *effect)
{
    struct job_write *write = wpk_executor_new_write(p, sizeof *write, perform_put_job, NULL);
    size_t size = effect->job->op_count * sizeof *effect->job->ops;
    write->job = *effect->job;
    write->job.ops = memcpy(wpk_batch_memory(p->batch, size), effect->job->ops, size);
    for (uint32_t i = 0; i < write->job.op_count; i++) {
        struct wpk_job_op_state *op = &write->job.ops[i];
        op->op = copy_text(p, op->op);
        op->pins = copy_text(p, op->pins);
        op->binding = copy_text(p, op->binding);
    }
}

static void perform_set_job(struct wpk_store_write *write, struct wpk_store *store)
{
    const struct job_write *mine = (const struct job_write *)write;
    wpk_history_set_job(store, &mine->job, mine->document);
}

/* From now on the store can say all that the state could. */
static void on_job_set(struct wpk_store_write *write, wpk_err err,
                       const struct wpk_diag *diag WPK_UNUSED)
{
    const struct job_write *mine = (const struct job_write *)write;
    /* A store write from before its end says nothing of it. */
    if (wpk_executor_is_current(write, err) && mine->job.finished_wall_ns != 0) {
        wpk_job_stored(mine->effect.executor->coordinator, mine->job.number);
    }
}

/* The document of a job that has ended is the last that is said of it from the state. */
static void set_job(struct wpk_executor *p, const struct wpk_effect *effect)
{
    struct job_write *write = wpk_executor_new_write(p, sizeof *write, perform_set_job, on_job_set);
    struct wpk_buf document = {0};
    if (effect->job->finished_wall_ns != 0) {
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        wpk_document_job(w, NULL, effect->job, wpk_executor_now_ns(p),
                         effect->job->finished_wall_ns);
        wpk_err err = wpk_json_finish(w, false, &document);
        WPK_ASSERT(err == WPK_OK); /* its size is bounded by the job's */
    }
    write->job = *effect->job;
    write->job.ops = NULL;
    write->document = wpk_batch_text(p->batch, wpk_buf_text(&document));
    wpk_buf_fini(&document);
}

struct op_write {
    struct wpk_effect_write effect;
    struct wpk_history_op_row op;
};

static void perform_set_op(struct wpk_store_write *write, struct wpk_store *store)
{
    wpk_history_set_op(store, &((const struct op_write *)write)->op);
}

static void set_op(struct wpk_executor *p, const struct wpk_effect *effect)
{
    const struct wpk_job_op_state *op = &effect->job->ops[effect->index];
    struct op_write *write = wpk_executor_new_write(p, sizeof *write, perform_set_op, NULL);
    write->op = (struct wpk_history_op_row){
        .job_number = effect->job->number,
        .position = effect->index,
        .search_id = op->search != NULL ? op->search->id : 0,
        .op = {.phase = op->phase, .kernel_id = op->kernel_id, .from_history = op->from_history}};
    memcpy(write->op.op.reason, op->reason, sizeof op->reason);
}

/* ---- searches and results */

struct progress_write {
    struct wpk_effect_write effect;
    struct wpk_history_progress progress;
};

static void perform_set_search(struct wpk_store_write *write, struct wpk_store *store)
{
    wpk_history_set_search(store, &((const struct progress_write *)write)->progress);
}

static void set_search(struct wpk_executor *p, const struct wpk_effect *effect)
{
    const struct wpk_search *search = effect->search;
    struct progress_write *write =
        wpk_executor_new_write(p, sizeof *write, perform_set_search, NULL);
    write->effect.write.search = search->handle;
    write->progress = (struct wpk_history_progress){
        .search_id = search->id,
        .elapsed_ns = wpk_search_elapsed_ns(search, wpk_executor_now_ns(p)),
        .ended_asks = search->ended_asks,
        .exhausted = search->exhausted,
        .anchor = search->anchor};
}

static struct wpk_history_worker copy_worker(struct wpk_executor *p,
                                             const struct wpk_worker *worker)
{
    struct wpk_history_worker copy = {0};
    if (worker != NULL) {
        copy.name = wpk_batch_text(p->batch, worker->hello.name);
        copy.instance = wpk_batch_text(p->batch, worker->hello.device.instance);
    }
    return copy;
}

struct result_write {
    struct wpk_effect_write effect;
    struct wpk_history_result result;
    const char *spent; /* a shared object that may go; NULL: none */
};

static void perform_put_trial(struct wpk_store_write *write, struct wpk_store *store)
{
    const struct result_write *mine = (const struct result_write *)write;
    wpk_history_put_trial(store, &mine->result);
    if (mine->spent != NULL) {
        wpk_history_spend_artifact(store, mine->spent);
    }
}

static void put_trial(struct wpk_executor *p, const struct wpk_effect *effect)
{
    struct result_write *write = wpk_executor_new_write(p, sizeof *write, perform_put_trial, NULL);
    write->effect.write.search = effect->search->handle;
    write->result = (struct wpk_history_result){
        .problem_id = effect->search->problem_id,
        .work = effect->work,
        .provider = effect->provider,
        .record = effect->record,
        .anchor = wpk_batch_text(p->batch, effect->search->anchor.sha256),
        .worker = copy_worker(p, effect->worker)};
    write->spent = p->artifacts_tight ? effect->spent : NULL;
    p->batch->result_count++;
}

struct times_write {
    struct wpk_effect_write effect;
    struct wpk_history_contender contender;
    struct wpk_timing timing;
    const struct wpk_record *record; /* of its verification; NULL: it is of the final */
};

static void perform_put_times(struct wpk_store_write *write, struct wpk_store *store)
{
    const struct times_write *mine = (const struct times_write *)write;
    if (mine->record != NULL) {
        wpk_history_put_verified(store, &mine->contender, mine->record);
    } else {
        wpk_history_put_times(store, &mine->contender, &mine->timing);
    }
}

static void put_times(struct wpk_executor *p, const struct wpk_effect *effect)
{
    const struct wpk_final_entry *entry = effect->entry;
    struct times_write *write = wpk_executor_new_write(p, sizeof *write, perform_put_times, NULL);
    write->effect.write.search = effect->search->handle;
    write->contender = (struct wpk_history_contender){
        .problem_id = effect->search->problem_id,
        .search_id = effect->search->id,
        .provider = wpk_batch_text(p->batch, entry->provider),
        .candidate = wpk_batch_text(p->batch, entry->candidate),
        .artifact_sha256 = wpk_batch_text(p->batch, entry->artifact_sha256),
        .worker = copy_worker(p, effect->worker),
        .outside =
            effect->record != NULL && effect->record->outcome == WPK_OUTCOME_OK &&
            !wpk_accuracy_admits_fresh(effect->search->accuracy, effect->record->times_direct)};
    write->timing = entry->timing;
    write->record = effect->record;
}

/* ---- owners and workers */

struct owner_write {
    struct wpk_effect_write effect;
    struct wpk_owner_event owner;
};

static void perform_set_owner(struct wpk_store_write *write, struct wpk_store *store)
{
    wpk_history_set_owner(store, &((const struct owner_write *)write)->owner);
}

static void set_owner(struct wpk_executor *p, const struct wpk_effect *effect)
{
    struct owner_write *write = wpk_executor_new_write(p, sizeof *write, perform_set_owner, NULL);
    write->owner = effect->owner;
    write->owner.name = wpk_batch_text(p->batch, effect->owner.name);
}

struct admin_write {
    struct wpk_effect_write effect;
    const char *name;
    enum wpk_admin_state state;
    const char *reason;
};

static void perform_set_admin_state(struct wpk_store_write *write, struct wpk_store *store)
{
    const struct admin_write *mine = (const struct admin_write *)write;
    wpk_history_set_admin_state(store, mine->name, mine->state, mine->reason);
}

static void set_admin_state(struct wpk_executor *p, const struct wpk_effect *effect)
{
    struct admin_write *write =
        wpk_executor_new_write(p, sizeof *write, perform_set_admin_state, NULL);
    write->name = wpk_batch_text(p->batch, effect->admin.worker);
    write->state = effect->admin.state;
    write->reason = wpk_batch_text(p->batch, effect->admin.reason);
}

bool wpk_executor_store(struct wpk_executor *p, const struct wpk_effect *effect)
{
    static void (*const writes[])(struct wpk_executor * p, const struct wpk_effect *effect) = {
        [WPK_EFFECT_PUT_JOB] = put_job,     [WPK_EFFECT_SET_JOB] = set_job,
        [WPK_EFFECT_SET_OP] = set_op,       [WPK_EFFECT_SET_SEARCH] = set_search,
        [WPK_EFFECT_PUT_TRIAL] = put_trial, [WPK_EFFECT_PUT_TIMES] = put_times,
        [WPK_EFFECT_SET_OWNER] = set_owner, [WPK_EFFECT_SET_ADMIN_STATE] = set_admin_state,
    };
    if (effect->kind >= sizeof writes / sizeof writes[0] || writes[effect->kind] == NULL) {
        return false;
    }
    writes[effect->kind](p, effect);
    return true;
}
