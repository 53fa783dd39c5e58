/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel knows of this process, under the names that Prometheus' client libraries use. */
#ifndef WPK_COMMON_METRICS_PROCESS_H
#define WPK_COMMON_METRICS_PROCESS_H

#include "common/buf.h"

/* Append process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
 * process_start_time_seconds, process_open_fds, process_max_fds; what /proc does not tell (no
 * descriptor left to read it with) is left out. */
void wpk_metrics_print_process(struct wpk_buf *out);

#endif
