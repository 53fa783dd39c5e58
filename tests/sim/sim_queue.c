/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/sim_queue.h"

#include <stdlib.h>
#include <string.h>

static bool is_before(const struct wpk_sim_event *a, const struct wpk_sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(struct wpk_sim_event *a, struct wpk_sim_event *b)
{
    struct wpk_sim_event kept = *a;
    *a = *b;
    *b = kept;
}

void wpk_sim_queue_put(struct wpk_sim_queue *queue, struct wpk_sim_event event)
{
    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity == 0 ? 256 : queue->capacity * 2;
        struct wpk_sim_event *grown = realloc(queue->items, queue->capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        queue->items = grown;
    }
    event.order = ++queue->order_last;
    uint32_t at = queue->count++;
    queue->items[at] = event;
    for (; at > 0 && is_before(&queue->items[at], &queue->items[(at - 1) / 2]); at = (at - 1) / 2) {
        swap(&queue->items[at], &queue->items[(at - 1) / 2]);
    }
}

uint64_t wpk_sim_queue_next_ns(const struct wpk_sim_queue *queue)
{
    return queue->count > 0 ? queue->items[0].at_ns : UINT64_MAX;
}

struct wpk_sim_event wpk_sim_queue_take(struct wpk_sim_queue *queue)
{
    WPK_ASSERT(queue->count > 0);
    struct wpk_sim_event first = queue->items[0];
    queue->items[0] = queue->items[--queue->count];
    uint32_t at = 0;
    while (true) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < queue->count && is_before(&queue->items[child + 1], &queue->items[child])) {
            child++;
        }
        if (child >= queue->count || !is_before(&queue->items[child], &queue->items[at])) {
            return first;
        }
        swap(&queue->items[child], &queue->items[at]);
        at = child;
    }
}

void wpk_sim_queue_fini(struct wpk_sim_queue *queue)
{
    for (uint32_t i = 0; i < queue->count; i++) {
        wpk_buf_fini(&queue->items[i].data);
    }
    free(queue->items);
    memset(queue, 0, sizeof *queue);
}
