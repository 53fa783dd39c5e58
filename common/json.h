/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing JSON. A reader walks a parsed document; a writer builds one in the same way:
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
 * A key of NULL means the current value (an item of an array, or the root). The reader accepts
 * RFC 8259 only: UTF-8, no duplicate keys, no NUL in strings, bounded size and depth. Integers
 * are exact and below 2^53 in magnitude; ids travel as strings. */
#ifndef WPK_COMMON_JSON_H
#define WPK_COMMON_JSON_H

#include "common/buf.h"

#include <stdint.h>

struct wpk_json_reader;
struct wpk_json_writer;

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

/* Parse `text`.
 *
 *   owns    the caller closes *reader; `diag` (may be NULL) must live as long as it
 *   unit    size_max: bytes, 0 means WPK_JSON_SIZE_MAX_DEFAULT
 *   errors  WPK_EPARSE  not JSON, not UTF-8, or a duplicate key: with line and column
 *           WPK_ERANGE  larger than size_max, or nested deeper than WPK_JSON_DEPTH_MAX
 *           WPK_ENOMEM
 */
wpk_err wpk_json_open(const char *text, size_t size, size_t size_max,
                      struct wpk_json_reader **reader, struct wpk_diag *diag);
void wpk_json_close(struct wpk_json_reader *reader);
wpk_err wpk_json_status(const struct wpk_json_reader *reader);

/* Fail with `err` at a field, for a rule that only the caller knows. Does nothing after an earlier
 * failure. */
void wpk_json_fail(struct wpk_json_reader *reader, const char *key, wpk_err err, const char *format,
                   ...) WPK_PRINTF(4, 5);

/* The kind of the value at `key`; ABSENT after a failure. */
enum wpk_json_kind wpk_json_kind_of(const struct wpk_json_reader *reader, const char *key);
bool wpk_json_has(const struct wpk_json_reader *reader, const char *key);

/* Enter an object or array, and leave it. Calls of enter and leave pair up even after a failure. */
void wpk_json_enter(struct wpk_json_reader *reader, const char *key);
void wpk_json_enter_array(struct wpk_json_reader *reader, const char *key);
void wpk_json_leave(struct wpk_json_reader *reader);

/* Step to the next item of the entered array, or member of the entered object; false at the end.
 * Until the next step, this item is the current value. */
WPK_MUST_CHECK bool wpk_json_next(struct wpk_json_reader *reader);
/* The current member's name; valid until close. */
const char *wpk_json_name(const struct wpk_json_reader *reader);
/* The number of items of an array, or members of an object; 0 for any other value. */
size_t wpk_json_count(const struct wpk_json_reader *reader, const char *key);

/* Fail unless every member of the current object is one of `names`, a list that ends in NULL. */
void wpk_json_allow(struct wpk_json_reader *reader, const char *const *names);
#define WPK_JSON_ALLOW(reader, ...) wpk_json_allow(reader, (const char *const[]){__VA_ARGS__, NULL})

/* Get a required value. Fails with WPK_EINVAL if it is missing or of another type (an integer with
 * a fraction too), WPK_ERANGE outside [min, max]. Ask wpk_json_has() before an optional value. */
int64_t wpk_json_get_int(struct wpk_json_reader *reader, const char *key, int64_t min, int64_t max);
double wpk_json_get_real(struct wpk_json_reader *reader, const char *key, double min, double max);
bool wpk_json_get_bool(struct wpk_json_reader *reader, const char *key);

/* A string of at most size_max bytes, valid until close; "" after a failure. */
const char *wpk_json_get_text(struct wpk_json_reader *reader, const char *key, size_t size_max);
/* Copy a string into an array of out_size bytes, its NUL included. */
void wpk_json_get_copy(struct wpk_json_reader *reader, const char *key, char *out, size_t out_size);

/* Copy a string that tables and logs print: a control character fails with WPK_EINVAL. */
void wpk_json_get_label(struct wpk_json_reader *reader, const char *key, char *out,
                        size_t out_size);

/* Get a 64-bit seed or id: a decimal string, or a number below 2^53. */
uint64_t wpk_json_get_u64(struct wpk_json_reader *reader, const char *key);

/* The index of a string in `names`; 0 after a failure, whose text lists the names. */
size_t wpk_json_get_choice(struct wpk_json_reader *reader, const char *key,
                           const char *const *names, size_t name_count);

