/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file. deploy/wpkd.json shows all of its fields, docs/man/wpkd.json.5 describes
 * them, and a test compares the three. */
#include "coordinator/config.h"

#include "common/net.h"
#include "coordinator/http/http.h"
#include "coordinator/state/coordinator.h"
#include "schema/fields.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

static void make_text(const struct wpk_fields_in *in, const char *key, void *member)
{
    const char *text = wpk_json_get_text(in->r, key, WPK_CONFIG_PATH_MAX);
    const char *copy = wpk_arena_copy_text(in->arena, text);
    if (text[0] == '\0') {
        wpk_json_fail(in->r, key, WPK_EINVAL, "must not be empty");
    } else if (copy == NULL) {
        wpk_json_fail(in->r, key, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
    }
    *(const char **)member = copy != NULL ? copy : "";
}

/* ---- listeners */

/* Permissions are written as everybody writes them: in octal, so as text. */
static void get_mode(struct wpk_json_reader *r, const char *key, void *member)
{
    const char *text = wpk_json_get_text(r, key, 8);
    char *end = NULL;
    unsigned long mode = strtoul(text, &end, 8);
    if (text[0] != '0' || *end != '\0' || mode == 0 || mode > 0777) {
        wpk_json_fail(r, key, WPK_EINVAL, "must be like \"0660\"");
    }
    *(unsigned *)member = (unsigned)mode;
}

static void check_pair(struct wpk_json_reader *r, void *object)
{
    const struct wpk_listen *listener = object;
    if ((listener->certificate == NULL) != (listener->key == NULL)) {
        wpk_json_fail(r, listener->key == NULL ? "key" : "certificate", WPK_EINVAL,
                      "is missing: certificate and key go together");
    }
}

static void check_http(struct wpk_json_reader *r, void *object)
{
    struct wpk_diag why = {0};
    if (wpk_json_status(r) == WPK_OK && wpk_config_check_http(object, &why) != WPK_OK) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "%s", why.text);
    }
}

static void check_workers(struct wpk_json_reader *r, void *object)
{
    struct wpk_diag why = {0};
    if (wpk_json_status(r) == WPK_OK && wpk_config_check_workers(object, &why) != WPK_OK) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "%s", why.text);
    }
}

#define TEXT(name, type, member)                                                                   \
    WPK_FIELD(CUSTOM, name, type, member, .make = make_text, WPK_DEFAULT)
#define INT(name, member, least, most) WPK_FIELD_INT(name, config, member, least, most, WPK_DEFAULT)

static void clear_listener(struct wpk_json_reader *r WPK_UNUSED, void *object)
{
    struct wpk_listen *listener = object;
    *listener = (struct wpk_listen){.mode = 0600};
}

static const struct wpk_field listener_fields[] = {
    {WPK_FIELD_CHECK(clear_listener)},
    {WPK_FIELD(CUSTOM, "address", listen, address, .make = make_text)},
    {TEXT("certificate", listen, certificate)},
    {TEXT("key", listen, key)},
    {WPK_FIELD(BOOL, "insecure", listen, insecure, WPK_DEFAULT)},
    {WPK_FIELD_CUSTOM("mode", listen, mode, NULL, get_mode, WPK_DEFAULT)},
    {WPK_FIELD_CHECK(check_pair)},
    {WPK_FIELD_END},
};

static const struct wpk_field http_listener[] = {
    {.kind = WPK_FIELD_KIND_GROUP, .table = listener_fields},
    {WPK_FIELD_CHECK(check_http)},
    {WPK_FIELD_END},
};

static const struct wpk_field worker_listener[] = {
    {.kind = WPK_FIELD_KIND_GROUP, .table = listener_fields},
    {WPK_FIELD_CHECK(check_workers)},
    {WPK_FIELD_END},
};

/* ---- sections */

static const struct wpk_field http_fields[] = {
    {WPK_FIELD_ARRAY("listen", config, http, http_count, http_listener, .min = 1, WPK_DEFAULT)},
    {WPK_FIELD_ARRAY("hosts", config, hosts, host_count, WPK_ITEM_CUSTOM(.make = make_text),
                     WPK_DEFAULT)},
    {INT("connections_max", http_connections_max, 1, WPK_HTTP_CONNECTIONS_MAX)},
    {WPK_FIELD_END},
};

