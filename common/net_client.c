/* SPDX-License-Identifier: Apache-2.0 */
/* The client. One thread connects, sends, receives and connects again. The library's callbacks only
 * wake this thread, so that it alone waits for the library, and frees what the library has used.
 *
 *     put ──▶ QUEUED ── begun to be sent ──▶ SENT ── reply, loss or time ──▶ ENDED ──▶ next
 *
 * A QUEUED request waits for a connection until it times out. A SENT request ends with its
 * connection, because the owner repeats lost requests. The library's own sockets of this protocol
 * are not used: at about one of ten restarts of a server behind TLS they never connect again
 * (NNG 1.5.2). */
#include "common/net.h"

#include "common/clock.h"
#include "common/net_line.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECONNECT_MS_MIN 50
#define RECONNECT_MS_MAX 2000
#define URL_SIZE 1024

enum slot_state { SLOT_FREE, SLOT_QUEUED, SLOT_SENT, SLOT_ENDED };

struct slot { /* guarded by the client's lock */
    enum slot_state state;
    uint64_t sequence; /* of the request among the client's */
    uint64_t deadline_ns;
    uint64_t sent_ns;
    char *frame; /* QUEUED: the request as it goes out; owned */
    size_t frame_size;
    wpk_err err; /* ENDED */
    char *data;
    size_t size;
};

struct wpk_net_client {
    struct wpk_net_client_options options; /* with its own ca, and the address of now */
    char *urls;                            /* owned: all addresses */
    const char *next;                      /* those after the one of now; the thread's */
    char url[URL_SIZE];
    bool is_local;
    uint64_t sequence; /* of the last request; the owner's */
    pthread_t thread;
    bool has_thread;
    struct wpk_net_line line; /* the thread's */
    pthread_mutex_t lock;   /* guards all below; nothing else is locked, and nothing of the library
                               called, while it is held */
    pthread_cond_t changed; /* for the thread */
    bool is_closing;
    bool must_wake;    /* the owner, once the lock is free */
    uint64_t heard_ns; /* when something last came over this connection */
    bool is_deaf;      /* nothing has for as long as a request lived */
    wpk_err loss;      /* of wpk_net_client_loss */
    struct wpk_diag loss_diag;
    struct slot slots[WPK_NET_SLOTS_MAX];
};

static uint32_t number_of(uint64_t sequence)
{
    return (uint32_t)sequence | WPK_NET_NUMBER_FIRST;
}

/* ---- slots; under the lock */

static void end_slot(struct wpk_net_client *client, struct slot *slot, wpk_err err, char *data,
                     size_t size)
{
    free(slot->frame);
    slot->frame = NULL;
    slot->state = SLOT_ENDED;
    slot->err = err;
    slot->data = data;
    slot->size = size;
    client->must_wake = true;
}

/* The request that waits longest to be sent; NULL when none does. */
static struct slot *first_queued(struct wpk_net_client *client)
{
    struct slot *first = NULL;
    for (int i = 0; i < client->options.slot_count; i++) {
        struct slot *slot = &client->slots[i];
        if (slot->state == SLOT_QUEUED && (first == NULL || slot->sequence < first->sequence)) {
            first = slot;
        }
    }
    return first;
}

static struct slot *sent_with(struct wpk_net_client *client, uint32_t number)
{
    for (int i = 0; i < client->options.slot_count; i++) {
        struct slot *slot = &client->slots[i];
        if (slot->state == SLOT_SENT && number_of(slot->sequence) == number) {
            return slot;
        }
    }
    return NULL;
}

/* End those whose time is over. Returns when the next one's is. A server that says nothing for so
 * long is taken for gone, whatever the kernel thinks. */
