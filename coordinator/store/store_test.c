/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/store.h"

#include "common/buf.h"
#include "common/fs.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char directory[64];
    char path[96];
    struct wpk_store *store;
};

static wpk_err open_store(struct fixture *f, struct wpk_diag *diag)
{
    f->store = NULL;
    return wpk_store_open(f->directory, wpk_clock_system(), &f->store, diag);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-store-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/history.db", f->directory);
    assert_int_equal(open_store(f, NULL), WPK_OK);
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

static void put_artifact(struct wpk_store *store, const char *name)
{
    wpk_store_run(store,
                  "INSERT INTO artifact (sha256, size, used_at, kept, created_at, epoch) VALUES "
                  "(?1,?2,?3,0,?3,?4)",
                  "tiii", name, INT64_C(5), INT64_C(6), wpk_store_epoch(store));
}

static int64_t count_artifacts(struct wpk_store *store)
{
    struct wpk_rows *rows = wpk_store_query(store, "SELECT COUNT(*) FROM artifact", "");
    int64_t count = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : -1;
    wpk_rows_close(rows);
    return count;
}

static void a_batch_is_whole_or_not_there(void **state)
{
    struct fixture *f = *state;
    wpk_store_begin(f->store);
    put_artifact(f->store, "a");
    put_artifact(f->store, "b");
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    assert_int_equal(count_artifacts(f->store), 2);

    struct wpk_diag diag = {0};
    wpk_store_begin(f->store);
    put_artifact(f->store, "c");
    put_artifact(f->store, "a"); /* is there already */
    put_artifact(f->store, "d"); /* does nothing any more */
    assert_int_equal(wpk_store_status(f->store), WPK_EEXIST);
    assert_int_equal(wpk_store_commit(f->store, &diag), WPK_EEXIST);
    assert_non_null(strstr(diag.text, "UNIQUE"));
    assert_int_equal(count_artifacts(f->store), 2);

    /* The failure is forgotten with its batch. */
    wpk_store_begin(f->store);
    put_artifact(f->store, "e");
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    assert_int_equal(count_artifacts(f->store), 3);
}

static void what_was_not_committed_is_gone(void **state)
{
    struct fixture *f = *state;
    wpk_store_begin(f->store);
    put_artifact(f->store, "a");
    wpk_store_close(f->store);
    assert_int_equal(open_store(f, NULL), WPK_OK);
    assert_int_equal(count_artifacts(f->store), 0);
    assert_int_equal(wpk_store_epoch(f->store), 2);
}

static void values_and_nulls(void **state)
{
    struct fixture *f = *state;
    struct wpk_rows *rows = wpk_store_query(f->store, "SELECT ?, ?, ?, ?, ?", "itrnI", INT64_MIN,
                                            "text", 0.1, INT64_C(0));
    assert_true(wpk_rows_next(rows));
    assert_true(wpk_rows_int(rows, 0) == INT64_MIN);
    assert_string_equal(wpk_rows_text(rows, 1), "text");
    assert_true(wpk_rows_real(rows, 2) == 0.1);
    assert_string_equal(wpk_rows_text(rows, 3), "");
    assert_int_equal(wpk_rows_int(rows, 4), 0);
    assert_false(wpk_rows_next(rows));
    wpk_rows_close(rows);
}

/* Numbers, a text of the row, copies, and what no row writes. */
static void columns_go_into_members(void **state)
{
    struct fixture *f = *state;
    const char *text;
    char *copy, *none;
    bool set;
    int small;
    uint32_t count;
    struct wpk_rows *rows = wpk_store_query(
        f->store, "SELECT -3, 7, 1, 'here', 'kept', '' UNION ALL SELECT 9, 0, 0, '', '', ''", "");
    assert_true(wpk_rows_next(rows));
    wpk_rows_get(rows, "dwfscC", &small, &count, &set, &text, &copy, &none);
    assert_int_equal(small, -3);
    assert_int_equal(count, 7);
    assert_true(set);
    assert_string_equal(text, "here");
    assert_null(none);
    assert_true(wpk_rows_next(rows));
    wpk_rows_get(rows, "d", &small);
    assert_int_equal(small, 9);
    wpk_rows_close(rows);
    assert_string_equal(copy, "kept");
    free(copy);
    assert_int_equal(wpk_rows_take_id(wpk_store_query(f->store, "SELECT 12", "")), 12);
    assert_int_equal(wpk_rows_take_id(wpk_store_query(f->store, "SELECT 12 WHERE 0", "")), 0);
    assert_false(wpk_rows_take(wpk_store_query(f->store, "SELECT 12 WHERE 0", ""), "d", &small));
    assert_int_equal(small, 9);
}

static void a_full_disk_is_said(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    wpk_store_limit_pages(f->store, 60);
    wpk_err err = WPK_OK;
    int batches = 0;
    for (; err == WPK_OK && batches < 1000; batches++) {
        wpk_store_begin(f->store);
        for (int i = 0; i < 50; i++) {
            char name[64];
            snprintf(name, sizeof name, "%d.%d.............................", batches, i);
            put_artifact(f->store, name);
        }
        err = wpk_store_commit(f->store, &diag);
    }
    assert_int_equal(err, WPK_ENOSPC);
    assert_int_equal(count_artifacts(f->store), (batches - 1) * 50);
    wpk_store_limit_pages(f->store, 0);
    wpk_store_begin(f->store);
    put_artifact(f->store, "there is room again");
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
}

/* A reader sees what was committed when it asks, and is not in the writer's way. */
static void a_reader_beside_the_writer(void **state)
{
    struct fixture *f = *state;
    struct wpk_store *reader = NULL;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_store_open_reader(f->directory, wpk_clock_system(), &reader, NULL),
                     WPK_OK);
    wpk_store_begin(f->store);
    put_artifact(f->store, "a");
    assert_int_equal(count_artifacts(reader), 0);
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    assert_int_equal(count_artifacts(reader), 1);
    assert_int_equal(wpk_store_epoch(reader), wpk_store_epoch(f->store));
    /* A query that fails does not spoil those after it. */
    assert_null(wpk_store_query(reader, "SELECT nothing FROM nowhere", ""));
    assert_int_equal(count_artifacts(reader), -1);
    assert_int_equal(wpk_store_take_status(reader, &diag), WPK_EIO);
    assert_non_null(strstr(diag.text, "nowhere"));
    assert_int_equal(count_artifacts(reader), 1);
    wpk_store_close(reader);
    reader = NULL;
    assert_int_equal(
        wpk_store_open_reader("/tmp/wpk-nothing-is-here", wpk_clock_system(), &reader, &diag),
        WPK_ENOENT);
}

