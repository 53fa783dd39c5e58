/* SPDX-License-Identifier: Apache-2.0 */
/* A history that schema version 2 wrote, opened by this one. */
#include "coordinator/store/history.h"

#include "common/fs.h"
#include "common/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

extern const unsigned char wpk_schema_2_sql[];
extern const size_t wpk_schema_2_sql_size;

#define PROBLEMS 3
#define TRIALS 400 /* of each problem: more than a page of everything */
#define PENDING 5  /* asks of each search that have no result */
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct fixture {
    char directory[64];
    char path[96];
    char backup[112];
    struct wpk_store *store;
};

static wpk_err open_store(struct fixture *f, struct wpk_diag *diag)
{
    f->store = NULL;
    return wpk_store_open(f->directory, wpk_clock_system(), &f->store, diag);
}

static void execute(struct wpk_store *store, const char *sql)
{
    struct wpk_diag diag = {0};
    if (wpk_store_execute(store, sql, &diag) != WPK_OK) {
        fail_msg("%s in %.200s", diag.text, sql);
    }
}

/* The trial's key, as a literal of SQL. */
static void hash_literal(const char *provider, const char *candidate, char out[40])
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    wpk_store_hash(provider, candidate, hash);
    size_t at = (size_t)snprintf(out, 40, "X'");
    for (size_t i = 0; i < sizeof hash; i++) {
        at += (size_t)snprintf(out + at, 40 - at, "%02x", hash[i]);
    }
    snprintf(out + at, 40 - at, "'");
}

/* Every third failed, every seventh was timed again, because it had been stopped early; the last
 * have no result. */
static void write_trials(struct wpk_buf *sql, int problem)
{
    for (int i = 0; i < TRIALS + PENDING; i++) {
        int id = problem * (TRIALS + PENDING) + i + 1;
        bool ended = i < TRIALS;
        bool ok = ended && i % 3 != 0;
        char candidate[32];
        char hash[40];
        snprintf(candidate, sizeof candidate, "cpu-1 tile=%d", i);
        hash_literal("halide-cpu", candidate, hash);
        wpk_buf_printf(sql,
                       "INSERT INTO trial VALUES (%d, %d, 'halide-cpu', '%s', %s, '%s', '%s', '',"
                       " '%s', '%s', 1e-6, 1e-5, 150000000, 2000000, 1700000000, 1);",
                       id, problem + 1, candidate, hash,
                       ok      ? "ok"
                       : ended ? "run_crash"
                               : "",
                       ok ? "" : "signal 11", HASH, ok ? HASH : "");
        for (int again = 0; ok && again < 1 + (i % 7 == 1); again++) {
            wpk_buf_printf(sql,
                           "INSERT INTO measurement VALUES (%d, %d, 'trial', %d, 'host/1',"
                           " 'host/cpu0', %d, %d, 5, 10, %d, 900, '[1,2,3]', '', 1700000000, 1);",
                           id, again, problem + 1, 1000 + i, 990 + i, again == 0 && i % 7 == 1);
        }
        wpk_buf_printf(sql, "INSERT INTO ask VALUES (%d, %d, %d, %d, %d, 1);", problem + 1, i, id,
                       ended, ended && i % 10 == 0);
    }
}

static void write_problem(struct wpk_buf *sql, int problem)
{
    int id = problem + 1;
    char hash[40];
    hash_literal("onednn", "", hash);
    wpk_buf_printf(sql,
                   "INSERT INTO problem VALUES (%d, 'fingerprint %d', 'fixed', 'cpu', 'e=1',"
                   " 'threads=1;', 'family', '8', 'Y[i] = X[i]', 8, 1700000000, 1);"
                   "INSERT INTO search VALUES (%d, %d, 'ga', '', '%d', 'halide-cpu;onednn', '1',"
                   " 5000, %d, 0, NULL, '', '', 0, 0, 0, 0, '', 1700000000, 1);",
                   id, problem, id, id, problem, TRIALS);
    write_trials(sql, problem);
    wpk_buf_printf(
        sql,
        "INSERT INTO trial VALUES (10000 + %d, %d, 'onednn', '', %s, 'ok', '', 'brgemm', '', '',"
        " 0, 0, 0, 0, 1700000000, 1);"
        "INSERT INTO measurement VALUES (10000 + %d, 0, 'vendor', %d,"
        " 'host/1', 'host/cpu0', 5000, 4990, 5, 10, 0, 900, '[1]', '', 1700000000, 1);"
        "INSERT INTO kernel VALUES (%d, %d, %d, 'halide-cpu', '%s', 1001, 1, 7, 1, 0, '', 'w',"
        " '{\"own\":{\"artifact\":\"%s\"}}', '', '', 1700000000, 1);"
        "UPDATE search SET kernel_id = %d WHERE id = %d;",
        id, id, hash, id, id, id, id, id, HASH, HASH, id, id);
}

