/* SPDX-License-Identifier: Apache-2.0 */
/* The three ways in which something goes wrong, and the one type for the second of them.
 *
 *   bug      WPK_ASSERT          aborts with file and line, in release builds too
 *   failure  wpk_err             returned, never ignored; the detail travels in struct wpk_diag
 *   outcome  enum wpk_outcome    of a candidate; see schema/record.h, it is data, not an error
 *
 * Codes, names and texts come from one list, so they cannot drift apart. */
#ifndef WPK_COMMON_ERR_H
#define WPK_COMMON_ERR_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Expand a list of rows X(name, text) to its texts, in order: {WPK_ERR_LIST(WPK_LIST_TEXT)}. */
#define WPK_LIST_TEXT(name, text) text,
/* The place of the text among these; -1: it is none of them. */
int wpk_list_find(const char *const *texts, int count, const char *text);
/* The place of the first item that has the name, among `count` items of a struct; -1: none has it.
 *   shape   member: the item's name, a char array or a text that is not NULL */
#define WPK_FIND(type, member, items, count, name)                                                 \
    wpk_find(items, (size_t)(count), sizeof(type), offsetof(type, member),                         \
             _Generic(&((type *)0)->member, char **: true, const char **: true, default: false),   \
             name)
int wpk_find(const void *items, size_t count, size_t size, size_t offset, bool is_text,
             const char *name);
/* True if the text begins with all of the prefix. */
bool wpk_begins(const char *text, const char *prefix);
/* Define the function that gives the text of an enum's value, and the one that reads it.
 *   shape   texts: an array of the file, in the enum's order
 *   errors  of reading: WPK_ENOENT */
#define WPK_LIST_NAME(function, type, texts)                                                       \
    const char *function(type value)                                                               \
    {                                                                                              \
        WPK_ASSERT((size_t)value < sizeof(texts) / sizeof((texts)[0]));                            \
        return (texts)[value];                                                                     \
    }
#define WPK_LIST_PARSE(function, type, texts)                                                      \
    wpk_err function(const char *text, type *out)                                                  \
    {                                                                                              \
        int found = wpk_list_find(texts, (int)(sizeof(texts) / sizeof((texts)[0])), text);         \
        if (found < 0) {                                                                           \
            return WPK_ENOENT;                                                                     \
        }                                                                                          \
        *out = (type)found;                                                                        \
        return WPK_OK;                                                                             \
    }

/* name, text */
#define WPK_ERR_LIST(X)                                                                            \
    X(ENOMEM, "out of memory")                                                                     \
    X(EINVAL, "invalid argument")                                                                  \
    X(EPARSE, "malformed input")                                                                   \
    X(ERANGE, "value out of range")                                                                \
    X(EUNSUPPORTED, "not supported")                                                               \
    X(ENOENT, "not found")                                                                         \
    X(EEXIST, "already exists")                                                                    \
    X(ENOSPC, "no room")                                                                           \
    X(EIO, "input/output error")                                                                   \
    X(ETIMEDOUT, "timed out")                                                                      \
    X(ECLOSED, "closed by the other side")                                                         \
    X(EBUSY, "in use by another process")                                                          \
    X(EACCES, "permission denied")                                                                 \
    X(ECORRUPT, "stored data is corrupt")                                                          \
    X(EMISMATCH, "does not fit this device or version")                                            \
    X(EEXHAUSTED, "nothing left to try")                                                           \
    X(ESYSTEM, "a system call failed")

/* A text; "" for NULL. */
#define WPK_OR_EMPTY(text) ((text) != NULL ? (text) : "")

#if defined(__clang__)
#define WPK_NODISCARD __attribute__((warn_unused_result))
#elif defined(__GNUC__) && __GNUC__ >= 10
#define WPK_NODISCARD [[nodiscard]]
#else
#define WPK_NODISCARD
#endif

/* No result of this type may be ignored. */
__extension__ typedef enum WPK_NODISCARD wpk_err_code {
    WPK_OK = 0,
#define WPK_ERR_ENUM(name, text) WPK_##name,
    WPK_ERR_LIST(WPK_ERR_ENUM)
#undef WPK_ERR_ENUM
        WPK_ERR_COUNT
} wpk_err_code;

#if defined(__GNUC__)
#define WPK_MUST_CHECK __attribute__((warn_unused_result))
#define WPK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WPK_NORETURN __attribute__((noreturn))
#define WPK_UNUSED __attribute__((unused)) /* a parameter that a callback has and does not need */
#else
#define WPK_MUST_CHECK
#define WPK_PRINTF(fmt, args)
#define WPK_NORETURN
#define WPK_UNUSED
#endif

/* An error code as every fallible function returns it; WPK_OK is 0. */
typedef enum wpk_err_code wpk_err;

#define WPK_DIAG_TEXT_MAX 512

/* Human detail of one failure, written once by the lowest layer that knows.
 * line and column count from 1; 0 means "no position". `file` and `field` may be empty. */
struct wpk_diag {
    char text[WPK_DIAG_TEXT_MAX]; /* one sentence, no newline */
    char file[128];               /* as the user named it; filled where it was opened */
    char field[128];              /* JSON path such as ops[1].tensors.X */
    int line;
    int column;
};

/* The code's short name ("EPARSE") and text; never NULL, for unknown codes too. */
const char *wpk_err_name(wpk_err err);
const char *wpk_err_text(wpk_err err);

/* Fill `diag`, which may be NULL, unless a lower layer has filled it already.
 *
 *   errors  none; longer text is cut at WPK_DIAG_TEXT_MAX
 */
void wpk_diag_set(struct wpk_diag *diag, const char *format, ...) WPK_PRINTF(2, 3);
void wpk_diag_set_at(struct wpk_diag *diag, int line, int column, const char *format, ...)
    WPK_PRINTF(4, 5);
/* The same, and return `err`. */
wpk_err wpk_fail(struct wpk_diag *diag, wpk_err err, const char *format, ...) WPK_PRINTF(3, 4);

/* Name the file in a failure's diag, unless one is named there.   returns  err */
wpk_err wpk_diag_in_file(struct wpk_diag *diag, wpk_err err, const char *file);

/* "file:line:column: field: text" with the absent parts left out, cut at `size`. */
void wpk_diag_format(const struct wpk_diag *diag, char *out, size_t size);

void wpk_assert_failed(const char *condition, const char *file, int line) WPK_NORETURN;

/* A condition that only a bug can break. On in release builds; one condition each. */
#define WPK_ASSERT(condition)                                                                      \
    ((condition) ? (void)0 : wpk_assert_failed(#condition, __FILE__, __LINE__))

/* New memory of a program that cannot go on without it: aborts if there is none. */
#define WPK_DEMAND(memory) wpk_demand(memory, #memory, __FILE__, __LINE__)
void *wpk_demand(void *memory, const char *expression, const char *file, int line);

#ifdef __cplusplus
}
#endif
#endif
