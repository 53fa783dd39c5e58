/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/ptx_entry.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGISTERS_MAX (1 << 20)            /* of an entry */
#define FILE_SIZE_MAX ((uint64_t)64 << 20) /* bytes of a warp's registers */

static const struct {
    const char *name;
    int size;
} types[] = {
#define ROW(name, text, size) {text, size},
    WPK_PTX_TYPE_LIST(ROW)};

enum wpk_ptx_type wpk_ptx_type_of(const char *name, size_t size)
{
    int i = 0;
    while (i < WPK_PTX_TYPE_COUNT &&
           (strncmp(types[i].name, name, size) != 0 || types[i].name[size] != '\0')) {
        i++;
    }
    return (enum wpk_ptx_type)i;
}

int wpk_ptx_type_size(enum wpk_ptx_type type)
{
    return types[type].size;
}

void *wpk_ptx_grow(void *list, size_t count, size_t *capacity, size_t element_size)
{
    if (count < *capacity) {
        return list;
    }
    size_t wanted = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = realloc(list, wanted * element_size);
    *capacity = grown == NULL ? *capacity : wanted;
    return grown;
}

void wpk_ptx_names_fini(struct wpk_ptx_names *names)
{
    free(names->registers);
    free(names->label);
    free(names->variable);
    *names = (struct wpk_ptx_names){0};
}

void wpk_ptx_names_reset(struct wpk_ptx_names *names, size_t variables)
{
    names->registers_count = names->label_count = 0;
    names->instruction_capacity = names->constant_capacity = 0;
    names->variable_count = variables;
}

/* The next registers of a file: `count` of them. */
bool wpk_ptx_take_registers(struct wpk_ptx_entry *entry, int count, int size,
                            struct wpk_ptx_operand *out)
{
    uint32_t bytes = size == 0 ? 4 : (uint32_t)size * WPK_WARP_LANES;
    uint32_t offset = (entry->file_size + 63) / 64 * 64;
    if (count < 1 || count > REGISTERS_MAX - entry->register_count ||
        (uint64_t)offset + (uint64_t)bytes * (uint32_t)count > FILE_SIZE_MAX) {
        return false;
    }
    *out = (struct wpk_ptx_operand){
        .reg = (uint32_t)entry->register_count, .offset = offset, .size = (uint8_t)size};
    entry->register_count += count;
    entry->file_size = offset + bytes * (uint32_t)count;
    return true;
}

wpk_err wpk_ptx_declare(struct wpk_ptx_names *names, struct wpk_ptx_entry *entry,
                        const char *prefix, int count, enum wpk_ptx_type type)
{
    struct wpk_ptx_registers *list = wpk_ptx_grow(names->registers, names->registers_count,
                                                  &names->registers_capacity, sizeof(*list));
    if (list == NULL) {
        return WPK_ENOMEM;
    }
    names->registers = list;
    struct wpk_ptx_registers *one = &list[names->registers_count++];
    snprintf(one->prefix, sizeof(one->prefix), "%s", prefix);
    one->count = count;
    /* those of one byte are as wide as those of two */
    int size = types[type].size == 1 ? 2 : types[type].size;
    return wpk_ptx_take_registers(entry, count < 0 ? 1 : count, size, &one->first)
               ? WPK_OK
               : WPK_EUNSUPPORTED;
}

/* The number behind `prefix`, or -1. */
static int number_in(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);
    char *end = NULL;
    if (strncmp(name, prefix, size) != 0 || !isdigit((unsigned char)name[size])) {
        return -1;
    }
    long number = strtol(name + size, &end, 10);
    return *end == '\0' && number < 1 << 24 ? (int)number : -1;
}

bool wpk_ptx_register(const struct wpk_ptx_names *names, const char *name,
                      struct wpk_ptx_operand *out)
{
    for (size_t i = names->registers_count; i-- > 0;) { /* inner scopes hide outer ones */
        const struct wpk_ptx_registers *r = &names->registers[i];
        int number = r->count < 0 ? -(strcmp(r->prefix, name) != 0) : number_in(name, r->prefix);
        if (number >= 0 && number < (r->count < 0 ? 1 : r->count)) {
            uint32_t bytes = r->first.size == 0 ? 4 : (uint32_t)r->first.size * WPK_WARP_LANES;
            *out = r->first;
            out->reg += (uint32_t)number;
            out->offset += bytes * (uint32_t)number;
            return true;
        }
    }
    return false;
}

wpk_err wpk_ptx_constant(struct wpk_ptx_names *names, struct wpk_ptx_entry *entry, uint64_t bits,
                         uint8_t size, struct wpk_ptx_operand *out)
{
    for (int i = 0; i < entry->constant_count; i++) {
        if (entry->constant[i].bits == bits && entry->constant[i].at.size == size) {
            *out = entry->constant[i].at;
            return WPK_OK;
        }
    }
    struct wpk_ptx_constant *list = wpk_ptx_grow(entry->constant, (size_t)entry->constant_count,
                                                 &names->constant_capacity, sizeof(*list));
    if (list == NULL) {
        return WPK_ENOMEM;
    }
    entry->constant = list;
    if (!wpk_ptx_take_registers(entry, 1, size, out)) {
        return WPK_EUNSUPPORTED;
    }
    list[entry->constant_count++] = (struct wpk_ptx_constant){.at = *out, .bits = bits};
    return WPK_OK;
}

int wpk_ptx_label(struct wpk_ptx_names *names, const char *name, int line)
{
    for (size_t i = 0; i < names->label_count; i++) {
        if (strcmp(names->label[i].name, name) == 0) {
            return (int)i;
        }
    }
    struct wpk_ptx_label *list =
        wpk_ptx_grow(names->label, names->label_count, &names->label_capacity, sizeof(*list));
    if (list == NULL) {
        return -1;
    }
    names->label = list;
    struct wpk_ptx_label *one = &list[names->label_count];
    *one = (struct wpk_ptx_label){.at = -1, .line = line};
    snprintf(one->name, sizeof(one->name), "%s", name);
    return (int)names->label_count++;
}
