/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: changes of kernels and tokens by administrators, and their audit log. */
#include "coordinator/store/history_admin.h"

#include "common/fs.h"
#include "coordinator/store/history.h"
#include "tests/clock_fake.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    char directory[64];
    struct wpk_clock_fake clock;
    struct wpk_store *store;
};

/* Kernel `id` of the one problem; `served_at` 0: it never was the served one. */
static void put_kernel(struct fixture *f, int64_t id, int64_t median_ns, int64_t served_at,
                       int64_t served)
{
    wpk_store_run(f->store,
                  "INSERT INTO kernel (id, problem_id, search_id, provider, artifact_sha256,"
                  " plain_sha256, accuracy, times_direct, median_ns, served, served_at, pinned, "
                  "revoked_at, revoked_reason, verified_by,"
                  " document, manifest, signature, created_at, epoch)"
                  " VALUES (?1, 1, 1, 'own', 'object' || ?1, '', 'standard', 1, ?, ?, ?, 0, 0, '', "
                  "'', '{}', '', '', 1,"
                  " 1)",
                  "iiii", id, median_ns, served, served_at);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-admin-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    wpk_clock_fake_init(&f->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    assert_int_equal(wpk_store_open(f->directory, &f->clock.clock, &f->store, NULL), WPK_OK);
    wpk_store_begin(f->store);
    wpk_store_run(
        f->store,
        "INSERT INTO problem (id, fingerprint, layouts, device_class, environment, policy,"
        " family, extents, op, flops, bytes, created_at, epoch)"
        " VALUES (1, '', '', '', '', '', '', '', '', 1, 1, 1, 1)",
        "");
    wpk_store_run(
        f->store,
        "INSERT INTO search (id, problem_id, strategy, options, prior, pins, seed, providers,"
        " space_version, elapsed_ns, ended_asks, exhausted, snapshot, snapshot_version,"
        " snapshot_told, ok_count, failed_count, known_count, best, accuracy, anchor,"
        " stand_in, stand_in_ratio,"
        " created_at, epoch) VALUES (1, 1, '', '', '', '', '', '', '', 0, 0, 0, '', '', 0, 0, 0,"
        " 0, '', 'standard', '', '', 0, 1, 1)",
        "");
    put_kernel(f, 1, 400, 10, 0);
    put_kernel(f, 2, 300, 20, 0);
    put_kernel(f, 3, 350, 0, 0); /* slower than what was there: never served */
    put_kernel(f, 4, 200, 30, 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    if (wpk_store_commit(f->store, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    wpk_store_close(f->store);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

static char reason[64]; /* of the row that was read last: a row's texts are gone by then */

static void keep_row(void *user, const struct wpk_kernel_row *row)
{
    *(struct wpk_kernel_row *)user = *row;
    snprintf(reason, sizeof reason, "%s", row->revoked_reason);
}

static struct wpk_kernel_row row_of(struct fixture *f, uint64_t id)
{
    struct wpk_kernel_row row = {0};
    assert_true(wpk_history_read_kernel(f->store, id, keep_row, &row));
    return row;
}

/* At most one is served, and that is `id`; 0: none. */
static void check_served(struct fixture *f, uint64_t id)
{
    for (uint64_t k = 1; k <= 4; k++) {
        assert_int_equal(row_of(f, k).served, k == id);
    }
}

static wpk_err change(struct fixture *f, uint64_t id,
                      wpk_err (*fn)(struct wpk_store *, struct wpk_kernel_change *,
                                    struct wpk_diag *))
{
    struct wpk_diag diag = {0};
    struct wpk_kernel_change change = {.kernel_id = id, .reason = "because"};
    wpk_err err = fn(f->store, &change, &diag);
    assert_true(err == WPK_OK || err == WPK_ENOENT || diag.text[0] != '\0');
    assert_true(err != WPK_OK || change.problem_id == 1);
    return err;
}

static void what_a_lost_key_signed_is_not_served(void **state)
{
    struct fixture *f = *state;
    struct wpk_buf ids = {0};
    wpk_store_run(f->store, "UPDATE search SET kernel_id = 4", "");
    assert_int_equal(wpk_history_lose_key(f->store, &ids), 0); /* nothing is signed */
    check_served(f, 4);
    wpk_store_run(f->store, "UPDATE kernel SET signature = 'of old'", "");
    assert_int_equal(wpk_history_lose_key(f->store, &ids), 1);
    assert_string_equal(wpk_buf_text(&ids), "k4");
    check_served(f, 0);
    struct wpk_rows *rows =
        wpk_store_query(f->store, "SELECT count(*) FROM search WHERE kernel_id IS NULL", "");
    assert_true(wpk_rows_next(rows));
    assert_int_equal(wpk_rows_int(rows, 0), 1);
    wpk_rows_close(rows);
    wpk_buf_fini(&ids);
}

static void a_rollback_is_by_order_not_by_clock(void **state)
{
    struct fixture *f = *state;
    wpk_store_run(f->store, "UPDATE kernel SET served_at = ? WHERE id = 4", "i",
                  INT64_C(4000000000) * (int64_t)WPK_NS_PER_S); /* before the clock was set back */
    assert_int_equal(change(f, 2, wpk_history_pin), WPK_OK);
    check_served(f, 2);
    assert_int_equal(change(f, 2, wpk_history_roll_back), WPK_OK);
    check_served(f, 4);
}

static void a_rollback_goes_back_one_by_one(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, 2, wpk_history_roll_back), WPK_EEXIST); /* not the served one */
    assert_int_equal(change(f, 4, wpk_history_roll_back), WPK_OK);
    check_served(f, 2);
    assert_int_equal(change(f, 2, wpk_history_roll_back), WPK_OK);
    check_served(f, 1);
    assert_int_equal(change(f, 1, wpk_history_roll_back), WPK_EEXIST);
    check_served(f, 1);
    assert_int_equal(change(f, 9, wpk_history_roll_back), WPK_ENOENT);
}

static void a_rollback_passes_what_was_revoked(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, 2, wpk_history_revoke), WPK_OK);
    check_served(f, 4);
    assert_int_equal(change(f, 4, wpk_history_roll_back), WPK_OK);
    check_served(f, 1);
}

static void the_fastest_that_is_left_follows_a_revoked_one(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, 4, wpk_history_revoke), WPK_OK);
    check_served(f, 2);
    assert_int_equal(change(f, 4, wpk_history_revoke), WPK_EEXIST);
    assert_int_equal(change(f, 4, wpk_history_pin), WPK_EEXIST);
    assert_true(row_of(f, 4).revoked_at != 0);
    assert_string_equal(reason, "because");
    assert_int_equal(change(f, 2, wpk_history_revoke), WPK_OK);
    check_served(f, 3);
    assert_int_equal(change(f, 3, wpk_history_revoke), WPK_OK);
    assert_int_equal(change(f, 1, wpk_history_revoke), WPK_OK);
    check_served(f, 0);
}

