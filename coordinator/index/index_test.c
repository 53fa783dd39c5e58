/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of the index: what they hold, and how long. */
#include "coordinator/index/index.h"

#include "common/fs.h"
#include "common/json.h"
#include "tests/share.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FAMILY "ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HASH_TAIL "23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct fixture {
    char directory[64];
    struct wpk_store *store;
    struct wpk_index *index;
};

/* NULL when it is not served. */
static const struct wpk_served *find_kernel(const struct wpk_index_version *version,
                                            uint64_t kernel_id)
{
    struct wpk_index_cursor cursor;
    wpk_index_seek(&cursor, version, WPK_INDEX_BY_KERNEL, 0, kernel_id);
    const struct wpk_served *served = wpk_index_next(&cursor);
    return served != NULL && served->kernel_id == kernel_id ? served : NULL;
}

static void commit(struct fixture *f)
{
    struct wpk_diag diag = {0};
    if (wpk_store_commit(f->store, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

/* Problem `id`, its search, and a served kernel of the same number. */
static void put_problem(struct fixture *f, int64_t id, const char *device)
{
    char fingerprint[65];
    char document[256];
    snprintf(fingerprint, sizeof fingerprint, "%02d" HASH_TAIL, (int)id);
    snprintf(document, sizeof document,
             "{\"fingerprint\":\"%s\",\"provider\":\"own\",\"candidate\":\"a=1\","
             "\"time_ns\":{\"median\":%d,\"min\":1,\"mad\":2},\"op\":\"a \\\"b\\\" {[\","
             "\"threads\":1}",
             fingerprint, (int)id * 100);
    wpk_store_run(
        f->store,
        "INSERT INTO problem (id, fingerprint, layouts, device_class, environment, policy,"
        " family, extents, op, flops, bytes, created_at, epoch) VALUES (?, ?, 'fixed', ?, ?,"
        " 'threads=1;conditions=warm;', '" FAMILY "', '8,16', '', 2, 3, 1, 1)",
        "ittt", id, fingerprint, device, id < 50 ? "halide=1" : "halide=2");
    wpk_store_run(
        f->store,
        "INSERT INTO search (id, problem_id, strategy, options, prior, pins, seed, providers,"
        " space_version, elapsed_ns, ended_asks, exhausted, snapshot, snapshot_version,"
        " snapshot_told, ok_count, failed_count, known_count, best, accuracy, anchor, stand_in, "
        "stand_in_ratio,"
        " created_at,"
        " epoch) VALUES (?, ?, 'ga', '', '', '', '1', 'own', 'v', 0, 0, 0, '', '', 0, 0, 0, 0, '',"
        " 'standard', '', '', 0, 1, 1)",
        "ii", id, id);
    wpk_store_run(f->store,
                  "INSERT INTO kernel (id, problem_id, search_id, provider, artifact_sha256,"
                  " plain_sha256, accuracy, times_direct, median_ns, served, served_at, pinned, "
                  "revoked_at, revoked_reason, verified_by, document,"
                  " manifest, signature, created_at, epoch)"
                  " VALUES (?, ?, ?, 'own', '" FAMILY
                  "', '', 'standard', 1, 1, 1, 1, 0, 0, '', '', ?, '', '', 1, 1)",
                  "iiit", id, id, id, document);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-index-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    assert_int_equal(wpk_store_open(f->directory, wpk_clock_system(), &f->store, NULL), WPK_OK);
    f->index = wpk_index_new();
    wpk_store_begin(f->store);
    for (int64_t id = 10; id < 13; id++) {
        put_problem(f, id, "cpu/a/avx2");
    }
    commit(f);
    assert_int_equal(wpk_index_load(f->index, f->store, NULL), WPK_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    wpk_index_free(f->index);
    wpk_store_close(f->store);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

static void refresh(struct fixture *f, uint64_t problem_id, bool publish)
{
    struct wpk_index_change *change = wpk_index_refresh(f->store, problem_id);
    assert_non_null(change);
    if (publish) {
        commit(f);
        wpk_index_publish(f->index, change);
    } else {
        wpk_index_discard(change);
    }
}

/* Each array has all entries of the version. */
static void check_version(const struct wpk_index_version *version, uint32_t count)
{
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    uint32_t seen = 0;
    assert_int_equal(version->count, count);
    wpk_index_seek(&cursor, version, WPK_INDEX_BY_KERNEL, 0, 0);
    while ((served = wpk_index_next(&cursor)) != NULL) {
        const uint64_t keys[] = {served->fingerprint_key, served->family_key, served->device_key};
        for (int order = 0; order < WPK_INDEX_BY_KERNEL; order++) {
            struct wpk_index_cursor there;
            wpk_index_seek(&there, version, (enum wpk_index_order)order, keys[order],
                           served->kernel_id);
            assert_ptr_equal(wpk_index_next(&there), served);
        }
        seen++;
    }
    assert_int_equal(seen, count);
}

static void what_is_served_is_loaded(void **state)
{
    struct fixture *f = *state;
    const struct wpk_index_version *version = wpk_index_acquire(f->index);
    check_version(version, 3);
    const struct wpk_served *served = find_kernel(version, 11);
    assert_non_null(served);
    assert_null(find_kernel(version, 13));
    assert_int_equal(served->median_ns, 1100);
    assert_int_equal(served->mad_ns, 2);
    assert_string_equal(served->candidate, "a=1");
    assert_int_equal(served->extent_count, 2);
    assert_true(served->log2_extents[0] == 3 && served->log2_extents[1] == 4);
    assert_memory_equal(served->answer.text, "{\"match\":\"exact\",", 17);
    assert_int_equal(served->answer.text[served->answer.size - 1], '}');
    assert_non_null(strstr(served->answer.text, "\"kernel_id\":\"k11\""));
    assert_non_null(strstr(served->answer.text, "\"op\":\"a \\\"b\\\" {[\""));
    assert_memory_equal(served->kernel.text, "{\"id\":\"k11\",", 12);
    struct wpk_index_cursor cursor;
    wpk_index_seek(&cursor, version, WPK_INDEX_BY_FAMILY, wpk_served_key(FAMILY), UINT64_MAX);
    for (uint64_t id = 13; id-- > 10;) {
        assert_ptr_equal(wpk_index_prev(&cursor), find_kernel(version, id));
    }
    assert_null(wpk_index_prev(&cursor));
    wpk_index_release(f->index, version);
}

static void answers_are_json(void **state)
{
    struct fixture *f = *state;
    const struct wpk_index_version *version = wpk_index_acquire(f->index);
    const struct wpk_served *served = find_kernel(version, 12);
    struct wpk_json_reader *r = NULL;
    assert_int_equal(wpk_json_open(served->answer.text, served->answer.size, 0, &r, NULL), WPK_OK);
    wpk_json_enter(r, NULL);
    assert_string_equal(wpk_json_get_text(r, "match", 32), "exact");
    wpk_json_enter(r, "expected_ns");
    assert_int_equal(wpk_json_get_int(r, "median", 0, 9999), 1200);
    wpk_json_leave(r);
    wpk_json_enter(r, "provenance");
    assert_string_equal(wpk_json_get_text(r, "search", 32), "s12");
    wpk_json_leave(r);
    wpk_json_enter(r, "kernel");
    assert_true(wpk_json_get_bool(r, "served"));
    assert_string_equal(wpk_json_get_text(r, "op", 32), "a \"b\" {[");
    wpk_json_leave(r);
    assert_int_equal(wpk_json_status(r), WPK_OK);
    wpk_json_close(r);
    wpk_index_release(f->index, version);
}

static void a_reader_keeps_its_version(void **state)
{
    struct fixture *f = *state;
    const struct wpk_index_version *before = wpk_index_acquire(f->index);
    wpk_store_begin(f->store);
    put_problem(f, 5, "cpu/a/avx2");
    refresh(f, 5, true);
    wpk_store_begin(f->store);
    wpk_store_run(f->store, "UPDATE kernel SET pinned = 1 WHERE id = 11", "");
    refresh(f, 11, true);
    const struct wpk_index_version *after = wpk_index_acquire(f->index);
    check_version(before, 3);
    check_version(after, 4);
    assert_true(after->number > before->number);
    assert_non_null(strstr(find_kernel(after, 11)->kernel.text, "\"pinned\":true"));
    assert_non_null(strstr(find_kernel(before, 11)->kernel.text, "\"pinned\":false"));
    assert_string_not_equal(find_kernel(after, 11)->etag, find_kernel(before, 11)->etag);
    assert_ptr_equal(find_kernel(after, 10), find_kernel(before, 10));
    wpk_index_release(f->index, after);
    wpk_index_release(f->index, before);
}

static void what_is_revoked_is_gone(void **state)
{
    struct fixture *f = *state;
    wpk_store_begin(f->store);
    wpk_store_run(f->store, "UPDATE kernel SET served = 0 WHERE id = 11", "");
    refresh(f, 11, true);
    const struct wpk_index_version *version = wpk_index_acquire(f->index);
    check_version(version, 2);
    assert_null(find_kernel(version, 11));
    wpk_index_release(f->index, version);
}

/* A problem serves a kernel for each class; they come and go by themselves. */
static void each_class_has_its_kernel(void **state)
{
    struct fixture *f = *state;
    wpk_store_begin(f->store);
    wpk_store_run(
        f->store,
        "INSERT INTO kernel SELECT 5, problem_id, search_id, provider, artifact_sha256,"
        " plain_sha256, 'times_direct=6', 5.5, median_ns, served, served_at, pinned, revoked_at,"
        " revoked_reason, verified_by, document, manifest, signature, created_at, epoch"
        " FROM kernel WHERE id = 11",
        "");
    wpk_store_run(f->store,
                  "UPDATE problem SET policy = 'threads=2;conditions=cold;time_ns=1' WHERE id = 11",
                  "");
    refresh(f, 11, true);
    const struct wpk_index_version *version = wpk_index_acquire(f->index);
    check_version(version, 4);
    const struct wpk_served *served = find_kernel(version, 5);
    assert_non_null(served);
    assert_true(served->accuracy.times_direct == 6 && served->times_direct == 5.5);
    assert_int_equal(served->conditions, WPK_CONDITIONS_COLD);
    assert_int_equal(served->threads, 2);
    assert_true(find_kernel(version, 11)->accuracy.times_direct == 4);
    wpk_index_release(f->index, version);
    assert_int_equal(wpk_index_load(f->index, f->store, NULL), WPK_OK);
    wpk_store_begin(f->store);
    wpk_store_run(f->store, "UPDATE kernel SET served = 0 WHERE id = 11", "");
    refresh(f, 11, true);
    version = wpk_index_acquire(f->index);
    check_version(version, 3);
    assert_non_null(find_kernel(version, 5));
    assert_null(find_kernel(version, 11));
    wpk_index_release(f->index, version);
}

/* Kernels come and go in any order, between the others and at both ends. */
static void arrays_stay_in_order(void **state)
{
    static const char *const devices[] = {"cpu/a/avx2", "cpu/b/avx2", "cpu/c/avx2"};
    struct fixture *f = *state;
    uint32_t count = 3;
    for (int64_t i = 0; i < 71; i++) {
        int64_t id = 20 + 37 * i % 71; /* each once */
        wpk_store_begin(f->store);
        put_problem(f, id, devices[id % 3]);
        refresh(f, (uint64_t)id, true);
        count++;
    }
    for (int64_t i = 0; i < 30; i++) {
        int64_t id = 20 + 23 * i % 71;
        wpk_store_begin(f->store);
        wpk_store_run(f->store, "UPDATE kernel SET served = 0 WHERE id = ?", "i", id);
        refresh(f, (uint64_t)id, true);
        const struct wpk_index_version *version = wpk_index_acquire(f->index);
        check_version(version, --count);
        assert_int_equal(version->device_count, 3);
        wpk_index_release(f->index, version);
    }
}

static void what_was_not_committed_is_not_there(void **state)
{
    struct fixture *f = *state;
    wpk_store_begin(f->store);
    put_problem(f, 20, "cpu/a/avx2");
    refresh(f, 20, false);
    commit(f);
    const struct wpk_index_version *version = wpk_index_acquire(f->index);
    check_version(version, 3);
    wpk_index_release(f->index, version);
}

/* The environment of a class is that of its newest kernel, also when that one goes. */
static void devices_follow_their_kernels(void **state)
{
    struct fixture *f = *state;
    const struct wpk_index_version *version = wpk_index_acquire(f->index);
    assert_int_equal(version->device_count, 1);
    assert_string_equal(version->devices[0].environment, "halide=1");
    wpk_index_release(f->index, version);
    wpk_store_begin(f->store);
    put_problem(f, 60, "cpu/a/avx2");
    put_problem(f, 61, "cpu/b/avx2");
    refresh(f, 60, false);
    refresh(f, 60, true);
    wpk_store_begin(f->store);
    refresh(f, 61, true);
    version = wpk_index_acquire(f->index);
    assert_int_equal(version->device_count, 2);
    assert_string_equal(version->devices[0].environment, "halide=2");
    assert_string_equal(version->devices[1].name, "cpu/b/avx2");
    wpk_index_release(f->index, version);
    wpk_store_begin(f->store);
    wpk_store_run(f->store, "UPDATE kernel SET served = 0 WHERE id = 60", "");
    refresh(f, 60, true);
    version = wpk_index_acquire(f->index);
    assert_string_equal(version->devices[0].environment, "halide=1");
    wpk_index_release(f->index, version);
}

static void everything_is_loaded_anew(void **state)
{
    struct fixture *f = *state;
    const struct wpk_index_version *before = wpk_index_acquire(f->index);
    assert_int_equal(wpk_index_load(f->index, f->store, NULL), WPK_OK);
    const struct wpk_index_version *after = wpk_index_acquire(f->index);
    check_version(before, 3);
    check_version(after, 3);
    assert_ptr_not_equal(find_kernel(before, 10), find_kernel(after, 10));
    wpk_index_release(f->index, before);
    wpk_index_release(f->index, after);
}

struct traffic {
    struct wpk_index *index;
    atomic_bool ended;
};

static void *read_on(void *user)
{
    struct traffic *traffic = user;
    uintptr_t looks = 0;
    while (!atomic_load(&traffic->ended)) {
        const struct wpk_index_version *version = wpk_index_acquire(traffic->index);
        struct wpk_index_cursor cursor;
        const struct wpk_served *served;
        wpk_index_seek(&cursor, version, WPK_INDEX_BY_KERNEL, 0, 0);
        while ((served = wpk_index_next(&cursor)) != NULL) {
            looks += served->answer.text[served->answer.size - 1] == '}';
        }
        wpk_index_release(traffic->index, version);
    }
    return (void *)looks;
}

/* Threads read while versions come and go; sanitizers watch. */
static void readers_and_a_writer(void **state)
{
    struct fixture *f = *state;
    struct traffic traffic = {.index = f->index};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &traffic), 0);
    }
    for (int i = 0; i < 200; i++) {
        wpk_store_begin(f->store);
        wpk_store_run(f->store, "UPDATE kernel SET served = 1 - served WHERE id = 11", "");
        refresh(f, 11, true);
    }
    atomic_store(&traffic.ended, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void extents_are_read(void **state)
{
    static const char *const bad[] = {"", "8,", ",8", "0", "8,x", "-4", "8;9"};
    float extents[WPK_EXTENTS_MAX];
    char many[WPK_EXTENTS_MAX * 2 + 4] = "1";
    (void)state;
    assert_int_equal(wpk_served_extents("1,2,1024", extents), 3);
    assert_true(extents[0] == 0 && extents[1] == 1 && extents[2] == 10);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(wpk_served_extents(bad[i], extents), 0);
    }
    for (int i = 1; i < WPK_EXTENTS_MAX; i++) {
        memcpy(many + strlen(many), ",1", 3);
    }
    assert_int_equal(wpk_served_extents(many, extents), WPK_EXTENTS_MAX);
    memcpy(many + strlen(many), ",1", 3);
    assert_int_equal(wpk_served_extents(many, extents), 0);
}

int main(void)
{
#define WITH_INDEX(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_INDEX(what_is_served_is_loaded),     WITH_INDEX(answers_are_json),
        WITH_INDEX(a_reader_keeps_its_version),   WITH_INDEX(what_is_revoked_is_gone),
        WITH_INDEX(each_class_has_its_kernel),    WITH_INDEX(what_was_not_committed_is_not_there),
        WITH_INDEX(devices_follow_their_kernels), WITH_INDEX(everything_is_loaded_anew),
        WITH_INDEX(readers_and_a_writer),         WITH_INDEX(arrays_stay_in_order),
        cmocka_unit_test(extents_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
