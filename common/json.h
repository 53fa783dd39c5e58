/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in and out. A reader walks a parsed document, a writer builds one, with the same shape:
 *
 *     wpk_json_enter(r, "budget");                    wpk_json_begin_object(w, "budget");
 *     job->seconds = wpk_json_get_int(r, "seconds",   wpk_json_put_int(w, "seconds",
 *                                     1, 86400);                       job->seconds);
 *     wpk_json_leave(r);                              wpk_json_end(w);
 *
 * The first failure sticks: later gets return 0, "" or false, loops end at once, and the decoder
 * asks wpk_json_status() once, at its end. The diag given at open then names field, line and
 * column.
 *
 * A key of NULL means the value we are at (an item of an array, or the root). Accepted is RFC 8259
 * and nothing more: UTF-8, no duplicate keys, no NUL in strings, bounded size and depth. Integers
 * are exact and below 2^53 in magnitude; ids travel as strings. */
#ifndef WPK_COMMON_JSON_H
#define WPK_COMMON_JSON_H

#include "common/buf.h"

#include <stdint.h>

#define WPK_JSON_SIZE_MAX_DEFAULT ((size_t)1 << 20) /* bytes */
#define WPK_JSON_DEPTH_MAX 64
#define WPK_JSON_INT_MAX ((INT64_C(1) << 53) - 1)

enum wpk_json_kind {
    WPK_JSON_ABSENT,
    WPK_JSON_NULL,
    WPK_JSON_BOOL,
    WPK_JSON_NUMBER,
    WPK_JSON_STRING,
    WPK_JSON_ARRAY,
    WPK_JSON_OBJECT,
};

struct wpk_json_reader;
struct wpk_json_writer;

/* Parse `text`.
 *
 *   owns    the caller closes *reader; `diag` (may be NULL) must live as long as it
 *   unit    size_max: bytes, 0 means WPK_JSON_SIZE_MAX_DEFAULT
 *   errors  WPK_EPARSE  not JSON, not UTF-8, or a duplicate key: with line and column
 *           WPK_ERANGE  larger than size_max, or nested deeper than WPK_JSON_DEPTH_MAX
 *           WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_json_open(const char *text, size_t size, size_t size_max,
                                     struct wpk_json_reader **reader, struct wpk_diag *diag);
void wpk_json_close(struct wpk_json_reader *reader);
WPK_MUST_CHECK wpk_err wpk_json_status(const struct wpk_json_reader *reader);

/* Fail with EINVAL (or another code) at a field, for a rule that only the caller knows.
 * Does nothing if something failed before. */
void wpk_json_fail(struct wpk_json_reader *reader, const char *key, wpk_err err, const char *format,
                   ...) WPK_PRINTF(4, 5);

/* What stands there; ABSENT after a failure. */
enum wpk_json_kind wpk_json_kind_of(const struct wpk_json_reader *reader, const char *key);
bool wpk_json_has(const struct wpk_json_reader *reader, const char *key);

/* Go into an object or array, and back out. Enter and leave pair up even after a failure. */
void wpk_json_enter(struct wpk_json_reader *reader, const char *key);
void wpk_json_enter_array(struct wpk_json_reader *reader, const char *key);
void wpk_json_leave(struct wpk_json_reader *reader);

/* Step to the next item of the array, or member of the object, that was entered; false at the end.
 * In between, gets and enters refer to the item. */
WPK_MUST_CHECK bool wpk_json_next(struct wpk_json_reader *reader);
/* The member's name; valid until close. */
const char *wpk_json_name(const struct wpk_json_reader *reader);
/* Items or members of an array or object; 0 for anything else. */
size_t wpk_json_count(const struct wpk_json_reader *reader, const char *key);

/* Fail unless every member of the object we are at is one of these; names end in NULL. */
void wpk_json_allow(struct wpk_json_reader *reader, const char *const *names);
#define WPK_JSON_ALLOW(reader, ...)                                                                \
    wpk_json_allow(reader, (const char *const[]){__VA_ARGS__, NULL})

/* A required value of that type: WPK_EINVAL if it is missing or of another type (an integer with a
 * fraction too), WPK_ERANGE outside [min, max]. For an optional one ask wpk_json_has() first. */
