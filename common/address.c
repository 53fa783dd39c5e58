/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HOST_SIZE 256 /* a name of the DNS, and a '\0' */

static bool is_port(const char *text, size_t size)
{
    unsigned value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    return size >= 1 && size <= 5 && value <= 65535;
}

static bool parse_v6(const char *host, struct wpk_address *out)
{
    struct in6_addr address;
    out->is_numeric = inet_pton(AF_INET6, host, &address) == 1;
    out->is_loopback = out->is_numeric && IN6_IS_ADDR_LOOPBACK(&address);
    return out->is_numeric;
}

static void parse_v4_or_name(const char *host, struct wpk_address *out)
{
    struct in_addr address;
    out->is_numeric = inet_pton(AF_INET, host, &address) == 1;
    out->is_loopback =
        out->is_numeric ? ntohl(address.s_addr) >> 24 == 127 : strcasecmp(host, "localhost") == 0;
}

bool wpk_address_parse(const char *text, size_t size, struct wpk_address *out)
{
    char host[HOST_SIZE];
    *out = (struct wpk_address){0};
    bool bracketed = size > 0 && text[0] == '[';
    const char *end = memchr(text, bracketed ? ']' : ':', size);
    size_t host_size = end != NULL ? (size_t)(end - text) : size;
    size_t rest = host_size;
    if (bracketed) {
        if (end == NULL) {
            return false;
        }
        text++;
        size--;
        host_size--;
        rest = host_size + 1;
    }
    if (host_size == 0 || host_size >= sizeof host || memchr(text, '\0', host_size) != NULL) {
        return false;
    }
    memcpy(host, text, host_size);
    host[host_size] = '\0';
    if (rest < size) {
        out->has_port = text[rest] == ':' && is_port(text + rest + 1, size - rest - 1);
        if (!out->has_port) {
            return false;
        }
    }
    if (bracketed) {
        return parse_v6(host, out);
    }
    parse_v4_or_name(host, out);
    return true;
}

bool wpk_address_url_is_loopback(const char *url)
{
    struct wpk_address address;
    const char *begin = strstr(url, "://");
    if (begin == NULL) {
        return false;
    }
    begin += strlen("://");
    /* Text before an '@' is no host name: a host with it does not parse as a loopback address. */
    return wpk_address_parse(begin, strcspn(begin, "/?#"), &address) && address.is_loopback;
}

bool wpk_address_take(const char **list, char *out, size_t size)
{
    size_t length = strcspn(*list, ",");
    bool found = **list != '\0';
    snprintf(out, size, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return found;
}
