/* SPDX-License-Identifier: Apache-2.0 */
/* A server's owner's side: whom it lets in, what waits to be taken. Where strangers are too many,
 * or descriptors too few, the oldest stranger goes. */
#include "common/net_peer.h"

#include "common/clock.h"
#include "common/crypto.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define LATE_MAX 64   /* connections freed here whose descriptors the library has yet to close */
#define PLACE_BITS 15 /* of a peer's id */
#define BURIED_MAX 64 /* in one turn of the owner's */
#define OVERDUE_MAX 512
#define QUIET_MAX 512 /* looked at under one lock */
_Static_assert(WPK_NET_PEERS_MAX == 1 << PLACE_BITS, "a place fits into an id");

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

static void unlink_waiting(struct wpk_net_server *server, const struct wpk_net_peer *peer)
{
    struct wpk_net_peer **at = &server->waiting;
    while (*at != peer) {
        at = &(*at)->next_waiting;
    }
    *at = peer->next_waiting;
}

/* With the lock: it is over, and who calls this closes it. False: somebody else does. */
static bool begin_end(struct wpk_net_server *server, struct wpk_net_peer *peer)
{
    if (peer->standing == WPK_NET_DEAD) {
        return false;
    }
    if (peer->standing == WPK_NET_WAITING) {
        unlink_waiting(server, peer);
    }
    wpk_net_peer_know(server, peer);
    server->reply_bytes -= peer->reply_bytes;
    peer->reply_bytes = 0;
    peer->standing = WPK_NET_DEAD;
    return true;
}

/* Without it. Only then may the owner free it. */
static void finish_end(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    nng_stream_close(peer->stream);
    pthread_mutex_lock(&server->lock);
    peer->next_dead = server->dead;
    server->dead = peer;
    pthread_mutex_unlock(&server->lock);
    server->wake(server->user);
}

/* With the lock: we end it. */
static bool refuse(struct wpk_net_server *server, struct wpk_net_peer *peer,
                   enum wpk_net_refusal why)
{
    if (!peer->is_known && peer->standing != WPK_NET_DEAD) {
        server->refused[why]++;
    }
    return begin_end(server, peer);
}

void wpk_net_peer_refuse(struct wpk_net_peer *peer, enum wpk_net_refusal why)
{
    pthread_mutex_lock(&peer->server->lock);
    bool mine = refuse(peer->server, peer, why);
    pthread_mutex_unlock(&peer->server->lock);
    if (mine) {
        finish_end(peer);
    }
}

void wpk_net_peer_end(struct wpk_net_peer *peer)
{
    pthread_mutex_lock(&peer->server->lock);
    bool mine = begin_end(peer->server, peer);
    pthread_mutex_unlock(&peer->server->lock);
    if (mine) {
        finish_end(peer);
    }
}

/* ---- opening */

/* It may have come to its end meanwhile: our greeting to one that has left is answered on another
 * thread, before we are back. */
static void start(struct wpk_net_server *server, struct wpk_net_peer *peer)
{
    wpk_net_peer_start(peer);
    pthread_mutex_lock(&server->lock);
    peer->is_starting = false;
    bool ended = peer->standing == WPK_NET_DEAD;
    pthread_mutex_unlock(&server->lock);
    if (ended) {
        server->wake(server->user); /* the owner passed it over */
    }
}

void wpk_net_server_welcome(struct wpk_net_door *door, nng_stream *stream)
{
    struct wpk_net_server *server = door->server;
    struct wpk_net_peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL || !wpk_net_peer_init(peer, stream)) {
        free(peer);
        nng_stream_free(stream);
        return;
    }
    peer->server = server;
    peer->is_starting = true;
    peer->is_local = door->is_local;
    peer->is_tls = door->is_tls;
    peer->bucket = peer->is_local ? WPK_NET_BUCKETS : bucket_of(server, stream);
    pthread_mutex_lock(&server->lock);
    struct wpk_net_peer *victim = NULL;
    bool placed = take_place(server, peer);
    if (placed) {
        victim = find_victim(server, peer);
        if (victim != NULL) {
            refuse(server, victim, WPK_NET_REFUSAL_LIMIT);
        }
        add_stranger(server, peer);
        server->descriptors++;
    } else {
        server->refused[WPK_NET_REFUSAL_LIMIT]++;
    }
    pthread_mutex_unlock(&server->lock);
    if (!placed) {
        wpk_net_peer_free(peer);
        return;
    }
    if (victim != NULL) {
        finish_end(victim);
    }
    start(server, peer);
}

