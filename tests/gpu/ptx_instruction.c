/* SPDX-License-Identifier: Apache-2.0 */
/* One instruction: guard, name with its modifiers, operands. */
#include "tests/gpu/block.h"
#include "tests/gpu/operation.h"
#include "tests/gpu/ptx_entry.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FORM_MAX 48

/* An instruction's name, taken apart at its dots. */
struct opcode {
    char name[WPK_PTX_NAME_MAX];
    char form[FORM_MAX]; /* modifiers that are neither types nor ignored, with dots between */
    enum wpk_ptx_type type[2];
    int type_count;
    enum wpk_ptx_space space;
    enum wpk_ptx_round round;
    bool to_integer, saturates;
    int vector;
};

struct parse {
    struct wpk_ptx_text *text;
    struct wpk_ptx_names *names;
    struct wpk_ptx_entry *entry;
    struct wpk_ptx_instruction in;
};

/* ---- names */

static bool is_one_of(const char *list, const char *word, size_t size)
{
    const char *at = list;
    while (size > 0 && (at = strstr(at, word)) != NULL) {
        if ((at == list || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0')) {
            return true;
        }
        at += size;
    }
    return false;
}

/* Modifiers that do not change what is computed here: orders of memory that a grid without atomics
 * keeps, hints for caches, approximations that are rounded exactly. */
#define IGNORED                                                                                    \
    "sync aligned uni nc volatile weak relaxed gpu cta sys acquire release to approx full ftz "    \
    "ca cg cs lu cv wb wt L1 L2 evict_last evict_first no_allocate sc acq_rel gl wait "            \
    "launch_dependents proxy async 64B 128B 256B"

static bool set_round(struct opcode *op, const char *word)
{
    static const char *const modes[] = {"", "rn", "rz", "rm", "rp", "", "rni", "rzi", "rmi", "rpi"};
    for (int i = 1; i < 10; i++) {
        if (strcmp(modes[i], word) == 0 && i != 5) {
            op->round = (enum wpk_ptx_round)(i % 5);
            op->to_integer = i > 5;
            return true;
        }
    }
    return false;
}

static bool set_space(struct opcode *op, const char *word)
{
    static const char *const spaces[] = {"generic", "global", "shared", "local", "param"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(spaces[i], word) == 0) {
            op->space = (enum wpk_ptx_space)i;
            return true;
        }
    }
    if (strcmp(word, "const") == 0) {
        op->space = WPK_PTX_GLOBAL; /* tables of the module, in host memory like all of it */
    }
    return op->space == WPK_PTX_GLOBAL && strcmp(word, "const") == 0;
}

/* An unknown or repeated modifier becomes part of the form, which no row of the table then has. */
static void take_modifier(struct opcode *op, const char *word)
{
    enum wpk_ptx_type type = wpk_ptx_type_of(word, strlen(word));
    size_t size = strlen(op->form);
    bool converts = strcmp(op->name, "cvt") == 0;
    if (type != WPK_PTX_TYPE_COUNT && op->type_count < 1 + converts) {
        op->type[op->type_count++] = type;
    } else if (strcmp(word, "v2") == 0 || strcmp(word, "v4") == 0) {
        op->vector = word[1] - '0';
    } else if (strcmp(word, "sat") == 0) {
        op->saturates = true;
    } else if (set_round(op, word)) {
        if (op->round != WPK_PTX_ROUND_EVEN && !converts) { /* it is part of the form */
            snprintf(op->form + size, sizeof(op->form) - size, "%s%s", size > 0 ? "." : "", word);
        }
    } else if (!set_space(op, word) && !is_one_of(IGNORED, word, strlen(word))) {
        snprintf(op->form + size, sizeof(op->form) - size, "%s%s", size > 0 ? "." : "",
                 word[0] == '\0' ? "?" : word);
    }
}

static void take_apart(const char *word, struct opcode *op)
{
    *op = (struct opcode){.vector = 1, .type = {WPK_PTX_PRED, WPK_PTX_PRED}};
    size_t size = strcspn(word, ".");
    snprintf(op->name, sizeof(op->name), "%.*s", (int)size, word);
    for (word += size; *word != '\0'; word += size) {
        char part[WPK_PTX_NAME_MAX];
        word += strspn(word, ".:");
        size = strcspn(word, ".:");
        snprintf(part, sizeof(part), "%.*s", (int)size, word);
        take_modifier(op, part);
    }
}

/* ---- operands */

static wpk_err fail(struct parse *p, const char *what)
{
    return wpk_ptx_text_fail(p->text, WPK_EPARSE, "%s at '%s'", what, p->text->word);
}

