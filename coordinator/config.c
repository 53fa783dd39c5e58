/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/config.h"

#include "common/fs.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char wpk_config_usage[] =
    "usage: wpkd [options], or wpkd --db COMMAND; see wpkctl db\n"
    "  --config FILE       read this first; what is said here goes before it; see wpkd.json(5)\n"
    "  --check-config      say whether file and options are in order, and end\n"
    "  --data DIR          history and artifacts; default $XDG_DATA_HOME/woodpecker\n"
    "  --http ADDRESS      where clients ask: unix:PATH, 127.0.0.1:PORT or [::1]:PORT;\n"
    "                      default unix:DIR/wpkd.sock\n"
    "  --listen URL        where workers connect: ipc://PATH, tcp://127.0.0.1:PORT or\n"
    "                      tcp://[::1]:PORT; default ipc://DIR/workers.sock\n"
    "  --exit-when-idle S  end after S seconds without a job or a request\n"
    "  --exit-on-failure   end when the store cannot be written, instead of serving reads\n"
    "  --log-level LEVEL   debug, info (default), warn or error\n"
    "  --log-format NAME   text (default), json or journal\n"
    "  --help, --version\n"
    "\n"
    "SIGTERM and SIGINT end it: what is recorded stays, what is under way is done again. SIGHUP\n"
    "makes it read its file again. One wpkd works on a data directory.\n"
    "Exit codes: 0 ended when told to; 1 a failure, a start may succeed later; 2 usage or\n"
    "configuration; 3 a store that no start can use: written by another version, or corrupt.\n";

enum {
    FILE_NAME = 256,
    CHECK,
    DATA,
    HTTP,
    LISTEN,
    IDLE,
    FAILURE,
    LEVEL,
    FORMAT,
    PAGES,
    HELP,
    VERSION
};

static const struct option options[] = {
    {"config", required_argument, NULL, FILE_NAME},
    {"check-config", no_argument, NULL, CHECK},
    {"data", required_argument, NULL, DATA},
    {"http", required_argument, NULL, HTTP},
    {"listen", required_argument, NULL, LISTEN},
    {"exit-when-idle", required_argument, NULL, IDLE},
    {"exit-on-failure", no_argument, NULL, FAILURE},
    {"log-level", required_argument, NULL, LEVEL},
    {"log-format", required_argument, NULL, FORMAT},
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

/* One listener in place of all that the file has: `value` lives as long as argv. */
static void replace_listeners(struct wpk_config_listener *listeners, uint32_t *count,
                              const char *value)
{
    memset(listeners, 0, WPK_CONFIG_LISTENERS_MAX * sizeof *listeners);
    listeners[0] = (struct wpk_config_listener){.address = value, .mode = 0600};
    *count = 1;
}

static wpk_err apply_log(struct wpk_config *config, int option, const char *value,
                         struct wpk_diag *diag)
{
    if (option == LEVEL && wpk_log_level_parse(value, &config->log_level) != WPK_OK) {
        wpk_diag_set(diag, "there is no log level %s; there are debug, info, warn and error",
                     value);
        return WPK_EINVAL;
    }
    if (option == FORMAT && wpk_log_format_parse(value, &config->log_format) != WPK_OK) {
        wpk_diag_set(diag, "there is no log format %s; there are text, json and journal", value);
        return WPK_EINVAL;
    }
    return WPK_OK;
}

static wpk_err apply_number(struct wpk_config *config, int option, const char *value,
                            struct wpk_diag *diag)
{
    long number = 0;
    wpk_err err = option == IDLE ? parse_number("exit-when-idle", value, 1000000, &number, diag)
                                 : parse_number("store-pages-max", value, INT_MAX, &number, diag);
    if (option == IDLE) {
        config->idle_s = (uint32_t)number;
    } else {
        config->store_pages_max = (int)number;
    }
    return err;
}

static wpk_err apply(struct wpk_config *config, int option, const char *value,
                     struct wpk_diag *diag)
{
    switch (option) {
    case FILE_NAME:
        return WPK_OK; /* has been read */
    case CHECK:
        config->check = true;
        return WPK_OK;
    case DATA:
        config->data_dir = value;
        return WPK_OK;
    case HTTP:
        replace_listeners(config->http, &config->http_count, value);
        return wpk_config_check_http(&config->http[0], diag);
    case LISTEN:
        replace_listeners(config->workers, &config->worker_count, value);
        return wpk_config_check_workers(&config->workers[0], diag);
    case IDLE:
    case PAGES:
        return apply_number(config, option, value, diag);
    case FAILURE:
        config->exit_on_failure = true;
        return WPK_OK;
    case LEVEL:
    case FORMAT:
        return apply_log(config, option, value, diag);
    case HELP:
        config->help = true;
        return WPK_OK;
    case VERSION:
        config->version = true;
        return WPK_OK;
    default:
        wpk_diag_set(diag, "see wpkd --help");
        return WPK_EINVAL;
    }
}

static void init(struct wpk_config *config)
{
    *config = (struct wpk_config){
        .owner_default = {.name = "*", .weight = 1, .jobs_max = 1000},
        .http_connections_max = 2048,
        .worker_connections_max = 16384,
        .artifacts_per_problem = 4,
        .artifact_bytes_max = UINT64_C(10) << 30,
        .drain_s = 10,
        .log_level = WPK_LOG_INFO,
    };
}

static const char *keep(struct wpk_config *config, struct wpk_buf *text, wpk_err *err)
{
    char *kept = NULL;
    if (*err == WPK_OK) {
        *err = wpk_buf_status(text);
    }
    if (*err == WPK_OK) {
        kept = wpk_arena_copy_text(&config->arena, wpk_buf_text(text));
        *err = kept != NULL ? WPK_OK : WPK_ENOMEM;
    }
    wpk_buf_reset(text);
    return kept;
}

static wpk_err fill_defaults(struct wpk_config *config,
                             const struct wpk_config_environment *environment,
                             struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_data_dir(config->data_dir, environment->xdg_data_home, environment->home,
                                  &text, diag);
    config->data_dir = keep(config, &text, &err);
    if (err == WPK_OK && config->http_count == 0) {
        wpk_buf_printf(&text, "unix:%s/wpkd.sock", config->data_dir);
        replace_listeners(config->http, &config->http_count, keep(config, &text, &err));
    }
    if (err == WPK_OK && config->worker_count == 0) {
        wpk_buf_printf(&text, "ipc://%s/workers.sock", config->data_dir);
        replace_listeners(config->workers, &config->worker_count, keep(config, &text, &err));
    }
    wpk_buf_fini(&text);
    return err;
}

/* The file first, wherever among the options it is named. */
static wpk_err read_file(int argc, char **argv, struct wpk_config *out, struct wpk_diag *diag)
{
    int option;
    opterr = 0; /* the second time says what is wrong */
    optind = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == FILE_NAME) {
            out->file = optarg;
        }
    }
    opterr = 1;
    optind = 0;
    return out->file != NULL ? wpk_config_read(out->file, out, diag) : WPK_OK;
}

