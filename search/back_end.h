/* SPDX-License-Identifier: Apache-2.0 */
/* Names of back ends, and lists of them as text.
 *
 * An entry of a list is a back end's name. Where the machine's compiler makes its kernels, a '/'
 * and the compiler's version follow. Entries are joined by '+': "halide-cpu+c/gcc-12.2.0". The
 * entry is the provider of what the back end has built, so that no two compilers share a trial.
 *
 * A candidate's text names its back end by the gene `by`, and one without is of the first back end;
 * that is how candidates of spaces with one back end read. */
#ifndef WPK_SEARCH_BACK_END_H
#define WPK_SEARCH_BACK_END_H

#include <stdbool.h>
#include <stdint.h>

#define WPK_BACK_END_MAX 32 /* an entry, with its NUL */
#define WPK_BACK_END_GENE "by"
#define WPK_BACK_ENDS_ALL UINT32_MAX /* as bits */
#define WPK_BACK_ENDS_ANY "any"      /* as a pin: all that no worker lacks */

enum wpk_back_end_trait {
    /* The machine's compiler makes its kernels: an entry has the compiler's version. */
    WPK_BACK_END_FOUND_HERE = 1 << 0,
    /* Kernels of the back end may keep an intermediate tensor in an output (nest/reach.h). */
    WPK_BACK_END_SCOPE_OUTPUT = 1 << 1,
    /* The back end compiles some nests of its kind's spaces: a rule of the space says which. */
    WPK_BACK_END_PARTIAL = 1 << 2,
};

/* symbol, name, kind of device, traits: the back ends in the order of their numbers. The symbol
 * names the functions of a back end, wpk_SYMBOL_accepts() (target/codegen.c) and
 * wpk_SYMBOL_build() (target/emit.c). */
#define WPK_BACK_END_LIST(X)                                                                       \
    X(halide, "halide-cpu", "cpu", 0)                                                              \
    X(c, "c", "cpu", WPK_BACK_END_FOUND_HERE | WPK_BACK_END_SCOPE_OUTPUT)                          \
    X(cuda, "cuda", "cuda", 0)                                                                     \
    X(halide_cuda, "halide-cuda", "cuda", WPK_BACK_END_PARTIAL)

#define WPK_BACK_END_ENUM(symbol, name, kind, traits) WPK_BACK_END_##symbol,
enum wpk_back_end { WPK_BACK_END_LIST(WPK_BACK_END_ENUM) WPK_BACK_END_COUNT };

/* The name of back end number `i`, from 0, or NULL. */
const char *wpk_back_end_name(int i);
/* The number of an entry's back end, or -1. */
int wpk_back_end_number(const char *entry);
/* The back ends of a kind of device, as bits. */
unsigned wpk_back_ends_of(const char *kind);
/* The number of a kind's first back end, which searches use unless the gene is pinned. */
int wpk_back_end_first(const char *kind);
bool wpk_back_end_has_scope_output(int i);
/* False of a partial one. */
bool wpk_back_end_takes_all(int i);

/* Print the entry of a back end: "c/gcc-12.2.0", or its name if the version is "". */
void wpk_back_end_entry(const char *name, const char *version, char out[WPK_BACK_END_MAX]);

/* Copy the entry at `*list`, and move `*list` behind it; false at the end of the list.
 *   shape  list: ends at its NUL, or at a ';'; entries that are too long are cut */
bool wpk_back_ends_next(const char **list, char out[WPK_BACK_END_MAX]);
/* The back ends of a list or of "any" as bits: 1 << number. Names that are not known have none.
 *   shape  list: as above, also below */
unsigned wpk_back_ends_read(const char *list);
/* True if it is "any", or a list of known back ends' names, without versions. */
bool wpk_back_ends_known(const char *list);
/* Copy the list's entry of a back end; false: there is none. */
bool wpk_back_ends_find(const char *list, const char *name, char out[WPK_BACK_END_MAX]);

/* Copy the provider of a candidate's trial: the list's entry of the back end that the candidate's
 * text names, or the name where the list has none; the first entry where the text names none. */
void wpk_back_end_provider(const char *list, const char *candidate, char out[WPK_BACK_END_MAX]);

#endif
