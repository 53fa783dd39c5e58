/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the library that both sides of common/net.h use: its error codes, and dialling. Only
 * the files of net.h include this. */
#ifndef WPK_COMMON_NET_DIAL_H
#define WPK_COMMON_NET_DIAL_H

#include "common/net.h"

#include <nng/nng.h>

/* Translate the library's error code; *diag gets its text and `url`. */
wpk_err wpk_net_translate(int code, const char *url, struct wpk_diag *diag);

bool wpk_net_is_local(const char *url);
bool wpk_net_is_tls(const char *url);

/* Make a dialler for options->url, with the certificates that options->ca has now.
 *   owns    caller frees
 *   errors  as wpk_net_client_open */
wpk_err wpk_net_dialer_make(const struct wpk_net_client_options *options, nng_stream_dialer **out,
                            struct wpk_diag *diag);
/* Translate the code of a connection, or of a try to connect, that failed; *diag gets what to do
 * about it.   errors  those of wpk_net_client_loss */
wpk_err wpk_net_explain(int code, const struct wpk_net_client_options *options,
                        struct wpk_diag *diag);

#endif
