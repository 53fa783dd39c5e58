/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that hangs, for a program that this is preloaded into: no sync ends while there is the
 * file that WPK_STALLED names. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void)
{
    const char *file = getenv("WPK_STALLED");
    const struct timespec moment = {0, 10000000};
    while (file != NULL && access(file, F_OK) == 0) {
        nanosleep(&moment, NULL);
    }
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    wait_for_disk();
    return (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    wait_for_disk();
    return (int)syscall(SYS_fsync, fd);
}
