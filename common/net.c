/* SPDX-License-Identifier: Apache-2.0 */
/* NNG's request/reply, with our own queues.
 *
 * The server is a raw REP socket with one receive operation that starts itself again: contexts
 * would each be occupied by a long poll. The client is a REQ socket with a context per slot and
 * resending off, because a request that was lost is the owner's to repeat. */
#include "common/net.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECONNECT_MS_MIN 50
#define RECONNECT_MS_MAX 2000
#define SEND_QUEUE_COUNT 1024 /* replies that NNG may hold before a reply waits */
#define CLOSE_MS 2000

static wpk_err translate(int code, const char *url, struct wpk_diag *diag)
{
    wpk_diag_set(diag, "%s: %s", url, nng_strerror(code));
    switch (code) {
    case NNG_ENOMEM:
        return WPK_ENOMEM;
    case NNG_EINVAL:
    case NNG_EADDRINVAL:
    case NNG_ENOTSUP:
        return WPK_EINVAL;
    case NNG_EADDRINUSE:
        return WPK_EBUSY;
    case NNG_EPERM:
        return WPK_EACCES;
    case NNG_ETIMEDOUT:
        return WPK_ETIMEDOUT;
    case NNG_ECLOSED:
    case NNG_ECONNRESET:
    case NNG_ECONNREFUSED:
    case NNG_ECANCELED:
        return WPK_ECLOSED;
    default:
        return WPK_ESYSTEM;
    }
}

/* The body of a message, as memory that free() takes; NULL when there is none left. */
static char *copy_body(nng_msg *msg, size_t *size)
{
    *size = nng_msg_len(msg);
    char *data = malloc(*size + 1);
    if (data != NULL) {
        memcpy(data, nng_msg_body(msg), *size);
        data[*size] = '\0';
    }
    return data;
}

/* A socket on its way to be closed; freed by the second of the two that know it. */
struct closing {
    nng_socket socket;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    bool abandoned; /* nobody waits any more */
};

static void closing_free(struct closing *closing)
{
    pthread_cond_destroy(&closing->changed);
    pthread_mutex_destroy(&closing->lock);
    free(closing);
}

static void *close_socket(void *user)
{
    struct closing *closing = user;
    nng_close(closing->socket);
    pthread_mutex_lock(&closing->lock);
    closing->closed = true;
    bool abandoned = closing->abandoned;
    pthread_cond_signal(&closing->changed);
    pthread_mutex_unlock(&closing->lock);
    if (abandoned) {
        closing_free(closing);
    }
    return NULL;
}

static bool wait_closed(struct closing *closing)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += CLOSE_MS / 1000;
    pthread_mutex_lock(&closing->lock);
    int late = 0;
    while (!closing->closed && late == 0) {
        late = pthread_cond_timedwait(&closing->changed, &closing->lock, &end);
    }
    bool closed = closing->closed;
    closing->abandoned = !closed;
    pthread_mutex_unlock(&closing->lock);
    return closed;
}

/* NNG 1.5.2 may wait for itself for ever when it closes a socket that is dialling again, once in
 * some hundred times, and then with every socket that is closed after it. Returns whether the
 * socket is closed; if not, what hangs on it must stay. */
static bool close_in_time(nng_socket socket)
{
    pthread_t thread;
    struct closing *closing = calloc(1, sizeof *closing);
    if (closing == NULL) {
        nng_close(socket);
        return true;
    }
    closing->socket = socket;
    pthread_mutex_init(&closing->lock, NULL);
    pthread_cond_init(&closing->changed, NULL);
    if (pthread_create(&thread, NULL, close_socket, closing) != 0) {
        closing_free(closing);
        nng_close(socket);
        return true;
    }
    pthread_detach(thread);
    bool closed = wait_closed(closing);
    if (closed) {
        closing_free(closing);
    }
    return closed;
}

/* ---- server */

struct queued {
    struct queued *next;
    struct wpk_net_event event;
};

struct wpk_net_server {
    nng_socket socket;
    nng_aio *receive;
    wpk_net_wake wake;
    void *user;
    pthread_mutex_t lock; /* guards all below; nothing else is locked while it is held */
    struct queued *first;
    struct queued *last;
    int count;
    bool paused; /* the queue was full: the next take starts receiving again */
    bool closing;
};

