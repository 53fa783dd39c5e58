/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture for tests of the coordinator: workers that speak by the messages of schema/message.h,
 * above one of two things. Whatever goes wrong in the fixture itself aborts.
 *
 *     fixture_worker.c    workers: hello, poll, result, upload; what each holds and was told last
 *            │ say(message)         ▲ wpk_fixture_tell(message)
 *            ▼                      │
 *     fixture_state.c     the state machine alone, its effects answered by a script, or
 *     fixture_store.c     a executor with a store in a directory of its own; messages are encoded
 */
#ifndef WPK_TESTS_FIXTURE_H
#define WPK_TESTS_FIXTURE_H

#include "coordinator/effects/executor.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/outlier.h"
#include "coordinator/state/state.h"
#include "coordinator/state/worker_class.h"

#define WPK_FIXTURE_WORKERS_MAX 64
#define WPK_FIXTURE_ANSWERS_MAX 1024
#define WPK_FIXTURE_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* One candidate: what a strategy tries first does not depend on its seed. */
#define WPK_FIXTURE_JOB(seed)                                                                      \
    "{\"name\":\"one\",\"ops\":["                                                                  \
    "{\"name\":\"a\",\"op\":\"Y[i] = X[i]\","                                                      \
    "\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}],"                                           \
    "\"search\":{\"strategy\":\"ga\",\"seed\":" seed "},"                                          \
    "\"budget\":{\"candidates\":1,\"seconds\":3600}}"

/* What a worker has, and what it was told last. */
struct wpk_fixture_worker {
    struct wpk_hello hello;
    uint32_t peer; /* its connection */
    uint64_t session;
    struct wpk_work held[WPK_LEASES_MAX]; /* its texts are not kept, but for: */
    char artifact[WPK_LEASES_MAX][WPK_ID_MAX];
    char anchor[WPK_LEASES_MAX][WPK_ID_MAX];
    char candidate[256]; /* of the last */
    uint32_t held_count;
    char made[WPK_ID_MAX]; /* artifact that its results name: its last upload; "": made up */
    enum wpk_message_kind told;
    uint32_t told_count;    /* answers so far */
    uint32_t delayed_count; /* those that said when to come again */
    wpk_err err;
    char text[512]; /* of an error; of a welcome: the server */
    uint32_t retry_ms;
    enum wpk_ack acks[WPK_WORK_MAX];
    bool answered; /* its last question */
};

struct wpk_fixture {
    struct wpk_fixture_worker workers[WPK_FIXTURE_WORKERS_MAX];
    uint32_t worker_count;
    /* Deliver the worker's message; its answer, when there is one, is told to it. */
    void (*say)(struct wpk_fixture *fixture, int worker, struct wpk_message *message);
    int status; /* of the last answer to a request */

    /* Of the state machine alone. Strategies give "c<n>" for ever. */
    struct wpk_coordinator *c;
    struct wpk_effects effects;
    uint64_t now_ns;
    /* Answers to effects, in order, and whether they wait for wpk_fixture_answer(). */
    struct wpk_event answers[WPK_FIXTURE_ANSWERS_MAX];
    uint32_t answer_count;
    bool hold;
    uint64_t search_next;
    uint64_t kernel_next;
    uint64_t refuse_at; /* strategies refuse after so many asks; 0: never */
    /* What the store knows of every search: its plain fields. Every search has an anchor. */
    struct wpk_opened opened;
    uint32_t seen[WPK_EFFECT_LOG + 1]; /* effects, by kind */
    struct wpk_owner_event owner;      /* the last SET_OWNER */
    uint32_t retry_after_s;
    char problem[512];
    char verified_by[WPK_WORKER_NAME_MAX]; /* of the last kernel: of our own, */
    char kernel_provider[WPK_PROVIDER_NAME_MAX];
    bool kernel_serves;
    uint64_t kernel_search;
    char admin_text[512]; /* "name state reason" of the last SET_ADMIN_STATE */

    /* Of a executor with a store. */
    char directory[64];
    int threads; /* of the executor */
    struct wpk_clock_fake clock;
    const struct wpk_clock *time; /* that clock; with threads the machine's */
    struct wpk_store *store;
    struct wpk_executor *executor;
    uint64_t artifact_bytes_max;
    struct wpk_auth *auth; /* NULL: all are let in */
    uint64_t random;       /* counts: for ids */
    uint32_t slice_count;  /* in which wpk_fixture_start() has read the jobs */
    const char *key;       /* of the next requests; NULL: none */
    int rebuilt;           /* states read again */
    struct wpk_buf body;   /* of the last answer to a request */
};

/* ---- workers */

