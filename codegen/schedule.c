/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule as a data structure; its texts are in schedule_text.c and schedule_halide.c. */
#include "codegen/schedule.h"

#include "op/extract.h"

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
    free(schedule->directives);
    memset(schedule, 0, sizeof(*schedule));
}

struct wpk_directive *wpk_schedule_add(struct wpk_schedule *schedule, enum wpk_directive_kind kind,
                                       int stage, bool update)
{
    WPK_ASSERT(stage >= 0);
    if (schedule->directive_count == schedule->directive_capacity) {
        int capacity = schedule->directive_capacity == 0 ? 32 : 2 * schedule->directive_capacity;
        if (capacity > WPK_DIRECTIVES_MAX) {
            return NULL;
        }
        struct wpk_directive *grown =
            realloc(schedule->directives, (size_t)capacity * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        schedule->directives = grown;
        schedule->directive_capacity = capacity;
    }
    struct wpk_directive *directive = &schedule->directives[schedule->directive_count++];
    memset(directive, 0, sizeof(*directive));
    directive->kind = kind;
    directive->stage = stage;
    directive->update = update;
    return directive;
}

wpk_err wpk_schedule_split(struct wpk_schedule *schedule)
{
    wpk_program_fini(&schedule->main);
    wpk_program_fini(&schedule->prepare);
    return wpk_program_split_prepare(&schedule->program, &schedule->main, &schedule->prepare);
}

const char *wpk_directive_name(enum wpk_directive_kind kind)
{
    static const char *const names[] = {WPK_DIRECTIVE_LIST(WPK_LIST_TEXT)};
    WPK_ASSERT((int)kind >= 0 && kind < WPK_DIRECTIVE_COUNT);
    return names[kind];
}

const char *wpk_tail_name(enum wpk_tail tail)
{
    static const char *const names[] = {WPK_TAIL_LIST(WPK_LIST_TEXT)};
    WPK_ASSERT((int)tail >= 0 && tail < WPK_TAIL_COUNT);
    return names[tail];
}

bool wpk_schedule_expands(const struct wpk_schedule *schedule, const struct wpk_stage *stage)
{
    for (int i = 0; i < schedule->directive_count; i++) {
        const struct wpk_directive *d = &schedule->directives[i];
        if (d->kind == WPK_DIRECTIVE_EXPAND && &schedule->main.stages[d->stage] == stage) {
            return true;
        }
    }
    return false;
}

int wpk_schedule_find_stage(const struct wpk_program *program, const char *name)
{
    int tensor = wpk_program_find_tensor(program, name);
    return tensor < 0 ? -1 : wpk_program_writer(program, tensor);
}
