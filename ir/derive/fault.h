/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with one fault in one stage, which verification must detect. */
#ifndef WPK_IR_DERIVE_FAULT_H
#define WPK_IR_DERIVE_FAULT_H

#include "ir/program.h"

/* suffix, text, what the stage computes instead */
#define WPK_FAULT_LIST(X)                                                                          \
    X(FIRST, "first term dropped") /* of its reduction */                                          \
    X(LAST, "last term dropped")                                                                   \
    X(NEIGHBOUR, "neighbour's value") /* the element one further along an axis */                  \
    X(IDENTITY, "identity")           /* the first term alone, or its first operand as it is */

#define WPK_FAULT_ENUM(name, text) WPK_FAULT_##name,
enum wpk_fault { WPK_FAULT_LIST(WPK_FAULT_ENUM) WPK_FAULT_COUNT };

const char *wpk_fault_name(enum wpk_fault fault);

/* Copy `program` with `fault` in one stage. A neighbour's value is that along output axis `axis`;
 * the other faults exist for axis 0 only.
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOENT the stage cannot have this fault; WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_fault_make(const struct wpk_program *program, int stage, enum wpk_fault fault, int axis,
                       struct wpk_program *out);

#endif
