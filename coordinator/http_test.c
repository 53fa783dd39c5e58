/* SPDX-License-Identifier: Apache-2.0 */
/* The server against a raw socket: what a well-behaved client never sends. */
#include "coordinator/http.h"

#include "common/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define BODY_MAX 100
#define STRANGER 65534

/* The machine's clock, moved by hand. */
struct moved_clock {
    struct wpk_clock clock; /* first */
    atomic_ullong moved_ns;
};

struct fixture {
    struct moved_clock clock;
    char directory[64];
    char address[96];
    int fd;
    struct wpk_http_server *server;
};

static uint64_t moved_now(const struct wpk_clock *clock)
{
    const struct moved_clock *moved = (const struct moved_clock *)clock;
    return wpk_clock_now_ns(wpk_clock_system()) + atomic_load(&moved->moved_ns);
}

static uint64_t wall(const struct wpk_clock *clock)
{
    (void)clock;
    return wpk_clock_wall_ns(wpk_clock_system());
}

static size_t body_max(const char *method, const char *path)
{
    (void)path;
    return strcmp(method, "POST") == 0 ? BODY_MAX : 0;
}

static void wake(void *user)
{
    uint64_t one = 1;
    struct fixture *f = user;
    ssize_t written = write(f->fd, &one, sizeof one);
    (void)written;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* And a moment for the server to look at it. */
static void advance_ms(struct fixture *f, uint64_t ms)
{
    atomic_fetch_add(&f->clock.moved_ns, ms * WPK_NS_PER_MS);
    pause_ms(600);
}

static wpk_err open_server(struct fixture *f, const char *address, struct wpk_http_server **out,
                           struct wpk_diag *diag)
{
    struct wpk_http_listen listener = {.address = address, .fd = -1};
    struct wpk_http_options options = {.listeners = &listener,
                                       .listener_count = 1,
                                       .body_max = body_max,
                                       .clock = &f->clock.clock,
                                       .wake = wake,
                                       .user = f};
    return wpk_http_server_open(&options, out, diag);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->clock.clock = (struct wpk_clock){.now_ns = moved_now, .wall_ns = wall};
    snprintf(f->directory, sizeof f->directory, "/tmp/wpk-http-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->address, sizeof f->address, "unix:%s/s", f->directory);
    f->fd = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(open_server(f, f->address, &f->server, NULL), WPK_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    wpk_http_server_close(f->server);
    int left = rmdir(f->directory); /* the socket is gone */
    close(f->fd);
    free(f);
    return left;
}

static int dial_path(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    struct timeval patience = {.tv_sec = 5};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static int dial(const struct fixture *f)
{
    return dial_path(f->address + 5);
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* What comes until the other side closes, or is silent for too long. */
static void hear(int fd, char *out, size_t size)
{
    size_t at = 0;
    ssize_t got;
    while (at + 1 < size && (got = recv(fd, out + at, size - 1 - at, 0)) > 0) {
        at += (size_t)got;
        out[at] = '\0';
        if (strstr(out, "\r\n\r\n") != NULL && strstr(out, "end") != NULL) {
            break;
        }
    }
    out[at] = '\0';
}

static void next_request(struct fixture *f, struct wpk_http_request *request)
{
    while (!wpk_http_server_next(f->server, request)) {
        struct pollfd poll_fd = {.fd = f->fd, .events = POLLIN};
        assert_int_equal(poll(&poll_fd, 1, 5000), 1);
        uint64_t count;
        assert_int_equal(read(f->fd, &count, sizeof count), sizeof count);
    }
}

static void respond(struct fixture *f, uint64_t id, const char *body)
{
    struct wpk_http_response response = {
        .status = 200, .content_type = "text/plain", .body = body, .body_size = strlen(body)};
    wpk_http_server_respond(f->server, id, &response);
}

static void asks_and_answers(void **state)
{
    struct fixture *f = *state;
    char heard[2048];
    struct wpk_http_request request;
    int fd = dial(f);
    say(fd, "POST /v1/x?a=1&b=%20z HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Content-Length: 5\r\n\r\nhello");
    next_request(f, &request);
    assert_string_equal(request.method, "POST");
    assert_string_equal(request.path, "/v1/x");
    assert_string_equal(request.body, "hello");
    assert_string_equal(request.content_type, "application/json");
    assert_string_equal(wpk_http_query(&request, "a"), "1");
    assert_string_equal(wpk_http_query(&request, "b"), " z");
    assert_null(wpk_http_query(&request, "c"));
    respond(f, request.id, "the end");
    respond(f, request.id, "not again");
    hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "200 OK"));
    assert_non_null(strstr(heard, "the end"));
    /* The connection serves another request. */
    say(fd, "GET /second HTTP/1.1\r\nHost: x\r\n\r\n");
    next_request(f, &request);
    assert_string_equal(request.path, "/second");
    respond(f, request.id, "end");
    hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "200 OK"));
    close(fd);
}

static void expect_refusal(struct fixture *f, const char *text, const char *status)
{
    char heard[2048];
    struct wpk_http_request request;
    int fd = dial(f);
    say(fd, text);
    hear(fd, heard, sizeof heard);
    if (strstr(heard, status) == NULL) {
        fail_msg("to %.40s: %s", text, heard);
    }
    assert_false(wpk_http_server_next(f->server, &request));
    close(fd);
}

static void refuses_before_reading(void **state)
{
    struct fixture *f = *state;
    expect_refusal(f, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", "413");
    expect_refusal(f, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                   "HTTP/1.1 4");
    expect_refusal(f, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n", "400");
    expect_refusal(f, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "411");
    expect_refusal(f, "GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", "413");
    expect_refusal(f, "nonsense\r\n\r\n", ""); /* the library hangs up without a word */
}

static void too_slow_is_ended(void **state)
{
    struct fixture *f = *state;
    char heard[64];
    int fd = dial(f);
    say(fd, "GET / HT");
    int answered = dial(f);
    struct wpk_http_request request;
    say(answered, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    next_request(f, &request);
    advance_ms(f, WPK_HTTP_REQUEST_MS / 2);
    say(fd, "TP");
    pause_ms(20);
    say(fd, "/1"); /* refused here, if it were ended */
    advance_ms(f, WPK_HTTP_REQUEST_MS / 2 + 1);
    assert_int_equal(recv(fd, heard, sizeof heard, 0), 0);
    close(fd);
    /* Who waits for us is not slow. */
    char whole[1024];
    respond(f, request.id, "end");
    hear(answered, whole, sizeof whole);
    assert_non_null(strstr(whole, "200 OK"));
    close(answered);
}

/* Who does not take the answer occupies a connection as well as who does not end the question. */
static void too_slow_a_reader_is_ended(void **state)
{
    struct fixture *f = *state;
    struct wpk_http_request request;
    char heard[4096];
    size_t size = 8 << 20; /* more than sockets hold */
    char *body = malloc(size + 1);
    assert_non_null(body);
    memset(body, 'x', size);
    body[size] = '\0';
    int fd = dial(f);
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    next_request(f, &request);
    respond(f, request.id, body);
    free(body);
    ssize_t got = recv(fd, heard, sizeof heard, 0); /* the answer is on its way */
    assert_true(got > 0);
    advance_ms(f, WPK_HTTP_REQUEST_MS);
    got = recv(fd, heard, sizeof heard, 0); /* a large one may take longer */
    assert_true(got > 0);
    advance_ms(f, size * 1000 / 65536 + 1);
    size_t total = 2 * sizeof heard;
    while (total < size && (got = recv(fd, heard, sizeof heard, 0)) > 0) {
        total += (size_t)got;
    }
    assert_int_equal(got, 0);
    assert_true(total < size);
    close(fd);
}

static void unanswered_at_the_end(void **state)
{
    struct fixture *f = *state;
    char heard[1024];
    struct wpk_http_request request;
    int fd = dial(f);
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    next_request(f, &request);
    wpk_http_server_close(f->server);
    f->server = NULL;
    hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "503"));
    close(fd);
}

static void the_socket_is_private(void **state)
{
    struct fixture *f = *state;
    struct stat stat_of;
    assert_int_equal(stat(f->address + 5, &stat_of), 0);
    assert_int_equal(stat_of.st_mode & 0777, 0600);
}

/* Of this thread alone: the server's keep theirs. */
static void become(uid_t uid)
{
    assert_int_equal(syscall(SYS_setresuid, -1, uid, -1), 0);
}

/* Even where the file's mode would let them. */
static void strangers_are_refused(void **state)
{
    struct fixture *f = *state;
    struct wpk_http_request request;
    char heard[64];
    if (geteuid() != 0) {
        skip(); /* only root can be somebody else */
    }
    assert_int_equal(chmod(f->directory, 0755), 0);
    assert_int_equal(chmod(f->address + 5, 0666), 0);
    become(STRANGER);
    int fd = dial(f);
    become(0);
    static const char secret[] = "GET /secret HTTP/1.1\r\nHost: x\r\n\r\n";
    (void)send(fd, secret, sizeof secret - 1, MSG_NOSIGNAL);
    assert_true(recv(fd, heard, sizeof heard, 0) <= 0);
    close(fd);
    /* One that is listed is let in, as what he is. */
    struct wpk_http_peer peer = {.uid = STRANGER, .roles = WPK_ROLE_READ};
    struct wpk_http_options options = {.peers = &peer, .peer_count = 1, .listener_count = 1};
    assert_int_equal(wpk_http_server_reload(f->server, &options, NULL), WPK_OK);
    become(STRANGER);
    fd = dial(f);
    become(0);
    say(fd, "GET /open HTTP/1.1\r\nHost: x\r\n\r\n");
    next_request(f, &request);
    assert_string_equal(request.path, "/open");
    assert_int_equal(request.identity.roles, WPK_ROLE_READ);
    assert_string_equal(request.identity.peer, "unix");
    assert_string_equal(request.identity.owner, getpwuid(STRANGER)->pw_name);
    respond(f, request.id, "end");
    close(fd);
}

/* ---- TCP */

static int dial_tcp(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    struct timeval patience = {.tv_sec = 5};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
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

static bool serve(void *user, const struct wpk_http_request *request,
                  struct wpk_http_response *response)
{
    static char owner[] = "owner";
    (void)user;
    if (strcmp(request->path, "/queued") == 0) {
        return false;
    }
    assert_int_equal(request->id, 0);
    *response = (struct wpk_http_response){.status = 200,
                                           .content_type = "text/plain",
                                           .etag = "\"1\"",
                                           .body = "served: the end",
                                           .body_size = 15,
                                           .release = release,
                                           .owner = owner};
    return true;
}

static void open_tcp(struct fixture *f, struct wpk_auth *auth, struct wpk_http_server **out)
{
    struct wpk_http_listen listeners[] = {{.address = "127.0.0.1:0", .fd = -1},
                                          {.address = "[::1]:0", .fd = -1}};
    struct wpk_http_options options = {.listeners = listeners,
                                       .listener_count = 2,
                                       .auth = auth,
                                       .body_max = body_max,
                                       .serve = serve,
                                       .refused = on_refused,
                                       .wake = wake,
                                       .user = f};
    struct wpk_diag diag = {0};
    if (wpk_http_server_open(&options, out, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

static void ask_tcp(uint16_t port, const char *text, const char *expected)
{
    char heard[2048];
    int fd = dial_tcp(port);
    say(fd, text);
    hear(fd, heard, sizeof heard);
    if (strstr(heard, expected) == NULL) {
        fail_msg("to %s: %s", text, heard);
    }
    close(fd);
}

static void tcp_needs_a_token(void **state)
{
    struct fixture *f = *state;
    struct wpk_auth *auth = NULL;
    struct wpk_http_server *server = NULL;
    assert_int_equal(wpk_auth_new(&auth), WPK_OK);
    set_token(auth, "secret");
    open_tcp(f, auth, &server);
    uint16_t port = wpk_http_server_port(server, 0);
    assert_true(port > 0);
    assert_true(wpk_http_server_port(server, 1) > 0);
    assert_int_equal(wpk_http_server_port(server, 2), 0);
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
    int fd = dial_tcp(port);
    static const char ask[] =
        "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n";
    say(fd, ask);
    hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "200 OK"));
    set_token(auth, "another");
    say(fd, ask);
    hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "401"));
    close(fd);
    wpk_http_server_close(server);
    wpk_auth_free(auth);
}

static void served_at_once(void **state)
{
    struct fixture *f = *state;
    struct wpk_auth *auth = NULL;
    struct wpk_http_server *server = NULL;
    struct wpk_http_request request;
    char heard[2048];
    assert_int_equal(wpk_auth_new(&auth), WPK_OK);
    set_token(auth, "s");
    open_tcp(f, auth, &server);
    atomic_store(&released, 0);
    int fd = dial_tcp(wpk_http_server_port(server, 0));
    say(fd, "GET /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s\r\n\r\n");
    hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "ETag: \"1\""));
    assert_non_null(strstr(heard, "served: the end"));
    say(fd, "GET /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s\r\n"
            "If-None-Match: \"0\", \"1\"\r\nX: end\r\n\r\n"
            "GET /queued HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s\r\n\r\n");
    while (!wpk_http_server_next(server, &request)) {
        pause_ms(1);
    }
    assert_string_equal(request.identity.owner, "anna");
    assert_string_equal(request.identity.token_id, "0123456789abcdef");
    assert_string_equal(request.identity.peer, "127.0.0.1");
    static char owner[] = "owner";
    struct wpk_http_response response = {.status = 429,
                                         .content_type = "text/plain",
                                         .retry_after_s = 7,
                                         .body = "the end",
                                         .body_size = 7,
                                         .release = release,
                                         .owner = owner};
    wpk_http_server_respond(server, request.id, &response);
    wpk_http_server_respond(server, request.id, &response); /* too late: only released */
    hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "304 Not Modified"));
    if (strstr(heard, "429") == NULL) {
        hear(fd, heard, sizeof heard);
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
    struct fixture *f = *state;
    struct wpk_http_server *server = NULL;
    char address[128];
    char heard[1024];
    int fds[200];
    snprintf(address, sizeof address, "unix:%s/f", f->directory);
    struct wpk_http_listen listener = {.address = address, .fd = -1};
    struct wpk_http_options options = {.listeners = &listener,
                                       .listener_count = 1,
                                       .connections_max = 20,
                                       .body_max = body_max,
                                       .serve = serve,
                                       .wake = wake,
                                       .user = f};
    assert_int_equal(wpk_http_server_open(&options, &server, NULL), WPK_OK);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        fds[i] = dial_path(address + 5);
        if (i % 2 == 0) {
            say(fds[i], "GET / HTTP/1.1\r\nHos");
        }
    }
    int fd = dial_path(address + 5);
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, heard, sizeof heard);
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

