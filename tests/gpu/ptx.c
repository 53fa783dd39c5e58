/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: variables and entries. */
#include "tests/gpu/ptx.h"

#include "tests/gpu/ptx_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLES_SIZE_MAX ((size_t)1 << 20)
#define SHARED_SIZE_MAX ((uint64_t)227 << 10) /* bytes of a block, without what a launch adds */
#define DYNAMIC_ALIGN 16
#define LOCAL_SIZE_MAX ((uint64_t)64 << 10) /* bytes of a thread; GPUs have 512 KiB */

struct module {
    struct wpk_ptx_text text;
    struct wpk_ptx_names names;
    struct wpk_ptx *out;
    size_t entry_capacity;
    size_t module_variables; /* those outside of entries */
    uint32_t shared_size;    /* bytes of them */
};

static uint64_t align_up(uint64_t offset, uint64_t to)
{
    return (offset + to - 1) / to * to;
}

/* ---- variables */

struct declaration {
    char name[WPK_PTX_NAME_MAX];
    enum wpk_ptx_type type;
    uint64_t align, size; /* bytes; a size of 0 is said at the launch */
};

static enum wpk_ptx_type take_type(struct module *m)
{
    enum wpk_ptx_type type = m->text.word[0] == '.'
                                 ? wpk_ptx_type_of(m->text.word + 1, strlen(m->text.word + 1))
                                 : WPK_PTX_TYPE_COUNT;
    if (type == WPK_PTX_TYPE_COUNT) {
        (void)wpk_ptx_text_fail(&m->text, WPK_EPARSE, "expected a type before '%s'", m->text.word);
        return WPK_PTX_B8;
    }
    wpk_ptx_text_next(&m->text);
    return type;
}

/* .align 16 .b8 name[64] */
static void take_declaration(struct module *m, struct declaration *out)
{
    int64_t count = 1;
    *out = (struct declaration){0};
    if (wpk_ptx_text_skip(&m->text, ".align")) {
        out->align = (uint64_t)wpk_ptx_text_integer(&m->text);
    }
    out->type = take_type(m);
    if (wpk_ptx_text_skip(&m->text, ".ptr")) { /* what a parameter points to */
        while (m->text.word[0] == '.') {
            if (wpk_ptx_text_is(&m->text, ".align")) {
                wpk_ptx_text_next(&m->text);
            }
            wpk_ptx_text_next(&m->text);
        }
    }
    snprintf(out->name, sizeof(out->name), "%s", m->text.word);
    wpk_ptx_text_next(&m->text);
    while (wpk_ptx_text_skip(&m->text, "[")) {
        int64_t extent = wpk_ptx_text_is(&m->text, "]") ? 0 : wpk_ptx_text_integer(&m->text);
        count = extent < 0 || extent > 1 << 28 || count > 1 << 28 ? INT32_MAX : count * extent;
        wpk_ptx_text_take(&m->text, "]");
    }
    uint64_t size = (uint64_t)wpk_ptx_type_size(out->type);
    out->align = out->align == 0 ? (size == 0 ? 1 : size) : out->align;
    out->size = (uint64_t)count * size;
    if (out->align > 1024 || (out->align & (out->align - 1)) != 0 || out->size > 1 << 28) {
        (void)wpk_ptx_text_fail(&m->text, WPK_EPARSE, "%s has no possible size", out->name);
    }
}

static void name_variable(struct module *m, const struct declaration *d, enum wpk_ptx_space space,
                          uint64_t address)
{
    struct wpk_ptx_variable *list = wpk_ptx_grow(m->names.variable, m->names.variable_count,
                                                 &m->names.variable_capacity, sizeof(*list));
    if (list == NULL) {
        (void)wpk_ptx_text_fail(&m->text, WPK_ENOMEM, "out of memory");
        return;
    }
    m->names.variable = list;
    struct wpk_ptx_variable *one = &list[m->names.variable_count++];
    *one = (struct wpk_ptx_variable){.space = space, .address = address};
    snprintf(one->name, sizeof(one->name), "%s", d->name);
}