/* Get an array of at most out_max integers; returns their number. */
size_t wpk_json_get_ints(struct wpk_json_reader *reader, const char *key, int64_t min, int64_t max,
                         int64_t *out, size_t out_max);

/* Append the bytes of the value at `key` to `out`. Where `out` has no room, both `out` and the
 * reader fail. */
void wpk_json_get_raw(struct wpk_json_reader *reader, const char *key, struct wpk_buf *out);

/* Begin a document whose root is an object; the caller frees the writer. NULL when out of
 * memory. */
struct wpk_json_writer *wpk_json_writer_new_object(void);
void wpk_json_writer_free(struct wpk_json_writer *writer);

/* Calls of begin and end pair up; `key` is NULL inside an array and only there. wpk_json_print()
 * reports a NULL writer and the failures of these functions. Bytes of a text that are not UTF-8 (in
 * a compiler's output) are replaced by U+FFFD. */
void wpk_json_begin_object(struct wpk_json_writer *writer, const char *key);
void wpk_json_begin_array(struct wpk_json_writer *writer, const char *key);
void wpk_json_end(struct wpk_json_writer *writer);
void wpk_json_put_null(struct wpk_json_writer *writer, const char *key);
void wpk_json_put_bool(struct wpk_json_writer *writer, const char *key, bool value);
void wpk_json_put_int(struct wpk_json_writer *writer, const char *key, int64_t value);  /* < 2^53 */
void wpk_json_put_u64(struct wpk_json_writer *writer, const char *key, uint64_t value); /* string */
void wpk_json_put_real(struct wpk_json_writer *writer, const char *key, double value);  /* finite */
void wpk_json_put_text(struct wpk_json_writer *writer, const char *key, const char *value);
/* Put a text; null where `value` is NULL or "". */
void wpk_json_put_text_or_null(struct wpk_json_writer *writer, const char *key, const char *value);
/* Put a time as RFC 3339 text; null for 0.
 *   unit    wall_ns: as of wpk_clock_wall_ns */
void wpk_json_put_wall(struct wpk_json_writer *writer, const char *key, uint64_t wall_ns);
void wpk_json_put_bytes(struct wpk_json_writer *writer, const char *key, const char *value,
                        size_t size);
void wpk_json_put_ints(struct wpk_json_writer *writer, const char *key, const int64_t *values,
                       size_t value_count);
/* Put `text`, one JSON value that this program has printed; it is not checked. NULL puts null. */
void wpk_json_put_raw(struct wpk_json_writer *writer, const char *key, const char *text);

/* Let wpk_json_print() fail, for a value that cannot be put. */
void wpk_json_writer_fail(struct wpk_json_writer *writer, wpk_err err);

/* Append the document to `out`. Every object and array that was begun must be ended.
 *
 *   errors  WPK_ENOMEM, WPK_ENOSPC  out->size_max
 */
wpk_err wpk_json_print(const struct wpk_json_writer *writer, bool pretty, struct wpk_buf *out);
/* The same, and free the writer. */
wpk_err wpk_json_finish(struct wpk_json_writer *writer, bool pretty, struct wpk_buf *out);
/* Print the document and a line feed on standard output, and free the writer; nothing is printed if
 * memory runs out.
 *
 *   errors  WPK_ENOMEM
 */
wpk_err wpk_json_puts(struct wpk_json_writer *writer, bool pretty);

/* A configuration file: one JSON object, in which // outside a string begins a comment that ends
 * with its line. Otherwise it is read as strictly as every document: a misspelt member or a wrong
 * type is an error with file, line and field. */

#define WPK_CONFIG_FILE_SIZE_MAX ((size_t)1 << 20) /* bytes */

/* Read and parse `path`. `diag` names the file from then on, also in failures of the caller's own.
 *
 *   owns    caller closes *reader; `diag` (may be NULL) must live as long as it
 *   errors  those of wpk_fs_read() and wpk_json_open(); WPK_EINVAL no object
 */
wpk_err wpk_config_file_open(const char *path, struct wpk_json_reader **reader,
                             struct wpk_diag *diag);

/* Blank out the comments of `text` in place, so that lines and columns stay. */
void wpk_config_file_strip(char *text, size_t size);

#endif
