/* SPDX-License-Identifier: Apache-2.0 */
#include "search/worth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wpk_worth worth; /* large */

static const struct wpk_worth_gene *find(const char *name)
{
    int at = WPK_FIND(struct wpk_worth_gene, name, worth.genes, worth.gene_count, name);
    assert_true(at >= 0);
    return &worth.genes[at];
}

/* `tile` doubles the time, `outer` adds a percent, `noise` is another one in each trial. */
static void add_trials(void)
{
    char text[128];
    for (int i = 0; i < 64; i++) {
        int place = 63 - i; /* the slowest first */
        snprintf(text, sizeof text, "cpu-6 algorithm=direct tile=%d outer=%s noise=%d%s",
                 1 << (place / 16), place % 2 == 0 ? "x,y" : "y,x", i,
                 place == 40   ? " rare=a"
                 : place == 41 ? " rare=b"
                               : "");
        wpk_worth_add(&worth, text, 100.0 * (1 << (place / 16)) * (1 + 0.01 * (place % 2)), true);
    }
}

static void test_genes_come_by_their_worth(void **state)
{
    (void)state;
    add_trials();
    wpk_worth_add(&worth, "cpu-6 algorithm=direct tile=4 outer=x,y", 90, false);
    wpk_worth_finish(&worth);
    assert_int_equal(worth.count, 64);
    assert_int_equal(worth.gene_count, 5);
    assert_string_equal(worth.genes[0].name, "tile");
    const struct wpk_worth_gene *tile = find("tile"), *outer = find("outer");
    assert_true(tile->share > 0.99 && tile->share <= 1);
    assert_true(outer->share >= 0 && outer->share < 0.01);
    assert_true(find("noise")->share == 0); /* a value for each trial explains nothing */
    assert_true(find("algorithm")->share == 0);
    assert_true(find("rare")->share == 0);
    assert_int_equal(find("rare")->value_count, 2);
    assert_int_equal(tile->value_count, 4);
    assert_string_equal(tile->values[0].text, "4"); /* by the trial that is not counted */
    assert_true(tile->values[0].best == 90 && tile->values[0].count == 16);
    assert_true(tile->values[1].best == 100 && strcmp(tile->values[1].text, "1") == 0);
    assert_true(tile->values[1].times[8] == 101 && tile->values[1].times[7] == 100);
    wpk_worth_fini(&worth);
    assert_int_equal(worth.gene_count, 0);
}

static void test_no_more_than_there_is_room_for(void **state)
{
    (void)state;
    struct wpk_buf text = {0};
    char value[64];
    for (int i = 0; i < WPK_WORTH_GENES_MAX + 10; i++) {
        wpk_buf_printf(&text, "g%d=%d ", i, i);
    }
    wpk_worth_add(&worth, wpk_buf_text(&text), 5, true);
    for (int i = 0; i < WPK_WORTH_VALUES_MAX + 10; i++) {
        snprintf(value, sizeof value, "head  g0=v%d = g1", i);
        wpk_worth_add(&worth, value, 5 + i, true);
    }
    wpk_buf_reset(&text);
    for (int i = 0; i < 300; i++) {
        wpk_buf_append_text(&text, "x");
    }
    wpk_buf_append_text(&text, "=1 g2=");
    for (int i = 0; i < 300; i++) {
        wpk_buf_append_text(&text, "x");
    }
    wpk_worth_add(&worth, wpk_buf_text(&text), 1, true);
    wpk_worth_finish(&worth);
    assert_int_equal(worth.gene_count, WPK_WORTH_GENES_MAX);
    assert_int_equal(find("g0")->value_count, WPK_WORTH_VALUES_MAX);
    assert_int_equal(find("g1")->value_count, 1);
    assert_int_equal(find("g2")->value_count, 1);
    wpk_buf_fini(&text);
    wpk_worth_fini(&worth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_genes_come_by_their_worth),
        cmocka_unit_test(test_no_more_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
