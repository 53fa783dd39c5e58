/* SPDX-License-Identifier: Apache-2.0 */
/* A choice: what a client gets for an operator. It lists the implementations, best first, and what
 * the client's tensors are called in them. It lies beside the files it names, as NAME.so.choice.
 *
 *     {"version":3,"operator":"input X ...","fingerprint":"<SHA-256>","accuracy":"standard",
 *      "conditions":"warm","layouts":"fixed","threads":1,
 *      "binding":{"inputs":[["X","t0"]],"constants":[["W","t1"]],"outputs":[["Y","t2"]]},
 *      "self_test":{"seed":"7","domain":"any",
 *                   "outputs":[{"points":[0,17],"values":[1.5,-2],"tolerance":1e-5}]},
 *      "plain_missing":"",
 *      "chain":[{"kind":"kernel","file":"c6.so","sha256":"<SHA-256 of the file>"},
 *               {"kind":"vendor","provider":"onednn","version":"3.2.0","recipe":{...}},
 *               {"kind":"plain","file":"c6.plain.so","sha256":"..."}]}
 *
 * wpkd makes and signs it. The signature, in NAME.so.choice.sig, is over the file's bytes, which
 * therefore are copied and never printed anew. */
#ifndef WPK_SCHEMA_CHOICE_H
#define WPK_SCHEMA_CHOICE_H

#include "schema/accuracy.h"
#include "schema/draw.h"
#include "schema/recipe.h"
#include "schema/record.h"

#define WPK_CHOICE_VERSION 4
#define WPK_CHOICE_SUFFIX ".choice"
#define WPK_CHOICE_SIZE_MAX ((size_t)1 << 20) /* bytes of JSON */
#define WPK_CHOICE_OP_MAX ((size_t)256 << 10) /* bytes of the operator's text */
#define WPK_CHOICE_CHAIN_MAX 8
#define WPK_CHOICE_TENSORS_MAX 40
#define WPK_CHOICE_POINTS_MAX 64 /* of one output */
#define WPK_CHOICE_FILE_MAX 256  /* with its NUL */
#define WPK_CHOICE_TEXT_MAX 32
#define WPK_CHOICE_REASON_MAX 160
#define WPK_CHOICE_HASH_MAX 65

/* suffix, text */
#define WPK_CHOICE_KIND_LIST(X)                                                                    \
    X(KERNEL, "kernel") /* built for the device */                                                 \
    X(VENDOR, "vendor") /* a library's primitive, by its recipe */                                 \
    X(PLAIN, "plain")   /* the plain kernel, for any device */

#define WPK_CHOICE_ENUM(name, text) WPK_CHOICE_##name,
enum wpk_choice_kind { WPK_CHOICE_KIND_LIST(WPK_CHOICE_ENUM) WPK_CHOICE_KIND_COUNT };

struct wpk_choice_entry {
    enum wpk_choice_kind kind;
    char file[WPK_CHOICE_FILE_MAX];     /* kernel, plain: a name, beside the choice */
    char sha256[WPK_CHOICE_HASH_MAX];   /* kernel, plain: of the file */
    char provider[WPK_CHOICE_TEXT_MAX]; /* vendor */
    char version[WPK_CHOICE_TEXT_MAX];  /* vendor: the library's version must be equal */
    struct wpk_recipe *recipe;          /* owned; vendor */
};

/* One of the client's tensors, and its name in artifacts and recipes. */
struct wpk_choice_tensor {
    char name[WPK_NAME_MAX];
    char canonical[WPK_NAME_MAX];
};

struct wpk_choice_list {
    struct wpk_choice_tensor tensor[WPK_CHOICE_TENSORS_MAX]; /* in declared order */
    int count;
};

/* The values that a self-test expects of one output. */
struct wpk_choice_expected {
    int64_t point[WPK_CHOICE_POINTS_MAX]; /* row-major index into the output */
    double value[WPK_CHOICE_POINTS_MAX];
    int count;        /* 0: the output cannot be tested */
    double tolerance; /* absolute */
};

/* A self-test. Inputs and constants come from the seed (schema/draw.h); at its points, each output
 * must be within its tolerance of the values. */
struct wpk_choice_test {
    uint64_t seed;
    enum wpk_draw_domain domain;
    struct wpk_choice_expected output[WPK_CHOICE_TENSORS_MAX]; /* as in wpk_choice.outputs */
};

/* `= {0}` is valid to fini, not to encode. Names and canonical names are unique. The chain has a
 * plain kernel, or plain_missing says why there is none. */
struct wpk_choice {
    char *op; /* owned; whole form, with the client's names */
    char fingerprint[WPK_CHOICE_HASH_MAX];
    struct wpk_accuracy accuracy;
    enum wpk_conditions conditions;
    char layouts[WPK_CHOICE_TEXT_MAX]; /* "fixed" or "any" */
    int threads;                       /* >= 1 */
    struct wpk_choice_list inputs, constants, outputs;
    struct wpk_choice_test test;
    char plain_missing[WPK_CHOICE_REASON_MAX];           /* "": there is a plain kernel */
    struct wpk_choice_entry chain[WPK_CHOICE_CHAIN_MAX]; /* best first */
    int chain_count;
};

void wpk_choice_fini(struct wpk_choice *choice);

/* True if the self-test has points in every output. */
bool wpk_choice_has_test(const struct wpk_choice *choice);

/* Read the member "binding" of the current object: the client's names and the canonical ones. A
 * tensor that no output depends on has no canonical name, and is left out. Failures are the
 * reader's. */
void wpk_choice_get_binding(struct wpk_json_reader *reader, struct wpk_choice *choice);

const char *wpk_choice_kind_name(enum wpk_choice_kind kind);

/* One entry alone; a worker's record has a vendor's entry in this form.
 *   owns    decode: caller calls wpk_choice_entry_fini
 *   errors  as wpk_choice_encode and wpk_choice_decode */
wpk_err wpk_choice_entry_encode(const struct wpk_choice_entry *entry, struct wpk_buf *out);
wpk_err wpk_choice_entry_decode(const char *text, size_t size, struct wpk_choice_entry *out,
                                struct wpk_diag *diag);
void wpk_choice_entry_fini(struct wpk_choice_entry *entry);

/*   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_choice_encode(const struct wpk_choice *choice, struct wpk_buf *out);
/* Decode strictly: every field is required, others are refused. A file is a name without a slash.
 *   owns    caller calls wpk_choice_fini
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE with the field; WPK_EMISMATCH another version;
 *           WPK_ENOMEM */
wpk_err wpk_choice_decode(const char *text, size_t size, struct wpk_choice *out,
                          struct wpk_diag *diag);

#endif
