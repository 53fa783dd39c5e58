/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch: polls that wait are given work.
 *
 * Work items are chosen one by one. Of the owners with work for the worker, the one with the
 * smallest virtual time is next; of its claims, the first by priority, age and position. A search
 * gives out vendors' baselines first, then the plain kernel, candidates that were built apart, asks
 * that were taken back, and new asks; after these its final and its verification. A poll is
 * answered as soon as there is anything for it. */
#include "coordinator/state/asks.h"
#include "coordinator/state/budget.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/final.h"
#include "coordinator/state/job.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/model.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker_class.h"

#include <string.h>

#define MS UINT64_C(1000000)

/* ---- polls */

uint64_t wpk_poll_lost_ns(const struct wpk_worker *worker)
{
    uint64_t silent_ns = worker->heard_ns + WPK_LEASE_MS * MS;
    uint64_t gone_ns = worker->gone_ns + WPK_GONE_MS * MS;
    if (worker->failure[0] != '\0') {
        return worker->heard_ns + WPK_FAILED_MS * MS;
    }
    return worker->gone_ns != 0 && gone_ns < silent_ns ? gone_ns : silent_ns;
}

/* One that is too early costs a look at the worker, and most are never too late. */
void wpk_poll_set_timer(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    uint64_t due_ns = worker->polling ? worker->poll_until_ns : wpk_poll_lost_ns(worker);
    if (worker->timer.place == 0 || worker->timer.due_ns > due_ns) {
        wpk_timer_set(&c->worker_timers, &worker->timer, due_ns);
    }
}

void wpk_poll_answer(struct wpk_coordinator *c, struct wpk_worker *worker,
                     const struct wpk_message *message)
{
    WPK_ASSERT(worker->polling);
    wpk_reply_send(c, worker->poll_address, message);
    wpk_worker_class_unwait(worker);
    worker->polling = false;
    worker->heard_ns = c->event->now_ns;
    wpk_poll_set_timer(c, worker);
}

void wpk_poll_answer_empty(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    wpk_poll_answer(c, worker, wpk_reply_new(c, WPK_MESSAGE_WORK, worker->session));
}

/* Operators of an answer, before the last one: with all else it has to fit into a message. */
#define OP_BYTES_MAX (WPK_MESSAGE_SIZE_MAX / 2)

/* ---- a batch of work for one poll */

struct batch {
    struct wpk_worker *worker;
    struct wpk_message *message;
    uint32_t max;
    size_t op_bytes;            /* of the operators' texts */
    struct wpk_search *awaited; /* its strategy is asked: the rest comes with its answer */
};

/* The effects hold what is said until it is encoded, but the search may go before that. */
static uint32_t op_index(struct wpk_coordinator *c, struct batch *batch,
                         const struct wpk_search *search)
{
    struct wpk_message *message = batch->message;
    for (uint32_t i = 0; i < message->op_count; i++) {
        if (message->ops[i].text == search->op) {
            return i;
        }
    }
    if (message->ops == NULL) {
        message->ops = wpk_effect_memory(c, batch->max, sizeof *message->ops);
    }
    batch->op_bytes += strlen(search->op);
    message->ops[message->op_count] =
        (struct wpk_message_op){.text = search->op, .layouts = search->key.layouts};
    return message->op_count++;
}

static uint32_t target_index(struct wpk_coordinator *c, struct batch *batch,
                             const struct wpk_search *search)
{
    struct wpk_message *message = batch->message;
    for (uint32_t i = 0; i < message->target_count; i++) {
        if (memcmp(&message->targets[i], &search->device, sizeof search->device) == 0) {
            return i;
        }
    }
    if (message->targets == NULL) {
        message->targets = wpk_effect_memory(c, batch->max, sizeof *message->targets);
    }
    message->targets[message->target_count] = search->device;
    return message->target_count++;
}

