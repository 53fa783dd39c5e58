/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: results that a later search takes from an earlier one, and those it measures again. */
#include "coordinator/store/history.h"

#include "common/fs.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/model.h"
#include "coordinator/state/search.h"
#include "coordinator/store/history_admin.h"
#include "coordinator/store/history_job.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OWN "halide-cpu"
#define CANDIDATE "cpu-1 algorithm=direct"
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct fixture {
    char directory[64];
    struct wpk_store *store;
    struct wpk_search search;
    /* As the search was opened: */
    struct wpk_work_item plain; /* `built` is freed; artifact that it was built as: */
    char plain_built[WPK_ID_MAX];
    uint32_t plain_number;
    struct wpk_anchor anchor;
};

/* Another search on the problem for so many threads, with one ask that has no result. */
static void open_search_for(struct fixture *f, int threads, uint64_t seed)
{
    struct wpk_opened opened;
    memset(&f->search, 0, sizeof f->search);
    f->search.key.seed = seed;
    f->search.key.threads = threads;
    snprintf(f->search.key.providers, sizeof f->search.key.providers, OWN ";vendor");
    f->search.op = (char *)"Y[i] = X[i]";
    f->search.policy = (struct wpk_policy){.threads = threads};
    wpk_history_open_search(f->store, &f->search, &opened);
    assert_int_equal(opened.vendor_count, 1);
    f->search.id = opened.search_id;
    f->search.problem_id = opened.problem_id;
    f->search.vendors[0] = opened.vendors[0];
    f->search.vendor_count = 1;
    f->anchor = opened.anchor;
    f->plain = opened.plain;
    f->plain_number = opened.plain_number;
    snprintf(f->plain_built, sizeof f->plain_built, "%s",
             opened.plain.built != NULL ? opened.plain.built->artifact_sha256 : "");
    wpk_built_free(opened.plain.built);
    f->plain.built = NULL;
    struct wpk_history_ask ask = {.search_id = opened.search_id,
                                  .problem_id = opened.problem_id,
                                  .provider = OWN,
                                  .candidate = CANDIDATE,
                                  .source = "drawn"};
    struct wpk_trial_summary trial;
    wpk_history_put_ask(f->store, &ask, &trial);
    wpk_work_items_free(opened.window, opened.ask_count);
}

/* Of the one thread that all but some tests have. */
static void open_search(struct fixture *f, uint64_t seed)
{
    open_search_for(f, 1, seed);
}

