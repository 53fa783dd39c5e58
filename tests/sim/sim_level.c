/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the largest virtual time that a worker class, or a work queue, has served. The leases and
 * the book's virtual times determine it; the coordinator's own records are not used. */
#include "common/err.h"
#include "tests/sim/sim.h"
#include "tests/sim/sim_fair.h"

#include <string.h>

#define PLACES_MAX 4096

/* The largest virtual time at which an owner was given a lease there, before the charge. */
struct place {
    const void *
        where; /* a worker class or a work queue; another one may lie there later: it begins anew */
    double level_ns;
};

static struct {
    struct place places[PLACES_MAX];
    int count;
} levels;

void watched_begin_worker_class(struct wpk_worker_class *worker_class) __asm__(
    "__wrap_wpk_fair_begin_class");
void real_begin_worker_class(struct wpk_worker_class *worker_class) __asm__(
    "__real_wpk_fair_begin_class");
void watched_begin_queue(struct wpk_work_queue *queue) __asm__("__wrap_wpk_fair_begin_queue");
void real_begin_queue(struct wpk_work_queue *queue) __asm__("__real_wpk_fair_begin_queue");

void wpk_sim_level_begin(void)
{
    levels.count = 0;
}

static struct place *place_of(const void *where)
{
    for (int i = 0; i < levels.count; i++) {
        if (levels.places[i].where == where) {
            return &levels.places[i];
        }
    }
    WPK_ASSERT(levels.count < PLACES_MAX);
    levels.places[levels.count] = (struct place){.where = where};
    return &levels.places[levels.count++];
}

static void raise(double *ns, double to_ns)
{
    *ns = *ns > to_ns ? *ns : to_ns;
}

/* A new worker class starts at the least virtual time of the queues that it will serve. */
void watched_begin_worker_class(struct wpk_worker_class *worker_class)
{
    double least_ns = wpk_sim_fair_level(worker_class->timing);
    for (const struct wpk_link *link = worker_class->links; link != NULL;
         link = link->worker_class_next) {
        double ns = place_of(link->queue)->level_ns;
        least_ns = link->queue->timing == worker_class->timing && ns < least_ns ? ns : least_ns;
    }
    place_of(worker_class)->level_ns = least_ns;
    real_begin_worker_class(worker_class);
}

void watched_begin_queue(struct wpk_work_queue *queue)
{
    double most_ns = 0;
    for (const struct wpk_link *link = queue->links; link != NULL; link = link->queue_next) {
        if (link->worker_class->timing == queue->timing) {
            raise(&most_ns, place_of(link->worker_class)->level_ns);
        }
    }
    place_of(queue)->level_ns = most_ns;
    real_begin_queue(queue);
}

void wpk_sim_level_served(const struct wpk_worker_class *worker_class, double virtual_ns)
{
    raise(&place_of(worker_class)->level_ns, virtual_ns);
    for (const struct wpk_link *link = worker_class->links; link != NULL;
         link = link->worker_class_next) {
        if (link->queue->timing == worker_class->timing) {
            raise(&place_of(link->queue)->level_ns, virtual_ns);
        }
    }
}

double wpk_sim_level_of(const void *where)
{
    return place_of(where)->level_ns;
}
