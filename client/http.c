/* SPDX-License-Identifier: Apache-2.0 */
#include "client/http.h"

#include "common/net.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_MS 5000
#define REQUEST_MS 30000
#define TURNED_AWAY_MS 200

struct wpk_http {
    CURL *curl;                    /* owned; kept, so that connections are reused */
    char urls[WPK_HTTP_URL_MAX];   /* all servers */
    const char *next;              /* those after the one of now */
    char base[WPK_HTTP_URL_MAX];   /* of the one of now, without the last '/' */
    char socket[WPK_HTTP_URL_MAX]; /* "" for TCP */
    char *token;                   /* owned; NULL: none */
    char *ca;                      /* owned; NULL: the system's */
    bool is_own;                   /* wpkd is on this machine */
};

/* NULL for "" too. */
static char *copy_text(const char *from)
{
    return from != NULL && from[0] != '\0' ? WPK_DEMAND(strdup(from)) : NULL;
}

static wpk_err check(const struct wpk_http_client_options *options, const char *url,
                     struct wpk_diag *diag)
{
    bool local = wpk_begins(url, "unix:");
    bool plain = wpk_begins(url, "http://");
    if (!local && !plain && !wpk_begins(url, "https://")) {
        wpk_diag_set(diag, "'%s' is not unix:PATH, http://HOST:PORT or https://HOST:PORT", url);
    } else if (strlen(options->url) >= WPK_HTTP_URL_MAX ||
               (local && url[strlen("unix:")] == '\0')) {
        wpk_diag_set(diag, "the URL of wpkd is empty or too long; --server names it");
    } else if (plain && options->token != NULL && options->token[0] != '\0' && !options->insecure &&
               !wpk_address_url_is_loopback(url)) {
        wpk_diag_set(
            diag, "%s is another machine: the token goes over https://, or with --insecure", url);
    } else {
        return WPK_OK;
    }
    return WPK_EINVAL;
}

/* Go on to the next server, after the last to the first. */
static void turn(struct wpk_http *http)
{
    char url[WPK_HTTP_URL_MAX];
    http->next = *http->next != '\0' ? http->next : http->urls;
    bool local = wpk_address_take(&http->next, url, sizeof url) && wpk_begins(url, "unix:");
    http->is_own = local || wpk_address_url_is_loopback(url);
    snprintf(http->base, sizeof(http->base), "%s", local ? "http://localhost" : url);
    snprintf(http->socket, sizeof(http->socket), "%s", local ? url + strlen("unix:") : "");
    while (http->base[strlen(http->base) - 1] == '/') {
        http->base[strlen(http->base) - 1] = '\0';
    }
}

wpk_err wpk_http_open(const struct wpk_http_client_options *options, struct wpk_http **out,
                      struct wpk_diag *diag)
{
    char url[WPK_HTTP_URL_MAX];
    WPK_ASSERT(options->url != NULL);
    wpk_err err;
    const char *rest = options->url;
    do {
        (void)wpk_address_take(&rest, url, sizeof url);
        err = check(options, url, diag);
    } while (err == WPK_OK && *rest != '\0');
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_http *http = WPK_DEMAND(calloc(1, sizeof(*http)));
    http->curl = WPK_DEMAND(curl_easy_init());
    http->token = copy_text(options->token);
    http->ca = copy_text(options->ca);
    snprintf(http->urls, sizeof(http->urls), "%s", options->url);
    http->next = http->urls;
    turn(http);
    *out = http;
    return WPK_OK;
}

void wpk_http_close(struct wpk_http *http)
{
    if (http != NULL) {
        curl_easy_cleanup(http->curl);
        free(http->token);
        free(http->ca);
        free(http);
    }
}

static size_t keep_body(char *data, size_t size, size_t count, void *user)
{
    struct wpk_buf *body = user;

    wpk_buf_append(body, data, size * count);
    /* Less than given tells libcurl to stop. */
    return wpk_buf_status(body) == WPK_OK ? size * count : 0;
}

/* One line of the answer's head. */
static size_t keep_header(char *line, size_t size, size_t count, void *user)
{
    static const char *const kept[] = {
        "Content-Type:", "Content-Security-Policy:", "ETag:", "Location:", "Referrer-Policy:"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        size_t name = strlen(kept[i]);
        if (size * count > name && strncasecmp(line, kept[i], name) == 0) {
            wpk_buf_append(user, line, size * count);
        }
    }
    return size * count;
}

/* libcurl's codes as ours: the one table of this translation. */
static wpk_err translate(CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return WPK_OK;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        return WPK_ECLOSED;
    case CURLE_OPERATION_TIMEDOUT:
        return WPK_ETIMEDOUT;
    case CURLE_OUT_OF_MEMORY:
        return WPK_ENOMEM;
    case CURLE_WRITE_ERROR:
        return WPK_ENOSPC;
    case CURLE_PEER_FAILED_VERIFICATION:
        return WPK_EACCES;
    case CURLE_SSL_CACERT_BADFILE:
        return WPK_EINVAL;
    default:
        return WPK_EIO;
    }
}

/* One header more; false when out of memory. */
static void add_header(struct curl_slist **headers, const char *name, const char *value)
{
    struct wpk_buf text = {0};
    wpk_buf_printf(&text, "%s: %s", name, value);
    *headers = WPK_DEMAND(curl_slist_append(*headers, wpk_buf_text(&text)));
    wpk_buf_fini(&text);
}

