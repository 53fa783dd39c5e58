/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/sim_fair.h"

#include "coordinator/state/event.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/final.h"
#include "coordinator/state/model.h"
#include "coordinator/state/table.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define FLOWS_MAX 64
#define SEARCHES_MAX 1024
#define GRANTS_MAX 16384
#define WINDOW 20
#define ALL (-1)
#define ONE (-2)
#define ROUNDING_NS 100000 /* of divisions by weights and among owners, of a run */

/* An owner's share of a timing class's device time. */
struct flow {
    char timing[WPK_TIMING_CLASS_TEXT_MAX];
    char owner[WPK_JOB_TEXT_MAX];
    double virtual_ns;
    double level_ns; /* of the timing class: the largest virtual time at which a lease was given */
};

/* The shortest and longest of what a search's leases took. */
struct range {
    uint64_t handle;
    uint64_t low_ns;
    uint64_t high_ns;
};

struct grant {
    uint64_t lease;
    int flow;        /* that pays; ALL, ONE: it is no grant, but the end of windows */
    int anew;        /* ONE: of the windows of this flow, which had been idle */
    bool shared;     /* several owners paid for it */
    uint64_t rivals; /* the flows, as bits, that had work for its worker, with itself */
    uint64_t given_ns;
    uint64_t settled_ns;          /* when; 0: not yet */
    double estimate_ns;           /* by weight, like */
    double actual_ns;             /* 0 until it is settled */
    double virtual_ns[FLOWS_MAX]; /* of all flows, before it */
};

static struct {
    struct wpk_sim *sim; /* NULL: nobody is watched */
    struct flow flows[FLOWS_MAX];
    int flow_count;
    struct range ranges[SEARCHES_MAX];
    int range_count;
    struct grant *grants; /* owned; [grant_count], in their order */
    int grant_count;
    int grant_first;     /* of this coordinator's: leases are numbered anew in the next */
    uint64_t charged_ns; /* in all */
    uint64_t windows;
} book;

/* ---- the watched functions: their calls come here, and go on */

struct wpk_coordinator *watched_new(uint64_t job_number_next) //
    __asm__("__wrap_wpk_coordinator_new");
struct wpk_coordinator *real_new(uint64_t job_number_next) //
    __asm__("__real_wpk_coordinator_new");
void watched_charge(struct wpk_coordinator *c, struct wpk_lease *lease) //
    __asm__("__wrap_wpk_fair_charge");
void real_charge(struct wpk_coordinator *c, struct wpk_lease *lease) //
    __asm__("__real_wpk_fair_charge");
void watched_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns) //
    __asm__("__wrap_wpk_fair_settle");
void real_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns) //
    __asm__("__real_wpk_fair_settle");
void watched_ready(struct wpk_flow *flow, const struct wpk_search *search) //
    __asm__("__wrap_wpk_fair_ready");
void real_ready(struct wpk_flow *flow, const struct wpk_search *search) //
    __asm__("__real_wpk_fair_ready");
void watched_forget(struct wpk_timing_class *timing) __asm__("__wrap_wpk_flow_forget");
void real_forget(struct wpk_timing_class *timing) __asm__("__real_wpk_flow_forget");

/* ---- the book */

static struct grant *put_grant(void)
{
    WPK_SIM_CHECK(book.sim, book.grant_count < GRANTS_MAX, "too many leases");
    struct grant *grant = &book.grants[book.grant_count++];
    memset(grant, 0, sizeof *grant);
    return grant;
}

/* The timing class, or each one if it is NULL, has no past; no window goes over this. */
static void begin_anew(const char *timing)
{
    for (int i = 0; i < book.flow_count; i++) {
        if (timing == NULL || strcmp(book.flows[i].timing, timing) == 0) {
            book.flows[i].virtual_ns = 0;
            book.flows[i].level_ns = 0;
        }
    }
    put_grant()->flow = ALL;
}

