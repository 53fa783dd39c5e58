/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/document.h"

#include "coordinator/state/budget.h"
#include "coordinator/state/worker.h"
#include "coordinator/store/history_job.h"
#include "search/back_end.h"

#include <stdio.h>
#include <string.h>

#define NS_PER_S 1000000000

/* ---- jobs */

/* The fastest of a kind by the final, from when that was held: its times are what the result shows.
 * NULL before. */
static const struct wpk_final_entry *find_finalist(const struct wpk_search *search,
                                                   enum wpk_entry_kind kind)
{
    const struct wpk_final_entry *best = NULL;
    for (uint32_t i = 0; i < search->entry_count; i++) {
        const struct wpk_final_entry *entry = &search->entries[i];
        if (entry->kind == kind && entry->timed && !entry->rejected &&
            (best == NULL || entry->timing.median_ns < best->timing.median_ns)) {
            best = entry;
        }
    }
    return best;
}

static void put_brief(struct wpk_json_writer *w, const char *key, const char *provider,
                      const char *candidate, const uint64_t ns[3])
{
    wpk_json_begin_object(w, key);
    wpk_json_put_text(w, "provider", provider);
    if (candidate[0] != '\0') {
        wpk_document_put_algorithm(w, candidate, "");
    }
    wpk_json_put_text(w, "candidate", candidate);
    wpk_document_put_time(w, ns[0], ns[1], ns[2]);
    wpk_json_end(w);
}

static void put_finalist(struct wpk_json_writer *w, const char *key,
                         const struct wpk_final_entry *entry)
{
    const struct wpk_timing *timing = &entry->timing;
    put_brief(w, key, entry->provider, entry->candidate,
              (const uint64_t[]){timing->median_ns, timing->min_ns, timing->mad_ns});
}

static void put_own_best(struct wpk_json_writer *w, const struct wpk_search *search)
{
    const struct wpk_final_entry *finalist = find_finalist(search, WPK_ENTRY_OWN);
    char provider[WPK_BACK_END_MAX];
    uint64_t ns[3];
    const struct wpk_best *leader = wpk_heat_leader(search, ns);
    if (finalist != NULL) {
        put_finalist(w, "best", finalist);
    } else if (leader == NULL) {
        wpk_json_put_null(w, "best");
    } else {
        wpk_back_end_provider(search->key.providers, leader->candidate, provider);
        put_brief(w, "best", provider, leader->candidate, ns);
    }
}

static void put_baseline(struct wpk_json_writer *w, const struct wpk_search *search)
{
    const struct wpk_final_entry *finalist = find_finalist(search, WPK_ENTRY_VENDOR);
    const struct wpk_work_item *best = NULL;
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        const struct wpk_work_item *vendor = &search->vendors[i];
        if (vendor->standing == WPK_STANDING_ENDED && vendor->trial.outcome == WPK_OUTCOME_OK &&
            (best == NULL || vendor->trial.median_ns < best->trial.median_ns)) {
            best = vendor;
        }
    }
    if (finalist != NULL) {
        put_finalist(w, "baseline", finalist);
    } else if (best != NULL) {
        const struct wpk_trial_summary *trial = &best->trial;
        put_brief(w, "baseline", best->text, "",
                  (const uint64_t[]){trial->median_ns, trial->min_ns, trial->mad_ns});
    } else {
        wpk_json_put_null(w, "baseline");
    }
}

static void put_candidates(struct wpk_json_writer *w, const struct wpk_job_op_state *op,
                           uint32_t wanted)
{
    static const struct wpk_op_past none;
    const struct wpk_search *search = op->search;
    const struct wpk_op_past *past = op->past != NULL ? op->past : &none;
    wpk_json_begin_object(w, "candidates");
    wpk_json_put_int(w, "measured", search != NULL ? search->ok_count : past->ok_count);
    wpk_json_put_int(w, "failed", search != NULL ? search->failed_count : past->failed_count);
    wpk_json_put_int(w, "known", search != NULL ? search->known_count : past->known_count);
    wpk_json_put_int(w, "running", search != NULL ? search->leased_count : 0);
    wpk_json_put_int(w, "wanted", wanted);
    wpk_json_end(w);
}

