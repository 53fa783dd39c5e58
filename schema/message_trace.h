/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of work items. wpkd and workers log the work items and results that pass between them, at
 * debug level, by the same id; a worker's builder and runner get the id too, and log it.
 *
 *     leased work=12/trial/7 lease=31 attempt=1 stage=whole worker=w         wpkd
 *     taken work=12/trial/7 lease=31 ... trial=5     the worker, with its engine's number for it
 *     build_started, build_ended work=12/trial/7                             its builder
 *     run_started, run_ended work=12/trial/7                                 its runner
 *     brought work=12/trial/7 lease=31 attempt=1 stage=whole outcome=ok      the worker
 *     received work=12/trial/7 ... outcome=ok worker=w                       wpkd */
#ifndef WPK_SCHEMA_MESSAGE_TRACE_H
#define WPK_SCHEMA_MESSAGE_TRACE_H

#include "schema/message.h"

#define WPK_WORK_ID_TEXT_SIZE 48

/* "12/trial/7" */
void wpk_work_id_print(wpk_work_id id, char out[WPK_WORK_ID_TEXT_SIZE]);

/* Log every work item and result of `message` as `event`, with the worker's name unless it is NULL.
 * Does nothing unless the log's level is debug. */
void wpk_message_trace(const char *event, const struct wpk_message *message, const char *worker);

#endif