/* Drop all records of a coordinator that is gone: its leases were in memory only. */
struct wpk_coordinator *watched_new(uint64_t job_number_next)
{
    book.range_count = 0;
    wpk_sim_level_begin();
    if (book.sim != NULL) {
        begin_anew(NULL);
    }
    book.grant_first = book.grant_count;
    return real_new(job_number_next);
}

double wpk_sim_fair_level(const struct wpk_timing_class *timing)
{
    for (int i = 0; i < book.flow_count; i++) {
        if (strcmp(book.flows[i].timing, timing->text) == 0) {
            return book.flows[i].level_ns;
        }
    }
    return 0;
}

static void set_level(const struct wpk_timing_class *timing, double virtual_ns)
{
    for (int i = 0; i < book.flow_count; i++) {
        struct flow *flow = &book.flows[i];
        if (strcmp(flow->timing, timing->text) == 0 && flow->level_ns < virtual_ns) {
            flow->level_ns = virtual_ns;
        }
    }
}

static int flow_of(const struct wpk_timing_class *timing, const struct wpk_owner *owner)
{
    for (int i = 0; i < book.flow_count; i++) {
        if (strcmp(book.flows[i].owner, owner->name) == 0 &&
            strcmp(book.flows[i].timing, timing->text) == 0) {
            return i;
        }
    }
    WPK_SIM_CHECK(book.sim, book.flow_count < FLOWS_MAX, "too many flows");
    struct flow *flow = &book.flows[book.flow_count];
    memset(flow, 0, sizeof *flow);
    flow->level_ns = wpk_sim_fair_level(timing);
    memcpy(flow->owner, owner->name, sizeof flow->owner);
    memcpy(flow->timing, timing->text, sizeof flow->timing);
    return book.flow_count++;
}

/* Check that the coordinator's virtual time of a flow is the book's. An owner that becomes active
 * late starts higher, which the book takes over, but not higher than the largest virtual time
 * served so far. */
static double virtual_of(int index, const struct wpk_flow *flow)
{
    struct flow *own = &book.flows[index];
    double virtual_ns = (double)flow->virtual_ns;
    WPK_SIM_CHECK(book.sim, virtual_ns > own->virtual_ns - ROUNDING_NS,
                  "%s has %.0f ns, and was charged %.0f", own->owner, virtual_ns, own->virtual_ns);
    if (virtual_ns > own->virtual_ns + ROUNDING_NS) {
        WPK_SIM_CHECK(book.sim, virtual_ns <= own->level_ns + ROUNDING_NS,
                      "%s has %.0f ns, was charged %.0f, and nobody was served with more than %.0f",
                      own->owner, virtual_ns, own->virtual_ns, own->level_ns);
        own->virtual_ns = virtual_ns;
        struct grant *end = put_grant();
        end->flow = ONE;
        end->anew = index;
    }
    return own->virtual_ns;
}

static struct range *range_of(const struct wpk_search *search)
{
    for (int i = 0; i < book.range_count; i++) {
        if (book.ranges[i].handle == search->handle) {
            return &book.ranges[i];
        }
    }
    WPK_SIM_CHECK(book.sim, book.range_count < SEARCHES_MAX, "too many searches");
    book.ranges[book.range_count] = (struct range){.handle = search->handle};
    return &book.ranges[book.range_count++];
}

static struct grant *find_grant(uint64_t lease)
{
    for (int i = book.grant_count; i > book.grant_first; i--) {
        if (book.grants[i - 1].lease == lease) {
            return &book.grants[i - 1];
        }
    }
    return NULL;
}

/* ---- a lease is given */

/* Check that an owner that becomes active starts at the place's current virtual time at least:
 * credit is not saved up. Both times are rounded. */
static void check_credit(const struct wpk_flow *flow, const void *place)
{
    double level_ns = wpk_sim_level_of(place);
    WPK_SIM_CHECK(book.sim, (double)flow->virtual_ns >= level_ns - 2 * ROUNDING_NS,
                  "%s comes with %.3f s, when somebody with %.3f s was served", flow->owner->name,
                  (double)flow->virtual_ns / 1e9, level_ns / 1e9);
}

