/* SPDX-License-Identifier: Apache-2.0 */
/* The first profiles, spelled out, and what all of them together try. */
#include "target/cpu/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(int n, char *out, size_t size)
{
    struct wpk_profile p;
    wpk_profile_get(n, &p);
    snprintf(out, size, "%s; %s; tile %d %d %s; blocks %d %d; copies %u %s; %s; par %d",
             p.blocking->name, p.reducing->name, p.tile, p.tile_plain,
             p.tile_order == WPK_TILE_ORDER_VECTOR ? "vector" : "traffic", (int)p.block_last,
             (int)p.block, p.copies & 3, p.halves ? "halves" : "whole", p.fused ? "fused" : "root",
             p.parallel);
    return out;
}

static void the_first_profiles(void **state)
{
    static const char *const texts[] = {
        "whole; all; tile 0 0 traffic; blocks 1 0; copies 0 halves; fused; par 1",
        "panels; by 16; tile 1 0 vector; blocks 2 0; copies 1 halves; fused; par 2",
        "last-cache; by 32; tile 2 0 traffic; blocks 4 0; copies 2 halves; root; par 1",
        "small; by 64; tile 3 1 vector; blocks 3 4; copies 3 halves; fused; par 2",
        "whole; all as written; tile 4 1 traffic; blocks 7 0; copies 0 halves; fused; par 1",
        "panels; by 16 as written; tile 0 1 traffic; blocks 8 0; copies 1 whole; root; par 2",
        "last-cache; by 32 as written; tile 1 2 vector; blocks 1 0; copies 2 whole; fused; par 1",
        "small; all; tile 2 2 traffic; blocks 2 1; copies 3 whole; fused; par 2",
    };
    char text[256];
    (void)state;
    for (int n = 0; n < (int)(sizeof(texts) / sizeof(texts[0])); n++) {
        assert_string_equal(text_of(n, text, sizeof(text)), texts[n]);
    }
}

static void names_say_what_is_set(void **state)
{
    (void)state;
    for (int n = 0; n < 420; n++) {
        struct wpk_profile p;
        wpk_profile_get(n, &p);
        const char *blocking = p.blocking->name, *reduction = p.reducing->name;
        assert_int_equal(p.blocking->panels, strcmp(blocking, "panels") == 0);
        assert_int_equal(p.blocking->small, strcmp(blocking, "small") == 0);
        assert_int_equal(p.blocking->last_cache,
                         p.blocking->small || strcmp(blocking, "last-cache") == 0);
        assert_int_equal(p.block > 0, p.blocking->small);
        assert_int_equal(p.reducing->innermost, strstr(reduction, "as written") == NULL);
        assert_int_equal(p.reducing->split == WPK_GENE_ALL, strncmp(reduction, "all", 3) == 0);
        assert_int_equal(p.paneling->copied, strcmp(p.paneling->name, "copied") == 0);
        assert_int_equal(p.paneling->results, !p.paneling->copied);
    }
}

/* Twenty candidates try each of the best five tiles with each blocking; the next ones are of other
 * tiles; each blocking meets each reduction. */
static void rows_meet(void **state)
{
    bool tile_and_blocking[15][4] = {{false}}, blocking_and_reduction[4][7] = {{false}};
    (void)state;
    for (int n = 0; n < 60; n++) {
        struct wpk_profile p;
        wpk_profile_get(n, &p);
        assert_in_range(p.tile, n / 20 * 5, n / 20 * 5 + 4);
        tile_and_blocking[p.tile][n % 4] = true;
        blocking_and_reduction[n % 4][n % 7] = true;
    }
    for (int i = 0; i < 4; i++) {
        for (int tile = 0; tile < 15; tile++) {
            assert_true(tile_and_blocking[tile][i]);
        }
        for (int r = 0; r < 7; r++) {
            assert_true(blocking_and_reduction[i][r]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_profiles),
        cmocka_unit_test(names_say_what_is_set),
        cmocka_unit_test(rows_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
