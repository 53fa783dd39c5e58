/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator does to a data directory as a whole: `wpkd --db COMMAND`, which `wpkctl db`,
 * `export` and `import` run. */
#ifndef WPK_COORDINATOR_DB_DB_H
#define WPK_COORDINATOR_DB_DB_H

/* Run `wpkd --db` with the words behind it; the exit code, as of wpkctl: 0 done, 1 failed, or
 * something is wrong with the data; 2 usage or input; 3 a wpkd is at work there; 4 not there. */
int wpk_db_main(int argc, char **argv);

#endif
