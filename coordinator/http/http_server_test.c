/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners of every kind, tokens, answers from the server's own threads, and being full. */
#include "coordinator/http/http.h"
#include "coordinator/http/http_parts.h"

#include "common/metrics.h"
#include "tests/raw_http.h"
#include "tests/share.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/wpk-http-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(directory));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(directory); /* the sockets are gone */
}

static size_t body_max(const char *method, const char *path)
{
    (void)path;
    return strcmp(method, "POST") == 0 ? 2 * WPK_HTTP_SMALL_MAX : 0;
}

static void wake(void *user)
{
    (void)user;
}

static void set_token(struct wpk_auth *auth, const char *secret)
{
    struct wpk_auth_token token = {.id = "0123456789abcdef", .owner = "anna", .roles = 3};
    wpk_crypto_sha256(secret, strlen(secret), token.hash);
    assert_int_equal(wpk_auth_set(auth, &token, 1), WPK_OK);
}

static atomic_int told; /* refusals of credentials, and those that were not worth a call */
static atomic_int untold_count;

static void on_refused(void *user, const char *peer, const char *reason, uint64_t untold)
{
    (void)user;
    atomic_fetch_add(&told, 1);
    atomic_fetch_add(&untold_count, (int)untold);
    assert_string_equal(peer, "127.0.0.1");
    assert_true(strlen(reason) > 0);
}

/* Answers what is asked on the server's thread, from memory that is only lent. */
static atomic_int released;

static void release(void *owner)
{
    assert_string_equal(owner, "owner");
    atomic_fetch_add(&released, 1);
}

static bool serve(void *user, const struct wpk_http_request *request, struct wpk_api_answer *answer)
{
    static char owner[] = "owner";
    (void)user;
    if (strcmp(request->path, "/queued") == 0) {
        return false;
    }
    assert_int_equal(request->id, 0);
    *answer = (struct wpk_api_answer){.status = 200,
                                      .content_type = "text/plain",
                                      .etag = "\"1\"",
                                      .borrowed = "served: the end",
                                      .borrowed_size = 15,
                                      .release = release,
                                      .owner = owner};
    return true;
}

static void open_tcp(struct wpk_auth *auth, struct wpk_http_server **out)
{
    struct wpk_listen listeners[] = {{.address = "127.0.0.1:0"}, {.address = "[::1]:0"}};
    struct wpk_http_options options = {.listeners = listeners,
                                       .listener_count = 2,
                                       .auth = auth,
                                       .body_max = body_max,
                                       .serve = serve,
                                       .refused = on_refused,
                                       .wake = wake};
    struct wpk_diag diag = {0};
    if (wpk_http_server_open(&options, out, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

static void ask_tcp(uint16_t port, const char *text, const char *expected)
{
    char heard[2048];
    int fd = raw_http_dial_loopback(port);
    raw_http_say(fd, text);
    raw_http_hear(fd, heard, sizeof heard);
    if (strstr(heard, expected) == NULL) {
        fail_msg("to %s: %s", text, heard);
    }
    close(fd);
}

static void tcp_needs_a_token(void **state)
{
    (void)state;
    struct wpk_auth *auth = NULL;
    struct wpk_http_server *server = NULL;
    auth = wpk_auth_new();
    set_token(auth, "secret");
    open_tcp(auth, &server);
    uint16_t port = server->listeners[0].port;
    assert_true(port > 0);
    assert_true(server->listeners[1].port > 0);
    ask_tcp(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "WWW-Authenticate: Bearer realm=\"wpkd\"");
    ask_tcp(port, "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n",
            "there is no such token");
    ask_tcp(port, "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic secret\r\n\r\n",
            "the scheme has to be Bearer");
    ask_tcp(port, "GET / HTTP/1.1\r\nHost: evil.org\r\nAuthorization: Bearer secret\r\n\r\n",
            "403");
    ask_tcp(port, "GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\nAuthorization: Bearer secret\r\n\r\n",
            "served: the end");
    assert_int_equal(atomic_load(&told), 3);
    for (int i = 0; i < 2 * WPK_HTTP_REFUSALS_MAX; i++) {
        ask_tcp(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "401");
    }
    assert_true(atomic_load(&told) <= 2 * WPK_HTTP_REFUSALS_MAX); /* of this second and the next */
    /* A token that is taken away is refused on a connection that it was good for. */
    char heard[2048];
    int fd = raw_http_dial_loopback(port);
    static const char ask[] =
        "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n";
    raw_http_say(fd, ask);
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "200 OK"));
    set_token(auth, "another");
    raw_http_say(fd, ask);
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "401"));
    close(fd);
    wpk_http_server_close(server);
    wpk_auth_free(auth);
}

