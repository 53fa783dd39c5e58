/* SPDX-License-Identifier: Apache-2.0 */
/* Raw sockets to an HTTP server, for tests that send bytes that a library would not send. */
#ifndef WPK_TESTS_RAW_HTTP_H
#define WPK_TESTS_RAW_HTTP_H

#include <stddef.h>
#include <stdint.h>

/* Connect; a receive times out after five seconds. */
int raw_http_dial_unix(const char *path);
int raw_http_dial_loopback(uint16_t port);
void raw_http_say(int fd, const char *text);
/* Receive until the other side closes, a timeout, or a whole head and the text "end". */
void raw_http_hear(int fd, char *out, size_t size);
void raw_http_pause_ms(long ms);

#endif
