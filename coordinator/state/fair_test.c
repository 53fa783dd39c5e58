/* SPDX-License-Identifier: Apache-2.0 */
/* Device time is shared fairly between owners; priorities order within one. */
#include "tests/fixture.h"

#include "common/rng.h"
#include "coordinator/state/fair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEASES 400
#define WINDOW 20

static struct wpk_fixture *begin(uint32_t workers)
{
    struct wpk_fixture *s = wpk_fixture_new();
    for (uint32_t i = 0; i < workers; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%u", i);
        wpk_fixture_hello(s, wpk_fixture_worker(s, name));
    }
    return s;
}

static const struct wpk_job_entry *submit(struct wpk_fixture *s, const char *owner, uint32_t op,
                                          int priority)
{
    struct wpk_job_entry *job = wpk_fixture_job(owner, op, 1);
    job->priority = priority;
    job->candidates = 100000;
    const struct wpk_job_entry *submitted = wpk_fixture_submit(s, job);
    assert_non_null(submitted);
    return submitted;
}

static void weigh(struct wpk_fixture *s, const char *owner, uint32_t weight)
{
    struct wpk_event event = {.kind = WPK_EVENT_SET_OWNER,
                              .owner = {.name = owner, .weight = weight, .jobs_max = 100}};
    wpk_fixture_step(s, &event);
}

/* Device time of the leases in the order in which they were given, and of whom. */
struct book {
    uint64_t search[LEASES];
    uint64_t ns[LEASES];
    int count;
};

/* Let the first workers take one work item after the other, each taking from `low` to `high` ms. */
static void run_some(struct wpk_fixture *s, uint32_t worker_count, struct book *book, uint64_t low,
                     uint64_t high)
{
    struct wpk_rng rng;
    uint64_t busy_ns[WPK_FIXTURE_WORKERS_MAX] = {0};
    int taken[WPK_FIXTURE_WORKERS_MAX];
    wpk_rng_seed(&rng, 1);
    memset(book, 0, sizeof *book);
    for (uint32_t w = 0; w < worker_count; w++) {
        taken[w] = -1;
    }
    while (book->count < LEASES) {
        uint32_t next = 0;
        for (uint32_t w = 1; w < worker_count; w++) {
            next = busy_ns[w] < busy_ns[next] ? w : next;
        }
        s->now_ns = busy_ns[next] > s->now_ns ? busy_ns[next] : s->now_ns;
        if (taken[next] >= 0) {
            wpk_fixture_result(s, (int)next, WPK_OUTCOME_BUILD_ERROR, 0);
        }
        assert_int_equal(wpk_fixture_poll(s, (int)next, 1), 1);
        uint64_t ns = (uint64_t)wpk_rng_between(&rng, (int64_t)low, (int64_t)high) * 1000000;
        taken[next] = book->count;
        book->search[book->count] = s->workers[next].held[0].id.search;
        book->ns[book->count++] = ns;
        busy_ns[next] = s->now_ns + ns;
    }
}

static void run(struct wpk_fixture *s, struct book *book, uint64_t low, uint64_t high)
{
    run_some(s, s->worker_count, book, low, high);
}

/* They end like others, so that what one takes is still known. */
static void end_leases(struct wpk_fixture *s)
{
    wpk_fixture_wait(s, 1000);
    for (uint32_t w = 0; w < s->worker_count; w++) {
        while (s->workers[w].held_count > 0) {
            wpk_fixture_result(s, (int)w, WPK_OUTCOME_BUILD_ERROR, 0);
        }
    }
}

static double share_of(const struct book *book, int first, int count, uint64_t search)
{
    double own = 0;
    double all = 0;
    for (int i = first; i < first + count; i++) {
        all += (double)book->ns[i];
        own += book->search[i] == search ? (double)book->ns[i] : 0;
    }
    return own / all;
}

/* In any window of so many leases: the spread of what single leases take is what is forgiven. */
static void expect_windows(const struct book *book, int window, uint64_t search, double low,
                           double high)
{
    for (int i = 0; i + window <= book->count; i++) {
        double share = share_of(book, i, window, search);
        if (share < low || share > high) {
            fail_msg("leases %d to %d: %.3f", i, i + window - 1, share);
        }
    }
}

