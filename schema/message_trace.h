/* SPDX-License-Identifier: Apache-2.0 */
/* One id follows a work item: wpkd and workers log what passes between them, at debug level, in
 * the same words; what a worker starts is told the id with the work, and logs it too.
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

/* Log every work item, or result, of `message` as `event`, with the worker that it is for or
 * from; NULL: with none. Nothing above debug level, and then it costs nothing. */
void wpk_message_trace(const char *event, const struct wpk_message *message, const char *worker);

#endif
