/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture for tests of the coordinator: workers that speak the messages of schema/message.h,
 * above the state machine alone or an executor with a store. A failure of the fixture aborts.
 *
 *     fixture_worker.c    workers: hello, poll, result, upload; work items held, last answers
 *            │ say(message)         ▲ wpk_fixture_tell(message)
 *            ▼                      │
 *     fixture_state.c     the state machine alone; the fixture answers its effects; or
 *     fixture_store.c     an executor with a store in a directory of its own; messages are encoded
 */
#ifndef WPK_TESTS_FIXTURE_H
#define WPK_TESTS_FIXTURE_H

#include "coordinator/effects/executor.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/model.h"
#include "coordinator/state/worker.h"
#include "coordinator/state/worker_class.h"
#include "tests/clock_fake.h"

#define WPK_FIXTURE_WORKERS_MAX 72
#define WPK_FIXTURE_ANSWERS_MAX 1024
#define WPK_FIXTURE_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A job of one candidate. The first candidate of a strategy does not depend on the seed. */
#define WPK_FIXTURE_JOB(seed)                                                                      \
    "{\"name\":\"one\",\"ops\":["                                                                  \
    "{\"name\":\"a\",\"op\":\"Y[i] = X[i]\","                                                      \
    "\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}],"                                           \
    "\"search\":{\"strategy\":\"ga\",\"seed\":" seed "},"                                          \
    "\"budget\":{\"candidates\":1,\"seconds\":3600}}"

/* A job of three candidates. */
#define WPK_FIXTURE_JOB_OF_THREE(seconds)                                                          \
    "{\"name\":\"three\",\"ops\":[{\"name\":\"a\",\"op\":\"Y[i] = X[i] + X[i]\","                  \
    "\"tensors\":{\"X\":\"f32[64]\",\"Y\":\"f32[64]\"}}],"                                         \
    "\"search\":{\"strategy\":\"random\",\"seed\":1},"                                             \
    "\"budget\":{\"candidates\":3,\"seconds\":" seconds "}}"

/* A worker: the work items that it holds, and the last message to it. */
struct wpk_fixture_worker {
    struct wpk_hello hello;
    uint32_t peer; /* its connection */
    uint64_t session;
    struct wpk_work held[WPK_LEASES_MAX]; /* without texts; the next three fields keep some */
    char artifact[WPK_LEASES_MAX][WPK_ID_MAX];
    char anchor[WPK_LEASES_MAX][WPK_ID_MAX];
    char candidate[256]; /* of the work item that came last */
    uint32_t held_count;
    char made[WPK_ID_MAX];      /* last upload, which its results name; "": they make a name up */
    enum wpk_message_kind told; /* the last message to the worker, and its fields below */
    uint32_t told_count;        /* messages to the worker so far */
    uint32_t delayed_count;     /* of these, with retry_ms */
    wpk_err err;
    char text[512]; /* of an error; of a welcome: the server */
    uint32_t retry_ms;
    enum wpk_ack acks[WPK_WORK_MAX];
    bool answered; /* the worker's last message was answered */
};

struct wpk_fixture {
    struct wpk_fixture_worker workers[WPK_FIXTURE_WORKERS_MAX];
    uint32_t worker_count;
    /* Deliver the worker's message; wpk_fixture_tell() takes the answer, if there is one. */
    void (*say)(struct wpk_fixture *fixture, int worker, struct wpk_message *message);
    int status; /* of the last answer to a request */

    /* Fields of the state machine alone. Strategies propose candidates "c<n>" without end. */
    struct wpk_coordinator *c;
    struct wpk_effects effects;
    uint64_t now_ns;
    /* Answers to effects, in order. */
    struct wpk_event answers[WPK_FIXTURE_ANSWERS_MAX];
    uint32_t answer_count;
    bool hold; /* answers wait for wpk_fixture_answer() */
    uint64_t search_next;
    uint64_t kernel_next;
    uint64_t refuse_at; /* strategies refuse after this number of asks; 0: never */
    /* The store's answer when a search is opened; it has an anchor, and its plain kernel ended. */
    struct wpk_opened opened;
    uint32_t seen[WPK_EFFECT_LOG + 1]; /* number of effects, by kind */
    struct wpk_owner_event owner;      /* the last SET_OWNER */
    uint32_t retry_after_s;
    char problem[512];
    char verified_by[WPK_WORKER_NAME_MAX]; /* this and the next three: of the last kernel */
    char kernel_provider[WPK_PROVIDER_NAME_MAX];
    bool kernel_serves;
    uint64_t kernel_search;
    char admin_text[512]; /* "name state reason" of the last SET_ADMIN_STATE */

    /* Fields of an executor with a store. */
    char directory[64];
    int threads; /* of the executor */
    struct wpk_clock_fake clock;
    const struct wpk_clock *time; /* `clock`; with threads the machine's clock */
    struct wpk_store *store;
    struct wpk_executor *executor;
    uint64_t artifact_bytes_max;
    struct wpk_auth *auth; /* NULL: every worker is let in */
    uint64_t random;       /* counter that replaces random numbers for ids */
    uint32_t slice_count;  /* slices in which wpk_fixture_start() has read the jobs */
    const char *key;       /* idempotency key of the next requests; NULL: none */
    int rebuilt;           /* times that the state was read from the store again */
    struct wpk_buf body;   /* of the last answer to a request */
};

/* ---- workers */