/* Where there is no room, accepting goes on when the owner has freed what had to go or has counted
 * again. Nothing is spun on: a lack of descriptors does not go away by asking at once. */
bool wpk_net_server_goes_on(struct wpk_net_door *door, int code)
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
        refuse(server, victim, WPK_NET_REFUSAL_LIMIT);
    }
    door->is_accepting = more;
    pthread_mutex_unlock(&server->lock);
    if (victim != NULL) {
        finish_end(victim);
    }
    return more;
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
    bool limited = options->peers_max > 0 && options->peers_max < WPK_NET_PEERS_MAX;
    server->peers_max = limited ? options->peers_max : WPK_NET_PEERS_MAX - 1;
    server->peers_of_address_max = options->peers_of_address_max > 0 ? options->peers_of_address_max
                                                                     : WPK_NET_PEERS_OF_ADDRESS_MAX;
    server->stranger_ns =
        (options->stranger_ms > 0 ? options->stranger_ms : WPK_NET_STRANGER_MS) * WPK_NS_PER_MS;
    server->silence_ns =
        (options->silence_ms > 0 ? options->silence_ms : WPK_NET_SILENCE_MS) * WPK_NS_PER_MS;
    server->body_ns = (options->body_ms > 0 ? options->body_ms : WPK_NET_BODY_MS) * WPK_NS_PER_MS;
    server->wake = options->wake;
    server->user = options->user;
    server->descriptor_max = descriptor_max();
    server->descriptors = count_descriptors();
    wpk_crypto_random(&server->bucket_seed, sizeof server->bucket_seed);
    pthread_mutex_init(&server->lock, NULL);
    wpk_err err = WPK_OK;
    for (size_t i = 0; i < options->listen_count && err == WPK_OK; i++) {
        err = wpk_net_door_open(&server->doors[server->door_count++], server, &options->listen[i],
                                diag);
    }
    if (err != WPK_OK) {
        wpk_net_server_close(server);
        return err;
    }
    wpk_net_doors_wake(server);
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
        server->of_bucket[peer->bucket]--;
    }
    pthread_mutex_unlock(&server->lock);
    return peer;
}

static void resume_waiting(struct wpk_net_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct wpk_net_peer *waiting = server->waiting;
    server->waiting = NULL;
    for (struct wpk_net_peer *peer = waiting; peer != NULL; peer = peer->next_waiting) {
        peer->standing = WPK_NET_SIZE;
        peer->heard_ns = wpk_clock_now_ns(wpk_clock_system());
    }
    pthread_mutex_unlock(&server->lock);
    while (waiting != NULL) {
        struct wpk_net_peer *next = waiting->next_waiting;
        wpk_net_peer_resume(waiting);
        waiting = next;
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
    size_t bytes = wpk_net_peer_free(peer);
    pthread_mutex_lock(&server->lock);
    server->bytes -= bytes;
    server->descriptors -= server->descriptors > 0;
    bool waited = bytes > 0 && server->waiting != NULL;
    pthread_mutex_unlock(&server->lock);
    if (waited) {
        resume_waiting(server); /* what it had announced is free again */
    }
    return true;
}

static struct wpk_net_piece *take_request(struct wpk_net_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct wpk_net_piece *request = server->first;
    if (request != NULL) {
        server->first = request->next;
        server->last = server->first != NULL ? server->last : NULL;
        server->bytes -= request->event.size;
        struct wpk_net_peer *peer = server->peers[request->event.address.peer % WPK_NET_PEERS_MAX];
        WPK_ASSERT(peer != NULL && peer->queued > 0);
        peer->queued--;
    }
    bool waited = request != NULL && server->waiting != NULL;
    pthread_mutex_unlock(&server->lock);
    if (waited) {
        resume_waiting(server);
    }
    return request;
}

bool wpk_net_server_next(struct wpk_net_server *server, struct wpk_net_event *out)
{
    struct wpk_net_piece *request = take_request(server);
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
        wpk_net_doors_wake(server);
    }
    if (buried == BURIED_MAX) {
        server->wake(server->user);
    }
    *out = (struct wpk_net_event){.gone = true, .address = {.peer = id}};
    return id != 0;
}

