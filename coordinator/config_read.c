/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file. deploy/wpkd.json shows all of its fields, docs/man/wpkd.json.5 describes
 * them, and a test compares the three. */
#include "coordinator/config.h"

#include "common/json.h"
#include "common/net.h"
#include "coordinator/http/http.h"
#include "coordinator/state/coordinator.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* Reader and configuration together; text that was read is copied into the configuration. */
struct reading {
    struct wpk_json_reader *reader;
    struct wpk_config *config;
};

static const char *copy_text(struct reading *r, const char *key)
{
    const char *text = wpk_json_get_text(r->reader, key, WPK_CONFIG_PATH_MAX);
    if (text[0] == '\0') {
        wpk_json_fail(r->reader, key, WPK_EINVAL, "must not be empty");
        return "";
    }
    const char *copy = wpk_arena_copy_text(&r->config->arena, text);
    if (copy == NULL) {
        wpk_json_fail(r->reader, key, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
    }
    return copy != NULL ? copy : "";
}

static const char *optional_text(struct reading *r, const char *key)
{
    return wpk_json_has(r->reader, key) ? copy_text(r, key) : NULL;
}

static void optional_u32(struct reading *r, const char *key, int64_t min, int64_t max,
                         uint32_t *out)
{
    if (wpk_json_has(r->reader, key)) {
        *out = (uint32_t)wpk_json_get_int(r->reader, key, min, max);
    }
}

/* ---- listeners */

/* Permissions are written as everybody writes them: in octal, so as text. */
static unsigned get_mode(struct reading *r)
{
    const char *text = wpk_json_get_text(r->reader, "mode", 8);
    char *end = NULL;
    unsigned long mode = strtoul(text, &end, 8);
    if (text[0] != '0' || *end != '\0' || mode == 0 || mode > 0777) {
        wpk_json_fail(r->reader, "mode", WPK_EINVAL, "must be like \"0660\"");
        return 0600;
    }
    return (unsigned)mode;
}

static void read_listener(struct reading *r, struct wpk_config_listener *out)
{
    wpk_json_enter(r->reader, NULL);
    WPK_JSON_ALLOW(r->reader, "address", "certificate", "key", "insecure", "mode");
    *out = (struct wpk_config_listener){.address = copy_text(r, "address"), .mode = 0600};
    out->certificate = optional_text(r, "certificate");
    out->key = optional_text(r, "key");
    if ((out->certificate == NULL) != (out->key == NULL)) {
        wpk_json_fail(r->reader, out->key == NULL ? "key" : "certificate", WPK_EINVAL,
                      "is missing: certificate and key go together");
    }
    out->insecure = wpk_json_has(r->reader, "insecure") && wpk_json_get_bool(r->reader, "insecure");
    if (wpk_json_has(r->reader, "mode")) {
        out->mode = get_mode(r);
    }
    wpk_json_leave(r->reader);
}

static void read_listeners(struct reading *r, struct wpk_config_listener *out, uint32_t *out_count,
                           wpk_err (*check)(const struct wpk_config_listener *,
                                            struct wpk_diag *diag))
{
    uint32_t count = 0;
    wpk_json_enter_array(r->reader, "listen");
    while (wpk_json_next(r->reader)) {
        struct wpk_diag why = {0};
        if (count == WPK_CONFIG_LISTENERS_MAX) {
            wpk_json_fail(r->reader, NULL, WPK_ERANGE, "more than %d listeners", count);
            break;
        }
        read_listener(r, &out[count]);
        if (wpk_json_status(r->reader) == WPK_OK && check(&out[count], &why) != WPK_OK) {
            wpk_json_fail(r->reader, NULL, WPK_EINVAL, "%s", why.text);
        }
        count++;
    }
    wpk_json_leave(r->reader);
    if (count == 0) {
        wpk_json_fail(r->reader, "listen", WPK_EINVAL, "must have a listener at least");
    }
    *out_count = count;
}

/* ---- sections */

static void read_hosts(struct reading *r)
{
    struct wpk_config *config = r->config;
    wpk_json_enter_array(r->reader, "hosts");
    while (wpk_json_next(r->reader)) {
        if (config->host_count == WPK_CONFIG_HOSTS_MAX) {
            wpk_json_fail(r->reader, NULL, WPK_ERANGE, "more than %d hosts", WPK_CONFIG_HOSTS_MAX);
            break;
        }
        config->hosts[config->host_count++] = copy_text(r, NULL);
    }
    wpk_json_leave(r->reader);
}

static void read_http(struct reading *r)
{
    wpk_json_enter(r->reader, "http");
    WPK_JSON_ALLOW(r->reader, "listen", "hosts", "connections_max");
    if (wpk_json_has(r->reader, "listen")) {
        read_listeners(r, r->config->http, &r->config->http_count, wpk_config_check_http);
    }
    if (wpk_json_has(r->reader, "hosts")) {
        read_hosts(r);
    }
    optional_u32(r, "connections_max", 1, WPK_HTTP_CONNECTIONS_MAX,
                 &r->config->http_connections_max);
    wpk_json_leave(r->reader);
}

static void read_workers(struct reading *r)
{
    wpk_json_enter(r->reader, "workers");
    WPK_JSON_ALLOW(r->reader, "listen", "connections_max");
    if (wpk_json_has(r->reader, "listen")) {
        read_listeners(r, r->config->workers, &r->config->worker_count, wpk_config_check_workers);
    }
    optional_u32(r, "connections_max", 1, WPK_NET_CONNECTIONS_MAX,
                 &r->config->worker_connections_max);
    wpk_json_leave(r->reader);
}

/* A user by name or by number; false: there is none. */
static bool find_user(const char *name, uid_t *out)
{
    char *end = NULL;
    if (strcmp(name, "*") == 0) {
        *out = WPK_CONFIG_UID_OTHERS;
        return true;
    }
    const struct passwd *user = getpwnam(name);
    if (user != NULL) {
        *out = user->pw_uid;
        return true;
    }
    errno = 0;
    unsigned long number = strtoul(name, &end, 10);
    *out = (uid_t)number;
    return name[0] >= '0' && name[0] <= '9' && *end == '\0' && errno == 0 && number < UINT32_MAX;
}

static unsigned read_roles(struct reading *r)
{
    unsigned roles = 0;
    wpk_json_enter_array(r->reader, NULL);
    while (wpk_json_next(r->reader)) {
        struct wpk_diag why = {0};
        unsigned role = 0;
        if (wpk_roles_parse(wpk_json_get_text(r->reader, NULL, 32), &role, &why) != WPK_OK) {
            wpk_json_fail(r->reader, NULL, WPK_EINVAL, "%s", why.text);
        }
        roles |= role;
    }
    wpk_json_leave(r->reader);
    return roles;
}

static void read_peers(struct reading *r)
{
    struct wpk_config *config = r->config;
    wpk_json_enter(r->reader, "peers");
    while (wpk_json_next(r->reader)) {
        struct wpk_config_peer *peer = &config->peers[config->peer_count];
        if (config->peer_count == WPK_CONFIG_PEERS_MAX) {
            wpk_json_fail(r->reader, NULL, WPK_ERANGE, "more than %d peers", WPK_CONFIG_PEERS_MAX);
            break;
        }
        if (!find_user(wpk_json_name(r->reader), &peer->uid)) {
            wpk_json_fail(r->reader, NULL, WPK_EINVAL, "there is no such user here");
        }
        peer->roles = read_roles(r);
        config->peer_count++;
    }
    wpk_json_leave(r->reader);
}

static void read_owner(struct reading *r, struct wpk_config_owner *out)
{
    wpk_json_enter(r->reader, NULL);
    WPK_JSON_ALLOW(r->reader, "weight", "jobs_max");
    optional_u32(r, "weight", 1, 1000, &out->weight);
    optional_u32(r, "jobs_max", 0, WPK_JOBS_LIVE_MAX, &out->jobs_max);
    wpk_json_leave(r->reader);
}

/* "*" is every owner that has no entry, and what an entry leaves out: so it comes first. */
static void read_owners(struct reading *r)
{
    struct wpk_config *config = r->config;
    size_t count = wpk_json_count(r->reader, "owners");
    if (count > WPK_CONFIG_OWNERS_MAX) {
        wpk_json_fail(r->reader, "owners", WPK_ERANGE, "more than %d owners",
                      WPK_CONFIG_OWNERS_MAX);
        return;
    }
    config->owners = wpk_arena_alloc(&config->arena, count, sizeof *config->owners);
    for (int pass = 0; pass < 2 && config->owners != NULL; pass++) {
        wpk_json_enter(r->reader, "owners");
        while (wpk_json_next(r->reader)) {
            const char *name = wpk_json_name(r->reader);
            bool is_default = strcmp(name, "*") == 0;
            if (is_default && pass == 0) {
                read_owner(r, &config->owner_default);
            } else if (!is_default && pass == 1) {
                struct wpk_config_owner *owner = &config->owners[config->owner_count];
                *owner = config->owner_default;
                owner->name = wpk_arena_copy_text(&config->arena, name);
                config->owner_count += owner->name != NULL;
                read_owner(r, owner);
            }
        }
        wpk_json_leave(r->reader);
    }
}

static void read_artifacts(struct reading *r)
{
    wpk_json_enter(r->reader, "artifacts");
    WPK_JSON_ALLOW(r->reader, "bytes_max", "kept_per_problem");
    if (wpk_json_has(r->reader, "bytes_max")) {
        r->config->artifact_bytes_max =
            (uint64_t)wpk_json_get_int(r->reader, "bytes_max", 0, WPK_JSON_INT_MAX);
    }
    optional_u32(r, "kept_per_problem", 1, 1000, &r->config->artifacts_per_problem);
    wpk_json_leave(r->reader);
}

static void read_log(struct reading *r)
{
    static const char *const levels[] = {WPK_LOG_LEVEL_LIST(WPK_LIST_TEXT)};
    static const char *const formats[] = {WPK_LOG_FORMAT_LIST(WPK_LIST_TEXT)};
    wpk_json_enter(r->reader, "log");
    WPK_JSON_ALLOW(r->reader, "level", "format");
    if (wpk_json_has(r->reader, "level")) {
        r->config->log_level = (enum wpk_log_level)wpk_json_get_choice(
            r->reader, "level", levels, sizeof levels / sizeof levels[0]);
    }
    if (wpk_json_has(r->reader, "format")) {
        r->config->log_format = (enum wpk_log_format)wpk_json_get_choice(
            r->reader, "format", formats, sizeof formats / sizeof formats[0]);
    }
    wpk_json_leave(r->reader);
}

static void read_all(struct reading *r)
{
    static const struct {
        const char *name;
        void (*read)(struct reading *r);
    } sections[] = {{"http", read_http},     {"workers", read_workers},     {"peers", read_peers},
                    {"owners", read_owners}, {"artifacts", read_artifacts}, {"log", read_log}};
    WPK_JSON_ALLOW(r->reader, "data", "http", "workers", "peers", "owners", "log", "drain_s",
                   "artifacts", "exit_when_idle_s");
    if (wpk_json_has(r->reader, "data")) {
        r->config->data_dir = copy_text(r, "data");
    }
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (wpk_json_has(r->reader, sections[i].name)) {
            sections[i].read(r);
        }
    }
    optional_u32(r, "drain_s", 0, 3600, &r->config->drain_s);
    optional_u32(r, "exit_when_idle_s", 0, 1000000, &r->config->idle_s);
}

