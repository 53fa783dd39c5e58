/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical form of a program: the same for all names, and for all orders of writing.
 *
 * Stages that no output needs are dropped, and equal stages are merged. Operands of commutative
 * nodes are in an order that depends on structure alone, literals last; a chain of one associative
 * operation is ordered as a whole. Index arithmetic is in normal form. Tensors are t0, t1, ... by
 * first use, and a stage follows the stages that it loads. The axes of a stage are a0, a1, ...:
 * output axes by place, then reduction axes by first use.
 *
 * Programs whose canonical forms print the same compute the same, up to the rounding of sums and
 * products in another order. The reverse holds with the exceptions in ir/canonical/label.h. */
#ifndef WPK_IR_CANONICAL_CANONICAL_H
#define WPK_IR_CANONICAL_CANONICAL_H

#include "common/buf.h"
#include "ir/program.h"

/* The canonical tensor of each tensor of an operator. */
struct wpk_binding {
    int count; /* inputs, constants, then outputs, each in declared order */
    struct {
        char name[WPK_NAME_MAX];
        char canonical[WPK_NAME_MAX]; /* "": no output depends on it */
        enum wpk_role role;
    } tensor[WPK_TENSORS_MAX];
};

/* Write the JSON object `Binding` of openapi.yaml.   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_binding_print(const struct wpk_binding *binding, struct wpk_buf *out);

/* The canonical id of each tensor, stage and axis of a program; -1: dropped. */
struct wpk_canonical_map {
    int tensor[WPK_TENSORS_MAX];
    int stage[WPK_STAGES_MAX];
    int axis[WPK_STAGES_MAX][WPK_AXES_MAX];
};

/* Make the canonical form of a valid program; canonical(canonical(p)) = canonical(p).
 *
 *   shape   binding may be NULL
 *   owns    caller calls wpk_program_fini on `out`, which is written on success only
 *   errors  WPK_ENOMEM; WPK_ERANGE a limit is reached; WPK_EINVAL a program without outputs
 */
wpk_err wpk_program_canonical(const struct wpk_program *program, struct wpk_program *out,
                              struct wpk_binding *binding);

/* The same, with the map of ids. */
wpk_err wpk_program_canonical_map(const struct wpk_program *program, struct wpk_program *out,
                                  struct wpk_canonical_map *map);
/* The same, with the binding, and with `family`: the program in an order that does not depend on
 * extents.
 *   shape  binding and family may be NULL
 *   owns   caller calls wpk_program_fini on exact and family */
wpk_err wpk_program_canonical_family(const struct wpk_program *program, struct wpk_program *exact,
                                     struct wpk_binding *binding, struct wpk_program *family);

/* The ids in `to` of what has the same part in `from`, a program of the same family; of programs of
 * other families the map is without meaning.   errors  as wpk_program_canonical */
wpk_err wpk_program_relate(const struct wpk_program *from, const struct wpk_program *to,
                           struct wpk_canonical_map *out);

/* The normal form of index arithmetic, which is made before operands are ordered.
 *
 * A sum of type i64 is multiplied out: sum(coefficient * term) + constant. A term is an axis, or a
 * node that is neither a sum, a product with a literal, nor a literal; each axis occurs once. A
 * product of several terms begins with their common literal. All other nodes are copied. */

/* Fill `out` with the normal form of a valid program; tensors, stages and axes keep their ids. A
 * load that cannot leave its tensor loses the value outside. Stages share no nodes.
 *
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM; WPK_ENOSPC a limit is reached
 */
wpk_err wpk_program_normal(const struct wpk_program *program, struct wpk_program *out);

/* The identity of a program: SHA-256 over its canonical form (canonical.h) as text. */

#define WPK_FINGERPRINT_SIZE 65 /* 64 hexadecimal digits and a NUL */
#define WPK_EXTENTS_MAX 64      /* axes in `extents`; later ones are left out */
#define WPK_EXTENTS_SIZE (WPK_EXTENTS_MAX * 12)

struct wpk_fingerprint {
    char exact[WPK_FINGERPRINT_SIZE];
    char family[WPK_FINGERPRINT_SIZE]; /* extents and borders erased, strides and
                                          dilations kept */
    /* "1,64,56,56,64,3,3": extents of the axes of all stages, in the order of the family's
     * canonical form. Programs of one family have the same axes at the same places. */
    char extents[WPK_EXTENTS_SIZE];
    char constants[WPK_FINGERPRINT_SIZE]; /* hash of the extents of constants, in that order */
};

/* Fill the fingerprint of a valid program. Two programs have the same `exact` if and only if their
 * canonical forms print the same.
 *
 *   errors  as wpk_program_canonical
 */
wpk_err wpk_fingerprint(const struct wpk_program *program, struct wpk_fingerprint *out);
/* Do what wpk_fingerprint and wpk_program_canonical do, in the time of one.
 *   owns    caller calls wpk_program_fini on `canonical` */
wpk_err wpk_program_identity(const struct wpk_program *program, struct wpk_program *canonical,
                             struct wpk_binding *binding, struct wpk_fingerprint *out);

#endif