static uint64_t expire(struct wpk_net_client *client, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < client->options.slot_count; i++) {
        struct slot *slot = &client->slots[i];
        if (slot->state != SLOT_QUEUED && slot->state != SLOT_SENT) {
            continue;
        }
        if (slot->deadline_ns > now) {
            next = slot->deadline_ns < next ? slot->deadline_ns : next;
            continue;
        }
        client->is_deaf |= slot->state == SLOT_SENT && client->heard_ns < slot->sent_ns &&
                           now - slot->sent_ns >= client->options.patience_ms * WPK_NS_PER_MS;
        end_slot(client, slot, WPK_ETIMEDOUT, NULL, 0);
    }
    return next;
}

/* ---- waiting */

static void unlock(struct wpk_net_client *client)
{
    bool wake = client->must_wake;
    client->must_wake = false;
    pthread_mutex_unlock(&client->lock);
    if (wake) {
        client->options.wake(client->options.user);
    }
}

static void sleep_until(struct wpk_net_client *client, uint64_t until_ns)
{
    if (until_ns == UINT64_MAX) {
        pthread_cond_wait(&client->changed, &client->lock);
        return;
    }
    struct timespec until = {.tv_sec = (time_t)(until_ns / WPK_NS_PER_S),
                             .tv_nsec = (long)(until_ns % WPK_NS_PER_S)};
    pthread_cond_timedwait(&client->changed, &client->lock, &until);
}

/* Until the line can go on, or something can be sent over it, or the time has come; meanwhile
 * requests expire. */
static void wait_until(struct wpk_net_client *client, uint64_t until_ns)
{
    const struct wpk_net_line *line = &client->line;
    pthread_mutex_lock(&client->lock);
    for (;;) {
        uint64_t now = wpk_clock_ns();
        uint64_t next_ns = expire(client, now);
        if (client->is_closing || client->is_deaf || now >= until_ns ||
            wpk_net_line_is_ready(line) ||
            (wpk_net_line_is_idle(line) && first_queued(client) != NULL)) {
            break;
        }
        if (client->must_wake) {
            unlock(client);
            pthread_mutex_lock(&client->lock);
        } else {
            sleep_until(client, next_ns < until_ns ? next_ns : until_ns);
        }
    }
    unlock(client);
}

/* ---- the thread */

static bool is_over(struct wpk_net_client *client)
{
    pthread_mutex_lock(&client->lock);
    bool over = client->is_closing || client->is_deaf;
    pthread_mutex_unlock(&client->lock);
    return over;
}

static void send_next(struct wpk_net_client *client)
{
    char *frame = NULL;
    size_t frame_size = 0;
    pthread_mutex_lock(&client->lock);
    struct slot *slot = first_queued(client);
    if (slot != NULL) {
        frame = slot->frame;
        frame_size = slot->frame_size;
        slot->frame = NULL;
        slot->state = SLOT_SENT;
        slot->sent_ns = wpk_clock_ns();
    }
    pthread_mutex_unlock(&client->lock);
    if (frame != NULL) {
        wpk_net_line_send(&client->line, frame, frame_size);
    }
}

/* A message that answers no request came too late. */
static void deliver(struct wpk_net_client *client, uint32_t number, char *data, size_t size)
{
    pthread_mutex_lock(&client->lock);
    client->heard_ns = wpk_clock_ns();
    struct slot *slot = sent_with(client, number);
    if (slot != NULL) {
        end_slot(client, slot, WPK_OK, data, size);
    }
    unlock(client);
    if (slot == NULL) {
        free(data);
    }
}

/* Everything that has come. False: no more will. */
static bool receive(struct wpk_net_client *client)
{
    uint32_t number;
    char *data;
    size_t size;
    enum wpk_net_line_news news;
    while ((news = wpk_net_line_next(&client->line, &number, &data, &size)) ==
           WPK_NET_LINE_MESSAGE) {
        deliver(client, number, data, size);
    }
    return news != WPK_NET_LINE_LOST;
}

