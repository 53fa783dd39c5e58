/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fs.h"
#include "common/json.h"
#include "coordinator/index/misses.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DEVICE "cpu/Some CPU, of 2026/avx2"

static void add(struct wpk_misses *misses, int number, uint64_t calls, uint64_t time_ns)
{
    struct wpk_lookup lookup = {.layouts = "any",
                                .threads = 2,
                                .accuracy = WPK_ACCURACY_STANDARD,
                                .device = DEVICE,
                                .environment = ""};
    const struct wpk_miss more = {
        .match = "none", .lookups = 1, .calls = calls, .time_ns = time_ns, .estimate_ns = 10};
    snprintf(lookup.fingerprint, sizeof lookup.fingerprint, "%064d", number);
    wpk_misses_add(misses, &lookup, strdup("{\"op\":\"Y[i] = X[i]\"}"), &more);
}

static void drop(struct wpk_miss *taken, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        wpk_miss_fini(&taken[i]);
    }
    free(taken);
}

static void equal_lookups_are_one(void **state)
{
    struct wpk_misses *misses = wpk_misses_new();
    uint32_t count;
    (void)state;
    assert_null(wpk_misses_take(misses, &count));
    add(misses, 1, 3, 300);
    add(misses, 2, 0, 0);
    add(misses, 1, 4, 400);
    struct wpk_miss *taken = wpk_misses_take(misses, &count);
    assert_int_equal(count, 2);
    assert_int_equal(taken[0].lookups, 2);
    assert_int_equal(taken[0].calls, 7);
    assert_int_equal(taken[0].time_ns, 700);
    assert_int_equal(taken[1].lookups, 1);
    drop(taken, count);
    assert_null(wpk_misses_take(misses, &count));
    wpk_misses_free(misses);
}

static void what_is_pending_is_bounded(void **state)
{
    struct wpk_misses *misses = wpk_misses_new();
    uint32_t count;
    (void)state;
    for (int i = 0; i < WPK_MISSES_MAX + 100; i++) {
        add(misses, i, 0, 0);
    }
    add(misses, 7, 1, 1); /* one that is counted goes on being counted */
    struct wpk_miss *taken = wpk_misses_take(misses, &count);
    assert_int_equal(count, WPK_MISSES_MAX);
    assert_int_equal(taken[7].lookups, 2);
    drop(taken, count);
    add(misses, 1, 0, 0);
    wpk_misses_free(misses); /* with what is pending */
}

struct fixture {
    char directory[32];
    struct wpk_misses *misses;
    struct wpk_store *store;
    struct wpk_index *index;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-misses-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    assert_int_equal(wpk_store_open(f->directory, wpk_clock_system(), &f->store, NULL), WPK_OK);
    f->index = wpk_index_new();
    f->misses = wpk_misses_new();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    wpk_index_free(f->index);
    wpk_store_close(f->store);
    wpk_misses_free(f->misses);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

static void write_all(struct fixture *f)
{
    uint32_t count;
    struct wpk_miss *taken = wpk_misses_take(f->misses, &count);
    wpk_store_begin(f->store);
    wpk_misses_write(f->store, f->index, taken, count);
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    drop(taken, count);
}

/* Returns the page's text, for the caller to free. */
static char *list(struct fixture *f, uint64_t from, int max, uint64_t *next)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf text = {0};
    char *taken = NULL;
    size_t size;
    const struct wpk_index_version *version = wpk_index_acquire(f->index);
    wpk_json_begin_array(w, "m");
    *next = wpk_misses_list(f->store, version, from, max, w);
    wpk_json_end(w);
    wpk_index_release(f->index, version);
    assert_int_equal(wpk_json_print(w, false, &text), WPK_OK);
    wpk_json_writer_free(w);
    assert_int_equal(wpk_buf_take(&text, &taken, &size), WPK_OK);
    return taken;
}

static void the_table_keeps_what_costs_most(void **state)
{
    struct fixture *f = *state;
    uint64_t next;
    add(f->misses, 1, 10, 1000); /* 900 ns lost */
    add(f->misses, 2, 1, 5);     /* faster than the estimate: none */
    write_all(f);
    for (int i = 3; i < WPK_MISSES_MAX + 3; i++) {
        add(f->misses, i, 1, 12); /* 2 ns */
    }
    write_all(f);
    add(f->misses, 1, 10, 1000);
    write_all(f);
    char *text = list(f, 0, 2, &next);
    assert_int_equal(next, 2);
    assert_non_null(strstr(text, "\"lookups\":2,\"calls\":20,\"time_ns\":2000,\"estimate_ns\":10,"
                                 "\"lost_ns\":1800,"));
    assert_non_null(strstr(text, "\"device\":\"" DEVICE "\",\"threads\":2,\"op\":{\"op\":"));
    free(text);
    text = list(f, 2, WPK_MISSES_MAX, &next);
    assert_int_equal(next, 0);
    assert_null(strstr(text, "\"time_ns\":5,")); /* what cost least had to go */
    free(text);
}

/* As large as one lookup may say, and together no more. */
static void sums_stay_numbers_of_json(void **state)
{
    struct fixture *f = *state;
    uint64_t next;
    for (int i = 0; i < 2; i++) {
        add(f->misses, 1, WPK_JSON_INT_MAX, WPK_JSON_INT_MAX);
        add(f->misses, 1, WPK_JSON_INT_MAX, WPK_JSON_INT_MAX);
        write_all(f);
    }
    char *text = list(f, 0, 2, &next);
    assert_non_null(strstr(text, "\"calls\":9007199254740991,\"time_ns\":9007199254740991,"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_lookups_are_one),
        cmocka_unit_test(what_is_pending_is_bounded),
        cmocka_unit_test_setup_teardown(the_table_keeps_what_costs_most, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sums_stay_numbers_of_json, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
