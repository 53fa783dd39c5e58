/* SPDX-License-Identifier: Apache-2.0 */
#include "target/code.h"

#include "nest/target.h"
#include "search/transfer.h"
#include "target/c/print.h"
#include "target/codegen.h"
#include "target/gpu/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wpk_err print_halide(struct wpk_schedule *schedule, struct wpk_buf *out,
                            struct wpk_diag *diag)
{
    const bool is_gpu = wpk_target_is_gpu(schedule->target);
    const char *halide = wpk_back_end_name(is_gpu ? WPK_BACK_END_halide_cuda : WPK_BACK_END_halide);
    bool other = strcmp(schedule->by, halide) != 0;

    if (other) {
        wpk_buf_printf(out, "// Halide's program of the schedule; '%s' compiled the kernel.\n",
                       schedule->by);
    }
    snprintf(schedule->by, sizeof(schedule->by), "%s", halide);
    wpk_err err = wpk_codegen_check(schedule, diag);
    if (err != WPK_OK && other) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED,
                       "another back end compiled this kernel, and Halide has no program for "
                       "it: --schedule prints its schedule");
    }
    return err == WPK_OK ? wpk_schedule_print_halide(schedule, out) : err;
}

static wpk_err print_cuda(const struct wpk_schedule *schedule, struct wpk_buf *out,
                          struct wpk_diag *diag)
{
    struct wpk_cuda_plan *plan = WPK_DEMAND(calloc(1, sizeof(*plan))); /* too large for a stack */
    struct wpk_buf text = {0};
    wpk_err err = WPK_OK;

    if (!wpk_target_is_gpu(schedule->target)) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED, "'%s' compiled this kernel, which is for no GPU",
                       schedule->by);
    }
    err = err == WPK_OK ? wpk_cuda_print(schedule, "wpk_main", &text, plan, diag) : err;
    if (err == WPK_OK && strcmp(schedule->by, wpk_back_end_name(WPK_BACK_END_cuda)) != 0) {
        wpk_buf_printf(out, "// CUDA C's program of the schedule; '%s' compiled the kernel.\n",
                       schedule->by);
    }
    if (err == WPK_OK) {
        wpk_buf_append(out, text.data, text.size);
        for (int i = 0; i < plan->step_count; i++) {
            wpk_buf_printf(out, "// %s<<<%lld, %lld>>>\n", plan->step[i].entry,
                           (long long)plan->step[i].blocks, (long long)plan->step[i].threads);
        }
    }
    wpk_buf_fini(&text);
    free(plan);
    return err;
}

wpk_err wpk_code_print(enum wpk_code form, const char *schedule, struct wpk_buf *out,
                       struct wpk_diag *diag)
{
    struct wpk_schedule *parsed = WPK_DEMAND(calloc(1, sizeof(*parsed))); /* large */

    wpk_err err = wpk_schedule_parse(schedule, parsed, diag);
    if (err == WPK_OK) {
        int by = form == WPK_CODE_OWN    ? wpk_back_end_number(parsed->by)
                 : form == WPK_CODE_CUDA ? WPK_BACK_END_cuda
                                         : WPK_BACK_END_halide;
        err = wpk_nest_check(parsed->nest, diag); /* a worker may have sent anything */
        err = err != WPK_OK             ? err
              : by == WPK_BACK_END_c    ? wpk_c_print(parsed, "wpk_main", out, diag)
              : by == WPK_BACK_END_cuda ? print_cuda(parsed, out, diag)
                                        : print_halide(parsed, out, diag);
        wpk_schedule_fini(parsed);
    }
    free(parsed);
    return err;
}

wpk_err wpk_code_schedule(const struct wpk_space *space, const char *candidate, struct wpk_buf *out,
                          struct wpk_diag *diag)
{
    struct wpk_candidate read;
    struct wpk_schedule *schedule = WPK_DEMAND(calloc(1, sizeof(*schedule))); /* large */

    wpk_err err = wpk_space_fits(space, candidate, &read, diag);
    err = err == WPK_OK ? wpk_lower(space, &read, schedule, diag) : err;
    if (err == WPK_OK) {
        err = wpk_schedule_print(schedule, out);
        wpk_schedule_fini(schedule);
    }
    free(schedule);
    return err;
}
