/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's functions of a server: opening and closing it, taking requests, deadlines. */
#include "common/net_peer.h"

#include "common/clock.h"

#include <stdlib.h>

#define BURIED_MAX 64 /* in one turn of the owner's */
#define TLS_MAX 512   /* looked at under one lock */

/* ---- opening */

_Static_assert(WPK_NET_CONNECTIONS_MAX + WPK_ADMISSION_ENDING_MAX == WPK_NET_PEERS_MAX,
               "each connection has a place");

static wpk_err open_admission(struct wpk_net_server *server,
                              const struct wpk_net_server_options *options)
{
    const struct wpk_admission_options admission = {
        .all_max = options->peers_max > 0 && options->peers_max < WPK_NET_CONNECTIONS_MAX
                       ? options->peers_max
                       : WPK_NET_CONNECTIONS_MAX,
        .of_source_max = WPK_NET_PEERS_OF_ADDRESS_MAX,
        .unknown_max = WPK_NET_UNAUTHENTICATED_MAX,
        .unknown_of_source_max = WPK_NET_UNAUTHENTICATED_OF_ADDRESS_MAX,
        .known_stay = true,
        .end = wpk_net_peers_end,
        .user = server};
    return wpk_admission_new(&admission, &server->admission);
}

wpk_err wpk_net_server_open(const struct wpk_net_server_options *options,
                            struct wpk_net_server **out, struct wpk_diag *diag)
{
    WPK_ASSERT(options->wake != NULL);
    WPK_ASSERT(options->listen_count > 0 && options->listen_count <= WPK_NET_LISTEN_MAX);
    struct wpk_net_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return WPK_ENOMEM;
    }
    server->size_max = options->size_max;
    server->reply_bytes_max =
        options->reply_bytes_max > 0 ? options->reply_bytes_max : WPK_NET_REPLY_BYTES_MAX;
    server->unauthenticated_ns = (options->unauthenticated_ms > 0 ? options->unauthenticated_ms
                                                                  : WPK_NET_UNAUTHENTICATED_MS) *
                                 WPK_NS_PER_MS;
    server->silence_ns =
        (options->silence_ms > 0 ? options->silence_ms : WPK_NET_SILENCE_MS) * WPK_NS_PER_MS;
    server->body_ns = (options->body_ms > 0 ? options->body_ms : WPK_NET_BODY_MS) * WPK_NS_PER_MS;
    server->wake = options->wake;
    server->user = options->user;
    pthread_mutex_init(&server->lock, NULL);
    wpk_net_peers_count_descriptors(server);
    wpk_err err = open_admission(server, options);
    for (size_t i = 0; i < options->listen_count && err == WPK_OK; i++) {
        err = wpk_net_listener_open(&server->listeners[server->listener_count++], server,
                                    &options->listen[i], diag);
    }
    if (err != WPK_OK) {
        wpk_net_server_close(server);
        return err;
    }
    wpk_net_listeners_wake(server);
    *out = server;
    return WPK_OK;
}

/* ---- the owner's turn */

static struct wpk_net_peer *take_dead(struct wpk_net_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct wpk_net_peer **at = &server->dead;
    while (*at != NULL && ((*at)->queued > 0 || (*at)->is_starting)) {
        at = &(*at)->next_dead;
    }
    struct wpk_net_peer *peer = *at;
    if (peer != NULL) {
        *at = peer->next_dead;
        server->peers[peer->id % WPK_NET_PEERS_MAX] = NULL;
        server->peer_count--;
        wpk_admission_leave(server->admission, peer->id % WPK_NET_PEERS_MAX);
    }
    pthread_mutex_unlock(&server->lock);
    return peer;
}

/* Bytes are free again: those in line that have room now begin. */
static void move_line(struct wpk_net_server *server)
{
    struct wpk_net_peer *peer;
    while ((peer = wpk_net_peers_admit_next(server)) != NULL) {
        wpk_net_peer_resume(peer, true);
    }
}

/* Free a connection that ended and whose requests were taken; false: there is none. *id is not 0 if
 * the owner has heard of it. */
static bool bury(struct wpk_net_server *server, uint32_t *id)
{
    struct wpk_net_peer *peer = take_dead(server);
    if (peer == NULL) {
        return false;
    }
    *id = peer->was_heard ? peer->id : 0;
    wpk_net_peers_release(server, wpk_net_peer_free(peer));
    move_line(server);
    return true;
}

