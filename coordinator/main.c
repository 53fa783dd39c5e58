/* SPDX-License-Identifier: Apache-2.0 */
/* wpkd. Exit codes: 0 ended when told to, 1 a failure, 2 usage. */
#include "coordinator/service.h"

#include <stdio.h>
#include <stdlib.h>

static int run(const struct wpk_config *config)
{
    struct wpk_diag diag = {0};
    wpk_log_init("wpkd", config->log_level, 2);
    wpk_err err = wpk_service_run(config, &diag);
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_ERROR, "failed", err, &diag);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct wpk_config config;
    struct wpk_diag diag = {0};
    struct wpk_config_environment environment = {.xdg_data_home = getenv("XDG_DATA_HOME"),
                                                 .home = getenv("HOME")};
    int code = 0;
    wpk_err err = wpk_config_parse(argc, argv, &environment, &config, &diag);
    if (err != WPK_OK) {
        fprintf(stderr, "wpkd: %s\n", diag.text);
        code = 2;
    } else if (config.help) {
        fputs(wpk_config_usage, stdout);
    } else if (config.version) {
        puts("wpkd " WPK_VERSION);
    } else {
        code = run(&config);
    }
    wpk_config_fini(&config);
    return code;
}
