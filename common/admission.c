/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is one word: its deadline, whether it is known, its phase. A mark exchanges the word
 * without a lock. All words are read to find the connection to be ended, and to count those of a
 * source whose counter reaches a limit, because sources with the same hash share a counter. */
#include "common/admission.h"

#include "common/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
#define SPARED_MAX 8 /* connections, before a new one has to wait */

#define PHASE_MASK UINT64_C(7)
#define KNOWN UINT64_C(8)
#define LAST UINT64_C(16)     /* ends with its next answer */
#define EXPELLED UINT64_C(32) /* and when that has left, whatever it said */
#define DEADLINE_SHIFT 6 /* microseconds are above: until 9,000 years after the clock's origin */

/* Stored for a connection without a source. No address has it: of an address that begins like this,
 * wpk_source_of() leaves the second half zero. */
static const struct wpk_source no_source = {{[0] = 0xff, [15] = 0xff}};

struct wpk_admission {
    struct wpk_admission_options options;
    uint32_t few; /* connections of a source: below, no limit of it is reached */
    uint32_t word_count;
    _Atomic uint32_t live; /* those that are neither ending nor free, and how many are unknown */
    _Atomic uint32_t unknown;
    pthread_mutex_t lock; /* guards all below but `words`, which are freed and taken under it */
    _Atomic uint64_t *words;
    uint32_t used; /* no connection had a number from it on */
    uint32_t first_free;
    uint32_t *next_free;
    struct wpk_source *sources;
    uint32_t of_bucket[BUCKETS]; /* those that are not free */
};

static uint64_t make_word(enum wpk_connection_phase phase, bool known, uint64_t deadline_ns)
{
    return (deadline_ns / WPK_NS_PER_US) << DEADLINE_SHIFT | (known ? KNOWN : 0) | (uint64_t)phase;
}

static enum wpk_connection_phase phase_of(uint64_t word)
{
    return (enum wpk_connection_phase)(word & PHASE_MASK);
}

static uint64_t look(const struct wpk_admission *a, uint32_t connection)
{
    return atomic_load_explicit(&a->words[connection], memory_order_relaxed);
}

/* The word was replaced by one that is ending or free. */
static void count_out(struct wpk_admission *a, uint64_t word)
{
    if (phase_of(word) < WPK_CONNECTION_ENDING) {
        atomic_fetch_sub(&a->live, 1);
        atomic_fetch_sub(&a->unknown, (word & KNOWN) == 0);
    }
}

static uint32_t *bucket_of(struct wpk_admission *a, const struct wpk_source *source)
{
    uint64_t halves[2];
    memcpy(halves, source->bytes, sizeof halves);
    uint64_t mixed =
        (halves[0] ^ (halves[1] * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xbf58476d1ce4e5b9);
    return &a->of_bucket[(mixed >> 32) % BUCKETS];
}

static bool is_from(const struct wpk_admission *a, uint32_t connection,
                    const struct wpk_source *source)
{
    return memcmp(&a->sources[connection], source, sizeof *source) == 0;
}

struct wpk_source wpk_source_of(const void *address, size_t size)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct wpk_source source = {{0}};
    if (size == 4) {
        memcpy(source.bytes, mapped, sizeof mapped);
        memcpy(source.bytes + sizeof mapped, address, 4);
    } else {
        memcpy(source.bytes, address, memcmp(address, mapped, sizeof mapped) == 0 ? 16 : 8);
    }
    return source;
}

/* ---- ending */

/* With the lock held, and the word as it was just seen: false when it has changed since. */
static bool end(struct wpk_admission *a, uint32_t connection, uint64_t seen, bool is_overdue)
{
    if (!atomic_compare_exchange_strong(&a->words[connection], &seen,
                                        make_word(WPK_CONNECTION_ENDING, false, 0))) {
        return false;
    }
    count_out(a, seen);
    a->options.end(a->options.user, connection, is_overdue);
    return true;
}

static bool is_awaited(uint64_t word)
{
    return phase_of(word) == WPK_CONNECTION_READING || phase_of(word) == WPK_CONNECTION_SENDING ||
           phase_of(word) == WPK_CONNECTION_IDLE;
}

/* The order of closing, smallest first: unknown, then idle, then others; each by deadline. */
static uint64_t rank(uint64_t word)
{
    uint64_t class = (word & KNOWN) == 0 ? 0 : phase_of(word) == WPK_CONNECTION_IDLE ? 1 : 2;
    return class << 61 | word >> DEADLINE_SHIFT;
}

/* The next connection to close after `last` (WPK_ADMISSION_NONE: the first), of a source or of all
 * (NULL). *word is the state that was read of it; on entry that of `last`. */
