/* SPDX-License-Identifier: Apache-2.0 */
/* All connections of a server: limits in all and by address, the line of large requests, and how a
 * connection ends. Where connections are too many, or descriptors too few, the oldest
 * unauthenticated one is closed. Files that deal with one connection call this one. */
#include "common/net_peer.h"

#include "common/clock.h"
#include "common/machine.h"

#include <stdlib.h>
#include <string.h>

#define LATE_MAX 64   /* freed connections whose descriptors the library may still have to close */
#define PLACE_BITS 15 /* of a peer's id */
_Static_assert(WPK_NET_PEERS_MAX == 1 << PLACE_BITS, "a place fits into an id");

/* ---- descriptors */

void wpk_net_peers_count_descriptors(struct wpk_net_server *server)
{
    uint64_t left = WPK_NET_DESCRIPTORS_LEFT + LATE_MAX;
    uint64_t count = 0;
    uint64_t max = 0;
    pthread_mutex_lock(&server->lock);
    uint32_t generation = server->generation;
    pthread_mutex_unlock(&server->lock);
    wpk_limits_descriptors(&count, &max);
    pthread_mutex_lock(&server->lock);
    server->descriptors = count + (server->generation - generation); /* some came meanwhile */
    server->descriptor_max = max > left ? max - left : 0;
    server->freed = 0;
    pthread_mutex_unlock(&server->lock);
}

void wpk_net_peers_release(struct wpk_net_server *server, size_t bytes)
{
    pthread_mutex_lock(&server->lock);
    server->bytes -= bytes;
    server->descriptors -= server->freed++ < LATE_MAX && server->descriptors > 0;
    bool is_unsure = server->freed > LATE_MAX && server->descriptors >= server->descriptor_max;
    pthread_mutex_unlock(&server->lock);
    if (is_unsure) {
        wpk_net_peers_count_descriptors(server);
    }
}

/* ---- deadlines */

/* One that the owner keeps waiting is not silent of its own accord. */
void wpk_net_peer_took(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    bool waits = peer->standing == WPK_NET_WAITING && peer->reply == NULL;
    peer->took_ns = wpk_clock_now_ns(wpk_clock_system());
    if (peer->is_known && peer->standing != WPK_NET_DEAD) {
        wpk_admission_mark(server->admission, peer->id % WPK_NET_PEERS_MAX,
                           waits ? WPK_CONNECTION_SERVING : WPK_CONNECTION_READING, true,
                           peer->took_ns + server->silence_ns);
    }
}

void wpk_net_peer_asked(struct wpk_net_peer *peer, bool is_unanswered)
{
    struct wpk_net_server *server = peer->server;
    uint64_t waits_ns = wpk_clock_now_ns(wpk_clock_system()) + server->silence_ns;
    if (peer->is_known) {
        return;
    }
    peer->unanswered += is_unanswered ? 1U : 0U;
    peer->unanswered -= !is_unanswered && peer->unanswered > 0 ? 1U : 0U;
    wpk_admission_mark(server->admission, peer->id % WPK_NET_PEERS_MAX, WPK_CONNECTION_READING,
                       false, peer->unanswered > 0 ? waits_ns : peer->deadline_ns);
}

void wpk_net_peer_heard(struct wpk_net_peer *peer)
{
    if (peer->reply == NULL) { /* else it is to take what it asked for */
        wpk_net_peer_took(peer);
    }
}

/* ---- large requests wait for each other */

static bool has_room(const struct wpk_net_server *server, size_t size)
{
    return size <= WPK_NET_SMALL_MAX || server->bytes == 0 ||
           server->bytes + size <= WPK_NET_BYTES_MAX;
}

static void count_body(struct wpk_net_peer *peer)
{
    peer->standing = WPK_NET_BODY;
    peer->body_ns = wpk_clock_now_ns(wpk_clock_system());
    peer->server->bytes += peer->body_size;
}

static void join_line(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    peer->standing = WPK_NET_WAITING;
    peer->is_in_line = true;
    peer->line_next = NULL;
    peer->line_previous = server->line_last;
    *(server->line_last != NULL ? &server->line_last->line_next : &server->line_first) = peer;
    server->line_last = peer;
    wpk_net_peer_heard(peer);
}