/* Shared memory of the entry, or of all if there is none yet. */
static void take_shared(struct module *m, struct wpk_ptx_entry *entry)
{
    struct declaration d;
    uint32_t *size = entry != NULL ? &entry->shared_size : &m->shared_size;
    take_declaration(m, &d);
    uint64_t at = align_up(*size, d.align);
    if (d.size == 0) {
        name_variable(m, &d, WPK_PTX_SHARED, WPK_PTX_DYNAMIC);
    } else if (m->text.err == WPK_OK) {
        if (at + d.size > SHARED_SIZE_MAX) {
            (void)wpk_ptx_text_fail(&m->text, WPK_EUNSUPPORTED, "too much shared memory");
        }
        *size = (uint32_t)(at + d.size);
        name_variable(m, &d, WPK_PTX_SHARED, WPK_PTX_SHARED_RESERVED + at);
    }
    wpk_ptx_text_take(&m->text, ";");
}

static void take_local(struct module *m, struct wpk_ptx_entry *entry)
{
    struct declaration d;
    take_declaration(m, &d);
    uint64_t at = align_up(entry->local_size, d.align);
    if (m->text.err == WPK_OK) {
        if (at + d.size > LOCAL_SIZE_MAX) {
            (void)wpk_ptx_text_fail(&m->text, WPK_EUNSUPPORTED, "too much local memory");
        }
        entry->local_size = (uint32_t)align_up(at + d.size, 16);
        name_variable(m, &d, WPK_PTX_LOCAL, at);
    }
    wpk_ptx_text_take(&m->text, ";");
}

/* = {1, 2, …}: the values of a table. */
static void take_values(struct module *m, const struct declaration *d, uint8_t *to)
{
    size_t size = (size_t)wpk_ptx_type_size(d->type), at = 0;
    bool braced = wpk_ptx_text_skip(&m->text, "{");
    do {
        uint64_t bits = 0;
        if (!wpk_ptx_text_bits(m->text.word, (int)size, &bits) || at + size > d->size) {
            (void)wpk_ptx_text_fail(&m->text, WPK_EPARSE, "%s cannot have the value '%s'", d->name,
                                    m->text.word);
            return;
        }
        memcpy(to + at, &bits, size);
        at += size;
        wpk_ptx_text_next(&m->text);
    } while (wpk_ptx_text_skip(&m->text, ","));
    if (braced) {
        wpk_ptx_text_take(&m->text, "}");
    }
}

static void take_table(struct module *m)
{
    struct declaration d;
    struct wpk_ptx *out = m->out;
    take_declaration(m, &d);
    if (out->tables == NULL && m->text.err == WPK_OK) {
        out->tables = calloc(1, TABLES_SIZE_MAX);
    }
    uint64_t at = align_up(out->tables_size, d.align);
    if (out->tables == NULL || at + d.size > TABLES_SIZE_MAX) {
        (void)wpk_ptx_text_fail(&m->text, WPK_ENOMEM, "no room for the table %s", d.name);
    }
    if (m->text.err == WPK_OK) {
        uint8_t *place = (uint8_t *)out->tables + at;
        out->tables_size = at + d.size;
        name_variable(m, &d, WPK_PTX_GLOBAL, (uint64_t)(uintptr_t)place);
        if (wpk_ptx_text_skip(&m->text, "=")) {
            take_values(m, &d, place);
        }
    }
    wpk_ptx_text_take(&m->text, ";");
}

/* ---- entries */

static void take_parameters(struct module *m, struct wpk_ptx_entry *entry)
{
    wpk_ptx_text_take(&m->text, "(");
    while (wpk_ptx_text_skip(&m->text, ".param")) {
        struct declaration d;
        take_declaration(m, &d);
        if (entry->parameter_count == WPK_PTX_PARAMETERS_MAX || d.size > 4096) {
            (void)wpk_ptx_text_fail(&m->text, WPK_EUNSUPPORTED, "too many or too large parameters");
            return;
        }
        struct wpk_ptx_parameter *one = &entry->parameter[entry->parameter_count++];
        snprintf(one->name, sizeof(one->name), "%s", d.name);
        one->offset = (uint32_t)align_up(entry->parameter_size, d.align);
        one->size = (uint32_t)d.size;
        entry->parameter_size = one->offset + one->size;
        (void)wpk_ptx_text_skip(&m->text, ",");
    }
    wpk_ptx_text_take(&m->text, ")");
}

static void take_limits(struct module *m, struct wpk_ptx_entry *entry)
{
    while (m->text.word[0] == '.') {
        bool threads =
            wpk_ptx_text_is(&m->text, ".maxntid") || wpk_ptx_text_is(&m->text, ".reqntid");
        int64_t product = 1;
        wpk_ptx_text_next(&m->text);
        do {
            int64_t number = wpk_ptx_text_integer(&m->text);
            product = product > 1 << 20 || number < 1 || number > 65535 ? 0 : product * number;
        } while (wpk_ptx_text_skip(&m->text, ","));
        entry->threads_max = threads ? (uint32_t)product : entry->threads_max;
    }
}

