/* SPDX-License-Identifier: Apache-2.0 */
#include "client/schedule_file.h"

#include "ir/canonical/canonical.h"
#include "ir/notation/definition.h"
#include "ir/notation/notation.h"
#include "search/transfer.h"
#include "target/lower.h"

#include <stdlib.h>

static wpk_err lower(const struct wpk_space *space, const char *text, struct wpk_buf *out,
                     struct wpk_diag *diag)
{
    struct wpk_candidate candidate;
    struct wpk_schedule *schedule = calloc(1, sizeof(*schedule)); /* too large for a stack */

    if (schedule == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_space_fits(space, text, &candidate, diag);
    if (err == WPK_OK) {
        err = wpk_lower(space, &candidate, schedule, diag);
    }
    if (err == WPK_OK) {
        err = wpk_schedule_print(schedule, out);
        wpk_schedule_fini(schedule);
    }
    free(schedule);
    return err;
}

wpk_err wpk_lookup_schedule(const struct wpk_job *job, int op, const struct wpk_lookup_found *found,
                            struct wpk_buf *out, struct wpk_diag *diag)
{
    const char *layouts = wpk_layouts_name(found->layouts);
    struct wpk_space_options options = {
        .layouts = layouts, .threads = found->threads, .back_ends = WPK_BACK_ENDS_ALL};
    struct wpk_program asked = {0};
    struct wpk_program program = {0}; /* canonical: candidates speak of that */
    struct wpk_space space = {0};
    struct wpk_buf whole = {0};
    struct wpk_buf schedule = {0};

    if (found->candidate[0] == '\0') {
        wpk_diag_set(diag,
                     "%s: the vendor's implementation has no schedule; wpkctl get --own gets "
                     "the best of our own",
                     job->ops[op].name);
        return WPK_ENOENT;
    }
    wpk_err err = wpk_device_of_class(found->device, &options.device);
    if (err == WPK_OK) {
        err = wpk_job_op_program(job, op, &asked, diag);
    }
    if (err == WPK_OK) {
        err = wpk_program_canonical(&asked, &program, NULL);
    }
    if (err == WPK_OK) {
        err = wpk_space_derive(&program, &options, &space, diag);
    }
    if (err == WPK_OK) {
        err = lower(&space, found->candidate, &schedule, diag);
    }
    if (err == WPK_OK) {
        err = wpk_program_print(&program, &whole);
    }
    if (err == WPK_OK) {
        wpk_schedule_file_print(wpk_buf_text(&whole), layouts, wpk_buf_text(&schedule), out);
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&whole);
    wpk_buf_fini(&schedule);
    wpk_space_fini(&space);
    wpk_program_fini(&program);
    wpk_program_fini(&asked);
    return err;
}
