/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical form of a program: what is left when names and order of writing are taken away.
 *
 * Stages that no output needs are dropped, and equal ones are one. Operands of commutative nodes,
 * chains of one associative operation as a whole, come in an order that depends on structure alone,
 * literals last; index arithmetic is in normal form. Tensors are t0, t1, ... by first use, with the
 * stages after what they load; the axes of a stage are a0, a1, ...: output axes by place, reduction
 * axes by first use.
 *
 * Programs whose canonical forms print the same compute the same, up to the rounding of sums and
 * products in another order. The reverse holds but for what canonical_label.h says. */
#ifndef WPK_OP_CANONICAL_H
#define WPK_OP_CANONICAL_H

#include "common/buf.h"
#include "op/program.h"

/* Which canonical tensor each of the asker's tensors is. */
struct wpk_binding {
    int count; /* inputs, constants, then outputs, each in declared order */
    struct {
        char name[WPK_NAME_MAX];
        char canonical[WPK_NAME_MAX]; /* "": no output depends on it */
        enum wpk_role role;
    } tensor[WPK_TENSORS_MAX];
};

/* The Binding of openapi.yaml.   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_binding_print(const struct wpk_binding *binding, struct wpk_buf *out);

/* The same by id: what each part of the program has become in its canonical form; -1: dropped. */
struct wpk_canonical_map {
    int tensor[WPK_TENSORS_MAX];
    int stage[WPK_STAGES_MAX];
    int axis[WPK_STAGES_MAX][WPK_AXES_MAX];
};

/* The canonical form of a valid program; canonical(canonical(p)) = canonical(p).
 *
 *   shape   binding may be NULL
 *   owns    caller calls wpk_program_fini on `out`, which is written on success only
 *   errors  WPK_ENOMEM; WPK_ERANGE a limit; WPK_EINVAL a program without outputs
 */
wpk_err wpk_program_canonical(const struct wpk_program *program, struct wpk_program *out,
                              struct wpk_binding *binding);

/* The same with the map. */
wpk_err wpk_program_canonical_map(const struct wpk_program *program, struct wpk_program *out,
                                  struct wpk_canonical_map *map);
/* The same with the binding, and the program as its family would have it: in an order to which
 * extents do not count.
 *   shape  binding and family may be NULL
 *   owns   caller calls wpk_program_fini on both */
wpk_err wpk_program_canonical_family(const struct wpk_program *program, struct wpk_program *exact,
                                     struct wpk_binding *binding, struct wpk_program *family);

#endif