/* It had lost to all that came before it; what came after it is rolled back to it. */
static void what_follows_a_revoked_one_has_been_served(void **state)
{
    struct fixture *f = *state;
    wpk_store_run(f->store, "UPDATE kernel SET served_at = ? WHERE id = 4", "i",
                  INT64_C(4000000000) * (int64_t)WPK_NS_PER_S); /* before the clock was set back */
    assert_int_equal(change(f, 2, wpk_history_revoke), WPK_OK);
    assert_int_equal(change(f, 4, wpk_history_revoke), WPK_OK);
    check_served(f, 3);
    assert_int_equal(change(f, 1, wpk_history_pin), WPK_OK);
    check_served(f, 1);
    assert_int_equal(change(f, 1, wpk_history_roll_back), WPK_OK);
    check_served(f, 3);
}

/* Two searches may have come to the same code. */
static void what_is_the_same_code_is_revoked_with_it(void **state)
{
    struct fixture *f = *state;
    wpk_store_run(f->store, "UPDATE kernel SET artifact_sha256 = 'twin' WHERE id IN (2, 4)", "");
    assert_int_equal(change(f, 2, wpk_history_revoke), WPK_OK); /* not the one that is served */
    assert_true(row_of(f, 2).revoked_at != 0);
    assert_true(row_of(f, 4).revoked_at != 0);
    check_served(f, 3);
    assert_true(wpk_history_is_revoked(f->store, 1, "own", "twin"));
    assert_false(wpk_history_is_revoked(f->store, 2, "own", "twin"));
    assert_false(wpk_history_is_revoked(f->store, 1, "own", "object1"));
    struct wpk_buf document = {0};
    assert_false(wpk_history_kernel(f->store, 4, &document)); /* of a job that has it */
    assert_true(wpk_history_kernel(f->store, 3, &document));
    wpk_buf_fini(&document);
    assert_true(wpk_history_artifact_revoked(f->store, "twin"));
    assert_false(wpk_history_artifact_revoked(f->store, "object1"));
    assert_false(wpk_history_artifact_revoked(f->store, "of no kernel"));
    wpk_store_run(f->store, "UPDATE kernel SET artifact_sha256 = 'twin' WHERE id = 1", "");
    assert_false(wpk_history_artifact_revoked(f->store, "twin")); /* another problem's, say */
}

