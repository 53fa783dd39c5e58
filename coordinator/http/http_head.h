/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request: is it one message, and the same one for everybody?
 *
 * A proxy before us may read a request differently from the library behind us: then what one takes
 * for a body is the next request of the other. So a head is only taken when there is one way to
 * read it: its parts, as the library found them, fill its bytes without a gap. A line that ends in
 * a lone LF, a NUL, a folded line, blanks where none belong: all leave gaps, however the library
 * reads them. (A NUL in the place of a CR is not seen: it ends the line for whoever takes it.)
 * What decides how long the body is, or whom it is for, is there once at most. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_HEAD_H
#define WPK_COORDINATOR_HTTP_HTTP_HEAD_H

#include "common/err.h"

#include <stdint.h>

#define WPK_HTTP_HEADERS_MAX 64

/* Fields that the server or its owner asks for: name, and the field's name on the wire. */
#define WPK_HTTP_FIELD_LIST(X)                                                                     \
    X(HOST, "Host")                                                                                \
    X(CONTENT_LENGTH, "Content-Length")                                                            \
    X(CONTENT_TYPE, "Content-Type")                                                                \
    X(TRANSFER_ENCODING, "Transfer-Encoding")                                                      \
    X(AUTHORIZATION, "Authorization")                                                              \
    X(IF_NONE_MATCH, "If-None-Match")                                                              \
    X(IDEMPOTENCY_KEY, "Idempotency-Key")

#define WPK_HTTP_FIELD_ENUM(name, text) WPK_HTTP_##name,
enum wpk_http_field { WPK_HTTP_FIELD_LIST(WPK_HTTP_FIELD_ENUM) WPK_HTTP_FIELD_COUNT };

/* Everything is borrowed from the library's buffer. */
struct wpk_http_head {
    const char *field[WPK_HTTP_FIELD_COUNT]; /* NUL-terminated; NULL: not there */
    const char *at;                          /* where the next part has to begin */
    uint32_t header_count;
    const char *fault; /* the first thing that is wrong; NULL: nothing */
};

/* Why a target may not be asked for, or NULL: it has to be a path, with a query perhaps, in the
 * characters that a URI has, escapes of NUL and '/' excepted. */
const char *wpk_http_check_target(const char *target, size_t size);

/* The request line's parts, where they lie; `target_size` before it was decoded. */
void wpk_http_head_begin(struct wpk_http_head *head, const char *method, const char *target,
                         size_t target_size, const char *version);
void wpk_http_head_add(struct wpk_http_head *head, const char *name, size_t name_size,
                       const char *value, size_t value_size);
/* All headers were added; the head had `size` bytes from its method to the empty line. */
void wpk_http_head_end(struct wpk_http_head *head, const char *method, size_t size);

/* A body's length as it was announced: digits alone. */
WPK_MUST_CHECK bool wpk_http_parse_length(const char *text, uint64_t *out);

/* Does Host name this: with or without a port, in any case? */
bool wpk_http_host_is(const char *host, const char *name);

/* The secret of "Bearer SECRET", or NULL. */
const char *wpk_http_bearer(const char *authorization);

#endif
