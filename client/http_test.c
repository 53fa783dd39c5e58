/* SPDX-License-Identifier: Apache-2.0 */
#include "client/http.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static wpk_err try(const char *url, const char *token, bool insecure, struct wpk_diag *diag)
{
    const struct wpk_http_client_options options = {
        .url = url, .token = token, .insecure = insecure};
    struct wpk_http *http = NULL;
    wpk_err err = wpk_http_open(&options, &http, diag);
    wpk_http_close(http);
    return err;
}

static void a_token_stays_secret(void **state)
{
    static const char *const exposed[] = {
        "http://far.example:8080", "http://10.0.0.1:8080", "http://127.evil.example:8080",
        "http://127.0.0.1:8080@evil.example", "https://far.example,http://far.example"};
    static const char *const fine[] = {"unix:/s",
                                       "https://far.example",
                                       "http://127.0.0.1:8080",
                                       "http://[::1]:8080/",
                                       "http://localhost:8080",
                                       "https://far.example,unix:/s"};
    (void)state;
    for (size_t i = 0; i < sizeof exposed / sizeof exposed[0]; i++) {
        struct wpk_diag diag = {0};
        if (try(exposed[i], "secret", false, &diag) != WPK_EINVAL) {
            fail_msg("%s would see the token", exposed[i]);
        }
        assert_non_null(strstr(diag.text, "--insecure"));
        assert_int_equal(try(exposed[i], "secret", true, NULL), WPK_OK);
        assert_int_equal(try(exposed[i], "", false, NULL), WPK_OK);
    }
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        assert_int_equal(try(fine[i], "secret", false, NULL), WPK_OK);
    }
}

/* Listens on loopback, and gives out the port. */
static int listen_loopback(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void answer_once(int fd)
{
    static const char answer[] = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
    char request[4096];
    int connection = accept(fd, NULL, NULL);
    bool done = connection >= 0 && read(connection, request, sizeof request) > 0 &&
                write(connection, answer, sizeof answer - 1) > 0;
    _exit(done ? 0 : 1);
}

/* The environment's proxy is for what lies outside: here it is nowhere at all. */
static void no_proxy_for_this_machine(void **state)
{
    const struct wpk_http_client_request request = {.path = "/v1/status"};
    struct wpk_http_reply reply = {0};
    struct wpk_http *http = NULL;
    char url[64];
    unsigned port = 0;
    (void)state;
    int fd = listen_loopback(&port);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        answer_once(fd);
    }
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    /* At the first of two servers nobody listens. */
    snprintf(url, sizeof url, "unix:/nowhere,http://127.0.0.1:%u", port);
    const struct wpk_http_client_options options = {.url = url, .token = "secret"};
    assert_int_equal(wpk_http_open(&options, &http, NULL), WPK_OK);
    wpk_err err = wpk_http_send(http, &request, &reply, NULL);
    assert_int_equal(err, WPK_OK);
    assert_int_equal(reply.status, 204);
    wpk_http_reply_fini(&reply);
    wpk_http_close(http);
    close(fd);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* As wpkd does with users of its machine that it does not know. */
static void turn_away(int fd)
{
    for (;;) {
        close(accept(fd, NULL, NULL));
    }
}

static void whoever_is_turned_away_reads_why(void **state)
{
    const struct wpk_http_client_request request = {.path = "/v1/status"};
    struct wpk_http_reply reply = {0};
    struct wpk_http *http = NULL;
    struct wpk_diag diag = {0};
    char folder[] = "/tmp/wpk_http_test.XXXXXX";
    char url[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/s", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        turn_away(fd);
    }
    snprintf(url, sizeof url, "unix:%s/s", folder);
    const struct wpk_http_client_options options = {.url = url};
    assert_int_equal(wpk_http_open(&options, &http, NULL), WPK_OK);
    assert_int_equal(wpk_http_send(http, &request, &reply, &diag), WPK_EACCES);
    assert_non_null(strstr(diag.text, "one of its peers"));
    wpk_http_reply_fini(&reply);
    wpk_http_close(http);
    close(fd);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    unlink(address.sun_path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_stays_secret),
        cmocka_unit_test(no_proxy_for_this_machine),
        cmocka_unit_test(whoever_is_turned_away_reads_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