static void leave_line(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    struct wpk_net_peer *previous = peer->line_previous;
    struct wpk_net_peer *next = peer->line_next;
    peer->is_in_line = false;
    *(previous != NULL ? &previous->line_next : &server->line_first) = next;
    *(next != NULL ? &next->line_previous : &server->line_last) = previous;
}

bool wpk_net_peer_admit(struct wpk_net_peer *peer, size_t size)
{
    bool overtakes = size > WPK_NET_SMALL_MAX && peer->server->line_first != NULL;
    peer->body_size = size;
    if (overtakes || !has_room(peer->server, size)) {
        join_line(peer);
        return false;
    }
    count_body(peer);
    return true;
}

struct wpk_net_peer *wpk_net_peers_admit_next(struct wpk_net_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct wpk_net_peer *peer = server->line_first;
    if (peer != NULL && !has_room(server, peer->body_size)) {
        peer = NULL;
    }
    if (peer != NULL) {
        leave_line(peer);
        count_body(peer);
        wpk_net_peer_heard(peer);
    }
    pthread_mutex_unlock(&server->lock);
    return peer;
}

/* ---- the end of a connection */

bool wpk_net_peer_begin_end(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    if (peer->standing == WPK_NET_DEAD) {
        return false;
    }
    if (peer->is_in_line) {
        leave_line(peer);
    }
    wpk_admission_ended(server->admission, peer->id % WPK_NET_PEERS_MAX);
    server->reply_bytes -= peer->reply_bytes;
    peer->reply_bytes = 0;
    peer->standing = WPK_NET_DEAD;
    return true;
}

void wpk_net_peer_drop_replies(struct wpk_net_peer *peer)
{
    pthread_mutex_lock(&peer->server->lock);
    WPK_ASSERT(peer->standing == WPK_NET_DEAD);
    struct wpk_net_message **at =
        peer->is_sending && peer->reply != NULL ? &peer->reply->next : &peer->reply;
    struct wpk_net_message *reply = *at;
    *at = NULL;
    pthread_mutex_unlock(&peer->server->lock);
    while (reply != NULL) {
        struct wpk_net_message *next = reply->next;
        free(reply);
        reply = next;
    }
}

void wpk_net_peer_finish_end(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    nng_stream_close(peer->stream);
    wpk_net_peer_drop_replies(peer);
    pthread_mutex_lock(&server->lock);
    peer->next_dead = server->dead;
    server->dead = peer;
    pthread_mutex_unlock(&server->lock);
    server->wake(server->user);
}

bool wpk_net_peer_begin_refusal(struct wpk_net_peer *peer, enum wpk_net_refusal why)
{
    if (!peer->is_known && peer->standing != WPK_NET_DEAD) {
        peer->server->refused[why]++;
    }
    return wpk_net_peer_begin_end(peer);
}

void wpk_net_peer_refuse(struct wpk_net_peer *peer, enum wpk_net_refusal why)
{
    pthread_mutex_lock(&peer->server->lock);
    bool mine = wpk_net_peer_begin_refusal(peer, why);
    pthread_mutex_unlock(&peer->server->lock);
    if (mine) {
        wpk_net_peer_finish_end(peer);
    }
}

void wpk_net_peer_end(struct wpk_net_peer *peer)
{
    pthread_mutex_lock(&peer->server->lock);
    bool mine = wpk_net_peer_begin_end(peer);
    pthread_mutex_unlock(&peer->server->lock);
    if (mine) {
        wpk_net_peer_finish_end(peer);
    }
}

/* ---- whom it lets in */

/* False: it has no address to be counted by. */
static bool find_source(nng_stream *stream, struct wpk_source *out)
{
    nng_sockaddr address;
    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &address) != 0 ||
        (address.s_family != NNG_AF_INET && address.s_family != NNG_AF_INET6)) {
        return false;
    }
    *out = address.s_family == NNG_AF_INET ? wpk_source_of(&address.s_in.sa_addr, 4)
                                           : wpk_source_of(&address.s_in6.sa_addr, 16);
    return true;
}

