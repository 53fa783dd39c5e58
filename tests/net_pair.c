/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net_pair.h"
#include "tests/share.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

void wpk_net_pair_wake(void *user)
{
    uint64_t one = 1;
    struct wpk_net_pair *pair = user;
    ssize_t written = write(pair->fd, &one, sizeof one);
    (void)written;
}

void wpk_net_pair_pause(struct wpk_net_pair *pair)
{
    struct pollfd poll_fd = {.fd = pair->fd, .events = POLLIN};
    WPK_ASSERT(poll(&poll_fd, 1, 300000) == 1); /* against hanging only */
    uint64_t count;
    WPK_ASSERT(read(pair->fd, &count, sizeof count) == sizeof count);
}

void wpk_net_pair_event(struct wpk_net_pair *pair, struct wpk_net_event *event)
{
    while (!wpk_net_server_next(pair->server, event)) {
        wpk_net_pair_pause(pair);
    }
}

wpk_err wpk_net_pair_reply(struct wpk_net_pair *pair, int *slot, char **data)
{
    wpk_err err;
    size_t size;
    while (!wpk_net_client_next(pair->client, slot, &err, data, &size)) {
        wpk_net_pair_pause(pair);
    }
    return err;
}

wpk_err wpk_net_pair_listen(struct wpk_net_pair *pair, const char *url, struct wpk_net_server **out,
                            struct wpk_diag *diag)
{
    const struct wpk_listen listen = {.address = url};
    const struct wpk_net_server_options options = {.listen = &listen,
                                                   .listen_count = 1,
                                                   .size_max = WPK_NET_PAIR_SIZE_MAX,
                                                   .unauthenticated_ms =
                                                       WPK_NET_PAIR_UNAUTHENTICATED_MS,
                                                   .wake = wpk_net_pair_wake,
                                                   .user = pair};
    return wpk_net_server_open(&options, out, diag);
}

wpk_err wpk_net_pair_connect(struct wpk_net_pair *pair, const char *url,
                             struct wpk_net_client **out, struct wpk_diag *diag)
{
    const struct wpk_net_client_options options = {.url = url,
                                                   .size_max = WPK_NET_PAIR_SIZE_MAX,
                                                   .slot_count = 3,
                                                   .wake = wpk_net_pair_wake,
                                                   .user = pair};
    return wpk_net_client_open(&options, out, diag);
}

void wpk_net_pair_serve(struct wpk_net_pair *pair)
{
    struct wpk_diag diag = {0};
    WPK_ASSERT(wpk_net_pair_listen(pair, pair->url, &pair->server, &diag) == WPK_OK);
}

int wpk_net_pair_set_up(void **state)
{
    struct wpk_net_pair *pair = calloc(1, sizeof *pair);
    snprintf(pair->directory, sizeof pair->directory, "%s/wpk-net-XXXXXX", wpk_test_folder());
    WPK_ASSERT(mkdtemp(pair->directory) != NULL);
    snprintf(pair->url, sizeof pair->url, "ipc://%s/socket", pair->directory);
    pair->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    wpk_net_pair_serve(pair);
    struct wpk_diag diag = {0};
    WPK_ASSERT(wpk_net_pair_connect(pair, pair->url, &pair->client, &diag) == WPK_OK);
    *state = pair;
    return 0;
}

int wpk_net_pair_tear_down(void **state)
{
    struct wpk_net_pair *pair = *state;
    wpk_net_client_close(pair->client);
    wpk_net_server_close(pair->server);
    char path[160];
    snprintf(path, sizeof path, "%s/socket", pair->directory);
    unlink(path);
    rmdir(pair->directory);
    close(pair->fd);
    free(pair);
    return 0;
}
