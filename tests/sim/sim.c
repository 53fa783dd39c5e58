/* SPDX-License-Identifier: Apache-2.0 */
/* The network, wpkd, and the clock that moves them. */
#include "tests/sim/sim.h"

#include "common/fs.h"
#include "coordinator/parts.h"
#include "coordinator/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEP_MS 50

/* ---- network */

void wpk_sim_send(struct wpk_sim *sim, const struct wpk_sim_frame *frame, const void *data,
                  size_t size)
{
    int copies = wpk_rng_chance(&sim->rng, sim->trouble) ? (int)wpk_rng_below(&sim->rng, 3) : 1;
    for (int i = 0; i < copies && sim->frame_count < WPK_SIM_FRAMES_MAX; i++) {
        struct wpk_sim_frame *sent = &sim->frames[sim->frame_count++];
        *sent = *frame;
        sent->data = (struct wpk_buf){0};
        wpk_buf_append(&sent->data, data, size);
    }
}

static void on_reply(void *user, const struct wpk_net_address *address, const void *data,
                     size_t size)
{
    struct wpk_sim_frame frame = {
        .to_worker = true, .worker = address->header[0], .peer = address->peer};
    wpk_sim_check_reply(user, data, size);
    wpk_sim_send(user, &frame, data, size);
}

static void on_respond(void *user, uint64_t request, const struct wpk_api_answer *answer)
{
    struct wpk_sim *sim = user;
    (void)request;
    assert_true(answer->status == 201 || answer->status == 200);
    sim->responses++;
}

/* ---- wpkd */

static void start_wpkd(struct wpk_sim *sim)
{
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_store_open(sim->directory, &sim->clock.clock, &sim->store, &diag), WPK_OK);
    struct wpk_performer_options options = {
        .store = sim->store,
        .data_dir = sim->directory,
        .clock = &sim->clock.clock,
        .out = {.reply = on_reply, .respond = on_respond, .user = sim},
    };
    wpk_err err = wpk_performer_new(&options, &sim->performer, &diag);
    if (err != WPK_OK) {
        fail_msg("wpkd does not start: %s", diag.text);
    }
}

/* As kill -9 would: what was not committed is gone. */
static void restart_wpkd(struct wpk_sim *sim)
{
    wpk_store_close(sim->store);
    sim->store = NULL;
    /* The performer only frees memory: nothing of it reaches the store any more. */
    wpk_performer_free(sim->performer);
    sim->performer = NULL;
    sim->crashes++;
    start_wpkd(sim);
}

void wpk_sim_commit(struct wpk_sim *sim)
{
    struct wpk_diag diag = {0};
    if (wpk_performer_commit(sim->performer, &diag) != WPK_OK) {
        fail_msg("commit: %s", diag.text);
    }
    wpk_sim_check_leases(sim);
}

static void post(struct wpk_sim *sim, const char *path, const char *body)
{
    struct wpk_http_request request = {.id = 1,
                                       .identity = {.roles = WPK_ROLE_ALL},
                                       .method = "POST",
                                       .path = path,
                                       .body = body,
                                       .body_size = strlen(body),
                                       .content_type = "application/json"};
    wpk_performer_request(sim->performer, &request, wpk_rng_next(&sim->rng));
    wpk_sim_commit(sim);
}

void wpk_sim_submit(struct wpk_sim *sim, const char *job)
{
    post(sim, "/v1/jobs", job);
}

void wpk_sim_cancel(struct wpk_sim *sim)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/jobs/%s:cancel",
             wpk_performer_coordinator(sim->performer)->jobs[0]->id);
    post(sim, path, "");
}

bool wpk_sim_is_live(const struct wpk_sim *sim)
{
    return wpk_coordinator_job_count(wpk_performer_coordinator(sim->performer)) > 0;
}

/* ---- time */

static void deliver_to_wpkd(struct wpk_sim *sim, const struct wpk_sim_frame *frame)
{
    struct wpk_net_address address = {.peer = frame->peer, .header_size = 1};
    struct wpk_message message = {0};
    wpk_err err = wpk_message_decode(frame->data.data, frame->data.size, &message, NULL);
    assert_int_equal(err, WPK_OK);
    address.header[0] = (uint8_t)frame->worker;
    sim->delivering = &message;
    wpk_performer_frame(sim->performer, &address, frame->data.data, frame->data.size,
                        wpk_rng_next(&sim->rng));
    if (wpk_rng_chance(&sim->rng, sim->trouble / 20)) {
        restart_wpkd(sim); /* before its commit */
    } else {
        wpk_sim_commit(sim);
    }
    sim->delivering = NULL;
    wpk_message_fini(&message);
}

static void deliver_one(struct wpk_sim *sim)
{
    /* Any of them: frames overtake each other. */
    int at = (int)wpk_rng_below(&sim->rng, (uint64_t)sim->frame_count);
    struct wpk_sim_frame frame = sim->frames[at];
    sim->frames[at] = sim->frames[--sim->frame_count];
    if (frame.to_worker) {
        wpk_sim_worker_receive(sim, &frame);
    } else {
        deliver_to_wpkd(sim, &frame);
    }
    wpk_buf_fini(&frame.data);
}

void wpk_sim_step(struct wpk_sim *sim)
{
    struct wpk_event tick = {.kind = WPK_EVENT_TICK};
    wpk_clock_fake_advance(&sim->clock, STEP_MS * WPK_NS_PER_MS);
    wpk_performer_step(sim->performer, &tick);
    wpk_sim_commit(sim);
    for (int i = 0; i < WPK_SIM_WORKERS; i++) {
        if (!sim->resting) {
            wpk_sim_worker_turn(sim, i);
        }
        if (wpk_rng_chance(&sim->rng, sim->trouble / 100)) {
            wpk_sim_worker_die(sim, i);
        }
    }
    for (int i = sim->frame_count; i > 0 && sim->frame_count > 0; i--) {
        deliver_one(sim);
    }
    if (wpk_rng_chance(&sim->rng, sim->trouble / 100)) {
        restart_wpkd(sim);
    }
}

int wpk_sim_finish(struct wpk_sim *sim)
{
    int steps = 0;
    while (wpk_sim_is_live(sim) && steps < WPK_SIM_STEPS_MAX) {
        wpk_sim_step(sim);
        steps++;
    }
    return steps;
}

void wpk_sim_init(struct wpk_sim *sim, uint64_t seed, double trouble)
{
    memset(sim, 0, sizeof *sim);
    wpk_rng_seed(&sim->rng, seed);
    sim->trouble = trouble;
    wpk_clock_fake_init(&sim->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    snprintf(sim->directory, sizeof sim->directory, "/tmp/wpk-sim-XXXXXX");
    assert_non_null(mkdtemp(sim->directory));
    for (int i = 0; i < WPK_SIM_WORKERS; i++) {
        sim->workers[i].peer = ++sim->peer_last;
    }
    start_wpkd(sim);
}

void wpk_sim_fini(struct wpk_sim *sim)
{
    for (int w = 0; w < WPK_SIM_WORKERS; w++) {
        for (uint32_t i = 0; i < sim->workers[w].held_count; i++) {
            free(sim->workers[w].held[i].candidate);
        }
    }
    for (int i = 0; i < sim->frame_count; i++) {
        wpk_buf_fini(&sim->frames[i].data);
    }
    wpk_performer_free(sim->performer);
    wpk_store_close(sim->store);
    wpk_err err = wpk_fs_remove_tree(sim->directory, NULL);
    assert_int_equal(err, WPK_OK);
}
