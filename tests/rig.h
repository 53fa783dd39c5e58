/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the performer: one on a store in a directory of its own, and what it says last to a
 * worker and to a client. Without threads it is under a clock that stands still. What does not go
 * as it should aborts. */
#ifndef WPK_TESTS_RIG_H
#define WPK_TESTS_RIG_H

#include "coordinator/effects/performer.h"

#define WPK_RIG_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* One candidate: what a strategy tries first does not depend on its seed. */
#define WPK_RIG_JOB(seed)                                                                          \
    "{\"name\":\"one\",\"ops\":["                                                                  \
    "{\"name\":\"a\",\"op\":\"Y[i] = X[i]\","                                                      \
    "\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}],"                                           \
    "\"search\":{\"strategy\":\"ga\",\"seed\":" seed "},"                                          \
    "\"budget\":{\"candidates\":1,\"seconds\":3600}}"

#define WPK_RIG_REFUSED_MAX 8

struct wpk_rig {
    char directory[64];
    int threads; /* of the performer */
    struct wpk_clock_fake clock;
    const struct wpk_clock *time; /* that clock; with threads the machine's */
    struct wpk_store *store;
    struct wpk_performer *performer;
    uint64_t artifact_bytes_max;
    struct wpk_auth *auth;                 /* NULL: all are let in */
    uint32_t peer;                         /* whom the next message is from */
    const char *name;                      /* of who says hello next; NULL: "w" */
    unsigned roles;                        /* likewise; 0: all */
    uint64_t random;                       /* counts: for ids */
    uint32_t slice_count;                  /* in which wpk_rig_start() has read the jobs */
    const char *key;                       /* of the next requests; NULL: none */
    char anchor[WPK_ID_MAX];               /* of the last piece of work; "": none */
    struct wpk_buf reply;                  /* the last frame to a worker */
    uint32_t reply_peer;                   /* whom to */
    uint32_t refused[WPK_RIG_REFUSED_MAX]; /* who was last told that the disk is full */
    uint32_t refused_count;
    int rebuilt; /* states read again */
    int status;  /* of the last answer to a request */
    struct wpk_buf body;
};

/* For cmocka: `*state` becomes the rig; before it may point to the number of its threads. */
int wpk_rig_set_up(void **state);
int wpk_rig_tear_down(void **state);

/* Begin, with what the rig says of options. */
void wpk_rig_start(struct wpk_rig *rig);
/* A worker of one core that builds and runs. */
struct wpk_hello wpk_rig_worker(const char *name);
/* Ask as a client that may do anything; the answer comes with a commit. */
void wpk_rig_begin_request(struct wpk_rig *rig, const char *method, const char *path,
                           const char *body);
/* The same, and commit. */
void wpk_rig_request(struct wpk_rig *rig, const char *method, const char *path, const char *body);
/* Take what has become durable, and what threads have answered. */
void wpk_rig_turn(struct wpk_rig *rig);
/* Time passes, with a tick. */
void wpk_rig_tick(struct wpk_rig *rig, uint64_t seconds);
uint32_t wpk_rig_worker_count(const struct wpk_rig *rig);

/* Send it, and commit; a poll may wait for its answer. */
void wpk_rig_put(struct wpk_rig *rig, const struct wpk_message *message);
/* Likewise, and read the answer into `back`. */
void wpk_rig_ask(struct wpk_rig *rig, const struct wpk_message *message, struct wpk_message *back);
/* With this token; "": none. Returns the session, if `want` is WPK_OK. */
uint64_t wpk_rig_hello(struct wpk_rig *rig, const char *token, wpk_err want);
/* Poll for one piece of work; plain kernels cannot be built here. */
void wpk_rig_poll(struct wpk_rig *rig, uint64_t session, struct wpk_message *back);
/* Poll for one piece of work, which is a trial, and whose candidate is copied. */
wpk_work_id wpk_rig_take_work(struct wpk_rig *rig, uint64_t session, char candidate[256]);
/* A time of it; what became of that. */
enum wpk_ack wpk_rig_result(struct wpk_rig *rig, uint64_t session, wpk_work_id id, bool censored,
                            const char *artifact);
/* Upload what was built for this piece of work. */
void wpk_rig_artifact(struct wpk_rig *rig, uint64_t session, wpk_work_id work, const char *bytes,
                      struct wpk_message *back);

#endif
