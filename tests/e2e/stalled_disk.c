/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that hangs, for a program that this library is preloaded into. No sync ends while the file
 * of WPK_STALLED exists; SQLite writes nothing while the file of WPK_STALLED_STORE exists. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static void wait_while(const char *variable)
{
    const char *file = getenv(variable);
    const struct timespec moment = {0, 10000000};
    while (file != NULL && access(file, F_OK) == 0) {
        nanosleep(&moment, NULL);
    }
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    wait_while("WPK_STALLED");
    return (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    wait_while("WPK_STALLED");
    return (int)syscall(SYS_fsync, fd);
}

/* Declared here: the C library's name for it depends on macros. */
__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *data, size_t size,
                                                        off_t offset);

ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset)
{
    wait_while("WPK_STALLED_STORE"); /* others use write() */
    return syscall(SYS_pwrite64, fd, data, size, offset);
}
