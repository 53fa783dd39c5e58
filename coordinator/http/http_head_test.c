/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/http/http_head.h"

#include "coordinator/http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A head as a lenient library reads it, in place: lines end at CR LF or at a lone LF, at a NUL text
 * ends early, blanks after a colon are skipped. */
static const char *read_head(char *text, size_t size, struct wpk_http_head *head)
{
    char *at = text;
    char *end = text + size;
    char *target = strchr(text, ' ');
    *target++ = '\0';
    char *version = strchr(target, ' ');
    *version++ = '\0';
    for (char *line = version; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        assert_non_null(stop);
        *stop = '\0';
        if (stop > line && stop[-1] == '\r') {
            stop[-1] = '\0';
        }
        if (line == version) {
            wpk_http_head_begin(head, text, target, strlen(target), version);
        } else if (line[0] == '\0') {
            wpk_http_head_end(head, text, (size_t)(stop + 1 - text));
            return head->fault;
        } else {
            char *colon = strchr(line, ':');
            assert_non_null(colon);
            *colon = '\0';
            char *value = colon + 1 + strspn(colon + 1, " \t");
            wpk_http_head_add(head, line, strlen(line), value, strlen(value));
        }
        line = stop + 1;
    }
    (void)at;
    fail_msg("the head has no end");
    return NULL;
}

static void expect(const char *text, size_t size, const char *fault)
{
    char copy[8192];
    struct wpk_http_head head;
    assert_true(size < sizeof copy);
    memcpy(copy, text, size);
    copy[size] = '\0';
    const char *found = read_head(copy, size, &head);
    if (fault == NULL ? found != NULL : found == NULL || strstr(found, fault) == NULL) {
        fail_msg("%s: %s, not %s", text, found, fault);
    }
}

#define EXPECT(text, fault) expect(text, sizeof text - 1, fault)

static void takes_what_is_one_message(void **state)
{
    (void)state;
    EXPECT("GET / HTTP/1.1\r\n\r\n", NULL);
    EXPECT("GET / HTTP/1.0\r\nHost: x\r\n\r\n", NULL);
    EXPECT("GET /a?b=c HTTP/1.1\r\nHost:x\r\nA: \t b\tc\r\nEmpty:\r\n\r\n", NULL);
    EXPECT("POST / HTTP/1.1\r\ncontent-length: 5\r\nX: caf\xc3\xa9\r\n\r\n", NULL);
}