static bool has_work_for(const struct wpk_owner_queue *owner_queue, const struct wpk_worker *worker)
{
    for (uint32_t i = 0; i < owner_queue->ready_count; i++) {
        if (!wpk_final_excludes(owner_queue->ready[i]->search, worker)) {
            return true;
        }
    }
    return false;
}

/* It was not chosen: the worker says that it has it, after wpkd or its session was away. */
static bool is_told(const struct wpk_coordinator *c, const struct wpk_lease *lease)
{
    return c->event->kind == WPK_EVENT_MESSAGE &&
           c->event->message->session == lease->worker->session && c->polled != lease->worker;
}

/* Check that no other owner with work for the worker has a lower virtual time. */
static void check_choice(const struct wpk_lease *lease, struct grant *grant)
{
    const struct wpk_worker_class *worker_class = lease->worker->worker_class;
    double own_ns = book.flows[grant->flow].virtual_ns;
    for (const struct wpk_link *link = worker_class->links; link != NULL;
         link = link->worker_class_next) {
        for (uint32_t i = 0; i < link->queue->ready_count; i++) {
            const struct wpk_owner_queue *owner_queue = link->queue->ready[i];
            if (!has_work_for(owner_queue, lease->worker)) {
                continue;
            }
            int rival = flow_of(worker_class->timing, owner_queue->flow->owner);
            double rival_ns = virtual_of(rival, wpk_fair_payer(worker_class, owner_queue->flow));
            grant->rivals |= UINT64_C(1) << rival;
            WPK_SIM_CHECK(book.sim, own_ns <= rival_ns + ROUNDING_NS,
                          "%s has had %.3f s, %s %.3f s, and a lease is given for %s",
                          book.flows[grant->flow].owner, own_ns / 1e9, book.flows[rival].owner,
                          rival_ns / 1e9, book.flows[grant->flow].owner);
        }
    }
}

static void check_estimate(const struct wpk_lease *lease)
{
    const struct range *range = range_of(lease->search);
    uint64_t low_ns = range->low_ns != 0 ? range->low_ns : WPK_ESTIMATE_NS;
    uint64_t high_ns = range->low_ns != 0 ? range->high_ns : WPK_ESTIMATE_NS;
    WPK_SIM_CHECK(book.sim, lease->estimate_ns >= low_ns && lease->estimate_ns <= high_ns,
                  "%llu ns are estimated, leases took %llu to %llu",
                  (unsigned long long)lease->estimate_ns, (unsigned long long)low_ns,
                  (unsigned long long)high_ns);
}

void watched_charge(struct wpk_coordinator *c, struct wpk_lease *lease)
{
    if (book.sim == NULL || lease->flow == NULL) {
        real_charge(c, lease);
        return;
    }
    const struct wpk_worker_class *worker_class = lease->worker->worker_class;
    const struct wpk_flow *payer = wpk_fair_payer(worker_class, lease->flow);
    int index = flow_of(worker_class->timing, lease->flow->owner);
    double virtual_ns = virtual_of(index, payer);
    struct grant *grant = put_grant();
    grant->lease = lease->number;
    grant->given_ns = c->event->now_ns;
    grant->flow = index;
    if (payer->ready_count == 0) {
        /* In a builder's timing class no claim says when there is work. */
        check_credit(payer, worker_class);
    }
    set_level(worker_class->timing, virtual_ns);
    wpk_sim_level_served(worker_class, virtual_ns);
    if (!is_told(c, lease)) {
        check_choice(lease, grant);
        wpk_sim_check_rank(book.sim, c, lease);
    }
    for (int i = 0; i < book.flow_count; i++) {
        grant->virtual_ns[i] = book.flows[i].virtual_ns;
    }
    real_charge(c, lease);
    check_estimate(lease);
    grant->estimate_ns = (double)lease->estimate_ns / lease->flow->owner->weight;
    book.flows[grant->flow].virtual_ns += grant->estimate_ns;
}

