/* SPDX-License-Identifier: Apache-2.0 */
/* The reader: the only file that knows cJSON.
 *
 * json_text.c checks the text before cJSON parses it. A stack of frames is the current place: frame
 * 0 is the root; enter pushes, leave pops, next moves the top frame's item. A failure derives the
 * path of the field from the frames, and its position from path and text; none is kept. */
#include "common/json.h"

#include "common/json_text.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A frame contributes its key and its item; the failing key comes on top. */
#define FRAME_MAX (WPK_JSON_DEPTH_MAX + 1)
#define FEW 24 /* members */
#define STEP_MAX (2 * FRAME_MAX + 1)

struct frame {
    const cJSON *node;
    const cJSON *next; /* what wpk_json_next() will step to */
    const cJSON *item; /* what it stepped to; NULL before and after the iteration */
    const char *key;   /* how we came here from the frame below; NULL: it is that frame's item */
    size_t item_index;
};

struct wpk_json_reader {
    cJSON *root; /* owned */
    char *text;  /* owned copy; positions come from it */
    size_t size;
    struct wpk_diag *diag; /* borrowed, may be NULL */
    wpk_err err;           /* the first failure */
    size_t frame_count;
    struct frame frames[FRAME_MAX];
    /* The array, item and byte offset of the last search: the next search begins there. */
    const cJSON *mark_array;
    size_t mark_index;
    size_t mark_offset;
};

static const struct frame *top(const struct wpk_json_reader *reader)
{
    return &reader->frames[reader->frame_count - 1];
}

/* The value we are at. */
static const cJSON *current(const struct wpk_json_reader *reader)
{
    return top(reader)->item != NULL ? top(reader)->item : top(reader)->node;
}

/* The value `key` means; NULL if it is absent or something failed. */
static const cJSON *find(const struct wpk_json_reader *reader, const char *key)
{
    if (reader->err != WPK_OK) {
        return NULL;
    }
    return key == NULL ? current(reader) : cJSON_GetObjectItemCaseSensitive(current(reader), key);
}

static size_t collect_steps(const struct wpk_json_reader *reader, const char *key,
                            struct wpk_json_step steps[STEP_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < reader->frame_count; i++) {
        const struct frame *frame = &reader->frames[i];
        if (frame->key != NULL) {
            steps[count++] = (struct wpk_json_step){.key = frame->key};
        }
        if (frame->item != NULL) {
            steps[count++] = cJSON_IsObject(frame->node)
                                 ? (struct wpk_json_step){.key = frame->item->string}
                                 : (struct wpk_json_step){.index = frame->item_index};
        }
    }
    if (key != NULL) {
        steps[count++] = (struct wpk_json_step){.key = key};
    }
    return count;
}

/* ops[1].tensors.X; cut where the field ends. */
static void format_path(const struct wpk_json_step *steps, size_t step_count, char *out,
                        size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < step_count && used < size; i++) {
        int length = steps[i].key != NULL
                         ? snprintf(out + used, size - used, "%s%s", i > 0 ? "." : "", steps[i].key)
                         : snprintf(out + used, size - used, "[%zu]", steps[i].index);
        used += length > 0 ? (size_t)length : 0;
    }
    for (char *p = out; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            *p = '?';
        }
    }
}

/* Record the first failure at `steps`; on the member's name rather than its value if `at_name`. */
static void fail_at(struct wpk_json_reader *reader, const struct wpk_json_step *steps,
                    size_t step_count, bool at_name, wpk_err err, const char *format, va_list args)
{
    struct wpk_diag *diag = reader->diag;
    struct wpk_json_place place;

    WPK_ASSERT(err != WPK_OK);
    if (reader->err != WPK_OK) {
        return;
    }
    reader->err = err;
    if (diag == NULL || diag->text[0] != '\0') {
        return;
    }
    char text[WPK_DIAG_TEXT_MAX];
    vsnprintf(text, sizeof(text), format, args);
    (void)wpk_json_locate(reader->text, reader->size, steps, step_count, &place);
    wpk_diag_set_at(diag, at_name ? place.key_line : place.line,
                    at_name ? place.key_column : place.column, "%s", text);
    format_path(steps, step_count, diag->field, sizeof(diag->field));
}

void wpk_json_fail(struct wpk_json_reader *reader, const char *key, wpk_err err, const char *format,
                   ...)
{
    struct wpk_json_step steps[STEP_MAX];
    va_list args;

    va_start(args, format);
    fail_at(reader, steps, collect_steps(reader, key, steps), false, err, format, args);
    va_end(args);
}

