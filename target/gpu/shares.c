/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of an element that several threads of a block share. Each thread adds up its own. Those
 * of one warp exchange what they have, lane by lane at distances that are powers of two, so that
 * all of them have the same bits. The first ones of each warp leave theirs in shared memory, where
 * every thread takes those of its element in the order of their numbers, or, if whole warps share
 * an element, in another exchange. */
#include "common/cuda_machine.h"
#include "target/gpu/point.h"

#include <inttypes.h>
#include <stdio.h>

#define WARP_ALL "0xffffffffu"

/* Of the loops over threads that share terms: how many of a loop's iterations are in one warp. */
struct sharing {
    int64_t within[WPK_C_LOOPS_MAX];
    int64_t apart; /* threads of an element that have something left to join then */
};

static bool is_power_of_two(int64_t number)
{
    return (number & (number - 1)) == 0;
}

static bool is_shared_out(const struct wpk_cuda_definition *d, int i)
{
    return d->update && d->shares && wpk_bind_is_thread(d->loop[i].binding) &&
           d->loop[i].axis >= d->stage->rank;
}

static struct sharing find_sharing(const struct wpk_cuda_definition *d)
{
    struct sharing found = {.apart = 1};
    for (int i = 0; i < d->count; i++) {
        if (is_shared_out(d, i)) {
            int64_t lanes = d->inside[i] < WPK_CUDA_WARP ? WPK_CUDA_WARP / d->inside[i] : 1;
            bool exchange = is_power_of_two(d->inside[i]) && is_power_of_two(d->most[i]);
            found.within[i] = !exchange ? 1 : d->most[i] < lanes ? d->most[i] : lanes;
            found.apart *= d->most[i] / found.within[i];
        }
    }
    return found;
}

/* ---- numbers of threads */

/* Append "FACTOR * (the variable of a loop's part)" to a mixed number; `*count` is its range. */
static void append(struct wpk_c_kernel *k, int64_t inside, int64_t most, struct wpk_form *number,
                   int64_t *count)
{
    struct wpk_form digit = wpk_form_atom(wpk_cuda_part(k, inside, most), *count);
    *number = wpk_form_add(&k->forms, number, &digit, 1);
    *count *= most;
}

/* The number of a thread among those with different elements. */
static struct wpk_form owner_of(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d)
{
    struct wpk_form number = wpk_form_number(0);
    int64_t count = 1;
    for (int i = d->count - 1; i >= 0; i--) {
        if (wpk_bind_is_thread(d->loop[i].binding) && !is_shared_out(d, i) && d->most[i] > 1) {
            append(k, d->inside[i], d->most[i], &number, &count);
        }
    }
    return number;
}

/* The number of a thread among those of an element that are left. */
static struct wpk_form apart_of(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                                const struct sharing *sharing)
{
    struct wpk_form number = wpk_form_number(0);
    int64_t count = 1;
    for (int i = d->count - 1; i >= 0; i--) {
        if (is_shared_out(d, i) && d->most[i] > sharing->within[i]) {
            append(k, d->inside[i] * sharing->within[i], d->most[i] / sharing->within[i], &number,
                   &count);
        }
    }
    return number;
}

int64_t wpk_cuda_owners(const struct wpk_cuda_definition *d)
{
    int64_t owners = d->threads;
    for (int i = 0; i < d->count; i++) {
        owners /= is_shared_out(d, i) ? d->most[i] : 1;
    }
    return owners;
}

void wpk_cuda_put_owner(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d)
{
    if (d->shares) {
        struct wpk_form owner = owner_of(k, d);
        wpk_c_put_form(&k->text, &owner);
    } else {
        wpk_c_put(&k->text,
                  d->threads < k->launch->surveyed ? "(i32)threadIdx.x %% %" PRId64
                                                   : "(i32)threadIdx.x",
                  d->threads);
    }
}

