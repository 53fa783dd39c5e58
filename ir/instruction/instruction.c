/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/instruction/instruction.h"

#include "ir/notation/notation.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 8192 /* of one description */
#define WORD "instruction "

/* All files, one after the other (ir/meson.build). */
extern const unsigned char wpk_instruction_texts[];
extern const size_t wpk_instruction_texts_size;

static struct wpk_instruction instructions[WPK_INSTRUCTIONS_MAX];
static int instruction_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- one description */

/* Copy the line that begins with the word, without it; false if there is none. */
static bool find_line(const char *text, const char *word, char *out, size_t size)
{
    size_t length = strlen(word);
    for (const char *line = text; *line != '\0'; line += strspn(line, "\n")) {
        size_t all = strcspn(line, "\n");
        if (all > length && strncmp(line, word, length) == 0 && all - length < size) {
            snprintf(out, size, "%.*s", (int)(all - length), line + length);
            return true;
        }
        line += all;
    }
    return false;
}

/* Fill what follows from the program. */
static bool read_program(struct wpk_instruction *out)
{
    const struct wpk_program *program = &out->program;
    int found = 0, outputs = 0;
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        outputs += tensor->role == WPK_ROLE_OUTPUT;
        if (tensor->role != WPK_ROLE_INPUT) {
            continue;
        }
        if (found == 2) {
            out->sum = tensor->dtype;
            out->lanes = (int)tensor->extent[0];
        } else if (found < 2) {
            out->operand[found] = tensor->dtype;
            out->terms = (int)tensor->extent[1];
        }
        if (tensor->rank != (found < 2 ? 2 : 1) ||
            tensor->extent[0] != program->tensors[0].extent[0]) {
            return false;
        }
        found++;
    }
    return found == 3 && outputs == 1 && out->terms > 1;
}

wpk_err wpk_instruction_parse(const char *text, struct wpk_instruction *out, struct wpk_diag *diag)
{
    char flags[WPK_CPU_FLAGS_TEXT_MAX], cost[16], *end;
    memset(out, 0, sizeof(*out));
    if (!find_line(text, WORD, out->name, sizeof(out->name)) ||
        !find_line(text, "flags ", flags, sizeof(flags)) ||
        !find_line(text, "cost ", cost, sizeof(cost))) {
        return wpk_fail(diag, WPK_EPARSE,
                        "an instruction\'s description: write a line 'instruction NAME', one of "
                        "its flags, and its cost");
    }
    out->cost = strtod(cost, &end);
    if (wpk_cpu_flags_parse(flags, &out->flags) != WPK_OK || *end != '\0' || out->cost <= 0) {
        return wpk_fail(diag, WPK_EPARSE,
                        "an instruction\'s description: flags are a level with flags beyond it, a "
                        "cost is a positive number");
    }
    const char *program = strstr(text, "\ninput "); /* what follows the last of the other lines */
    wpk_err err = wpk_program_parse(program != NULL ? program + 1 : "", &out->program, diag);
    if (err == WPK_OK && !read_program(out)) {
        wpk_program_fini(&out->program);
        err = wpk_fail(diag, WPK_EPARSE,
                       "an instruction\'s description: the inputs are two operands [lanes, terms] "
                       "and the sums [lanes]");
    }
    return err;
}

/* ---- all of them */

static void read_all(void)
{
    char *all =
        WPK_DEMAND(strndup((const char *)wpk_instruction_texts, wpk_instruction_texts_size));
    const char *at = strstr(all, WORD);
    while (at != NULL) {
        char text[TEXT_MAX];
        struct wpk_diag diag = {0};
        const char *next = strstr(at + 1, "\n" WORD);
        size_t size = next == NULL ? strlen(at) : (size_t)(next + 1 - at);
        WPK_ASSERT(size < sizeof(text));
        WPK_ASSERT(instruction_count < WPK_INSTRUCTIONS_MAX);
        snprintf(text, sizeof(text), "%.*s", (int)size, at);
        wpk_err err = wpk_instruction_parse(text, &instructions[instruction_count], &diag);
        WPK_ASSERT(err == WPK_OK);
        instruction_count++;
        at = next == NULL ? NULL : next + 1;
    }
    free(all);
}

int wpk_instruction_count(void)
{
    int failed = pthread_once(&once, read_all);
    WPK_ASSERT(failed == 0);
    return instruction_count;
}

const struct wpk_instruction *wpk_instruction_at(int number)
{
    int count = wpk_instruction_count();
    WPK_ASSERT(number >= 0);
    WPK_ASSERT(number < count);
    return &instructions[number];
}

