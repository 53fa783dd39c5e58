/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/kernel.h"

#include <stdio.h>
#include <string.h>

/* ---- numbers of threads */

int wpk_cuda_part(struct wpk_c_kernel *k, int64_t inside, int64_t count)
{
    struct wpk_cuda_launch *launch = k->launch;
    char name[WPK_FORM_NAME_MAX];
    for (int i = 0; i < launch->part_count; i++) {
        if (launch->part[i].inside == inside && launch->part[i].count == count) {
            return launch->part[i].atom;
        }
    }
    if (launch->part_count == WPK_CUDA_PARTS_MAX) {
        wpk_c_refuse(k, "too many loops over threads");
        return 0;
    }
    snprintf(name, sizeof(name), "thread%d", launch->part_count);
    int atom = wpk_form_variable(&k->forms, name, 0, count - 1);
    launch->part[launch->part_count++] =
        (struct wpk_cuda_part){.inside = inside, .count = count, .atom = atom};
    return atom;
}

static bool is_part(const struct wpk_c_kernel *k, int atom)
{
    for (int i = 0; i < k->launch->part_count; i++) {
        if (k->launch->part[i].atom == atom) {
            return true;
        }
    }
    return false;
}

/* ---- where tensors lie */

static bool is_placed(const struct wpk_c_kernel *k, int tensor)
{
    if (k->program->tensors[tensor].role != WPK_ROLE_INTERMEDIATE) {
        return false;
    }
    const struct wpk_nest_place *place = &wpk_c_entry_of(k, tensor)->place;
    return place->entry >= 0 && place->loop >= 0;
}

bool wpk_cuda_is_shared(const struct wpk_c_kernel *k, int tensor)
{
    return is_placed(k, tensor) && wpk_c_entry_of(k, tensor)->scope == WPK_SCOPE_SHARED;
}

bool wpk_cuda_is_private(const struct wpk_c_kernel *k, int tensor)
{
    return is_placed(k, tensor) && wpk_c_entry_of(k, tensor)->scope != WPK_SCOPE_SHARED;
}

void wpk_cuda_share(struct wpk_c_kernel *k, int tensor, int64_t elements)
{
    struct wpk_cuda_launch *launch = k->launch;
    int i = 0;
    while (i < launch->share_count && launch->share[i].tensor != tensor) {
        i++;
    }
    if (i == WPK_CUDA_SHARES_MAX) {
        wpk_c_refuse(k, "too many tensors in shared memory");
        return;
    }
    if (i == launch->share_count) {
        launch->share[launch->share_count++] = (struct wpk_cuda_share){.tensor = tensor};
    }
    if (launch->share[i].elements < elements) {
        launch->share[i].elements = elements;
    }
}

/* Each buffer begins at a multiple of 16 bytes. */
void wpk_cuda_put_share(struct wpk_c_kernel *k, int tensor, int64_t elements)
{
    const struct wpk_cuda_launch *launch = k->launch;
    if (launch->depth == 0) {
        wpk_cuda_share(k, tensor, elements);
        wpk_c_put(&k->text, "shared%d;\n", tensor);
        return;
    }
    elements = (elements + WPK_CUDA_VECTOR - 1) / WPK_CUDA_VECTOR * WPK_CUDA_VECTOR;
    struct wpk_form at = wpk_form_scale(&launch->buffer, elements, 0);
    wpk_cuda_share(k, tensor, elements * launch->depth);
    wpk_c_put(&k->text, "shared%d + ", tensor);
    wpk_c_put_form(&k->text, &at);
    wpk_c_put(&k->text, ";\n");
}

/* ---- elements of threads */

void wpk_cuda_count_cells(struct wpk_c_kernel *k, int64_t count)
{
    if (k->launch != NULL) {
        k->launch->cells += count;
    }
}

static struct wpk_form part_of(struct wpk_c_kernel *k, const struct wpk_form *at)
{
    struct wpk_form part = wpk_form_number(0);
    for (int i = 0; i < at->term_count; i++) {
        if (is_part(k, at->term[i].atom)) {
            struct wpk_form term = wpk_form_atom(at->term[i].atom, at->term[i].factor);
            part = wpk_form_add(&k->forms, &part, &term, 1);
        }
    }
    return part;
}

