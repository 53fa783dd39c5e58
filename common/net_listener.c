/* SPDX-License-Identifier: Apache-2.0 */
/* A server's listeners. A connection is accepted only while a descriptor is free for it;
 * others wait in the kernel, which costs this process nothing. */
#include "common/net_peer.h"

#include "common/fs.h"

#include <nng/supplemental/tls/tls.h>
#include <stdlib.h>
#include <string.h>

#define PEM_SIZE_MAX ((size_t)1 << 20)

/* It may have come to its end meanwhile: our greeting to one that has left is answered on another
 * thread, before we are back. */
static void start(struct wpk_net_peer *peer)
{
    struct wpk_net_server *server = peer->server;
    wpk_net_peer_start(peer);
    pthread_mutex_lock(&server->lock);
    peer->is_starting = false;
    bool ended = peer->standing == WPK_NET_DEAD;
    pthread_mutex_unlock(&server->lock);
    if (ended) {
        server->wake(server->user); /* the owner passed it over */
    }
}

/* A stream was accepted, and is taken. */
static void welcome(struct wpk_net_listener *listener, nng_stream *stream)
{
    struct wpk_net_peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL || !wpk_net_peer_init(peer, stream)) {
        free(peer);
        nng_stream_free(stream);
        return;
    }
    peer->server = listener->server;
    peer->is_starting = true;
    peer->is_local = listener->is_local;
    peer->is_tls = listener->is_tls;
    if (wpk_net_peers_add(peer)) {
        start(peer);
    } else {
        wpk_net_peer_free(peer);
    }
}

static void on_accept(void *user)
{
    struct wpk_net_listener *listener = user;
    int code = nng_aio_result(listener->accept);
    if (code == 0) {
        welcome(listener, nng_aio_get_output(listener->accept, 0));
    }
    if (wpk_net_peers_may_accept(listener, code)) {
        nng_stream_listener_accept(listener->nng, listener->accept);
    }
}

static void wake(struct wpk_net_listener *listener)
{
    if (listener->nng != NULL && wpk_net_peers_may_accept(listener, 0)) {
        nng_stream_listener_accept(listener->nng, listener->accept);
    }
}

void wpk_net_listeners_wake(struct wpk_net_server *server)
{
    for (size_t i = 0; i < server->listener_count; i++) {
        pthread_mutex_lock(&server->lock);
        bool rests = !server->listeners[i].is_accepting;
        pthread_mutex_unlock(&server->lock);
        if (rests) {
            wake(&server->listeners[i]);
        }
    }
}

/* ---- listeners */

static wpk_err read_pem(const char *path, struct wpk_buf *out, struct wpk_diag *diag)
{
    if (path == NULL) {
        return wpk_fail(diag, WPK_EINVAL, "tls+tcp:// needs a certificate and its key");
    }
    return wpk_fs_read(path, PEM_SIZE_MAX, out, diag);
}

static wpk_err set_tls(const struct wpk_listen *listen, nng_stream_listener *nng,
                       struct wpk_diag *diag)
{
    struct wpk_buf certificate = {0};
    struct wpk_buf key = {0};
    nng_tls_config *config = NULL;
    wpk_err err = read_pem(listen->certificate, &certificate, diag);
    err = err == WPK_OK ? read_pem(listen->key, &key, diag) : err;
    if (err == WPK_OK) {
        int code = nng_tls_config_alloc(&config, NNG_TLS_MODE_SERVER);
        if (code == 0) {
            code = nng_tls_config_version(config, NNG_TLS_1_2, NNG_TLS_1_2);
        }
        if (code == 0) {
            code = nng_tls_config_own_cert(config, wpk_buf_text(&certificate), wpk_buf_text(&key),
                                           NULL);
        }
        if (code == 0) {
            code = nng_stream_listener_set_ptr(nng, NNG_OPT_TLS_CONFIG, config);
        }
        err = code == 0 ? WPK_OK : wpk_net_translate(code, listen->certificate, diag);
    }
    if (config != NULL) {
        nng_tls_config_free(config); /* the listener holds it */
    }
    if (key.data != NULL) {
        explicit_bzero(key.data, key.size);
    }
    wpk_buf_fini(&key);
    wpk_buf_fini(&certificate);
    return err;
}

wpk_err wpk_net_listener_make(const struct wpk_net_listener *listener,
                              const struct wpk_listen *listen, nng_stream_listener **out,
                              struct wpk_diag *diag)
{
    nng_stream_listener *nng = NULL;
    int code = nng_stream_listener_alloc(&nng, listener->url);
    if (code == 0 && listener->is_local) {
        /* A local socket is its user's alone, unless the administrator says otherwise. */
        code = nng_stream_listener_set_int(nng, NNG_OPT_IPC_PERMISSIONS, (int)listener->mode);
    }
    wpk_err err = code == 0 ? WPK_OK : wpk_net_translate(code, listener->url, diag);
    if (err == WPK_OK && listener->is_tls) {
        err = set_tls(listen, nng, diag);
    }
    if (err != WPK_OK) {
        nng_stream_listener_free(nng);
        return err;
    }
    *out = nng;
    return WPK_OK;
}

