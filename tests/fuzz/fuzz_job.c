/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a job file, operators included. An accepted job survives a round trip; a refused one has
 * a reason. */
#include "ir/notation/definition.h"
#include "schema/job.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_round_trip(const struct wpk_job *job)
{
    struct wpk_buf once = {0};
    struct wpk_buf twice = {0};
    struct wpk_job again;

    WPK_ASSERT(wpk_job_encode(job, &once) == WPK_OK);
    /* Escapes may lengthen it past the limit. */
    if (once.size <= WPK_JOB_SIZE_MAX) {
        WPK_ASSERT(wpk_job_decode(once.data, once.size, &again, NULL) == WPK_OK);
        WPK_ASSERT(wpk_job_encode(&again, &twice) == WPK_OK);
        WPK_ASSERT(strcmp(once.data, twice.data) == 0);
        wpk_job_fini(&again);
    }
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wpk_job job = {0};
    struct wpk_diag diag = {0};

    wpk_err err = wpk_job_decode((const char *)data, size, &job, &diag);
    if (err != WPK_OK) {
        WPK_ASSERT(diag.text[0] != '\0');
        return 0;
    }
    check_round_trip(&job);
    err = wpk_job_check(&job, &diag);
    if (err != WPK_OK) {
        WPK_ASSERT(diag.text[0] != '\0');
        WPK_ASSERT(diag.line > 0);
    }
    wpk_job_fini(&job);
    return 0;
}
