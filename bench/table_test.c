/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/table.h"

#include "bench/cases.h"
#include "common/fs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct bench_table new_table(int rounds)
{
    struct bench_table table = {.rounds = rounds};
    table.rows = calloc(BENCH_ROWS_MAX, sizeof(table.rows[0]));
    assert_non_null(table.rows);
    return table;
}

/* Every round takes `ns`. */
static void set_time(struct bench_row *row, int which, double ns)
{
    row->cell[which].state = BENCH_CELL_TIMED;
    for (int i = 0; i < BENCH_ROUNDS_MAX; i++) {
        row->cell[which].ns_median[i] = ns;
    }
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void test_wrong_results_and_uncounted_peers_do_not_win(void **state)
{
    (void)state;
    struct bench_table table = new_table(7);
    struct bench_row *row = &table.rows[table.row_count++];
    row->what.layouts = BENCH_LAYOUTS_ANY;
    set_time(row, BENCH_OURS, 100);
    set_time(row, BENCH_ONNXRUNTIME, 180);
    set_time(row, BENCH_OPENVINO, 50);
    row->cell[BENCH_OPENVINO].state = BENCH_CELL_WRONG;
    set_time(row, BENCH_ONEDNN, 150);
    assert_int_equal(bench_row_best_peer(&table, row, BENCH_PEERS_ALL), BENCH_ONEDNN);
    assert_true(near(bench_row_ratio(&table, row, BENCH_PEERS_ALL).median, 1.5));
    row->what.layouts = BENCH_LAYOUTS_FIXED;
    assert_int_equal(bench_row_best_peer(&table, row, BENCH_PEERS_ALL), BENCH_ONNXRUNTIME);
    assert_true(near(bench_row_ratio(&table, row, BENCH_PEERS_ALL).median, 1.8));
    free(table.rows);
}

/* One run judged by four classes: a time counts where the error is within the class. */
static void test_the_best_peer_is_the_best_in_class(void **state)
{
    (void)state;
    static const struct {
        double times_direct;
        int best;
        double ratio;
    } classes[] = {
        {1.25, BENCH_ONEDNN, 19}, {4, BENCH_NCNN, 8}, {16, BENCH_ONEDNN2, 7}, {500, BENCH_MNN, 6}};
    struct bench_table table = new_table(7);
    struct bench_row *row = &table.rows[table.row_count++];
    set_time(row, BENCH_OURS, 100);
    set_time(row, BENCH_ONEDNN, 1900);
    set_time(row, BENCH_NCNN, 800);
    set_time(row, BENCH_ONEDNN2, 700);
    set_time(row, BENCH_MNN, 600);
    row->cell[BENCH_OURS].accuracy.times_direct = 1.25;
    row->cell[BENCH_ONEDNN].accuracy.times_direct = 0.7;
    row->cell[BENCH_NCNN].accuracy.times_direct = 1.8;
    row->cell[BENCH_ONEDNN2].accuracy.times_direct = 7.5;
    row->cell[BENCH_MNN].accuracy.times_direct = 300;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        table.accuracy.times_direct = classes[i].times_direct;
        assert_int_equal(bench_row_best_peer(&table, row, BENCH_PEERS_ALL), classes[i].best);
        assert_true(near(bench_row_ratio(&table, row, BENCH_PEERS_ALL).median, classes[i].ratio));
        /* Against the direct peers alone. */
        assert_int_equal(bench_row_best_peer(&table, row, BENCH_PEERS_DIRECT), BENCH_ONEDNN);
        assert_true(near(bench_row_ratio(&table, row, BENCH_PEERS_DIRECT).median, 19));
    }
    /* A kernel of ours that is too inaccurate has no ratio. */
    table.accuracy.times_direct = 1.2;
    assert_false(bench_cell_in_class(&table, &row->cell[BENCH_OURS]));
    assert_false(bench_row_ratio(&table, row, BENCH_PEERS_ALL).valid);
    free(table.rows);
}

/* Text and JSON mark times out of class and give the errors. */
static void test_the_report_names_class_and_errors(void **state)
{
    (void)state;
    struct bench_table table = new_table(7);
    table.accuracy = WPK_ACCURACY_STANDARD;
    table.peak = (struct wpk_peak){.name = "none", .flops_per_s = 1e11};
    struct bench_row *row = &table.rows[table.row_count++];
    row->what.op = (struct bench_op){.name = "c6", .kind = BENCH_RELU, .rows = 1, .columns = 16};
    row->what.threads = 1;
    set_time(row, BENCH_NCNN, 8e5);
    set_time(row, BENCH_MNN, 7e5);
    row->cell[BENCH_NCNN].accuracy = (struct bench_accuracy){1.1e-6, 1.81};
    row->cell[BENCH_MNN].accuracy = (struct bench_accuracy){1.9e-4, 311};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    bench_table_print(&table, out);
    fclose(out);
    assert_non_null(strstr(text, "accuracy standard"));
    assert_non_null(strstr(text, " 800.0/0.0 "));
    assert_non_null(strstr(text, " 700.0/0.0* "));
    assert_non_null(strstr(text, " 1.81 (1.1e-06)"));
    assert_non_null(strstr(text, " 311 (1.9e-04)"));
    free(text);
    char path[] = "/tmp/bench-table-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct wpk_buf json = {0};
    assert_int_equal(bench_table_write_json(&table, path, NULL), WPK_OK);
    assert_int_equal(wpk_fs_read(path, 1 << 20, &json, NULL), WPK_OK);
    unlink(path);
    assert_non_null(strstr(wpk_buf_text(&json), "\"best_peer\": \"ncnn\""));
    assert_non_null(strstr(wpk_buf_text(&json), "\"in_class\": false"));
    wpk_buf_fini(&json);
    free(table.rows);
}