static void close_search(struct fixture *f)
{
    free(f->search.vendors[0].text);
    f->search.vendors[0].text = NULL;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-history-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    assert_int_equal(wpk_store_open(f->directory, wpk_clock_system(), &f->store, NULL), WPK_OK);
    wpk_store_begin(f->store);
    open_search(f, 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    close_search(f);
    if (wpk_store_commit(f->store, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    wpk_store_close(f->store);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

static struct wpk_record timed(uint64_t ns, bool censored, const char *artifact)
{
    struct wpk_record record = {.timing = {.median_ns = ns,
                                           .min_ns = ns,
                                           .sample_count = 1,
                                           .repeat_count = 1,
                                           .censored = censored,
                                           .sample_ns = {ns}}};
    snprintf(record.artifact_sha256, sizeof record.artifact_sha256, "%s", artifact);
    return record;
}

/* The result of the ask, of the vendor, or of that candidate of the plain kernel; nobody measured
 * what was abandoned. */
static void put_of(struct fixture *f, enum wpk_work_kind kind, uint32_t index,
                   struct wpk_record record)
{
    struct wpk_history_result result = {.problem_id = f->search.problem_id,
                                        .work = {f->search.id, kind, index},
                                        .provider =
                                            kind == WPK_WORK_PLAIN ? WPK_PLAIN_PROVIDER : "vendor",
                                        .record = &record};
    if (record.outcome != WPK_OUTCOME_ABANDONED) {
        result.worker = (struct wpk_history_worker){"w", "slot"};
    }
    wpk_history_put_trial(f->store, &result);
}

static void put(struct fixture *f, enum wpk_work_kind kind, struct wpk_record record)
{
    put_of(f, kind, kind == WPK_WORK_PLAIN ? 1 : 0, record);
}

static bool is_known(struct fixture *f, struct wpk_trial_summary *out)
{
    return wpk_history_known_trial(f->store, f->search.problem_id, OWN, CANDIDATE, out, NULL);
}

static int64_t count(struct fixture *f, const char *sql)
{
    struct wpk_rows *rows = wpk_store_query(f->store, sql, "");
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : -1;
    wpk_rows_close(rows);
    return value;
}

/* The only ask of the search, as the next start of wpkd finds it. */
static struct wpk_trial_summary read_ask(struct fixture *f)
{
    struct wpk_work_item *asks = NULL;
    uint32_t ask_count = 0;
    wpk_history_asks(f->store, f->search.id, 0, &asks, &ask_count);
    assert_int_equal(ask_count, 1);
    assert_int_equal(asks[0].standing, WPK_STANDING_ENDED);
    struct wpk_trial_summary trial = asks[0].trial;
    wpk_work_items_free(asks, ask_count);
    return trial;
}

/* As another class of its problem finds it. */
static void a_plain_kernel_keeps_its_time(void **state)
{
    struct fixture *f = *state;
    struct wpk_trial_summary trial;
    put(f, WPK_WORK_PLAIN, timed(900, false, HASH));
    assert_true(wpk_history_known_trial(f->store, f->search.problem_id, WPK_PLAIN_PROVIDER,
                                        "algorithm=direct", &trial, NULL));
    assert_int_equal(trial.median_ns, 900);
}

/* Stopped early, it was too slow for that search: for one with a pin it may be the best. */
static void raced_out_is_measured_again(void **state)
{
    struct fixture *f = *state;
    struct wpk_trial_summary trial;
    put(f, WPK_WORK_TRIAL, timed(900, true, HASH));
    assert_false(is_known(f, &trial));
    close_search(f);
    open_search(f, 2);
    put(f, WPK_WORK_TRIAL, timed(700, false, HASH));
    assert_true(is_known(f, &trial));
    assert_int_equal(trial.median_ns, 700);
    assert_false(trial.censored);
    assert_string_equal(trial.artifact_sha256, HASH);
    assert_int_equal(read_ask(f).median_ns, 700);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM trial"), 1);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM measurement"), 2);

    /* A third result adds nothing. */
    put(f, WPK_WORK_TRIAL, timed(500, false, HASH));
    assert_int_equal(read_ask(f).median_ns, 700);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM measurement"), 2);
}

static void without_an_artifact_is_measured_again(void **state)
{
    struct fixture *f = *state;
    struct wpk_trial_summary trial;
    put(f, WPK_WORK_TRIAL, timed(700, false, ""));
    assert_false(is_known(f, &trial));
    put(f, WPK_WORK_TRIAL, timed(900, true, "")); /* says less than what is there */
    assert_int_equal(read_ask(f).median_ns, 700);
    put(f, WPK_WORK_TRIAL, timed(800, false, HASH));
    assert_true(is_known(f, &trial));
    assert_int_equal(trial.median_ns, 800);
}

static void a_failure_is_known(void **state)
{
    struct fixture *f = *state;
    struct wpk_trial_summary trial;
    put(f, WPK_WORK_TRIAL, timed(900, true, ""));
    put(f, WPK_WORK_TRIAL, (struct wpk_record){.outcome = WPK_OUTCOME_RUN_CRASH});
    assert_true(is_known(f, &trial));
    assert_int_equal(trial.outcome, WPK_OUTCOME_RUN_CRASH);
    assert_int_equal(trial.median_ns, 0);
    put(f, WPK_WORK_TRIAL, timed(700, false, HASH));
    assert_int_equal(read_ask(f).outcome, WPK_OUTCOME_RUN_CRASH);
}

/* Three workers were lost while they had it: that need not have been its fault. */
static void abandoned_is_not_known(void **state)
{
    struct fixture *f = *state;
    struct wpk_trial_summary trial;
    struct wpk_record abandoned = {.outcome = WPK_OUTCOME_ABANDONED};
    put(f, WPK_WORK_TRIAL, abandoned);
    put(f, WPK_WORK_VENDOR, abandoned);
    assert_false(is_known(f, &trial));
    assert_int_equal(read_ask(f).outcome, WPK_OUTCOME_ABANDONED);
    close_search(f);
    open_search(f, 2);
    assert_int_equal(f->search.vendors[0].standing, WPK_STANDING_OPEN);
    put(f, WPK_WORK_TRIAL, timed(900, true, "")); /* even that says more */
    assert_int_equal(read_ask(f).median_ns, 900);
    put(f, WPK_WORK_VENDOR, timed(800, false, ""));
    close_search(f);
    open_search(f, 3);
    assert_int_equal(f->search.vendors[0].standing, WPK_STANDING_ENDED);
    assert_int_equal(f->search.vendors[0].trial.median_ns, 800);
}

static void a_rejected_winner_has_failed(void **state)
{
    struct fixture *f = *state;
    struct wpk_trial_summary trial;
    put(f, WPK_WORK_TRIAL, timed(700, false, HASH));
    struct wpk_history_contender contender = {.problem_id = f->search.problem_id,
                                              .search_id = f->search.id,
                                              .provider = OWN,
                                              .candidate = CANDIDATE,
                                              .artifact_sha256 = HASH,
                                              .worker = {"w", "slot"}};
    struct wpk_timing timing = {.median_ns = 710};
    struct wpk_record verified = timed(720, false, HASH);
    wpk_history_put_times(f->store, &contender, &timing);
    wpk_history_put_verified(f->store, &contender, &verified);
    assert_int_equal(count(f, "SELECT median_ns FROM measurement WHERE kind = 'final'"), 710);
    assert_int_equal(count(f, "SELECT median_ns FROM measurement WHERE kind = 'verify'"), 720);
    assert_true(is_known(f, &trial));
    assert_int_equal(trial.median_ns, 700);
    contender.outside = true;
    verified.times_direct = 5;
    wpk_history_put_verified(f->store, &contender, &verified);
    assert_true(is_known(f, &trial));
    assert_int_equal(trial.outcome, WPK_OUTCOME_OK);
    assert_true(trial.times_direct == 5);

    struct wpk_record wrong = {.outcome = WPK_OUTCOME_WRONG_RESULT, .log = "off by one"};
    wpk_history_put_verified(f->store, &contender, &wrong);
    assert_true(is_known(f, &trial));
    assert_int_equal(trial.outcome, WPK_OUTCOME_WRONG_RESULT);
    assert_int_equal(read_ask(f).outcome, WPK_OUTCOME_WRONG_RESULT);
    assert_int_equal(read_ask(f).median_ns, 0);
}

/* The search concludes on this; which row it is. */
static uint64_t put_kernel(struct fixture *f, const char *provider, const char *artifact)
{
    struct wpk_final_entry entry = {.timing = {.median_ns = 700}};
    struct wpk_effect put = {.search = &f->search, .served = &entry, .serve = true};
    snprintf(entry.provider, sizeof entry.provider, "%s", provider);
    snprintf(entry.artifact_sha256, sizeof entry.artifact_sha256, "%s", artifact);
    return wpk_history_put_kernel(f->store, &put, "{}");
}

/* The loser of a final replaces the winner when that is revoked; it is recorded only once. */
static void the_second_best_follows(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    uint64_t winner = put_kernel(f, OWN, HASH);
    struct wpk_final_entry vendor = {.provider = "vendor", .timing = {.median_ns = 900}};
    struct wpk_effect put = {.search = &f->search, .served = &vendor};
    uint64_t kept = wpk_history_keep_kernel(f->store, &put, "{}");
    assert_int_not_equal(kept, 0);
    assert_int_equal(wpk_history_keep_kernel(f->store, &put, "{}"), 0);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM kernel WHERE served = 1"), 1);
    assert_int_equal(count(f, "SELECT kernel_id FROM search"), winner);
    struct wpk_kernel_change change = {.kernel_id = winner, .reason = "NaN"};
    assert_int_equal(wpk_history_revoke(f->store, &change, &diag), WPK_OK);
    assert_int_equal(change.serves, kept);
    change.kernel_id = kept;
    assert_int_equal(wpk_history_revoke(f->store, &change, &diag), WPK_OK);
    assert_int_equal(change.serves, 0);
    assert_int_equal(wpk_history_keep_kernel(f->store, &put, "{}"), 0); /* it was revoked */
}

static void revoke(struct fixture *f, uint64_t kernel_id)
{
    struct wpk_kernel_change change = {.kernel_id = kernel_id, .reason = "NaN"};
    assert_int_equal(wpk_history_revoke(f->store, &change, NULL), WPK_OK);
}

static void what_was_revoked_is_not_found_again(void **state)
{
    struct fixture *f = *state;
    struct wpk_trial_summary trial;
    put(f, WPK_WORK_TRIAL, timed(700, false, HASH));
    revoke(f, put_kernel(f, OWN, HASH));
    assert_int_equal(read_ask(f).outcome, WPK_OUTCOME_WRONG_RESULT);
    assert_int_equal(count(f, "SELECT log = 'revoked: NaN' FROM trial"), 1);
    /* A search that was under way concludes on it all the same. */
    put_kernel(f, OWN, HASH);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM kernel WHERE served = 1"), 0);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM kernel WHERE revoked_at = 0"), 0);
    /* Another candidate comes to the same code. */
    wpk_store_run(f->store, "UPDATE trial SET outcome = 'abandoned'", "");
    put(f, WPK_WORK_TRIAL, timed(700, false, HASH));
    assert_true(is_known(f, &trial));
    assert_int_equal(trial.outcome, WPK_OUTCOME_WRONG_RESULT);
}

