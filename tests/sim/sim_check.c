/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/asks.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/model.h"
#include "coordinator/state/search.h"
#include "coordinator/state/worker.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define ITEMS 16384 /* of a run, a power of two; it is far from full */

/* ---- work items */

struct wpk_sim_work_item *wpk_sim_find_work_item(struct wpk_sim *sim, uint64_t search,
                                                 uint32_t number)
{
    uint64_t key = search << 32 | number;
    if (sim->items == NULL) {
        sim->items = calloc(ITEMS, sizeof *sim->items);
        WPK_ASSERT(sim->items != NULL);
    }
    uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 50;
    for (uint32_t tries = 0; tries < ITEMS; tries++, at++) {
        struct wpk_sim_work_item *item = &sim->items[at % ITEMS];
        if (item->key == key || item->key == 0) {
            item->key = key;
            return item;
        }
    }
    wpk_sim_fail(sim, "too many work items");
}

void wpk_sim_check_execution(struct wpk_sim *sim, wpk_work_id id)
{
    sim->executions++;
    wpk_sim_find_work_item(sim, id.search, id.index)->executions++;
}

/* ---- leases */

/* Leased work items among these; of the session, or of all if it is 0. */
static uint32_t count_leased(const struct wpk_work_item *items, uint32_t count, uint64_t session)
{
    uint32_t leased = 0;
    for (uint32_t i = 0; i < count; i++) {
        leased += items[i].standing == WPK_STANDING_LEASED &&
                  (session == 0 || items[i].lease->worker->session == session);
    }
    return leased;
}

static uint32_t leased_of(const struct wpk_search *search, uint64_t session)
{
    uint32_t asks = 0;
    for (uint32_t n = search->told_count; n < search->ask_count; n++) {
        asks += count_leased(wpk_asks_get(search, n), 1, session);
    }
    return asks + count_leased(search->vendors, search->vendor_count, session) +
           count_leased(&search->plain.item, 1, session) +
           count_leased(&search->final, 1, session) + count_leased(&search->verify, 1, session);
}

/* Check that the asks that have ended are those that were counted. */
static void check_counts(const struct wpk_sim *sim, const struct wpk_search *search)
{
    uint32_t ended = search->told_count;
    for (uint32_t n = search->told_count; n < search->ask_count; n++) {
        ended += wpk_asks_get(search, n)->standing == WPK_STANDING_ENDED;
    }
    WPK_SIM_CHECK(sim, ended == search->ok_count + search->failed_count,
                  "search %llu: %u asks ended, %u counted", (unsigned long long)search->id, ended,
                  search->ok_count + search->failed_count);
}

/* Check that no owner has more jobs than allowed, and that a job that waits for a device says
 * so. */
static void check_jobs(const struct wpk_sim *sim)
{
    const struct wpk_coordinator *c = wpk_sim_coordinator(sim);
    for (uint32_t i = 0; i < c->owner_count; i++) {
        const struct wpk_owner *owner = c->owners[i];
        uint32_t live = 0;
        for (uint32_t j = 0; j < c->job_count; j++) {
            live += c->jobs[j]->owner_record == owner && c->jobs[j]->finished_wall_ns == 0;
        }
        WPK_SIM_CHECK(sim, live == owner->job_count && live <= owner->jobs_max,
                      "%s has %u jobs, %u are counted, %u allowed", owner->name, live,
                      owner->job_count, owner->jobs_max);
    }
    for (uint32_t j = 0; j < c->job_count; j++) {
        const struct wpk_job_entry *job = c->jobs[j];
        bool nowhere = job->label_count > 0 && strcmp(job->labels[0].value, "nowhere") == 0;
        bool ended = job->finished_wall_ns != 0 || job->state == WPK_JOB_PAUSED;
        char reason[WPK_REASON_MAX];
        WPK_SIM_CHECK(sim, !nowhere || ended || wpk_bind_blocked(c, job, 0, reason),
                      "%s can be done nowhere, and does not say so", job->name);
    }
}

