/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that were not sent yet. A peer that sends requests and does not read the replies would
 * fill the memory. Each peer has a limit, as much as a client's slots can wait for; past it, the
 * peer is closed. Past a limit for all peers, the peer with most unread bytes is closed. */
#include "common/net_peer.h"

#include <stdlib.h>
#include <string.h>

#define REPLIES_MAX 64 /* that a peer has not taken */

/* A reply as it goes over the wire; NULL when out of memory. */
static struct wpk_net_message *reply_new(const struct wpk_net_address *address, const void *data,
                                         size_t size)
{
    struct wpk_net_message *reply = malloc(sizeof *reply + WPK_NET_HEAD_MAX + size);
    if (reply == NULL) {
        return NULL;
    }
    struct wpk_net_head head = {.size = size};
    memcpy(&head.number, address->header, sizeof head.number);
    size_t head_size = wpk_net_head_write(&head, address->is_local, reply->data);
    memcpy(reply->data + head_size, data, size);
    reply->next = NULL;
    reply->size = head_size + size;
    return reply;
}

/* With the lock. */
static void append(struct wpk_net_peer *peer, struct wpk_net_message *reply)
{
    if (peer->reply != NULL) {
        peer->reply_last->next = reply;
    } else {
        peer->reply = reply;
        wpk_net_peer_took(peer);
    }
    peer->reply_last = reply;
    peer->reply_count++;
    peer->reply_bytes += reply->size;
    peer->server->reply_bytes += reply->size;
}

/* With the lock: who leaves most, and of equals the one that has taken nothing for longest. */
static struct wpk_net_peer *find_slowest(const struct wpk_net_server *server)
{
    struct wpk_net_peer *slowest = NULL;
    for (uint32_t i = 0; i < WPK_NET_PEERS_MAX; i++) {
        struct wpk_net_peer *peer = server->peers[i];
        if (peer != NULL && peer->reply_bytes > 0 &&
            (slowest == NULL || peer->reply_bytes > slowest->reply_bytes ||
             (peer->reply_bytes == slowest->reply_bytes && peer->took_ns < slowest->took_ns))) {
            slowest = peer;
        }
    }
    return slowest;
}

void wpk_net_server_reply(struct wpk_net_server *server, const struct wpk_net_address *address,
                          const void *data, size_t size)
{
    struct wpk_net_message *reply = reply_new(address, data, size);
    struct wpk_net_peer *leaving = NULL;
    if (reply == NULL) {
        return; /* to the client as good as a lost reply, which it knows how to live with */
    }
    pthread_mutex_lock(&server->lock);
    struct wpk_net_peer *peer = server->peers[address->peer % WPK_NET_PEERS_MAX];
    bool there = peer != NULL && peer->id == address->peer && peer->standing != WPK_NET_DEAD;
    bool taken = there && peer->reply_count < REPLIES_MAX &&
                 (peer->reply == NULL ||
                  peer->reply_bytes + reply->size <= WPK_NET_SLOTS_MAX * server->size_max);
    bool start = taken && !peer->is_sending;
    if (taken) {
        if (address->is_known && !peer->is_known) {
            peer->is_known = true;
            wpk_net_peer_took(peer);
        }
        wpk_net_peer_asked(peer, false);
        append(peer, reply);
        peer->is_sending = true;
        leaving = server->reply_bytes > server->reply_bytes_max ? find_slowest(server) : NULL;
    } else if (there) {
        leaving = peer;
    }
    pthread_mutex_unlock(&server->lock);
    if (start) {
        wpk_net_peer_send(peer);
    } else if (!taken) {
        free(reply);
    }
    if (leaving != NULL) {
        wpk_net_peer_end(leaving); /* the owner alone frees it, and that is us */
    }
}