static void reopen(struct fixture *f, int threads)
{
    close_search(f);
    open_search_for(f, threads, f->search.key.seed + 1);
}

/* A start goes on behind what was rejected, as the search did that rejected it. */
static void a_rejected_plain_kernel_is_not_tried_again(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->plain_number, 1);
    assert_int_equal(f->plain.standing, WPK_STANDING_OPEN);
    put_of(f, WPK_WORK_PLAIN, 1, (struct wpk_record){.outcome = WPK_OUTCOME_WRONG_RESULT});
    struct wpk_record outside = timed(900, false, HASH);
    outside.times_direct = 3;
    put_of(f, WPK_WORK_PLAIN, 2, outside);
    reopen(f, 1);
    assert_int_equal(f->plain_number, 3);
    assert_int_equal(f->plain.standing, WPK_STANDING_OPEN);
    for (uint32_t number = 3; number <= WPK_PLAIN_MAX; number++) {
        put_of(f, WPK_WORK_PLAIN, number, (struct wpk_record){.outcome = WPK_OUTCOME_RUN_CRASH});
    }
    reopen(f, 1);
    assert_int_equal(f->plain.standing, WPK_STANDING_ENDED);
    assert_int_equal(f->plain.trial.outcome, WPK_OUTCOME_RUN_CRASH);
}

