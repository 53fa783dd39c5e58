/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that add several products to each lane of a vector, described by text files.
 *
 *     # comment
 *     instruction vpdpbusd            its name in schedules
 *     flags avx512vnni        CPU flags that it needs
 *     cost 1                          of a multiply-add of the same vectors
 *     input A u8[16,4]                what it computes, in whole form (docs/notation.md)
 *     ...
 *
 * The program has three inputs and one output: two operands [lanes, terms], then the sums [lanes]
 * to which the products are added. docs/instructions.md explains how one is added. */
#ifndef WPK_IR_INSTRUCTION_INSTRUCTION_H
#define WPK_IR_INSTRUCTION_INSTRUCTION_H

#include "ir/program.h"
#include "schema/cpu_flags.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_INSTRUCTION_NAME_MAX 24
#define WPK_INSTRUCTIONS_MAX 16

struct wpk_instruction {
    char name[WPK_INSTRUCTION_NAME_MAX];
    wpk_cpu_flags flags;
    double cost; /* 1: as much as a multiply-add */
    int lanes;   /* of the sums */
    int terms;   /* that are added to each lane */
    enum wpk_dtype operand[2], sum;
    struct wpk_program program; /* what it computes */
};

/* The described instructions, which are read once and never freed. A number stays the same within
 * a process. */
int wpk_instruction_count(void);
const struct wpk_instruction *wpk_instruction_at(int number);
/* The number of an instruction, or -1. */
int wpk_instruction_find(const char *name);

/* Parse one description.
 *   owns    caller frees out->program
 *   errors  WPK_EPARSE with the line in `diag`; WPK_ENOMEM */
wpk_err wpk_instruction_parse(const char *text, struct wpk_instruction *out, struct wpk_diag *diag);

#define WPK_INSTRUCTION_PRODUCTS_MAX 2

/* The part of each element of an operand that is multiplied. */
enum wpk_instruction_part {
    WPK_PART_WHOLE,
    WPK_PART_LOW,  /* x % 16: the low half of a byte of u8 */
    WPK_PART_HIGH, /* x / 16 */
};

/* The node of which `id` is a part, a cast of u8; or `id` itself, which is whole. */
int wpk_instruction_part_of(const struct wpk_program *program, int id,
                            enum wpk_instruction_part *part);

/* A product of two loads, in the order of the instruction's operands. */
struct wpk_instruction_product {
    int load[2];
    enum wpk_instruction_part part[2];
};

/* Fill `out` with the products whose sum a stage adds up; returns how many they are, 0 unless they
 * are products of the operands' types in the type of the instruction's sums.
 *   shape   out [WPK_INSTRUCTION_PRODUCTS_MAX] */
int wpk_instruction_products(const struct wpk_instruction *instruction,
                             const struct wpk_program *program, const struct wpk_stage *stage,
                             struct wpk_instruction_product *out);

/* The number of the instruction with the most lanes for its cost that fits the stage and needs no
 * other flags than these; -1: there is none. */
int wpk_instruction_choose(const struct wpk_program *program, const struct wpk_stage *stage,
                           wpk_cpu_flags has);
/* The same of the first stage that some instruction fits. */
int wpk_program_instruction(const struct wpk_program *program, wpk_cpu_flags has);
/* How many times as many operations as by multiply-adds of f32 a core with these flags does in the
 * operator `op`, in whole form: 1 unless an instruction fits. */
double wpk_operator_peak_times(const char *op, wpk_cpu_flags has);

#ifdef __cplusplus
}
#endif

#endif