static void overwrite(const char *path, long at, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void a_file_that_is_no_database(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    wpk_store_close(f->store);
    overwrite(f->path, 0, "this is not a database at all", 29);
    assert_int_equal(open_store(f, &diag), WPK_ECORRUPT);
    assert_non_null(strstr(diag.text, "history.db"));
    assert_null(f->store);
}

static void a_damaged_database(void **state)
{
    struct fixture *f = *state;
    char garbage[4096];
    memset(garbage, 0xa5, sizeof garbage);
    wpk_store_close(f->store);
    overwrite(f->path, 4096, garbage, sizeof garbage);
    assert_int_equal(open_store(f, NULL), WPK_ECORRUPT);
}

static void expect_version(struct fixture *f, const char *bytes, const char *words)
{
    struct wpk_diag diag = {0};
    wpk_store_close(f->store);
    overwrite(f->path, 60, bytes, 4); /* user_version lies there, big-endian */
    assert_int_equal(open_store(f, &diag), WPK_EMISMATCH);
    assert_non_null(strstr(diag.text, words));
}

static void another_version(void **state)
{
    expect_version(*state, "\0\0\0\x63", "is of version 99, written by a newer wpkd");
    expect_version(*state, "\0\0\0\x03", "is of version 3, written by an older wpkd");
}

static void a_directory_that_cannot_be_written(void **state)
{
    struct fixture *f = *state;
    wpk_store_close(f->store);
    f->store = NULL;
    if (geteuid() == 0) {
        print_message("nothing is read-only for root\n");
        skip();
    }
    assert_int_equal(chmod(f->directory, 0500), 0);
    assert_int_equal(chmod(f->path, 0400), 0);
    assert_int_equal(open_store(f, NULL), WPK_EACCES);
    assert_int_equal(chmod(f->directory, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_batch_is_whole_or_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_not_committed_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_and_nulls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(columns_go_into_members, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_disk_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reader_beside_the_writer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_database, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_database, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_version, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_directory_that_cannot_be_written, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