/* Print "if (the thread is the first of those that exchanged) {"; `all`: that share at all. */
static void open_first(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                       const struct sharing *sharing, bool all)
{
    const char *and = "if (";
    wpk_c_indent(&k->text);
    if (d->threads < k->launch->surveyed) {
        wpk_c_put(&k->text, "if (threadIdx.x < %" PRId64, d->threads);
        and = " && ";
    }
    for (int i = 0; i < d->count; i++) {
        int64_t count = !is_shared_out(d, i) ? 1 : all ? d->most[i] : sharing->within[i];
        if (count > 1) {
            struct wpk_form first = wpk_form_atom(wpk_cuda_part(k, d->inside[i], count), 1);
            wpk_c_put(&k->text, "%s", and);
            wpk_c_put_form(&k->text, &first);
            wpk_c_put(&k->text, " == 0");
            and = " && ";
        }
    }
    wpk_c_put(&k->text, "%s{\n", and[0] == 'i' ? "" : ") ");
    k->text.depth++;
}

void wpk_cuda_open_first(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d)
{
    struct sharing sharing = find_sharing(d);
    open_first(k, d, &sharing, true);
}

/* ---- joining */

/* Print "CELL = join(CELL, " and after what a function prints ");". */
static struct wpk_c_value begin_join(struct wpk_c_kernel *k, int tensor, int64_t cell)
{
    struct wpk_c_value before = wpk_c_begin(&k->text, k->storage[k->storage_of[tensor]]->dtype, 1);
    wpk_c_storage_put_cell(k, tensor, cell);
    wpk_c_end(&k->text);
    return before;
}

static void end_join(struct wpk_c_kernel *k, const struct wpk_stage *stage, int64_t cell,
                     const struct wpk_c_value *before, const struct wpk_c_value *other)
{
    struct wpk_c_value total = wpk_c_binary(k, wpk_c_joining(stage->reduction), before, other);
    wpk_c_indent(&k->text);
    wpk_c_storage_put_cell(k, stage->output, cell);
    wpk_c_put(&k->text, " = ");
    wpk_c_put_value(&k->text, &total, 1);
    wpk_c_end(&k->text);
}

/* Each lane joins what the one at a distance has. */
static void exchange(struct wpk_c_kernel *k, const struct wpk_stage *stage, int64_t cells,
                     int64_t distance)
{
    for (int64_t i = 0; i < cells; i++) {
        wpk_c_line(&k->text, "{");
        struct wpk_c_value before = begin_join(k, stage->output, i);
        struct wpk_c_value other = wpk_c_begin(&k->text, before.dtype, 1);
        wpk_c_put(&k->text, "__shfl_xor_sync(" WARP_ALL ", ");
        wpk_c_storage_put_cell(k, stage->output, i);
        wpk_c_put(&k->text, ", %" PRId64 ")", distance);
        wpk_c_end(&k->text);
        end_join(k, stage, i, &before, &other);
        wpk_c_line(&k->text, "}");
    }
}

static void put_left(struct wpk_c_kernel *k, int tensor, const struct wpk_form *at, int64_t cell,
                     int64_t stride)
{
    struct wpk_form place = wpk_form_scale(at, 1, cell * stride);
    wpk_c_put(&k->text, "shared%d[", tensor);
    wpk_c_put_form(&k->text, &place);
    wpk_c_put(&k->text, "]");
}

/* The first threads of each warp leave what they have. Number `apart` of an element's is behind the
 * same of all others. */
static void leave(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                  const struct sharing *sharing, int64_t cells)
{
    int64_t owners = wpk_cuda_owners(d);
    struct wpk_form at = owner_of(k, d), apart = apart_of(k, d, sharing);
    at = wpk_form_add(&k->forms, &at, &apart, owners);
    open_first(k, d, sharing, false);
    for (int64_t i = 0; i < cells; i++) {
        wpk_c_indent(&k->text);
        put_left(k, d->stage->output, &at, i, owners * sharing->apart);
        wpk_c_put(&k->text, " = ");
        wpk_c_storage_put_cell(k, d->stage->output, i);
        wpk_c_put(&k->text, ";\n");
    }
    wpk_c_line(&k->text, "}");
}

