/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/worker_class.h"

#include "coordinator/state/fair.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"
#include "search/back_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_TEXT_MAX (WPK_WORKER_LABEL_NAME_MAX + WPK_WORKER_LABEL_VALUE_MAX + 2)
#define KEY_TEXT_MAX                                                                               \
    (WPK_TIMING_CLASS_TEXT_MAX + WPK_WORKER_LABELS_MAX * LABEL_TEXT_MAX + WPK_KEY_TEXT_MAX + 64)

/* ---- texts */

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const struct wpk_worker_label *)a)->name,
                  ((const struct wpk_worker_label *)b)->name);
}

/* A key's text: the class, two numbers, a list of back ends, and the labels by name. */
static void key_text(const struct wpk_timing_class *timing, const unsigned numbers[2],
                     const char *back_ends, const struct wpk_worker_label *labels, uint32_t count,
                     char out[KEY_TEXT_MAX])
{
    struct wpk_worker_label sorted[WPK_WORKER_LABELS_MAX];
    int at = snprintf(out, KEY_TEXT_MAX, "%s\n%u\n%u\n%s", timing->text, numbers[0], numbers[1],
                      back_ends);
    memcpy(sorted, labels, count * sizeof sorted[0]);
    if (count > 1) {
        qsort(sorted, count, sizeof sorted[0], compare_labels);
    }
    for (uint32_t i = 0; i < count; i++) {
        at += snprintf(out + at, (size_t)(KEY_TEXT_MAX - at), "\n%s=%s", sorted[i].name,
                       sorted[i].value);
    }
}

void wpk_worker_class_list_back_ends(const struct wpk_hello *hello, char out[WPK_KEY_TEXT_MAX])
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < hello->back_end_count && at < WPK_KEY_TEXT_MAX; i++) {
        const struct wpk_message_back_end *back_end = &hello->back_ends[i];
        char entry[WPK_BACK_END_MAX];
        wpk_back_end_entry(back_end->name, back_end->version, entry);
        if (back_end->missing[0] == '\0') {
            at += (size_t)snprintf(out + at, WPK_KEY_TEXT_MAX - at, "+%s", entry);
        }
    }
}

bool wpk_worker_class_offers(const struct wpk_worker_class *worker_class, const char *back_ends)
{
    char offered[WPK_KEY_TEXT_MAX], wanted[WPK_BACK_END_MAX], entry[WPK_BACK_END_MAX];
    bool all = true;
    wpk_worker_class_list_back_ends(&worker_class->hello, offered);
    (void)wpk_back_ends_next(&back_ends, wanted);
    while (all && wpk_back_ends_next(&back_ends, wanted)) {
        const char *list = offered + 1;
        all = false;
        while (offered[0] != '\0' && !all && wpk_back_ends_next(&list, entry)) {
            all = strcmp(entry, wanted) == 0;
        }
    }
    return all;
}