static void put_op(struct wpk_json_writer *w, const struct wpk_coordinator *coordinator,
                   const struct wpk_job_entry *job, uint32_t index)
{
    const struct wpk_job_op_state *op = &job->ops[index];
    const struct wpk_search *search = op->search;
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "name", op->name);
    wpk_json_put_text(w, "fingerprint", op->fingerprint);
    wpk_json_put_raw(w, "binding", op->binding);
    wpk_json_put_text(w, "accuracy", op->accuracy);
    wpk_json_put_text(w, "conditions", wpk_conditions_name(op->conditions));
    const char *device_class = search != NULL ? search->key.device_class : "";
    device_class = op->past != NULL ? op->past->device_class : device_class;
    wpk_json_put_text(w, "device", device_class);
    wpk_json_put_text(w, "phase", wpk_phase_name(op->phase));
    wpk_json_put_text(w, "reason", op->reason);
    char blocked[WPK_REASON_MAX] = ""; /* why no worker is given any of it; "" while one may be */
    if (coordinator != NULL && !wpk_phase_ended(op->phase)) {
        wpk_bind_blocked(coordinator, job, index, blocked);
    }
    wpk_json_put_text(w, "blocked", blocked);
    wpk_json_put_bool(w, "from_history", op->from_history);
    wpk_json_put_real(w, "space_size_log2", search != NULL ? search->size_log2 : 0);
    put_candidates(w, op, wpk_share_budget(op));
    if (search != NULL) {
        put_own_best(w, search);
        put_baseline(w, search);
    } else {
        wpk_json_put_raw(w, "best", op->past != NULL ? op->past->best : NULL);
        wpk_json_put_raw(w, "baseline", op->past != NULL ? op->past->baseline : NULL);
    }
    wpk_json_end(w);
}

/* Why a job waits, if no worker is there for it. */
static void put_reason(struct wpk_json_writer *w, const struct wpk_coordinator *coordinator,
                       const struct wpk_job_entry *job)
{
    for (uint32_t i = 0; coordinator != NULL && job->finished_wall_ns == 0 && i < job->op_count;
         i++) {
        char reason[WPK_REASON_MAX];
        if (!wpk_phase_ended(job->ops[i].phase) && wpk_bind_blocked(coordinator, job, i, reason)) {
            wpk_json_put_text(w, "reason", reason);
            return;
        }
    }
    wpk_json_put_text(w, "reason", job->reason);
}

static int64_t seconds_left(const struct wpk_job_entry *job, uint64_t now_ns)
{
    uint64_t left_ns = 0;
    for (uint32_t i = 0; i < job->op_count; i++) {
        const struct wpk_job_op_state *op = &job->ops[i];
        if (wpk_phase_ended(op->phase)) {
            continue;
        }
        uint64_t spent = op->search != NULL ? wpk_search_elapsed_ns(op->search, now_ns) : 0;
        left_ns += spent < job->time_ns ? job->time_ns - spent : 0;
    }
    return (int64_t)(left_ns / NS_PER_S);
}

void wpk_document_job(struct wpk_json_writer *w, const struct wpk_coordinator *coordinator,
                      const struct wpk_job_entry *job, uint64_t now_ns, uint64_t wall_ns)
{
    uint64_t until = job->finished_wall_ns != 0 ? job->finished_wall_ns : wall_ns;
    uint64_t busy = job->started_wall_ns != 0 && until > job->started_wall_ns
                        ? until - job->started_wall_ns
                        : 0;
    wpk_json_put_text(w, "id", job->id);
    wpk_json_put_text(w, "name", job->name);
    wpk_json_put_text(w, "owner", job->owner);
    wpk_json_put_int(w, "priority", job->priority);
    wpk_json_put_text(w, "state", wpk_job_state_name(job->state));
    put_reason(w, coordinator, job);
    wpk_json_put_wall(w, "created", job->created_wall_ns);
    wpk_json_put_wall(w, "started", job->started_wall_ns);
    wpk_json_put_wall(w, "finished", job->finished_wall_ns);
    wpk_json_put_real(w, "seconds", (double)(busy / 1000000) / 1000);
    wpk_json_put_int(w, "seconds_left", job->finished_wall_ns != 0 ? 0 : seconds_left(job, now_ns));
    wpk_json_begin_object(w, "budget");
    wpk_json_put_int(w, "candidates", job->candidates);
    if (job->total > 0) {
        wpk_json_put_int(w, "total", job->total);
    }
    wpk_json_put_int(w, "seconds", (int64_t)(job->time_ns / NS_PER_S));
    wpk_json_end(w);
    wpk_json_begin_array(w, "ops");
    for (uint32_t i = 0; i < job->op_count; i++) {
        put_op(w, coordinator, job, i);
    }
    wpk_json_end(w);
}

