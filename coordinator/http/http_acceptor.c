/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/http/http_acceptor.h"

#include "common/clock.h"
#include "common/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define TURN_MAX 64      /* connections of one listener before the next one's turn */
#define NO_ROOM_MS 1     /* between two looks whether those that are ending have left */
#define LOOKS_MAX 1000   /* for one connection; then it is refused */
#define NAMES_MAX 64     /* users whose names are remembered */
#define PASSWD_SIZE 4096 /* bytes for an entry of the user database */

struct user_name {
    bool known;
    uid_t uid;
    char name[WPK_OWNER_SIZE];
};

struct wpk_http_acceptor {
    struct wpk_http_acceptor_options options;
    pthread_t thread;
    int stop_fd;
    struct user_name names[NAMES_MAX]; /* the thread's alone */
    pthread_mutex_t lock;              /* guards peers */
    struct wpk_http_peer peers[WPK_HTTP_PEERS_MAX];
    uint32_t peer_count;
};

/* ---- who it is */

/* The database of users may be slow to ask: each one is asked for once. */
static const char *find_name(struct wpk_http_acceptor *acceptor, uid_t uid)
{
    struct user_name *cached = &acceptor->names[uid % NAMES_MAX];
    if (cached->known && cached->uid == uid) {
        return cached->name;
    }
    char strings[PASSWD_SIZE];
    struct passwd entry;
    struct passwd *found = NULL;
    if (getpwuid_r(uid, &entry, strings, sizeof strings, &found) != 0 || found == NULL ||
        strlen(found->pw_name) >= sizeof cached->name) {
        snprintf(cached->name, sizeof cached->name, "uid:%u", (unsigned)uid);
    } else {
        snprintf(cached->name, sizeof cached->name, "%s", found->pw_name);
    }
    cached->known = true;
    cached->uid = uid;
    return cached->name;
}

/* This user and root may everything; others what was said of them; nobody else is let in. */
static bool find_roles(struct wpk_http_acceptor *acceptor, uid_t uid, unsigned *roles)
{
    const struct wpk_http_peer *found = NULL;
    if (uid == geteuid() || uid == 0) {
        *roles = WPK_ROLE_ALL;
        return true;
    }
    pthread_mutex_lock(&acceptor->lock);
    for (uint32_t i = 0; i < acceptor->peer_count; i++) {
        const struct wpk_http_peer *peer = &acceptor->peers[i];
        if (peer->uid == uid || (peer->uid == WPK_HTTP_OTHERS && found == NULL)) {
            found = peer;
        }
    }
    *roles = found != NULL ? found->roles : 0;
    pthread_mutex_unlock(&acceptor->lock);
    return found != NULL;
}

static bool identify_local(struct wpk_http_acceptor *acceptor, struct wpk_http_arrival *arrival,
                           struct wpk_source *source)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(arrival->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return false;
    }
    if (!find_roles(acceptor, peer.uid, &arrival->identity.roles)) {
        acceptor->options.denied(acceptor->options.user, find_name(acceptor, peer.uid));
        return false;
    }
    snprintf(arrival->identity.owner, sizeof arrival->identity.owner, "%s",
             find_name(acceptor, peer.uid));
    snprintf(arrival->identity.peer, sizeof arrival->identity.peer, "unix");
    arrival->known = arrival->identity.roles != 0;
    memcpy(source->bytes, &peer.uid, sizeof peer.uid);
    source->bytes[15] = 'u'; /* in no network's first half: never of an address */
    return true;
}

static void identify_remote(struct wpk_http_arrival *arrival, struct wpk_source *source)
{
    char *text = arrival->identity.peer;
    if (arrival->address.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&arrival->address;
        *source = wpk_source_of(&v4->sin_addr, 4);
        inet_ntop(AF_INET, &v4->sin_addr, text, WPK_PEER_SIZE);
    } else {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&arrival->address;
        *source = wpk_source_of(&v6->sin6_addr, 16);
        inet_ntop(AF_INET6, &v6->sin6_addr, text, WPK_PEER_SIZE);
    }
}

/* ---- taking them in */

/* False when it is told to stop. */
static bool wait_a_moment(struct wpk_http_acceptor *acceptor)
{
    struct pollfd stop = {.fd = acceptor->stop_fd, .events = POLLIN};
    return poll(&stop, 1, NO_ROOM_MS) == 0;
}

static void refuse(struct wpk_http_arrival *arrival)
{
    wpk_metric_add(WPK_COUNTER_HTTP_REFUSED, wpk_metric_value(WPK_LABEL_REFUSAL, "limit"), 1);
    close(arrival->fd);
}

static void admit(struct wpk_http_acceptor *acceptor, struct wpk_http_arrival *arrival)
{
    struct wpk_admission *admission = acceptor->options.admission;
    struct wpk_source source = {{0}};
    if (arrival->address.ss_family != AF_UNIX) {
        identify_remote(arrival, &source);
    } else if (!identify_local(acceptor, arrival, &source)) {
        close(arrival->fd);
        return;
    }
    enum wpk_admission_verdict verdict =
        arrival->fd < WPK_HTTP_DESCRIPTORS_MAX ? WPK_LATER : WPK_REFUSED;
    for (int i = 0; i < LOOKS_MAX && verdict == WPK_LATER; i++) {
        uint64_t deadline_ns =
            wpk_clock_now_ns(acceptor->options.clock) + acceptor->options.reading_ns;
        verdict = wpk_admission_admit(admission, &source, deadline_ns, &arrival->connection);
        if (verdict == WPK_LATER && !wait_a_moment(acceptor)) {
            break;
        }
    }
    if (verdict == WPK_ADMITTED) {
        acceptor->options.take(acceptor->options.user, arrival);
    } else {
        refuse(arrival);
    }
}

