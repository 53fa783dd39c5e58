/* SPDX-License-Identifier: Apache-2.0 */
/* What the coordinator wants done. Effects are performed in their order; what leaves the process
 * (reply, respond) is held back until the batch's other effects are durable. Pointers in an effect
 * reach into the state and into the event, and are good until the next step; what its records,
 * pieces and texts point to lies in the effects' arena, or came with the event. */
#ifndef WPK_COORDINATOR_STATE_EFFECT_H
#define WPK_COORDINATOR_STATE_EFFECT_H

#include "common/arena.h"
#include "common/net.h"
#include "coordinator/state/account.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/worker_order.h"

struct wpk_job_entry;
struct wpk_search;

enum wpk_effect_kind {
    /* what leaves, once the batch is durable */
    WPK_EFFECT_REPLY,           /* address, message */
    WPK_EFFECT_RESPOND_JOB,     /* request, job, status */
    WPK_EFFECT_RESPOND_WORKER,  /* request, status, text: its name, order, detail: the reason */
    WPK_EFFECT_RESPOND_PROBLEM, /* request, status, err, text, retry_after_s */
    /* the store */
    WPK_EFFECT_PUT_JOB,     /* job, source */
    WPK_EFFECT_SET_JOB,     /* job: its state; its document when it has ended */
    WPK_EFFECT_SET_OP,      /* job, index */
    WPK_EFFECT_OPEN_SEARCH, /* search ──▶ OPENED */
    WPK_EFFECT_SET_SEARCH,  /* search: its counters */
    WPK_EFFECT_PUT_TRIAL,   /* search, work, provider, piece, record, worker: first result wins */
    /* search, entry, worker: a final's measurement; with a record: what its verification gave */
    WPK_EFFECT_PUT_TIMES,
    /* search, served, own, baseline, kept, plain ──▶ KERNEL_PUT */
    WPK_EFFECT_PUT_KERNEL,
    WPK_EFFECT_PUT_PLAIN,        /* search, served = own = plain: for its problem's kernels */
    WPK_EFFECT_SET_OWNER,        /* owner: name, device_ns, share_ns */
    WPK_EFFECT_SET_WORKER_ORDER, /* text: its name, order, detail: the reason; NONE: forget it */
    WPK_EFFECT_PUT_ARTIFACT,     /* address, message: answered by who performs it */
    WPK_EFFECT_GET_ARTIFACT,     /* address, message: likewise */
    /* the strategy */
    WPK_EFFECT_ASK,          /* search, count ──▶ ASKED */
    WPK_EFFECT_TELL,         /* search, index of the ask, piece */
    WPK_EFFECT_CLOSE_SEARCH, /* handle: nobody needs its strategy any more */
    /* the log */
    WPK_EFFECT_WARN, /* text: event name; detail */
    WPK_EFFECT_LOG,  /* text: event name; detail */
};

struct wpk_effect {
    enum wpk_effect_kind kind;
    struct wpk_net_address address;
    const struct wpk_message *message;
    uint64_t request;
    int status; /* HTTP */
    wpk_err err;
    const char *text;
    const char *detail;
    const struct wpk_job_entry *job;
    const char *source;
    uint32_t index;
    uint32_t count;
    const struct wpk_search *search;
    uint64_t handle;
    wpk_work_id work;
    const struct wpk_record *record;
    const struct wpk_worker *worker; /* NULL: nobody measured it, it was abandoned */
    const struct wpk_final_entry *entry;
    const struct wpk_final_entry *served;
    const struct wpk_final_entry *own;
    const struct wpk_final_entry *baseline;
    /* PUT_KERNEL: recorded beside `served`, to follow it if it is revoked; NULL: none */
    const struct wpk_final_entry *kept[WPK_FINAL_VERIFIED_MAX];
    const struct wpk_final_entry *plain; /* PUT_KERNEL: likewise, the last one; NULL: none */
    bool serve;                          /* PUT_KERNEL: it replaces what the problem serves */
    /* In the effects' arena: */
    const struct wpk_piece *piece; /* what ended, with its text: a candidate; of a vendor "" */
    const char *provider;
    const char *spent; /* PUT_TRIAL: a shared object that nobody runs again; or NULL */
    struct wpk_owner_event owner;
    enum wpk_worker_order order;
    uint32_t retry_after_s; /* RESPOND_PROBLEM; 0: not said */
};

/* Filled by a step. `arena` holds what effects point to and the state does not. It grows from step
 * to step until its owner resets it, when nothing of it is needed any more. */
struct wpk_effects {
    struct wpk_effect *items; /* owned; [count], grows: users decide how much there is to do */
    uint32_t count;
    uint32_t capacity;
    struct wpk_arena arena;
};

wpk_err wpk_effects_init(struct wpk_effects *effects);
void wpk_effects_fini(struct wpk_effects *effects);

/* The next effect, to be filled in. */
struct wpk_effect *wpk_effect_add(struct wpk_coordinator *c, enum wpk_effect_kind kind);
void wpk_effect_log(struct wpk_coordinator *c, const char *event, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Likewise, of what somebody is to look at. */
void wpk_effect_warn(struct wpk_coordinator *c, const char *event, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Zeroed memory that lives as long as the effects. */
void *wpk_effect_memory(struct wpk_coordinator *c, size_t count, size_t size);
char *wpk_effect_text(struct wpk_coordinator *c, const char *text);
/* Answer the event's request with a problem. */
void wpk_answer_problem(struct wpk_coordinator *c, int status, wpk_err err, uint32_t retry_after_s,
                        const char *text);

#endif
