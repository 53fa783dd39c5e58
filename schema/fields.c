/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include "common/crypto.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 64 /* members of an object */

static void *at(const void *object, size_t offset)
{
    return (char *)object + offset;
}

/* An integer of the struct: unsigned unless its row has negative numbers. */
static int64_t load(const struct wpk_field *f, size_t offset, size_t size, const void *object)
{
    int64_t wide = 0;
    uint32_t narrow = 0;
    WPK_ASSERT(size == sizeof(bool) || size == sizeof narrow || size == sizeof wide);
    if (size == sizeof wide) {
        memcpy(&wide, at(object, offset), size);
        return wide;
    }
    memcpy(&narrow, at(object, offset), size); /* little-endian */
    return f->min < 0 ? (int32_t)narrow : (int64_t)narrow;
}

static void store(void *member, size_t size, int64_t value)
{
    uint32_t narrow = (uint32_t)value;
    memcpy(member, size == sizeof value ? (const void *)&value : (const void *)&narrow, size);
}

static size_t count_of(const struct wpk_field *f, const void *object)
{
    return (size_t)load(f, f->tag_offset, sizeof(uint32_t), object);
}

/* The object, items or group that the row is about. */
static void *target(const struct wpk_field *f, const void *object)
{
    void *member = at(object, f->offset);
    return f->is_pointer ? *(void **)member : member;
}

/* True if the group is part of the object. */
static bool applies(const struct wpk_field *f, const void *object)
{
    return f->when == 0 || (f->when >> load(f, f->tag_offset, f->size, object) & 1) != 0;
}

static bool is_value(const struct wpk_field *table)
{
    return table->name == NULL && table->kind <= WPK_FIELD_KIND_CUSTOM;
}

static bool is_empty(const struct wpk_field *f, const void *object);

static bool is_empty_object(const struct wpk_field *table, const void *object)
{
    bool decides = table->kind == WPK_FIELD_KIND_ARRAY || table->kind == WPK_FIELD_KIND_PRESENT;
    bool empty = is_empty(table, object);
    for (const struct wpk_field *f = table; !decides && f->kind != WPK_FIELD_KIND_END; f++) {
        empty = empty && is_empty(f, object);
    }
    return empty;
}

static bool is_empty(const struct wpk_field *f, const void *object)
{
    const char *text = NULL;
    switch (f->kind) {
    case WPK_FIELD_KIND_COPY:
    case WPK_FIELD_KIND_LABEL:
    case WPK_FIELD_KIND_HASH:
    case WPK_FIELD_KIND_CUSTOM:
        text = at(object, f->offset);
        return *text == '\0';
    case WPK_FIELD_KIND_TEXT:
    case WPK_FIELD_KIND_OWNED:
        text = *(const char **)at(object, f->offset);
        return text == NULL || (*text == '\0' && f->kind == WPK_FIELD_KIND_TEXT);
    case WPK_FIELD_KIND_ARRAY:
    case WPK_FIELD_KIND_MAP:
        return count_of(f, object) == 0;
    case WPK_FIELD_KIND_OBJECT:
    case WPK_FIELD_KIND_GROUP:
        return is_empty_object(f->table, target(f, object));
    default: /* numbers; a CHECK has none */
        return f->kind == WPK_FIELD_KIND_CHECK || load(f, f->offset, f->size, object) == 0;
    }
}

/* ---- encoding */

static void put_items(struct wpk_json_writer *w, const char *key, const struct wpk_field *f,
                      const void *object);

