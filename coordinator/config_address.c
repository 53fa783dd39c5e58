/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that a listener may have. Workers send code that users run, and a token that crosses a
 * network in clear can be read by others. So a listener that can be reached from elsewhere must
 * have TLS, unless its configuration says "insecure". */
#include "common/net.h"
#include "coordinator/config.h"

#include <string.h>

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