static void halves(void **state)
{
    (void)state;
    static struct book book;
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        struct wpk_fixture *s = begin(workers);
        submit(s, "a", 1, 0);
        submit(s, "b", 2, 0);
        run(s, &book, 1000, 1000);
        expect_windows(&book, WINDOW, 1, 0.45, 0.55);
        wpk_fixture_free(s);
    }
}

/* The one who asks for longer kernels gets fewer leases, not more time. */
static void time_is_shared_not_leases(void **state)
{
    (void)state;
    static struct book book;
    struct wpk_fixture *s = begin(3);
    submit(s, "a", 1, 0);
    submit(s, "b", 2, 0);
    run(s, &book, 500, 1500);
    expect_windows(&book, 100, 1, 0.45, 0.55);
    expect_windows(&book, WINDOW, 1, 0.35, 0.65);
    wpk_fixture_free(s);
}

static uint64_t virtual_ns(const struct wpk_fixture *s, const char *owner)
{
    const struct wpk_owner *found = wpk_table_get_text(&s->c->owners_by_name, owner);
    const struct wpk_timing_class *timing = s->c->workers[0]->worker_class->timing;
    const struct wpk_flow *flow = wpk_table_get(&timing->flows, found->number);
    return flow->virtual_ns;
}

/* A refund is equal to the charge, whatever the owner's weight by then. */
static void a_weight_changes_while_leases_are_out(void **state)
{
    (void)state;
    static const uint32_t weights[] = {1, 1000, 3, 2};
    for (int i = 0; i < 3; i++) {
        struct wpk_fixture *s = begin(2);
        weigh(s, "a", weights[i]);
        submit(s, "a", 1, 0);
        assert_int_equal(wpk_fixture_poll(s, 0, 1), 1);
        wpk_fixture_wait(s, 1000);
        wpk_fixture_result(s, 0, WPK_OUTCOME_BUILD_ERROR, 0);
        uint64_t before_ns = virtual_ns(s, "a");
        assert_true(before_ns > 0);
        assert_true(wpk_fixture_poll(s, 1, 4) > 0);
        assert_true(virtual_ns(s, "a") > before_ns);
        weigh(s, "a", weights[i + 1]);
        wpk_fixture_set_worker(s, "w1", WPK_ADMIN_STATE_QUARANTINE, "");
        assert_int_equal(virtual_ns(s, "a"), before_ns);
        wpk_fixture_free(s);
    }
}

static void weights_count(void **state)
{
    (void)state;
    static struct book book;
    struct wpk_fixture *s = begin(2);
    weigh(s, "b", 3);
    submit(s, "a", 1, 0);
    submit(s, "b", 2, 0);
    run(s, &book, 1000, 1000);
    expect_windows(&book, WINDOW, 2, 0.7, 0.8);
    wpk_fixture_free(s);
}

/* Many jobs of one owner weigh no more than one of another. */
static void jobs_do_not_multiply(void **state)
{
    (void)state;
    static struct book book;
    struct wpk_fixture *s = begin(2);
    for (uint32_t i = 0; i < 9; i++) {
        submit(s, "a", 10 + i, 0);
    }
    submit(s, "b", 2, 100); /* nor does its priority */
    run(s, &book, 1000, 1000);
    expect_windows(&book, WINDOW, 10, 0.45, 0.55);
    wpk_fixture_free(s);
}

static void nobody_saves_up(void **state)
{
    (void)state;
    static struct book book;
    struct wpk_fixture *s = begin(2);
    submit(s, "a", 1, 0);
    const struct wpk_job_entry *paused = submit(s, "b", 2, 0);
    wpk_fixture_job_event(s, WPK_EVENT_PAUSE, paused);
    run(s, &book, 1000, 1000);
    assert_true(share_of(&book, 0, LEASES, 1) == 1);
    end_leases(s);
    wpk_fixture_job_event(s, WPK_EVENT_RESUME, paused);
    run(s, &book, 1000, 1000);
    expect_windows(&book, WINDOW, 2, 0.45, 0.55);
    wpk_fixture_free(s);
}

/* ---- devices that not everybody can use */