static const struct wpk_field workers_fields[] = {
    {WPK_FIELD_ARRAY("listen", config, workers, worker_count, worker_listener, .min = 1,
                     WPK_DEFAULT)},
    {INT("connections_max", worker_connections_max, 1, WPK_NET_CONNECTIONS_MAX)},
    {WPK_FIELD_END},
};

/* A user by name or by number; false: there is none. */
static bool find_user(const char *name, uid_t *out)
{
    char *end = NULL;
    if (strcmp(name, "*") == 0) {
        *out = WPK_HTTP_OTHERS;
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

static unsigned read_roles(struct wpk_json_reader *r)
{
    unsigned roles = 0;
    wpk_json_enter_array(r, NULL);
    while (wpk_json_next(r)) {
        struct wpk_diag why = {0};
        unsigned role = 0;
        if (wpk_roles_parse(wpk_json_get_text(r, NULL, 32), &role, &why) != WPK_OK) {
            wpk_json_fail(r, NULL, WPK_EINVAL, "%s", why.text);
        }
        roles |= role;
    }
    wpk_json_leave(r);
    return roles;
}

static void get_peers(struct wpk_json_reader *r, const char *key, void *object)
{
    struct wpk_config *config = object;
    if (!wpk_json_has(r, key)) {
        return;
    }
    wpk_json_enter(r, key);
    while (wpk_json_next(r)) {
        struct wpk_http_peer *peer = &config->peers[config->peer_count];
        if (config->peer_count == WPK_HTTP_PEERS_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d peers", WPK_HTTP_PEERS_MAX);
            break;
        }
        if (!find_user(wpk_json_name(r), &peer->uid)) {
            wpk_json_fail(r, NULL, WPK_EINVAL, "there is no such user here");
        }
        peer->roles = read_roles(r);
        config->peer_count++;
    }
    wpk_json_leave(r);
}

static const struct wpk_field owner_fields[] = {
    {WPK_FIELD_INT("weight", config_owner, weight, 1, 1000, WPK_DEFAULT)},
    {WPK_FIELD_INT("jobs_max", config_owner, jobs_max, 0, WPK_JOBS_LIVE_MAX, WPK_DEFAULT)},
    {WPK_FIELD_END},
};

/* "*" is every owner that has no entry, and what an entry leaves out: so it comes first. */
static void make_owners(const struct wpk_fields_in *in, const char *key, void *object)
{
    struct wpk_config *config = object;
    size_t count = wpk_json_count(in->r, key);
    if (!wpk_json_has(in->r, key)) {
        return;
    }
    if (count > WPK_CONFIG_OWNERS_MAX) {
        wpk_json_fail(in->r, key, WPK_ERANGE, "more than %d owners", WPK_CONFIG_OWNERS_MAX);
        return;
    }
    config->owners = wpk_arena_alloc(&config->arena, count, sizeof *config->owners);
    for (int pass = 0; pass < 2 && config->owners != NULL; pass++) {
        wpk_json_enter(in->r, key);
        while (wpk_json_next(in->r)) {
            const char *name = wpk_json_name(in->r);
            bool is_default = strcmp(name, "*") == 0;
            if (is_default && pass == 0) {
                wpk_fields_get(in, NULL, owner_fields, &config->owner_default);
            } else if (!is_default && pass == 1) {
                struct wpk_config_owner *owner = &config->owners[config->owner_count];
                *owner = config->owner_default;
                owner->name = wpk_arena_copy_text(&config->arena, name);
                config->owner_count += owner->name != NULL;
                wpk_fields_get(in, NULL, owner_fields, owner);
            }
        }
        wpk_json_leave(in->r);
    }
}

static const struct wpk_field artifacts_fields[] = {
    {INT("bytes_max", artifact_bytes_max, 0, WPK_JSON_INT_MAX)},
    {INT("kept_per_problem", artifacts_per_problem, 1, 1000)},
    {WPK_FIELD_END},
};

static const char *const level_names[] = {WPK_LOG_LEVEL_LIST(WPK_LIST_TEXT)};
static const char *const format_names[] = {WPK_LOG_FORMAT_LIST(WPK_LIST_TEXT)};

static const struct wpk_field log_fields[] = {
    {WPK_FIELD_CHOICE("level", config, log_level, level_names, WPK_DEFAULT)},
    {WPK_FIELD_CHOICE("format", config, log_format, format_names, WPK_DEFAULT)},
    {WPK_FIELD_END},
};

static const struct wpk_field history_log_fields[] = {
    {TEXT("uri", config, log)},
    {WPK_FIELD(BOOL, "standby", config, standby, WPK_DEFAULT)},
    {WPK_FIELD_END},
};

static const struct wpk_field config_fields[] = {
    {TEXT("data", config, data_dir)},
    {WPK_FIELD_PART("history_log", history_log_fields, WPK_DEFAULT)},
    {WPK_FIELD_PART("http", http_fields, WPK_DEFAULT)},
    {WPK_FIELD_PART("workers", workers_fields, WPK_DEFAULT)},
    {WPK_FIELD_WHOLE("peers", NULL, get_peers)},
    {.name = "owners", .kind = WPK_FIELD_KIND_CUSTOM, .make = make_owners},
    {WPK_FIELD_PART("artifacts", artifacts_fields, WPK_DEFAULT)},
    {WPK_FIELD_PART("log", log_fields, WPK_DEFAULT)},
    {INT("drain_s", drain_s, 0, 3600)},
    {INT("exit_when_idle_s", idle_s, 0, 1000000)},
    {WPK_FIELD_END},
};

wpk_err wpk_config_read(const char *path, struct wpk_config *config, struct wpk_diag *diag)
{
    struct wpk_fields_in in = {.arena = &config->arena};
    wpk_err err = wpk_config_file_open(path, &in.r, diag);
    if (err == WPK_OK) {
        wpk_fields_get_here(&in, config_fields, config);
        err = wpk_json_status(in.r);
        wpk_json_close(in.r);
    }
    return err;
}

/* Addresses that a listener may have. Workers send code that users run, and a token that crosses a
 * network in clear can be read by others. So a listener that can be reached from elsewhere must
 * have TLS, unless its configuration says "insecure". */

/* ADDRESS:PORT: a name may come to be another machine's, so a listener has none. */
static bool parse_host_port(const char *text, bool *loopback)
{
    struct wpk_address address;
    bool parsed = wpk_address_parse(text, strlen(text), &address);
    *loopback = parsed && address.is_loopback;
    return parsed && address.is_numeric && address.has_port;
}

static wpk_err check_files(const struct wpk_listen *listener, bool tls, struct wpk_diag *diag)
{
    if (tls && listener->certificate == NULL) {
        return wpk_fail(diag, WPK_EINVAL, "%s needs a certificate and a key", listener->address);
    }
    if (!tls && listener->certificate != NULL) {
        return wpk_fail(diag, WPK_EINVAL, "%s has no use for a certificate", listener->address);
    }
    return WPK_OK;
}

static wpk_err check_reach(const struct wpk_listen *listener, bool loopback, bool tls,
                           const char *remedy, struct wpk_diag *diag)
{
    if (!loopback && !tls && !listener->insecure) {
        return wpk_fail(diag, WPK_EINVAL,
                        "%s can be reached from other machines: it needs %s, or \"insecure\": true",
                        listener->address, remedy);
    }
    return WPK_OK;
}

wpk_err wpk_config_check_http(const struct wpk_listen *listener, struct wpk_diag *diag)
{
    bool loopback = false;
    bool tls = listener->certificate != NULL;
    if (wpk_begins(listener->address, "unix:") && listener->address[5] != '\0') {
        return check_files(listener, false, diag);
    }
    if (!parse_host_port(listener->address, &loopback)) {
        return wpk_fail(diag, WPK_EINVAL,
                        "clients are listened to at unix:PATH or ADDRESS:PORT, not %s",
                        listener->address);
    }
    return check_reach(listener, loopback, tls, "a certificate and a key", diag);
}

wpk_err wpk_config_check_workers(const struct wpk_listen *listener, struct wpk_diag *diag)
{
    const char *address = listener->address;
    bool loopback = true;
    bool tls = wpk_begins(address, "tls+tcp://");
    bool known = wpk_begins(address, "ipc://") && address[6] != '\0';
    if (tls || wpk_begins(address, "tcp://")) {
        known = parse_host_port(strstr(address, "://") + 3, &loopback);
    }
    if (!known) {
        return wpk_fail(
            diag, WPK_EINVAL,
            "workers connect to ipc://PATH, tcp://ADDRESS:PORT or tls+tcp://ADDRESS:PORT, not %s",
            address);
    }
    wpk_err err = check_files(listener, tls, diag);
    return err == WPK_OK ? check_reach(listener, loopback, tls, "tls+tcp://", diag) : err;
}
