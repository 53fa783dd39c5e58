/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known name that a mistyped word is nearest to. */
#ifndef WPK_COMMON_SUGGEST_H
#define WPK_COMMON_SUGGEST_H

#define WPK_SUGGEST_SIZE 96 /* of a name that can be suggested, with its NUL */

/* A word and the nearest name offered so far. Start with the word alone set. */
struct wpk_suggest {
    const char *word; /* borrowed */
    int distance;     /* between the word and `name`; unset while `name` is "" */
    char name[WPK_SUGGEST_SIZE];
    char text[WPK_SUGGEST_SIZE + 24];
};

/* Offer a name. It is kept if it is nearer than the names before it, and near enough: at most a
 * third of its letters are inserted, deleted, replaced or swapped with their neighbour, or the word
 * is the beginning of the name. Names of WPK_SUGGEST_SIZE or more bytes are never suggested. */
void wpk_suggest_offer(struct wpk_suggest *suggest, const char *name);

/* "; did you mean 'NAME'?", or "" where no name is near. The text lives in `suggest`. */
const char *wpk_suggest_text(struct wpk_suggest *suggest);

#endif
