/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of the engine's wall time in Chrome's format, for chrome://tracing or Perfetto. Times are
 * of the system's monotonic clock, so that traces of one machine can be shown together. */
#ifndef WPK_WORKER_ENGINE_TRACE_H
#define WPK_WORKER_ENGINE_TRACE_H

#include "common/err.h"

#include <stdint.h>
#include <stdio.h>

/* Rows of the trace. */
#define WPK_TRACE_ENGINE 0
#define WPK_TRACE_RUNNER 1
#define WPK_TRACE_BUILDER 2 /* + the builder's slot */

/* = {0} writes nothing. */
struct wpk_trace {
    FILE *file;
};

/* Create the file.   errors  those of wpk_fs_err */
wpk_err wpk_trace_open(struct wpk_trace *trace, const char *path);
void wpk_trace_close(struct wpk_trace *trace);
/* Write a span of time. `name` must need no escaping in JSON. */
void wpk_trace_span(struct wpk_trace *trace, int row, const char *name, uint64_t trial,
                    uint64_t from_ns, uint64_t to_ns);

#endif