/* A worker with two cores and both roles, whose hello the caller may change before it is said. */
int wpk_fixture_worker(struct wpk_fixture *fixture, const char *name);
/* Returns what it was told: WPK_OK with a session. */
wpk_err wpk_fixture_hello(struct wpk_fixture *fixture, int worker);
/* Both, with these roles. */
int wpk_fixture_join(struct wpk_fixture *fixture, const char *name, unsigned roles);
/* Send the message with its session. */
void wpk_fixture_say(struct wpk_fixture *fixture, int worker, struct wpk_message *message);
/* Ask for so many; returns how many more it holds. It waits for ten seconds if there are none. */
uint32_t wpk_fixture_poll(struct wpk_fixture *fixture, int worker, uint32_t want);
/* Take the one work item that there is, which is no plain kernel: it cannot build those. */
void wpk_fixture_take(struct wpk_fixture *fixture, int worker);
/* Result of the worker's first work item; returns what became of it. */
enum wpk_ack wpk_fixture_send(struct wpk_fixture *fixture, int worker, struct wpk_result *result);
/* Likewise: it took `ns`. */
enum wpk_ack wpk_fixture_result(struct wpk_fixture *fixture, int worker, enum wpk_outcome outcome,
                                uint64_t ns);
/* Likewise: the anchor beside the candidate has failed. */
enum wpk_ack wpk_fixture_anchor_fails(struct wpk_fixture *fixture, int worker);
/* Likewise of a final's contenders: the first is the fastest. */
enum wpk_ack wpk_fixture_final(struct wpk_fixture *fixture, int worker);
/* Upload this for that work item: true if it is taken; else `err` and `text` say why not. */
bool wpk_fixture_upload(struct wpk_fixture *fixture, int worker, wpk_work_id work,
                        const char *bytes);
/* For what is below: the worker of this connection is told something. */
void wpk_fixture_tell(struct wpk_fixture *fixture, uint32_t peer,
                      const struct wpk_message *message);

/* ---- the state machine alone */

/*   owns  caller frees */
struct wpk_fixture *wpk_fixture_new(void);
void wpk_fixture_free(struct wpk_fixture *fixture);

/* Step the event, and what answers its effects. */
void wpk_fixture_step(struct wpk_fixture *fixture, struct wpk_event *event);
/* Let go what was held. */
void wpk_fixture_answer(struct wpk_fixture *fixture);
/* Time passes, with ticks. */
void wpk_fixture_wait(struct wpk_fixture *fixture, uint64_t ms);

/* A job of `op_count` operators, all of them new; the caller changes it before it is submitted. */
struct wpk_job_entry *wpk_fixture_job(const char *owner, uint32_t first_op, uint32_t op_count);
/* Returns it as the coordinator has it; NULL when it was refused. */
const struct wpk_job_entry *wpk_fixture_submit(struct wpk_fixture *fixture,
                                               struct wpk_job_entry *job);
/* A job of the owner "a" with this one operator, which is not refused. */
const struct wpk_job_entry *wpk_fixture_submit_one(struct wpk_fixture *fixture, uint32_t op,
                                                   uint32_t candidates);
void wpk_fixture_job_event(struct wpk_fixture *fixture, enum wpk_event_kind kind,
                           const struct wpk_job_entry *job);
/* Its connection ends, and nobody waits for it any longer. */
void wpk_fixture_lose(struct wpk_fixture *fixture, int worker);
void wpk_fixture_set_worker(struct wpk_fixture *fixture, const char *name,
                            enum wpk_admin_state state, const char *reason);

/* ---- a executor with a store */

/* For cmocka: `*state` becomes the fixture; before it may point to the number of its threads.
 * Without threads the clock stands still. */
int wpk_fixture_set_up(void **state);
int wpk_fixture_tear_down(void **state);

/* Begin, with what the fixture says of options. */
void wpk_fixture_start(struct wpk_fixture *fixture);
/* Ask as a client that may do anything; the answer comes with a commit. */
void wpk_fixture_begin_request(struct wpk_fixture *fixture, const char *method, const char *path,
                               const char *body);
/* The same, and wait for the answer; returns its status. */
int wpk_fixture_request(struct wpk_fixture *fixture, const char *method, const char *path,
                        const char *body);
/* Deliver the worker's message, and do not commit. */
void wpk_fixture_put(struct wpk_fixture *fixture, int worker, struct wpk_message *message);
/* Take what has become durable, and what threads have answered; returns the store's state. */
wpk_err wpk_fixture_turn(struct wpk_fixture *fixture);
/* Time passes, with a tick. */
void wpk_fixture_tick(struct wpk_fixture *fixture, uint64_t seconds);
uint32_t wpk_fixture_session_count(const struct wpk_fixture *fixture);

#endif
