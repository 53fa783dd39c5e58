/* SPDX-License-Identifier: Apache-2.0 */
/* The job file: which operators to tune, for which device, how and how long.
 *
 * The JSON Schema is job.schema.json, the manual docs/job-file.md. Decoding is strict: unknown
 * members, wrong types and values out of range are failures that name field, line and column. An
 * operator's notation or shorthand is kept as written; ir/notation/definition.h turns it into a
 * program, with errors that still point into the file. */
#ifndef WPK_SCHEMA_JOB_H
#define WPK_SCHEMA_JOB_H

#include "common/buf.h"
#include "schema/accuracy.h"
#include "schema/record.h"
#include "schema/tensor.h"

#include <stdint.h>

#define WPK_JOB_SIZE_MAX ((size_t)4 << 20) /* bytes of a job file */
#define WPK_JOB_OPS_MAX 1024
#define WPK_JOB_TENSORS_MAX 64 /* declared by one operator */
#define WPK_JOB_UNTIL_MAX 40
#define WPK_JOB_OPTIONS_MAX 512               /* text of a strategy's options, with its NUL */
#define WPK_JOB_PATH_MAX 1024                 /* of the prior's file, with its NUL */
#define WPK_JOB_PRIOR_MAX ((size_t)256 << 10) /* bytes of a prior's text */
#define WPK_JOB_PINS_MAX 64
#define WPK_JOB_NAME_MAX 64 /* of a job or an operator, with its NUL */
#define WPK_JOB_GENE_MAX 64 /* a pinned gene's name or value */
#define WPK_JOB_OP_TEXT_MAX (64 * 1024)
#define WPK_JOB_THREADS_MAX 1024
#define WPK_JOB_LABELS_MAX 16  /* labels that its workers must have */
#define WPK_JOB_DEVICE_MAX 256 /* a device class, with its NUL */
#define WPK_JOB_CANDIDATES_MAX 1000000
#define WPK_JOB_COUNT_MAX 1000000
#define WPK_JOB_SECONDS_MAX (7 * 24 * 3600)
#define WPK_JOB_PRIORITY_MAX 100 /* and at least its negative */

/* suffix, text */
#define WPK_LAYOUTS_LIST(X)                                                                        \
    X(FIXED, "fixed") /* inputs and outputs row-major as written */                                \
    X(ANY, "any")     /* the search chooses; inputs and outputs get layouts of one kind */

#define WPK_LAYOUTS_ENUM(name, text) WPK_LAYOUTS_##name,
enum wpk_layouts { WPK_LAYOUTS_LIST(WPK_LAYOUTS_ENUM) WPK_LAYOUTS_COUNT };

/* A declared tensor of an operator in notation. */
struct wpk_job_tensor {
    char name[WPK_NAME_MAX];
    char type[128]; /* as written, such as "f32[1,64,56,56]" */
    bool constant;
};

/* An operator: equations with their tensors, or a shorthand. Exactly one of the two is set. */
struct wpk_job_op {
    char name[WPK_JOB_NAME_MAX];    /* unique in the job */
    char *notation;                 /* owned; NULL for a shorthand */
    char *shorthand;                /* owned JSON object, with the bytes of the file */
    struct wpk_job_tensor *tensors; /* owned; [tensor_count], in the order of the file */
    int tensor_count;
    enum wpk_layouts layouts;
    struct wpk_accuracy accuracy;   /* default: standard */
    enum wpk_conditions conditions; /* default: warm */
    int64_t count; /* calls, by which a total budget is shared out; 0 stands for 1 */
    int64_t missed_calls, missed_ns; /* of a lookup: what a host ran without a kernel; 0: nothing */
};

struct wpk_json_reader;
struct wpk_json_writer;

struct wpk_job_pin {
    char gene[WPK_JOB_GENE_MAX];
    char value[WPK_JOB_GENE_MAX];
};

#define WPK_WORKER_LABEL_NAME_MAX 64
#define WPK_WORKER_LABEL_VALUE_MAX 128
#define WPK_WORKER_LABEL_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_.-" /* of a name */

/* A label that a worker has, or must have to run a job. */
struct wpk_worker_label {
    char name[WPK_WORKER_LABEL_NAME_MAX]; /* [a-z0-9_.-]+, unique among the worker's or job's */
    char value[WPK_WORKER_LABEL_VALUE_MAX];
};
extern const struct wpk_field wpk_worker_label_fields[]; /* schema/fields.h: an entry of a map */

