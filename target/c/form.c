/* SPDX-License-Identifier: Apache-2.0 */
#include "target/c/form.h"

#include "ir/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATOMS_MAX (1 << 16)
#define FAR ((int64_t)1 << 60) /* beyond all sizes: sums of ranges do not overflow */

void wpk_forms_fini(struct wpk_forms *forms)
{
    free(forms->atom);
    *forms = (struct wpk_forms){0};
}

/* ---- making forms */

struct wpk_form wpk_form_number(int64_t constant)
{
    return (struct wpk_form){.constant = constant};
}

static int add_atom(struct wpk_forms *forms, const struct wpk_atom *atom)
{
    if (forms->count == forms->capacity) {
        int capacity = forms->capacity == 0 ? 64 : 2 * forms->capacity;
        struct wpk_atom *grown =
            capacity > ATOMS_MAX ? NULL
                                 : realloc(forms->atom, (size_t)capacity * sizeof(*forms->atom));
        if (grown == NULL) {
            forms->full = true;
            return 0;
        }
        forms->atom = grown;
        forms->capacity = capacity;
    }
    forms->atom[forms->count] = *atom;
    return forms->count++;
}

int wpk_form_variable(struct wpk_forms *forms, const char *name, int64_t low, int64_t high)
{
    struct wpk_atom atom = {.kind = WPK_ATOM_VARIABLE, .low = low, .high = high};
    snprintf(atom.name, sizeof(atom.name), "%s", name);
    return add_atom(forms, &atom);
}

struct wpk_form wpk_form_data(struct wpk_forms *forms, const char *name, bool by_lane)
{
    int found = forms->count - 1;
    while (found >= 0 && (forms->atom[found].kind != WPK_ATOM_VARIABLE ||
                          strcmp(forms->atom[found].name, name) != 0)) {
        found--;
    }
    if (found < 0) {
        found = wpk_form_variable(forms, name, -FAR, FAR);
        forms->atom[found].by_lane = by_lane && !forms->full;
    }
    return wpk_form_atom(found, 1);
}

struct wpk_form wpk_form_atom(int atom, int64_t factor)
{
    struct wpk_form form = {.term_count = factor != 0};
    form.term[0] = (struct wpk_form_term){.atom = atom, .factor = factor};
    return form;
}

static struct wpk_form add_terms(struct wpk_forms *forms, const struct wpk_form *a,
                                 const struct wpk_form *b, int64_t factor)
{
    struct wpk_form out = {.constant = a->constant + factor * b->constant,
                           .lane = a->lane + factor * b->lane};
    for (int i = 0, j = 0; i < a->term_count || j < b->term_count;) {
        struct wpk_form_term term = {.atom = 0};
        bool left = i < a->term_count && (j == b->term_count || a->term[i].atom <= b->term[j].atom);
        bool right =
            j < b->term_count && (i == a->term_count || b->term[j].atom <= a->term[i].atom);
        term.atom = left ? a->term[i].atom : b->term[j].atom;
        term.factor += left ? a->term[i++].factor : 0;
        term.factor += right ? factor * b->term[j++].factor : 0;
        if (term.factor != 0 && out.term_count == WPK_FORM_TERMS_MAX) {
            forms->full = true;
        } else if (term.factor != 0) {
            out.term[out.term_count++] = term;
        }
    }
    return out;
}

struct wpk_form wpk_form_scale(const struct wpk_form *a, int64_t factor, int64_t constant)
{
    struct wpk_form out = *a;
    out.constant = a->constant * factor + constant;
    out.lane = a->lane * factor;
    out.term_count = factor == 0 ? 0 : a->term_count;
    for (int i = 0; i < out.term_count; i++) {
        out.term[i].factor *= factor;
    }
    return out;
}

/* Compared field by field: a form has padding, and terms beyond its last. */
static bool is_same(const struct wpk_form *a, const struct wpk_form *b)
{
    bool same = a->constant == b->constant && a->lane == b->lane && a->term_count == b->term_count;
    for (int i = 0; i < a->term_count && same; i++) {
        same = a->term[i].atom == b->term[i].atom && a->term[i].factor == b->term[i].factor;
    }
    return same;
}

/* ---- sums */

/* Take a remainder and the quotient of the same form by the same divisor out of a sum in which they
 * make up a multiple of that form, which is added in their stead: n * (q / n) + q % n is q. False
 * if there are none. */
