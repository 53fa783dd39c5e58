/* SPDX-License-Identifier: Apache-2.0 */
/* Giving out work: which job, which operator, which piece of it, for a worker whose poll waits.
 *
 * Jobs come by priority, then by age. Within a job the first operators that have not ended are
 * worked on. An operator's vendors come first, then the asks that were taken back, then new ones;
 * then its final and its verification. A poll is answered as soon as there is anything for it. */
#include "coordinator/parts.h"

#include <string.h>

#define OPS_OPEN_MAX 2 /* of one job at a time: the next one fills the end of the one before */

void wpk_reply_send(struct wpk_coordinator *c, const struct wpk_net_address *address,
                    const struct wpk_message *message)
{
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_REPLY);
    effect->address = *address;
    effect->message = message;
}

struct wpk_message *wpk_reply_new(struct wpk_coordinator *c, enum wpk_message_kind kind,
                                  uint64_t session)
{
    struct wpk_message *message = wpk_effect_memory(c, 1, sizeof *message);
    message->kind = kind;
    message->session = session;
    return message;
}

void wpk_lease_take(struct wpk_coordinator *c, struct wpk_search *search, struct wpk_piece *piece,
                    struct wpk_worker *worker)
{
    WPK_ASSERT(piece->standing == WPK_STANDING_OPEN);
    piece->standing = WPK_STANDING_LEASED;
    piece->session = worker->session;
    piece->lease = ++c->lease_next;
    piece->attempts++;
    worker->lease_count++;
    search->leased_count++;
    if (search->active_ns == 0) {
        search->active_ns = c->event->now_ns;
    }
}

struct batch {
    struct wpk_worker *worker;
    struct wpk_message *message;
    uint32_t max;
    bool awaiting; /* a strategy is being asked: the rest comes with its answer */
};

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
        message->ops = wpk_effect_memory(c, WPK_WORK_MAX, sizeof *message->ops);
    }
    message->ops[message->op_count] =
        (struct wpk_message_op){.text = search->op, .layouts = search->key.layouts};
    return message->op_count++;
}

static struct wpk_work *add_work(struct wpk_coordinator *c, struct batch *batch,
                                 struct wpk_search *search, struct wpk_piece *piece, wpk_work_id id)
{
    struct wpk_message *message = batch->message;
    if (message->work == NULL) {
        message->work = wpk_effect_memory(c, WPK_WORK_MAX, sizeof *message->work);
    }
    wpk_lease_take(c, search, piece, batch->worker);
    struct wpk_work *work = &message->work[message->work_count++];
    work->id = id;
    work->attempt = piece->attempts;
    work->op = op_index(c, batch, search);
    work->policy = search->policy;
    work->provider = "";
    work->candidate = "";
    return work;
}

static void add_final(struct wpk_coordinator *c, struct batch *batch, struct wpk_search *search)
{
    wpk_work_id id = {search->id, WPK_WORK_FINAL, search->final_number};
    struct wpk_work *work = add_work(c, batch, search, &search->final, id);
    work->round_count = WPK_FINAL_ROUNDS;
    for (uint32_t i = 0; i < search->entry_count; i++) {
        work->contenders[i].provider = search->entries[i].provider;
        work->contenders[i].artifact_sha256 = search->entries[i].artifact_sha256;
    }
    work->contender_count = search->entry_count;
}

static void add_verify(struct wpk_coordinator *c, struct batch *batch, struct wpk_search *search)
{
    wpk_work_id id = {search->id, WPK_WORK_VERIFY, search->verify_number};
    struct wpk_work *work = add_work(c, batch, search, &search->verify, id);
    work->provider = search->entries[search->verifying].provider;
    work->candidate = search->verify.text;
    work->keep_artifact = true;
    /* Measured again and longer: a worker that remembers the first time does not answer from it. */
    work->policy.sample_count *= 2;
    work->policy.race_ratio = 0;
}

