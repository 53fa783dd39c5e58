/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include "common/fs.h"
#include "coordinator/api/api.h"
#include "tests/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_MS 30000
#define TURNS_MAX 8

static void on_reply(void *user, const struct wpk_net_address *address, const void *frame,
                     size_t size)
{
    struct wpk_message message = {0};
    WPK_ASSERT(wpk_message_decode(frame, size, &message, NULL) == WPK_OK);
    wpk_fixture_tell(user, address->peer, &message);
    wpk_message_fini(&message);
}

static void on_respond(void *user, uint64_t request, struct wpk_api_answer *answer)
{
    struct wpk_fixture *fixture = user;
    (void)request;
    fixture->status = answer->status;
    bool may_pass = answer->status == 429 || answer->status == 503 || answer->status == 507;
    WPK_ASSERT(!may_pass || answer->retry_after_s > 0); /* as openapi.yaml promises */
    wpk_buf_reset(&fixture->body);
    wpk_buf_append_text(&fixture->body, wpk_buf_text(&answer->body));
}

static void on_wake(void *user)
{
    (void)user; /* whoever has threads polls */
}

static void on_restoring(void *user)
{
    struct wpk_fixture *fixture = user;
    fixture->slice_count++;
}

wpk_err wpk_fixture_turn(struct wpk_fixture *fixture)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    wpk_executor_poll(fixture->executor);
    wpk_err err = wpk_executor_commit(fixture->executor, NULL);
    if (fixture->threads > 0) {
        nanosleep(&moment, NULL);
    }
    return err;
}

static void on_rebuilt(void *user)
{
    ((struct wpk_fixture *)user)->rebuilt++;
}

void wpk_fixture_start(struct wpk_fixture *fixture)
{
    struct wpk_diag diag = {0};
    struct wpk_executor_options options = {
        .store = fixture->store,
        .data_dir = fixture->directory,
        .auth = fixture->auth,
        .clock = fixture->time,
        .artifact_bytes_max = fixture->artifact_bytes_max,
        .out = {.reply = on_reply, .respond = on_respond, .user = fixture},
        .answer = wpk_api_answer_effect,
        .threads = fixture->threads,
        .wake = on_wake,
        .restoring = on_restoring,
        .rebuilt = on_rebuilt,
    };
    WPK_ASSERT(wpk_executor_new(&options, &fixture->executor, &diag) == WPK_OK);
}

void wpk_fixture_begin_request(struct wpk_fixture *fixture, const char *method, const char *path,
                               const char *body)
{
    struct wpk_http_request request = {.id = 1,
                                       .identity = {.roles = WPK_ROLE_ALL},
                                       .method = method,
                                       .path = path,
                                       .body = body,
                                       .body_size = strlen(body),
                                       .content_type = "application/json",
                                       .idempotency_key = fixture->key};
    fixture->status = 0;
    wpk_api_request(fixture->executor, &request, ++fixture->random);
}

/* With threads whatever is waited for takes its time; without, it is done in a few turns. */
static int patience(const struct wpk_fixture *fixture)
{
    return fixture->threads > 0 ? PATIENCE_MS : TURNS_MAX;
}

int wpk_fixture_request(struct wpk_fixture *fixture, const char *method, const char *path,
                        const char *body)
{
    wpk_fixture_begin_request(fixture, method, path, body);
    for (int i = 0; fixture->status == 0 && i < patience(fixture); i++) {
        (void)wpk_fixture_turn(fixture);
    }
    return fixture->status;
}

void wpk_fixture_put(struct wpk_fixture *fixture, int worker, struct wpk_message *message)
{
    struct wpk_fixture_worker *self = &fixture->workers[worker];
    struct wpk_net_address address = {.peer = self->peer};
    uint64_t random = 1000 * (1 + (uint64_t)self->told_count) + 2 * (uint64_t)worker;
    struct wpk_buf frame = {0};
    message->session = self->session;
    self->answered = false;
    WPK_ASSERT(wpk_message_encode(message, &frame) == WPK_OK);
    wpk_executor_frame(fixture->executor, &address, frame.data, frame.size, random);
    wpk_buf_fini(&frame);
}

static void say(struct wpk_fixture *fixture, int worker, struct wpk_message *message)
{
    wpk_fixture_put(fixture, worker, message);
    for (int i = 0; !fixture->workers[worker].answered && i < patience(fixture); i++) {
        (void)wpk_fixture_turn(fixture);
    }
}

int wpk_fixture_set_up(void **state)
{
    struct wpk_fixture *fixture = calloc(1, sizeof *fixture);
    wpk_fixture_begin();
    fixture->say = say;
    fixture->threads = *state != NULL ? *(const int *)*state : 0;
    fixture->time = fixture->threads > 0 ? wpk_clock_system() : &fixture->clock.clock;
    snprintf(fixture->directory, sizeof fixture->directory, "%s/wpk-executor-XXXXXX",
             wpk_test_folder());
    WPK_ASSERT(mkdtemp(fixture->directory) != NULL);
    wpk_clock_fake_init(&fixture->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    WPK_ASSERT(wpk_store_open(fixture->directory, fixture->time, &fixture->store, NULL) == WPK_OK);
    *state = fixture;
    return 0;
}

int wpk_fixture_tear_down(void **state)
{
    struct wpk_fixture *fixture = *state;
    wpk_executor_free(fixture->executor);
    wpk_store_close(fixture->store);
    wpk_auth_free(fixture->auth);
    wpk_buf_fini(&fixture->body);
    wpk_err err = wpk_fs_remove_tree(fixture->directory, NULL);
    free(fixture);
    return err == WPK_OK ? 0 : -1;
}

void wpk_fixture_tick(struct wpk_fixture *fixture, uint64_t seconds)
{
    struct wpk_event event = {.kind = WPK_EVENT_TICK};
    wpk_clock_fake_advance(&fixture->clock, seconds * WPK_NS_PER_S);
    wpk_executor_step(fixture->executor, &event);
    WPK_ASSERT(wpk_executor_commit(fixture->executor, NULL) == WPK_OK);
    wpk_executor_poll(fixture->executor);
}

uint32_t wpk_fixture_session_count(const struct wpk_fixture *fixture)
{
    return wpk_executor_coordinator(fixture->executor)->worker_count;
}
