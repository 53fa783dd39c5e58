/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/point.h"

bool wpk_cuda_is_placed(const struct wpk_nest_entry *entry, const struct wpk_cuda_definition *d,
                        int i)
{
    return !entry->inlined && entry->place.entry == d->entry && entry->place.update == d->update &&
           entry->place.loop == i - d->added && i >= d->added;
}

void wpk_cuda_count_parallel(struct wpk_cuda_definition *d, const int64_t *size, int64_t *blocks)
{
    d->threads = d->width;
    *blocks = 1;
    for (int i = d->count - 1; i >= 0; i--) {
        const struct wpk_nest_loop *loop = &d->loop[i];
        int64_t covered = size[loop->axis];
        for (int j = 0; j < i; j++) {
            bool cuts = d->loop[j].axis == loop->axis && d->loop[j].step < covered;
            covered = cuts ? d->loop[j].step : covered;
        }
        d->most[i] = (covered + loop->step - 1) / loop->step;
        if (wpk_bind_is_block(loop->binding)) {
            d->inside[i] = *blocks;
            *blocks *= d->most[i];
        } else if (wpk_bind_is_thread(loop->binding)) {
            d->inside[i] = d->threads;
            d->threads *= d->most[i];
        }
    }
}

bool wpk_cuda_has_thread_loop(const struct wpk_cuda_definition *d, enum wpk_loop_binding first,
                              enum wpk_loop_binding last)
{
    bool has = false;
    for (int i = 0; i < d->count; i++) {
        has = has || (d->loop[i].binding >= first && d->loop[i].binding <= last);
    }
    return has;
}

void wpk_cuda_begin_definition(struct wpk_c_kernel *k, int e, bool update,
                               struct wpk_cuda_definition *d)
{
    const struct wpk_stage *stage = &k->program->stages[k->nest->entry[e].stage];
    *d = (struct wpk_cuda_definition){.entry = e, .update = update, .stage = stage};
    d->count = wpk_c_list_loops(k, e, update, d->loop, &d->added);
    for (int i = 0; i < d->count; i++) {
        for (int p = e + 1; p < k->nest->entry_count; p++) {
            d->hosts[i] = d->hosts[i] || wpk_cuda_is_placed(&k->nest->entry[p], d, i);
        }
    }
    const struct wpk_nest_entry *entry = &k->nest->entry[e];
    for (int i = 0; i < entry->update.count; i++) {
        enum wpk_loop_binding binding = wpk_nest_at(k->nest, &entry->update, i)->binding;
        d->shares =
            d->shares || (wpk_nest_is_shared_out(k->nest, entry, i) && wpk_bind_is_thread(binding));
    }
    d->own = wpk_cuda_is_private(k, d->stage->output);
    d->width = wpk_cuda_has_thread_loop(d, WPK_BIND_THREAD_Z, WPK_BIND_THREAD_Y) &&
                       !wpk_cuda_has_thread_loop(d, WPK_BIND_THREAD_X, WPK_BIND_THREAD_X)
                   ? wpk_nest_width(k->nest, entry)
                   : 1;
}

bool wpk_cuda_has_parts(const struct wpk_cuda_definition *d)
{
    return d->update && d->count > d->added && wpk_bind_is_block(d->loop[d->added].binding) &&
           d->loop[d->added].axis >= d->stage->rank;
}