static void add_trials(struct wpk_coordinator *c, struct batch *batch, struct wpk_search *search)
{
    while (search->open_first < search->ask_count &&
           wpk_search_ask(search, search->open_first)->standing != WPK_STANDING_OPEN) {
        search->open_first++;
    }
    /* Raced against the last that would still get into the final, whose artifacts are kept. */
    uint64_t incumbent_ns = search->best_count >= WPK_FINAL_OWN_MAX
                                ? search->best[WPK_FINAL_OWN_MAX - 1].trial.median_ns
                                : 0;
    for (uint32_t i = search->open_first;
         i < search->ask_count && batch->message->work_count < batch->max; i++) {
        struct wpk_piece *ask = wpk_search_ask(search, i);
        if (ask->standing != WPK_STANDING_OPEN) {
            continue;
        }
        wpk_work_id id = {search->id, WPK_WORK_TRIAL, i};
        struct wpk_work *work = add_work(c, batch, search, ask, id);
        work->provider = wpk_search_own_provider(c, search);
        work->candidate = ask->text;
        work->incumbent_ns = incumbent_ns;
        work->keep_artifact = incumbent_ns == 0;
    }
}

static uint32_t count_open(const struct wpk_search *search, uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t i = search->open_first; i < search->ask_count && count < max; i++) {
        count += wpk_search_ask(search, i)->standing == WPK_STANDING_OPEN;
    }
    return count;
}

static void add_search(struct wpk_coordinator *c, struct batch *batch, struct wpk_search *search)
{
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        if (search->vendors[i].standing == WPK_STANDING_OPEN &&
            batch->message->work_count < batch->max && search->phase == WPK_PHASE_SEARCHING) {
            wpk_work_id id = {search->id, WPK_WORK_VENDOR, i};
            struct wpk_work *work = add_work(c, batch, search, &search->vendors[i], id);
            work->provider = search->vendors[i].text;
        }
    }
    uint32_t room = batch->max - batch->message->work_count;
    if (room == 0) {
        return;
    }
    if (search->phase == WPK_PHASE_FINALS && search->final.standing == WPK_STANDING_OPEN) {
        add_final(c, batch, search);
    } else if (search->phase == WPK_PHASE_VERIFYING &&
               search->verify.standing == WPK_STANDING_OPEN) {
        add_verify(c, batch, search);
    } else if (search->phase == WPK_PHASE_SEARCHING &&
               !wpk_search_time_over(search, c->event->now_ns)) {
        uint32_t open = count_open(search, room);
        if (open < room && wpk_search_want(c, search, room - open)) {
            batch->awaiting = true;
            return;
        }
        add_trials(c, batch, search);
    }
}

/* All that share the search. */
static void start_jobs_of(struct wpk_coordinator *c, const struct wpk_search *search)
{
    for (uint32_t j = 0; j < c->job_count; j++) {
        for (uint32_t i = 0; i < c->jobs[j]->op_count; i++) {
            if (c->jobs[j]->ops[i].search == search) {
                wpk_job_started(c, c->jobs[j]);
            }
        }
    }
}

static void fill(struct wpk_coordinator *c, struct batch *batch)
{
    for (uint32_t j = 0; j < c->job_count; j++) {
        struct wpk_job_entry *job = c->jobs[j];
        uint32_t open_count = 0;
        for (uint32_t i = 0; i < job->op_count && open_count < OPS_OPEN_MAX; i++) {
            struct wpk_job_op_state *op = &job->ops[i];
            if (wpk_phase_ended(op->phase) || op->search == NULL || op->search->id == 0) {
                continue;
            }
            open_count++;
            uint32_t before = batch->message->work_count;
            if (wpk_search_serves(op->search, batch->worker)) {
                add_search(c, batch, op->search);
            }
            if (batch->message->work_count > before) {
                start_jobs_of(c, op->search);
            }
            if (batch->awaiting || batch->message->work_count == batch->max) {
                return;
            }
        }
    }
}

static void serve(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    uint32_t room = WPK_LEASES_MAX - worker->lease_count;
    uint32_t want = worker->poll_want < WPK_WORK_MAX ? worker->poll_want : WPK_WORK_MAX;
    struct batch batch = {
        .worker = worker,
        .message = wpk_reply_new(c, WPK_MESSAGE_WORK, worker->session),
        .max = want < room ? want : room,
    };
    if (batch.max > 0) {
        fill(c, &batch);
    }
    bool late = c->event->now_ns >= worker->poll_until_ns;
    bool some = batch.message->work_count > 0;
    if (some || (late && !batch.awaiting)) {
        wpk_reply_send(c, worker->poll_address, batch.message);
        worker->polling = false;
        worker->heard_ns = c->event->now_ns;
    }
}

void wpk_worker_serve(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->worker_count; i++) {
        if (c->workers[i]->polling) {
            serve(c, c->workers[i]);
        }
    }
}
