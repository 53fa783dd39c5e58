/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer with a stated maximum.
 *
 * Invariants: data[size] is NUL whenever data is not NULL; size <= size_max. The first failure
 * sticks: later appends do nothing and wpk_buf_status() (or take) reports it, so that a long row of
 * appends is checked once. `= {0}` is an empty buffer with the default maximum. */
#ifndef WPK_COMMON_BUF_H
#define WPK_COMMON_BUF_H

#include "common/err.h"

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_BUF_SIZE_MAX_DEFAULT ((size_t)64 << 20)

struct wpk_buf {
    char *data;      /* owned; NULL while nothing was appended */
    size_t size;     /* bytes, the NUL not counted */
    size_t capacity; /* bytes allocated */
    size_t size_max; /* bytes; 0: WPK_BUF_SIZE_MAX_DEFAULT */
    wpk_err err;     /* the first failure: WPK_ENOMEM, or WPK_ENOSPC past size_max */
};

void wpk_buf_init(struct wpk_buf *buf, size_t size_max);
void wpk_buf_fini(struct wpk_buf *buf);

/* Empty the buffer and clear its error; its memory is kept. */
void wpk_buf_reset(struct wpk_buf *buf);

void wpk_buf_append(struct wpk_buf *buf, const void *data, size_t size);
void wpk_buf_append_text(struct wpk_buf *buf, const char *text);
void wpk_buf_append_byte(struct wpk_buf *buf, char byte);
void wpk_buf_printf(struct wpk_buf *buf, const char *format, ...) WPK_PRINTF(2, 3);
void wpk_buf_vprintf(struct wpk_buf *buf, const char *format, va_list args) WPK_PRINTF(2, 0);

/* Room for `size` more bytes, to be written by the caller (read(2)) and then counted by
 * wpk_buf_commit(); NULL on failure. */
WPK_MUST_CHECK char *wpk_buf_reserve(struct wpk_buf *buf, size_t size);
void wpk_buf_commit(struct wpk_buf *buf, size_t size);

/* Cut the content to `size` bytes, which must be at most the current size. */
void wpk_buf_truncate(struct wpk_buf *buf, size_t size);

wpk_err wpk_buf_status(const struct wpk_buf *buf);

/* The content as NUL-terminated text, "" when empty; valid until the next change. */
const char *wpk_buf_text(const struct wpk_buf *buf);

/* Move the content out; the buffer is empty afterwards, on failure too.
 *
 *   owns    the caller frees *data; `size` may be NULL
 *   errors  that of wpk_buf_status()
 */
wpk_err wpk_buf_take(struct wpk_buf *buf, char **data, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