/* Another problem of the operator takes what was built; not what was revoked in any of them. */
static void a_revoked_plain_kernel_is_not_shared(void **state)
{
    struct fixture *f = *state;
    wpk_history_put_artifact(f->store, HASH, 1);
    put(f, WPK_WORK_PLAIN, timed(900, false, HASH));
    uint64_t kernel = put_kernel(f, WPK_PLAIN_PROVIDER, HASH);
    reopen(f, 2);
    assert_int_equal(f->plain_number, 1);
    assert_string_equal(f->plain_built, HASH);
    put(f, WPK_WORK_PLAIN, timed(900, false, HASH));
    reopen(f, 2);
    assert_int_equal(f->plain.standing, WPK_STANDING_ENDED);
    revoke(f, kernel);
    reopen(f, 1); /* the problem that it was revoked in */
    assert_int_equal(f->plain_number, 2);
    assert_int_equal(f->plain.standing, WPK_STANDING_OPEN);
    reopen(f, 3); /* a third one: the second has it still */
    assert_int_equal(f->plain_number, 2);
    assert_string_equal(f->plain_built, "");
}

/* An import makes the row of a kernel's search: it has the anchor of the imported trials. */
static void an_imported_search_has_an_anchor(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = f->search.key.seed;
    struct wpk_record record = timed(700, false, HASH);
    record.anchor_ratio = 1;
    struct wpk_history_result result = {.problem_id = f->search.problem_id,
                                        .work = {f->search.id, WPK_WORK_TRIAL, 0},
                                        .provider = OWN,
                                        .record = &record,
                                        .anchor = HASH,
                                        .worker = {"w", "slot"}};
    wpk_history_put_artifact(f->store, HASH, 1);
    wpk_history_put_trial(f->store, &result);
    wpk_store_run(f->store, "DELETE FROM ask", "");
    close_search(f);
    open_search(f, seed);
    assert_string_equal(f->anchor.now, HASH);
    assert_true(f->anchor.ratio == 1);
    assert_int_equal(count(f, "SELECT anchor = stand_in AND anchor <> '' FROM search"), 1);
}

