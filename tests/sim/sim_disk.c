/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/sim_disk.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static bool breaking;
static bool failed;
static long left; /* writes that still succeed */
static int reason;

void wpk_sim_disk_break(long writes, int error)
{
    breaking = true;
    failed = false;
    left = writes;
    reason = error;
}

void wpk_sim_disk_mend(void)
{
    breaking = false;
    failed = false;
}

bool wpk_sim_disk_failed(void)
{
    return failed;
}

static ssize_t write_at(int fd, const void *data, size_t size, off_t offset)
{
    return syscall(SYS_pwrite64, fd, data, size, offset);
}

/* Declared here: the C library's name for it depends on macros. */
__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *data, size_t size,
                                                        off_t offset);

ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset)
{
    if (breaking && !failed && left-- <= 0) {
        failed = true;
        return size > 1 ? write_at(fd, data, size / 2, offset) : -1; /* torn */
    }
    if (failed) {
        errno = reason;
        return -1;
    }
    return write_at(fd, data, size, offset);
}

/* Data that a simulated machine has written is safe without a sync: only the process dies. */
__attribute__((visibility("default"))) int fdatasync(int fd)
{
    (void)fd;
    errno = reason;
    return failed ? -1 : 0;
}
