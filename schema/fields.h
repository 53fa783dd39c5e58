/* SPDX-License-Identifier: Apache-2.0 */
/* Structs as JSON by tables. A table has a row for each member of the JSON object; it encodes the
 * struct, decodes and checks it, and knows which members the object may have:
 *
 *     static const struct wpk_field policy_fields[] = {
 *         {WPK_FIELD_INT("threads", policy, threads, 1, 65536)},
 *         WPK_FIELD_CHOICE("conditions", policy, conditions, conditions_names),
 *         WPK_FIELD_REAL("race_ratio", policy, race_ratio, 0, 1e300, WPK_OPTIONAL),
 *         WPK_FIELD_END,
 *     };
 *
 * A row names the member, the struct (`policy`: struct wpk_policy), the struct's member, and its
 * limits. Rows are encoded and decoded in their order. A decoder begins with a zeroed struct; it
 * fails through the reader, with field and position. */
#ifndef WPK_SCHEMA_FIELDS_H
#define WPK_SCHEMA_FIELDS_H

#include "common/arena.h"
#include "common/json.h"

#include <stddef.h>
#include <stdint.h>

enum wpk_field_kind {
    WPK_FIELD_KIND_END,
    WPK_FIELD_KIND_INT,
    WPK_FIELD_KIND_U64,
    WPK_FIELD_KIND_REAL,
    WPK_FIELD_KIND_BOOL,
    WPK_FIELD_KIND_CHOICE,
    WPK_FIELD_KIND_COPY,
    WPK_FIELD_KIND_LABEL,
    WPK_FIELD_KIND_HASH,
    WPK_FIELD_KIND_TEXT,
    WPK_FIELD_KIND_OWNED,
    WPK_FIELD_KIND_CUSTOM, /* the kinds up to here may be the items of an array */
    WPK_FIELD_KIND_VERSION,
    WPK_FIELD_KIND_OBJECT,
    WPK_FIELD_KIND_ARRAY,
    WPK_FIELD_KIND_MAP,
    WPK_FIELD_KIND_GROUP,
    WPK_FIELD_KIND_PRESENT,
    WPK_FIELD_KIND_CHECK,
};

/* The source of a decoder. */
struct wpk_fields_in {
    struct wpk_json_reader *r;
    struct wpk_arena *arena; /* of texts and lists; NULL: the caller frees lists with free() */
    bool is_lenient;         /* unknown members are ignored, and null is as good as absent */
};

typedef void (*wpk_field_put_fn)(struct wpk_json_writer *writer, const char *key,
                                 const void *member);
typedef void (*wpk_field_get_fn)(struct wpk_json_reader *reader, const char *key, void *member);
typedef void (*wpk_field_check_fn)(struct wpk_json_reader *reader, void *object);
typedef void (*wpk_field_make_fn)(const struct wpk_fields_in *in, const char *key, void *member);

struct wpk_field {
    const char *name; /* NULL: the row is no member, or is the value of an item */
    enum wpk_field_kind kind;
    bool is_optional;         /* not encoded if it is 0 or empty; 0 or "" if it is missing */
    bool is_nullable;         /* likewise, but encoded as null */
    bool has_default;         /* always encoded; if it is missing, the struct stays as it is */
    bool is_pointer;          /* the struct points to the object or the items, in the arena */
    bool is_counted;          /* ARRAY: an earlier row has the number of items */
    unsigned when;            /* GROUP: bit i: it applies if the tag is i; 0: it always applies */
    size_t offset;            /* of the member in its struct */
    size_t size;              /* bytes of the member; of an item */
    size_t tag_offset;        /* GROUP: of the tag; ARRAY, MAP: of the count */
    double min, max;          /* of a number; of the bytes of a text; of the number of items */
    const char *const *names; /* CHOICE; VERSION: [1], what to do about another one */
    const struct wpk_field *table; /* of an object, group or item */
    wpk_field_put_fn put;
    wpk_field_get_fn get;
    wpk_field_check_fn check;
    wpk_field_make_fn make; /* CUSTOM: in place of `get` where the arena is needed */
};

#define WPK_OPTIONAL .is_optional = true
#define WPK_NULLABLE .is_nullable = true
#define WPK_DEFAULT .has_default = true

