/* SPDX-License-Identifier: Apache-2.0 */
/* Binding: an operator gets a search once there is a device for it. The search is found, or made
 * and opened; operators that ask the same share one.
 *
 * A few operators of a job are worked on at a time, so that the next one uses the workers that the
 * end of the one before leaves idle. The searches of some more are opened ahead, so that operators
 * whose answer is in the history end at once. */
#include "coordinator/state/claim.h"

#include "coordinator/state/effect.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/job.h"
#include "coordinator/state/model.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker_class.h"
#include "search/back_end.h"

#include <stdio.h>
#include <string.h>

/* ---- back ends */

/* Copy the list that the operator's job pins, "" where it pins none. */
static void list_pinned(const struct wpk_job_op_state *op, char out[WPK_KEY_TEXT_MAX])
{
    static const char gene[] = WPK_BACK_END_GENE "=";
    const char *at = op->pins != NULL ? op->pins : "";
    while (*at != '\0' && !wpk_begins(at, gene)) {
        at += strcspn(at, ";");
        at += *at == ';';
    }
    at += *at != '\0' ? strlen(gene) : 0;
    snprintf(out, WPK_KEY_TEXT_MAX, "%.*s", (int)strcspn(at, ";"), at);
}

/* True if workers of the worker class may build for the job's searches in the timing class, which
 * has no back ends added. */
static bool builds_for(const struct wpk_worker_class *worker_class, const struct wpk_job_entry *job,
                       const char *class_text)
{
    unsigned roles = worker_class->hello.roles;
    if (worker_class->available_count == 0 || (roles & WPK_WORKER_BUILDS) == 0) {
        return false;
    }
    return (roles & WPK_WORKER_RUNS) == 0 ? wpk_worker_class_builds_for(worker_class, class_text)
                                          : strcmp(worker_class->timing->text, class_text) == 0 &&
                                                wpk_worker_class_suits(worker_class, job);
}

/* How many workers build by all of the list but its first entry. */
static uint32_t count_workers(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                              const char *class_text, const char *back_ends)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->worker_class_count; i++) {
        const struct wpk_worker_class *worker_class = c->worker_classes[i];
        bool offers = builds_for(worker_class, job, class_text) &&
                      wpk_worker_class_offers(worker_class, back_ends);
        count += offers ? worker_class->available_count : 0;
    }
    return count;
}

/* "+ENTRY" of the most workers, of equally many the first by name; "": nobody offers it. */
static void find_version(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                         const char *class_text, const char *name, char out[WPK_BACK_END_MAX + 1])
{
    uint32_t most = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < c->worker_class_count; i++) {
        const struct wpk_worker_class *worker_class = c->worker_classes[i];
        char list[WPK_KEY_TEXT_MAX], entry[WPK_BACK_END_MAX], added[WPK_BACK_END_MAX + 1];
        wpk_worker_class_list_back_ends(&worker_class->hello, list);
        if (list[0] == '\0' || !builds_for(worker_class, job, class_text) ||
            !wpk_back_ends_find(list + 1, name, entry)) {
            continue;
        }
        snprintf(added, sizeof added, "+%s", entry);
        uint32_t count = count_workers(c, job, class_text, added);
        if (count > most || (count == most && strcmp(added, out) < 0)) {
            most = count;
            memcpy(out, added, sizeof added);
        }
    }
}

/* Print the text of a timing class with the back ends of the operator's search added. Of a back end
 * in several versions it is that of the most workers. False: the job pins others than the first,
 * and no worker offers one of them. */
static bool add_offer(const struct wpk_coordinator *c, const struct wpk_job_op_state *op,
                      const char *class_text, char out[WPK_TIMING_CLASS_TEXT_MAX])
{
    char pinned[WPK_KEY_TEXT_MAX], added[WPK_KEY_TEXT_MAX] = "";
    list_pinned(op, pinned);
    unsigned wanted = wpk_back_ends_read(pinned);
    bool any = strcmp(pinned, WPK_BACK_ENDS_ANY) == 0;
    uint32_t builders = any ? count_workers(c, op->job, class_text, "") : 0;
    for (int i = 1 + wpk_back_end_first(op->job->kind); wpk_back_end_name(i) != NULL; i++) {
        size_t used = strlen(added);
        char entry[WPK_BACK_END_MAX + 1] = "";
        if ((wanted & 1U << i) != 0) {
            find_version(c, op->job, class_text, wpk_back_end_name(i), entry);
        }
        if (any && count_workers(c, op->job, class_text, entry) < builders) {
            entry[0] = '\0';
        }
        snprintf(added + used, sizeof added - used, "%s", entry);
    }
    wpk_timing_class_add(class_text, added, out);
    return pinned[0] == '\0' || (wanted & 1U << wpk_back_end_first(op->job->kind)) != 0 ||
           added[0] != '\0';
}