int64_t wpk_json_get_int(struct wpk_json_reader *reader, const char *key, int64_t min, int64_t max);
double wpk_json_get_real(struct wpk_json_reader *reader, const char *key, double min, double max);
bool wpk_json_get_bool(struct wpk_json_reader *reader, const char *key);

/* A string of at most size_max bytes, valid until close; "" after a failure. */
const char *wpk_json_get_text(struct wpk_json_reader *reader, const char *key, size_t size_max);
/* The same, copied into a fixed array of out_size bytes with its NUL. */
void wpk_json_get_copy(struct wpk_json_reader *reader, const char *key, char *out, size_t out_size);

/* The same, of what is printed in tables and logs: a control character fails with WPK_EINVAL. */
void wpk_json_get_label(struct wpk_json_reader *reader, const char *key, char *out,
                        size_t out_size);

/* 64 bits: a decimal string, or a number below 2^53 (seeds and ids). */
uint64_t wpk_json_get_u64(struct wpk_json_reader *reader, const char *key);

/* Index of the string in `names`; the failure lists them. 0 after a failure. */
size_t wpk_json_get_choice(struct wpk_json_reader *reader, const char *key,
                           const char *const *names, size_t name_count);

/* An array of at most out_max integers; returns how many. */
size_t wpk_json_get_ints(struct wpk_json_reader *reader, const char *key, int64_t min, int64_t max,
                         int64_t *out, size_t out_max);

/* The value at `key` as it stands in the text, appended to `out`; what `out` lacks room for is a
 * failure here and there. */
void wpk_json_get_raw(struct wpk_json_reader *reader, const char *key, struct wpk_buf *out);

/* Build a document whose root is an object; the caller frees it. NULL when out of
 * memory. */
struct wpk_json_writer *wpk_json_writer_new_object(void);
void wpk_json_writer_free(struct wpk_json_writer *writer);

/* Begin and end pair up; `key` is NULL inside an array and only there. A NULL writer or a failure
 * inside is ignored until wpk_json_print() reports it. Text that is not UTF-8 (a compiler's output)
 * has the offending bytes replaced by U+FFFD. */
void wpk_json_begin_object(struct wpk_json_writer *writer, const char *key);
void wpk_json_begin_array(struct wpk_json_writer *writer, const char *key);
void wpk_json_end(struct wpk_json_writer *writer);
void wpk_json_put_null(struct wpk_json_writer *writer, const char *key);
void wpk_json_put_bool(struct wpk_json_writer *writer, const char *key, bool value);
void wpk_json_put_int(struct wpk_json_writer *writer, const char *key, int64_t value);  /* < 2^53 */
void wpk_json_put_u64(struct wpk_json_writer *writer, const char *key, uint64_t value); /* string */
void wpk_json_put_real(struct wpk_json_writer *writer, const char *key, double value);  /* finite */
void wpk_json_put_text(struct wpk_json_writer *writer, const char *key, const char *value);
/* null where `value` is NULL or "". */
void wpk_json_put_text_or_null(struct wpk_json_writer *writer, const char *key, const char *value);
/* A time as RFC 3339 text; null for 0.
 *   unit    wall_ns: as of wpk_clock_wall_ns */
void wpk_json_put_wall(struct wpk_json_writer *writer, const char *key, uint64_t wall_ns);
void wpk_json_put_bytes(struct wpk_json_writer *writer, const char *key, const char *value,
                        size_t size);
void wpk_json_put_ints(struct wpk_json_writer *writer, const char *key, const int64_t *values,
                       size_t value_count);
/* `text` is one JSON value that we printed ourselves; it is not checked. NULL: null. */
void wpk_json_put_raw(struct wpk_json_writer *writer, const char *key, const char *text);

/* Append the document to `out`; all begun objects and arrays are ended.
 *
 *   errors  WPK_ENOMEM, WPK_ENOSPC  out->size_max
 */
WPK_MUST_CHECK wpk_err wpk_json_print(const struct wpk_json_writer *writer, bool pretty,
                                      struct wpk_buf *out);

#endif
