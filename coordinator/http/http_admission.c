/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is a word: its deadline, whether it is known, its phase. Marks exchange the word
 * without a lock. To find the one that has to go, all words are read: 2,300 of them take two
 * microseconds, a tenth of what accepting and closing a connection takes, and only when there is
 * no room. */
#include "coordinator/http/http_admission.h"

#include "common/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define BUCKETS 1024
#define NO_ADDRESS UINT32_MAX
#define SPARED_MAX 8 /* connections, before whoever comes has to wait */

#define PHASE_MASK UINT64_C(7)
#define KNOWN UINT64_C(8)
#define LAST UINT64_C(16)     /* ends with its next answer */
#define EXPELLED UINT64_C(32) /* and when that has left, whatever it said */
#define DEADLINE_SHIFT 6 /* microseconds are above: until 9,000 years after the clock's origin */
#define FREE PHASE_MASK

struct address {
    struct wpk_http_address key;
    uint32_t live;  /* its connections that are not ending */
    uint32_t slots; /* all of them; 0: nobody's */
    uint32_t next;  /* in its bucket, or among the free ones */
};

struct wpk_http_admission {
    uint32_t connections_max;
    uint32_t of_one_max;
    uint32_t slot_count; /* connections_max and those that are ending */
    atomic_size_t held;
    pthread_mutex_t lock; /* guards all below but `words`, which are freed and taken under it */
    _Atomic uint64_t *words;
    uint32_t live; /* admitted and not ended */
    int *fds;
    uint32_t *address_of;
    uint32_t *next_free;
    uint32_t first_free;
    struct address *addresses;
    uint32_t first_free_address;
    uint32_t buckets[BUCKETS];
    uint32_t connection_of[WPK_HTTP_DESCRIPTORS_MAX];
};

static uint64_t make_word(enum wpk_http_phase phase, bool known, uint64_t deadline_ns)
{
    return (deadline_ns / WPK_NS_PER_US) << DEADLINE_SHIFT | (known ? KNOWN : 0) | (uint64_t)phase;
}

static bool is_phase(uint64_t word, enum wpk_http_phase phase)
{
    return (word & PHASE_MASK) == (uint64_t)phase;
}

/* ---- addresses */

