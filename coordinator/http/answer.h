/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request, which owns its text, on its way to the server. */
#ifndef WPK_COORDINATOR_HTTP_ANSWER_H
#define WPK_COORDINATOR_HTTP_ANSWER_H

#include "common/buf.h"
#include "coordinator/http/http.h"

enum wpk_api_how {
    WPK_API_NOW,   /* it is here */
    WPK_API_LATER, /* effects of a step, or an order, give it */
    WPK_API_QUEUE, /* on the server's threads: only the loop can tell */
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
    /* Instead of `body`, where it is borrowed: until it is given back to `owner`. */
    const char *borrowed; /* [borrowed_size], not NUL-terminated */
    size_t borrowed_size;
    void (*release)(void *owner);
    void *owner;
};

void wpk_api_answer_fini(struct wpk_api_answer *answer);
/* As the server wants it: borrows from `answer`. */
void wpk_api_response(const struct wpk_api_answer *answer, struct wpk_http_response *out);
/* A problem document (RFC 9457); `diag` may be NULL. */
void wpk_api_problem(struct wpk_api_answer *answer, int status, wpk_err err,
                     const struct wpk_diag *diag);

#endif
