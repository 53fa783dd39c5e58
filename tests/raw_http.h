/* SPDX-License-Identifier: Apache-2.0 */
/* Raw sockets to an HTTP server, for tests that send what no library would. */
#ifndef WPK_TESTS_RAW_HTTP_H
#define WPK_TESTS_RAW_HTTP_H

#include <stddef.h>
#include <stdint.h>

/* Connected, with five seconds' patience for what is received. */
int raw_http_dial_unix(const char *path);
int raw_http_dial_loopback(uint16_t port);
void raw_http_say(int fd, const char *text);
/* What comes, until the other side closes, is silent for too long, or has said a head and "end". */
void raw_http_hear(int fd, char *out, size_t size);
void raw_http_pause_ms(long ms);

#endif