/* A moment in which the machine is half as fast cancels out within its round. */
static void test_ratios_are_taken_within_a_round(void **state)
{
    (void)state;
    struct bench_table table = new_table(9);
    struct bench_row *row = &table.rows[table.row_count++];
    set_time(row, BENCH_OURS, 100);
    set_time(row, BENCH_ONEDNN, 200);
    for (int i = 0; i < 9; i += 2) {
        row->cell[BENCH_OURS].ns_median[i] *= 2;
        row->cell[BENCH_ONEDNN].ns_median[i] *= 2;
    }
    const struct bench_estimate ratio = bench_row_ratio(&table, row, BENCH_PEERS_ALL);
    assert_true(ratio.valid);
    assert_true(near(ratio.low, 2) && near(ratio.median, 2) && near(ratio.high, 2));
    free(table.rows);
}

static void test_reading_is_a_bound_and_no_peer(void **state)
{
    (void)state;
    struct bench_table table = new_table(9);
    struct bench_row *row = &table.rows[table.row_count++];
    set_time(row, BENCH_OURS, 100);
    set_time(row, BENCH_READING, 97);
    assert_int_equal(bench_row_best_peer(&table, row, BENCH_PEERS_ALL), -1);
    set_time(row, BENCH_ONEDNN, 120);
    assert_int_equal(bench_row_best_peer(&table, row, BENCH_PEERS_ALL), BENCH_ONEDNN);
    assert_true(near(bench_row_ratio_to(&table, row, BENCH_READING).median, 0.97));
    row->cell[BENCH_OURS].accuracy.times_direct = 5;
    assert_false(bench_row_ratio_to(&table, row, BENCH_READING).valid);
    free(table.rows);
}

static struct bench_estimate sum_ratio(const struct bench_table *table, int threads)
{
    return bench_table_sum_ratio(table, BENCH_LAYOUTS_ANY, threads, BENCH_PEERS_ALL);
}

static void test_sum_needs_all_twelve_layers(void **state)
{
    (void)state;
    struct bench_table table = new_table(7);
    for (int layer = 1; layer <= 12; layer++) {
        assert_false(sum_ratio(&table, 1).valid);
        struct bench_row *row = &table.rows[table.row_count++];
        snprintf(row->what.op.name, sizeof(row->what.op.name), "c%d", layer);
        row->what.threads = 1;
        set_time(row, BENCH_OURS, layer);
        set_time(row, BENCH_ONEDNN, layer == 12 ? 12 + 39 : layer);
    }
    assert_true(near(sum_ratio(&table, 1).median, 1.5));
    assert_false(sum_ratio(&table, 2).valid);
    free(table.rows);
}

/* Writes a file, reads it as tuned results, and removes it. */
static wpk_err read_tuned(struct bench_table *table, const struct bench_ops *ops, const char *only,
                          const char *text)
{
    char path[] = "/tmp/bench-tuned-XXXXXX";
    char source[64];
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(wpk_fs_write(path, text, strlen(text), 0600, NULL), WPK_OK);
    snprintf(source, sizeof(source), "fixed:2:%s", path);
    const struct bench_selection selection = {.ops = ops, .only = only};
    const wpk_err err = bench_cases_read_tuned(table, &selection, source, NULL);
    unlink(path);
    return err;
}

static void test_tuned_results_become_cases(void **state)
{
    (void)state;
    static const struct bench_ops ops = {.op = {{.name = "a"}, {.name = "b"}}, .count = 2};
    static const char text[] =
        "{\"kernels\": [{\"name\": \"a\", \"provider\": \"halide-cpu\", \"artifact\": \"/x/a.so\"},"
        "{\"name\": \"b\", \"provider\": \"onednn\", \"artifact\": \"/x/b.so\"}], \"seconds\": 1}";
    struct bench_table table = new_table(7);
    assert_int_equal(read_tuned(&table, &ops, NULL, text), WPK_OK);
    assert_int_equal(table.row_count, 2);
    assert_string_equal(table.rows[0].kernel, "/x/a.so");
    assert_string_equal(table.rows[0].served, "");
    assert_string_equal(table.rows[1].kernel, "");
    assert_string_equal(table.rows[1].served, "/x/b.so");
    assert_int_equal(table.rows[1].what.layouts, BENCH_LAYOUTS_FIXED);
    assert_int_equal(table.rows[1].what.threads, 2);
    assert_int_equal(read_tuned(&table, &ops, "b", text), WPK_OK);
    assert_int_equal(table.row_count, 3);
    assert_int_equal(read_tuned(&table, &ops, NULL, "{\"kernels\": [{\"name\": \"c\"}]}"),
                     WPK_ENOENT);
    const struct bench_selection selection = {.ops = &ops};
    assert_int_equal(bench_cases_read_tuned(&table, &selection, "any:x:y", NULL), WPK_EINVAL);
    free(table.rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_results_and_uncounted_peers_do_not_win),
        cmocka_unit_test(test_the_best_peer_is_the_best_in_class),
        cmocka_unit_test(test_the_report_names_class_and_errors),
        cmocka_unit_test(test_ratios_are_taken_within_a_round),
        cmocka_unit_test(test_reading_is_a_bound_and_no_peer),
        cmocka_unit_test(test_sum_needs_all_twelve_layers),
        cmocka_unit_test(test_tuned_results_become_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
