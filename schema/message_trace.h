/* SPDX-License-Identifier: Apache-2.0 */
/* One id follows a piece of work: wpkd and workers log what passes between them, at debug level, in
 * the same words.
 *
 *     leased work=12/trial/7 lease=31 attempt=1 stage=whole                  wpkd
 *     taken work=12/trial/7 lease=31 ... trial=5     the worker, with its engine's number for it
 *     brought work=12/trial/7 lease=31 attempt=1 stage=whole outcome=ok
 *     received work=12/trial/7 ... outcome=ok                                wpkd */
#ifndef WPK_SCHEMA_MESSAGE_TRACE_H
#define WPK_SCHEMA_MESSAGE_TRACE_H

#include "schema/message.h"

#define WPK_WORK_ID_TEXT_SIZE 48

/* "12/trial/7" */
void wpk_work_id_print(wpk_work_id id, char out[WPK_WORK_ID_TEXT_SIZE]);

/* Log every piece of work, or result, of `message` as `event`; nothing below debug level, and then
 * it costs nothing. */
void wpk_message_trace(const char *event, const struct wpk_message *message);

#endif