void wpk_net_peers_end(void *user, uint32_t connection, bool is_overdue)
{
    struct wpk_net_server *server = user;
    struct wpk_net_peer *peer = server->peers[connection];
    if (wpk_net_peer_begin_refusal(peer,
                                   is_overdue ? WPK_NET_REFUSAL_TIMEOUT : WPK_NET_REFUSAL_LIMIT)) {
        peer->next_dead = server->ending;
        server->ending = peer;
    }
}

void wpk_net_peers_unlock(struct wpk_net_server *server)
{
    struct wpk_net_peer *peer = server->ending;
    server->ending = NULL;
    pthread_mutex_unlock(&server->lock);
    while (peer != NULL) {
        struct wpk_net_peer *next = peer->next_dead;
        wpk_net_peer_finish_end(peer);
        peer = next;
    }
}

bool wpk_net_peers_add(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    struct wpk_source source;
    uint32_t place;
    uint64_t deadline_ns = wpk_clock_now_ns(wpk_clock_system()) + server->unauthenticated_ns;
    bool has_source = !peer->is_local && find_source(peer->stream, &source);
    pthread_mutex_lock(&server->lock);
    bool placed =
        !server->is_closing && wpk_admission_admit(server->admission, has_source ? &source : NULL,
                                                   deadline_ns, &place) == WPK_ADMITTED;
    if (placed) {
        do {
            peer->id = ++server->generation << PLACE_BITS | place;
        } while (peer->id == 0);
        peer->deadline_ns = deadline_ns;
        server->peers[place] = peer;
        server->peer_count++;
        server->descriptors++;
    } else {
        server->refused[WPK_NET_REFUSAL_LIMIT]++;
    }
    wpk_net_peers_unlock(server);
    return placed;
}

/* Where there is no room, accepting goes on when the owner has freed what had to go or has counted
 * again. An immediate retry would only spin: a lack of descriptors does not go away by itself. */
bool wpk_net_peers_may_accept(struct wpk_net_listener *listener, int code)
{
    struct wpk_net_server *server = listener->server;
    bool full = code == NNG_ENOFILES || code == NNG_ENOMEM;
    bool fine = code == 0 || code == NNG_ECONNABORTED || code == NNG_ECONNRESET;
    pthread_mutex_lock(&server->lock);
    bool room = server->descriptors < server->descriptor_max;
    bool more = fine && room && !server->is_closing;
    if ((full || !room) && listener->is_accepting && !server->is_closing) {
        (void)wpk_admission_yield(server->admission); /* its descriptor is the next one's */
    }
    listener->is_accepting = more;
    wpk_net_peers_unlock(server);
    return more;
}

/* ---- what they have not taken, and what is known of them */

void wpk_net_peer_took_reply(struct wpk_net_peer *peer, size_t size)
{
    peer->reply_count--;
    if (peer->standing != WPK_NET_DEAD) { /* else they were counted out when it ended */
        peer->reply_bytes -= size;
        peer->server->reply_bytes -= size;
    }
}

uint32_t wpk_net_server_peer_count(struct wpk_net_server *server)
{
    pthread_mutex_lock(&server->lock);
    uint32_t count = server->peer_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

void wpk_net_server_refused(struct wpk_net_server *server, uint64_t *out)
{
    pthread_mutex_lock(&server->lock);
    memcpy(out, server->refused, sizeof server->refused);
    pthread_mutex_unlock(&server->lock);
}

void wpk_net_server_whence(struct wpk_net_server *server, uint32_t peer,
                           char out[WPK_NET_WHENCE_SIZE])
{
    pthread_mutex_lock(&server->lock);
    const struct wpk_net_peer *found = server->peers[peer % WPK_NET_PEERS_MAX];
    bool there = found != NULL && found->id == peer;
    memcpy(out, there ? found->whence : "", there ? WPK_NET_WHENCE_SIZE : 1);
    pthread_mutex_unlock(&server->lock);
}
