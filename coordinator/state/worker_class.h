/* SPDX-License-Identifier: Apache-2.0 */
/* Who can do what: workers that are alike are one worker class, work that asks for the same is one
 * work queue.
 *
 *     worker ─▶ worker class ─(link)─▶ work queue ─▶ owner queue ─▶ claims that are ready ─▶ search
 *
 * A worker class is device class, environment and providers (together: its class), cores, labels
 * and roles. A work queue is what jobs ask of a worker: class, threads, labels, and whether it is
 * to build or to run. Which worker classes are in a work queue is found when either of them is new.
 * From then on a poll looks at the work queues of its worker class only, and new work at the
 * waiting polls of its work queue only. */
#ifndef WPK_COORDINATOR_STATE_WORKER_CLASS_H
#define WPK_COORDINATOR_STATE_WORKER_CLASS_H

#include "coordinator/state/mark.h"
#include "coordinator/state/timing_class.h"

struct wpk_job_entry;
struct wpk_search;
struct wpk_owner_queue;
struct wpk_worker;

enum wpk_queue_stage {
    WPK_QUEUE_RUN, /* what needs the device */
    WPK_QUEUE_BUILD,
    WPK_QUEUE_STAGES,
};

/* A worker class that is in a work queue. */
struct wpk_link {
    struct wpk_worker_class *worker_class;
    struct wpk_work_queue *queue;
    struct wpk_link *worker_class_next;
    struct wpk_link *queue_next;
    struct wpk_link *waiting_next; /* of the work queue's whose worker class has waiting polls */
    struct wpk_link *waiting_prev;
};

struct wpk_worker_class {
    char *key; /* owned: all that makes it */
    struct wpk_timing_class *timing;
    struct wpk_hello hello;           /* of its first worker: what they have in common */
    struct wpk_link *links;           /* owned: the work queues that it is in */
    struct wpk_worker *waiting_first; /* polls, first come first served */
    struct wpk_worker *waiting_last;
    uint32_t worker_count;
    uint32_t available_count; /* that may be given work */
    uint64_t virtual_ns; /* the largest virtual time of who was served, before he was charged */
    uint32_t place;           /* in the coordinator's array */
};

struct wpk_work_queue {
    char *key; /* owned: all that makes it */
    struct wpk_timing_class *timing;
    enum wpk_queue_stage stage;
    int threads;
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX];
    uint32_t label_count;
    struct wpk_link *links;
    struct wpk_link *waiting_first;
    struct wpk_link *waiting_last;
    struct wpk_owner_queue *owner_queues; /* owned; it is freed with the last */
    /* owned; [ready_count]: owner queues with a claim that is ready */
    struct wpk_owner_queue **ready;
    uint32_t ready_count;
    uint32_t ready_capacity;
    uint32_t served_count; /* worker classes in it with a worker that may be given work */
    bool served_changed;   /* in this step, from none or to none */
    uint64_t virtual_ns;   /* the largest of its worker classes', since it is there */
    struct wpk_mark mark;  /* there may be work for a poll that waits */
    uint32_t place;        /* in the coordinator's array */
};

/* Has it all of these labels? */
bool wpk_worker_class_labels_cover(const struct wpk_hello *hello,
                                   const struct wpk_worker_label *labels, uint32_t count);
/* Can they build for that class? */
bool wpk_worker_class_builds_for(const struct wpk_worker_class *worker_class,
                                 const char *class_text);
/* Is its device class the one that the job is for? */
bool wpk_worker_class_is_for(const struct wpk_worker_class *worker_class,
                             const struct wpk_job_entry *job);
/* May it run what the job asks for? */
bool wpk_worker_class_suits(const struct wpk_worker_class *worker_class,
                            const struct wpk_job_entry *job);
/* The worker joins its worker class, which may be new, or leaves it, which may be the end of it.
 * True: it is the first of a worker class that may be given work. */
bool wpk_worker_class_join(struct wpk_coordinator *c, struct wpk_worker *worker);
void wpk_worker_class_leave(struct wpk_coordinator *c, struct wpk_worker *worker);
/* Count it among those that may be given work, or not. True: it is the first of its worker
 * class. */
bool wpk_worker_class_set_available(struct wpk_coordinator *c, struct wpk_worker *worker,
                                    bool available);
/* Its poll waits for work, or does not any more. */
void wpk_worker_class_wait(struct wpk_coordinator *c, struct wpk_worker *worker);
void wpk_worker_class_unwait(struct wpk_worker *worker);
/* Its poll waits for what the search's strategy is asked for, and for nothing else. */
void wpk_worker_class_await(struct wpk_worker *worker, struct wpk_search *search);
/* The strategy has answered: its polls wait for work like others. */
void wpk_worker_class_answered(struct wpk_coordinator *c, struct wpk_search *search);

/* The work queue of those who can do a stage of the search's work for the job, made if need be. */
struct wpk_work_queue *wpk_work_queue_get(struct wpk_coordinator *c,
                                          const struct wpk_search *search,
                                          const struct wpk_job_entry *job,
                                          enum wpk_queue_stage stage);
/* There may be work for a poll that waits: it is looked at when the step ends. */
void wpk_work_queue_mark(struct wpk_coordinator *c, struct wpk_work_queue *queue);
/* Nobody has an owner queue in it any more. */
void wpk_work_queue_drop(struct wpk_coordinator *c, struct wpk_work_queue *queue);
/* Free one, with all that it owns, when everything is freed. */
void wpk_work_queue_free(struct wpk_work_queue *queue);
void wpk_worker_class_free(struct wpk_worker_class *worker_class);

#endif
