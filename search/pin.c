/* SPDX-License-Identifier: Apache-2.0 */
#include "search/mask.h"

#include "ir/notation/notation.h"

#include <stdlib.h>
#include <string.h>

struct translation {
    const struct wpk_program *asked;
    const struct wpk_canonical_map *map;
    int stage; /* the asker's stage that the gene's group belongs to, or -1 */
};

/* The asker's tensor whose name begins a group's: all of it, or up to the _ behind which a
 * derivation says what it made. The longest one; -1: none. */
static int find_tensor(const struct translation *t, const char *group, size_t size)
{
    int found = -1;
    size_t longest = 0;
    for (int i = 0; i < t->asked->tensor_count; i++) {
        const char *name = t->asked->tensors[i].name;
        size_t length = strlen(name);
        if (length <= size && length > longest && strncmp(group, name, length) == 0 &&
            (length == size || group[length] == '_') && t->map->tensor[i] >= 0) {
            found = i;
            longest = length;
        }
    }
    return found;
}

/* The stage that writes the tensor, or the first that reads it: its axes are those of copies. */
static int stage_about(const struct wpk_program *program, int tensor)
{
    int stage = wpk_program_writer(program, tensor);
    for (int s = 0; s < program->stage_count && stage < 0; s++) {
        for (struct wpk_loads load = wpk_loads_of(program, &program->stages[s]);
             wpk_loads_next(&load) && stage < 0;) {
            stage = load.node->tensor == tensor ? s : -1;
        }
    }
    return stage;
}

static void put_tensor(struct translation *t, const char *text, size_t size, struct wpk_buf *out)
{
    int tensor = find_tensor(t, text, size);
    size_t known = tensor < 0 ? 0 : strlen(t->asked->tensors[tensor].name);
    if (tensor >= 0) {
        wpk_buf_printf(out, "t%d", t->map->tensor[tensor]);
    }
    wpk_buf_append(out, text + known, size - known);
}

/* The number of an axis of the stage, or of the nearest one before it that has the name; -1. */
static int find_axis(const struct translation *t, const char *text, size_t size)
{
    for (int s = t->stage; s >= 0; s--) {
        const struct wpk_stage *stage = &t->asked->stages[s];
        for (int a = 0; a < stage->axis_count && t->map->stage[s] >= 0; a++) {
            if (strlen(stage->axes[a].name) == size &&
                strncmp(stage->axes[a].name, text, size) == 0) {
                return t->map->axis[s][a];
            }
        }
    }
    return -1;
}

/* The axes of the stage, one behind the other, that a collapsed axis is made of: as many as their
 * names together are the text, beginning with axis `first`; 0 where they are not. */
static int count_joined(const struct wpk_stage *stage, int first, const char *text, size_t size)
{
    int count = 0;
    while (size > 0 && first + count < stage->axis_count) {
        const char *name = stage->axes[first + count++].name;
        size_t length = strlen(name);
        if (length > size || strncmp(name, text, length) != 0) {
            return 0;
        }
        text += length;
        size -= length;
    }
    return size == 0 ? count : 0;
}

/* Collapsed y and x are yx. */
static bool put_joined(const struct translation *t, const char *text, size_t size,
                       struct wpk_buf *out)
{
    for (int s = t->stage; s >= 0; s--) {
        const struct wpk_stage *stage = &t->asked->stages[s];
        for (int a = 0; a < stage->axis_count && t->map->stage[s] >= 0; a++) {
            int count = count_joined(stage, a, text, size);
            for (int i = a; i < a + count; i++) {
                wpk_buf_printf(out, "a%d", t->map->axis[s][i]);
            }
            if (count > 0) {
                return true;
            }
        }
    }
    return false;
}

/* A tile of minimal filtering along y is ty. */
static void put_axis(const struct translation *t, const char *text, size_t size,
                     struct wpk_buf *out)
{
    int axis = find_axis(t, text, size);
    bool tiled = axis < 0 && size > 1 && text[0] == 't' && find_axis(t, text + 1, size - 1) >= 0;
    if (tiled) {
        axis = find_axis(t, text + 1, size - 1);
    }
    if (axis >= 0) {
        wpk_buf_printf(out, "%sa%d", tiled ? "t" : "", axis);
    } else if (!put_joined(t, text, size, out)) {
        wpk_buf_append(out, text, size);
    }
}

