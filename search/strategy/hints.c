/* SPDX-License-Identifier: Apache-2.0 */
#include "search/strategy/seen.h"

#include "common/format.h"

#include <math.h>

bool wpk_hints_wait(const struct wpk_hints *hints)
{
    return hints->next < hints->count && hints->asked < WPK_HINTS_ASKED;
}

int wpk_hints_take(struct wpk_hints *hints, const struct wpk_seen *seen,
                   const struct wpk_space *space)
{
    while (wpk_hints_wait(hints)) {
        int number = hints->next++;
        if (!wpk_seen_has(seen, space, &hints->hint[number].candidate)) {
            hints->asked++;
            return number;
        }
    }
    return -1;
}

void wpk_hints_tell(struct wpk_hints *hints, int number, double time)
{
    hints->told++;
    if (isfinite(time)) {
        hints->shift += time - wpk_real_log(hints->hint[number].time_ns);
        hints->timed++;
    }
}

const struct wpk_hint *wpk_hints_learn(struct wpk_hints *hints, int *next, double *time)
{
    bool ready = !hints->learnt && !wpk_hints_wait(hints) && hints->told == hints->asked;
    int number = *next > hints->next ? *next : hints->next;
    if (!ready || hints->timed == 0 || number >= hints->count) {
        hints->learnt = hints->learnt || ready;
        return NULL;
    }
    *next = number + 1;
    *time = wpk_real_log(hints->hint[number].time_ns) + hints->shift / hints->timed;
    return &hints->hint[number];
}

void wpk_hints_save(const struct wpk_hints *hints, struct wpk_buf *out)
{
    wpk_snapshot_put_number(out, (uint64_t)hints->next);
    wpk_snapshot_put_number(out, (uint64_t)hints->asked);
    wpk_snapshot_put_number(out, (uint64_t)hints->told);
    wpk_snapshot_put_number(out, (uint64_t)hints->timed);
    wpk_snapshot_put_real(out, hints->shift);
    wpk_snapshot_put_number(out, hints->learnt);
}

void wpk_hints_load(struct wpk_hints *hints, struct wpk_snapshot_reader *reader)
{
    hints->next = (int)wpk_snapshot_number(reader, (uint64_t)hints->count);
    hints->asked = (int)wpk_snapshot_number(reader, (uint64_t)hints->next);
    hints->told = (int)wpk_snapshot_number(reader, (uint64_t)hints->asked);
    hints->timed = (int)wpk_snapshot_number(reader, (uint64_t)hints->told);
    hints->shift = wpk_snapshot_real(reader);
    hints->learnt = wpk_snapshot_number(reader, 1) != 0;
    if (!isfinite(hints->shift)) {
        reader->err = WPK_EPARSE;
    }
}