bool wpk_offer_stands(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                      const char *class_text)
{
    char stripped[WPK_TIMING_CLASS_TEXT_MAX];
    const char *back_ends = wpk_timing_class_back_ends(class_text);
    wpk_timing_class_strip(class_text, stripped);
    return back_ends[strcspn(back_ends, "+;")] != '+' ||
           count_workers(c, job, stripped, back_ends) > 0;
}

#define OPENED_MAX 256 /* searches that one step opens; what is left over waits for the next tick */
#define WORKED_MIN 2   /* operators of a job at a time; with many workers, one for each four */
#define WORKED_MAX 64
#define AHEAD 6 /* opened besides */

/* ---- devices */

/* True if the operator is bound to the worker class's device, and workers offer its back ends. */
static bool is_its_own(const struct wpk_coordinator *c, const struct wpk_job_op_state *op,
                       const struct wpk_worker_class *worker_class)
{
    char text[WPK_TIMING_CLASS_TEXT_MAX];
    if (op->bound == NULL) {
        return false;
    }
    wpk_timing_class_strip(op->bound, text);
    return strcmp(text, worker_class->timing->text) == 0 && wpk_offer_stands(c, op->job, op->bound);
}

/* The worker class whose device it is bound to: the one that it had before a restart, or else the
 * largest, with the back ends of its search. NULL: there is none. */
static const struct wpk_worker_class *choose(const struct wpk_coordinator *c,
                                             const struct wpk_job_op_state *op,
                                             char text[WPK_TIMING_CLASS_TEXT_MAX], bool *its_own)
{
    const struct wpk_worker_class *best = NULL;
    *its_own = false;
    for (uint32_t i = 0; i < c->worker_class_count; i++) {
        const struct wpk_worker_class *worker_class = c->worker_classes[i];
        char with[WPK_TIMING_CLASS_TEXT_MAX];
        if (worker_class->available_count == 0 || !wpk_worker_class_suits(worker_class, op->job)) {
            continue;
        }
        *its_own = is_its_own(c, op, worker_class);
        if (*its_own) {
            memcpy(text, op->bound, strlen(op->bound) + 1);
            return worker_class;
        }
        if ((best == NULL || worker_class->available_count > best->available_count) &&
            add_offer(c, op, worker_class->timing->text, with)) {
            best = worker_class;
            memcpy(text, with, sizeof with);
        }
    }
    return best;
}

static bool has_come_back(const struct wpk_coordinator *c, const struct wpk_job_entry *job)
{
    return job->restored_ns != 0 &&
           c->event->now_ns < job->restored_ns + WPK_RETURN_MS * UINT64_C(1000000);
}

/* After a start, an operator waits for the device that it had; not for ever. */
static bool is_returning(const struct wpk_coordinator *c, const struct wpk_job_op_state *op)
{
    return op->bound != NULL && has_come_back(c, op->job);
}

/* ---- operators and their searches */

/* The device that its space is derived from: of the first of its class that comes. */
static void give_device(struct wpk_coordinator *c, struct wpk_search *search,
                        const struct wpk_worker_class *worker_class)
{
    if (worker_class != NULL && !wpk_search_has_device(search)) {
        search->device = worker_class->hello.device;
        wpk_mark_search(c, search, WPK_SEARCH_READY);
    }
}

/* NULL when this step opens no more. */
static struct wpk_search *find_or_open(struct wpk_coordinator *c, const struct wpk_job_op_state *op,
                                       const char *class_text)
{
    struct wpk_search_key key;
    char key_hash[WPK_ID_MAX];
    wpk_search_key_make(op, class_text, &key);
    wpk_search_key_hash(&key, key_hash);
    struct wpk_search *search = wpk_table_get_text(&c->searches_by_key, key_hash);
    if (search != NULL) {
        return search;
    }
    if (c->opened_count == OPENED_MAX) {
        return NULL;
    }
    c->opened_count++;
    search = wpk_search_new(c, &key, key_hash);
    snprintf(search->family, sizeof search->family, "%s", op->family);
    search->op = WPK_DEMAND(strdup(op->op));
    search->flops = op->flops;
    search->bytes = op->bytes;
    wpk_effect_add(c, WPK_EFFECT_OPEN_SEARCH)->search = search;
    return search;
}