static void served_at_once(void **state)
{
    (void)state;
    struct wpk_auth *auth = NULL;
    struct wpk_http_server *server = NULL;
    struct wpk_http_request request;
    char heard[2048];
    auth = wpk_auth_new();
    set_token(auth, "s");
    open_tcp(auth, &server);
    atomic_store(&released, 0);
    int fd = raw_http_dial_loopback(server->listeners[0].port);
    raw_http_say(fd, "GET /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s\r\n\r\n");
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "ETag: \"1\""));
    assert_non_null(strstr(heard, "served: the end"));
    raw_http_say(fd, "GET /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s\r\n"
                     "If-None-Match: \"0\", \"1\"\r\nX: end\r\n\r\n"
                     "GET /queued HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s\r\n\r\n");
    while (!wpk_http_server_next(server, &request)) {
        raw_http_pause_ms(1);
    }
    assert_string_equal(request.identity.owner, "anna");
    assert_string_equal(request.identity.token_id, "0123456789abcdef");
    assert_string_equal(request.identity.peer, "127.0.0.1");
    static char owner[] = "owner";
    for (int i = 0; i < 2; i++) { /* the second one is too late, and only released */
        struct wpk_api_answer answer = {.status = 429,
                                        .content_type = "text/plain",
                                        .retry_after_s = 7,
                                        .borrowed = "the end",
                                        .borrowed_size = 7,
                                        .release = release,
                                        .owner = owner};
        wpk_http_server_respond(server, request.id, &answer);
        wpk_api_answer_fini(&answer);
    }
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "304 Not Modified"));
    if (strstr(heard, "429") == NULL) {
        raw_http_hear(fd, heard, sizeof heard);
    }
    assert_non_null(strstr(heard, "Retry-After: 7"));
    assert_null(strstr(heard, "served"));
    close(fd);
    wpk_http_server_close(server);
    wpk_auth_free(auth);
    assert_int_equal(atomic_load(&released), 4);
}

/* Ten connections for each that is allowed: the last one is answered at once. */
static void full_of_idle_ones(void **state)
{
    (void)state;
    struct wpk_http_server *server = NULL;
    char address[128];
    char heard[1024];
    int fds[200];
    snprintf(address, sizeof address, "unix:%s/f", directory);
    struct wpk_listen listener = {.address = address};
    struct wpk_http_options options = {.listeners = &listener,
                                       .listener_count = 1,
                                       .connections_max = 20,
                                       .body_max = body_max,
                                       .serve = serve,
                                       .wake = wake};
    assert_int_equal(wpk_http_server_open(&options, &server, NULL), WPK_OK);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        fds[i] = raw_http_dial_unix(address + 5);
        if (i % 2 == 0) {
            raw_http_say(fds[i], "GET / HTTP/1.1\r\nHos");
        }
    }
    int fd = raw_http_dial_unix(address + 5);
    raw_http_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "served: the end"));
    close(fd);
    int open_count = 0;
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        char byte;
        open_count += recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
        close(fds[i]);
    }
    assert_true(open_count <= 20);
    assert_true(open_count >= 5);
    wpk_http_server_close(server);
}

/* Both wait for their answers, so neither can be ended for a third one. */
static void full_of_those_that_wait(void **state)
{
    (void)state;
    struct wpk_http_server *server = NULL;
    struct wpk_http_request request;
    char address[128];
    char byte;
    int fds[3];
    unsigned limit = wpk_metric_value(WPK_LABEL_REFUSAL, "limit");
    uint64_t refused = wpk_metric_counted(WPK_COUNTER_HTTP_REFUSED, limit);
    int64_t open_count = wpk_metric_gauged(WPK_GAUGE_HTTP_CONNECTIONS, 0);
    snprintf(address, sizeof address, "unix:%s/w", directory);
    struct wpk_listen listener = {.address = address};
    struct wpk_http_options options = {.listeners = &listener,
                                       .listener_count = 1,
                                       .connections_max = 2,
                                       .body_max = body_max,
                                       .serve = serve,
                                       .wake = wake};
    assert_int_equal(wpk_http_server_open(&options, &server, NULL), WPK_OK);
    for (int i = 0; i < 2; i++) {
        fds[i] = raw_http_dial_unix(address + 5);
        raw_http_say(fds[i], "GET /queued HTTP/1.1\r\nHost: x\r\n\r\n");
        while (!wpk_http_server_next(server, &request)) {
            raw_http_pause_ms(1);
        }
    }
    fds[2] = raw_http_dial_unix(address + 5);
    assert_int_equal(recv(fds[2], &byte, 1, 0), 0);
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_HTTP_REFUSED, limit), refused + 1);
    assert_int_equal(wpk_metric_gauged(WPK_GAUGE_HTTP_CONNECTIONS, 0), open_count + 2);
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
    wpk_http_server_close(server);
    assert_int_equal(wpk_metric_gauged(WPK_GAUGE_HTTP_CONNECTIONS, 0), open_count);
}