uint32_t wpk_net_server_peer_count(struct wpk_net_server *server)
{
    pthread_mutex_lock(&server->lock);
    uint32_t count = server->peer_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

const char *wpk_net_refusal_name(enum wpk_net_refusal refusal)
{
    static const char *const names[] = {
#define REFUSAL_ROW(name, text) [WPK_NET_REFUSAL_##name] = (text),
        WPK_NET_REFUSAL_LIST(REFUSAL_ROW)
#undef REFUSAL_ROW
    };
    WPK_ASSERT(refusal < WPK_NET_REFUSAL_COUNT);
    return names[refusal];
}

void wpk_net_server_refused(struct wpk_net_server *server, uint64_t *out)
{
    pthread_mutex_lock(&server->lock);
    memcpy(out, server->refused, sizeof server->refused);
    pthread_mutex_unlock(&server->lock);
}

/* With the lock. Who is made to wait is not silent of its own accord. Of large requests that come
 * slowly, those that keep others waiting are ended. */
static bool is_overdue(const struct wpk_net_server *server, const struct wpk_net_peer *peer,
                       uint64_t now_ns)
{
    bool stalls = peer->standing == WPK_NET_BODY && server->waiting != NULL &&
                  peer->body_size > WPK_NET_SMALL_MAX;
    bool takes_nothing = peer->reply != NULL && peer->took_ns + server->silence_ns <= now_ns;
    return (stalls && peer->body_ns + server->body_ns <= now_ns) || takes_nothing ||
           (peer->standing != WPK_NET_WAITING && peer->heard_ns + server->silence_ns <= now_ns);
}

/* With the lock: those whose time is over. */
static uint32_t find_overdue(struct wpk_net_server *server, uint64_t now_ns,
                             struct wpk_net_peer **out)
{
    uint32_t count = 0;
    while (count < OVERDUE_MAX && server->stranger_oldest != NULL &&
           server->stranger_oldest->accepted_ns + server->stranger_ns <= now_ns) {
        out[count++] = server->stranger_oldest;
        refuse(server, server->stranger_oldest, WPK_NET_REFUSAL_TIMEOUT);
    }
    for (uint32_t i = 0; i < WPK_NET_PEERS_MAX && count < OVERDUE_MAX; i++) {
        struct wpk_net_peer *peer = server->peers[i];
        if (peer != NULL && is_overdue(server, peer, now_ns) && begin_end(server, peer)) {
            out[count++] = peer;
        }
    }
    return count;
}

/* Some of those over TLS that have said nothing for a moment, from place *at on. */
static uint32_t find_quiet(struct wpk_net_server *server, uint64_t now_ns, uint32_t *at,
                           struct wpk_net_peer *out[QUIET_MAX])
{
    uint32_t count = 0;
    pthread_mutex_lock(&server->lock);
    for (; *at < WPK_NET_PEERS_MAX && count < QUIET_MAX; (*at)++) {
        struct wpk_net_peer *peer = server->peers[*at];
        if (peer != NULL && peer->is_tls && peer->standing != WPK_NET_DEAD &&
            peer->heard_ns + WPK_NS_PER_S <= now_ns) {
            out[count++] = peer;
        }
    }
    pthread_mutex_unlock(&server->lock);
    return count;
}

/* The owner alone frees peers, and is here: those that were found are there. */
static void check_quiet(struct wpk_net_server *server, uint64_t now_ns)
{
    struct wpk_net_peer *quiet[QUIET_MAX];
    uint32_t at = 0;
    while (at < WPK_NET_PEERS_MAX) {
        uint32_t count = find_quiet(server, now_ns, &at, quiet);
        for (uint32_t i = 0; i < count; i++) {
            wpk_net_peer_check(quiet[i]);
        }
    }
}

void wpk_net_server_expire(struct wpk_net_server *server)
{
    uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());
    struct wpk_net_peer *overdue[OVERDUE_MAX];
    if (now_ns < server->looked_ns + WPK_NS_PER_S) {
        return;
    }
    server->looked_ns = now_ns;
    uint64_t descriptors = count_descriptors();
    uint64_t most = descriptor_max();
    pthread_mutex_lock(&server->lock);
    server->descriptors = descriptors;
    server->descriptor_max = most;
    uint32_t count = find_overdue(server, now_ns, overdue);
    pthread_mutex_unlock(&server->lock);
    for (uint32_t i = 0; i < count; i++) {
        finish_end(overdue[i]);
    }
    check_quiet(server, now_ns);
    wpk_net_doors_wake(server);
}

void wpk_net_server_close(struct wpk_net_server *server)
{
    if (server == NULL) {
        return;
    }
    pthread_mutex_lock(&server->lock);
    server->is_closing = true;
    pthread_mutex_unlock(&server->lock);
    for (size_t i = 0; i < server->door_count; i++) {
        wpk_net_door_close(&server->doors[i]);
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
    pthread_mutex_destroy(&server->lock);
    free(server);
}
