/* SPDX-License-Identifier: Apache-2.0 */
/* The server against a raw socket: what a well-behaved client never sends. */
#include "coordinator/http/http.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "tests/raw_http.h"
#include "tests/share.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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
#include <unistd.h>

#include <cmocka.h>

#define BODY_MAX 100
#define DENIED_UID 65534

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
    pthread_mutex_t lock; /* guards `refused` */
    char refused[128];    /* who was last, and why */
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

static void note_refused(void *user, const char *peer, const char *reason, uint64_t untold)
{
    struct fixture *f = user;
    (void)untold;
    pthread_mutex_lock(&f->lock);
    snprintf(f->refused, sizeof f->refused, "%s: %s", peer, reason);
    pthread_mutex_unlock(&f->lock);
}

/* And a moment for the server to look at it. */
static void advance_ms(struct fixture *f, uint64_t ms)
{
    atomic_fetch_add(&f->clock.moved_ns, ms * WPK_NS_PER_MS);
    raw_http_pause_ms(600);
}

static wpk_err open_server(struct fixture *f, const char *address, struct wpk_http_server **out,
                           struct wpk_diag *diag)
{
    struct wpk_listen listener = {.address = address};
    struct wpk_http_options options = {.listeners = &listener,
                                       .listener_count = 1,
                                       .body_max = body_max,
                                       .clock = &f->clock.clock,
                                       .refused = note_refused,
                                       .wake = wake,
                                       .user = f};
    return wpk_http_server_open(&options, out, diag);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->clock.clock = (struct wpk_clock){.now_ns = moved_now, .wall_ns = wall};
    snprintf(f->directory, sizeof f->directory, "%s/wpk-http-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->address, sizeof f->address, "unix:%s/s", f->directory);
    f->fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&f->lock, NULL);
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
    pthread_mutex_destroy(&f->lock);
    free(f);
    return left;
}

static int dial(const struct fixture *f)
{
    return raw_http_dial_unix(f->address + 5);
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
    struct wpk_api_answer answer = {.status = 200, .content_type = "text/plain"};
    wpk_buf_append_text(&answer.body, body);
    wpk_http_server_respond(f->server, id, &answer);
    wpk_api_answer_fini(&answer);
}

static void asks_and_answers(void **state)
{
    struct fixture *f = *state;
    char heard[2048];
    struct wpk_http_request request;
    int fd = dial(f);
    raw_http_say(fd,
                 "POST /v1/x?a=1&b=%20z HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
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
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "200 OK"));
    assert_non_null(strstr(heard, "the end"));
    /* The connection serves another request. */
    raw_http_say(fd, "GET /second HTTP/1.1\r\nHost: x\r\n\r\n");
    next_request(f, &request);
    assert_string_equal(request.path, "/second");
    respond(f, request.id, "end");
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "200 OK"));
    close(fd);
}

static void expect_refusal(struct fixture *f, const char *text, const char *status)
{
    char heard[2048];
    struct wpk_http_request request;
    int fd = dial(f);
    raw_http_say(fd, text);
    raw_http_hear(fd, heard, sizeof heard);
    if (strstr(heard, status) == NULL) {
        fail_msg("to %.40s: %s", text, heard);
    }
    assert_false(wpk_http_server_next(f->server, &request));
    close(fd);
}

static uint64_t refused(const char *reason)
{
    return wpk_metric_counted(WPK_COUNTER_HTTP_REFUSED,
                              wpk_metric_value(WPK_LABEL_REFUSAL, reason));
}