static void a_revoked_vendor_has_failed(void **state)
{
    struct fixture *f = *state;
    put(f, WPK_WORK_TRIAL, timed(900, false, HASH));
    put(f, WPK_WORK_VENDOR, timed(800, false, ""));
    revoke(f, put_kernel(f, "vendor", ""));
    close_search(f);
    open_search(f, 2);
    assert_int_equal(f->search.vendors[0].trial.outcome, WPK_OUTCOME_WRONG_RESULT);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM trial WHERE outcome = 'ok'"), 1);
}

static void expect_anchor(struct fixture *f, const char *anchor, const char *wanted)
{
    struct wpk_opened *opened = calloc(1, sizeof *opened);
    wpk_store_run(f->store, "UPDATE search SET anchor = ?, stand_in = ?1, stand_in_ratio = 1", "t",
                  anchor);
    wpk_history_open_search(f->store, &f->search, opened);
    assert_string_equal(opened->anchor.sha256, anchor);
    assert_string_equal(opened->anchor.now, wanted);
    wpk_opened_free(opened);
}

/* Not there, or revoked: either is enough. */
static void what_cannot_be_an_anchor_is_none(void **state)
{
    struct fixture *f = *state;
    wpk_history_put_artifact(f->store, HASH, 1);
    expect_anchor(f, HASH, HASH);
    expect_anchor(f, "gone", "");
    put(f, WPK_WORK_TRIAL, timed(700, false, HASH));
    revoke(f, put_kernel(f, OWN, HASH));
    expect_anchor(f, HASH, "");
}

static void expect_crashes(struct fixture *f, uint32_t count)
{
    struct wpk_opened *opened = calloc(1, sizeof *opened);
    wpk_history_open_search(f->store, &f->search, opened);
    assert_int_equal(opened->outcomes[WPK_OUTCOME_RUN_CRASH], count);
    assert_int_equal(opened->outcomes[WPK_OUTCOME_OK], 0);
    wpk_opened_free(opened);
}

