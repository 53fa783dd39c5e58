/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/search.h"

#include "common/crypto.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/model.h"
#include "search/space.h"

#include <stdio.h>
#include <string.h>

/* Up to the end of the line. */
static const char *copy_line(const char *text, char *out, size_t size)
{
    size_t length = strcspn(text, "\n");
    snprintf(out, size, "%.*s", (int)length, text);
    return text[length] == '\n' ? text + length + 1 : text + length;
}

void wpk_search_key_make(const struct wpk_job_op_state *op, const char *class_text,
                         struct wpk_search_key *key)
{
    const struct wpk_job_entry *job = op->job;
    memset(key, 0, sizeof *key);
    snprintf(key->fingerprint, sizeof key->fingerprint, "%s", op->fingerprint);
    snprintf(key->layouts, sizeof key->layouts, "%s", op->layouts);
    const char *at = copy_line(class_text, key->device_class, sizeof key->device_class);
    at = copy_line(at, key->environment, sizeof key->environment);
    copy_line(at, key->providers, sizeof key->providers);
    key->threads = job->threads;
    snprintf(key->strategy, sizeof key->strategy, "%s", job->strategy);
    snprintf(key->options, sizeof key->options, "%s", job->options);
    snprintf(key->prior, sizeof key->prior, "%s", job->prior);
    snprintf(key->pins, sizeof key->pins, "%s", op->pins != NULL ? op->pins : "");
    key->seed = job->seed;
    char kind[16];
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(key->device_class, "/"), key->device_class);
    snprintf(key->space_version, sizeof key->space_version, "%s", wpk_space_version_of(kind));
    snprintf(key->accuracy, sizeof key->accuracy, "%s", op->accuracy);
    key->conditions = op->conditions;
}

void wpk_search_key_hash(const struct wpk_search_key *key, char out[WPK_ID_MAX])
{
    const char *texts[] = {key->fingerprint,   key->layouts,  key->device_class,
                           key->environment,   key->strategy, key->options,
                           key->prior,         key->pins,     key->providers,
                           key->space_version, key->accuracy};
    struct wpk_crypto_hash hash;
    uint8_t digest[WPK_SHA256_SIZE];
    wpk_crypto_hash_init(&hash);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        wpk_crypto_hash_add(&hash, texts[i], strlen(texts[i]) + 1);
    }
    wpk_crypto_hash_add(&hash, &key->threads, sizeof key->threads);
    wpk_crypto_hash_add(&hash, &key->conditions, sizeof key->conditions);
    wpk_crypto_hash_add(&hash, &key->seed, sizeof key->seed);
    wpk_crypto_hash_finish(&hash, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }
}

const char *wpk_search_key_provider(struct wpk_coordinator *c, const struct wpk_search *search,
                                    const char *candidate)
{
    char *name = wpk_effect_memory(c, WPK_BACK_END_MAX, 1);
    wpk_back_end_provider(search->key.providers, candidate, name);
    return name;
}

void wpk_search_key_class(const struct wpk_search_key *key, char out[WPK_TIMING_CLASS_TEXT_MAX])
{
    char text[WPK_TIMING_CLASS_TEXT_MAX];
    snprintf(text, sizeof text, "%s\n%s\n%s", key->device_class, key->environment, key->providers);
    wpk_timing_class_strip(text, out);
}