/* `= {0}` is a valid empty job for wpk_job_fini; wpk_job_decode fills every default. */
struct wpk_job {
    char name[WPK_JOB_NAME_MAX]; /* "" when the file names none */
    struct wpk_job_op *ops;      /* owned; [op_count], at least one after decoding */
    int op_count;
    char kind[16];                   /* "cpu" or "cuda" */
    char device[WPK_JOB_DEVICE_MAX]; /* the device class it is for (device.h); "": any */
    int threads;                     /* of the kernels */
    struct wpk_worker_label *labels; /* owned; [label_count] */
    int label_count;
    char strategy[32];                 /* as written; known names: search/strategy/strategy.h */
    char options[WPK_JOB_OPTIONS_MAX]; /* of the strategy, sorted: "rl.learning_rate=0.001;..." */
    char prior[WPK_JOB_PATH_MAX];      /* file of a prior, which the client reads; "": none */
    char *prior_text;                  /* owned; the prior itself; NULL: none */
    uint64_t seed;
    struct wpk_job_pin *pins; /* owned; [pin_count] */
    int pin_count;
    int64_t candidates; /* budget of each operator; with a total, the most of it for one */
    int64_t total;      /* budget of all operators together, in candidates; 0: none */
    int64_t seconds;    /* budget of each operator: time with work leased */
    char until[WPK_JOB_UNTIL_MAX]; /* what ends it earlier: "speedup=1.2", "of_peak=0.9" or
                                          "converged"; "": nothing */
    int priority;
    char *source; /* owned; the decoded text, for positions */
    size_t source_size;
};

/* Set what ends the job before its budget is spent: "speedup=1.2", "of_peak=0.9", "converged".
 *   errors  WPK_EINVAL another text, or a number out of range, with what is possible in `diag` */
wpk_err wpk_job_set_until(struct wpk_job *job, const char *until, struct wpk_diag *diag);

/* Set an option of the job's strategy, in the place of an earlier value.
 *   errors  WPK_ERANGE the name or the list is too long; WPK_EPARSE no number */
wpk_err wpk_job_set_option(struct wpk_job *job, const char *name, const char *value);
/* Option number `i` of the list; false: there are not so many.
 *   shape   name, value [WPK_JOB_GENE_MAX] */
bool wpk_job_option_at(const char *options, int i, char *name, char *value);

/* Read the operator that is the reader's current object. The name is "" if it has none.
 *
 *   owns    caller calls wpk_job_op_fini, after a failure too
 *   errors  those of wpk_job_decode are the reader's status */
void wpk_job_op_read(struct wpk_json_reader *reader, struct wpk_job_op *op);
/* Read what tells kernels of one operator apart: layouts, accuracy, conditions. */
void wpk_job_op_read_key(struct wpk_json_reader *reader, struct wpk_job_op *op);
void wpk_job_op_fini(struct wpk_job_op *op);
/* Put the operator's members into the writer's current object; no name if it is "". */
void wpk_job_op_put(const struct wpk_job_op *op, struct wpk_json_writer *writer);

const char *wpk_layouts_name(enum wpk_layouts layouts);
/*   errors  WPK_ENOENT no such name */
wpk_err wpk_layouts_parse(const char *text, enum wpk_layouts *out);

/* Decode and check a job.
 *
 *   owns    caller calls wpk_job_fini; `text` is copied
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE with field, line and column; WPK_ENOMEM.
 *           A text longer than WPK_JOB_SIZE_MAX or nested deeper than 64 is WPK_ERANGE
 */
wpk_err wpk_job_decode(const char *text, size_t size, struct wpk_job *out, struct wpk_diag *diag);
/* Fill in the defaults of a job without operators. */
void wpk_job_init(struct wpk_job *job);
void wpk_job_fini(struct wpk_job *job);

/* Append the job as JSON; decode(encode(j)) equals j but for `source`.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_job_encode(const struct wpk_job *job, struct wpk_buf *out);

/* Pin a gene, replacing an earlier pin of the same gene.
 *   errors  WPK_ENOSPC, WPK_ERANGE too long, WPK_ENOMEM */
wpk_err wpk_job_pin(struct wpk_job *job, const char *gene, const char *value);

/* Point `diag` into the file. On entry it names a place within operator `op`'s member `member`
 * ("op", "tensors", "tensors.X", "constants") or, where that is a string, within its text. On
 * return it names the line and column of the file, and the whole field. For definition.h. */
void wpk_job_locate(const struct wpk_job *job, int op, const char *member, struct wpk_diag *diag);

/* Point `diag` at the value of search.MEMBER, or with a key of search.MEMBER.KEY, as far as the
 * file has it. */
void wpk_job_locate_search(const struct wpk_job *job, const char *member, const char *key,
                           struct wpk_diag *diag);

#endif
