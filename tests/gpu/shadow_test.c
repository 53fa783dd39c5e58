/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/shadow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Accesses of one word: r or w, c and e for the begin and end of a copy; thread, bytes as a
 * hexadecimal digit; | is a barrier of the block, s a synchronisation of all warps, / the next
 * block. Only the last one may be wrong. */
static const struct {
    const char *text;
    enum wpk_shadow_verdict expected;
} rows[] = {
    {"w00f r00f", WPK_SHADOW_RIGHT},
    {"w00f r01f", WPK_SHADOW_RACE},
    {"w00f | r01f", WPK_SHADOW_RIGHT},
    {"w00f s r01f", WPK_SHADOW_RIGHT},
    {"w00f s r40f", WPK_SHADOW_RACE},
    {"w00f w01f", WPK_SHADOW_RACE},
    {"w001 w012", WPK_SHADOW_RIGHT},
    {"w001 r01f", WPK_SHADOW_UNWRITTEN},
    {"w00f / r00f", WPK_SHADOW_UNWRITTEN},
    {"r00f", WPK_SHADOW_UNWRITTEN},
    {"w00f | r01f w00f", WPK_SHADOW_RACE},
    {"w00f | r01f s w00f", WPK_SHADOW_RIGHT},
    {"w00f | r01f r02f s w00f", WPK_SHADOW_RIGHT},
    {"w00f | r01f r40f s w00f", WPK_SHADOW_RACE},
    {"w00f | r40f r01f s w00f", WPK_SHADOW_RACE},
    {"w00f | r00f r00f w00f", WPK_SHADOW_RIGHT},
    {"w00f | r01f | w00f", WPK_SHADOW_RIGHT},
    {"w00f | r01f r00f s r00f w00f", WPK_SHADOW_RIGHT},
    {"w00f | r01f s r00f w20f", WPK_SHADOW_RACE},
    {"c00f e00f r00f", WPK_SHADOW_RIGHT},
    {"c00f e00f | r01f", WPK_SHADOW_RIGHT},
    {"c00f e00f r01f", WPK_SHADOW_RACE},
    {"c00f | e00f r01f", WPK_SHADOW_RACE},
    {"c00f r00f", WPK_SHADOW_PENDING},
    {"c00f | r01f", WPK_SHADOW_PENDING},
    {"c00f | w00f", WPK_SHADOW_PENDING},
    {"c00f | c00f", WPK_SHADOW_PENDING},
    {"c00f / r00f", WPK_SHADOW_UNWRITTEN},
    {"w00f | r01f c00f", WPK_SHADOW_RACE},
    {"w00f | r01f | c00f", WPK_SHADOW_RIGHT},
};

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void test_races(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wpk_shadow shadow;
        uint32_t synced = 0;
        enum wpk_shadow_verdict verdict = WPK_SHADOW_RIGHT;
        assert_int_equal(wpk_shadow_init(&shadow, 10), WPK_OK);
        wpk_shadow_begin(&shadow);
        for (const char *at = rows[i].text; *at != '\0'; at++) {
            if (strchr("rwce", *at) != NULL) {
                assert_int_equal(verdict, WPK_SHADOW_RIGHT);
                int thread = 16 * digit(at[1]) + digit(at[2]);
                uint8_t bytes = (uint8_t)digit(at[3]);
                verdict = *at == 'r'   ? wpk_shadow_read(&shadow, 2, bytes, thread, synced)
                          : *at == 'w' ? wpk_shadow_write(&shadow, 2, bytes, thread, synced)
                          : *at == 'c' ? wpk_shadow_begin_copy(&shadow, 2, bytes, thread, synced)
                                       : wpk_shadow_end_copy(&shadow, 2, bytes, thread, synced);
                at += 3;
            } else if (*at == '|') {
                wpk_shadow_pass(&shadow);
            } else if (*at == '/') {
                wpk_shadow_begin(&shadow);
            }
            synced += *at == 's';
        }
        if (verdict != rows[i].expected) {
            fail_msg("%s: %d", rows[i].text, (int)verdict);
        }
        wpk_shadow_fini(&shadow);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_races)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
