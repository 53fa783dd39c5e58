/* SPDX-License-Identifier: Apache-2.0 */
/* The body of an entry while it is parsed: names of registers, labels and variables. */
#ifndef WPK_TESTS_GPU_PTX_ENTRY_H
#define WPK_TESTS_GPU_PTX_ENTRY_H

#include "tests/gpu/ptx_text.h"

/* Registers that were declared together: %f<118>, or one name. */
struct wpk_ptx_registers {
    char prefix[WPK_PTX_NAME_MAX];
    int count; /* -1: `prefix` is the whole name of one */
    struct wpk_ptx_operand first;
};

struct wpk_ptx_label {
    char name[WPK_PTX_NAME_MAX];
    int at;   /* instruction; -1: only meant so far */
    int line; /* where it is meant first */
};

struct wpk_ptx_variable {
    char name[WPK_PTX_NAME_MAX];
    enum wpk_ptx_space space;
    uint64_t address; /* or WPK_PTX_DYNAMIC */
};

/* The address of shared memory that a launch adds, until the entry's own is counted: no address. */
#define WPK_PTX_DYNAMIC ((uint64_t)0xd1a3000000000001)

/* Growing lists; all owned, for wpk_ptx_names_fini(). */
struct wpk_ptx_names {
    struct wpk_ptx_registers *registers;
    size_t registers_count, registers_capacity;
    struct wpk_ptx_label *label;
    size_t label_count, label_capacity;
    struct wpk_ptx_variable *variable;
    size_t variable_count, variable_capacity;
    size_t instruction_capacity, constant_capacity;
};

void wpk_ptx_names_fini(struct wpk_ptx_names *names);

/* Forget the labels and registers of an entry, and variables from `variables` on. */
void wpk_ptx_names_reset(struct wpk_ptx_names *names, size_t variables);

/* Make room for one more element.
 *   errors  NULL: out of memory */
void *wpk_ptx_grow(void *list, size_t count, size_t *capacity, size_t element_size);

/* The next registers of a file; false if there would be too many. */
bool wpk_ptx_take_registers(struct wpk_ptx_entry *entry, int count, int size,
                            struct wpk_ptx_operand *out);

/* Declare registers of a type; `count` as above.
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED: too many */
wpk_err wpk_ptx_declare(struct wpk_ptx_names *names, struct wpk_ptx_entry *entry,
                        const char *prefix, int count, enum wpk_ptx_type type);

/* The register of that name; false if there is none. */
bool wpk_ptx_register(const struct wpk_ptx_names *names, const char *name,
                      struct wpk_ptx_operand *out);

/* A register that holds a constant in all lanes.
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED: too many registers */
wpk_err wpk_ptx_constant(struct wpk_ptx_names *names, struct wpk_ptx_entry *entry, uint64_t bits,
                         uint8_t size, struct wpk_ptx_operand *out);

/* The number of a label, which may come later; -1: out of memory. */
int wpk_ptx_label(struct wpk_ptx_names *names, const char *name, int line);

/* Parse the instruction at the word, up to and with its semicolon. */
wpk_err wpk_ptx_parse_instruction(struct wpk_ptx_text *text, struct wpk_ptx_names *names,
                                  struct wpk_ptx_entry *entry);

/* Append what ends a thread, so that no instruction is the last one and does not end.
 *   errors  WPK_ENOMEM */
wpk_err wpk_ptx_append_exit(struct wpk_ptx_names *names, struct wpk_ptx_entry *entry, int line);

/* The type of that name, such as "f32"; WPK_PTX_TYPE_COUNT: none. */
enum wpk_ptx_type wpk_ptx_type_of(const char *name, size_t size);
int wpk_ptx_type_size(enum wpk_ptx_type type); /* bytes; 0: a predicate */

#endif
