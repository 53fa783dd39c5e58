/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/store.h"

#include "common/fs.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* SQLite, but for one thing that it says of itself. */
int __real_sqlite3_compileoption_used(const char *name);
int __wrap_sqlite3_compileoption_used(const char *name);
static bool lacks_sessions;

int __wrap_sqlite3_compileoption_used(const char *name)
{
    return lacks_sessions && strcmp(name, "ENABLE_SESSION") == 0
               ? 0
               : __real_sqlite3_compileoption_used(name);
}

/* Two copies of a history: what one of them does is applied to the other. */
struct fixture {
    char directory[2][64];
    struct wpk_store *store[2];
    struct wpk_buf changes;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    for (int i = 0; i < 2; i++) {
        snprintf(f->directory[i], sizeof f->directory[i], "%s/wpk-changes-XXXXXX",
                 wpk_test_folder());
        assert_non_null(mkdtemp(f->directory[i]));
        assert_int_equal(
            wpk_store_open_copy(f->directory[i], wpk_clock_system(), &f->store[i], NULL), WPK_OK);
        assert_int_equal(
            wpk_store_execute(f->store[i], "UPDATE installation SET created_at = 1", NULL), WPK_OK);
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    bool removed = true;
    for (int i = 0; i < 2; i++) {
        wpk_store_close(f->store[i]);
        removed = wpk_fs_remove_tree(f->directory[i], NULL) == WPK_OK && removed;
    }
    wpk_buf_fini(&f->changes);
    free(f);
    return removed ? 0 : -1;
}

/* Run statements in a batch, and keep its changes. */
static void change(struct fixture *f, const char *const *sql, int count)
{
    struct sqlite3_session *session = NULL;
    wpk_buf_reset(&f->changes);
    wpk_store_begin(f->store[0]);
    wpk_changes_begin(f->store[0], &session);
    for (int i = 0; i < count; i++) {
        wpk_store_run(f->store[0], sql[i], "");
    }
    wpk_changes_take(f->store[0], &session, &f->changes);
    assert_null(session);
    assert_int_equal(wpk_store_commit(f->store[0], NULL), WPK_OK);
}

static wpk_err apply(struct fixture *f, struct wpk_diag *diag)
{
    return wpk_changes_apply(f->store[1], wpk_buf_text(&f->changes), f->changes.size, diag);
}

static int64_t read_int(struct wpk_store *store, const char *sql)
{
    int64_t number = -1;
    assert_int_equal(wpk_store_read_int(store, sql, &number, NULL), WPK_OK);
    return number;
}

#define CHANGE(f, ...)                                                                             \
    change(f, (const char *const[]){__VA_ARGS__},                                                  \
           (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

#define PROBLEM                                                                                    \
    "INSERT INTO problem VALUES (1, 'f', 'any', 'd', 'e', 'p', 'f', '1', '', 'o', 1, 1, 1, 1)"
#define SEARCH                                                                                     \
    "INSERT INTO search VALUES (1, 1, 'ga', '', '', '', '', '1', 'h', '1', 's', '', '', 0, 0, 0, " \
    "0,"                                                                                           \
    " NULL, '', '', 0, 0, 0, 0, '', 1, 1)"
#define KERNEL(id, served)                                                                         \
    "INSERT INTO kernel VALUES (" id ", 1, 1, 'h', '" id "', '', 's', 0, 1, " served               \
    ", 1, 0, 0, '', '', '', '', '', 1, 1)"

static void changes_follow_each_other(void **state)
{
    struct fixture *f = *state;
    CHANGE(f, PROBLEM, SEARCH, KERNEL("1", "1"), KERNEL("2", "0"),
           "UPDATE search SET kernel_id = 1");
    assert_int_equal(apply(f, NULL), WPK_OK);
    /* One row takes over from another what is unique; a row refers to one that comes later. */
    CHANGE(f, "UPDATE kernel SET served = 0 WHERE id = 1",
           "UPDATE kernel SET served = 1 WHERE id = 2", "UPDATE search SET kernel_id = 2",
           "DELETE FROM kernel WHERE id = 1", "INSERT INTO prior VALUES ('p', 't', 1, 1)",
           "INSERT INTO owner VALUES ('me', 1, 1, 1)", "UPDATE installation SET log_number = 7");
    assert_int_equal(apply(f, NULL), WPK_OK);
    assert_int_equal(read_int(f->store[1], "SELECT id FROM kernel WHERE served = 1"), 2);
    assert_int_equal(read_int(f->store[1], "SELECT kernel_id FROM search"), 2);
    assert_int_equal(read_int(f->store[1], "SELECT count(*) FROM kernel"), 1);
    assert_int_equal(read_int(f->store[1], "SELECT log_number FROM installation"), 7);
    assert_int_equal(read_int(f->store[1], "SELECT count(*) FROM prior"), 1);
}

static void what_differs_is_refused(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    CHANGE(f, "INSERT INTO owner VALUES ('me', 1, 1, 1)");
    assert_int_equal(apply(f, NULL), WPK_OK);
    assert_int_equal(apply(f, &diag), WPK_ECORRUPT); /* twice */
    assert_non_null(strstr(diag.text, "a row of owner differs"));
    CHANGE(f, "UPDATE owner SET device_ns = 2");
    CHANGE(f, "UPDATE owner SET device_ns = 3", "INSERT INTO prior VALUES ('p', 't', 1, 1)");
    assert_int_equal(apply(f, &diag), WPK_ECORRUPT); /* one is missing between */
    assert_int_equal(read_int(f->store[1], "SELECT count(*) FROM prior"), 0);
    assert_int_equal(read_int(f->store[1], "SELECT device_ns FROM owner"), 1);
    f->changes.size--;
    assert_int_equal(apply(f, &diag), WPK_ECORRUPT); /* cut */
}

static void every_table_has_a_key(void **state)
{
    struct fixture *f = *state;
    /* A table without a declared key has no number above 0 in the column `pk`. */
    assert_int_equal(read_int(f->store[0],
                              "SELECT count(*) FROM sqlite_schema s WHERE type = 'table' AND NOT"
                              " EXISTS (SELECT 1 FROM pragma_table_info(s.name) WHERE pk > 0)"),
                     0);
}

static void undone_writes_are_no_changes(void **state)
{
    struct fixture *f = *state;
    struct sqlite3_session *session = NULL;
    wpk_store_begin(f->store[0]);
    wpk_changes_begin(f->store[0], &session);
    assert_false(wpk_changes_any(session));
    wpk_store_mark(f->store[0]);
    wpk_store_run(f->store[0], "INSERT INTO owner VALUES ('me', 1, 1, 1)", "");
    wpk_store_run(f->store[0], "INSERT INTO owner VALUES ('me', 1, 1, 1)", "");
    wpk_err err;
    struct wpk_diag diag;
    assert_true(wpk_store_undo(f->store[0], &err, &diag));
    wpk_store_run(f->store[0], "INSERT INTO prior VALUES ('p', 't', 1, 1)", "");
    assert_true(wpk_changes_any(session));
    wpk_changes_take(f->store[0], &session, &f->changes);
    assert_int_equal(wpk_store_commit(f->store[0], NULL), WPK_OK);
    assert_int_equal(apply(f, NULL), WPK_OK);
    assert_int_equal(read_int(f->store[1], "SELECT count(*) FROM owner"), 0);
    assert_int_equal(read_int(f->store[1], "SELECT count(*) FROM prior"), 1);
}

static void a_library_without_sessions_is_refused(void **state)
{
    struct wpk_diag diag = {0};
    (void)state;
    lacks_sessions = true;
    assert_int_equal(wpk_changes_check(&diag), WPK_EUNSUPPORTED);
    assert_non_null(strstr(diag.text, "without the session extension"));
    lacks_sessions = false;
    assert_int_equal(wpk_changes_check(&diag), WPK_OK);
}

static void a_history_with_a_log_is_changed_by_nobody_else(void **state)
{
    struct fixture *f = *state;
    struct wpk_store *store = NULL;
    struct wpk_diag diag = {0};
    CHANGE(f, "UPDATE installation SET log_id = 5");
    assert_int_equal(wpk_store_open(f->directory[0], wpk_clock_system(), &store, &diag),
                     WPK_EMISMATCH);
    assert_non_null(strstr(diag.text, "has a log in PostgreSQL"));
    assert_int_equal(wpk_store_open(f->directory[1], wpk_clock_system(), &store, &diag), WPK_OK);
    wpk_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(changes_follow_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_differs_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_table_has_a_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(undone_writes_are_no_changes, set_up, tear_down),
        cmocka_unit_test(a_library_without_sessions_is_refused),
        cmocka_unit_test_setup_teardown(a_history_with_a_log_is_changed_by_nobody_else, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
