/* SPDX-License-Identifier: Apache-2.0 */
/* The write-ahead log goes into the database beside the one who writes, not in his commits: that
 * is thousands of pages, and a sync that a busy disk takes its time for.
 *
 *      a commit leaves a long log ──▶ a thread copies it, and again what has come meanwhile
 *                                        │ nothing has: the next commit begins the log anew
 *                                        ▼
 *                                     the writer copies the few pages since
 *
 * A writer that never rests has to do that last bit: there is always one more page. */
#ifndef WPK_COORDINATOR_STORE_CHECKPOINT_H
#define WPK_COORDINATOR_STORE_CHECKPOINT_H

#include "common/err.h"

#include <stdint.h>

#define WPK_CHECKPOINT_PAGES 8000 /* of the log, when it is copied: 32 MiB */
#define WPK_CHECKPOINT_PAGES_MAX (4 * WPK_CHECKPOINT_PAGES) /* then the writer waits */

struct wpk_checkpoint;

/* For `directory`/history.db, which the writer has opened.
 *
 *   owns    caller closes
 *   errors  WPK_ENOMEM, WPK_ESYSTEM, WPK_EIO
 */
WPK_MUST_CHECK wpk_err wpk_checkpoint_open(const char *directory, struct wpk_checkpoint **out,
                                           struct wpk_diag *diag);
void wpk_checkpoint_close(struct wpk_checkpoint *checkpoint);

/* The writer, outside of a batch: its last commit left so many pages in the log. */
void wpk_checkpoint_committed(struct wpk_checkpoint *checkpoint, uint32_t log_pages);

#endif
