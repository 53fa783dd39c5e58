/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl dashboard: a port of this machine through which a browser reads the pages of a wpkd, by
 * the credentials of this command. wpkctl report: such a page as a file.
 *
 *      browser ──(loopback, ticket, then cookie)──▶ wpkctl ──(Unix socket, or token)──▶ wpkd
 *
 * The ticket in the URL is taken once, and becomes a cookie of this run. Only GETs of pages pass:
 * a browser with the cookie can read, and change nothing. One request is served at a time. */
#include "client/command.h"
#include "client/run_model.h"
#include "client/session.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "common/page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX 8192 /* bytes of a request */
#define HEAD_MS 5000  /* to receive it */
#define ONNX_ALONE "--onnx names the model of a plan, and no plan is given"
#define PENDING_MAX 16  /* connections that wait */
#define TARGET_MAX 1024 /* bytes of a path with its query */
#define COOKIE_NAME "wpkctl"

static struct wpk_option_list shapes; /* of a plan */

struct dashboard {
    struct wpk_session *session;
    int listener;
    unsigned port;
    char ticket[WPK_TOKEN_TEXT_SIZE]; /* "": it was taken */
    char cookie[WPK_TOKEN_TEXT_SIZE];
    struct wpk_buf plan; /* owned; the page of a plan; empty: none */
};

/* ---- one request */

/* The value of a header in a head; NULL: absent.   shape  size: of the value */
static const char *find_header(const char *head, const char *name, size_t *size)
{
    size_t name_size = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at != NULL; at = strstr(at, "\r\n")) {
        at += 2;
        if (strncasecmp(at, name, name_size) == 0 && at[name_size] == ':') {
            at += name_size + 1;
            at += strspn(at, " ");
            *size = strcspn(at, "\r");
            return at;
        }
    }
    return NULL;
}

/* True if the header contains the text. */
static bool header_has(const char *head, const char *name, const char *text)
{
    char value[HEAD_MAX];
    size_t size = 0;
    const char *at = find_header(head, name, &size);
    snprintf(value, sizeof(value), "%.*s", (int)size, at != NULL ? at : "");
    return at != NULL && strstr(value, text) != NULL;
}

/* A web page could have its own name resolved to this machine: the name is compared. */
static bool names_us(const struct dashboard *d, const char *head)
{
    char host[64];
    size_t size = 0;
    const char *value = find_header(head, "Host", &size);
    snprintf(host, sizeof(host), "127.0.0.1:%u", d->port);
    return value != NULL && size == strlen(host) && memcmp(value, host, size) == 0;
}

static void send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        data += sent;
        size -= (size_t)sent;
    }
}

static void answer(int fd, int status, const char *headers, const struct wpk_buf *body)
{
    struct wpk_buf out = {0};
    wpk_buf_printf(&out, "HTTP/1.1 %d -\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n",
                   status, headers, body != NULL ? body->size : 0);
    send_all(fd, wpk_buf_text(&out), out.size);
    if (body != NULL) {
        send_all(fd, wpk_buf_text(body), body->size);
    }
    wpk_buf_fini(&out);
}

static void answer_text(int fd, int status, const char *text)
{
    struct wpk_buf body = {0};
    wpk_buf_append_text(&body, text);
    answer(fd, status, "Content-Type: text/plain; charset=utf-8\r\n", &body);
    wpk_buf_fini(&body);
}

static void pass_on(struct dashboard *d, int fd, const char *head, const char *target)
{
    char etag[80] = "";
    size_t size = 0;
    const char *given = find_header(head, "If-None-Match", &size);
    if (given != NULL) {
        snprintf(etag, sizeof(etag), "%.*s", (int)size, given);
    }
    struct wpk_http_reply reply = {0};
    struct wpk_buf headers = {0};
    struct wpk_diag diag = {0};
    const struct wpk_http_client_request request = {
        .path = target, .if_none_match = etag, .wants_page_headers = true};
    wpk_err err = wpk_http_send(d->session->http, &request, &reply, &diag);
    if (err == WPK_OK) {
        wpk_buf_append_text(&headers, "Cache-Control: private, no-cache\r\n"
                                      "X-Content-Type-Options: nosniff\r\n");
        wpk_buf_append_text(&headers, wpk_buf_text(&reply.page_headers));
        answer(fd, reply.status, wpk_buf_text(&headers), &reply.body);
    } else {
        answer_text(fd, 502, diag.text);
    }
    wpk_buf_fini(&headers);
    wpk_http_reply_fini(&reply);
}

