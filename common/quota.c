/* SPDX-License-Identifier: Apache-2.0 */
#include "common/quota.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNT "/sys/fs/cgroup"

/* "" if the file is not there; a longer one is cut. */
static void read_file(const char *directory, const char *name, char *out, size_t size)
{
    char path[WPK_QUOTA_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, out, size - 1) : -1;
    out[got > 0 ? got : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

/* A container may be shown the path on its host, and its own group as the root of the mount. */
void wpk_quota_find(const char *root, char *out)
{
    char text[8192];
    read_file(root, "proc/self/cgroup", text, sizeof text);
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    const char *path = line != NULL ? strchr(line, '/') : NULL;
    int mount_size = snprintf(out, WPK_QUOTA_PATH_MAX, "%s" MOUNT, root);
    int size = path != NULL ? (int)strcspn(path, "\n") : 0;
    if (size > 1 && mount_size + size < WPK_QUOTA_PATH_MAX) {
        snprintf(out + mount_size, WPK_QUOTA_PATH_MAX - (size_t)mount_size, "%.*s", size, path);
        out[access(out, F_OK) == 0 ? mount_size + size : mount_size] = '\0';
    }
    out[path != NULL ? strlen(out) : 0] = '\0';
}

int wpk_quota_cpus(const char *group, int max)
{
    char at[WPK_QUOTA_PATH_MAX], text[128];
    snprintf(at, sizeof at, "%s", group);
    for (char *slash; strstr(at, MOUNT) != NULL && (slash = strrchr(at, '/')) != NULL;
         *slash = '\0') {
        int64_t quota = 0, period = 0;
        read_file(at, "cpu.max", text, sizeof text); /* without a quota "max 100000" */
        if (sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period) == 2 && quota > 0 && period > 0 &&
            quota / period < max) {
            max = (int)(quota / period);
        }
    }
    return max > 0 ? max : 1;
}

uint64_t wpk_quota_throttled(const char *group)
{
    char text[1024];
    read_file(group, "cpu.stat", text, sizeof text);
    const char *found = strstr(text, "nr_throttled ");
    return found != NULL ? strtoull(strchr(found, ' '), NULL, 10) : 0;
}

uint64_t wpk_quota_waited_ns(void)
{
    char text[128];
    uint64_t ran_ns = 0, waited_ns = 0;
    read_file("/proc/thread-self", "schedstat", text, sizeof text);
    sscanf(text, "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns);
    return waited_ns;
}