bool wpk_cuda_are_apart(struct wpk_c_kernel *k, const struct wpk_form *a, const struct wpk_form *b,
                        int64_t by)
{
    struct wpk_form apart = wpk_form_add(&k->forms, b, a, -1);
    return wpk_form_is_number(&apart) && apart.constant == by;
}

/* Note the number among those that are left of a thread's indices. */
static void add_own(struct wpk_c_storage *s, int d, const struct wpk_form *at)
{
    int count = s->own_count[d], i = 0;
    while (i < count && s->own_at[d][i] < at->constant) {
        i++;
    }
    if (count < 0 || (i < count && s->own_at[d][i] == at->constant && at->term_count == 0)) {
        return;
    }
    if (at->term_count > 0 || count == WPK_C_OWN_MAX || at->constant > INT32_MAX) {
        s->own_count[d] = -1;
        return;
    }
    memmove(&s->own_at[d][i + 1], &s->own_at[d][i], (size_t)(count - i) * sizeof(s->own_at[d][0]));
    s->own_at[d][i] = (int32_t)at->constant;
    s->own_count[d]++;
}

void wpk_cuda_localize(struct wpk_c_kernel *k, struct wpk_c_storage *s, struct wpk_form *at)
{
    for (int d = 0; d < s->rank; d++) {
        struct wpk_form part = part_of(k, &at[d]);
        if (!s->accessed) {
            s->part[d] = part;
            s->divided = s->divided || part.term_count > 0;
        }
        if (s->divided && !wpk_cuda_are_apart(k, &part, &s->part[d], 0)) {
            wpk_c_refuse(k, "a thread reads elements that are in registers of another: write scope "
                            "shared, or cut both stages alike");
        }
    }
    s->accessed = true;
    for (int d = 0; d < s->rank && s->divided; d++) {
        int64_t low = 0, high = 0;
        at[d] = wpk_form_add(&k->forms, &at[d], &s->part[d], -1);
        wpk_form_range(&k->forms, &at[d], &low, &high);
        s->own[d] = high + 1 > s->own[d] ? high + 1 : s->own[d];
        if (k->surveying) {
            add_own(s, d, &at[d]);
        } else {
            int i = 0;
            while (i < s->own_count[d] && s->own_at[d][i] != at[d].constant) {
                i++;
            }
            at[d] = s->own_count[d] < 0 ? at[d] : wpk_form_number(i);
        }
    }
}

/* ---- loads of four neighbours */

/* Note a load, once. */
static void note(struct wpk_c_kernel *k, int tensor, const struct wpk_form *at)
{
    struct wpk_cuda_launch *launch = k->launch;
    bool known = launch->noted_count == WPK_CUDA_NOTED_MAX ||
                 k->text.depth > launch->noting_depth || !k->storage[k->storage_of[tensor]]->global;
    for (int i = 0; i < launch->noted_count && !known; i++) {
        known =
            launch->noted[i].tensor == tensor && wpk_cuda_are_apart(k, &launch->noted[i].at, at, 0);
    }
    if (!known) {
        launch->noted[launch->noted_count++] = (struct wpk_cuda_fetch){.tensor = tensor, .at = *at};
    }
}

bool wpk_cuda_put_fetched(struct wpk_c_kernel *k, int tensor, const struct wpk_form *at)
{
    struct wpk_cuda_launch *launch = k->launch;
    if (launch->noting_depth > 0) {
        note(k, tensor, at);
        return false;
    }
    for (int i = 0; i < launch->fetched_count; i++) {
        struct wpk_form apart = wpk_form_number(-1);
        if (launch->fetched[i].tensor == tensor) {
            apart = wpk_form_add(&k->forms, at, &launch->fetched[i].at, -1);
        }
        if (wpk_form_is_number(&apart) && apart.constant >= 0 && apart.constant < WPK_CUDA_VECTOR) {
            wpk_c_put(&k->text, "f%d.%c", launch->fetched[i].name, "xyzw"[apart.constant]);
            return true;
        }
    }
    return false;
}