/* Closing ends the accept. In TLS, NNG 1.5.2 then frees what nng_aio_stop() would use to cancel it,
 * so it must have ended before. */
static void close_listener(struct wpk_net_listener *listener)
{
    if (listener->nng != NULL) {
        nng_stream_listener_close(listener->nng);
        if (listener->accept != NULL) {
            nng_aio_wait(listener->accept);
            nng_aio_stop(listener->accept);
        }
        nng_stream_listener_free(listener->nng);
        listener->nng = NULL;
    }
    nng_aio_free(listener->accept);
    listener->accept = NULL;
}

wpk_err wpk_net_listener_listen(struct wpk_net_listener *listener, nng_stream_listener *nng,
                                struct wpk_diag *diag)
{
    close_listener(listener);
    int code = nng_aio_alloc(&listener->accept, on_accept, listener);
    listener->is_accepting = false; /* nobody else sees it now */
    listener->nng = nng;
    if (code == 0) {
        code = nng_stream_listener_listen(nng);
    }
    if (code != 0) {
        close_listener(listener);
        return wpk_net_translate(code, listener->url, diag);
    }
    return WPK_OK;
}

wpk_err wpk_net_listener_open(struct wpk_net_listener *listener, struct wpk_net_server *server,
                              const struct wpk_listen *listen, struct wpk_diag *diag)
{
    *listener = (struct wpk_net_listener){
        .server = server,
        .url = strdup(listen->address),
        .mode = listen->mode != 0 ? listen->mode : 0600,
        .is_local = wpk_net_is_local(listen->address),
        .is_tls = wpk_net_is_tls(listen->address),
    };
    if (listener->url == NULL) {
        return WPK_ENOMEM;
    }
    nng_stream_listener *nng;
    /* NNG removes whatever refuses a connection there, a file too. */
    wpk_err err =
        listener->is_local ? wpk_fs_check_socket(listener->url + strlen("ipc://"), diag) : WPK_OK;
    err = err == WPK_OK ? wpk_net_listener_make(listener, listen, &nng, diag) : err;
    return err == WPK_OK ? wpk_net_listener_listen(listener, nng, diag) : err;
}

void wpk_net_listener_close(struct wpk_net_listener *listener)
{
    close_listener(listener);
    free(listener->url);
    *listener = (struct wpk_net_listener){0};
}

/* ---- other certificates */

static void free_listeners(nng_stream_listener *nng[WPK_NET_LISTEN_MAX])
{
    for (size_t i = 0; i < WPK_NET_LISTEN_MAX; i++) {
        if (nng[i] != NULL) {
            nng_stream_listener_free(nng[i]);
        }
    }
}

/* Of those with TLS another one each; none of them on failure. */
static wpk_err make_listeners(const struct wpk_net_server *server, const struct wpk_listen *listen,
                              nng_stream_listener *out[WPK_NET_LISTEN_MAX], struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (size_t i = 0; i < server->listener_count && err == WPK_OK; i++) {
        if (server->listeners[i].is_tls) {
            err = wpk_net_listener_make(&server->listeners[i], &listen[i], &out[i], diag);
        }
    }
    if (err != WPK_OK) {
        free_listeners(out);
    }
    return err;
}

wpk_err wpk_net_server_check(const struct wpk_net_server *server, const struct wpk_listen *listen,
                             size_t count, struct wpk_diag *diag)
{
    nng_stream_listener *fresh[WPK_NET_LISTEN_MAX] = {NULL};
    WPK_ASSERT(count == server->listener_count);
    wpk_err err = make_listeners(server, listen, fresh, diag);
    if (err == WPK_OK) {
        free_listeners(fresh);
    }
    return err;
}

wpk_err wpk_net_server_reload(struct wpk_net_server *server, const struct wpk_listen *listen,
                              size_t count, struct wpk_diag *diag)
{
    nng_stream_listener *fresh[WPK_NET_LISTEN_MAX] = {NULL};
    WPK_ASSERT(count == server->listener_count);
    wpk_err err = make_listeners(server, listen, fresh, diag);
    for (size_t i = 0; i < server->listener_count && err == WPK_OK; i++) {
        if (fresh[i] != NULL) {
            err = wpk_net_listener_listen(&server->listeners[i], fresh[i], diag);
            fresh[i] = NULL;
            if (err != WPK_OK) {
                free_listeners(fresh);
            }
        }
    }
    wpk_net_listeners_wake(server);
    return err;
}