wpk_err wpk_config_read(const char *path, struct wpk_config *config, struct wpk_diag *diag)
{
    struct reading reading = {.config = config};
    wpk_err err = wpk_config_file_open(path, &reading.reader, diag);
    if (err != WPK_OK) {
        return err;
    }
    read_all(&reading);
    err = wpk_json_status(reading.reader);
    wpk_json_close(reading.reader);
    return err;
}

/* Addresses that a listener may have. Workers send code that users run, and a token that crosses a
 * network in clear can be read by others. So a listener that can be reached from elsewhere must
 * have TLS, unless its configuration says "insecure". */

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* ADDRESS:PORT: a name may come to be another machine's, so a listener has none. */
static bool parse_host_port(const char *text, bool *loopback)
{
    struct wpk_address address;
    bool parsed = wpk_address_parse(text, strlen(text), &address);
    *loopback = parsed && address.is_loopback;
    return parsed && address.is_numeric && address.has_port;
}

static wpk_err check_files(const struct wpk_config_listener *listener, bool tls,
                           struct wpk_diag *diag)
{
    if (tls && listener->certificate == NULL) {
        wpk_diag_set(diag, "%s needs a certificate and a key", listener->address);
        return WPK_EINVAL;
    }
    if (!tls && listener->certificate != NULL) {
        wpk_diag_set(diag, "%s has no use for a certificate", listener->address);
        return WPK_EINVAL;
    }
    return WPK_OK;
}

