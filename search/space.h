/* SPDX-License-Identifier: Apache-2.0 */
/* The space of all candidates of a program on a device, and one candidate.
 *
 * A space is derived from the program, never written by hand. It is a list of variants. A variant
 * is a program equivalent to the given one (algorithm x layout) with its own list of genes. Genes
 * of the same name mean the same thing in every variant, so candidates of different variants can
 * be crossed. genes.h lists the genes and says how to add one.
 *
 * A candidate is a variant and a choice for each gene of that variant. The candidate's text names
 * both:
 *     cpu-6 algorithm=direct layout=halo-last1 Y.vec=k Y.lanes=16 Y.tile.k=32 Y.inner=y,k,x ...
 * Where several stages have a choice of algorithm (ir/derive/rewriting.h), each is named:
 *     cpu-6 algorithm.T=winograd(4) algorithm.Y=direct layout=halo-last1 ...
 * Where there are several back ends, the last word names the candidate's, unless it is the first:
 *     cpu-6 algorithm=direct ... Y.at=root by=c
 * The text holds no index, so that every program with the same WPK_SPACE_VERSION can read it. */
#ifndef WPK_SEARCH_SPACE_H
#define WPK_SEARCH_SPACE_H

#include "common/buf.h"
#include "common/rng.h"
#include "ir/derive/rewriting.h"
#include "schema/accuracy.h"
#include "schema/device.h"
#include "schema/record.h"
#include "schema/tensor.h"
#include "search/back_end.h"
#include "search/rules.h"

#define WPK_SPACE_VERSION "cpu-6"
#define WPK_GENES_MAX 768 /* 48 groups of 4 axes have some 670; the back end's is the last */
#define WPK_CHOICES_MAX 64
#define WPK_VARIANTS_MAX 64
#define WPK_SPACE_BYTES_MAX ((size_t)16 << 20)    /* that all variants of several sites take */
#define WPK_GENE_NAME_MAX (2 * WPK_NAME_MAX + 16) /* GROUP.tile.AXIS, with its NUL */
#define WPK_VARIANT_NAME_MAX 64
#define WPK_ALGORITHM_MAX 768  /* choices of all sites: see wpk_variant */
#define WPK_GENE_ALL INT64_MAX /* value of a size: the whole extent */
#define WPK_REPAIR_TRIES_MAX 64
#define WPK_FEATURES 44 /* of a candidate, as numbers */

/* A value that a gene can take, as a number and as text. The number is valid in this space only;
 * the text is for people and for other spaces, where axes and groups may have other numbers. */
struct wpk_gene_value {
    int64_t value; /* a size, an axis, a place or an order: see genes.h */
    char *text;    /* owned; of any length */
};

/* One decision of a candidate. Where order has a meaning, as for sizes, choices ascend, so that a
 * mutation can step to a neighbour. */
struct wpk_gene {
    char name[WPK_GENE_NAME_MAX];
    bool ordered;  /* choices ascend */
    bool optional; /* a size that a candidate's text leaves out where it is all */
    int choice_count;
    int listed_count;              /* with those that pins and accuracy classes removed: the others'
                                      legality does not depend on them */
    struct wpk_gene_value *choice; /* owned; [listed_count], those that are left first */
};

enum wpk_variant_state {
    WPK_VARIANT_LISTED,  /* not derived so far: program, genes and plan are empty */
    WPK_VARIANT_DERIVED, /* complete */
    WPK_VARIANT_NONE,    /* cannot be derived, or is not accurate enough */
};

struct wpk_variant {
    char algorithm[WPK_ALGORITHM_MAX]; /* "winograd(4)"; with several sites a word for each:
                                              "T=winograd(4) Y=direct" */
    char layout[WPK_VARIANT_NAME_MAX]; /* "asis", "halo-last1", "staged-last1", … */
    uint8_t choice[WPK_SITES_MAX];     /* of each site of the space */
    int last;                          /* axis moved to the end, -1: as written */
    bool staged;                       /* inputs that leave or are reordered go through copies */
    double operations;                 /* expected, of all sites */
    double error_sums[WPK_SITES_MAX];  /* of each site, 0 behind the last: expected error of sums
                                               whose terms are added one after the other; 1: the
                                               error of direct evaluation */
    double error_rest[WPK_SITES_MAX];  /* expected error of all else, in the same unit; the
                                               squares of both add up to the site's */
    enum wpk_variant_state state;      /* what follows is of a derived variant */
    uint64_t identity;                 /* of the program: two combinations may come to the same */
    struct wpk_gene *genes;            /* owned; [gene_count] */
    int gene_count;
    void *plan;                 /* owned; struct wpk_structure of genes.h */
    struct wpk_program program; /* its boundary tensors have the layout applied. It is last: pages
                                   that its tables do not need are never written */
};