/* A search all of whose asks failed knows as what, each time that it is opened. */
static void why_all_failed_is_known(void **state)
{
    struct fixture *f = *state;
    put(f, WPK_WORK_TRIAL, (struct wpk_record){.outcome = WPK_OUTCOME_RUN_CRASH});
    wpk_store_run(f->store, "UPDATE search SET snapshot_told = 1", "");
    expect_crashes(f, 1);
    expect_crashes(f, 1);
    /* Where one works the question is not asked, and the asks are not counted. */
    wpk_store_run(f->store, "UPDATE search SET ok_count = 1", "");
    expect_crashes(f, 0);
}

static void note_number(void *user, uint64_t number, const char *id, const char *state,
                        const char *document)
{
    uint64_t *numbers = user;
    (void)document;
    assert_string_equal(state, number % 3 == 0 ? "running" : "done");
    assert_int_equal(strtoull(id, NULL, 10), number);
    numbers[0] = 10 * numbers[0] + number;
}

static uint64_t list_jobs(struct fixture *f, uint64_t before, const char *state, int page_size,
                          uint64_t *last)
{
    uint64_t numbers = 0;
    *last = wpk_history_list_jobs(f->store, before, state, page_size, note_number, &numbers);
    return numbers;
}

/* Newest first, page by page, of one state or of all. */
static void jobs_are_listed(void **state)
{
    struct fixture *f = *state;
    uint64_t last;
    for (int64_t number = 1; number <= 7; number++) {
        char id[8];
        snprintf(id, sizeof id, "%d", (int)number);
        wpk_store_run(
            f->store,
            "INSERT INTO job (number, id, name, owner, priority, state, reason,"
            " document, created_at, started_at, finished_at, kind, device, threads, labels,"
            " strategy, options, prior, seed, candidates, total, time_ns, until, epoch)"
            " VALUES (?, ?, '', '', 0, ?, '', '', 1, 0, 0, 'cpu', '', 1, '', 'ga',"
            " '', '', '1', 5, 0, 1, '', 1)",
            "itt", number, id, number % 3 == 0 ? "running" : "done");
    }
    assert_int_equal(list_jobs(f, INT64_MAX, "", 4, &last), 7654);
    assert_int_equal(last, 4);
    assert_int_equal(list_jobs(f, last, "", 4, &last), 321);
    assert_int_equal(last, 0);
    assert_int_equal(list_jobs(f, INT64_MAX, "done", 3, &last), 754);
    assert_int_equal(list_jobs(f, last, "done", 3, &last), 21);
    assert_int_equal(last, 0);
    assert_int_equal(list_jobs(f, 6, "running", 3, &last), 3);
    assert_int_equal(list_jobs(f, INT64_MAX, "paused", 3, &last), 0);
}

static void add_job(struct fixture *f)
{
    wpk_store_run(f->store,
                  "INSERT INTO job (number, id, name, owner, priority, state, reason,"
                  " document, created_at, started_at, finished_at, kind, device, threads, labels,"
                  " strategy, options, prior, seed, candidates, total, time_ns, until, epoch)"
                  " VALUES (1, 'j1', 'a', 'o', 0, 'running', '', '', 1, 1, 0, 'cpu', '', 1,"
                  " '', 'ga', '', '', '1', 5, 0, 1, '', 1)",
                  "");
    wpk_store_run(f->store,
                  "INSERT INTO job_op (job_number, position, search_id, phase, reason,"
                  " from_history, name, count, layouts, accuracy, conditions, fingerprint, family,"
                  " op, flops, bytes, pins, binding, epoch) VALUES (1, 0, ?, 'searching', '', 0,"
                  " 'a', 1, 'fixed', 'standard', 'warm', 'f', 'f', 'o', 1, 1, '', '', 1)",
                  "i", (int64_t)f->search.id);
}

