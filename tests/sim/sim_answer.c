/* SPDX-License-Identifier: Apache-2.0 */
/* Applies an answer of wpkd to a worker. */
#include "common/crypto.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REST_MS 500 /* after wpkd could not */

static bool is_held(const struct wpk_sim_worker *worker, wpk_work_id id)
{
    for (uint32_t i = 0; i < worker->held_count; i++) {
        if (wpk_work_id_equal(worker->held[i].work.id, id)) {
            return true;
        }
    }
    return false;
}

/* The text that an artifact is made of. */
static char *text_of(const struct wpk_work *work, const struct wpk_message *message)
{
    char plain[WPK_SHA256_HEX_SIZE + 32];
    char op[WPK_SHA256_HEX_SIZE];
    if (work->id.kind != WPK_WORK_PLAIN) {
        return strdup(work->candidate);
    }
    const char *text = message->ops[work->op].text;
    wpk_crypto_sha256_hex(text, strlen(text), op);
    snprintf(plain, sizeof plain, "plain %u of %s", work->id.index, op);
    return strdup(plain);
}

static void take_work(struct wpk_sim *sim, struct wpk_sim_worker *worker,
                      const struct wpk_message *message)
{
    for (uint32_t i = 0; i < message->work_count && worker->held_count < WPK_SIM_HELD_MAX; i++) {
        const struct wpk_work *work = &message->work[i];
        if (is_held(worker, work->id)) {
            continue;
        }
        struct wpk_sim_holding *held = &worker->held[worker->held_count++];
        *held = (struct wpk_sim_holding){.work = *work, .candidate = text_of(work, message)};
        if (work->stage == WPK_STAGE_RUN && work->artifact_sha256[0] != '\0') {
            snprintf(held->artifacts[held->artifact_count++], WPK_ID_MAX, "%s",
                     work->artifact_sha256);
        }
        snprintf(held->anchor, WPK_ID_MAX, "%s", work->anchor_sha256);
        if (held->anchor[0] != '\0' && work->stage != WPK_STAGE_BUILD) {
            held->anchor_ns = wpk_sim_artifact_ns(held->anchor);
            memcpy(held->artifacts[held->artifact_count++], held->anchor, WPK_ID_MAX);
        }
        held->slow = wpk_rng_chance(&sim->rng, 0.5);
        for (uint32_t c = 0; c < work->contender_count; c++) {
            const struct wpk_contender *contender = &work->contenders[c];
            snprintf(held->artifacts[held->artifact_count++], WPK_ID_MAX, "%s",
                     contender->artifact_sha256);
            held->final_ns[c] = wpk_sim_final_ns(contender->provider, contender->artifact_sha256);
        }
        wpk_sim_say(sim, "w%d: takes %s %llu/%u, attempt %u", worker->index,
                    wpk_work_kind_name(work->id.kind), (unsigned long long)work->id.search,
                    work->id.index, work->attempt);
    }
}

static void remember_sent(struct wpk_sim_worker *worker, struct wpk_sim_holding *held)
{
    struct wpk_sim_holding *slot = &worker->sent[worker->sent_count++ % WPK_SIM_MEMORY];
    free(slot->candidate);
    *slot = *held;
    *held = (struct wpk_sim_holding){0};
}

/* Drop the results that the answered request named. */
static void drop_acknowledged(struct wpk_sim *sim, struct wpk_sim_worker *worker)
{
    const struct wpk_sim_request *request = &sim->requests[worker->asked_number];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < worker->held_count; i++) {
        bool named = false;
        for (uint32_t r = 0; r < request->count; r++) {
            named = named || wpk_work_id_equal(request->ids[r], worker->held[i].work.id);
        }
        if (named) {
            remember_sent(worker, &worker->held[i]);
        } else {
            worker->held[kept++] = worker->held[i];
        }
    }
    worker->held_count = kept;
}

static void take_artifact(struct wpk_sim *sim, struct wpk_sim_worker *worker,
                          const struct wpk_message *message)
{
    struct wpk_sim_holding *held = &worker->held[worker->asked_index];
    char sha256[WPK_SHA256_HEX_SIZE];
    wpk_crypto_sha256_hex(message->bytes, message->bytes_size, sha256);
    WPK_SIM_CHECK(sim, strcmp(sha256, held->artifacts[held->fetched]) == 0,
                  "w%d is sent another artifact", worker->index);
    held->fetched++;
}

