/* SPDX-License-Identifier: Apache-2.0 */
/* The index follows what a batch does to a problem's kernels. */
#ifndef WPK_COORDINATOR_EFFECTS_INDEX_WRITE_H
#define WPK_COORDINATOR_EFFECTS_INDEX_WRITE_H

#include <stdint.h>

struct wpk_index;
struct wpk_store_write;

/* A store write (executor.h) that refreshes the problem's kernels in the index, and publishes or
 * discards them. Add it to a batch after the writes that change the problem.
 *   owns  the batch; the write frees itself when it is done */
struct wpk_store_write *wpk_index_write_new(struct wpk_index *index, uint64_t problem_id);

#endif