static struct wpk_work *add_work(struct wpk_coordinator *c, struct batch *batch,
                                 const struct wpk_claim *claim, wpk_work_id id)
{
    struct wpk_message *message = batch->message;
    struct wpk_search *search = claim->search;
    if (message->work == NULL) {
        message->work = wpk_effect_memory(c, batch->max, sizeof *message->work);
    }
    const struct wpk_lease *lease =
        wpk_lease_take(c, search, id, batch->worker, claim->owner_queue->flow);
    const struct wpk_work_item *item = wpk_search_work_item(search, id);
    struct wpk_work *work = &message->work[message->work_count++];
    *work = (struct wpk_work){.id = id,
                              .lease = lease->number,
                              .stage = lease->stage,
                              .attempt = item->attempts,
                              .op = op_index(c, batch, search),
                              .artifact_sha256 = "",
                              .anchor_sha256 = "",
                              .provider = "",
                              .candidate = "",
                              .policy = search->policy,
                              .accuracy = search->accuracy};
    if (lease->stage == WPK_STAGE_BUILD) {
        work->target = target_index(c, batch, search);
    } else if (lease->stage == WPK_STAGE_RUN) {
        work->artifact_sha256 = wpk_effect_text(c, item->built->artifact_sha256);
        work->build_ns = item->built->build_ns;
    }
    for (struct wpk_job_op_state *op = search->unstarted ? search->ops : NULL; op != NULL;
         op = op->next) {
        wpk_job_started(c, op->job); /* all that share the search */
    }
    search->unstarted = false;
    return work;
}

/* ---- work items */

static void add_final(struct wpk_coordinator *c, struct batch *batch, const struct wpk_claim *claim)
{
    const struct wpk_search *search = claim->search;
    wpk_work_id id = {search->id, WPK_WORK_FINAL, search->final_number};
    struct wpk_work *work = add_work(c, batch, claim, id);
    work->round_count = search->heat ? WPK_HEAT_ROUNDS : wpk_final_rounds(search);
    for (uint32_t i = 0; i < search->entry_count; i++) {
        work->contenders[i].provider = search->entries[i].provider;
        work->contenders[i].artifact_sha256 = search->entries[i].artifact_sha256;
    }
    work->contender_count = search->entry_count;
}

static void add_verify(struct wpk_coordinator *c, struct batch *batch,
                       const struct wpk_claim *claim)
{
    const struct wpk_search *search = claim->search;
    wpk_work_id id = {search->id, WPK_WORK_VERIFY, search->verify_number};
    struct wpk_work *work = add_work(c, batch, claim, id);
    work->provider = search->entries[search->verifying].provider;
    work->candidate = search->verify.text;
    work->keep_artifact = true;
    /* Measured again and longer: a worker that remembers the first time does not answer from it. */
    work->policy.sample_count *= 2;
    work->policy.race_ratio = 0;
}

static void add_plain(struct wpk_coordinator *c, struct batch *batch, const struct wpk_claim *claim)
{
    const struct wpk_search *search = claim->search;
    wpk_work_id id = {search->id, WPK_WORK_PLAIN, search->plain.number};
    struct wpk_work *work = add_work(c, batch, claim, id);
    work->provider = wpk_search_key_provider(c, search, "");
    work->keep_artifact = true;
    work->policy.threads = 1;
    work->policy.race_ratio = 0;
    work->accuracy = WPK_ACCURACY_STRICT;
}

static void add_trial(struct wpk_coordinator *c, struct batch *batch, const struct wpk_claim *claim,
                      uint32_t number)
{
    const struct wpk_search *search = claim->search;
    wpk_work_id id = {search->id, WPK_WORK_TRIAL, number};
    struct wpk_work *work = add_work(c, batch, claim, id);
    /* Raced against the last that would still get into the final, whose artifacts are kept. */
    static const struct wpk_trial_summary none;
    const struct wpk_trial_summary *incumbent = search->best_count >= WPK_FINAL_OWN_MAX
                                                    ? &search->best[WPK_FINAL_OWN_MAX - 1].trial
                                                    : &none;
    work->candidate = wpk_asks_get(search, number)->text;
    work->provider = wpk_search_key_provider(c, search, work->candidate);
    work->incumbent_ns = incumbent->median_ns;
    work->keep_artifact = incumbent->median_ns == 0;
    if (search->anchor.now[0] != '\0') {
        work->anchor_sha256 = wpk_effect_text(c, search->anchor.now);
        work->incumbent_ratio = incumbent->anchor_ratio / search->anchor.ratio;
    }
}