#define WPK_FIELD_MEMBER(type, member) (((struct wpk_##type *)0)->member)
#define WPK_FIELD_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define WPK_FIELD_ROW(name_, type, member, kind_, ...)                                             \
    .name = (name_), .kind = (kind_), .offset = offsetof(struct wpk_##type, member), __VA_ARGS__
/* A row of a kind that needs no more: BOOL, U64 (as text); of a char [N] COPY (any text), LABEL (no
 * control characters), HASH (a SHA-256 in hexadecimal). */
#define WPK_FIELD(kind, name, type, member, ...)                                                   \
    WPK_FIELD_ROW(name, type, member, WPK_FIELD_KIND_##kind,                                       \
                  .size = sizeof(WPK_FIELD_MEMBER(type, member)), __VA_ARGS__)
#define WPK_FIELD_END .kind = WPK_FIELD_KIND_END

/* An integer of 4 or 8 bytes, and one from 0 on; a double. */
#define WPK_FIELD_INT(name, type, member, least, most, ...)                                        \
    WPK_FIELD(INT, name, type, member, .min = (double)(least), .max = (double)(most), __VA_ARGS__)
#define WPK_FIELD_COUNT(name, type, member, ...)                                                   \
    WPK_FIELD_INT(name, type, member, 0, WPK_JSON_INT_MAX, __VA_ARGS__)
#define WPK_FIELD_REAL(name, type, member, least, most, ...)                                       \
    WPK_FIELD(REAL, name, type, member, .min = (least), .max = (most), __VA_ARGS__)
/* An enum by its names, an array. */
#define WPK_FIELD_CHOICE(name, type, member, texts, ...)                                           \
    WPK_FIELD(CHOICE, name, type, member, .names = (texts),                                        \
              .max = (double)WPK_FIELD_LENGTH(texts), __VA_ARGS__)
/* A const char * into the arena; a char * that wpk_fields_fini() frees, NULL if it is missing. */
#define WPK_FIELD_TEXT(name, type, member, size_max, ...)                                          \
    WPK_FIELD(TEXT, name, type, member, .max = (double)(size_max), __VA_ARGS__)
#define WPK_FIELD_OWNED(name, type, member, size_max, ...)                                         \
    WPK_FIELD(OWNED, name, type, member, .max = (double)(size_max), __VA_ARGS__)
/* A value that two functions put and get, of a member (empty if its first byte is 0) or of the
 * whole struct. */
#define WPK_FIELD_CUSTOM(name, type, member, put_fn, get_fn, ...)                                  \
    WPK_FIELD_ROW(name, type, member, WPK_FIELD_KIND_CUSTOM, .put = (put_fn), .get = (get_fn),     \
                  __VA_ARGS__)
#define WPK_FIELD_WHOLE(name_, put_fn, get_fn)                                                     \
    .name = (name_), .kind = WPK_FIELD_KIND_CUSTOM, .put = (put_fn), .get = (get_fn)
/* The first row: a constant. Another number fails with WPK_EMISMATCH and the remedy. */
#define WPK_FIELD_VERSION(number, remedy)                                                          \
    .name = "version", .kind = WPK_FIELD_KIND_VERSION, .max = (number),                            \
    .names = (const char *const[])                                                                 \
    {                                                                                              \
        remedy                                                                                     \
    }

/* A struct as a JSON object; several members of this struct as a JSON object. An object is empty if
 * all its rows are, but if the first one is an array or PRESENT, that decides. */
#define WPK_FIELD_OBJECT(name, type, member, rows, ...)                                            \
    WPK_FIELD_ROW(name, type, member, WPK_FIELD_KIND_OBJECT, .table = (rows), __VA_ARGS__)
#define WPK_FIELD_PART(name_, rows, ...)                                                           \
    .name = (name_), .kind = WPK_FIELD_KIND_OBJECT, .table = (rows), __VA_ARGS__
/* Items in the struct, with their number: as a JSON array, or as a JSON object. The table describes
 * an item. An item that is no object has a table of one row without a name. The first row of an
 * item of a MAP is the member's name, a char [N], and the other rows are its value. */
#define WPK_FIELD_ITEMS(name, type, member, count, rows, kind, ...)                                \
    WPK_FIELD_ROW(name, type, member, kind, .tag_offset = offsetof(struct wpk_##type, count),      \
                  .size = sizeof(WPK_FIELD_MEMBER(type, member)[0]), .table = (rows), __VA_ARGS__)
#define WPK_FIELD_ARRAY(name, type, member, count, rows, ...)                                      \
    WPK_FIELD_ITEMS(name, type, member, count, rows, WPK_FIELD_KIND_ARRAY,                         \
                    .max = (double)WPK_FIELD_LENGTH(WPK_FIELD_MEMBER(type, member)), __VA_ARGS__)
#define WPK_FIELD_MAP(name, type, member, count, rows, ...)                                        \
    WPK_FIELD_ITEMS(name, type, member, count, rows, WPK_FIELD_KIND_MAP,                           \
                    .max = (double)WPK_FIELD_LENGTH(WPK_FIELD_MEMBER(type, member)), __VA_ARGS__)
/* Items in the arena, at most so many, to which the struct points. */
#define WPK_FIELD_LIST(name, type, member, count, most, rows, ...)                                 \
    WPK_FIELD_ITEMS(name, type, member, count, rows, WPK_FIELD_KIND_ARRAY, .max = (double)(most),  \
                    .is_pointer = true, __VA_ARGS__)
/* A table in place: of rows, and of an item of a C type that is no object. */
#define WPK_ROWS(...) ((const struct wpk_field[]){__VA_ARGS__, {WPK_FIELD_END}})
#define WPK_ITEM(kind_, type, least, most, ...)                                                    \
    WPK_ROWS({.kind = WPK_FIELD_KIND_##kind_,                                                      \
              .size = sizeof(type),                                                                \
              .min = (double)(least),                                                              \
              .max = (double)(most),                                                               \
              __VA_ARGS__})
#define WPK_ITEM_CUSTOM(...) WPK_ROWS({.kind = WPK_FIELD_KIND_CUSTOM, __VA_ARGS__})
#define WPK_FIELD_LIST_MAP(name, type, member, count, most, rows, ...)                             \
    WPK_FIELD_ITEMS(name, type, member, count, rows, WPK_FIELD_KIND_MAP, .max = (double)(most),    \
                    .is_pointer = true, __VA_ARGS__)

/* Members of this object that are in another struct; those that it has if an earlier member, the
 * tag (an enum or a bool), is one of those in the mask. */
#define WPK_FIELD_GROUP(type, member, rows, ...)                                                   \
    WPK_FIELD_ROW(NULL, type, member, WPK_FIELD_KIND_GROUP, .table = (rows), __VA_ARGS__)
#define WPK_FIELD_WHEN(type, tag, mask, rows)                                                      \
    .kind = WPK_FIELD_KIND_GROUP, .tag_offset = offsetof(struct wpk_##type, tag),                  \
    .size = sizeof(WPK_FIELD_MEMBER(type, tag)), .when = (mask), .table = (rows)
#define WPK_IS(value) (1U << (value))
/* A bool that is no member: true if the object was there. */
#define WPK_FIELD_PRESENT(type, member) WPK_FIELD(PRESENT, NULL, type, member)
/* A rule about several members: a function that is called when the rows before are decoded. */
#define WPK_FIELD_CHECK(function) .kind = WPK_FIELD_KIND_CHECK, .check = (function)

/* Put a struct: as an object, and as members of the current object. */
void wpk_fields_put(struct wpk_json_writer *writer, const char *key, const struct wpk_field *table,
                    const void *object);
void wpk_fields_put_here(struct wpk_json_writer *writer, const struct wpk_field *table,
                         const void *object);
/* Get a struct: from a member, and from the current object. */
void wpk_fields_get(const struct wpk_fields_in *in, const char *key, const struct wpk_field *table,
                    void *object);
void wpk_fields_get_here(const struct wpk_fields_in *in, const struct wpk_field *table,
                         void *object);
/* Free the owned texts of a struct, also of one that was decoded in part, and set them to NULL. */
void wpk_fields_fini(const struct wpk_field *table, void *object);

/* Append a struct as a document.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_fields_encode(const struct wpk_field *table, const void *object, struct wpk_buf *out);

/* A text to decode; size_max in bytes, of the text. */
struct wpk_fields_text {
    const char *text;
    size_t size, size_max;
    struct wpk_arena *arena;
    bool is_lenient;
};

/* Decode a document. After a failure `object` is decoded in part.
 *   owns    caller calls wpk_fields_fini() if the table has owned texts, after a failure too
 *   errors  those of wpk_json_open() and the reader's */
wpk_err wpk_fields_decode(const struct wpk_fields_text *from, const struct wpk_field *table,
                          void *object, struct wpk_diag *diag);

#endif
