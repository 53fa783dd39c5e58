/* SPDX-License-Identifier: Apache-2.0 */
/* Who can do what: workers that are alike are one group, work that asks for the same is one pool.
 *
 *     worker ─▶ group ─(link)─▶ pool ─▶ seat (of an owner) ─▶ stakes that are ready ─▶ search
 *
 * A group is device class, environment and providers (together: its class), cores, labels and
 * roles. A pool is what jobs ask of a worker: class, threads, labels, and whether it is to build or
 * to run. Which groups are in a pool is found when either of them is new. From then on a poll looks
 * at the pools of its group only, and new work at the waiting polls of its pool only. */
#ifndef WPK_COORDINATOR_STATE_GROUP_H
#define WPK_COORDINATOR_STATE_GROUP_H

#include "coordinator/state/state.h"
#include "coordinator/state/table.h"

#define WPK_CLASS_TEXT_MAX (2 * WPK_DEVICE_TEXT_MAX + WPK_ENVIRONMENT_MAX + WPK_KEY_TEXT_MAX + 4)

struct wpk_coordinator;

enum wpk_pool_stage {
    WPK_POOL_RUN, /* what needs the device */
    WPK_POOL_BUILD,
    WPK_POOL_STAGES,
};

/* Where device time is comparable, and shared (fair.h). */
struct wpk_class {
    char text[WPK_CLASS_TEXT_MAX]; /* "device class\nenvironment\nproviders" */
    uint64_t virtual_ns;       /* the largest of its groups' */
    struct wpk_table accounts; /* owned; struct wpk_account by their owners' numbers */
    uint32_t use_count;        /* by groups and pools; it is freed with the last */
};

/* A group that is in a pool. */
struct wpk_link {
    struct wpk_group *group;
    struct wpk_pool *pool;
    struct wpk_link *group_next;
    struct wpk_link *pool_next;
    struct wpk_link *waiting_next; /* of the pool's whose group has waiting polls */
    struct wpk_link *waiting_prev;
};

struct wpk_group {
    char *key; /* owned: all that makes it */
    struct wpk_class *kind;
    struct wpk_hello hello; /* of its first worker: what they have in common */
    struct wpk_link *links; /* owned: the pools that it is in */
    struct wpk_worker *waiting_first; /* polls, first come first served */
    struct wpk_worker *waiting_last;
    uint32_t worker_count;
    uint32_t available_count; /* that may be given work */
    uint64_t virtual_ns; /* the largest share of who was served, before he was charged */
    uint32_t place;           /* in the coordinator's array */
};

/* One owner's interest in a search: rank is of the first of his operators that wait for it. */
struct wpk_stake {
    struct wpk_search *search;
    struct wpk_seat *seat;
    struct wpk_stake *search_next;
    uint32_t op_count; /* it is freed with the last */
    int priority;
    uint64_t job_number;
    uint32_t position; /* of the operator */
    bool ready;        /* in its seat's array */
    bool backlogged;   /* that, or will be with the answer to an ASK */
};

/* The stakes of one owner in a pool that there is work for, by rank. */
struct wpk_seat {
    struct wpk_account *account;
    struct wpk_pool *pool;
    uint32_t stake_count; /* ready or not: it is freed with the last */
    struct wpk_stake **ready; /* owned; [ready_count] */
    uint32_t ready_count;
    uint32_t ready_capacity;
    uint32_t place; /* in the pool's array of those that are ready */
    struct wpk_seat *next;
};

struct wpk_pool {
    char *key; /* owned: all that makes it */
    struct wpk_class *kind;
    enum wpk_pool_stage stage;
    int threads;
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX];
    uint32_t label_count;
    struct wpk_link *links;
    struct wpk_link *waiting_first;
    struct wpk_link *waiting_last;
    struct wpk_seat *seats;  /* owned; it is freed with the last */
    struct wpk_seat **ready; /* owned; [ready_count]: seats with a stake that is ready */
    uint32_t ready_count;
    uint32_t ready_capacity;
    uint32_t served_count; /* groups in it with a worker that may be given work */
    uint64_t virtual_ns;   /* the largest of its groups', since it is there */
    bool dirty; /* there may be work for a poll that waits */
    struct wpk_pool *dirty_next;
    uint32_t place; /* in the coordinator's array */
};

void wpk_class_text(const char *device_class, const struct wpk_hello *hello,
                    char out[WPK_CLASS_TEXT_MAX]);
/* The class's name of the providers: "halide-cpu;onednn", in the worker's order. */
void wpk_providers_text(const struct wpk_hello *hello, char out[WPK_KEY_TEXT_MAX]);
/* Has it all of these labels? */
bool wpk_labels_cover(const struct wpk_hello *hello, const struct wpk_worker_label *labels,
                      uint32_t count);

/* Can they build for that class? */
bool wpk_group_builds_for(const struct wpk_group *group, const char *class_text);

/* The worker joins its group, which may be new, or leaves it, which may be the end of it. True: it
 * is the first of a group that may be given work. */
bool wpk_group_join(struct wpk_coordinator *c, struct wpk_worker *worker);
void wpk_group_leave(struct wpk_coordinator *c, struct wpk_worker *worker);
/* Count it among those that may be given work, or not. True: it is the first of its group. */
bool wpk_group_set_available(struct wpk_coordinator *c, struct wpk_worker *worker, bool available);
/* Its poll waits for work, or does not any more. */
void wpk_group_wait(struct wpk_coordinator *c, struct wpk_worker *worker);
void wpk_group_unwait(struct wpk_worker *worker);
/* Its poll waits for what the search's strategy is asked for, and for nothing else. */
void wpk_group_await(struct wpk_worker *worker, struct wpk_search *search);
/* The strategy has answered: its polls wait for work like others. */
void wpk_group_answered(struct wpk_coordinator *c, struct wpk_search *search);

/* The operator is worked on from now on, or not any more. */
void wpk_stake_add(struct wpk_coordinator *c, struct wpk_job_op_state *op);
void wpk_stake_drop(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* Note which stages there is work for; those who wait for it are served at the end of the step. */
void wpk_search_set_ready(struct wpk_coordinator *c, struct wpk_search *search, unsigned ready);
/* Whether there is anybody for the pool's work has changed. */
void wpk_stake_served(struct wpk_coordinator *c, const struct wpk_pool *pool);
/* Does `a` come before `b`, of one owner? */
bool wpk_stake_before(const struct wpk_stake *a, const struct wpk_stake *b);

/* The pool of those who can do a stage of the search's work for the job, made if need be. */
struct wpk_pool *wpk_pool_get(struct wpk_coordinator *c, const struct wpk_search *search,
                              const struct wpk_job_entry *job, enum wpk_pool_stage stage);
/* There may be work for a poll that waits: it is looked at when the step ends. */
void wpk_pool_mark(struct wpk_coordinator *c, struct wpk_pool *pool);
/* Nobody has a seat in it any more. */
void wpk_pool_drop(struct wpk_coordinator *c, struct wpk_pool *pool);
void wpk_class_release(struct wpk_coordinator *c, struct wpk_class *kind);

/* Free one, with all that it owns, when everything is freed. */
void wpk_pool_free(struct wpk_pool *pool);
void wpk_group_free(struct wpk_group *group);
void wpk_class_free(struct wpk_class *kind);

#endif
