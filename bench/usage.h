/* SPDX-License-Identifier: Apache-2.0 */
/* `--help` of the bench's programs. */
#ifndef WPK_BENCH_USAGE_H
#define WPK_BENCH_USAGE_H

/* Print the usage to standard output and end with 0 where --help or -h is the first word. */
void bench_usage_help(int argc, char **argv, const char *usage);

#endif