static struct curl_slist *make_headers(const struct wpk_http *http,
                                       const struct wpk_http_client_request *request)
{
    struct curl_slist *headers = NULL;
    struct wpk_buf bearer = {0};
    if (http->token != NULL) {
        wpk_buf_printf(&bearer, "Bearer %s", http->token);
        add_header(&headers, "Authorization", wpk_buf_text(&bearer));
    }
    if (request->body != NULL) {
        add_header(&headers, "Content-Type", "application/json");
    }
    if (request->idempotency_key != NULL) {
        add_header(&headers, "Idempotency-Key", request->idempotency_key);
    }
    if (request->if_none_match != NULL && request->if_none_match[0] != '\0') {
        add_header(&headers, "If-None-Match", request->if_none_match);
    }
    wpk_buf_fini(&bearer);
    return headers;
}

static void set_options(const struct wpk_http *http, const struct wpk_http_client_request *request,
                        struct wpk_buf *body, char *why)
{
    CURL *curl = http->curl;
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)REQUEST_MS);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
    if (http->ca != NULL) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, http->ca);
    }
    if (http->socket[0] != '\0') {
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, http->socket);
    }
    if (http->is_own) {
        /* A proxy of the environment cannot reach what only this machine reaches. */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    }
    if (request->body != NULL) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request->body));
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
    }
    if (request->method != NULL) {
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    }
}

/* True if a connection is ended before anything was sent. */
static bool is_ended_at_once(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char byte;
    if (strlen(path) >= sizeof address.sun_path) {
        return false;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ended = false;
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        ended = poll(&polled, 1, TURNED_AWAY_MS) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return ended;
}

/* That is all that wpkd says to users it does not know. Once may be its end, which closes what
 * nobody has accepted; after that nobody listens. */
static bool is_turned_away(const struct wpk_http *http, CURLcode code)
{
    return http->socket[0] != '\0' && translate(code) == WPK_ECLOSED &&
           is_ended_at_once(http->socket) && poll(NULL, 0, TURNED_AWAY_MS) == 0 &&
           is_ended_at_once(http->socket);
}

static void describe(const struct wpk_http *http, CURLcode code, const char *why,
                     struct wpk_diag *diag)
{
    bool local = http->socket[0] != '\0';
    long system = 0;
    if (code == CURLE_SSL_CACERT_BADFILE) {
        wpk_diag_set(diag, "%s holds no certificates to trust; --ca names a PEM file of them",
                     http->ca != NULL ? http->ca : "CA");
        return;
    }
    if (code == CURLE_PEER_FAILED_VERIFICATION) {
        wpk_diag_set(diag, "%s is not trusted: %s; --ca names the authority of its certificate",
                     http->base, why[0] != '\0' ? why : curl_easy_strerror(code));
        return;
    }
    curl_easy_getinfo(http->curl, CURLINFO_OS_ERRNO, &system);
    /* libcurl speaks of the host and port that it was told, which a socket does not have. */
    wpk_diag_set(diag, "cannot reach wpkd at %s: %s; start it, or name another with --server",
                 local ? http->socket : http->base,
                 local && code == CURLE_COULDNT_CONNECT && system != 0 ? strerror((int)system)
                 : why[0] != '\0'                                      ? why
                                                                       : curl_easy_strerror(code));
}

static wpk_err send_once(struct wpk_http *http, const struct wpk_http_client_request *request,
                         struct wpk_http_reply *reply, struct wpk_diag *diag)
{
    char url[4 * WPK_HTTP_URL_MAX];
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;

    WPK_ASSERT(request->path[0] == '/');
    wpk_buf_init(&reply->body, WPK_HTTP_REPLY_MAX);
    reply->status = 0;
    reply->reached = false;
    if (snprintf(url, sizeof(url), "%s%s", http->base, request->path) >= (int)sizeof(url)) {
        return wpk_fail(diag, WPK_EINVAL, "the request is too long; ask for less at a time");
    }
    struct curl_slist *headers = make_headers(http, request);
    set_options(http, request, &reply->body, why);
    if (request->wants_page_headers) {
        curl_easy_setopt(http->curl, CURLOPT_HEADERFUNCTION, keep_header);
        curl_easy_setopt(http->curl, CURLOPT_HEADERDATA, &reply->page_headers);
    }
    curl_easy_setopt(http->curl, CURLOPT_URL, url);
    curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER, headers);
    CURLcode code = curl_easy_perform(http->curl);
    curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
    reply->status = (int)status;
    reply->reached = code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST;
    wpk_err err = translate(code);
    if (is_turned_away(http, code)) {
        err = wpk_fail(diag, WPK_EACCES,
                       "wpkd at %s ends the connection at once: is this user one of its peers?",
                       http->socket);
    } else if (code != CURLE_OK) {
        describe(http, code, why, diag);
    }
    curl_slist_free_all(headers);
    return err;
}

wpk_err wpk_http_send(struct wpk_http *http, const struct wpk_http_client_request *request,
                      struct wpk_http_reply *reply, struct wpk_diag *diag)
{
    const char *first = http->next;
    bool repeats =
        request->idempotency_key != NULL || (request->body == NULL && request->method == NULL);
    for (;;) {
        wpk_err err = send_once(http, request, reply, diag);
        if ((err != WPK_ECLOSED && err != WPK_ETIMEDOUT) || strchr(http->urls, ',') == NULL) {
            return err;
        }
        turn(http);
        if (http->next == first || (reply->reached && !repeats)) {
            return err;
        }
        wpk_http_reply_fini(reply);
    }
}

void wpk_http_reply_fini(struct wpk_http_reply *reply)
{
    if (reply != NULL) {
        wpk_buf_fini(&reply->body);
        wpk_buf_fini(&reply->page_headers);
        reply->status = 0;
    }
}

void wpk_http_escape(const char *text, struct wpk_buf *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";

    for (const char *p = text; *p != '\0'; p++) {
        if (strchr(plain, *p) != NULL) {
            wpk_buf_append_byte(out, *p);
        } else {
            wpk_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*p);
        }
    }
}
