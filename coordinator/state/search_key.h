/* SPDX-License-Identifier: Apache-2.0 */
/* What makes two searches the same. */
#ifndef WPK_COORDINATOR_STATE_SEARCH_KEY_H
#define WPK_COORDINATOR_STATE_SEARCH_KEY_H

#include "coordinator/state/timing_class.h"

struct wpk_coordinator;
struct wpk_job_op_state;
struct wpk_search;

/* What makes two searches the same. Fixed arrays, zero-filled: compared field by field. */
struct wpk_search_key {
    char fingerprint[WPK_ID_MAX];
    char layouts[16];
    char device_class[2 * WPK_DEVICE_TEXT_MAX];
    char environment[WPK_ENVIRONMENT_MAX];
    int threads;
    char strategy[32];
    char parameters[WPK_PARAMETERS_MAX]; /* pins */
    uint64_t seed;
    char providers[WPK_KEY_TEXT_MAX]; /* names joined by ';', our own first */
    char space_version[16];
    char accuracy[WPK_ACCURACY_TEXT_MAX]; /* class that an answer has to fit */
    enum wpk_conditions conditions;
};

/* The key of the operator's search on devices of that class (wpk_timing_class_text()). */
void wpk_search_key_make(const struct wpk_job_op_state *op, const char *class_text,
                         struct wpk_search_key *key);
void wpk_search_key_hash(const struct wpk_search_key *key, char out[WPK_ID_MAX]);
/* Its class, as wpk_timing_class_text() prints it. */
void wpk_search_key_class(const struct wpk_search_key *key, char out[WPK_TIMING_CLASS_TEXT_MAX]);
/* The name of our own provider, the first of the key's, for an effect. */
const char *wpk_search_key_own_provider(struct wpk_coordinator *c, const struct wpk_search *search);

#endif
