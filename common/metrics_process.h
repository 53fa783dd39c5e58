/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's numbers of this process, under the names that Prometheus' client libraries use. */
#ifndef WPK_COMMON_METRICS_PROCESS_H
#define WPK_COMMON_METRICS_PROCESS_H

#include "common/buf.h"

/* Append process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
 * process_start_time_seconds, process_open_fds, process_max_fds. A number that /proc does not give,
 * for want of a descriptor to read it with, is left out. */
void wpk_metrics_print_process(struct wpk_buf *out);

#endif
