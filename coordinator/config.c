/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/config.h"

#include "common/fs.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char wpk_config_usage[] =
    "usage: wpkd [options]\n"
    "  --data DIR          history and artifacts; default $XDG_DATA_HOME/woodpecker\n"
    "  --http ADDRESS      where clients ask: unix:PATH, 127.0.0.1:PORT or [::1]:PORT;\n"
    "                      default unix:DIR/wpkd.sock\n"
    "  --listen URL        where workers connect: ipc://PATH, tcp://127.0.0.1:PORT or\n"
    "                      tcp://[::1]:PORT; default ipc://DIR/workers.sock\n"
    "  --exit-when-idle S  end after S seconds without a job or a request\n"
    "  --log-level LEVEL   debug, info (default), warn or error\n"
    "  --help, --version\n"
    "\n"
    "SIGTERM and SIGINT end it: what is recorded stays, what is under way is done again. One wpkd\n"
    "works on a data directory.\n";

enum { DATA = 256, HTTP, LISTEN, IDLE, LEVEL, PAGES, HELP, VERSION };

static const struct option options[] = {
    {"data", required_argument, NULL, DATA},
    {"http", required_argument, NULL, HTTP},
    {"listen", required_argument, NULL, LISTEN},
    {"exit-when-idle", required_argument, NULL, IDLE},
    {"log-level", required_argument, NULL, LEVEL},
    {"store-pages-max", required_argument, NULL, PAGES}, /* for tests, so not in the usage */
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {0},
};

static wpk_err parse_number(const char *name, const char *text, long max, long *out,
                            struct wpk_diag *diag)
{
    char *end = NULL;
    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *out < 1 || *out > max) {
        wpk_diag_set(diag, "--%s has to be a number from 1 to %ld, not %s", name, max, text);
        return WPK_EINVAL;
    }
    return WPK_OK;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* Workers bring code that users run: until they show tokens, only this machine's are let in. */
static wpk_err check_listen(const char *url, struct wpk_diag *diag)
{
    static const char *const places[] = {"tcp://127.0.0.1:", "tcp://[::1]:"};
    if (starts_with(url, "ipc://")) {
        return WPK_OK;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (starts_with(url, places[i]) && is_number(url + strlen(places[i]))) {
            return WPK_OK;
        }
    }
    wpk_diag_set(
        diag, "--listen takes ipc://PATH, tcp://127.0.0.1:PORT or tcp://[::1]:PORT, not %s", url);
    return WPK_EINVAL;
}

static wpk_err apply(struct wpk_config *config, int option, const char *value,
                     const char **data_dir, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    long number = 0;
    switch (option) {
    case DATA:
        *data_dir = value;
        break;
    case HTTP:
        wpk_buf_reset(&config->http);
        wpk_buf_append_text(&config->http, value);
        break;
    case LISTEN:
        wpk_buf_reset(&config->listen);
        wpk_buf_append_text(&config->listen, value);
        err = check_listen(value, diag);
        break;
    case IDLE:
        err = parse_number("exit-when-idle", value, 1000000, &number, diag);
        config->idle_s = (unsigned)number;
        break;
    case PAGES:
        err = parse_number("store-pages-max", value, INT_MAX, &number, diag);
        config->store_pages_max = (int)number;
        break;
    case LEVEL:
        err = wpk_log_level_parse(value, &config->log_level);
        if (err != WPK_OK) {
            wpk_diag_set(diag, "there is no log level %s", value);
            err = WPK_EINVAL;
        }
        break;
    case HELP:
        config->help = true;
        break;
    case VERSION:
        config->version = true;
        break;
    default:
        wpk_diag_set(diag, "see wpkd --help");
        err = WPK_EINVAL;
    }
    return err;
}

static wpk_err fill_defaults(struct wpk_config *config, const char *data_dir,
                             const struct wpk_config_environment *environment,
                             struct wpk_diag *diag)
{
    wpk_err err = wpk_fs_data_dir(data_dir, environment->xdg_data_home, environment->home,
                                  &config->data_dir, diag);
    if (err != WPK_OK) {
        return err;
    }
    if (config->http.size == 0) {
        wpk_buf_printf(&config->http, "unix:%s/wpkd.sock", config->data_dir.data);
    }
    if (config->listen.size == 0) {
        wpk_buf_printf(&config->listen, "ipc://%s/workers.sock", config->data_dir.data);
    }
    err = wpk_buf_status(&config->http);
    return err == WPK_OK ? wpk_buf_status(&config->listen) : err;
}

wpk_err wpk_config_parse(int argc, char **argv, const struct wpk_config_environment *environment,
                         struct wpk_config *out, struct wpk_diag *diag)
{
    memset(out, 0, sizeof *out);
    out->log_level = WPK_LOG_INFO;
    const char *data_dir = NULL;
    wpk_err err = WPK_OK;
    int option;
    optind = 1;
    while (err == WPK_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        err = apply(out, option, optarg, &data_dir, diag);
    }
    if (err == WPK_OK && optind < argc) {
        wpk_diag_set(diag, "%s is not an option", argv[optind]);
        err = WPK_EINVAL;
    }
    return err == WPK_OK ? fill_defaults(out, data_dir, environment, diag) : err;
}

void wpk_config_fini(struct wpk_config *config)
{
    wpk_buf_fini(&config->data_dir);
    wpk_buf_fini(&config->http);
    wpk_buf_fini(&config->listen);
}
