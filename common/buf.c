/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 64

static size_t size_limit(const struct wpk_buf *buf)
{
    return buf->size_max != 0 ? buf->size_max : WPK_BUF_SIZE_MAX_DEFAULT;
}

void wpk_buf_init(struct wpk_buf *buf, size_t size_max)
{
    *buf = (struct wpk_buf){.size_max = size_max};
}

void wpk_buf_fini(struct wpk_buf *buf)
{
    if (buf != NULL) {
        free(buf->data);
        *buf = (struct wpk_buf){0};
    }
}

void wpk_buf_reset(struct wpk_buf *buf)
{
    buf->size = 0;
    buf->err = WPK_OK;
    if (buf->data != NULL) {
        buf->data[0] = '\0';
    }
}

char *wpk_buf_reserve(struct wpk_buf *buf, size_t size)
{
    WPK_ASSERT(buf->size <= buf->capacity);
    if (buf->err != WPK_OK) {
        return NULL;
    }
    if (size > size_limit(buf) || buf->size > size_limit(buf) - size || size == SIZE_MAX) {
        buf->err = WPK_ENOSPC;
        return NULL;
    }
    size_t needed = buf->size + size + 1;
    if (needed > buf->capacity) {
        size_t capacity = buf->capacity < CAPACITY_MIN ? CAPACITY_MIN : buf->capacity;
        while (capacity < needed) {
            capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
        }
        char *data = realloc(buf->data, capacity);
        if (data == NULL) {
            buf->err = WPK_ENOMEM;
            return NULL;
        }
        buf->data = data;
        buf->capacity = capacity;
    }
    buf->data[buf->size] = '\0';
    return buf->data + buf->size;
}

void wpk_buf_commit(struct wpk_buf *buf, size_t size)
{
    WPK_ASSERT(size == 0 || size < buf->capacity - buf->size);
    if (size > 0) {
        buf->size += size;
        buf->data[buf->size] = '\0';
    }
}

void wpk_buf_append(struct wpk_buf *buf, const void *data, size_t size)
{
    WPK_ASSERT(data != NULL || size == 0);
    char *room = wpk_buf_reserve(buf, size);
    if (room != NULL && size > 0) {
        memcpy(room, data, size);
        wpk_buf_commit(buf, size);
    }
}

void wpk_buf_append_text(struct wpk_buf *buf, const char *text)
{
    wpk_buf_append(buf, text, strlen(text));
}

void wpk_buf_append_byte(struct wpk_buf *buf, char byte)
{
    wpk_buf_append(buf, &byte, 1);
}

void wpk_buf_vprintf(struct wpk_buf *buf, const char *format, va_list args)
{
    va_list again;
    char small[256]; /* most lines are formatted once and copied */

    va_copy(again, args);
    int length = vsnprintf(small, sizeof(small), format, args);
    WPK_ASSERT(length >= 0);
    if ((size_t)length < sizeof(small)) {
        wpk_buf_append(buf, small, (size_t)length);
    } else {
        char *room = wpk_buf_reserve(buf, (size_t)length);
        if (room != NULL) {
            vsnprintf(room, (size_t)length + 1, format, again);
            wpk_buf_commit(buf, (size_t)length);
        }
    }
    va_end(again);
}

void wpk_buf_printf(struct wpk_buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    wpk_buf_vprintf(buf, format, args);
    va_end(args);
}

void wpk_buf_truncate(struct wpk_buf *buf, size_t size)
{
    WPK_ASSERT(size <= buf->size);
    buf->size = size;
    if (buf->data != NULL) {
        buf->data[size] = '\0';
    }
}

wpk_err wpk_buf_status(const struct wpk_buf *buf)
{
    return buf->err;
}

const char *wpk_buf_text(const struct wpk_buf *buf)
{
    return buf->data != NULL ? buf->data : "";
}

wpk_err wpk_buf_take(struct wpk_buf *buf, char **data, size_t *size)
{
    /* An empty content is still the caller's to free. */
    if (buf->data == NULL) {
        wpk_buf_append(buf, "", 0);
    }
    wpk_err err = buf->err;
    if (err == WPK_OK) {
        *data = buf->data;
        if (size != NULL) {
            *size = buf->size;
        }
        buf->data = NULL;
    }
    free(buf->data);
    *buf = (struct wpk_buf){.size_max = buf->size_max};
    return err;
}