/* Kernels 1 and 2 are of class fast, where 2 is served; 3 and 4 of class standard, with 4. */
static void split_classes(struct fixture *f)
{
    wpk_store_run(f->store,
                  "UPDATE kernel SET accuracy = 'fast', served = id = 2 WHERE id IN (1, 2)", "");
}

/* In class fast 2 stays, and whatever happens there changes nothing here. */
static void each_class_has_its_own_line(void **state)
{
    struct fixture *f = *state;
    split_classes(f);
    assert_int_equal(change(f, 3, wpk_history_pin), WPK_OK);
    assert_true(row_of(f, 2).served);
    assert_true(row_of(f, 3).served);
    assert_int_equal(change(f, 3, wpk_history_roll_back), WPK_OK);
    assert_true(row_of(f, 4).served);
    assert_int_equal(change(f, 4, wpk_history_roll_back), WPK_EEXIST); /* 2 is another class's */
    assert_int_equal(change(f, 2, wpk_history_roll_back), WPK_OK);
    assert_true(row_of(f, 1).served);
    assert_true(row_of(f, 4).served);
}

/* The same code serves both classes: each of them serves its next. */
static void revoking_changes_every_class_that_serves_it(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    struct wpk_kernel_change change = {.kernel_id = 4, .reason = "because"};
    split_classes(f);
    wpk_store_run(f->store, "UPDATE kernel SET artifact_sha256 = 'twin' WHERE id IN (2, 4)", "");
    assert_int_equal(wpk_history_revoke(f->store, &change, &diag), WPK_OK);
    assert_false(row_of(f, 2).served);
    assert_false(row_of(f, 4).served);
    assert_true(row_of(f, 1).served);
    assert_true(row_of(f, 3).served);
    assert_string_equal(change.accuracy, "standard");
    assert_int_equal(change.serves, 3);
    assert_int_equal(change.served_count, 2);
    assert_string_equal(change.served[0].accuracy, "standard");
    assert_string_equal(change.served[1].accuracy, "fast");
    assert_int_equal(change.served[1].kernel_id, 1);
}

/* A vendor's kernel was not verified on fresh inputs. */
static void our_own_follows_before_a_vendor(void **state)
{
    struct fixture *f = *state;
    wpk_store_run(f->store,
                  "UPDATE kernel SET provider = 'vendor', artifact_sha256 = '' WHERE id = 2", "");
    assert_int_equal(change(f, 4, wpk_history_revoke), WPK_OK);
    check_served(f, 3);
    assert_int_equal(change(f, 3, wpk_history_revoke), WPK_OK);
    assert_int_equal(change(f, 1, wpk_history_revoke), WPK_OK);
    check_served(f, 2);
}

/* It has no shared object to know it by. */
static void a_vendor_is_revoked_by_its_name(void **state)
{
    struct fixture *f = *state;
    wpk_store_run(f->store, "UPDATE kernel SET artifact_sha256 = ''", "");
    wpk_store_run(f->store, "UPDATE kernel SET provider = 'other' WHERE id = 1", "");
    assert_int_equal(change(f, 4, wpk_history_revoke), WPK_OK);
    check_served(f, 1);
    assert_true(wpk_history_is_revoked(f->store, 1, "own", ""));
    assert_false(wpk_history_is_revoked(f->store, 1, "other", ""));
}

static void one_is_pinned_at_a_time(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, 4, wpk_history_unpin), WPK_EEXIST);
    assert_int_equal(change(f, 1, wpk_history_pin), WPK_OK);
    check_served(f, 1);
    assert_true(row_of(f, 1).pinned);
    assert_int_equal(change(f, 2, wpk_history_pin), WPK_OK);
    check_served(f, 2);
    assert_false(row_of(f, 1).pinned);
    assert_int_equal(change(f, 2, wpk_history_unpin), WPK_OK);
    check_served(f, 2);
    assert_false(row_of(f, 2).pinned);
    /* It became the served one just now, after kernel 1, and that after kernel 4. */
    assert_int_equal(change(f, 2, wpk_history_roll_back), WPK_OK);
}

static void count_token(void *user, const struct wpk_history_token *token)
{
    (void)token;
    ++*(int *)user;
}

