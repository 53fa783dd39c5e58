/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net_dial.h"

#include "common/fs.h"

#include <arpa/inet.h>
#include <nng/supplemental/tls/tls.h>
#include <stdio.h>
#include <string.h>

#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"
#define CA_SIZE_MAX ((size_t)4 << 20)

/* NNG's error codes, the codes that they become, and advice to the user. */
static const struct {
    int code;
    wpk_err err;
    const char *advice;
} reasons[] = {
    {NNG_ENOMEM, WPK_ENOMEM, "; end other programs"},
    {NNG_EINVAL, WPK_EINVAL, "; check the address"},
    {NNG_EADDRINVAL, WPK_EINVAL, "; check the address"},
    {NNG_ENOTSUP, WPK_EINVAL, "; workers' addresses are ipc://, tcp:// and tls+tcp://"},
    {NNG_EADDRINUSE, WPK_EBUSY, "; end what listens there, or choose another address"},
    {NNG_EPERM, WPK_EACCES, "; allow this user to do it"},
    {NNG_ECRYPTO, WPK_EACCES, "; check the certificates and keys"},
    {NNG_EPEERAUTH, WPK_EACCES, "; check the certificates and who is trusted"},
    {NNG_ETIMEDOUT, WPK_ETIMEDOUT, "; check the network"},
    {NNG_ECLOSED, WPK_ECLOSED, "; wpkd may say why in its log"},
    {NNG_ECONNRESET, WPK_ECLOSED, "; wpkd may say why in its log"},
    {NNG_ECONNSHUT, WPK_ECLOSED, "; wpkd may say why in its log"},
    {NNG_ECONNREFUSED, WPK_ECLOSED, "; start wpkd there, or name another address"},
    {NNG_ECANCELED, WPK_ECLOSED, "; try again"},
};

wpk_err wpk_net_translate(int code, const char *url, struct wpk_diag *diag)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].code == code) {
            wpk_diag_set(diag, "%s: %s%s", url, nng_strerror(code), reasons[i].advice);
            return reasons[i].err;
        }
    }
    return wpk_fail(diag, WPK_ESYSTEM, "%s: %s; check the address", url, nng_strerror(code));
}

bool wpk_net_is_local(const char *url)
{
    return wpk_begins(url, "ipc://");
}

bool wpk_net_is_tls(const char *url)
{
    return wpk_begins(url, "tls+");
}

/* The host that an address names, without its port and brackets. */
static void host_of(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    const char *end = host[0] == '[' ? strchr(host, ']') : strrchr(host, ':');
    host += host[0] == '[';
    size_t length = end != NULL ? (size_t)(end - host) : strlen(host);
    snprintf(out, size, "%.*s", (int)length, host);
}

/* Set the certificates that a client trusts, and the host name that it expects. */
static wpk_err set_tls(const struct wpk_net_client_options *options, nng_stream_dialer *dialer,
                       struct wpk_diag *diag)
{
    struct wpk_buf ca = {0};
    char host[256];
    const char *path = options->ca != NULL ? options->ca : SYSTEM_CA;
    wpk_err err = wpk_fs_read(path, CA_SIZE_MAX, &ca, diag);
    if (err != WPK_OK) {
        return err;
    }
    host_of(options->url, host, sizeof host);
    nng_tls_config *config = NULL;
    int code = nng_tls_config_alloc(&config, NNG_TLS_MODE_CLIENT);
    if (code == 0) {
        code = nng_tls_config_version(config, NNG_TLS_1_2, NNG_TLS_1_2);
    }
    if (code == 0) {
        code = nng_tls_config_auth_mode(config, NNG_TLS_AUTH_MODE_REQUIRED);
    }
    if (code == 0) {
        code = nng_tls_config_server_name(config, host);
    }
    if (code == 0) {
        code = nng_tls_config_ca_chain(config, wpk_buf_text(&ca), NULL);
    }
    wpk_buf_fini(&ca);
    if (code == 0) {
        code = nng_stream_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, config);
    }
    if (config != NULL) {
        nng_tls_config_free(config); /* the dialer holds it */
    }
    return code == 0 ? WPK_OK : wpk_net_translate(code, path, diag);
}

wpk_err wpk_net_dialer_make(const struct wpk_net_client_options *options, nng_stream_dialer **out,
                            struct wpk_diag *diag)
{
    nng_stream_dialer *dialer = NULL;
    int code = nng_stream_dialer_alloc(&dialer, options->url);
    wpk_err err = code == 0 ? WPK_OK : wpk_net_translate(code, options->url, diag);
    if (err == WPK_OK && wpk_net_is_tls(options->url)) {
        err = set_tls(options, dialer, diag);
    }
    if (err != WPK_OK) {
        nng_stream_dialer_free(dialer);
        return err;
    }
    *out = dialer;
    return WPK_OK;
}

/* mbed TLS 2.28 compares names alone, and NNG does not let us see the certificate. */
static bool names_an_address(const char *url)
{
    char host[256];
    uint8_t address[16];
    host_of(url, host, sizeof host);
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

wpk_err wpk_net_explain(int code, const struct wpk_net_client_options *options,
                        struct wpk_diag *diag)
{
    if (code != NNG_ECRYPTO && code != NNG_EPEERAUTH) {
        return wpk_net_translate(code, options->url, diag);
    }
    return wpk_fail(diag, WPK_EACCES,
                    "%s: its certificate is not of that host%s, or %s does not vouch for it",
                    options->url,
                    names_an_address(options->url)
                        ? " (addresses in it do not count here: write a name that it has)"
                        : "",
                    options->ca != NULL ? options->ca : SYSTEM_CA);
}
