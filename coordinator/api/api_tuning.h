/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs for what lookups did not find. Lookups for one device class and as many threads go into one
 * job, as far as it takes them. Asked again it is the same job as long as that has not ended, and
 * on the day of its submission if it is done; else another one. For api_lookup.c alone. */
#ifndef WPK_COORDINATOR_API_API_TUNING_H
#define WPK_COORDINATOR_API_API_TUNING_H

#include "coordinator/api/api_call.h"
#include "coordinator/index/lookup.h"

/* What is begun and not submitted yet. A zeroed one is empty. */
struct wpk_tuning {
    struct wpk_tuning_job *first; /* owned */
};

void wpk_tuning_fini(struct wpk_tuning *tuning);

/* A job file around operators, which are objects with commas between them. `device`: the class that
 * it is for; "": any. */
void wpk_tuning_write(const char *ops, size_t size, const char *device, int threads,
                      struct wpk_buf *out);

#define WPK_TUNING_NAME "\"name\":"

/* Does the text, members of an operator in a job file, begin with its name? */
bool wpk_tuning_has_name(const struct wpk_buf *op);

/* One more: `op` has the members of an operator in a job file, its name first or not at all: then
 * it gets one. Two of one name go into two jobs. Its job's id is to
 * stand in the call's answer from here on; there the room for it is appended. */
void wpk_tuning_add(struct wpk_tuning *tuning, struct wpk_call *call,
                    const struct wpk_lookup *lookup, const struct wpk_buf *op);

/* On any thread: understand them, which takes long. False after answering with a problem. */
WPK_MUST_CHECK bool wpk_tuning_prepare(struct wpk_tuning *tuning, struct wpk_call *call);

/* On the loop: submit them, and write their ids into the answer; false after answering with a
 * problem. */
WPK_MUST_CHECK bool wpk_tuning_submit(struct wpk_tuning *tuning, struct wpk_call *call);

#endif