static void queue_put(struct wpk_net_server *server, struct queued *item)
{
    item->next = NULL;
    if (server->last != NULL) {
        server->last->next = item;
    } else {
        server->first = item;
    }
    server->last = item;
    server->count++;
}

/* Turn a message into an event; NULL drops it: its sender hears nothing and asks again. */
static struct queued *queued_new(nng_msg *msg)
{
    size_t header_size = nng_msg_header_len(msg);
    struct queued *item = calloc(1, sizeof *item);
    if (item == NULL || header_size > sizeof item->event.address.header) {
        free(item);
        return NULL;
    }
    struct wpk_net_address *address = &item->event.address;
    address->peer = (uint32_t)nng_pipe_id(nng_msg_get_pipe(msg));
    address->header_size = (uint32_t)header_size;
    memcpy(address->header, nng_msg_header(msg), header_size);
    item->event.data = copy_body(msg, &item->event.size);
    if (item->event.data == NULL) {
        free(item);
        return NULL;
    }
    return item;
}

static void on_received(void *user)
{
    struct wpk_net_server *server = user;
    if (nng_aio_result(server->receive) != 0) {
        return; /* the server is being closed: the only way for a raw receive to fail */
    }
    nng_msg *msg = nng_aio_get_msg(server->receive);
    struct queued *item = queued_new(msg);
    nng_msg_free(msg);
    pthread_mutex_lock(&server->lock);
    if (item != NULL) {
        queue_put(server, item);
    }
    server->paused = server->count >= WPK_NET_QUEUE_MAX;
    bool more = !server->paused && !server->closing;
    pthread_mutex_unlock(&server->lock);
    if (item != NULL) {
        server->wake(server->user);
    }
    if (more) {
        nng_recv_aio(server->socket, server->receive);
    }
}

static void on_pipe_gone(nng_pipe pipe, nng_pipe_ev event, void *user)
{
    (void)event;
    struct wpk_net_server *server = user;
    struct queued *item = calloc(1, sizeof *item);
    if (item == NULL) {
        return; /* the lease's expiry will tell, later */
    }
    item->event.gone = true;
    item->event.address.peer = (uint32_t)nng_pipe_id(pipe);
    pthread_mutex_lock(&server->lock);
    bool closing = server->closing;
    if (!closing) {
        queue_put(server, item);
    }
    pthread_mutex_unlock(&server->lock);
    if (closing) {
        free(item);
    } else {
        server->wake(server->user);
    }
}

/* A local socket is its user's alone: whoever connects may be given work and bring results. */
static int start_listener(nng_socket socket, const char *url)
{
    nng_listener listener;
    int code = nng_listener_create(&listener, socket, url);
    if (code == 0 && strncmp(url, "ipc://", 6) == 0) {
        code = nng_listener_set_int(listener, NNG_OPT_IPC_PERMISSIONS, 0600);
    }
    return code == 0 ? nng_listener_start(listener, 0) : code;
}

static int server_listen(struct wpk_net_server *server, const char *url, size_t size_max)
{
    int code = nng_rep0_open_raw(&server->socket);
    if (code != 0) {
        return code;
    }
    code = nng_socket_set_size(server->socket, NNG_OPT_RECVMAXSZ, size_max);
    if (code == 0) {
        code = nng_socket_set_int(server->socket, NNG_OPT_SENDBUF, SEND_QUEUE_COUNT);
    }
    if (code == 0) {
        code = nng_pipe_notify(server->socket, NNG_PIPE_EV_REM_POST, on_pipe_gone, server);
    }
    if (code == 0) {
        code = nng_aio_alloc(&server->receive, on_received, server);
    }
    if (code == 0) {
        code = start_listener(server->socket, url);
    }
    if (code != 0) {
        nng_close(server->socket);
        nng_aio_free(server->receive);
    }
    return code;
}

wpk_err wpk_net_server_open(const char *url, size_t size_max, wpk_net_wake wake, void *user,
                            struct wpk_net_server **out, struct wpk_diag *diag)
{
    WPK_ASSERT(wake != NULL);
    struct wpk_net_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return WPK_ENOMEM;
    }
    server->wake = wake;
    server->user = user;
    pthread_mutex_init(&server->lock, NULL);
    int code = server_listen(server, url, size_max);
    if (code != 0) {
        pthread_mutex_destroy(&server->lock);
        free(server);
        return translate(code, url, diag);
    }
    nng_recv_aio(server->socket, server->receive);
    *out = server;
    return WPK_OK;
}

