/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests: how many of its draws a test takes where a sanitizer makes arithmetic ten times
 * as slow, and where its files go. */
#ifndef WPK_TESTS_SHARE_H
#define WPK_TESTS_SHARE_H

#include <stdlib.h>

/* A quarter of `count` under ASan, rounded up; all of it where WPK_TEST_DRAWS is set, as in
 * `make test-all`, and in other builds. */
static inline int wpk_test_share(int count)
{
#ifdef __SANITIZE_ADDRESS__
    return getenv("WPK_TEST_DRAWS") == NULL ? (count + 3) / 4 : count;
#else
    return count;
#endif
}

/* The folder for temporary files: run.py names one in memory. */
static inline const char *wpk_test_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder != NULL ? folder : "/tmp";
}

#endif
