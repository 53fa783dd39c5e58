/* SPDX-License-Identifier: Apache-2.0 */
/* An intermediate tensor in the memory of the output that is computed from it, element by element:
 * a softmax then touches two tensors instead of three. And an output in the memory of an input. */
#ifndef WPK_NEST_OUTPUT_H
#define WPK_NEST_OUTPUT_H

#include "nest/nest.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why an entry's values cannot be kept in the output that it is placed in, or NULL if they can: in
 * each iteration of the place they are the elements that the output gets there, each is read by the
 * output at its own point only, and all others read them before. The entry's `extent` is found. */
const char *wpk_nest_refuses_output(const struct wpk_nest *nest, int entry);

/* True if such a tensor is in the program: it has the output's shape and type, the output reads it
 * at its own points, and a reduction reads it before. Any nest may still refuse. */
bool wpk_program_may_use_output(const struct wpk_program *program);

/* The input whose memory the output may lie in, as another output of that value: both are alike,
 * in memory too, the output's stage alone reads the input, each element before it is written, and
 * writes each element once. -1: none. */
int wpk_nest_in_place(const struct wpk_nest *nest);

#ifdef __cplusplus
}
#endif

#endif