static uint32_t find_next(const struct wpk_admission *a, const struct wpk_source *source,
                          uint32_t last, uint64_t *word)
{
    uint64_t last_rank = last != WPK_ADMISSION_NONE ? rank(*word) : 0;
    uint64_t best_rank = UINT64_MAX;
    uint32_t best = WPK_ADMISSION_NONE;
    for (uint32_t i = 0; i < a->used; i++) {
        uint64_t seen = look(a, i);
        if (!is_awaited(seen) || ((seen & KNOWN) != 0 && a->options.known_stay) ||
            (source != NULL && !is_from(a, i, source))) {
            continue;
        }
        uint64_t own = rank(seen);
        bool is_after =
            last == WPK_ADMISSION_NONE || own > last_rank || (own == last_rank && i > last);
        if (is_after && own < best_rank) {
            best = i;
            best_rank = own;
            *word = seen;
        }
    }
    return best;
}

/* With the lock held: end one, of a source or of all (NULL). Those that are spared are passed over,
 * a few of them: when the first in turn are all so, the server has to catch up. */
static enum wpk_admission_verdict end_one(struct wpk_admission *a, const struct wpk_source *source)
{
    uint32_t last = WPK_ADMISSION_NONE;
    uint64_t last_word = 0;
    for (uint32_t spared = 0; spared < SPARED_MAX;) {
        uint64_t word = last_word;
        uint32_t victim = find_next(a, source, last, &word);
        if (victim == WPK_ADMISSION_NONE) {
            return spared > 0 ? WPK_LATER : WPK_REFUSED;
        }
        if (a->options.is_spared != NULL && a->options.is_spared(a->options.user, victim)) {
            last = victim;
            last_word = word;
            spared++;
        } else if (end(a, victim, word, false)) {
            return WPK_ADMITTED;
        }
    }
    return WPK_LATER;
}

enum wpk_admission_verdict wpk_admission_yield(struct wpk_admission *admission)
{
    pthread_mutex_lock(&admission->lock);
    enum wpk_admission_verdict verdict = end_one(admission, NULL);
    pthread_mutex_unlock(&admission->lock);
    return verdict;
}

uint32_t wpk_admission_expire(struct wpk_admission *admission, uint64_t now_ns)
{
    uint32_t count = 0;
    pthread_mutex_lock(&admission->lock);
    for (uint32_t i = 0; i < admission->used; i++) {
        uint64_t word = look(admission, i);
        if (is_awaited(word) && word >> DEADLINE_SHIFT < now_ns / WPK_NS_PER_US) {
            count += end(admission, i, word, true);
        }
    }
    pthread_mutex_unlock(&admission->lock);
    return count;
}

/* ---- coming and going */

static bool reaches(uint32_t count, uint32_t max)
{
    return max > 0 && count >= max;
}

static bool is_crowded(struct wpk_admission *a, const struct wpk_source *source)
{
    uint32_t all = 0;
    uint32_t unknown = 0;
    uint32_t used = *bucket_of(a, source) >= a->few ? a->used : 0;
    for (uint32_t i = 0; i < used; i++) {
        uint64_t word = look(a, i);
        if (phase_of(word) < WPK_CONNECTION_ENDING && is_from(a, i, source)) {
            all++;
            unknown += (word & KNOWN) == 0;
        }
    }
    return reaches(all, a->options.of_source_max) ||
           reaches(unknown, a->options.unknown_of_source_max);
}

/* With the lock held. One that is ended makes room for every limit that is reached. */
static enum wpk_admission_verdict make_room(struct wpk_admission *a,
                                            const struct wpk_source *source)
{
    if (a->first_free == WPK_ADMISSION_NONE) {
        return WPK_LATER;
    }
    if (source != NULL && is_crowded(a, source)) {
        return end_one(a, source);
    }
    if (reaches(a->live, a->options.all_max) || reaches(a->unknown, a->options.unknown_max)) {
        return end_one(a, NULL);
    }
    return WPK_ADMITTED;
}

enum wpk_admission_verdict wpk_admission_admit(struct wpk_admission *admission,
                                               const struct wpk_source *source,
                                               uint64_t deadline_ns, uint32_t *connection)
{
    struct wpk_admission *a = admission;
    pthread_mutex_lock(&a->lock);
    enum wpk_admission_verdict verdict = make_room(a, source);
    if (verdict == WPK_ADMITTED) {
        uint32_t number = a->first_free;
        a->first_free = a->next_free[number];
        a->used = number < a->used ? a->used : number + 1;
        a->sources[number] = source != NULL ? *source : no_source;
        ++*bucket_of(a, &a->sources[number]);
        a->live++;
        a->unknown++;
        atomic_store(&a->words[number], make_word(WPK_CONNECTION_READING, false, deadline_ns));
        *connection = number;
    }
    pthread_mutex_unlock(&a->lock);
    return verdict;
}