static void take(struct wpk_c_kernel *k, int tensor, const struct wpk_form *at, int64_t cells,
                 int64_t stride)
{
    for (int64_t i = 0; i < cells; i++) {
        wpk_c_indent(&k->text);
        wpk_c_storage_put_cell(k, tensor, i);
        wpk_c_put(&k->text, " = ");
        put_left(k, tensor, at, i, stride);
        wpk_c_put(&k->text, ";\n");
    }
}

static void take_in_order(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                          int64_t apart, int64_t cells)
{
    int64_t owners = wpk_cuda_owners(d);
    struct wpk_form at = owner_of(k, d);
    take(k, d->stage->output, &at, cells, owners * apart);
    char name[WPK_FORM_NAME_MAX];
    snprintf(name, sizeof(name), "n%d_share", k->text.name_count++);
    int v = wpk_form_variable(&k->forms, name, 1, apart - 1);
    wpk_c_line(&k->text, "for (i32 %s = 1; %s < %" PRId64 "; %s++) {", name, name, apart, name);
    struct wpk_form number = wpk_form_atom(v, owners);
    at = wpk_form_add(&k->forms, &at, &number, 1);
    for (int64_t i = 0; i < cells; i++) {
        wpk_c_line(&k->text, "{");
        struct wpk_c_value before = begin_join(k, d->stage->output, i);
        struct wpk_c_value other = wpk_c_begin(&k->text, before.dtype, 1);
        put_left(k, d->stage->output, &at, i, owners * apart);
        wpk_c_end(&k->text);
        end_join(k, d->stage, i, &before, &other);
        wpk_c_line(&k->text, "}");
    }
    wpk_c_line(&k->text, "}");
}

static void join_warps(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                       const struct sharing *sharing, int64_t cells)
{
    int64_t apart = sharing->apart;
    bool whole = false; /* warps */
    for (int i = 0; i < d->count; i++) {
        whole = whole ||
                (is_shared_out(d, i) && d->inside[i] == 1 && sharing->within[i] == WPK_CUDA_WARP);
    }
    wpk_cuda_share(k, d->stage->output, cells * wpk_cuda_owners(d) * apart);
    if (k->launch->repeats > 0) {
        wpk_cuda_put_barrier(k);
    }
    leave(k, d, sharing, cells);
    wpk_cuda_put_barrier(k);
    k->launch->wrote = true;
    if (whole && is_power_of_two(apart) && apart <= WPK_CUDA_WARP) {
        /* All lanes of a warp have one element: each takes what one warp left. */
        int64_t owners = wpk_cuda_owners(d);
        struct wpk_form at = owner_of(k, d);
        struct wpk_form lane = wpk_form_atom(wpk_cuda_part(k, 1, apart), owners);
        at = wpk_form_add(&k->forms, &at, &lane, 1);
        take(k, d->stage->output, &at, cells, owners * apart);
        for (int64_t distance = apart / 2; distance > 0; distance /= 2) {
            exchange(k, d->stage, cells, distance);
        }
    } else {
        take_in_order(k, d, apart, cells);
    }
}

void wpk_cuda_join_shares(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d)
{
    int tensor = d->stage->output;
    int64_t cells = k->surveying ? 1 : wpk_c_storage_cells(k, tensor); /* not known before */
    struct sharing sharing = find_sharing(d);
    if (k->storage[k->storage_of[tensor]]->dtype == WPK_BOOL) {
        wpk_c_refuse(k, "threads share the terms of numbers only");
        return;
    }
    for (int i = 0; i < d->count; i++) {
        for (int64_t n = sharing.within[i] / 2; n > 0; n /= 2) {
            exchange(k, d->stage, cells, n * d->inside[i]);
        }
    }
    if (sharing.apart > 1) {
        join_warps(k, d, &sharing, cells);
    }
}