/* There is a connection, or there is none any more. A line that was not lost took too long. */
static void note_line(struct wpk_net_client *client, bool is_open)
{
    struct wpk_net_line *line = &client->line;
    if (!is_open && line->err == WPK_OK) {
        line->err = wpk_net_explain(NNG_ETIMEDOUT, &client->options, &line->diag);
    }
    pthread_mutex_lock(&client->lock);
    client->must_wake |= client->loss == WPK_OK && line->err != WPK_OK;
    client->loss = line->err;
    client->loss_diag = line->diag;
    unlock(client);
}

/* Connect, and talk until the connection is lost. Returns whether there was one. */
static bool talk(struct wpk_net_client *client)
{
    struct wpk_net_line *line = &client->line;
    const struct wpk_net_client_options *options = &client->options;
    uint64_t connected_by_ns = wpk_clock_ns() + options->patience_ms * WPK_NS_PER_MS;
    bool goes_on = wpk_net_line_open(line, options, &client->lock, &client->changed);
    bool was_open = false;
    while (goes_on) {
        wait_until(client, was_open ? UINT64_MAX : connected_by_ns);
        goes_on = !is_over(client) && receive(client);
        if (!was_open && line->state == WPK_NET_LINE_OPEN) {
            was_open = true;
            note_line(client, true);
        }
        goes_on = goes_on && (was_open || wpk_clock_ns() < connected_by_ns);
        if (goes_on && wpk_net_line_is_idle(line)) {
            send_next(client);
        }
    }
    note_line(client, false);
    wpk_net_line_close(line);
    pthread_mutex_lock(&client->lock);
    client->is_deaf = false;
    for (int i = 0; i < client->options.slot_count; i++) {
        if (client->slots[i].state == SLOT_SENT) {
            end_slot(client, &client->slots[i], WPK_ECLOSED, NULL, 0);
        }
    }
    unlock(client);
    return was_open;
}

static void *run(void *user)
{
    struct wpk_net_client *client = user;
    uint64_t pause_ms = RECONNECT_MS_MIN;
    while (!is_over(client)) {
        if (talk(client)) {
            pause_ms = RECONNECT_MS_MIN;
        }
        if (wpk_address_take(&client->next, client->url, sizeof client->url)) {
            continue;
        }
        client->next = client->urls;
        (void)wpk_address_take(&client->next, client->url, sizeof client->url);
        wait_until(client, wpk_clock_ns() + pause_ms * WPK_NS_PER_MS);
        pause_ms = pause_ms * 2 < RECONNECT_MS_MAX ? pause_ms * 2 : RECONNECT_MS_MAX;
    }
    return NULL;
}

/* ---- the owner's side */

static wpk_err start(struct wpk_net_client *client)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all); /* signals are the owner's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    client->has_thread = pthread_create(&client->thread, NULL, run, client) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return client->has_thread ? WPK_OK : WPK_ESYSTEM;
}

/* Now: a wrong address would not become valid later. */
static wpk_err check_urls(const struct wpk_net_client_options *options, struct wpk_diag *diag)
{
    char url[URL_SIZE];
    struct wpk_net_client_options one = *options;
    wpk_err err = options->url[0] != '\0' ? WPK_OK : wpk_fail(diag, WPK_EINVAL, "no address");
    one.url = url;
    for (const char *at = options->url; err == WPK_OK && wpk_address_take(&at, url, sizeof url);) {
        nng_stream_dialer *dialer = NULL;
        err = wpk_net_dialer_make(&one, &dialer, diag);
        nng_stream_dialer_free(dialer);
        if (err == WPK_OK && wpk_net_is_local(url) != wpk_net_is_local(options->url)) {
            err = wpk_fail(diag, WPK_EINVAL, "%s: all addresses are ipc://, or none is", url);
        }
    }
    return err;
}