static void put_axes(const struct translation *t, const char *text, struct wpk_buf *out)
{
    for (size_t size; *text != '\0'; text += size) {
        size = *text == ',' ? 1 : strcspn(text, ",");
        if (*text == ',') {
            wpk_buf_append_byte(out, ',');
        } else {
            put_axis(t, text, size, out);
        }
    }
}

static bool is_any(const char *word, const char *const *words, size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        found = found || strcmp(word, words[i]) == 0;
    }
    return found;
}

wpk_err wpk_pin_canonical(const struct wpk_program *asked, const struct wpk_canonical_map *map,
                          const char *gene, const char *choice, struct wpk_buf *name,
                          struct wpk_buf *value)
{
    static const char *const of_axes[] = {"vec", "inner", "outer", "red"};
    struct translation t = {.asked = asked, .map = map, .stage = -1};
    size_t size = strcspn(gene, ".");
    bool site = strncmp(gene, "algorithm.", size + 1) == 0;
    if (gene[size] == '\0' || site) { /* algorithm, layout */
        wpk_buf_append(name, gene, size + site);
        put_tensor(&t, gene + size + site, strlen(gene + size + site), name);
        wpk_buf_append_text(value, choice);
        return wpk_buf_status(name) != WPK_OK ? wpk_buf_status(name) : wpk_buf_status(value);
    }
    int tensor = find_tensor(&t, gene, size);
    t.stage = tensor < 0 ? -1 : stage_about(asked, tensor);
    put_tensor(&t, gene, size, name);
    const char *what = gene + size + 1;
    size_t known = strcspn(what, ".");
    wpk_buf_append(name, gene + size, 1 + known + (what[known] == '.'));
    if (what[known] == '.' && wpk_begins(what, "pack.")) {
        put_tensor(&t, what + known + 1, strlen(what + known + 1), name);
    } else if (what[known] == '.') {
        put_axis(&t, what + known + 1, strlen(what + known + 1), name);
    }
    if (is_any(what, of_axes, sizeof of_axes / sizeof of_axes[0])) {
        put_axes(&t, choice, value);
    } else if (strcmp(what, "at") == 0 && strchr(choice, '.') != NULL) {
        size_t group = strcspn(choice, ".");
        put_tensor(&t, choice, group, value);
        wpk_buf_append_text(value, choice + group);
    } else {
        wpk_buf_append_text(value, choice);
    }
    return wpk_buf_status(name) != WPK_OK ? wpk_buf_status(name) : wpk_buf_status(value);
}

wpk_err wpk_candidate_rename(const char *from, const char *to, const char *text,
                             struct wpk_buf *out)
{
    struct wpk_canonical_map *map = WPK_DEMAND(malloc(sizeof *map));
    struct wpk_program own = {0}, other = {0};
    char *copy = WPK_DEMAND(strdup(text)), *rest = copy;
    wpk_err err = wpk_program_parse(from, &own, NULL);
    err = err == WPK_OK ? wpk_program_parse(to, &other, NULL) : err;
    err = err == WPK_OK ? wpk_program_relate(&own, &other, map) : err;
    for (char *word; err == WPK_OK && (word = strsep(&rest, " ")) != NULL;) {
        struct wpk_buf value = {0};
        char *choice = strchr(word, '=');
        wpk_buf_append_text(out, word == copy ? "" : " ");
        if (choice == NULL) {
            wpk_buf_append_text(out, word); /* the space's version */
            continue;
        }
        *choice++ = '\0';
        err = wpk_pin_canonical(&own, map, word, choice, out, &value);
        wpk_buf_append_byte(out, '=');
        wpk_buf_append_text(out, wpk_buf_text(&value));
        wpk_buf_fini(&value);
    }
    wpk_program_fini(&own);
    wpk_program_fini(&other);
    free(copy);
    free(map);
    return err == WPK_OK ? wpk_buf_status(out) : err;
}
