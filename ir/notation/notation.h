/* SPDX-License-Identifier: Apache-2.0 */
/* The text forms of a program.
 *
 * Users write equations. A reduction may stand anywhere in an expression, and becomes a stage of
 * its own:
 *
 *     Y[n,k,y,x] = relu(sum(c,r,s) X[n,c,2*y+r-1,2*x+s-1] * W[k,c,r,s] + B[k])
 *     P[n,c,y,x] = max(r:3,s:3) X[n,c,2*y+r,2*x+s | -inf]
 *     S[i,j] = exp(X[i,j] - M[i]) / D[i] where M[i] = max(j) X[i,j]; D[i] = sum(j) exp(X[i,j]-M[i])
 *
 * Schedules contain the whole form, which loses nothing: one declaration a line, then one stage a
 * line, each stage with at most one reduction, outermost:
 *
 *     input X f32[1,128,28,28] pad 0:0,0:0,1:1,1:1
 *     constant W f32[128,128,3,3]
 *     literal G f32[4,3] = 1,0,0, 0.5,0.5,0.5, 0.5,-0.5,0.5, 0,0,1
 *     intermediate T f32[1,128,28,28]
 *     output Y f32[1,128,28,28]
 *     T[n,k,y,x] = sum(c:128,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]
 *     Y[n,k,y,x] = max(T[n,k,y,x], 0)
 *
 * Grammar and precedence: docs/notation.md. `#` starts a comment. */
#ifndef WPK_IR_NOTATION_NOTATION_H
#define WPK_IR_NOTATION_NOTATION_H

#include "common/buf.h"
#include "ir/program.h"

#define WPK_NOTATION_SIZE_MAX (64 * 1024)

struct wpk_declaration {
    const char *name; /* borrowed */
    enum wpk_dtype dtype;
    int rank;
    int64_t extent[WPK_RANK_MAX];
    int64_t pad_before[WPK_RANK_MAX]; /* as in struct wpk_tensor */
    int64_t pad_after[WPK_RANK_MAX];
    bool constant;
};

/* Parse a type such as "f32[1,64,56,56]" or "f32[1,64,56,56] pad 0:0,0:0,1:1,1:1" into dtype, rank,
 * extents and padding.
 *   errors  WPK_EPARSE, WPK_ERANGE (zero, negative or overflowing sizes), with the column */
wpk_err wpk_notation_parse_type(const char *text, struct wpk_declaration *out,
                                struct wpk_diag *diag);

/* Parse equations into a program: infer the extent of each axis, split nested reductions into
 * stages, and choose accumulators (f32 for f16, bf16 and f32; i32 for i8 and u8; else the type).
 *
 *   shape   declarations [count]; the output is the tensor of the first equation
 *   errors  WPK_EPARSE, WPK_ERANGE with line and column of the text: unknown or unused tensors,
 *           extents that conflict, axes without an extent, wrong rank, nesting deeper than 64;
 *           WPK_ERANGE without a position where the program is too large; WPK_ENOMEM
 *   owns    caller calls wpk_program_fini
 */
wpk_err wpk_notation_parse(const char *text, const struct wpk_declaration *declarations, int count,
                           struct wpk_program *out, struct wpk_diag *diag);

/* Write the program's equations for people: a reduction with one pointwise use is folded back into
 * its reader, and `relu` is recognised. */
wpk_err wpk_notation_print(const struct wpk_program *program, struct wpk_buf *out);

/* Write the whole form, and read it back; parse(print(p)) equals p.
 *   owns    caller calls wpk_program_fini on what parse fills */
wpk_err wpk_program_print(const struct wpk_program *program, struct wpk_buf *out);
wpk_err wpk_program_parse(const char *text, struct wpk_program *out, struct wpk_diag *diag);

#endif