static bool join(struct wpk_forms *forms, struct wpk_form *sum)
{
    for (int r = 0; r < sum->term_count; r++) {
        const struct wpk_form_term rest = sum->term[r];
        const struct wpk_atom *remainder = &forms->atom[rest.atom];
        for (int q = 0; q < sum->term_count && remainder->kind == WPK_ATOM_REMAINDER; q++) {
            const struct wpk_form_term whole = sum->term[q];
            const struct wpk_atom *quotient = &forms->atom[whole.atom];
            if (quotient->kind != WPK_ATOM_QUOTIENT || quotient->divisor != remainder->divisor ||
                whole.factor != rest.factor * quotient->divisor ||
                !is_same(&quotient->of, &remainder->of)) {
                continue;
            }
            struct wpk_form both = wpk_form_atom(rest.atom, rest.factor), of = remainder->of;
            struct wpk_form of_whole = wpk_form_atom(whole.atom, whole.factor);
            *sum = add_terms(forms, sum, &both, -1);
            *sum = add_terms(forms, sum, &of_whole, -1);
            *sum = add_terms(forms, sum, &of, rest.factor);
            return true;
        }
    }
    return false;
}

struct wpk_form wpk_form_add(struct wpk_forms *forms, const struct wpk_form *a,
                             const struct wpk_form *b, int64_t factor)
{
    struct wpk_form sum = add_terms(forms, a, b, factor);
    while (join(forms, &sum)) {
    }
    return sum;
}

/* ---- quotients and remainders */

static int64_t floor_divide(int64_t a, int64_t divisor)
{
    return a / divisor - (a % divisor < 0);
}

static int64_t floor_modulo(int64_t a, int64_t divisor)
{
    return a - divisor * floor_divide(a, divisor);
}

/* The remainders of the form's numbers. */
static struct wpk_form rest_of(const struct wpk_form *a, int64_t divisor)
{
    struct wpk_form rest = {.constant = floor_modulo(a->constant, divisor),
                            .lane = floor_modulo(a->lane, divisor)};
    for (int i = 0; i < a->term_count; i++) {
        struct wpk_form_term term = a->term[i];
        term.factor = floor_modulo(term.factor, divisor);
        if (term.factor != 0) {
            rest.term[rest.term_count++] = term;
        }
    }
    return rest;
}

static struct wpk_form find_atom(struct wpk_forms *forms, struct wpk_atom *wanted)
{
    int found = -1;
    wanted->by_lane = !wpk_form_is_uniform(forms, &wanted->of);
    for (int i = 0; i < forms->count && found < 0; i++) {
        const struct wpk_atom *atom = &forms->atom[i];
        bool same = atom->kind == wanted->kind && atom->divisor == wanted->divisor &&
                    atom->low == wanted->low && atom->high == wanted->high;
        found = same && is_same(&atom->of, &wanted->of) ? i : found;
    }
    return wpk_form_atom(found >= 0 ? found : add_atom(forms, wanted), 1);
}

/* Cut off what is smaller than the common divisor of all else: of (8 i + 3) / 16 the 3. Returns the
 * common divisor, by which rest and divisor are then divided, or 1. */
static int64_t cut_small(const struct wpk_forms *forms, struct wpk_form *rest, int64_t *divisor,
                         struct wpk_form *small)
{
    for (int pass = -1; pass < rest->term_count; pass++) {
        int64_t bound = pass < 0 ? 0 : llabs(rest->term[pass].factor), common = *divisor;
        struct wpk_form large = {0};
        *small = (struct wpk_form){.lane = rest->lane};
        for (int i = 0; i < rest->term_count; i++) {
            struct wpk_form *part = llabs(rest->term[i].factor) > bound ? &large : small;
            part->term[part->term_count++] = rest->term[i];
            common = part == &large ? wpk_gcd(common, rest->term[i].factor) : common;
        }
        int64_t low = 0, high = 0;
        small->constant = floor_modulo(rest->constant, common);
        large.constant = rest->constant - small->constant;
        wpk_form_range(forms, small, &low, &high);
        if (common > 1 && low >= 0 && high < common) {
            *rest = large;
            for (int i = 0; i < rest->term_count; i++) {
                rest->term[i].factor /= common;
            }
            rest->constant /= common;
            *divisor /= common;
            return common;
        }
    }
    *small = (struct wpk_form){.constant = 0};
    return 1;
}

