/* SPDX-License-Identifier: Apache-2.0 */
/* A program with one thing wrong: what verification must be able to see. */
#ifndef WPK_OP_FAULT_H
#define WPK_OP_FAULT_H

#include "op/program.h"

/* suffix, text, what the stage computes instead */
#define WPK_FAULT_LIST(X)                                                                          \
    X(FIRST, "first term dropped") /* of its reduction */                                          \
    X(LAST, "last term dropped")                                                                   \
    X(NEIGHBOUR, "neighbour's value") /* the element one further along an axis */                  \
    X(IDENTITY, "identity")           /* the first term alone, or its first operand as it is */

#define WPK_FAULT_ENUM(name, text) WPK_FAULT_##name,
enum wpk_fault { WPK_FAULT_LIST(WPK_FAULT_ENUM) WPK_FAULT_COUNT };

const char *wpk_fault_name(enum wpk_fault fault);

/* A copy of `program` with `fault` in one stage, along output axis `axis` if it is a neighbour's
 * value; of the other faults there is one, of axis 0.
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOENT the stage cannot have this fault; WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_fault_make(const struct wpk_program *program, int stage, enum wpk_fault fault, int axis,
                       struct wpk_program *out);

#endif
