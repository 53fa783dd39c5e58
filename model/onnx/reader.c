/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/reader.h"

#include "common/format.h"
#include "common/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

wpk_err wpk_onnx_fail(const struct wpk_onnx_reader *reader, wpk_err err, const char *format, ...)
{
    char text[WPK_DIAG_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    wpk_diag_set(reader->diag, "%s", text);
    if (reader->diag != NULL && reader->diag->file[0] == '\0') {
        snprintf(reader->diag->file, sizeof(reader->diag->file), "%s", reader->path);
        snprintf(reader->diag->field, sizeof(reader->diag->field), "%s", reader->where);
    }
    return err;
}

wpk_err wpk_onnx_end(const struct wpk_onnx_reader *reader, const struct wpk_protobuf *message)
{
    const uint8_t *start = reader->graph->maps[0].bytes;

    if (!message->malformed) {
        return WPK_OK;
    }
    return wpk_onnx_fail(reader, WPK_EPARSE, "not an ONNX model, or cut short: byte %zu of %zu",
                         (size_t)(message->at - start), reader->graph->maps[0].size);
}

wpk_err wpk_onnx_text(const struct wpk_onnx_reader *reader, const struct wpk_protobuf_field *field,
                      const char **out)
{
    const char *text = (const char *)field->bytes.at;
    size_t size = wpk_protobuf_size(&field->bytes);

    if (field->wire != WPK_PROTOBUF_BYTES) {
        return wpk_onnx_fail(reader, WPK_EPARSE, "a name is not a text");
    }
    bool is_text = wpk_utf8_check(text, size) == size;
    for (size_t i = 0; is_text && i < size; i++) {
        is_text = (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
    }
    if (!is_text) {
        return wpk_onnx_fail(reader, WPK_EPARSE, "a name is not UTF-8, or has control characters");
    }
    *out = wpk_arena_copy_bytes(&reader->graph->arena, text, size);
    return *out != NULL ? WPK_OK : WPK_ENOMEM;
}

int wpk_onnx_count(struct wpk_protobuf message, uint32_t number)
{
    struct wpk_protobuf_field field;
    int count = 0;

    while (wpk_protobuf_next(&message, &field)) {
        count += field.number == number;
    }
    return count;
}

/* A FIFO would wait for a writer. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK)

/* Open `path` below `folder`: each part of it by itself, so that neither ".." nor a link leads out
 * of it.   shape  *outside: true if one would */
static int open_below(int folder, const char *path, bool *outside)
{
    char part[256];
    int at = dup(folder);

    while (at >= 0) {
        size_t size = strcspn(path, "/");
        bool last = path[size] == '\0';
        snprintf(part, sizeof(part), "%.*s", (int)size, path);
        *outside = size == 0 || strcmp(part, "..") == 0;
        if (*outside || size >= sizeof(part)) {
            close(at);
            errno = *outside ? EXDEV : ENAMETOOLONG;
            return -1;
        }
        int next = openat(at, part, OPEN_FLAGS | O_NOFOLLOW | (last ? 0 : O_DIRECTORY));
        int kept = errno;
        close(at);
        errno = kept;
        *outside = next < 0 && kept == ELOOP;
        if (last) {
            return next;
        }
        at = next;
        path += size + 1;
    }
    return -1;
}

wpk_err wpk_onnx_read_parts(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                            uint32_t number,
                            wpk_err (*read)(struct wpk_onnx_reader *, struct wpk_protobuf))
{
    struct wpk_protobuf_field field;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        reader->where[0] = '\0';
        if (field.number == number && field.wire == WPK_PROTOBUF_BYTES) {
            err = read(reader, field.bytes);
        }
    }
    if (err == WPK_OK) {
        reader->where[0] = '\0';
        err = wpk_onnx_end(reader, &message);
    }
    return err;
}

wpk_err wpk_onnx_map(const struct wpk_onnx_reader *reader, int folder, const char *path,
                     struct wpk_protobuf *out)
{
    struct wpk_graph *graph = reader->graph;
    struct stat status;
    wpk_err err = WPK_OK;
    void *bytes = MAP_FAILED;
    bool outside = false;

    if (graph->map_count == WPK_GRAPH_MAPS_MAX) {
        return wpk_onnx_fail(reader, WPK_ERANGE, "more than %d files", WPK_GRAPH_MAPS_MAX);
    }
    int fd = folder < 0 ? open(path, OPEN_FLAGS) : open_below(folder, path, &outside);
    if (fd >= 0 && fstat(fd, &status) == 0 && (!S_ISREG(status.st_mode) || status.st_size == 0)) {
        err = wpk_onnx_fail(reader, WPK_EPARSE, "%s is %s", path,
                            S_ISREG(status.st_mode) ? "empty" : "not a file");
    } else if (fd >= 0) {
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (outside) {
        err = wpk_onnx_fail(reader, WPK_EINVAL,
                            "%s leads out of the model's folder, by '..', by a link, or as it "
                            "begins with '/'; put the file beside the model",
                            path);
    } else if (err == WPK_OK && (fd < 0 || bytes == MAP_FAILED)) {
        err = wpk_onnx_fail(reader, wpk_fs_err(errno), "cannot read %s: %s%s", path,
                            strerror(errno), wpk_fs_advice(errno));
    }
    if (err == WPK_OK) {
        size_t size = (size_t)status.st_size;
        graph->maps[graph->map_count++] = (struct wpk_graph_map){bytes, size};
        *out = (struct wpk_protobuf){.at = bytes, .end = (const uint8_t *)bytes + size};
    }
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

/* ---- calls of functions */

static struct wpk_onnx_formal *find_formal(const struct wpk_onnx_scope *scope, const char *name)
{
    int found = scope == NULL ? -1
                              : WPK_FIND(struct wpk_onnx_formal, name, scope->formals,
                                         scope->formal_count, name);
    return found >= 0 ? &scope->formals[found] : NULL;
}

struct wpk_onnx_formal *wpk_onnx_formal_find(const struct wpk_onnx_reader *reader, const char *name)
{
    return find_formal(reader->scope, name);
}

static int find_own(const struct wpk_onnx_reader *reader, const struct wpk_onnx_scope *scope,
                    const char *name)
{
    struct wpk_buf scoped = {0};

    if (scope == NULL) {
        return wpk_graph_find(reader->graph, name);
    }
    wpk_buf_printf(&scoped, "%s/%s", scope->prefix, name);
    int value = wpk_buf_status(&scoped) == WPK_OK
                    ? wpk_graph_find(reader->graph, wpk_buf_text(&scoped))
                    : -1;
    wpk_buf_fini(&scoped);
    return value;
}

bool wpk_onnx_find_value(const struct wpk_onnx_reader *reader, const char *name, int *out)
{
    for (const struct wpk_onnx_scope *scope = reader->scope;; scope = scope->outer) {
        const struct wpk_onnx_formal *formal = find_formal(scope, name);
        *out = formal == NULL ? find_own(reader, scope, name) : formal->value;
        if (formal != NULL || *out >= 0 || scope == NULL || scope->function != NULL) {
            return formal != NULL ? formal->is_given : *out >= 0;
        }
    }
}

wpk_err wpk_onnx_count_call(struct wpk_onnx_reader *reader)
{
    int depth = 0;

    if (++reader->call_count > WPK_GRAPH_NODES_MAX) {
        return WPK_ENOSPC;
    }
    for (const struct wpk_onnx_scope *s = reader->scope; s != NULL; s = s->outer) {
        depth++;
    }
    return depth < WPK_ONNX_CALLS_MAX
               ? WPK_OK
               : wpk_onnx_fail(reader, WPK_EUNSUPPORTED,
                               "functions and branches that lie in each other %d times",
                               WPK_ONNX_CALLS_MAX);
}

const char *wpk_onnx_scoped_name(const struct wpk_onnx_reader *reader, const char *name)
{
    return reader->scope == NULL || name[0] == '\0'
               ? name
               : wpk_graph_format(reader->graph, "%s/%s", reader->scope->prefix, name);
}

bool wpk_onnx_scoped_attribute(const struct wpk_onnx_reader *reader, const char *reference,
                               struct wpk_graph_attribute *out)
{
    const struct wpk_onnx_scope *scope = reader->scope;
    const char *name = out->name;

    while (scope != NULL && scope->function == NULL) {
        scope = scope->outer;
    }
    for (int i = 0; scope != NULL && i < scope->caller->attribute_count + scope->default_count;
         i++) {
        const struct wpk_graph_attribute *given =
            i < scope->caller->attribute_count
                ? &scope->caller->attributes[i]
                : &scope->defaults[i - scope->caller->attribute_count];
        if (strcmp(given->name, reference) == 0) {
            *out = *given;
            out->name = name;
            return true;
        }
    }
    return false;
}

#define VARINT_BYTES_MAX 10
#define NUMBER_MAX ((1U << 29) - 1)

size_t wpk_protobuf_size(const struct wpk_protobuf *reader)
{
    return (size_t)(reader->end - reader->at);
}

bool wpk_protobuf_varint(struct wpk_protobuf *reader, uint64_t *out)
{
    uint64_t value = 0;

    if (reader->malformed || reader->at == reader->end) {
        return false;
    }
    for (size_t i = 0; i < VARINT_BYTES_MAX && i < wpk_protobuf_size(reader); i++) {
        value |= (uint64_t)(reader->at[i] & 0x7f) << (7 * i);
        if ((reader->at[i] & 0x80) == 0) {
            reader->at += i + 1;
            *out = value;
            return true;
        }
    }
    reader->malformed = true;
    return false;
}

static bool take(struct wpk_protobuf *reader, size_t size, struct wpk_protobuf *out)
{
    if (size > wpk_protobuf_size(reader)) {
        return false;
    }
    *out = (struct wpk_protobuf){.at = reader->at, .end = reader->at + size};
    reader->at += size;
    return true;
}

static bool read_value(struct wpk_protobuf *reader, struct wpk_protobuf_field *out)
{
    struct wpk_protobuf bytes;
    uint64_t size;

    switch (out->wire) {
    case WPK_PROTOBUF_VARINT:
        return wpk_protobuf_varint(reader, &out->value);
    case WPK_PROTOBUF_BYTES:
        return wpk_protobuf_varint(reader, &size) && size <= SIZE_MAX &&
               take(reader, (size_t)size, &out->bytes);
    case WPK_PROTOBUF_FIXED64:
        if (!take(reader, sizeof(uint64_t), &bytes)) {
            return false;
        }
        memcpy(&out->value, bytes.at, sizeof(uint64_t));
        return true;
    case WPK_PROTOBUF_FIXED32: {
        uint32_t value;
        if (!take(reader, sizeof(value), &bytes)) {
            return false;
        }
        memcpy(&value, bytes.at, sizeof(value));
        out->value = value;
        return true;
    }
    default:
        return false;
    }
}

bool wpk_protobuf_next(struct wpk_protobuf *reader, struct wpk_protobuf_field *out)
{
    const uint8_t *start = reader->at;
    uint64_t tag;

    if (!wpk_protobuf_varint(reader, &tag)) {
        return false;
    }
    *out = (struct wpk_protobuf_field){.number = (uint32_t)(tag >> 3),
                                       .wire = (enum wpk_protobuf_wire)(tag & 7)};
    if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX || !read_value(reader, out)) {
        reader->at = start;
        reader->malformed = true;
        return false;
    }
    return true;
}
