/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void hosts_and_ports(void **state)
{
    static const struct {
        const char *text;
        bool parses, has_port, is_numeric, is_loopback;
    } cases[] = {
        {"127.0.0.1:7400", true, true, true, true},
        {"127.255.1.2", true, false, true, true},
        {"[::1]:7400", true, true, true, true},
        {"[0:0:0:0:0:0:0:1]:1", true, true, true, true},
        {"localhost:1", true, true, false, true},
        {"LocalHost", true, false, false, true},
        {"127.evil.example:7400", true, true, false, false},
        {"127.0.0.1.evil.example:1", true, true, false, false},
        {"localhost.evil.example:1", true, true, false, false},
        {"10.0.0.1:1", true, true, true, false},
        {"0.0.0.0:1", true, true, true, false},
        {"[::]:1", true, true, true, false},
        {"[::ffff:10.0.0.1]:1", true, true, true, false},
        {"127.0.0.1:65535", true, true, true, true},
        {"127.0.0.1:65536", false, false, false, false},
        {"127.0.0.1:", false, false, false, false},
        {"127.0.0.1:1@evil.example", false, false, false, false},
        {"127.0.0.1:1@evil.example:2", false, false, false, false},
        {"[::1]x:1", false, false, false, false},
        {"[::1", false, false, false, false},
        {"[localhost]:1", false, false, false, false},
        {"::1", false, false, false, false},
        {"[]", false, false, false, false},
        {":1", false, false, false, false},
        {"", false, false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wpk_address address;
        bool parses = wpk_address_parse(cases[i].text, strlen(cases[i].text), &address);
        if (parses != cases[i].parses ||
            (parses &&
             (address.has_port != cases[i].has_port || address.is_numeric != cases[i].is_numeric ||
              address.is_loopback != cases[i].is_loopback))) {
            fail_msg("%s: parses %d, port %d, numeric %d, loopback %d", cases[i].text, parses,
                     address.has_port, address.is_numeric, address.is_loopback);
        }
    }
}

static void long_hosts_are_refused(void **state)
{
    char text[512];
    struct wpk_address address;
    (void)state;
    memset(text, 'a', sizeof text);
    assert_true(wpk_address_parse(text, 255, &address));
    assert_false(wpk_address_parse(text, 256, &address));
}

static void urls(void **state)
{
    static const char *const own[] = {"tcp://127.0.0.1:1", "http://localhost/", "http://[::1]:1/a",
                                      "https://127.1.2.3?x"};
    static const char *const others[] = {"tcp://127.evil.example:7400",
                                         "http://localhost@evil.example",
                                         "http://evil.example/127.0.0.1",
                                         "http://127.0.0.1:1@evil.example/",
                                         "http://127.0.0.1\\@evil.example",
                                         "http://evil.example#@localhost",
                                         "127.0.0.1:1",
                                         "http://",
                                         ""};
    (void)state;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        assert_true(wpk_address_url_is_loopback(own[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (wpk_address_url_is_loopback(others[i])) {
            fail_msg("%s was taken for this machine", others[i]);
        }
    }
}

static void lists(void **state)
{
    char out[8];
    const char *rest = "a:1,b:2,,toolong:1";
    (void)state;
    assert_true(wpk_address_take(&rest, out, sizeof out));
    assert_string_equal(out, "a:1");
    assert_true(wpk_address_take(&rest, out, sizeof out));
    assert_string_equal(out, "b:2");
    assert_true(wpk_address_take(&rest, out, sizeof out));
    assert_string_equal(out, "");
    assert_true(wpk_address_take(&rest, out, sizeof out));
    assert_string_equal(out, "toolong");
    assert_false(wpk_address_take(&rest, out, sizeof out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_and_ports),
        cmocka_unit_test(long_hosts_are_refused),
        cmocka_unit_test(urls),
        cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
