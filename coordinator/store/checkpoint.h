/* SPDX-License-Identifier: Apache-2.0 */
/* A thread copies the write-ahead log into the database, so that commits need not: a checkpoint is
 * thousands of pages, and a sync that takes long on a busy disk.
 *
 *      a commit leaves a long log ──▶ the thread copies it, then the pages added meanwhile
 *                                        │ none were added: the next commit begins the log anew
 *                                        ▼
 *                                     the writer copies the few pages since
 *
 * The last step is for a writer that never pauses, because it adds pages during each pass. */
#ifndef WPK_COORDINATOR_STORE_CHECKPOINT_H
#define WPK_COORDINATOR_STORE_CHECKPOINT_H

#include "common/err.h"

#include <stdint.h>

#define WPK_CHECKPOINT_PAGES 8000 /* a log this long is copied: 32 MiB */
#define WPK_CHECKPOINT_PAGES_MAX (4 * WPK_CHECKPOINT_PAGES) /* at this, the writer waits */

struct wpk_checkpoint;

/* Start the thread for `directory`/history.db, which the writer has opened.
 *
 *   owns    caller closes
 *   errors  WPK_ENOMEM, WPK_ESYSTEM, WPK_EIO
 */
WPK_MUST_CHECK wpk_err wpk_checkpoint_open(const char *directory, struct wpk_checkpoint **out,
                                           struct wpk_diag *diag);
void wpk_checkpoint_close(struct wpk_checkpoint *checkpoint);

/* Called by the writer outside of a batch: its last commit has left `log_pages` in the log. */
void wpk_checkpoint_committed(struct wpk_checkpoint *checkpoint, uint32_t log_pages);

#endif