void wpk_net_server_close(struct wpk_net_server *server)
{
    if (server == NULL) {
        return;
    }
    pthread_mutex_lock(&server->lock);
    server->closing = true;
    pthread_mutex_unlock(&server->lock);
    /* First: a receive that its callback starts on a socket half closed stays pending for ever, and
     * NNG (1.5.2) panics over the socket's lock when it is cancelled after the socket is gone. */
    nng_aio_stop(server->receive);
    if (!close_in_time(server->socket)) {
        return;
    }
    nng_aio_free(server->receive);
    struct wpk_net_event event;
    while (wpk_net_server_next(server, &event)) {
        free(event.data);
    }
    pthread_mutex_destroy(&server->lock);
    free(server);
}

bool wpk_net_server_next(struct wpk_net_server *server, struct wpk_net_event *out)
{
    pthread_mutex_lock(&server->lock);
    struct queued *item = server->first;
    bool resume = false;
    if (item != NULL) {
        server->first = item->next;
        if (server->first == NULL) {
            server->last = NULL;
        }
        server->count--;
        resume = server->paused && !server->closing && server->count < WPK_NET_QUEUE_MAX / 2;
        server->paused = server->paused && !resume;
    }
    pthread_mutex_unlock(&server->lock);
    if (resume) {
        nng_recv_aio(server->socket, server->receive);
    }
    if (item == NULL) {
        return false;
    }
    *out = item->event;
    free(item);
    return true;
}

void wpk_net_server_reply(struct wpk_net_server *server, const struct wpk_net_address *address,
                          const void *data, size_t size)
{
    nng_msg *msg;
    if (nng_msg_alloc(&msg, 0) != 0) {
        return; /* to the client as good as a lost reply, which it knows how to live with */
    }
    if (nng_msg_append(msg, data, size) != 0 ||
        nng_msg_header_append(msg, address->header, address->header_size) != 0 ||
        nng_sendmsg(server->socket, msg, 0) != 0) {
        nng_msg_free(msg);
    }
}

/* ---- client */

enum slot_state {
    SLOT_FREE,
    SLOT_SENDING,
    SLOT_RECEIVING,
    SLOT_ENDED, /* the reply, or the failure, waits to be taken */
};

struct slot {
    struct wpk_net_client *client;
    nng_ctx ctx;
    nng_aio *aio;
    bool opened;
    enum slot_state state; /* guarded by the client's lock, as what follows */
    int code;
    char *data;
    size_t size;
};

struct wpk_net_client {
    nng_socket socket;
    wpk_net_wake wake;
    void *user;
    int slot_count;
    pthread_mutex_t lock; /* guards the slots' states; nothing else is locked while it is held */
    struct slot slots[WPK_NET_SLOTS_MAX];
};

static void slot_end(struct slot *slot, int code, char *data, size_t size)
{
    struct wpk_net_client *client = slot->client;
    pthread_mutex_lock(&client->lock);
    slot->state = SLOT_ENDED;
    slot->code = code;
    slot->data = data;
    slot->size = size;
    pthread_mutex_unlock(&client->lock);
    client->wake(client->user);
}

static void on_slot(void *user)
{
    struct slot *slot = user;
    int code = nng_aio_result(slot->aio);
    pthread_mutex_lock(&slot->client->lock);
    bool sent = slot->state == SLOT_SENDING;
    if (sent && code == 0) {
        slot->state = SLOT_RECEIVING;
    }
    pthread_mutex_unlock(&slot->client->lock);
    if (code != 0) {
        if (sent) {
            nng_msg_free(nng_aio_get_msg(slot->aio));
            nng_aio_set_msg(slot->aio, NULL);
        }
        slot_end(slot, code, NULL, 0);
        return;
    }
    if (sent) {
        nng_ctx_recv(slot->ctx, slot->aio);
        return;
    }
    nng_msg *msg = nng_aio_get_msg(slot->aio);
    size_t size = 0;
    char *data = copy_body(msg, &size);
    nng_msg_free(msg);
    slot_end(slot, data == NULL ? NNG_ENOMEM : 0, data, size);
}

