/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/print.h"

#include "common/cuda_machine.h"
#include "ir/data_index.h"
#include "nest/target.h"
#include "target/gpu/kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_INDEX_MAX ((int64_t)INT32_MAX)
#define REGISTERS_BESIDE 64 /* of a thread, beside its tile: NVRTC 12.9 needs 62 for one of 8 x 8 */

/* A kernel with what its launches become. */
struct printer {
    struct wpk_c_kernel *k;
    struct wpk_cuda_plan *plan;
    struct wpk_cuda_launch launch;
    int64_t threads[WPK_LAUNCHES_MAX]; /* of the first pass */
    bool can_async;                    /* the device has asynchronous copies */
    struct wpk_buf body;               /* of the launch that is printed */
    struct wpk_buf module;
};

/* ---- arguments */

static bool is_at_root(const struct wpk_nest_entry *entry)
{
    return !entry->inlined && (entry->place.entry < 0 || entry->place.loop < 0);
}

/* 0: read; 1: written; 2: an intermediate tensor between launches; -1: none of these. */
static int kind_of(const struct wpk_c_kernel *k, int t)
{
    enum wpk_role role = k->program->tensors[t].role;
    int writer = wpk_program_writer(k->program, t);
    if (role == WPK_ROLE_INTERMEDIATE) {
        return writer >= 0 && is_at_root(&k->nest->entry[k->entry_of[writer]]) ? 2 : -1;
    }
    return role == WPK_ROLE_OUTPUT ? 1 : role == WPK_ROLE_LITERAL ? -1 : 0;
}

static void check_tensors(struct wpk_c_kernel *k)
{
    for (int t = 0; t < k->program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &k->program->tensors[t];
        bool known = tensor->dtype == WPK_F32 || tensor->dtype == WPK_F64 ||
                     tensor->dtype == WPK_I32 || tensor->dtype == WPK_BOOL;
        int64_t elements = 1;
        for (int d = 0; d < tensor->rank; d++) {
            elements *= tensor->extent[d] + tensor->pad_before[d] + tensor->pad_after[d];
        }
        if (!known) {
            wpk_c_refuse(k, "only tensors of f32, f64, i32 and bool are computed with so far");
        }
        if (elements > THREAD_INDEX_MAX) {
            wpk_c_refuse(k, "a tensor has more elements than an index of 32 bits counts");
        }
    }
}

/* ---- one launch */

static struct wpk_c_storage *argument(const struct printer *p, int i)
{
    return p->k->storage[p->k->storage_of[p->plan->argument[i]]];
}

static void begin_launch(struct printer *p)
{
    struct wpk_c_kernel *k = p->k;
    p->launch = (struct wpk_cuda_launch){.blocks = 1,
                                         .threads = 1,
                                         .can_async = p->can_async,
                                         .any_moves = p->launch.any_moves,
                                         .any_ahead = p->launch.any_ahead};
    p->launch.surveyed = k->surveying ? 0 : p->threads[p->plan->step_count];
    wpk_buf_reset(&p->body);
    k->text.out = &p->body;
    k->text.depth = 1;
    k->function++;
    for (int i = 0; i < p->plan->argument_count; i++) {
        argument(p, i)->named = false;
    }
}

/* Find the arguments that the body names. */
static void find_taken(struct printer *p, struct wpk_cuda_step *step)
{
    int count = p->plan->argument_count;
    step->taken_count = 0;
    for (int i = 0; i < count + 2; i++) {
        if (i < count ? argument(p, i)->named : p->launch.parts > 1) {
            step->taken[step->taken_count++] = (uint8_t)i;
        }
    }
}

static void put_parameters(struct printer *p, const struct wpk_cuda_step *step)
{
    struct wpk_c_kernel *k = p->k;
    int count = p->plan->argument_count;
    for (int i = 0; i < step->taken_count; i++) {
        int taken = step->taken[i];
        wpk_c_put(&k->text, i == 0 ? "" : ", ");
        if (taken < count) {
            wpk_c_storage_put_pointer(k, argument(p, taken));
        } else {
            wpk_c_put(&k->text, taken == count ? "void *const parts" : "u32 *const tickets");
        }
    }
}

