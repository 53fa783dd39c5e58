/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's main loop: opens an operator, checks it, and times rounds of it when told to. */
#ifndef WPK_BENCH_PEER_SERVE_H
#define WPK_BENCH_PEER_SERVE_H

/* Answer requests on BENCH_CHILD_FD by the functions of bench/peer.h; returns when the driver has
 * closed its end. */
void bench_peer_serve(void);

#endif
