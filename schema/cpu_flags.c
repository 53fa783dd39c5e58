/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/cpu_flags.h"

#include "common/json.h"

#include <stdio.h>
#include <string.h>

#define NAME(suffix, text, option) text,
static const char *const names[] = {WPK_CPU_FLAG_LIST(NAME)};

_Static_assert(WPK_CPU_FLAG_COUNT < 31, "an enum holds each flag");

#define LEVEL(suffix, text, bytes, registers) {text, WPK_CPU_SET_##suffix, bytes, registers},
static const struct level {
    const char *name;
    wpk_cpu_flags flags;
    int vector_bytes;
    int vector_registers;
} levels[] = {WPK_CPU_LEVEL_LIST(LEVEL)};

static const struct level *level_of(enum wpk_cpu_level level)
{
    WPK_ASSERT((int)level >= 0);
    WPK_ASSERT(level < WPK_CPU_LEVEL_COUNT);
    return &levels[level];
}

wpk_cpu_flags wpk_cpu_level_flags(enum wpk_cpu_level level)
{
    return level_of(level)->flags;
}

int wpk_cpu_level_vector_bytes(enum wpk_cpu_level level)
{
    return level_of(level)->vector_bytes;
}

int wpk_cpu_level_vector_registers(enum wpk_cpu_level level)
{
    return level_of(level)->vector_registers;
}

enum wpk_cpu_level wpk_cpu_flags_level(wpk_cpu_flags flags)
{
    int level = WPK_CPU_LEVEL_COUNT - 1;
    while (!wpk_cpu_flags_fit(levels[level].flags, flags)) {
        level--; /* ends at the empty one */
    }
    return (enum wpk_cpu_level)level;
}

bool wpk_cpu_flags_fit(wpk_cpu_flags needs, wpk_cpu_flags has)
{
    return (needs & ~has) == 0;
}

static void add(wpk_cpu_flags flags, const char *separator, char *out)
{
    size_t used = strlen(out);
    for (int i = 0; i < WPK_CPU_FLAG_COUNT && used < WPK_CPU_FLAGS_TEXT_MAX; i++) {
        if ((flags >> i & 1) != 0) {
            used += (size_t)snprintf(out + used, WPK_CPU_FLAGS_TEXT_MAX - used, "%s%s",
                                     used == 0 ? "" : separator, names[i]);
        }
    }
}

void wpk_cpu_flags_list(wpk_cpu_flags flags, char out[WPK_CPU_FLAGS_TEXT_MAX])
{
    out[0] = '\0';
    add(flags, ", ", out);
}

void wpk_cpu_flags_print(wpk_cpu_flags flags, char out[WPK_CPU_FLAGS_TEXT_MAX])
{
    const struct level *level = level_of(wpk_cpu_flags_level(flags));
    snprintf(out, WPK_CPU_FLAGS_TEXT_MAX, "%s", level->name);
    add(flags & ~level->flags, "+", out);
}

static wpk_cpu_flags level_named(const char *name)
{
    int found = WPK_FIND(struct level, name, levels, WPK_CPU_LEVEL_COUNT, name);
    return found >= 0 ? levels[found].flags : 0;
}

static wpk_cpu_flags flag_named(const char *name)
{
    int found = wpk_list_find(names, WPK_CPU_FLAG_COUNT, name);
    return found >= 0 ? (wpk_cpu_flags)1 << found : 0;
}

wpk_err wpk_cpu_flags_parse(const char *text, wpk_cpu_flags *out)
{
    wpk_cpu_flags flags = 0;
    char word[32], again[WPK_CPU_FLAGS_TEXT_MAX];
    for (const char *p = text, *end = NULL; p != NULL; p = end == NULL ? NULL : end + 1) {
        end = strchr(p, '+');
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(p, "+"), p);
        flags |= p == text ? level_named(word) : flag_named(word);
    }
    wpk_cpu_flags_print(flags, again);
    if (strcmp(again, text) != 0) {
        return WPK_EPARSE; /* a name that is not known, or in another order */
    }
    *out = flags;
    return WPK_OK;
}

void wpk_cpu_flags_put(struct wpk_json_writer *writer, const char *key, const void *flags)
{
    const wpk_cpu_flags *set = flags;
    wpk_json_begin_array(writer, key);
    for (int i = 0; i < WPK_CPU_FLAG_COUNT; i++) {
        if ((*set >> i & 1) != 0) {
            wpk_json_put_text(writer, NULL, names[i]);
        }
    }
    wpk_json_end(writer);
}

void wpk_cpu_flags_get(struct wpk_json_reader *reader, const char *key, void *flags)
{
    wpk_cpu_flags *set = flags;
    *set = 0;
    wpk_json_enter_array(reader, key);
    while (wpk_json_next(reader)) {
        *set |= (wpk_cpu_flags)1 << wpk_json_get_choice(reader, NULL, names, WPK_CPU_FLAG_COUNT);
    }
    wpk_json_leave(reader);
}
