/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of peers in C: it answers the driver until the driver ends. */
#include "bench/peer_serve.h"

#include <stdio.h>
#include <unistd.h>

int main(void)
{
    bench_peer_serve();
    /* The libraries' own destructors are not under test, and some of them hang. */
    fflush(NULL);
    _exit(0);
}