static void serve(struct dashboard *d, int fd, const char *head)
{
    char target[TARGET_MAX + 1] = "";
    char ticket[WPK_TOKEN_TEXT_SIZE + 16], cookie[WPK_TOKEN_TEXT_SIZE + 16], headers[256];
    snprintf(ticket, sizeof(ticket), "/ui/?ticket=%s", d->ticket);
    snprintf(cookie, sizeof(cookie), COOKIE_NAME "=%s", d->cookie);
    bool is_get = sscanf(head, "GET %1024[!-~] HTTP/1.1\r\n", target) == 1; /* TARGET_MAX */
    if (!is_get || !names_us(d, head)) {
        answer_text(fd, 403, "only the pages of wpkd are here\n");
    } else if (d->ticket[0] != '\0' && strcmp(target, ticket) == 0) {
        d->ticket[0] = '\0';
        snprintf(headers, sizeof(headers),
                 "Location: ./\r\nSet-Cookie: %s; HttpOnly; SameSite=Strict\r\n", cookie);
        answer(fd, 303, headers, NULL);
    } else if (!header_has(head, "Cookie", cookie)) {
        answer_text(fd, 403,
                    "the ticket was used already, or this browser keeps no cookies; "
                    "wpkctl dashboard prints another\n");
    } else if (strcmp(target, "/ui/plan") == 0 && d->plan.size > 0) {
        answer(fd, 200,
               "Content-Type: text/html; "
               "charset=utf-8\r\nContent-Security-Policy: " WPK_PAGE_REPORT_POLICY
               "\r\nX-Content-Type-Options: nosniff\r\n",
               &d->plan);
    } else if (!wpk_begins(target, "/ui/")) {
        answer(fd, 303, "Location: /ui/\r\n", NULL);
    } else {
        pass_on(d, fd, head, target);
    }
}

/* Read the head of a request; false: it did not come, or is too long. */
static bool read_head(int fd, char head[HEAD_MAX])
{
    size_t size = 0;
    head[0] = '\0';
    while (strstr(head, "\r\n\r\n") == NULL && size < HEAD_MAX - 1) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        ssize_t got =
            poll(&polled, 1, HEAD_MS) == 1 ? recv(fd, head + size, HEAD_MAX - 1 - size, 0) : 0;
        if (got <= 0) {
            return false;
        }
        size += (size_t)got;
        head[size] = '\0';
    }
    return strlen(head) == size && strstr(head, "\r\n\r\n") != NULL;
}

/* ---- the port */

static wpk_err open_port(struct dashboard *d, struct wpk_diag *diag)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    struct sockaddr *any = (struct sockaddr *)&address;
    d->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (d->listener < 0 || bind(d->listener, any, size) != 0 ||
        listen(d->listener, PENDING_MAX) != 0 || getsockname(d->listener, any, &size) != 0) {
        return wpk_fail(diag, WPK_ESYSTEM, "no port of this machine can be opened: %s",
                        strerror(errno));
    }
    d->port = ntohs(address.sin_port);
    wpk_crypto_random_token(d->ticket);
    wpk_crypto_random_token(d->cookie);
    return WPK_OK;
}

static volatile sig_atomic_t is_over;

static void end(int signal_number WPK_UNUSED)
{
    is_over = 1;
}