struct wpk_form wpk_form_divide(struct wpk_forms *forms, const struct wpk_form *a, int64_t divisor)
{
    struct wpk_form whole = {.constant = floor_divide(a->constant, divisor),
                             .lane = floor_divide(a->lane, divisor)};
    struct wpk_form rest = rest_of(a, divisor);
    int64_t low = 0, high = 0;
    for (int i = 0; i < a->term_count; i++) {
        struct wpk_form_term term = a->term[i];
        term.factor = floor_divide(term.factor, divisor);
        if (term.factor != 0) {
            whole.term[whole.term_count++] = term;
        }
    }
    wpk_form_range(forms, &rest, &low, &high);
    if (floor_divide(low, divisor) == floor_divide(high, divisor)) {
        whole.constant += floor_divide(low, divisor);
        return whole;
    }
    struct wpk_form small, quotient;
    if (cut_small(forms, &rest, &divisor, &small) > 1) {
        quotient = wpk_form_divide(forms, &rest, divisor);
    } else {
        struct wpk_atom atom = {.kind = WPK_ATOM_QUOTIENT, .divisor = divisor, .of = rest};
        quotient = find_atom(forms, &atom);
    }
    return wpk_form_add(forms, &whole, &quotient, 1);
}

struct wpk_form wpk_form_modulo(struct wpk_forms *forms, const struct wpk_form *a, int64_t divisor)
{
    struct wpk_form rest = rest_of(a, divisor);
    int64_t low = 0, high = 0;
    wpk_form_range(forms, &rest, &low, &high);
    if (floor_divide(low, divisor) == floor_divide(high, divisor)) {
        rest.constant -= divisor * floor_divide(low, divisor);
        return rest;
    }
    struct wpk_form small;
    int64_t common = cut_small(forms, &rest, &divisor, &small);
    if (common > 1) {
        rest = wpk_form_modulo(forms, &rest, divisor);
        return wpk_form_add(forms, &small, &rest, common);
    }
    struct wpk_atom atom = {.kind = WPK_ATOM_REMAINDER, .divisor = divisor, .of = rest};
    return find_atom(forms, &atom);
}

struct wpk_form wpk_form_limit(struct wpk_forms *forms, const struct wpk_form *a, int64_t low,
                               int64_t high)
{
    int64_t least = 0, most = 0;
    wpk_form_range(forms, a, &least, &most);
    if (least >= low && most <= high) {
        return *a;
    }
    if (most <= low || least >= high) {
        return wpk_form_number(most <= low ? low : high);
    }
    struct wpk_atom atom = {.kind = WPK_ATOM_LIMITED, .low = low, .high = high, .of = *a};
    return find_atom(forms, &atom);
}

struct wpk_form wpk_form_at_lane(struct wpk_forms *forms, const struct wpk_form *a,
                                 const struct wpk_form *at)
{
    struct wpk_form out = wpk_form_number(a->constant);
    out = wpk_form_add(forms, &out, at, a->lane);
    for (int i = 0; i < a->term_count; i++) {
        const struct wpk_atom atom = forms->atom[a->term[i].atom];
        struct wpk_form part = wpk_form_atom(a->term[i].atom, 1);
        if (atom.by_lane && atom.kind == WPK_ATOM_VARIABLE) {
            struct wpk_buf lane = {.size_max = WPK_FORM_NAME_MAX};
            char name[2 * WPK_FORM_NAME_MAX + 3];
            wpk_form_print(forms, at, &lane);
            snprintf(name, sizeof(name), "%s[%s]", atom.name, wpk_buf_text(&lane));
            forms->full = forms->full || strlen(name) >= WPK_FORM_NAME_MAX;
            wpk_buf_fini(&lane);
            part = wpk_form_data(forms, name, false);
        } else if (atom.by_lane) {
            struct wpk_form of = wpk_form_at_lane(forms, &atom.of, at);
            part = atom.kind == WPK_ATOM_QUOTIENT ? wpk_form_divide(forms, &of, atom.divisor)
                   : atom.kind == WPK_ATOM_REMAINDER
                       ? wpk_form_modulo(forms, &of, atom.divisor)
                       : wpk_form_limit(forms, &of, atom.low, atom.high);
        }
        out = wpk_form_add(forms, &out, &part, a->term[i].factor);
    }
    return out;
}

/* ---- reading */

bool wpk_form_is_number(const struct wpk_form *a)
{
    return a->term_count == 0 && a->lane == 0;
}

bool wpk_form_is_even(const struct wpk_forms *forms, const struct wpk_form *a)
{
    bool even = true;
    for (int i = 0; i < a->term_count; i++) {
        even = even && !forms->atom[a->term[i].atom].by_lane;
    }
    return even;
}

bool wpk_form_is_uniform(const struct wpk_forms *forms, const struct wpk_form *a)
{
    return a->lane == 0 && wpk_form_is_even(forms, a);
}

static int64_t near(int64_t value)
{
    return value > FAR ? FAR : value < -FAR ? -FAR : value;
}

