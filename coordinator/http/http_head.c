/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/http/http_head.h"

#include "coordinator/http/http.h"

#include <string.h>
#include <strings.h>

struct field_name {
    const char *text;
    size_t size;
};

static const struct field_name field_names[WPK_HTTP_FIELD_COUNT] = {
#define FIELD_NAME(name, text) {text, sizeof text - 1},
    WPK_HTTP_FIELD_LIST(FIELD_NAME)
#undef FIELD_NAME
};

/* ---- the target */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Nearly all of a head: these are in no list that has to be searched. */
static bool is_alphanumeric(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

const char *wpk_http_check_target(const char *target, size_t size)
{
    bool in_path = true;
    if (size == 0 || target[0] != '/') {
        return "the target is no path";
    }
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)target[i];
        if (is_alphanumeric(c)) {
            continue;
        }
        if (c <= ' ' || c >= 0x7f || strchr("\"#<>\\^`{|}", c) != NULL) {
            return "the target has a character that has to be escaped";
        }
        in_path = in_path && c != '?';
        if (c != '%') {
            continue;
        }
        int high = i + 2 < size ? hex_digit(target[i + 1]) : -1;
        int low = i + 2 < size ? hex_digit(target[i + 2]) : -1;
        if (high < 0 || low < 0) {
            return "the target has an escape that is none";
        }
        if (high * 16 + low == 0 || (in_path && high * 16 + low == '/')) {
            return "the target has an escape that is not allowed";
        }
    }
    return NULL;
}

/* ---- headers */

static void find_fault(struct wpk_http_head *head, const char *fault)
{
    if (head->fault == NULL) {
        head->fault = fault;
    }
}

static bool is_token(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!is_alphanumeric(c) &&
            (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL)) {
            return false;
        }
    }
    return size > 0;
}

/* Text on one line; a blank at the end would have been no part of the value. */
static bool is_value(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

void wpk_http_head_begin(struct wpk_http_head *head, const char *method, const char *target,
                         size_t target_size, const char *version)
{
    size_t method_size = strlen(method);
    memset(head, 0, sizeof *head);
    if (!is_token(method, method_size) ||
        (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) ||
        target != method + method_size + 1 || version != target + target_size + 1) {
        find_fault(head, "the request line is malformed");
    }
    head->at = version + strlen(version) + 2;
}

static void set_field(struct wpk_http_head *head, const char *name, size_t name_size,
                      const char *value)
{
    for (int i = 0; i < WPK_HTTP_FIELD_COUNT; i++) {
        if (field_names[i].size != name_size ||
            strncasecmp(field_names[i].text, name, name_size) != 0) {
            continue;
        }
        if (head->field[i] != NULL) {
            find_fault(head, "a header that has to be there once is there twice");
        }
        head->field[i] = value;
    }
}

void wpk_http_head_add(struct wpk_http_head *head, const char *name, size_t name_size,
                       const char *value, size_t value_size)
{
    if (++head->header_count > WPK_HTTP_HEADERS_MAX) {
        find_fault(head, "there are too many headers");
        return;
    }
    /* Blanks before the value are the library's to skip: anything from 0 on. */
    if (name != head->at || value <= name + name_size || !is_token(name, name_size) ||
        !is_value(value, value_size)) {
        find_fault(head, "a header is malformed");
    }
    head->at = value + value_size + 2;
    set_field(head, name, name_size, value);
}

void wpk_http_head_end(struct wpk_http_head *head, const char *method, size_t size)
{
    /* The library has overwritten the last two line ends, CR and LF, with NUL by now. */
    static const char cut[4] = {0};
    if (head->at + 2 != method + size || memcmp(head->at - 2, cut, sizeof cut) != 0) {
        find_fault(head, "a line of the headers does not end in CR and LF");
    }
}

bool wpk_http_parse_length(const char *text, uint64_t *out)
{
    uint64_t length = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || text[digits] != '\0' || digits > 18) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        length = length * 10 + (uint64_t)(text[i] - '0');
    }
    *out = length;
    return true;
}

bool wpk_http_host_is(const char *host, const char *name)
{
    size_t size = strlen(name);
    if (strncasecmp(host, name, size) != 0) {
        return false;
    }
    const char *port = host + size;
    return *port == '\0' || (*port == ':' && port[1 + strspn(port + 1, "0123456789")] == '\0');
}

const char *wpk_http_bearer(const char *authorization)
{
    static const char scheme[] = "bearer ";
    if (strncasecmp(authorization, scheme, sizeof scheme - 1) != 0) {
        return NULL;
    }
    return authorization + sizeof scheme - 1 + strspn(authorization + sizeof scheme - 1, " ");
}

/* ---- what the owner asks */

const char *wpk_http_query(const struct wpk_http_request *request, const char *name)
{
    int found =
        WPK_FIND(struct wpk_http_parameter, name, request->query, request->query_count, name);
    return found >= 0 ? request->query[found].value : NULL;
}

bool wpk_http_etag_matches(const char *if_none_match, const char *etag)
{
    const char *tag = wpk_begins(etag, "W/") ? etag + 2 : etag;
    size_t size = strlen(tag);
    const char *at = if_none_match;
    while (*at != '\0') {
        at += strspn(at, " \t,");
        if (wpk_begins(at, "W/")) {
            at += 2;
        }
        if (*at == '*' || (strncmp(at, tag, size) == 0 && strchr(" \t,", at[size]) != NULL)) {
            return true;
        }
        if (*at == '"') { /* past this one; a comma inside quotes ends nothing */
            at += 1 + strcspn(at + 1, "\"");
            at += *at == '"';
        } else {
            at += strcspn(at, ",");
        }
    }
    return false;
}