static int64_t put_shares(struct printer *p)
{
    struct wpk_c_kernel *k = p->k;
    int64_t bytes = 0;
    for (int i = 0; i < p->launch.share_count; i++) {
        const struct wpk_cuda_share *share = &p->launch.share[i];
        enum wpk_c_type type = wpk_c_memory_type(k->program->tensors[share->tensor].dtype);
        wpk_c_line(&k->text, "__shared__ __align__(16) %s shared%d[%" PRId64 "];",
                   wpk_c_type_name(type), share->tensor, share->elements);
        bytes = (bytes + 15) / 16 * 16 + share->elements * wpk_c_type_bytes(type);
    }
    if (p->launch.parts > 1) {
        wpk_c_line(&k->text, "__shared__ __align__(16) u32 ticket[1];");
        bytes = (bytes + 15) / 16 * 16 + (int64_t)sizeof(uint32_t);
    }
    return bytes;
}

/* Arguments begin at a multiple of 16 bytes, but for their padding: neighbours are then loaded and
 * stored together. */
static void put_alignments(struct printer *p, const struct wpk_cuda_step *step)
{
    struct wpk_c_kernel *k = p->k;
    for (int i = 0; i < step->taken_count && step->taken[i] < p->plan->argument_count; i++) {
        int t = p->plan->argument[step->taken[i]];
        if (k->program->tensors[t].dtype == WPK_F32 && wpk_cuda_is_even(k, t)) {
            wpk_c_indent(&k->text);
            wpk_c_put(&k->text, "__builtin_assume(((u64)");
            wpk_c_storage_put_name(k, t, k->storage_of[t]);
            wpk_c_put(&k->text, " & 15) == 0);\n");
        }
    }
}

/* Blocks that a multiprocessor is to have at a time, in whose registers a tile and what is computed
 * beside it fit: a compiler that sees no limit takes more. 1: whatever the compiler takes. */
static int64_t blocks_together(const struct wpk_cuda_launch *launch)
{
    struct wpk_cuda_machine machine;
    wpk_cuda_machine(0, 1, &machine);
    int64_t together =
        machine.registers_max / (launch->threads * (launch->cells + REGISTERS_BESIDE));
    return launch->ahead && together > 1 ? together : 1;
}

static void put_parts(struct printer *p)
{
    for (int i = 0; i < p->launch.part_count; i++) {
        const struct wpk_cuda_part *part = &p->launch.part[i];
        wpk_c_line(&p->k->text,
                   "const i32 thread%d = (i32)threadIdx.x / %" PRId64 " %% %" PRId64 ";", i,
                   part->inside, part->count);
    }
}

/* Print the function around the body. */
static void end_launch(struct printer *p)
{
    struct wpk_c_kernel *k = p->k;
    struct wpk_cuda_step *step = &p->plan->step[p->plan->step_count];
    const struct wpk_cuda_launch *launch = &p->launch;
    p->threads[p->plan->step_count] = launch->threads;
    if (launch->threads > WPK_CUDA_THREADS_MAX) {
        wpk_c_refuse(k, "a block has at most 1024 threads");
    }
    if (launch->blocks > INT32_MAX) {
        wpk_c_refuse(k, "a launch has at most 2147483647 blocks");
    }
    snprintf(step->entry, sizeof(step->entry), "%s_%d", k->symbol, p->plan->step_count);
    step->blocks = launch->blocks;
    step->threads = launch->threads;
    find_taken(p, step);
    k->text.out = &p->module;
    k->text.depth = 0;
    wpk_c_put(&k->text, "extern \"C\" __global__ void __launch_bounds__(%" PRId64, launch->threads);
    int64_t together = blocks_together(launch);
    if (together > 1) {
        wpk_c_put(&k->text, ", %" PRId64, together);
    }
    wpk_c_put(&k->text, ") %s(", step->entry);
    put_parameters(p, step);
    wpk_c_put(&k->text, ")\n{\n");
    k->text.depth = 1;
    step->shared_bytes = put_shares(p);
    put_alignments(p, step);
    put_parts(p);
    wpk_buf_append(&p->module, p->body.data, p->body.size);
    wpk_buf_append_text(&p->module, "}\n");
    if (step->shared_bytes > WPK_CUDA_SHARED_MAX) {
        wpk_c_refuse(k, "a block has at most 48 KiB of shared memory");
    }
    if (launch->parts > 1) {
        struct wpk_cuda_plan *plan = p->plan;
        plan->part_bytes =
            launch->part_bytes > plan->part_bytes ? launch->part_bytes : plan->part_bytes;
        plan->ticket_count =
            launch->tiles > plan->ticket_count ? launch->tiles : plan->ticket_count;
    }
    p->plan->step_count++;
}

