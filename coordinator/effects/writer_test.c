/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on a disk that fails or a machine that dies: whatever was said to be durable is there, in
 * order and whole, and of what was said to have failed nothing is. */
#include "coordinator/effects/writer.h"

#include "common/fs.h"
#include "common/log.h"
#include "coordinator/store/history.h"
#include "tests/clock_fake.h"
#include "tests/share.h"
#include "tests/sim/faulty_vfs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ROWS 20 /* artifacts that one batch puts */

struct fixture {
    char directory[64];
    struct wpk_clock_fake clock;
    struct wpk_store *store;
    struct wpk_writer *writer;
    _Atomic int wakes;
    int batch_next; /* number of the next batch */
};

/* Puts ROWS artifacts that are named after the batch. */
struct rows_write {
    struct wpk_store_write write;
    int batch;
    int *done; /* set to 1 when it is durable, to -1 when it failed */
};

static void perform(struct wpk_store_write *write, struct wpk_store *store)
{
    const struct rows_write *mine = (const struct rows_write *)write;
    for (int i = 0; i < ROWS; i++) {
        char name[WPK_ID_MAX];
        snprintf(name, sizeof name, "%06d.%057d", mine->batch, i);
        wpk_history_put_artifact(store, name, 1);
    }
}

/* Perform a valid insert, then one that the table refuses. */
static void perform_bad(struct wpk_store_write *write, struct wpk_store *store)
{
    perform(write, store);
    wpk_store_run(store, "INSERT INTO artifact (sha256) VALUES (NULL)", "");
}

static void on_done(struct wpk_store_write *write, wpk_err err, const struct wpk_diag *diag)
{
    struct rows_write *mine = (struct rows_write *)write;
    (void)diag;
    if (mine->done != NULL) {
        *mine->done = err == WPK_OK ? 1 : -1;
    }
    free(mine);
}

static struct wpk_batch *new_batch(struct fixture *f, int *done)
{
    struct wpk_batch *batch = calloc(1, sizeof *batch);
    struct rows_write *write = calloc(1, sizeof *write);
    assert_true(batch != NULL && write != NULL);
    *write = (struct rows_write){
        .write = {.perform = perform, .done = on_done}, .batch = f->batch_next++, .done = done};
    wpk_batch_add(batch, &write->write);
    return batch;
}

/* Take everything that is done; returns how many failed. */
static int take_all(struct fixture *f)
{
    struct wpk_batch *batch;
    int failed = 0;
    while ((batch = wpk_writer_take(f->writer)) != NULL) {
        failed += batch->err != WPK_OK;
        wpk_batch_finish(batch, batch->err, &batch->diag);
        wpk_batch_fini(batch);
        free(batch);
    }
    return failed;
}

static int64_t count(struct wpk_store *store, const char *sql)
{
    struct wpk_rows *rows = wpk_store_query(store, sql, "");
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : -1;
    wpk_rows_close(rows);
    return value;
}

/* Batches of which something is there; none is there in part. */
static int64_t stored(struct wpk_store *store)
{
    assert_int_equal(count(store, "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM artifact"
                                  " GROUP BY substr(sha256, 1, 6)) WHERE n <> 20"),
                     0);
    return count(store, "SELECT COUNT(DISTINCT substr(sha256, 1, 6)) FROM artifact");
}

static void on_wake(void *user)
{
    struct fixture *f = user;
    atomic_fetch_add(&f->wakes, 1);
}

