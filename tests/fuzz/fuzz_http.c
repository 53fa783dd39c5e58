/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the head of a request leniently and gives it to http_head.c. A head that is accepted has
 * one meaning: its lines end where they seem to, no byte is left out, no line is folded. */
#include "coordinator/http/http.h"
#include "coordinator/http/http_head.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool ends_lines(char c)
{
    return c == '\r' || c == '\n' || c == '\0';
}

/* The bytes as they were sent: two end each line, and four the head. That the two are CR and LF is
 * not seen where a library has cut the lines in place: NUL LF looks the same. */
static void check_plain(const char *sent, size_t size)
{
    size_t run = 0;
    for (size_t i = 0; i < size; i++) {
        if (ends_lines(sent[i])) {
            run++;
            continue;
        }
        WPK_ASSERT(run == 0 || run == 2);
        WPK_ASSERT(run == 0 || (sent[i] != ' ' && sent[i] != '\t'));
        run = 0;
    }
    WPK_ASSERT(run == 4);
}

static void check_length(const struct wpk_http_head *head)
{
    const char *text = head->field[WPK_HTTP_CONTENT_LENGTH];
    uint64_t length = 0;
    if (text != NULL && wpk_http_parse_length(text, &length)) {
        WPK_ASSERT(strspn(text, "0123456789") == strlen(text));
        WPK_ASSERT(strtoull(text, NULL, 10) == length);
    }
}

/* Cuts the line that begins at `line`; NULL: it has no end. */
static char *cut_line(char *line, char *end)
{
    char *stop = memchr(line, '\n', (size_t)(end - line));
    if (stop == NULL) {
        return NULL;
    }
    *stop = '\0';
    if (stop > line && stop[-1] == '\r') {
        stop[-1] = '\0';
    }
    return stop + 1;
}

static bool read_request_line(char *text, struct wpk_http_head *head)
{
    char *target = strchr(text, ' ');
    char *version = target != NULL ? strrchr(target + 1, ' ') : NULL;
    if (version == NULL) {
        return false;
    }
    *target++ = '\0';
    *version++ = '\0';
    wpk_http_head_begin(head, text, target, strlen(target), version);
    const char *fault = wpk_http_check_target(target, strlen(target));
    return fault == NULL;
}

static void read_head(char *text, size_t size, const char *sent)
{
    struct wpk_http_head head;
    char *end = text + size;
    char *line = cut_line(text, end);
    if (line == NULL || !read_request_line(text, &head)) {
        return;
    }
    for (char *next = cut_line(line, end); next != NULL; next = cut_line(line = next, end)) {
        char *colon = strchr(line, ':');
        if (line[0] == '\0') {
            wpk_http_head_end(&head, text, (size_t)(next - text));
            if (head.fault == NULL) {
                check_plain(sent, (size_t)(next - text));
                check_length(&head);
            }
            return;
        }
        if (colon == NULL) {
            return;
        }
        *colon = '\0';
        char *value = colon + 1 + strspn(colon + 1, " \t");
        wpk_http_head_add(&head, line, strlen(line), value, strlen(value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char *sent = malloc(size + 1);
    WPK_ASSERT(text != NULL);
    WPK_ASSERT(sent != NULL);
    memcpy(text, data, size);
    memcpy(sent, data, size);
    text[size] = sent[size] = '\0';
    read_head(text, size, sent);
    /* As a header's value, whatever it is. */
    (void)wpk_http_etag_matches(sent, "\"a\"");
    (void)wpk_http_host_is(sent, "localhost");
    (void)wpk_http_bearer(sent);
    free(text);
    free(sent);
    return 0;
}
