/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct wpk_net_head head = {.number = 0x80010203, .size = 0x0405};

static void its_bytes(void **state)
{
    (void)state;
    static const char bytes[] = {1, 0, 0, 0, 0, 0, 0, 4, 9, (char)0x80, 1, 2, 3};
    char written[WPK_NET_HEAD_MAX] = {0};
    assert_int_equal(wpk_net_head_write(&head, true, written), WPK_NET_HEAD_MAX);
    assert_memory_equal(written, bytes, sizeof bytes);
    assert_int_equal(wpk_net_head_write(&head, false, written), WPK_NET_HEAD_MAX - 1);
    assert_memory_equal(written, bytes + 1, sizeof bytes - 1);
    assert_int_equal(wpk_net_head_size(true), WPK_NET_HEAD_MAX);
    assert_int_equal(wpk_net_head_size(false), WPK_NET_HEAD_MAX - 1);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    char written[WPK_NET_HEAD_MAX];
    for (int is_local = 0; is_local < 2; is_local++) {
        for (size_t size = 0; size < (size_t)1 << 40; size = size * 5 + 3) {
            const struct wpk_net_head in = {.number = UINT32_MAX - (uint32_t)size / 2,
                                            .size = size};
            struct wpk_net_head out = {0};
            wpk_net_head_write(&in, is_local != 0, written);
            assert_true(wpk_net_head_read(written, is_local != 0, size, &out));
            assert_int_equal(out.number, in.number);
            assert_int_equal(out.size, in.size);
            assert_true(size == 0 || !wpk_net_head_read(written, is_local != 0, size - 1, &out));
        }
    }
}

static void what_is_none(void **state)
{
    (void)state;
    static const struct {
        int at;
        char byte;
    } changes[] = {{0, 0}, {0, 2}, {1, 1}, {1, (char)0xff}, {6, 1}, {9, 0x7f}};
    char written[WPK_NET_HEAD_MAX];
    struct wpk_net_head out = {0};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        wpk_net_head_write(&head, true, written);
        assert_true(wpk_net_head_read(written, true, 65536, &out));
        written[changes[i].at] = changes[i].byte;
        assert_false(wpk_net_head_read(written, true, 65536, &out));
    }
    /* Too small for its own number. */
    wpk_net_head_write(&head, true, written);
    written[7] = 0;
    written[8] = 3;
    assert_false(wpk_net_head_read(written, true, 65536, &out));
    written[8] = 4;
    assert_true(wpk_net_head_read(written, true, 65536, &out));
    assert_int_equal(out.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_bytes),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
