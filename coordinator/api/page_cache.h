/* SPDX-License-Identifier: Apache-2.0 */
/* Rendered pages, for all viewers: every page shows the same to everybody who may read. A page is
 * rendered at most once in WPK_PAGE_FRESH_NS, however many look at it. From any thread. */
#ifndef WPK_COORDINATOR_API_PAGE_CACHE_H
#define WPK_COORDINATOR_API_PAGE_CACHE_H

#include "coordinator/http/http.h"

#define WPK_PAGE_FRESH_NS (UINT64_C(1000000000))
#define WPK_PAGES_MAX 64     /* the one that was rendered longest ago makes room */
#define WPK_PAGE_KEY_MAX 512 /* bytes of path and query, with the NUL; longer: not kept */

struct wpk_page_cache;

/*   owns    caller frees */
struct wpk_page_cache *wpk_page_cache_new(void);
void wpk_page_cache_free(struct wpk_page_cache *cache);

/* Answer with the page of this request if it was rendered a moment ago. */
WPK_MUST_CHECK bool wpk_page_cache_get(struct wpk_page_cache *cache,
                                       const struct wpk_http_request *request, uint64_t now_ns,
                                       struct wpk_api_answer *out);
/* Name the content of a rendered page by its hash, and keep a copy. */
void wpk_page_cache_put(struct wpk_page_cache *cache, const struct wpk_http_request *request,
                        uint64_t now_ns, struct wpk_api_answer *answer);

#endif
