/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WPK_BENCH_FLEET_FSYNC_H
#define WPK_BENCH_FLEET_FSYNC_H

/* From now on every fsync of this process takes that much longer; below a second. */
void bench_fsync_delay(int ms);
/* Calls so far. */
unsigned long bench_fsync_count(void);

#endif