/* An operator as its job calls it. */
struct document_op {
    const char *name;
    const char *binding; /* JSON; NULL: not known */
};

/* A kernel's document behind what a job says of it. */
static void put_served(struct wpk_json_writer *w, uint64_t id, const struct document_op *op,
                       bool from_history, const char *document)
{
    struct wpk_json_writer *front = wpk_json_writer_new_object();
    struct wpk_buf text = {0};
    char id_text[24];
    snprintf(id_text, sizeof id_text, "k%llu", (unsigned long long)id);
    wpk_json_put_text(front, "id", id_text);
    wpk_json_put_text(front, "name", op->name);
    wpk_json_put_raw(front, "binding", op->binding);
    wpk_json_put_bool(front, "from_history", from_history);
    wpk_err err = wpk_json_finish(front, false, &text);
    if (err == WPK_OK && document[0] == '{') {
        wpk_buf_truncate(&text, text.size - 1);
        wpk_buf_append_byte(&text, ',');
        wpk_buf_append_text(&text, document + 1);
    }
    wpk_json_put_raw(w, NULL, wpk_buf_text(&text));
    wpk_buf_fini(&text);
}

/* The kernel of an operator, if it has one. */
static void put_kernel_of(struct wpk_json_writer *w, struct wpk_store *store,
                          const struct document_op *op, uint64_t kernel_id, bool from_history)
{
    struct wpk_buf document = {0};
    if (kernel_id != 0 && wpk_history_kernel(store, kernel_id, &document)) {
        put_served(w, kernel_id, op, from_history, wpk_buf_text(&document));
    }
    wpk_buf_fini(&document);
}

static void put_stored_kernels(struct wpk_json_writer *w, struct wpk_store *store, uint64_t number,
                               const struct document_op *ops, uint32_t count)
{
    wpk_json_begin_array(w, "kernels");
    for (uint32_t i = 0; i < count; i++) {
        struct wpk_history_op op;
        if (wpk_history_op(store, number, i, &op)) {
            put_kernel_of(w, store, &ops[i], op.kernel_id, op.from_history);
        }
    }
    wpk_json_end(w);
}

/* The operators of a stored job; how many, or 0 when the document is not as we wrote it. Bindings
 * go to `bindings`. */
static uint32_t read_ops(struct wpk_json_reader *r, struct document_op *ops, uint32_t max,
                         struct wpk_buf *bindings)
{
    uint32_t count = 0;
    wpk_json_enter_array(r, "ops");
    while (count < max && wpk_json_next(r)) {
        ops[count].name = wpk_json_get_text(r, "name", WPK_JOB_TEXT_MAX);
        if (wpk_json_kind_of(r, "binding") == WPK_JSON_OBJECT) {
            wpk_json_get_raw(r, "binding", &bindings[count]);
            ops[count].binding = wpk_buf_text(&bindings[count]);
        }
        count++;
    }
    wpk_json_leave(r);
    return wpk_json_status(r) == WPK_OK ? count : 0;
}

