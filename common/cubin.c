/* SPDX-License-Identifier: Apache-2.0 */
/* Every offset of the file is checked before it is followed. */
#include "common/cubin.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#define MACHINE 190       /* EM_CUDA */
#define ABI_VERSION 7     /* to sm_90; the capability is byte 0 of the header's flags */
#define ABI_VERSION_NEW 8 /* from sm_100 on; it is byte 1 */
#define NAME_BYTES 128
#define RESERVED_BYTES 1024 /* of shared memory, which the system takes */
#define RESERVED_FROM 90    /* sm_90 */

/* An attribute: its form and its kind, a byte each, then 16 bits: its value, or the size of the
 * values that follow. */
#define FORM_SIZED 4
#define KIND_MAX_THREADS 0x05
#define KIND_FRAME_SIZE 0x11
#define KIND_PARAMETER_BYTES 0x19
#define KIND_REGISTERS 0x2f

_Static_assert(sizeof(Elf64_Ehdr) == WPK_CUBIN_HEAD_BYTES, "the ELF header");

struct file {
    const uint8_t *data;
    size_t size;
    Elf64_Ehdr head;
};

bool wpk_cubin_is(const void *data, size_t size)
{
    return size >= SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0;
}

static size_t end_of(uint64_t offset, uint64_t entry, uint64_t count)
{
    return offset > SIZE_MAX / 2 ? SIZE_MAX : (size_t)(offset + entry * count);
}

size_t wpk_cubin_bytes(const void *head)
{
    Elf64_Ehdr h;
    memcpy(&h, head, sizeof(h));
    if (!wpk_cubin_is(head, sizeof(h)) || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_machine != MACHINE) {
        return 0;
    }
    size_t sections = end_of(h.e_shoff, h.e_shentsize, h.e_shnum);
    size_t segments = end_of(h.e_phoff, h.e_phentsize, h.e_phnum);
    return sections > segments ? sections : segments;
}

static bool has(const struct file *file, uint64_t offset, uint64_t size)
{
    return offset <= file->size && size <= file->size - offset;
}

static wpk_err open_file(const void *cubin, size_t size, struct file *out)
{
    *out = (struct file){.data = cubin, .size = size};
    if (size < sizeof(out->head) || wpk_cubin_bytes(cubin) == 0) {
        return WPK_EPARSE;
    }
    memcpy(&out->head, cubin, sizeof(out->head));
    int version = out->head.e_ident[EI_ABIVERSION];
    bool known = (version == ABI_VERSION || version == ABI_VERSION_NEW) &&
                 out->head.e_shentsize == sizeof(Elf64_Shdr) &&
                 has(out, out->head.e_shoff, (uint64_t)out->head.e_shnum * sizeof(Elf64_Shdr)) &&
                 out->head.e_shstrndx < out->head.e_shnum;
    return known ? WPK_OK : WPK_EPARSE;
}

static int capability_of(const struct file *file)
{
    bool old = file->head.e_ident[EI_ABIVERSION] == ABI_VERSION;
    return (int)(file->head.e_flags >> (old ? 0 : 8) & 0xff);
}

wpk_err wpk_cubin_capability(const void *cubin, size_t size, int *out)
{
    struct file file;
    wpk_err err = open_file(cubin, size, &file);
    *out = err == WPK_OK ? capability_of(&file) : 0;
    return err;
}

/* ---- sections */

static Elf64_Shdr section_at(const struct file *file, unsigned index)
{
    Elf64_Shdr section;
    memcpy(&section, file->data + file->head.e_shoff + index * sizeof(section), sizeof(section));
    return section;
}

/* True if the text at `offset` of the section is the name. */
static bool is_named(const struct file *file, const Elf64_Shdr *strings, uint64_t offset,
                     const char *name)
{
    size_t size = strlen(name) + 1;
    return has(file, strings->sh_offset, strings->sh_size) && offset <= strings->sh_size &&
           size <= strings->sh_size - offset &&
           memcmp(file->data + strings->sh_offset + offset, name, size) == 0;
}

/* Find a section by the two parts of its name, with its content in the file if that is wanted;
 * false: there is none. */
