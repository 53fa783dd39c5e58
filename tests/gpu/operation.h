/* SPDX-License-Identifier: Apache-2.0 */
/* The table of instructions: their names, operands and the functions that compute them. */
#ifndef WPK_TESTS_GPU_OPERATION_H
#define WPK_TESTS_GPU_OPERATION_H

#include "tests/gpu/ptx.h"

/* One row of a table: `name` with the modifiers `form` for the type.
 *
 * `operands` says what each one is, results before the '=': d of the type, w of twice its size,
 * u of 32 bits, p a predicate. At the end, & lets the lanes meet that the last operand names, ! all
 * of the warp; ~ says that the function itself sets warp->undefined. */
struct wpk_ptx_operation {
    const char *name;
    const char *form; /* such as "lo" or "sync.bfly"; modifiers that change nothing are left out */
    enum wpk_ptx_type type;
    wpk_ptx_lanes run;
    const char *operands;
};

/* Tables that end with a row without a name. */
extern const struct wpk_ptx_operation wpk_ptx_integers[];
extern const struct wpk_ptx_operation wpk_ptx_floats[];
extern const struct wpk_ptx_operation wpk_ptx_compares[];
extern const struct wpk_ptx_operation wpk_ptx_controls[];

/* Instructions whose operands have a syntax of their own. */
void wpk_ptx_move_16(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_move_32(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_move_64(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_move_predicate(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
/* operand 0: the whole, 1 …: its parts, from the least significant on; or parts first. */
void wpk_ptx_pack(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_unpack(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_convert(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
/* operands: vector elements, then the address; a store has no results. */
void wpk_ptx_load(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_store(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
/* operands: the old number, the address, the limit: one more, 0 behind the limit. */
void wpk_ptx_atomic_increment(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
/* A fence: an atomic operation after it publishes the stores that the active lanes made before. */
void wpk_ptx_fence(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
/* operands: address in shared memory, address in global memory, bytes to read; the rest of
 * in->size is zero. */
void wpk_ptx_copy_async(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_commit_group(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
/* in->offset: groups that may still be under way. */
void wpk_ptx_wait_group(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_branch(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_exit(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);
void wpk_ptx_nothing(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);

/* A number of a type with as many bits as its type has, as one of 64 bits.
 *   type  no predicate */
uint64_t wpk_ptx_extend(uint64_t bits, enum wpk_ptx_type type);

/* The row for an instruction's name, form and type, or NULL. */
const struct wpk_ptx_operation *wpk_ptx_operation_find(const char *name, const char *form,
                                                       enum wpk_ptx_type type);

#endif
