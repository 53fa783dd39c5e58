/* SPDX-License-Identifier: Apache-2.0 */
/* The code generator makes a directory for each object that it writes: always in /tmp, and one that
 * is killed leaves it there. This takes the place of the C library's function in wpk-builder, so
 * that it is made in the working directory: the build's own, which goes when the build is over. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX_SIZE 6 /* of XXXXXX */
#define NUMBER_MAX 999999

__attribute__((visibility("default"))) char *mkdtemp(char *template)
{
    char *slash = strrchr(template, '/');
    if (slash != NULL) {
        memmove(template, slash + 1, strlen(slash + 1) + 1);
    }
    size_t size = strlen(template);
    if (size < SUFFIX_SIZE || strcmp(template + size - SUFFIX_SIZE, "XXXXXX") != 0) {
        errno = EINVAL;
        return NULL;
    }
    for (int number = 0; number <= NUMBER_MAX; number++) {
        char suffix[SUFFIX_SIZE + 1];
        snprintf(suffix, sizeof suffix, "%06d", number);
        memcpy(template + size - SUFFIX_SIZE, suffix, SUFFIX_SIZE);
        if (mkdir(template, 0700) == 0) {
            return template;
        }
        if (errno != EEXIST) {
            return NULL;
        }
    }
    return NULL;
}
