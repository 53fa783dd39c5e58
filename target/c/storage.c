/* SPDX-License-Identifier: Apache-2.0 */
/* Where tensors lie. An argument is a pointer to its element 0; an intermediate tensor is an array,
 * or a set of variables if all indices are numbers. */
#include "target/c/kernel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES_MAX 16384 /* a larger tensor lies on the heap */

/* ---- storages */

static struct wpk_c_storage *add(struct wpk_c_kernel *k, int tensor)
{
    const struct wpk_tensor *t = &k->program->tensors[tensor];
    struct wpk_c_storage *s = k->storage_count < WPK_C_STORAGES_MAX ? calloc(1, sizeof(*s)) : NULL;
    if (s == NULL) {
        wpk_c_refuse(k, "too many tensors inside loops");
        return NULL;
    }
    k->storage_of[tensor] = k->storage_count;
    k->storage[k->storage_count++] = s;
    *s = (struct wpk_c_storage){
        .tensor = tensor, .dtype = t->dtype, .rank = t->rank, .function = k->function, .dim = -1};
    return s;
}

/*   shape  order [rank] dimensions, outermost first; NULL: as they are */
static void set_strides(struct wpk_c_storage *s, const struct wpk_tensor *padded, const int *order)
{
    int64_t stride = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        int d = order == NULL ? i : order[i];
        stride += d == s->spaced ? s->spacing : 0;
        s->stride[d] = stride;
        stride *= s->size[d] + (i == s->rank - 1 ? s->row_padding : 0) +
                  (padded == NULL ? 0 : padded->pad_before[d] + padded->pad_after[d]);
    }
    s->count = stride;
}

void wpk_c_storage_argument(struct wpk_c_kernel *k, int tensor)
{
    const struct wpk_tensor *t = &k->program->tensors[tensor];
    struct wpk_c_storage *s = add(k, tensor);
    if (s == NULL) {
        return;
    }
    s->global = true;
    s->memory = true;
    memcpy(s->size, t->extent, sizeof(s->size));
    set_strides(s, t, NULL);
}

static int64_t cells(const struct wpk_c_storage *s)
{
    int64_t count = 1;
    for (int d = 0; d < s->rank; d++) {
        count *= d == s->dim ? (s->size[d] + s->width - 1) / s->width : s->size[d];
    }
    return count;
}

/* A number follows the first letter of every name: no tensor's name can be another's. */
static void put_cell_name(struct wpk_c_kernel *k, const struct wpk_c_storage *s, int64_t cell)
{
    wpk_c_put(&k->text, "c%d_%" PRId64 "_%s", k->storage_of[s->tensor], cell,
              k->program->tensors[s->tensor].name);
}

/* A pointer into shared memory, or an array of the thread. */
static void declare_in_launch(struct wpk_c_kernel *k, const struct wpk_c_storage *s)
{
    bool shared = wpk_cuda_is_shared(k, s->tensor);
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "%s %s", wpk_c_type_name(wpk_c_memory_type(s->dtype)),
              shared ? "*const " : "");
    wpk_c_storage_put_name(k, s->tensor, k->storage_of[s->tensor]);
    if (shared) {
        wpk_c_put(&k->text, " = ");
        wpk_cuda_put_share(k, s->tensor, s->count);
    } else {
        wpk_c_put(&k->text, "[%" PRId64 "];\n", s->count);
    }
}

/* Elements that become variables are in registers whatever the scope. */
static void declare(struct wpk_c_kernel *k, struct wpk_c_storage *s)
{
    enum wpk_c_type type = wpk_c_memory_type(s->dtype);
    int64_t bytes = s->count * wpk_c_type_bytes(type);
    if (!s->memory) {
        int64_t count = cells(s);
        for (int64_t i = 0; i < count; i++) {
            if (i % 8 == 0) {
                wpk_c_indent(&k->text);
                wpk_c_put_type(&k->text, wpk_c_type_of(s->dtype), s->width);
            }
            wpk_c_put(&k->text, "%s ", i % 8 == 0 ? "" : ",");
            put_cell_name(k, s, i);
            wpk_c_put(&k->text, "%s", i % 8 == 7 || i == count - 1 ? ";\n" : "");
        }
        wpk_cuda_count_cells(k, cells(s));
        return;
    }
    if (k->launch != NULL) {
        declare_in_launch(k, s);
        return;
    }
    enum wpk_scope scope = wpk_c_entry_of(k, s->tensor)->scope;
    s->heap = scope == WPK_SCOPE_HEAP || (scope == WPK_SCOPE_ANY && bytes > STACK_BYTES_MAX);
    wpk_c_indent(&k->text);
    if (s->heap) {
        wpk_c_storage_put_pointer(k, s);
        wpk_c_put(&k->text, " = halide_malloc(user, %" PRId64 ");\n", bytes);
    } else {
        wpk_c_put(&k->text, "%s ", wpk_c_type_name(type));
        wpk_c_storage_put_name(k, s->tensor, k->storage_of[s->tensor]);
        wpk_c_put(&k->text, "[%" PRId64 "] __attribute__((aligned(64)));\n", s->count);
    }
}