void wpk_sim_check_state(struct wpk_sim *sim)
{
    check_jobs(sim);
    const struct wpk_coordinator *c = wpk_sim_coordinator(sim);
    uint32_t held = 0;
    uint32_t leased = 0;
    for (uint32_t w = 0; w < c->worker_count; w++) {
        uint32_t count = 0;
        for (uint32_t s = 0; s < c->search_count; s++) {
            count += leased_of(c->searches[s], c->workers[w]->session);
        }
        WPK_SIM_CHECK(sim, count == c->workers[w]->lease_count, "%s has %u leases, %u are counted",
                      c->workers[w]->hello.name, count, c->workers[w]->lease_count);
        held += count;
    }
    for (uint32_t s = 0; s < c->search_count; s++) {
        uint32_t count = leased_of(c->searches[s], 0);
        WPK_SIM_CHECK(sim, count == c->searches[s]->leased_count,
                      "search %llu has %u leases, %u are counted",
                      (unsigned long long)c->searches[s]->id, count, c->searches[s]->leased_count);
        check_counts(sim, c->searches[s]);
        leased += count;
    }
    WPK_SIM_CHECK(sim, held == leased, "%u leases at workers, %u at searches", held, leased);
}

void wpk_sim_check_outliers(struct wpk_sim *sim)
{
    const struct wpk_coordinator *c = wpk_sim_coordinator(sim);
    for (uint32_t i = 0; i < c->worker_count; i++) {
        char reason[WPK_REASON_MAX];
        const struct wpk_worker *worker = c->workers[i];
        bool skewed = sim->options.skewed && strncmp(worker->hello.name, "w0.", 3) == 0;
        bool is_outlier = wpk_outlier_reason(worker, reason);
        WPK_SIM_CHECK(sim, skewed || !is_outlier, "%s is honest, and %s", worker->hello.name,
                      reason);
        WPK_SIM_CHECK(sim, is_outlier == worker->is_outlier, "%s is counted wrongly",
                      worker->hello.name);
        sim->found = sim->found || is_outlier;
    }
}

/* ---- what leaves */

/* The results that this acknowledges are in the store. */
static void check_acks(struct wpk_sim *sim, const struct wpk_net_address *address,
                       const struct wpk_message *reply)
{
    uint32_t number = 0;
    for (int i = 0; i < 4; i++) {
        number |= (uint32_t)address->header[1 + i] << (8 * i);
    }
    const struct wpk_sim_request *request = &sim->requests[number];
    WPK_SIM_CHECK(sim, reply->ack_count == request->count, "%u results, %u acknowledged",
                  request->count, reply->ack_count);
    for (uint32_t i = 0; i < reply->ack_count; i++) {
        wpk_work_id id = request->ids[i];
        if (reply->acks[i] == WPK_ACK_RECORDED && id.kind == WPK_WORK_TRIAL && !request->built[i]) {
            wpk_sim_find_work_item(sim, id.search, id.index)->acknowledged = true;
            wpk_sim_check_recorded(sim, id);
        }
    }
}