static void write_version_2(struct fixture *f)
{
    struct wpk_buf sql = {0};
    assert_int_equal(open_store(f, NULL), WPK_OK);
    wpk_buf_append_text(&sql,
                        "PRAGMA foreign_keys = OFF; DROP TABLE installation; DROP TABLE problem;"
                        "DROP TABLE search; DROP TABLE trial; DROP TABLE measurement;"
                        "DROP TABLE ask; DROP TABLE kernel; DROP TABLE artifact; DROP TABLE job;"
                        "DROP TABLE job_op; DROP TABLE token; DROP TABLE owner;"
                        "DROP TABLE worker_order; DROP TABLE audit; DROP TABLE idempotency;");
    execute(f->store, wpk_buf_text(&sql));
    wpk_buf_reset(&sql);
    wpk_buf_append(&sql, wpk_schema_2_sql, wpk_schema_2_sql_size);
    execute(f->store, wpk_buf_text(&sql));
    wpk_buf_reset(&sql);
    wpk_buf_append_text(&sql, "BEGIN; INSERT INTO installation VALUES (1, 7, 1700000000, 4096);");
    for (int problem = 0; problem < PROBLEMS; problem++) {
        write_problem(&sql, problem);
    }
    wpk_buf_printf(&sql,
                   "INSERT INTO artifact VALUES ('%s', 4096, 1700000000, 1, 1700000000, 1);"
                   "INSERT INTO job VALUES (1, 'j0123456789abcdef', 'net', 'me', 0, '{}',"
                   " 'running', '', '', 1700000000, 1700000000, 0, 1);"
                   "INSERT INTO job_op VALUES (1, 0, 1, NULL, 'searching', '', 0, 1);"
                   "PRAGMA user_version = 2; COMMIT",
                   HASH);
    execute(f->store, wpk_buf_text(&sql));
    wpk_store_close(f->store);
    f->store = NULL;
    wpk_buf_fini(&sql);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "/tmp/wpk-migrate-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/history.db", f->directory);
    snprintf(f->backup, sizeof f->backup, "%s.version2", f->path);
    write_version_2(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    wpk_store_close(f->store);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

static int64_t count(struct wpk_store *store, const char *sql)
{
    struct wpk_rows *rows = wpk_store_query(store, sql, "");
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : -1;
    wpk_rows_close(rows);
    return value;
}

static void read_schema(struct wpk_store *store, struct wpk_buf *out)
{
    struct wpk_rows *rows = wpk_store_query(
        store, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name", "");
    while (wpk_rows_next(rows)) {
        wpk_buf_printf(out, "%s;\n", wpk_rows_text(rows, 0));
    }
    wpk_rows_close(rows);
}

/* What is migrated cannot be told from what is new. */
static void the_same_tables(void **state)
{
    struct fixture *f = *state;
    char directory[] = "/tmp/wpk-migrate-XXXXXX";
    struct wpk_store *fresh = NULL;
    struct wpk_buf wanted = {0};
    struct wpk_buf found = {0};
    assert_non_null(mkdtemp(directory));
    assert_int_equal(wpk_store_open(directory, wpk_clock_system(), &fresh, NULL), WPK_OK);
    assert_int_equal(open_store(f, NULL), WPK_OK);
    read_schema(fresh, &wanted);
    read_schema(f->store, &found);
    assert_non_null(strstr(wpk_buf_text(&wanted), "CREATE TABLE trial"));
    assert_string_equal(wpk_buf_text(&found), wpk_buf_text(&wanted));
    assert_int_equal(count(f->store, "PRAGMA user_version"), WPK_STORE_VERSION);
    assert_int_equal(count(f->store, "PRAGMA foreign_keys"), 1);
    assert_int_equal(count(f->store, "SELECT COUNT(*) FROM pragma_foreign_key_check"), 0);
    assert_int_equal(wpk_store_check(f->store, NULL), WPK_OK);
    wpk_store_close(fresh);
    wpk_buf_fini(&wanted);
    wpk_buf_fini(&found);
    assert_int_equal(wpk_fs_remove_tree(directory, NULL), WPK_OK);
}

static void what_was_known_is_known(void **state)
{
    struct fixture *f = *state;
    struct wpk_trial_summary trial;
    assert_int_equal(open_store(f, NULL), WPK_OK);
    assert_int_equal(wpk_store_epoch(f->store), 8);
    assert_int_equal(count(f->store, "SELECT COUNT(*) FROM trial WHERE outcome <> ''"),
                     PROBLEMS * (TRIALS + 1));
    assert_true(wpk_history_known_trial(f->store, 2, "halide-cpu", "cpu-1 tile=4", &trial, NULL));
    assert_int_equal(trial.median_ns, 1004);
    /* The measurement that was not stopped early counts. */
    assert_true(wpk_history_known_trial(f->store, 2, "halide-cpu", "cpu-1 tile=8", &trial, NULL));
    assert_false(trial.censored);
    assert_true(wpk_history_known_trial(f->store, 2, "halide-cpu", "cpu-1 tile=0", &trial, NULL));
    assert_int_equal(trial.outcome, WPK_OUTCOME_RUN_CRASH);
    assert_true(wpk_history_known_trial(f->store, 3, "onednn", "", &trial, NULL));
    assert_int_equal(trial.median_ns, 5000);
    assert_int_equal(count(f->store, "SELECT COUNT(*) FROM measurement WHERE number = 1"),
                     count(f->store, "SELECT COUNT(*) FROM measurement WHERE censored = 1"));
    assert_true(trial.times_direct == -1); /* nobody measured it */
    assert_int_equal(count(f->store, "SELECT COUNT(*) FROM job_op WHERE search_id = 1"), 1);
    assert_true(wpk_history_has_artifact(f->store, HASH));
}

static void asks_go_on(void **state)
{
    struct fixture *f = *state;
    struct wpk_work_item *asks = NULL;
    uint32_t ask_count = 0;
    assert_int_equal(open_store(f, NULL), WPK_OK);
    wpk_history_asks(f->store, 2, 0, &asks, &ask_count);
    assert_int_equal(ask_count, TRIALS + PENDING);
    assert_string_equal(asks[10].text, "cpu-1 tile=10");
    assert_int_equal(asks[10].standing, WPK_STANDING_ENDED);
    assert_true(asks[10].known);
    assert_string_equal(asks[TRIALS].text, "cpu-1 tile=400");
    for (uint32_t i = TRIALS; i < ask_count; i++) {
        assert_int_equal(asks[i].standing, WPK_STANDING_OPEN);
    }
    wpk_work_items_free(asks, ask_count);
}

/* Its fingerprint may stand for another function: it is served no more. */
static void kernels_are_revoked(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(open_store(f, NULL), WPK_OK);
    assert_int_equal(count(f->store, "SELECT COUNT(*) FROM kernel WHERE served = 0 AND pinned = 0"
                                     " AND revoked_at > 1700000000"
                                     " AND revoked_reason = 'made before identity was canonical'"),
                     PROBLEMS);
}

/* What is too old for this wpkd is refused, and left as it is. */
static void older_versions_are_refused(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    assert_int_equal(open_store(f, NULL), WPK_OK);
    execute(f->store, "PRAGMA user_version = 1");
    wpk_store_close(f->store);
    assert_int_equal(open_store(f, &diag), WPK_EMISMATCH);
    assert_non_null(strstr(diag.text, "from version 2 on"));
}

/* The backup is what was there, whole. */
static void a_backup_is_left(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(open_store(f, NULL), WPK_OK);
    wpk_store_close(f->store);
    assert_int_equal(rename(f->backup, f->path), 0);
    assert_int_equal(open_store(f, NULL), WPK_OK); /* and it can be migrated, too */
    assert_int_equal(count(f->store, "SELECT COUNT(*) FROM ask"), PROBLEMS * (TRIALS + PENDING));
    assert_int_equal(wpk_store_epoch(f->store), 8);
}

/* A disk without the room for it: the old version stays as it is, and is migrated later. */
static void a_migration_that_fails(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    char blocked[128];
    snprintf(blocked, sizeof blocked, "%s/x", f->backup);
    assert_int_equal(wpk_fs_make_dirs(blocked, NULL), WPK_OK); /* no backup: no migration */
    assert_int_not_equal(open_store(f, &diag), WPK_OK);
    assert_non_null(strstr(diag.text, ".version2"));
    assert_int_equal(wpk_fs_remove_tree(f->backup, NULL), WPK_OK);
    assert_int_equal(open_store(f, NULL), WPK_OK);
    assert_int_equal(count(f->store, "SELECT COUNT(*) FROM kernel"), PROBLEMS);
}

int main(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("migrate", WPK_LOG_ERROR, null);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_tables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_known_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asks_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kernels_are_revoked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(older_versions_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_backup_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_migration_that_fails, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