static void refuses_what_may_be_another(void **state)
{
    (void)state;
    EXPECT("GET / HTTP/1.1\nHost: x\r\n\r\n", "malformed");
    EXPECT("GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", "malformed");
    EXPECT("GET / HTTP/1.1\r\nHost: x\r\nA: b\n\r\n", "does not end in CR and LF");
    EXPECT("GET / HTTP/1.1\r\nHost: x\r\n\n", "does not end in CR and LF");
    EXPECT("GET / HTTP/1.1\r\nHost: x\0y\r\n\r\n", "does not end in CR and LF");
    EXPECT("GET / HTTP/1.1\r\nA: x\0y\r\nB: c\r\n\r\n", "malformed");
    EXPECT("GET / HTTP/1.1\r\nHost: x\r\n\0B: c\r\n\r\n", "does not end in CR and LF");
    EXPECT("GET / HTTP/1.1\r\nA: x\0b\n\n", "does not end in CR and LF");
    EXPECT("GET / HTTP/1.1\r\nContent-Length : 5\r\n\r\n", "malformed");
    EXPECT("GET / HTTP/1.1\r\n Folded: 5\r\n\r\n", "malformed");
    EXPECT("GET / HTTP/1.1\r\n: 5\r\n\r\n", "malformed");
    EXPECT("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", "malformed");
    EXPECT("GET / HTTP/1.1\r\nA(): b\r\n\r\n", "malformed");
    EXPECT("GET / HTTP/1.2\r\n\r\n", "request line");
    EXPECT("GET / HTTP/1.1 \r\n\r\n", "request line");
    EXPECT("GET  / HTTP/1.1\r\n\r\n", "request line");
    EXPECT("G\"T / HTTP/1.1\r\n\r\n", "request line");
    EXPECT("POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n", "twice");
    EXPECT("POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "twice");
    EXPECT("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
           "twice");
    EXPECT("POST / HTTP/1.1\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", "twice");
    char many[8192] = "GET / HTTP/1.1\r\n";
    for (int i = 0; i <= WPK_HTTP_HEADERS_MAX; i++) {
        size_t at = strlen(many);
        snprintf(many + at, sizeof many - at, "X-%d: y\r\n", i);
    }
    size_t at = strlen(many);
    snprintf(many + at, sizeof many - at, "\r\n");
    expect(many, at + 2, "too many");
}

/* Where the library has put a value elsewhere, it is no longer known what it was on the wire. */
static void refuses_what_was_moved(void **state)
{
    char text[] = "GET\0/\0HTTP/1.1\0\0A\0b\0\0\0";
    char elsewhere[] = "bc";
    struct wpk_http_head head;
    (void)state;
    wpk_http_head_begin(&head, text, text + 4, 1, text + 6);
    wpk_http_head_add(&head, text + 16, 1, text + 18, 1);
    wpk_http_head_end(&head, text, 23);
    assert_null(head.fault);
    wpk_http_head_begin(&head, text, text + 4, 1, text + 6);
    wpk_http_head_add(&head, text + 16, 1, elsewhere, 2);
    wpk_http_head_end(&head, text, 23);
    assert_non_null(head.fault);
}

static void finds_fields(void **state)
{
    char text[] = "POST / HTTP/1.1\r\nhOST: h\r\nContent-Length: 12\r\nIf-None-Match: \"a\"\r\n"
                  "Idempotency-Key: k\r\nAuthorization: bearer  s\r\n\r\n";
    struct wpk_http_head head;
    uint64_t length = 0;
    (void)state;
    assert_null(read_head(text, sizeof text - 1, &head));
    assert_string_equal(head.field[WPK_HTTP_HOST], "h");
    assert_string_equal(head.field[WPK_HTTP_IF_NONE_MATCH], "\"a\"");
    assert_string_equal(head.field[WPK_HTTP_IDEMPOTENCY_KEY], "k");
    assert_null(head.field[WPK_HTTP_TRANSFER_ENCODING]);
    assert_string_equal(wpk_http_bearer(head.field[WPK_HTTP_AUTHORIZATION]), "s");
    assert_null(wpk_http_bearer("Basic s"));
    assert_null(wpk_http_bearer(""));
    assert_true(wpk_http_parse_length(head.field[WPK_HTTP_CONTENT_LENGTH], &length));
    assert_int_equal(length, 12);
    static const char *const bad[] = {"",   "+1",  "-1",  "1 ",
                                      " 1", "0x1", "1,1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(wpk_http_parse_length(bad[i], &length));
    }
}

static void targets(void **state)
{
    static const char *const good[] = {"/", "/v1/jobs", "/v1/kernels?op=a%20b&x=%2F", "/a%2e"};
    static const char *const bad[] = {"",     "*",     "v1",           "http://x/", "/a b",
                                      "/%00", "/?%00", "/a%2fb",       "/%",        "/%4",
                                      "/%zz", "/%4g",  "/caf\xc3\xa9", "/a#b",      "/<"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_null(wpk_http_check_target(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (wpk_http_check_target(bad[i], strlen(bad[i])) == NULL) {
            fail_msg("%s is taken", bad[i]);
        }
    }
}

static void hosts(void **state)
{
    (void)state;
    assert_true(wpk_http_host_is("LocalHost", "localhost"));
    assert_true(wpk_http_host_is("localhost:8080", "localhost"));
    assert_true(wpk_http_host_is("[::1]:1", "[::1]"));
    assert_false(wpk_http_host_is("localhost.evil.org", "localhost"));
    assert_false(wpk_http_host_is("localhost:evil", "localhost"));
    assert_false(wpk_http_host_is("local", "localhost"));
    assert_false(wpk_http_host_is("", "localhost"));
}

static void etags(void **state)
{
    (void)state;
    assert_true(wpk_http_etag_matches("\"a\"", "\"a\""));
    assert_true(wpk_http_etag_matches("\"b\", \"a\"", "\"a\""));
    assert_true(wpk_http_etag_matches("\"b\",W/\"a\"", "\"a\""));
    assert_true(wpk_http_etag_matches("*", "\"a\""));
    assert_true(wpk_http_etag_matches("\"a\"", "W/\"a\""));
    assert_false(wpk_http_etag_matches("", "\"a\""));
    assert_false(wpk_http_etag_matches("\"ab\"", "\"a\""));
    assert_false(wpk_http_etag_matches("\"x,\"a\"", "\"a\"")); /* inside another's quotes */
    assert_false(wpk_http_etag_matches("a", "\"a\""));
    assert_false(wpk_http_etag_matches("\"", "\"a\""));
    assert_false(wpk_http_etag_matches(", ,", "\"a\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_is_one_message),
        cmocka_unit_test(refuses_what_may_be_another),
        cmocka_unit_test(refuses_what_was_moved),
        cmocka_unit_test(finds_fields),
        cmocka_unit_test(targets),
        cmocka_unit_test(hosts),
        cmocka_unit_test(etags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