/* True if few descriptors are left, judged by the number of the newest one, `fd`. */
static bool is_scarce(int fd, int reserve)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           (rlim_t)fd + (rlim_t)reserve >= limit.rlim_cur;
}

/* Leave descriptors to others: one connection is ended for one that comes. Where it has to wait for
 * that, or for those that ended to leave, it moves to a lower one that is free then. */
static bool leave_some(struct wpk_http_acceptor *acceptor, struct wpk_http_arrival *arrival)
{
    enum wpk_admission_verdict verdict = WPK_LATER;
    if (!is_scarce(arrival->fd, WPK_HTTP_DESCRIPTORS_RESERVE)) {
        return true;
    }
    for (int i = 0; i < LOOKS_MAX && verdict != WPK_REFUSED; i++) {
        if (verdict == WPK_LATER) {
            verdict = wpk_admission_yield(acceptor->options.admission);
        }
        if (verdict == WPK_ADMITTED && !is_scarce(arrival->fd, WPK_HTTP_DESCRIPTORS_RESERVE / 2)) {
            return true;
        }
        if (!wait_a_moment(acceptor)) {
            break;
        }
        int other = fcntl(arrival->fd, F_DUPFD_CLOEXEC, 0);
        if (other >= 0) {
            close(other < arrival->fd ? arrival->fd : other);
            arrival->fd = other < arrival->fd ? other : arrival->fd;
        }
    }
    return false;
}

/* One connection; false when there is no more, or no way to take it. */
static bool accept_one(struct wpk_http_acceptor *acceptor, uint32_t listener)
{
    struct wpk_http_arrival arrival = {.listener = listener};
    arrival.address_size = sizeof arrival.address;
    arrival.fd =
        accept4(acceptor->options.listeners[listener].fd, (struct sockaddr *)&arrival.address,
                &arrival.address_size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int reason = errno;
    if (arrival.fd < 0) {
        if (reason == EMFILE || reason == ENFILE || reason == ENOMEM || reason == ENOBUFS) {
            (void)wpk_admission_yield(acceptor->options.admission);
            (void)wait_a_moment(acceptor);
        }
        return reason == EINTR || reason == ECONNABORTED;
    }
    if (!leave_some(acceptor, &arrival)) {
        refuse(&arrival);
        return false;
    }
    admit(acceptor, &arrival);
    return true;
}

static void *run(void *user)
{
    struct wpk_http_acceptor *acceptor = user;
    struct pollfd polled[WPK_HTTP_LISTENERS_MAX + 1];
    uint32_t count = acceptor->options.listener_count;
    for (uint32_t i = 0; i < count; i++) {
        polled[i] = (struct pollfd){.fd = acceptor->options.listeners[i].fd, .events = POLLIN};
    }
    polled[count] = (struct pollfd){.fd = acceptor->stop_fd, .events = POLLIN};
    uint64_t tick_ns = wpk_clock_now_ns(wpk_clock_system());
    for (;;) {
        int ready = poll(polled, count + 1, WPK_HTTP_TICK_MS);
        if (ready > 0 && polled[count].revents != 0) {
            return NULL;
        }
        for (uint32_t i = 0; ready > 0 && i < count; i++) {
            for (int taken = 0; polled[i].revents != 0 && taken < TURN_MAX; taken++) {
                if (!accept_one(acceptor, i)) {
                    break;
                }
            }
        }
        uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());
        if (now_ns >= tick_ns) {
            tick_ns = now_ns + WPK_HTTP_TICK_MS * WPK_NS_PER_MS;
            acceptor->options.tick(acceptor->options.user);
        }
    }
}

/* ---- life */

bool wpk_http_acceptor_set_peers(struct wpk_http_acceptor *acceptor,
                                 const struct wpk_http_peer *peers, uint32_t count)
{
    WPK_ASSERT(count <= WPK_HTTP_PEERS_MAX);
    pthread_mutex_lock(&acceptor->lock);
    bool changed = acceptor->peer_count != count;
    for (uint32_t i = 0; i < count; i++) {
        const struct wpk_http_peer *before = &acceptor->peers[i];
        changed = changed || before->uid != peers[i].uid || before->roles != peers[i].roles;
        acceptor->peers[i] = peers[i];
    }
    acceptor->peer_count = count;
    pthread_mutex_unlock(&acceptor->lock);
    return changed;
}

wpk_err wpk_http_acceptor_open(const struct wpk_http_acceptor_options *options,
                               struct wpk_http_acceptor **out, struct wpk_diag *diag)
{
    struct wpk_http_acceptor *acceptor = WPK_DEMAND(calloc(1, sizeof *acceptor));
    acceptor->options = *options;
    pthread_mutex_init(&acceptor->lock, NULL);
    (void)wpk_http_acceptor_set_peers(acceptor, options->peers, options->peer_count);
    acceptor->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (acceptor->stop_fd < 0 || pthread_create(&acceptor->thread, NULL, run, acceptor) != 0) {
        wpk_diag_set(diag, "the thread that accepts connections does not start");
        if (acceptor->stop_fd >= 0) {
            close(acceptor->stop_fd);
        }
        pthread_mutex_destroy(&acceptor->lock);
        free(acceptor);
        return WPK_ESYSTEM;
    }
    *out = acceptor;
    return WPK_OK;
}

void wpk_http_acceptor_close(struct wpk_http_acceptor *acceptor)
{
    uint64_t one = 1;
    if (acceptor == NULL) {
        return;
    }
    ssize_t written = write(acceptor->stop_fd, &one, sizeof one);
    WPK_ASSERT(written == sizeof one);
    pthread_join(acceptor->thread, NULL);
    close(acceptor->stop_fd);
    pthread_mutex_destroy(&acceptor->lock);
    free(acceptor);
}