/* Candidates that the strategy is asked for together: as many as such polls of all workers want of
 * each search, else they wait in turns for a commit each. */
static uint32_t count_ahead(const struct batch *batch, const struct wpk_claim *claim)
{
    uint32_t wanted = batch->worker->worker_class->available_count * batch->max;
    uint32_t share = wanted / claim->owner_queue->claim_count;
    uint32_t leased = claim->search->leased_count;
    return share > leased + leased / 2 ? share - leased : leased / 2;
}

/* One work item that can be built; or an ASK for more, which is waited for. An ask whose last
 * attempt this device lost is left to another one, while other work is left here. */
static void add_to_build(struct wpk_coordinator *c, struct batch *batch,
                         const struct wpk_claim *claim)
{
    struct wpk_search *search = claim->search;
    if ((wpk_plain_ready(search) & 1U << WPK_QUEUE_BUILD) != 0) {
        add_plain(c, batch, claim);
        return;
    }
    uint32_t ahead = count_ahead(batch, claim);
    uint32_t number = wpk_asks_next(search, &search->open, batch->worker);
    if (number == WPK_OPEN_END) {
        /* Wait for the answer of the strategy. */
        uint32_t room = batch->max - batch->message->work_count;
        if (wpk_search_want(c, search, room > ahead ? room : ahead)) {
            batch->awaited = search;
            search->promised_count += room;
        }
        number = batch->awaited == NULL ? search->open.first : WPK_OPEN_END;
    }
    if (number != WPK_OPEN_END) {
        add_trial(c, batch, claim, number);
        /* So that a fleet does not wait for each commit: a quarter of what is out lies ready. */
        if (search->open.count < search->leased_count / 4) {
            wpk_search_want(c, search, ahead);
        }
    }
}

static void add_to_run(struct wpk_coordinator *c, struct batch *batch,
                       const struct wpk_claim *claim)
{
    struct wpk_search *search = claim->search;
    if (search->phase == WPK_SEARCH_PHASE_FINALS || wpk_heat_is_open(search)) {
        add_final(c, batch, claim);
        return;
    }
    if (search->phase == WPK_SEARCH_PHASE_VERIFYING) {
        add_verify(c, batch, claim);
        return;
    }
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        if (search->vendors[i].standing == WPK_STANDING_OPEN) {
            wpk_work_id id = {search->id, WPK_WORK_VENDOR, i};
            add_work(c, batch, claim, id)->provider = search->vendors[i].text;
            return;
        }
    }
    if ((wpk_plain_ready(search) & 1U << WPK_QUEUE_RUN) != 0) {
        add_plain(c, batch, claim);
        return;
    }
    uint32_t number = wpk_asks_next(search, &search->built, batch->worker);
    add_trial(c, batch, claim, number != WPK_OPEN_END ? number : search->built.first);
}

/* ---- whose turn it is */

/* The owner queue's first claim that the worker may work on; NULL: none. */
static struct wpk_claim *first_of(const struct wpk_owner_queue *owner_queue,
                                  const struct wpk_worker *worker)
{
    for (uint32_t i = 0; i < owner_queue->ready_count; i++) {
        if (!wpk_final_excludes(owner_queue->ready[i]->search, worker)) {
            return owner_queue->ready[i];
        }
    }
    return NULL;
}

/* Of equal virtual times, or of one owner: by rank; of the same one, what is built is run first. */
static bool comes_before(const struct wpk_claim *a, const struct wpk_claim *b)
{
    if (wpk_claim_before(a, b) || wpk_claim_before(b, a)) {
        return wpk_claim_before(a, b);
    }
    return a->owner_queue->queue->stage < b->owner_queue->queue->stage;
}

