/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const char *text;
} err_table[] = {[WPK_OK] = {"OK", "success"},
#define WPK_ERR_ROW(name, text) [WPK_##name] = {#name, text},
                 WPK_ERR_LIST(WPK_ERR_ROW)
#undef WPK_ERR_ROW
};

_Static_assert(sizeof(err_table) / sizeof(err_table[0]) == WPK_ERR_COUNT, "one row per code");

/* Codes arrive from the wire too, so any number is answered. */
static bool err_known(wpk_err err)
{
    return (int)err >= 0 && (int)err < WPK_ERR_COUNT;
}

const char *wpk_err_name(wpk_err err)
{
    return err_known(err) ? err_table[err].name : "EUNKNOWN";
}

const char *wpk_err_text(wpk_err err)
{
    return err_known(err) ? err_table[err].text : "unknown error";
}

static void diag_write(struct wpk_diag *diag, int line, int column, const char *format,
                       va_list args)
{
    if (diag == NULL || diag->text[0] != '\0') {
        return;
    }
    vsnprintf(diag->text, sizeof(diag->text), format, args);
    for (char *p = diag->text; *p != '\0'; p++) {
        if (*p == '\n' || *p == '\r') {
            *p = ' ';
        }
    }
    if (line > 0) {
        diag->line = line;
        diag->column = column;
    }
}

void wpk_diag_set(struct wpk_diag *diag, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    diag_write(diag, 0, 0, format, args);
    va_end(args);
}

wpk_err wpk_fail(struct wpk_diag *diag, wpk_err err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    diag_write(diag, 0, 0, format, args);
    va_end(args);
    return err;
}

wpk_err wpk_diag_in_file(struct wpk_diag *diag, wpk_err err, const char *file)
{
    if (err != WPK_OK && diag != NULL && diag->file[0] == '\0') {
        snprintf(diag->file, sizeof(diag->file), "%s", file);
    }
    return err;
}

void wpk_diag_set_at(struct wpk_diag *diag, int line, int column, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    diag_write(diag, line, column, format, args);
    va_end(args);
}

void wpk_diag_format(const struct wpk_diag *diag, char *out, size_t size)
{
    char place[32] = "";

    WPK_ASSERT(size > 0);
    if (diag->line > 0 && diag->column > 0) {
        snprintf(place, sizeof(place), "%d:%d", diag->line, diag->column);
    } else if (diag->line > 0) {
        snprintf(place, sizeof(place), "%d", diag->line);
    }
    snprintf(out, size, "%s%s%s%s%s%s%s", diag->file,
             diag->file[0] != '\0' && place[0] != '\0' ? ":" : "", place,
             diag->file[0] != '\0' || place[0] != '\0' ? ": " : "", diag->field,
             diag->field[0] != '\0' ? ": " : "", diag->text);
}

void wpk_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}

void *wpk_demand(void *memory, const char *expression, const char *file, int line)
{
    if (memory == NULL) {
        wpk_assert_failed(expression, file, line);
    }
    return memory;
}

bool wpk_begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

int wpk_find(const void *items, size_t count, size_t size, size_t offset, bool is_text,
             const char *name)
{
    for (size_t i = 0; i < count; i++) {
        const char *member = (const char *)items + i * size + offset;
        if (strcmp(is_text ? *(const char *const *)(const void *)member : member, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int wpk_list_find(const char *const *texts, int count, const char *text)
{
    return wpk_find(texts, (size_t)count, sizeof(*texts), 0, true, text);
}