static struct wpk_ptx_operand *new_operand(struct parse *p)
{
    if (p->in.operand_count == WPK_PTX_OPERANDS_MAX) {
        (void)fail(p, "too many operands");
        return NULL;
    }
    return &p->in.operand[p->in.operand_count++];
}

static const struct wpk_ptx_variable *find_variable(const struct parse *p)
{
    for (size_t i = p->names->variable_count; i-- > 0;) {
        if (wpk_ptx_text_is(p->text, p->names->variable[i].name)) {
            return &p->names->variable[i];
        }
    }
    return NULL;
}

static void put_constant(struct parse *p, uint64_t bits, uint8_t size)
{
    struct wpk_ptx_operand *out = new_operand(p);
    if (out != NULL && wpk_ptx_constant(p->names, p->entry, bits, size, out) != WPK_OK) {
        (void)wpk_ptx_text_fail(p->text, WPK_ENOMEM, "out of memory");
    }
}

/* A register, constant or variable of `size` bytes; `wider`: a register may be larger. */
static void take_operand(struct parse *p, uint8_t size, bool wider)
{
    struct wpk_ptx_operand found;
    const struct wpk_ptx_variable *variable;
    uint64_t bits = 0;
    if (wpk_ptx_register(p->names, p->text->word, &found)) {
        struct wpk_ptx_operand *out = new_operand(p);
        if (found.size != size && !(wider && found.size > size && size > 0)) {
            (void)fail(p, "a register of another size");
        } else if (out != NULL) {
            *out = found;
        }
    } else if (wpk_ptx_text_bits(p->text->word, size, &bits)) {
        put_constant(p, size < 8 && size > 0 ? bits & (((uint64_t)1 << 8 * size) - 1) : bits, size);
    } else if ((variable = find_variable(p)) != NULL) {
        put_constant(p, variable->address, size);
    } else if (wpk_ptx_text_is(p->text, "WARP_SZ")) {
        put_constant(p, WPK_WARP_LANES, size);
    } else {
        (void)fail(p, "an unknown operand");
    }
    wpk_ptx_text_next(p->text);
}

/* A result that nobody reads is written to a register of its own. */
static void add_unread(struct parse *p, uint8_t size)
{
    struct wpk_ptx_operand *out = new_operand(p);
    if (out != NULL && !wpk_ptx_take_registers(p->entry, 1, size == 1 ? 2 : size, out)) {
        (void)wpk_ptx_text_fail(p->text, WPK_EUNSUPPORTED, "too many registers");
    }
}

/* A register that may be written, or _. */
static void take_result(struct parse *p, uint8_t size, bool wider)
{
    struct wpk_ptx_operand found;
    if (wpk_ptx_text_skip(p->text, "_")) {
        add_unread(p, size);
    } else if (!wpk_ptx_register(p->names, p->text->word, &found) ||
               found.reg < WPK_PTX_SPECIAL_COUNT) {
        (void)fail(p, "no register that may be written");
    } else {
        take_operand(p, size, wider);
    }
}

/* [register + offset], [variable + offset] or [parameter + offset]. */
static void take_address(struct parse *p, int64_t *offset)
{
    struct wpk_ptx_operand found;
    wpk_ptx_text_take(p->text, "[");
    if (p->in.space == WPK_PTX_PARAM) {
        int i = 0;
        while (i < p->entry->parameter_count &&
               !wpk_ptx_text_is(p->text, p->entry->parameter[i].name)) {
            i++;
        }
        if (i == p->entry->parameter_count) {
            (void)fail(p, "an unknown parameter");
            return;
        }
        *offset = p->entry->parameter[i].offset;
        wpk_ptx_text_next(p->text);
    } else {
        bool narrow = wpk_ptx_register(p->names, p->text->word, &found) && found.size == 4;
        take_operand(p, narrow ? 4 : 8, false);
    }
    if (wpk_ptx_text_skip(p->text, "+")) {
        int64_t more = wpk_ptx_text_integer(p->text);
        if (more > INT32_MAX || more < INT32_MIN) {
            (void)fail(p, "an offset that is too large");
            return;
        }
        *offset += more;
    }
    wpk_ptx_text_take(p->text, "]");
}

/* {a, b, …} or one. */
static void take_vector(struct parse *p, int count, uint8_t size, bool results, bool wider)
{
    bool braced = wpk_ptx_text_skip(p->text, "{");
    for (int i = 0; i < count; i++) {
        if (i > 0) {
            wpk_ptx_text_take(p->text, ",");
        }
        if (results) {
            take_result(p, size, wider);
        } else {
            take_operand(p, size, wider);
        }
    }
    if (braced) {
        wpk_ptx_text_take(p->text, "}");
    }
}

