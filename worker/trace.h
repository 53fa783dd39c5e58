/* SPDX-License-Identifier: Apache-2.0 */
/* Where the wall time goes, as a Chrome trace: open it in chrome://tracing or Perfetto. Times are
 * the system's monotonic clock's: traces of several processes of one machine go together. */
#ifndef WPK_WORKER_TRACE_H
#define WPK_WORKER_TRACE_H

#include "common/err.h"

#include <stdint.h>
#include <stdio.h>

/* Rows of the picture. */
#define WPK_TRACE_ENGINE 0
#define WPK_TRACE_RUNNER 1
#define WPK_TRACE_BUILDER 2 /* + the builder's slot */

/* = {0} writes nothing. */
struct wpk_trace {
    FILE *file;
};

/*   errors  of creating the file */
wpk_err wpk_trace_open(struct wpk_trace *trace, const char *path);
void wpk_trace_close(struct wpk_trace *trace);
/* Something that lasted; `name` needs no escaping. */
void wpk_trace_span(struct wpk_trace *trace, int row, const char *name, uint64_t trial,
                    uint64_t from_ns, uint64_t to_ns);

#endif
