/* SPDX-License-Identifier: Apache-2.0 */
/* A log that grows and begins anew, while its writer goes on. */
#include "coordinator/store/store.h"

#include "common/fs.h"
#include "coordinator/store/history.h"
#include "tests/clock_fake.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#define ROUNDS_MAX 400
#define ROUND_PAGES 900 /* about what one round adds to the log */

struct fixture {
    char directory[64];
    struct wpk_clock_fake clock;
    struct wpk_store *store;
    struct wpk_checkpoint *checkpoint;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-checkpoint-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    wpk_clock_fake_init(&f->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    assert_int_equal(wpk_store_open(f->directory, &f->clock.clock, &f->store, NULL), WPK_OK);
    wpk_store_checkpoint_apart(f->store);
    wpk_store_begin(f->store);
    wpk_store_run(f->store, "CREATE TABLE filler (bytes)", "");
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    wpk_checkpoint_close(f->checkpoint);
    wpk_store_close(f->store);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

/* One commit of some megabytes, which does not make the database larger. */
static uint32_t commit(struct fixture *f)
{
    wpk_store_begin(f->store);
    wpk_store_run(f->store, "DELETE FROM filler", "");
    wpk_store_run(f->store, "INSERT INTO filler VALUES (randomblob(?))", "i",
                  (int64_t)ROUND_PAGES * 4096);
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    return wpk_store_log_pages(f->store);
}

static int64_t database_bytes(const struct fixture *f)
{
    char path[96];
    struct stat status;
    snprintf(path, sizeof path, "%s/history.db", f->directory);
    assert_int_equal(stat(path, &status), 0);
    return (int64_t)status.st_size;
}

static void commits_do_not_copy(void **state)
{
    struct fixture *f = *state;
    int64_t before = database_bytes(f);
    uint32_t pages = 0;
    for (int i = 0; pages < WPK_CHECKPOINT_PAGES + ROUND_PAGES && i < ROUNDS_MAX; i++) {
        pages = commit(f);
    }
    assert_true(pages > WPK_CHECKPOINT_PAGES);
    assert_int_equal(database_bytes(f), before);
}

/* Commit until the log has begun anew so often; returns how long it got. */
static uint32_t go_on(struct fixture *f, int times)
{
    uint32_t most = 0;
    uint32_t before = 0;
    for (int i = 0; times > 0 && i < ROUNDS_MAX; i++) {
        uint32_t pages = commit(f);
        times -= pages < before;
        most = pages > most ? pages : most;
        before = pages;
        wpk_checkpoint_committed(f->checkpoint, pages);
    }
    assert_int_equal(times, 0);
    return most;
}

static void the_log_begins_anew(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(wpk_checkpoint_open(f->directory, &f->checkpoint, NULL), WPK_OK);
    uint32_t most = go_on(f, 2);
    assert_in_range(most, WPK_CHECKPOINT_PAGES, WPK_CHECKPOINT_PAGES_MAX + 3 * ROUND_PAGES);
    assert_true(database_bytes(f) > (int64_t)ROUND_PAGES * 4096);
}

/* A reader of an old state keeps the log from beginning anew; the writer is not held up. */
static void a_reader_holds_it(void **state)
{
    struct fixture *f = *state;
    struct wpk_store *reader = NULL;
    uint32_t pages = 0;
    commit(f);
    assert_int_equal(wpk_store_open_reader(f->directory, &f->clock.clock, &reader, NULL), WPK_OK);
    assert_int_equal(wpk_checkpoint_open(f->directory, &f->checkpoint, NULL), WPK_OK);
    struct wpk_rows *rows = wpk_store_query(reader, "SELECT 1 FROM filler", "");
    assert_true(wpk_rows_next(rows));
    for (int i = 0; pages < WPK_CHECKPOINT_PAGES_MAX + ROUND_PAGES; i++) {
        assert_true(i < ROUNDS_MAX);
        pages = commit(f);
        wpk_checkpoint_committed(f->checkpoint, pages);
    }
    wpk_rows_close(rows);
    wpk_store_close(reader);
    go_on(f, 1);
}

static void there_is_no_database(void **state)
{
    struct wpk_diag diag = {0};
    struct wpk_checkpoint *checkpoint = NULL;
    (void)state;
    assert_int_equal(wpk_checkpoint_open("/nowhere", &checkpoint, &diag), WPK_EIO);
    assert_null(checkpoint);
    assert_true(diag.text[0] != '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commits_do_not_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_log_begins_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reader_holds_it, set_up, tear_down),
        cmocka_unit_test(there_is_no_database),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