static uint32_t bucket_of(const struct wpk_http_address *key)
{
    uint64_t halves[2];
    memcpy(halves, key->bytes, sizeof halves);
    uint64_t mixed =
        (halves[0] ^ (halves[1] * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(mixed >> 32) % BUCKETS;
}

/* There is always room while a slot is free: each address has one at least. */
static uint32_t take_address(struct wpk_http_admission *a, const struct wpk_http_address *key)
{
    uint32_t *first = &a->buckets[bucket_of(key)];
    uint32_t at = *first;
    while (at != NO_ADDRESS && memcmp(&a->addresses[at].key, key, sizeof *key) != 0) {
        at = a->addresses[at].next;
    }
    if (at == NO_ADDRESS) {
        at = a->first_free_address;
        WPK_ASSERT(at != NO_ADDRESS);
        a->first_free_address = a->addresses[at].next;
        a->addresses[at] = (struct address){.key = *key, .next = *first};
        *first = at;
    }
    return at;
}

static void drop_address(struct wpk_http_admission *a, uint32_t index)
{
    struct address *address = &a->addresses[index];
    if (address->slots > 0) {
        return;
    }
    uint32_t *link = &a->buckets[bucket_of(&address->key)];
    while (*link != index) {
        link = &a->addresses[*link].next;
    }
    *link = address->next;
    address->next = a->first_free_address;
    a->first_free_address = index;
}

/* ---- ending */

/* With the lock held, and the word as it was just seen: false when it has changed since. */
static bool end(struct wpk_http_admission *a, uint32_t connection, uint64_t seen)
{
    if (!atomic_compare_exchange_strong(&a->words[connection], &seen,
                                        make_word(WPK_HTTP_ENDING, false, 0))) {
        return false;
    }
    a->live--;
    a->addresses[a->address_of[connection]].live--;
    shutdown(a->fds[connection], SHUT_RDWR);
    return true;
}

/* What goes first has the smallest: unknown, idle, early. */
static uint64_t rank(uint64_t word)
{
    uint64_t class = (word & KNOWN) == 0 ? 0 : is_phase(word, WPK_HTTP_IDLE) ? 1 : 2;
    return class << 61 | word >> DEADLINE_SHIFT;
}

static bool may_end(uint64_t word)
{
    return is_phase(word, WPK_HTTP_READING) || is_phase(word, WPK_HTTP_SENDING) ||
           is_phase(word, WPK_HTTP_IDLE);
}

/* Is something here that we have not read? Then it is we who are slow, whatever the phase. */
static bool waits_for_us(int fd)
{
    int unread = 0;
    return ioctl(fd, FIONREAD, &unread) == 0 && unread > 0;
}

/* Whose turn it is after `last` (WPK_HTTP_NOBODY: first), of an address or of all (NO_ADDRESS).
 * *word is what was seen of it, and of `last` before. */
static uint32_t find_next(struct wpk_http_admission *a, uint32_t address, uint32_t last,
                          uint64_t *word)
{
    uint64_t last_rank = last != WPK_HTTP_NOBODY ? rank(*word) : 0;
    uint64_t best_rank = UINT64_MAX;
    uint32_t best = WPK_HTTP_NOBODY;
    for (uint32_t i = 0; i < a->slot_count; i++) {
        uint64_t seen = atomic_load_explicit(&a->words[i], memory_order_relaxed);
        if (!may_end(seen) || (address != NO_ADDRESS && a->address_of[i] != address)) {
            continue;
        }
        uint64_t own = rank(seen);
        bool is_after =
            last == WPK_HTTP_NOBODY || own > last_rank || (own == last_rank && i > last);
        if (is_after && own < best_rank) {
            best = i;
            best_rank = own;
            *word = seen;
        }
    }
    return best;
}

enum found { ENDED_ONE, ALL_WAIT, SOME_ARE_UNREAD };

/* With the lock held: end one, of an address or of all (NO_ADDRESS). Those that we have yet to read
 * are passed over, a few of them: when the first in turn are all so, somebody has to read. */
static enum found end_one(struct wpk_http_admission *a, uint32_t address)
{
    uint32_t last = WPK_HTTP_NOBODY;
    uint64_t last_word = 0;
    for (uint32_t spared = 0; spared < SPARED_MAX;) {
        uint64_t word = last_word;
        uint32_t victim = find_next(a, address, last, &word);
        if (victim == WPK_HTTP_NOBODY) {
            return spared > 0 ? SOME_ARE_UNREAD : ALL_WAIT;
        }
        if (waits_for_us(a->fds[victim])) {
            last = victim;
            last_word = word;
            spared++;
        } else if (end(a, victim, word)) {
            return ENDED_ONE;
        }
    }
    return SOME_ARE_UNREAD;
}

static enum wpk_http_verdict verdict_of(enum found found)
{
    return found == ENDED_ONE         ? WPK_HTTP_ADMITTED
           : found == SOME_ARE_UNREAD ? WPK_HTTP_LATER
                                      : WPK_HTTP_REFUSED;
}

enum wpk_http_verdict wpk_http_admission_yield(struct wpk_http_admission *admission)
{
    pthread_mutex_lock(&admission->lock);
    enum found found = end_one(admission, NO_ADDRESS);
    pthread_mutex_unlock(&admission->lock);
    return verdict_of(found);
}

uint32_t wpk_http_admission_expire(struct wpk_http_admission *admission, uint64_t now_ns)
{
    uint32_t count = 0;
    pthread_mutex_lock(&admission->lock);
    for (uint32_t i = 0; i < admission->slot_count; i++) {
        uint64_t word = atomic_load_explicit(&admission->words[i], memory_order_relaxed);
        if (may_end(word) && word >> DEADLINE_SHIFT < now_ns / WPK_NS_PER_US) {
            count += end(admission, i, word);
        }
    }
    pthread_mutex_unlock(&admission->lock);
    return count;
}

/* ---- coming and going */

/* With the lock held. */
static enum wpk_http_verdict make_room(struct wpk_http_admission *a, int fd, uint32_t address)
{
    if (fd < 0 || fd >= WPK_HTTP_DESCRIPTORS_MAX) {
        return WPK_HTTP_REFUSED;
    }
    enum found found = ENDED_ONE;
    if (a->addresses[address].live >= a->of_one_max) {
        found = end_one(a, address);
    }
    if (found == ENDED_ONE && a->live >= a->connections_max) {
        found = end_one(a, NO_ADDRESS);
    }
    if (found != ENDED_ONE) {
        return verdict_of(found);
    }
    return a->first_free == WPK_HTTP_NOBODY ? WPK_HTTP_LATER : WPK_HTTP_ADMITTED;
}

enum wpk_http_verdict wpk_http_admission_admit(struct wpk_http_admission *admission, int fd,
                                               const struct wpk_http_address *address,
                                               uint64_t deadline_ns, uint32_t *connection)
{
    struct wpk_http_admission *a = admission;
    pthread_mutex_lock(&a->lock);
    uint32_t of = a->first_free != WPK_HTTP_NOBODY ? take_address(a, address) : NO_ADDRESS;
    enum wpk_http_verdict verdict = of == NO_ADDRESS ? WPK_HTTP_LATER : make_room(a, fd, of);
    if (verdict == WPK_HTTP_ADMITTED) {
        uint32_t slot = a->first_free;
        a->first_free = a->next_free[slot];
        a->fds[slot] = fd;
        a->address_of[slot] = of;
        a->addresses[of].live++;
        a->addresses[of].slots++;
        a->connection_of[fd] = slot;
        a->live++;
        atomic_store(&a->words[slot], make_word(WPK_HTTP_READING, false, deadline_ns));
        *connection = slot;
    } else if (of != NO_ADDRESS) {
        drop_address(a, of);
    }
    pthread_mutex_unlock(&a->lock);
    return verdict;
}

void wpk_http_admission_leave(struct wpk_http_admission *admission, uint32_t connection)
{
    struct wpk_http_admission *a = admission;
    pthread_mutex_lock(&a->lock);
    uint64_t word = atomic_exchange(&a->words[connection], FREE);
    WPK_ASSERT((word & PHASE_MASK) != FREE);
    uint32_t of = a->address_of[connection];
    if (!is_phase(word, WPK_HTTP_ENDING)) {
        a->live--;
        a->addresses[of].live--;
    }
    a->addresses[of].slots--;
    drop_address(a, of);
    a->connection_of[a->fds[connection]] = WPK_HTTP_NOBODY;
    a->next_free[connection] = a->first_free;
    a->first_free = connection;
    pthread_mutex_unlock(&a->lock);
}

uint32_t wpk_http_admission_find(struct wpk_http_admission *admission, int fd)
{
    pthread_mutex_lock(&admission->lock);
    uint32_t connection =
        fd >= 0 && fd < WPK_HTTP_DESCRIPTORS_MAX ? admission->connection_of[fd] : WPK_HTTP_NOBODY;
    pthread_mutex_unlock(&admission->lock);
    return connection;
}

bool wpk_http_admission_mark(struct wpk_http_admission *admission, uint32_t connection,
                             enum wpk_http_phase phase, bool known, uint64_t deadline_ns)
{
    _Atomic uint64_t *word = &admission->words[connection];
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    do {
        if (is_phase(seen, WPK_HTTP_ENDING)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(
        word, &seen, make_word(phase, known, deadline_ns) | (seen & (KNOWN | LAST | EXPELLED))));
    if (phase == WPK_HTTP_IDLE && (seen & EXPELLED) != 0) {
        wpk_http_admission_expel(admission, connection);
    }
    return true;
}

void wpk_http_admission_dismiss(struct wpk_http_admission *admission, uint32_t connection)
{
    atomic_fetch_or(&admission->words[connection], LAST); /* a free one is free of it once taken */
}

bool wpk_http_admission_is_last(struct wpk_http_admission *admission, uint32_t connection)
{
    return (atomic_load_explicit(&admission->words[connection], memory_order_relaxed) & LAST) != 0;
}

void wpk_http_admission_expel(struct wpk_http_admission *admission, uint32_t connection)
{
    atomic_fetch_or(&admission->words[connection], LAST | EXPELLED);
    pthread_mutex_lock(&admission->lock);
    uint64_t word = atomic_load(&admission->words[connection]);
    while ((is_phase(word, WPK_HTTP_IDLE) || is_phase(word, WPK_HTTP_READING)) &&
           !end(admission, connection, word)) {
        word = atomic_load(&admission->words[connection]);
    }
    pthread_mutex_unlock(&admission->lock);
}

bool wpk_http_admission_hold(struct wpk_http_admission *admission, size_t *size)
{
    *size = *size <= WPK_HTTP_SMALL_MAX ? 0 : *size;
    if (*size == 0 || atomic_fetch_add(&admission->held, *size) + *size <= WPK_HTTP_HELD_MAX) {
        return true;
    }
    atomic_fetch_sub(&admission->held, *size);
    return false;
}

void wpk_http_admission_release(struct wpk_http_admission *admission, size_t size)
{
    atomic_fetch_sub(&admission->held, size);
}

uint32_t wpk_http_admission_count(struct wpk_http_admission *admission)
{
    pthread_mutex_lock(&admission->lock);
    uint32_t count = admission->live;
    pthread_mutex_unlock(&admission->lock);
    return count;
}

uint32_t wpk_http_admission_count_in(struct wpk_http_admission *admission,
                                     enum wpk_http_phase phase)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < admission->slot_count; i++) {
        count += is_phase(atomic_load(&admission->words[i]), phase);
    }
    return count;
}

/* ---- life */

static bool allocate(struct wpk_http_admission *a)
{
    a->words = calloc(a->slot_count, sizeof *a->words);
    a->fds = calloc(a->slot_count, sizeof *a->fds);
    a->address_of = calloc(a->slot_count, sizeof *a->address_of);
    a->next_free = calloc(a->slot_count, sizeof *a->next_free);
    a->addresses = calloc(a->slot_count, sizeof *a->addresses);
    return a->words != NULL && a->fds != NULL && a->address_of != NULL && a->next_free != NULL &&
           a->addresses != NULL;
}

wpk_err wpk_http_admission_new(uint32_t connections_max, uint32_t of_one_max,
                               struct wpk_http_admission **out)
{
    struct wpk_http_admission *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return WPK_ENOMEM;
    }
    a->connections_max = connections_max;
    a->of_one_max = of_one_max;
    a->slot_count = connections_max + WPK_HTTP_ENDING_MAX;
    pthread_mutex_init(&a->lock, NULL);
    if (!allocate(a)) {
        wpk_http_admission_free(a);
        return WPK_ENOMEM;
    }
    for (uint32_t i = 0; i < a->slot_count; i++) {
        atomic_init(&a->words[i], FREE);
        a->next_free[i] = i + 1 < a->slot_count ? i + 1 : WPK_HTTP_NOBODY;
        a->addresses[i].next = i + 1 < a->slot_count ? i + 1 : NO_ADDRESS;
    }
    memset(a->buckets, 0xff, sizeof a->buckets);
    memset(a->connection_of, 0xff, sizeof a->connection_of);
    *out = a;
    return WPK_OK;
}

void wpk_http_admission_free(struct wpk_http_admission *admission)
{
    if (admission == NULL) {
        return;
    }
    pthread_mutex_destroy(&admission->lock);
    free(admission->words);
    free(admission->fds);
    free(admission->address_of);
    free(admission->next_free);
    free(admission->addresses);
    free(admission);
}