void wpk_c_storage_add(struct wpk_c_kernel *k, int tensor, const struct wpk_c_box *box)
{
    const struct wpk_nest_entry *entry = wpk_c_entry_of(k, tensor);
    if (entry->scope == WPK_SCOPE_OUTPUT) {
        /* In the storage of the output that the entry is computed in. */
        WPK_ASSERT(entry->place.entry >= 0);
        const struct wpk_nest_entry *output = &k->nest->entry[entry->place.entry];
        for (int d = 0; d < k->program->tensors[tensor].rank; d++) {
            if (box->size[d] > entry->extent[d]) {
                wpk_c_refuse(k, "more of a stage is computed than of the output that it is in");
            }
        }
        k->storage_of[tensor] = k->storage_of[wpk_nest_stage(k->nest, output)->output];
        return;
    }
    struct wpk_c_storage *s = add(k, tensor);
    if (s == NULL) {
        return;
    }
    memcpy(s->low, box->low, sizeof(s->low));
    memcpy(s->size, box->size, sizeof(s->size));
    s->row_padding = entry->row_padding;
    s->spaced = entry->spaced;
    s->spacing = entry->spacing;
    set_strides(s, NULL, entry->reordered ? entry->storage : NULL);
    if (k->surveying) {
        s->width = 1;
        s->memory = s->dtype == WPK_BOOL || (k->launch != NULL && wpk_cuda_is_shared(k, tensor));
        return;
    }
    WPK_ASSERT(k->storage_count <= k->surveyed_count);
    const struct wpk_c_storage *seen = k->surveyed[k->storage_count - 1];
    memcpy(s->own_count, seen->own_count, sizeof(s->own_count));
    memcpy(s->own_at, seen->own_at, sizeof(s->own_at));
    for (int d = 0; d < s->rank && seen->divided; d++) {
        s->size[d] = seen->own_count[d] >= 0 ? seen->own_count[d] : seen->own[d];
    }
    if (seen->divided) {
        set_strides(s, NULL, entry->reordered ? entry->storage : NULL);
    }
    s->dim = seen->dim;
    s->width = seen->width;
    s->memory = seen->memory || (seen->pokes && seen->width > 1) || cells(s) > WPK_C_CELLS_MAX;
    declare(k, s);
}

void wpk_c_storage_end(struct wpk_c_kernel *k, int first)
{
    for (int i = k->storage_count - 1; i >= first; i--) {
        const struct wpk_c_storage *s = k->storage[i];
        if (k->storage_of[s->tensor] != i) {
            continue;
        }
        if (s->heap) {
            wpk_c_indent(&k->text);
            wpk_c_put(&k->text, "halide_free(user, ");
            wpk_c_storage_put_name(k, s->tensor, i);
            wpk_c_put(&k->text, ");\n");
        }
        k->storage_of[s->tensor] = -1;
    }
}

void wpk_c_storage_put_name(struct wpk_c_kernel *k, int tensor, int storage)
{
    k->storage[storage]->named = true;
    wpk_c_put(&k->text, "s%d_%s", storage, k->program->tensors[tensor].name);
}

void wpk_c_storage_put_pointer(struct wpk_c_kernel *k, const struct wpk_c_storage *s)
{
    enum wpk_role role = k->program->tensors[s->tensor].role;
    bool written = role == WPK_ROLE_INTERMEDIATE || role == WPK_ROLE_OUTPUT;
    bool shared = k->in_place >= 0 && (s->tensor == k->in_place || role == WPK_ROLE_OUTPUT);
    wpk_c_put(&k->text, "%s%s *%sconst ", written ? "" : "const ",
              wpk_c_type_name(wpk_c_memory_type(s->dtype)), shared ? "" : "restrict ");
    wpk_c_storage_put_name(k, s->tensor, k->storage_of[s->tensor]);
}