static void open_writer(struct fixture *f, bool threaded)
{
    struct wpk_writer_options options = {.store = f->store,
                                         .clock = &f->clock.clock,
                                         .threaded = threaded,
                                         .wake = on_wake,
                                         .user = f};
    assert_int_equal(wpk_writer_open(&options, &f->writer, NULL), WPK_OK);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-writer-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    wpk_clock_fake_init(&f->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    assert_int_equal(wpk_store_open(f->directory, &f->clock.clock, &f->store, NULL), WPK_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    wpk_writer_close(f->writer);
    if (f->writer != NULL) {
        take_all(f);
    }
    wpk_writer_free(f->writer);
    wpk_store_close(f->store);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

/* A slow disk: what comes meanwhile goes into the next transaction together. */
static void those_that_wait_share_a_commit(void **state)
{
    struct fixture *f = *state;
    int done[40] = {0};
    wpk_faulty_vfs_set(&(struct wpk_faults){.sync_ms = 20});
    open_writer(f, true);
    for (int i = 0; i < 40; i++) {
        wpk_writer_put(f->writer, new_batch(f, &done[i]));
    }
    wpk_writer_close(f->writer); /* writes what waits */
    assert_int_equal(take_all(f), 0);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(done[i], 1);
    }
    assert_int_equal(stored(f->store), 40);
    assert_in_range(wpk_faulty_vfs_counts().syncs, 1, 10);
    assert_true(atomic_load(&f->wakes) > 0);
}

/* A row that is refused: nothing of its transaction is stored, it is known whose it was, and nobody
 * has to wait until the disk is well. */
static void one_that_is_refused(void **state)
{
    struct fixture *f = *state;
    int done[4] = {0};
    open_writer(f, false);
    for (int i = 0; i < 3; i++) {
        struct wpk_batch *batch = new_batch(f, &done[i]);
        if (i == 1) {
            batch->first->perform = perform_bad;
            batch->first->search = 17;
        }
        wpk_writer_put(f->writer, batch);
    }
    wpk_writer_run(f->writer);
    assert_true(wpk_writer_has_healed(f->writer));
    for (int i = 0; i < 3; i++) {
        struct wpk_batch *batch = wpk_writer_take(f->writer);
        assert_int_equal(batch->search, 17);
        assert_int_equal(batch->err, WPK_EEXIST);
        assert_non_null(strstr(batch->diag.text, "NOT NULL"));
        wpk_batch_finish(batch, batch->err, &batch->diag);
        wpk_batch_fini(batch);
        free(batch);
        assert_int_equal(done[i], -1);
    }
    assert_int_equal(stored(f->store), 0);
    wpk_writer_resume(f->writer);
    wpk_writer_put(f->writer, new_batch(f, &done[3]));
    wpk_writer_run(f->writer);
    assert_int_equal(take_all(f), 0);
    assert_int_equal(stored(f->store), 1);
    /* If it comes at once again, it is not undone as fast. */
    struct wpk_batch *again = new_batch(f, NULL);
    again->first->perform = perform_bad;
    wpk_writer_put(f->writer, again);
    wpk_writer_run(f->writer);
    assert_int_equal(take_all(f), 1);
    assert_false(wpk_writer_has_healed(f->writer));
}

/* A store write that nothing stands on, in the midst of others. */
static void one_that_is_refused_alone(void **state)
{
    struct fixture *f = *state;
    int done[3] = {0};
    open_writer(f, false);
    for (int i = 0; i < 3; i++) {
        struct wpk_batch *batch = new_batch(f, &done[0]);
        struct wpk_batch *others = new_batch(f, &done[1]);
        struct wpk_batch *last = new_batch(f, &done[2]);
        others->first->alone = true;
        others->first->perform = perform_bad;
        wpk_batch_add(batch, others->first);
        wpk_batch_add(batch, last->first);
        others->first = NULL;
        last->first = NULL;
        wpk_batch_fini(others);
        wpk_batch_fini(last);
        free(others);
        free(last);
        wpk_writer_put(f->writer, batch);
    }
    wpk_writer_run(f->writer);
    assert_int_equal(take_all(f), 0);
    assert_int_equal(done[0], 1);
    assert_int_equal(done[1], -1);
    assert_int_equal(done[2], 1);
    assert_int_equal(stored(f->store), 6);
}

/* Each write and each sync of a batch fails in turn. */
static void fail_at(struct fixture *f, const struct wpk_faults *faults, bool *failed)
{
    int before = 0;
    int hit = 0;
    int after = 0;
    int64_t there = stored(f->store);
    wpk_writer_put(f->writer, new_batch(f, &before));
    wpk_writer_run(f->writer);
    assert_int_equal(take_all(f), 0);
    wpk_faulty_vfs_set(faults);
    wpk_writer_put(f->writer, new_batch(f, &hit));
    wpk_writer_run(f->writer);
    *failed = wpk_faulty_vfs_counts().failures > 0;
    wpk_writer_put(f->writer, new_batch(f, &after)); /* of the same state */
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    wpk_writer_run(f->writer);
    take_all(f);
    assert_int_equal(before, 1);
    assert_int_equal(hit, *failed ? -1 : 1);
    assert_int_equal(after, *failed ? -1 : 1);
    assert_int_equal(stored(f->store), there + (*failed ? 1 : 3));
    if (*failed) {
        assert_false(wpk_writer_has_healed(f->writer));
        wpk_clock_fake_advance(&f->clock, WPK_WRITER_PROBE_MS * WPK_NS_PER_MS);
        wpk_writer_run(f->writer);
        assert_true(wpk_writer_has_healed(f->writer));
        wpk_writer_resume(f->writer);
    }
}

static void every_operation_fails_in_turn(void **state)
{
    struct fixture *f = *state;
    int write_failures = 0;
    int sync_failures = 0;
    bool failed = true;
    open_writer(f, false);
    for (uint64_t n = 1; failed && n < 1000; n++) {
        fail_at(f, &(struct wpk_faults){.write_fails = n}, &failed);
        write_failures += failed;
    }
    failed = true;
    for (uint64_t n = 1; failed && n < 1000; n++) {
        fail_at(f, &(struct wpk_faults){.sync_fails = n}, &failed);
        sync_failures += failed;
    }
    assert_true(write_failures > 3);
    assert_true(sync_failures > 0);
    assert_int_equal(wpk_store_check(f->store, NULL), WPK_OK);
}

/* As long as the disk is full, probes say so, and nothing is taken for durable. */
static void a_disk_that_stays_full(void **state)
{
    struct fixture *f = *state;
    int done = 0;
    open_writer(f, false);
    wpk_faulty_vfs_set(&(struct wpk_faults){.write_fails = 1, .lasting = true});
    wpk_writer_put(f->writer, new_batch(f, &done));
    wpk_writer_run(f->writer);
    take_all(f);
    assert_int_equal(done, -1);
    for (int i = 0; i < 5; i++) {
        uint64_t turns = wpk_writer_turns(f->writer);
        wpk_clock_fake_advance(&f->clock, WPK_WRITER_PROBE_MS * WPK_NS_PER_MS);
        wpk_writer_run(f->writer);
        assert_false(wpk_writer_has_healed(f->writer));
        assert_true(wpk_writer_turns(f->writer) > turns);
    }
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    wpk_clock_fake_advance(&f->clock, WPK_WRITER_PROBE_MS * WPK_NS_PER_MS);
    wpk_writer_run(f->writer);
    assert_true(wpk_writer_has_healed(f->writer));
    wpk_writer_resume(f->writer);
    wpk_writer_put(f->writer, new_batch(f, &done));
    wpk_writer_run(f->writer);
    take_all(f);
    assert_int_equal(done, 1);
    assert_int_equal(stored(f->store), 1);
}

/* The thread finds out by itself, and wakes who waits. */
static void a_thread_that_probes(void **state)
{
    struct fixture *f = *state;
    int done = 0;
    open_writer(f, true);
    wpk_faulty_vfs_set(&(struct wpk_faults){.write_fails = 1});
    wpk_writer_put(f->writer, new_batch(f, &done));
    for (int i = 0; done == 0 && i < 6000; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        take_all(f);
    }
    assert_int_equal(done, -1);
    for (int i = 0; !wpk_writer_has_healed(f->writer) && i < 6000; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    assert_true(wpk_writer_has_healed(f->writer));
    wpk_writer_resume(f->writer);
    wpk_writer_put(f->writer, new_batch(f, &done));
    wpk_writer_close(f->writer);
    take_all(f);
    assert_int_equal(done, 1);
}

/* A process that dies at an operation; says through `out` how many batches were durable before. */
static void die_writing(struct fixture *f, const struct wpk_faults *faults, int out)
{
    struct wpk_store *store = NULL;
    if (wpk_store_open(f->directory, &f->clock.clock, &store, NULL) != WPK_OK) {
        _exit(1);
    }
    f->store = store;
    open_writer(f, false);
    wpk_faulty_vfs_set(faults);
    for (char durable = 0; durable < 4; durable++) {
        int done = 0;
        wpk_writer_put(f->writer, new_batch(f, &done));
        wpk_writer_run(f->writer);
        take_all(f);
        if (done != 1 || write(out, &durable, 1) != 1) {
            _exit(2);
        }
    }
    _exit(0);
}

static void what_was_durable_is_there(void **state)
{
    struct fixture *f = *state;
    int status = WPK_FAULT_EXIT;
    int deaths = 0;
    wpk_store_close(f->store);
    for (uint64_t n = 1; status == WPK_FAULT_EXIT && n < 500; n++) {
        int ends[2];
        char told;
        int durable = 0;
        int64_t there;
        assert_int_equal(pipe(ends), 0);
        f->store = NULL;
        assert_int_equal(wpk_store_open(f->directory, &f->clock.clock, &f->store, NULL), WPK_OK);
        there = stored(f->store);
        wpk_store_close(f->store);
        pid_t pid = fork();
        if (pid == 0) {
            struct wpk_faults faults = {.dies_before = n % 2 == 0 ? n / 2 + 1 : 0,
                                        .dies_after = n % 2 == 1 ? n / 2 + 1 : 0};
            die_writing(f, &faults, ends[1]);
        }
        close(ends[1]);
        while (read(ends[0], &told, 1) == 1) {
            durable++;
        }
        close(ends[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        assert_true(status == WPK_FAULT_EXIT || status == 0);
        deaths += status == WPK_FAULT_EXIT;
        assert_int_equal(wpk_store_open(f->directory, &f->clock.clock, &f->store, NULL), WPK_OK);
        assert_in_range(stored(f->store), there + durable, there + durable + 1);
        wpk_store_close(f->store);
        f->store = NULL;
        f->batch_next += 4;
    }
    assert_int_equal(status, 0);
    assert_true(deaths > 10);
    assert_int_equal(wpk_store_open(f->directory, &f->clock.clock, &f->store, NULL), WPK_OK);
    assert_int_equal(wpk_store_check(f->store, NULL), WPK_OK);
}

int main(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("writer", WPK_LOG_ERROR, null);
    wpk_faulty_vfs_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_that_wait_share_a_commit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_refused_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_operation_fails_in_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_disk_that_stays_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_that_probes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_durable_is_there, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