struct wpk_space_options {
    const char *layouts; /* "fixed" or "any" */
    int threads;         /* of the kernel */
    bool strict;         /* kernels round each operation, in the program's order */
    unsigned back_ends;  /* candidates may be of these (back_end.h), as bits; 0: of the first */
    struct wpk_device device;
    struct wpk_target target; /* of the device, set by wpk_space_derive() unless it has rules */
};

struct wpk_space {
    struct wpk_space_options options; /* `layouts` points into static text */
    struct wpk_program program;       /* owned; as given to wpk_space_derive */
    struct wpk_sites *sites;          /* owned; of the program */
    struct wpk_variant *variants;     /* owned; [variant_count]; wpk_space_variant() derives them */
    int variant_count;
    bool lazy;        /* all but the first that can be derived wait until they are asked for */
    double size_log2; /* log2 of the candidates' number, illegal ones included; variants that wait
                           count as much as the first */
    bool pruned;      /* by wpk_space_prune(), which sets the next two */
    struct wpk_accuracy accuracy;
    double error_least; /* of all variants */
};

struct wpk_candidate {
    int variant;
    int gene_count;
    uint8_t gene[WPK_GENES_MAX]; /* [gene_count] index into the gene's choices */
};

/* The version of candidates' texts: of a kind of device, "cpu" or "cuda", and of a space. */
const char *wpk_space_version_of(const char *device_kind);
const char *wpk_space_version(const struct wpk_space *space);

/* Derive the space of `program` on a device.
 *
 *   owns    caller calls wpk_space_fini
 *   errors  WPK_EUNSUPPORTED no variant can compute the program, every one exceeds a limit, or
 *           there are no rules for such a device; WPK_EINVAL, WPK_ENOMEM
 */
wpk_err wpk_space_derive(const struct wpk_program *program, const struct wpk_space_options *options,
                         struct wpk_space *out, struct wpk_diag *diag);
/* The same of a recorded kernel, for all back ends.
 *   shape   op: whole form; device: class; layouts: "fixed" or "any"
 *   errors  those of reading `op` and `device`, too */
wpk_err wpk_space_derive_text(const char *op, const char *device, const char *layouts, int threads,
                              struct wpk_space *out, struct wpk_diag *diag);
void wpk_space_fini(struct wpk_space *space);

/* The variant, or NULL: some combinations of algorithms cannot be derived, and of some a class of
 * accuracy leaves nothing; or memory ran out, and the next call tries again. With several sites a
 * variant is derived at the first call, by one thread at a time; what it is does not depend on what
 * was derived before. A candidate's variant is derived already. */
const struct wpk_variant *wpk_space_variant(const struct wpk_space *space, int variant);
/* Why it gave NULL: WPK_ENOENT or WPK_ENOMEM. */
wpk_err wpk_space_variant_error(const struct wpk_space *space, int variant);

/* Keep one value, or those of a list joined by '+', of "algorithm" (of every site),
 * "algorithm.SITE", "layout" or a gene. The first three remove all other variants; a gene loses its
 * other choices in each variant that has a value, and stays elsewhere. A gene's pin derives all
 * variants. The value of "by" is a list
 * (back_end.h): of its back ends, those stay that the space has.
 *   errors  WPK_ENOMEM
 *           WPK_ENOENT no such gene or value, with the possible values in `diag`; after that of an
 *           algorithm or layout the space has no variant left: call wpk_space_fini
 *           WPK_EUNSUPPORTED with the pins so far no candidate is legal: call wpk_space_fini */
wpk_err wpk_space_pin(struct wpk_space *space, const char *name, const char *value,
                      struct wpk_diag *diag);

/* "packing"="shared" is a pin, too, and changes nothing here: the search begins with the next
 * function if another one packed the same constants before. */
#define WPK_PACKING_GENE "packing"
#define WPK_PACKING_SHARED "shared"

/* Keep the candidates that pack constants as another one does, the text of a candidate of an
 * operator of the same family. Without constants that can be packed all stay.
 *   errors  as wpk_space_adapt; WPK_EUNSUPPORTED no candidate is left: call wpk_space_fini */
