/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/config.h"

#include "common/args.h"
#include "common/fs.h"

#include <limits.h>
#include <string.h>

/* One listener in place of all that the file has: `value` lives as long as argv. */
static void replace_listeners(struct wpk_listen *listeners, uint32_t *count, const char *value)
{
    memset(listeners, 0, WPK_CONFIG_LISTENERS_MAX * sizeof *listeners);
    listeners[0] = (struct wpk_listen){.address = value, .mode = 0600};
    *count = 1;
}

static wpk_err take_http(void *out, const char *value, struct wpk_diag *diag)
{
    struct wpk_config *config = out;

    replace_listeners(config->http, &config->http_count, value);
    return wpk_config_check_http(&config->http[0], diag);
}

static wpk_err take_workers(void *out, const char *value, struct wpk_diag *diag)
{
    struct wpk_config *config = out;

    replace_listeners(config->workers, &config->worker_count, value);
    return wpk_config_check_workers(&config->workers[0], diag);
}

/* The options; `c` is a struct wpk_config. */
#define OPTIONS(c)                                                                                 \
    {                                                                                              \
        WPK_ARGS_TEXT("config", "FILE",                                                            \
                      "read this first; what is said here goes before it; see wpkd.json(5)",       \
                      &(c)->file),                                                                 \
            WPK_ARGS_FLAG("check-config", "say whether file and options are in order, and end",    \
                          &(c)->check),                                                            \
            WPK_ARGS_TEXT("data", "DIR",                                                           \
                          "history and artifacts; default $XDG_DATA_HOME/woodpecker",              \
                          &(c)->data_dir),                                                         \
            WPK_ARGS_TEXT("log", "URI",                                                            \
                          "postgres://...: keep all changes there, too, for a wpkd elsewhere",     \
                          &(c)->log),                                                              \
            WPK_ARGS_FLAG("standby", "follow the log, and serve when its holder is gone",          \
                          &(c)->standby),                                                          \
            WPK_ARGS_CALL("http", "ADDRESS",                                                       \
                          "where clients ask: unix:PATH, 127.0.0.1:PORT or [::1]:PORT; default "   \
                          "unix:DIR/wpkd.sock",                                                    \
                          c, take_http),                                                           \
            WPK_ARGS_CALL("listen", "URL",                                                         \
                          "where workers connect: ipc://PATH, tcp://127.0.0.1:PORT or "            \
                          "tcp://[::1]:PORT; default ipc://DIR/workers.sock",                      \
                          c, take_workers),                                                        \
            WPK_ARGS_COUNT("exit-when-idle", "S",                                                  \
                           "end after S seconds without a job or a request", &(c)->idle_s, 1,      \
                           1000000),                                                               \
            WPK_ARGS_FLAG("exit-on-failure",                                                       \
                          "end when the store cannot be written, instead of serving reads",        \
                          &(c)->exit_on_failure),                                                  \
            WPK_ARGS_LOG_ROWS(&(c)->log_level, &(c)->log_format),                                  \
            WPK_ARGS_COUNT("store-pages-max", "N", NULL, &(c)->store_pages_max, 1, INT_MAX),       \
            WPK_ARGS_FLAG("version", "print the version", &(c)->version), WPK_ARGS_END,            \
    }

void wpk_config_print_help(FILE *out)
{
    struct wpk_config config;
    const struct wpk_option options[] = OPTIONS(&config);

    fputs("usage: wpkd [options], or wpkd --db COMMAND; see wpkctl db\n", out);
    wpk_args_print(options, out);
    fputs("\nSIGTERM and SIGINT end it: what is recorded stays, what is under way is done again. "
          "SIGHUP\nmakes it read its file again. One wpkd works on a data directory.\n"
          "Exit codes: 0 ended when told to; 1 a failure, a start may succeed later; 2 usage or\n"
          "configuration; 3 a store that no start can use: written by another version, or "
          "corrupt.\n",
          out);
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
    const char *kept = NULL;
    *err = *err == WPK_OK ? wpk_buf_status(text) : *err;
    if (*err == WPK_OK) {
        kept = WPK_DEMAND(wpk_arena_copy_text(&config->arena, wpk_buf_text(text)));
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

wpk_err wpk_config_parse(int argc, char **argv, const struct wpk_config_environment *environment,
                         struct wpk_config *out, struct wpk_diag *diag)
{
    const struct wpk_option options[] = OPTIONS(out);
    struct wpk_args args;

    init(out);
    out->file = wpk_args_value("config", argc - 1, argv + 1);
    wpk_err err = out->file != NULL ? wpk_config_read(out->file, out, diag) : WPK_OK;
    err = err == WPK_OK ? wpk_args_parse(options, argc - 1, argv + 1, &args, diag) : err;
    if (err == WPK_OK && args.operand_count > 0) {
        err = wpk_fail(diag, WPK_EINVAL, "%s is not an option; see wpkd --help", args.operands[0]);
    }
    out->help = err == WPK_OK && args.help;
    if (err == WPK_OK && out->standby && out->log == NULL) {
        err = wpk_fail(diag, WPK_EINVAL, "--standby needs --log, which it follows");
    }
    return err == WPK_OK ? fill_defaults(out, environment, diag) : err;
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_listeners(const struct wpk_listen *a, uint32_t a_count, const struct wpk_listen *b,
                           uint32_t b_count)
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
    if (!same_text(now->log, next->log) || now->standby != next->standby) {
        return "history_log";
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

static const char *copy_text(struct wpk_arena *arena, const char *text)
{
    return text != NULL ? WPK_DEMAND(wpk_arena_copy_text(arena, text)) : NULL;
}

/* Where the certificate of what listens there is now; NULL: it is as it was. */
static const struct wpk_listen *find_files(const struct wpk_listen *listener,
                                           const struct wpk_listen *next, uint32_t next_count)
{
    for (uint32_t i = 0; i < next_count && listener->certificate != NULL; i++) {
        if (next[i].certificate != NULL && same_text(next[i].address, listener->address)) {
            return &next[i];
        }
    }
    return NULL;
}

/* Sockets stay as they are, but for the files of their certificates. */
static void keep_listeners(const struct wpk_listen *now, uint32_t now_count,
                           struct wpk_listen *next, uint32_t *next_count, struct wpk_arena *arena)
{
    struct wpk_listen kept[WPK_CONFIG_LISTENERS_MAX] = {{0}};
    for (uint32_t i = 0; i < now_count; i++) {
        const struct wpk_listen *files = find_files(&now[i], next, *next_count);
        kept[i] = now[i];
        kept[i].address = copy_text(arena, now[i].address);
        kept[i].certificate =
            files != NULL ? files->certificate : copy_text(arena, now[i].certificate);
        kept[i].key = files != NULL ? files->key : copy_text(arena, now[i].key);
    }
    memcpy(next, kept, sizeof kept);
    *next_count = now_count;
}

void wpk_config_keep_fixed(const struct wpk_config *now, struct wpk_config *next)
{
    next->data_dir = copy_text(&next->arena, now->data_dir);
    next->log = copy_text(&next->arena, now->log);
    next->standby = now->standby;
    next->http_connections_max = now->http_connections_max;
    next->worker_connections_max = now->worker_connections_max;
    next->store_pages_max = now->store_pages_max;
    keep_listeners(now->http, now->http_count, next->http, &next->http_count, &next->arena);
    keep_listeners(now->workers, now->worker_count, next->workers, &next->worker_count,
                   &next->arena);
}

void wpk_config_fini(struct wpk_config *config)
{
    wpk_arena_fini(&config->arena);
    memset(config, 0, sizeof *config);
}
