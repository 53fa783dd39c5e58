/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries whose strictness cannot be seen: what wpkd asks of libmicrohttpd goes through here
 * (meson.build wraps it). */
#include "coordinator/http/http.h"
#include "coordinator/http/http_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static enum { AS_IT_IS, COPIES_HEADERS, HIDES_ENDS } library;

static char elsewhere[256];

struct MHD_Connection;

/* As microhttpd.h has it; its enums are ints here. */
typedef int (*header_fn)(void *user, int kind, const char *name, size_t name_size,
                         const char *value, size_t value_size);

struct wrapped {
    header_fn iterator;
    void *user;
};

int __real_MHD_get_connection_values_n(struct MHD_Connection *connection, int kind,
                                       header_fn iterator, void *user);
int __wrap_MHD_get_connection_values_n(struct MHD_Connection *connection, int kind,
                                       header_fn iterator, void *user);
void __real_wpk_http_head_end(struct wpk_http_head *head, const char *method, size_t size);
void __wrap_wpk_http_head_end(struct wpk_http_head *head, const char *method, size_t size);

static int pass_copy(void *user, int kind, const char *name, size_t name_size, const char *value,
                     size_t value_size)
{
    const struct wrapped *wrapped = user;
    snprintf(elsewhere, sizeof elsewhere, "%.*s", (int)value_size, value != NULL ? value : "");
    return wrapped->iterator(wrapped->user, kind, name, name_size, elsewhere, value_size);
}

int __wrap_MHD_get_connection_values_n(struct MHD_Connection *connection, int kind,
                                       header_fn iterator, void *user)
{
    struct wrapped wrapped = {iterator, user};
    return library == COPIES_HEADERS
               ? __real_MHD_get_connection_values_n(connection, kind, pass_copy, &wrapped)
               : __real_MHD_get_connection_values_n(connection, kind, iterator, user);
}

/* As if the head were as long as its parts, whatever ended its lines. */
void __wrap_wpk_http_head_end(struct wpk_http_head *head, const char *method, size_t size)
{
    if (library != HIDES_ENDS) {
        __real_wpk_http_head_end(head, method, size);
    }
}

static size_t body_max(const char *method, const char *path)
{
    (void)method;
    (void)path;
    return 0;
}

static wpk_err open_server(struct wpk_diag *diag)
{
    char directory[] = "/tmp/wpk-http-XXXXXX";
    char address[64];
    struct wpk_http_server *server = NULL;
    assert_non_null(mkdtemp(directory));
    snprintf(address, sizeof address, "unix:%s/s", directory);
    const struct wpk_listen listen = {.address = address};
    const struct wpk_http_options options = {
        .listeners = &listen, .listener_count = 1, .body_max = body_max};
    wpk_err err = wpk_http_server_open(&options, &server, diag);
    if (err == WPK_OK) {
        wpk_http_server_close(server);
    }
    assert_int_equal(rmdir(directory), 0);
    return err;
}

static void a_library_that_is_known(void **state)
{
    struct wpk_diag diag = {0};
    (void)state;
    library = AS_IT_IS;
    assert_int_equal(open_server(&diag), WPK_OK);
}

static void expect_refusal(const char *reason)
{
    struct wpk_diag diag = {0};
    assert_int_equal(open_server(&diag), WPK_EUNSUPPORTED);
    if (strstr(diag.text, reason) == NULL || strstr(diag.text, "install version 0.9.") == NULL) {
        fail_msg("%s", diag.text);
    }
}

static void a_library_that_copies_headers(void **state)
{
    (void)state;
    library = COPIES_HEADERS;
    expect_refusal("cannot see how a request was sent");
}

static void a_library_that_hides_how_lines_end(void **state)
{
    (void)state;
    library = HIDES_ENDS;
    expect_refusal("would take a request with a lone LF at its end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_that_is_known),
        cmocka_unit_test(a_library_that_copies_headers),
        cmocka_unit_test(a_library_that_hides_how_lines_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