int wpk_instruction_find(const char *name)
{
    for (int i = wpk_instruction_count() - 1; i >= 0; i--) {
        if (strcmp(instructions[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- where one fits */

int wpk_instruction_part_of(const struct wpk_program *program, int id,
                            enum wpk_instruction_part *part)
{
    const struct wpk_node *nodes = program->nodes, *node = &nodes[id];
    *part = WPK_PART_WHOLE;
    if (node->kind == WPK_NODE_BINARY &&
        (node->op == WPK_BINARY_MOD || node->op == WPK_BINARY_DIV) &&
        nodes[node->arg[1]].kind == WPK_NODE_LITERAL && nodes[node->arg[1]].integer == 16 &&
        nodes[node->arg[0]].kind == WPK_NODE_CAST &&
        nodes[nodes[node->arg[0]].arg[0]].dtype == WPK_U8) {
        *part = node->op == WPK_BINARY_MOD ? WPK_PART_LOW : WPK_PART_HIGH;
        return node->arg[0];
    }
    return id;
}

/* The load below a cast to the type of the sums, which keeps its value, and which part of it is
 * read; -1: it is none. */
static int load_below(const struct wpk_program *program, int id, enum wpk_dtype sum,
                      enum wpk_instruction_part *part)
{
    id = wpk_instruction_part_of(program, id, part);
    const struct wpk_node *node = &program->nodes[id];
    bool casts = node->kind == WPK_NODE_CAST && node->dtype == sum;
    int load = casts ? node->arg[0] : id;
    return program->nodes[load].kind == WPK_NODE_LOAD ? load : -1;
}

static bool find_product(const struct wpk_instruction *instruction,
                         const struct wpk_program *program, const struct wpk_node *node,
                         struct wpk_instruction_product *out)
{
    bool multiplies = node->kind == WPK_NODE_BINARY && node->op == WPK_BINARY_MUL &&
                      node->dtype == instruction->sum;
    for (int swap = 0; swap < 2 && multiplies; swap++) {
        int found = 0;
        for (int i = 0; i < 2; i++) {
            int load = load_below(program, node->arg[swap ^ i], instruction->sum, &out->part[i]);
            found += load >= 0 && program->nodes[load].dtype == instruction->operand[i];
            out->load[i] = load;
        }
        if (found == 2) {
            return true;
        }
    }
    return false;
}

int wpk_instruction_products(const struct wpk_instruction *instruction,
                             const struct wpk_program *program, const struct wpk_stage *stage,
                             struct wpk_instruction_product *out)
{
    const struct wpk_node *node = &program->nodes[stage->expr];
    if (stage->reduction != WPK_REDUCE_SUM || stage->accumulator != instruction->sum ||
        program->tensors[stage->output].dtype != instruction->sum) {
        return 0;
    }
    if (node->kind == WPK_NODE_BINARY && node->op == WPK_BINARY_ADD) {
        bool both = find_product(instruction, program, &program->nodes[node->arg[0]], &out[0]) &&
                    find_product(instruction, program, &program->nodes[node->arg[1]], &out[1]);
        return both ? 2 : 0;
    }
    return find_product(instruction, program, node, &out[0]) ? 1 : 0;
}

int wpk_instruction_choose(const struct wpk_program *program, const struct wpk_stage *stage,
                           wpk_cpu_flags has)
{
    struct wpk_instruction_product product[WPK_INSTRUCTION_PRODUCTS_MAX];
    int best = -1;
    for (int i = 0; i < wpk_instruction_count(); i++) {
        bool better = best < 0 || instructions[i].lanes / instructions[i].cost >
                                      instructions[best].lanes / instructions[best].cost;
        if (better && wpk_cpu_flags_fit(instructions[i].flags, has) &&
            wpk_instruction_products(&instructions[i], program, stage, product) > 0) {
            best = i;
        }
    }
    return best;
}

int wpk_program_instruction(const struct wpk_program *program, wpk_cpu_flags has)
{
    int found = -1;
    for (int s = 0; s < program->stage_count && found < 0; s++) {
        found = wpk_instruction_choose(program, &program->stages[s], has);
    }
    return found;
}

double wpk_operator_peak_times(const char *op, wpk_cpu_flags has)
{
    struct wpk_program program = {0};
    double times = 1;
    if (wpk_program_parse(op, &program, NULL) == WPK_OK) {
        int found = wpk_program_instruction(&program, has);
        times = found < 0 ? 1 : fmax(1, instructions[found].terms / instructions[found].cost);
    }
    wpk_program_fini(&program);
    return times;
}