/* True if a worker that is not in doubt holds this work already. */
static bool is_in_good_hands(const struct wpk_sim *sim, int receiver, const struct wpk_work *work)
{
    for (int w = 0; w < sim->worker_count; w++) {
        const struct wpk_sim_worker *worker = &sim->workers[w];
        bool doubted = w == receiver || worker->peer == 0 || worker->leaving ||
                       worker->excused_ns > sim->clock.now_ns;
        for (uint32_t i = 0; !doubted && i < worker->held_count; i++) {
            const struct wpk_work *held = &worker->held[i].work;
            /* Work with another anchor is other work; and a worker that could not get what the work
             * needs has said so. */
            const struct wpk_sim_holding *mine = &worker->held[i];
            if (!mine->lost && !mine->anchor_failed && !mine->overtaken &&
                wpk_work_id_equal(held->id, work->id) && held->stage == work->stage &&
                strcmp(worker->held[i].anchor, work->anchor_sha256) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Check that build-only workers are not given runs, nor run-only workers builds. */
static void check_role(const struct wpk_sim *sim, const struct wpk_sim_worker *worker,
                       const struct wpk_work *work)
{
    bool own = work->id.kind != WPK_WORK_VENDOR && work->id.kind != WPK_WORK_FINAL;
    bool builds = own && work->stage != WPK_STAGE_RUN;
    bool runs = work->stage != WPK_STAGE_BUILD;
    WPK_SIM_CHECK(sim, !builds || (worker->roles & WPK_WORKER_BUILDS) != 0, "w%d cannot build",
                  worker->index);
    WPK_SIM_CHECK(sim, !runs || (worker->roles & WPK_WORKER_RUNS) != 0, "w%d cannot run",
                  worker->index);
}

/* For whom it is: the first letter of the owner of a search that nobody shares. */
static void note_lease(struct wpk_sim *sim, uint64_t id)
{
    const struct wpk_coordinator *c = wpk_sim_coordinator(sim);
    for (uint32_t s = 0; s < c->search_count && sim->lease_count < WPK_SIM_LEASES_MAX; s++) {
        const struct wpk_job_op_state *op = c->searches[s]->ops;
        if (c->searches[s]->id == id && op != NULL) {
            sim->leases[sim->lease_count++] = op->job->owner[0];
        }
    }
}

/* One of the jobs that wait for it suits the worker. */
static void check_labels(const struct wpk_sim *sim, int receiver, uint64_t id)
{
    const struct wpk_search *search = wpk_search_find(wpk_sim_coordinator(sim), id);
    bool suits = search == NULL || search->ops == NULL;
    for (const struct wpk_job_op_state *op = suits ? NULL : search->ops; op != NULL;
         op = op->next) {
        const struct wpk_job_entry *job = op->job;
        suits = suits || job->label_count == 0 ||
                strcmp(job->labels[0].value, wpk_sim_lab(sim, receiver)) == 0;
    }
    WPK_SIM_CHECK(sim, suits, "w%d is given work for other workers", receiver);
}

/* Note work that a worker took again by naming it and that has had all its attempts: it may be
 * blamed. */
static void note_attempts(struct wpk_sim *sim, const struct wpk_sim_worker *worker)
{
    for (uint32_t i = 0; i < worker->held_count; i++) {
        wpk_work_id id = worker->held[i].work.id;
        struct wpk_search *search = wpk_search_find(wpk_sim_coordinator(sim), id.search);
        const struct wpk_work_item *item = search != NULL ? wpk_search_work_item(search, id) : NULL;
        sim->blamed = sim->blamed || (item != NULL && item->attempts >= WPK_ATTEMPTS_MAX);
    }
}

static void check_work(struct wpk_sim *sim, int receiver, const struct wpk_message *reply)
{
    note_attempts(sim, &sim->workers[receiver]);
    for (uint32_t i = 0; i < reply->work_count; i++) {
        const struct wpk_work *work = &reply->work[i];
        sim->blamed = sim->blamed || work->attempt >= WPK_ATTEMPTS_MAX;
        WPK_SIM_CHECK(sim, work->attempt <= WPK_ATTEMPTS_MAX, "attempt %u", work->attempt);
        check_role(sim, &sim->workers[receiver], work);
        if (sim->workers[receiver].roles != WPK_WORKER_BUILDS) {
            check_labels(sim, receiver, work->id.search);
        }
        if (work->id.kind != WPK_WORK_TRIAL) {
            continue;
        }
        note_lease(sim, work->id.search);
        const struct wpk_sim_work_item *item =
            wpk_sim_find_work_item(sim, work->id.search, work->id.index);
        WPK_SIM_CHECK(sim, !item->acknowledged, "%llu/%u is recorded and given out again",
                      (unsigned long long)work->id.search, work->id.index);
        WPK_SIM_CHECK(sim, !is_in_good_hands(sim, receiver, work),
                      "%llu/%u is given to w%d, and another has it",
                      (unsigned long long)work->id.search, work->id.index, receiver);
        wpk_sim_check_asked(sim, work);
    }
}

void wpk_sim_check_reply(struct wpk_sim *sim, const struct wpk_net_address *address,
                         const void *frame, size_t size)
{
    struct wpk_message reply = {0};
    wpk_err err = wpk_message_decode(frame, size, &reply, NULL);
    WPK_SIM_CHECK(sim, err == WPK_OK, "a reply is not understood: %s", wpk_err_text(err));
    WPK_SIM_CHECK(sim, sim->committing || reply.kind == WPK_MESSAGE_ERROR,
                  "a reply leaves before its batch is durable");
    if (reply.kind == WPK_MESSAGE_ACK && reply.ack_count > 0) {
        check_acks(sim, address, &reply);
    } else if (reply.kind == WPK_MESSAGE_WORK) {
        check_work(sim, address->header[0], &reply);
    }
    wpk_message_fini(&reply);
}
