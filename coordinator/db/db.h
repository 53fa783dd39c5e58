/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on a whole data directory: `wpkd --db COMMAND`, which `wpkctl db`, `export` and `import`
 * run. */
#ifndef WPK_COORDINATOR_DB_DB_H
#define WPK_COORDINATOR_DB_DB_H

/* Run `wpkd --db` with the arguments after it. Returns the exit code, as wpkctl's: 0 done; 1
 * failed, or the data is damaged; 2 usage or input; 3 a wpkd uses the directory; 4 not found. */
int wpk_db_main(int argc, char **argv);

#endif