static int join_lab(struct wpk_fixture *s, const char *name, const char *lab)
{
    int worker = wpk_fixture_worker(s, name);
    struct wpk_hello *hello = &s->workers[worker].hello;
    hello->label_count = 1;
    snprintf(hello->labels[0].name, sizeof hello->labels[0].name, "lab");
    snprintf(hello->labels[0].value, sizeof hello->labels[0].value, "%s", lab);
    return worker;
}

static void submit_to(struct wpk_fixture *s, const char *owner, uint32_t op, const char *lab)
{
    struct wpk_job_entry *job = wpk_fixture_job(owner, op, 1);
    job->candidates = 100000;
    job->label_count = 1;
    snprintf(job->labels[0].name, sizeof job->labels[0].name, "lab");
    snprintf(job->labels[0].value, sizeof job->labels[0].value, "%s", lab);
    assert_non_null(wpk_fixture_submit(s, job));
}

/* The leases of these two searches only. */
static void keep_pair(struct book *book, uint64_t first, uint64_t second)
{
    int kept = 0;
    for (int i = 0; i < book->count; i++) {
        if (book->search[i] == first || book->search[i] == second) {
            book->search[kept] = book->search[i];
            book->ns[kept++] = book->ns[i];
        }
    }
    book->count = kept;
}

/* One laboratory has more machines than the other, whose owners have had less time each: who joins
 * them starts where they are, not where the others are. */
static void a_newcomer_starts_among_his_rivals(void **state)
{
    (void)state;
    static struct book book;
    static const char *const labs[] = {"small", "large"};
    for (uint32_t last = 0; last < 2; last++) { /* whoever is served last before he comes */
        struct wpk_fixture *s = begin(0);
        wpk_fixture_hello(s, join_lab(s, "w0", "small"));
        for (int w = 1; w < 8; w++) {
            char name[16];
            snprintf(name, sizeof name, "w%d", w);
            wpk_fixture_hello(s, join_lab(s, name, "large"));
        }
        submit_to(s, "a", 1, "small");
        submit_to(s, "c", 2, "large");
        run(s, &book, 1000, 1000);
        end_leases(s);
        assert_int_equal(wpk_fixture_poll(s, last == 0 ? 0 : 7, 1), 1);
        submit_to(s, "b", 3, labs[0]);
        submit_to(s, "d", 4, labs[1]);
        end_leases(s);
        run(s, &book, 1000, 1000);
        static struct book pair;
        pair = book;
        keep_pair(&pair, 1, 3);
        expect_windows(&pair, WINDOW, 3, 0.4, 0.6);
        pair = book;
        keep_pair(&pair, 2, 4);
        expect_windows(&pair, WINDOW, 4, 0.4, 0.6);
        wpk_fixture_free(s);
    }
}

/* His machines were away: he has not waited for those of the others. */
static void who_cannot_be_served_saves_nothing(void **state)
{
    (void)state;
    static struct book book;
    struct wpk_fixture *s = begin(2);
    int away = join_lab(s, "w2", "a");
    wpk_fixture_hello(s, away);
    submit_to(s, "b", 1, "a");
    wpk_fixture_step(
        s, &(struct wpk_event){.kind = WPK_EVENT_GONE, .address = {.peer = (uint32_t)away + 1}});
    wpk_fixture_wait(s, WPK_GONE_MS + 500);
    submit(s, "a", 2, 0);
    run_some(s, 2, &book, 1000, 1000);
    submit(s, "b", 3, 0);
    end_leases(s);
    run_some(s, 2, &book, 1000, 1000);
    expect_windows(&book, WINDOW, 3, 0.45, 0.55);
    wpk_fixture_free(s);
}

