/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a server: greeting, requests, replies. The callbacks run on the library's
 * threads, at most one for receiving and one for sending. */
#include "common/net_peer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_received(void *user);
static void on_sent(void *user);

static void name_whence(struct wpk_net_peer *peer, nng_stream *stream)
{
    nng_sockaddr address;
    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &address) != 0) {
        return;
    }
    if (address.s_family == NNG_AF_INET) {
        inet_ntop(AF_INET, &address.s_in.sa_addr, peer->whence, sizeof peer->whence);
    } else if (address.s_family == NNG_AF_INET6) {
        inet_ntop(AF_INET6, &address.s_in6.sa_addr, peer->whence, sizeof peer->whence);
    } else {
        snprintf(peer->whence, sizeof peer->whence, "unix");
    }
}

bool wpk_net_peer_init(struct wpk_net_peer *peer, nng_stream *stream)
{
    name_whence(peer, stream);
    if (nng_aio_alloc(&peer->receive, on_received, peer) != 0 ||
        nng_aio_alloc(&peer->send, on_sent, peer) != 0) {
        nng_aio_free(peer->receive);
        return false;
    }
    peer->stream = stream;
    peer->is_sending = true; /* the greeting */
    return true;
}

/* The library says that it is over. Over TLS our greeting goes out when both sides agree. */
static void give_up(struct wpk_net_peer *peer)
{
    pthread_mutex_lock(&peer->server->lock);
    bool disagreed = peer->is_tls && !peer->is_greeted;
    pthread_mutex_unlock(&peer->server->lock);
    if (disagreed) {
        wpk_net_peer_refuse(peer, WPK_NET_REFUSAL_TLS);
    } else {
        wpk_net_peer_end(peer);
    }
}

void wpk_net_peer_check(struct wpk_net_peer *peer)
{
    nng_sockaddr address;
    if (nng_stream_get_addr(peer->stream, NNG_OPT_REMADDR, &address) != 0) {
        give_up(peer);
    }
}

/* An operation was begun. One that begins after a TLS stream was closed never completes, and cannot
 * be stopped (NNG 1.5.2); closing the stream again ends it. */
static void end_if_dead(struct wpk_net_peer *peer)
{
    pthread_mutex_lock(&peer->server->lock);
    bool dead = peer->standing == WPK_NET_DEAD;
    pthread_mutex_unlock(&peer->server->lock);
    if (dead) {
        nng_stream_close(peer->stream);
    }
}

/* ---- receiving */

static void receive_into(struct wpk_net_peer *peer, void *memory)
{
    nng_iov iov = {.iov_buf = (char *)memory + peer->got, .iov_len = peer->wanted - peer->got};
    nng_aio_set_iov(peer->receive, 1, &iov);
    nng_stream_recv(peer->stream, peer->receive);
    end_if_dead(peer);
}

static void receive_head(struct wpk_net_peer *peer)
{
    peer->wanted = wpk_net_head_size(peer->is_local);
    peer->got = 0;
    receive_into(peer, peer->head);
}

static struct wpk_net_message *request_new(const struct wpk_net_peer *peer,
                                           const struct wpk_net_head *head)
{
    struct wpk_net_message *request = calloc(1, sizeof *request);
    char *data = malloc(head->size + 1);
    if (request == NULL || data == NULL) {
        free(request);
        free(data);
        return NULL;
    }
    data[head->size] = '\0';
    request->event.data = data;
    request->event.size = head->size;
    request->event.address.peer = peer->id;
    request->event.address.is_local = peer->is_local;
    request->event.address.header_size = sizeof head->number;
    memcpy(request->event.address.header, &head->number, sizeof head->number);
    return request;
}

static void request_free(struct wpk_net_message *request)
{
    if (request != NULL) {
        free(request->event.data);
        free(request);
    }
}

enum body { REFUSED, MADE_TO_WAIT, UNDER_WAY, EMPTY };

