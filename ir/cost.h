/* SPDX-License-Identifier: Apache-2.0 */
/* The work and memory traffic of a program that no implementation can avoid. */
#ifndef WPK_IR_COST_H
#define WPK_IR_COST_H

#include "ir/program.h"
#include "schema/record.h"

struct wpk_cost {
    double flops;      /* add, mul, max, compare each 1; exp and the like 1; loads and indices 0;
                         a reduction counts its combine: 2 per multiply-add */
    double iterations; /* of the innermost loops, of all stages together */
    double elements;   /* that stages write: intermediates and outputs */
    double bytes_min;  /* every input, constant and output touched once, without padding; of what is
                         read at indices that are data no more than these name */
    double bytes_constants; /* the part of bytes_min that constants are */
    double bytes_intermediate;
};

/* The measured limits of a device. */
struct wpk_roofline {
    double flops_per_s; /* of the threads used, in the program's dtype */
    double bytes_per_s;
};

void wpk_cost(const struct wpk_program *program, struct wpk_cost *out);
void wpk_stage_cost(const struct wpk_program *program, int stage, struct wpk_cost *out);
/* The part of bytes_min that one call fetches from memory under `conditions`. If its warm part is
 * larger than `cache_bytes`, all of it counts: a call evicts what the next one reads first. */
double wpk_cost_memory_bytes(const struct wpk_cost *cost, enum wpk_conditions conditions,
                             double cache_bytes);
/* max(flops / flops_per_s, memory_bytes / bytes_per_s) in ns */
double wpk_cost_roofline_ns(const struct wpk_cost *cost, double memory_bytes,
                            const struct wpk_roofline *roofline);

/* Programs that compute their results row by row, such as softmax and normalizations. */

/* True if the program has reductions, all of them reduce the same axes of one shape, and every
 * other stage has that shape or the shape of the results; each point reads of other stages only
 * what has its own place in the row, or belongs to the row. So a row can stay in cache from the
 * first stage to the last. Axes of one element do not count. */
bool wpk_program_is_of_rows(const struct wpk_program *program);

#endif
