/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that exist as Python modules. peer_python.py loads this file as a library and passes five
 * functions. All other code, the clock included, is that of every peer. A call through these
 * functions costs a microsecond, which `empty-call` shows. */
#include "bench/peer.h"
#include "bench/peer_serve.h"

#include <stdio.h>

#define EXPORTED __attribute__((visibility("default")))

/* The result of a Python function. */
enum python_result {
    PYTHON_OK,
    PYTHON_UNSUPPORTED,
    PYTHON_FAILED,
};

/* Mirrored by peer_python.py, field by field. Results are an enum python_result. */
struct bench_python {
    const char *version;
    /* text [WPK_DIAG_TEXT_MAX]: what the library chose, or why it failed */
    int (*open)(const char *model, int fixed, int threads, const float *input, char *text);
    int (*run)(void);
    int (*output)(float *out);
    void (*touch)(void);
    void (*close)(void);
};

EXPORTED void bench_python_serve(const struct bench_python *functions);

struct bench_peer {
    const struct bench_python *functions;
    char choice[BENCH_TEXT_MAX];
};

static struct bench_peer the_peer; /* Python has one open at a time, as the loop has */

void bench_python_serve(const struct bench_python *functions)
{
    the_peer.functions = functions;
    bench_peer_serve();
}

void bench_peer_version(char *out, size_t size)
{
    snprintf(out, size, "%s", the_peer.functions->version);
}

static wpk_err translate(int result)
{
    switch ((enum python_result)result) {
    case PYTHON_OK:
        return WPK_OK;
    case PYTHON_UNSUPPORTED:
        return WPK_EUNSUPPORTED;
    case PYTHON_FAILED:
        break;
    }
    return WPK_ESYSTEM;
}

wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag)
{
    char text[WPK_DIAG_TEXT_MAX] = "";
    const wpk_err err = translate(the_peer.functions->open(
        what->path, what->layouts == BENCH_LAYOUTS_FIXED, what->threads, operands[0], text));
    if (err != WPK_OK) {
        wpk_diag_set(diag, "%s", text);
        return err;
    }
    snprintf(the_peer.choice, sizeof(the_peer.choice), "%s", text);
    *out = &the_peer;
    return WPK_OK;
}

wpk_err bench_peer_run(struct bench_peer *peer)
{
    return translate(peer->functions->run());
}

wpk_err bench_peer_output(struct bench_peer *peer, float *out)
{
    return translate(peer->functions->output(out));
}

void bench_peer_touch(struct bench_peer *peer)
{
    peer->functions->touch();
}

const char *bench_peer_choice(const struct bench_peer *peer)
{
    return peer->choice;
}

void bench_peer_close(struct bench_peer *peer)
{
    if (peer != NULL) {
        peer->functions->close();
    }
}
