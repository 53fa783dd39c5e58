/* SPDX-License-Identifier: Apache-2.0 */
/* What wpkd was told on its command line, parsed once. */
#ifndef WPK_COORDINATOR_CONFIG_H
#define WPK_COORDINATOR_CONFIG_H

#include "common/buf.h"
#include "common/log.h"

struct wpk_config {
    struct wpk_buf data_dir;
    struct wpk_buf http;   /* where clients ask: unix:PATH, 127.0.0.1:PORT or [::1]:PORT */
    struct wpk_buf listen; /* where workers connect: ipc://PATH, or tcp:// on loopback */
    unsigned idle_s;       /* end by itself after so long without a job or a request; 0: never */
    int store_pages_max;   /* of the database, for tests; 0: no limit */
    enum wpk_log_level log_level;
    bool help; /* only print the usage, or the version */
    bool version;
};

/* What the environment says; NULL: not set. */
struct wpk_config_environment {
    const char *xdg_data_home;
    const char *home;
};

extern const char wpk_config_usage[];

/*   owns    caller calls wpk_config_fini, after a failure too
 *   errors  WPK_EINVAL with what is wrong
 */
WPK_MUST_CHECK wpk_err wpk_config_parse(int argc, char **argv,
                                        const struct wpk_config_environment *environment,
                                        struct wpk_config *out, struct wpk_diag *diag);
void wpk_config_fini(struct wpk_config *config);

#endif