static wpk_err run(struct dashboard *d, struct wpk_diag *diag)
{
    const struct sigaction action = {.sa_handler = end};
    char head[HEAD_MAX];
    wpk_err err = open_port(d, diag);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (err == WPK_OK) {
        printf("http://127.0.0.1:%u/ui/?ticket=%s\n", d->port, d->ticket);
        fprintf(stderr, "The pages are there until Ctrl-C; the URL opens them once.\n");
        if (d->plan.size > 0) {
            fprintf(stderr, "Then the plan: http://127.0.0.1:%u/ui/plan\n", d->port);
        }
        fflush(stdout);
    }
    while (err == WPK_OK && !is_over) {
        struct pollfd polled = {.fd = d->listener, .events = POLLIN};
        int fd = poll(&polled, 1, 1000) == 1 ? accept4(d->listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd >= 0) {
            if (read_head(fd, head)) {
                serve(d, fd, head);
            }
            close(fd);
        }
        err = wpk_session_tend(d->session, diag);
    }
    if (d->listener >= 0) {
        close(d->listener);
    }
    return err;
}

enum wpk_exit wpk_command_dashboard(struct wpk_invocation *call)
{
    struct wpk_session_options given = {.need = WPK_SESSION_HISTORY};
    const char *plan = NULL, *onnx = NULL;
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(given), WPK_PLAN_SHAPE_OPTION_ROW(shapes),
        WPK_ARGS_TEXT("plan", "FILE", "show this plan of a model, too", &plan),
        WPK_ARGS_TEXT("onnx", "MODEL.onnx", "the plan's model", &onnx), WPK_ARGS_END};
    struct wpk_session session = {0};
    struct dashboard dashboard = {.session = &session, .listener = -1};
    if (!wpk_command_begin(call, options, 0, 0)) {
        return call->status;
    }
    wpk_err err = plan == NULL && onnx != NULL ? wpk_fail(&call->diag, WPK_EINVAL, ONNX_ALONE)
                  : plan != NULL
                      ? wpk_plan_show(plan, &shapes, true, onnx, &dashboard.plan, &call->diag)
                      : WPK_OK;
    err = err == WPK_OK ? wpk_session_open(call->context, &given, &session, &call->diag) : err;
    err = err == WPK_OK ? run(&dashboard, &call->diag) : err;
    wpk_session_close(&session);
    wpk_buf_fini(&dashboard.plan);
    return wpk_command_end(call, err);
}

enum wpk_exit wpk_command_report(struct wpk_invocation *call)
{
    struct wpk_session_options given = {.need = WPK_SESSION_HISTORY};
    const char *op = NULL, *path = NULL, *onnx = NULL;
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(given),
        WPK_ARGS_TEXT("op", "NAME", "the operator that is shown in full; default: the first", &op),
        WPK_ARGS_OUTPUT("where the HTML goes", &path),
        WPK_ARGS_TEXT("onnx", "MODEL.onnx", "a plan's model, whose own graph is shown, too", &onnx),
        WPK_PLAN_SHAPE_OPTION_ROW(shapes),
        WPK_ARGS_END,
    };
    struct wpk_session session = {0};
    struct wpk_http_reply reply = {0};
    struct wpk_buf target = {0};
    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    const char *what = call->args.operands[0];
    wpk_err err = WPK_OK;
    bool is_plan = !wpk_session_is_job_id(what, NULL) && access(what, F_OK) == 0;
    if (path == NULL) {
        err = wpk_fail(&call->diag, WPK_EINVAL, "-o says where the HTML goes");
    } else if (is_plan) {
        err = wpk_plan_show(what, &shapes, true, onnx, &reply.body, &call->diag);
    } else if (onnx != NULL) {
        err = wpk_fail(&call->diag, WPK_EINVAL, ONNX_ALONE);
    } else if (!wpk_session_is_job_id(what, &call->diag)) {
        err = WPK_EINVAL;
    }
    wpk_buf_printf(&target, "/ui/report?id=%s", what);
    if (op != NULL) {
        wpk_buf_append_text(&target, "&op=");
        wpk_http_escape(op, &target);
    }
    if (err == WPK_OK && !is_plan) {
        err = wpk_session_open(call->context, &given, &session, &call->diag);
        err = err == WPK_OK
                  ? wpk_session_ask(&session, wpk_buf_text(&target), NULL, &reply, &call->diag)
                  : err;
    }
    err = err == WPK_OK ? wpk_fs_write(path, reply.body.data, reply.body.size, 0666, &call->diag)
                        : err;
    wpk_buf_fini(&target);
    wpk_http_reply_fini(&reply);
    wpk_session_close(&session);
    return wpk_command_end(call, err);
}