/* A document with one more member; both are objects as we print them: compact. */
static wpk_err print_with_kernels(const char *document, struct wpk_json_writer *w,
                                  struct wpk_buf *out)
{
    size_t size = strlen(document);
    WPK_ASSERT(size > 2 && document[size - 1] == '}');
    struct wpk_buf kernels = {0};
    wpk_err err = wpk_json_print(w, false, &kernels);
    if (err == WPK_OK) {
        wpk_buf_append(out, document, size - 1);
        wpk_buf_append_byte(out, ',');
        wpk_buf_append(out, kernels.data + 1, kernels.size - 1);
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&kernels);
    return err;
}

static wpk_err ended_job(struct wpk_store *store, const char *document, uint64_t number,
                         struct wpk_buf *out)
{
    struct document_op ops[WPK_JOB_OPS_MAX] = {{NULL, NULL}};
    struct wpk_buf bindings[WPK_JOB_OPS_MAX] = {{0}};
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(document, strlen(document), WPK_BUF_SIZE_MAX_DEFAULT, &r, NULL);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    put_stored_kernels(w, store, number, ops, read_ops(r, ops, WPK_JOB_OPS_MAX, bindings));
    err = print_with_kernels(document, w, out);
    wpk_json_writer_free(w);
    wpk_json_close(r);
    for (int i = 0; i < WPK_JOB_OPS_MAX; i++) {
        wpk_buf_fini(&bindings[i]);
    }
    return err;
}

static wpk_err live_job(const struct wpk_coordinator *coordinator, struct wpk_store *store,
                        const struct wpk_job_entry *job, uint64_t now_ns, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_document_job(w, coordinator, job, now_ns, wpk_store_wall_ns(store));
    /* Not as the store has the operators: what has just ended is on its way there. The kernels
     * themselves are there before anybody refers to them. */
    wpk_json_begin_array(w, "kernels");
    for (uint32_t i = 0; i < job->op_count; i++) {
        const struct wpk_job_op_state *op = &job->ops[i];
        const struct document_op named = {op->name, op->binding};
        put_kernel_of(w, store, &named, op->kernel_id, op->from_history);
    }
    wpk_json_end(w);
    return wpk_json_finish(w, false, out);
}

wpk_err wpk_document_job_whole(const struct wpk_coordinator *coordinator, struct wpk_store *store,
                               const char *id, uint64_t now_ns, struct wpk_buf *out)
{
    const struct wpk_job_entry *job =
        coordinator != NULL ? wpk_coordinator_job(coordinator, id) : NULL;
    struct wpk_buf document = {0};
    uint64_t number = 0;
    bool stored = wpk_history_job_document(store, id, &document, &number);
    wpk_err err = stored ? WPK_EBUSY : WPK_ENOENT;
    if (stored && document.size > 0) {
        err = ended_job(store, wpk_buf_text(&document), number, out);
    } else if (job != NULL) {
        err = live_job(coordinator, store, job, now_ns, out);
    }
    wpk_buf_fini(&document);
    return err;
}

/* ---- workers */

/* An operator's admin state comes before the worker's own. */
static const char *worker_state(const struct wpk_worker *worker)
{
    if (worker->admin_state == WPK_ADMIN_STATE_QUARANTINE) {
        return "quarantined";
    }
    if (worker->draining || worker->admin_state == WPK_ADMIN_STATE_DRAIN) {
        return "draining";
    }
    return worker->peer == 0 ? "lost" : "ready";
}

/* Behind the first one, as the providers of their trials read. */
static void put_back_ends(struct wpk_json_writer *w, const struct wpk_hello *hello, bool wanted)
{
    for (uint32_t i = 0; wanted && i < hello->back_end_count; i++) {
        const struct wpk_message_back_end *back_end = &hello->back_ends[i];
        char entry[WPK_BACK_END_MAX];
        wpk_back_end_entry(back_end->name, back_end->version, entry);
        if (back_end->missing[0] == '\0') {
            wpk_json_put_text(w, NULL, entry);
        }
    }
}

