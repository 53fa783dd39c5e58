/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a schedule's nest: a block of lines for each stage of the main program, the last
 * stage first, so that a stage comes after all that read it.
 *
 *     stage Y root
 *       parallel n
 *       serial y step 2 exact
 *       serial x
 *       serial k step 8 exact
 *       unroll y.1
 *       lanes k.1
 *     stage T in Y k
 *       extent n 1 y 2 x 1 k 8
 *       init
 *         unroll y
 *         lanes k
 *       update
 *         serial c
 *         unroll y
 *         lanes k
 *
 * docs/schedule.md describes every word. */
#ifndef WPK_NEST_NEST_TEXT_H
#define WPK_NEST_NEST_TEXT_H

#include "nest/text_reader.h"
#include "common/buf.h"
#include "nest/nest.h"

/* Write the nest, whose entries are all stages of its program, the last stage first. */
void wpk_nest_print(const struct wpk_nest *nest, struct wpk_buf *out);
/* Read the rest of the text into an empty nest that has a program, and find the regions of entries
 * that are not bounded. The parser checks the form only; call wpk_nest_check() to learn whether the
 * nest is valid.
 *   errors  WPK_EPARSE, WPK_ERANGE with line and column; WPK_ENOSPC */
wpk_err wpk_nest_parse(struct wpk_text_reader *reader, struct wpk_nest *nest);

#endif
