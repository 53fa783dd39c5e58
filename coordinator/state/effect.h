/* SPDX-License-Identifier: Apache-2.0 */
/* What the coordinator wants done. Effects are performed in their order; what leaves the process
 * (reply, respond) is held back until the batch's other effects are durable. Pointers in an effect
 * reach into the state and into the event, and are good until the next step; what its records,
 * work items and texts point to lies in the effects' arena, or came with the event. */
#ifndef WPK_COORDINATOR_STATE_EFFECT_H
#define WPK_COORDINATOR_STATE_EFFECT_H

#include "common/arena.h"
#include "common/net.h"
#include "coordinator/state/admin_state.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"

struct wpk_job_entry;
struct wpk_search;

enum wpk_effect_kind {
    /* what leaves, once the batch is durable */
    WPK_EFFECT_REPLY,
    WPK_EFFECT_RESPOND_JOB,
    WPK_EFFECT_RESPOND_WORKER,
    WPK_EFFECT_RESPOND_PROBLEM,
    /* the store */
    WPK_EFFECT_PUT_JOB,
    WPK_EFFECT_SET_JOB, /* its state; its document when it has ended */
    WPK_EFFECT_SET_OP,
    WPK_EFFECT_OPEN_SEARCH, /* ──▶ OPENED */
    WPK_EFFECT_SET_SEARCH,  /* its counters */
    WPK_EFFECT_PUT_TRIAL,   /* the first result wins */
    WPK_EFFECT_PUT_TIMES,   /* a final's measurement; with a record: what its verification gave */
    WPK_EFFECT_PUT_KERNEL,  /* ──▶ KERNEL_PUT */
    WPK_EFFECT_PUT_PLAIN,   /* served = own = plain: for its problem's kernels */
    WPK_EFFECT_SET_OWNER,   /* name, device_ns, share_ns */
    WPK_EFFECT_SET_ADMIN_STATE, /* NONE: forget it */
    WPK_EFFECT_PUT_ARTIFACT,    /* answered by who performs it */
    WPK_EFFECT_GET_ARTIFACT,    /* likewise */
    /* the strategy */
    WPK_EFFECT_ASK, /* ──▶ ASKED */
    WPK_EFFECT_TELL,
    WPK_EFFECT_CLOSE_SEARCH, /* nobody needs its strategy any more */
    /* the log */
    WPK_EFFECT_WARN,
    WPK_EFFECT_LOG,
};

/* A worker's admin state, as it is kept and answered. */
struct wpk_admin_change {
    const char *worker; /* its name */
    enum wpk_admin_state state;
    const char *reason;
};

/* The kind says which of the unions' members are there. */
struct wpk_effect {
    enum wpk_effect_kind kind;
    union {
        struct { /* REPLY, PUT_ARTIFACT, GET_ARTIFACT */
            struct wpk_net_address address;
            const struct wpk_message *message;
        };
        struct { /* RESPOND_JOB, RESPOND_WORKER, RESPOND_PROBLEM */
            uint64_t request;
            int status; /* HTTP */
            union {
                const struct wpk_job_entry *answered; /* JOB */
                struct wpk_admin_change answered_admin; /* WORKER */
                struct {                              /* PROBLEM */
                    wpk_err err;
                    const char *problem;
                    uint32_t retry_after_s; /* 0: not said */
                };
            };
        };
        struct { /* PUT_JOB, SET_JOB, SET_OP */
            const struct wpk_job_entry *job;
            const char *source; /* PUT_JOB */
            uint32_t index;     /* SET_OP */
        };
        struct { /* OPEN_SEARCH, SET_SEARCH, PUT_..., ASK, TELL */
            const struct wpk_search *search;
            union {
                uint32_t count; /* ASK */
                struct {        /* TELL */
                    uint32_t ask;
                    const struct wpk_work_item *told;
                };
                struct { /* PUT_TRIAL, PUT_TIMES */
                    const struct wpk_record *record;
                    const struct wpk_worker *worker;     /* NULL: nobody measured it: abandoned */
                    const struct wpk_final_entry *entry; /* PUT_TIMES */
                    /* PUT_TRIAL, in the effects' arena: */
                    wpk_work_id work;
                    /* with its text: a candidate; a vendor's "" */
                    const struct wpk_work_item *item;
                    const char *provider;
                    const char *spent; /* a shared object that nobody runs again; or NULL */
                };
                struct { /* PUT_KERNEL, PUT_PLAIN */
                    const struct wpk_final_entry *served;
                    const struct wpk_final_entry *own;
                    const struct wpk_final_entry *baseline;
                    /* Recorded beside `served`, to follow it if it is revoked; NULL: none: */
                    const struct wpk_final_entry *kept[WPK_FINAL_VERIFIED_MAX];
                    const struct wpk_final_entry *plain; /* the last one */
                    bool serve;                          /* it replaces what the problem serves */
                };
            };
        };
        struct wpk_owner_event owner; /* SET_OWNER */
        struct wpk_admin_change admin; /* SET_ADMIN_STATE */
        uint64_t handle;              /* CLOSE_SEARCH */
        struct {                      /* WARN, LOG */
            const char *text;         /* the event's name */
            const char *detail;
        };
    };
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
void wpk_effect_problem(struct wpk_coordinator *c, int status, wpk_err err, uint32_t retry_after_s,
                        const char *text);

#endif