static void a_socket_passed_on(void **state)
{
    struct fixture *f = *state;
    struct wpk_http_server *server = NULL;
    char heard[1024];
    char path[108];
    snprintf(path, sizeof path, "%s/passed", f->directory);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int passed = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(passed, (struct sockaddr *)&address, sizeof address), 0);
    struct wpk_http_listen listener = {.address = "http.socket", .fd = passed};
    struct wpk_http_options options = {.listeners = &listener,
                                       .listener_count = 1,
                                       .body_max = body_max,
                                       .serve = serve,
                                       .wake = wake,
                                       .user = f};
    assert_int_equal(wpk_http_server_open(&options, &server, NULL), WPK_EINVAL);
    assert_int_equal(fcntl(passed, F_GETFD), -1); /* it was the server's, to be closed */
    unlink(path);
    passed = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(passed, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(passed, 5), 0);
    listener.fd = passed;
    int fd = dial_path(path); /* before there is a server */
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(wpk_http_server_open(&options, &server, NULL), WPK_OK);
    hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "served: the end"));
    close(fd);
    wpk_http_server_close(server);
    assert_int_equal(unlink(path), 0); /* it is whose the socket was */
}

static void addresses(void **state)
{
    struct fixture *f = *state;
    struct wpk_http_server *server = NULL;
    struct wpk_diag diag = {0};
    assert_int_equal(open_server(f, f->address, &server, &diag), WPK_EBUSY);
    assert_int_equal(open_server(f, "0.0.0.0:0", &server, NULL), WPK_EINVAL);
    assert_int_equal(open_server(f, "127.0.0.1:99999", &server, NULL), WPK_EINVAL);
    assert_int_equal(open_server(f, "nonsense", &server, NULL), WPK_EINVAL);
    char address[256] = "unix:/tmp/";
    memset(address + 10, 'x', 150);
    assert_int_equal(open_server(f, address, &server, NULL), WPK_ERANGE);
    assert_null(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(asks_and_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_before_reading, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_slow_is_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_slow_a_reader_is_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unanswered_at_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_socket_is_private, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strangers_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tcp_needs_a_token, set_up, tear_down),
        cmocka_unit_test_setup_teardown(served_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_of_idle_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_socket_passed_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(addresses, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