static void put_missing(struct wpk_json_writer *w, const struct wpk_hello *hello)
{
    wpk_json_begin_array(w, "missing");
    for (uint32_t i = 0; i < hello->back_end_count; i++) {
        const struct wpk_message_back_end *back_end = &hello->back_ends[i];
        char why[WPK_PROVIDER_NAME_MAX + WPK_BACK_END_REASON_MAX + 2];
        snprintf(why, sizeof why, "%s: %s", back_end->name, back_end->missing);
        if (back_end->missing[0] != '\0') {
            wpk_json_put_text(w, NULL, why);
        }
    }
    wpk_json_end(w);
}

static void put_hello(struct wpk_json_writer *w, const struct wpk_hello *hello)
{
    wpk_json_put_text(w, "instance", hello->device.instance);
    wpk_json_put_text(w, "environment", hello->environment);
    if (wpk_device_is_cuda(&hello->device)) {
        char driver[32];
        snprintf(driver, sizeof(driver), "%d.%d", hello->device.cuda.driver / 1000,
                 hello->device.cuda.driver % 1000 / 10);
        wpk_json_put_int(w, "memory_bytes", hello->device.cuda.memory_bytes);
        wpk_json_put_text(w, "driver", driver);
    } else {
        wpk_json_put_int(w, "cache_bytes", hello->device.cpu.l3_bytes);
    }
    wpk_json_put_real(w, "peak_flops_per_s", hello->device.peak_flops_per_s);
    wpk_json_put_real(w, "peak_bytes_per_s", hello->device.peak_bytes_per_s);
    wpk_json_put_text(w, "program", hello->program);
    wpk_json_put_int(w, "slots", hello->slots);
    wpk_json_begin_array(w, "roles");
    if ((hello->roles & WPK_WORKER_BUILDS) != 0) {
        wpk_json_put_text(w, NULL, "build");
    }
    if ((hello->roles & WPK_WORKER_RUNS) != 0) {
        wpk_json_put_text(w, NULL, "run");
    }
    wpk_json_end(w);
    wpk_json_begin_array(w, "providers");
    for (uint32_t i = 0; i < hello->provider_count; i++) {
        wpk_json_put_text(w, NULL, hello->providers[i].name);
        put_back_ends(w, hello, i == 0);
    }
    wpk_json_end(w);
    put_missing(w, hello);
    wpk_json_begin_object(w, "labels");
    for (uint32_t i = 0; i < hello->label_count; i++) {
        wpk_json_put_text(w, hello->labels[i].name, hello->labels[i].value);
    }
    wpk_json_end(w);
}

void wpk_document_worker(struct wpk_json_writer *w, const struct wpk_worker *worker,
                         uint64_t now_ns)
{
    uint64_t silent_ns =
        !worker->polling && now_ns > worker->heard_ns ? now_ns - worker->heard_ns : 0;
    char outlier[WPK_REASON_MAX], throttled[WPK_REASON_MAX], disturbed[WPK_REASON_MAX];
    bool set = worker->admin_state != WPK_ADMIN_STATE_NONE;
    wpk_outlier_reason(worker, outlier);
    snprintf(throttled, sizeof throttled,
             "its GPU is throttled: its clocks were lowered in %d of the last %d samples",
             worker->throttled_count, worker->sample_count);
    const char *reason = set && worker->admin_reason != NULL ? worker->admin_reason
                         : set                               ? ""
                         : worker->failure[0] != '\0'        ? worker->failure
                         : worker->stuck ? "what it runs takes too long: it is given nothing else"
                         : worker->throttled_count > 0              ? throttled
                         : wpk_steadiness_reason(worker, disturbed) ? disturbed
                                                                    : outlier;
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "name", worker->hello.name);
    wpk_json_put_text(w, "state", worker_state(worker));
    wpk_json_put_text(w, "reason", reason);
    wpk_json_put_bool(w, "throttled", worker->throttled_count > 0);
    wpk_json_put_bool(w, "disturbed", worker->steadiness.since_ns != 0);
    wpk_json_put_text(w, "device", worker->device_class);
    put_hello(w, &worker->hello);
    wpk_json_put_int(w, "running", worker->lease_count);
    wpk_json_put_int(w, "heard_seconds_ago", (int64_t)(silent_ns / NS_PER_S));
    wpk_json_end(w);
}
