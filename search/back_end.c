/* SPDX-License-Identifier: Apache-2.0 */
#include "search/back_end.h"

#include "common/err.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *kind;
    unsigned traits;
} back_ends[] = {
#define WPK_BACK_END_ROW(symbol, name, kind, traits) {name, kind, traits},
    WPK_BACK_END_LIST(WPK_BACK_END_ROW)
#undef WPK_BACK_END_ROW
};

const char *wpk_back_end_name(int i)
{
    return i >= 0 && i < WPK_BACK_END_COUNT ? back_ends[i].name : NULL;
}

/* True of an entry with any version. */
static bool is_of(const char *entry, const char *name)
{
    size_t size = strlen(name);
    return strncmp(entry, name, size) == 0 && (entry[size] == '\0' || entry[size] == '/');
}

int wpk_back_end_number(const char *entry)
{
    for (int i = 0; i < WPK_BACK_END_COUNT; i++) {
        if (is_of(entry, back_ends[i].name)) {
            return i;
        }
    }
    return -1;
}

unsigned wpk_back_ends_of(const char *kind)
{
    unsigned bits = 0;
    for (int i = 0; i < WPK_BACK_END_COUNT; i++) {
        bits |= strcmp(back_ends[i].kind, kind) == 0 ? 1U << i : 0;
    }
    return bits;
}

int wpk_back_end_first(const char *kind)
{
    unsigned bits = wpk_back_ends_of(kind);
    WPK_ASSERT(bits != 0);
    return __builtin_ctz(bits);
}

static bool has_trait(int i, enum wpk_back_end_trait trait)
{
    return i >= 0 && i < WPK_BACK_END_COUNT && (back_ends[i].traits & trait) != 0;
}

bool wpk_back_end_has_scope_output(int i)
{
    return has_trait(i, WPK_BACK_END_SCOPE_OUTPUT);
}

bool wpk_back_end_takes_all(int i)
{
    return !has_trait(i, WPK_BACK_END_PARTIAL);
}

void wpk_back_end_entry(const char *name, const char *version, char out[WPK_BACK_END_MAX])
{
    snprintf(out, WPK_BACK_END_MAX, "%s%s%s", name, version[0] != '\0' ? "/" : "", version);
}

bool wpk_back_ends_next(const char **list, char out[WPK_BACK_END_MAX])
{
    size_t size = strcspn(*list, "+;");
    snprintf(out, WPK_BACK_END_MAX, "%.*s", (int)size, *list);
    *list += size + ((*list)[size] == '+');
    return size > 0;
}

unsigned wpk_back_ends_read(const char *list)
{
    char entry[WPK_BACK_END_MAX];
    unsigned bits = strcmp(list, WPK_BACK_ENDS_ANY) == 0 ? WPK_BACK_ENDS_ALL : 0;
    while (wpk_back_ends_next(&list, entry)) {
        int number = wpk_back_end_number(entry);
        bits |= number >= 0 ? 1U << number : 0;
    }
    return bits;
}

bool wpk_back_ends_known(const char *list)
{
    char entry[WPK_BACK_END_MAX];
    bool known = *list != '\0', any = strcmp(list, WPK_BACK_ENDS_ANY) == 0;
    while (wpk_back_ends_next(&list, entry)) {
        int number = wpk_back_end_number(entry);
        known = known && number >= 0 && strcmp(entry, back_ends[number].name) == 0;
    }
    return (known && *list == '\0') || any;
}

bool wpk_back_ends_find(const char *list, const char *name, char out[WPK_BACK_END_MAX])
{
    char entry[WPK_BACK_END_MAX];
    while (wpk_back_ends_next(&list, entry)) {
        if (is_of(entry, name)) {
            memcpy(out, entry, sizeof(entry));
            return true;
        }
    }
    return false;
}

void wpk_back_end_provider(const char *list, const char *candidate, char out[WPK_BACK_END_MAX])
{
    static const char gene[] = " " WPK_BACK_END_GENE "=";
    const char *at = strstr(candidate, gene);
    char name[WPK_BACK_END_MAX];
    if (at == NULL) {
        (void)wpk_back_ends_next(&list, out);
        return;
    }
    at += strlen(gene);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, " "), at);
    if (!wpk_back_ends_find(list, name, out)) {
        snprintf(out, WPK_BACK_END_MAX, "%s", name);
    }
}
