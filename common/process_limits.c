/* SPDX-License-Identifier: Apache-2.0 */
#include "common/machine.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

wpk_err wpk_limits_raise_stack(char **argv, struct wpk_diag *diag)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= WPK_LIMITS_STACK) {
        return WPK_OK;
    }
    bool is_enough = limit.rlim_max >= WPK_LIMITS_STACK_MIN;
    rlim_t most = limit.rlim_max < WPK_LIMITS_STACK ? limit.rlim_max : WPK_LIMITS_STACK;
    if (is_enough && limit.rlim_cur == most) {
        return WPK_OK;
    }
    limit.rlim_cur = most;
    if (is_enough && setrlimit(RLIMIT_STACK, &limit) == 0) {
        execv("/proc/self/exe", argv);
    }
    return wpk_fail(diag, WPK_ESYSTEM,
                    "the stack may have %llu KiB at most, and %zu are needed: start with a "
                    "higher limit, as by ulimit -s %zu",
                    (unsigned long long)limit.rlim_max >> 10, WPK_LIMITS_STACK_MIN >> 10,
                    WPK_LIMITS_STACK >> 10);
}

void wpk_limits_descriptors(uint64_t *count, uint64_t *max)
{
    struct rlimit limit;
    DIR *directory = opendir("/proc/self/fd");
    *max = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
    *count = *max;
    if (directory != NULL) {
        for (*count = 0; readdir(directory) != NULL;) {
            ++*count;
        }
        *count -= 3; /* ".", ".." and the directory's own */
        closedir(directory);
    }
}