static void a_socket_passed_on(void **state)
{
    (void)state;
    struct wpk_http_server *server = NULL;
    char heard[1024];
    char path[108];
    snprintf(path, sizeof path, "%s/passed", directory);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int passed = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(passed, (struct sockaddr *)&address, sizeof address), 0);
    struct wpk_listen listener = {.address = "http.socket", .fd = passed};
    struct wpk_http_options options = {.listeners = &listener,
                                       .listener_count = 1,
                                       .body_max = body_max,
                                       .serve = serve,
                                       .wake = wake};
    assert_int_equal(wpk_http_server_open(&options, &server, NULL), WPK_EINVAL);
    assert_int_equal(fcntl(passed, F_GETFD), -1); /* it was the server's, to be closed */
    unlink(path);
    passed = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(passed, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(passed, 5), 0);
    listener.fd = passed;
    int fd = raw_http_dial_unix(path); /* before there is a server */
    raw_http_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(wpk_http_server_open(&options, &server, NULL), WPK_OK);
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "served: the end"));
    close(fd);
    wpk_http_server_close(server);
    assert_int_equal(unlink(path), 0); /* it is whose the socket was */
}

/* Large bodies are counted, of all connections together, until their exchange releases them. */
static void large_bodies_are_bounded(void **state)
{
    (void)state;
    struct wpk_http_server *server = calloc(1, sizeof *server);
    struct wpk_http_exchange first = {.server = server};
    struct wpk_http_exchange second = {.server = server};
    assert_non_null(server);
    pthread_mutex_init(&server->lock, NULL);
    assert_true(wpk_http_exchange_hold(&first, WPK_HTTP_HELD_MAX - WPK_HTTP_SMALL_MAX));
    assert_false(wpk_http_exchange_hold(&second, WPK_HTTP_SMALL_MAX + 1));
    assert_true(wpk_http_exchange_hold(&second, WPK_HTTP_SMALL_MAX));
    assert_int_equal(second.held, 0);
    wpk_http_exchange_release(&first);
    assert_int_equal(server->held, 0);
    assert_true(wpk_http_exchange_hold(&second, WPK_HTTP_SMALL_MAX + 1));
    assert_int_equal(server->held, WPK_HTTP_SMALL_MAX + 1);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

/* A large body beyond the limit is refused, and the client is told to retry. */
static void a_large_body_too_many(void **state)
{
    (void)state;
    struct wpk_http_server *server = NULL;
    char address[128];
    char heard[1024];
    snprintf(address, sizeof address, "unix:%s/l", directory);
    struct wpk_listen listener = {.address = address};
    struct wpk_http_options options = {.listeners = &listener,
                                       .listener_count = 1,
                                       .body_max = body_max,
                                       .serve = serve,
                                       .wake = wake};
    assert_int_equal(wpk_http_server_open(&options, &server, NULL), WPK_OK);
    struct wpk_http_exchange other = {.server = server};
    assert_true(wpk_http_exchange_hold(&other, 128 << 20));
    int fd = raw_http_dial_unix(address + 5);
    raw_http_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n");
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "503"));
    assert_non_null(strstr(heard, "Retry-After: 1\r\n"));
    close(fd);
    wpk_http_exchange_release(&other);
    wpk_http_server_close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tcp_needs_a_token, set_up, tear_down),
        cmocka_unit_test_setup_teardown(served_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_of_idle_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_of_those_that_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_socket_passed_on, set_up, tear_down),
        cmocka_unit_test(large_bodies_are_bounded),
        cmocka_unit_test_setup_teardown(a_large_body_too_many, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
