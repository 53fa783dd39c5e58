/* SPDX-License-Identifier: Apache-2.0 */
/* The program wpkd. Exit codes tell a service manager whether a restart is of use: 0 it ended as
 * told; 1 a failure, a start may succeed later; 2 usage or configuration; 3 no start can use the
 * store, which is corrupt or of another version. */
#include "common/machine.h"
#include "coordinator/db/db_command.h"
#include "coordinator/service.h"
#include "coordinator/state/search.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Left alone, the allocator keeps for each thread twice the largest block that any of them freed, a
 * page of kernels or a batch's answer: 30 MiB after a minute of lookups. A batch of 1,000 lookups
 * needs a bit less than 2 MiB; with 1 MiB its pages come and go, half as much time again. */
#define KEPT_BYTES_MAX (2 << 20)
#define ARENAS_MAX 4 /* else one of each thread, and what is free in one is nobody else's */

enum { ENDED, FAILED, MISCONFIGURED, UNUSABLE };

/* The sources of the configuration, kept to parse it again when it is reloaded. */
struct source {
    int argc;
    char **argv;
    struct wpk_config_environment environment;
};

static wpk_err parse(void *user, struct wpk_config *out, struct wpk_diag *diag)
{
    const struct source *source = user;
    return wpk_config_parse(source->argc, source->argv, &source->environment, out, diag);
}

static int run(const struct wpk_config *config, struct source *source)
{
    struct wpk_diag diag = {0};
    const struct wpk_notify_environment environment = {.notify_socket = getenv("NOTIFY_SOCKET"),
                                                       .watchdog_usec = getenv("WATCHDOG_USEC"),
                                                       .watchdog_pid = getenv("WATCHDOG_PID"),
                                                       .listen_pid = getenv("LISTEN_PID"),
                                                       .listen_fds = getenv("LISTEN_FDS")};
    const struct wpk_service_options options = {
        .config = config, .environment = &environment, .reload = parse, .user = source};
    wpk_log_init("wpkd", config->log_level, 2);
    wpk_log_set_format(config->log_format);
    wpk_err err = wpk_service_run(&options, &diag);
    if (err == WPK_OK) {
        return ENDED;
    }
    wpk_log_failure(WPK_LOG_ERROR, "failed", err, &diag);
    if (err == WPK_EINVAL) { /* an address or a certificate that no start can use */
        return MISCONFIGURED;
    }
    bool unusable = err == WPK_EMISMATCH || err == WPK_ECORRUPT || err == WPK_EUNSUPPORTED;
    return unusable ? UNUSABLE : FAILED;
}

int main(int argc, char **argv)
{
    struct wpk_diag diag = {0};
    if (wpk_limits_raise_stack(argv, &diag) != WPK_OK) {
        fprintf(stderr, "wpkd: %s\n", diag.text);
        return MISCONFIGURED;
    }
    /* Memory that a burst took goes back to the system, and what one thread freed is another's. */
    (void)mallopt(M_ARENA_MAX, ARENAS_MAX);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES_MAX);
    umask(077); /* what we write is our user's; the sockets' modes are the configuration's */
    if (argc > 1 && strcmp(argv[1], "--db") == 0) {
        return wpk_db_main(argc - 2, argv + 2);
    }
    struct wpk_config config;
    struct source source = {
        .argc = argc,
        .argv = argv,
        .environment = {.xdg_data_home = getenv("XDG_DATA_HOME"), .home = getenv("HOME")}};
    int code = ENDED;
    wpk_err err = parse(&source, &config, &diag);
    if (err == WPK_OK && !wpk_search_set_time(getenv("WPK_TIME_MS"))) {
        err = wpk_fail(&diag, WPK_ERANGE, "WPK_TIME_MS is a number from 2 to 1000");
    }
    if (err != WPK_OK) {
        char text[1024];
        wpk_diag_format(&diag, text, sizeof text);
        fprintf(stderr, "wpkd: %s\n", text);
        code = MISCONFIGURED;
    } else if (config.help) {
        wpk_config_print_help(stdout);
    } else if (config.version) {
        puts("wpkd " WPK_VERSION);
    } else if (config.check) {
        printf("wpkd: the configuration is in order; data in %s\n", config.data_dir);
    } else {
        code = run(&config, &source);
    }
    wpk_config_fini(&config);
    return code;
}
