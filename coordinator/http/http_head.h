/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request: check that it can be read in one way only.
 *
 * A proxy may read a request differently from the library, and then take as a body what the library
 * takes as the next request. So a head is accepted only if its parts, as the library found them,
 * fill its bytes without a gap. A line that ends in a lone LF, a NUL, a folded line and misplaced
 * blanks all leave gaps. (A NUL in place of a CR is not found: it ends the line for every reader
 * that accepts it.) Fields that give the body's length or the host may occur once. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_HEAD_H
#define WPK_COORDINATOR_HTTP_HTTP_HEAD_H

#include "common/err.h"

#include <stdint.h>

#define WPK_HTTP_HEADERS_MAX 64

/* Fields that the server or its owner uses: suffix, and the name on the wire. */
#define WPK_HTTP_FIELD_LIST(X)                                                                     \
    X(HOST, "Host")                                                                                \
    X(CONTENT_LENGTH, "Content-Length")                                                            \
    X(CONTENT_TYPE, "Content-Type")                                                                \
    X(TRANSFER_ENCODING, "Transfer-Encoding")                                                      \
    X(AUTHORIZATION, "Authorization")                                                              \
    X(IF_NONE_MATCH, "If-None-Match")                                                              \
    X(IDEMPOTENCY_KEY, "Idempotency-Key")                                                          \
    X(COOKIE, "Cookie")

#define WPK_HTTP_FIELD_ENUM(name, text) WPK_HTTP_##name,
enum wpk_http_field { WPK_HTTP_FIELD_LIST(WPK_HTTP_FIELD_ENUM) WPK_HTTP_FIELD_COUNT };

/* Everything is borrowed from the library's buffer. */
struct wpk_http_head {
    const char *field[WPK_HTTP_FIELD_COUNT]; /* NUL-terminated; NULL: absent */
    const char *at;                          /* where the next part must begin */
    uint32_t header_count;
    const char *fault; /* the first fault, as text; NULL: none */
};

/* NULL for a valid target, else its fault. A target is a path with an optional query, in the
 * characters of a URI, without escapes of NUL and '/'. */
const char *wpk_http_check_target(const char *target, size_t size);

/* Begin with the parts of the request line, at their place; `target_size` is that before
 * decoding. */
void wpk_http_head_begin(struct wpk_http_head *head, const char *method, const char *target,
                         size_t target_size, const char *version);
void wpk_http_head_add(struct wpk_http_head *head, const char *name, size_t name_size,
                       const char *value, size_t value_size);
/* End after all headers; the head has `size` bytes from its method to the empty line. */
void wpk_http_head_end(struct wpk_http_head *head, const char *method, size_t size);

/* Parse a Content-Length, which must be digits only. */
WPK_MUST_CHECK bool wpk_http_parse_length(const char *text, uint64_t *out);

/* True if `host` is `name`, with or without a port, in upper or lower case. */
bool wpk_http_host_is(const char *host, const char *name);

/* The secret of "Bearer SECRET", or NULL. */
const char *wpk_http_bearer(const char *authorization);

#endif