/* ---- a lease is over */

/* The owners for whom the search is worked on, each once. */
static uint32_t owners_of(const struct wpk_search *search, const struct wpk_owner **out,
                          uint32_t max)
{
    uint32_t count = 0;
    for (const struct wpk_job_op_state *op = search->ops; op != NULL; op = op->next) {
        bool found = op->claims[0] == NULL;
        for (uint32_t i = 0; i < count; i++) {
            found = found || out[i] == op->job->owner_record;
        }
        if (!found && count < max) {
            out[count++] = op->job->owner_record;
        }
    }
    return count;
}

/* Raise the book's virtual time of owners that became active since their last lease before this one
 * is charged. */
static void look_at_payers(const struct wpk_lease *lease)
{
    const struct wpk_timing_class *timing = lease->worker->worker_class->timing;
    const struct wpk_owner *owners[FLOWS_MAX];
    uint32_t count = owners_of(lease->search, owners, FLOWS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct wpk_flow *flow = wpk_table_get(&timing->flows, owners[i]->number);
        if (flow != NULL) {
            virtual_of(flow_of(timing, owners[i]), flow);
        }
    }
    if (lease->flow != NULL) {
        virtual_of(flow_of(lease->flow->timing, lease->flow->owner), lease->flow);
    }
}

/* Charge a lease's time to the owners of its search, in equal parts. */
static uint32_t enter(const struct wpk_lease *lease, uint64_t device_ns)
{
    const struct wpk_timing_class *timing = lease->worker->worker_class->timing;
    const struct wpk_owner *owners[FLOWS_MAX];
    uint32_t count = owners_of(lease->search, owners, FLOWS_MAX);
    if (count == 0 && lease->flow != NULL) {
        owners[count++] = lease->flow->owner;
    }
    for (uint32_t i = 0; i < count; i++) {
        book.flows[flow_of(timing, owners[i])].virtual_ns +=
            (double)device_ns / count / owners[i]->weight;
    }
    struct range *range = range_of(lease->search);
    range->low_ns = range->low_ns == 0 || device_ns < range->low_ns ? device_ns : range->low_ns;
    range->high_ns = device_ns > range->high_ns ? device_ns : range->high_ns;
    book.charged_ns += device_ns;
    return count;
}

void watched_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns)
{
    if (book.sim == NULL) {
        real_settle(c, lease, device_ns);
        return;
    }
    look_at_payers(lease);
    struct grant *grant = find_grant(lease->number);
    if (grant != NULL) {
        grant->settled_ns = c->event->now_ns;
        grant->actual_ns = (double)device_ns / lease->flow->owner->weight;
        book.flows[grant->flow].virtual_ns -= grant->estimate_ns;
    }
    uint32_t payers = device_ns > 0 ? enter(lease, device_ns) : 0;
    if (grant != NULL) {
        grant->shared = payers > 1;
    }
    uint64_t run_ns = book.sim->clock.now_ns - book.sim->began_ns;
    WPK_SIM_CHECK(book.sim, book.charged_ns <= run_ns * (uint64_t)book.sim->worker_count,
                  "%llu ns were charged in %llu ns", (unsigned long long)book.charged_ns,
                  (unsigned long long)run_ns);
    real_settle(c, lease, device_ns);
}

void watched_forget(struct wpk_timing_class *timing)
{
    if (book.sim != NULL) {
        begin_anew(timing->text);
    }
    real_forget(timing);
}

/* ---- work comes */

void watched_ready(struct wpk_flow *flow, const struct wpk_search *search)
{
    real_ready(flow, search);
    if (book.sim == NULL || flow->ready_count > 1) {
        return;
    }
    virtual_of(flow_of(flow->timing, flow->owner), flow);
    for (const struct wpk_claim *claim = search->claims; claim != NULL;
         claim = claim->search_next) {
        if (claim->owner_queue->flow == flow) {
            check_credit(flow, claim->owner_queue->queue);
        }
    }
}

