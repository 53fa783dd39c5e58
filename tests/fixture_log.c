/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include "common/log.h"
#include "common/metrics.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int log_fd = -1;

void wpk_fixture_begin(void)
{
    if (log_fd < 0) {
        log_fd = memfd_create("log", MFD_CLOEXEC);
        WPK_ASSERT(log_fd >= 0);
        wpk_log_init("fixture", WPK_LOG_INFO, log_fd);
    }
    WPK_ASSERT(ftruncate(log_fd, 0) == 0 && lseek(log_fd, 0, SEEK_SET) == 0);
    wpk_metrics_reset();
}

bool wpk_fixture_logged(const char *words)
{
    static char text[1 << 20];
    ssize_t size = pread(log_fd, text, sizeof text - 1, 0);
    WPK_ASSERT(size >= 0);
    text[size] = '\0';
    return strstr(text, words) != NULL;
}