static void tokens_come_back_as_they_were(void **state)
{
    struct fixture *f = *state;
    struct wpk_history_token token = {
        .token = {.id = "0123456789abcdef", .owner = "ann", .roles = 3, .expires_at = 7},
        .note = "n",
        .created_at = 5};
    struct wpk_history_token back;
    int count = 0;
    wpk_crypto_sha256("secret", 6, token.token.hash);
    wpk_history_put_token(f->store, &token);
    assert_true(wpk_history_read_token(f->store, token.token.id, &back));
    assert_string_equal(back.token.owner, "ann");
    assert_int_equal(back.token.roles, 3);
    assert_memory_equal(back.token.hash, token.token.hash, sizeof back.token.hash);
    assert_true(back.token.expires_at == 7 && back.created_at == 5 && !back.token.revoked);
    assert_true(wpk_history_revoke_token(f->store, token.token.id));
    assert_false(wpk_history_revoke_token(f->store, token.token.id));
    assert_false(wpk_history_revoke_token(f->store, "ffffffffffffffff"));
    assert_true(wpk_history_read_token(f->store, token.token.id, &back) && back.token.revoked);
    wpk_history_list_tokens(f->store, "", 10, count_token, &count);
    wpk_history_list_tokens(f->store, token.token.id, 10, count_token, &count);
    assert_int_equal(count, 1);
}

struct known {
    char ids[8][WPK_TOKEN_ID_SIZE];
    int count;
};

static void note_token(void *user, const struct wpk_history_token *token)
{
    struct known *known = user;
    memcpy(known->ids[known->count++], token->token.id, WPK_TOKEN_ID_SIZE);
}

/* However many there were, and whatever their ids: one that is good is known. */
static void tokens_that_are_good_come_first(void **state)
{
    struct fixture *f = *state;
    static const char *const ids[] = {"0000000000000001", "0000000000000002", "0000000000000003",
                                      "0000000000000004"};
    uint64_t wall_ns = wpk_store_wall_ns(f->store);
    struct known known = {.count = 0};
    for (uint64_t i = 0; i < 4; i++) {
        struct wpk_history_token token = {.created_at = i + 1};
        memcpy(token.token.id, ids[i], WPK_TOKEN_ID_SIZE);
        token.token.expires_at = i == 0 ? wall_ns : i == 2 ? wall_ns + 1 : 0;
        wpk_crypto_sha256(&i, sizeof i, token.token.hash);
        wpk_history_put_token(f->store, &token);
    }
    assert_true(wpk_history_revoke_token(f->store, ids[1]));
    assert_int_equal(wpk_history_good_tokens(f->store), 2);
    wpk_history_known_tokens(f->store, 3, note_token, &known);
    assert_int_equal(known.count, 3);
    assert_string_equal(known.ids[0], ids[3]);
    assert_string_equal(known.ids[1], ids[2]);
    assert_string_equal(known.ids[2], ids[1]);
}

static int64_t count_refusals(struct fixture *f)
{
    struct wpk_rows *rows =
        wpk_store_query(f->store, "SELECT COUNT(*) FROM audit WHERE outcome <> 'ok'", "");
    int64_t count = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : -1;
    wpk_rows_close(rows);
    return count;
}

static void refusals_do_not_grow_without_bound(void **state)
{
    struct fixture *f = *state;
    struct wpk_audit refused = {.action = "auth.refused"};
    struct wpk_audit other = {.action = "job.submit"};
    wpk_history_put_audit(f->store, &other, WPK_OK);
    for (int i = 0; i < 10; i++) { /* credentials, and jobs over their owner's quota */
        wpk_history_put_audit(f->store, i % 2 == 0 ? &refused : &other,
                              i % 2 == 0 ? WPK_EACCES : WPK_EBUSY);
    }
    wpk_store_run(f->store, "UPDATE audit SET id = ? WHERE id = 11", "i",
                  (int64_t)WPK_AUDIT_REFUSALS_MAX);
    wpk_history_put_audit(f->store, &refused, WPK_EACCES); /* after 1, which stays */
    assert_int_equal(count_refusals(f), 11);
    for (int i = 0; i < 20; i++) {
        wpk_history_put_audit(f->store, &refused, WPK_EACCES);
    }
    assert_int_equal(count_refusals(f), 22);
}