/* False: it has to be tried again. */
static bool bind_op(struct wpk_coordinator *c, struct wpk_job_op_state *op,
                    const struct wpk_worker_class *worker_class, const char *class_text)
{
    struct wpk_search *search = find_or_open(c, op, class_text);
    if (search == NULL) {
        return false;
    }
    give_device(c, search, worker_class);
    wpk_job_op_enter(c, op, search);
    return true;
}

/* Find a search for the operator, or for one whose device did not come back another one. False: it
 * waits, and is tried again with the next tick or the next worker class. */
static bool bind(struct wpk_coordinator *c, struct wpk_job_op_state *op)
{
    char text[WPK_TIMING_CLASS_TEXT_MAX];
    bool its_own;
    const struct wpk_worker_class *worker_class = choose(c, op, text, &its_own);
    bool returning = is_returning(c, op) && !its_own;
    if (op->search != NULL && its_own) {
        give_device(c, op->search, worker_class);
        return true;
    }
    c->bind_again = c->bind_again || returning;
    if (op->search != NULL && !returning && worker_class != NULL) {
        wpk_job_op_leave(c, op);
        wpk_job_op_set(c, op, WPK_PHASE_WAITING, "");
    }
    if (op->search != NULL || (worker_class == NULL && !returning)) {
        return false;
    }
    bool bound = bind_op(c, op, returning ? NULL : worker_class, returning ? op->bound : text);
    c->bind_again = c->bind_again || !bound;
    return bound && !returning;
}

/* ---- jobs */

uint32_t wpk_bind_worked_max(const struct wpk_coordinator *c, const struct wpk_job_entry *job)
{
    uint32_t count = c->worker_count / 4;
    count = count < WORKED_MIN ? WORKED_MIN : count;
    return count > WORKED_MAX || job->total > 0 ? WORKED_MAX : count; /* they share a budget */
}

/* After a start a job has all searches open that it had before, however few workers are here yet:
 * results of them are on their way, and only a search that is open takes them. */
void wpk_bind_job(struct wpk_coordinator *c, struct wpk_job_entry *job)
{
    uint32_t worked_max = wpk_bind_worked_max(c, job);
    uint32_t live = 0;
    bool unbound = false;
    bool back = has_come_back(c, job);
    for (uint32_t i = 0; i < job->op_count && (back || live < worked_max + AHEAD); i++) {
        struct wpk_job_op_state *op = &job->ops[i];
        if (op->bound == NULL && live >= worked_max + AHEAD) {
            continue;
        }
        bool is_bound = op->search != NULL && wpk_search_has_device(op->search);
        /* Of one that is paused no search is begun; but after a restart what is known of those that
         * were is there at once, and results that are still on their way are taken. */
        bool may_bind =
            op->job->state != WPK_JOB_PAUSED || (op->search == NULL && is_returning(c, op));
        if (!wpk_phase_ended(op->phase) && !is_bound && may_bind) {
            unbound = !bind(c, op) || unbound;
        }
        if (wpk_phase_ended(op->phase)) {
            continue;
        }
        bool worked = live < worked_max && job->state != WPK_JOB_PAUSED;
        if (op->search != NULL && !worked) {
            wpk_claim_drop(c, op);
        } else if (op->search != NULL && op->claims[0] == NULL) {
            wpk_claim_add(c, op);
            wpk_mark_search(c, op->search, WPK_SEARCH_COURSE);
        }
        live++;
    }
    unbound = unbound && job->finished_wall_ns == 0;
    if (unbound != job->unbound) {
        job->unbound = unbound;
        c->unbound_count += unbound ? 1 : UINT32_MAX; /* one less */
    }
}

/* ---- why an operator waits */

struct census {
    uint32_t kind;   /* workers of the kind, */
    uint32_t device; /* of the class that the job is for, too, */
    uint32_t cores;  /* with enough cores, too, */
    uint32_t labels;
    uint32_t runs;
    uint32_t bound;     /* of the device that the operator is bound to, */
    uint32_t available; /* that may be given work */
    uint32_t with_label[WPK_WORKER_LABELS_MAX];
};