wpk_err wpk_net_client_open(const struct wpk_net_client_options *options,
                            struct wpk_net_client **out, struct wpk_diag *diag)
{
    WPK_ASSERT(options->wake != NULL);
    WPK_ASSERT(options->slot_count > 0 && options->slot_count <= WPK_NET_SLOTS_MAX);
    wpk_err err = check_urls(options, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_net_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return WPK_ENOMEM;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* wpk_clock_now_ns's */
    pthread_cond_init(&client->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&client->lock, NULL);
    client->options = *options;
    if (client->options.patience_ms == 0) {
        client->options.patience_ms = WPK_NET_PATIENCE_MS;
    }
    client->options.url = client->url;
    client->is_local = wpk_net_is_local(options->url);
    client->urls = strdup(options->url);
    client->next = client->urls != NULL ? client->urls : "";
    (void)wpk_address_take(&client->next, client->url, sizeof client->url);
    client->options.ca = options->ca != NULL ? strdup(options->ca) : NULL;
    bool copied = client->urls != NULL && (options->ca == NULL || client->options.ca != NULL);
    err = copied ? start(client) : WPK_ENOMEM;
    if (err != WPK_OK) {
        wpk_net_client_close(client);
        return err;
    }
    *out = client;
    return WPK_OK;
}

void wpk_net_client_close(struct wpk_net_client *client)
{
    if (client == NULL) {
        return;
    }
    pthread_mutex_lock(&client->lock);
    client->is_closing = true;
    pthread_cond_signal(&client->changed);
    pthread_mutex_unlock(&client->lock);
    if (client->has_thread) {
        pthread_join(client->thread, NULL);
    }
    for (int i = 0; i < client->options.slot_count; i++) {
        free(client->slots[i].frame);
        free(client->slots[i].data);
    }
    free(client->urls);
    free((char *)(uintptr_t)client->options.ca);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

wpk_err wpk_net_client_loss(const struct wpk_net_client *client, struct wpk_diag *diag)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&client->lock; /* the lock is not what is const */
    pthread_mutex_lock(lock);
    wpk_err loss = client->loss;
    if (loss != WPK_OK && diag != NULL) {
        *diag = client->loss_diag;
    }
    pthread_mutex_unlock(lock);
    return loss;
}

wpk_err wpk_net_client_put(struct wpk_net_client *client, int index, const void *data, size_t size,
                           uint64_t timeout_ms)
{
    WPK_ASSERT(index >= 0 && index < client->options.slot_count);
    WPK_ASSERT(!wpk_net_client_busy(client, index));
    struct slot *slot = &client->slots[index];
    uint64_t sequence = ++client->sequence;
    size_t frame_size;
    char *frame =
        wpk_net_line_frame(client->is_local, number_of(sequence), data, size, &frame_size);
    if (frame == NULL) {
        return WPK_ENOMEM;
    }
    pthread_mutex_lock(&client->lock);
    slot->sequence = sequence;
    slot->deadline_ns = wpk_clock_ns() + timeout_ms * WPK_NS_PER_MS;
    slot->frame = frame;
    slot->frame_size = frame_size;
    slot->state = SLOT_QUEUED;
    pthread_cond_signal(&client->changed);
    pthread_mutex_unlock(&client->lock);
    return WPK_OK;
}

bool wpk_net_client_busy(const struct wpk_net_client *client, int slot)
{
    WPK_ASSERT(slot >= 0 && slot < client->options.slot_count);
    pthread_mutex_t *lock = (pthread_mutex_t *)&client->lock; /* the lock is not what is const */
    pthread_mutex_lock(lock);
    bool busy = client->slots[slot].state != SLOT_FREE;
    pthread_mutex_unlock(lock);
    return busy;
}

bool wpk_net_client_next(struct wpk_net_client *client, int *slot_index, wpk_err *err, char **data,
                         size_t *size)
{
    bool ended = false;
    pthread_mutex_lock(&client->lock);
    for (int i = 0; i < client->options.slot_count && !ended; i++) {
        struct slot *slot = &client->slots[i];
        ended = slot->state == SLOT_ENDED;
        if (ended) {
            *slot_index = i;
            *err = slot->err;
            *data = slot->data;
            *size = slot->size;
            slot->data = NULL;
            slot->state = SLOT_FREE;
        }
    }
    pthread_mutex_unlock(&client->lock);
    return ended;
}