/* ---- instructions whose operands have a syntax of their own */

/* Parameters are read from their block only. */
static void check_parameter(struct parse *p)
{
    int64_t size = (int64_t)p->in.size * p->in.vector;
    if (p->in.space == WPK_PTX_PARAM &&
        (p->in.offset < 0 || p->in.offset > (int64_t)p->entry->parameter_size - size)) {
        (void)fail(p, "an address outside of all parameters");
    }
}

static void parse_load(struct parse *p, const struct opcode *op)
{
    bool stores = strcmp(op->name, "st") == 0;
    p->in.run = stores ? wpk_ptx_store : wpk_ptx_load;
    p->in.vector = (uint8_t)op->vector;
    p->in.size = (uint8_t)wpk_ptx_type_size(op->type[0]);
    p->in.space = (uint8_t)op->space;
    p->in.type = (uint8_t)op->type[0];
    if (!stores && p->text->used_bytes != 0) {
        p->in.used_from = (uint8_t)__builtin_ctz(p->text->used_bytes);
        p->in.used_size = (uint8_t)(32 - __builtin_clz(p->text->used_bytes) - p->in.used_from);
        p->text->used_bytes = 0;
    }
    if (!stores) {
        take_vector(p, op->vector, p->in.size, true, true);
        p->in.result_count = p->in.operand_count;
        wpk_ptx_text_take(p->text, ",");
        take_address(p, &p->in.offset);
        check_parameter(p);
        return;
    }
    struct wpk_ptx_instruction values = p->in;
    take_address(p, &values.offset);
    struct wpk_ptx_operand address = p->in.operand[0];
    p->in.operand_count = 0;
    p->in.offset = values.offset;
    wpk_ptx_text_take(p->text, ",");
    take_vector(p, op->vector, p->in.size, false, true);
    struct wpk_ptx_operand *last = new_operand(p);
    if (last != NULL) {
        *last = address;
    }
}

static void parse_atomic(struct parse *p, const struct opcode *op)
{
    p->in.run = wpk_ptx_atomic_increment;
    p->in.size = 4;
    p->in.space = (uint8_t)op->space;
    p->in.result_count = 1;
    take_result(p, 4, false);
    wpk_ptx_text_take(p->text, ",");
    take_address(p, &p->in.offset);
    wpk_ptx_text_take(p->text, ",");
    take_operand(p, 4, false);
}

/* {a, b} or {a, b, c, d}: equal parts of `size` bytes. */
static void take_parts(struct parse *p, uint8_t size, bool results)
{
    int commas = 0;
    for (const char *at = p->text->at; *at != '\0' && *at != '}'; at++) {
        commas += *at == ',';
    }
    uint8_t part = commas == 1 ? size / 2 : commas == 3 ? size / 4 : 0;
    if (part < 2) {
        (void)fail(p, "neither two nor four parts");
        return;
    }
    take_vector(p, commas + 1, part, results, false);
}

static void parse_move(struct parse *p, const struct opcode *op)
{
    static const wpk_ptx_lanes moves[] = {[0] = wpk_ptx_move_predicate,
                                          [1] = wpk_ptx_nothing,
                                          [2] = wpk_ptx_move_16,
                                          [4] = wpk_ptx_move_32,
                                          [8] = wpk_ptx_move_64};
    uint8_t size = (uint8_t)wpk_ptx_type_size(op->type[0]);
    bool unpacks = wpk_ptx_text_is(p->text, "{");
    for (int side = 0; side < 2 && p->text->err == WPK_OK; side++) {
        if (wpk_ptx_text_is(p->text, "{") && size > 0 && (side == 0 || !unpacks)) {
            p->in.run = unpacks ? wpk_ptx_unpack : wpk_ptx_pack;
            take_parts(p, size, side == 0);
        } else if (side == 0) {
            take_result(p, size, false);
        } else {
            take_operand(p, size, false);
        }
        if (side == 0) {
            p->in.result_count = p->in.operand_count;
            wpk_ptx_text_take(p->text, ",");
        }
    }
    p->in.run = p->in.run != NULL ? p->in.run : moves[size];
    if (size == 1) {
        (void)fail(p, "a move of one byte");
    }
    p->in.carries = true;
}

