/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/artifact.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/metrics.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char content[] = "the bytes of a shared object";

struct fixture {
    char directory[64];
    char sha256[WPK_SHA256_HEX_SIZE];
    char path[192];
};

static int set_up(void **state)
{
    static struct fixture f;
    snprintf(f.directory, sizeof f.directory, "%s/wpk-artifact-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f.directory));
    wpk_crypto_sha256_hex(content, sizeof content, f.sha256);
    snprintf(f.path, sizeof f.path, "%s/artifacts/%.2s/%s.so", f.directory, f.sha256, f.sha256);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    return wpk_fs_remove_tree(f->directory, NULL) == WPK_OK ? 0 : -1;
}

static void put(const struct fixture *f)
{
    assert_int_equal(wpk_artifact_put(f->directory, f->sha256, content, sizeof content, NULL),
                     WPK_OK);
}

static void what_was_put_is_got(void **state)
{
    struct fixture *f = *state;
    struct wpk_buf out = {0};
    put(f);
    assert_int_equal(wpk_artifact_get(f->directory, f->sha256, &out, NULL), WPK_OK);
    assert_int_equal(out.size, sizeof content);
    assert_memory_equal(out.data, content, sizeof content);
    wpk_buf_fini(&out);
}

static void a_wrong_name_is_refused(void **state)
{
    struct fixture *f = *state;
    wpk_metrics_reset();
    assert_int_equal(wpk_artifact_put(f->directory, f->sha256, content, 3, NULL), WPK_ECORRUPT);
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_ARTIFACTS_CORRUPT, 0), 1);
    assert_int_equal(access(f->path, F_OK), -1);
    struct wpk_buf out = {0};
    assert_int_equal(wpk_artifact_get(f->directory, "../history.db", &out, NULL), WPK_ENOENT);
    wpk_buf_fini(&out);
}

static void damage_is_seen_and_mended(void **state)
{
    struct fixture *f = *state;
    struct wpk_buf out = {0};
    struct wpk_diag diag = {0};
    put(f);
    assert_int_equal(truncate(f->path, 5), 0);
    wpk_metrics_reset();
    assert_int_equal(wpk_artifact_get(f->directory, f->sha256, &out, &diag), WPK_ECORRUPT);
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_ARTIFACTS_CORRUPT, 0), 1);
    assert_int_equal(out.size, 0);
    assert_non_null(strstr(diag.text, f->sha256));
    put(f);
    assert_int_equal(wpk_artifact_get(f->directory, f->sha256, &out, NULL), WPK_OK);
    wpk_buf_fini(&out);
}

/* A killed wpkd leaves a file of another name: nobody is given it, the next start removes it. */
static void what_was_begun_is_swept(void **state)
{
    struct fixture *f = *state;
    char begun[224];
    put(f);
    snprintf(begun, sizeof begun, "%s.tmp.aB3xYz", f->path);
    assert_int_equal(wpk_fs_write(begun, content, 4, 0600, NULL), WPK_OK);
    wpk_artifact_sweep(f->directory);
    assert_int_equal(access(begun, F_OK), -1);
    assert_int_equal(access(f->path, R_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_put_is_got, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_name_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_seen_and_mended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_begun_is_swept, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
