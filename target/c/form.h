/* SPDX-License-Identifier: Apache-2.0 */
/* Index arithmetic of a printed kernel: sums of variables with integer factors.
 *
 *     form = constant + lane * (number of the lane) + sum(factor * atom)
 *
 * An atom is a variable of the printed code, or a quotient, a remainder or a limited form that no
 * rule could make linear. Equal forms have equal atoms, so that differences cancel: where they lie
 * in the registers of a tile, indices become numbers. Atoms know the range of their values. */
#ifndef WPK_TARGET_C_FORM_H
#define WPK_TARGET_C_FORM_H

#include "common/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define WPK_FORM_TERMS_MAX 16
#define WPK_FORM_NAME_MAX 40

struct wpk_form_term {
    int atom;
    int64_t factor; /* not 0 */
};

/* = {0} is the number 0. Terms are sorted by atom. */
struct wpk_form {
    int64_t constant;
    int64_t lane;
    int term_count;
    struct wpk_form_term term[WPK_FORM_TERMS_MAX];
};

enum wpk_atom_kind {
    WPK_ATOM_VARIABLE,  /* by lane: "name[lane]" */
    WPK_ATOM_QUOTIENT,  /* floor(of / divisor) */
    WPK_ATOM_REMAINDER, /* of - divisor * floor(of / divisor) */
    WPK_ATOM_LIMITED,   /* min(max(of, low), high) */
};

struct wpk_atom {
    enum wpk_atom_kind kind;
    char name[WPK_FORM_NAME_MAX]; /* of a variable */
    int64_t low, high;            /* of a variable: its least and largest value now */
    int64_t divisor;
    struct wpk_form of;
    bool by_lane; /* lanes have different values of it */
};

/* All atoms of a kernel. */
struct wpk_forms {
    struct wpk_atom *atom; /* owned; [count] */
    int count, capacity;
    int width;   /* lanes are numbered from 0 to width - 1 */
    bool narrow; /* indices have 32 bits */
    bool full;   /* a limit was reached, or memory ran out: forms are of no use */
};

void wpk_forms_fini(struct wpk_forms *forms);

struct wpk_form wpk_form_number(int64_t constant);
/* Add a variable with values in [low, high] and return its number. */
int wpk_form_variable(struct wpk_forms *forms, const char *name, int64_t low, int64_t high);
/* A variable that is assigned once, of data; `by_lane`: a vector. */
struct wpk_form wpk_form_data(struct wpk_forms *forms, const char *name, bool by_lane);
/* factor * atom */
struct wpk_form wpk_form_atom(int atom, int64_t factor);
/* a + factor * b */
struct wpk_form wpk_form_add(struct wpk_forms *forms, const struct wpk_form *a,
                             const struct wpk_form *b, int64_t factor);
/* factor * a + constant */
struct wpk_form wpk_form_scale(const struct wpk_form *a, int64_t factor, int64_t constant);
/* Quotient rounded down, and remainder, by a divisor > 0. */
struct wpk_form wpk_form_divide(struct wpk_forms *forms, const struct wpk_form *a, int64_t divisor);
struct wpk_form wpk_form_modulo(struct wpk_forms *forms, const struct wpk_form *a, int64_t divisor);
/* The nearest value in [low, high]. */
struct wpk_form wpk_form_limit(struct wpk_forms *forms, const struct wpk_form *a, int64_t low,
                               int64_t high);
/* The form at one lane: `at` replaces the lane's number. */
struct wpk_form wpk_form_at_lane(struct wpk_forms *forms, const struct wpk_form *a,
                                 const struct wpk_form *at);

bool wpk_form_is_number(const struct wpk_form *a);
/* uniform: the value is the same in all lanes. even: the step from lane to lane is always the
 * same. */
bool wpk_form_is_uniform(const struct wpk_forms *forms, const struct wpk_form *a);
bool wpk_form_is_even(const struct wpk_forms *forms, const struct wpk_form *a);
void wpk_form_range(const struct wpk_forms *forms, const struct wpk_form *a, int64_t *low,
                    int64_t *high);
/* Split a into divisor * quotient + rest, where the rest is a number: false if it is not. */
bool wpk_form_split(const struct wpk_forms *forms, const struct wpk_form *a, int64_t divisor,
                    int64_t *rest);

/* Write the form of one lane as an expression of C, in parentheses unless it is a name or number.
 *   shape  a: wpk_form_is_uniform */
void wpk_form_print(const struct wpk_forms *forms, const struct wpk_form *a, struct wpk_buf *out);

#endif