/* Drop a work item whose artifact is refused: the next poll does not name it. */
static void drop_refused(struct wpk_sim_worker *worker)
{
    free(worker->held[worker->asked_index].candidate);
    worker->held_count--;
    for (uint32_t i = worker->asked_index; i < worker->held_count; i++) {
        worker->held[i] = worker->held[i + 1];
    }
}

static void take_error(struct wpk_sim *sim, struct wpk_sim_worker *worker,
                       const struct wpk_message *message)
{
    wpk_sim_say(sim, "w%d: %s: %s", worker->index, wpk_err_name(message->err), message->text);
    WPK_SIM_CHECK(sim, message->err != WPK_ECORRUPT, "w%d: %s", worker->index, message->text);
    bool refused = worker->asked == WPK_MESSAGE_PUT_ARTIFACT && message->retry_ms == 0;
    if (message->err == WPK_ENOENT) {
        worker->session = 0; /* wpkd has been away: introduce ourselves again */
    } else if (refused) {
        drop_refused(worker);
    } else {
        worker->rest_until_ns = sim->clock.now_ns + REST_MS * WPK_NS_PER_MS;
    }
}

/* True if the message answers the worker's last request. */
static bool is_answer(const struct wpk_sim_worker *worker, const struct wpk_message *message)
{
    switch (worker->asked) {
    case WPK_MESSAGE_HELLO:
        return message->kind == WPK_MESSAGE_WELCOME;
    case WPK_MESSAGE_POLL:
        return message->kind == WPK_MESSAGE_WORK;
    case WPK_MESSAGE_GET_ARTIFACT:
        return message->kind == WPK_MESSAGE_ARTIFACT;
    default:
        return message->kind == WPK_MESSAGE_ACK;
    }
}

static void take_answer(struct wpk_sim *sim, struct wpk_sim_worker *worker,
                        const struct wpk_message *message)
{
    worker->awaits = false;
    if (message->kind == WPK_MESSAGE_ERROR) {
        take_error(sim, worker, message);
        return;
    }
    WPK_SIM_CHECK(sim, is_answer(worker, message), "w%d asks %s and is told %s", worker->index,
                  wpk_message_kind_name(worker->asked), wpk_message_kind_name(message->kind));
    switch (worker->asked) {
    case WPK_MESSAGE_HELLO:
        worker->session = message->session;
        worker->named = false;
        break;
    case WPK_MESSAGE_POLL:
        take_work(sim, worker, message);
        worker->named = true;
        break;
    case WPK_MESSAGE_GET_ARTIFACT:
        take_artifact(sim, worker, message);
        break;
    case WPK_MESSAGE_PUT_ARTIFACT:
        worker->held[worker->asked_index].uploaded = true;
        break;
    case WPK_MESSAGE_RESULTS:
        drop_acknowledged(sim, worker);
        break;
    default:
        break;
    }
}

/* An answer belongs to the last question, if to any: the network library sees to that. */
void wpk_sim_worker_receive(struct wpk_sim *sim, struct wpk_sim_worker *worker,
                            const struct wpk_sim_event *event)
{
    uint32_t number = 0;
    for (int i = 0; i < 4; i++) {
        number |= (uint32_t)event->address.header[1 + i] << (8 * i);
    }
    if (worker->peer == 0 || event->address.peer != worker->peer || !worker->awaits ||
        number != worker->asked_number || worker->hung_until_ns > sim->clock.now_ns) {
        return;
    }
    struct wpk_message message = {0};
    wpk_err err = wpk_message_decode(event->data.data, event->data.size, &message, NULL);
    WPK_SIM_CHECK(sim, err == WPK_OK, "a reply is not understood: %s", wpk_err_text(err));
    take_answer(sim, worker, &message);
    wpk_message_fini(&message);
    if (worker->leaving && worker->asked == WPK_MESSAGE_GIVE_BACK) {
        wpk_sim_worker_die(sim, worker->index, wpk_rng_below(&sim->rng, 1000));
        return;
    }
    wpk_sim_worker_wake(sim, worker, sim->clock.now_ns);
}