static void parse_convert(struct parse *p, const struct opcode *op)
{
    p->in.run = wpk_ptx_convert;
    p->in.type = (uint8_t)op->type[0];
    p->in.from = (uint8_t)op->type[1];
    p->in.round = (uint8_t)op->round;
    p->in.to_integer = op->to_integer;
    p->in.saturates = op->saturates;
    p->in.carries = true;
    p->in.result_count = 1;
    take_result(p, (uint8_t)wpk_ptx_type_size(op->type[0]), true);
    wpk_ptx_text_take(p->text, ",");
    take_operand(p, (uint8_t)wpk_ptx_type_size(op->type[1]), true);
}

/* Addresses of a space and without one are the same but for a window's bits. */
static void parse_convert_address(struct parse *p, const struct opcode *op, bool to_space)
{
    uint64_t window = op->space == WPK_PTX_SHARED  ? WPK_WINDOW_SHARED
                      : op->space == WPK_PTX_LOCAL ? WPK_WINDOW_LOCAL
                                                   : 0;
    const struct wpk_ptx_operation *row =
        wpk_ptx_operation_find(to_space ? "and" : "or", "", WPK_PTX_B64);
    p->in.run = row->run;
    p->in.carries = true;
    p->in.result_count = 1;
    take_result(p, 8, false);
    wpk_ptx_text_take(p->text, ",");
    take_operand(p, 8, false);
    put_constant(p,
                 to_space && window != 0 ? ~WPK_WINDOW_MASK
                 : to_space              ? ~(uint64_t)0
                                         : window,
                 8);
}

static void parse_copy_async(struct parse *p, const struct opcode *op)
{
    if (strcmp(op->form, "async.commit_group") == 0 || strcmp(op->form, "commit_group") == 0) {
        p->in.run = wpk_ptx_commit_group;
    } else if (strcmp(op->form, "wait_group") == 0) {
        p->in.run = wpk_ptx_wait_group;
        p->in.offset = wpk_ptx_text_integer(p->text);
        if (p->in.offset < 0 || p->in.offset > 1 << 20) {
            (void)fail(p, "an impossible number of groups");
        }
    } else if (strcmp(op->form, "wait_all") == 0) {
        p->in.run = wpk_ptx_wait_group;
        p->in.offset = -1; /* what is not committed, too */
    } else if (op->form[0] != '\0') {
        (void)fail(p, "an unknown copy");
    } else {
        p->in.run = wpk_ptx_copy_async;
        p->in.space = WPK_PTX_SHARED;
        take_address(p, &p->in.offset);
        wpk_ptx_text_take(p->text, ",");
        take_address(p, &p->in.source_offset);
        wpk_ptx_text_take(p->text, ",");
        int64_t size = wpk_ptx_text_integer(p->text);
        if (wpk_ptx_text_skip(p->text, ",")) {
            take_operand(p, 4, false);
        }
        if (size != 4 && size != 8 && size != 16) {
            (void)fail(p, "a copy of a size that is not 4, 8 or 16");
        }
        p->in.size = (uint8_t)size;
    }
}

static void parse_branch(struct parse *p)
{
    p->in.run = wpk_ptx_branch;
    p->in.target = wpk_ptx_label(p->names, p->text->word, p->text->line);
    if (p->in.target < 0) {
        (void)wpk_ptx_text_fail(p->text, WPK_ENOMEM, "out of memory");
    }
    wpk_ptx_text_next(p->text);
}

/* ---- instructions of the tables */

static uint8_t operand_size(char letter, enum wpk_ptx_type type)
{
    uint8_t size = (uint8_t)wpk_ptx_type_size(type);
    return letter == 'd' ? size : letter == 'w' ? (uint8_t)(2 * size) : letter == 'u' ? 4 : 0;
}

static void parse_row(struct parse *p, const struct opcode *op, const struct wpk_ptx_operation *row)
{
    bool results = strchr(row->operands, '=') != row->operands;
    p->in.run = row->run;
    p->in.round = (uint8_t)op->round;
    p->in.carries = strchr(row->operands, '~') == NULL;
    p->in.meeting = strchr(row->operands, '&') != NULL   ? WPK_PTX_MEET_MEMBERS
                    : strchr(row->operands, '!') != NULL ? WPK_PTX_MEET_WARP
                                                         : WPK_PTX_MEET_NONE;
    for (const char *letter = row->operands; isalpha((unsigned char)*letter) || *letter == '=';
         letter++) {
        if (*letter == '=') {
            results = false;
            p->in.result_count = p->in.operand_count;
            continue;
        }
        if (p->in.operand_count > 0 && !results) {
            wpk_ptx_text_take(p->text, ",");
        } else if (p->in.operand_count > 0 && !wpk_ptx_text_skip(p->text, "|")) {
            add_unread(p, 0); /* the second result may be left out */
            continue;
        }
        if (results) {
            take_result(p, operand_size(*letter, op->type[0]), false);
        } else {
            take_operand(p, operand_size(*letter, op->type[0]), false);
        }
    }
}