void wpk_c_storage_put_literal(struct wpk_c_kernel *k, int tensor, const char *qualifiers,
                               struct wpk_buf *out)
{
    const struct wpk_tensor *t = &k->program->tensors[tensor];
    enum wpk_c_type type = wpk_c_memory_type(t->dtype);
    struct wpk_buf *text = k->text.out;
    k->text.out = out;
    wpk_c_put(&k->text, "%s %s ", qualifiers, wpk_c_type_name(type));
    wpk_c_storage_put_name(k, tensor, k->storage_of[tensor]);
    wpk_c_put(&k->text, "[] = {");
    for (int64_t i = 0; i < wpk_tensor_elements(t); i++) {
        wpk_c_put(&k->text, "%s", i == 0 ? "" : i % 8 == 0 ? ",\n  " : ", ");
        wpk_c_put_number(&k->text, type, t->values[i]);
    }
    wpk_c_put(&k->text, "};\n");
    k->text.out = text;
}

/* ---- one access */

/* One access: coordinates in the storage, and their offset in memory. */
struct access {
    struct wpk_c_storage *storage;
    struct wpk_form at[WPK_RANK_MAX];
    struct wpk_form offset;
    int width;
    int varying; /* the dimension of lanes, -1: none or several */
};

/* True if the access reads a part of a cell. */
static bool is_part(const struct access *a, bool writes)
{
    const struct wpk_c_storage *s = a->storage;
    return !writes && a->width > 1 && a->width < s->width && a->varying == s->dim &&
           a->at[s->dim].lane == 1 && s->width % a->width == 0 &&
           a->at[s->dim].constant % a->width == 0;
}

/* Note whether a storage may be variables: its accesses are whole vectors, parts of them that are
 * read, or elements at constant coordinates. Else it has to be in memory. */
static void survey(const struct wpk_c_kernel *k, const struct access *a, bool writes)
{
    struct wpk_c_storage *s = a->storage;
    bool numbers = s->function == k->function, lanes = false;
    for (int d = 0; d < s->rank; d++) {
        numbers = numbers && a->at[d].term_count == 0;
        lanes = lanes || a->at[d].lane != 0;
    }
    if (!numbers || s->memory) {
        s->memory = true;
    } else if (a->width > 1 && lanes && !is_part(a, writes)) {
        bool whole = a->varying >= 0 && a->at[a->varying].lane == 1 &&
                     a->at[a->varying].constant % a->width == 0;
        bool first = s->dim < 0;
        s->memory = !whole || (!first && (s->dim != a->varying || s->width != a->width));
        s->dim = a->varying;
        s->width = a->width;
    } else {
        s->pokes = s->pokes || writes;
    }
}

static bool find(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index, int width,
                 bool writes, struct access *a)
{
    int number = k->storage_of[tensor];
    if (number < 0) {
        wpk_c_refuse(k, "a tensor is read outside of the loop that it is computed in");
        return false;
    }
    a->storage = k->storage[number];
    a->offset = wpk_form_number(0);
    a->width = width;
    a->varying = -1;
    int varying = 0;
    for (int d = 0; d < a->storage->rank; d++) {
        a->at[d] = wpk_form_add(&k->forms, &index[d], &a->storage->low[d], -1);
    }
    if (k->launch != NULL && wpk_cuda_is_private(k, tensor)) {
        wpk_cuda_localize(k, a->storage, a->at);
    }
    for (int d = 0; d < a->storage->rank; d++) {
        a->offset = wpk_form_add(&k->forms, &a->offset, &a->at[d], a->storage->stride[d]);
        bool lanes = width > 1 && !wpk_form_is_uniform(&k->forms, &a->at[d]);
        a->varying = lanes ? d : a->varying;
        varying += lanes;
    }
    a->varying = varying == 1 ? a->varying : -1;
    if (k->surveying) {
        survey(k, a, writes);
    }
    return true;
}

static struct wpk_form at_lane(struct wpk_c_kernel *k, const struct wpk_form *form, int lane)
{
    struct wpk_form at = wpk_form_number(lane);
    return wpk_form_at_lane(&k->forms, form, &at);
}

static void put_cell(struct wpk_c_kernel *k, const struct access *a);

/* Some elements of a cell, as a vector of their own. */
static void put_part(struct wpk_c_kernel *k, const struct access *a)
{
    struct access one = *a;
    one.width = 1;
    wpk_c_put(&k->text, "(");
    wpk_c_put_type(&k->text, wpk_c_type_of(a->storage->dtype), a->width);
    wpk_c_put(&k->text, "){");
    for (int i = 0; i < a->width; i++, one.at[a->varying].constant++) {
        wpk_c_put(&k->text, "%s", i > 0 ? ", " : "");
        put_cell(k, &one);
    }
    wpk_c_put(&k->text, "}");
}