/* Decide whether the request that the head announces may come now; if so, count its bytes. */
static enum body admit_body(struct wpk_net_peer *peer, struct wpk_net_head *head)
{
    struct wpk_net_server *server = peer->server;
    pthread_mutex_lock(&server->lock);
    size_t size_max = server->size_max;
    if (!peer->is_known && size_max > WPK_NET_UNAUTHENTICATED_SIZE_MAX) {
        size_max = WPK_NET_UNAUTHENTICATED_SIZE_MAX;
    }
    enum body body = UNDER_WAY;
    if (peer->standing == WPK_NET_DEAD ||
        !wpk_net_head_read(peer->head, peer->is_local, size_max, head)) {
        body = REFUSED;
    } else if (peer->queued >= (peer->is_known ? WPK_NET_SLOTS_MAX : 2)) {
        body = MADE_TO_WAIT;
        peer->standing = WPK_NET_WAITING;
        wpk_net_peer_heard(peer);
    } else if (!wpk_net_peer_admit(peer, head->size)) {
        body = MADE_TO_WAIT;
    }
    pthread_mutex_unlock(&server->lock);
    return body;
}

/* Receive what was admitted; it may have ended already when this returns. */
static enum body receive_body(struct wpk_net_peer *peer, const struct wpk_net_head *head)
{
    peer->request = request_new(peer, head);
    if (peer->request == NULL) {
        pthread_mutex_lock(&peer->server->lock);
        peer->server->bytes -= head->size;
        pthread_mutex_unlock(&peer->server->lock);
        return REFUSED;
    }
    if (head->size == 0) {
        return EMPTY;
    }
    peer->wanted = head->size;
    peer->got = 0;
    receive_into(peer, peer->request->event.data);
    return UNDER_WAY;
}

/* A head is here. */
static enum body begin_body(struct wpk_net_peer *peer)
{
    struct wpk_net_head head;
    enum body body = admit_body(peer, &head);
    return body == UNDER_WAY ? receive_body(peer, &head) : body;
}

static void queue_request(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    struct wpk_net_message *request = peer->request;
    peer->request = NULL;
    pthread_mutex_lock(&server->lock);
    bool lives = peer->standing != WPK_NET_DEAD;
    if (lives) {
        *(server->last != NULL ? &server->last->next : &server->first) = request;
        server->last = request;
        peer->queued++;
        peer->was_heard = true;
        wpk_net_peer_asked(peer, true);
        peer->standing = WPK_NET_SIZE;
    } else {
        server->bytes -= request->event.size;
    }
    pthread_mutex_unlock(&server->lock);
    if (lives) {
        server->wake(server->user);
    } else {
        request_free(request);
    }
}

/* All that was wanted is here. False: the connection is over. */
static bool go_on(struct wpk_net_peer *peer, enum wpk_net_standing standing)
{
    if (standing == WPK_NET_GREETING) {
        if (memcmp(peer->greeting, wpk_net_greeting_asks, WPK_NET_GREETING_SIZE) != 0) {
            return false;
        }
        pthread_mutex_lock(&peer->server->lock);
        peer->standing = peer->standing == WPK_NET_DEAD ? WPK_NET_DEAD : WPK_NET_SIZE;
        pthread_mutex_unlock(&peer->server->lock);
        receive_head(peer);
        return true;
    }
    if (standing == WPK_NET_SIZE) {
        enum body body = begin_body(peer);
        if (body != EMPTY) {
            return body != REFUSED;
        }
    }
    queue_request(peer);
    receive_head(peer);
    return true;
}