static void take_registers(struct module *m, struct wpk_ptx_entry *entry)
{
    enum wpk_ptx_type type = take_type(m);
    do {
        char name[WPK_PTX_NAME_MAX];
        int64_t count = -1;
        snprintf(name, sizeof(name), "%s", m->text.word);
        wpk_ptx_text_next(&m->text);
        bool braced = wpk_ptx_text_skip(&m->text, "<");
        if (braced) {
            count = wpk_ptx_text_integer(&m->text);
            wpk_ptx_text_take(&m->text, ">");
        }
        wpk_err err = count > 1 << 20 || (braced && count < 1)
                          ? WPK_EUNSUPPORTED
                          : wpk_ptx_declare(&m->names, entry, name, (int)count, type);
        if (err != WPK_OK) {
            (void)wpk_ptx_text_fail(&m->text, err, "no room for %s of these registers", name);
        }
    } while (wpk_ptx_text_skip(&m->text, ","));
    wpk_ptx_text_take(&m->text, ";");
}

static void place_label(struct module *m, const struct wpk_ptx_entry *entry)
{
    int label = wpk_ptx_label(&m->names, m->text.word, m->text.line);
    if (label < 0) {
        (void)wpk_ptx_text_fail(&m->text, WPK_ENOMEM, "out of memory");
    } else if (m->names.label[label].at >= 0) {
        (void)wpk_ptx_text_fail(&m->text, WPK_EPARSE, "label %s is there twice", m->text.word);
    } else {
        m->names.label[label].at = entry->instruction_count;
    }
    wpk_ptx_text_next(&m->text);
    wpk_ptx_text_take(&m->text, ":");
}

static void take_body(struct module *m, struct wpk_ptx_entry *entry)
{
    size_t scope[16]; /* how many declarations of registers there were before */
    int depth = 0;
    do {
        if (wpk_ptx_text_is(&m->text, "{") && depth < 16) {
            scope[depth++] = m->names.registers_count;
            wpk_ptx_text_next(&m->text);
        } else if (wpk_ptx_text_is(&m->text, "}")) {
            m->names.registers_count = depth > 1 ? scope[depth - 1] : m->names.registers_count;
            depth--;
            wpk_ptx_text_next(&m->text);
        } else if (wpk_ptx_text_skip(&m->text, ".reg")) {
            take_registers(m, entry);
        } else if (wpk_ptx_text_skip(&m->text, ".shared")) {
            take_shared(m, entry);
        } else if (wpk_ptx_text_skip(&m->text, ".local")) {
            take_local(m, entry);
        } else if (*m->text.at == ':' && m->text.word[0] != '\0') {
            place_label(m, entry);
        } else if (m->text.word[0] == '\0') {
            (void)wpk_ptx_text_fail(&m->text, WPK_EPARSE, "the text ends within an entry");
        } else {
            (void)wpk_ptx_parse_instruction(&m->text, &m->names, entry);
        }
    } while (depth > 0 && m->text.err == WPK_OK);
}

/* Shared memory that a launch adds follows all that the entry has. */
static void resolve_dynamic(struct wpk_ptx_entry *entry)
{
    for (int i = 0; i < entry->constant_count; i++) {
        uint64_t *bits = &entry->constant[i].bits;
        *bits = *bits == WPK_PTX_DYNAMIC
                    ? WPK_PTX_SHARED_RESERVED + align_up(entry->shared_size, DYNAMIC_ALIGN)
                    : *bits;
        *bits = entry->constant[i].at.size == 4 ? (uint32_t)*bits : *bits;
    }
}

/* Branches go to instructions, not to labels; the last instruction is an end. */
static void resolve_labels(struct module *m, struct wpk_ptx_entry *entry)
{
    for (int i = 0; i < entry->instruction_count && m->text.err == WPK_OK; i++) {
        struct wpk_ptx_instruction *in = &entry->instruction[i];
        const struct wpk_ptx_label *label = in->target < 0 ? NULL : &m->names.label[in->target];
        if (label != NULL && (label->at < 0 || label->at >= entry->instruction_count)) {
            m->text.line = in->line;
            (void)wpk_ptx_text_fail(&m->text, WPK_EPARSE, "label %s is nowhere", label->name);
        }
        in->target = label == NULL ? -1 : label->at;
    }
}

