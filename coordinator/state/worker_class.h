/* SPDX-License-Identifier: Apache-2.0 */
/* Which workers can do which work. Workers that can do the same work form a worker class; work that
 * asks for the same of a worker forms a work queue.
 *
 *     worker ─▶ worker class ─(link)─▶ work queue ─▶ owner queue ─▶ claims that are ready ─▶ search
 *
 * A worker class is a timing class (device class, environment, providers), cores, labels, roles and
 * the back ends that it offers. A work queue is a timing class, threads, labels, whether the work
 * is to build or to run, and the back ends that a build may be for. A link says that a worker class
 * can do the work of a work queue; links are made when either of the two is new. A poll then looks
 * only at the work queues of its worker class, and new work only at the waiting polls of its work
 * queue. */
#ifndef WPK_COORDINATOR_STATE_WORKER_CLASS_H
#define WPK_COORDINATOR_STATE_WORKER_CLASS_H

#include "coordinator/state/model.h"

/* True if the worker has all of these labels, with these values. */
bool wpk_worker_class_labels_cover(const struct wpk_hello *hello,
                                   const struct wpk_worker_label *labels, uint32_t count);
/* Copy the list of the back ends that a worker offers besides the first: "+c/gcc-12.2.0". */
void wpk_worker_class_list_back_ends(const struct wpk_hello *hello, char out[WPK_KEY_TEXT_MAX]);
/* True if the workers offer each back end of the list but the first, which all workers have. */
bool wpk_worker_class_offers(const struct wpk_worker_class *worker_class, const char *back_ends);
/* True if the workers can build for the timing class of this text, which may be another than their
 * own: its environment has all items of theirs, and its first provider is theirs. */
bool wpk_worker_class_builds_for(const struct wpk_worker_class *worker_class,
                                 const char *class_text);
/* True if the job is for its device class, or for any. */
bool wpk_worker_class_is_for(const struct wpk_worker_class *worker_class,
                             const struct wpk_job_entry *job);
/* True if its workers may run the job: their role, kind of device, device class, cores, labels. */
bool wpk_worker_class_suits(const struct wpk_worker_class *worker_class,
                            const struct wpk_job_entry *job);
/* Put the worker into its worker class, made if need be. It may be given work from now on. True if
 * it is the only worker of the class that may. */
bool wpk_worker_class_join(struct wpk_coordinator *c, struct wpk_worker *worker);
/* Take the worker out of its worker class, which is freed with its last worker. */
void wpk_worker_class_leave(struct wpk_coordinator *c, struct wpk_worker *worker);
/* Note whether the worker may be given work. True if it may now, and is the only worker of its
 * worker class that may. */
bool wpk_worker_class_set_available(struct wpk_coordinator *c, struct wpk_worker *worker,
                                    bool available);
/* The worker's poll waits for work: it is the last of its worker class to be served. */
void wpk_worker_class_wait(struct wpk_coordinator *c, struct wpk_worker *worker);
/* The worker's poll waits for nothing any more. */
void wpk_worker_class_unwait(struct wpk_worker *worker);
/* The worker's poll waits for the answer of the search's strategy, and for nothing else. */
void wpk_worker_class_await(struct wpk_worker *worker, struct wpk_search *search);
/* The strategy has answered: polls that awaited it wait for work again, before all others. */
void wpk_worker_class_answered(struct wpk_coordinator *c, struct wpk_search *search);

/* The work queue for a stage of the search's work for the job, made if need be. */
struct wpk_work_queue *wpk_work_queue_get(struct wpk_coordinator *c,
                                          const struct wpk_search *search,
                                          const struct wpk_job_entry *job,
                                          enum wpk_queue_stage stage);
/* Mark the work queue if it has work and a waiting poll: it is served when the step ends. */
void wpk_work_queue_mark(struct wpk_coordinator *c, struct wpk_work_queue *queue);
/* Free a work queue without owner queues, and its links. */
void wpk_work_queue_drop(struct wpk_coordinator *c, struct wpk_work_queue *queue);
/* Free a work queue, or a worker class, with all that it owns. */
void wpk_work_queue_free(struct wpk_work_queue *queue);
void wpk_worker_class_free(struct wpk_worker_class *worker_class);

#endif
