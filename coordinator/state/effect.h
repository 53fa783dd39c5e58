/* SPDX-License-Identifier: Apache-2.0 */
/* Effects: what a step wants done. Effects are performed in their order; output (reply, respond) is
 * held back until the batch's other effects are durable. Pointers in an effect reach into the state
 * and into the event, and are good until the next step. Records, work items and texts of an effect
 * lie in the effects' arena, or came with the event. */
#ifndef WPK_COORDINATOR_STATE_EFFECT_H
#define WPK_COORDINATOR_STATE_EFFECT_H

#include "common/arena.h"
#include "common/net.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/worker.h"
#include "schema/message.h"

enum wpk_effect_kind {
    /* output, once the batch is durable */
    WPK_EFFECT_REPLY,
    WPK_EFFECT_RESPOND_JOB,
    WPK_EFFECT_RESPOND_WORKER,
    WPK_EFFECT_RESPOND_PROBLEM,
    /* the store */
    WPK_EFFECT_PUT_JOB,
    WPK_EFFECT_SET_JOB, /* the job's state; its document when it has ended */
    WPK_EFFECT_SET_OP,
    WPK_EFFECT_OPEN_SEARCH,     /* ──▶ OPENED */
    WPK_EFFECT_SET_SEARCH,      /* the search's counters */
    WPK_EFFECT_PUT_TRIAL,       /* the first result wins */
    WPK_EFFECT_PUT_TIMES,       /* an entry's time in a final; with a record: its verification */
    WPK_EFFECT_PUT_KERNEL,      /* ──▶ KERNEL_PUT */
    WPK_EFFECT_PUT_PLAIN,       /* served = own = plain: added to the problem's kernels */
    WPK_EFFECT_SET_OWNER,       /* name, device_ns, virtual_ns */
    WPK_EFFECT_SET_ADMIN_STATE, /* NONE: forget it */
    WPK_EFFECT_PUT_ARTIFACT,    /* the executor answers it */
    WPK_EFFECT_GET_ARTIFACT,    /* the executor answers it */
    /* the strategy */
    WPK_EFFECT_ASK, /* ──▶ ASKED */
    WPK_EFFECT_TELL,
    WPK_EFFECT_CLOSE_SEARCH, /* its strategy is not needed any more */
    /* the log */
    WPK_EFFECT_WARN,
    WPK_EFFECT_LOG,
};

/* A worker's admin state, to be stored or answered. */
struct wpk_admin_change {
    const char *worker; /* its name, or its device's instance */
    enum wpk_admin_state state;
    const char *reason;
};

/* An effect. The kind says which members of the unions are set. */
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
                const struct wpk_job_entry *answered;   /* JOB */
                struct wpk_admin_change answered_admin; /* WORKER */
                struct {                                /* PROBLEM */
                    wpk_err err;
                    const char *problem;
                    uint32_t retry_after_s; /* 0: not said */
                };
            };
        };
        struct { /* PUT_JOB, SET_JOB, SET_OP */
            const struct wpk_job_entry *job;
            uint32_t index; /* SET_OP */
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
                    const struct wpk_worker *worker;     /* NULL: it was abandoned */
                    const struct wpk_final_entry *entry; /* PUT_TIMES */
                    /* Of PUT_TRIAL, in the effects' arena: */
                    wpk_work_id work;
                    /* its text: the candidate; of a baseline "" */
                    const struct wpk_work_item *item;
                    const char *provider;
                    const char *spent; /* a shared object that is not run again; or NULL */
                };
                struct { /* PUT_KERNEL, PUT_PLAIN */
                    const struct wpk_final_entry *served;
                    const struct wpk_final_entry *own;
                    const struct wpk_final_entry *baseline;
                    /* Recorded beside `served`, to take its place if it is revoked; NULL: none. */
                    const struct wpk_final_entry *kept[WPK_FINAL_VERIFIED_MAX];
                    const struct wpk_final_entry *plain; /* the plain kernel; NULL: none */
                    bool serve;                          /* the problem is to serve it */
                };
            };
        };
        struct wpk_owner_event owner;  /* SET_OWNER */
        struct wpk_admin_change admin; /* SET_ADMIN_STATE */
        uint64_t handle;               /* CLOSE_SEARCH */
        struct {                       /* WARN, LOG */
            const char *text;          /* the event's name */
            const char *detail;
        };
    };
};

/* The effects of a step. `arena` holds what they point to and the state does not. The arena grows
 * from step to step, until its owner resets it when nothing in it is needed any more. */
struct wpk_effects {
    struct wpk_effect *items; /* owned; [count]; grows with what the event has to do */
    uint32_t count;
    uint32_t capacity;
    struct wpk_arena arena;
};

/*   owns    caller calls wpk_effects_fini */
void wpk_effects_init(struct wpk_effects *effects);
void wpk_effects_fini(struct wpk_effects *effects);

/* Add an effect of this kind, to be filled in; good until the next one is added. */
struct wpk_effect *wpk_effect_add(struct wpk_coordinator *c, enum wpk_effect_kind kind);
/* Add a log line: the event's name and its details, at most 511 bytes. */
void wpk_effect_log(struct wpk_coordinator *c, const char *event, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Add a warning: a log line that an administrator is to look at. */
void wpk_effect_warn(struct wpk_coordinator *c, const char *event, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Zeroed memory, and a copy of a text, in the effects' arena. */
void *wpk_effect_memory(struct wpk_coordinator *c, size_t count, size_t size);
char *wpk_effect_text(struct wpk_coordinator *c, const char *text);
/* Answer the event's request, if it has one, with a problem. `text` is not copied. */
void wpk_effect_problem(struct wpk_coordinator *c, int status, wpk_err err, uint32_t retry_after_s,
                        const char *text);

/* Answers to workers, as effects. */

/* A new message, to be filled in and sent within the step. It lies in the effects' arena. */
struct wpk_message *wpk_reply_new(struct wpk_coordinator *c, enum wpk_message_kind kind,
                                  uint64_t session);
void wpk_reply_send(struct wpk_coordinator *c, const struct wpk_net_address *address,
                    const struct wpk_message *message);
/* Answer the event's message, with an error or with `acks` [count]. */
void wpk_reply_error(struct wpk_coordinator *c, wpk_err err, const char *text);
void wpk_reply_acks(struct wpk_coordinator *c, enum wpk_ack *acks, uint32_t count);

#endif