/* ---- the whole */

static void print_root(struct printer *p, int e)
{
    struct wpk_c_kernel *k = p->k;
    const struct wpk_stage *stage = &k->program->stages[k->nest->entry[e].stage];
    struct wpk_c_box *box = WPK_DEMAND(calloc(1, sizeof(*box)));
    for (int a = 0; a < stage->rank; a++) {
        box->size[a] = stage->axes[a].extent;
    }
    for (int update = 0; update <= (stage->reduction != WPK_REDUCE_NONE); update++) {
        if (p->plan->step_count == WPK_LAUNCHES_MAX) {
            wpk_c_refuse(k, "too many launches");
            break;
        }
        k->printing = k->nest->entry[e].at;
        begin_launch(p);
        wpk_cuda_print_definition(k, e, update != 0, box);
        end_launch(p);
    }
    free(box);
}

static void print_pass(struct wpk_c_kernel *k, void *user)
{
    struct printer *p = user;
    k->forms.narrow = true;
    k->launch = &p->launch;
    p->plan->step_count = 0;
    p->plan->part_bytes = p->plan->ticket_count = 0;
    wpk_buf_reset(&p->module);
    for (int i = 0; i < p->plan->argument_count; i++) {
        wpk_c_storage_argument(k, p->plan->argument[i]);
    }
    for (int t = 0; t < k->program->tensor_count; t++) {
        if (k->program->tensors[t].role == WPK_ROLE_LITERAL) {
            wpk_c_storage_argument(k, t);
        }
    }
    for (int e = k->nest->entry_count - 1; e >= 0 && k->refusal == NULL; e--) {
        if (is_at_root(&k->nest->entry[e])) {
            print_root(p, e);
        }
    }
}

/* The first pass finds the threads of each launch, and how each storage is used. */
static void print(struct printer *p)
{
    struct wpk_c_kernel *k = p->k;
    struct wpk_cuda_plan *plan = p->plan;
    plan->argument_count = 0;
    for (int kind = 0; kind <= 2; kind++) {
        for (int t = 0; t < k->program->tensor_count; t++) {
            if (kind_of(k, t) == kind) {
                plan->dtype[plan->argument_count] = k->program->tensors[t].dtype;
                plan->argument[plan->argument_count++] = t;
            }
        }
    }
    check_tensors(k);
    wpk_c_print_passes(k, print_pass, p);
}

static wpk_err print_kernel(struct wpk_c_kernel *k, bool can_async, struct wpk_cuda_plan *plan,
                            struct wpk_buf *out, struct wpk_diag *diag)
{
    struct printer *p = WPK_DEMAND(calloc(1, sizeof(*p)));
    wpk_err err = WPK_EUNSUPPORTED;
    p->k = k;
    p->plan = plan;
    p->can_async = can_async;
    print(p);
    if (k->refusal != NULL) {
        wpk_diag_set_at(diag, k->refused.line, k->refused.column,
                        "the back end cuda cannot print this kernel: %s", k->refusal);
    } else {
        wpk_cuda_put_prologue(k, out);
        /* Literals are tables of the module. Most loads of them do not read those: a load whose
         * indices are numbers is a number. */
        for (int t = 0; t < k->program->tensor_count; t++) {
            if (k->program->tensors[t].role == WPK_ROLE_LITERAL) {
                wpk_c_storage_put_literal(k, t, "static __constant__ const", out);
            }
        }
        wpk_buf_append(out, p->module.data, p->module.size);
        err = wpk_buf_status(&p->module);
        err = err == WPK_OK ? wpk_buf_status(out) : err;
    }
    wpk_buf_fini(&p->body);
    wpk_buf_fini(&p->module);
    free(p);
    return err;
}

