/* SPDX-License-Identifier: Apache-2.0 */
/* HOST:PORT, and whose it is: what stays on this machine may go in clear, the rest may not. */
#ifndef WPK_COMMON_ADDRESS_H
#define WPK_COMMON_ADDRESS_H

#include "common/err.h"

#include <stddef.h>

struct wpk_address {
    bool has_port;
    bool is_numeric;  /* an IPv4 address, or an IPv6 one in brackets; else a name, as it was said */
    bool is_loopback; /* of 127.0.0.0/8, ::1, or the name localhost; no other name is looked up */
};

/* Take HOST or HOST:PORT apart; false where it is neither. */
WPK_MUST_CHECK bool wpk_address_parse(const char *text, size_t size, struct wpk_address *out);

/* Would SCHEME://HOST[:PORT][/...] stay on this machine? False for whatever is not quite that. */
bool wpk_address_url_is_loopback(const char *url);

#endif