static void declare_special(struct module *m, struct wpk_ptx_entry *entry)
{
    static const char *const names[] = {
#define NAME(name) name,
        WPK_PTX_SPECIAL_LIST(NAME)};
    for (int i = 0; i < WPK_PTX_SPECIAL_COUNT && m->text.err == WPK_OK; i++) {
        if (wpk_ptx_declare(&m->names, entry, names[i], -1, WPK_PTX_U32) != WPK_OK) {
            (void)wpk_ptx_text_fail(&m->text, WPK_ENOMEM, "out of memory");
        }
    }
}

static void take_entry(struct module *m)
{
    struct wpk_ptx_entry *list =
        wpk_ptx_grow(m->out->entry, (size_t)m->out->entry_count, &m->entry_capacity, sizeof(*list));
    if (list == NULL) {
        (void)wpk_ptx_text_fail(&m->text, WPK_ENOMEM, "out of memory");
        return;
    }
    m->out->entry = list;
    struct wpk_ptx_entry *entry = &list[m->out->entry_count++];
    *entry = (struct wpk_ptx_entry){.shared_size = m->shared_size};
    snprintf(entry->name, sizeof(entry->name), "%s", m->text.word);
    wpk_ptx_text_next(&m->text);
    wpk_ptx_names_reset(&m->names, m->module_variables);
    declare_special(m, entry);
    take_parameters(m, entry);
    take_limits(m, entry);
    if (wpk_ptx_text_is(&m->text, "{")) {
        take_body(m, entry);
    } else {
        wpk_ptx_text_take(&m->text, "{");
    }
    if (m->text.err == WPK_OK && wpk_ptx_append_exit(&m->names, entry, m->text.line) != WPK_OK) {
        (void)wpk_ptx_text_fail(&m->text, WPK_ENOMEM, "out of memory");
    }
    resolve_labels(m, entry);
    resolve_dynamic(entry);
}

static void take_module(struct module *m)
{
    while (m->text.word[0] != '\0' && m->text.err == WPK_OK) {
        if (wpk_ptx_text_is(&m->text, ".version") || wpk_ptx_text_is(&m->text, ".target") ||
            wpk_ptx_text_is(&m->text, ".address_size")) {
            do { /* its words, up to the next directive */
                wpk_ptx_text_next(&m->text);
            } while (m->text.word[0] != '.' && m->text.word[0] != '\0');
        } else if (wpk_ptx_text_skip(&m->text, ".entry")) {
            take_entry(m);
        } else if (wpk_ptx_text_skip(&m->text, ".shared")) {
            take_shared(m, NULL);
            m->module_variables = m->names.variable_count;
        } else if (wpk_ptx_text_skip(&m->text, ".global") ||
                   wpk_ptx_text_skip(&m->text, ".const")) {
            take_table(m);
            m->module_variables = m->names.variable_count;
        } else if (!wpk_ptx_text_skip(&m->text, ".visible") &&
                   !wpk_ptx_text_skip(&m->text, ".weak") &&
                   !wpk_ptx_text_skip(&m->text, ".extern")) {
            (void)wpk_ptx_text_fail(&m->text, WPK_EUNSUPPORTED, "'%s' is not known here",
                                    m->text.word);
        }
    }
}

wpk_err wpk_ptx_parse(const char *text, struct wpk_ptx *out, struct wpk_diag *diag)
{
    struct wpk_ptx ptx = {0};
    struct module m = {.out = &ptx};
    wpk_ptx_text_init(&m.text, text, diag);
    take_module(&m);
    wpk_ptx_names_fini(&m.names);
    if (m.text.err != WPK_OK) {
        wpk_ptx_fini(&ptx);
        return m.text.err;
    }
    *out = ptx;
    return WPK_OK;
}

void wpk_ptx_fini(struct wpk_ptx *ptx)
{
    for (int i = 0; i < ptx->entry_count; i++) {
        free(ptx->entry[i].instruction);
        free(ptx->entry[i].constant);
    }
    free(ptx->entry);
    free(ptx->tables);
    *ptx = (struct wpk_ptx){0};
}

const struct wpk_ptx_entry *wpk_ptx_find(const struct wpk_ptx *ptx, const char *name)
{
    for (int i = 0; i < ptx->entry_count; i++) {
        if (strcmp(ptx->entry[i].name, name) == 0) {
            return &ptx->entry[i];
        }
    }
    return NULL;
}
