/* SPDX-License-Identifier: Apache-2.0 */
/* Which wpkd, and who we are to it. Each of the three comes from the command line, else from the
 * environment, else from $XDG_CONFIG_HOME/woodpecker/wpkctl.json (~/.config/... by default):
 *
 *     { "server": "https://tuner.example:7443",
 *       "token_file": "/home/me/.config/woodpecker/token",
 *       "ca": "/etc/ssl/our-ca.pem" }
 *
 * Every member may be missing. The file's token and CA go to the file's server only, so that no
 * secret is shown to a server that was named for once. */
#ifndef WPK_CLIENT_ACCESS_H
#define WPK_CLIENT_ACCESS_H

#include "client/command.h"
#include "client/http.h"

#define WPK_ACCESS_PATH_MAX 4096

/* What the command line says; NULL: nothing. */
struct wpk_access_given {
    const char *server;
    const char *token_file;
    const char *ca;
    bool insecure;
};

/* Texts that were given nowhere are "". */
struct wpk_access {
    char server[WPK_HTTP_URL_MAX];
    char token[WPK_HTTP_TOKEN_MAX + 1];
    char ca[WPK_ACCESS_PATH_MAX];
    bool insecure; /* the token may go over http:// to another machine: said with each command */
};

/* Put together what is known.
 *
 *   errors  WPK_EINVAL, WPK_EPARSE, WPK_ERANGE the file or the token is malformed, or missing
 *           though it was named; WPK_EACCES, WPK_EIO it cannot be read */
WPK_MUST_CHECK wpk_err wpk_access_find(const struct wpk_command_context *context,
                                       const struct wpk_access_given *given, struct wpk_access *out,
                                       struct wpk_diag *diag);

#endif