wpk_err wpk_config_parse(int argc, char **argv, const struct wpk_config_environment *environment,
                         struct wpk_config *out, struct wpk_diag *diag)
{
    init(out);
    wpk_err err = read_file(argc, argv, out, diag);
    int option;
    while (err == WPK_OK && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        err = apply(out, option, optarg, diag);
    }
    if (err == WPK_OK && optind < argc) {
        wpk_diag_set(diag, "%s is not an option; see wpkd --help", argv[optind]);
        err = WPK_EINVAL;
    }
    return err == WPK_OK ? fill_defaults(out, environment, diag) : err;
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_listeners(const struct wpk_config_listener *a, uint32_t a_count,
                           const struct wpk_config_listener *b, uint32_t b_count)
{
    bool same = a_count == b_count;
    for (uint32_t i = 0; same && i < a_count; i++) {
        same = same_text(a[i].address, b[i].address) && a[i].mode == b[i].mode &&
               (a[i].certificate != NULL) == (b[i].certificate != NULL);
    }
    return same;
}

const char *wpk_config_fixed_change(const struct wpk_config *now, const struct wpk_config *next)
{
    if (!same_text(now->data_dir, next->data_dir)) {
        return "data";
    }
    if (!same_listeners(now->http, now->http_count, next->http, next->http_count)) {
        return "http.listen";
    }
    if (!same_listeners(now->workers, now->worker_count, next->workers, next->worker_count)) {
        return "workers.listen";
    }
    if (now->http_connections_max != next->http_connections_max) {
        return "http.connections_max";
    }
    if (now->worker_connections_max != next->worker_connections_max) {
        return "workers.connections_max";
    }
    return NULL;
}

static const char *copy_text(struct wpk_arena *arena, const char *text, wpk_err *err)
{
    const char *copy = text != NULL ? wpk_arena_copy_text(arena, text) : NULL;
    *err = text != NULL && copy == NULL ? WPK_ENOMEM : *err;
    return copy;
}

/* Where the certificate of what listens there is now; NULL: it is as it was. */
static const struct wpk_config_listener *find_files(const struct wpk_config_listener *listener,
                                                    const struct wpk_config_listener *next,
                                                    uint32_t next_count)
{
    for (uint32_t i = 0; i < next_count && listener->certificate != NULL; i++) {
        if (next[i].certificate != NULL && same_text(next[i].address, listener->address)) {
            return &next[i];
        }
    }
    return NULL;
}

/* Sockets stay as they are, but for the files of their certificates. */
static wpk_err keep_listeners(const struct wpk_config_listener *now, uint32_t now_count,
                              struct wpk_config_listener *next, uint32_t *next_count,
                              struct wpk_arena *arena)
{
    wpk_err err = WPK_OK;
    struct wpk_config_listener kept[WPK_CONFIG_LISTENERS_MAX] = {{0}};
    for (uint32_t i = 0; i < now_count; i++) {
        const struct wpk_config_listener *files = find_files(&now[i], next, *next_count);
        kept[i] = now[i];
        kept[i].address = copy_text(arena, now[i].address, &err);
        kept[i].certificate =
            files != NULL ? files->certificate : copy_text(arena, now[i].certificate, &err);
        kept[i].key = files != NULL ? files->key : copy_text(arena, now[i].key, &err);
    }
    memcpy(next, kept, sizeof kept);
    *next_count = now_count;
    return err;
}

wpk_err wpk_config_keep_fixed(const struct wpk_config *now, struct wpk_config *next)
{
    wpk_err err = WPK_OK;
    next->data_dir = copy_text(&next->arena, now->data_dir, &err);
    next->http_connections_max = now->http_connections_max;
    next->worker_connections_max = now->worker_connections_max;
    next->store_pages_max = now->store_pages_max;
    if (err == WPK_OK) {
        err =
            keep_listeners(now->http, now->http_count, next->http, &next->http_count, &next->arena);
    }
    if (err == WPK_OK) {
        err = keep_listeners(now->workers, now->worker_count, next->workers, &next->worker_count,
                             &next->arena);
    }
    return err;
}

void wpk_config_fini(struct wpk_config *config)
{
    wpk_arena_fini(&config->arena);
    memset(config, 0, sizeof *config);
}
