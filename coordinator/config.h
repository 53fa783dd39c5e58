/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of wpkd: the command line goes before the configuration file, and that before
 * defaults. All three are read at the start and again at a reload. */
#ifndef WPK_COORDINATOR_CONFIG_H
#define WPK_COORDINATOR_CONFIG_H

#include "common/arena.h"
#include "common/log.h"
#include "coordinator/http/http.h"

#include <stdint.h>
#include <stdio.h>

#define WPK_CONFIG_LISTENERS_MAX 8 /* of clients, and as many of workers */
#define WPK_CONFIG_HOSTS_MAX 16
#define WPK_CONFIG_OWNERS_MAX 1024
#define WPK_CONFIG_PATH_MAX 1024 /* bytes; of a path, an address or a name */

struct wpk_config_owner {
    const char *name;
    uint32_t weight;   /* from 1; device time is shared in proportion */
    uint32_t jobs_max; /* live jobs at a time */
};

/* The configuration. Texts and lists lie in `arena`; a list is NULL if its count is 0. */
struct wpk_config {
    struct wpk_arena arena;
    const char *file; /* NULL: none was named */
    const char *data_dir;
    const char *log; /* URI of PostgreSQL that keeps the history's log; NULL: there is none */
    bool standby;    /* wait until the log's holder is gone */
    struct wpk_listen http[WPK_CONFIG_LISTENERS_MAX];
    uint32_t http_count;
    struct wpk_listen workers[WPK_CONFIG_LISTENERS_MAX];
    uint32_t worker_count;
    const char *hosts[WPK_CONFIG_HOSTS_MAX]; /* names by which clients may call this host */
    uint32_t host_count;
    struct wpk_http_peer peers[WPK_HTTP_PEERS_MAX];
    uint32_t peer_count;
    struct wpk_config_owner owner_default; /* of owners that are not listed; its name is "*" */
    struct wpk_config_owner *owners;
    uint32_t owner_count;
    uint32_t http_connections_max;
    uint32_t worker_connections_max;
    uint64_t artifact_bytes_max;    /* quota: unused artifacts go near it; 0: no limit */
    uint32_t artifacts_per_problem; /* the best ones, kept whatever the quota */
    uint32_t idle_s;                /* end after so long without a job or a request; 0: never */
    bool exit_on_failure; /* end if the store fails, as a private wpkd does; else serve reads */
    uint32_t drain_s;     /* at the end, time for what is under way to become durable */
    int store_pages_max;  /* of the database, for tests; 0: no limit */
    enum wpk_log_level log_level;
    enum wpk_log_format log_format;
    bool check;   /* only check the configuration */
    bool help;    /* only print the usage */
    bool version; /* only print the version */
};

/* Environment variables; NULL: not set. */
struct wpk_config_environment {
    const char *xdg_data_home;
    const char *home;
};

/* Print the options. */
void wpk_config_print_help(FILE *out);

/* Parse the command line, and the configuration file that it names.
 *
 *   owns    caller calls wpk_config_fini, after a failure too
 *   errors  WPK_EINVAL, WPK_EPARSE, WPK_ERANGE with the reason, and for a file with line and field;
 *           those of reading the file; WPK_ENOMEM
 */
wpk_err wpk_config_parse(int argc, char **argv, const struct wpk_config_environment *environment,
                         struct wpk_config *out, struct wpk_diag *diag);
void wpk_config_fini(struct wpk_config *config);

/* Check a listener of clients; of workers: its address, and TLS where it needs it.
 *
 *   errors  WPK_EINVAL  with the reason
 */
wpk_err wpk_config_check_http(const struct wpk_listen *listener, struct wpk_diag *diag);
wpk_err wpk_config_check_workers(const struct wpk_listen *listener, struct wpk_diag *diag);

/* Read the file `path` into `config`, over the values there; for wpk_config_parse(). */
wpk_err wpk_config_read(const char *path, struct wpk_config *config, struct wpk_diag *diag);

/* The name in the file of the first field that differs and needs a restart; NULL: there is none. */
const char *wpk_config_fixed_change(const struct wpk_config *now, const struct wpk_config *next);
/* Set the fields of `next` that need a restart to their values in `now`. */
void wpk_config_keep_fixed(const struct wpk_config *now, struct wpk_config *next);

#endif
