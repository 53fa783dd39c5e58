/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request on its way to the server; it owns its text. */
#ifndef WPK_COORDINATOR_HTTP_ANSWER_H
#define WPK_COORDINATOR_HTTP_ANSWER_H

#include "common/buf.h"
#include "coordinator/http/http.h"

enum wpk_api_how {
    WPK_API_NOW,   /* the answer is complete */
    WPK_API_LATER, /* an effect of a step, or a store write, will answer */
    WPK_API_QUEUE, /* on the server's threads: the loop has to answer */
};

struct wpk_api_answer {
    enum wpk_api_how how;
    int status;
    const char *content_type;
    char location[64]; /* "" for none */
    char allow[40];    /* "" for none */
    char etag[72];     /* with its quotes; "" for none */
    uint32_t retry_after_s;
    struct wpk_buf body;
    /* A borrowed body instead of `body`, until `release` is called with `owner`; NULL: none. */
    const char *borrowed; /* [borrowed_size], not NUL-terminated */
    size_t borrowed_size;
    void (*release)(void *owner);
    void *owner;
};

void wpk_api_answer_fini(struct wpk_api_answer *answer);
/* Fill the server's response, which borrows from `answer`. */
void wpk_api_response(const struct wpk_api_answer *answer, struct wpk_http_response *out);
/* Make the answer a problem document (RFC 9457); `diag` may be NULL. */
void wpk_api_problem(struct wpk_api_answer *answer, int status, wpk_err err,
                     const struct wpk_diag *diag);

#endif
