/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the state machine: a coordinator whose effects are answered at once, or when a test
 * says so, and workers who say what they are told to. Strategies give "c<n>" for ever. */
#ifndef WPK_TESTS_SCENE_H
#define WPK_TESTS_SCENE_H

#include "coordinator/state/coordinator.h"
#include "coordinator/state/group.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/outlier.h"
#include "coordinator/state/stake.h"
#include "coordinator/state/state.h"

#define WPK_SCENE_WORKERS_MAX 64
#define WPK_SCENE_ANSWERS_MAX 1024

/* What a worker has, and what it was told last. */
struct wpk_scene_worker {
    struct wpk_hello hello;
    uint64_t session;
    struct wpk_work held[WPK_LEASES_MAX]; /* its texts are not kept, but for: */
    char artifact[WPK_LEASES_MAX][WPK_ID_MAX];
    char anchor[WPK_LEASES_MAX][WPK_ID_MAX];
    uint32_t held_count;
    enum wpk_message_kind told;
    uint32_t told_count; /* answers so far */
    wpk_err err;
    char text[512];
    enum wpk_ack acks[WPK_WORK_MAX];
    bool answered; /* its last question */
};

struct wpk_scene {
    struct wpk_coordinator *c;
    struct wpk_effects effects;
    uint64_t now_ns;
    struct wpk_scene_worker workers[WPK_SCENE_WORKERS_MAX];
    uint32_t worker_count;
    /* Answers to effects, in order, and whether they wait for wpk_scene_answer(). */
    struct wpk_event answers[WPK_SCENE_ANSWERS_MAX];
    uint32_t answer_count;
    bool hold;
    uint64_t search_next;
    uint64_t kernel_next;
    uint64_t refuse_at; /* strategies refuse after so many asks; 0: never */
    /* What the store knows of every search: its plain fields. Every search has an anchor. */
    struct wpk_opened opened;
    uint32_t seen[WPK_EFFECT_LOG + 1]; /* effects, by kind */
    struct wpk_owner_event owner;      /* the last SET_OWNER */
    int status;                        /* of the last answer to a request */
    uint32_t retry_after_s;
    char problem[512];
    char verified_by[WPK_WORKER_NAME_MAX]; /* of the last kernel: of our own, */
    char kernel_provider[WPK_PROVIDER_NAME_MAX];
    bool kernel_serves;
    uint64_t kernel_search;
    char order_text[512]; /* "name order reason" of the last SET_WORKER_ORDER */
};

/*   owns  caller frees */
struct wpk_scene *wpk_scene_new(void);
void wpk_scene_free(struct wpk_scene *scene);

/* Step the event, and what answers its effects. */
void wpk_scene_step(struct wpk_scene *scene, struct wpk_event *event);
/* Let go what was held. */
void wpk_scene_answer(struct wpk_scene *scene);
/* Time passes, with ticks. */
void wpk_scene_wait(struct wpk_scene *scene, uint64_t ms);

/* A job of `op_count` operators, all of them new; the caller changes it before it is submitted. */
struct wpk_job_entry *wpk_scene_job(const char *owner, uint32_t first_op, uint32_t op_count);
/* Returns it as the coordinator has it; NULL when it was refused. */
const struct wpk_job_entry *wpk_scene_submit(struct wpk_scene *scene, struct wpk_job_entry *job);
/* A job of the owner "a" with this one operator, which is not refused. */
const struct wpk_job_entry *wpk_scene_submit_one(struct wpk_scene *scene, uint32_t op,
                                                 uint32_t candidates);
void wpk_scene_job_event(struct wpk_scene *scene, enum wpk_event_kind kind,
                         const struct wpk_job_entry *job);

/* A worker with two cores and both roles, whose hello the caller may change before it is said. */
int wpk_scene_worker(struct wpk_scene *scene, const char *name);
void wpk_scene_hello(struct wpk_scene *scene, int worker);
/* Both, with these roles. */
int wpk_scene_join(struct wpk_scene *scene, const char *name, unsigned roles);
/* Its connection ends, and nobody waits for it any longer. */
void wpk_scene_lose(struct wpk_scene *scene, int worker);
/* Ask for so many; returns how many more it holds. It waits for ten seconds if there are none. */
uint32_t wpk_scene_poll(struct wpk_scene *scene, int worker, uint32_t want);
/* Result of the worker's first piece of work, which took `ns`; returns what became of it. */
enum wpk_ack wpk_scene_result(struct wpk_scene *scene, int worker, enum wpk_outcome outcome,
                              uint64_t ns);
/* Likewise: the anchor beside the candidate has failed. */
enum wpk_ack wpk_scene_anchor_fails(struct wpk_scene *scene, int worker);
/* Likewise of a final's contenders: the first is the fastest. */
enum wpk_ack wpk_scene_final(struct wpk_scene *scene, int worker);
/* Upload this for that piece of work: true if it is taken; else `err` and `text` say why not. */
bool wpk_scene_upload(struct wpk_scene *scene, int worker, wpk_work_id work, const char *sha256);
void wpk_scene_set_worker(struct wpk_scene *scene, const char *name, enum wpk_worker_order order,
                          const char *reason);

#endif
