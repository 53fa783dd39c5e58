/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/nest_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"

int wpk_text_column(const struct wpk_text_reader *reader, int word)
{
    return word < reader->word_count ? (int)(reader->word[word] - reader->text) + 1 : 1;
}

wpk_err wpk_text_fail(struct wpk_text_reader *reader, int word, const char *format, ...)
{
    char what[WPK_DIAG_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    wpk_diag_set_at(reader->diag, reader->line, wpk_text_column(reader, word), "%s", what);
    return WPK_EPARSE;
}

bool wpk_text_is(const struct wpk_text_reader *reader, int word, const char *text)
{
    return word < reader->word_count && strcmp(reader->word[word], text) == 0;
}

static wpk_err cut_line(struct wpk_text_reader *reader)
{
    char *hash = strchr(reader->text, '#');
    if (hash != NULL) {
        *hash = '\0';
    }
    for (char *p = reader->text + strspn(reader->text, BLANKS); *p != '\0';
         p += strspn(p, BLANKS)) {
        if (reader->word_count == WPK_TEXT_WORDS_MAX) {
            return wpk_text_fail(reader, 0, "too many words");
        }
        reader->word[reader->word_count++] = p;
        p += strcspn(p, BLANKS);
        if (*p != '\0') {
            *p++ = '\0';
        }
    }
    return WPK_OK;
}

bool wpk_text_next(struct wpk_text_reader *reader, wpk_err *err)
{
    *err = WPK_OK;
    while (*reader->next != '\0') {
        size_t size = strcspn(reader->next, "\n");
        reader->line++;
        reader->word_count = 0;
        if (size >= sizeof(reader->text)) {
            *err = wpk_text_fail(reader, 0, "line too long");
            return false;
        }
        memcpy(reader->text, reader->next, size);
        reader->text[size] = '\0';
        reader->next += size + (reader->next[size] == '\n');
        *err = cut_line(reader);
        if (*err != WPK_OK || reader->word_count > 0) {
            return *err == WPK_OK;
        }
    }
    return false;
}

/* A number is written in one way only. */
static bool is_number(const char *word)
{
    const char *digits = word + (word[0] == '-');
    size_t count = strspn(digits, "0123456789");
    return count > 0 && digits[count] == '\0' &&
           (digits[0] != '0' || (count == 1 && digits == word));
}

wpk_err wpk_text_int(struct wpk_text_reader *reader, int word, int64_t low, int64_t high,
                     int64_t *out)
{
    if (word >= reader->word_count || !is_number(reader->word[word])) {
        return wpk_text_fail(reader, word, "expected a number without + or leading zeros");
    }
    long long value = strtoll(reader->word[word], NULL, 10);
    if (value < low || value > high) {
        (void)wpk_text_fail(reader, word, "the number is not in %lld ... %lld", (long long)low,
                            (long long)high);
        return WPK_ERANGE;
    }
    *out = value;
    return WPK_OK;
}
