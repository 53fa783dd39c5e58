/* SPDX-License-Identifier: Apache-2.0 */
/* HOST:PORT, and whether it is on this machine: other traffic may not go in clear. */
#ifndef WPK_COMMON_ADDRESS_H
#define WPK_COMMON_ADDRESS_H

#include "common/err.h"

#include <stddef.h>

struct wpk_address {
    bool has_port;
    bool is_numeric;  /* an IPv4 address, or an IPv6 address in brackets; else a name */
    bool is_loopback; /* of 127.0.0.0/8, ::1, or the name localhost; names are not resolved */
};

/* Parse HOST or HOST:PORT; false if `text` is neither. */
WPK_MUST_CHECK bool wpk_address_parse(const char *text, size_t size, struct wpk_address *out);

/* True if `url` is SCHEME://HOST[:PORT][/...] with a host on this machine; else false. */
bool wpk_address_url_is_loopback(const char *url);

#endif