wpk_err wpk_space_pin_packing(struct wpk_space *space, const char *text, struct wpk_diag *diag);

/* Set size_log2 again after variants or choices were removed. */
void wpk_space_measure(struct wpk_space *space);

/* Fill `out` with constructed candidates: good guesses for every variant, best first, interleaved
 * so that the first ones cover all variants. The very first is expected to be the fastest.
 *   shape   out [max]; *filled says how many there are
 *   errors  WPK_ENOMEM */
wpk_err wpk_space_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                            int *filled);

/* Draw a choice of each gene of a derived variant uniformly, and repair the result.
 *   errors  WPK_EEXHAUSTED no legal candidate was found */
wpk_err wpk_space_draw_of(const struct wpk_space *space, struct wpk_rng *rng, int variant,
                          struct wpk_candidate *out);

/* Draw a variant uniformly, the next one where there is none, then one of its candidates.
 *   errors  WPK_EEXHAUSTED no legal candidate in WPK_REPAIR_TRIES_MAX draws; WPK_ENOMEM */
wpk_err wpk_space_draw(const struct wpk_space *space, struct wpk_rng *rng,
                       struct wpk_candidate *out);

/* Change genes of `candidate`, few where few suffice, until it is legal. The variant stays.
 *   errors  WPK_EEXHAUSTED no legal candidate was found; `candidate` may have changed */
wpk_err wpk_space_repair(const struct wpk_space *space, struct wpk_rng *rng,
                         struct wpk_candidate *candidate);

/* True if the candidate keeps the rules of legal.c. They bound the registers of a tile, its
 * unrolled statements and how often a producer is computed again, and require that sizes divide.
 * No rule knows caches: the best block sizes are found by measuring. */
bool wpk_space_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate);

/* The name of the candidate's back end. */
const char *wpk_candidate_back_end(const struct wpk_space *space,
                                   const struct wpk_candidate *candidate);

bool wpk_candidate_equal(const struct wpk_candidate *a, const struct wpk_candidate *b);
uint64_t wpk_candidate_hash(const struct wpk_candidate *candidate);

/* A hash of the candidate's schedule: candidates of one program whose schedules are the same text
 * have the same key, and all others another one but for chance. It takes some microseconds.
 *   shape   candidate: legal */
uint64_t wpk_space_key(const struct wpk_space *space, const struct wpk_candidate *candidate);

/* Seconds of one call with warm caches, as the target's rules predict them from the candidate's
 * nest, without lowering or building it. It takes some 10 us.
 *   shape   candidate: legal
 *   errors  WPK_ENOSPC a limit of nest/nest.h */
wpk_err wpk_space_bound(const struct wpk_space *space, const struct wpk_candidate *candidate,
                        double *seconds);
/* The logarithm of these seconds, with which strategies begin to learn times. It is 0 on an
 * emulated device, where a time is the emulator's model's: a strategy that learnt what one model
 * leaves unexplained of another would search for candidates on which the two differ.
 *   errors  those of wpk_space_bound() */
wpk_err wpk_space_predict(const struct wpk_space *space, const struct wpk_candidate *candidate,
                          double *out);

/* Fill `out` with what can be counted of the candidate's nest (feature.h), numbers of many
 * magnitudes as logarithms. The first one is the prediction; what the others are may change
 * with WPK_SPACE_VERSION.
 *   shape   out [WPK_FEATURES]; candidate: legal
 *   errors  WPK_ENOSPC a limit of nest/nest.h */
wpk_err wpk_space_features(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           double *out);

/* Write a candidate as text, and read it back: decode(encode(c)) equals c. Another space's text can
 * be read if this space has its variant, genes and values. Decoding does not ask if c is legal.
 *   errors  encode: WPK_ENOSPC; decode: WPK_EPARSE; WPK_EMISMATCH another version; WPK_ENOENT
 *           unknown variant, gene or value; WPK_ERANGE WPK_CANDIDATE_TEXT_MAX or longer;
 *           WPK_ENOMEM */
wpk_err wpk_candidate_encode(const struct wpk_space *space, const struct wpk_candidate *candidate,
                             char *out, size_t size);
wpk_err wpk_candidate_decode(const struct wpk_space *space, const char *text,
                             struct wpk_candidate *out, struct wpk_diag *diag);

#endif
