/* SPDX-License-Identifier: Apache-2.0 */
/* Makes every fsync and fdatasync of this process slower, and counts them. */
#ifndef WPK_BENCH_FLEET_FSYNC_H
#define WPK_BENCH_FLEET_FSYNC_H

/* Let every sync take `ms` longer from now on; `ms` is below 1,000. */
void bench_fsync_delay(int ms);
/* Syncs so far. */
unsigned long bench_fsync_count(void);

#endif