bool wpk_worker_class_labels_cover(const struct wpk_hello *hello,
                                   const struct wpk_worker_label *labels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < hello->label_count; k++) {
            found = found || (strcmp(hello->labels[k].name, labels[i].name) == 0 &&
                              strcmp(hello->labels[k].value, labels[i].value) == 0);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* ---- links */

static bool has_item(const char *items, const char *item, size_t size)
{
    for (const char *at = items; *at != '\0'; at += *at == ';') {
        size_t length = strcspn(at, ";");
        if (length == size && strncmp(at, item, size) == 0) {
            return true;
        }
        at += length;
    }
    return false;
}

/* A build-only worker class need not have the device, nor its vendors' libraries: all that its own
 * environment names, for instance the compiler, must be in the timing class's environment. */
bool wpk_worker_class_builds_for(const struct wpk_worker_class *worker_class,
                                 const char *class_text)
{
    char environment[WPK_ENVIRONMENT_MAX];
    const char *start = strchr(class_text, '\n') + 1;
    snprintf(environment, sizeof environment, "%.*s", (int)strcspn(start, "\n"), start);
    for (const char *at = worker_class->hello.environment; *at != '\0'; at += *at == ';') {
        size_t size = strcspn(at, ";");
        if (!has_item(environment, at, size)) {
            return false;
        }
        at += size;
    }
    const char *providers = strchr(start, '\n') + 1;
    const char *own = worker_class->hello.providers[0].name;
    return worker_class->hello.provider_count > 0 && strcspn(providers, ";") == strlen(own) &&
           wpk_begins(providers, own);
}

static bool is_in(const struct wpk_worker_class *worker_class, const struct wpk_work_queue *queue)
{
    unsigned roles = worker_class->hello.roles;
    if ((roles & WPK_WORKER_RUNS) == 0) {
        return queue->stage == WPK_QUEUE_BUILD &&
               wpk_worker_class_builds_for(worker_class, queue->timing->text) &&
               wpk_worker_class_offers(worker_class, queue->back_ends);
    }
    bool role = queue->stage == WPK_QUEUE_RUN || (roles & WPK_WORKER_BUILDS) != 0;
    return role && worker_class->timing == queue->timing &&
           worker_class->hello.device.core_count >= queue->threads &&
           wpk_worker_class_labels_cover(&worker_class->hello, queue->labels, queue->label_count) &&
           wpk_worker_class_offers(worker_class, queue->back_ends);
}

static void set_waiting(struct wpk_link *link)
{
    struct wpk_work_queue *queue = link->queue;
    link->waiting_next = NULL;
    link->waiting_prev = queue->waiting_last;
    *(queue->waiting_last != NULL ? &queue->waiting_last->waiting_next : &queue->waiting_first) =
        link;
    queue->waiting_last = link;
}

static void clear_waiting(struct wpk_link *link)
{
    struct wpk_work_queue *queue = link->queue;
    *(link->waiting_prev != NULL ? &link->waiting_prev->waiting_next : &queue->waiting_first) =
        link->waiting_next;
    *(link->waiting_next != NULL ? &link->waiting_next->waiting_prev : &queue->waiting_last) =
        link->waiting_prev;
    link->waiting_next = NULL;
    link->waiting_prev = NULL;
}

static void link_if_in(struct wpk_worker_class *worker_class, struct wpk_work_queue *queue)
{
    if (!is_in(worker_class, queue)) {
        return;
    }
    struct wpk_link *link = WPK_DEMAND(calloc(1, sizeof *link));
    *link = (struct wpk_link){.worker_class = worker_class,
                              .queue = queue,
                              .worker_class_next = worker_class->links,
                              .queue_next = queue->links};
    worker_class->links = link;
    queue->links = link;
    queue->served_count += worker_class->available_count > 0;
    if (worker_class->waiting_first != NULL) {
        set_waiting(link);
    }
}

static void take_from_worker_class(struct wpk_link *link)
{
    struct wpk_link **at = &link->worker_class->links;
    while (*at != link) {
        at = &(*at)->worker_class_next;
    }
    *at = link->worker_class_next;
}

static void take_from_queue(struct wpk_link *link)
{
    struct wpk_link **at = &link->queue->links;
    while (*at != link) {
        at = &(*at)->queue_next;
    }
    *at = link->queue_next;
}

/* ---- worker classes */

/* The device class is the first line of a class's text. */
bool wpk_worker_class_is_for(const struct wpk_worker_class *worker_class,
                             const struct wpk_job_entry *job)
{
    size_t size = strlen(job->device);
    return size == 0 || (strncmp(worker_class->timing->text, job->device, size) == 0 &&
                         worker_class->timing->text[size] == '\n');
}

bool wpk_worker_class_suits(const struct wpk_worker_class *worker_class,
                            const struct wpk_job_entry *job)
{
    return (worker_class->hello.roles & WPK_WORKER_RUNS) != 0 &&
           strcmp(worker_class->hello.device.kind, job->kind) == 0 &&
           wpk_worker_class_is_for(worker_class, job) &&
           worker_class->hello.device.core_count >= job->threads &&
           wpk_worker_class_labels_cover(&worker_class->hello, job->labels, job->label_count);
}

static struct wpk_worker_class *worker_class_new(struct wpk_coordinator *c,
                                                 const struct wpk_worker *worker,
                                                 struct wpk_timing_class *timing, const char *key)
{
    struct wpk_worker_class *worker_class = WPK_DEMAND(calloc(1, sizeof *worker_class));
    worker_class->key = WPK_DEMAND(strdup(key));
    worker_class->timing = timing;
    worker_class->hello = worker->hello;
    c->worker_classes = wpk_grow(c->worker_classes, c->worker_class_count,
                                 &c->worker_class_capacity, sizeof *c->worker_classes);
    worker_class->place = c->worker_class_count;
    c->worker_classes[c->worker_class_count++] = worker_class;
    wpk_table_put_text(&c->worker_classes_by_key, worker_class->key, worker_class);
    for (uint32_t i = 0; i < c->queue_count; i++) {
        link_if_in(worker_class, c->queues[i]);
    }
    wpk_fair_begin_class(worker_class);
    return worker_class;
}

bool wpk_worker_class_join(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    const struct wpk_hello *hello = &worker->hello;
    char text[WPK_TIMING_CLASS_TEXT_MAX];
    char back_ends[WPK_KEY_TEXT_MAX];
    char key[KEY_TEXT_MAX];
    wpk_timing_class_text(worker->device_class, hello, text);
    struct wpk_timing_class *timing = wpk_timing_class_use(c, text);
    wpk_worker_class_list_back_ends(hello, back_ends);
    key_text(timing, (unsigned[]){(unsigned)hello->device.core_count, hello->roles}, back_ends,
             hello->labels, hello->label_count, key);
    worker->worker_class = wpk_table_get_text(&c->worker_classes_by_key, key);
    if (worker->worker_class != NULL) {
        wpk_timing_class_release(c, timing);
    } else {
        worker->worker_class = worker_class_new(c, worker, timing, key);
    }
    worker->worker_class->worker_count++;
    return wpk_worker_class_set_available(c, worker, true);
}

void wpk_worker_class_free(struct wpk_worker_class *worker_class)
{
    for (struct wpk_link *link = worker_class->links, *next; link != NULL; link = next) {
        next = link->worker_class_next;
        free(link);
    }
    free(worker_class->key);
    free(worker_class);
}

void wpk_worker_class_leave(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    struct wpk_worker_class *worker_class = worker->worker_class;
    wpk_worker_class_unwait(worker);
    wpk_worker_class_set_available(c, worker, false);
    worker->worker_class = NULL;
    if (--worker_class->worker_count > 0) {
        return;
    }
    for (struct wpk_link *link = worker_class->links; link != NULL;
         link = link->worker_class_next) {
        take_from_queue(link);
    }
    wpk_table_take_text(&c->worker_classes_by_key, worker_class->key);
    c->worker_classes[worker_class->place] = c->worker_classes[--c->worker_class_count];
    c->worker_classes[worker_class->place]->place = worker_class->place;
    wpk_timing_class_release(c, worker_class->timing);
    wpk_worker_class_free(worker_class);
}

/* The worker class has somebody for the work of its work queues, or nobody any more. */
static void set_served(struct wpk_coordinator *c, const struct wpk_worker_class *worker_class,
                       bool served)
{
    for (struct wpk_link *link = worker_class->links; link != NULL;
         link = link->worker_class_next) {
        struct wpk_work_queue *queue = link->queue;
        queue->served_count += served ? 1 : UINT32_MAX; /* one less */
        if (queue->served_count == (served ? 1 : 0)) {
            queue->served_changed = true;
            c->served_changed = true;
            c->unserved = c->unserved || !served;
        }
    }
}

bool wpk_worker_class_set_available(struct wpk_coordinator *c, struct wpk_worker *worker,
                                    bool available)
{
    struct wpk_worker_class *worker_class = worker->worker_class;
    if (available == worker->available) {
        return false;
    }
    worker->available = available;
    worker_class->available_count += available ? 1 : UINT32_MAX; /* one less */
    if (worker_class->available_count == (available ? 1 : 0)) {
        set_served(c, worker_class, available);
    }
    return available && worker_class->available_count == 1;
}

/* ---- polls that wait */

void wpk_work_queue_mark(struct wpk_coordinator *c, struct wpk_work_queue *queue)
{
    if (queue->ready_count > 0 && queue->waiting_first != NULL) {
        wpk_mark_put(&c->marked_queues, &queue->mark, queue);
    }
}

static void unawait(struct wpk_worker *worker)
{
    *(worker->prev != NULL ? &worker->prev->next : &worker->awaited->awaiting) = worker->next;
    if (worker->next != NULL) {
        worker->next->prev = worker->prev;
    }
    worker->awaited = NULL;
}

static void enqueue(struct wpk_coordinator *c, struct wpk_worker *worker, bool first)
{
    struct wpk_worker_class *worker_class = worker->worker_class;
    bool was_empty = worker_class->waiting_first == NULL;
    worker->queued = true;
    worker->prev = first ? NULL : worker_class->waiting_last;
    worker->next = first ? worker_class->waiting_first : NULL;
    *(worker->prev != NULL ? &worker->prev->next : &worker_class->waiting_first) = worker;
    *(worker->next != NULL ? &worker->next->prev : &worker_class->waiting_last) = worker;
    for (struct wpk_link *link = worker_class->links; link != NULL;
         link = link->worker_class_next) {
        if (was_empty) {
            set_waiting(link);
        }
        wpk_work_queue_mark(c, link->queue);
    }
}

void wpk_worker_class_wait(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    wpk_worker_class_unwait(worker);
    enqueue(c, worker, false);
}

void wpk_worker_class_await(struct wpk_worker *worker, struct wpk_search *search)
{
    wpk_worker_class_unwait(worker);
    worker->awaited = search;
    worker->prev = NULL;
    worker->next = search->awaiting;
    if (worker->next != NULL) {
        worker->next->prev = worker;
    }
    search->awaiting = worker;
}

void wpk_worker_class_answered(struct wpk_coordinator *c, struct wpk_search *search)
{
    while (search->awaiting != NULL) {
        struct wpk_worker *worker = search->awaiting;
        unawait(worker);
        enqueue(c, worker, true); /* the last that came to wait is the first of this list */
    }
}

void wpk_worker_class_unwait(struct wpk_worker *worker)
{
    struct wpk_worker_class *worker_class = worker->worker_class;
    if (worker->awaited != NULL) {
        unawait(worker);
    }
    if (!worker->queued) {
        return;
    }
    worker->queued = false;
    *(worker->prev != NULL ? &worker->prev->next : &worker_class->waiting_first) = worker->next;
    *(worker->next != NULL ? &worker->next->prev : &worker_class->waiting_last) = worker->prev;
    for (struct wpk_link *link = worker_class->links;
         worker_class->waiting_first == NULL && link != NULL; link = link->worker_class_next) {
        clear_waiting(link);
    }
}

/* ---- work queues */

struct wpk_work_queue *wpk_work_queue_get(struct wpk_coordinator *c,
                                          const struct wpk_search *search,
                                          const struct wpk_job_entry *job,
                                          enum wpk_queue_stage stage)
{
    char text[WPK_TIMING_CLASS_TEXT_MAX];
    char back_ends[WPK_KEY_TEXT_MAX];
    char key[KEY_TEXT_MAX];
    wpk_search_key_class(&search->key, text);
    const char *providers = stage == WPK_QUEUE_BUILD ? search->key.providers : "";
    snprintf(back_ends, sizeof back_ends, "%.*s", (int)strcspn(providers, ";"), providers);
    struct wpk_timing_class *timing = wpk_timing_class_use(c, text);
    key_text(timing, (unsigned[]){(unsigned)stage, (unsigned)search->key.threads}, back_ends,
             job->labels, job->label_count, key);
    struct wpk_work_queue *queue = wpk_table_get_text(&c->queues_by_key, key);
    if (queue != NULL) {
        wpk_timing_class_release(c, timing);
        return queue;
    }
    queue = WPK_DEMAND(calloc(1, sizeof *queue));
    queue->key = WPK_DEMAND(strdup(key));
    queue->timing = timing;
    queue->stage = stage;
    queue->threads = search->key.threads;
    memcpy(queue->back_ends, back_ends, sizeof queue->back_ends);
    memcpy(queue->labels, job->labels, sizeof queue->labels);
    queue->label_count = job->label_count;
    c->queues = wpk_grow(c->queues, c->queue_count, &c->queue_capacity, sizeof *c->queues);
    queue->place = c->queue_count;
    c->queues[c->queue_count++] = queue;
    wpk_table_put_text(&c->queues_by_key, queue->key, queue);
    for (uint32_t i = 0; i < c->worker_class_count; i++) {
        link_if_in(c->worker_classes[i], queue);
    }
    wpk_fair_begin_queue(queue);
    return queue;
}

void wpk_work_queue_free(struct wpk_work_queue *queue)
{
    for (struct wpk_owner_queue *owner_queue = queue->owner_queues, *next; owner_queue != NULL;
         owner_queue = next) {
        next = owner_queue->next;
        free(owner_queue->ready);
        free(owner_queue);
    }
    free(queue->ready);
    free(queue->key);
    free(queue);
}

void wpk_work_queue_drop(struct wpk_coordinator *c, struct wpk_work_queue *queue)
{
    for (struct wpk_link *link = queue->links, *next; link != NULL; link = next) {
        next = link->queue_next;
        take_from_worker_class(link);
        free(link);
    }
    wpk_mark_drop(&c->marked_queues, &queue->mark);
    wpk_table_take_text(&c->queues_by_key, queue->key);
    c->queues[queue->place] = c->queues[--c->queue_count];
    c->queues[queue->place]->place = queue->place;
    wpk_timing_class_release(c, queue->timing);
    wpk_work_queue_free(queue);
}