static void count_worker_class(const struct wpk_worker_class *worker_class,
                               const struct wpk_job_op_state *op, const char *class_text,
                               struct census *census)
{
    const struct wpk_job_entry *job = op->job;
    if (strcmp(worker_class->hello.device.kind, job->kind) != 0) {
        return;
    }
    census->kind += worker_class->worker_count;
    if (!wpk_worker_class_is_for(worker_class, job)) {
        return;
    }
    census->device += worker_class->worker_count;
    if (worker_class->hello.device.core_count < job->threads) {
        return;
    }
    census->cores += worker_class->worker_count;
    for (uint32_t i = 0; i < job->label_count; i++) {
        bool has = wpk_worker_class_labels_cover(&worker_class->hello, &job->labels[i], 1);
        census->with_label[i] += has ? worker_class->worker_count : 0;
    }
    if (!wpk_worker_class_labels_cover(&worker_class->hello, job->labels, job->label_count)) {
        return;
    }
    census->labels += worker_class->worker_count;
    if ((worker_class->hello.roles & WPK_WORKER_RUNS) == 0) {
        return;
    }
    census->runs += worker_class->worker_count;
    if (class_text[0] == '\0' || strcmp(class_text, worker_class->timing->text) == 0) {
        census->bound += worker_class->worker_count;
        census->available += worker_class->available_count;
    }
}

static void describe(const struct wpk_job_entry *job, const struct wpk_search *search,
                     const struct census *census, char out[WPK_REASON_MAX])
{
    if (census->kind == 0) {
        snprintf(out, WPK_REASON_MAX, "no worker with kind %s", job->kind);
    } else if (census->device == 0) {
        snprintf(out, WPK_REASON_MAX, "no worker with device %.200s", job->device);
    } else if (census->cores == 0) {
        snprintf(out, WPK_REASON_MAX, "no worker with kind %s and %d core%s", job->kind,
                 job->threads, job->threads == 1 ? "" : "s");
    } else if (census->labels == 0) {
        snprintf(out, WPK_REASON_MAX, "no worker has all of the job's labels");
        for (uint32_t i = 0; i < job->label_count; i++) {
            if (census->with_label[i] == 0) {
                snprintf(out, WPK_REASON_MAX, "no worker has label %s=%s", job->labels[i].name,
                         job->labels[i].value);
                return;
            }
        }
    } else if (census->runs == 0) {
        snprintf(out, WPK_REASON_MAX, "its workers only build, and none runs what is built");
    } else if (census->bound == 0) {
        snprintf(out, WPK_REASON_MAX, "no worker with %.120s and %.80s", search->key.device_class,
                 search->key.environment);
    } else {
        snprintf(out, WPK_REASON_MAX, "its workers are drained, quarantined or away");
    }
}

static bool has_builder(const struct wpk_job_op_state *op)
{
    const struct wpk_claim *claim = op->claims[WPK_QUEUE_BUILD];
    const struct wpk_link *link = claim != NULL ? claim->owner_queue->queue->links : NULL;
    while (link != NULL && link->worker_class->available_count == 0) {
        link = link->queue_next;
    }
    return claim == NULL || link != NULL;
}

bool wpk_bind_blocked(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                      uint32_t index, char out[WPK_REASON_MAX])
{
    const struct wpk_job_op_state *op = &job->ops[index];
    const struct wpk_search *search = op->search;
    char class_text[WPK_TIMING_CLASS_TEXT_MAX] = "";
    char pinned[WPK_KEY_TEXT_MAX];
    bool its_own;
    struct census census = {0};
    out[0] = '\0';
    if (wpk_phase_ended(op->phase) || job->finished_wall_ns != 0) {
        return false;
    }
    if (c->halted) {
        snprintf(out, WPK_REASON_MAX, "the store cannot be written");
        return true;
    }
    if (search != NULL) {
        wpk_search_key_class(&search->key, class_text);
    }
    for (uint32_t i = 0; i < c->worker_class_count; i++) {
        count_worker_class(c->worker_classes[i], op, class_text, &census);
    }
    if (census.available == 0) {
        describe(job, search, &census, out);
        return true;
    }
    list_pinned(op, pinned);
    if (search == NULL && pinned[0] != '\0' && choose(c, op, class_text, &its_own) == NULL) {
        snprintf(out, WPK_REASON_MAX, "no worker offers the back end %.80s", pinned);
        return true;
    }
    if (!has_builder(op)) {
        const char *added = strchr(search->key.providers, '+');
        int size = added != NULL ? (int)strcspn(added + 1, ";") : 0;
        snprintf(out, WPK_REASON_MAX, "no worker builds for %.120s%s%.*s", search->key.device_class,
                 size > 0 ? " by " : "", size < 80 ? size : 80, size > 0 ? added + 1 : "");
        return true;
    }
    if (c->builds_held && (op->phase == WPK_PHASE_WAITING || op->phase == WPK_PHASE_SEARCHING)) {
        snprintf(out, WPK_REASON_MAX,
                 "the artifacts have reached their quota: nothing is built until there is room");
        return true;
    }
    return false;
}