/* The variable of a cell, and the element of it unless the access takes all lanes. */
static void put_cell(struct wpk_c_kernel *k, const struct access *a)
{
    const struct wpk_c_storage *s = a->storage;
    int64_t cell = 0, element = -1;
    if (is_part(a, false)) {
        put_part(k, a);
        return;
    }
    for (int d = 0; d < s->rank; d++) {
        int64_t at = a->at[d].constant, size = s->size[d];
        if (d == s->dim) {
            bool whole = a->width > 1 && a->varying == d;
            element = whole ? -1 : at % s->width;
            at /= s->width;
            size = (size + s->width - 1) / s->width;
        }
        cell = cell * size + at;
    }
    put_cell_name(k, s, cell);
    if (element >= 0 && s->width > 1) {
        wpk_c_put(&k->text, "[%" PRId64 "]", element);
    }
}

static void put_element(struct wpk_c_kernel *k, const struct access *a,
                        const struct wpk_form *offset)
{
    wpk_c_storage_put_name(k, a->storage->tensor, k->storage_of[a->storage->tensor]);
    wpk_c_put(&k->text, "[");
    wpk_c_put_form(&k->text, offset);
    wpk_c_put(&k->text, "]");
}

bool wpk_c_storage_place(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index,
                         struct wpk_form *number)
{
    struct access a;
    if (!find(k, tensor, index, 1, false, &a) || !a.storage->memory) {
        return false;
    }
    *number = a.offset;
    return true;
}

bool wpk_c_storage_group(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index,
                         struct wpk_form *number)
{
    struct access a;
    if (!find(k, tensor, index, k->forms.width, false, &a)) {
        return false;
    }
    a.storage->memory = a.storage->memory || k->surveying;
    *number = a.offset;
    return a.storage->memory;
}

void wpk_c_storage_put_element(struct wpk_c_kernel *k, int tensor, const struct wpk_form *number)
{
    const struct access a = {.storage = k->storage[k->storage_of[tensor]]};
    put_element(k, &a, number);
}

int64_t wpk_c_storage_cells(const struct wpk_c_kernel *k, int tensor)
{
    const struct wpk_c_storage *s = k->storage[k->storage_of[tensor]];
    return s->memory ? s->count : cells(s);
}

void wpk_c_storage_put_cell(struct wpk_c_kernel *k, int tensor, int64_t cell)
{
    const struct wpk_c_storage *s = k->storage[k->storage_of[tensor]];
    struct wpk_form number = wpk_form_number(cell);
    if (s->memory) {
        wpk_c_storage_put_element(k, tensor, &number);
    } else {
        put_cell_name(k, s, cell);
    }
}

/* ---- reading */

/* All lanes as memory has them. */
static void put_lanes(struct wpk_c_kernel *k, const struct access *a)
{
    enum wpk_c_type type = wpk_c_memory_type(a->storage->dtype);
    bool even = wpk_form_is_even(&k->forms, &a->offset);
    if (even && a->offset.lane == 1) {
        struct wpk_form first = at_lane(k, &a->offset, 0);
        wpk_c_put_function(&k->text, WPK_C_LOAD, type, a->width);
        wpk_c_put(&k->text, "(&");
        put_element(k, a, &first);
        wpk_c_put(&k->text, ")");
        return;
    }
    wpk_c_put(&k->text, "(");
    wpk_c_put_type(&k->text, type, a->width);
    wpk_c_put(&k->text, "){");
    for (int i = 0; i < a->width; i++) {
        struct wpk_form offset = at_lane(k, &a->offset, i);
        wpk_c_put(&k->text, "%s", i > 0 ? ", " : "");
        put_element(k, a, &offset);
    }
    wpk_c_put(&k->text, "}");
}