static struct wpk_net_message *take_request(struct wpk_net_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct wpk_net_message *request = server->first;
    struct wpk_net_peer *waited = NULL; /* for this request to be taken */
    if (request != NULL) {
        server->first = request->next;
        server->last = server->first != NULL ? server->last : NULL;
        server->bytes -= request->event.size;
        struct wpk_net_peer *peer = server->peers[request->event.address.peer % WPK_NET_PEERS_MAX];
        WPK_ASSERT(peer != NULL && peer->queued > 0);
        peer->queued--;
        if (peer->standing == WPK_NET_WAITING && !peer->is_in_line) {
            peer->standing = WPK_NET_SIZE;
            wpk_net_peer_heard(peer);
            waited = peer;
        }
    }
    pthread_mutex_unlock(&server->lock);
    if (waited != NULL) {
        wpk_net_peer_resume(waited, false);
    }
    if (request != NULL) {
        move_line(server);
    }
    return request;
}

bool wpk_net_server_next(struct wpk_net_server *server, struct wpk_net_event *out)
{
    struct wpk_net_message *request = take_request(server);
    if (request != NULL) {
        *out = request->event;
        free(request);
        return true;
    }
    uint32_t id = 0;
    int buried = 0;
    while (id == 0 && buried < BURIED_MAX && bury(server, &id)) {
        buried++;
    }
    if (buried > 0) {
        wpk_net_listeners_wake(server);
    }
    if (buried == BURIED_MAX) {
        server->wake(server->user);
    }
    *out = (struct wpk_net_event){.gone = true, .address = {.peer = id}};
    return id != 0;
}

static const char *const refusal_names[] = {WPK_NET_REFUSAL_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_net_refusal_name, enum wpk_net_refusal, refusal_names)

/* With the lock: of large requests that come slowly, those that keep others waiting are ended. */
static void end_stalling(struct wpk_net_server *server, uint64_t now_ns)
{
    for (uint32_t i = 0; i < WPK_NET_PEERS_MAX && server->line_first != NULL; i++) {
        struct wpk_net_peer *peer = server->peers[i];
        if (peer != NULL && peer->standing == WPK_NET_BODY && peer->body_size > WPK_NET_SMALL_MAX &&
            peer->body_ns + server->body_ns <= now_ns) {
            wpk_net_peers_end(server, i, true);
        }
    }
}

/* Some of those over TLS, from place *at on. */
static uint32_t find_tls(struct wpk_net_server *server, uint32_t *at,
                         struct wpk_net_peer *out[TLS_MAX])
{
    uint32_t count = 0;
    pthread_mutex_lock(&server->lock);
    for (; *at < WPK_NET_PEERS_MAX && count < TLS_MAX; (*at)++) {
        struct wpk_net_peer *peer = server->peers[*at];
        if (peer != NULL && peer->is_tls && peer->standing != WPK_NET_DEAD) {
            out[count++] = peer;
        }
    }
    pthread_mutex_unlock(&server->lock);
    return count;
}

/* The owner alone frees peers, and is here: those that were found are there. */
static void check_tls(struct wpk_net_server *server)
{
    struct wpk_net_peer *peers[TLS_MAX];
    uint32_t at = 0;
    while (at < WPK_NET_PEERS_MAX) {
        uint32_t count = find_tls(server, &at, peers);
        for (uint32_t i = 0; i < count; i++) {
            wpk_net_peer_check(peers[i]);
        }
    }
}

void wpk_net_server_expire(struct wpk_net_server *server)
{
    uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());
    if (now_ns < server->looked_ns + WPK_NS_PER_S) {
        return;
    }
    server->looked_ns = now_ns;
    wpk_net_peers_count_descriptors(server);
    pthread_mutex_lock(&server->lock);
    wpk_admission_expire(server->admission, now_ns);
    end_stalling(server, now_ns);
    wpk_net_peers_unlock(server);
    check_tls(server);
    wpk_net_listeners_wake(server);
}

void wpk_net_server_close(struct wpk_net_server *server)
{
    if (server == NULL) {
        return;
    }
    pthread_mutex_lock(&server->lock);
    server->is_closing = true;
    pthread_mutex_unlock(&server->lock);
    for (size_t i = 0; i < server->listener_count; i++) {
        wpk_net_listener_close(&server->listeners[i]);
    }
    for (uint32_t i = 0; i < WPK_NET_PEERS_MAX; i++) {
        if (server->peers[i] != NULL) {
            wpk_net_peer_end(server->peers[i]);
        }
    }
    struct wpk_net_event event;
    while (wpk_net_server_peer_count(server) > 0) {
        if (wpk_net_server_next(server, &event)) {
            free(event.data);
        }
    }
    wpk_admission_free(server->admission);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
