/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: lock files, as they are read and written; tests/e2e/test_model_plan.py uses them. */
#include "client/lock.h"

#include "common/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define PLAIN "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* A choice: the kernel, then the plain one. */
static void make_choice(struct wpk_buf *out)
{
    static struct wpk_choice choice; /* large */
    choice = (struct wpk_choice){
        .op = "input X f32[4]\noutput Y f32[4]\nY[i] = X[i]\n",
        .fingerprint = HASH,
        .accuracy = WPK_ACCURACY_STANDARD,
        .layouts = "fixed",
        .threads = 3,
        .inputs = {.tensor = {{"X", "t0"}}, .count = 1},
        .outputs = {.tensor = {{"Y", "t1"}}, .count = 1},
        .test = {.seed = 7},
        .chain = {{.kind = WPK_CHOICE_KERNEL, .file = "kernel.so", .sha256 = HASH},
                  {.kind = WPK_CHOICE_PLAIN, .file = "kernel.plain.so", .sha256 = PLAIN}},
        .chain_count = 2,
    };
    assert_int_equal(wpk_choice_encode(&choice, out), WPK_OK);
}

static wpk_err read_text(const struct wpk_buf *text, struct wpk_lock *out, struct wpk_diag *diag)
{
    char path[] = "/tmp/wpk-lock-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text->data, text->size) == (ssize_t)text->size);
    close(fd);
    wpk_err err = wpk_lock_read(path, out, diag);
    unlink(path);
    return err;
}

/* A lock file of one entry, in which `from` is `to`. */
static void print(const char *from, const char *to, struct wpk_buf *out)
{
    struct wpk_buf choice = {0}, whole = {0};
    make_choice(&choice);
    struct wpk_lock_entry entry = {.name = "MatMul1",
                                   .kernel = "k12",
                                   .device = "cpu/x/zen4",
                                   .environment = "halide=21.0.0",
                                   .choice = wpk_buf_text(&choice),
                                   .signature = "00"};
    const struct wpk_lock lock = {.entries = &entry, .count = 1};
    assert_int_equal(wpk_lock_print(&lock, &whole), WPK_OK);
    const char *text = wpk_buf_text(&whole), *at = strstr(text, from);
    assert_non_null(at);
    wpk_buf_printf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    wpk_buf_fini(&choice);
    wpk_buf_fini(&whole);
}

static void test_written_is_read(void **state)
{
    (void)state;
    struct wpk_buf text = {0};
    struct wpk_lock lock;
    struct wpk_diag diag = {0};
    print("\"k12\"", "\"k12\"", &text);
    assert_int_equal(read_text(&text, &lock, &diag), WPK_OK);
    assert_int_equal(lock.count, 1);
    const struct wpk_lock_entry *entry = &lock.entries[0];
    assert_string_equal(entry->name, "MatMul1");
    assert_string_equal(entry->kernel, "k12");
    assert_string_equal(entry->device, "cpu/x/zen4");
    assert_string_equal(entry->environment, "halide=21.0.0");
    assert_string_equal(entry->signature, "00");
    assert_string_equal(entry->fingerprint, HASH);
    assert_string_equal(entry->artifact, HASH); /* the first of the chain that is a file */
    assert_string_equal(entry->layouts, "fixed");
    assert_true(entry->accuracy.times_direct == 4);
    assert_int_equal(entry->threads, 3);
    wpk_lock_fini(&lock);
    wpk_buf_fini(&text);
}

static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        wpk_err err;
        const char *says;
    } cases[] = {
        {"\"version\":1", "\"version\":9", WPK_EMISMATCH, "version 9"},
        {"\"k12\"", "\"../12\"", WPK_EINVAL, "no kernel's id"},
        {"\"MatMul1\"", "\"a\\u001bb\"", WPK_EINVAL, "control"},
        {"\"signature\"", "\"other\"", WPK_EINVAL, "other"},
        {"\\\"threads\\\":3", "\\\"threads\\\":0", WPK_ERANGE, "threads"},
        {"\"entries\"", "\"entry\"", WPK_EINVAL, "entry"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_buf text = {0};
        struct wpk_lock lock;
        struct wpk_diag diag = {0};
        char whole[2 * WPK_DIAG_TEXT_MAX];
        print(cases[i].from, cases[i].to, &text);
        assert_int_equal(read_text(&text, &lock, &diag), cases[i].err);
        wpk_diag_format(&diag, whole, sizeof(whole));
        if (strstr(whole, cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].says, whole);
        }
        wpk_lock_fini(&lock);
        wpk_buf_fini(&text);
    }
    struct wpk_lock lock;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_lock_read("/nonexistent/lock", &lock, &diag), WPK_EINVAL);
    wpk_lock_fini(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_is_read),
        cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
