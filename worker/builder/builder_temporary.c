/* SPDX-License-Identifier: Apache-2.0 */
/* The code generator makes a directory in /tmp for each object that it writes, and a killed build
 * leaves it there. This file replaces the C library's mkdtemp in wpk-builder, so that the directory
 * is made in the working directory, which is the build's own and is removed after the build. */
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
