/* SPDX-License-Identifier: Apache-2.0 */
#include "client/http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 5000
#define REQUEST_MS 30000

struct wpk_http {
    CURL *curl;                    /* owned; kept, so that connections are reused */
    char base[WPK_HTTP_URL_MAX];   /* without the last '/' */
    char socket[WPK_HTTP_URL_MAX]; /* "" for TCP */
    struct curl_slist *headers;    /* owned */
};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

wpk_err wpk_http_open(const char *url, struct wpk_http **out, struct wpk_diag *diag)
{
    WPK_ASSERT(url != NULL);
    WPK_ASSERT(out != NULL);
    bool local = starts_with(url, "unix:");
    if (!local && !starts_with(url, "http://") && !starts_with(url, "https://")) {
        wpk_diag_set(diag, "'%s' is not unix:PATH, http://HOST:PORT or https://HOST:PORT", url);
        return WPK_EINVAL;
    }
    if (strlen(url) >= WPK_HTTP_URL_MAX || (local && url[strlen("unix:")] == '\0')) {
        wpk_diag_set(diag, "the URL of wpkd is empty or too long");
        return WPK_EINVAL;
    }
    struct wpk_http *http = calloc(1, sizeof(*http));
    if (http == NULL) {
        return WPK_ENOMEM;
    }
    http->curl = curl_easy_init();
    http->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (http->curl == NULL || http->headers == NULL) {
        wpk_http_close(http);
        return WPK_ENOMEM;
    }
    snprintf(http->base, sizeof(http->base), "%s", local ? "http://localhost" : url);
    if (local) {
        snprintf(http->socket, sizeof(http->socket), "%s", url + strlen("unix:"));
    }
    while (http->base[strlen(http->base) - 1] == '/') {
        http->base[strlen(http->base) - 1] = '\0';
    }
    *out = http;
    return WPK_OK;
}

void wpk_http_close(struct wpk_http *http)
{
    if (http != NULL) {
        curl_slist_free_all(http->headers);
        curl_easy_cleanup(http->curl);
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
    default:
        return WPK_EIO;
    }
}

wpk_err wpk_http_ask(struct wpk_http *http, const char *path, const char *body,
                     struct wpk_http_reply *reply, struct wpk_diag *diag)
{
    char url[4 * WPK_HTTP_URL_MAX];
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;

    WPK_ASSERT(http != NULL);
    WPK_ASSERT(path[0] == '/');
    wpk_buf_init(&reply->body, WPK_HTTP_REPLY_MAX);
    reply->status = 0;
    if (snprintf(url, sizeof(url), "%s%s", http->base, path) >= (int)sizeof(url)) {
        wpk_diag_set(diag, "the request is too long");
        return WPK_EINVAL;
    }
    CURL *curl = http->curl;
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)REQUEST_MS);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply->body);
    if (http->socket[0] != '\0') {
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, http->socket);
        /* A proxy of the environment is not meant for a socket of this machine. */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    }
    if (body != NULL) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers);
    }
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    reply->status = (int)status;
    if (code != CURLE_OK) {
        bool local = http->socket[0] != '\0';
        long system = 0;
        curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &system);
        /* libcurl speaks of the host and port that it was told, which a socket does not have. */
        wpk_diag_set(diag, "cannot reach wpkd at %s: %s", local ? http->socket : http->base,
                     local && code == CURLE_COULDNT_CONNECT && system != 0 ? strerror((int)system)
                     : why[0] != '\0'                                      ? why
                                      : curl_easy_strerror(code));
    }
    return translate(code);
}

void wpk_http_reply_fini(struct wpk_http_reply *reply)
{
    if (reply != NULL) {
        wpk_buf_fini(&reply->body);
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
