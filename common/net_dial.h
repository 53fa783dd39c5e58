/* SPDX-License-Identifier: Apache-2.0 */
/* What both sides of common/net.h share of the library: its failures, and the way to an address.
 * Not for anybody else. */
#ifndef WPK_COMMON_NET_DIAL_H
#define WPK_COMMON_NET_DIAL_H

#include "common/net.h"

#include <nng/nng.h>

/* The library's code as ours, with its words and `url` in *diag. */
WPK_MUST_CHECK wpk_err wpk_net_translate(int code, const char *url, struct wpk_diag *diag);

bool wpk_net_is_local(const char *url);
bool wpk_net_is_tls(const char *url);

/* What connects to options->url, with the certificates of options->ca as they are now.
 *   owns    caller frees
 *   errors  as wpk_net_client_open */
WPK_MUST_CHECK wpk_err wpk_net_dialer_make(const struct wpk_net_client_options *options,
                                           nng_stream_dialer **out, struct wpk_diag *diag);

#endif
