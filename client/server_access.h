/* SPDX-License-Identifier: Apache-2.0 */
/* The wpkd that a command talks to, our token and the CA. Each of the three comes from the command
 * line, else from the environment, else from $XDG_CONFIG_HOME/woodpecker/wpkctl.json (by default
 * ~/.config/woodpecker/wpkctl.json):
 *
 *     { "server": "https://tuner.example:7443",
 *       "token_file": "/home/me/.config/woodpecker/token",
 *       "ca": "/etc/ssl/our-ca.pem" }
 *
 * Every member may be missing. The file's token and CA are used with the file's server only, so
 * that a server named on the command line does not get the secret. */
#ifndef WPK_CLIENT_SERVER_ACCESS_H
#define WPK_CLIENT_SERVER_ACCESS_H

#include "client/command.h"
#include "client/http.h"

#define WPK_SERVER_ACCESS_PATH_MAX 4096

/* Options of the command line; NULL: not given. */
struct wpk_server_access_given {
    const char *server;
    const char *token_file;
    const char *ca;
    bool insecure;
};

/* The result. A text that was given nowhere is "". */
struct wpk_server_access {
    char server[WPK_HTTP_URL_MAX];
    char token[WPK_HTTP_TOKEN_MAX + 1];
    char ca[WPK_SERVER_ACCESS_PATH_MAX];
    bool insecure; /* the token may go over http:// to another machine; an option only */
};

/* Merge command line, environment and file.
 *
 *   errors  WPK_EINVAL, WPK_EPARSE, WPK_ERANGE the file or the token is malformed, or the token's
 *           file was named and is missing; WPK_EACCES, WPK_EIO one of them cannot be read */
wpk_err wpk_server_access_find(const struct wpk_command_context *context,
                               const struct wpk_server_access_given *given,
                               struct wpk_server_access *out, struct wpk_diag *diag);

#endif