static void put_value(struct wpk_json_writer *w, const char *key, const struct wpk_field *f,
                      const void *object)
{
    const void *member = at(object, f->offset);
    const char *text = member;
    switch (f->kind) {
    case WPK_FIELD_KIND_INT:
        wpk_json_put_int(w, key, load(f, f->offset, f->size, object));
        break;
    case WPK_FIELD_KIND_U64:
        wpk_json_put_u64(w, key, *(const uint64_t *)member);
        break;
    case WPK_FIELD_KIND_REAL:
        wpk_json_put_real(w, key, *(const double *)member);
        break;
    case WPK_FIELD_KIND_BOOL:
        wpk_json_put_bool(w, key, *(const bool *)member);
        break;
    case WPK_FIELD_KIND_CHOICE:
        WPK_ASSERT(load(f, f->offset, f->size, object) < (int64_t)f->max);
        wpk_json_put_text(w, key, f->names[load(f, f->offset, f->size, object)]);
        break;
    case WPK_FIELD_KIND_TEXT:
    case WPK_FIELD_KIND_OWNED:
        text = *(const char *const *)member;
        wpk_json_put_text(w, key, text != NULL ? text : "");
        break;
    case WPK_FIELD_KIND_CUSTOM:
        f->put(w, key, member);
        break;
    case WPK_FIELD_KIND_VERSION:
        wpk_json_put_int(w, key, (int64_t)f->max);
        break;
    case WPK_FIELD_KIND_OBJECT:
        wpk_fields_put(w, key, f->table, target(f, object));
        break;
    case WPK_FIELD_KIND_ARRAY:
    case WPK_FIELD_KIND_MAP:
        put_items(w, key, f, object);
        break;
    case WPK_FIELD_KIND_GROUP:
        if (applies(f, object)) {
            wpk_fields_put_here(w, f->table, target(f, object));
        }
        break;
    case WPK_FIELD_KIND_PRESENT:
    case WPK_FIELD_KIND_CHECK:
        break;
    default:
        wpk_json_put_text(w, key, text);
    }
}

static void put_items(struct wpk_json_writer *w, const char *key, const struct wpk_field *f,
                      const void *object)
{
    WPK_ASSERT(count_of(f, object) <= (size_t)f->max);
    (f->kind == WPK_FIELD_KIND_MAP ? wpk_json_begin_object : wpk_json_begin_array)(w, key);
    for (size_t i = 0; i < count_of(f, object); i++) {
        const void *item = at(target(f, object), i * f->size);
        if (f->kind == WPK_FIELD_KIND_MAP) {
            put_value(w, at(item, f->table[0].offset), &f->table[1], item);
        } else if (is_value(f->table)) {
            put_value(w, NULL, f->table, item);
        } else {
            wpk_fields_put(w, NULL, f->table, item);
        }
    }
    wpk_json_end(w);
}

void wpk_fields_put_here(struct wpk_json_writer *w, const struct wpk_field *table,
                         const void *object)
{
    for (const struct wpk_field *f = table; f->kind != WPK_FIELD_KIND_END; f++) {
        if (!(f->is_optional || f->is_nullable) || !is_empty(f, object)) {
            put_value(w, f->name, f, object);
        } else if (f->is_nullable) {
            wpk_json_put_null(w, f->name);
        }
    }
}

void wpk_fields_put(struct wpk_json_writer *w, const char *key, const struct wpk_field *table,
                    const void *object)
{
    wpk_json_begin_object(w, key);
    wpk_fields_put_here(w, table, object);
    wpk_json_end(w);
}

wpk_err wpk_fields_encode(const struct wpk_field *table, const void *object, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_fields_put_here(w, table, object);
    return wpk_json_finish(w, false, out);
}

/* ---- decoding */

static void get_rows(const struct wpk_fields_in *in, const struct wpk_field *row,
                     const struct wpk_field *end, void *object);