void wpk_admission_leave(struct wpk_admission *admission, uint32_t connection)
{
    pthread_mutex_lock(&admission->lock);
    uint64_t word = atomic_exchange(&admission->words[connection], WPK_CONNECTION_FREE);
    WPK_ASSERT(phase_of(word) != WPK_CONNECTION_FREE);
    count_out(admission, word);
    --*bucket_of(admission, &admission->sources[connection]);
    admission->next_free[connection] = admission->first_free;
    admission->first_free = connection;
    pthread_mutex_unlock(&admission->lock);
}

bool wpk_admission_mark(struct wpk_admission *admission, uint32_t connection,
                        enum wpk_connection_phase phase, bool known, uint64_t deadline_ns)
{
    _Atomic uint64_t *word = &admission->words[connection];
    uint64_t seen = look(admission, connection);
    do {
        if (phase_of(seen) == WPK_CONNECTION_ENDING) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(
        word, &seen, make_word(phase, known, deadline_ns) | (seen & (KNOWN | LAST | EXPELLED))));
    atomic_fetch_sub(&admission->unknown, known && (seen & KNOWN) == 0);
    if (phase == WPK_CONNECTION_IDLE && (seen & EXPELLED) != 0) {
        wpk_admission_expel(admission, connection);
    }
    return true;
}

void wpk_admission_ended(struct wpk_admission *admission, uint32_t connection)
{
    count_out(admission, atomic_exchange(&admission->words[connection],
                                         make_word(WPK_CONNECTION_ENDING, false, 0)));
}

void wpk_admission_dismiss(struct wpk_admission *admission, uint32_t connection)
{
    atomic_fetch_or(&admission->words[connection], LAST); /* a free one is free of it once taken */
}

bool wpk_admission_is_last(struct wpk_admission *admission, uint32_t connection)
{
    return (look(admission, connection) & LAST) != 0;
}

void wpk_admission_expel(struct wpk_admission *admission, uint32_t connection)
{
    atomic_fetch_or(&admission->words[connection], LAST | EXPELLED);
    pthread_mutex_lock(&admission->lock);
    uint64_t word = look(admission, connection);
    while ((phase_of(word) == WPK_CONNECTION_IDLE || phase_of(word) == WPK_CONNECTION_READING) &&
           !end(admission, connection, word, false)) {
        word = look(admission, connection);
    }
    pthread_mutex_unlock(&admission->lock);
}

uint32_t wpk_admission_count(struct wpk_admission *admission)
{
    return atomic_load(&admission->live);
}

uint32_t wpk_admission_count_in(struct wpk_admission *admission, enum wpk_connection_phase phase)
{
    uint32_t in_phase = 0;
    for (uint32_t i = 0; i < admission->word_count; i++) {
        in_phase += phase_of(atomic_load(&admission->words[i])) == phase;
    }
    return in_phase;
}

/* ---- life */

wpk_err wpk_admission_new(const struct wpk_admission_options *options, struct wpk_admission **out)
{
    struct wpk_admission *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return WPK_ENOMEM;
    }
    a->options = *options;
    uint32_t most = options->of_source_max, unknown = options->unknown_of_source_max;
    a->few = most == 0 || (unknown != 0 && unknown < most) ? unknown : most; /* 0: no limit */
    a->word_count = options->all_max + WPK_ADMISSION_ENDING_MAX;
    a->words = calloc(a->word_count, sizeof *a->words);
    a->next_free = calloc(a->word_count, sizeof *a->next_free);
    a->sources = calloc(a->word_count, sizeof *a->sources);
    pthread_mutex_init(&a->lock, NULL);
    if (a->words == NULL || a->next_free == NULL || a->sources == NULL) {
        wpk_admission_free(a);
        return WPK_ENOMEM;
    }
    for (uint32_t i = 0; i < a->word_count; i++) {
        atomic_init(&a->words[i], WPK_CONNECTION_FREE);
        a->next_free[i] = i + 1 < a->word_count ? i + 1 : WPK_ADMISSION_NONE;
    }
    *out = a;
    return WPK_OK;
}

void wpk_admission_free(struct wpk_admission *admission)
{
    if (admission == NULL) {
        return;
    }
    pthread_mutex_destroy(&admission->lock);
    free(admission->words);
    free(admission->next_free);
    free(admission->sources);
    free(admission);
}
