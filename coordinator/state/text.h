/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of texts that several nouns carry. */
#ifndef WPK_COORDINATOR_STATE_TEXT_H
#define WPK_COORDINATOR_STATE_TEXT_H

#include "schema/message.h"

#define WPK_JOB_ID_SIZE 18
#define WPK_JOB_TEXT_MAX 64
#define WPK_KEY_TEXT_MAX 256
#define WPK_REASON_MAX 256
#define WPK_PINS_TEXT_MAX 4096 /* of an operator's pins, with the NUL */

#endif