static bool parse_special(struct parse *p, const struct opcode *op)
{
    bool converts = strcmp(op->name, "cvt") == 0;
    bool memory = strcmp(op->name, "ld") == 0 || strcmp(op->name, "st") == 0;
    if (strcmp(op->name, "atom") == 0 && strcmp(op->form, "inc") == 0 &&
        op->type[0] == WPK_PTX_U32 && op->space == WPK_PTX_GLOBAL) {
        parse_atomic(p, op);
        return true;
    }
    if ((op->form[0] != '\0' && strcmp(op->name, "cp") != 0) ||
        (converts && (op->type_count < 2 || wpk_ptx_type_size(op->type[0]) == 0 ||
                      wpk_ptx_type_size(op->type[1]) == 0)) ||
        (memory && wpk_ptx_type_size(op->type[0]) == 0) ||
        (strcmp(op->name, "st") == 0 && op->space == WPK_PTX_PARAM)) {
        return false;
    }
    if (memory) {
        parse_load(p, op);
    } else if (strcmp(op->name, "mov") == 0) {
        parse_move(p, op);
    } else if (converts) {
        parse_convert(p, op);
    } else if (strcmp(op->name, "cp") == 0) {
        parse_copy_async(p, op);
    } else if (strcmp(op->name, "bra") == 0) {
        parse_branch(p);
    } else if (strcmp(op->name, "ret") == 0 || strcmp(op->name, "exit") == 0) {
        p->in.run = wpk_ptx_exit;
    } else {
        return false;
    }
    return true;
}

static void parse_operation(struct parse *p)
{
    struct opcode op;
    char name[WPK_PTX_NAME_MAX];
    snprintf(name, sizeof(name), "%s", p->text->word);
    bool to_space = strncmp(name, "cvta.to.", 8) == 0;
    take_apart(name, &op);
    wpk_ptx_text_next(p->text);
    if (strcmp(op.name, "cvta") == 0 && op.form[0] == '\0') {
        parse_convert_address(p, &op, to_space);
    } else if (!parse_special(p, &op)) {
        const struct wpk_ptx_operation *row = wpk_ptx_operation_find(op.name, op.form, op.type[0]);
        if (row == NULL || op.saturates || op.vector != 1 || op.to_integer) {
            (void)wpk_ptx_text_fail(p->text, WPK_EUNSUPPORTED, "instruction %s is not known", name);
        } else {
            parse_row(p, &op, row);
        }
    }
}

static wpk_err append(struct wpk_ptx_names *names, struct wpk_ptx_entry *entry,
                      const struct wpk_ptx_instruction *in)
{
    struct wpk_ptx_instruction *list =
        wpk_ptx_grow(entry->instruction, (size_t)entry->instruction_count,
                     &names->instruction_capacity, sizeof(*list));
    if (list == NULL) {
        return WPK_ENOMEM;
    }
    entry->instruction = list;
    list[entry->instruction_count++] = *in;
    return WPK_OK;
}

wpk_err wpk_ptx_parse_instruction(struct wpk_ptx_text *text, struct wpk_ptx_names *names,
                                  struct wpk_ptx_entry *entry)
{
    struct parse p = {
        .text = text, .names = names, .entry = entry, .in = {.line = text->line, .target = -1}};
    if (wpk_ptx_text_skip(text, "@")) {
        p.in.guarded = true;
        p.in.negated = wpk_ptx_text_skip(text, "!");
        if (!wpk_ptx_register(names, text->word, &p.in.guard) || p.in.guard.size != 0) {
            (void)fail(&p, "a guard that is no predicate");
        }
        wpk_ptx_text_next(text);
    }
    parse_operation(&p);
    wpk_ptx_text_take(text, ";");
    if (text->err == WPK_OK && append(names, entry, &p.in) != WPK_OK) {
        (void)wpk_ptx_text_fail(text, WPK_ENOMEM, "out of memory");
    }
    return text->err;
}

wpk_err wpk_ptx_append_exit(struct wpk_ptx_names *names, struct wpk_ptx_entry *entry, int line)
{
    const struct wpk_ptx_instruction in = {.run = wpk_ptx_exit, .line = line, .target = -1};
    return append(names, entry, &in);
}
