/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a server: which of them it has, how many of an address, which have not said
 * who they are, and how one ends. Where those are too many, or descriptors too few, the oldest of
 * them is closed. Files that deal with one connection stand above this one. */
#include "common/net_peer.h"

#include "common/clock.h"

#include <dirent.h>
#include <string.h>
#include <sys/resource.h>

#define LATE_MAX 64   /* connections freed here whose descriptors the library has yet to close */
#define PLACE_BITS 15 /* of a peer's id */
_Static_assert(WPK_NET_PEERS_MAX == 1 << PLACE_BITS, "a place fits into an id");

/* ---- descriptors */

static uint64_t count_descriptors(void)
{
    uint64_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory != NULL && readdir(directory) != NULL) {
        count++;
    }
    if (directory == NULL) {
        return UINT64_MAX / 2; /* there was none left to look with */
    }
    closedir(directory);
    return count;
}

static uint64_t descriptor_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return UINT32_MAX;
    }
    uint64_t left = WPK_NET_DESCRIPTORS_LEFT + LATE_MAX;
    return limit.rlim_cur > left ? limit.rlim_cur - left : 0;
}

void wpk_net_peers_count_descriptors(struct wpk_net_server *server)
{
    uint64_t count = count_descriptors();
    uint64_t max = descriptor_max();
    pthread_mutex_lock(&server->lock);
    server->descriptors = count;
    server->descriptor_max = max;
    pthread_mutex_unlock(&server->lock);
}

/* ---- those that have not said who they are */

static void add_stranger(struct wpk_net_server *server, struct wpk_net_peer *peer)
{
    peer->older = server->stranger_newest;
    if (peer->older != NULL) {
        peer->older->newer = peer;
    } else {
        server->stranger_oldest = peer;
    }
    server->stranger_newest = peer;
    server->stranger_count++;
    server->strangers_of_bucket[peer->bucket]++;
}

void wpk_net_peer_know(struct wpk_net_server *server, struct wpk_net_peer *peer)
{
    if (peer->is_known) {
        return;
    }
    peer->is_known = true;
    if (peer->older != NULL) {
        peer->older->newer = peer->newer;
    } else {
        server->stranger_oldest = peer->newer;
    }
    if (peer->newer != NULL) {
        peer->newer->older = peer->older;
    } else {
        server->stranger_newest = peer->older;
    }
    peer->older = NULL;
    peer->newer = NULL;
    server->stranger_count--;
    server->strangers_of_bucket[peer->bucket]--;
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
        peer->heard_ns = peer->body_ns;
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
    wpk_net_peer_know(server, peer);
    server->reply_bytes -= peer->reply_bytes;
    peer->reply_bytes = 0;
    peer->standing = WPK_NET_DEAD;
    return true;
}

void wpk_net_peer_finish_end(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    nng_stream_close(peer->stream);
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

/* Connections of one address share a bucket; an IPv6 host has a whole /64. Two addresses may share
 * one by chance, which nobody outside can bring about: the seed is drawn at the start. */
static uint32_t bucket_of(const struct wpk_net_server *server, nng_stream *stream)
{
    nng_sockaddr address;
    uint64_t key = 0;
    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &address) != 0) {
        return 0;
    }
    if (address.s_family == NNG_AF_INET) {
        key = address.s_in.sa_addr;
    } else if (address.s_family == NNG_AF_INET6) {
        memcpy(&key, address.s_in6.sa_addr, sizeof key);
    }
    key = (key ^ server->bucket_seed) * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(key % WPK_NET_BUCKETS);
}

/* Who has to go for `peer` to come; NULL: nobody. */
static struct wpk_net_peer *find_victim(const struct wpk_net_server *server,
                                        const struct wpk_net_peer *peer)
{
    struct wpk_net_peer *oldest = server->stranger_oldest;
    if (!peer->is_local &&
        server->strangers_of_bucket[peer->bucket] >= WPK_NET_STRANGERS_OF_ADDRESS_MAX) {
        while (oldest->bucket != peer->bucket) {
            oldest = oldest->newer;
        }
        return oldest;
    }
    return server->stranger_count >= WPK_NET_STRANGERS_MAX ? oldest : NULL;
}

static bool take_place(struct wpk_net_server *server, struct wpk_net_peer *peer)
{
    bool crowded =
        !peer->is_local && server->of_bucket[peer->bucket] >= server->peers_of_address_max;
    if (server->is_closing || crowded || server->peer_count >= server->peers_max) {
        return false;
    }
    while (server->peers[server->place_next] != NULL) {
        server->place_next = (server->place_next + 1) % WPK_NET_PEERS_MAX;
    }
    server->generation++;
    peer->id = server->generation << PLACE_BITS | server->place_next;
    if (peer->id == 0) {
        peer->id = ++server->generation << PLACE_BITS | server->place_next;
    }
    server->peers[server->place_next] = peer;
    server->place_next = (server->place_next + 1) % WPK_NET_PEERS_MAX;
    server->peer_count++;
    server->of_bucket[peer->bucket]++;
    return true;
}

bool wpk_net_peers_add(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    peer->bucket = peer->is_local ? WPK_NET_BUCKETS : bucket_of(server, peer->stream);
    pthread_mutex_lock(&server->lock);
    struct wpk_net_peer *victim = NULL;
    bool placed = take_place(server, peer);
    if (placed) {
        victim = find_victim(server, peer);
        if (victim != NULL) {
            wpk_net_peer_begin_refusal(victim, WPK_NET_REFUSAL_LIMIT);
        }
        add_stranger(server, peer);
        server->descriptors++;
    } else {
        server->refused[WPK_NET_REFUSAL_LIMIT]++;
    }
    pthread_mutex_unlock(&server->lock);
    if (victim != NULL) {
        wpk_net_peer_finish_end(victim);
    }
    return placed;
}

/* Where there is no room, accepting goes on when the owner has freed what had to go or has counted
 * again. Nothing is spun on: a lack of descriptors does not go away by asking at once. */
bool wpk_net_peers_may_accept(struct wpk_net_door *door, int code)
{
    struct wpk_net_server *server = door->server;
    bool full = code == NNG_ENOFILES || code == NNG_ENOMEM;
    bool fine = code == 0 || code == NNG_ECONNABORTED || code == NNG_ECONNRESET;
    struct wpk_net_peer *victim = NULL;
    pthread_mutex_lock(&server->lock);
    bool room = server->descriptors < server->descriptor_max;
    bool more = fine && room && !server->is_closing;
    if ((full || !room) && door->is_accepting && !server->is_closing) {
        victim = server->stranger_oldest; /* its descriptor is the next one's */
    }
    if (victim != NULL) {
        wpk_net_peer_begin_refusal(victim, WPK_NET_REFUSAL_LIMIT);
    }
    door->is_accepting = more;
    pthread_mutex_unlock(&server->lock);
    if (victim != NULL) {
        wpk_net_peer_finish_end(victim);
    }
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
