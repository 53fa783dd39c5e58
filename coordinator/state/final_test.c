/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: the winner of a final, the kernel that is served, and the names that a worker's answer
 * must have to count. */
#include "coordinator/state/coordinator.h"
#include "coordinator/state/model.h"
#include "coordinator/state/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAD_NS 10

/* One search whose asks have ended, at the point where its final begins. */
struct fixture {
    struct wpk_coordinator c;
    struct wpk_effects effects;
    struct wpk_event event;
    struct wpk_search search;
    struct wpk_search other; /* of the same problem */
    struct wpk_worker worker;
};

/* `own_count` candidates, ask i with artifact "own<i>" and time 1000 + i; a vendor if wanted;
 * `served`: the artifact that the problem serves, "" for the vendor, NULL for none. */
static struct fixture *begin(uint32_t own_count, bool vendor, const char *served)
{
    static char vendor_name[] = "vendor";
    struct fixture *s = calloc(1, sizeof *s);
    assert_non_null(s);
    wpk_effects_init(&s->effects);
    s->c = (struct wpk_coordinator){.event = &s->event, .effects = &s->effects};
    struct wpk_search *search = &s->search;
    s->other = (struct wpk_search){.id = 2, .problem_id = 7, .problem_next = search};
    *search = (struct wpk_search){.id = 1, .problem_id = 7, .accuracy = WPK_ACCURACY_STANDARD};
    search->phase = WPK_SEARCH_PHASE_SEARCHING;
    search->candidates = own_count + 1; /* but its time is over */
    snprintf(search->key.providers, sizeof search->key.providers, "own;vendor");
    wpk_table_put(&s->c.searches_by_problem, 7, &s->other);
    wpk_asks_init(search);
    for (uint32_t i = 0; i < own_count; i++) {
        struct wpk_work_item ask = {.standing = WPK_STANDING_ENDED, .text = strdup("candidate")};
        ask.trial.median_ns = 1000 + i;
        snprintf(ask.trial.artifact_sha256, WPK_ID_MAX, "own%u", i);
        wpk_asks_add(search, &ask);
    }
    if (vendor) {
        search->vendor_count = 1;
        search->vendors[0] =
            (struct wpk_work_item){.standing = WPK_STANDING_ENDED, .text = vendor_name};
        search->vendors[0].trial.median_ns = 2000;
    }
    if (served != NULL) {
        search->served.kernel_id = 9;
        snprintf(search->served.provider, WPK_PROVIDER_NAME_MAX, "%s",
                 served[0] != '\0' ? "own" : "vendor");
        snprintf(search->served.artifact_sha256, WPK_ID_MAX, "%s", served);
    }
    wpk_course_advance(&s->c, search);
    return s;
}

static void end(struct fixture *s)
{
    wpk_effects_fini(&s->effects);
    wpk_asks_fini(&s->search);
    wpk_final_fini(&s->search);
    wpk_table_fini(&s->c.searches_by_problem);
    free(s);
}

/* These are the contenders' times; NULL: the final did not take place. */
static void time_all(struct fixture *s, const uint64_t *ns)
{
    struct wpk_timing times[WPK_CONTENDERS_MAX];
    assert_int_equal(s->search.phase, WPK_SEARCH_PHASE_FINALS);
    for (uint32_t i = 0; ns != NULL && i < s->search.entry_count; i++) {
        times[i] = (struct wpk_timing){.median_ns = ns[i], .mad_ns = MAD_NS, .sample_count = 1};
    }
    wpk_final_timed(&s->c, &s->search, ns != NULL ? times : NULL, &s->worker);
    wpk_course_advance(&s->c, &s->search);
}

static void change(struct fixture *s, struct wpk_kernel_event *event)
{
    s->event.kernel = event;
    wpk_kernel_changed(&s->c);
    wpk_course_advance(&s->c, &s->search);
}

static void put_kernel(struct fixture *s, struct wpk_search *search, uint64_t kernel_id)
{
    wpk_final_kernel_put(&s->c, search, kernel_id);
    wpk_course_advance(&s->c, search);
}

/* It comes to `times_direct` times the error of direct evaluation on fresh inputs. */
static void verify_times(struct fixture *s, const char *artifact, enum wpk_outcome outcome,
                         double times_direct)
{
    static struct wpk_record record;
    assert_int_equal(s->search.phase, WPK_SEARCH_PHASE_VERIFYING);
    assert_string_equal(s->search.entries[s->search.verifying].artifact_sha256, artifact);
    record = (struct wpk_record){.outcome = outcome, .times_direct = times_direct};
    snprintf(record.artifact_sha256, WPK_ID_MAX, "%s", artifact);
    s->search.verify.standing = WPK_STANDING_ENDED;
    wpk_final_verified(&s->c, &s->search, &record, &s->worker);
    wpk_course_advance(&s->c, &s->search);
}

