/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/page_cache.h"

#include "common/crypto.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kept {
    char key[WPK_PAGE_KEY_MAX]; /* "": free */
    uint64_t made_ns;
    const char *content_type;
    const char *policy;
    char etag[72];
    struct wpk_buf body; /* owned */
};

struct wpk_page_cache {
    pthread_mutex_t lock; /* guards the pages */
    struct kept pages[WPK_PAGES_MAX];
};

struct wpk_page_cache *wpk_page_cache_new(void)
{
    struct wpk_page_cache *cache = WPK_DEMAND(calloc(1, sizeof *cache));
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void wpk_page_cache_free(struct wpk_page_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (int i = 0; i < WPK_PAGES_MAX; i++) {
        wpk_buf_fini(&cache->pages[i].body);
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* False if the key is too long. */
static bool make_key(const struct wpk_http_request *request, char out[WPK_PAGE_KEY_MAX])
{
    size_t used = (size_t)snprintf(out, WPK_PAGE_KEY_MAX, "%s", request->path);
    for (uint32_t i = 0; i < request->query_count && used < WPK_PAGE_KEY_MAX; i++) {
        used += (size_t)snprintf(out + used, WPK_PAGE_KEY_MAX - used, "\n%s=%s",
                                 request->query[i].name, request->query[i].value);
    }
    return used < WPK_PAGE_KEY_MAX;
}

/* With the lock held: the page of this key, else NULL. */
static struct kept *find(struct wpk_page_cache *cache, const char *key)
{
    int found = WPK_FIND(struct kept, key, cache->pages, WPK_PAGES_MAX, key);
    return found >= 0 ? &cache->pages[found] : NULL;
}

bool wpk_page_cache_get(struct wpk_page_cache *cache, const struct wpk_http_request *request,
                        uint64_t now_ns, struct wpk_api_answer *out)
{
    char key[WPK_PAGE_KEY_MAX];
    if (!make_key(request, key)) {
        return false;
    }
    pthread_mutex_lock(&cache->lock);
    const struct kept *page = find(cache, key);
    bool found = page != NULL && now_ns < page->made_ns + WPK_PAGE_FRESH_NS;
    if (found) {
        out->status = 200;
        out->content_type = page->content_type;
        out->policy = page->policy;
        memcpy(out->etag, page->etag, sizeof out->etag);
        if (!wpk_http_etag_matches(request->if_none_match, page->etag)) {
            wpk_buf_append(&out->body, page->body.data, page->body.size);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

static struct kept *find_oldest(struct wpk_page_cache *cache)
{
    struct kept *oldest = &cache->pages[0];
    for (int i = 1; i < WPK_PAGES_MAX; i++) {
        oldest = cache->pages[i].made_ns < oldest->made_ns ? &cache->pages[i] : oldest;
    }
    return oldest;
}

void wpk_page_cache_put(struct wpk_page_cache *cache, const struct wpk_http_request *request,
                        uint64_t now_ns, struct wpk_api_answer *answer)
{
    uint8_t digest[WPK_SHA256_SIZE];
    char digits[33];
    char key[WPK_PAGE_KEY_MAX];
    wpk_crypto_sha256(answer->body.data, answer->body.size, digest);
    wpk_crypto_hex(digest, 16, digits);
    snprintf(answer->etag, sizeof answer->etag, "\"%s\"", digits);
    if (!make_key(request, key)) {
        return;
    }
    pthread_mutex_lock(&cache->lock);
    struct kept *page = find(cache, key);
    page = page != NULL ? page : find_oldest(cache);
    memcpy(page->key, key, sizeof key);
    page->made_ns = now_ns;
    page->content_type = answer->content_type;
    page->policy = answer->policy;
    memcpy(page->etag, answer->etag, sizeof page->etag);
    wpk_buf_reset(&page->body);
    wpk_buf_append(&page->body, answer->body.data, answer->body.size);
    if (wpk_buf_status(&page->body) != WPK_OK) {
        page->key[0] = '\0';
        page->made_ns = 0;
    }
    pthread_mutex_unlock(&cache->lock);
}
