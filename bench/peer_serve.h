/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's main loop: opens operators, checks and times them as the driver asks. */
#ifndef WPK_BENCH_PEER_SERVE_H
#define WPK_BENCH_PEER_SERVE_H

/* Answer requests on BENCH_CHILD_FD with the functions of bench/peer.h; return when the driver has
 * closed its end. */
void bench_peer_serve(void);

#endif
