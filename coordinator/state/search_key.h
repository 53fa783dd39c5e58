/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a search: operators with equal keys share a search. */
#ifndef WPK_COORDINATOR_STATE_SEARCH_KEY_H
#define WPK_COORDINATOR_STATE_SEARCH_KEY_H

#include "coordinator/state/timing_class.h"
#include "schema/job.h"

struct wpk_coordinator;
struct wpk_job_op_state;
struct wpk_search;

/* All that two searches must have in common to be the same; compared by its hash. Arrays are filled
 * up with zeros. */
struct wpk_search_key {
    char fingerprint[WPK_ID_MAX];
    char layouts[16];
    char device_class[2 * WPK_DEVICE_TEXT_MAX];
    char environment[WPK_ENVIRONMENT_MAX];
    int threads;
    char strategy[32];
    char options[WPK_JOB_OPTIONS_MAX]; /* of the strategy, as in schema/job.h */
    char prior[WPK_ID_MAX]; /* SHA-256; "": none */
    char pins[WPK_PINS_TEXT_MAX]; /* as in struct wpk_job_op_state */
    uint64_t seed;
    char providers[WPK_KEY_TEXT_MAX]; /* names joined by ';', first a list of our back ends */
    char space_version[16];
    char accuracy[WPK_ACCURACY_TEXT_MAX]; /* accuracy class of the answer */
    enum wpk_conditions conditions;
};

/* The key of the operator's search in the timing class with this text, to which the back ends that
 * the search uses were added. */
void wpk_search_key_make(const struct wpk_job_op_state *op, const char *class_text,
                         struct wpk_search_key *key);
void wpk_search_key_hash(const struct wpk_search_key *key, char out[WPK_ID_MAX]);
/* The text of the key's timing class, as wpk_timing_class_text() prints it, without back ends. */
void wpk_search_key_class(const struct wpk_search_key *key, char out[WPK_TIMING_CLASS_TEXT_MAX]);
/* The provider of a candidate's trial (search/back_end.h), in the effects' arena. */
const char *wpk_search_key_provider(struct wpk_coordinator *c, const struct wpk_search *search,
                                    const char *candidate);

#endif