static void atom_range(const struct wpk_forms *forms, const struct wpk_atom *atom, int64_t *low,
                       int64_t *high)
{
    *low = atom->low;
    *high = atom->high;
    if (atom->kind == WPK_ATOM_VARIABLE) {
        return;
    }
    wpk_form_range(forms, &atom->of, low, high);
    if (atom->kind == WPK_ATOM_QUOTIENT) {
        *low = floor_divide(*low, atom->divisor);
        *high = floor_divide(*high, atom->divisor);
    } else if (atom->kind == WPK_ATOM_REMAINDER) {
        *low = 0;
        *high = atom->divisor - 1;
    } else {
        *low = *low < atom->low ? atom->low : *low > atom->high ? atom->high : *low;
        *high = *high < atom->low ? atom->low : *high > atom->high ? atom->high : *high;
    }
}

void wpk_form_range(const struct wpk_forms *forms, const struct wpk_form *a, int64_t *low,
                    int64_t *high)
{
    int64_t lanes = a->lane * (forms->width > 1 ? forms->width - 1 : 0);
    *low = a->constant + (lanes < 0 ? lanes : 0);
    *high = a->constant + (lanes > 0 ? lanes : 0);
    for (int i = 0; i < a->term_count; i++) {
        int64_t least = 0, most = 0, factor = a->term[i].factor;
        atom_range(forms, &forms->atom[a->term[i].atom], &least, &most);
        *low = near(*low + factor * (factor > 0 ? least : most));
        *high = near(*high + factor * (factor > 0 ? most : least));
    }
}

bool wpk_form_split(const struct wpk_forms *forms, const struct wpk_form *a, int64_t divisor,
                    int64_t *rest)
{
    bool divides = a->lane % divisor == 0 && forms->width >= 0;
    for (int i = 0; i < a->term_count; i++) {
        divides = divides && a->term[i].factor % divisor == 0;
    }
    *rest = floor_modulo(a->constant, divisor);
    return divides;
}

/* ---- text */

static void print_atom(const struct wpk_forms *forms, const struct wpk_atom *atom,
                       struct wpk_buf *out)
{
    int64_t low = 0, high = 0;
    if (atom->kind == WPK_ATOM_VARIABLE) {
        wpk_buf_append_text(out, atom->name);
        return;
    }
    wpk_form_range(forms, &atom->of, &low, &high);
    bool quotient = atom->kind == WPK_ATOM_QUOTIENT;
    if (atom->kind == WPK_ATOM_LIMITED) {
        wpk_buf_append_text(out, "wpk_limit(");
        wpk_form_print(forms, &atom->of, out);
        wpk_buf_printf(out, ", %" PRId64 ", %" PRId64 ")", atom->low, atom->high);
    } else if (low >= 0 && high <= UINT32_MAX) {
        wpk_buf_append_text(out, forms->narrow ? "(i32)((u32)" : "(i64)((u32)");
        wpk_form_print(forms, &atom->of, out);
        wpk_buf_printf(out, " %c %" PRId64 "u)", quotient ? '/' : '%', atom->divisor);
    } else {
        wpk_buf_append_text(out, quotient ? "wpk_quotient(" : "wpk_remainder(");
        wpk_form_print(forms, &atom->of, out);
        wpk_buf_printf(out, ", %" PRId64 ")", atom->divisor);
    }
}

void wpk_form_print(const struct wpk_forms *forms, const struct wpk_form *a, struct wpk_buf *out)
{
    if (a->term_count == 0) {
        bool least = a->constant == INT64_MIN; /* C has no such number */
        wpk_buf_printf(out, a->constant < 0 ? "(%" PRId64 "%s)" : "%" PRId64 "%s",
                       a->constant + least, least ? " - 1" : "");
        return;
    }
    bool bare = a->term_count == 1 && a->term[0].factor == 1 && a->constant == 0;
    wpk_buf_append_text(out, bare ? "" : "(");
    for (int i = 0; i < a->term_count; i++) {
        if (a->term[i].factor != 1) {
            wpk_buf_printf(out, "%s%" PRId64 " * ", i > 0 ? " + " : "", a->term[i].factor);
        } else {
            wpk_buf_append_text(out, i > 0 ? " + " : "");
        }
        print_atom(forms, &forms->atom[a->term[i].atom], out);
    }
    if (a->constant != 0) {
        wpk_buf_printf(out, a->constant < 0 ? " - %" PRId64 : " + %" PRId64,
                       a->constant < 0 ? -a->constant : a->constant);
    }
    wpk_buf_append_text(out, bare ? "" : ")");
}