/* True if the queue is for builds, and builds are held because artifacts have no room. */
static bool is_held(const struct wpk_coordinator *c, const struct wpk_work_queue *queue)
{
    return c->builds_held && queue->stage == WPK_QUEUE_BUILD;
}

static struct wpk_claim *choose(const struct wpk_coordinator *c, const struct wpk_worker *worker)
{
    struct wpk_claim *best = NULL;
    uint64_t best_ns = UINT64_MAX; /* virtual time of its owner */
    for (const struct wpk_link *link = worker->worker_class->links; link != NULL;
         link = link->worker_class_next) {
        bool runs = !worker->steadiness.only_builds || link->queue->stage == WPK_QUEUE_BUILD;
        for (uint32_t i = 0; runs && i < link->queue->ready_count && !is_held(c, link->queue);
             i++) {
            const struct wpk_owner_queue *owner_queue = link->queue->ready[i];
            uint64_t ns = wpk_fair_payer(worker->worker_class, owner_queue->flow)->virtual_ns;
            if (ns > best_ns) {
                continue;
            }
            struct wpk_claim *claim = first_of(owner_queue, worker);
            if (claim != NULL && (best == NULL || ns < best_ns || comes_before(claim, best))) {
                best = claim;
                best_ns = ns;
            }
        }
    }
    return best;
}

static void fill(struct wpk_coordinator *c, struct batch *batch)
{
    while (batch->message->work_count < batch->max && batch->awaited == NULL &&
           batch->op_bytes < OP_BYTES_MAX) {
        struct wpk_claim *claim = choose(c, batch->worker);
        if (claim == NULL) {
            return;
        }
        struct wpk_search *search = claim->search;
        wpk_ready_update(c, search); /* its time may be over by now */
        if (!claim->ready) {
            continue;
        }
        if (claim->owner_queue->queue->stage == WPK_QUEUE_BUILD) {
            add_to_build(c, batch, claim);
        } else {
            add_to_run(c, batch, claim);
        }
        wpk_ready_update(c, search);
    }
}

/* Answer its poll, if there is anything for it. */
static void serve(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    uint32_t room = WPK_LEASES_MAX - worker->lease_count;
    uint32_t want = worker->poll_want < WPK_WORK_MAX ? worker->poll_want : WPK_WORK_MAX;
    struct batch batch = {.worker = worker, .max = want < room ? want : room};
    if (batch.max == 0) {
        return;
    }
    batch.message = wpk_reply_new(c, WPK_MESSAGE_WORK, worker->session);
    fill(c, &batch);
    if (batch.message->work_count > 0) {
        wpk_poll_answer(c, worker, batch.message);
    } else if (batch.awaited != NULL) {
        wpk_worker_class_await(worker, batch.awaited);
    }
}

/* First come, first served, as long as there is work in the work queue. */
static void serve_queue(struct wpk_coordinator *c, struct wpk_work_queue *queue)
{
    for (struct wpk_link *link = queue->waiting_first, *next_link;
         link != NULL && queue->ready_count > 0 && !is_held(c, queue); link = next_link) {
        next_link = link->waiting_next;
        for (struct wpk_worker *worker = link->worker_class->waiting_first, *next;
             worker != NULL && queue->ready_count > 0; worker = next) {
            next = worker->next;
            serve(c, worker);
        }
    }
}

void wpk_dispatch(struct wpk_coordinator *c)
{
    struct wpk_work_queue *queue;
    while ((queue = wpk_mark_take(&c->marked_queues)) != NULL) {
        serve_queue(c, queue);
    }
    /* A poll that did not want to wait. */
    struct wpk_worker *worker = c->polled;
    if (worker != NULL && worker->polling && worker->awaited == NULL &&
        (worker->poll_until_ns <= c->event->now_ns || c->draining)) {
        wpk_poll_answer(c, worker, wpk_reply_new(c, WPK_MESSAGE_WORK, worker->session));
    }
}
