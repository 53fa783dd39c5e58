/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that compute their results row by row, such as softmax and normalizations. */
#ifndef WPK_IR_ROWS_H
#define WPK_IR_ROWS_H

#include "ir/program.h"

/* True if the program has reductions, all of them reduce the same axes of one shape, and every
 * other stage has that shape or the shape of the results; each point reads of other stages only
 * what has its own place in the row, or belongs to the row. So a row can stay in cache from the
 * first stage to the last. Axes of one element do not count. */
bool wpk_program_is_of_rows(const struct wpk_program *program);

#endif