/* One builder for two kinds of devices, of which one has been worked for much longer. */
static void a_builder_is_shared(void **state)
{
    (void)state;
    static struct book book;
    struct wpk_fixture *s = begin(0);
    int builder = wpk_fixture_worker(s, "builder");
    s->workers[builder].hello.roles = WPK_WORKER_BUILDS;
    snprintf(s->workers[builder].hello.device.model, WPK_DEVICE_TEXT_MAX, "another");
    wpk_fixture_hello(s, builder);
    for (int kind = 0; kind < 2; kind++) {
        int runner = join_lab(s, kind == 0 ? "r0" : "r1", kind == 0 ? "old" : "new");
        s->workers[runner].hello.roles = WPK_WORKER_RUNS;
        snprintf(s->workers[runner].hello.device.model, WPK_DEVICE_TEXT_MAX, "model%d", kind);
        wpk_fixture_hello(s, runner);
    }
    submit_to(s, "a", 1, "old");
    run_some(s, 1, &book, 1000, 1000);
    end_leases(s);
    for (int runner = 1; runner <= 2; runner++) {
        wpk_fixture_hello(s, runner); /* it was silent for long */
    }
    submit_to(s, "b", 2, "new");
    run_some(s, 1, &book, 1000, 1000);
    expect_windows(&book, WINDOW, 2, 0.45, 0.55);
    wpk_fixture_free(s);
}

/* ---- several searches, several owners of one */

/* A search of two owners costs each of them half. */
static void what_is_shared_is_split(void **state)
{
    (void)state;
    static struct book book;
    struct wpk_fixture *s = begin(1);
    submit(s, "a", 1, 0);
    submit(s, "b", 1, 0);
    submit(s, "c", 2, 0);
    run(s, &book, 1000, 1000);
    /* a and b have the first together; c has as much time as each of them. */
    double share = share_of(&book, 100, 300, 1);
    assert_true(share > 0.63 && share < 0.70);
    wpk_fixture_free(s);
}

static void priorities_order_within_an_owner(void **state)
{
    (void)state;
    static struct book book;
    struct wpk_fixture *s = begin(2);
    submit(s, "a", 1, 0);
    submit(s, "a", 2, 5);
    submit(s, "a", 3, 5);
    run(s, &book, 1000, 1000);
    assert_true(share_of(&book, 0, LEASES, 2) == 1); /* the older of the more important */
    wpk_fixture_free(s);
}

/* Of equal virtual times: what another owner has in the same search does not hide who comes
 * before. */
static void of_equals_the_first_is_first(void **state)
{
    (void)state;
    for (int labelled_first = 0; labelled_first < 2; labelled_first++) {
        struct wpk_fixture *s = begin(0);
        wpk_fixture_hello(s, join_lab(s, "w0", "a"));
        if (labelled_first) {
            submit_to(s, "y", 2, "a");
        }
        submit(s, "x", 1, -1);
        submit(s, "y", 1, 1);
        if (!labelled_first) {
            submit_to(s, "y", 2, "a");
        }
        assert_int_equal(wpk_fixture_poll(s, 0, 1), 1);
        assert_int_equal(s->workers[0].held[0].id.search, labelled_first ? 2 : 1);
        wpk_fixture_free(s);
    }
}

static void usage_is_stored(void **state)
{
    (void)state;
    struct wpk_fixture *s = begin(1);
    struct wpk_event event = {
        .kind = WPK_EVENT_RESTORE_OWNER,
        .owner = {.name = "a", .device_ns = 1000, .virtual_ns = 500},
    };
    wpk_fixture_step(s, &event);
    submit(s, "a", 1, 0);
    assert_int_equal(wpk_fixture_poll(s, 0, 1), 1);
    s->now_ns += 7000;
    wpk_fixture_result(s, 0, WPK_OUTCOME_OK, 1);
    wpk_fixture_wait(s, 1500);
    assert_string_equal(s->owner.name, "a");
    assert_int_equal(s->owner.device_ns, 8000);
    assert_int_equal(s->owner.virtual_ns, 7500);
    wpk_fixture_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves),
        cmocka_unit_test(time_is_shared_not_leases),
        cmocka_unit_test(weights_count),
        cmocka_unit_test(a_weight_changes_while_leases_are_out),
        cmocka_unit_test(jobs_do_not_multiply),
        cmocka_unit_test(nobody_saves_up),
        cmocka_unit_test(a_newcomer_starts_among_his_rivals),
        cmocka_unit_test(who_cannot_be_served_saves_nothing),
        cmocka_unit_test(a_builder_is_shared),
        cmocka_unit_test(what_is_shared_is_split),
        cmocka_unit_test(priorities_order_within_an_owner),
        cmocka_unit_test(of_equals_the_first_is_first),
        cmocka_unit_test(usage_is_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
