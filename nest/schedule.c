/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule as a data structure; its text is in schedule_text.c. */
#include "nest/schedule.h"

#include "ir/derive/extract.h"
#include "nest/expand.h"

#include <stdlib.h>
#include <string.h>

void wpk_schedule_fini(struct wpk_schedule *schedule)
{
    if (schedule == NULL) {
        return;
    }
    wpk_program_fini(&schedule->program);
    wpk_program_fini(&schedule->main);
    wpk_program_fini(&schedule->prepare);
    free(schedule->nest);
    memset(schedule, 0, sizeof(*schedule));
}

wpk_err wpk_schedule_add_nest(struct wpk_schedule *schedule)
{
    WPK_ASSERT(schedule->nest == NULL);
    schedule->nest = calloc(1, sizeof(*schedule->nest));
    if (schedule->nest == NULL) {
        return WPK_ENOMEM;
    }
    schedule->nest->program = &schedule->main;
    schedule->nest->tile.place.entry = -1;
    return WPK_OK;
}

wpk_err wpk_schedule_split(struct wpk_schedule *schedule)
{
    wpk_program_fini(&schedule->main);
    wpk_program_fini(&schedule->prepare);
    return wpk_program_split_prepare(&schedule->program, &schedule->main, &schedule->prepare);
}

bool wpk_schedule_expands(const struct wpk_schedule *schedule, const struct wpk_stage *stage)
{
    const struct wpk_nest *nest = schedule->nest;
    return nest->entry[nest->entry_count - 1 - (stage - schedule->main.stages)].expanded;
}

wpk_err wpk_schedule_expand(const struct wpk_schedule *schedule, struct wpk_program *out)
{
    bool sums[WPK_STAGES_MAX];
    for (int s = 0; s < schedule->main.stage_count; s++) {
        sums[s] = wpk_schedule_expands(schedule, &schedule->main.stages[s]);
    }
    wpk_err err = wpk_program_expand(&schedule->main, sums, out);
    return err == WPK_ENOSPC ? WPK_ERANGE : err; /* who builds it also meets full disks */
}