/* ---- windows */

/* The difference between a lease's time and its estimate. */
static double surprise_ns(const struct grant *grant)
{
    double ns = grant->actual_ns - grant->estimate_ns;
    if (grant->shared) {
        return grant->actual_ns + grant->estimate_ns; /* it was charged to others, too */
    }
    return ns < 0 ? -ns : ns;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The leases `window`, in their order, of which each went to `a` or `b`, who wanted them all. */
static void check_window(const struct grant *const *window, int a, int b)
{
    double ahead_ns = 0; /* a before b */
    double forgiven_ns = 0;
    double longest_ns[2] = {0};
    const struct grant *first = window[0];
    for (const struct grant *grant = first; grant > book.grants && grant[-1].flow != ALL;) {
        grant--;
        bool in_flight = grant->settled_ns == 0 || grant->settled_ns >= first->given_ns;
        forgiven_ns += in_flight ? surprise_ns(grant) : 0;
    }
    for (int i = 0; i < WINDOW; i++) {
        bool is_a = window[i]->flow == a;
        ahead_ns += is_a ? window[i]->actual_ns : -window[i]->actual_ns;
        forgiven_ns += surprise_ns(window[i]);
        longest_ns[is_a] =
            larger(longest_ns[is_a], larger(window[i]->actual_ns, window[i]->estimate_ns));
    }
    /* A difference from before the window may be made up for in it, but not exceeded. */
    double before_ns = first->virtual_ns[a] - first->virtual_ns[b];
    before_ns = before_ns < 0 ? -before_ns : before_ns;
    double allowed_ns = larger(longest_ns[0], longest_ns[1]) +
                        larger(before_ns, larger(longest_ns[0], longest_ns[1])) + forgiven_ns;
    ahead_ns = ahead_ns < 0 ? -ahead_ns : ahead_ns;
    WPK_SIM_CHECK(book.sim, ahead_ns <= allowed_ns + ROUNDING_NS,
                  "%d leases from %llu on: %s and %s are %.3f s apart, %.3f s are allowed", WINDOW,
                  (unsigned long long)first->lease, book.flows[a].owner, book.flows[b].owner,
                  ahead_ns / 1e9, allowed_ns / 1e9);
    book.windows++;
}

static void check_pair(int a, int b)
{
    const uint64_t both = UINT64_C(1) << a | UINT64_C(1) << b;
    const struct grant *window[WINDOW];
    int count = 0;
    for (int i = 0; i < book.grant_count; i++) {
        const struct grant *grant = &book.grants[i];
        bool of_others = grant->flow == ONE ? grant->anew != a && grant->anew != b
                                            : grant->flow != a && grant->flow != b;
        if (grant->flow != ALL && !grant->shared && of_others) {
            continue;
        }
        if (grant->flow < 0 || grant->shared || (grant->rivals & both) != both) {
            count = 0;
            continue;
        }
        if (count == WINDOW) {
            memmove(window, window + 1, (WINDOW - 1) * sizeof window[0]);
            count--;
        }
        window[count++] = grant;
        if (count == WINDOW) {
            check_window(window, a, b);
        }
    }
}

void wpk_sim_fair_begin(struct wpk_sim *sim)
{
    free(book.grants);
    uint64_t windows = book.windows;
    memset(&book, 0, sizeof book);
    book.sim = sim;
    book.windows = windows;
    book.grants = calloc(GRANTS_MAX, sizeof *book.grants);
    WPK_ASSERT(book.grants != NULL);
}

void wpk_sim_fair_end(struct wpk_sim *sim)
{
    WPK_ASSERT(book.sim == sim);
    for (int a = 0; a < book.flow_count; a++) {
        for (int b = a + 1; b < book.flow_count; b++) {
            check_pair(a, b);
        }
    }
    book.sim = NULL;
    free(book.grants);
    book.grants = NULL;
}

uint64_t wpk_sim_fair_windows(void)
{
    return book.windows;
}
