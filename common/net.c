/* SPDX-License-Identifier: Apache-2.0 */
/* The client: a REQ socket of NNG's with a context per slot and resending off, because a request
 * that was lost is the owner's to repeat. The server is in net_server.c and net_peer.c. */
#include "common/net.h"

#include "common/fs.h"
#include "common/net_peer.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/tls/tls.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECONNECT_MS_MIN 50
#define RECONNECT_MS_MAX 2000
#define CLOSE_MS 2000
#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"
#define CA_SIZE_MAX ((size_t)4 << 20)

wpk_err wpk_net_translate(int code, const char *url, struct wpk_diag *diag)
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
    case NNG_ECRYPTO:
    case NNG_EPEERAUTH:
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

static int open_socket(struct wpk_net_client *client, size_t size_max)
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
    return code;
}

/* The host that an address names, without its port and brackets. */
static void host_of(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    const char *end = host[0] == '[' ? strchr(host, ']') : strrchr(host, ':');
    host += host[0] == '[';
    size_t length = end != NULL ? (size_t)(end - host) : strlen(host);
    snprintf(out, size, "%.*s", (int)length, host);
}

/* What a client trusts, and whom it wants to speak to. */
static wpk_err make_tls(const struct wpk_net_client_options *options, nng_tls_config **out,
                        struct wpk_diag *diag)
{
    struct wpk_buf ca = {0};
    char host[256];
    const char *path = options->ca != NULL ? options->ca : SYSTEM_CA;
    wpk_err err = wpk_fs_read(path, CA_SIZE_MAX, &ca, diag);
    if (err != WPK_OK) {
        return err;
    }
    host_of(options->url, host, sizeof host);
    nng_tls_config *config = NULL;
    int code = nng_tls_config_alloc(&config, NNG_TLS_MODE_CLIENT);
    if (code == 0) {
        code = nng_tls_config_version(config, NNG_TLS_1_2, NNG_TLS_1_2);
    }
    if (code == 0) {
        code = nng_tls_config_auth_mode(config, NNG_TLS_AUTH_MODE_REQUIRED);
    }
    if (code == 0) {
        code = nng_tls_config_server_name(config, host);
    }
    if (code == 0) {
        code = nng_tls_config_ca_chain(config, wpk_buf_text(&ca), NULL);
    }
    wpk_buf_fini(&ca);
    if (code != 0 && config != NULL) {
        nng_tls_config_free(config);
    }
    *out = config;
    return code == 0 ? WPK_OK : wpk_net_translate(code, path, diag);
}

static bool wants_tls(const struct wpk_net_client_options *options)
{
    return strncmp(options->url, "tls+", 4) == 0;
}

static wpk_err dial(struct wpk_net_client *client, const struct wpk_net_client_options *options,
                    struct wpk_diag *diag)
{
    nng_dialer dialer;
    nng_tls_config *config = NULL;
    int code = open_socket(client, options->size_max);
    if (code == 0) {
        code = nng_dialer_create(&dialer, client->socket, options->url);
    }
    if (code == 0 && wants_tls(options)) {
        wpk_err err = make_tls(options, &config, diag);
        if (err != WPK_OK) {
            return err;
        }
        code = nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, config);
        nng_tls_config_free(config); /* the dialer holds it */
    }
    if (code == 0) {
        code = nng_dialer_start(dialer, NNG_FLAG_NONBLOCK);
    }
    return code == 0 ? WPK_OK : wpk_net_translate(code, options->url, diag);
}

wpk_err wpk_net_client_open(const struct wpk_net_client_options *options,
                            struct wpk_net_client **out, struct wpk_diag *diag)
{
    WPK_ASSERT(options->wake != NULL);
    WPK_ASSERT(options->slot_count > 0 && options->slot_count <= WPK_NET_SLOTS_MAX);
    struct wpk_net_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return WPK_ENOMEM;
    }
    client->wake = options->wake;
    client->user = options->user;
    client->slot_count = options->slot_count;
    pthread_mutex_init(&client->lock, NULL);
    wpk_err err = dial(client, options, diag);
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
            *err = slot->code == 0 ? WPK_OK : wpk_net_translate(slot->code, "", NULL);
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

/* ---- probing */

/* One step of a probe, waited for. */
static int await(nng_aio *aio)
{
    nng_aio_wait(aio);
    return nng_aio_result(aio);
}

/* TLS agrees on nothing before something is sent: a greeting, which is answered. */
static int greet(nng_stream *stream, nng_aio *aio)
{
    char greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    nng_iov iov = {.iov_buf = greeting, .iov_len = sizeof greeting};
    nng_aio_set_iov(aio, 1, &iov);
    nng_stream_send(stream, aio);
    int code = await(aio);
    if (code == 0) {
        nng_aio_set_iov(aio, 1, &iov);
        nng_stream_recv(stream, aio);
        code = await(aio);
    }
    return code;
}

static int try_to_connect(nng_stream_dialer *dialer, uint64_t timeout_ms)
{
    nng_aio *aio;
    int code = nng_aio_alloc(&aio, NULL, NULL);
    if (code != 0) {
        return code;
    }
    nng_aio_set_timeout(aio, (nng_duration)timeout_ms);
    nng_stream_dialer_dial(dialer, aio);
    code = await(aio);
    if (code == 0) {
        nng_stream *stream = nng_aio_get_output(aio, 0);
        code = greet(stream, aio);
        nng_stream_close(stream);
        nng_stream_free(stream);
    }
    nng_aio_free(aio);
    return code;
}

wpk_err wpk_net_client_probe(const struct wpk_net_client_options *options, uint64_t timeout_ms,
                             struct wpk_diag *diag)
{
    nng_stream_dialer *dialer = NULL;
    nng_tls_config *config = NULL;
    wpk_err err = wants_tls(options) ? make_tls(options, &config, diag) : WPK_OK;
    if (err != WPK_OK) {
        return err;
    }
    int code = nng_stream_dialer_alloc(&dialer, options->url);
    if (code == 0 && config != NULL) {
        code = nng_stream_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, config);
    }
    if (code == 0) {
        code = try_to_connect(dialer, timeout_ms);
    }
    nng_stream_dialer_free(dialer);
    if (config != NULL) {
        nng_tls_config_free(config);
    }
    if (code == NNG_ECRYPTO || code == NNG_EPEERAUTH) {
        wpk_diag_set(diag, "%s: its certificate is not of that host, or %s does not vouch for it",
                     options->url, options->ca != NULL ? options->ca : SYSTEM_CA);
        return WPK_EACCES;
    }
    return code == 0 ? WPK_OK : wpk_net_translate(code, options->url, diag);
}