/* A page of those with one outcome looks at so many asks at most, and the next one goes on. */
static void trials_with_an_outcome_are_found(void **state)
{
    struct fixture *f = *state;
    const char *const names[] = {"a"};
    const char *const outcomes[] = {"ok", "crash"};
    struct wpk_history_place place = {.index = 1};
    add_job(f);
    put(f, WPK_WORK_TRIAL, timed(800, false, HASH)); /* ask 0 */
    wpk_store_run(f->store,
                  "INSERT INTO ask SELECT search_id, 30000, trial_id, source, ended, known, epoch "
                  "FROM ask WHERE"
                  " search_id = ? AND number = 0",
                  "i", (int64_t)f->search.id);
    for (int page = 0; page < 4; page++) { /* asks 1 to 20001, the rest; of another outcome */
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        struct wpk_buf text = {0};
        place.index = page == 2 ? 1 : place.index;
        place.position = page == 2 ? 0 : place.position;
        wpk_json_begin_array(w, "trials");
        bool more =
            wpk_history_list_trials(f->store, 1, 0, names, 1, outcomes[page / 2], 5, &place, w);
        wpk_json_end(w);
        assert_int_equal(wpk_json_print(w, false, &text), WPK_OK);
        assert_int_equal(strstr(wpk_buf_text(&text), "\"index\":30000") != NULL, page == 1);
        assert_int_equal(more, page % 2 == 0);
        wpk_json_writer_free(w);
        wpk_buf_fini(&text);
    }
}

/* Pages of a job's trials: its vendor, all candidates of its plain kernel, then its asks. */
static void all_trials_are_listed(void **state)
{
    struct fixture *f = *state;
    const char *const names[] = {"a"};
    add_job(f);
    put(f, WPK_WORK_VENDOR, timed(700, false, ""));
    put_of(f, WPK_WORK_PLAIN, 1, (struct wpk_record){.outcome = WPK_OUTCOME_WRONG_RESULT});
    put_of(f, WPK_WORK_PLAIN, 2, timed(900, false, HASH));
    put(f, WPK_WORK_TRIAL, timed(800, false, HASH));
    for (int size = 1; size <= 4; size++) {
        struct wpk_history_place place = {.index = -1};
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        struct wpk_buf text = {0};
        wpk_json_begin_array(w, "trials");
        bool more = wpk_history_list_trials(f->store, 1, -1, names, 1, "", size, &place, w);
        wpk_json_end(w);
        assert_int_equal(wpk_json_print(w, false, &text), WPK_OK);
        int found = 0;
        for (const char *at = wpk_buf_text(&text); (at = strstr(at, "\"outcome\"")) != NULL; at++) {
            found++;
        }
        /* what is no ask is never cut */
        assert_int_equal(found, size < 4 ? 3 : 4);
        assert_int_equal(place.position, 0);
        assert_int_equal(place.index, size < 4 ? 0 : 1);
        assert_true(more);
        wpk_json_writer_free(w);
        wpk_buf_fini(&text);
    }
}

static void a_measurement_has_its_samples(void **state)
{
    struct wpk_record record = timed(700, false, HASH);
    record.timing.sample_count = 3;
    record.timing.sample_ns[1] = UINT64_MAX;
    record.counters = (struct wpk_counters){true, 1, 2.5, 3, 4};
    put(*state, WPK_WORK_TRIAL, record);
    assert_int_equal(count(*state,
                           "SELECT samples_ns = '[700,18446744073709551615,0]' AND counters ="
                           " '{\"cycles\":1,\"instructions\":2.5,\"l1d_misses\":3,'"
                           " || '\"llc_misses\":4}' FROM measurement"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_revoked_is_not_found_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_revoked_vendor_has_failed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_an_anchor_is_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(why_all_failed_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(trials_with_an_outcome_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_measurement_has_its_samples, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plain_kernel_keeps_its_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rejected_plain_kernel_is_not_tried_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_revoked_plain_kernel_is_not_shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_imported_search_has_an_anchor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(raced_out_is_measured_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_an_artifact_is_measured_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failure_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(abandoned_is_not_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rejected_winner_has_failed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_second_best_follows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_trials_are_listed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jobs_are_listed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