static void keys_are_known_for_a_day(void **state)
{
    struct fixture *f = *state;
    struct wpk_idempotency entry = {
        .owner = "ann", .key = "k", .route = "POST /v1/jobs", .body_sha256 = "b", .subject = "j1"};
    struct wpk_idempotency asked = {.owner = "ann", .key = "k", .route = "POST /v1/jobs"};
    struct wpk_idempotency other = {.owner = "ben", .key = "k", .route = "POST /v1/jobs"};
    wpk_history_put_idempotency(f->store, &entry);
    assert_true(wpk_history_find_idempotency(f->store, &asked));
    assert_string_equal(asked.subject, "j1");
    assert_string_equal(asked.body_sha256, "b");
    assert_false(wpk_history_find_idempotency(f->store, &other));
    wpk_clock_fake_advance(&f->clock, WPK_IDEMPOTENCY_NS + WPK_NS_PER_S);
    assert_false(wpk_history_find_idempotency(f->store, &asked));
    snprintf(entry.subject, sizeof entry.subject, "j2");
    wpk_history_put_idempotency(f->store, &entry);
    assert_true(wpk_history_find_idempotency(f->store, &asked));
    assert_string_equal(asked.subject, "j2");
}

/* The largest of all rows of an implementation: a final's fresh inputs may show more than a
 * trial's. */
static void errors_of_a_choice(void **state)
{
    struct fixture *f = *state;
    struct wpk_history_choice choice;
    wpk_store_run(f->store,
                  "UPDATE kernel SET artifact_sha256 = 'object1', times_direct = id,"
                  " plain_sha256 = 'object4' WHERE id < 4",
                  "");
    wpk_store_run(f->store,
                  "UPDATE kernel SET provider = 'vendor', artifact_sha256 = '' WHERE id = 3", "");
    wpk_store_run(f->store, "UPDATE kernel SET provider = 'plain' WHERE id = 4", "");
    const struct wpk_history_chain chain = {"object1", "own", "c", "vendor"};
    const struct wpk_history_chain others = {"", "", "", "another"};
    assert_true(wpk_history_read_choice(f->store, 1, &chain, &choice));
    assert_true(choice.own_times_direct == 2);
    assert_true(choice.vendor_times_direct == 3);
    assert_true(choice.plain_times_direct == 1);
    wpk_buf_fini(&choice.recipe);
    assert_true(wpk_history_read_choice(f->store, 4, &others, &choice));
    assert_true(choice.own_times_direct == -1);
    assert_true(choice.vendor_times_direct == -1);
    assert_true(choice.plain_times_direct == -1);
    wpk_buf_fini(&choice.recipe);
    assert_false(wpk_history_read_choice(f->store, 5, &others, &choice));
    /* what a final rejected on fresh inputs */
    uint8_t hash[WPK_STORE_HASH_SIZE];
    wpk_store_hash("own", "c", hash);
    wpk_store_run(
        f->store,
        "INSERT INTO trial (problem_id, provider, candidate, candidate_hash, outcome, log,"
        " detail, schedule_sha256, artifact_sha256, error_max, error_tolerance, of_rms,"
        " times_direct, constants_bytes, unseen, recipe, build_ns, verify_ns, recorded_at, epoch)"
        " VALUES (1, 'own', 'c', ?, 'ok', '', '', '', 'object1', 0, 0, 0, 7, 0, '', '', 0, 0,"
        " 1, 1)",
        "h", hash);
    assert_true(wpk_history_read_choice(f->store, 1, &chain, &choice));
    assert_true(choice.own_times_direct == 7);
    wpk_buf_fini(&choice.recipe);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_STORE(a_rollback_goes_back_one_by_one),
        WITH_STORE(what_a_lost_key_signed_is_not_served),
        WITH_STORE(a_rollback_is_by_order_not_by_clock),
        WITH_STORE(a_rollback_passes_what_was_revoked),
        WITH_STORE(the_fastest_that_is_left_follows_a_revoked_one),
        WITH_STORE(what_follows_a_revoked_one_has_been_served),
        WITH_STORE(what_is_the_same_code_is_revoked_with_it),
        WITH_STORE(each_class_has_its_own_line),
        WITH_STORE(revoking_changes_every_class_that_serves_it),
        WITH_STORE(our_own_follows_before_a_vendor),
        WITH_STORE(a_vendor_is_revoked_by_its_name),
        WITH_STORE(one_is_pinned_at_a_time),
        WITH_STORE(tokens_come_back_as_they_were),
        WITH_STORE(tokens_that_are_good_come_first),
        WITH_STORE(refusals_do_not_grow_without_bound),
        WITH_STORE(keys_are_known_for_a_day),
        WITH_STORE(errors_of_a_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