/* Add a worker with two cores and both roles; return its index. The caller may change its hello. */
int wpk_fixture_worker(struct wpk_fixture *fixture, const char *name);
/* Say hello; return the error of the answer, WPK_OK with a session. A test may ignore it. */
int wpk_fixture_hello(struct wpk_fixture *fixture, int worker);
/* Add a worker with these roles and say hello; return its index. */
int wpk_fixture_join(struct wpk_fixture *fixture, const char *name, unsigned roles);
/* The worker of this name as the state has it; NULL: there is none. */
const struct wpk_worker *wpk_fixture_find_worker(const struct wpk_fixture *fixture,
                                                 const char *name);
/* Send the message with its session. */
void wpk_fixture_say(struct wpk_fixture *fixture, int worker, struct wpk_message *message);
/* Poll for `want` work items; return how many more the worker holds. The poll waits ten seconds. */
uint32_t wpk_fixture_poll(struct wpk_fixture *fixture, int worker, uint32_t want);
/* Take the one work item that there is. Report candidates of plain kernels as unsupported. */
void wpk_fixture_take(struct wpk_fixture *fixture, int worker);
/* Send the result of the worker's first work item; return its acknowledgement. */
enum wpk_ack wpk_fixture_send(struct wpk_fixture *fixture, int worker, struct wpk_result *result);
/* Send such a result with this outcome and time. */
enum wpk_ack wpk_fixture_result(struct wpk_fixture *fixture, int worker, enum wpk_outcome outcome,
                                uint64_t ns);
/* Send such a result: the anchor beside the candidate has failed. */
enum wpk_ack wpk_fixture_anchor_fails(struct wpk_fixture *fixture, int worker);
/* Send the result of a final: the first contender is the fastest. */
enum wpk_ack wpk_fixture_final(struct wpk_fixture *fixture, int worker);
/* Upload `bytes` for a work item; true if wpkd takes them, else see the worker's `err`, `text`. */
bool wpk_fixture_upload(struct wpk_fixture *fixture, int worker, wpk_work_id work,
                        const char *bytes);
/* Give a message to the worker of this connection; fixture_state.c and fixture_store.c call it. */
void wpk_fixture_tell(struct wpk_fixture *fixture, uint32_t peer,
                      const struct wpk_message *message);
/* Empty the log and set all metrics to 0; fixture_state.c and fixture_store.c call it. */
void wpk_fixture_begin(void);

/* True if a line since the fixture was made has these words: the log goes to a file in memory. */
bool wpk_fixture_logged(const char *words);

/* ---- the state machine alone */

/*   owns  caller frees */
struct wpk_fixture *wpk_fixture_new(void);
void wpk_fixture_free(struct wpk_fixture *fixture);

/* Step the event and, unless `hold`, the answers to its effects. */
void wpk_fixture_step(struct wpk_fixture *fixture, struct wpk_event *event);
/* Step the answers that `hold` has kept. */
void wpk_fixture_answer(struct wpk_fixture *fixture);
/* Let time pass, with ticks. */
void wpk_fixture_wait(struct wpk_fixture *fixture, uint64_t ms);

/* Make a job of `op_count` new operators; the caller may change it before it is submitted. */
struct wpk_job_entry *wpk_fixture_job(const char *owner, uint32_t first_op, uint32_t op_count);
/* Submit a job; return the coordinator's record of it, or NULL if it was refused. */
const struct wpk_job_entry *wpk_fixture_submit(struct wpk_fixture *fixture,
                                               struct wpk_job_entry *job);
/* Submit a job of the owner "a" with one operator; the job must not be refused. */
const struct wpk_job_entry *wpk_fixture_submit_one(struct wpk_fixture *fixture, uint32_t op,
                                                   uint32_t candidates);
void wpk_fixture_job_event(struct wpk_fixture *fixture, enum wpk_event_kind kind,
                           const struct wpk_job_entry *job);
/* End the worker's connection, and wait until its session has ended. */
void wpk_fixture_lose(struct wpk_fixture *fixture, int worker);
void wpk_fixture_set_worker(struct wpk_fixture *fixture, const char *name,
                            enum wpk_admin_state state, const char *reason);

/* ---- an executor with a store */

/* Set-up for cmocka: `*state` becomes the fixture; before, it may point to the number of the
 * executor's threads. Without threads the clock stands still. */
int wpk_fixture_set_up(void **state);
int wpk_fixture_tear_down(void **state);

/* Start the executor with the options in the fixture. */
void wpk_fixture_start(struct wpk_fixture *fixture);
/* Send a request as a client with every role; the answer comes with a commit. */
void wpk_fixture_begin_request(struct wpk_fixture *fixture, const char *method, const char *path,
                               const char *body);
/* Send such a request and wait for the answer; return its status. */
int wpk_fixture_request(struct wpk_fixture *fixture, const char *method, const char *path,
                        const char *body);
/* Deliver the worker's message without a commit. */
void wpk_fixture_put(struct wpk_fixture *fixture, int worker, struct wpk_message *message);
/* Take the batches that are durable and the answers of threads; return the store's state. */
wpk_err wpk_fixture_turn(struct wpk_fixture *fixture);
/* Let time pass, with a tick. */
void wpk_fixture_tick(struct wpk_fixture *fixture, uint64_t seconds);
uint32_t wpk_fixture_session_count(const struct wpk_fixture *fixture);

#endif