struct wpk_c_value wpk_c_storage_read(struct wpk_c_kernel *k, int tensor,
                                      const struct wpk_form *index, int width)
{
    struct access a;
    if (!find(k, tensor, index, width, false, &a)) {
        return wpk_c_real(k->program->tensors[tensor].dtype, 0);
    }
    enum wpk_dtype dtype = a.storage->dtype;
    bool uniform = wpk_form_is_uniform(&k->forms, &a.offset);
    bool half = a.storage->memory && (dtype == WPK_F16 || dtype == WPK_BF16);
    a.width = uniform ? 1 : width;
    struct wpk_c_value value = dtype == WPK_BOOL && a.width > 1
                                   ? wpk_c_begin_mask(&k->text, a.width, 1)
                                   : wpk_c_begin(&k->text, dtype, a.width);
    if (!a.storage->memory) {
        put_cell(k, &a);
        wpk_c_end(&k->text);
        return value;
    }
    if (half) {
        wpk_c_put_function(&k->text, dtype == WPK_F16 ? WPK_C_FROM_F16 : WPK_C_FROM_BF16, WPK_C_F32,
                           a.width);
        wpk_c_put(&k->text, "(");
    } else if (dtype == WPK_BOOL && a.width > 1) {
        wpk_c_put(&k->text, "0 != ");
    }
    if (a.width == 1) {
        if (k->launch == NULL || !wpk_cuda_put_fetched(k, tensor, &a.offset)) {
            put_element(k, &a, &a.offset);
        }
    } else {
        put_lanes(k, &a);
    }
    wpk_c_put(&k->text, "%s", half ? ")" : "");
    wpk_c_end(&k->text);
    return value;
}

/* ---- writing */

/* The value as memory has it. */
static void put_stored(struct wpk_c_kernel *k, enum wpk_dtype dtype, int width,
                       const struct wpk_c_value *value)
{
    bool half = dtype == WPK_F16 || dtype == WPK_BF16;
    if (half && value->twin > 0 && value->dtype == dtype && value->width == width) {
        wpk_c_put(&k->text, "t%d", value->twin - 1);
        return;
    }
    if (half) {
        wpk_c_put_function(&k->text, dtype == WPK_F16 ? WPK_C_TO_F16 : WPK_C_TO_BF16, WPK_C_F32,
                           width);
        wpk_c_put(&k->text, "(");
    }
    if (dtype == WPK_BOOL && width > 1) {
        wpk_c_put(&k->text, "1 & ");
        wpk_c_put_mask(&k->text, value, width, 1);
    } else {
        wpk_c_put_value(&k->text, value, width);
    }
    wpk_c_put(&k->text, "%s", half ? ")" : "");
}

static void scatter(struct wpk_c_kernel *k, const struct access *a, const struct wpk_c_value *value)
{
    enum wpk_c_type type = wpk_c_memory_type(a->storage->dtype);
    int name = k->text.name_count++;
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "const ");
    wpk_c_put_type(&k->text, type, a->width);
    wpk_c_put(&k->text, " t%d = ", name);
    put_stored(k, a->storage->dtype, a->width, value);
    wpk_c_end(&k->text);
    for (int i = 0; i < a->width; i++) {
        struct wpk_form offset = at_lane(k, &a->offset, i);
        wpk_c_indent(&k->text);
        put_element(k, a, &offset);
        wpk_c_put(&k->text, " = t%d[%d];\n", name, i);
    }
}

void wpk_c_storage_write(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index,
                         int width, const struct wpk_c_value *value)
{
    struct access a;
    if (!find(k, tensor, index, width, true, &a)) {
        return;
    }
    enum wpk_dtype dtype = a.storage->dtype;
    enum wpk_c_type type = wpk_c_memory_type(dtype);
    bool even = wpk_form_is_even(&k->forms, &a.offset) && a.offset.lane == 1;
    if (a.storage->memory && width > 1 && !even) {
        scatter(k, &a, value);
        return;
    }
    wpk_c_indent(&k->text);
    if (!a.storage->memory) {
        put_cell(k, &a);
        wpk_c_put(&k->text, " = ");
        wpk_c_put_value(&k->text, value, width);
    } else if (width > 1) {
        struct wpk_form first = at_lane(k, &a.offset, 0);
        wpk_c_put_function(&k->text, WPK_C_STORE, type, width);
        wpk_c_put(&k->text, "(&");
        put_element(k, &a, &first);
        wpk_c_put(&k->text, ", ");
        put_stored(k, dtype, width, value);
        wpk_c_put(&k->text, ")");
    } else {
        put_element(k, &a, &a.offset);
        wpk_c_put(&k->text, " = ");
        put_stored(k, dtype, width, value);
    }
    wpk_c_end(&k->text);
}

void wpk_c_storage_drop(struct wpk_c_storage **storage, int *count)
{
    for (int i = 0; i < *count; i++) {
        free(storage[i]);
    }
    *count = 0;
}

const char *wpk_c_atom_name(const struct wpk_c_kernel *k, int atom)
{
    return k->forms.atom[atom].name;
}

void wpk_c_advance(struct wpk_c_kernel *k, struct wpk_form *at, int atom, int64_t factor)
{
    struct wpk_form step = wpk_form_atom(atom, factor);
    *at = wpk_form_add(&k->forms, at, &step, 1);
}