static void refuses_before_reading(void **state)
{
    struct fixture *f = *state;
    uint64_t malformed = refused("malformed");
    char head[17 << 10] = "GET /x HTTP/1.1\r\nHost: x\r\nLong: ";
    size_t size = strlen(head);
    expect_refusal(f, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", "413");
    expect_refusal(f, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                   "HTTP/1.1 4");
    expect_refusal(f, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n", "400");
    expect_refusal(f, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "411");
    expect_refusal(f, "GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", "413");
    expect_refusal(f, "nonsense\r\n\r\n", ""); /* the library hangs up without a word */
    assert_int_equal(refused("malformed"), malformed);
    expect_refusal(f, "GET /x HTTP/1.1\r\n\r\n", "there is no Host header");
    assert_int_equal(refused("malformed"), malformed + 1);
    memset(head + size, 'y', (16 << 10) - size);
    snprintf(head + (16 << 10), sizeof head - (16 << 10), "\r\n\r\n");
    expect_refusal(f, head, "HTTP/1.1 431");
}

/* They are counted a moment after they are ended. */
static void expect_timeouts(uint64_t count)
{
    for (int i = 0; refused("timeout") < count && i < 5000; i++) {
        raw_http_pause_ms(1);
    }
    assert_int_equal(refused("timeout"), count);
}

static void too_slow_is_ended(void **state)
{
    struct fixture *f = *state;
    char heard[64];
    int fd = dial(f);
    raw_http_say(fd, "GET / HT");
    int answered = dial(f);
    uint64_t timeouts = refused("timeout");
    struct wpk_http_request request;
    raw_http_say(answered, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    next_request(f, &request);
    advance_ms(f, WPK_HTTP_REQUEST_MS / 2);
    raw_http_say(fd, "TP");
    raw_http_pause_ms(20);
    raw_http_say(fd, "/1"); /* refused here, if it were ended */
    advance_ms(f, WPK_HTTP_REQUEST_MS / 2 + 1);
    assert_int_equal(recv(fd, heard, sizeof heard, 0), 0);
    expect_timeouts(timeouts + 1);
    close(fd);
    /* A client that waits for the server's answer is not slow. */
    char whole[1024];
    respond(f, request.id, "end");
    raw_http_hear(answered, whole, sizeof whole);
    assert_non_null(strstr(whole, "200 OK"));
    /* Then it may be idle for a while. */
    advance_ms(f, WPK_HTTP_IDLE_MS - 1000);
    assert_int_equal(recv(answered, heard, sizeof heard, MSG_DONTWAIT), -1);
    advance_ms(f, WPK_HTTP_IDLE_MS); /* the server may have seen the end of the answer only now */
    assert_int_equal(recv(answered, heard, sizeof heard, 0), 0);
    expect_timeouts(timeouts + 2);
    close(answered);
}

/* A client that does not read its answer holds a connection, as one that never ends its request. */
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
    raw_http_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
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
    raw_http_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    next_request(f, &request);
    wpk_http_server_close(f->server);
    f->server = NULL;
    raw_http_hear(fd, heard, sizeof heard);
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

static uint64_t denied_counted(void)
{
    static const char name[] = "wpk_auth_denied_total{reason=\"user\"} ";
    struct wpk_buf text = {0};
    wpk_metrics_print(&text);
    const char *at = strstr(wpk_buf_text(&text), name);
    assert_non_null(at);
    uint64_t count = strtoull(at + sizeof name - 1, NULL, 10);
    wpk_buf_fini(&text);
    return count;
}

/* Even where the file's mode would let them. */
static void users_without_a_role_are_refused(void **state)
{
    struct fixture *f = *state;
    struct wpk_http_request request;
    char heard[1024];
    char said[sizeof f->refused];
    uint64_t counted = denied_counted();
    if (geteuid() != 0) {
        print_message("only root can be somebody else\n");
        skip();
    }
    assert_int_equal(chmod(f->directory, 0755), 0);
    assert_int_equal(chmod(f->address + 5, 0666), 0);
    become(DENIED_UID);
    int fd = dial(f);
    become(0);
    static const char secret[] = "GET /secret HTTP/1.1\r\nHost: x\r\n\r\n";
    (void)send(fd, secret, sizeof secret - 1, MSG_NOSIGNAL);
    assert_true(recv(fd, heard, sizeof heard, 0) <= 0);
    close(fd);
    snprintf(said, sizeof said, "unix: the user %s is none of the peers",
             getpwuid(DENIED_UID)->pw_name);
    pthread_mutex_lock(&f->lock);
    assert_string_equal(f->refused, said);
    pthread_mutex_unlock(&f->lock);
    assert_int_equal(denied_counted(), counted + 1);
    /* One that is listed is let in, as what he is. */
    struct wpk_http_peer peer = {.uid = DENIED_UID, .roles = WPK_ROLE_READ};
    struct wpk_http_options options = {.peers = &peer, .peer_count = 1, .listener_count = 1};
    assert_int_equal(wpk_http_server_reload(f->server, &options, NULL), WPK_OK);
    become(DENIED_UID);
    fd = dial(f);
    become(0);
    raw_http_say(fd, "GET /open HTTP/1.1\r\nHost: x\r\n\r\n");
    next_request(f, &request);
    assert_string_equal(request.path, "/open");
    assert_int_equal(request.identity.roles, WPK_ROLE_READ);
    assert_string_equal(request.identity.peer, "unix");
    assert_string_equal(request.identity.owner, getpwuid(DENIED_UID)->pw_name);
    respond(f, request.id, "end");
    raw_http_hear(fd, heard, sizeof heard);
    assert_non_null(strstr(heard, "200"));
    /* Until he is listed no more: what he has open goes with that. */
    options.peer_count = 0;
    assert_int_equal(wpk_http_server_reload(f->server, &options, NULL), WPK_OK);
    assert_int_equal(recv(fd, heard, sizeof heard, 0), 0);
    close(fd);
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

/* A mistyped address must not cost its owner a file. */
static void a_file_is_not_replaced(void **state)
{
    struct fixture *f = *state;
    struct wpk_http_server *server = NULL;
    struct wpk_diag diag = {0};
    char address[256];
    snprintf(address, sizeof address, "unix:%s/file", f->directory);
    int fd = open(address + 5, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(open_server(f, address, &server, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "is no socket"));
    assert_int_equal(unlink(address + 5), 0);
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
        cmocka_unit_test_setup_teardown(users_without_a_role_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_is_not_replaced, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