static void verify(struct fixture *s, const char *artifact, enum wpk_outcome outcome)
{
    verify_times(s, artifact, outcome, 1);
}

static const struct wpk_effect *find_effect(const struct fixture *s, enum wpk_effect_kind kind)
{
    for (uint32_t i = 0; i < s->effects.count; i++) {
        if (s->effects.items[i].kind == kind) {
            return &s->effects.items[i];
        }
    }
    return NULL;
}

/* The verification that was recorded first is of that artifact. */
static void expect_verified(const struct fixture *s, const char *artifact)
{
    for (uint32_t i = 0; i < s->effects.count; i++) {
        const struct wpk_effect *effect = &s->effects.items[i];
        if (effect->kind == WPK_EFFECT_PUT_TIMES && effect->record != NULL) {
            assert_string_equal(effect->entry->artifact_sha256, artifact);
            return;
        }
    }
    fail_msg("nothing was verified");
}

static void expect_kernel(const struct fixture *s, const char *artifact, bool serve)
{
    const struct wpk_effect *effect = find_effect(s, WPK_EFFECT_PUT_KERNEL);
    assert_non_null(effect);
    assert_string_equal(effect->served->artifact_sha256, artifact);
    assert_int_equal(effect->serve, serve);
}

/* ---- who wins */

static void own_wins_beyond_the_noise(void **state)
{
    (void)state;
    struct fixture *s = begin(2, true, NULL);
    time_all(s, (uint64_t[]){900, 800, 1000});
    verify(s, "own1", WPK_OUTCOME_OK);
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own1", true);
    end(s);
}

