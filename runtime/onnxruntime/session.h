/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of one session: options, claims, compiled groups. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_SESSION_H
#define WPK_RUNTIME_ONNXRUNTIME_SESSION_H

#include "runtime/onnxruntime/ort.h"

#define WPK_EP_NAME "WoodpeckerExecutionProvider"

/* Make a session's provider.
 *
 *   owns    caller calls wpk_session_release; `ort` outlives it
 *   errors  an unknown option, or one with a wrong value
 */
struct ort_status *wpk_session_make(const struct wpk_ort *ort,
                                    const struct ort_session_options *options, struct ort_ep **out);
void wpk_session_release(struct ort_ep *ep);

#endif
