/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time that this process does not get: by the quota of its control group (version 2), and by
 * waiting for a CPU. */
#ifndef WPK_COMMON_QUOTA_H
#define WPK_COMMON_QUOTA_H

#include <stdint.h>

#define WPK_QUOTA_PATH_MAX 1024

/* Find the directory of this process's control group; "": there is none. `root` "": the machine's
 * files; in tests a directory that has proc/ and sys/.
 *   shape   out [WPK_QUOTA_PATH_MAX] */
void wpk_quota_find(const char *root, char *out);
/* CPUs that the group and those around it allow: at least 1, at most `max`, rounded down. */
int wpk_quota_cpus(const char *group, int max);
/* How often the group was throttled so far; 0: not known. */
uint64_t wpk_quota_throttled(const char *group);
/* How long the calling thread has waited for a CPU so far, in ns; 0: not known. */
uint64_t wpk_quota_waited_ns(void);

#endif