/* 1.48 * sqrt(2) * 10, twice: 42. */
static void within_the_noise_the_vendor_stays(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, NULL);
    time_all(s, (uint64_t[]){960, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "", true);
    end(s);
    s = begin(1, true, NULL);
    time_all(s, (uint64_t[]){955, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", true);
    end(s);
}

static void the_vendor_wins(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, NULL);
    time_all(s, (uint64_t[]){1500, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "", true);
    assert_string_equal(find_effect(s, WPK_EFFECT_PUT_KERNEL)->own->artifact_sha256, "own0");
    end(s);
}

static void expect_kept(const struct fixture *s, const char *first, const char *second)
{
    const struct wpk_effect *effect = find_effect(s, WPK_EFFECT_PUT_KERNEL);
    const char *const wanted[] = {first, second};
    assert_non_null(effect);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(effect->kept[i] != NULL, wanted[i] != NULL);
        if (wanted[i] != NULL) {
            assert_string_equal(effect->kept[i]->artifact_sha256, wanted[i]);
        }
    }
}

/* Revoking the winner has something to serve, and nobody waits for it. */
static void the_two_best_are_verified_and_kept(void **state)
{
    (void)state;
    struct fixture *s = begin(3, true, NULL);
    time_all(s, (uint64_t[]){500, 700, 600, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    assert_null(find_effect(s, WPK_EFFECT_PUT_KERNEL));
    verify_times(s, "own2", WPK_OUTCOME_OK, 3);
    expect_kernel(s, "own0", true);
    expect_kept(s, "own2", "");
    assert_true(find_effect(s, WPK_EFFECT_PUT_KERNEL)->kept[0]->trial.times_direct == 3);
    end(s);
    s = begin(3, true, NULL); /* the second does not verify: the third does */
    time_all(s, (uint64_t[]){500, 700, 600, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    verify(s, "own2", WPK_OUTCOME_WRONG_RESULT);
    verify(s, "own1", WPK_OUTCOME_OK);
    expect_kept(s, "own1", "");
    end(s);
    s = begin(2, true, NULL); /* the vendor wins */
    time_all(s, (uint64_t[]){1500, 1600, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    verify(s, "own1", WPK_OUTCOME_OK);
    expect_kernel(s, "", true);
    expect_kept(s, "own0", "own1");
    end(s);
    s = begin(1, false, NULL);
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kept(s, NULL, NULL);
    end(s);
}

static void a_rejected_winner_is_followed(void **state)
{
    (void)state;
    struct fixture *s = begin(2, true, NULL);
    time_all(s, (uint64_t[]){500, 600, 1000});
    verify(s, "own0", WPK_OUTCOME_WRONG_RESULT);
    verify(s, "own1", WPK_OUTCOME_OK);
    expect_kernel(s, "own1", true);
    assert_int_equal(s->search.ok_count, 1);
    assert_int_equal(s->search.failed_count, 1);
    end(s);
}

/* Another object of the same candidate, which is fine, says nothing of what would be served. */
static void what_was_verified_is_served(void **state)
{
    (void)state;
    static struct wpk_record another = {.outcome = WPK_OUTCOME_OK, .artifact_sha256 = "fine"};
    struct fixture *s = begin(2, true, NULL);
    time_all(s, (uint64_t[]){500, 600, 1000});
    assert_non_null(s->search.verify.built);
    assert_string_equal(s->search.verify.built->artifact_sha256, "own0");
    s->search.verify.standing = WPK_STANDING_ENDED;
    wpk_final_verified(&s->c, &s->search, &another, &s->worker);
    wpk_course_advance(&s->c, &s->search);
    assert_null(find_effect(s, WPK_EFFECT_PUT_KERNEL));
    assert_int_equal(s->search.outcomes[WPK_OUTCOME_ABANDONED], 1);
    verify(s, "own1", WPK_OUTCOME_OK);
    expect_kernel(s, "own1", true);
    end(s);
}

/* The fifth is good: it does not lose to the vendor by default. */
static void all_finalists_are_rejected(void **state)
{
    (void)state;
    struct fixture *s = begin(6, true, NULL);
    time_all(s, (uint64_t[]){500, 600, 700, 800, 1000});
    verify(s, "own0", WPK_OUTCOME_WRONG_RESULT);
    verify(s, "own1", WPK_OUTCOME_WRONG_RESULT);
    verify(s, "own2", WPK_OUTCOME_RUN_CRASH);
    verify(s, "own3", WPK_OUTCOME_WRONG_RESULT);
    assert_int_equal(s->search.entry_count, 3);
    expect_verified(s, "own0"); /* its place in the final is another's now */
    time_all(s, (uint64_t[]){900, 500, 1000});
    verify(s, "own5", WPK_OUTCOME_WRONG_RESULT);
    verify(s, "own4", WPK_OUTCOME_OK);
    expect_kernel(s, "own4", true);
    end(s);
}

static void none_is_left(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, NULL);
    time_all(s, (uint64_t[]){500, 1000});
    verify(s, "own0", WPK_OUTCOME_WRONG_RESULT);
    expect_kernel(s, "", true);
    end(s);
    s = begin(1, false, NULL);
    verify(s, "own0", WPK_OUTCOME_WRONG_RESULT);
    assert_null(find_effect(s, WPK_EFFECT_PUT_KERNEL));
    assert_int_equal(s->search.phase, WPK_SEARCH_PHASE_FAILED);
    end(s);
}

/* A winner outside the accuracy class has not failed: another class may take it. */
static void a_winner_outside_the_class_is_followed(void **state)
{
    (void)state;
    struct fixture *s = begin(2, true, NULL);
    time_all(s, (uint64_t[]){500, 600, 1000});
    verify_times(s, "own0", WPK_OUTCOME_OK, 5);
    assert_null(find_effect(s, WPK_EFFECT_PUT_KERNEL));
    verify(s, "own1", WPK_OUTCOME_OK);
    expect_kernel(s, "own1", true);
    assert_int_equal(s->search.ok_count, 2);
    assert_int_equal(s->search.failed_count, 0);
    end(s);
    s = begin(1, false, NULL);
    verify_times(s, "own0", WPK_OUTCOME_OK, 5);
    assert_int_equal(s->search.phase, WPK_SEARCH_PHASE_FAILED);
    assert_int_equal(s->search.ok_count, 1);
    end(s);
}

/* ---- what is served */

static void a_slower_newcomer_is_not_served(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, "old");
    time_all(s, (uint64_t[]){800, 1000, 700});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", false);
    end(s);
    s = begin(1, true, "old");
    time_all(s, (uint64_t[]){600, 1000, 700});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", true);
    end(s);
}

/* A search that found nothing is no reason to fall back to the vendor. */
static void nothing_usable_replaces_nothing(void **state)
{
    (void)state;
    struct fixture *s = begin(0, true, "old");
    time_all(s, (uint64_t[]){1000, 500});
    expect_kernel(s, "", false);
    end(s);
}

static void what_was_not_timed_replaces_nothing(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, "old");
    time_all(s, NULL);
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", false);
    end(s);
    s = begin(1, true, "");
    time_all(s, NULL);
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", false);
    end(s);
    s = begin(1, true, NULL);
    time_all(s, NULL);
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", true);
    end(s);
}

/* It is one of the finalists, and turns out to be wrong. */
static void what_is_served_is_rejected(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, "own0");
    assert_int_equal(s->search.entry_count, 2);
    time_all(s, (uint64_t[]){500, 1000});
    verify(s, "own0", WPK_OUTCOME_WRONG_RESULT);
    expect_kernel(s, "", true);
    end(s);
}

/* Two searches opened when nothing was served: the second to end races the first. */
static void another_search_ended_meanwhile(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, NULL);
    snprintf(s->other.entries[0].provider, WPK_PROVIDER_NAME_MAX, "own");
    snprintf(s->other.entries[0].artifact_sha256, WPK_ID_MAX, "better");
    s->other.phase = WPK_SEARCH_PHASE_STORING;
    s->other.serving = true;
    s->other.winner = &s->other.entries[0];
    put_kernel(s, &s->other, 11);
    time_all(s, (uint64_t[]){800, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    assert_null(find_effect(s, WPK_EFFECT_PUT_KERNEL));
    time_all(s, (uint64_t[]){800, 1000, 700});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", false);
    end(s);
}

/* The first is not stored yet when the second concludes. */
static void two_searches_end_at_once(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, NULL);
    time_all(s, (uint64_t[]){800, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", true);
    assert_string_equal(s->other.served.artifact_sha256, "own0");
    assert_int_not_equal(s->other.served.kernel_id, 0);
    put_kernel(s, &s->search, 12);
    assert_int_equal(s->other.served.kernel_id, 12);
    assert_int_equal(s->search.phase, WPK_SEARCH_PHASE_DONE);
    end(s);
}

/* The winner of one class changes nothing in another class. */
static void another_class_serves_its_own(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, NULL);
    snprintf(s->other.key.accuracy, sizeof s->other.key.accuracy, "fast");
    time_all(s, (uint64_t[]){800, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", true);
    assert_int_equal(s->other.served.kernel_id, 0);
    struct wpk_kernel_event event = {
        .problem_id = 7,
        .served = {{.accuracy = "fast", .kernel_id = 5, .provider = "own"}},
        .served_count = 1};
    put_kernel(s, &s->search, 12);
    change(s, &event);
    assert_int_equal(s->other.served.kernel_id, 5);
    assert_int_equal(s->search.served.kernel_id, 0);
    end(s);
}

/* ---- what operators change meanwhile */

/* `artifact` "" is the vendor's kernel; nothing is served then. */
static void revoke(struct fixture *s, const char *artifact)
{
    struct wpk_kernel_event event = {.problem_id = 7};
    snprintf(event.revoked_provider, WPK_PROVIDER_NAME_MAX, "%s",
             artifact[0] != '\0' ? "own" : "vendor");
    snprintf(event.revoked_artifact, WPK_ID_MAX, "%s", artifact);
    change(s, &event);
}

static void a_finalist_is_revoked(void **state)
{
    (void)state;
    struct fixture *s = begin(2, true, NULL);
    revoke(s, "own0");
    time_all(s, (uint64_t[]){500, 600, 1000});
    verify(s, "own1", WPK_OUTCOME_OK);
    expect_kernel(s, "own1", true);
    end(s);
}

static void the_vendor_is_revoked(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, NULL);
    revoke(s, "");
    time_all(s, (uint64_t[]){1000, 500});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", true);
    end(s);
}

/* Before anybody has begun to verify it, and while a worker does. */
static void a_winner_is_revoked(void **state)
{
    (void)state;
    for (int leased = 0; leased < 2; leased++) {
        struct fixture *s = begin(2, true, NULL);
        time_all(s, (uint64_t[]){500, 600, 1000});
        if (leased) {
            s->search.verify.standing = WPK_STANDING_LEASED;
        }
        revoke(s, "own0");
        if (leased) {
            verify(s, "own0", WPK_OUTCOME_OK);
        }
        assert_null(find_effect(s, WPK_EFFECT_PUT_KERNEL));
        verify(s, "own1", WPK_OUTCOME_OK);
        expect_kernel(s, "own1", true);
        end(s);
    }
}

/* The store has it as revoked: who was second is not lost. */
static void a_kernel_is_revoked_as_it_is_stored(void **state)
{
    (void)state;
    struct fixture *s = begin(2, true, NULL);
    time_all(s, (uint64_t[]){500, 600, 1000});
    verify(s, "own0", WPK_OUTCOME_OK);
    verify(s, "own1", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", true);
    revoke(s, "own0");
    put_kernel(s, &s->search, 12);
    assert_int_equal(s->search.kernel_id, 0);
    assert_int_equal(s->search.served.kernel_id, 0);
    s->effects.count = 0;
    time_all(s, (uint64_t[]){600, 1000});
    verify(s, "own1", WPK_OUTCOME_OK);
    expect_kernel(s, "own1", true);
    end(s);
}

/* It was fast, and wrong: nobody has to beat it. */
static void what_is_served_is_revoked(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, "fast");
    revoke(s, "fast");
    time_all(s, (uint64_t[]){800, 1000, 100});
    verify(s, "own0", WPK_OUTCOME_OK);
    expect_kernel(s, "own0", true);
    end(s);
}

/* Another candidate may come to the same code, later. */
static void what_was_revoked_comes_again(void **state)
{
    (void)state;
    struct fixture *s = begin(1, true, NULL);
    revoke(s, "bad");
    struct wpk_record record = {.outcome = WPK_OUTCOME_OK, .artifact_sha256 = "bad"};
    assert_int_equal(wpk_revoked_refuse(&s->c, &s->search, "", &record)->outcome,
                     WPK_OUTCOME_WRONG_RESULT);
    assert_ptr_equal(wpk_revoked_refuse(&s->c, &s->search, "vendor", &record), &record);
    snprintf(record.artifact_sha256, sizeof record.artifact_sha256, "good");
    assert_ptr_equal(wpk_revoked_refuse(&s->c, &s->search, "", &record), &record);
    struct wpk_work_item known = {.standing = WPK_STANDING_ENDED, .text = strdup("candidate")};
    snprintf(known.trial.artifact_sha256, WPK_ID_MAX, "bad");
    wpk_asks_add(&s->search, &known);
    assert_int_equal(s->search.best_count, 1);
    assert_int_equal(s->search.failed_count, 1);
    end(s);
}

/* ---- whose result it is */

/* A worker may bring the times of a final before a restart, or of the round before. */
static void results_name_their_contenders(void **state)
{
    (void)state;
    struct fixture *s = begin(2, true, NULL);
    struct fixture *again = begin(2, true, NULL);
    struct fixture *longer = begin(3, true, NULL);
    wpk_work_id id = {1, WPK_WORK_FINAL, s->search.final_number};
    assert_non_null(wpk_search_work_item(&s->search, id));
    assert_non_null(wpk_search_work_item(&again->search, id));
    assert_null(wpk_search_work_item(&longer->search, id));
    time_all(s, (uint64_t[]){500, 600, 1000});
    time_all(again, (uint64_t[]){600, 500, 1000});
    id = (wpk_work_id){1, WPK_WORK_VERIFY, s->search.verify_number};
    assert_non_null(wpk_search_work_item(&s->search, id));
    assert_null(wpk_search_work_item(&again->search, id));
    verify(s, "own0", WPK_OUTCOME_WRONG_RESULT);
    assert_null(wpk_search_work_item(&s->search, id));
    end(s);
    end(again);
    end(longer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_wins_beyond_the_noise),
        cmocka_unit_test(within_the_noise_the_vendor_stays),
        cmocka_unit_test(the_vendor_wins),
        cmocka_unit_test(the_two_best_are_verified_and_kept),
        cmocka_unit_test(a_rejected_winner_is_followed),
        cmocka_unit_test(what_was_verified_is_served),
        cmocka_unit_test(all_finalists_are_rejected),
        cmocka_unit_test(a_winner_outside_the_class_is_followed),
        cmocka_unit_test(none_is_left),
        cmocka_unit_test(a_slower_newcomer_is_not_served),
        cmocka_unit_test(nothing_usable_replaces_nothing),
        cmocka_unit_test(what_was_not_timed_replaces_nothing),
        cmocka_unit_test(what_is_served_is_rejected),
        cmocka_unit_test(another_search_ended_meanwhile),
        cmocka_unit_test(two_searches_end_at_once),
        cmocka_unit_test(another_class_serves_its_own),
        cmocka_unit_test(a_finalist_is_revoked),
        cmocka_unit_test(the_vendor_is_revoked),
        cmocka_unit_test(a_winner_is_revoked),
        cmocka_unit_test(a_kernel_is_revoked_as_it_is_stored),
        cmocka_unit_test(what_is_served_is_revoked),
        cmocka_unit_test(what_was_revoked_comes_again),
        cmocka_unit_test(results_name_their_contenders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
