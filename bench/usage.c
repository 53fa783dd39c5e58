/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_usage_help(int argc, char **argv, const char *usage)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        exit(0);
    }
}