static wpk_err check_reach(const struct wpk_config_listener *listener, bool loopback, bool tls,
                           const char *remedy, struct wpk_diag *diag)
{
    if (!loopback && !tls && !listener->insecure) {
        wpk_diag_set(diag,
                     "%s can be reached from other machines: it needs %s, or \"insecure\": true",
                     listener->address, remedy);
        return WPK_EINVAL;
    }
    return WPK_OK;
}

wpk_err wpk_config_check_http(const struct wpk_config_listener *listener, struct wpk_diag *diag)
{
    bool loopback = false;
    bool tls = listener->certificate != NULL;
    if (starts_with(listener->address, "unix:") && listener->address[5] != '\0') {
        return check_files(listener, false, diag);
    }
    if (!parse_host_port(listener->address, &loopback)) {
        wpk_diag_set(diag, "clients are listened to at unix:PATH or ADDRESS:PORT, not %s",
                     listener->address);
        return WPK_EINVAL;
    }
    return check_reach(listener, loopback, tls, "a certificate and a key", diag);
}

wpk_err wpk_config_check_workers(const struct wpk_config_listener *listener, struct wpk_diag *diag)
{
    const char *address = listener->address;
    bool loopback = true;
    bool tls = starts_with(address, "tls+tcp://");
    bool known = starts_with(address, "ipc://") && address[6] != '\0';
    if (tls || starts_with(address, "tcp://")) {
        known = parse_host_port(strstr(address, "://") + 3, &loopback);
    }
    if (!known) {
        wpk_diag_set(
            diag,
            "workers connect to ipc://PATH, tcp://ADDRESS:PORT or tls+tcp://ADDRESS:PORT, not %s",
            address);
        return WPK_EINVAL;
    }
    wpk_err err = check_files(listener, tls, diag);
    return err == WPK_OK ? check_reach(listener, loopback, tls, "tls+tcp://", diag) : err;
}