static void on_received(void *user)
{
    struct wpk_net_peer *peer = user;
    if (nng_aio_result(peer->receive) != 0) {
        give_up(peer);
        return;
    }
    peer->got += nng_aio_count(peer->receive);
    pthread_mutex_lock(&peer->server->lock);
    wpk_net_peer_heard(peer);
    enum wpk_net_standing standing = peer->standing;
    pthread_mutex_unlock(&peer->server->lock);
    if (standing == WPK_NET_DEAD) {
        return;
    }
    if (peer->got < peer->wanted) {
        receive_into(peer, standing == WPK_NET_GREETING ? (void *)peer->greeting
                           : standing == WPK_NET_SIZE   ? (void *)peer->head
                                                        : peer->request->event.data);
    } else if (!go_on(peer, standing)) {
        wpk_net_peer_refuse(peer, WPK_NET_REFUSAL_MALFORMED);
    }
}

void wpk_net_peer_resume(struct wpk_net_peer *peer, bool is_admitted)
{
    struct wpk_net_head head;
    enum body body = REFUSED;
    if (!is_admitted) {
        body = begin_body(peer);
    } else if (wpk_net_head_read(peer->head, peer->is_local, peer->server->size_max, &head)) {
        body = receive_body(peer, &head);
    }
    if (body == REFUSED) {
        wpk_net_peer_refuse(peer, WPK_NET_REFUSAL_MALFORMED);
    } else if (body == EMPTY) {
        queue_request(peer);
        receive_head(peer);
    }
}

void wpk_net_peer_start(struct wpk_net_peer *peer)
{
    nng_iov iov = {.iov_buf = (void *)(uintptr_t)wpk_net_greeting_answers,
                   .iov_len = WPK_NET_GREETING_SIZE};
    nng_aio_set_iov(peer->send, 1, &iov);
    nng_stream_send(peer->stream, peer->send);
    peer->wanted = sizeof peer->greeting;
    receive_into(peer, peer->greeting);
}

/* ---- sending */

void wpk_net_peer_send(struct wpk_net_peer *peer)
{
    nng_iov iov = {.iov_buf = peer->reply->data + peer->sent,
                   .iov_len = peer->reply->size - peer->sent};
    nng_aio_set_iov(peer->send, 1, &iov);
    nng_stream_send(peer->stream, peer->send);
    end_if_dead(peer);
}

/* The connection is over, and the library has let go of what it sent. */
static void stop_sending(struct wpk_net_peer *peer)
{
    pthread_mutex_lock(&peer->server->lock);
    peer->is_sending = false;
    pthread_mutex_unlock(&peer->server->lock);
    wpk_net_peer_drop_replies(peer);
}

static void on_sent(void *user)
{
    struct wpk_net_peer *peer = user;
    struct wpk_net_server *server = peer->server;
    if (nng_aio_result(peer->send) != 0) {
        give_up(peer);
        stop_sending(peer);
        return;
    }
    struct wpk_net_message *sent = NULL;
    pthread_mutex_lock(&server->lock);
    if (!peer->is_greeted) {
        peer->is_greeted = true;
    } else {
        peer->sent += nng_aio_count(peer->send);
        if (peer->sent == peer->reply->size) {
            sent = peer->reply;
            peer->reply = sent->next;
            wpk_net_peer_took_reply(peer, sent->size);
            peer->sent = 0;
        }
    }
    bool dead = peer->standing == WPK_NET_DEAD;
    bool more = peer->reply != NULL && !dead;
    wpk_net_peer_took(peer);
    peer->is_sending = more;
    pthread_mutex_unlock(&server->lock);
    free(sent);
    if (more) {
        wpk_net_peer_send(peer);
    } else if (dead) {
        wpk_net_peer_drop_replies(peer);
    }
}

/* ---- the end */

size_t wpk_net_peer_free(struct wpk_net_peer *peer)
{
    nng_aio_stop(peer->receive);
    nng_aio_stop(peer->send);
    nng_aio_free(peer->receive);
    nng_aio_free(peer->send);
    nng_stream_free(peer->stream);
    size_t bytes = peer->request != NULL ? peer->request->event.size : 0;
    request_free(peer->request);
    free(peer->reply); /* the others went when it ended */
    free(peer);
    return bytes;
}