/* True if the GPU that the target names has asynchronous copies. */
static bool has_async(const char *target)
{
    char architecture[WPK_LAUNCH_ARCHITECTURE_MAX];
    struct wpk_cuda_machine machine = {0};
    if (wpk_target_architecture(target, architecture, sizeof(architecture)) == WPK_OK) {
        wpk_cuda_machine((int)strtol(architecture + sizeof("sm_") - 1, NULL, 10), 1, &machine);
    }
    return machine.copies_ahead;
}

wpk_err wpk_cuda_print(const struct wpk_schedule *schedule, const char *symbol, struct wpk_buf *out,
                       struct wpk_cuda_plan *plan, struct wpk_diag *diag)
{
    struct wpk_program program;
    if (!wpk_cuda_accepts(schedule, diag)) {
        return WPK_EUNSUPPORTED;
    }
    wpk_err err = wpk_schedule_expand(schedule, &program);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_c_kernel *k = wpk_c_kernel_new(schedule, &program, symbol);
    k->in_place = -1;
    err = print_kernel(k, has_async(schedule->target), plan, out, diag);
    wpk_c_kernel_free(k);
    wpk_program_fini(&program);
    return err;
}

/* ---- what is refused before anything is printed */

static bool refuse(const struct wpk_position *at, struct wpk_diag *diag, const char *why)
{
    wpk_diag_set_at(diag, at->line, at->column, "the back end cuda %s", why);
    return false;
}

static bool accepts_loop(const struct wpk_nest_loop *loop, struct wpk_diag *diag)
{
    if (loop->binding == WPK_BIND_PARALLEL) {
        return refuse(&loop->at, diag, "has no parallel: write block.x or thread.x");
    }
    if (loop->binding == WPK_BIND_DOT) {
        return refuse(&loop->at, diag, "has no dot: write unroll outside of lanes");
    }
    bool moves = loop->tail == WPK_TAIL_EXACT || loop->tail == WPK_TAIL_SHIFT;
    if (wpk_bind_is_block(loop->binding) && !moves) {
        return refuse(&loop->at, diag, "moves the last block inwards: write shift or exact");
    }
    return true;
}

static bool accepts_entry(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                          const char *target, struct wpk_diag *diag)
{
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    if (wpk_stage_gathers(nest->program, stage)) {
        return refuse(&entry->at, diag, "reads at no index that is data so far");
    }
    if (entry->slides) {
        return refuse(&entry->at, diag,
                      "keeps no values from one iteration to the next: leave slide out");
    }
    if (entry->scope == WPK_SCOPE_OUTPUT || entry->scope == WPK_SCOPE_HEAP) {
        return refuse(&entry->at, diag,
                      "has the scopes register, shared and global: write one of these");
    }
    if ((entry->scope == WPK_SCOPE_GLOBAL) != is_at_root(entry) && entry->scope != WPK_SCOPE_ANY) {
        return refuse(&entry->at, diag,
                      "keeps in global memory what is computed before everything, and only that");
    }
    if (entry->update.atomic) {
        bool shared_out = false;
        for (int i = 0; i < entry->update.count; i++) {
            shared_out = shared_out || wpk_nest_is_shared_out(nest, entry, i);
        }
        if (!shared_out) {
            return refuse(&entry->at, diag,
                          "adds up parts over blocks or threads: write block.x or thread.x over a "
                          "reduction, or leave atomic out");
        }
    }
    for (int a = 0; a < stage->rank; a++) {
        if (entry->align[a] > 1 && entry->place.entry >= 0 && entry->scope != WPK_SCOPE_SHARED) {
            return refuse(&entry->at, diag,
                          "fills multiples in shared memory alone: write scope shared, or leave "
                          "align out");
        }
    }
    return entry->by != WPK_COPY_ASYNC || has_async(target) ||
           refuse(&entry->at, diag, "has asynchronous copies from sm_80 on: write by load");
}

bool wpk_cuda_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    const struct wpk_nest *nest = schedule->nest;
    for (int i = 0; i < nest->loop_count; i++) {
        if (!accepts_loop(&nest->loop[i], diag)) {
            return false;
        }
    }
    for (int e = 0; e < nest->entry_count; e++) {
        if (!nest->entry[e].inlined &&
            !accepts_entry(nest, &nest->entry[e], schedule->target, diag)) {
            return false;
        }
    }
    return true;
}
