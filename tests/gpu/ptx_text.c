/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/ptx_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool continues(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_.$%", c) != NULL);
}

static void pass_line(struct wpk_ptx_text *text)
{
    text->at += strcspn(text->at, "\n");
}

static void pass_blanks(struct wpk_ptx_text *text)
{
    for (;; text->at++) {
        if (strncmp(text->at, "//", 2) == 0) {
            pass_line(text);
        }
        if (*text->at == '\n') {
            text->line++;
        } else if (!isspace((unsigned char)*text->at)) {
            return;
        }
    }
}

static void read_word(struct wpk_ptx_text *text)
{
    size_t size = 0;
    pass_blanks(text);
    bool negative = text->at[0] == '-' && isdigit((unsigned char)text->at[1]);
    while (continues(text->at[size]) || (size == 0 && negative)) {
        size++;
        size += strncmp(text->at + size, "::", 2) == 0 ? 2 : 0; /* .L2::128B */
    }
    size += size == 0 && text->at[0] != '\0';
    if (size >= sizeof(text->word)) {
        (void)wpk_ptx_text_fail(text, WPK_EPARSE, "a name of more than %d characters",
                                WPK_PTX_NAME_MAX - 1);
        return;
    }
    memcpy(text->word, text->at, size);
    text->word[size] = '\0';
    text->at += size;
}

/* NVRTC loads a whole vector where it needs a part that is known to lie inside it. */
static void read_pragma(struct wpk_ptx_text *text)
{
    static const char mask[] = "used_bytes_mask ";
    size_t size = strcspn(text->at, ";\n");
    const char *at = strstr(text->at, mask);
    if (at != NULL && at < text->at + size) {
        text->used_bytes = (uint32_t)strtoul(at + strlen(mask), NULL, 10);
    }
    text->at += size;
    text->at += *text->at == ';';
}

void wpk_ptx_text_next(struct wpk_ptx_text *text)
{
    text->word[0] = '\0';
    while (text->err == WPK_OK) {
        read_word(text);
        if (strcmp(text->word, ".loc") != 0 && strcmp(text->word, ".file") != 0 &&
            strcmp(text->word, ".pragma") != 0) {
            return;
        }
        if (strcmp(text->word, ".pragma") == 0) {
            read_pragma(text);
        } else {
            pass_line(text);
        }
    }
}

void wpk_ptx_text_init(struct wpk_ptx_text *text, const char *from, struct wpk_diag *diag)
{
    *text = (struct wpk_ptx_text){.at = from, .line = 1, .diag = diag};
    wpk_ptx_text_next(text);
}

bool wpk_ptx_text_is(const struct wpk_ptx_text *text, const char *word)
{
    return strcmp(text->word, word) == 0;
}

bool wpk_ptx_text_skip(struct wpk_ptx_text *text, const char *word)
{
    bool is = text->err == WPK_OK && wpk_ptx_text_is(text, word);
    if (is) {
        wpk_ptx_text_next(text);
    }
    return is;
}

void wpk_ptx_text_take(struct wpk_ptx_text *text, const char *word)
{
    if (!wpk_ptx_text_skip(text, word)) {
        (void)wpk_ptx_text_fail(text, WPK_EPARSE, "expected '%s' before '%s'", word, text->word);
    }
}

int64_t wpk_ptx_text_integer(struct wpk_ptx_text *text)
{
    uint64_t bits = 0;
    if (!wpk_ptx_text_bits(text->word, 8, &bits) || text->word[1] == 'd') {
        (void)wpk_ptx_text_fail(text, WPK_EPARSE, "expected a whole number before '%s'",
                                text->word);
    }
    wpk_ptx_text_next(text);
    return (int64_t)bits;
}

wpk_err wpk_ptx_text_fail(struct wpk_ptx_text *text, wpk_err err, const char *format, ...)
{
    if (text->err == WPK_OK) {
        char said[WPK_DIAG_TEXT_MAX];
        va_list args;
        va_start(args, format);
        vsnprintf(said, sizeof(said), format, args);
        va_end(args);
        wpk_diag_set_at(text->diag, text->line, 0, "%s", said);
        text->err = err;
        text->word[0] = '\0';
    }
    return text->err;
}

bool wpk_ptx_text_bits(const char *word, int size, uint64_t *bits)
{
    char *end = NULL;
    bool real =
        word[0] == '0' && (word[1] == 'f' || word[1] == 'F' || word[1] == 'd' || word[1] == 'D');
    if (!isdigit((unsigned char)word[word[0] == '-'])) {
        return false;
    }
    errno = 0;
    if (real) {
        size_t digits = size == 4 ? 8 : 16;
        *bits = strtoull(word + 2, &end, 16);
        return (tolower((unsigned char)word[1]) == 'f') == (size == 4) && *end == '\0' &&
               strlen(word + 2) == digits;
    }
    *bits = word[0] == '-' ? (uint64_t)strtoll(word, &end, 0) : strtoull(word, &end, 0);
    return errno == 0 && (*end == '\0' || strcmp(end, "U") == 0);
}