static int client_dial(struct wpk_net_client *client, const char *url, size_t size_max)
{
    int code = nng_req0_open(&client->socket);
    if (code != 0) {
        return code;
    }
    nng_socket socket = client->socket;
    code = nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, size_max);
    if (code == 0) {
        code = nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    }
    if (code == 0) {
        code = nng_socket_set_ms(socket, NNG_OPT_RECONNMINT, RECONNECT_MS_MIN);
    }
    if (code == 0) {
        code = nng_socket_set_ms(socket, NNG_OPT_RECONNMAXT, RECONNECT_MS_MAX);
    }
    for (int i = 0; code == 0 && i < client->slot_count; i++) {
        struct slot *slot = &client->slots[i];
        slot->client = client;
        code = nng_ctx_open(&slot->ctx, socket);
        if (code == 0) {
            slot->opened = true;
            code = nng_aio_alloc(&slot->aio, on_slot, slot);
        }
    }
    return code == 0 ? nng_dial(socket, url, NULL, NNG_FLAG_NONBLOCK) : code;
}

wpk_err wpk_net_client_open(const char *url, size_t size_max, int slot_count, wpk_net_wake wake,
                            void *user, struct wpk_net_client **out, struct wpk_diag *diag)
{
    WPK_ASSERT(wake != NULL);
    WPK_ASSERT(slot_count > 0 && slot_count <= WPK_NET_SLOTS_MAX);
    struct wpk_net_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return WPK_ENOMEM;
    }
    client->wake = wake;
    client->user = user;
    client->slot_count = slot_count;
    pthread_mutex_init(&client->lock, NULL);
    int code = client_dial(client, url, size_max);
    if (code != 0) {
        wpk_net_client_close(client);
        return translate(code, url, diag);
    }
    *out = client;
    return WPK_OK;
}

void wpk_net_client_close(struct wpk_net_client *client)
{
    if (client == NULL) {
        return;
    }
    for (int i = 0; i < client->slot_count; i++) {
        if (client->slots[i].aio != NULL) {
            nng_aio_stop(client->slots[i].aio); /* before the socket, as the server's */
        }
    }
    if (!close_in_time(client->socket)) { /* NNG refuses a socket that never was */
        return;
    }
    for (int i = 0; i < client->slot_count; i++) {
        nng_aio_free(client->slots[i].aio);
        free(client->slots[i].data);
    }
    pthread_mutex_destroy(&client->lock);
    free(client);
}

wpk_err wpk_net_client_put(struct wpk_net_client *client, int index, const void *data, size_t size,
                           uint64_t timeout_ms)
{
    WPK_ASSERT(index >= 0 && index < client->slot_count);
    WPK_ASSERT(!wpk_net_client_busy(client, index));
    struct slot *slot = &client->slots[index];
    nng_msg *msg;
    if (nng_msg_alloc(&msg, 0) != 0) {
        return WPK_ENOMEM;
    }
    if (nng_msg_append(msg, data, size) != 0) {
        nng_msg_free(msg);
        return WPK_ENOMEM;
    }
    pthread_mutex_lock(&client->lock);
    slot->state = SLOT_SENDING;
    pthread_mutex_unlock(&client->lock);
    nng_aio_set_msg(slot->aio, msg);
    nng_aio_set_timeout(slot->aio, (nng_duration)timeout_ms);
    nng_ctx_send(slot->ctx, slot->aio);
    return WPK_OK;
}

bool wpk_net_client_busy(const struct wpk_net_client *client, int slot)
{
    WPK_ASSERT(slot >= 0 && slot < client->slot_count);
    pthread_mutex_t *lock = (pthread_mutex_t *)&client->lock; /* the lock is not what is const */
    pthread_mutex_lock(lock);
    bool busy = client->slots[slot].state != SLOT_FREE;
    pthread_mutex_unlock(lock);
    return busy;
}

bool wpk_net_client_next(struct wpk_net_client *client, int *slot_index, wpk_err *err, char **data,
                         size_t *size)
{
    for (int i = 0; i < client->slot_count; i++) {
        struct slot *slot = &client->slots[i];
        pthread_mutex_lock(&client->lock);
        bool ended = slot->state == SLOT_ENDED;
        if (ended) {
            *slot_index = i;
            *err = slot->code == 0 ? WPK_OK : translate(slot->code, "", NULL);
            *data = slot->data;
            *size = slot->size;
            slot->data = NULL;
            slot->state = SLOT_FREE;
        }
        pthread_mutex_unlock(&client->lock);
        if (ended) {
            return true;
        }
    }
    return false;
}