static bool find_section(const struct file *file, const char *head, const char *tail, bool content,
                         Elf64_Shdr *out)
{
    char name[NAME_BYTES];
    Elf64_Shdr names = section_at(file, file->head.e_shstrndx);
    int size = snprintf(name, sizeof(name), "%s%s", head, tail);
    for (unsigned i = 1; i < file->head.e_shnum && size < NAME_BYTES; i++) {
        *out = section_at(file, i);
        if (is_named(file, &names, out->sh_name, name)) {
            return !content ||
                   (out->sh_type != SHT_NOBITS && has(file, out->sh_offset, out->sh_size));
        }
    }
    return false;
}

/* The number of the symbol that the function's attributes name; 0: there is none. */
static uint32_t find_symbol(const struct file *file, const char *name)
{
    Elf64_Shdr table;
    if (!find_section(file, ".symtab", "", true, &table) || table.sh_link >= file->head.e_shnum) {
        return 0;
    }
    Elf64_Shdr names = section_at(file, table.sh_link);
    for (uint32_t i = 1; i < table.sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, file->data + table.sh_offset + i * sizeof(symbol), sizeof(symbol));
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
            is_named(file, &names, symbol.st_name, name)) {
            return i;
        }
    }
    return 0;
}

/* ---- attributes */

struct attribute {
    int kind;
    uint32_t number;         /* of one without values of its own */
    uint32_t value[3], size; /* bytes of the values */
};

/* Take the attribute at *at; false: no more. */
static bool next_attribute(const struct file *file, const Elf64_Shdr *section, uint64_t *at,
                           struct attribute *out)
{
    if (section->sh_size < 4 || *at > section->sh_size - 4) {
        return false;
    }
    const uint8_t *bytes = file->data + section->sh_offset + *at;
    uint16_t number;
    memcpy(&number, bytes + 2, sizeof(number));
    *out = (struct attribute){.kind = bytes[1], .number = number};
    *at += 4;
    if (bytes[0] != FORM_SIZED) {
        return true;
    }
    out->size = number;
    if (number > section->sh_size - *at) {
        return false;
    }
    memcpy(out->value, bytes + 4, number < sizeof(out->value) ? number : sizeof(out->value));
    *at += number;
    return true;
}

/* Take the attributes that name the function's symbol. */
static void read_common(const struct file *file, uint32_t symbol, struct wpk_cubin_function *out)
{
    Elf64_Shdr section;
    struct attribute a;
    uint64_t at = 0;
    if (!find_section(file, ".nv.info", "", true, &section)) {
        return;
    }
    while (next_attribute(file, &section, &at, &a)) {
        bool own = a.size >= 8 && a.value[0] == symbol;
        out->registers = own && a.kind == KIND_REGISTERS ? (int)a.value[1] : out->registers;
        out->local_bytes = own && a.kind == KIND_FRAME_SIZE ? a.value[1] : out->local_bytes;
    }
}

/* Take the attributes of the function's own section. */
static void read_own(const struct file *file, const char *name, struct wpk_cubin_function *out)
{
    Elf64_Shdr section;
    struct attribute a;
    uint64_t at = 0;
    if (!find_section(file, ".nv.info.", name, true, &section)) {
        return;
    }
    while (next_attribute(file, &section, &at, &a)) {
        bool threads = a.kind == KIND_MAX_THREADS && a.size >= 12;
        uint64_t product = threads ? (uint64_t)a.value[0] * a.value[1] * a.value[2] : 0;
        out->threads_max = threads && product <= INT32_MAX ? (int)product : out->threads_max;
        out->parameter_bytes = a.kind == KIND_PARAMETER_BYTES ? a.number : out->parameter_bytes;
    }
}

wpk_err wpk_cubin_find(const void *cubin, size_t size, const char *name,
                       struct wpk_cubin_function *out)
{
    struct file file;
    Elf64_Shdr section;
    *out = (struct wpk_cubin_function){0};
    wpk_err err = open_file(cubin, size, &file);
    if (err != WPK_OK) {
        return err;
    }
    uint32_t symbol = find_symbol(&file, name);
    if (symbol == 0 || !find_section(&file, ".text.", name, true, &section)) {
        return WPK_ENOENT;
    }
    read_common(&file, symbol, out);
    read_own(&file, name, out);
    if (find_section(&file, ".nv.shared.", name, false, &section)) {
        bool reserved = capability_of(&file) >= RESERVED_FROM;
        out->shared_bytes = (int64_t)section.sh_size - (reserved ? RESERVED_BYTES : 0);
    }
    return WPK_OK;
}