/* Let the struct point to memory; the reader fails if there is none. */
static void set_pointer(const struct wpk_fields_in *in, const char *key, void *member, void *memory)
{
    *(void **)member = memory;
    if (memory == NULL) {
        wpk_json_fail(in->r, key, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
    }
}

/* Room for the object or the items of the row; NULL after a failure. */
static void *make_target(const struct wpk_fields_in *in, const struct wpk_field *f, void *object,
                         size_t count)
{
    if (f->is_pointer) {
        set_pointer(in, f->name, at(object, f->offset),
                    in->arena != NULL ? wpk_arena_alloc(in->arena, count, f->size)
                                      : calloc(count > 0 ? count : 1, f->size));
    }
    return target(f, object);
}

/* A member's name, and the value under it. */
static void get_entry(const struct wpk_fields_in *in, const struct wpk_field *table, void *entry)
{
    const char *name = wpk_json_name(in->r);
    size_t size = strlen(name) + 1;
    if (size < 2 || size > table->size) {
        wpk_json_fail(in->r, NULL, WPK_ERANGE, "a name has 1 to %zu bytes", table->size - 1);
        return;
    }
    memcpy(at(entry, table->offset), name, size);
    get_rows(in, table + 1, NULL, entry);
}

static void get_items(const struct wpk_fields_in *in, const struct wpk_field *f, void *object)
{
    size_t most = wpk_json_count(in->r, f->name), count = 0;
    size_t lower = f->is_counted ? count_of(f, object) : (size_t)f->min;
    size_t upper = f->is_counted ? lower : (size_t)f->max;
    if (most < lower || most > upper) {
        wpk_json_fail(in->r, f->name, WPK_ERANGE, "%s than %zu items",
                      most < lower ? "fewer" : "more", most < lower ? lower : upper);
        return;
    }
    void *items = make_target(in, f, object, most);
    if (!f->is_counted) {
        store(at(object, f->tag_offset), sizeof(uint32_t), 0);
    }
    (f->kind == WPK_FIELD_KIND_MAP ? wpk_json_enter : wpk_json_enter_array)(in->r, f->name);
    while (items != NULL && wpk_json_next(in->r)) {
        void *item = at(items, count * f->size);
        count++;
        if (!f->is_counted) { /* before it is decoded: what it owns is freed if that fails */
            store(at(object, f->tag_offset), sizeof(uint32_t), (int64_t)count);
        }
        if (f->kind == WPK_FIELD_KIND_MAP) {
            get_entry(in, f->table, item);
        } else if (is_value(f->table)) {
            get_rows(in, f->table, NULL, item);
        } else {
            wpk_fields_get_here(in, f->table, item);
        }
    }
    wpk_json_leave(in->r);
}

static void get_text(const struct wpk_fields_in *in, const struct wpk_field *f, void *member)
{
    const char *text = NULL;
    switch (f->kind) {
    case WPK_FIELD_KIND_TEXT:
    case WPK_FIELD_KIND_OWNED:
        text = wpk_json_get_text(in->r, f->name, (size_t)f->max);
        set_pointer(in, f->name, member,
                    f->kind == WPK_FIELD_KIND_OWNED ? strdup(text)
                                                    : wpk_arena_copy_text(in->arena, text));
        break;
    case WPK_FIELD_KIND_LABEL:
        wpk_json_get_label(in->r, f->name, member, f->size);
        break;
    default:
        wpk_json_get_copy(in->r, f->name, member, f->size);
        if (f->kind == WPK_FIELD_KIND_HASH && !wpk_crypto_hex_valid(member, WPK_SHA256_SIZE)) {
            wpk_json_fail(in->r, f->name, WPK_EINVAL, "not a SHA-256 in hexadecimal");
        }
    }
}

static void get_version(const struct wpk_fields_in *in, const struct wpk_field *f)
{
    int64_t version = wpk_json_get_int(in->r, f->name, 0, WPK_JSON_INT_MAX);
    if (version != (int64_t)f->max) {
        wpk_json_fail(in->r, f->name, WPK_EMISMATCH, "version %lld is not spoken here, only %d: %s",
                      (long long)version, (int)f->max, f->names[0]);
    }
}

/* Functions of a table see no value after a failure. */
static void call(const struct wpk_fields_in *in, const struct wpk_field *f, void *member)
{
    if (wpk_json_status(in->r) != WPK_OK) {
        return;
    }
    if (f->kind == WPK_FIELD_KIND_CHECK) {
        f->check(in->r, member);
    } else if (f->make != NULL) {
        f->make(in, f->name, member);
    } else {
        f->get(in->r, f->name, member);
    }
}

static void get_value(const struct wpk_fields_in *in, const struct wpk_field *f, void *object)
{
    const char *key = f->name;
    void *member = at(object, f->offset);
    switch (f->kind) {
    case WPK_FIELD_KIND_INT:
        store(member, f->size, wpk_json_get_int(in->r, key, (int64_t)f->min, (int64_t)f->max));
        break;
    case WPK_FIELD_KIND_U64:
        *(uint64_t *)member = wpk_json_get_u64(in->r, key);
        break;
    case WPK_FIELD_KIND_REAL:
        *(double *)member = wpk_json_get_real(in->r, key, f->min, f->max);
        break;
    case WPK_FIELD_KIND_BOOL:
        *(bool *)member = wpk_json_get_bool(in->r, key);
        break;
    case WPK_FIELD_KIND_CHOICE:
        store(member, f->size, (int64_t)wpk_json_get_choice(in->r, key, f->names, (size_t)f->max));
        break;
    case WPK_FIELD_KIND_CUSTOM:
    case WPK_FIELD_KIND_CHECK:
        call(in, f, member);
        break;
    case WPK_FIELD_KIND_VERSION:
        get_version(in, f);
        break;
    case WPK_FIELD_KIND_OBJECT:
        wpk_fields_get(in, key, f->table, member);
        break;
    case WPK_FIELD_KIND_ARRAY:
    case WPK_FIELD_KIND_MAP:
        get_items(in, f, object);
        break;
    case WPK_FIELD_KIND_GROUP:
        member = applies(f, object) ? make_target(in, f, object, 1) : NULL;
        if (member != NULL) {
            get_rows(in, f->table, NULL, member);
        }
        break;
    case WPK_FIELD_KIND_PRESENT:
        *(bool *)member = true;
        break;
    default:
        get_text(in, f, member);
    }
}

static bool is_missing(const struct wpk_fields_in *in, const struct wpk_field *f)
{
    enum wpk_json_kind kind = wpk_json_kind_of(in->r, f->name);
    bool is_null = kind == WPK_JSON_NULL && (in->is_lenient || f->is_nullable);
    bool may_be_missing = f->is_optional || f->is_nullable || f->has_default;
    return may_be_missing && (kind == WPK_JSON_ABSENT || is_null);
}

/* Decode the rows from `row` to `end`; NULL: to the last one. */
static void get_rows(const struct wpk_fields_in *in, const struct wpk_field *row,
                     const struct wpk_field *end, void *object)
{
    for (const struct wpk_field *f = row; f != end && f->kind != WPK_FIELD_KIND_END; f++) {
        if (f->name == NULL || !is_missing(in, f)) {
            get_value(in, f, object);
        } else if (f->kind == WPK_FIELD_KIND_TEXT && !f->has_default) {
            *(const char **)at(object, f->offset) = "";
        }
    }
}

/* List the names of an object's members behind those that are listed; return how many they are. */
static size_t list_names(const struct wpk_field *table, const void *object, const char **names,
                         size_t count)
{
    for (const struct wpk_field *f = table; f->kind != WPK_FIELD_KIND_END; f++) {
        if (f->name != NULL) {
            WPK_ASSERT(count < NAMES_MAX);
            names[count++] = f->name;
        } else if (f->kind == WPK_FIELD_KIND_GROUP && applies(f, object)) {
            count = list_names(f->table, at(object, f->offset), names, count);
        }
    }
    return count;
}

/* The first row before which the object's members are known: versions and tags precede it. */
static const struct wpk_field *find_known(const struct wpk_field *table)
{
    for (const struct wpk_field *f = table; f->kind != WPK_FIELD_KIND_END; f++) {
        if (f->kind == WPK_FIELD_KIND_GROUP && f->when != 0) {
            return f;
        }
    }
    return table->kind == WPK_FIELD_KIND_VERSION ? table + 1 : table;
}

void wpk_fields_get_here(const struct wpk_fields_in *in, const struct wpk_field *table,
                         void *object)
{
    const char *names[NAMES_MAX + 1] = {NULL};
    const struct wpk_field *known = find_known(table);
    get_rows(in, table, known, object);
    if (!in->is_lenient) {
        list_names(table, object, names, 0);
        wpk_json_allow(in->r, names);
    }
    get_rows(in, known, NULL, object);
}

void wpk_fields_get(const struct wpk_fields_in *in, const char *key, const struct wpk_field *table,
                    void *object)
{
    wpk_json_enter(in->r, key);
    wpk_fields_get_here(in, table, object);
    wpk_json_leave(in->r);
}

wpk_err wpk_fields_decode(const struct wpk_fields_text *from, const struct wpk_field *table,
                          void *object, struct wpk_diag *diag)
{
    struct wpk_fields_in in = {.arena = from->arena, .is_lenient = from->is_lenient};
    wpk_err err = wpk_json_open(from->text, from->size, from->size_max, &in.r, diag);
    if (err == WPK_OK) {
        wpk_fields_get_here(&in, table, object);
        err = wpk_json_status(in.r);
        wpk_json_close(in.r);
    }
    return err;
}

void wpk_fields_fini(const struct wpk_field *table, void *object)
{
    for (const struct wpk_field *f = table; f->kind != WPK_FIELD_KIND_END; f++) {
        char **text = at(object, f->offset);
        if (f->kind == WPK_FIELD_KIND_OWNED) {
            free(*text);
            *text = NULL;
        } else if (f->kind == WPK_FIELD_KIND_ARRAY) {
            for (size_t i = 0; i < count_of(f, object); i++) {
                wpk_fields_fini(f->table, at(target(f, object), i * f->size));
            }
        } else if (f->table != NULL && target(f, object) != NULL) {
            wpk_fields_fini(f->table, target(f, object));
        }
    }
}