WPK_PRINTF(5, 6)
static void fail_name(struct wpk_json_reader *reader, const struct wpk_json_step *steps,
                      size_t step_count, wpk_err err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_at(reader, steps, step_count, true, err, format, args);
    va_end(args);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A name of `object` that two members have; NULL if none. Quadratic: faster up to FEW members. */
static const char *find_duplicate_of_few(const cJSON *object)
{
    for (const cJSON *child = object->child; child != NULL; child = child->next) {
        for (const cJSON *other = child->next; other != NULL; other = other->next) {
            if (child->string[0] == other->string[0] && strcmp(child->string, other->string) == 0) {
                return child->string;
            }
        }
    }
    return NULL;
}

/* Sorted, because an object of a megabyte has a hundred thousand members. */
static const char *find_duplicate(const cJSON *object, size_t count, wpk_err *err)
{
    if (count <= FEW) {
        return find_duplicate_of_few(object);
    }
    const char *duplicate = NULL;
    const char **names = calloc(count, sizeof(*names));
    size_t i = 0;

    if (names == NULL) {
        *err = WPK_ENOMEM;
        return NULL;
    }
    for (const cJSON *child = object->child; child != NULL; child = child->next) {
        names[i++] = child->string;
    }
    qsort(names, count, sizeof(*names), compare_names);
    for (i = 1; i < count && duplicate == NULL; i++) {
        duplicate = strcmp(names[i - 1], names[i]) == 0 ? names[i] : NULL;
    }
    free(names);
    return duplicate;
}

static void check_names(struct wpk_json_reader *reader, const cJSON *node,
                        struct wpk_json_step steps[STEP_MAX], size_t step_count)
{
    size_t index = 0;

    for (const cJSON *child = node->child; child != NULL; child = child->next, index++) {
        if (child->child != NULL) {
            steps[step_count] = (struct wpk_json_step){.key = child->string, .index = index};
            check_names(reader, child, steps, step_count + 1);
        }
    }
    if (cJSON_IsObject(node) && index > 1 && reader->err == WPK_OK) {
        wpk_err err = WPK_OK;
        const char *name = find_duplicate(node, index, &err);
        if (name != NULL) {
            steps[step_count] = (struct wpk_json_step){.key = name};
            fail_name(reader, steps, step_count + 1, WPK_EPARSE, "the name appears twice");
        } else if (err != WPK_OK) {
            reader->err = err;
        }
    }
}

wpk_err wpk_json_open(const char *text, size_t size, size_t size_max,
                      struct wpk_json_reader **reader, struct wpk_diag *diag)
{
    struct wpk_json_step steps[STEP_MAX];

    WPK_ASSERT(text != NULL || size == 0);
    size_max = size_max != 0 ? size_max : WPK_JSON_SIZE_MAX_DEFAULT;
    if (size > size_max) {
        return wpk_fail(diag, WPK_ERANGE, "%zu bytes are more than the %zu allowed here", size,
                        size_max);
    }
    wpk_err err = wpk_json_check(text, size, WPK_JSON_DEPTH_MAX, diag);
    if (err != WPK_OK) {
        return err;
    }
    /* Not zeroed: of the frames, 2.6 KB, only those below `frame_count` are ever looked at. */
    struct wpk_json_reader *opened = malloc(sizeof(*opened));
    char *copy = malloc(size);
    cJSON *root = cJSON_ParseWithLength(text, size);
    if (opened == NULL || copy == NULL || root == NULL) {
        cJSON_Delete(root);
        free(copy);
        free(opened);
        return wpk_fail(diag, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
    }
    memcpy(copy, text, size);
    opened->root = root;
    opened->text = copy;
    opened->size = size;
    opened->diag = diag;
    opened->err = WPK_OK;
    opened->mark_array = NULL;
    opened->frame_count = 1;
    opened->frames[0] = (struct frame){.node = root, .next = root->child};
    check_names(opened, root, steps, 0);
    err = opened->err;
    if (err != WPK_OK) {
        wpk_json_close(opened);
        return err;
    }
    *reader = opened;
    return WPK_OK;
}

void wpk_json_close(struct wpk_json_reader *reader)
{
    if (reader != NULL) {
        cJSON_Delete(reader->root);
        free(reader->text);
        free(reader);
    }
}

wpk_err wpk_json_status(const struct wpk_json_reader *reader)
{
    return reader->err;
}

enum wpk_json_kind wpk_json_kind_of(const struct wpk_json_reader *reader, const char *key)
{
    const cJSON *node = find(reader, key);

    if (node == NULL) {
        return WPK_JSON_ABSENT;
    }
    return cJSON_IsObject(node)   ? WPK_JSON_OBJECT
           : cJSON_IsArray(node)  ? WPK_JSON_ARRAY
           : cJSON_IsString(node) ? WPK_JSON_STRING
           : cJSON_IsNumber(node) ? WPK_JSON_NUMBER
           : cJSON_IsBool(node)   ? WPK_JSON_BOOL
                                  : WPK_JSON_NULL;
}

bool wpk_json_has(const struct wpk_json_reader *reader, const char *key)
{
    return find(reader, key) != NULL;
}

/* The value if it is of this kind; otherwise the failure is recorded and NULL returned. */
static const cJSON *expect(struct wpk_json_reader *reader, const char *key, enum wpk_json_kind kind)
{
    static const char *const kind_names[] = {
        [WPK_JSON_NULL] = "null",       [WPK_JSON_BOOL] = "true or false",
        [WPK_JSON_NUMBER] = "a number", [WPK_JSON_STRING] = "a string",
        [WPK_JSON_ARRAY] = "an array",  [WPK_JSON_OBJECT] = "an object",
    };
    enum wpk_json_kind found = wpk_json_kind_of(reader, key);

    if (found == kind) {
        return find(reader, key);
    }
    /* A missing field is reported where it should be, in the value that lacks it. */
    if (found == WPK_JSON_ABSENT) {
        wpk_json_fail(reader, key, WPK_EINVAL, "is missing; %s is expected", kind_names[kind]);
    } else {
        wpk_json_fail(reader, key, WPK_EINVAL, "must be %s", kind_names[kind]);
    }
    return NULL;
}

static void push(struct wpk_json_reader *reader, const char *key, enum wpk_json_kind kind)
{
    const cJSON *node = expect(reader, key, kind);

    if (node == NULL) {
        return;
    }
    WPK_ASSERT(reader->frame_count < FRAME_MAX);
    reader->frames[reader->frame_count++] = (struct frame){
        .node = node,
        .next = node->child,
        .key = key != NULL ? node->string : NULL, /* the tree's copy outlives the caller's */
    };
}

void wpk_json_enter(struct wpk_json_reader *reader, const char *key)
{
    push(reader, key, WPK_JSON_OBJECT);
}

void wpk_json_enter_array(struct wpk_json_reader *reader, const char *key)
{
    push(reader, key, WPK_JSON_ARRAY);
}

void wpk_json_leave(struct wpk_json_reader *reader)
{
    /* After a failure enter does nothing, so neither does leave. */
    if (reader->err == WPK_OK) {
        WPK_ASSERT(reader->frame_count > 1);
        reader->frame_count--;
    }
}

bool wpk_json_next(struct wpk_json_reader *reader)
{
    if (reader->err != WPK_OK) {
        return false;
    }
    struct frame *frame = &reader->frames[reader->frame_count - 1];
    frame->item_index = frame->item != NULL ? frame->item_index + 1 : 0;
    frame->item = frame->next;
    frame->next = frame->item != NULL ? frame->item->next : NULL;
    return frame->item != NULL;
}

const char *wpk_json_name(const struct wpk_json_reader *reader)
{
    const cJSON *item = top(reader)->item;
    return item != NULL && item->string != NULL ? item->string : "";
}

size_t wpk_json_count(const struct wpk_json_reader *reader, const char *key)
{
    const cJSON *node = find(reader, key);
    size_t count = 0;

    for (const cJSON *child = node != NULL ? node->child : NULL; child != NULL;
         child = child->next) {
        count++;
    }
    return count;
}

void wpk_json_allow(struct wpk_json_reader *reader, const char *const *names)
{
    struct wpk_json_step steps[STEP_MAX];
    const cJSON *object = expect(reader, NULL, WPK_JSON_OBJECT);

    for (const cJSON *child = object != NULL ? object->child : NULL; child != NULL;
         child = child->next) {
        size_t i = 0;
        while (names[i] != NULL && strcmp(names[i], child->string) != 0) {
            i++;
        }
        if (names[i] == NULL) {
            fail_name(reader, steps, collect_steps(reader, child->string, steps), WPK_EINVAL,
                      "unknown field");
            return;
        }
    }
}

int64_t wpk_json_get_int(struct wpk_json_reader *reader, const char *key, int64_t min, int64_t max)
{
    WPK_ASSERT(min <= max);
    const cJSON *node = expect(reader, key, WPK_JSON_NUMBER);
    if (node == NULL) {
        return 0;
    }
    double value = node->valuedouble;
    if (value != trunc(value)) {
        wpk_json_fail(reader, key, WPK_EINVAL, "must be an integer");
        return 0;
    }
    /* Past 2^53 a double has skipped integers, so what it holds may not be what was written. */
    min = min < -WPK_JSON_INT_MAX ? -WPK_JSON_INT_MAX : min;
    max = max > WPK_JSON_INT_MAX ? WPK_JSON_INT_MAX : max;
    if (value < (double)min || value > (double)max) {
        wpk_json_fail(reader, key, WPK_ERANGE, "must be between %lld and %lld", (long long)min,
                      (long long)max);
        return 0;
    }
    return (int64_t)value;
}

double wpk_json_get_real(struct wpk_json_reader *reader, const char *key, double min, double max)
{
    WPK_ASSERT(min <= max);
    const cJSON *node = expect(reader, key, WPK_JSON_NUMBER);
    if (node == NULL) {
        return 0;
    }
    /* 1e400 has become infinite. */
    if (!isfinite(node->valuedouble) || node->valuedouble < min || node->valuedouble > max) {
        wpk_json_fail(reader, key, WPK_ERANGE, "must be between %g and %g", min, max);
        return 0;
    }
    return node->valuedouble;
}

bool wpk_json_get_bool(struct wpk_json_reader *reader, const char *key)
{
    const cJSON *node = expect(reader, key, WPK_JSON_BOOL);

    return node != NULL && cJSON_IsTrue(node);
}

const char *wpk_json_get_text(struct wpk_json_reader *reader, const char *key, size_t size_max)
{
    const cJSON *node = expect(reader, key, WPK_JSON_STRING);

    if (node == NULL) {
        return "";
    }
    if (strlen(node->valuestring) > size_max) {
        wpk_json_fail(reader, key, WPK_ERANGE, "must be at most %zu bytes long", size_max);
        return "";
    }
    return node->valuestring;
}

/* The innermost array that is iterated, and how many steps lead to its item; 0: there is none. */
static size_t find_array(const struct wpk_json_reader *reader, const struct frame **out)
{
    size_t count = 0, found = 0;
    for (size_t i = 0; i < reader->frame_count; i++) {
        const struct frame *frame = &reader->frames[i];
        count += (frame->key != NULL ? 1U : 0U) + (frame->item != NULL ? 1U : 0U);
        if (frame->item != NULL && cJSON_IsArray(frame->node)) {
            *out = frame;
            found = count;
        }
    }
    return found;
}

/* Where the array's item begins, to which `steps` lead. */
static size_t item_offset(struct wpk_json_reader *reader, const struct frame *array,
                          const struct wpk_json_step *steps, size_t step_count)
{
    struct wpk_json_place place;
    if (reader->mark_array == array->node && reader->mark_index <= array->item_index) {
        place.offset = wpk_json_skip(reader->text, reader->size, reader->mark_offset,
                                     array->item_index - reader->mark_index);
    } else {
        bool found = wpk_json_locate(reader->text, reader->size, steps, step_count, &place);
        WPK_ASSERT(found);
    }
    reader->mark_array = array->node;
    reader->mark_index = array->item_index;
    reader->mark_offset = place.offset;
    return place.offset;
}

void wpk_json_get_raw(struct wpk_json_reader *reader, const char *key, struct wpk_buf *out)
{
    struct wpk_json_step steps[STEP_MAX];
    struct wpk_json_place place;
    const struct frame *array = NULL;
    if (find(reader, key) == NULL) {
        wpk_json_fail(reader, key, WPK_EINVAL, "is missing");
        return;
    }
    size_t count = collect_steps(reader, key, steps);
    size_t first = find_array(reader, &array);
    size_t start = first > 0 ? item_offset(reader, array, steps, first) : 0;
    bool found = wpk_json_locate(reader->text + start, reader->size - start, steps + first,
                                 count - first, &place);
    WPK_ASSERT(found);
    wpk_buf_append(out, reader->text + start + place.offset, place.size);
    if (out->err != WPK_OK) {
        wpk_json_fail(reader, key, out->err, "%s", wpk_err_text(out->err));
    }
}
