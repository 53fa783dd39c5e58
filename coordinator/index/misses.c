/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/index/misses.h"

#include "common/json.h"
#include "coordinator/state/table.h"

#include <pthread.h>
#include <stdlib.h>

struct wpk_misses {
    pthread_mutex_t lock;
    struct wpk_table by_key;  /* of the pending */
    struct wpk_miss *pending; /* owned; [WPK_MISSES_MAX] */
};

struct wpk_misses *wpk_misses_new(void)
{
    struct wpk_misses *misses = calloc(1, sizeof *misses);
    WPK_ASSERT(misses != NULL);
    pthread_mutex_init(&misses->lock, NULL);
    return misses;
}

void wpk_miss_fini(struct wpk_miss *miss)
{
    free(miss->key);
    free(miss->op);
}

void wpk_misses_free(struct wpk_misses *misses)
{
    uint32_t count;
    struct wpk_miss *pending = misses != NULL ? wpk_misses_take(misses, &count) : NULL;
    for (uint32_t i = 0; pending != NULL && i < count; i++) {
        wpk_miss_fini(&pending[i]);
    }
    free(pending);
    if (misses != NULL) {
        pthread_mutex_destroy(&misses->lock);
    }
    free(misses);
}

/* Five words, and the device, which may have spaces. */
static char *make_key(const struct wpk_lookup *lookup)
{
    struct wpk_buf key = {0};
    char accuracy[WPK_ACCURACY_TEXT_MAX];
    char *text = NULL;
    size_t size;
    wpk_accuracy_name(lookup->accuracy, accuracy);
    wpk_buf_printf(&key, "%s %d %s %s %s %s", lookup->fingerprint, lookup->threads, lookup->layouts,
                   accuracy, wpk_conditions_name(lookup->conditions), lookup->device);
    WPK_ASSERT(wpk_buf_take(&key, &text, &size) == WPK_OK);
    return text;
}

/* Sums stay numbers of JSON. */
static void add_up(uint64_t *sum, uint64_t more)
{
    *sum = *sum + more < WPK_JSON_INT_MAX ? *sum + more : WPK_JSON_INT_MAX;
}

void wpk_misses_add(struct wpk_misses *misses, const struct wpk_lookup *lookup, char *op,
                    const struct wpk_miss *more)
{
    char *key = make_key(lookup);
    pthread_mutex_lock(&misses->lock);
    struct wpk_miss *miss = wpk_table_get_text(&misses->by_key, key);
    if (miss == NULL && misses->by_key.count < WPK_MISSES_MAX) {
        if (misses->pending == NULL) {
            misses->pending = calloc(WPK_MISSES_MAX, sizeof *misses->pending);
            WPK_ASSERT(misses->pending != NULL);
        }
        miss = &misses->pending[misses->by_key.count];
        *miss = (struct wpk_miss){.key = key, .op = op};
        wpk_table_put_text(&misses->by_key, key, miss);
        key = op = NULL;
    }
    if (miss != NULL) {
        miss->match = more->match;
        add_up(&miss->lookups, more->lookups);
        add_up(&miss->calls, more->calls);
        add_up(&miss->time_ns, more->time_ns);
        miss->estimate_ns = more->estimate_ns;
    }
    pthread_mutex_unlock(&misses->lock);
    free(key);
    free(op);
}

struct wpk_miss *wpk_misses_take(struct wpk_misses *misses, uint32_t *count)
{
    pthread_mutex_lock(&misses->lock);
    struct wpk_miss *pending = misses->pending;
    *count = misses->by_key.count;
    wpk_table_fini(&misses->by_key);
    misses->by_key = (struct wpk_table){0};
    misses->pending = NULL;
    pthread_mutex_unlock(&misses->lock);
    return pending;
}
